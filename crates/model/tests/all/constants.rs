//! Compares names of options with those of strace.

use crate::common::{behind_a_filter, run, skip};
use std::collections::BTreeSet;
use systoll_model::{Sysno, WindowCall, described_calls};

/// Declarations and statements of a C program that makes all calls of `calls.h`.
const ALL_OF_THEM: [&str; 2] = [
    r#"
static const unsigned long calls[][7] = {
#include "calls.h"
};
"#,
    r#"
  write(-1, "begin", 5);
  for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
    syscall(calls[i][0], calls[i][1], calls[i][2], calls[i][3], calls[i][4], calls[i][5], calls[i][6]);
"#,
];

fn call(args: [u64; 6]) -> WindowCall {
    WindowCall { nth: 1, args, ..WindowCall::default() }
}

#[test]
fn words_are_straces() {
    if run("strace", &["-V"]).is_none() || run("cc", &["--version"]).is_none() {
        return skip("needs cc and strace");
    }
    let dir = std::env::temp_dir().join(format!("systoll-words-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a temporary folder");
    let path = |name: &str| dir.join(name).display().to_string();
    let calls: Vec<_> =
        described_calls().into_iter().filter_map(|(name, args)| Some((Sysno::from_name(name)?, args))).collect();
    let line = |(syscall, args): &(Sysno, [u64; 6])| {
        let args: Vec<_> = args.iter().map(|a| format!("{a}ul")).collect();
        format!("{{{}, {}}},\n", syscall.0, args.join(", "))
    };
    std::fs::write(path("calls.h"), calls.iter().map(line).collect::<String>()).expect("the calls");
    std::fs::write(path("all.c"), behind_a_filter(ALL_OF_THEM[0], ALL_OF_THEM[1])).expect("the program");
    run("cc", &["-O1", "-w", "-o", &path("all"), &path("all.c")]);
    run("strace", &["-e", "signal=none", "-o", &path("trace"), &path("all")]);
    let trace = std::fs::read_to_string(path("trace")).expect("the trace");
    std::fs::remove_dir_all(&dir).expect("clean up");

    let lines: Vec<_> = trace.lines().skip_while(|l| !l.starts_with("write(-1, \"begin\"")).skip(1).collect();
    assert!(lines.len() > calls.len(), "{} lines for {} calls", lines.len(), calls.len());
    let (mut alike, mut other) = (BTreeSet::new(), Vec::new());
    for ((syscall, args), line) in calls.iter().zip(lines) {
        let ours = call(*args).option(*syscall).unwrap_or_default();
        // The options of this level have no names in the table.
        let ours = ours.strip_suffix(", 0").filter(|o| o.starts_with("SOL_")).unwrap_or(&ours).to_owned();
        let end = |at: usize| line[at + ours.len()..].starts_with([',', ')', ' ']);
        if line.match_indices(&ours).any(|(at, _)| end(at)) {
            alike.insert(ours);
        // strace of this version can't name the number, or several drivers use it; or it is the one
        // option that strace names differently when it is read.
        } else if !["/* ", " or ", "SO_GET_FILTER"].iter().any(|known| line.contains(known)) {
            other.push(format!("{ours}: {line}"));
        }
    }
    assert!(other.is_empty(), "{}", other.join("\n"));
    assert!(alike.len() > 700, "only {} alike", alike.len());
}
