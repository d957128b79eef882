//! Examines calls after which watching would do harm, before the kernel executes them.

use super::engine::Engine;
use crate::arguments::argument_data;
use crate::setid::{self, Nature, World};
use crate::sys;
use crate::tracee::{self, Stop, Waited};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use systoll_model::{Exit, Moment, ProblemKind, Sysno};

impl Engine {
    /// Examines an `execve` that is about to happen. Lets go of a program that would lose privilege while traced, and
    /// returns true if it did.
    pub(super) fn before_exec(&mut self, tid: i32, name: &str, args: &[u64; 6]) -> bool {
        self.audit_before_exec(tid);
        if self.privileged {
            return false;
        }
        let Some(path) = self.exec_path(tid, name, args) else { return false };
        let euid = crate::procfs::euid(tid).unwrap_or(u32::MAX);
        let world = World { root: PathBuf::from(format!("/proc/{tid}/root")), euid };
        let Nature::Privileged(what) = setid::nature(&path, &world) else { return false };
        if crate::procfs::no_new_privs(tid) {
            return false;
        }
        let shown = path.strip_prefix(&world.root).map_or_else(|_| path.clone(), |p| Path::new("/").join(p));
        self.problems.note(ProblemKind::Unwatched, format!("{} ran unwatched: {what}", shown.display()));
        self.release(tid, 0);
        true
    }

    fn audit_before_exec(&mut self, tid: i32) {
        let Some(pid) = self.threads.get(&tid).map(|t| t.pid) else { return };
        if self.processes.get(&pid).is_some_and(|p| p.threads == 1) {
            self.audit(pid);
        }
    }

    /// Returns the file that an exec names, as a path that we can open.
    fn exec_path(&self, tid: i32, name: &str, args: &[u64; 6]) -> Option<PathBuf> {
        let signature = Sysno::from_name(name)?.signature()?;
        let read = |address: u64, buffer: &mut [u8]| sys::read_memory(tid, address, buffer);
        let path_arg = if name == "execveat" { 1 } else { 0 };
        let data = argument_data(signature, Moment::Entry, args, None, 0, &read);
        let path = data.into_iter().find(|d| d.arg == path_arg)?.bytes;
        let path = Path::new(OsStr::from_bytes(&path));
        if let Ok(below_root) = path.strip_prefix("/") {
            return Some(Path::new(&format!("/proc/{tid}/root")).join(below_root));
        }
        let dir = args[0] as i32;
        Some(match (name, path.as_os_str().is_empty()) {
            ("execveat", true) => PathBuf::from(format!("/proc/{tid}/fd/{dir}")),
            ("execveat", false) if dir != libc::AT_FDCWD => Path::new(&format!("/proc/{tid}/fd/{dir}")).join(path),
            _ => Path::new(&format!("/proc/{tid}/cwd")).join(path),
        })
    }

    /// Examines a `ptrace` call of a watched program, since a thread can have only one tracer. Lets go of the thread
    /// that the caller wants to trace. Returns true if that is the caller itself, which asks to be traced.
    pub(super) fn before_ptrace(&mut self, tid: i32, args: &[u64; 6]) -> bool {
        const PTRACE_TRACEME: u64 = 0;
        const PTRACE_ATTACH: u64 = 16;
        const PTRACE_SEIZE: u64 = 0x4206;
        match args[0] {
            PTRACE_TRACEME => {
                self.problems
                    .note(ProblemKind::Unwatched, "a process that another of the command's traces ran unwatched");
                self.release(tid, 0);
                true
            }
            PTRACE_ATTACH | PTRACE_SEIZE => {
                let wanted = args[1] as i32;
                if wanted != tid && self.threads.contains_key(&wanted) {
                    self.problems
                        .note(ProblemKind::Unwatched, "a process that another of the command's traces ran unwatched");
                    self.hand_over(wanted);
                }
                false
            }
            _ => false,
        }
    }

    /// Detaches from a thread that may be running, once it has stopped.
    fn hand_over(&mut self, tid: i32) {
        let mut told = self.take_collected(tid);
        // A thread whose stop is still to be collected does not stop a second time.
        if told.is_none() && tracee::interrupt(tid).is_err() {
            return;
        }
        for _ in 0..5_000 {
            let stop = match told.take().map_or_else(|| tracee::wait_for(tid, false), Waited::Stop) {
                Waited::Stop(stop) => stop,
                Waited::NoChildren => return,
                _ => {
                    std::thread::sleep(Duration::from_micros(100));
                    continue;
                }
            };
            match stop {
                Stop::Exited { tid, code } => return self.on_gone(tid, Exit::Code(code), None),
                Stop::Killed { tid, signal } => return self.on_gone(tid, Exit::Signal(signal), None),
                stop => return self.leave_stopped(stop),
            }
        }
    }
}
