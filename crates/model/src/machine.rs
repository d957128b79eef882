//! The machines on which recordings are made, and the parts of their system call interfaces that differ.
//!
//! A recording has one form for all machines, that of x86-64: its numbers, its order of arguments, its flags, its
//! structs. Whoever sees a call on another machine translates it at once by that machine's [`Abi`], so that nothing that
//! reads recordings depends on the machine that made them.

use crate::errno::Errno;
use crate::syscalls::{ArgKind, Size};
use crate::sysno::Sysno;

/// A kind of processor, with Linux's interface on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Machine {
    /// 64-bit x86.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

/// Number of a table for a call that x86-64 lacks, or that nobody has.
const NONE: u16 = u16::MAX;

/// Calls of aarch64 by number, as x86-64's numbers (include/uapi/asm-generic/unistd.h of Linux 6.1). From
/// [`SAME_NUMBERS`] on both have the same. A test compares them with the kernel's header.
#[rustfmt::skip]
static AARCH64_CALLS: &[u16] = &[
    206, 207, 209, 210, 208, 188, 189, 190, 191, 192, 193, 194, 195, 196, 197, 198, 199, 79, 212, 290, 291, 233, 281,
    32, 292, 72, 294, 254, 255, 16, 251, 252, 73, 259, 258, 263, 266, 265, 264, 166, 165, 155, 180, 137, 138, 76, 77,
    285, 269, 80, 81, 161, 91, 268, 260, 93, 257, 3, 153, 293, 179, 217, 8, 0, 1, 19, 20, 17, 18, 295, 296, 40, 270,
    271, 289, 278, 275, 276, 267, 262, 5, 162, 74, 75, 277, 283, 286, 287, 280, 163, 125, 126, 135, 60, 231, 247,
    218, 272, 202, 273, 274, 35, 36, 38, 246, 175, 176, 222, 224, 225, 223, 226, 227, 228, 229, 230, 103, 101, 142,
    144, 145, 143, 203, 204, 24, 146, 147, 148, 219, 62, 200, 234, 131, 130, 13, 14, 127, 128, 129, 15, 141, 140,
    169, 114, 106, 113, 105, 117, 118, 119, 120, 122, 123, 100, 109, 121, 124, 112, 115, 116, 63, 170, 171, 97, 160,
    98, 95, 157, 309, 96, 164, 159, 39, 110, 102, 107, 104, 108, 186, 99, 240, 241, 242, 243, 244, 245, 68, 71, 70,
    69, 64, 66, 220, 65, 29, 31, 30, 67, 41, 53, 49, 50, 43, 42, 51, 52, 44, 45, 54, 55, 48, 46, 47, 187, 12, 11, 25,
    248, 249, 250, 56, 59, 9, 221, 167, 168, 10, 26, 149, 150, 151, 152, 27, 28, 216, 237, 239, 238, 256, 279, 297,
    298, 288, 299, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
    61, 302, 300, 301, 303, 304, 305, 306, 308, 307, 310, 311, 312, 313, 314, 315, 316, 317, 318, 319, 321, 322, 323,
    324, 325, 326, 327, 328, 329, 330, 331, 332, 333, 334, 320,
];
/// First of the numbers that all machines have had in common since Linux 5.1.
const SAME_NUMBERS: u32 = 424;

/// A struct of which a machine has another layout than x86-64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Size of the struct on the machine, bytes.
    pub there: u32,
    /// Size of x86-64's struct, bytes.
    pub here: u32,
    /// Pieces of the struct: offset on the machine, offset on x86-64, length, bytes.
    pieces: &'static [(u8, u8, u8)],
}

/// `struct stat`: device and inode, links, mode, owner, group, device number, size, size of blocks, blocks and times
/// (asm-generic/stat.h; on x86-64 links have 64 bits and come before the mode).
static STAT: Layout = Layout {
    there: 128,
    here: 144,
    pieces: &[(0, 0, 16), (20, 16, 4), (16, 24, 4), (24, 28, 8), (32, 40, 8), (48, 48, 8), (56, 56, 4), (64, 64, 56)],
};
/// `struct epoll_event`: events and data; x86-64 has no padding between them.
static EPOLL_EVENT: Layout = Layout { there: 16, here: 12, pieces: &[(0, 0, 4), (8, 4, 8)] };
/// `struct semid64_ds`: x86-64 has an unused word behind each time.
static SEMAPHORES: Layout = Layout { there: 88, here: 104, pieces: &[(0, 0, 56), (56, 64, 8), (64, 80, 24)] };

/// Flags of open(2) that differ: aarch64's bit, x86-64's bit (O_DIRECTORY, O_NOFOLLOW, O_DIRECT, O_LARGEFILE of
/// asm/fcntl.h).
const AARCH64_OPENING: [(u64, u64); 4] =
    [(0o4_0000, 0o20_0000), (0o10_0000, 0o40_0000), (0o20_0000, 0o4_0000), (0o40_0000, 0o10_0000)];

/// Translates flags of open(2).
fn aarch64_opening(flags: u64) -> u64 {
    let rest = AARCH64_OPENING.iter().fold(flags, |flags, (there, _)| flags & !there);
    AARCH64_OPENING.iter().filter(|(there, _)| flags & there != 0).fold(rest, |flags, (_, here)| flags | here)
}

const F_GETFL: u64 = 3;
const F_SETFL: u64 = 4;

impl Machine {
    /// The machine for which this program was built.
    pub const HERE: Self = if cfg!(target_arch = "aarch64") { Self::Aarch64 } else { Self::X86_64 };

    /// Returns the name that uname(2) has for the machine.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Returns the machine of this name, as uname(2), perf and Debian write it.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "x86_64" | "amd64" => Some(Self::X86_64),
            "aarch64" | "arm64" => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// Returns the number of the machine's 64-bit calls in audit(7) and in ptrace(2) (AUDIT_ARCH of linux/audit.h).
    pub fn audit_arch(self) -> u32 {
        match self {
            Self::X86_64 => 0xc000_003e,
            Self::Aarch64 => 0xc000_00b7,
        }
    }

    /// Returns the machine's number in ELF files (e_machine).
    pub fn elf_machine(self) -> u16 {
        match self {
            Self::X86_64 => 62,
            Self::Aarch64 => 183,
        }
    }

    /// Returns the call that has this number on the machine.
    pub fn call(self, number: u32) -> Sysno {
        match self {
            Self::X86_64 => Sysno::made(number),
            Self::Aarch64 if number < SAME_NUMBERS => {
                let known = AARCH64_CALLS.get(number as usize).filter(|known| **known != NONE);
                known.map_or(Sysno::UNKNOWN, |known| Sysno((*known).into()))
            }
            Self::Aarch64 if number & Sysno::X32 == 0 => Sysno::made(number),
            Self::Aarch64 => Sysno::UNKNOWN,
        }
    }

    /// Returns the number that the call has on the machine; `None` if the machine lacks it.
    pub fn number(self, call: Sysno) -> Option<u32> {
        match self {
            Self::X86_64 => Some(call.0),
            Self::Aarch64 if (SAME_NUMBERS..Sysno::NATIVE).contains(&call.0) => Some(call.0),
            Self::Aarch64 => AARCH64_CALLS.iter().position(|at| u32::from(*at) == call.0).map(|at| at as u32),
        }
    }

    /// Returns the arguments of a call in x86-64's order and with its flags.
    pub fn args(self, call: Sysno, mut args: [u64; 6]) -> [u64; 6] {
        if self == Self::Aarch64 {
            match call.name() {
                // CONFIG_CLONE_BACKWARDS of the kernel.
                Some("clone") => args.swap(3, 4),
                Some("openat" | "open_by_handle_at") => args[2] = aarch64_opening(args[2]),
                Some("pipe2" | "fanotify_init" | "mq_open") => args[1] = aarch64_opening(args[1]),
                Some("fcntl") if args[1] & 0xffff_ffff == F_SETFL => args[2] = aarch64_opening(args[2]),
                _ => {}
            }
        }
        args
    }

    /// Returns the result of a call as x86-64 would return it. `args` are those of [`Machine::args`].
    pub fn result(self, call: Sysno, args: &[u64; 6], result: i64) -> i64 {
        let flags = self == Self::Aarch64
            && args[1] & 0xffff_ffff == F_GETFL
            && Errno::from_result(result).is_none()
            && call.name() == Some("fcntl");
        if flags { aarch64_opening(result as u64) as i64 } else { result }
    }

    /// Returns the layout of the struct behind argument `arg` of a call, if it is not that of x86-64.
    pub fn layout(self, call: &str, arg: u8) -> Option<&'static Layout> {
        if self != Self::Aarch64 {
            return None;
        }
        match (call, arg) {
            ("fstat", 1) | ("newfstatat", 2) => Some(&STAT),
            ("epoll_ctl", 3) | ("epoll_wait" | "epoll_pwait" | "epoll_pwait2", 1) => Some(&EPOLL_EVENT),
            ("semctl", 3) => Some(&SEMAPHORES),
            _ => None,
        }
    }

    /// Translates the memory that argument `arg` of a call points to, if it needs that.
    pub fn memory(self, call: &str, arg: u8, bytes: Vec<u8>) -> Vec<u8> {
        match self.layout(call, arg) {
            Some(layout) => layout.translate(&bytes),
            None if self == Self::Aarch64 && (call, arg) == ("openat2", 2) => opening_of(bytes),
            None => bytes,
        }
    }
}

/// Translates the flags at the beginning of a `struct open_how`.
fn opening_of(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(flags) = bytes.first_chunk_mut() {
        *flags = aarch64_opening(u64::from_le_bytes(*flags)).to_le_bytes();
    }
    bytes
}

impl Layout {
    /// Returns the kind of an argument that points to such structs, with the machine's sizes in place of x86-64's.
    pub fn kind(&self, kind: ArgKind) -> ArgKind {
        let size = |size: Size| match size {
            Size::Fixed(bytes) if bytes == self.here => Size::Fixed(self.there),
            Size::Result { bound, scale } if scale == self.here => Size::Result { bound, scale: self.there },
            other => other,
        };
        match kind {
            ArgKind::In(bytes) => ArgKind::In(size(bytes)),
            ArgKind::Out(bytes) => ArgKind::Out(size(bytes)),
            ArgKind::InOut(bytes) => ArgKind::InOut(size(bytes)),
            other => other,
        }
    }

    /// Returns such structs, one behind the other, as those of x86-64. The last one may be cut short; it is left out.
    fn translate(&self, bytes: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        for there in bytes.chunks_exact(self.there as usize) {
            let begin = all.len();
            all.resize(begin + self.here as usize, 0);
            for (from, to, len) in self.pieces {
                let [from, to, len] = [*from, *to, *len].map(usize::from);
                if let Some((from, to)) = there.get(from..from + len).zip(all.get_mut(begin + to..begin + to + len)) {
                    to.copy_from_slice(from);
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str) -> Sysno {
        Sysno::from_name(name).expect("a call")
    }

    #[test]
    fn numbers_lead_there_and_back() {
        for number in 0..600 {
            let known = Machine::Aarch64.call(number);
            if known != Sysno::UNKNOWN {
                assert_eq!(Machine::Aarch64.number(known), Some(number), "{known}");
            }
        }
        assert_eq!(Machine::Aarch64.call(56), call("openat"));
        assert_eq!(Machine::Aarch64.number(call("open")), None);
        for number in [244, 300, 511, 0x4000_0027, u32::MAX] {
            assert_eq!(Machine::Aarch64.call(number), Sysno::UNKNOWN, "{number:#x}");
        }
        assert_eq!(Machine::X86_64.call(56), call("clone"));
    }

    #[test]
    fn arguments_flags_and_results_are_those_of_x86_64() {
        let of = |name, args| Machine::Aarch64.args(call(name), args);
        assert_eq!(of("clone", [17, 2, 3, 4, 5, 0]), [17, 2, 3, 5, 4, 0]);
        // O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC.
        assert_eq!(of("openat", [0, 1, 0o4_0000 | 0o10_0000 | 0o200_0000, 0, 0, 0])[2], 0o260_0000);
        assert_eq!(of("fcntl", [3, 4, 0o20_4001, 0, 0, 0])[2], 0o4_4001);
        assert_eq!(of("fcntl", [3, 6, 0o20_4001, 0, 0, 0])[2], 0o20_4001, "F_SETLK takes no flags");
        let gets = |result| Machine::Aarch64.result(call("fcntl"), &[3, F_GETFL, 0, 0, 0, 0], result);
        assert_eq!((gets(0o40_0002), gets(-9)), (0o10_0002, -9));
        assert_eq!(Machine::X86_64.args(call("clone"), [1, 2, 3, 4, 5, 6]), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn structs_are_those_of_x86_64() {
        let mut stat: Vec<u8> = (0..128).collect();
        stat[16..20].copy_from_slice(&0o100_644u32.to_le_bytes());
        let here = Machine::Aarch64.memory("newfstatat", 2, stat.clone());
        assert_eq!(here.len(), 144);
        assert_eq!(here[24..28], 0o100_644u32.to_le_bytes());
        assert_eq!(
            (here[16], here[20], here[28], here[40], here[48], here[72], here[119]),
            (20, 0, 24, 32, 48, 72, 119)
        );
        let events = [[7, 0, 0, 0, 9, 9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8].as_slice(), &[1; 16], &[2; 3]].concat();
        let here = Machine::Aarch64.memory("epoll_pwait", 1, events);
        assert_eq!(here.len(), 24);
        assert_eq!(here[..12], [7, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let layout = Machine::Aarch64.layout("epoll_pwait", 1).expect("a layout");
        let result = Size::Result { bound: 2, scale: 12 };
        assert_eq!(layout.kind(ArgKind::Out(result)), ArgKind::Out(Size::Result { bound: 2, scale: 16 }));
        assert_eq!(Machine::Aarch64.memory("read", 1, vec![1, 2]), [1, 2]);
        assert_eq!(Machine::X86_64.memory("newfstatat", 2, stat.clone()), stat);
        let how = Machine::Aarch64.memory("openat2", 2, 0o4_0000u64.to_le_bytes().to_vec());
        assert_eq!(how, 0o20_0000u64.to_le_bytes());
    }
}
