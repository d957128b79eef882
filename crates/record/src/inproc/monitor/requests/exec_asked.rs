//! A thread is about to exec: it is attached to for its exec stop, unless that would take privilege.

use crate::arguments::argument_data;
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::session::Session;
use crate::inproc::monitor::tracees::Seized;
use crate::setid::{self, Nature, World};
use crate::sys::read_memory;
use crate::tracee;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use systoll_hooks::numbers::EXECVEAT;
use systoll_model::{Moment, ProblemKind, Sysno};

/// A thread is about to exec: attached to for its exec stop, unless that would take privilege.
pub(crate) fn on_asked(session: &mut Session, waiter: &Waiter) {
    let tid = waiter.tid;
    if !session.tracees.privileged
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
            if session.tracees.seized.contains_key(&tid) {
                session.tracees.let_go(&mut session.root, tid);
            }
            return session.problems.note(ProblemKind::Unwatched, format!("{} ran unwatched: {what}", shown.display()));
        }
    }
    if let Some(seized) = session.tracees.seized.get_mut(&tid) {
        seized.from = Some(waiter.slot);
        return session.tracees.lingering.retain(|t| *t != tid);
    }
    match tracee::seize(tid, tracee::EXECS) {
        Ok(()) => {
            session.tracees.seized.insert(tid, Seized { from: Some(waiter.slot) });
        }
        // That it is the one that asks was made sure of: it has been killed since, and runs no program.
        Err(_) if crate::procfs::is_ending(tid) => {}
        Err(errno) => {
            let text = format!("a program ran unwatched: it can't be attached to: {}", errno.desc());
            session.problems.note(ProblemKind::Unwatched, text);
        }
    }
}

/// A thread that looks for a program in one folder after the other tries again at once. An exec that
/// is not asked about must not find us attached: there it might take privilege.
pub(crate) fn on_failed(session: &mut Session, waiter: &Waiter) {
    if !session.tracees.seized.contains_key(&waiter.tid) {
        return;
    }
    if session.programs.get(&waiter.slot.program).is_some_and(|p| p.hooks.seen_whole) {
        session.tracees.lingering.push(waiter.tid);
    } else {
        session.tracees.let_go(&mut session.root, waiter.tid);
    }
}

/// The file an exec names, as a path we can open.
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
