//! Arguments whose kind depends on another argument. All that are not listed count as plain
//! numbers.

use super::args::{ArgKind, Size};
use super::constants::*;

const fn input(bytes: u32) -> ArgKind {
    ArgKind::In(Size::Fixed(bytes))
}

const fn out(bytes: u32) -> ArgKind {
    ArgKind::Out(Size::Fixed(bytes))
}

const fn inout(bytes: u32) -> ArgKind {
    ArgKind::InOut(Size::Fixed(bytes))
}

/// Returns the kind of argument `index` of the call `name` made with `args`.
pub(super) fn kind(name: &str, index: usize, args: &[u64; 6]) -> ArgKind {
    let [first, second, third, ..] = *args;
    // Commands are C ints, so the upper half of the register has no meaning.
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
        "seccomp" => seccomp(command(first)),
        _ => ArgKind::Int,
    }
}

fn seccomp(operation: u32) -> ArgKind {
    match operation {
        SECCOMP_SET_MODE_FILTER => input(16),
        SECCOMP_GET_ACTION_AVAIL => input(4),
        SECCOMP_GET_NOTIF_SIZES => out(6),
        _ => ArgKind::Int,
    }
}

fn fcntl(command: u32) -> ArgKind {
    match command {
        F_GETLK | F_OFD_GETLK => inout(32),
        F_SETLK | F_SETLKW | F_OFD_SETLK | F_OFD_SETLKW => input(32),
        F_SETOWN_EX => input(8),
        F_GETOWN_EX => out(8),
        F_GET_RW_HINT | F_GET_FILE_RW_HINT => out(8),
        F_SET_RW_HINT | F_SET_FILE_RW_HINT => input(8),
        _ => ArgKind::Int,
    }
}

fn ioctl(command: u32) -> ArgKind {
    match command {
        // The kernel's struct termios has 36 bytes.
        TCGETS => out(36),
        TCSETS | TCSETSW | TCSETSF => input(36),
        TIOCGPGRP | TIOCOUTQ | FIONREAD | TIOCGSID => out(4),
        TIOCSPGRP | FIONBIO | FIOASYNC => input(4),
        TIOCGWINSZ => out(8),
        TIOCSWINSZ => input(8),
        // SIOCGIFCONF passes a struct ifconf both ways; the requests around it take a struct ifreq.
        SIOCGIFCONF => inout(16),
        SIOCGIFNAME..=0x894f => inout(40),
        _ => encoded_ioctl(command),
    }
}

/// Decodes direction and size from commands made by _IOR, _IOW and _IOWR.
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
        (PR_GET_PDEATHSIG | PR_GET_TSC | PR_GET_CHILD_SUBREAPER, 1) => out(4),
        (PR_SET_NAME, 1) => ArgKind::Str,
        // The name has TASK_COMM_LEN bytes.
        (PR_GET_NAME, 1) => out(16),
        // The argument is the filter of SECCOMP_MODE_FILTER.
        (PR_SET_SECCOMP, 2) => input(16),
        (PR_GET_TID_ADDRESS, 1) => out(8),
        // The argument is the name of the mapping.
        (PR_SET_VMA, 4) => ArgKind::Str,
        _ => ArgKind::Int,
    }
}

fn arch_prctl(op: u32) -> ArgKind {
    match op {
        ARCH_GET_FS | ARCH_GET_GS | ARCH_GET_XCOMP_SUPP | ARCH_GET_XCOMP_PERM => out(8),
        _ => ArgKind::Int,
    }
}

fn futex(op: u32) -> ArgKind {
    // The operation is in the low seven bits; FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME lie
    // above.
    match op & 0x7f {
        // These operations take a timeout; those that wake take a number.
        FUTEX_WAIT | FUTEX_LOCK_PI | FUTEX_WAIT_BITSET | FUTEX_WAIT_REQUEUE_PI | FUTEX_LOCK_PI2 => input(16),
        _ => ArgKind::Int,
    }
}

/// Returns the kind for a command of System V IPC. `whole` is the size of the object's struct,
/// `info` the size of the struct of IPC_INFO.
fn ipc(command: u32, whole: u32, info: u32) -> ArgKind {
    // glibc sets IPC_64, which is not part of the command.
    match command & !IPC_64 {
        IPC_SET => input(whole),
        IPC_STAT | MSG_STAT | SHM_STAT => out(whole),
        IPC_INFO => out(info),
        _ => ArgKind::Int,
    }
}

fn semctl(command: u32) -> ArgKind {
    match command & !IPC_64 {
        IPC_SET => input(104),
        IPC_STAT | SEM_STAT => out(104),
        IPC_INFO | SEM_INFO => out(40),
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
