//! Calls that apply to a range, of a file or of memory: calls for adjacent ranges could have been one (coalescing).

use super::read::ObservedCall;
use super::vocabulary::Source::{self, Arg};
use super::vocabulary::When::{self, NoBits, NotNull, OneOf};
use systoll_model::Moment;
use systoll_model::constants::*;

/// The place of a range's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// An argument.
    Arg(u8),
    /// The number that an argument points to; if that is NULL, the end of the range of the call before.
    In(u8),
    /// The end of the range of the call before; the argument holds the end of this one.
    Before(u8),
    /// An argument with the size so far; the second one holds the new size. A range of at most a sixteenth of the size
    /// is small: who grows by a share of the size calls seldom. Python's lists grow by an eighth, vectors by a half.
    Size(u8, u8),
}

/// Calls that may lie between two ranges that could be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    /// None: whatever the program does in between may need the first call.
    Nothing,
    /// Transfers that fill the file that both calls apply to.
    Transfers,
    /// Any: only the program sees what the calls do.
    Any,
}

/// A call that applies to a range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranged {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// The argument that holds the file's descriptor; `None` for a range of memory.
    pub file: Option<u8>,
    /// The beginning of the range.
    pub from: From,
    /// The argument that holds the length of the range, bytes.
    pub length: u8,
    /// True if the result is the number of bytes done.
    pub counts: bool,
    /// Values that must be equal in two calls on adjacent ranges.
    pub alike: &'static [Source],
    /// The calls that may lie between two calls on ranges that could be one.
    pub between: Between,
    /// Largest size of a small range, bytes.
    pub small: u64,
    /// True if larger ranges, and runs of a few ranges, are worth a remark.
    pub any: bool,
    /// Number of bytes that one call could well have covered.
    pub much: u64,
    /// The waste, for a sentence: a verb and its object.
    pub does: &'static str,
    /// The advice, for a sentence.
    pub instead: &'static str,
    /// The drawback of the advice; empty if there is none.
    pub gives_up: &'static str,
}

/// Largest size of a small range of memory, bytes: in a larger one the work outweighs the crossing.
const MEMORY: u64 = 64 << 10;
/// Size of a page, bytes.
const PAGE: u64 = 4 << 10;
/// Largest size of a small range that is flushed to the disk, bytes.
const BLOCK: u64 = 64 << 10;
/// Largest size of a small range that the kernel copies, bytes.
const COPIED: u64 = 8 << 10;

const fn of_memory(call: &'static str, alike: &'static [Source]) -> Ranged {
    Ranged {
        call,
        when: &[],
        file: None,
        from: From::Arg(0),
        length: 1,
        counts: false,
        alike,
        between: Between::Nothing,
        small: MEMORY,
        any: false,
        much: u64::MAX,
        does: "does the same to one small range of memory after the other, which lie next to each other",
        instead: "one call for the whole range",
        gives_up: "",
    }
}

const fn of_file(call: &'static str, alike: &'static [Source]) -> Ranged {
    Ranged {
        file: Some(0),
        from: From::Arg(1),
        length: 2,
        between: Between::Transfers,
        small: BLOCK,
        much: 1 << 20,
        does: "tells the kernel of one small range of a file after the other, which lie next to each other",
        instead: "one call for a megabyte or more",
        ..of_memory(call, alike)
    }
}

const fn copies(call: &'static str, file: u8, from: u8, length: u8, alike: &'static [Source]) -> Ranged {
    Ranged {
        file: Some(file),
        from: From::In(from),
        length,
        counts: true,
        between: Between::Nothing,
        small: COPIED,
        does: "has the kernel copy one small piece of a file after the other",
        instead: "ask for all that is left, and again for what a short count leaves",
        ..of_file(call, alike)
    }
}

const fn flushes(call: &'static str, alike: &'static [Source]) -> Ranged {
    Ranged {
        does: "has the kernel write one small range after the other to the disk, which lie next to each other",
        instead: "let a few megabytes come together, then one call for them",
        gives_up: "what was written last reaches the disk later",
        ..of_file(call, alike)
    }
}

impl Ranged {
    /// Returns the line with these conditions.
    const fn when(self, when: &'static [When]) -> Self {
        Self { when, ..self }
    }

    /// Returns the line with remarks about larger ranges.
    const fn any(self) -> Self {
        Self { any: true, ..self }
    }

    /// Returns the beginning of a call's range; `before` is the end of the range before. Returns
    /// `None` if the beginning was not read.
    pub(crate) fn begins(&self, call: &ObservedCall<'_>, before: Option<u64>) -> Option<u64> {
        match self.from {
            From::Arg(arg) => Some(call.arg(arg)),
            From::In(arg) if call.arg(arg) == 0 => Some(before.unwrap_or(0)),
            From::In(arg) => call.data(arg, Moment::Entry)?.first_chunk().map(|b| u64::from_le_bytes(*b)),
            From::Before(arg) => Some(before.unwrap_or(call.arg(arg))),
            From::Size(arg, _) => Some(call.arg(arg)),
        }
    }

    /// Returns true if the range is what a block of memory gains: each block has its own, and all of one run need not
    /// be of the same.
    pub(crate) fn is_of_size(&self) -> bool {
        matches!(self.from, From::Size(..))
    }

    /// Returns true if a range that begins at `begins` is small.
    pub(crate) fn is_small(&self, begins: u64, length: u64) -> bool {
        match self.from {
            From::Size(..) => length <= begins / 16,
            _ => length <= self.small,
        }
    }

    /// Returns the end of a call's range that begins at `begins`.
    pub(crate) fn ends(&self, call: &ObservedCall<'_>, begins: u64) -> u64 {
        match self.from {
            From::Before(arg) | From::Size(_, arg) => call.arg(arg),
            // The kernel rounds lengths of memory up to whole pages.
            _ if self.file.is_none() => {
                begins.saturating_add(call.arg(self.length).div_ceil(PAGE).saturating_mul(PAGE))
            }
            _ => begins.saturating_add(call.arg(self.length)),
        }
    }

    /// Returns true if the call did all that it was asked to do.
    pub(crate) fn is_whole(&self, call: &ObservedCall<'_>) -> bool {
        match call.call.result {
            Some(got) if self.counts => got > 0 && u64::try_from(got) == Ok(call.arg(self.length)),
            got => got.is_some_and(|got| got >= 0),
        }
    }
}

/// Advice that takes effect at once, or stays in force.
const ADVICE: &[u32] = &[
    MADV_NORMAL,
    MADV_RANDOM,
    MADV_SEQUENTIAL,
    MADV_DONTNEED,
    MADV_REMOVE,
    MADV_DONTFORK,
    MADV_DOFORK,
    MADV_MERGEABLE,
    MADV_UNMERGEABLE,
    MADV_HUGEPAGE,
    MADV_NOHUGEPAGE,
    MADV_DONTDUMP,
    MADV_DODUMP,
];

/// The calls that apply to ranges.
#[rustfmt::skip]
pub(crate) static RANGED: &[Ranged] = &[
    of_memory("madvise", &[Arg(2)]).when(&[OneOf(2, ADVICE)]).any(),
    // Reading ahead in pieces may keep pace with the work, so that it is a remark at most, whatever
    // the length.
    Ranged { small: 0, ..of_memory("madvise", &[Arg(2)]).when(&[OneOf(2, &[MADV_WILLNEED])]).any() },
    of_memory("mprotect", &[Arg(2)]).any(),
    of_memory("pkey_mprotect", &[Arg(2), Arg(3)]),
    of_memory("munmap", &[]),
    Ranged {
        from: From::Size(1, 2),
        between: Between::Any,
        does: "makes a block of memory longer by a little, again and again",
        instead: "double the room, or ask for what it will need at first",
        gives_up: "up to half of the room is unused",
        ..of_memory("mremap", &[])
    },
    of_memory("mlock", &[]).any(),
    of_memory("mlock2", &[Arg(2)]),
    of_memory("munlock", &[]),
    of_memory("mincore", &[]),
    of_memory("mbind", &[Arg(2), Arg(5)]),
    of_memory("mseal", &[Arg(2)]),
    Ranged { file: None, from: From::Arg(0), length: 1, between: Between::Nothing, ..flushes("msync", &[Arg(2)]).any() },
    flushes("sync_file_range", &[Arg(3)]),
    of_file("fadvise64", &[Arg(3)]),
    of_file("readahead", &[]),
    Ranged {
        from: From::Arg(2), length: 3,
        does: "makes room in a file for one small range after the other",
        instead: "make room for a few megabytes at a time, and cut the file at the end",
        ..of_file("fallocate", &[Arg(1)]).when(&[NoBits(1, !1)])
    },
    Ranged {
        from: From::Before(1), length: 1,
        does: "makes a file longer by a little, again and again",
        instead: "write: the file grows by what is written; or give it the size it will have once",
        ..of_file("ftruncate", &[])
    },
    copies("sendfile", 1, 2, 3, &[Arg(0)]),
    copies("copy_file_range", 0, 1, 4, &[Arg(2)]),
    copies("splice", 0, 1, 4, &[Arg(2)]).when(&[NotNull(1)]),
];
