//! The action of SIGSYS: installs our handler, keeps the program's own, restores it.

use super::stubs;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The bit of SIGSYS in a kernel's signal mask.
pub(super) const SIGSYS_BIT: u64 = 1 << (libc::SIGSYS - 1);

/// The kernel's `struct sigaction`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Action {
    pub(super) handler: u64,
    pub(super) flags: u64,
    pub(super) restorer: u64,
    pub(super) mask: u64,
}

const SA_RESTORER: u64 = 0x0400_0000;
const SIGNALS: i32 = 64;

/// The program's own action for SIGSYS while ours is installed. Four words, since a handler may
/// read them.
static PROGRAMS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

pub(super) fn programs_action() -> Action {
    let [handler, flags, restorer, mask] = PROGRAMS.each_ref().map(|word| word.load(SeqCst));
    Action { handler, flags, restorer, mask }
}

pub(super) fn set_programs_action(action: Action) {
    let words = [action.handler, action.flags, action.restorer, action.mask];
    for (place, word) in PROGRAMS.iter().zip(words) {
        place.store(word, SeqCst);
    }
}

/// Reads, or changes, a signal's action.
pub(super) fn action(signal: i32, new: Option<&Action>) -> Result<Action, i64> {
    let mut old = Action::default();
    let new = new.map_or(0, |action| core::ptr::from_ref(action) as u64);
    // SAFETY: both are actions of ours, or null.
    let done = unsafe { stubs::call(libc::SYS_rt_sigaction, [signal as u64, new, &raw mut old as u64, 8, 0, 0]) };
    if done == 0 { Ok(old) } else { Err(done) }
}

/// Installs `handler` for SIGSYS, unless it is installed.
pub(super) fn install(handler: u64) -> Result<(), i64> {
    let now = action(libc::SIGSYS, None)?;
    if now.handler == handler {
        return Ok(());
    }
    set_programs_action(now);
    // All signals wait until the handler has ended, which is soon: it makes no call that waits.
    let ours =
        Action { handler, flags: libc::SA_SIGINFO as u64 | SA_RESTORER, restorer: stubs::restorer(), mask: u64::MAX };
    action(libc::SIGSYS, Some(&ours)).map(drop)
}

/// Restores the program's own action, unless other code has installed another.
pub(super) fn remove(handler: u64) {
    if action(libc::SIGSYS, None).is_ok_and(|now| now.handler == handler) {
        // If that fails, the handler stays, which passes on everything that is not ours.
        let _ = action(libc::SIGSYS, Some(&programs_action()));
    }
}

/// Removes SIGSYS from the masks of the program's handlers: they make calls too.
pub(super) fn unblock_in_handlers() {
    for signal in (1..=SIGNALS).filter(|s| ![libc::SIGKILL, libc::SIGSTOP, libc::SIGSYS].contains(s)) {
        let Ok(now) = action(signal, None) else { continue };
        let handled = now.handler != libc::SIG_DFL as u64 && now.handler != libc::SIG_IGN as u64;
        if handled && now.mask & SIGSYS_BIT != 0 {
            // The same action except for one bit: a failure changes nothing.
            let _ = action(signal, Some(&Action { mask: now.mask & !SIGSYS_BIT, ..now }));
        }
    }
}
