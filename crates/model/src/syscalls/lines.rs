//! Constants and functions that make the lines of [`super::table`] short.

use super::args::{Arg, ArgKind, Size};
use super::audit::Audit;
use super::class::{Class, Classes};
use super::signature::Signature;
use crate::sysno::Sysno;

const fn bit(class: Class) -> u32 {
    1 << class as u32
}

pub(super) const NONE: u32 = 0;
pub(super) const DESC: u32 = bit(Class::Desc);
pub(super) const FILE: u32 = bit(Class::File);
pub(super) const PROCESS: u32 = bit(Class::Process);
pub(super) const NETWORK: u32 = bit(Class::Network);
pub(super) const SIGNAL: u32 = bit(Class::Signal);
pub(super) const MEMORY: u32 = bit(Class::Memory);
pub(super) const IPC: u32 = bit(Class::Ipc);
pub(super) const CREDS: u32 = bit(Class::Creds);
pub(super) const CLOCK: u32 = bit(Class::Clock);
pub(super) const PURE: u32 = bit(Class::Pure);
pub(super) const STAT: u32 = bit(Class::Stat);
pub(super) const LSTAT: u32 = bit(Class::Lstat);
pub(super) const FSTAT: u32 = bit(Class::Fstat);
pub(super) const STAT_LIKE: u32 = bit(Class::StatLike);
pub(super) const STATFS: u32 = bit(Class::Statfs);
pub(super) const FSTATFS: u32 = bit(Class::Fstatfs);
pub(super) const STATFS_LIKE: u32 = bit(Class::StatfsLike);

pub(super) const PLAIN: u32 = 0;
/// Trait of a call whose positive result counts bytes moved.
pub(super) const MOVES: u32 = 1;
/// Trait of a call that may wait for an event.
pub(super) const BLOCKS: u32 = 1 << 1;
/// Trait of a call whose purpose is to wait.
pub(super) const WAITS: u32 = BLOCKS | 1 << 2;
pub(super) const NEVER_RETURNS: u32 = 1 << 3;
pub(super) const READ: u32 = 1 << 4;
pub(super) const WRITE: u32 = 1 << 5;
pub(super) const READV: u32 = 1 << 6;
pub(super) const WRITEV: u32 = 1 << 7;
pub(super) const PREADV: u32 = 1 << 8;
pub(super) const PWRITEV: u32 = 1 << 9;
pub(super) const SENDFILE: u32 = 1 << 10;
pub(super) const COPY: u32 = 1 << 11;

pub(super) const fn call(
    number: u32,
    name: &'static str,
    classes: u32,
    traits: u32,
    args: &'static [Arg],
) -> Signature {
    Signature {
        sysno: Sysno(number),
        name,
        classes: Classes::from_bits(classes),
        args,
        transfers: traits & MOVES != 0,
        may_block: traits & BLOCKS != 0,
        waits: traits & WAITS == WAITS,
        never_returns: traits & NEVER_RETURNS != 0,
        audit: audit(traits),
    }
}

const fn audit(traits: u32) -> Option<Audit> {
    match traits & !(MOVES | WAITS | NEVER_RETURNS) {
        READ => Some(Audit::Read),
        WRITE => Some(Audit::Write),
        READV => Some(Audit::ReadV),
        WRITEV => Some(Audit::WriteV),
        PREADV => Some(Audit::PreadV),
        PWRITEV => Some(Audit::PwriteV),
        SENDFILE => Some(Audit::Sendfile),
        COPY => Some(Audit::CopyFileRange),
        _ => None,
    }
}

const fn arg(name: &'static str, kind: ArgKind) -> Arg {
    Arg { name, kind }
}

/// Describes an argument that is a number, flags or an id.
pub(super) const fn int(name: &'static str) -> Arg {
    arg(name, ArgKind::Int)
}

pub(super) const fn fd(name: &'static str) -> Arg {
    arg(name, ArgKind::Fd)
}

pub(super) const fn dirfd(name: &'static str) -> Arg {
    arg(name, ArgKind::DirFd)
}

/// Describes an argument that is an address whose memory is not read.
pub(super) const fn ptr(name: &'static str) -> Arg {
    arg(name, ArgKind::Address)
}

pub(super) const fn path(name: &'static str) -> Arg {
    arg(name, ArgKind::Path)
}

pub(super) const fn text(name: &'static str) -> Arg {
    arg(name, ArgKind::Str)
}

/// Describes an argument that points to an array of strings, terminated by NULL.
pub(super) const fn texts(name: &'static str) -> Arg {
    arg(name, ArgKind::StrArray)
}

pub(super) const fn by_command(name: &'static str) -> Arg {
    arg(name, ArgKind::ByCommand)
}

/// Describes an argument that points to `bytes` bytes that the kernel reads.
pub(super) const fn input(name: &'static str, bytes: u32) -> Arg {
    arg(name, ArgKind::In(Size::Fixed(bytes)))
}

/// Describes an argument that points to memory that the kernel reads. Its items have `scale` bytes;
/// argument `count` is their number.
pub(super) const fn input_by(name: &'static str, count: u8, scale: u32) -> Arg {
    arg(name, ArgKind::In(Size::Arg { arg: count, scale }))
}

/// Describes an argument that points to `bytes` bytes that the kernel writes.
pub(super) const fn out(name: &'static str, bytes: u32) -> Arg {
    arg(name, ArgKind::Out(Size::Fixed(bytes)))
}

/// Describes an argument that points to memory that the kernel writes. Its items have `scale`
/// bytes; argument `count` is their number.
pub(super) const fn out_by(name: &'static str, count: u8, scale: u32) -> Arg {
    arg(name, ArgKind::Out(Size::Arg { arg: count, scale }))
}

/// Describes an argument that points to memory that the kernel writes. Its items have `scale`
/// bytes; the result is their number, but at most argument `bound`.
pub(super) const fn out_got(name: &'static str, bound: u8, scale: u32) -> Arg {
    arg(name, ArgKind::Out(Size::Result { bound, scale }))
}

/// Describes an argument that points to memory that the kernel writes. Argument `len` points to its
/// 32-bit length in bytes.
pub(super) const fn out_len(name: &'static str, len: u8) -> Arg {
    arg(name, ArgKind::Out(Size::AtArg(len)))
}

/// Describes an argument that points to `bytes` bytes that the kernel reads and writes.
pub(super) const fn inout(name: &'static str, bytes: u32) -> Arg {
    arg(name, ArgKind::InOut(Size::Fixed(bytes)))
}

/// Describes an argument that points to memory that the kernel reads and writes. Its items have
/// `scale` bytes; argument `count` is their number.
pub(super) const fn inout_by(name: &'static str, count: u8, scale: u32) -> Arg {
    arg(name, ArgKind::InOut(Size::Arg { arg: count, scale }))
}

/// Describes an argument that points to an fd_set; argument `bits` is its number of bits.
pub(super) const fn fd_set(name: &'static str, bits: u8) -> Arg {
    arg(name, ArgKind::InOut(Size::Bits(bits)))
}
