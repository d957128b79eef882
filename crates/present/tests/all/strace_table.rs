//! Tests `-c`, strace's own table.

use crate::common::{Builder, counts, failing, stories};
use insta::assert_snapshot;
use systoll_model::{Counts, Problem, ProblemKind, Recording};
use systoll_present::{Style, TableColumn, TableOptions, TableSort, write_strace_table};

fn table(rec: &Recording, sort: TableSort) -> String {
    let mut out = vec![];
    write_strace_table(&mut out, rec, &TableOptions { sort, ..TableOptions::default() }, &Style::default())
        .expect("writing to memory");
    String::from_utf8(out).expect("UTF-8")
}

fn few() -> Recording {
    let mut b = Builder::new(&["ls"]);
    b.row("read", None, &[], counts(7, 900_000));
    b.row("openat", None, &[], failing(counts(34, 60_000), "ENOENT", 13));
    b.row("access", None, &[], failing(counts(2, 1_000), "ENOENT", 2));
    b.row("openat", None, &[], failing(counts(1, 1_000), "EACCES", 1));
    b.row("exit_group", None, &[], Counts { unreturned: 1, toll_ns: Some(0), ..Counts::default() });
    b.build()
}

fn order(sort: TableSort) -> Vec<String> {
    let text = table(&few(), sort);
    text.lines().skip(2).take(3).filter_map(|l| l.split(' ').next_back()).map(str::to_owned).collect()
}

#[test]
fn columns_are_straces() {
    assert_snapshot!(table(&few(), TableSort::default()), @r#"
    % time     seconds  usecs/call     calls    errors syscall
    ------ ----------- ----------- --------- --------- ----------------
     93.56    0.000900     128.571         7           read
      6.34    0.000061       1.743        35        14 openat
      0.10    0.000001       0.500         2         2 access
    ------ ----------- ----------- --------- --------- ----------------
    100.00    0.000962      21.864        44        16 total
    "#);
}

#[test]
fn rows_are_sorted_as_asked() {
    assert_eq!(order(TableSort::default()), ["read", "openat", "access"]);
    assert_eq!(order(TableSort::By(TableColumn::Calls)), ["openat", "read", "access"]);
    assert_eq!(order(TableSort::By(TableColumn::Errors)), ["openat", "access", "read"]);
    assert_eq!(order(TableSort::By(TableColumn::Name)), ["access", "openat", "read"]);
    for column in TableColumn::ALL {
        assert_eq!(TableSort::from_name(column.name()), Some(TableSort::By(column)));
        assert_eq!(TableColumn::from_name(&column.name().replace('-', "_")), Some(column));
    }
    assert_eq!(TableColumn::from_name("none"), None, "an order only");
}

#[test]
fn large_figures_widen_their_column() {
    let (mut rec, _) = stories::ruby();
    rec.rows[0].counts = counts(20_033_022_000_000, 1_950_000_000_000_000);
    let text = table(&rec, TableSort::default());
    let widths: Vec<_> = text.lines().filter(|l| l.starts_with('-')).map(str::len).collect();
    let name_at: Vec<_> = text.lines().filter_map(|l| l.rfind(' ')).collect();
    assert_eq!(widths.first(), widths.last());
    assert!(name_at.windows(2).all(|w| w[0] == w[1]), "{text}");
}

#[test]
fn estimates_and_doubts_come_before_the_table() {
    let (mut rec, _) = stories::localtime();
    assert_snapshot!(table(&rec, TableSort::default()), @r#"
    systoll: counts are exact, times are calls x this box's price of each (a crossing costs 97 ns)
    % time     seconds  usecs/call     calls    errors syscall
    ------ ----------- ----------- --------- --------- ----------------
     99.95    1.110000       1.110    999999           newfstatat
      0.04    0.000400       0.100      4000           lseek
      0.02    0.000180       1.500       120       100 openat
    ------ ----------- ----------- --------- --------- ----------------
    100.00    1.110580       1.106   1004119       100 total
    "#);
    rec.problems.push(Problem::new(ProblemKind::Unwatched, "sudo is set-uid: it ran \u{1b}[1munwatched"));
    for row in &mut rec.rows {
        row.counts.toll_ns = None;
    }
    assert_snapshot!(table(&rec, TableSort::default()), @r#"
    systoll: times are calls x this box's price of each (a crossing costs 97 ns)
    systoll: what the calls cost is unknown
    systoll: counts are not exact
    systoll: sudo is set-uid: it ran \x1b[1munwatched
    % time     seconds  usecs/call     calls    errors syscall
    ------ ----------- ----------- --------- --------- ----------------
         ?           ?           ?    999999           newfstatat
         ?           ?           ?      4000           lseek
         ?           ?           ?       120       100 openat
    ------ ----------- ----------- --------- --------- ----------------
      0.00           ?           ?   1004119       100 total
    "#);
}

#[test]
fn no_call_at_all() {
    let (rec, _) = stories::empty();
    assert_snapshot!(table(&rec, TableSort::default()), @r#"
    % time     seconds  usecs/call     calls    errors syscall
    ------ ----------- ----------- --------- --------- ----------------
    ------ ----------- ----------- --------- --------- ----------------
      0.00           ?           ?         0           total
    "#);
}

#[test]
fn requested_columns_keep_their_order() {
    let table = |columns: &[&str], sort: &str, wall| {
        let columns = columns.iter().filter_map(|c| TableColumn::from_name(c)).collect();
        let options = TableOptions {
            sort: TableSort::from_name(sort).expect("an order"),
            columns,
            wall,
            overhead_ns: 0,
            only: None,
        };
        let mut out = vec![];
        write_strace_table(&mut out, &few(), &options, &Style::default()).expect("writing to memory");
        String::from_utf8(out).expect("UTF-8")
    };
    let heading = |text: &str| {
        let lines: Vec<_> = text.lines().collect();
        let line = lines.windows(2).find(|pair| pair[1].starts_with('-')).map_or("", |pair| pair[0]);
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let text = table(&["calls", "max-time"], "name", false);
    assert_eq!(heading(&text), ["calls", "longest", "syscall"]);
    let text = table(&["name", "total-time", "count"], "nothing", true);
    assert_eq!(heading(&text), ["syscall", "seconds", "calls"]);
    assert!(text.contains("times are elapsed"), "{text}");
    let numbers: Vec<_> = text.lines().rev().skip(2).take_while(|l| !l.starts_with('-')).collect();
    assert_eq!(numbers.len(), few().by_syscall().iter().filter(|t| t.counts.calls > 0).count());
}

#[test]
fn elapsed_times_stand_beside_those_paid() {
    let (mut fast, mut slow) = (Counts { calls: 3, toll_ns: Some(900), ..Counts::default() }, Counts::default());
    [400, 500, 2_000_000].into_iter().for_each(|ns| fast.time(ns));
    slow.calls = 2;
    slow.time(30_000);
    let mut b = Builder::new(&["app"]);
    b.row("read", None, &[], fast);
    b.row("futex", None, &[], slow);
    b.row("exit_group", None, &[], Counts { calls: 1, ..Counts::default() });
    let rec = b.build();
    let table = |columns: &str, sort: &str, overhead_ns: u64| {
        let columns = columns.split(',').map(|c| TableColumn::from_name(c).expect("a column")).collect();
        let sort = TableSort::from_name(sort).expect("an order");
        let mut out = vec![];
        let options = TableOptions { sort, columns, wall: false, overhead_ns, only: None };
        write_strace_table(&mut out, &rec, &options, &Style::default()).expect("writing to memory");
        String::from_utf8(out).expect("UTF-8")
    };
    assert_snapshot!(table("total-time,wall-total,wall-min,wall-max,wall-avg,calls,name", "wall-total", 0), @r#"
    systoll: shortest, longest and wall are elapsed, waiting and the watching included, some 14 ns of it
    a call our own
    systoll: elapsed times are those of 4 of 6 calls, which were timed
        seconds  wall-total    wall-min    wall-max    wall-avg     calls syscall
    ----------- ----------- ----------- ----------- ----------- --------- ----------------
       0.000001    0.002001 0.000000400 0.002000000     666.967         3 read
              ?    0.000030 0.000030000 0.000030000      30.000         2 futex
              ?           ?           ?           ?           ?         1 exit_group
    ----------- ----------- ----------- ----------- ----------- --------- ----------------
       0.000001    0.002031 0.000000400 0.002000000     507.725         6 total
    "#);
    assert_snapshot!(table("min-time,max-time,name", "wall-min", 450), @r#"
    systoll: shortest, longest and wall are elapsed, waiting included, less 450 ns a call
    systoll: elapsed times are those of 4 of 6 calls, which were timed
       shortest     longest syscall
    ----------- ----------- ----------------
    0.000029550 0.000029550 futex
    0.000000000 0.001999550 read
              ?           ? exit_group
    ----------- ----------- ----------------
    0.000000000 0.001999550 total
    "#);
}
