//! Generates recordings to write and read: arbitrary ones, and one like a real program's.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use std::sync::Arc;
use systoll_model::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z/._+ äß]{1,12}", Just("libc.so.6".to_owned())]
}

fn name() -> impl Strategy<Value = Arc<str>> {
    text().prop_map(Arc::from)
}

/// Generates small numbers and the ends of the range.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0u64..5000, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..1e9f64, Just(f64::MAX)]
}

fn exit() -> impl Strategy<Value = Option<Exit>> {
    option::of(prop_oneof![any::<i32>().prop_map(Exit::Code), any::<i32>().prop_map(Exit::Signal)])
}

fn header() -> impl Strategy<Value = Header> {
    let host = (text(), any::<u32>(), text(), text(), option::of(text())).prop_map(
        |(cpu, cpus, kernel, clock_source, virtualization)| {
            let page = u64::from(cpus) * 4096;
            Host { cpu, cpus, kernel, clock_source, virtualization, page }
        },
    );
    let backend = prop_oneof![Just(BackendKind::Inproc), Just(BackendKind::Bpf), Just(BackendKind::Ptrace)];
    let time_zone = prop_oneof![Just(TimeZone::Unknown), Just(TimeZone::Unset), text().prop_map(TimeZone::Set)];
    let run = (text(), vec(text(), 0..4), backend, (host, text(), time_zone), exit());
    let figures = (vec(number(), 10), float(), float(), any::<bool>(), option::of(number()), any::<bool>());
    (run, figures).prop_map(
        |(
            (version, command, backend, (host, node, time_zone), exit),
            (n, ns, wall, toll_estimated, vdso_calls, any_sites),
        )| Header {
            version,
            command,
            backend,
            machine: [None, Some(Machine::X86_64), Some(Machine::Aarch64)][n[0] as usize % 3],
            host,
            node,
            time_zone,
            started_unix: n[0],
            exit,
            attached: any_sites.then(|| Attached { age_ns: n[5], longest_stop_ns: n[6], left_running: toll_estimated }),
            until: any_sites.then(|| Until { sign: format!("port:{}", n[5]), seen: toll_estimated }),
            wall_ns: n[1],
            user_ns: n[2],
            sys_ns: n[3],
            own_cpu_ns: Some(n[4]).filter(|ns| *ns > 0),
            own_cpu_least_ns: Some(n[4] / 2),
            own_cpu_most_ns: Some(n[4]),
            watching_ns: n[5] / 2,
            observer_ns_per_call: ns,
            observer_wall_ns_per_call: wall,
            toll_estimated,
            lost: n[5],
            vdso_calls,
            threads: n[6],
            seed: n[7],
            windows_opened: n[8],
            windows_refused: n[9],
            sites: any_sites.then(|| Sites { timed: n[1], counted: n[2], on_arrival: n[3], not_covered: n[4] }),
        },
    )
}

fn process(processes: u32) -> impl Strategy<Value = Process> {
    let names = (any::<u32>(), option::of(0..processes), name(), vec(name(), 0..3), name());
    (names, vec(number(), 7), option::of(number()), exit()).prop_map(
        |((pid, parent, exe, argv, service), n, main_at_ns, exit)| Process {
            pid,
            parent: parent.map(ProcessId),
            exe,
            argv,
            service,
            instances: n[0],
            threads: n[1],
            start_ns: n[2],
            end_ns: n[3],
            life_ns: n[4],
            cpu_ns: Some(n[5]).filter(|ns| *ns > 0),
            main_at_ns,
            startup_cpu_ns: n[6],
            queued_ns: main_at_ns.map(|ns| ns / 3),
            exit,
        },
    )
}

fn frame(modules: u32) -> impl Strategy<Value = Frame> {
    let class = proptest::sample::select(&FrameClass::ALL[..]);
    let location = (name(), option::of(name()), option::of(any::<u32>())).prop_map(|(function, file, line)| Location {
        function,
        file,
        line,
    });
    let language = option::of(prop::sample::select(Language::ALL.to_vec()));
    (option::of(0..modules), number(), class, vec(location, 1..3), option::of(name()), language).prop_map(
        |(module, address, class, locations, callee, language)| Frame {
            module: module.map(ModuleId),
            address,
            class,
            locations,
            callee,
            language,
        },
    )
}

fn counts() -> impl Strategy<Value = Counts> {
    let errors = btree_map(any::<u16>().prop_map(Errno), number(), 0..3);
    (vec(number(), 10), errors, option::of(number()), option::of(number()), vec(number(), 0..64)).prop_map(
        |(n, errors, toll_ns, waited_ns, histogram)| Counts {
            calls: n[0],
            unreturned: n[1],
            elided: n[7],
            errors,
            bytes: n[2],
            toll_ns,
            waited_ns,
            elapsed_ns: n[3],
            max_ns: n[4],
            min_ns: n[4].checked_sub(n[3]),
            histogram: Histogram::from_buckets(histogram),
            untimed: n[8],
            elapsed_error_ns: n[9],
            startup_calls: n[5],
            startup_waited_ns: n[6],
        },
    )
}

/// Sizes of the tables into which handles point; none is empty.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    processes: u32,
    modules: u32,
    frames: u32,
    stacks: u32,
    rows: u32,
    kinds: u32,
}

fn vdso(s: Sizes) -> impl Strategy<Value = VdsoRow> {
    let names = (name(), option::of(name()), option::of(0..s.frames));
    (0..s.processes, 0..s.stacks, names, number()).prop_map(|(process, context, (function, api, user), calls)| {
        VdsoRow {
            process: ProcessId(process),
            function,
            context: StackId(context),
            api,
            user: user.map(FrameId),
            calls,
        }
    })
}

fn row(s: Sizes) -> impl Strategy<Value = Row> {
    let place = (0..s.processes, any::<u32>(), 0..s.stacks, 0..s.stacks);
    let names = (option::of(name()), option::of(0..s.modules), option::of(0..s.frames));
    let line =
        (0..s.frames, number(), number()).prop_map(|(f, looks, weight)| RowLine { frame: FrameId(f), looks, weight });
    (place, names, vec(line, 0..3), counts()).prop_map(
        |((process, syscall, context, outer), (api, api_module, user), lines, counts)| Row {
            process: ProcessId(process),
            syscall: Sysno(syscall % 480),
            context: StackId(context),
            outer: StackId(outer),
            api,
            api_module: api_module.map(ModuleId),
            user: user.map(FrameId),
            lines,
            counts,
        },
    )
}

fn window_call(s: Sizes) -> impl Strategy<Value = WindowCall> {
    let at = prop_oneof![Just(Moment::Entry), Just(Moment::Exit)];
    let piece = (any::<u8>(), at, vec(any::<u8>(), 0..20), any::<bool>()).prop_map(|(arg, at, bytes, cut)| ArgData {
        arg,
        at,
        bytes,
        cut,
    });
    let what = (0..s.rows, number(), any::<[u64; 6]>(), vec(piece, 0..3), option::of(name()));
    let when = (option::of(any::<i64>()), number(), number(), option::of(number()), any::<u32>());
    (what, when, option::of(0..s.stacks), option::of(0..s.kinds)).prop_map(
        |((row, nth, args, data, fd), (result, entry_ns, elapsed_ns, waited_ns, signals_before), stack, kind)| {
            WindowCall {
                row: RowId(row),
                nth,
                args,
                data,
                fd,
                result,
                entry_ns,
                elapsed_ns,
                waited_ns,
                signals_before,
                faults: (nth % 3 == 0).then_some(entry_ns),
                stack: stack.map(StackId),
                before: [Before::Unknown, Before::Same, Before::OtherWay][(nth % 3) as usize],
                request: kind.map(RequestKindId),
            }
        },
    )
}

fn request_kind() -> impl Strategy<Value = RequestKind> {
    (proptest::sample::select(RequestProtocol::ALL.to_vec()), name())
        .prop_map(|(protocol, name)| RequestKind { protocol, name })
}

fn received(s: Sizes) -> impl Strategy<Value = ReceivedCalls> {
    (0..s.rows, 0..s.kinds, number(), number()).prop_map(|(row, kind, stands_for, receives)| ReceivedCalls {
        row: RowId(row),
        kind: RequestKindId(kind),
        stands_for,
        receives,
    })
}

fn trunk(s: Sizes) -> impl Strategy<Value = RowTrunk> {
    let trunk = |(row, stack, weight)| RowTrunk { row: RowId(row), stack: StackId(stack), weight, looks: weight % 7 };
    (0..s.rows, 0..s.stacks, number()).prop_map(trunk)
}

fn ledger(s: Sizes) -> impl Strategy<Value = Ledger> {
    let object = (name(), number(), number(), number(), vec((0..480u32).prop_map(Sysno), 0..5))
        .prop_map(|(name, looks, calls, same, also)| LedgerObject { name, looks, calls, same, also });
    let sums = (number(), number(), number(), number(), number(), number());
    let objects = (number(), number(), number(), any::<u8>(), any::<bool>());
    (0..s.rows, sums, objects, vec(object, 0..6)).prop_map(
        |(row, (looks, calls, squares, repeats, other_way, changes), (objects, once, twice, level, relative), top)| {
            let row = RowId(row);
            Ledger {
                row,
                looks,
                calls,
                squares,
                repeats,
                other_way,
                changes,
                objects,
                once,
                twice,
                level,
                relative,
                top,
            }
        },
    )
}

fn window(s: Sizes) -> impl Strategy<Value = Window> {
    (0..s.processes, any::<u32>(), 0..s.rows, any::<u8>(), vec(window_call(s), 1..6)).prop_map(
        |(process, thread, row, octave, calls)| Window {
            process: ProcessId(process),
            thread,
            row: RowId(row),
            octave,
            calls,
        },
    )
}

fn prices() -> impl Strategy<Value = Prices> {
    let spread = || (float(), float(), float()).prop_map(|(min, median, high)| Spread { min, median, high });
    let source = prop_oneof![Just(PriceSource::Measured), Just(PriceSource::InCall), Just(PriceSource::CrossingOnly)];
    let price = (float(), float(), float(), source).prop_map(|(ns, low, high, source)| Price { ns, low, high, source });
    (spread(), spread(), btree_map(any::<u32>().prop_map(Sysno), price, 0..4)).prop_map(
        |(crossing_before, crossing_after, calls)| Prices {
            crossing_before,
            crossing_after,
            fault: (calls.len() % 2 == 1).then_some(crossing_after),
            switch: calls.len().is_multiple_of(3).then_some(crossing_before),
            calls,
        },
    )
}

fn package() -> impl Strategy<Value = Package> {
    ("[a-z/]{0,8}", "[0-9.]{0,6}").prop_map(|(home, version)| Package { home: home.into(), version: version.into() })
}

fn in_place() -> impl Strategy<Value = InPlace> {
    let missed = vec((proptest::sample::select(Missed::ALL.to_vec()), any::<u64>()), 0..4);
    (any::<u32>(), any::<u64>(), any::<u64>(), missed).prop_map(|(syscall, answered, needed, missed)| InPlace {
        syscall: Sysno(syscall),
        answered,
        needed,
        missed,
    })
}

fn problem() -> impl Strategy<Value = Problem> {
    let kind = prop_oneof![
        Just(ProblemKind::Unwatched),
        Just(ProblemKind::Lost),
        Just(ProblemKind::Audit),
        Just(ProblemKind::Name),
        Just(ProblemKind::Price),
        Just(ProblemKind::Bounded),
        Just(ProblemKind::Stripped),
        Just(ProblemKind::CutShort),
        Just(ProblemKind::Note)
    ];
    (kind, text()).prop_map(|(kind, text)| Problem { kind, text })
}

fn thread(s: Sizes) -> impl Strategy<Value = Thread> {
    // The file stores the figure plus one, so the largest number is left out.
    let ns = || option::of(number().prop_map(|n| n.min(u64::MAX - 1)));
    let calls =
        (any::<u32>(), number(), number(), ns(), ns()).prop_map(|(syscall, calls, failed, toll_ns, waited_ns)| {
            ThreadCalls { syscall: Sysno(syscall), calls, failed, toll_ns, waited_ns }
        });
    (0..s.processes, any::<u32>(), name(), vec(calls, 0..4)).prop_map(|(process, tid, name, calls)| Thread {
        process: ProcessId(process),
        tid,
        name,
        calls,
    })
}

/// Generates any recording that passes `Recording::check`.
pub(crate) fn recording() -> impl Strategy<Value = Recording> {
    let sizes = (1u32..4, 1u32..4, 1u32..6, 1u32..6, 1u32..5, 1u32..4).prop_map(
        |(processes, modules, frames, stacks, rows, kinds)| Sizes { processes, modules, frames, stacks, rows, kinds },
    );
    sizes.prop_flat_map(|s| {
        let module = (name(), option::of(name())).prop_map(|(path, build_id)| Module { path, build_id });
        let stack = (vec((0..s.frames).prop_map(FrameId), 0..5), any::<bool>())
            .prop_map(|(frames, complete)| Stack { frames, complete });
        let long = (0..s.rows, number(), number(), name(), any::<bool>())
            .prop_map(|(row, ns, at_ns, thread, startup)| LongCall { row: RowId(row), ns, at_ns, thread, startup });
        let tables = (
            vec(process(s.processes), s.processes as usize),
            vec(module, s.modules as usize),
            vec(frame(s.modules), s.frames as usize),
            vec(stack, s.stacks as usize),
            vec(row(s), s.rows as usize),
            vec(vdso(s), 0..4),
            vec(thread(s), 0..4),
        );
        let rest = (
            vec(window(s), 0..5),
            vec(ledger(s), 0..3),
            vec(long, 0..3),
            prices(),
            vec(problem(), 0..3),
            vec(in_place(), 0..3),
            vec(package(), 0..3),
            vec(trunk(s), 0..6),
            vec(request_kind(), s.kinds as usize),
            vec(received(s), 0..4),
        );
        (header(), tables, rest).prop_map(
            |(
                header,
                (processes, modules, frames, stacks, rows, vdso, threads),
                (windows, ledgers, longest, prices, problems, in_place, packages, mut trunks, request_kinds, received),
            )| {
                trunks.sort_by_key(|t| t.row);
                let whole =
                    |t: &RowTrunk| WholeStack { row: t.row, stack: t.stack, weight: t.weight, looks: t.weight / 7 };
                let sample = |t: &RowTrunk| ObjectSample {
                    row: t.row,
                    object: (!t.weight.is_multiple_of(3)).then(|| format!("/srv/{}", t.weight % 7).into()),
                    line: None,
                    above: t.stack,
                    whole: t.stack,
                    looks: t.weight / 9,
                    weight: t.weight,
                    squares: t.weight / 2,
                };
                let wait = |(nth, call): (u64, &LongCall)| WaitSpan {
                    row: call.row,
                    pid: 7,
                    tid: nth as u32,
                    begin_ns: nth << 40 | call.at_ns >> 24,
                    ns: call.ns,
                    args: [call.at_ns, 0, call.ns, 0, 0, 0],
                    result: call.startup.then_some(call.ns as i64),
                    line: call.startup.then_some(FrameId(0)).filter(|_| !frames.is_empty()),
                    queued_most_ns: call.startup.then_some(call.at_ns),
                    object: (!call.thread.is_empty()).then(|| call.thread.clone()),
                };
                let dropped = |call: &LongCall| DroppedWaits { row: call.row, calls: call.ns, ns: call.at_ns };
                let wait_spans = WaitSpans {
                    kept: !longest.is_empty(),
                    spans: (0..).zip(&longest).map(wait).collect(),
                    dropped: longest.iter().skip(1).map(dropped).collect(),
                    overwritten: longest.iter().skip(2).map(|call| call.ns).sum(),
                };
                let object_samples = trunks.iter().step_by(3).map(sample).collect();
                let whole_stacks = trunks.iter().step_by(2).map(whole).collect();
                Recording {
                    request_kinds,
                    received,
                    header,
                    processes,
                    modules,
                    frames,
                    stacks,
                    rows,
                    vdso,
                    threads,
                    windows,
                    ledgers,
                    trunks,
                    whole_stacks,
                    object_samples,
                    longest,
                    packages,
                    prices,
                    problems,
                    in_place,
                    wait_spans,
                }
            },
        )
    })
}
