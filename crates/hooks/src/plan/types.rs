//! The parts of a plan. Addresses are the file's own (ELF vaddr), never a process's.

use iced_x86::{Decoder, DecoderOptions};
use thiserror::Error;

/// The plan of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Every `syscall` instruction found, by rising address, whether or not it can be hooked.
    pub sites: Vec<Site>,
    /// Entries of vDSO functions that answer without a system call, by rising address; empty for every other file.
    pub entries: Vec<Entry>,
    /// First instructions (behind an `endbr64`) of `_Unwind_Find_FDE`, if the file has that function: the unwinder of
    /// GCC's run-time library finds code by it.
    pub unwinder: Option<Span>,
    /// Address of a signal's return that unwinders recognise only by its bytes, and that is hooked all the same,
    /// because it is unknown which handlers return there: the unwinders must be told of it.
    pub signal_return: Option<u64>,
    /// The mapped segments, by rising address.
    pub segments: Vec<Segment>,
    /// Sites at which calls can't be counted (neither [`Site::entry_span`] nor [`Site::wrap_span`]), with the reason,
    /// by rising address. Calls by `int $0x80` are no sites.
    pub unplanned: Vec<Unplanned>,
    /// An instruction by which code of the file uses the gs segment for itself: counters accessed by gs would overwrite
    /// its memory, so the process must be watched in another way. It is searched only in files that need a plan.
    pub uses_gs: Option<Evidence>,
    /// True if the file is built with ThreadSanitizer or MemorySanitizer. Their shadow memory lies at addresses
    /// computed from the program's own: they would take our memory for shadow memory, or end the program because the
    /// range is not free.
    pub has_shadow_memory: bool,
}

/// An instruction of the file that shows a property of the program, such as that it uses gs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Address of the instruction.
    pub address: u64,
    /// All bytes of the instruction.
    pub bytes: Vec<u8>,
}

impl std::fmt::Display for Evidence {
    /// Writes its name, its bytes and its address in the file.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let instruction = Decoder::with_ip(64, &self.bytes, self.address, DecoderOptions::NONE).decode();
        write!(f, "{}", format!("{:?}", instruction.mnemonic()).to_lowercase())?;
        for (n, byte) in self.bytes.iter().enumerate() {
            write!(f, "{}{byte:02x}", if n == 0 { " (" } else { " " })?;
        }
        write!(f, ") at {:#x}", self.address)
    }
}

/// A `syscall` instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Address of the two bytes `0f 05`.
    pub address: u64,
    /// The system call's number, if it is a constant on every path to here.
    pub number: Option<u32>,
    /// Instructions before the call that a jump may replace. Run them first, count behind them, and continue at
    /// [`Span::end`]: from there to the call no instruction reads rcx, r11 or flags, or writes rax if `number` is
    /// unknown, so the hook may use these.
    pub entry_span: Option<Span>,
    /// Instructions behind the call that a jump may replace; starts at `address + 2`. The kernel has just destroyed rcx
    /// and r11, and nothing reads flags across the call.
    pub return_span: Option<Span>,
    /// True if other code jumps to `address + 2`, so that a hook there may run without the call.
    pub return_is_target: bool,
    /// For a call at the end of its function (`syscall; ret`), behind which nothing can be hooked: instructions that a
    /// jump may replace at the only place the function returns to. Other code may get there too; rcx, r11 and flags are
    /// free.
    pub returned: Option<Span>,
    /// A window that contains the call itself, for calls that must be made in our code: clone's family, execve's, mmap,
    /// and sites whose number is unknown. Also for calls without `return_span` that may be made there, because they
    /// never wait, or because no unwinder gets past them anyway. It may share bytes with this site's own `entry_span`
    /// and `return_span` (it is used instead of them), never with another site's.
    pub wrap_span: Option<Span>,
    /// Distance of the frame from rsp (CFA − rsp) at the call.
    pub cfa: Option<CfaOffset>,
    /// Distance of the frame from rsp (CFA − rsp) at the end of `entry_span`, where its hook counts.
    pub hook_cfa: Option<CfaOffset>,
    /// Distance of the frame from rbp (CFA − rbp) at the call and at its hook, if the frame lies at no constant
    /// distance from rsp (the stack was aligned, or memory allocated on it).
    pub from_rbp: Option<CfaOffset>,
    /// True if flags set before the call are read behind it, so that the counting code must keep them: then
    /// `entry_span` ends at the call, `number` is known and in eax, and nothing is hooked behind.
    pub keeps_flags: bool,
    /// Ends of the functions that return to this call, if debuggers and unwinders recognise it by its bytes, so that
    /// nothing may be written over them. Each ends with a `ret` and is replaced by a jump; the call has no other hook.
    pub exits: Vec<Span>,
}

impl Site {
    /// Creates a site at `address` that can't be hooked.
    #[must_use]
    pub fn new(address: u64, number: Option<u32>) -> Self {
        Self {
            address,
            number,
            entry_span: None,
            return_span: None,
            return_is_target: false,
            returned: None,
            wrap_span: None,
            cfa: None,
            hook_cfa: None,
            from_rbp: None,
            keeps_flags: false,
            exits: Vec::new(),
        }
    }

    /// Returns all spans that a jump may replace.
    pub fn spans(&self) -> impl Iterator<Item = &Span> {
        [&self.entry_span, &self.return_span, &self.wrap_span, &self.returned].into_iter().flatten().chain(&self.exits)
    }
}

/// Bytes of a near jump.
pub(crate) const JUMP_LEN: u64 = 5;
/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// Returns true if a jump at `start` would lie across two pages.
pub(super) fn crosses_pages(start: u64) -> bool {
    start / PAGE != start.saturating_add(JUMP_LEN - 1) / PAGE
}

/// Whole instructions, at least five bytes, that a jump may replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Address of the first instruction.
    pub start: u64,
    /// The file's bytes: instructions, then padding.
    pub bytes: Vec<u8>,
    /// Number of instructions that must be run elsewhere.
    pub instructions: usize,
    /// Bytes at the end of `bytes` that are never run (filling behind an instruction after which nothing continues):
    /// they are overwritten, but not displaced.
    pub padding: usize,
}

impl Span {
    /// Returns the address of the first byte behind the span, padding included.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }

    /// Returns the address behind the last instruction, at which a displaced copy continues.
    #[must_use]
    pub fn resume(&self) -> u64 {
        self.end().saturating_sub(self.padding as u64)
    }

    /// Returns the displaced instructions, without padding.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        self.bytes.get(..self.bytes.len().saturating_sub(self.padding)).unwrap_or_default()
    }

    /// Returns true if a near jump fits into the span.
    #[must_use]
    pub fn holds_a_jump(&self) -> bool {
        self.bytes.len() >= 5
    }

    /// Returns true if the jump over the span would lie across two pages. No single write puts such a jump there, and
    /// a process that runs may be left with half of it.
    #[must_use]
    pub fn jump_crosses_pages(&self) -> bool {
        crosses_pages(self.start)
    }

    /// Returns true if the two spans share a byte.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end() && other.start < self.end()
    }
}

/// Distance of the canonical frame address above rsp (or rbp), in bytes, at one instruction; the return address is the
/// word below it. It comes from call frame information, or from following the function's changes of these registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CfaOffset(pub u32);

/// The entry of a vDSO function that rarely makes a system call, and is therefore hooked itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name of the function.
    pub function: VdsoFunction,
    /// Address of the function, by its symbol.
    pub address: u64,
    /// First instructions of the function (behind an `endbr64`). Only rax and r11 are free here.
    pub span: Span,
}

/// vDSO functions that programs call instead of system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VdsoFunction {
    /// The function `__vdso_time`.
    Time,
    /// The function `__vdso_clock_gettime`.
    ClockGettime,
    /// The function `__vdso_gettimeofday`.
    Gettimeofday,
    /// The function `__vdso_getcpu`.
    Getcpu,
}

impl VdsoFunction {
    /// Returns the name of the system call that the function replaces.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::ClockGettime => "clock_gettime",
            Self::Gettimeofday => "gettimeofday",
            Self::Getcpu => "getcpu",
        }
    }
}

/// A mapped part of the file (PT_LOAD).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address of the segment (ELF vaddr).
    pub vaddr: u64,
    /// Size in memory, in bytes.
    pub memory_size: u64,
    /// Offset of its bytes in the file.
    pub file_offset: u64,
    /// Size in the file, in bytes.
    pub file_size: u64,
    /// True if the segment is executable (PF_X).
    pub executable: bool,
}

/// A site that cannot be counted by this plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unplanned {
    /// Address of the `syscall`.
    pub address: u64,
    /// Reason why the site cannot be counted.
    pub why: UnpatchableReason,
}

/// The reason why a site can't be hooked before its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnpatchableReason {
    /// Code jumps into every possible window, or to the call itself.
    BranchTarget,
    /// An instruction there can't be run elsewhere (a call, a landing pad, another `syscall`).
    Fixed,
    /// There are too few bytes before the call that belong to it.
    TooShort,
    /// Something between the hook and the call needs rcx, r11, flags or rax.
    RegistersInUse,
    /// Flags set before the call are read behind it, and the call must be wrapped or its number is unknown.
    FlagsInUse,
    /// Every possible window is taken by a neighbouring site.
    ReservedByOther,
    /// Nothing says that this is code, the code around it contradicts the decoding, or its function may jump to unknown
    /// places.
    NotSurelyCode,
    /// The instruction is an `int $0x80`: it uses another table of numbers, and is too short for a jump.
    Int80,
    /// Unwinders recognise the call by its bytes only.
    KnownByBytes,
}

/// The reason why a file has no plan.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum PlanError {
    /// The file is not an ELF file, or is damaged.
    #[error("not an ELF file, or a damaged one")]
    Malformed,
    /// The file is for another architecture, or for 32 bits.
    #[error("not a program for x86-64")]
    Foreign,
    /// The code is so large that analysing it would take too long.
    #[error("more code than is looked at ({0} MiB)")]
    TooLarge(u64),
}
