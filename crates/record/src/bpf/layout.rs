//! The data that systoll shares with its programs in the kernel: the structs of `bpf/count.c` and `bpf/sample.h`.

use super::call::Plain;

/// Buckets of a row's histogram.
pub(super) const BUCKETS: usize = 40;
/// Calls that have a row of their own where there is no room for rows by image. The last stands for all other numbers.
pub(super) const NUMBERS: u32 = 512;
/// A slot's number of a call if its thread is in none.
pub(super) const NO_CALL: u32 = u32::MAX;
/// Flag of a slot whose thread has yet to execute the command: its calls until then are systoll's own.
pub(super) const AWAITS_EXEC: u32 = 2;
/// Flag of a slot whose thread may be in a call that was entered before it was watched.
pub(super) const IS_NEW: u32 = 1;

/// Facts that are constants to the programs.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Settings {
    /// Offset of the thread's number in the kernel's `task_struct`.
    pub(super) pid_offset: u32,
    /// 1 if calls are timed.
    pub(super) timed: u32,
    /// 1 if children are watched, too.
    pub(super) follows: u32,
    /// Numbers of processors are lower.
    pub(super) processors: u32,
    /// 1 if calls are counted by place, and some are sampled.
    pub(super) samples: u32,
    pub(super) execve: u32,
    pub(super) execveat: u32,
    pub(super) sigreturn: u32,
    pub(super) mmap: u32,
    /// Offsets in `struct pt_regs`: of the call's number, of the processor's mode.
    pub(super) number_at: u32,
    pub(super) mode_at: u32,
    /// Offset of four words of `struct pt_regs`, and places among these of instruction and stack pointer.
    pub(super) place_at: u32,
    pub(super) ip_word: u32,
    pub(super) sp_word: u32,
    /// Bytes of `struct pt_regs` that are sent with a stack.
    pub(super) registers: u32,
    /// Offsets in `struct pt_regs` of the arguments, which are there also after the call.
    pub(super) argument_at: [u32; 6],
    /// Bits of the mode that tell which machine's calls a program makes, and their value in programs that make this
    /// machine's own.
    pub(super) mode_mask: u32,
    pub(super) mode: u32,
}

/// The state of a thread that is watched.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Slot {
    pub(super) image: u64,
    /// Image that made the call in work.
    pub(super) call_image: u64,
    pub(super) since: u64,
    pub(super) entered: u64,
    /// Number of the call in work, or [`NO_CALL`].
    pub(super) number: u32,
    pub(super) tid: u32,
    pub(super) flags: u32,
    pub(super) generation: u32,
    /// Result of an interrupted call, and its time.
    pub(super) interrupted: [u64; 2],
    pub(super) waited: u64,
    pub(super) switched_at: u64,
    pub(super) was_waiting: u64,
    /// Image that made the thread's address space.
    pub(super) space: u64,
    /// Place of the call in work.
    pub(super) place: u64,
    pub(super) known_place: u64,
    /// Number of the call before, or [`NO_CALL`].
    pub(super) known: u32,
    pub(super) until: u32,
    /// Calls that the thread's window has still to take.
    pub(super) window: u32,
    pub(super) is_sampled: u32,
    /// Addresses of the place.
    pub(super) depth: u32,
    pub(super) named: u32,
    pub(super) found: u32,
    pub(super) wants: u32,
    pub(super) ran: u64,
}

impl Slot {
    /// Returns true if the thread was last seen to be given a processor.
    pub(super) fn is_on_processor(&self) -> bool {
        self.switched_at & 1 != 0
    }
}

/// The key of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct RowKey {
    pub(super) image: u64,
    pub(super) place: u64,
    pub(super) number: u32,
    pub(super) processor: u32,
}

/// The calls of a key.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Row {
    pub(super) calls: u64,
    pub(super) failed: u64,
    pub(super) unreturned: u64,
    pub(super) timed: u64,
    /// Sum of the results that are no errors.
    pub(super) results: u64,
    pub(super) elapsed: u64,
    pub(super) longest: u64,
    pub(super) shortest: u64,
    /// Time for which threads were without a processor.
    pub(super) waited: u64,
    pub(super) histogram: [u64; BUCKETS],
    /// Number of the call that is sampled next, or a later one.
    pub(super) due: u64,
}

impl Row {
    /// Adds another row of the same call.
    pub(super) fn add(&mut self, row: &Self) {
        self.calls += row.calls;
        self.failed += row.failed;
        self.unreturned += row.unreturned;
        self.results = self.results.wrapping_add(row.results);
        self.elapsed += row.elapsed;
        self.longest = self.longest.max(row.longest);
        if row.timed > 0 {
            self.shortest = if self.timed == 0 { row.shortest } else { self.shortest.min(row.shortest) };
        }
        self.timed += row.timed;
        self.waited += row.waited;
        self.histogram.iter_mut().zip(row.histogram).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Returns the part of the row from one share to another, of so many: all parts together are the row.
    pub(super) fn part(&self, from: u64, to: u64, all: u64) -> Self {
        let of = |n: u64| part(n, from, to, all);
        Self {
            calls: of(self.calls),
            failed: of(self.failed),
            unreturned: of(self.unreturned),
            timed: of(self.timed),
            results: of(self.results),
            elapsed: of(self.elapsed),
            waited: of(self.waited),
            histogram: self.histogram.map(of),
            ..*self
        }
    }
}

/// Returns the part of a number from one share to another, of so many: all parts together are the number.
pub(super) fn part(n: u64, from: u64, to: u64, all: u64) -> u64 {
    let up_to = |share: u64| (u128::from(n) * u128::from(share) / u128::from(all.max(1))) as u64;
    up_to(to) - up_to(from)
}

impl Default for Row {
    fn default() -> Self {
        Self {
            calls: 0,
            failed: 0,
            unreturned: 0,
            timed: 0,
            results: 0,
            elapsed: 0,
            longest: 0,
            shortest: 0,
            waited: 0,
            histogram: [0; BUCKETS],
            due: 0,
        }
    }
}

/// The key of a number of errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct ErrorKey {
    pub(super) image: u64,
    pub(super) place: u64,
    pub(super) number: u32,
    pub(super) errno: u16,
    pub(super) processor: u16,
}

/// Sums over all that is watched.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Totals {
    /// Calls entered by threads that have ended.
    pub(super) entered: u64,
    /// Threads that live.
    pub(super) live: u64,
    /// Threads that are not watched because there was no slot for them.
    pub(super) no_slot: u64,
    /// Calls that were counted without their image, because there was no room for a row.
    pub(super) no_row: u64,
    /// Errors that were counted without their errno.
    pub(super) no_error: u64,
    /// Events that found no room.
    pub(super) no_notice: u64,
    /// Programs of another machine, which were let go.
    pub(super) foreign: u64,
    /// Rows made so far.
    pub(super) rows: u64,
    /// Sampled calls that found no room.
    pub(super) no_sample: u64,
    /// Windows that were not opened.
    pub(super) refused: u64,
}

/// The key of a rule: an address of code, in an address space by the image that made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct RuleKey {
    pub(super) space: u64,
    pub(super) address: u64,
}

/// Rule of an address with which a place ends. Other rules are the distance of the return address from the stack
/// pointer.
pub(super) const LAST: u32 = 1 << 31;
/// With [`LAST`]: the caller does not lie at a constant distance.
pub(super) const OPEN: u32 = 1 << 30;
/// Addresses of a place, at most.
pub(super) const DEEPEST: usize = 10;

/// What may still be sampled.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Allowance {
    /// Number of rows made up to which each place has a row of its own.
    pub(super) rows: u64,
    /// First stacks of such rows.
    pub(super) stacks: u64,
    /// Windows, by the highest bit of the call's number in its row.
    pub(super) windows: [u32; BUCKETS],
}

impl Default for Allowance {
    fn default() -> Self {
        Self { rows: 0, stacks: 0, windows: [0; BUCKETS] }
    }
}

/// What happened to a thread, as the kernel says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Started,
    TriesExec,
    HasExecuted,
    ReturnedFromExec,
    Ended,
    IsForeign,
}

impl Kind {
    fn from_number(number: u32) -> Option<Self> {
        let all =
            [Self::Started, Self::TriesExec, Self::HasExecuted, Self::ReturnedFromExec, Self::Ended, Self::IsForeign];
        all.get(number.checked_sub(1)? as usize).copied()
    }
}

/// An event of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Time, ns of the clock that [`crate::sys::now`] reads.
    pub(super) at: u64,
    pub(super) image: u64,
    /// Image before, or that of the parent.
    pub(super) from: u64,
    pub(super) kind: Kind,
    pub(super) tid: i32,
    /// True if a new thread is a process of its own.
    pub(super) is_process: bool,
    /// Processor time of a thread that has ended, ns, from the first time that it was given a processor.
    pub(super) ran: u64,
    /// File that an execve names, or the name of the new program.
    pub(super) text: String,
}

/// Bytes of an event before its text.
const HEAD: usize = 48;

impl Event {
    /// Reads an event; `None` if it is none of the programs'.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let head = bytes.get(..HEAD)?;
        let long = |at: usize| head.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
        let word = |at: usize| head.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let text = bytes.get(HEAD..).unwrap_or_default();
        let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
        Some(Self {
            at: long(0)?,
            image: long(8)?,
            from: long(16)?,
            kind: Kind::from_number(word(24)?)?,
            tid: word(28)? as i32,
            is_process: word(36)? != 0,
            ran: long(40)?,
            text: String::from_utf8_lossy(text.get(..end)?).into_owned(),
        })
    }
}

/// Bytes of `task_struct` that are searched for a thread's number.
pub(super) const TASK_BYTES: usize = 8192;

/// The beginning of a `task_struct`, in words.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Task(pub(super) [u32; TASK_BYTES / 4]);

impl Default for Task {
    fn default() -> Self {
        Self([0; TASK_BYTES / 4])
    }
}

/// A map without keys or values of ours.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Nothing;

// SAFETY: all are `repr(C)` structs of numbers, in an order that leaves no padding (a test compares sizes).
unsafe impl Plain for Settings {}
// SAFETY: as above.
unsafe impl Plain for Slot {}
// SAFETY: as above.
unsafe impl Plain for RowKey {}
// SAFETY: as above.
unsafe impl Plain for Row {}
// SAFETY: as above.
unsafe impl Plain for ErrorKey {}
// SAFETY: as above.
unsafe impl Plain for Totals {}
// SAFETY: as above.
unsafe impl Plain for RuleKey {}
// SAFETY: as above.
unsafe impl Plain for Allowance {}
// SAFETY: as above.
unsafe impl Plain for Task {}
// SAFETY: it has no bytes.
unsafe impl Plain for Nothing {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_have_no_padding() {
        assert_eq!(size_of::<Settings>(), 23 * 4);
        assert_eq!(size_of::<Slot>(), 152);
        assert_eq!(size_of::<RowKey>(), 24);
        assert_eq!(size_of::<Row>(), (10 + BUCKETS) * 8);
        assert_eq!(size_of::<ErrorKey>(), 24);
        assert_eq!(size_of::<Totals>(), 10 * 8);
        assert_eq!(size_of::<RuleKey>(), 16);
        assert_eq!(size_of::<Allowance>(), 16 + BUCKETS * 4);
        assert_eq!(size_of::<Task>(), TASK_BYTES);
    }

    #[test]
    fn parts_of_a_row_add_up_to_it() {
        let row = Row { calls: 10, elapsed: 1_001, histogram: [7; BUCKETS], ..Row::default() };
        let parts = [(0, 1), (1, 3), (3, 7)].map(|(from, to)| row.part(from, to, 7));
        let sum = |of: fn(&Row) -> u64| parts.iter().map(of).sum::<u64>();
        assert_eq!((sum(|r| r.calls), sum(|r| r.elapsed), sum(|r| r.histogram[3])), (10, 1_001, 7));
        assert!(parts[2].calls > parts[0].calls);
    }

    #[test]
    fn rows_of_two_processors_add_up() {
        let row = |calls, timed, shortest, longest| Row { calls, timed, shortest, longest, ..Row::default() };
        let mut sum = Row::default();
        sum.add(&row(1, 0, 0, 0));
        sum.add(&row(2, 2, 30, 40));
        sum.add(&row(3, 1, 20, 20));
        assert_eq!((sum.calls, sum.timed, sum.shortest, sum.longest), (6, 3, 20, 40));
    }

    #[test]
    fn events_are_read_and_others_are_not() {
        let mut bytes = vec![0; HEAD];
        bytes[24] = 3;
        bytes[28] = 7;
        bytes.extend(b"name\0more");
        let event = Event::read(&bytes).unwrap();
        assert_eq!((event.kind, event.tid, event.text.as_str()), (Kind::HasExecuted, 7, "name"));
        bytes[24] = 7;
        assert_eq!(Event::read(&bytes), None);
        assert_eq!(Event::read(&bytes[..HEAD - 1]), None);
        bytes[24] = 5;
        assert_eq!(Event::read(&bytes[..HEAD]).map(|e| e.text), Some(String::new()));
    }
}
