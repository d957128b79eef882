//! Follows births, execs and deaths of processes and threads.

use super::arch::OfProcess;
use super::contexts::Contexts;
use super::engine::Engine;
use super::state::{IoAudit, Process, Thread, calls_of};
use crate::signals::Signals;
use crate::table::{Image, ImageId};
use crate::{procfs, setid, sys, tracee};
use systoll_model::{Exit, ProblemKind};
use systoll_symbols::AddressSpace;

/// Ended processes remembered until they are waited for, at most.
const MAX_ENDED: usize = 65_536;

impl Engine {
    /// Adds the command's own process before its exec.
    pub(super) fn adopt_root(&mut self, pid: i32) {
        self.root.pid = pid;
        let image = self.table.image(Image { pid, start_ns: 0, ..Image::default() });
        self.processes.insert(
            pid,
            Process {
                image,
                space: AddressSpace::new(),
                contexts: Contexts::default(),
                main_seen: false,
                sought_main: 0,
                threads: 0,
                start_ns: 0,
                audit: IoAudit::default(),
                maps_stale: false,
                inside: OfProcess::default(),
            },
        );
        self.add_thread(pid, pid);
    }

    /// Adds a thread that stopped before its parent reported it.
    pub(super) fn adopt_unknown(&mut self, tid: i32) {
        if !self.threads.contains_key(&tid) {
            self.adopt(tid, None);
        }
    }

    /// Adds a new thread or process; `parent` is the thread that made it, if known.
    pub(super) fn adopt(&mut self, tid: i32, parent: Option<i32>) {
        if self.threads.contains_key(&tid) {
            return;
        }
        let pid = procfs::tgid(tid).unwrap_or(tid);
        if self.processes.contains_key(&pid) {
            let image = self.processes[&pid].image;
            self.table.images[image.index()].threads += 1;
            self.add_thread(tid, pid);
            return;
        }
        let parent_pid =
            parent.and_then(|t| self.threads.get(&t)).map(|t| t.pid).or_else(|| procfs::ppid(pid)).unwrap_or(0);
        let start_ns = self.at(sys::now());
        let parent = self.processes.get(&parent_pid);
        let parent_image = parent.map(|p| p.image);
        let like = parent_image.map(|i| self.table.images[i.index()].clone());
        let (space, main_seen) = parent.map_or((AddressSpace::new(), false), |p| (p.space.clone(), p.main_seen));
        let inside = self.inherited(parent_pid);
        let image = Image {
            pid,
            parent: parent_image,
            exe: like.as_ref().map_or_else(|| procfs::exe(pid).unwrap_or_default(), |l| l.exe.clone()),
            argv: like.as_ref().map_or_else(|| procfs::argv(pid), |l| l.argv.clone()),
            start_ns,
            main_at_ns: main_seen.then_some(start_ns),
            ..Image::default()
        };
        let image = self.table.image(image);
        let known = like.is_some();
        self.processes.insert(
            pid,
            Process {
                image,
                space,
                contexts: Contexts::default(),
                main_seen,
                sought_main: 0,
                threads: 0,
                start_ns,
                audit: IoAudit::of_child(),
                maps_stale: !known,
                inside,
            },
        );
        self.add_thread(tid, pid);
    }

    pub(super) fn add_thread(&mut self, tid: i32, pid: i32) {
        self.threads.insert(tid, Thread::new(pid, self.seen.threads));
        self.seen.threads += 1;
        self.seen.most_threads = self.seen.most_threads.max(self.threads.len());
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads += 1;
        }
    }

    /// Handles an exec: forgets everything about the old program.
    pub(super) fn on_exec(&mut self, tid: i32) {
        self.rename_execing_thread(tid);
        self.ends(tid);
        if let Some(what) = foreign_program(tid) {
            let exe = procfs::exe(tid).unwrap_or_default();
            self.problems.note(ProblemKind::Unwatched, format!("{exe} is {what} and ran unwatched"));
            self.end_image(tid, None);
            self.release(tid, 0);
            return;
        }
        let first = tid == self.root.pid && self.table.images[0].exe.is_empty();
        let now = self.at(sys::now());
        let cpu = self.threads.get_mut(&tid).and_then(|t| t.ran(tid)).map_or(0, |r| r.cpu_ns);
        if first {
            if let Some(thread) = self.threads.get_mut(&tid) {
                thread.cpu_base_ns = cpu;
            }
            let image = &mut self.table.images[0];
            image.exe = procfs::exe(tid).unwrap_or_default();
            image.argv = procfs::argv(tid);
        } else {
            self.account_cpu(tid, cpu);
            let parent = self.processes.get(&tid).map(|p| p.image);
            self.end_image(tid, None);
            let image = Image {
                pid: tid,
                parent,
                exe: procfs::exe(tid).unwrap_or_default(),
                argv: procfs::argv(tid),
                start_ns: now,
                ..Image::default()
            };
            let image = self.table.image(image);
            if let Some(process) = self.processes.get_mut(&tid) {
                process.image = image;
            }
        }
        let names = self.names;
        if let Some(process) = self.processes.get_mut(&tid) {
            process.space = AddressSpace::new();
            process.contexts.restart();
            if names {
                process.update(&mut self.symbols, tid);
            }
            process.main_seen = false;
            process.sought_main = 0;
            process.maps_stale = false;
            process.start_ns = now;
            process.audit.restart(tid);
            process.inside = OfProcess::default();
        }
    }

    /// Gives the thread that made an exec its leader's number, as the kernel has done, and ends all other threads.
    fn rename_execing_thread(&mut self, tid: i32) {
        self.close_window(tid);
        let former = tracee::event_message(tid).unwrap_or(tid);
        let others: Vec<i32> =
            self.threads.iter().filter(|(t, v)| v.pid == tid && **t != former).map(|(t, _)| *t).collect();
        for other in others {
            self.end_thread_of(other, false);
        }
        if former != tid
            && let Some(mut thread) = self.threads.remove(&former)
        {
            thread.forget_schedstat();
            self.threads.insert(tid, thread);
            self.close_window(tid);
        }
        self.adopt_unknown(tid);
        if let Some(process) = self.processes.get_mut(&tid) {
            process.threads = 1;
        }
    }

    /// Reads a thread's figures when it begins to exit, which is the last moment at which they can be read.
    pub(super) fn on_exit_begun(&mut self, tid: i32) {
        self.take_in(tid);
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let pid = thread.pid;
        let cpu = thread.ran(tid).map_or(0, |r| r.cpu_ns);
        self.account_cpu(tid, cpu);
        self.abandon_call(tid);
        if self.processes.get(&pid).is_some_and(|p| p.threads <= 1) {
            self.audit(pid);
            if let Some(io) = procfs::io_calls(pid)
                && self.ended.len() < MAX_ENDED
            {
                self.ended.insert(pid, io);
            }
        }
    }

    /// Compares our count of a process's reads and writes with the kernel's.
    pub(super) fn audit(&mut self, pid: i32) {
        let Some(process) = self.processes.get(&pid) else { return };
        if let Some(what) = process.audit.differs(pid) {
            let exe = self.table.images[process.image.index()].exe.clone();
            self.problems.note(ProblemKind::Audit, format!("{exe}: {what} (/proc/PID/io)"));
        }
    }

    /// Handles a `wait4` or `waitid` that returned: if it reaped a child, adds the child's counts to its parent's.
    pub(super) fn after_wait(&mut self, pid: i32, waitid: bool, args: &[u64; 6], result: i64) {
        let word = |address: u64| {
            let mut bytes = [0; 4];
            (address != 0 && sys::read_memory(pid, address, &mut bytes) == 4).then(|| i32::from_ne_bytes(bytes))
        };
        let child = if waitid {
            // Offsets in siginfo_t: si_code at 8, si_pid at 16. Codes 1 to 3 are CLD_EXITED, CLD_KILLED and CLD_DUMPED.
            let keeps = args[3] & libc::WNOWAIT as u64 != 0;
            let ended = word(args[2].wrapping_add(8)).is_some_and(|code| (1..=3).contains(&code));
            word(args[2].wrapping_add(16)).filter(|_| result == 0 && !keeps && ended)
        } else {
            let stopped = word(args[1]).is_some_and(|s| libc::WIFSTOPPED(s) || libc::WIFCONTINUED(s));
            i32::try_from(result).ok().filter(|pid| *pid > 0 && !stopped)
        };
        let Some(child) = child.filter(|c| *c > 0) else { return };
        let io = self.ended.remove(&child);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.audit.reaped(io);
        }
    }

    /// Adds to a thread's image the processor time that the thread has used since the last call of this function.
    pub(super) fn account_cpu(&mut self, tid: i32, cpu_ns: u64) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let ran = cpu_ns.saturating_sub(thread.cpu_base_ns);
        thread.cpu_base_ns = cpu_ns.max(thread.cpu_base_ns);
        if let Some(process) = self.processes.get(&thread.pid) {
            self.table.images[process.image.index()].cpu_ns += ran;
        }
    }

    /// Counts the pending call of a thread that will never return from it.
    pub(super) fn abandon_call(&mut self, tid: i32) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let Some(pending) = thread.pending.take() else { return };
        let counts = &mut self.table.rows[pending.row as usize].counts;
        counts.unreturned += 1;
        if let Some(process) = self.processes.get_mut(&thread.pid) {
            process.audit.unreturned(pending.signature.and_then(|s| s.audit));
        }
    }

    /// Handles the end of a thread.
    pub(super) fn on_gone(&mut self, tid: i32, exit: Exit, signals: Option<&Signals>) {
        let pid = self.threads.get(&tid).map_or(tid, |t| t.pid);
        if tid == pid
            && let Some(process) = self.processes.get(&pid)
        {
            self.table.images[process.image.index()].exit = Some(exit);
        }
        self.end_thread(tid);
        if tid == self.root.pid {
            self.root.exit = Some(exit);
            if let Some(signals) = signals {
                signals.target_gone();
            }
        }
    }

    /// Forgets a thread; also its process if it was the last thread.
    pub(super) fn end_thread(&mut self, tid: i32) {
        self.end_thread_of(tid, true);
    }

    fn end_thread_of(&mut self, tid: i32, may_end_process: bool) {
        self.abandon_call(tid);
        self.close_window(tid);
        self.ends(tid);
        let Some(thread) = self.threads.remove(&tid) else { return };
        let Some(process) = self.processes.get_mut(&thread.pid) else { return };
        process.threads = process.threads.saturating_sub(1);
        if process.threads == 0 && may_end_process {
            self.end_image(thread.pid, None);
            self.processes.remove(&thread.pid);
        }
    }

    fn end_image(&mut self, pid: i32, exit: Option<Exit>) {
        let now = self.at(sys::now());
        let Some(process) = self.processes.get(&pid) else { return };
        let image = &mut self.table.images[process.image.index()];
        image.end_ns = now;
        image.life_ns += now.saturating_sub(process.start_ns);
        image.exit = exit.or(image.exit);
    }

    /// Returns the number of calls counted for an image so far.
    pub(super) fn calls_of_image(&self, image: ImageId) -> u64 {
        self.table.rows.iter().filter(|r| r.image == image).map(|r| calls_of(&r.counts)).sum()
    }
}

/// Returns what a process's program is, if it is none of this machine's.
pub(super) fn foreign_program(pid: i32) -> Option<String> {
    setid::foreign(&systoll_files::head(format!("/proc/{pid}/exe"), 64).ok()?)
}
