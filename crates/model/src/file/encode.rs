//! Encodes a recording as our message.

use super::intern::Interner;
use super::wire::{self, flag};
use super::{blobs, codes, ledger, waits};
use crate::ledger::Before;
use crate::machine::Machine;
use crate::process::Exit;
use crate::recording::{Package, Recording, TimeZone};
use crate::row::RowId;
use crate::syscalls::Moment;
use std::collections::HashMap;

pub(super) fn encode(rec: &Recording) -> wire::Recording {
    Encoder { strings: Interner::with(String::new()), blobs: Interner::with(Vec::new()) }.recording(rec)
}

struct Encoder {
    strings: Interner<String>,
    blobs: Interner<Vec<u8>>,
}

impl Encoder {
    fn recording(mut self, rec: &Recording) -> wire::Recording {
        let (waits, dropped_waits, overwritten_waits) = waits::encode(&rec.wait_spans, &mut self.strings);
        wire::Recording {
            version: wire::VERSION,
            header: Some(header(rec)),
            processes: rec.processes.iter().map(|p| self.process(p)).collect(),
            modules: rec.modules.iter().map(|m| self.module(m)).collect(),
            frames: rec.frames.iter().map(|f| self.frame(f)).collect(),
            stacks: rec.stacks.iter().map(stack).collect(),
            rows: rec.rows.iter().map(|r| self.row(r)).collect(),
            windows: rec.windows.iter().map(|w| self.window(w)).collect(),
            longest: rec.longest.iter().map(|l| self.long_call(l)).collect(),
            packages: rec.packages.iter().map(|p| self.package(p)).collect(),
            prices: Some(prices(&rec.prices)),
            problems: rec.problems.iter().map(problem).collect(),
            vdso: rec.vdso.iter().map(|v| self.vdso(v)).collect(),
            threads: rec.threads.iter().map(|t| self.thread(t)).collect(),
            in_place: rec.in_place.iter().map(in_place).collect(),
            ledgers: rec.ledgers.iter().map(|l| ledger::encode(l, &mut self.strings)).collect(),
            trunks: rec.trunks.iter().map(trunk).collect(),
            whole_stacks: rec.whole_stacks.iter().map(whole_stack).collect(),
            object_samples: rec.object_samples.iter().map(|s| self.object_sample(s)).collect(),
            request_kinds: rec.request_kinds.iter().map(|k| self.request_kind(k)).collect(),
            received: rec.received.iter().map(received).collect(),
            waits,
            dropped_waits,
            overwritten_waits,
            strings: self.strings.into_values(),
            blobs: Some(blobs::encode(&self.blobs.into_values())),
        }
    }

    fn string(&mut self, text: &str) -> u32 {
        self.strings.index(text)
    }

    fn object_sample(&mut self, s: &crate::row::ObjectSample) -> wire::ObjectSample {
        wire::ObjectSample {
            row: s.row.0,
            object: s.object.as_deref().map(|object| self.string(object)),
            line: s.line.map(|line| line.0),
            above: s.above.0,
            whole: s.whole.0,
            looks: s.looks,
            weight: s.weight,
            squares: s.squares,
        }
    }

    fn process(&mut self, p: &crate::process::Process) -> wire::Process {
        let (exit_code, exit_signal) = exit(p.exit);
        wire::Process {
            pid: p.pid,
            parent: p.parent.map(|p| p.0),
            exe: self.string(&p.exe),
            argv: p.argv.iter().map(|a| self.string(a)).collect(),
            service: self.string(&p.service),
            instances: p.instances,
            threads: p.threads,
            start_ns: p.start_ns,
            end_ns: p.end_ns,
            life_ns: p.life_ns,
            cpu_ns: p.cpu_ns.unwrap_or(0),
            main_at_ns: p.main_at_ns,
            startup_cpu_ns: p.startup_cpu_ns,
            queued_ns: p.queued_ns,
            exit_code,
            exit_signal,
        }
    }

    fn request_kind(&mut self, kind: &crate::request::RequestKind) -> wire::RequestKind {
        wire::RequestKind { protocol: kind.protocol.name().into(), name: self.string(&kind.name) }
    }

    fn module(&mut self, m: &crate::names::Module) -> wire::Module {
        wire::Module { path: self.string(&m.path), build_id: m.build_id.as_deref().map(|b| self.string(b)) }
    }

    fn frame(&mut self, f: &crate::names::Frame) -> wire::Frame {
        wire::Frame {
            module: f.module.map(|m| m.0),
            address: f.address,
            class: codes::class_code(f.class),
            locations: f.locations.iter().map(|l| self.location(l)).collect(),
            callee: f.callee.as_deref().map(|c| self.string(c)),
            language: codes::language_code(f.language),
        }
    }

    fn location(&mut self, l: &crate::names::Location) -> wire::Location {
        wire::Location {
            function: self.string(&l.function),
            file: l.file.as_deref().map(|f| self.string(f)),
            line: l.line,
        }
    }

    fn row(&mut self, r: &crate::row::Row) -> wire::Row {
        let c = &r.counts;
        wire::Row {
            process: r.process.0,
            syscall: r.syscall.0,
            context: r.context.0,
            outer: r.outer.0,
            api: r.api.as_deref().map(|a| self.string(a)),
            api_module: r.api_module.map(|m| m.0),
            user: r.user.map(|f| f.0),
            calls: c.calls,
            unreturned: c.unreturned,
            errors: c.errors.iter().flat_map(|(errno, calls)| [errno.0.into(), *calls]).collect(),
            bytes: c.bytes,
            toll_ns: c.toll_ns,
            waited_ns: c.waited_ns,
            elapsed_ns: c.elapsed_ns,
            max_ns: c.max_ns,
            min_ns: c.min_ns,
            histogram: c.histogram.buckets().to_vec(),
            untimed: c.untimed,
            elapsed_error_ns: c.elapsed_error_ns,
            startup_calls: c.startup_calls,
            startup_waited_ns: c.startup_waited_ns,
            elided: c.elided,
            lines: r.lines.iter().map(row_line).collect(),
        }
    }

    fn thread(&mut self, t: &crate::thread::Thread) -> wire::Thread {
        let known = |ns: Option<u64>| ns.map_or(0, |ns| ns.saturating_add(1));
        wire::Thread {
            process: t.process.0,
            tid: t.tid,
            name: self.string(&t.name),
            syscalls: t.calls.iter().map(|c| c.syscall.0).collect(),
            calls: t.calls.iter().map(|c| c.calls).collect(),
            failed: t.calls.iter().map(|c| c.failed).collect(),
            toll_ns: t.calls.iter().map(|c| known(c.toll_ns)).collect(),
            waited_ns: t.calls.iter().map(|c| known(c.waited_ns)).collect(),
        }
    }

    fn vdso(&mut self, v: &crate::recording::VdsoRow) -> wire::VdsoRow {
        wire::VdsoRow {
            process: v.process.0,
            function: self.string(&v.function),
            context: v.context.0,
            api: v.api.as_deref().map(|a| self.string(a)),
            user: v.user.map(|f| f.0),
            calls: v.calls,
        }
    }

    fn window(&mut self, w: &crate::window::Window) -> wire::Window {
        let mut out = wire::Window {
            process: w.process.0,
            thread: w.thread,
            row: w.row.0,
            octave: w.octave.into(),
            ..wire::Window::default()
        };
        let mut last: HashMap<RowId, Previous> = HashMap::new();
        let (mut entry_ns, mut faults) = (0u64, 0u64);
        for call in &w.calls {
            let previous = last.entry(call.row).or_default();
            let mut flags = self.optional_columns(call, previous, &mut out);
            if let Some(now) = call.faults {
                flags |= flag::FAULTS;
                out.faults.push(difference(now, &mut faults));
            }
            out.flags.push(flags);
            out.rows.push(call.row.0);
            out.nth.push(difference(call.nth, &mut previous.nth));
            for (arg, before) in call.args.iter().zip(&mut previous.args) {
                out.args.push(difference(*arg, before));
            }
            out.entry_ns.push(difference(call.entry_ns, &mut entry_ns));
            out.elapsed_ns.push(call.elapsed_ns);
        }
        out
    }

    /// Fills the columns that have no entry for some calls. Returns the flags of the columns that
    /// got an entry for `call`.
    fn optional_columns(
        &mut self,
        call: &crate::window::WindowCall,
        previous: &mut Previous,
        out: &mut wire::Window,
    ) -> u32 {
        let mut flags = 0;
        if let Some(result) = call.result {
            flags |= flag::RETURNED;
            out.results.push(difference(result as u64, &mut previous.result));
        }
        if let Some(waited) = call.waited_ns {
            flags |= flag::WAITED;
            out.waited_ns.push(waited);
        }
        if call.signals_before != 0 {
            flags |= flag::SIGNALS;
            out.signals.push(call.signals_before);
        }
        if let Some(fd) = &call.fd {
            flags |= flag::FD;
            out.fds.push(self.string(fd));
        }
        if let Some(kind) = call.request {
            flags |= flag::REQUEST;
            out.requests.push(kind.0);
        }
        flags |= match call.before {
            Before::Unknown => 0,
            Before::Same => flag::ASKED_BEFORE,
            Before::OtherWay => flag::ASKED_THE_OTHER_WAY,
        };
        if let Some(stack) = call.stack {
            flags |= flag::STACK;
            out.stacks.push(stack.0);
        }
        if !call.data.is_empty() {
            flags |= flag::DATA;
            out.data.push(call.data.len() as u32);
            for piece in &call.data {
                let at_exit = u32::from(piece.at == Moment::Exit);
                out.data_keys.push(u32::from(piece.arg) << 2 | u32::from(piece.cut) << 1 | at_exit);
                out.data_blobs.push(self.blobs.index(piece.bytes.as_slice()));
            }
        }
        flags
    }

    fn package(&mut self, p: &Package) -> wire::Package {
        wire::Package { home: self.string(&p.home), version: self.string(&p.version) }
    }

    fn long_call(&mut self, l: &crate::recording::LongCall) -> wire::LongCall {
        wire::LongCall { row: l.row.0, ns: l.ns, at_ns: l.at_ns, thread: self.string(&l.thread), startup: l.startup }
    }
}

fn received(r: &crate::request::ReceivedCalls) -> wire::ReceivedCalls {
    let crate::request::ReceivedCalls { row, kind, stands_for, receives } = *r;
    wire::ReceivedCalls { row: row.0, kind: kind.0, stands_for, receives }
}

fn trunk(t: &crate::row::RowTrunk) -> wire::RowTrunk {
    wire::RowTrunk { row: t.row.0, stack: t.stack.0, weight: t.weight, looks: t.looks }
}

fn whole_stack(w: &crate::row::WholeStack) -> wire::WholeStack {
    wire::WholeStack { row: w.row.0, stack: w.stack.0, weight: w.weight, looks: w.looks }
}

fn row_line(l: &crate::row::RowLine) -> wire::RowLine {
    wire::RowLine { frame: l.frame.0, looks: l.looks, weight: l.weight }
}

/// Values of the row's previous call in the window, from which the next call's differences are
/// taken.
#[derive(Default)]
struct Previous {
    nth: u64,
    args: [u64; 6],
    result: u64,
}

fn difference(value: u64, before: &mut u64) -> i64 {
    let by = value.wrapping_sub(*before) as i64;
    *before = value;
    by
}

fn exit(exit: Option<Exit>) -> (Option<i32>, Option<i32>) {
    match exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    }
}

fn header(rec: &Recording) -> wire::Header {
    let h = &rec.header;
    let (exit_code, exit_signal) = exit(h.exit);
    wire::Header {
        version: h.version.clone(),
        command: h.command.clone(),
        backend: h.backend.name().to_owned(),
        cpu: h.host.cpu.clone(),
        cpus: h.host.cpus,
        kernel: h.host.kernel.clone(),
        clock_source: h.host.clock_source.clone(),
        virtualization: h.host.virtualization.clone(),
        node: h.node.clone(),
        time_zone: if let TimeZone::Set(name) = &h.time_zone { Some(name.clone()) } else { None },
        no_time_zone: h.time_zone == TimeZone::Unset,
        started_unix: h.started_unix,
        exit_code,
        exit_signal,
        wall_ns: h.wall_ns,
        user_ns: h.user_ns,
        sys_ns: h.sys_ns,
        own_cpu_ns: h.own_cpu_ns.unwrap_or(0),
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
        attached: h.attached.map(attached),
        machine: h.machine.map_or(wire::NO_MACHINE, Machine::name).to_owned(),
        page: h.host.page,
        until: h.until.as_ref().map(|until| wire::Until { sign: until.sign.clone(), seen: until.seen }),
    }
}

fn attached(a: crate::recording::Attached) -> wire::Attached {
    let crate::recording::Attached { age_ns, longest_stop_ns, left_running } = a;
    wire::Attached { age_ns, longest_stop_ns, left_running }
}

fn sites(s: crate::recording::Sites) -> wire::Sites {
    let crate::recording::Sites { timed, counted, on_arrival, not_covered } = s;
    wire::Sites { timed, counted, on_arrival, not_covered }
}

fn in_place(p: &crate::in_place::InPlace) -> wire::InPlace {
    wire::InPlace {
        syscall: p.syscall.0,
        answered: p.answered,
        needed: p.needed,
        missed: p.missed.iter().flat_map(|(why, n)| [codes::missed_code(*why), *n]).collect(),
    }
}

fn stack(s: &crate::names::Stack) -> wire::Stack {
    wire::Stack { frames: s.frames.iter().map(|f| f.0).collect(), complete: s.complete }
}

fn prices(p: &crate::prices::Prices) -> wire::Prices {
    let spread = |s: &crate::prices::Spread| Some(wire::Spread { min: s.min, median: s.median, high: s.high });
    wire::Prices {
        fault: p.fault.as_ref().and_then(spread),
        switch: p.switch.as_ref().and_then(spread),
        crossing_before: spread(&p.crossing_before),
        crossing_after: spread(&p.crossing_after),
        syscalls: p.calls.keys().map(|s| s.0).collect(),
        ns: p.calls.values().map(|p| p.ns).collect(),
        low: p.calls.values().map(|p| p.low).collect(),
        high: p.calls.values().map(|p| p.high).collect(),
        sources: p.calls.values().map(|p| codes::source_code(p.source)).collect(),
    }
}

fn problem(p: &crate::problem::Problem) -> wire::Problem {
    wire::Problem { kind: codes::kind_name(p.kind).to_owned(), text: p.text.clone() }
}
