//! Tests `--by`, `-k` and `-y`, as a reader sees them.

use crate::common::{Builder, counts, failing, report, stories};
use insta::assert_snapshot;
use systoll_judge::{By, Judgement, grouped};
use systoll_model::{
    FrameClass, ProcessId, Recording, RowId, Stack, StackId, Sysno, Thread, ThreadCalls, Window, WindowCall,
};
use systoll_present::{Narrowing, ReportOptions, Style, write_grouping};

fn whole_screen(rec: &Recording, by: By, options: &ReportOptions, width: usize) -> String {
    let mut out = vec![];
    let style = Style { color: false, width, whole_names: false };
    write_grouping(&mut out, rec, &grouped(rec, by, None), None, options, &style).expect("writing to memory");
    String::from_utf8(out).expect("UTF-8")
}

/// Returns the screen without the command's line, and without the line on how calls were counted.
fn screen(rec: &Recording, by: By, options: &ReportOptions, width: usize) -> String {
    let text = whole_screen(rec, by, options, width);
    let table = text.split_once("\n\n").map(|(_, rest)| rest).unwrap_or_default();
    table.rsplit_once("\n\n").map_or(table, |(table, _)| table).to_owned() + "\n"
}

fn only(asked: &str, others: u64) -> Narrowing {
    Narrowing { asked: asked.into(), made_as: Vec::new(), others }
}

#[test]
fn an_empty_selection_names_the_calls_that_were_made() {
    let options = ReportOptions { only: Some(only("open", 148)), ..ReportOptions::default() };
    let mut out = Vec::new();
    let style = Style { color: false, width: 100, whole_names: false };
    let none = systoll_model::Recording::default();
    write_grouping(&mut out, &none, &grouped(&none, By::Caller, None), None, &options, &style)
        .expect("writing to memory");
    let text = String::from_utf8(out).expect("UTF-8");
    assert!(text.contains("\n  none of open; 148 other system calls\n"), "{text}");
}

#[test]
fn the_way_of_counting_is_named() {
    let options = ReportOptions { only: Some(only("%file", 0)), ..ReportOptions::default() };
    let text = whole_screen(&server(), By::Caller, &options, 100);
    let last = text.rsplit_once("\n\n").map(|(_, last)| last).unwrap_or_default();
    assert!(last.starts_with("  4,503 system calls, counted exactly    only %file"), "{last}");
}

fn call(row: RowId, nth: u64, fd: (u64, &str), stack: Option<StackId>) -> WindowCall {
    WindowCall {
        row,
        nth,
        args: [fd.0, 0, 0, 0, 0, 0],
        data: vec![],
        fd: Some(fd.1.into()),
        result: Some(1),
        entry_ns: nth,
        elapsed_ns: 200,
        waited_ns: None,
        signals_before: 0,
        faults: None,
        stack,
        before: systoll_model::Before::Unknown,
        request: None,
    }
}

/// Returns the recording of a server: 4,000 reads from two places, on two sockets and a pipe, and a
/// failing stat.
fn server() -> Recording {
    let mut b = Builder::new(&["./server"]).times(900.0, 40.0);
    let app = "/srv/server";
    let parse = b.frame(app, FrameClass::User, "parse", "/src/parse.c:40");
    let again = b.frame(app, FrameClass::User, "parse", "/src/parse.c:77");
    let plugin = b.frame("/srv/plugins/evil\x1b.so", FrameClass::User, "on_\u{202e}load", "");
    let main = b.frame(app, FrameClass::User, "main", "/src/main.c:9");
    let one = b.row("read", Some("read"), &[parse, main], counts(3000, 9_000_000));
    let two = b.row("read", Some("fread"), &[again, main], counts(1000, 2_000_000));
    b.row("newfstatat", Some("stat"), &[plugin, main], failing(counts(500, 700_000), "ENOENT", 500));
    b.plain("brk", 3, 900);
    let mut rec = b.build();
    let long = rec.stacks.len() as u32;
    let frames = rec.stacks[rec.rows[0].context.0 as usize].frames.clone();
    rec.stacks.push(Stack { frames: frames.iter().copied().chain([main]).collect(), complete: true });
    let client = "TCP:[10.0.0.1:80->10.0.0.2:4711]";
    let windows = [
        (one, 1, (5, client)),
        (one, 300, (5, client)),
        (one, 2000, (6, "pipe:[77]")),
        (two, 600, (7, "/tmp/\x1b[2J")),
    ];
    rec.windows = windows
        .iter()
        .map(|(row, nth, fd): &(RowId, u64, (u64, &str))| Window {
            process: ProcessId(0),
            thread: 0,
            row: *row,
            octave: nth.ilog2() as u8,
            calls: (0..4).map(|i| call(*row, nth + i, *fd, (i == 0).then_some(StackId(long)))).collect(),
        })
        .collect();
    let read = Sysno::from_name("read").expect("read");
    let calls = |calls| ThreadCalls { syscall: read, calls, failed: 0, toll_ns: Some(calls * 2000), waited_ns: None };
    let thread = |tid, name: &str, n| Thread { process: ProcessId(0), tid, name: name.into(), calls: vec![calls(n)] };
    rec.threads = vec![thread(4711, "server", 10), thread(4712, "io\x1bworker", 3990), thread(0, "", 2)];
    rec.check().expect("whole");
    rec
}

#[test]
fn callers_lines_and_libraries() {
    let rec = server();
    let plain = ReportOptions::default();
    assert_snapshot!(screen(&rec, By::Caller, &plain, 100), @r#"
    calls  errors     time       of CPU  caller
    4,000            11 ms         28 %  parse parse.c
      500     500   700 µs        1.8 %  on_\u{202e}load evil\x1b.so
        3           900 ns  below 0.1 %  (no caller known)
    4,503     500  11.7 ms         29 %  all
    "#);
    assert_snapshot!(screen(&rec, By::Line, &plain, 100), @r#"
    calls  errors     time       of CPU  line
    3,000             9 ms         22 %  parse parse.c:40
    1,000             2 ms        5.0 %  parse parse.c:77
      500     500   700 µs        1.8 %  on_\u{202e}load evil\x1b.so
        3           900 ns  below 0.1 %  (no caller known)
    4,503     500  11.7 ms         29 %  all
    "#);
    assert_snapshot!(screen(&rec, By::Library, &plain, 44), @r#"
    calls     time  library
    4,000    11 ms  /srv/server
      500   700 µs  /srv/plugins/evil\x1b.so
        3   900 ns  (no caller known)
    4,503  11.7 ms  all
    "#);
}

#[test]
fn threads_and_descriptors() {
    let rec = server();
    let plain = ReportOptions::default();
    assert_snapshot!(screen(&rec, By::Thread, &plain, 100), @r#"
    calls  errors     time       of CPU  thread
    3,990          7.98 ms         20 %  io\x1bworker 4712
       10            20 µs        0.1 %  server 4711
        2             4 µs  below 0.1 %  threads not distinguished
    4,503     500  11.7 ms         29 %  all
    "#);
    assert_snapshot!(screen(&rec, By::Fd, &plain, 120), @r#"
    calls       between  sampled  errors     time       of CPU  fd
    2,489  922 to 2,945        4          7.47 ms         19 %  pipe:[77]
    1,000   50 to 1,000        4             2 ms        5.0 %  /tmp/\x1b[2J
      511   55 to 2,078        8          1.53 ms        3.8 %  TCP:[10.0.0.1:80->10.0.0.2:4711]
      500      0 to 500        0     500   700 µs        1.8 %  (not sampled, or closed)
        3                                  900 ns  below 0.1 %  (no descriptor)
    4,503                            500  11.7 ms         29 %  all

    sampled: calls are estimates from samples, between bounds that hold 19 times in 20
    "#);
}

#[test]
fn figures_fit_a_narrow_screen() {
    let rec = server();
    for width in 50..80 {
        let text = screen(&rec, By::Fd, &ReportOptions::default(), width);
        let long: Vec<_> = text.lines().filter(|l| l.chars().count() > width).collect();
        assert!(long.is_empty(), "{width}: {long:?}");
        assert!(text.contains("between"), "{text}");
    }
}

#[test]
fn stacks_and_descriptors_beneath() {
    let options = ReportOptions { stacks: true, fds: true, ..ReportOptions::default() };
    assert_snapshot!(screen(&server(), By::Api, &options, 100), @r#"
    calls  errors     time       of CPU  api
    3,000             9 ms         22 %  read libc.so.6
     read   3,000 calls
       __read  libc.so.6
       parse  server /src/parse.c:40
       main  server /src/main.c:9
       fd     5<TCP:[10.0.0.1:80->10.0.0.2:4711]>   8 of 12 calls sampled
              6<pipe:[77]>   4 of 12 calls sampled
    1,000             2 ms        5.0 %  fread libc.so.6
     read   1,000 calls
       __read  libc.so.6
       fread  libc.so.6
       parse  server /src/parse.c:77
       main  server /src/main.c:9
       fd     7</tmp/\x1b[2J>   4 of 4 calls sampled
      500     500   700 µs        1.8 %  stat libc.so.6
     newfstatat   500 calls
       __newfstatat  libc.so.6
       stat  libc.so.6
       on_\u{202e}load  evil\x1b.so
       main  server /src/main.c:9
        3           900 ns  below 0.1 %  (no public function)
     brk   3 calls
       __brk  libc.so.6
    4,503     500  11.7 ms         29 %  all
    "#);
}

#[test]
fn few_groups_are_shown_without_all() {
    let groups = |toll: u64| {
        let mut b = Builder::new(&["./app"]).times(10.0, 5.0);
        for i in 0..30u64 {
            let frame = b.frame("/app", FrameClass::User, &format!("f{i}"), "/app.c:1");
            b.row("getpid", Some("getpid"), &[frame], counts(100 - i, toll - i));
        }
        b.build()
    };
    let rec = groups(100_000_000);
    let text = screen(&rec, By::Caller, &ReportOptions::default(), 100);
    assert!(text.contains("10 groups more with 755 calls: --all shows them"), "{text}");
    // Groups with a small share of the time are summed up, although fewer than 20 are shown.
    let rec = groups(1000);
    let text = screen(&rec, By::Caller, &ReportOptions::default(), 100);
    assert!(text.contains("25 groups more with 2,075 calls: --all shows them"), "{text}");
    let all = ReportOptions { all: true, ..ReportOptions::default() };
    let text = screen(&rec, By::Caller, &all, 100);
    assert!(!text.contains("--all") && text.contains(" f29 app.c"), "{text}");
}

#[test]
fn a_finding_tells_its_descriptors() {
    let (mut rec, judgement) = stories::localtime();
    let row = RowId(0);
    // This is a newfstatat of a path after a directory's descriptor.
    rec.windows = vec![Window {
        process: ProcessId(0),
        thread: 0,
        row,
        octave: 0,
        calls: vec![call(row, 1, (3, "/srv"), None), call(row, 2, (3, "/srv"), None)],
    }];
    let options = ReportOptions { fds: true, ..ReportOptions::default() };
    let text = report(&rec, &judgement, &options, &Style::default());
    assert!(text.contains("     fd     3</srv>   2 of 2 calls sampled\n"), "{text}");
    let judgement = Judgement::default();
    // Without a finding, the row that takes most time is shown.
    let text = report(&rec, &judgement, &options, &Style::default());
    assert!(text.contains("most time goes to") && text.contains("3</srv>"), "{text}");
    assert!(!report(&rec, &judgement, &ReportOptions::default(), &Style::default()).contains("</srv>"));
}
