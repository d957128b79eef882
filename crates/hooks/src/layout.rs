//! The memory that a watched program and its launcher share: the only place that defines where everything lies.
//!
//! Two areas, at the same addresses in every watched process:
//!
//! - the *global* area, one for all processes of a run. It lies in the file of our code, which only the launcher can
//!   write: a target can read it, but not change it.
//! - the *image*, one for each program image (what an `execve` started, with its threads and those of its forked
//!   children that have not changed their credentials since). Each lies in a file of its own, so that a target that
//!   writes there reaches nothing of another program.
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
//! A thread finds its slot by gs. A node tells the offset in each slot at which its calls are counted: threads share
//! the tree of contexts, but no counter.
//!
//! Every word is 8 bytes, aligned, and has one writer at a time, so either side may read at any moment. Invariant: no
//! other module of the crate contains a number that is defined here.

pub mod areas;
mod root;

pub use root::{root_words, transfers};
pub use saved::Saved;

use systoll_model::Sysno;

/// Version of everything in this file; memory laid out by another version can't be read.
pub const VERSION: u64 = 15;

/// Address of the image: far from where Linux maps anything by itself, with or without ASLR, and from where programs do:
/// V8 maps its heap at random places below 2^46, race detectors keep their shadows from 2^44 to 0x3800_0000_0000.
pub const IMAGE: u64 = 0x5000_0000_0000;
/// Bytes of code in a run, at most.
pub const BLOBS_SIZE: u64 = 1 << 30;
/// Address of all code in every process; each file's code is mapped again near the file.
pub const BLOBS_AT: u64 = IMAGE + (1 << 37);
/// Address of the global area, right below the image.
pub const GLOBAL: u64 = IMAGE - global::SIZE;

/// Bytes of a root or node of a calling-context tree.
pub const NODE_SIZE: u64 = 64;
/// Number of system call numbers with roots of their own at a site without a known number; the last one stands for all
/// higher ones.
pub const NUMBERS: u64 = Sysno::NATIVE as u64 + 1;
/// Entries of a table by number: [`NUMBERS`] of them, then those for the numbers of the x32 ABI.
pub const TABLE_LEN: u64 = NUMBERS + Sysno::X32_NUMBERS as u64;

/// Returns the entry of a table for the number in eax.
#[must_use]
pub fn table_entry(eax: u32) -> u64 {
    match Sysno::made(eax) {
        Sysno::UNKNOWN => NUMBERS - 1,
        call if call.is_x32() => NUMBERS + u64::from(call.0 & !Sysno::X32),
        call => u64::from(call.0),
    }
}

/// Returns the call that entry `n` of a table is for.
#[must_use]
pub fn call_of_entry(n: u64) -> Sysno {
    match n.checked_sub(NUMBERS) {
        Some(x32) => Sysno(x32 as u32 | Sysno::X32),
        None if n == NUMBERS - 1 => Sysno::UNKNOWN,
        None => Sysno(n as u32),
    }
}

/// The global area, as offsets from [`GLOBAL`]. The launcher writes all of it, targets write nothing.
pub mod global {
    /// Bytes of the area.
    pub const SIZE: u64 = 0x1_8000;
    /// u32 futex word on which the launcher sleeps. A target wakes it without changing it, so a wake right before the
    /// launcher sleeps is lost: the target checks [`AWAKE`] and tries again.
    pub const WAKE: u64 = 0x00;
    /// u32, not zero while the launcher polls the queues and needs no wake-up.
    pub const AWAKE: u64 = 0x08;
    /// u32, not zero once the launcher has stopped watching: from then on no thread waits for an answer.
    pub const DEAD: u64 = 0x10;
    /// u64: `pause` instructions that a thread executes while it polls for an answer before it sleeps, if [`AWAKE`].
    /// The launcher sets zero if the two would share one CPU.
    pub const SPINS: u64 = 0x18;
    /// struct timespec: time that a thread sleeps at a stretch, and that it waits for an answer to a small question.
    pub const LIMIT: u64 = 0x20;
    /// u64: [`LIMIT`] in cycles of the time stamp counter, for sleeps that signals cut short.
    pub const LIMIT_CYCLES: u64 = 0x40;
    /// u64: cycles that a thread waits if a file may have to be planned.
    pub const LONG_LIMIT_CYCLES: u64 = 0x48;
    /// u64: time stamp counter when the launcher began its current work, zero while it sleeps. A thread waits until
    /// [`BUSY_CYCLES`] after that: a launcher that works on a large file is not dead.
    pub const BUSY: u64 = 0x50;
    /// u64: cycles after [`BUSY`] for which a thread waits.
    pub const BUSY_CYCLES: u64 = 0x58;
    /// u32 robust futex word: the launcher's thread id, with [`OWNER_DIED`] once that has ended.
    pub const OWNER: u64 = 0x60;
    /// Bit that the kernel sets when the owner has died (FUTEX_OWNER_DIED of include/uapi/linux/futex.h).
    pub const OWNER_DIED: u32 = 0x4000_0000;
    /// u32: processor on which the launcher last ran.
    pub const PROCESSOR: u64 = 0x68;
    /// u32: calls that may be answered in place in any image, bits of [`super::elide`]. A call is answered where both
    /// this word and [`super::image::ELIDE`] have its bit. The launcher changes it while programs run: a call is
    /// answered, or made, as the word is at that moment.
    pub const ANSWERING: u64 = 0x70;
    /// Arguments whose memory threads copy: [`CAPTURE_ENTRY`] bytes for each number below [`super::NUMBERS`], see
    /// [`super::capture`].
    pub const CAPTURES: u64 = 0x1000;
    /// Bytes of an entry of [`CAPTURES`].
    pub const CAPTURE_ENTRY: u64 = 1 << CAPTURE_SHIFT;
    /// log2 of [`CAPTURE_ENTRY`].
    pub const CAPTURE_SHIFT: u32 = 4;
    /// Files without calls, see [`super::no_calls`].
    pub const NO_CALLS: u64 = 0x4000;
    /// Number of entries of [`NO_CALLS`], without the empty one behind them: programs have hundreds of libraries.
    pub const NO_CALLS_LEN: u64 = (NUMBER_ROOTS - NO_CALLS) / super::no_calls::SIZE - 1;
    /// A root for every number, used if a site's number is unknown and the launcher cannot be asked. There is never a
    /// context or a window below one: these words never change, and are the same for all images.
    pub const NUMBER_ROOTS: u64 = 0x1_0000;
}

/// The image, as offsets from [`IMAGE`].
pub mod image {
    /// u64: [`super::VERSION`] of the launcher that made the image.
    pub const VERSION: u64 = 0x00;
    /// u64: the launcher's number of the image, below 2^32.
    pub const ID: u64 = 0x08;
    /// u64: tickets for slots drawn so far, see [`TICKETS`].
    pub const NEXT_SLOT: u64 = 0x10;
    /// u64: threads that found no slot and shared the last one; their counts may be short.
    pub const HOMELESS: u64 = 0x18;
    /// u64: hand-shakes that the launcher did not answer in time.
    pub const UNANSWERED: u64 = 0x20;
    /// u64: hand-shakes, other than for a context, that could not be made: by a signal handler while its thread was
    /// waiting, or after the threads stopped waiting for the launcher.
    pub const UNHEARD: u64 = 0x28;
    /// u64: returned calls that could not be matched with their entry.
    pub const UNMATCHED: u64 = 0x30;
    /// u32, not zero: threads make no system call of ours (a strict filter would kill the process). A waiting thread
    /// then spins, and the launcher has to search the slots.
    pub const QUIET: u64 = 0x38;
    /// u32: signature of rseq areas, as the program's C library registers it.
    pub const RSEQ_SIGNATURE: u64 = 0x3c;
    /// u32: calls that may be answered in place now, bits of [`super::elide`]. The program clears it when executable
    /// memory is mapped, and the launcher sets it again when that memory is hooked.
    pub const ELIDE: u64 = 0x40;
    /// u32, not zero: code may run that the launcher has not examined, so that [`ELIDE`] stays zero.
    pub const UNSEEN: u64 = 0x48;
    /// u64: number of times that the program may have unmapped memory, plus one.
    pub const MAPS: u64 = 0x50;
    /// u32, not zero: threads no longer ask about memory that `mprotect` makes executable.
    pub const LOOKED: u64 = 0x58;
    /// u32, not zero: the program is known to have memory that is writable and executable at once.
    pub const WRITES_CODE: u64 = 0x60;
    /// u64: ends of signal handlers that did not lead to the expected return from the signal.
    pub const ASTRAY: u64 = 0x68;
    /// u64: number of slots for which tickets were made so far, without the first slot and the last.
    pub const GIVEN: u64 = 0x70;
    /// u32, not zero: threads without an rseq area get one of ours, see [`super::areas`].
    pub const GIVES_AREAS: u64 = 0x78;
    /// The restartable sequence that no call is ever in: struct rseq_cs, 32 bytes, aligned to 32.
    pub const RSEQ_CS: u64 = 0x80;
    /// Start address of that sequence, in the header, which no thread executes.
    pub const RSEQ_START: u64 = 0x100;
    /// Abort address of that sequence, in the header too. The kernel expects the signature in the four bytes before
    /// it.
    pub const RSEQ_ABORT: u64 = 0x200;
    /// u32, not zero once a thread of the image has waited in vain: no thread waits from then on. The launcher may
    /// clear it when it is responsive again.
    pub const DEAD: u64 = 0x400;
    /// u64: number of hand-shakes queued so far; the next goes to entry `TICKET % RING_LEN`.
    pub const TICKET: u64 = 0x408;
    /// Text [`NAME_WORD`], the name of the memory file that a process makes for itself.
    pub const NAME: u64 = 0x410;
    /// The text "systoll" and a zero byte.
    pub const NAME_WORD: u64 = u64::from_le_bytes(*b"systoll\0");
    /// Text [`MAPPED_FILE_NAME`], the path by which a process with the right to (root) opens the file of its own
    /// image.
    pub const MAPPED_FILE: u64 = 0x418;
    /// The kernel's name of the mapping at [`super::IMAGE`] (proc(5), /proc/pid/map_files).
    pub const MAPPED_FILE_NAME: &[u8; 48] = b"/proc/self/map_files/500000000000-501f10000000\0\0";
    /// u32: the party that opens windows, one of [`super::windows`].
    pub const WINDOWS: u64 = 0x448;
    /// u32, not zero: the image has had threads that share memory, so that one of them may unmap what another is about
    /// to read.
    pub const THREADS: u64 = 0x450;
    /// u64: windows that threads have completed so far, in all slots.
    pub const WRITTEN: u64 = 0x458;
    /// u64: seed for the random places at which windows open.
    pub const SEED: u64 = 0x460;
    /// u64, not zero: the program has opened this file, but could not map everything that it shares with us.
    pub const NOT_MAPPED: u64 = 0x468;
    /// u32: samples of single calls are rarer than [`super::look`] says by this power of two, to bound their cost.
    pub const LOOK_SHIFT: u64 = 0x470;
    /// u64: the root of the program's loader that counts its `mmap`, if the thread need not ask about files without
    /// calls that it maps there ([`super::no_calls`]); zero if it must ask.
    pub const LOADER: u64 = 0x478;
    /// u64: files mapped without asking.
    pub const UNASKED_FILES: u64 = 0x480;
    /// u64: number of a thread's first calls at a node that are sampled more rarely, since earlier programs of the file
    /// have shown them; see [`super::look::FAMILIAR_SHIFT`].
    pub const FAMILIAR: u64 = 0x488;
    /// u32, not zero: the program has opened a `userfaultfd`, so reading a page of its memory may wait for the program.
    pub const SERVES_FAULTS: u64 = 0x490;
    /// u32, not zero: the program has unreadable memory within mappings (MADV_GUARD_INSTALL).
    pub const GUARDED: u64 = 0x498;
    /// u32, not zero: a thread whose stack differs from the context's trunk no longer asks the launcher for a sample.
    pub const LOOKED_ENOUGH: u64 = 0x4a0;
    /// u32, not zero: the user namespace in which the program began has its names, which are given once, so that a user
    /// who has none there never gets one. For processes that may be in another, see [`super::slot::USERS_UNNAMED`].
    pub const USERS_NAMED: u64 = 0x4a8;
    /// A byte for each system call number below [`super::NUMBERS`], not zero if its calls need more than counting; read
    /// where a site's number is unknown.
    pub const HEEDED: u64 = 0x500;
    /// The queue: u64 entries, each a slot's [`super::slot::TAG`]. If more than [`RING_LEN`] are waiting, entries were
    /// overwritten, and every slot's state must be read.
    pub const RING: u64 = 0x800;
    /// Entries of the queue, a power of two.
    pub const RING_LEN: u64 = 256;
    /// u64: number of entries of [`CODES`] in use.
    pub const CODE_COUNT: u64 = 0x1000;
    /// Ranges of our code: entries of [`CODE_ENTRY`] bytes, see [`super::code`].
    pub const CODES: u64 = CODE_COUNT + CODE_ENTRY;
    /// Bytes of an entry of [`CODES`].
    pub const CODE_ENTRY: u64 = 32;
    /// Entries of [`CODES`] used, at most; the one behind them stays empty, so that a reader need not know the
    /// number.
    pub const CODES_LEN: u64 = 254;
    /// Call frame information for our code, [`FRAMES_LEN`] pieces of [`FRAME`] bytes: for code whose address is
    /// known, in rcx, or in the slot, in this order.
    pub const FRAMES: u64 = 0x3000;
    /// Bytes of a piece of [`FRAMES`].
    pub const FRAME: u64 = 128;
    /// Number of pieces of [`FRAMES`].
    pub const FRAMES_LEN: u64 = 3;
    /// Call frame information for a signal handler's return address, [`SIGNAL_FRAME_SIZE`] bytes.
    pub const SIGNAL_FRAME: u64 = FRAMES + 0x200;
    /// Bytes of [`SIGNAL_FRAME`].
    pub const SIGNAL_FRAME_SIZE: u64 = 256;
    /// The table of [`super::code::TABLE`] for a handler's return address: one entry, the same for all.
    pub const SIGNAL_TABLE: u64 = SIGNAL_FRAME + SIGNAL_FRAME_SIZE;
    /// Nodes, appended by the launcher. The first ones lie within 64 KiB of what every thread reads: when a process
    /// reads a new page, the kernel maps that much around it.
    pub const NODES: u64 = 0x4000;
    /// End of the nodes.
    pub const NODES_END: u64 = TICKETS;
    /// [`TICKETS_LEN`] u32 entries: a new thread draws a number from [`NEXT_SLOT`] and takes that entry's value, the
    /// index of a slot plus one, leaving zero. At the other end, the launcher puts back the slots of threads that are
    /// gone.
    pub const TICKETS: u64 = 0x400_0000;
    /// Entries of [`TICKETS`], a power of two.
    pub const TICKETS_LEN: u64 = 32_768;
    /// Slots for which a new image has tickets. The launcher adds more if they are needed; until then slots whose
    /// memory is allocated are used again.
    pub const FIRST_SLOTS: u64 = 64;
    /// Roots and number tables of the image's files, a region for each file.
    pub const ROOTS: u64 = 0x410_0000;
    /// The slots of threads.
    pub const SLOTS: u64 = 0x1000_0000;
    /// Number of slots; the last one is for threads that found none. There are as many as a process can have threads
    /// by default (pid_max of 32,768); the next power of two would not fit a signed half word.
    pub const SLOT_COUNT: u64 = 31 * 1024;
    /// Bytes of the whole image; nearly all of it is never touched and costs nothing.
    pub const SIZE: u64 = SLOTS + SLOT_COUNT * super::slot::SIZE;
}

/// Our code in a process, and program code that unwinders recognise by bytes that we have changed; offsets in an entry
/// of [`image::CODES`].
pub mod code {
    /// u64: address of the code.
    pub const START: u64 = 0;
    /// u64: bytes of the code, without the read-only data behind it.
    pub const SIZE: u64 = 8;
    /// u64: address of the table of the program's addresses for which the code stands. An entry is a u32 offset in
    /// the code, ascending, and an i32 that is valid from there on: a distance from the code's start, or one of the
    /// values below.
    pub const TABLE: u64 = 16;
    /// u64: entries of the table, at least one.
    pub const LEN: u64 = 24;
    /// Value in the table: the address is in rcx.
    pub const IN_RCX: i32 = i32::MIN;
    /// Value in the table: the address is in the slot.
    pub const IN_SLOT: i32 = i32::MIN + 1;
    /// Value in the table: the address is that of the code interrupted by a signal, in the frame at rsp.
    pub const IN_SIGNAL: i32 = i32::MIN + 2;
}

/// Bits of [`image::ELIDE`] and [`global::ANSWERING`].
pub mod elide {
    /// Bit for calls that leave the signal mask unchanged. The lower bits are those of `slot::ANSWERS`.
    pub const MASK: u32 = 1 << 4;
}

/// A root or node of a calling-context tree.
///
/// A site's root is the first node of its first level as long as there is no other; it stands for calls whose context
/// is unknown. The nodes of a level are linked by [`SIBLING`] and share one [`OFFSET`]. Behind a frame of varying size,
/// the caller is found by its frame pointer: a level of [`FRAME`] compares the frame pointer's distance, and the level
/// below it the return address.
pub mod node {
    /// u64: a return address, compared with the word at [`OFFSET`]; [`NO_WORD`] in a root. In a level of [`FRAME`]: the
    /// distance of a frame pointer above rsp at the hook.
    pub const WORD: u64 = 0x00;
    /// u64: offset, in every slot, of the record at which the node counts; zero if it counts nothing, because it lies
    /// above others.
    pub const RECORD: u64 = 0x08;
    /// u64: distance of this level's return address from rsp at the hook. With [`FRAME`]: distance of the place of a
    /// frame pointer.
    pub const OFFSET: u64 = 0x10;
    /// u64: address of the first node of the next level; zero in a leaf. In a root: of the first level, or the root
    /// itself while there is none.
    pub const CHILD: u64 = 0x18;
    /// u64: address of the next node of the level, which is older; zero: ask the launcher; [`REST`] or [`OTHERS`]:
    /// don't ask.
    pub const SIBLING: u64 = 0x20;
    /// u64: address of the tree's root.
    pub const ROOT: u64 = 0x28;
    /// u64: [`MOVES`] if a positive result counts bytes moved, read where a site's number is unknown; also [`ASKS`] and
    /// [`TRUNK`].
    pub const TRANSFERS: u64 = 0x30;
    /// u64: number of the thread's call at this node at which it asks for a window.
    pub const WINDOW_AT: u64 = 0x38;

    /// In [`TRANSFERS`]: every bit that a positive result can have.
    pub const MOVES: u64 = !(ASKS | TRUNK);
    /// In [`TRANSFERS`]: the thread asks the launcher when a window is due, even where threads open windows themselves.
    pub const ASKS: u64 = 1 << 63;
    /// In [`TRANSFERS`]: the node's [`super::trunk`] lies behind the node.
    pub const TRUNK: u64 = 1 << TRUNK_BIT;
    /// Number of the bit [`TRUNK`].
    pub const TRUNK_BIT: u32 = 62;

    /// In [`OFFSET`], its sign bit: this level compares frame pointers.
    pub const FRAME: u64 = 1 << 63;
    /// In [`OFFSET`], with [`FRAME`]: the frame pointer is in rbp; the offset holds nothing else.
    pub const IN_RBP: u64 = 1 << IN_RBP_BIT;
    /// Number of the bit [`IN_RBP`].
    pub const IN_RBP_BIT: u32 = 62;
    /// Bits that no distance from rsp has.
    pub const NO_OFFSET: u64 = FRAME | IN_RBP;

    /// Value of [`SIBLING`]: calls with any other word at this level are counted at this node, without asking.
    pub const REST: u64 = 1;
    /// Value of [`SIBLING`]: further contexts are counted at the root, without asking.
    pub const OTHERS: u64 = 2;
    /// Value of [`WORD`] in a root: a non-canonical address, so that no word on a stack equals it. A walk that found it
    /// would loop: a root may be its own first level.
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

/// States of a hand-shake. Bit 0 is set from the first store to the last, so that calls of a signal handler keep out.
pub mod state {
    /// No question is pending.
    pub const IDLE: u32 = 0;
    /// The thread is writing its question.
    pub const FILLING: u32 = 1;
    /// The thread waits for an answer: it is the launcher's turn.
    pub const WAITING: u32 = 3;
    /// The launcher wants a system call made first: it is the thread's turn, and then it waits again.
    pub const REQUEST: u32 = 5;
    /// The launcher has answered: it is the thread's turn.
    pub const ANSWERED: u32 = 9;
}

/// Number of a request that is no system call: to write over code that no thread runs yet. Its arguments are the
/// start of the mapping, its size, its protection during the write, the protection after it, the address of the
/// pieces ([`piece`]), and an offset that is added to their addresses.
pub const WRITE_CODE: u64 = u64::MAX;

/// A piece of bytes to be written, as offsets from its start. Pieces lie one behind the other; one without bytes ends
/// them.
pub mod piece {
    /// Number of the piece's bytes.
    pub const LEN: u64 = 0;
    /// Address to write to, before the offset is added.
    pub const AT: u64 = 8;
    /// Bytes, from the beginning of that address's page on, that are made private to the process first: the adjacent
    /// pages that are written too. Zero if they are private already.
    pub const OWN: u64 = 16;
    /// The bytes, padded to whole words.
    pub const BYTES: u64 = 24;
}

/// Questions of a thread to the launcher. They are bits 48..54 of [`slot::RESUME`]; at the entry of a window's call,
/// the bits above hold its number plus one if the site tells it. [`Question::ASIDE`] and [`Question::MATTERS`] are
/// bits among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Question {
    /// Asks which node counts this context. [`slot::ANSWER`] holds its tree's root; the answer goes there.
    Context = 1,
    /// Asks which node counts this context, at a site that makes several calls, and this one for the first time. The
    /// saved rax is its number, [`slot::ANSWER`] holds the address of the site's table. The answer is the node (a root
    /// at first); the launcher stores the root's address in the table.
    Number = 2,
    /// A thread is about to be made and there is no slot for it: the launcher may put some back.
    Slots = 3,
    /// The program is about to end, and has memory that is writable and executable at once.
    Ending = 4,
    /// A word on the stack, from rsp on, is not known to be readable: which node counts this context? The thread finds
    /// out by itself where it may, and otherwise asks for the [`Question::Context`]. [`slot::ANSWER`] holds the tree's
    /// root.
    Stack = 5,
    /// Like [`Question::Stack`], but the word lies at rbp or above.
    Frame = 6,
    /// Like [`Question::Stack`], before the thread's last call: another thread may have its stack already.
    LastStack = 7,
    /// Like [`Question::Stack`], at the entry of a function of the vDSO.
    VdsoStack = 8,
    /// A call of a window is about to be made.
    WindowEntry = 0x11,
    /// The window's call has returned; the saved rax is its result.
    WindowReturn = 0x12,
    /// Code was mapped at the address in the saved rax; if that is zero, memory was made executable by `mprotect` with
    /// the saved registers. The launcher patches it before a thread runs it. This may take long.
    Mapped = 0x21,
    /// An `execve` or `execveat` is about to be made. This may take long.
    Exec = 0x22,
    /// A call is about to be made after which the process may not be watched any more: it sets the gs base, by which
    /// the thread reaches its slot (`arch_prctl` with ARCH_SET_GS), gives up the time stamp counter, dispatches system
    /// calls (ours too) to the program, locks all memory (`mlockall`), maps over memory of ours or unmaps it, or sets a
    /// limit that our memory counts against (`setrlimit`). This may take long.
    Last = 0x23,
    /// A call is about to be made that changes its process's rights (`setuid`, `capset`, `unshare` …): before it, the
    /// process gets an image of its own.
    Identity = 0x13,
    /// The thread is about to confine itself (`seccomp`, or `prctl` with PR_SET_SECCOMP) or to give up the time stamp
    /// counter (`prctl` with PR_SET_TSC). This may take long.
    Confine = 0x24,
    /// An `execve` or `execveat` failed.
    ExecFailed = 0x25,
}

impl Question {
    /// Bit that is set if no count suffers when the launcher does not hear the question.
    pub const ASIDE: u16 = 0x10;
    /// Bit that is set if exactness suffers when the launcher does not hear the question.
    pub const MATTERS: u16 = 0x20;

    /// Returns the question in a word read from [`slot::RESUME`], if it is one.
    #[must_use]
    pub fn from_resume(word: u64) -> Option<Self> {
        const ALL: [Question; 16] = [
            Question::Context,
            Question::Number,
            Question::Slots,
            Question::Ending,
            Question::Stack,
            Question::Frame,
            Question::LastStack,
            Question::VdsoStack,
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

/// Returns the address of slot `index` in a watched process.
#[must_use]
pub const fn slot_address(index: u64) -> u64 {
    IMAGE + image::SLOTS + index * slot::SIZE
}

/// Returns the slot with this address in a watched process, if there is one.
#[must_use]
pub const fn slot_index(address: u64) -> Option<u64> {
    match address.checked_sub(slot_address(0)) {
        Some(offset) if offset.is_multiple_of(slot::SIZE) && offset / slot::SIZE < image::SLOT_COUNT => {
            Some(offset / slot::SIZE)
        }
        _ => None,
    }
}

/// Returns the number of slots that may have been used; they are the first ones. `drawn` is the value of
/// [`image::NEXT_SLOT`], `given` that of [`image::GIVEN`]. The slot that threads share is not included.
#[must_use]
pub fn slots_used(drawn: u64, given: u64) -> u64 {
    drawn.min(given).saturating_add(1).min(image::SLOT_COUNT)
}

/// Returns the call that the root at `address` counts, if it is one of [`global::NUMBER_ROOTS`].
#[must_use]
pub fn number_of_root(address: u64) -> Option<u32> {
    let distance = address.checked_sub(GLOBAL + global::NUMBER_ROOTS)?;
    let entry = Some(distance / NODE_SIZE).filter(|entry| *entry < NUMBERS && distance.is_multiple_of(NODE_SIZE))?;
    Some(call_of_entry(entry).0)
}

/// Returns true if a node, or root, may lie at this offset in the image.
#[must_use]
pub const fn may_hold_node(offset: u64) -> bool {
    offset >= image::NODES && offset < image::SLOTS
}

/// Returns true if a thread's record may lie at this offset in its slot.
#[must_use]
pub const fn is_record(offset: u64) -> bool {
    offset >= slot::RECORDS && offset <= slot::LONG_CALLS - record::SIZE
}

/// Returns the offset in the image behind the last possible node, if `words` words of the image are mapped.
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
    assert!(IMAGE == 0x5000_0000_0000 && IMAGE + image::SIZE == 0x501f_1000_0000);
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
    assert!(record::ELIDED + 8 == record::FAILED && record::SAMPLED_WAITED + 8 <= record::SIZE);
    assert!(record::SIZE.is_multiple_of(64));
    assert!(slot::LONG_COUNT < slot::TIME_SEED && slot::TIME_SEED < slot::RING_REFUSED);
    assert!(long::LEN.is_power_of_two() && long::ENTRY == long::ENTERED + 8 && slot::LONG_CALLS.is_multiple_of(4096));
    assert!(slot::RING_SEED < slot::LONG_COUNT && slot::LONG_COUNT < slot::RING_REFUSED);
    assert!(slot::RECORD_COUNT > NUMBERS && slot::SIZE < 1 << 31);
    assert!(node::WINDOW_AT + 8 == NODE_SIZE);
    assert!(image::SLOT_COUNT < 1 << 16 && image::SIZE < 1 << 40);
};
