//! Handles system call stops: finds the row, measures the time, and fills windows.

use super::engine::Engine;
use super::state::{Pending, bytes_moved};
use crate::arguments::argument_data;
use crate::long_calls::RawLong;
use crate::procfs::{self, SchedTimes};
use crate::raw_window::{EnteredCall, Opener, RawCall, RawWindow};
use crate::request_windows::{Receive, is_open_socket, is_receive, is_socket};
use crate::served_pages;
use crate::sys::{self, own_cpu};
use crate::table::{ImageId, Look, ReturnedCall};
use crate::tracee::{self, At, Call, Regs, arch};
use crate::windows::Windows;
use systoll_hooks::layout::capture;
use systoll_model::{
    ArgKind, Counts, Errno, FrameClass, LONG_WAIT_NS, Machine, Moment, ProblemKind, RowId, Signature, Sysno, WaitSpan,
};
use systoll_symbols::{RawFrame, Thread, Until};

const RT_SIGRETURN: Sysno = Sysno(15);
/// Calls whose whole stack is unwound to find `main`, at most.
const MAX_SOUGHT: u32 = 20_000;
/// Elapsed time below which a call is taken not to have waited, ns: its own stops take some 10 µs.
const WORTH_ASKING_NS: u64 = 60_000;
/// Time that stops and wake-ups may add to a wait, ns: a shorter wait is taken for none.
const NO_WAIT_NS: u64 = 40_000;
/// Bytes of stack that are read at once; the caller is rarely outside the first piece.
const PIECE: usize = 1024;

/// Returns true if a call makes a process or a thread. The kernel reports each child to its tracer before the call
/// returns, unless CLONE_UNTRACED keeps the child from being traced. Therefore the call's flags need not be read; the
/// flags of `clone3` lie in memory that others can write.
fn makes_a_child(syscall: Sysno) -> bool {
    /// Numbers of clone, fork, vfork and clone3, for 64-bit programs and for i386 (arch/x86/entry/syscalls).
    const NATIVE: [u32; 4] = [56, 57, 58, 435];
    const I386: [u32; 4] = [120, 2, 190, 435];
    match syscall.0 & Sysno::I386 {
        0 => NATIVE.contains(&(syscall.0 & !Sysno::X32)),
        _ => I386.contains(&(syscall.0 & !Sysno::I386)),
    }
}

/// Returns true if a call has nothing to wait for: no lock, no device, no memory of the caller.
fn never_waits(syscall: Sysno) -> bool {
    /// Numbers of getpid, getuid, getgid, geteuid, getegid, getppid, getpgrp and gettid, for 64-bit programs.
    const NATIVE: [u32; 8] = [39, 102, 104, 107, 108, 110, 111, 186];
    NATIVE.contains(&syscall.0)
}

impl Engine {
    /// Handles a thread that stopped at a system call's entry or exit.
    pub(super) fn on_call(&mut self, tid: i32) {
        match tracee::call(tid) {
            Ok(Call::Entry { syscall, args, at }) if !self.is_put_off(tid, syscall, &args) => {
                self.enter(tid, syscall, args, at);
            }
            Ok(Call::Exit { result }) if !self.was_put_off(tid) => self.leave(tid, result),
            // The thread is gone, or the stop is not at a call. If the thread ended, that is reported separately.
            _ => {}
        }
    }

    fn enter(&mut self, tid: i32, syscall: Sysno, args: [u64; 6], at: At) {
        let signature = syscall.signature();
        let name = signature.map_or("", |s| s.name);
        let first_exec = !self.root.counting;
        if first_exec {
            if tid != self.root.pid || name != "execve" {
                return;
            }
            self.root.counting = true;
        }
        if served_pages::opens(name, &args) {
            served_pages::note_seen();
        }
        let released = match name {
            "execve" | "execveat" if !first_exec => self.before_exec(tid, name, &args),
            "ptrace" => self.before_ptrace(tid, &args),
            _ => false,
        };
        if released {
            return;
        }
        if let Some(signature) = signature.filter(|signature| self.awaited.asks_at(signature)) {
            self.awaited.entered(tid, signature, &args, &|address, buffer| sys::read_memory(tid, address, buffer));
        }
        let Some(pid) = self.threads.get(&tid).map(|t| t.pid) else { return };
        let look_up = self.names && !first_exec;
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.ahead.forget();
        let known = if look_up && process.main_seen && !process.maps_stale {
            let path = signature.filter(|s| capture::is_looked_at(s)).and_then(Signature::path_arg);
            let string = path.map(|arg| thread.ahead.expect(args[arg]));
            process.contexts.find(tid, at, syscall, string)
        } else {
            None
        };
        let (row, new) = match known {
            Some(row) => (row, false),
            None => self.row(tid, pid, syscall, look_up),
        };
        let Some(process) = self.processes.get(&pid) else { return };
        let startup = !process.main_seen;
        self.table.rows[row as usize].entered += 1;
        let nth = self.table.rows[row as usize].entered;
        let run_ns = self.at(self.stops.told_ns);
        let in_window = self.window_entry(tid, &EnteredCall { tid: pid, row, nth, signature, args, run_ns }, new);
        let sampled = self.measured.sampler.picks();
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let exactly = in_window || sampled || self.table.lists_longer();
        let ran = if exactly || !never_waits(syscall) { thread.ran_before(tid, !exactly) } else { None };
        thread.signals = 0;
        thread.told_of_child = false;
        let pending = Pending { syscall, signature, args, row, resumed_ns: 0, ran, startup, in_window, sampled };
        self.call_entered(tid, &pending);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.pending = Some(pending);
        }
    }

    /// Unwinds a call's stack. Returns the call's row, and true if it is new.
    fn row(&mut self, tid: i32, pid: i32, syscall: Sysno, look_up: bool) -> (u32, bool) {
        if look_up {
            self.unwind(tid, pid);
        } else {
            self.stack.frames.clear();
        }
        let context = self.context_length();
        let placed = &self.stack.frames[..context];
        let frames: Vec<RawFrame> = placed.iter().map(|p| p.frame).collect();
        let image = self.processes.get(&pid).map_or_else(ImageId::default, |p| p.image);
        let (row, new) = self.table.row(image, syscall, &frames);
        if let Some(process) = self.processes.get_mut(&pid)
            && placed.last().is_some_and(|p| self.symbols.class(p.frame) == FrameClass::User)
        {
            process.contexts.keep(placed, syscall, row);
        }
        (row, new)
    }

    /// Returns the number of frames up to and including the user's own.
    fn context_length(&mut self) -> usize {
        for i in 0..self.stack.frames.len() {
            if matches!(self.symbols.class(self.stack.frames[i].frame), FrameClass::User | FrameClass::Unknown) {
                return i + 1;
            }
        }
        self.stack.frames.len()
    }

    /// Unwinds a stopped thread into `self.stack.frames`: up to the user's frame, or the whole stack while the
    /// program's `main` has not been seen.
    fn unwind(&mut self, tid: i32, pid: i32) {
        let Ok(regs) = tracee::registers(tid) else {
            self.stack.frames.clear();
            return;
        };
        let regs = self.in_file(pid, regs);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        if process.maps_stale || !process.space.maps_executable(arch::pc(&regs)) {
            process.maps_stale = false;
            process.update(&mut self.symbols, pid);
        }
        let seeking = !process.main_seen;
        let until = if seeking { Until::Root } else { Until::UserFrame };
        self.unwind_until(pid, &regs, until);
        if !seeking {
            return;
        }
        let frames: Vec<RawFrame> = self.stack.frames.iter().map(|p| p.frame).collect();
        let reached = self.symbols.reaches_main(&frames);
        let now = self.at(sys::now());
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.sought_main += 1;
        if reached || process.sought_main >= MAX_SOUGHT {
            process.main_seen = true;
            if reached && pid == self.root.pid {
                self.awaited.main_began(process.space.holds_interpreter(&self.symbols));
            }
            let image = process.image;
            self.note_main(tid, image, now);
        }
    }

    fn note_main(&mut self, tid: i32, image: ImageId, now: u64) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let cpu = thread.ran(tid).map_or(0, |r| r.cpu_ns).saturating_sub(thread.cpu_base_ns);
        let calls = self.calls_of_image(image);
        let image = &mut self.table.images[image.index()];
        if image.main_at_ns.is_none() {
            image.main_at_ns = Some(now);
            image.startup_cpu_ns = cpu;
            image.startup_calls = calls;
        }
    }

    fn unwind_until(&mut self, pid: i32, regs: &Regs, until: Until) -> bool {
        let Some(process) = self.processes.get_mut(&pid) else { return false };
        let mut stack = StackReader { pid, start: arch::sp(regs), bytes: std::mem::take(&mut self.stack.memory) };
        stack.bytes.clear();
        self.stack.frames.clear();
        let complete = process.space.unwind_placed(
            &mut self.symbols,
            &arch::for_unwinding(regs),
            &mut |address| stack.word(address),
            until,
            &mut self.stack.frames,
        );
        self.stack.memory = stack.bytes;
        complete
    }

    /// Records the call in the thread's window, and opens one if it is due. Returns true if the call was recorded.
    fn window_entry(&mut self, tid: i32, entered: &EnteredCall, new: bool) -> bool {
        let EnteredCall { tid: pid, row, nth, signature, args, run_ns } = *entered;
        let scripts = self.processes.get(&pid).is_some_and(|p| p.space.runs_scripts());
        let refused = self.windows.refused;
        let Some(thread) = self.threads.get_mut(&tid) else { return false };
        let receives = thread.window.is_none() && signature.is_some_and(is_receive);
        let tells_requests = receives
            && self.windows.request_is_due(run_ns)
            && is_socket(pid, args[0])
            && self.windows.opens_for_request(run_ns);
        if tells_requests {
            self.windows.due(&mut self.table, row, nth);
            let by = Opener { thread: thread.ordinal, tid, process: pid as u32 };
            let window = Windows::open(&mut self.table, row, nth.max(1).ilog2() as u8, by);
            thread.window = Some(RawWindow { tells_requests, ..window });
        } else if thread.window.is_some() {
            self.windows.due(&mut self.table, row, nth);
        } else if self.windows.opens(&mut self.table, row, nth, run_ns) {
            let octave = nth.max(1).ilog2() as u8;
            let by = Opener { thread: thread.ordinal, tid, process: pid as u32 };
            thread.window = Some(Windows::open(&mut self.table, row, octave, by));
        } else {
            // Only a sample of the stack tells which script line makes the call.
            if new || (scripts && self.windows.refused > refused) {
                self.whole_stack(tid, pid, row, nth, entered);
            }
            return false;
        }
        let began = own_cpu();
        let octave = self.threads[&tid].window.as_ref().map_or(0, |w| w.octave);
        let first_of_row = self.threads[&tid].window.as_ref().is_none_or(|w| w.calls.iter().all(|c| c.row != row));
        let stack = if first_of_row || new { self.whole_stack(tid, pid, row, nth, entered) } else { None };
        let call = RawCall {
            signals_before: self.threads[&tid].signals,
            faults: signature.and_then(|s| Windows::faults(tid, s)),
            ..self.windows.entered(entered, stack)
        };
        if let Some(window) = self.threads.get_mut(&tid).and_then(|t| t.window.as_mut()) {
            window.calls.push(call);
        }
        if !self.threads[&tid].window.as_ref().is_some_and(|w| w.tells_requests) {
            self.windows.spend(octave, own_cpu().saturating_sub(began));
        }
        true
    }

    /// Samples the whole stack of a row's `nth` call, including script lines.
    fn whole_stack(&mut self, tid: i32, pid: i32, row: u32, nth: u64, entered: &EnteredCall) -> Option<u32> {
        if !self.names || !self.root.counting || !self.table.has_room_for_stacks() {
            return None;
        }
        let regs = self.in_file(pid, tracee::registers(tid).ok()?);
        let process = self.processes.get_mut(&pid)?;
        let mut stack = StackReader { pid, start: arch::sp(&regs), bytes: std::mem::take(&mut self.stack.memory) };
        stack.bytes.clear();
        let mut placed = Vec::new();
        let mut word = |address| stack.word(address);
        let (symbols, space) = (&mut self.symbols, &mut process.space);
        let complete = space.unwind_placed(symbols, &arch::for_unwinding(&regs), &mut word, Until::Root, &mut placed);
        let thread = Thread { tid, fs_base: arch::thread_pointer(tid, &regs) };
        let mut read = |addresses: &[u64], buffer: &mut [u8]| sys::read_pieces(pid, addresses, buffer);
        let frames = space.with_scripts(symbols, &placed, thread, &mut read);
        self.stack.memory = stack.bytes;
        let line = self.symbols.script_line(&frames);
        let is_interpreter = |f| self.symbols.is_interpreter(f);
        let object = entered.signature.and_then(|s| self.windows.object(pid, s, &entered.args));
        let object = object.as_deref();
        let look = Look { object, of_object: false, frames: &frames, complete, line, is_interpreter: &is_interpreter };
        (!frames.is_empty()).then(|| self.table.whole_stack(row, nth, &look))
    }

    fn leave(&mut self, tid: i32, result: i64) {
        let gave_way = self.gave_way();
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let Some(pending) = thread.pending.take() else { return };
        let pid = thread.pid;
        let follows = !self.attachment.is_some_and(|attachment| attachment.no_children);
        let untraced = result > 0 && follows && !thread.told_of_child && makes_a_child(pending.syscall);
        // rt_sigreturn has no result: the register then holds a value of the code that the handler interrupted.
        let result = if pending.syscall == RT_SIGRETURN { 0 } else { result };
        let result = Machine::HERE.result(pending.syscall, &pending.args, result);
        let elapsed_ns = self.stops.told_ns.saturating_sub(pending.resumed_ns);
        // We may have handled other threads' stops before this one; this much time the call took at least.
        let surely_ns = self.stops.woken_ns.saturating_sub(pending.resumed_ns).min(elapsed_ns);
        let may_be_long = surely_ns > WORTH_ASKING_NS || gave_way && elapsed_ns > WORTH_ASKING_NS;
        let ran = match pending.ran {
            Some(_) if pending.in_window || pending.sampled || may_be_long => thread.ran(tid),
            _ => None,
        };
        let waited_ns = waited(&pending, surely_ns, ran);
        if let (Some(before), Some(after)) = (pending.ran, ran) {
            let inside = before.inside(after).cpu_ns;
            if pending.sampled && !pending.in_window {
                self.measured.sampler.add(pending.syscall, inside);
            }
            let row = &mut self.table.rows[pending.row as usize];
            row.in_call.0 += inside;
            row.in_call.1 += 1;
        }
        let bytes = bytes_moved(pending.signature, result);
        if untraced {
            self.problems.note(ProblemKind::Unwatched, "a process or thread made with CLONE_UNTRACED ran unwatched");
        }
        let call = ReturnedCall { result, bytes, elapsed_ns, waited_ns, startup: pending.startup };
        let image = self.table.rows[pending.row as usize].image;
        self.table.returned(pending.row, call);
        let mut one = Counts { calls: 1, waited_ns, ..Counts::default() };
        if let Some(errno) = Errno::from_result(result) {
            one.errors.insert(errno, 1);
        }
        self.table.by_thread(image, tid as u32, pending.syscall, &one);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.audit.returned(pending.signature.and_then(|s| s.audit), result, 1);
        }
        // Count the thread's own time only, not the time for which it was queued for a processor. The time for which it
        // ran is its own, even if we slept meanwhile or others had our processor.
        let inside = pending.ran.zip(ran).map(|(before, after)| before.inside(after));
        let own_ns = |inside: SchedTimes| surely_ns.saturating_sub(inside.queued_ns).max(inside.cpu_ns.min(elapsed_ns));
        self.list_if_long(tid, &pending, inside.map_or(0, own_ns));
        if elapsed_ns >= LONG_WAIT_NS && waited_ns.is_none_or(|ns| ns > 0) {
            self.keep_wait((tid, pid), &pending, &call, inside);
        }
        self.note_object(tid, pid, &pending, result);
        if self.windows.tells_requests() {
            self.count_receive(pid, &pending, result);
        }
        if pending.in_window {
            self.window_exit(tid, pid, &pending, &call);
        }
        self.after_call(tid, pid, &pending, result);
        self.call_left(tid, &pending, result);
    }

    /// Lists the call if the thread's own time in it, ns, makes it one of the longest.
    fn list_if_long(&mut self, tid: i32, pending: &Pending, own_ns: u64) {
        if self.table.slowest.is_long(own_ns) {
            let at_ns = self.at(pending.resumed_ns);
            let thread = format!("{} {tid}", procfs::comm(tid)).into();
            self.table.slowest.add(RawLong { ns: own_ns, row: pending.row, at_ns, thread, startup: pending.startup });
        }
    }

    /// Keeps a call that waited for long; `inside` are the thread's times in it, if known.
    fn keep_wait(
        &mut self,
        (tid, pid): (i32, i32),
        pending: &Pending,
        returned: &ReturnedCall,
        inside: Option<SchedTimes>,
    ) {
        let object = pending.signature.and_then(|s| self.windows.descriptor(pid, s, &pending.args));
        self.table.waited_long(WaitSpan {
            row: RowId(pending.row),
            pid: pid as u32,
            tid: tid as u32,
            begin_ns: self.at(pending.resumed_ns),
            ns: returned.elapsed_ns,
            args: pending.args,
            result: Some(returned.result),
            queued_most_ns: inside.map(|inside| inside.queued_ns.min(returned.elapsed_ns)),
            line: None,
            object,
        });
    }

    /// Counts what a call has received, if it receives from a socket: every such call is looked at.
    fn count_receive(&mut self, pid: i32, pending: &Pending, result: i64) {
        let Some(signature) = pending.signature.filter(|signature| is_receive(signature)) else { return };
        let [fd, ..] = pending.args;
        let is_socket = || match signature.name {
            "recvfrom" | "recvmsg" => Some(true),
            _ => is_open_socket(pid, fd),
        };
        let receive = Receive { signature, args: &pending.args, result, bytes: None, is_socket: &is_socket };
        let read = |address: u64, buffer: &mut [u8]| sys::read_memory(pid, address, buffer);
        if let Some(requests) = &mut self.windows.requests {
            requests.count((pending.row, 1), &receive, &read);
        }
    }

    /// Notes in the ledger the question about an object that an expensive call asked; every such call is noted.
    fn note_object(&mut self, tid: i32, pid: i32, pending: &Pending, result: i64) {
        let Some(signature) = pending.signature.filter(|s| capture::is_looked_at(s)) else { return };
        if !self.names {
            return;
        }
        let image = self.table.rows[pending.row as usize].image;
        let Some(ahead) = self.threads.get(&tid).map(|t| &t.ahead) else { return };
        let Some(contexts) = self.processes.get(&pid).map(|p| &p.contexts) else { return };
        let read = |address: u64, buffer: &mut [u8]| contexts.read_memory(tid, address, buffer);
        let at_entry =
            |address: u64, buffer: &mut [u8]| ahead.copy(address, buffer).unwrap_or_else(|| read(address, buffer));
        let (args, bound) = (&pending.args, self.windows.bytes());
        let mut data = argument_data(signature, Moment::Entry, args, None, bound, &at_entry);
        // A call that names only a descriptor (fstat) asks nothing about a path.
        if data.iter().any(|d| d.bytes.is_empty() && !d.cut && is_path(signature, d.arg)) {
            return;
        }
        data.extend(argument_data(signature, Moment::Exit, args, Some(result), bound, &read));
        let nth = self.table.rows[pending.row as usize].entered;
        let call = RawCall {
            row: pending.row,
            nth,
            args: *args,
            data,
            fd: self.windows.descriptor(pid, signature, args),
            result: Some(result),
            entry_ns: self.at(pending.resumed_ns),
            elapsed_ns: 0,
            waited_ns: None,
            signals_before: 0,
            faults: None,
            stack: None,
            stands_for: 1,
            asked: None,
            request: None,
            begins_request: false,
        };
        self.windows.ledger.note(&self.table, self.table.process(image, pid as u32), call.looked_at());
    }

    fn window_exit(&mut self, tid: i32, pid: i32, pending: &Pending, returned: &ReturnedCall) {
        let began = own_cpu();
        let bound = self.windows.bytes();
        let Some(window) = self.threads.get_mut(&tid).and_then(|t| t.window.as_mut()) else { return };
        let Some(call) = window.calls.last_mut() else { return };
        call.result = Some(returned.result);
        call.elapsed_ns = returned.elapsed_ns;
        call.waited_ns = returned.waited_ns;
        let read = |address: u64, buffer: &mut [u8]| sys::read_memory(pid, address, buffer);
        if let Some(s) = pending.signature {
            call.data.extend(argument_data(s, Moment::Exit, &pending.args, Some(returned.result), bound, &read));
            self.windows.received(window, s, &read);
        }
        let (full, octave, tells_requests) = (self.windows.is_over(window), window.octave, window.tells_requests);
        if !tells_requests {
            self.windows.spend(octave, own_cpu().saturating_sub(began));
        }
        if full {
            self.close_window(tid);
        }
    }

    /// Keeps the calls of a thread's open window.
    pub(super) fn close_window(&mut self, tid: i32) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        if let Some(pending) = &mut thread.pending {
            pending.in_window = false;
        }
        if let Some(window) = thread.window.take() {
            self.windows.keep(&mut self.table, window);
        }
    }

    fn after_call(&mut self, tid: i32, pid: i32, pending: &Pending, result: i64) {
        let failed = (-4095..0).contains(&result);
        match pending.signature.map_or("", |s| s.name) {
            // Read the names while the file is certainly mapped.
            "mmap" if !failed && self.names && pending.args[2] & 4 != 0 && pending.args[4] as i32 != -1 => {
                if let Some(process) = self.processes.get_mut(&pid) {
                    process.update(&mut self.symbols, pid);
                }
            }
            // Code that is in no file will appear there.
            "mmap" | "mprotect" if !failed && self.names && pending.args[2] & 4 != 0 => {
                let at = if pending.syscall == Sysno(9) { result as u64 } else { pending.args[0] };
                if let Some(process) = self.processes.get_mut(&pid) {
                    process.maps_stale |= !process.space.maps_executable(at);
                }
            }
            "munmap" | "mremap" if !failed => {
                let [start, len, ..] = pending.args;
                if let Some(process) = self.processes.get_mut(&pid) {
                    process.maps_stale |= process.space.maps_executable_in(start..start.saturating_add(len));
                }
            }
            name @ ("wait4" | "waitid") if !failed => self.after_wait(pid, name == "waitid", &pending.args, result),
            // The kernel counts its own reads of a file that it tried to execute as the process's.
            "execve" | "execveat" if failed => {
                if let Some(process) = self.processes.get_mut(&tid) {
                    process.audit.restart(pid);
                }
            }
            _ => {}
        }
    }
}

/// Returns true if an argument is a path.
fn is_path(signature: &Signature, arg: u8) -> bool {
    signature.args.get(usize::from(arg)).is_some_and(|a| a.kind == ArgKind::Path)
}

/// Returns the time for which the thread was neither running nor queued inside the call, ns.
fn waited(pending: &Pending, elapsed_ns: u64, after: Option<procfs::SchedTimes>) -> Option<u64> {
    if elapsed_ns <= WORTH_ASKING_NS || never_waits(pending.syscall) {
        return Some(0);
    }
    let before = pending.ran?;
    let inside = before.inside(after?);
    let waited = elapsed_ns.saturating_sub(inside.cpu_ns.saturating_add(inside.queued_ns));
    // Time that is attributed to the call may have been spent before it.
    Some(if waited > NO_WAIT_NS + before.since_ns() { waited } else { 0 })
}

/// A target's stack, read in growing pieces from its top on.
struct StackReader {
    pid: i32,
    start: u64,
    bytes: Vec<u8>,
}

impl StackReader {
    const MOST: usize = 1 << 20;

    fn word(&mut self, address: u64) -> Option<u64> {
        let Some(offset) = address.checked_sub(self.start).and_then(|o| usize::try_from(o).ok()) else {
            return self.elsewhere(address);
        };
        let end = offset.checked_add(8)?;
        if end > self.bytes.len() {
            if end > Self::MOST {
                return self.elsewhere(address);
            }
            let have = self.bytes.len();
            let want = (end.next_multiple_of(PIECE)).max(have * 2).min(Self::MOST);
            self.bytes.resize(want, 0);
            let got = sys::read_memory(self.pid, self.start + have as u64, &mut self.bytes[have..]);
            self.bytes.truncate(have + got);
        }
        match self.bytes.get(offset..end) {
            Some(word) => Some(u64::from_ne_bytes(word.try_into().ok()?)),
            // A library can lie close above a coroutine's stack, with a gap between.
            None => self.elsewhere(address),
        }
    }

    fn elsewhere(&self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        (sys::read_memory(self.pid, address, &mut word) == 8).then(|| u64::from_ne_bytes(word))
    }
}
