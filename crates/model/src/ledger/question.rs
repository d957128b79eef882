//! The question that a call asks about an object, and its answer.

use crate::errno::Errno;
use crate::syscalls::constants::{AT_FDCWD, AT_STATX_DONT_SYNC, AT_SYMLINK_NOFOLLOW, O_EXCL, O_TRUNC};
use crate::syscalls::{Moment, Signature};
use crate::window::ArgData;
use foldhash::quality::FixedState;
use std::borrow::Cow;
use std::hash::{BuildHasher, Hash, Hasher};

/// Errors that do not answer the question.
const NO_ANSWER: [Errno; 5] = [Errno::EINTR, Errno::EBADF, Errno::EAGAIN, Errno::ENOMEM, Errno::EFAULT];
/// Byte ranges of the last access time in `struct stat` and `struct statx`. That time changes
/// without the file changing.
const STAT_ATIME: (usize, usize) = (72, 88);
const STATX_ATIME: (usize, usize) = (64, 80);

/// Way in which a path is resolved to the object in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// A link at the path's end is followed.
    Follows,
    /// A link at the path's end is itself the object.
    Stays,
    /// The question can be asked in one way only.
    Only,
}

impl Way {
    /// Returns the opposite way; `None` if the question has only one.
    pub(super) fn other(self) -> Option<Self> {
        match self {
            Self::Follows => Some(Self::Stays),
            Self::Stays => Some(Self::Follows),
            Self::Only => None,
        }
    }
}

/// A question that a call asks about an object, and the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// Path of the object; it is relative to the working directory if it does not begin with `/`.
    pub path: Cow<'a, str>,
    /// Hash of the question without the way: equal for calls that ask the same.
    pub(super) what: u64,
    /// The way in which the path is resolved.
    pub way: Way,
    /// Hash of the answer, by which answers are compared.
    pub(super) answer: u64,
}

impl<'a> Question<'a> {
    /// Returns true if calls with this signature can ask something about a path.
    pub fn is_asked_by(signature: &Signature) -> bool {
        QuestionKind::of(signature.name, &[0; 6]).is_some()
    }

    /// Returns the question and answer of a call with this signature. Returns `None` if it is about
    /// no known path, if it changed something, or if it was not answered.
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

    /// Does the same as [`Question::of`]; `given` returns the memory to which an argument pointed
    /// at a moment, if all of it is known.
    pub fn by(
        signature: &Signature,
        args: &[u64; 6],
        given: impl Fn(u8, Moment) -> Option<Cow<'a, [u8]>>,
        folder: Option<&str>,
        result: Option<i64>,
    ) -> Option<Self> {
        let asks = QuestionKind::of(signature.name, args)?;
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
            match asks.answer {
                AnswerParts::Success => {}
                AnswerParts::Result(arg) => (result, arg.and_then(|arg| given(arg, Moment::Exit))).hash(&mut answer),
                AnswerParts::Status(arg, (from, to)) => {
                    let status = given(arg, Moment::Exit)?;
                    (status.get(..from)?, status.get(to..)?).hash(&mut answer);
                }
            }
        }
        Some(Self { path, what: what.finish(), way: asks.way, answer: answer.finish() })
    }
}

/// Converts bytes to text. Text that is valid UTF-8 is not copied; checking it first is faster than
/// repairing it.
fn text(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::from),
        Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
    }
}

/// The parts of a successful call's outcome that are its answer.
#[derive(Clone, Copy)]
enum AnswerParts {
    /// The success alone is the answer.
    Success,
    /// The result and the memory of an argument are the answer.
    Result(Option<u8>),
    /// The memory of an argument, without the bytes between two offsets, is the answer.
    Status(u8, (usize, usize)),
}

struct QuestionKind {
    /// Name that all system calls with this question share.
    kind: &'static str,
    /// Index of the argument that is the path.
    path: u8,
    /// Bits that distinguish questions of the same kind.
    detail: u64,
    /// Index of an argument that names the property in question.
    named: Option<u8>,
    way: Way,
    answer: AnswerParts,
}

impl QuestionKind {
    fn of(name: &str, args: &[u64; 6]) -> Option<Self> {
        let arg = |at: usize| args.get(at).copied().unwrap_or(0);
        let way = |flags: u64| if flags & u64::from(AT_SYMLINK_NOFOLLOW) == 0 { Way::Follows } else { Way::Stays };
        let others = |flags: u64| flags & 0xffff_ffff & !u64::from(AT_SYMLINK_NOFOLLOW);
        let plain = |kind, path, answer| Self { kind, path, detail: 0, named: None, way: Way::Only, answer };
        let status =
            |path, out, way, detail| Self { detail, way, ..plain("stat", path, AnswerParts::Status(out, STAT_ATIME)) };
        Some(match name {
            "stat" => status(0, 1, Way::Follows, 0),
            "lstat" => status(0, 1, Way::Stays, 0),
            "newfstatat" => status(1, 2, way(arg(3)), others(arg(3))),
            "statx" => Self {
                // A call that accepts an outdated answer asks the same question.
                detail: (others(arg(2)) & !u64::from(AT_STATX_DONT_SYNC)) << 32 | arg(3) & 0xffff_ffff,
                way: way(arg(2)),
                ..plain("statx", 1, AnswerParts::Status(4, STATX_ATIME))
            },
            "access" => Self { detail: arg(1), ..plain("access", 0, AnswerParts::Success) },
            "faccessat" => Self { detail: arg(2), ..plain("access", 1, AnswerParts::Success) },
            "faccessat2" => Self { detail: arg(2) | arg(3) << 32, ..plain("access", 1, AnswerParts::Success) },
            "readlink" => plain("readlink", 0, AnswerParts::Result(Some(1))),
            "readlinkat" => plain("readlink", 1, AnswerParts::Result(Some(2))),
            "getxattr" => Self { named: Some(1), ..plain("getxattr", 0, AnswerParts::Result(Some(2))) },
            "lgetxattr" => Self { named: Some(1), ..plain("lgetxattr", 0, AnswerParts::Result(Some(2))) },
            "listxattr" => plain("listxattr", 0, AnswerParts::Result(Some(1))),
            "llistxattr" => plain("llistxattr", 0, AnswerParts::Result(Some(1))),
            "statfs" => plain("statfs", 0, AnswerParts::Result(None)),
            "open" => Self { detail: keeps(arg(1))?, ..plain("open", 0, AnswerParts::Success) },
            "openat" => Self { detail: keeps(arg(2))?, ..plain("open", 1, AnswerParts::Success) },
            _ => return None,
        })
    }
}

/// Returns a hasher with a fixed seed, so that the sample of objects, drawn by their names, is the
/// same in every run.
pub(super) fn hasher() -> impl Hasher {
    FixedState::with_seed(0).build_hasher()
}

/// Returns the flags of an `open` that keeps what is in the file, otherwise `None`.
fn keeps(flags: u64) -> Option<u64> {
    (flags & u64::from(O_TRUNC | O_EXCL) == 0).then_some(flags & 0xffff_ffff)
}
