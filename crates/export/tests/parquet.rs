//! Tests that DuckDB reads the Parquet files. `tests/readers.py` installs DuckDB.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "it asks DuckDB, which reads a file")]

use std::path::PathBuf;
use std::process::Command;
use systoll_export::{Format, JudgedRecording, Value, export};
use systoll_judge::Judgement;
use systoll_model::*;

fn recording() -> Recording {
    let mut rec = Recording::default();
    rec.header.command = vec!["app".into(), "'; DROP TABLE rows; --".into()];
    rec.processes.push(Process { exe: "/bin/it's".into(), pid: 7, instances: 1, ..Process::default() });
    rec.stacks.push(Stack::default());
    for n in 0..30_000u32 {
        let known = n % 3 > 0;
        rec.rows.push(Row {
            process: ProcessId(0),
            syscall: Sysno(n % 300),
            context: StackId(0),
            outer: StackId(0),
            api: known.then(|| "=1+1\n\u{1b}[31m\"".into()),
            api_module: None,
            user: None,
            lines: vec![],
            counts: Counts { calls: u64::from(n), toll_ns: known.then_some(7), ..Counts::default() },
        });
    }
    rec
}

#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn duckdb_reads_the_reports_totals() {
    let readers = std::env::var_os("SYSTOLL_READERS").map(PathBuf::from);
    let readers =
        readers.unwrap_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/readers")));
    let python = readers.join("python/bin/python3");
    if !python.exists() {
        let strict = std::env::var_os("SYSTOLL_TEST_STRICT").is_some_and(|v| v == "1");
        assert!(!strict, "duckdb is not installed: tests/readers.py");
        println!("skipped: duckdb is not installed: tests/readers.py");
        return;
    }
    let (rec, judgement) = (recording(), Judgement::default());
    let mut bytes = Vec::new();
    export(Format::Parquet, Value::Toll, &JudgedRecording::new(&rec, &judgement), &mut bytes).expect("written");
    let file = std::env::temp_dir().join(format!("systoll-{}.parquet", std::process::id()));
    std::fs::write(&file, &bytes).expect("a file");
    let query = "import duckdb, sys; f = sys.argv[1]
a = duckdb.sql(f\"select sum(calls)::bigint, sum(toll_ns)::bigint, count(*), count(toll_ns), max(program), max(api) from '{f}'\").fetchone()
b = duckdb.sql(f\"select value from parquet_kv_metadata('{f}') where key = 'systoll.schema'\").fetchone()
print(a, b)";
    let output = Command::new(python).args(["-c", query]).arg(&file).output().expect("python");
    let _ = std::fs::remove_file(&file);
    let told = String::from_utf8_lossy(&output.stdout);
    let wanted = format!(
        "({}, {}, 30000, 20000, \"it's\", '=1+1\\n\\x1b[31m\"') (b'1',)",
        rec.calls(),
        rec.total().toll_ns.unwrap_or(0)
    );
    assert_eq!(told.trim(), wanted, "{}", String::from_utf8_lossy(&output.stderr));
}
