//! The memory a watched program and its launcher share: where everything lies, in one place.
//!
//! Two areas, at the same addresses in every watched process:
//!
//! - the *global* area, one for all processes of a run. It lies in the file of our code, which only
//!   the launcher can write: a target reads it, and has no way to change it.
//! - the *image*, one for each program image (what an `execve` started, with its threads and those
//!   of its fork children that have not changed their credentials since). Each lies in a file of its
//!   own, so that a target that writes there reaches nothing of another program.
//!
//! ```text
//!   GLOBAL   IMAGE
//!   ├────────┼──────┬───────┬───────┬────────────────────┬────────┬────────┬─ ─ ─┤
//!   │ roots  │ head │ queue │ nodes │ roots, one region  │ slot 0 │ slot 1 │ …   │
//!   │ by     │      │       │   │   │ for each file      │   │    │        │     │
//!   │ number │      │       │   │   │                    │   │    │        │     │
//!   └────────┴──────┴───────┴───┼───┴─────────┬──────────┴───┼────┴────────┴─ ─ ─┘
//!                               │   a site's root              │
//!                               │      └ CHILD: first return address
//!                               └────────┴ CHILD: next one … SIBLING
//!                                            └ RECORD: an offset, the same in every slot
//!                                                             └ counters of that node
//! ```
//!
//! A thread finds its slot by gs. A node says at which offset of a slot its calls are counted, so that threads
//! share the tree of contexts and no counter.
//!
//! Every word is 8 bytes, aligned, and has one writer at a time, so either side may read at any
//! moment. Invariant: nothing else in the crate knows a number that stands here.

pub mod areas;
mod root;

pub use root::{root_words, transfers};
pub use saved::Saved;

use systoll_model::Sysno;

/// Version of everything in this file; what was laid out by another one can't be read.
pub const VERSION: u64 = 13;

/// Where the image is mapped: far from where Linux puts anything by itself, with or without ASLR.
pub const IMAGE: u64 = 0x2000_0000_0000;
/// Bytes of code there can be in a run.
pub const BLOBS_SIZE: u64 = 1 << 30;
/// Where the code is mapped in every process, to be mapped again near what it is for.
pub const BLOBS_AT: u64 = IMAGE + (1 << 37);
/// Where the global area is mapped, right below the image.
pub const GLOBAL: u64 = IMAGE - global::SIZE;

/// One root or node of a calling-context tree, in bytes.
pub const NODE_SIZE: u64 = 64;
/// System call numbers that are told apart where a site's number is unknown; the last one
/// stands for everything above.
pub const NUMBERS: u64 = Sysno::NATIVE as u64 + 1;
/// Entries of a table by number: those, then the numbers of the x32 ABI.
pub const TABLE_LEN: u64 = NUMBERS + Sysno::X32_NUMBERS as u64;

/// The entry of a table for what is in eax.
#[must_use]
pub fn table_entry(eax: u32) -> u64 {
    match Sysno::made(eax) {
        Sysno::UNKNOWN => NUMBERS - 1,
        call if call.is_x32() => NUMBERS + u64::from(call.0 & !Sysno::X32),
        call => u64::from(call.0),
    }
}

/// The call that entry `n` of a table is for.
#[must_use]
pub fn call_of_entry(n: u64) -> Sysno {
    match n.checked_sub(NUMBERS) {
        Some(x32) => Sysno(x32 as u32 | Sysno::X32),
        None if n == NUMBERS - 1 => Sysno::UNKNOWN,
        None => Sysno(n as u32),
    }
}

/// The global area, offsets from [`GLOBAL`]. The launcher writes all of it, targets none.
pub mod global {
    /// Bytes of the area.
    pub const SIZE: u64 = 0x1_8000;
    /// u32 futex word the launcher sleeps on. A target wakes it without changing it, so one that
    /// does so right before the launcher sleeps wakes no thread: it looks at [`AWAKE`] and tries again.
    pub const WAKE: u64 = 0x00;
    /// u32, not zero while the launcher is looking at the queues and needs no wake-up.
    pub const AWAKE: u64 = 0x08;
    /// u32, not zero once the launcher watches no longer: a thread waits for no answer from then on.
    pub const DEAD: u64 = 0x10;
    /// u64: how many `pause` a thread spins for an answer before it sleeps, if [`AWAKE`]. The
    /// launcher sets zero where the two would share one CPU.
    pub const SPINS: u64 = 0x18;
    /// struct timespec: how long a thread sleeps at a time, and for an answer to a small question.
    pub const LIMIT: u64 = 0x20;
    /// u64, cycles of the time stamp counter: [`LIMIT`] again, against signals that cut sleep short.
    pub const LIMIT_CYCLES: u64 = 0x40;
    /// u64, cycles: how long a thread waits where a file may have to be planned.
    pub const LONG_LIMIT_CYCLES: u64 = 0x48;
    /// u64: time stamp counter when the launcher began what it is at, zero while it sleeps. A thread
    /// does not give it up before [`BUSY_CYCLES`] of that: a large file to be looked at is no death.
    pub const BUSY: u64 = 0x50;
    /// u64, cycles: see [`BUSY`].
    pub const BUSY_CYCLES: u64 = 0x58;
    /// u32 robust futex word: the launcher's thread id, with [`OWNER_DIED`] once that has ended.
    pub const OWNER: u64 = 0x60;
    /// FUTEX_OWNER_DIED of include/uapi/linux/futex.h.
    pub const OWNER_DIED: u32 = 0x4000_0000;
    /// u32: processor that the launcher was last on.
    pub const PROCESSOR: u64 = 0x68;
    /// What calls' arguments point to, for threads that copy it: [`CAPTURE_ENTRY`] bytes for each number
    /// below [`super::NUMBERS`], see [`super::capture`].
    pub const CAPTURES: u64 = 0x1000;
    /// Bytes of an entry, 1 << [`CAPTURE_SHIFT`].
    pub const CAPTURE_ENTRY: u64 = 1 << CAPTURE_SHIFT;
    /// See [`CAPTURE_ENTRY`].
    pub const CAPTURE_SHIFT: u32 = 4;
    /// Files without calls, see [`super::no_calls`].
    pub const NO_CALLS: u64 = 0x4000;
    /// Entries there is room for, and an empty one behind them: programs have hundreds of libraries.
    pub const NO_CALLS_LEN: u64 = (NUMBER_ROOTS - NO_CALLS) / super::no_calls::SIZE - 1;
    /// A root for every number, used where a site's number is unknown and the launcher cannot be asked. No context
    /// and no window is ever below one: what stands there never changes, and is the same for all images.
    pub const NUMBER_ROOTS: u64 = 0x1_0000;
}

/// The image, offsets from [`IMAGE`].
pub mod image {
    /// u64: [`super::VERSION`].
    pub const VERSION: u64 = 0x00;
    /// u64: the launcher's number of the image, below 2^32.
    pub const ID: u64 = 0x08;
    /// u64: tickets for slots drawn so far, see [`TICKETS`].
    pub const NEXT_SLOT: u64 = 0x10;
    /// u64: threads that found no slot and shared the last one; their counts may be short.
    pub const HOMELESS: u64 = 0x18;
    /// u64: hand-shakes that the launcher did not answer in time.
    pub const UNANSWERED: u64 = 0x20;
    /// u64: hand-shakes other than for a context that could not be asked for (made by a signal
    /// handler while its thread was waiting, or after the launcher was given up).
    pub const UNHEARD: u64 = 0x28;
    /// u64: returned calls that could not be matched with their entry.
    pub const UNMATCHED: u64 = 0x30;
    /// u32, not zero: make no system call of our own (a strict filter would kill the process).
    /// Who waits then spins, and the launcher has to look by itself.
    pub const QUIET: u64 = 0x38;
    /// u32: signature of rseq areas that may be used, as the program's C library registers it.
    pub const RSEQ_SIGNATURE: u64 = 0x3c;
    /// u32: which calls may be answered in place now, bits of [`super::elide`]. The program takes it
    /// down when executable memory comes, the launcher puts it up again when that is hooked.
    pub const ELIDE: u64 = 0x40;
    /// u32, not zero: code may run that the launcher has not looked at, so that [`ELIDE`] stays down.
    pub const UNSEEN: u64 = 0x48;
    /// u64: how often the program may have taken memory away, from one on.
    pub const MAPS: u64 = 0x50;
    /// u32, not zero: threads no longer ask about memory that `mprotect` makes executable.
    pub const LOOKED: u64 = 0x58;
    /// u32, not zero: it is known that the program has memory to be written and run at once.
    pub const WRITES_CODE: u64 = 0x60;
    /// u64: handlers' ends that did not lead to the signal's return they were thought to lead to.
    pub const ASTRAY: u64 = 0x68;
    /// u64: how many slots there were tickets for so far, the first slot and the last apart.
    pub const GIVEN: u64 = 0x70;
    /// u32, not zero: threads that have no rseq area are given one of ours, see [`super::areas`].
    pub const GIVES_AREAS: u64 = 0x78;
    /// The restartable sequence no call is ever in: struct rseq_cs, 32 bytes, aligned to 32.
    pub const RSEQ_CS: u64 = 0x80;
    /// Start and abort address of that sequence: in the header, which no thread runs. The kernel
    /// wants the signature in the four bytes before the abort address.
    pub const RSEQ_START: u64 = 0x100;
    /// See [`RSEQ_START`].
    pub const RSEQ_ABORT: u64 = 0x200;
    /// u32, not zero once a thread of the image waited in vain: none waits from then on. The launcher
    /// may take it back when it has come to again.
    pub const DEAD: u64 = 0x400;
    /// u64: number of hand-shakes ever queued; the next goes to entry `TICKET % RING_LEN`.
    pub const TICKET: u64 = 0x408;
    /// [`NAME_WORD`]: what a process calls the memory that it makes for itself.
    pub const NAME: u64 = 0x410;
    /// "systoll" and a zero byte.
    pub const NAME_WORD: u64 = u64::from_le_bytes(*b"systoll\0");
    /// [`MAPPED_FILE_NAME`]: by which a process that may (root) opens the file of its own image.
    pub const MAPPED_FILE: u64 = 0x418;
    /// The kernel's name of the mapping at [`super::IMAGE`] (proc(5), /proc/pid/map_files).
    pub const MAPPED_FILE_NAME: &[u8; 48] = b"/proc/self/map_files/200000000000-201f10000000\0\0";
    /// u32: who opens windows, one of [`super::windows`].
    pub const WINDOWS: u64 = 0x448;
    /// u32, not zero: the image has had threads that share memory, so that what one of them is about to
    /// read another may take away.
    pub const THREADS: u64 = 0x450;
    /// u64: windows that threads have written to the end so far, all slots together.
    pub const WRITTEN: u64 = 0x458;
    /// u64: where the places at which windows open begin to be drawn from.
    pub const SEED: u64 = 0x460;
    /// u64, not zero: the program has this file, and could not map all that it shares with us.
    pub const NOT_MAPPED: u64 = 0x468;
    /// u32: looks are rarer than [`super::look`] has them by this power of two: what they cost is bounded.
    pub const LOOK_SHIFT: u64 = 0x470;
    /// u64: the root of the program's loader that counts its `mmap`, where a thread need not ask about files without
    /// calls that come by it ([`super::no_calls`]); zero where it has to.
    pub const LOADER: u64 = 0x478;
    /// u64: files that came so.
    pub const UNASKED_FILES: u64 = 0x480;
    /// u64: up to so many calls of a thread at a node looks are rarer, see [`super::look::FAMILIAR_SHIFT`].
    pub const FAMILIAR: u64 = 0x488;
    /// u32, not zero: the program has opened a `userfaultfd`: to read a page of its memory may wait for the program.
    pub const SERVES_FAULTS: u64 = 0x490;
    /// u32, not zero: the program has memory within mappings that can't be read (MADV_GUARD_INSTALL).
    pub const GUARDED: u64 = 0x498;
    /// u32, not zero: threads whose stack is not as its trunk says no longer ask the launcher to look at it.
    pub const LOOKED_ENOUGH: u64 = 0x4a0;
    /// A byte for each system call number below [`super::NUMBERS`], not zero where more is done at
    /// its calls than counting: looked at where a site's number is unknown.
    pub const HEEDED: u64 = 0x500;
    /// The queue: u64 entries, the slot's [`super::slot::TAG`]. When more than [`RING_LEN`] are
    /// waiting, look at every slot's state: entries were overwritten.
    pub const RING: u64 = 0x800;
    /// Entries of the queue, a power of two.
    pub const RING_LEN: u64 = 256;
    /// u64: how many entries of [`CODES`] there are.
    pub const CODE_COUNT: u64 = 0x1000;
    /// Where code of ours lies: entries of [`CODE_ENTRY`] bytes, see [`super::code`].
    pub const CODES: u64 = CODE_COUNT + CODE_ENTRY;
    /// Bytes of an entry.
    pub const CODE_ENTRY: u64 = 32;
    /// Entries that are used at most; the one behind them stays empty, so that a reader need not count.
    pub const CODES_LEN: u64 = 254;
    /// Call frame information for code of ours, [`FRAMES_LEN`] pieces of [`FRAME`] bytes: what it
    /// stands for is at an address, in rcx, in the slot. The order is the one of [`super::code`].
    pub const FRAMES: u64 = 0x3000;
    /// Bytes of a piece.
    pub const FRAME: u64 = 128;
    /// See [`FRAMES`].
    pub const FRAMES_LEN: u64 = 3;
    /// Call frame information for where a handler returns to, [`SIGNAL_FRAME_SIZE`] bytes.
    pub const SIGNAL_FRAME: u64 = FRAMES + 0x200;
    /// See [`SIGNAL_FRAME`].
    pub const SIGNAL_FRAME_SIZE: u64 = 256;
    /// The table of [`super::code::TABLE`] for such places: one entry, the same for all.
    pub const SIGNAL_TABLE: u64 = SIGNAL_FRAME + SIGNAL_FRAME_SIZE;
    /// Nodes, appended by the launcher. The first ones lie within 64 KiB of what every thread reads:
    /// where a process reads a page it has not read before, the kernel maps so much around it.
    pub const NODES: u64 = 0x4000;
    /// End of the nodes.
    pub const NODES_END: u64 = TICKETS;
    /// u32 entries, [`TICKETS_LEN`] of them: a new thread draws a number from [`NEXT_SLOT`] and
    /// takes what that entry holds, index of a slot plus one, leaving zero. The launcher puts
    /// slots of threads that are gone back at the other end.
    pub const TICKETS: u64 = 0x400_0000;
    /// Entries, a power of two.
    pub const TICKETS_LEN: u64 = 32_768;
    /// Slots that a new image has tickets for. The launcher gives more where they are wanted; as long
    /// as they are not, slots whose memory is there already are used again.
    pub const FIRST_SLOTS: u64 = 64;
    /// Roots and number tables of the image's files, a region for each file.
    pub const ROOTS: u64 = 0x410_0000;
    /// The slots.
    pub const SLOTS: u64 = 0x1000_0000;
    /// Number of slots; the last is for threads that found none. As many as a process has threads where nobody has raised
    /// what the kernel allows (pid_max of 32,768); a power of two of them does not fit a signed half word.
    pub const SLOT_COUNT: u64 = 31 * 1024;
    /// Bytes of the whole image; nearly all of it is never touched and so costs nothing.
    pub const SIZE: u64 = SLOTS + SLOT_COUNT * super::slot::SIZE;
}

/// Code of ours in a process, and code of its own that unwinders knew by bytes we have changed; offsets in an entry of [`image::CODES`].
pub mod code {
    /// u64: its address.
    pub const START: u64 = 0;
    /// u64: its bytes, what is only read behind it left out.
    pub const SIZE: u64 = 8;
    /// u64: address of its table of what it stands for: by rising u32, offsets in the code from
    /// which on the i32 beside it holds: distance from the code's start, or one of these.
    pub const TABLE: u64 = 16;
    /// u64: entries of the table, one at least.
    pub const LEN: u64 = 24;
    /// In the table: what rcx says.
    pub const IN_RCX: i32 = i32::MIN;
    /// In the table: what the slot says.
    pub const IN_SLOT: i32 = i32::MIN + 1;
    /// In the table: what a signal has interrupted, as its frame at rsp says.
    pub const IN_SIGNAL: i32 = i32::MIN + 2;
}

/// Bits of [`image::ELIDE`].
pub mod elide {
    /// Signal masks that do not change. Below it, a bit for each of `slot::ANSWERS`.
    pub const MASK: u32 = 1 << 4;
}

/// A root or node of a calling-context tree.
///
/// A site's root is the first node of its first level as long as there is no other; it stands
/// for calls whose context is unknown. Nodes of a level hang together by [`SIBLING`] and share
/// one [`OFFSET`]. Behind a frame whose size varies the caller lies by its frame pointer: a level of
/// [`FRAME`] tells by that, how far it is, and the level below it the return address there.
pub mod node {
    /// u64: a return address, compared with the word at [`OFFSET`]; [`NO_WORD`] in a root. In a level of
    /// [`FRAME`]: how far a frame pointer points above rsp at the hook.
    pub const WORD: u64 = 0x00;
    /// u64: offset in every slot of what is counted here, zero where nothing is: below other nodes.
    pub const RECORD: u64 = 0x08;
    /// u64: where this level's return address lies, from rsp at the hook. With [`FRAME`]: where a frame pointer does.
    pub const OFFSET: u64 = 0x10;
    /// u64: address of the first node of the next level, zero in a leaf. In a root: of the first
    /// level, the root itself while there is none.
    pub const CHILD: u64 = 0x18;
    /// u64: address of the next node of the level, which is older; zero: ask the launcher; [`REST`] or [`OTHERS`]: don't.
    pub const SIBLING: u64 = 0x20;
    /// u64: address of the tree's root.
    pub const ROOT: u64 = 0x28;
    /// u64: [`MOVES`] where a positive result counts bytes moved, looked at where a site's number is
    /// unknown; [`ASKS`] and [`TRUNK`].
    pub const TRANSFERS: u64 = 0x30;
    /// u64: a window is asked for when a thread's own count here reaches this.
    pub const WINDOW_AT: u64 = 0x38;

    /// In [`TRANSFERS`], all that a positive result can have.
    pub const MOVES: u64 = !(ASKS | TRUNK);
    /// In [`TRANSFERS`]: the thread asks the launcher where a window is due, even where threads open windows themselves.
    pub const ASKS: u64 = 1 << 63;
    /// In [`TRANSFERS`]: behind the node stands its [`super::trunk`].
    pub const TRUNK: u64 = 1 << TRUNK_BIT;
    /// See [`TRUNK`].
    pub const TRUNK_BIT: u32 = 62;

    /// In [`OFFSET`], its sign: this level tells frame pointers apart.
    pub const FRAME: u64 = 1 << 63;
    /// In [`OFFSET`], with [`FRAME`]: the frame pointer is in rbp, and nothing else is said.
    pub const IN_RBP: u64 = 1 << IN_RBP_BIT;
    /// See [`IN_RBP`].
    pub const IN_RBP_BIT: u32 = 62;
    /// No place from rsp lies so far.
    pub const NO_OFFSET: u64 = FRAME | IN_RBP;

    /// Value of [`SIBLING`] in a level of [`FRAME`]: all that the others are not is counted here.
    pub const REST: u64 = 1;
    /// Value of [`SIBLING`]: further contexts are counted at the root, without asking.
    pub const OTHERS: u64 = 2;
    /// Value of [`WORD`] in a root: no address at all, so that no word on a stack is taken for it.
    /// A walk that met it would go in circles: a root may be its own first level.
    pub const NO_WORD: u64 = 0x8000_5757_0000_0001;
}

pub mod capture;
pub mod long;
pub mod look;
pub mod no_calls;
pub mod ring;
mod saved;
pub mod slot;
pub mod stack;
pub mod timing;
pub mod trunk;
pub mod want;
pub mod windows;

pub mod record;

pub use slot::{record_at, record_offset, root_record_offset};

/// States of a hand-shake. Bit 0 is set from the first store to the last, so that a signal
/// handler's calls keep out.
pub mod state {
    /// Nothing is asked.
    pub const IDLE: u32 = 0;
    /// The thread is writing its question.
    pub const FILLING: u32 = 1;
    /// The thread waits for an answer: the launcher's turn.
    pub const WAITING: u32 = 3;
    /// The launcher wants a system call made first; the thread's turn, then it waits again.
    pub const REQUEST: u32 = 5;
    /// Answered: the thread's turn.
    pub const ANSWERED: u32 = 9;
}

/// A request that is no system call: to write over code that no thread runs yet. What follows is the start of
/// the mapping, its size, its protection for as long, that for later, the address of what to write
/// ([`piece`]), and what is added to where.
pub const WRITE_CODE: u64 = u64::MAX;

/// Bytes to be written, one piece behind the other; one without bytes is the end.
pub mod piece {
    /// How many.
    pub const LEN: u64 = 0;
    /// Where, before something is added.
    pub const AT: u64 = 8;
    /// How many bytes from the beginning of that page on are made the process's own first: all pages behind it
    /// that are written too, one next to the other. Zero: it is made already.
    pub const OWN: u64 = 16;
    /// The bytes, filled up to whole words.
    pub const BYTES: u64 = 24;
}

/// What a thread asks the launcher. Bits 48..54 of [`slot::RESUME`], at the entry of a window's call with its number
/// plus one in the bits above where the site says it; [`Question::WINDOW`] and
/// [`Question::MATTERS`] are bits among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Question {
    /// Which node is this context? [`slot::ANSWER`] holds its tree's root; the answer goes there.
    Context = 1,
    /// The same at a site with unknown number, for a number never seen there: the saved rax is
    /// the number, [`slot::ANSWER`] the address of the site's table. The answer is the node (a
    /// root to begin with); the root's address belongs into the table.
    Number = 2,
    /// A thread is to be made and there is no slot for it: some may be put back.
    Slots = 3,
    /// The program is about to end, and has memory that it may write and run at once.
    Ending = 4,
    /// A word on the stack, from rsp on, is not known to be readable: which node is it? The thread finds out by itself
    /// where it may, and asks for the [`Question::Context`] where it can't. [`slot::ANSWER`] holds the tree's root.
    Stack = 5,
    /// The same, from rbp on.
    Frame = 6,
    /// The same before the thread's last call, when its stack may be another's already.
    LastStack = 7,
    /// A call of a window is about to be made.
    WindowEntry = 0x11,
    /// It has returned; the saved rax is its result.
    WindowReturn = 0x12,
    /// Code was mapped at the saved rax, or where that is zero memory made executable as the saved
    /// registers say that `mprotect` was called: patch it before a thread runs it. May take long.
    Mapped = 0x21,
    /// An `execve` or `execveat` is about to be made. May take long.
    Exec = 0x22,
    /// A call after which the process may not be watched any more: it sets the gs base, by which the thread reaches
    /// its slot (`arch_prctl` with ARCH_SET_GS), gives its clock up, has system calls dispatched to the program, ours
    /// too, has all that is mapped filled with memory (`mlockall`), maps over memory of ours or takes it away, or
    /// bounds memory that ours counts against (`setrlimit`). May take long.
    Last = 0x23,
    /// A call is about to be made that changes what its process may do (`setuid`, `capset`,
    /// `unshare` …): before it, the process gets an image of its own.
    Identity = 0x13,
    /// The thread is about to confine itself (`seccomp`, or `prctl` with PR_SET_SECCOMP) or to
    /// take the time stamp counter away (`prctl` with PR_SET_TSC). May take long.
    Confine = 0x24,
    /// An `execve` or `execveat` failed.
    ExecFailed = 0x25,
}

impl Question {
    /// Set where no count suffers if it is not heard.
    pub const ASIDE: u16 = 0x10;
    /// Set where exactness suffers if the launcher does not hear it.
    pub const MATTERS: u16 = 0x20;

    /// The question in a word read from [`slot::RESUME`], if it is one.
    #[must_use]
    pub fn from_resume(word: u64) -> Option<Self> {
        const ALL: [Question; 15] = [
            Question::Context,
            Question::Number,
            Question::Slots,
            Question::Ending,
            Question::Stack,
            Question::Frame,
            Question::LastStack,
            Question::WindowEntry,
            Question::WindowReturn,
            Question::Mapped,
            Question::Exec,
            Question::Last,
            Question::Identity,
            Question::Confine,
            Question::ExecFailed,
        ];
        ALL.into_iter().find(|q| word >> 48 & 0x3f == *q as u64)
    }
}

/// Address of slot `index` in a watched process.
#[must_use]
pub const fn slot_address(index: u64) -> u64 {
    IMAGE + image::SLOTS + index * slot::SIZE
}

/// The slot whose address in a watched process this is, if it is one's.
#[must_use]
pub const fn slot_index(address: u64) -> Option<u64> {
    match address.checked_sub(slot_address(0)) {
        Some(offset) if offset.is_multiple_of(slot::SIZE) && offset / slot::SIZE < image::SLOT_COUNT => {
            Some(offset / slot::SIZE)
        }
        _ => None,
    }
}

/// Slots that may have been used, the first ones: `drawn` is what [`image::NEXT_SLOT`] says, `given` what
/// [`image::GIVEN`] does. Who shared the last one is not told by these.
#[must_use]
pub fn slots_used(drawn: u64, given: u64) -> u64 {
    drawn.min(given).saturating_add(1).min(image::SLOT_COUNT)
}

/// The call that the root at `address` counts, where that is one of [`global::NUMBER_ROOTS`].
#[must_use]
pub fn number_of_root(address: u64) -> Option<u32> {
    let distance = address.checked_sub(GLOBAL + global::NUMBER_ROOTS)?;
    let entry = Some(distance / NODE_SIZE).filter(|entry| *entry < NUMBERS && distance.is_multiple_of(NODE_SIZE))?;
    Some(call_of_entry(entry).0)
}

/// Whether a node, or root, may lie at this offset in the image.
#[must_use]
pub const fn may_hold_node(offset: u64) -> bool {
    offset >= image::NODES && offset < image::SLOTS
}

/// Offset in the image behind the last node there can be, where `words` words of it are mapped.
#[must_use]
pub const fn nodes_end(words: usize) -> u64 {
    let mapped = words as u64 * 8;
    if mapped < image::NODES_END { mapped } else { image::NODES_END }
}

const _: () = {
    assert!(GLOBAL.is_multiple_of(4096) && IMAGE.is_multiple_of(4096));
    assert!(global::PROCESSOR < global::CAPTURES && global::SIZE.is_multiple_of(4096));
    assert!(global::CAPTURES + NUMBERS * global::CAPTURE_ENTRY <= global::NO_CALLS);
    assert!(image::MAPPED_FILE + 48 <= image::WINDOWS && image::GUARDED + 8 <= image::HEEDED);
    assert!(slot::QUIET_CYCLES < slot::RING_SEED && slot::RING_BOUNCE + ring::MOST <= slot::RING_HEADERS);
    assert!(slot::RING_HEADERS + ring::COUNT * ring::HEADER <= slot::FRAME_COUNT);
    assert!(slot::RINGS.is_multiple_of(4096) && slot::RINGS + ring::COUNT * ring::BUFFER == slot::SIZE);
    assert!(look::DATA + ring::ROOM < ring::BUFFER && look::DATA.is_multiple_of(8));
    assert!(ring::DATA.is_multiple_of(8) && ring::DATA + ring::MOST * 16 < ring::BUFFER);
    assert!(image::RING_LEN.is_power_of_two() && image::RING + 8 * image::RING_LEN <= image::CODE_COUNT);
    assert!(image::RSEQ_ABORT < image::DEAD && image::MAPPED_FILE + 48 <= image::HEEDED);
    assert!(IMAGE == 0x2000_0000_0000 && IMAGE + image::SIZE == 0x201f_1000_0000);
    assert!(image::HEEDED.is_multiple_of(8) && image::HEEDED + NUMBERS <= image::RING);
    assert!(image::FIRST_SLOTS.is_multiple_of(2) && image::FIRST_SLOTS < image::SLOT_COUNT - 2);
    assert!(image::TICKETS_LEN.is_power_of_two() && image::TICKETS_LEN >= image::SLOT_COUNT);
    assert!(image::TICKETS + 4 * image::TICKETS_LEN <= image::ROOTS);
    assert!(image::CODES + (image::CODES_LEN + 1) * image::CODE_ENTRY <= image::FRAMES);
    assert!(image::FRAMES + image::FRAMES_LEN * image::FRAME <= image::SIGNAL_FRAME);
    assert!(image::SIGNAL_TABLE + 8 <= image::NODES);
    assert!(slot::SIGRETURNS_BEFORE < slot::FRAME_COUNT && slot::FRAMES_LEN.is_power_of_two());
    assert!(slot::FRAMES + slot::FRAMES_LEN * image::FRAME <= slot::ERRORS);
    assert!(global::NUMBER_ROOTS + NUMBERS * NODE_SIZE <= global::SIZE);
    assert!(image::NODES < image::NODES_END && image::ROOTS < image::SLOTS && image::SLOTS.is_multiple_of(slot::SIZE));
    assert!(image::RSEQ_CS.is_multiple_of(32) && image::RSEQ_CS + 32 <= image::RSEQ_START);
    assert!(image::RSEQ_START < image::RSEQ_ABORT && image::RSEQ_ABORT < image::CODE_COUNT);
    assert!(slot::REGISTERS + 8 * Saved::COUNT <= slot::REQUEST && slot::REQUEST + 56 <= slot::REPLY);
    assert!(slot::RING_HEADERS + ring::COUNT * ring::HEADER <= slot::REQUESTS_NEXT);
    assert!(slot::RING_CALLS < slot::LOOK_HEADER && slot::RING_MOST < slot::STACK_ASKED);
    assert!(slot::RING_FAULTS < slot::STACK_ASKED && slot::STACK_WORD < slot::RING_VECTORS);
    assert!(look::SHARE.of_old < ring::SHARE.of_old && look::SHARE.of_first < ring::SHARE.of_first);
    assert!(slot::REQUESTS + slot::MOST_REQUESTS * slot::REQUEST_LEN <= slot::FRAME_COUNT);
    assert!(slot::MASK_SEQUENCE < slot::STACK && slot::INHERITED <= slot::SELF && slot::CLEARED <= slot::ERRORS_LOST);
    assert!(slot::INHERITED.is_multiple_of(8) && slot::UNASKED < slot::CPU);
    assert!(slot::CPU + 16 <= slot::ASIDE && slot::ASIDE + 24 <= slot::ASKED_NS);
    assert!(slot::MAPS_BEFORE < slot::AREA_BUSY && slot::AREA_ASIDE + 40 <= slot::FRAME_COUNT);
    assert!(slot::NEEDED + 8 * (slot::ANSWER_COUNT + 1) <= slot::MISSED && slot::WHYS.is_power_of_two());
    assert!(slot::MISSED + 8 * slot::WHYS <= slot::OLD_MASK && slot::MAPS_BEFORE < slot::FRAME_COUNT);
    assert!(
        slot::ERRORS + slot::ERROR_GROUPS * slot::ERROR_GROUP <= slot::GOOD_READ && slot::GOOD_LEN.is_power_of_two()
    );
    assert!(slot::GOOD_READ + (slot::GOOD_LEN << slot::GOOD_SHIFT) * 2 <= slot::GOOD_WRITTEN);
    assert!(slot::GOOD_WRITTEN + (slot::GOOD_LEN << slot::GOOD_SHIFT) * 2 <= slot::RECORDS);
    assert!(slot::AREA_ASIDE + 40 <= slot::ASKED_FROM && slot::QUIET_CYCLES < slot::FRAME_COUNT);
    assert!(slot::ERRORS + slot::ERROR_GROUPS * slot::ERROR_GROUP <= slot::RECORDS);
    assert!(slot::ERRORS.is_multiple_of(slot::ERROR_GROUP) && slot::RECORDS.is_multiple_of(64));
    assert!(record::ELIDED + 8 == record::SHORTEST && record::SAMPLED_WAITED + 8 <= record::SIZE);
    assert!(record::SIZE.is_multiple_of(64));
    assert!(slot::LONG_COUNT < slot::TIME_SEED && slot::TIME_SEED < slot::RING_REFUSED);
    assert!(long::LEN.is_power_of_two() && long::ENTRY == long::NODE + 8 && slot::LONG_CALLS.is_multiple_of(4096));
    assert!(slot::RING_SEED < slot::LONG_COUNT && slot::LONG_COUNT < slot::RING_REFUSED);
    assert!(slot::RECORD_COUNT > NUMBERS && slot::SIZE < 1 << 31);
    assert!(node::WINDOW_AT + 8 == NODE_SIZE);
    assert!(image::SLOT_COUNT < 1 << 16 && image::SIZE < 1 << 40);
};
