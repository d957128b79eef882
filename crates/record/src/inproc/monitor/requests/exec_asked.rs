//! Handles a thread that is about to exec: attaches to it for its exec stop, unless the new program would lose
//! privilege.

use crate::arguments::argument_data;
use crate::inproc::monitor::program::Programs;
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::session::{Targets, TracedProcesses};
use crate::inproc::monitor::tracees::Seized;
use crate::problems::Problems;
use crate::setid::{self, Nature, World};
use crate::sys::read_memory;
use crate::tracee;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use systoll_hooks::numbers::EXECVEAT;
use systoll_model::{Moment, ProblemKind, Sysno};

/// Attaches to a thread that is about to exec, unless the new program would lose privilege.
pub(crate) fn on_asked(targets: &Targets, problems: &mut Problems, traced: &mut TracedProcesses, waiter: &Waiter) {
    let tid = waiter.tid;
    let pid = targets.memory.head(waiter.slot).pid as i32;
    if targets.programs.get(&waiter.slot.program).is_some_and(|program| !program.processes.tells(pid)) {
        return;
    }
    if !traced.tracees.privileged
        && let Some(path) = exec_path(waiter)
    {
        let world = World {
            root: PathBuf::from(format!("/proc/{tid}/root")),
            euid: crate::procfs::euid(tid).unwrap_or(u32::MAX),
        };
        if let Nature::Privileged(what) = setid::nature(&path, &world)
            && !crate::procfs::no_new_privs(tid)
        {
            let shown = path.strip_prefix(&world.root).map_or_else(|_| path.clone(), |p| Path::new("/").join(p));
            if traced.tracees.seized.contains_key(&tid) {
                traced.tracees.let_go(&mut traced.root, tid);
            }
            return problems.note(ProblemKind::Unwatched, format!("{} ran unwatched: {what}", shown.display()));
        }
    }
    if let Some(seized) = traced.tracees.seized.get_mut(&tid) {
        seized.from = Some(waiter.slot);
        return traced.tracees.lingering.retain(|t| *t != tid);
    }
    match tracee::seize(tid, tracee::EXECS) {
        Ok(()) => {
            traced.tracees.seized.insert(tid, Seized { from: Some(waiter.slot) });
        }
        // The thread was verified when it asked: it has been killed since, and runs no program.
        Err(_) if crate::procfs::is_ending(tid) => {}
        Err(errno) => {
            let text = format!("a program ran unwatched: it can't be attached to: {}", errno.desc());
            problems.note(ProblemKind::Unwatched, text);
        }
    }
}

/// Handles a failed exec. A thread that searches several folders for a program tries again at once. An exec that does
/// not ask must not find us attached, since the program might then lose privilege.
pub(crate) fn on_failed(programs: &Programs, traced: &mut TracedProcesses, waiter: &Waiter) {
    if !traced.tracees.seized.contains_key(&waiter.tid) {
        return;
    }
    if programs.get(&waiter.slot.program).is_some_and(|p| p.hooks.seen_whole) {
        traced.tracees.lingering.push(waiter.tid);
    } else {
        traced.tracees.let_go(&mut traced.root, waiter.tid);
    }
}

/// Returns the file that an exec names, as a path that we can open.
fn exec_path(waiter: &Waiter) -> Option<PathBuf> {
    let tid = waiter.tid;
    let args = waiter.args();
    let at = waiter.registers.ax as u32 == EXECVEAT;
    let signature = Sysno::made(waiter.registers.ax as u32).signature()?;
    let read = |address: u64, buffer: &mut [u8]| read_memory(tid, address, buffer);
    let data = argument_data(signature, Moment::Entry, &args, None, 0, &read);
    let path = data.into_iter().find(|d| d.arg == u8::from(at))?.bytes;
    let path = Path::new(OsStr::from_bytes(&path));
    if let Ok(below_root) = path.strip_prefix("/") {
        return Some(Path::new(&format!("/proc/{tid}/root")).join(below_root));
    }
    let [dir, ..] = args;
    let dir = dir as i32;
    Some(match (at, path.as_os_str().is_empty()) {
        (true, true) => PathBuf::from(format!("/proc/{tid}/fd/{dir}")),
        (true, false) if dir != libc::AT_FDCWD => Path::new(&format!("/proc/{tid}/fd/{dir}")).join(path),
        _ => Path::new(&format!("/proc/{tid}/cwd")).join(path),
    })
}
