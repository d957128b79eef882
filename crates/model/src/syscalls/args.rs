//! Kinds of arguments, and the size of the memory to which they point.

use crate::errno::Errno;

/// The time at which a piece of memory was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// The memory was read before the call.
    Entry,
    /// The memory was read after the call had returned.
    Exit,
}

/// An argument of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arg {
    /// Name of the argument in the manual.
    pub name: &'static str,
    /// Kind of the argument's value.
    pub kind: ArgKind,
}

/// The kind of an argument's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// A number: a length, flags, an id, a command.
    Int,
    /// A file descriptor (the low 32 bits).
    Fd,
    /// The directory a path starts from: a descriptor, or `AT_FDCWD` (-100).
    DirFd,
    /// An address whose memory is not read, since it says nothing worth keeping.
    Address,
    /// A path, terminated by NUL.
    Path,
    /// Another string, terminated by NUL.
    Str,
    /// An array of string addresses, terminated by NULL.
    StrArray,
    /// An address of memory that the kernel reads, of this size.
    In(Size),
    /// An address of memory that the kernel writes, of this size.
    Out(Size),
    /// An address of memory that the kernel reads and writes, of this size.
    InOut(Size),
    /// The kind depends on another argument; see [`crate::Signature::arg_kind`].
    ByCommand,
}

/// The size of the memory to which an argument points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The size is this number of bytes.
    Fixed(u32),
    /// The size is the value of argument `arg`, in items of `scale` bytes.
    Arg {
        /// Index of the argument with the number of items.
        arg: u8,
        /// Bytes of one item.
        scale: u32,
    },
    /// The size is the 32-bit number of bytes (a `socklen_t`) to which the argument with this index
    /// points, read at the same moment.
    AtArg(u8),
    /// The size is the call's result, in items of `scale` bytes, but at most the value of argument
    /// `bound`.
    Result {
        /// Index of the argument with the number of items for which there is room.
        bound: u8,
        /// Bytes of one item.
        scale: u32,
    },
    /// The size is the number of bits in the argument with this index, rounded up to whole 64-bit
    /// words.
    Bits(u8),
}

impl ArgKind {
    /// Returns true if the memory behind the argument should be read at `at`: input at entry,
    /// output at exit, updated memory at both.
    pub fn read_at(self, at: Moment) -> bool {
        match self {
            Self::Path | Self::Str | Self::StrArray | Self::In(_) => at == Moment::Entry,
            Self::Out(_) => at == Moment::Exit,
            Self::InOut(_) => true,
            Self::Int | Self::Fd | Self::DirFd | Self::Address | Self::ByCommand => false,
        }
    }

    /// Returns the bytes of memory behind the argument in a call with `args` that returned `result`
    /// (`None` at its entry); see [`Size::bytes`]. The number is bounded by the arguments alone.
    /// Returns `None` for output of a call that failed or has not returned: the kernel did not
    /// write it.
    pub fn bytes(self, args: &[u64; 6], result: Option<i64>, word: impl FnOnce(u64) -> Option<u32>) -> Option<u64> {
        let failed = result.is_none_or(|r| Errno::from_result(r).is_some());
        if failed && matches!(self, Self::Out(_)) { None } else { self.size()?.bytes(args, result, word) }
    }

    /// Returns the size of the memory behind the argument, or `None` if only the memory's content
    /// tells it (strings).
    pub fn size(self) -> Option<Size> {
        match self {
            Self::In(size) | Self::Out(size) | Self::InOut(size) => Some(size),
            _ => None,
        }
    }
}

impl Size {
    /// Returns the number of bytes in a call with `args` that returned `result` (`None` at its
    /// entry). The number is bounded by the arguments alone. `word` reads a 32-bit number of the
    /// target. Returns `None` if the size depends on the result of a call that failed or has not
    /// returned, or if `word` read nothing.
    pub fn bytes(self, args: &[u64; 6], result: Option<i64>, word: impl FnOnce(u64) -> Option<u32>) -> Option<u64> {
        let arg = |index: u8| args.get(usize::from(index)).copied();
        match self {
            Self::Fixed(bytes) => Some(bytes.into()),
            Self::Arg { arg: index, scale } => Some(arg(index)?.saturating_mul(scale.into())),
            Self::AtArg(index) => word(arg(index)?).map(u64::from),
            Self::Result { bound, scale } => {
                let got = u64::try_from(result?).ok()?;
                Some(got.min(arg(bound)?).saturating_mul(scale.into()))
            }
            Self::Bits(index) => Some((arg(index)? & 0xffff_ffff).div_ceil(64) * 8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_their_arguments() {
        let args = [3, 0x1000, 100, 4, 0, 0];
        let none = |_| None;
        assert_eq!(Size::Result { bound: 2, scale: 1 }.bytes(&args, Some(7), none), Some(7));
        assert_eq!(Size::Result { bound: 2, scale: 1 }.bytes(&args, Some(700), none), Some(100));
        assert_eq!(Size::Result { bound: 2, scale: 1 }.bytes(&args, Some(-9), none), None);
        assert_eq!(Size::Arg { arg: 3, scale: 16 }.bytes(&args, None, none), Some(64));
        assert_eq!(Size::AtArg(1).bytes(&args, None, |at| (at == 0x1000).then_some(16)), Some(16));
        assert_eq!(Size::Bits(2).bytes(&args, None, none), Some(16));
        assert_eq!(Size::Bits(4).bytes(&args, None, none), Some(0));
        assert_eq!(ArgKind::Out(Size::Fixed(144)).bytes(&args, Some(-2), none), None);
        assert_eq!(ArgKind::Out(Size::Fixed(144)).bytes(&args, Some(0), none), Some(144));
        assert_eq!(ArgKind::In(Size::Fixed(8)).bytes(&args, None, none), Some(8));
    }
}
