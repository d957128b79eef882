//! Calls that take a range, of a file or of memory: two that lie next to each other could have been one.

use super::read::ObservedCall;
use super::vocabulary::Source::{self, Arg};
use super::vocabulary::When::{self, NoBits, NotNull, OneOf};
use systoll_model::Moment;
use systoll_model::constants::*;

/// Where a range begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// In an argument.
    Arg(u8),
    /// In the number that an argument points to; where that is NULL, behind what the call before took.
    In(u8),
    /// Where the call before took the file to: the argument is where this one ends.
    Before(u8),
}

/// What may lie between two pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    /// Nothing: whatever the program does there may need the first of them.
    Nothing,
    /// What fills the file that they are about.
    Transfers,
}

/// A call that takes a range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranged {
    /// The system call's name.
    pub call: &'static str,
    /// All must hold.
    pub when: &'static [When],
    /// The argument that holds the descriptor of the file; none where it is a range of memory.
    pub file: Option<u8>,
    /// Where it begins.
    pub from: From,
    /// The argument that says how long it is.
    pub length: u8,
    /// Whether the result says how much of that was done.
    pub counts: bool,
    /// What has to be the same of both calls.
    pub alike: &'static [Source],
    /// What may lie between them.
    pub between: Between,
    /// A small piece, in bytes, at most.
    pub small: u64,
    /// Whether larger ones, and a few of them, are worth a remark.
    pub any: bool,
    /// What one call could well have taken, in bytes.
    pub much: u64,
    /// What it does, for a sentence.
    pub does: &'static str,
    /// What to do instead.
    pub instead: &'static str,
    /// What that gives up.
    pub gives_up: &'static str,
}

/// A range of memory of less than this is a small one, in bytes: what the call costs beside the crossing grows with it.
const MEMORY: u64 = 64 << 10;
/// Bytes of a page.
const PAGE: u64 = 4 << 10;
/// The same of what the disk gets.
const BLOCK: u64 = 64 << 10;
/// The same of what is copied inside the kernel.
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
    /// Only where all of these hold.
    const fn when(self, when: &'static [When]) -> Self {
        Self { when, ..self }
    }

    /// Larger ones are worth a remark.
    const fn any(self) -> Self {
        Self { any: true, ..self }
    }

    /// Where the range of a call begins, where `before` is the end of the one before; `None` where it was not read.
    pub(crate) fn begins(&self, call: &ObservedCall<'_>, before: Option<u64>) -> Option<u64> {
        match self.from {
            From::Arg(arg) => Some(call.arg(arg)),
            From::In(arg) if call.arg(arg) == 0 => Some(before.unwrap_or(0)),
            From::In(arg) => call.data(arg, Moment::Entry)?.first_chunk().map(|b| u64::from_le_bytes(*b)),
            From::Before(arg) => Some(before.unwrap_or(call.arg(arg))),
        }
    }

    /// Where it ends, where it begins there.
    pub(crate) fn ends(&self, call: &ObservedCall<'_>, begins: u64) -> u64 {
        match self.from {
            From::Before(arg) => call.arg(arg),
            // The kernel rounds lengths of memory up to whole pages.
            _ if self.file.is_none() => {
                begins.saturating_add(call.arg(self.length).div_ceil(PAGE).saturating_mul(PAGE))
            }
            _ => begins.saturating_add(call.arg(self.length)),
        }
    }

    /// Whether the call did all that it was asked to.
    pub(crate) fn is_whole(&self, call: &ObservedCall<'_>) -> bool {
        match call.call.result {
            Some(got) if self.counts => got > 0 && u64::try_from(got) == Ok(call.arg(self.length)),
            got => got.is_some_and(|got| got >= 0),
        }
    }
}

/// Advice that is taken at once, or lasts.
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

/// The table.
#[rustfmt::skip]
pub(crate) static RANGED: &[Ranged] = &[
    of_memory("madvise", &[Arg(2)]).when(&[OneOf(2, ADVICE)]).any(),
    of_memory("mprotect", &[Arg(2)]).any(),
    of_memory("pkey_mprotect", &[Arg(2), Arg(3)]),
    of_memory("munmap", &[]),
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
