//! Calls that return EINTR after a stop instead of being restarted by the kernel (signal(7)). The program would see EINTR
//! although nobody has sent it a signal.

use systoll_model::Sysno;

/// The result of a call that a stop has cut off.
pub(crate) const CUT_OFF: i64 = -(libc::EINTR as i64);
/// The result at whose sight the kernel restarts a call, unless a handler runs first (ERESTARTNOHAND of
/// include/linux/errno.h). It looks when the thread leaves the kernel.
pub(crate) const RESTART_UNLESS_HANDLED: i64 = -514;

/// Returns true if a stop cuts a call off.
pub(crate) fn is_cut_off(syscall: Sysno) -> bool {
    /// Numbers of epoll_wait, epoll_pwait, epoll_pwait2, rt_sigtimedwait, semop, semtimedop, io_getevents, io_uring_enter,
    /// recvfrom, recvmsg, accept, accept4 and msgrcv.
    const CALLS: [u32; 13] = [232, 281, 441, 128, 65, 220, 208, 426, 45, 47, 43, 288, 70];
    CALLS.contains(&syscall.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_those_of_the_manual() {
        let all =
            ["epoll_wait", "epoll_pwait", "epoll_pwait2", "rt_sigtimedwait", "semop", "semtimedop", "io_getevents"];
        let more = ["io_uring_enter", "recvfrom", "recvmsg", "accept", "accept4", "msgrcv"];
        let mut known: Vec<_> =
            (0..600).map(Sysno).filter(|syscall| is_cut_off(*syscall)).filter_map(Sysno::name).collect();
        let mut wanted: Vec<_> = all.into_iter().chain(more).collect();
        known.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(known, wanted);
    }
}
