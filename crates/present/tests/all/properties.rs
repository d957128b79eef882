//! Tests properties that hold for every recording and judgement, however strange.

use crate::common::{report, schema};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::collections::BTreeMap;
use systoll_judge::{
    Advice, Basis, By, CodeLanguage, Confidence, Doubt, Estimate, ExpectedGain, Finding, Judgement, Kind, Later,
    Numbers, Objects, PerUnit, Round, RoundCall, RoundClaimed, RoundPlace, RoundRow, RoundStep, Times, Unjudged,
    Untold, Variety, WorkUnit, grouped,
};
use systoll_model::{
    BackendKind, Counts, Errno, Exit, Frame, FrameClass, FrameId, Header, Histogram, Location, LongCall, Module,
    ModuleId, Phase, Prices, Problem, ProblemKind, Process, ProcessId, Recording, Row, RowId, RowLine, Spread, Stack,
    StackId, Sysno, VdsoRow, WaitSpan, WaitSpans,
};
use systoll_present::{
    ReportOptions, Style, TableColumn, TableOptions, TableSort, report_json, write_grouping, write_strace_table,
};
use unicode_width::UnicodeWidthChar;

/// Generates text as strangers may choose it: any characters, often control characters and wide
/// ones.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z_/ .\u{1b}\n\u{9b}\u{202e}日]{0,60}", "[a-z_]{0,300}"]
}

fn some_u64() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0u64..100_000, Just(0), Just(u64::MAX)]
}

fn some_f64() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), 0.0..2.0, Just(f64::NAN), Just(f64::INFINITY), Just(0.0)]
}

fn counts() -> impl Strategy<Value = Counts> {
    let errors = vec((any::<u16>(), some_u64()), 0..3);
    let figures = vec(some_u64(), 11);
    (errors, figures, option::of(some_u64()), option::of(some_u64()), vec(some_u64(), 0..70)).prop_map(
        |(errors, n, toll_ns, waited_ns, buckets)| Counts {
            calls: n[0],
            unreturned: n[1],
            elided: n[8],
            errors: errors.into_iter().map(|(e, n)| (Errno(e), n)).collect(),
            bytes: n[2],
            toll_ns,
            waited_ns,
            elapsed_ns: n[3],
            max_ns: n[4],
            min_ns: (n[5] % 2 == 0).then_some(n[7]),
            histogram: Histogram::from_buckets(buckets),
            untimed: n[9],
            elapsed_error_ns: n[10],
            startup_calls: n[5],
            startup_waited_ns: n[6],
        },
    )
}

fn frame(modules: u32) -> impl Strategy<Value = Frame> {
    let class = proptest::sample::select(&FrameClass::ALL[..]);
    let location = (text(), option::of(text()), option::of(any::<u32>())).prop_map(|(function, file, line)| Location {
        function: function.into(),
        file: file.map(Into::into),
        line,
    });
    (option::of(0..modules), class, vec(location, 1..3)).prop_map(|(module, class, locations)| Frame {
        module: module.map(ModuleId),
        address: 0,
        class,
        locations,
        callee: None,
        language: None,
    })
}

const FRAMES: u32 = 6;
const STACKS: u32 = 4;

fn row() -> impl Strategy<Value = Row> {
    let syscall = prop_oneof![0u32..480, any::<u32>()].prop_map(Sysno);
    (syscall, 0..STACKS, 0..STACKS, option::of(text()), option::of(0..2u32), option::of(0..FRAMES), counts()).prop_map(
        |(syscall, context, outer, api, api_module, user, counts)| Row {
            process: ProcessId(0),
            syscall,
            context: StackId(context),
            outer: StackId(outer),
            api: api.map(Into::into),
            api_module: api_module.map(ModuleId),
            lines: user.map(|f| RowLine { frame: FrameId(f), looks: 1, weight: 2 }).into_iter().collect(),
            user: user.map(FrameId),
            counts,
        },
    )
}

fn header() -> impl Strategy<Value = Header> {
    let backend = prop_oneof![Just(BackendKind::Inproc), Just(BackendKind::Bpf), Just(BackendKind::Ptrace)];
    let exit = option::of(prop_oneof![any::<i32>().prop_map(Exit::Code), any::<i32>().prop_map(Exit::Signal)]);
    let figures = vec(some_u64(), 11);
    (backend, exit, figures, some_f64(), some_f64(), any::<bool>(), vec(text(), 0..4)).prop_map(
        |(backend, exit, n, observer_ns_per_call, observer_wall_ns_per_call, toll_estimated, command)| Header {
            command,
            backend,
            exit,
            wall_ns: n[0],
            user_ns: n[1],
            sys_ns: n[2],
            own_cpu_ns: Some(n[3]).filter(|ns| ns % 5 > 0),
            lost: n[4],
            vdso_calls: Some(n[5]),
            threads: n[6],
            observer_ns_per_call,
            observer_wall_ns_per_call,
            toll_estimated,
            ..Header::default()
        },
    )
}

fn spread() -> impl Strategy<Value = Spread> {
    (some_f64(), some_f64(), some_f64()).prop_map(|(min, median, high)| Spread { min, median, high })
}

fn recording() -> impl Strategy<Value = Recording> {
    let modules = vec(text().prop_map(|p| Module { path: p.into(), build_id: None }), 2);
    let frames = vec(frame(2), FRAMES as usize);
    let stack = vec((0..FRAMES).prop_map(FrameId), 0..5).prop_map(|frames| Stack { frames, complete: true });
    let problem = text().prop_map(|t| Problem::new(ProblemKind::Lost, t));
    let vdso = (text(), 0..STACKS, option::of(text()), option::of(0..FRAMES), some_u64()).prop_map(
        |(function, context, api, user, calls)| VdsoRow {
            process: ProcessId(0),
            function: function.into(),
            context: StackId(context),
            api: api.map(Into::into),
            user: user.map(FrameId),
            calls,
        },
    );
    let problem = (problem, vdso);
    let rest = (vec(problem, 0..3), vec((0u32..9, some_u64(), text(), any::<bool>()), 0..4), spread(), spread());
    (header(), modules, frames, vec(stack, STACKS as usize), vec(row(), 0..6), rest).prop_map(
        |(header, modules, frames, stacks, rows, (problems, longest, before, after))| {
            let long = |(row, ns, thread, startup): (u32, u64, String, bool)| LongCall {
                row: RowId(row % (rows.len() as u32).max(1)),
                ns,
                at_ns: ns / 2,
                thread: thread.into(),
                startup,
            };
            let (problems, vdso) = problems.into_iter().unzip();
            let longest = if rows.is_empty() { vec![] } else { longest.into_iter().map(long).collect() };
            let wait = |(nth, call): (u64, &LongCall)| WaitSpan {
                row: call.row,
                pid: nth as u32 / 2,
                tid: nth as u32,
                begin_ns: nth,
                ns: call.ns,
                args: [call.ns; 6],
                result: call.startup.then_some(call.ns as i64),
                object: Some(call.thread.clone()),
                queued_most_ns: call.startup.then_some(call.ns),
                line: None,
            };
            let wait_spans = WaitSpans {
                kept: longest.len() != 1,
                spans: (0..).zip(&longest).map(wait).collect(),
                ..WaitSpans::default()
            };
            Recording {
                request_kinds: Vec::new(),
                received: Vec::new(),
                header,
                processes: vec![Process { instances: 1, ..Process::default() }],
                modules,
                frames,
                stacks,
                rows,
                vdso,
                threads: vec![],
                windows: vec![],
                ledgers: Vec::new(),
                trunks: Vec::new(),
                whole_stacks: Vec::new(),
                object_samples: Vec::new(),
                longest,
                packages: vec![],
                prices: Prices {
                    crossing_before: before,
                    crossing_after: after,
                    fault: None,
                    switch: None,
                    calls: BTreeMap::new(),
                },
                problems,
                in_place: vec![],
                wait_spans,
            }
        },
    )
}

/// Generates a finding whose handles may point outside the recording.
fn finding() -> impl Strategy<Value = Finding> {
    use Kind::{Blocking, Failing, NoOp, Repeat};
    let kind = prop_oneof![Just(Repeat), Just(NoOp), Just(Failing), Just(Blocking)];
    let phase = prop_oneof![Just(Phase::StartUp), Just(Phase::Steady), Just(Phase::Exit)];
    let names = (option::of(text()), vec(text(), 0..3), option::of(text()), text(), vec(text(), 0..4));
    // A word of a command to paste is never broken, nor are quoted spaces, so these words have
    // none.
    let word = text().prop_map(|t| t.replace(char::is_whitespace, "_"));
    let more = (text(), vec(word, 0..4), option::of(some_u64()), option::of(0..9u32));
    let shares = (option::of(some_f64()), option::of(some_f64()), some_f64());
    (kind, phase, names, more, shares, vec((0u32..9).prop_map(RowId), 0..5), vec(some_u64(), 6)).prop_map(
        |(kind, phase, names, (gives_up, prove, waited_ns, user), shares, rows, n)| Finding {
            cause: names.0.map(Into::into),
            kind,
            confidence: Confidence::High,
            rows,
            syscalls: n.iter().map(|n| Sysno((*n % 500) as u32)).collect(),
            apis: names.1.into_iter().map(Into::into).collect(),
            user: user.map(FrameId),
            what: names.2,
            calls: n[0],
            calls_about: (n[3] % 2 == 0).then_some(Estimate { estimate: n[5], low: n[4], high: n[2] }),
            basis: Basis::ALL[(n[3] % 3) as usize],
            doubt: Doubt::ALL.get((n[5] % 5) as usize).copied(),
            needless: Estimate { estimate: n[1], low: n[2], high: n[3] },
            toll_ns: n[4],
            needless_toll_ns: n[5],
            starts: n[0] % 5 == 0,
            per_unit: (n[1] % 2 == 0).then_some(PerUnit {
                per: WorkUnit::ALL[(n[2] % 8) as usize],
                rounds: n[3],
                calls: n[4],
                needless: n[5],
                looked_at: n[0],
                agree: n[1],
            }),
            expected_gain: (n[0] % 3 == 0).then_some(ExpectedGain {
                low: n[1].min(n[2]),
                high: n[1].max(n[2]),
                around_ns: n[0],
                with_work: n[0] % 2 == 0,
            }),
            later: (n[0] % 2 == 0).then_some(Later {
                faults: Estimate { estimate: n[1], low: n[2], high: n[3] },
                switches: Estimate { estimate: n[2], low: n[1], high: n[4] },
                ns: Estimate { estimate: n[4], low: n[5], high: n[0] },
                share_of_cpu: shares.1,
            }),
            waited_ns,
            share_of_cpu: shares.0,
            share_of_wall: shares.1,
            share_of_calls: shares.2,
            phase,
            why: names.3,
            language_api: (n[4] % 3 == 0).then(|| "os.path.realpath".to_owned()),
            language: CodeLanguage::ALL.get((n[3] % 40) as usize).copied(),
            cures: names
                .4
                .into_iter()
                .map(|how| Advice { gives_up: gives_up.clone(), ..Advice::general(how) })
                .collect(),
            prove,
            ..Finding::default()
        },
    )
}

/// Returns a round with the figures and names of a finding.
fn round_of(f: &Finding) -> Round {
    let variety = Variety { looks: f.calls, different: f.toll_ns };
    let times = Times { least: f.needless.low, most: f.needless.high, mean: f.share_of_calls };
    let call = |syscall: &Sysno| RoundCall {
        syscall: *syscall,
        calls: f.calls,
        share: f.share_of_calls,
        times,
        object: f.what.clone().map(|pattern| Objects { pattern, variety }),
        size: Some(Numbers::Between(f.calls, f.toll_ns)),
        offset: Some(Numbers::Steps(f.calls)),
        option: f.what.clone(),
        errno: None,
        data: Some(variety),
    };
    let calls: Vec<RoundCall> = f.syscalls.iter().map(call).collect();
    Round {
        count: f.needless,
        steps: calls
            .iter()
            .cloned()
            .map(RoundStep::Call)
            .chain([RoundStep::Inner { calls: calls.clone(), times }])
            .collect(),
        place: f.user.map(|frame| RoundPlace { frame, location: (f.calls % 3) as usize }),
        rows: f.rows.iter().map(|row| RoundRow { row: *row, calls: f.calls, toll_ns: f.toll_ns }).collect(),
        calls: f.calls,
        toll_ns: f.toll_ns,
        waited_ns: f.waited_ns,
        share_of_cpu: f.share_of_cpu,
        share_of_wall: f.share_of_wall,
        claimed: RoundClaimed { calls: f.calls, toll_ns: f.needless_toll_ns, waited_ns: f.toll_ns },
        looked_at: f.calls,
        agree: f.toll_ns,
        threads: f.calls,
        images: Vec::from_iter(0..(f.toll_ns % 4) as u32),
        startup: f.starts,
        are_all_processes: true,
        is_of_rest: f.calls.is_multiple_of(2),
    }
}

fn judgement() -> impl Strategy<Value = Judgement> {
    (vec(finding(), 0..3), vec(finding(), 0..3)).prop_map(|(findings, also)| {
        let n = |of: fn(&Finding) -> u64| findings.iter().chain(&also).map(of).fold(0, u64::wrapping_add);
        let (calls, toll_ns) = (n(|f| f.calls), n(|f| f.toll_ns));
        let rounds = findings.iter().chain(&also).map(round_of).collect();
        let untold = Untold { calls, toll_ns, unsure_calls: toll_ns, unsure_toll_ns: calls };
        Judgement {
            findings,
            also,
            untold,
            unjudged: Unjudged { calls: toll_ns, toll_ns: calls },
            rounds,
            ..Judgement::default()
        }
    })
}

/// Returns true if a line is too long. A line may be longer than the terminal only if it has a word
/// that long: a command to paste, a sentence.
fn too_long(line: &str, width: usize) -> bool {
    let columns = |text: &str| text.chars().filter_map(UnicodeWidthChar::width).sum::<usize>();
    let longest_word = line.split(' ').map(columns).max().unwrap_or(0);
    columns(line) > width && longest_word + 16 <= width
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reports_fit_and_hide_nothing_from_the_terminal(
        rec in recording(), judgement in judgement(), all in any::<bool>(), stacks in any::<bool>(),
        longer_ns in option::of(some_u64()), width in 40usize..200,
    ) {
        prop_assert_eq!(rec.check(), Ok(()));
        let options = ReportOptions { all, stacks, longer_ns, fds: stacks, rounds: all, ..ReportOptions::default() };
        let text = report(&rec, &judgement, &options, &Style { color: false, width, whole_names: false });
        prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        for line in text.lines() {
            prop_assert!(!too_long(line, width), "{width}: {line}");
            prop_assert!(!line.ends_with(' '), "{line:?}");
        }
    }

    #[test]
    fn json_conforms_whatever_was_recorded(rec in recording(), judgement in judgement()) {
        let json = report_json(&rec, &judgement, None);
        prop_assert_eq!(schema::violations(schema::report_schema(), &json), Vec::<String>::new());
        // Writing the JSON and reading it again loses nothing: no number was omitted as NaN.
        let again: serde_json::Value = serde_json::from_str(&json.to_string()).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(again["calls"].as_u64(), Some(rec.calls()));
    }

    #[test]
    fn groups_fit_and_conform(
        rec in recording(), all in any::<bool>(), stacks in any::<bool>(), limit in option::of(0usize..3),
        width in 40usize..200,
    ) {
        for by in [By::Caller, By::Api, By::Library, By::Line, By::Process, By::Thread, By::Fd] {
            let grouping = grouped(&rec, by, None);
            let options = ReportOptions { all, stacks, fds: stacks, ..ReportOptions::default() };
            let mut out = vec![];
            write_grouping(&mut out, &rec, &grouping, limit, &options, &Style { color: false, width, whole_names: false })
                .map_err(|e| TestCaseError::fail(e.to_string()))?;
            let text = String::from_utf8(out).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
            prop_assert!(!text.lines().any(|l| l.ends_with(' ')), "{text:?}");
            let json = report_json(&rec, &Judgement::default(), Some(&grouping));
            prop_assert_eq!(schema::violations(schema::report_schema(), &json), Vec::<String>::new());
        }
    }

    #[test]
    fn tables_add_up(rec in recording()) {
        let mut out = vec![];
        write_strace_table(&mut out, &rec, &TableOptions { sort: TableSort::By(TableColumn::Calls), ..TableOptions::default() }, &Style::default())
            .map_err(|e| TestCaseError::fail(e.to_string()))?;
        let text = String::from_utf8(out).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let total = text.lines().last().unwrap_or_default();
        prop_assert!(total.ends_with(" total"));
        let calls = rec.calls().to_string();
        prop_assert!(total.split_whitespace().any(|cell| cell == calls), "{total}");
        let rows = text.lines().rev().skip(2).take_while(|l| !l.starts_with('-')).count();
        prop_assert_eq!(rows, rec.by_syscall().iter().filter(|t| t.counts.calls > 0).count());
    }
}
