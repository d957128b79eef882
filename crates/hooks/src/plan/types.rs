//! What a plan consists of. Addresses are the file's own (ELF vaddr), never a process's.

use iced_x86::{Decoder, DecoderOptions};
use thiserror::Error;

/// Everything found in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Every `syscall` instruction found, by rising address, whether or not it can be hooked.
    pub sites: Vec<Site>,
    /// Entries of functions of the vDSO that answer without a system call, by rising address;
    /// empty for every other file.
    pub entries: Vec<Entry>,
    /// First instructions (behind an `endbr64`) of `_Unwind_Find_FDE`, where the file has that
    /// function: by it the unwinder of GCC's run-time library looks code up.
    pub unwinder: Option<Span>,
    /// First byte of a signal's return that unwinders know by its bytes alone and that is hooked all the
    /// same, because it is not known what returns there: they must be told of it in another way.
    pub signal_return: Option<u64>,
    /// What the file has mapped, by rising address.
    pub segments: Vec<Segment>,
    /// Sites that this plan does not let be counted (neither [`Site::entry_span`] nor
    /// [`Site::wrap_span`]), and why, by rising address; calls made the 32-bit way are no sites.
    pub unplanned: Vec<Unplanned>,
    /// An instruction by which code of the file uses the gs segment for itself, if there is one:
    /// counters reached by gs would land in its memory, so the process must be watched in another
    /// way. Only files that need a plan are looked at.
    pub uses_gs: Option<Evidence>,
    /// Whether the file was built to keep notes on every byte of memory at addresses it works out
    /// (ThreadSanitizer, MemorySanitizer): it takes ours for them, or ends where anything else is there.
    pub guards_memory: bool,
}

/// The instruction that something is concluded from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Where it lies.
    pub address: u64,
    /// The whole of it.
    pub bytes: Vec<u8>,
}

impl std::fmt::Display for Evidence {
    /// What it is called, its bytes and its place in the file.
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
    /// Of the two bytes `0f 05`.
    pub address: u64,
    /// The system call's number, where it is a constant on every way that leads here.
    pub number: Option<u32>,
    /// Instructions before the call that a jump may replace. Run first and count behind them,
    /// then continue at [`Span::end`]: from there on no instruction up to the call reads rcx, r11
    /// or flags, or writes rax where `number` is unknown, so these may be used freely.
    pub entry_span: Option<Span>,
    /// Instructions behind the call that a jump may replace; starts at `address + 2`. The kernel
    /// has just destroyed rcx and r11, and nothing reads flags across the call.
    pub return_span: Option<Span>,
    /// Whether other code jumps to `address + 2`, so that a hook there may run without the call.
    pub return_is_target: bool,
    /// Where the call is all that its function ends with (`syscall; ret`), so that nothing can be
    /// hooked behind it: instructions a jump may replace at the only place the function is called
    /// from, where it returns to. Other code may come there too; rcx, r11 and flags are free.
    pub returned: Option<Span>,
    /// A window that holds the call itself, for calls that must be wrapped: clone's family,
    /// execve's, mmap, and sites whose number is unknown; also for calls that may be wrapped
    /// because they never wait, or because no unwinder gets past them anyway, where there is no `return_span`. May share bytes with this site's own
    /// `entry_span` and `return_span` (it is used instead of them), never with another site's.
    pub wrap_span: Option<Span>,
    /// CFA − rsp at the call.
    pub cfa: Option<CfaOffset>,
    /// CFA − rsp at the end of `entry_span`, where its hook counts.
    pub hook_cfa: Option<CfaOffset>,
    /// CFA − rbp at the call and where its hook counts, where the frame does not lie at a constant
    /// distance from rsp (the stack was aligned, or memory taken from it).
    pub from_rbp: Option<CfaOffset>,
    /// Whether flags set before the call are read behind it, so that the counting code must keep them:
    /// `entry_span` then ends at the call, `number` is known and in eax, and nothing is hooked behind.
    pub keeps_flags: bool,
    /// Ends of the functions that return to this call, where debuggers and unwinders know it by its
    /// bytes and nothing may be written over them: each ends with a `ret`, and is replaced by a jump. It
    /// is hooked nowhere else then.
    pub exits: Vec<Span>,
}

impl Site {
    /// A call at `address` that can't be hooked.
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

    /// Everything a jump may replace.
    pub fn spans(&self) -> impl Iterator<Item = &Span> {
        [&self.entry_span, &self.return_span, &self.wrap_span, &self.returned].into_iter().flatten().chain(&self.exits)
    }
}

/// Whole instructions, five bytes or more, that a jump may replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Address of the first instruction.
    pub start: u64,
    /// The file's bytes: instructions, then padding.
    pub bytes: Vec<u8>,
    /// How many instructions must be run in another place.
    pub instructions: usize,
    /// Bytes at the end of `bytes` that are never run (filling behind an instruction that does
    /// not go on to the next): overwritten, not displaced.
    pub padding: usize,
}

impl Span {
    /// Address of the first byte behind it, padding included.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }

    /// Address behind the last instruction: where a displaced copy goes on.
    #[must_use]
    pub fn resume(&self) -> u64 {
        self.end().saturating_sub(self.padding as u64)
    }

    /// The displaced instructions, without padding.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        self.bytes.get(..self.bytes.len().saturating_sub(self.padding)).unwrap_or_default()
    }

    /// Whether a near jump fits.
    #[must_use]
    pub fn holds_a_jump(&self) -> bool {
        self.bytes.len() >= 5
    }

    /// Whether the two share a byte.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end() && other.start < self.end()
    }
}

/// How far the canonical frame address lies above rsp (or rbp), in bytes, at one instruction: the
/// return address is the word below it. Known by call frame information, else by following what
/// the function does to these registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CfaOffset(pub u32);

/// The entry of a vDSO function that seldom makes a system call, and so is hooked itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which.
    pub function: VdsoFunction,
    /// Of the function, as its symbol says.
    pub address: u64,
    /// Its first instructions (behind an `endbr64`). Only rax and r11 are free here.
    pub span: Span,
}

/// Functions of the vDSO that programs call in place of system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VdsoFunction {
    /// `__vdso_time`
    Time,
    /// `__vdso_clock_gettime`
    ClockGettime,
    /// `__vdso_gettimeofday`
    Gettimeofday,
    /// `__vdso_getcpu`
    Getcpu,
}

impl VdsoFunction {
    /// The system call it stands in for.
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

/// A part of the file that is mapped (PT_LOAD).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it wants to be.
    pub vaddr: u64,
    /// Bytes in memory.
    pub memory_size: u64,
    /// Where its bytes start in the file.
    pub file_offset: u64,
    /// Bytes the file has of it.
    pub file_size: u64,
    /// Whether it may be run (PF_X).
    pub executable: bool,
}

/// A site that cannot be counted by this plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unplanned {
    /// Of the `syscall`.
    pub address: u64,
    /// What stands in the way.
    pub why: UnpatchableReason,
}

/// Why a site can't be hooked before its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnpatchableReason {
    /// Code jumps to where a window would have its inside, or to the call itself.
    BranchTarget,
    /// An instruction there can't be run elsewhere (a call, a landing place, another `syscall`).
    Fixed,
    /// Too few bytes before the call belong to it.
    TooShort,
    /// Something between the hook and the call needs rcx, r11, flags or rax.
    RegistersInUse,
    /// Flags set before the call are read behind it, and the call must be wrapped or its number is unknown.
    FlagsInUse,
    /// Every window that would do is taken by a neighbouring site.
    ReservedByOther,
    /// Nothing says that this is code at all, code around it contradicts how it was decoded, or
    /// its function may jump to places that are not known.
    NotSurelyCode,
    /// It is an `int $0x80`: another table of numbers, and too short for a jump.
    Int80,
    /// Unwinders know it by its bytes, and in no other way.
    KnownByBytes,
}

/// Why a file has no plan at all.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum PlanError {
    /// Not an ELF file, or a damaged one.
    #[error("not an ELF file, or a damaged one")]
    Malformed,
    /// For another architecture, or 32 bits.
    #[error("not a program for x86-64")]
    Foreign,
    /// So much code that looking at it would take too long.
    #[error("more code than is looked at ({0} MiB)")]
    TooLarge(u64),
}
