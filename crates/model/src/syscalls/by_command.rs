//! Arguments whose meaning another argument decides. Numbers from the kernel's uapi headers;
//! what is not listed is taken for a plain number.

use super::{ArgKind, Size};

const fn input(bytes: u32) -> ArgKind {
    ArgKind::In(Size::Fixed(bytes))
}

const fn out(bytes: u32) -> ArgKind {
    ArgKind::Out(Size::Fixed(bytes))
}

const fn inout(bytes: u32) -> ArgKind {
    ArgKind::InOut(Size::Fixed(bytes))
}

/// The kind of argument `index` of the call `name` made with `args`.
pub(super) fn kind(name: &str, index: usize, args: &[u64; 6]) -> ArgKind {
    let [first, second, third, ..] = *args;
    // Commands are C ints: what a caller left in the upper half says nothing.
    let command = |register: u64| register as u32;
    match name {
        "fcntl" => fcntl(command(second)),
        "ioctl" => ioctl(command(second)),
        "prctl" => prctl(command(first), index),
        "arch_prctl" => arch_prctl(command(first)),
        "futex" => futex(command(second)),
        "shmctl" => ipc(command(second), 112, 72),
        "msgctl" => ipc(command(second), 120, 32),
        "semctl" => semctl(command(third)),
        // SECCOMP_SET_MODE_FILTER takes a sock_fprog, GET_ACTION_AVAIL a u32.
        "seccomp" => match command(first) {
            1 => input(16),
            2 => input(4),
            3 => out(6),
            _ => ArgKind::Int,
        },
        _ => ArgKind::Int,
    }
}

fn fcntl(command: u32) -> ArgKind {
    match command {
        // F_GETLK, F_OFD_GETLK
        5 | 36 => inout(32),
        // F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW
        6 | 7 | 37 | 38 => input(32),
        // F_SETOWN_EX, F_GETOWN_EX
        15 => input(8),
        16 => out(8),
        // F_GET_RW_HINT, F_SET_RW_HINT and their per-file kind
        1035 | 1037 => out(8),
        1036 | 1038 => input(8),
        _ => ArgKind::Int,
    }
}

fn ioctl(command: u32) -> ArgKind {
    match command {
        // TCGETS, TCSETS, TCSETSW, TCSETSF: the kernel's struct termios
        0x5401 => out(36),
        0x5402..=0x5404 => input(36),
        // TIOCGPGRP, TIOCSPGRP, TIOCOUTQ, FIONREAD, TIOCGSID, FIONBIO, FIOASYNC
        0x540f | 0x5411 | 0x541b | 0x5429 => out(4),
        0x5410 | 0x5421 | 0x5452 => input(4),
        // TIOCGWINSZ, TIOCSWINSZ
        0x5413 => out(8),
        0x5414 => input(8),
        // SIOCGIFCONF is two-way in two steps; SIOCGIF*: a struct ifreq
        0x8912 => inout(16),
        0x8910..=0x894f => inout(40),
        _ => encoded_ioctl(command),
    }
}

/// Commands made by _IOR, _IOW and _IOWR carry direction and size.
fn encoded_ioctl(command: u32) -> ArgKind {
    let bytes = command >> 16 & 0x3fff;
    match command >> 30 {
        1 if bytes > 0 => input(bytes),
        2 if bytes > 0 => out(bytes),
        3 if bytes > 0 => inout(bytes),
        _ => ArgKind::Int,
    }
}

fn prctl(option: u32, index: usize) -> ArgKind {
    match (option, index) {
        // PR_GET_PDEATHSIG, PR_GET_TSC, PR_GET_CHILD_SUBREAPER
        (2 | 25 | 37, 1) => out(4),
        // PR_SET_NAME, PR_GET_NAME: TASK_COMM_LEN bytes
        (15, 1) => ArgKind::Str,
        (16, 1) => out(16),
        // PR_SET_SECCOMP with a filter
        (22, 2) => input(16),
        // PR_GET_TID_ADDRESS
        (40, 1) => out(8),
        // PR_SET_VMA's name
        (0x5356_4d41, 4) => ArgKind::Str,
        _ => ArgKind::Int,
    }
}

fn arch_prctl(op: u32) -> ArgKind {
    match op {
        // ARCH_GET_FS, ARCH_GET_GS, ARCH_GET_XCOMP_SUPP, ARCH_GET_XCOMP_PERM
        0x1003 | 0x1004 | 0x1021 | 0x1022 => out(8),
        _ => ArgKind::Int,
    }
}

fn futex(op: u32) -> ArgKind {
    // The low seven bits: FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME lie above.
    match op & 0x7f {
        // WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2 take a timeout; the wakers a number.
        0 | 6 | 9 | 11 | 13 => input(16),
        _ => ArgKind::Int,
    }
}

/// `whole` is the size of the set's own struct, `info` that of IPC_INFO's.
fn ipc(command: u32, whole: u32, info: u32) -> ArgKind {
    // IPC_64, which glibc sets, is not part of the command.
    match command & !0x100 {
        // IPC_SET
        1 => input(whole),
        // IPC_STAT, SHM_STAT and MSG_STAT
        2 | 11 | 13 => out(whole),
        // IPC_INFO
        3 => out(info),
        _ => ArgKind::Int,
    }
}

fn semctl(command: u32) -> ArgKind {
    match command & !0x100 {
        1 => input(104),
        2 | 18 => out(104),
        3 | 19 => out(40),
        _ => ArgKind::Int,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_decide() {
        let fcntl = |command| kind("fcntl", 2, &[3, command, 0, 0, 0, 0]);
        assert_eq!(fcntl(4), ArgKind::Int);
        assert_eq!(fcntl(6), input(32));
        let ioctl = |command| kind("ioctl", 2, &[3, command, 0, 0, 0, 0]);
        assert_eq!(ioctl(0x5401), out(36));
        assert_eq!(ioctl(0x802c_542a), out(44), "TCGETS2 is encoded");
        assert_eq!(kind("prctl", 1, &[15, 0, 0, 0, 0, 0]), ArgKind::Str);
        assert_eq!(kind("prctl", 2, &[15, 0, 0, 0, 0, 0]), ArgKind::Int);
        assert_eq!(kind("futex", 3, &[0, 128, 0, 0, 0, 0]), input(16), "FUTEX_WAIT_PRIVATE");
        assert_eq!(kind("futex", 3, &[0, 129, 0, 0, 0, 0]), ArgKind::Int, "FUTEX_WAKE_PRIVATE");
    }
}
