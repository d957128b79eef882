//! What a call asks, of which object, and what the answer was.

use crate::errno::Errno;
use crate::syscalls::Moment;
use crate::syscalls::Signature;
use crate::syscalls::constants::{
    AT_FDCWD, AT_STATX_DONT_SYNC, AT_SYMLINK_NOFOLLOW, O_CREAT, O_RDWR, O_TRUNC, O_WRONLY,
};
use crate::window::ArgData;
use foldhash::quality::FixedState;
use std::borrow::Cow;
use std::hash::{BuildHasher, Hash, Hasher};

/// Errors that say nothing about what was asked.
const NO_ANSWER: [Errno; 5] = [Errno::EINTR, Errno::EBADF, Errno::EAGAIN, Errno::ENOMEM, Errno::EFAULT];
/// Where `struct stat` and `struct statx` have the time of the last access, which moves by itself.
const STAT_ATIME: (usize, usize) = (72, 88);
const STATX_ATIME: (usize, usize) = (64, 80);

/// By which way a path is followed to what is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// To what a link at its end points to.
    Follows,
    /// To the link itself.
    Stays,
    /// The question has no such two ways.
    Only,
}

impl Way {
    /// The other of two.
    pub(super) fn other(self) -> Option<Self> {
        match self {
            Self::Follows => Some(Self::Stays),
            Self::Stays => Some(Self::Follows),
            Self::Only => None,
        }
    }
}

/// What a call asked of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// The object's path; relative to the working directory where it does not begin with `/`.
    pub path: Cow<'a, str>,
    /// The same for calls that ask the same, but for the way.
    pub(super) what: u64,
    /// By which way.
    pub way: Way,
    /// What the answer was, as a figure to compare.
    pub(super) answer: u64,
}

impl<'a> Question<'a> {
    /// Whether calls with this signature may ask something of a path.
    pub fn is_asked_by(signature: &Signature) -> bool {
        Asks::of(signature.name, &[0; 6]).is_some()
    }

    /// What a call with this signature asked of which path, and how it was answered. `None`: it is about no path that
    /// is known, it made or changed something, or it was not answered.
    pub fn of(
        signature: &Signature,
        args: &[u64; 6],
        data: &'a [ArgData],
        folder: Option<&str>,
        result: Option<i64>,
    ) -> Option<Self> {
        let whole = |arg: u8, at: Moment| data.iter().find(|d| d.arg == arg && d.at == at && !d.cut);
        Self::by(signature, args, |arg, at| whole(arg, at).map(|d| Cow::from(&d.bytes)), folder, result)
    }

    /// The same; `given` tells what an argument pointed to at a moment, where all of it is known.
    pub fn by(
        signature: &Signature,
        args: &[u64; 6],
        given: impl Fn(u8, Moment) -> Option<Cow<'a, [u8]>>,
        folder: Option<&str>,
        result: Option<i64>,
    ) -> Option<Self> {
        let asks = Asks::of(signature.name, args)?;
        let result = result?;
        let errno = Errno::from_result(result);
        if errno.is_some_and(|errno| NO_ANSWER.contains(&errno)) {
            return None;
        }
        let text = text(given(asks.path, Moment::Entry).filter(|path| !path.is_empty())?);
        let starts = asks.path > 0 && args.first().is_some_and(|fd| *fd as u32 as i32 != AT_FDCWD);
        let path = match folder {
            _ if text.starts_with('/') || !starts => text,
            Some(folder) if folder.starts_with('/') => format!("{}/{text}", folder.trim_end_matches('/')).into(),
            _ => return None,
        };
        let mut what = hasher();
        (asks.kind, asks.detail, asks.named.and_then(|arg| given(arg, Moment::Entry))).hash(&mut what);
        let mut answer = hasher();
        errno.map(|errno| errno.0).hash(&mut answer);
        if errno.is_none() {
            match asks.told {
                Told::That => {}
                Told::Result(arg) => (result, arg.and_then(|arg| given(arg, Moment::Exit))).hash(&mut answer),
                Told::Status(arg, (from, to)) => {
                    let status = given(arg, Moment::Exit)?;
                    (status.get(..from)?, status.get(to..)?).hash(&mut answer);
                }
            }
        }
        Some(Self { path, what: what.finish(), way: asks.way, answer: answer.finish() })
    }
}

/// Bytes as text; what is text already is not copied, and found to be so faster than by what repairs it.
fn text(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::from),
        Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
    }
}

/// What tells one answer from another, where there was no error.
#[derive(Clone, Copy)]
enum Told {
    /// That there was none.
    That,
    /// The result, and what an argument points to.
    Result(Option<u8>),
    /// What an argument points to, but for what lies between two offsets.
    Status(u8, (usize, usize)),
}

struct Asks {
    /// The same for system calls that ask the same.
    kind: &'static str,
    /// The argument with the path.
    path: u8,
    /// Bits that make it another question.
    detail: u64,
    /// An argument that names what is asked for.
    named: Option<u8>,
    way: Way,
    told: Told,
}

impl Asks {
    fn of(name: &str, args: &[u64; 6]) -> Option<Self> {
        let arg = |at: usize| args.get(at).copied().unwrap_or(0);
        let way = |flags: u64| if flags & u64::from(AT_SYMLINK_NOFOLLOW) == 0 { Way::Follows } else { Way::Stays };
        let others = |flags: u64| flags & 0xffff_ffff & !u64::from(AT_SYMLINK_NOFOLLOW);
        let plain = |kind, path, told| Self { kind, path, detail: 0, named: None, way: Way::Only, told };
        let status =
            |path, out, way, detail| Self { detail, way, ..plain("stat", path, Told::Status(out, STAT_ATIME)) };
        Some(match name {
            "stat" => status(0, 1, Way::Follows, 0),
            "lstat" => status(0, 1, Way::Stays, 0),
            "newfstatat" => status(1, 2, way(arg(3)), others(arg(3))),
            "statx" => Self {
                // That an older answer will do does not make it another question.
                detail: (others(arg(2)) & !u64::from(AT_STATX_DONT_SYNC)) << 32 | arg(3) & 0xffff_ffff,
                way: way(arg(2)),
                ..plain("statx", 1, Told::Status(4, STATX_ATIME))
            },
            "access" => Self { detail: arg(1), ..plain("access", 0, Told::That) },
            "faccessat" => Self { detail: arg(2), ..plain("access", 1, Told::That) },
            "faccessat2" => Self { detail: arg(2) | arg(3) << 32, ..plain("access", 1, Told::That) },
            "readlink" => plain("readlink", 0, Told::Result(Some(1))),
            "readlinkat" => plain("readlink", 1, Told::Result(Some(2))),
            "getxattr" => Self { named: Some(1), ..plain("getxattr", 0, Told::Result(Some(2))) },
            "lgetxattr" => Self { named: Some(1), ..plain("lgetxattr", 0, Told::Result(Some(2))) },
            "listxattr" => plain("listxattr", 0, Told::Result(Some(1))),
            "llistxattr" => plain("llistxattr", 0, Told::Result(Some(1))),
            "statfs" => plain("statfs", 0, Told::Result(None)),
            "open" => Self { detail: reads(arg(1))?, ..plain("open", 0, Told::That) },
            "openat" => Self { detail: reads(arg(2))?, ..plain("open", 1, Told::That) },
            _ => return None,
        })
    }
}

/// The same in every run: what is told of objects that are sampled by their names is too.
pub(super) fn hasher() -> impl Hasher {
    FixedState::with_seed(0).build_hasher()
}

/// The flags of an opening that only reads.
fn reads(flags: u64) -> Option<u64> {
    (flags & u64::from(O_WRONLY | O_RDWR | O_CREAT | O_TRUNC) == 0).then_some(flags & 0xffff_ffff)
}
