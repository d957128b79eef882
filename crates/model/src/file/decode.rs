//! Decodes our message into a recording. Nothing in the message is trusted: indices are checked,
//! and sizes are bounded.

use super::error::{FileError, damaged};
use super::intern::Strings;
use super::{blobs, codes, ledger, waits, window, wire};
use crate::counts::{Counts, Histogram};
use crate::errno::Errno;
use crate::in_place::InPlace;
use crate::machine::Machine;
use crate::names::{Frame, FrameId, Location, Module, ModuleId, Stack, StackId};
use crate::prices::{Price, Prices, Spread};
use crate::problem::Problem;
use crate::process::{Exit, Process, ProcessId};
use crate::recording::{
    Attached, BackendKind, Header, Host, LongCall, Package, Recording, Sites, TimeZone, Until, VdsoRow,
};
use crate::request::{ReceivedCalls, RequestKind, RequestKindId, RequestProtocol};
use crate::row::{ObjectSample, Row, RowId, RowLine, RowTrunk, WholeStack};
use crate::sysno::Sysno;
use crate::thread::{Thread, ThreadCalls};

pub(super) fn decode(w: wire::Recording) -> Result<Recording, FileError> {
    let strings = Strings::of(&w.strings);
    let blobs = blobs::decode(&w.blobs.unwrap_or_default())?;
    let rec = Recording {
        header: header(w.header.ok_or_else(|| damaged("it has no header"))?)?,
        processes: w.processes.into_iter().map(|p| process(p, &strings)).collect::<Result<_, _>>()?,
        modules: w.modules.into_iter().map(|m| module(m, &strings)).collect::<Result<_, _>>()?,
        frames: w.frames.into_iter().map(|f| frame(f, &strings)).collect::<Result<_, _>>()?,
        stacks: w.stacks.into_iter().map(stack).collect(),
        rows: w.rows.into_iter().map(|r| row(r, &strings)).collect::<Result<_, _>>()?,
        vdso: w.vdso.into_iter().map(|v| vdso(v, &strings)).collect::<Result<_, _>>()?,
        threads: w.threads.into_iter().map(|t| thread(t, &strings)).collect::<Result<_, _>>()?,
        windows: window::decode_all(&w.windows, &strings, &blobs)?,
        longest: w.longest.into_iter().map(|l| long_call(l, &strings)).collect::<Result<_, _>>()?,
        packages: w.packages.iter().map(|p| package(p, &strings)).collect::<Result<_, _>>()?,
        prices: prices(w.prices.unwrap_or_default())?,
        problems: w.problems.into_iter().map(|p| Problem::new(codes::kind(&p.kind), p.text)).collect(),
        in_place: w.in_place.into_iter().map(in_place).collect(),
        ledgers: w.ledgers.iter().map(|l| ledger::decode(l, &strings)).collect::<Result<_, _>>()?,
        trunks: w.trunks.into_iter().map(trunk).collect(),
        whole_stacks: w.whole_stacks.into_iter().map(whole_stack).collect(),
        object_samples: w.object_samples.iter().map(|s| object_sample(s, &strings)).collect::<Result<_, _>>()?,
        request_kinds: w.request_kinds.iter().map(|k| request_kind(k, &strings)).collect::<Result<_, _>>()?,
        received: w.received.into_iter().map(received).collect(),
        wait_spans: waits::decode((w.waits, w.dropped_waits, w.overwritten_waits), &strings)?,
    };
    rec.check().map_err(FileError::Damaged)?;
    Ok(rec)
}

fn request_kind(k: &wire::RequestKind, strings: &Strings) -> Result<RequestKind, FileError> {
    // A protocol that a later version added counts as none: its requests are not reported.
    let protocol = RequestProtocol::from_name(&k.protocol).unwrap_or(RequestProtocol::None);
    Ok(RequestKind { protocol, name: strings.get(k.name)? })
}

fn received(r: wire::ReceivedCalls) -> ReceivedCalls {
    let wire::ReceivedCalls { row, kind, stands_for, receives } = r;
    ReceivedCalls { row: RowId(row), kind: RequestKindId(kind), stands_for, receives }
}

fn trunk(t: wire::RowTrunk) -> RowTrunk {
    RowTrunk { row: RowId(t.row), stack: StackId(t.stack), weight: t.weight, looks: t.looks }
}

fn whole_stack(w: wire::WholeStack) -> WholeStack {
    WholeStack { row: RowId(w.row), stack: StackId(w.stack), weight: w.weight, looks: w.looks }
}

fn object_sample(s: &wire::ObjectSample, strings: &Strings) -> Result<ObjectSample, FileError> {
    Ok(ObjectSample {
        row: RowId(s.row),
        object: s.object.map(|object| strings.get(object)).transpose()?,
        line: s.line.map(FrameId),
        above: StackId(s.above),
        whole: StackId(s.whole),
        looks: s.looks,
        weight: s.weight,
        squares: s.squares,
    })
}

fn exit(code: Option<i32>, signal: Option<i32>) -> Option<Exit> {
    code.map(Exit::Code).or(signal.map(Exit::Signal))
}

fn header(h: wire::Header) -> Result<Header, FileError> {
    Ok(Header {
        version: h.version,
        command: h.command,
        backend: BackendKind::from_name(&h.backend).ok_or_else(|| damaged("it names an unknown backend"))?,
        host: Host {
            cpu: h.cpu,
            cpus: h.cpus,
            kernel: h.kernel,
            clock_source: h.clock_source,
            virtualization: h.virtualization,
            page: h.page,
        },
        machine: machine(&h.machine)?,
        node: h.node,
        time_zone: match h.time_zone {
            Some(name) => TimeZone::Set(name),
            None if h.no_time_zone => TimeZone::Unset,
            None => TimeZone::Unknown,
        },
        started_unix: h.started_unix,
        exit: exit(h.exit_code, h.exit_signal),
        attached: h.attached.map(|a| Attached {
            age_ns: a.age_ns,
            longest_stop_ns: a.longest_stop_ns,
            left_running: a.left_running,
        }),
        until: h.until.map(|u| Until { sign: u.sign, seen: u.seen }),
        wall_ns: h.wall_ns,
        user_ns: h.user_ns,
        sys_ns: h.sys_ns,
        own_cpu_ns: known(h.own_cpu_ns),
        own_cpu_least_ns: h.own_cpu_least_ns,
        own_cpu_most_ns: h.own_cpu_most_ns,
        observer_ns_per_call: h.observer_ns_per_call,
        observer_wall_ns_per_call: h.observer_wall_ns_per_call,
        watching_ns: h.watching_ns,
        toll_estimated: h.toll_estimated,
        lost: h.lost,
        vdso_calls: h.vdso_calls,
        threads: h.threads,
        seed: h.seed,
        windows_opened: h.windows_opened,
        windows_refused: h.windows_refused,
        sites: h.sites.map(sites),
    })
}

/// Decodes a machine's name. Files that are older than the name were made on x86-64.
fn machine(name: &str) -> Result<Option<Machine>, FileError> {
    match name {
        "" => Ok(Some(Machine::X86_64)),
        wire::NO_MACHINE => Ok(None),
        _ => Machine::from_name(name).map(Some).ok_or_else(|| FileError::Machine(name.chars().take(40).collect())),
    }
}

/// Decodes a processor time. Zero means that it is not known, since nothing takes no time.
fn known(cpu_ns: u64) -> Option<u64> {
    Some(cpu_ns).filter(|ns| *ns > 0)
}

fn sites(s: wire::Sites) -> Sites {
    let wire::Sites { timed, counted, on_arrival, not_covered } = s;
    Sites { timed, counted, on_arrival, not_covered }
}

fn process(p: wire::Process, strings: &Strings) -> Result<Process, FileError> {
    Ok(Process {
        pid: p.pid,
        parent: p.parent.map(ProcessId),
        exe: strings.get(p.exe)?,
        argv: p.argv.into_iter().map(|a| strings.get(a)).collect::<Result<_, _>>()?,
        service: strings.get(p.service)?,
        instances: p.instances,
        threads: p.threads,
        start_ns: p.start_ns,
        end_ns: p.end_ns,
        life_ns: p.life_ns,
        cpu_ns: known(p.cpu_ns),
        main_at_ns: p.main_at_ns,
        startup_cpu_ns: p.startup_cpu_ns,
        queued_ns: p.queued_ns,
        exit: exit(p.exit_code, p.exit_signal),
    })
}

fn in_place(p: wire::InPlace) -> InPlace {
    let missed = p.missed.as_chunks().0.iter().map(|[why, n]| (codes::missed(*why), *n)).collect();
    InPlace { syscall: Sysno(p.syscall), answered: p.answered, needed: p.needed, missed }
}

fn module(m: wire::Module, strings: &Strings) -> Result<Module, FileError> {
    Ok(Module { path: strings.get(m.path)?, build_id: strings.optional(m.build_id)? })
}

fn frame(f: wire::Frame, strings: &Strings) -> Result<Frame, FileError> {
    let location = |l: wire::Location| {
        Ok::<_, FileError>(Location {
            function: strings.get(l.function)?,
            file: strings.optional(l.file)?,
            line: l.line,
        })
    };
    Ok(Frame {
        module: f.module.map(ModuleId),
        address: f.address,
        class: codes::class(f.class),
        locations: f.locations.into_iter().map(location).collect::<Result<_, _>>()?,
        callee: strings.optional(f.callee)?,
        language: codes::language(f.language),
    })
}

fn stack(s: wire::Stack) -> Stack {
    Stack { frames: s.frames.into_iter().map(FrameId).collect(), complete: s.complete }
}

fn row(r: wire::Row, strings: &Strings) -> Result<Row, FileError> {
    let mut errors = std::collections::BTreeMap::new();
    for pair in r.errors.chunks(2) {
        let [errno, calls] = pair else { return Err(damaged("an error number has no count")) };
        let errno = u16::try_from(*errno).map_err(|_| damaged("an error number is out of range"))?;
        errors.insert(Errno(errno), *calls);
    }
    if r.histogram.len() > Histogram::MAX_BUCKETS {
        return Err(damaged("a histogram has too many buckets"));
    }
    Ok(Row {
        process: ProcessId(r.process),
        syscall: Sysno(r.syscall),
        context: StackId(r.context),
        outer: StackId(r.outer),
        api: strings.optional(r.api)?,
        api_module: r.api_module.map(ModuleId),
        user: r.user.map(FrameId),
        lines: r.lines.into_iter().map(row_line).collect(),
        counts: Counts {
            calls: r.calls,
            elided: r.elided,
            unreturned: r.unreturned,
            errors,
            bytes: r.bytes,
            toll_ns: r.toll_ns,
            waited_ns: r.waited_ns,
            elapsed_ns: r.elapsed_ns,
            max_ns: r.max_ns,
            min_ns: r.min_ns,
            histogram: Histogram::from_buckets(r.histogram),
            untimed: r.untimed,
            elapsed_error_ns: r.elapsed_error_ns,
            startup_calls: r.startup_calls,
            startup_waited_ns: r.startup_waited_ns,
        },
    })
}

fn row_line(l: wire::RowLine) -> RowLine {
    RowLine { frame: FrameId(l.frame), looks: l.looks, weight: l.weight }
}

fn vdso(v: wire::VdsoRow, strings: &Strings) -> Result<VdsoRow, FileError> {
    Ok(VdsoRow {
        process: ProcessId(v.process),
        function: strings.get(v.function)?,
        context: StackId(v.context),
        api: strings.optional(v.api)?,
        user: v.user.map(FrameId),
        calls: v.calls,
    })
}

fn thread(t: wire::Thread, strings: &Strings) -> Result<Thread, FileError> {
    if [t.calls.len(), t.failed.len(), t.toll_ns.len(), t.waited_ns.len()] != [t.syscalls.len(); 4] {
        return Err(damaged("a thread's calls are not whole"));
    }
    let figures = t.calls.iter().zip(&t.failed).zip(&t.toll_ns).zip(&t.waited_ns);
    let calls = t.syscalls.iter().zip(figures).map(|(syscall, (((calls, failed), toll), waited))| ThreadCalls {
        syscall: Sysno(*syscall),
        calls: *calls,
        failed: *failed,
        toll_ns: toll.checked_sub(1),
        waited_ns: waited.checked_sub(1),
    });
    Ok(Thread { process: ProcessId(t.process), tid: t.tid, name: strings.get(t.name)?, calls: calls.collect() })
}

fn long_call(l: wire::LongCall, strings: &Strings) -> Result<LongCall, FileError> {
    let thread = strings.get(l.thread)?;
    Ok(LongCall { row: RowId(l.row), ns: l.ns, at_ns: l.at_ns, thread, startup: l.startup })
}

fn package(p: &wire::Package, strings: &Strings) -> Result<Package, FileError> {
    Ok(Package { home: strings.get(p.home)?, version: strings.get(p.version)? })
}

fn prices(p: wire::Prices) -> Result<Prices, FileError> {
    let spread = |s: Option<wire::Spread>| {
        s.map_or_else(Spread::default, |s| Spread { min: s.min, median: s.median, high: s.high })
    };
    let calls = p.syscalls.len();
    if [p.ns.len(), p.low.len(), p.high.len(), p.sources.len()] != [calls; 4] {
        return Err(damaged("the prices are not whole"));
    }
    let figures = p.ns.iter().zip(&p.low).zip(&p.high).zip(&p.sources);
    let price = |(((ns, low), high), source): (((&f64, &f64), &f64), &u32)| Price {
        ns: *ns,
        low: *low,
        high: *high,
        source: codes::source(*source),
    };
    Ok(Prices {
        fault: p.fault.map(|s| spread(Some(s))),
        switch: p.switch.map(|s| spread(Some(s))),
        crossing_before: spread(p.crossing_before),
        crossing_after: spread(p.crossing_after),
        calls: p.syscalls.iter().map(|s| Sysno(*s)).zip(figures.map(price)).collect(),
    })
}
