//! What arguments are, and how much memory they point to.

use crate::errno::Errno;

/// When a piece of memory was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// Before the call.
    Entry,
    /// After the call returned.
    Exit,
}

/// One argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arg {
    /// Its name in the manual.
    pub name: &'static str,
    /// What it is.
    pub kind: ArgKind,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// A number: a length, flags, an id, a command.
    Int,
    /// A file descriptor (the low 32 bits).
    Fd,
    /// The directory a path starts from: a descriptor, or `AT_FDCWD` (-100).
    DirFd,
    /// An address that is only named, or whose memory says nothing worth keeping.
    Address,
    /// A path, ended by NUL.
    Path,
    /// Another string, ended by NUL.
    Str,
    /// An array of string addresses, ended by NULL.
    StrArray,
    /// Memory the kernel reads.
    In(Size),
    /// Memory the kernel writes.
    Out(Size),
    /// Memory the kernel reads and writes.
    InOut(Size),
    /// Depends on another argument; see [`crate::Signature::arg_kind`].
    ByCommand,
}

/// How many bytes an argument points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// So many.
    Fixed(u32),
    /// As many items of `scale` bytes as the value of argument `arg` says.
    Arg {
        /// The argument that says how many.
        arg: u8,
        /// Bytes of one.
        scale: u32,
    },
    /// As many bytes as the 32-bit number says that argument `0` points to (a `socklen_t`),
    /// read at the same moment.
    AtArg(u8),
    /// As many items of `scale` bytes as the result says, at most the value of argument `bound`.
    Result {
        /// The argument that says how many there is room for.
        bound: u8,
        /// Bytes of one.
        scale: u32,
    },
    /// Whole 64-bit words with at least as many bits as the value of argument `0` says.
    Bits(u8),
}

impl ArgKind {
    /// Whether there is memory behind it to be read at `at`: input at entry, output at exit,
    /// what is updated at both.
    pub fn read_at(self, at: Moment) -> bool {
        match self {
            Self::Path | Self::Str | Self::StrArray | Self::In(_) => at == Moment::Entry,
            Self::Out(_) => at == Moment::Exit,
            Self::InOut(_) => true,
            Self::Int | Self::Fd | Self::DirFd | Self::Address | Self::ByCommand => false,
        }
    }

    /// Bytes of memory behind it, not bounded by anything but the arguments, in a call made with
    /// `args` that returned `result` (`None` at its entry); see [`Size::bytes`]. `None` for
    /// output of a call that failed or has not returned: what is there is not the kernel's.
    pub fn bytes(self, args: &[u64; 6], result: Option<i64>, word: impl FnOnce(u64) -> Option<u32>) -> Option<u64> {
        let failed = result.is_none_or(|r| Errno::from_result(r).is_some());
        if failed && matches!(self, Self::Out(_)) { None } else { self.size()?.bytes(args, result, word) }
    }

    /// How much memory is behind it, where that is not told by the memory itself (strings).
    pub fn size(self) -> Option<Size> {
        match self {
            Self::In(size) | Self::Out(size) | Self::InOut(size) => Some(size),
            _ => None,
        }
    }
}

impl Size {
    /// Bytes there, not bounded by anything but the arguments, for a call made with `args` that returned `result` (`None` at its entry).
    /// `word` reads a 32-bit number of the target. `None` where it can't be told: a size
    /// that the result says, of a call that failed or has not returned, or `word` gave nothing.
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
