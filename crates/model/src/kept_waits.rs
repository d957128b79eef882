//! Long waits of a run, within a bound that is fair to rows.

use crate::random::Random;
use crate::recording::Recording;
use crate::row::RowId;
use crate::shape::shape;
use crate::syscalls::{Moment, Signature};
use crate::sysno::Sysno;
use crate::wait_span::{DroppedWaits, WaitSpan, WaitSpans};
use crate::window::WindowCall;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Waits kept, at most. A wait takes some 30 bytes of the recording's file, which has about 1 MiB.
const MOST: usize = 8_192;
/// Longest waits of a row that are kept whatever their number, at most.
const LONGEST: usize = 16;

/// The waits kept of a row.
#[derive(Clone, Debug, Default)]
struct RowWaits {
    /// The longest waits, shortest first.
    longest: Vec<WaitSpan>,
    /// A fair sample of the others.
    others: Vec<WaitSpan>,
    /// Number of the others, kept or not.
    seen: u64,
    dropped: DroppedWaits,
}

impl RowWaits {
    fn len(&self) -> usize {
        self.longest.len() + self.others.len()
    }

    fn drop_one(&mut self, span: &WaitSpan) {
        self.dropped.calls += 1;
        self.dropped.ns = self.dropped.ns.saturating_add(span.ns);
    }

    /// Adds a wait, and keeps at most `most` of them.
    fn add(&mut self, span: WaitSpan, most: usize, random: &mut Random) {
        let at = self.longest.partition_point(|kept| kept.ns <= span.ns);
        self.longest.insert(at, span);
        if self.longest.len() > LONGEST.min(most) {
            let shortest = self.longest.remove(0);
            self.sample(shortest, most, random);
        }
    }

    /// Adds a wait to the sample: Vitter's algorithm R.
    fn sample(&mut self, span: WaitSpan, most: usize, random: &mut Random) {
        self.seen += 1;
        let room = most.saturating_sub(LONGEST);
        if self.others.len() < room {
            self.others.push(span);
            return;
        }
        let place = usize::try_from(random.below(self.seen)).unwrap_or(usize::MAX);
        let gone = match self.others.get_mut(place) {
            Some(kept) => std::mem::replace(kept, span),
            None => span,
        };
        self.drop_one(&gone);
    }

    /// Drops waits until at most `most` are left.
    fn shrink(&mut self, most: usize, random: &mut Random) {
        while self.others.len() > most.saturating_sub(LONGEST) {
            let place = random.below(self.others.len() as u64) as usize;
            let gone = self.others.swap_remove(place);
            self.drop_one(&gone);
        }
        while self.longest.len() > most {
            let gone = self.longest.remove(0);
            self.drop_one(&gone);
        }
    }
}

/// The long waits of a run so far, as many as are kept.
#[derive(Clone, Debug)]
pub struct KeptWaits {
    rows: HashMap<u32, RowWaits>,
    /// Waits kept of a row, at most.
    most_of_row: usize,
    kept: usize,
    random: Random,
    /// Number of long calls that threads overwrote before anybody read them.
    pub overwritten: u64,
}

impl Default for KeptWaits {
    fn default() -> Self {
        Self { rows: HashMap::new(), most_of_row: MOST, kept: 0, random: Random::new(1), overwritten: 0 }
    }
}

impl KeptWaits {
    /// Adds a wait of a call of `syscall`.
    pub fn add(&mut self, mut span: WaitSpan, syscall: Sysno) {
        let known = syscall.signature().map_or(0, |signature| signature.args.len());
        span.args.iter_mut().skip(known).for_each(|word| *word = 0);
        let is_full = self.kept >= MOST && self.most_of_row == 1;
        let row = self.rows.entry(span.row.0).or_default();
        row.dropped.row = span.row;
        let before = row.len();
        if is_full && before == 0 {
            return row.drop_one(&span);
        }
        row.add(span, self.most_of_row, &mut self.random);
        self.kept = self.kept + row.len() - before;
        while self.kept > MOST && self.most_of_row > 1 {
            self.most_of_row /= 2;
            self.rows.values_mut().for_each(|row| row.shrink(self.most_of_row, &mut self.random));
            self.kept = self.rows.values().map(RowWaits::len).sum();
        }
    }

    /// Returns the waits for a recording, by rising time.
    pub fn waits(&self) -> WaitSpans {
        let mut rows: Vec<&RowWaits> = self.rows.values().collect();
        rows.sort_unstable_by_key(|row| row.dropped.row);
        let kept = rows.iter().flat_map(|row| row.longest.iter().chain(&row.others));
        let mut spans: Vec<WaitSpan> = kept.cloned().collect();
        spans.sort_by_key(|span| (span.begin_ns, span.tid, span.row));
        let dropped = rows.iter().map(|row| row.dropped).filter(|dropped| dropped.calls > 0).collect();
        WaitSpans { kept: true, spans, dropped, overwritten: self.overwritten }
    }
}

/// Descriptors' names by some key; `None` where calls with one key have several names, even by their shape.
struct NamesBy<K>(HashMap<K, Option<Arc<str>>>);

impl<K: Eq + Hash> NamesBy<K> {
    fn note(&mut self, key: K, name: &Arc<str>) {
        let known = self.0.entry(key).or_insert_with(|| Some(name.clone()));
        if known.as_ref().is_some_and(|known| known != name) {
            let shaped = Arc::<str>::from(shape(name));
            let same = known.as_ref().is_some_and(|known| shape(known) == *shaped);
            *known = same.then_some(shaped);
        }
    }

    fn get(&self, key: &K) -> Option<Arc<str>> {
        self.0.get(key).cloned().flatten()
    }
}

/// Names the objects of waits that have none, by the calls of windows: by those of the same row and descriptor, or else
/// of the same process and descriptor, if these agree on a name. Where they agree on its shape only, that is the name. Other rows'
/// files are no such names: a program opens and closes many, and their numbers come again.
pub fn name_objects(recording: &mut Recording) {
    let (mut of_row, mut of_process) = (NamesBy(HashMap::new()), NamesBy(HashMap::new()));
    let mut polled: HashMap<RowId, Option<i32>> = HashMap::new();
    for (window, call) in recording.windows.iter().flat_map(|w| w.calls.iter().map(move |call| (w, call))) {
        let syscall = recording.row(call.row).syscall;
        let Some(signature) = syscall.signature() else { continue };
        if let Some(one) = polled_one(signature, call) {
            let known = polled.entry(call.row).or_insert(one);
            *known = known.filter(|known| Some(*known) == one);
        }
        let Some(fd) = signature.fd_arg().and_then(|at| call.args.get(at)) else { continue };
        let Some(name) = &call.fd else { continue };
        of_row.note((call.row, *fd as i32), name);
        of_process.note((window.process, *fd as i32), name);
    }
    for at in 0..recording.wait_spans.spans.len() {
        let span = &recording.wait_spans.spans[at];
        if span.object.is_some() {
            continue;
        }
        let row = recording.row(span.row);
        let Some(signature) = row.syscall.signature() else { continue };
        let given = signature.fd_arg().and_then(|at| span.args.get(at)).map(|word| *word as i32);
        let Some(fd) = given.or_else(|| polled.get(&span.row).copied().flatten()) else { continue };
        let is_file = |name: &Arc<str>| name.starts_with('/') && !name.starts_with("/dev/");
        let of_others = || of_process.get(&(row.process, fd)).filter(|name| !is_file(name));
        let object = of_row.get(&(span.row, fd)).or_else(of_others);
        recording.wait_spans.spans[at].object = object;
    }
}

/// Returns the descriptor that a `poll` waits for, `Some(None)` if it waits for none or several, and `None` if the call
/// is no `poll` or its descriptors are unknown.
fn polled_one(signature: &Signature, call: &WindowCall) -> Option<Option<i32>> {
    if !matches!(signature.name, "poll" | "ppoll") {
        return None;
    }
    let data = call.arg_data(0, Moment::Entry)?;
    let [fd, _] = data.bytes.as_chunks::<4>().0 else { return Some(None) };
    Some((!data.cut).then(|| i32::from_le_bytes(*fd)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;
    use crate::names::Stack;
    use crate::process::{Process, ProcessId};
    use crate::row::Row;
    use crate::window::{ArgData, Window};

    fn span(row: u32, begin_ns: u64, ns: u64) -> WaitSpan {
        WaitSpan { row: RowId(row), begin_ns, ns, args: [5; 6], ..WaitSpan::default() }
    }

    #[test]
    fn each_row_keeps_its_longest_waits_and_sums_are_exact() {
        let mut kept = KeptWaits::default();
        let nanosleep = Sysno::named("nanosleep");
        // One row has many waits, a hundred others have a few.
        for nth in 0..20_000 {
            kept.add(span(0, nth, 1_000_000 + nth % 1_000), nanosleep);
            if nth % 100 == 0 {
                kept.add(span(1 + (nth / 100) as u32 % 100, nth, 5), nanosleep);
            }
        }
        kept.add(span(0, 0, 9_000_000), nanosleep);
        let waits = kept.waits();
        assert!(waits.spans.len() <= MOST && waits.spans.is_sorted_by_key(|s| s.begin_ns));
        assert_eq!(waits.spans.iter().filter(|s| s.row != RowId(0)).count(), 200);
        assert!(waits.spans.iter().any(|s| s.ns == 9_000_000));
        let of_first: Vec<_> = waits.spans.iter().filter(|s| s.row == RowId(0)).collect();
        let [dropped] = waits.dropped[..] else { panic!("{:?}", waits.dropped) };
        assert_eq!(of_first.len() as u64 + dropped.calls, 20_001);
        let all: u64 = (0..20_000u64).map(|nth| 1_000_000 + nth % 1_000).sum::<u64>() + 9_000_000;
        assert_eq!(of_first.iter().map(|s| s.ns).sum::<u64>() + dropped.ns, all);
        // The sample is of all times, not of the first or last ones.
        let late = of_first.iter().filter(|s| s.begin_ns >= 10_000).count();
        assert!(late * 3 > of_first.len() && late * 3 < of_first.len() * 2, "{late} of {}", of_first.len());
        // nanosleep has two arguments.
        assert_eq!(of_first[0].args, [5, 5, 0, 0, 0, 0]);
    }

    #[test]
    fn more_rows_than_waits_are_kept_are_bounded() {
        let mut kept = KeptWaits::default();
        for row in 0..3 * MOST as u32 {
            kept.add(span(row, 0, 7), Sysno::named("nanosleep"));
            kept.add(span(row, 1, 8), Sysno::named("nanosleep"));
        }
        let waits = kept.waits();
        let dropped: u64 = waits.dropped.iter().map(|d| d.calls).sum();
        assert_eq!(waits.spans.len() as u64 + dropped, 6 * MOST as u64);
        assert!(waits.spans.len() <= MOST, "{}", waits.spans.len());
    }

    #[test]
    fn objects_are_named_by_calls_that_agree() {
        let call = |row: u32, fd: u64, name: Option<&str>| WindowCall {
            row: RowId(row),
            args: [fd, 0, 0, 0, 0, 0],
            fd: name.map(Arc::from),
            ..WindowCall::default()
        };
        let mut poll = call(1, 0x1000, None);
        poll.data = vec![ArgData { arg: 0, at: Moment::Entry, bytes: vec![4, 0, 0, 0, 1, 0, 0, 0], cut: false }];
        let calls = vec![
            call(0, 4, Some("pipe:[7]")),
            call(0, 5, Some("TCP:[127.0.0.1:80->127.0.0.1:4711]")),
            call(0, 5, Some("TCP:[127.0.0.1:80->127.0.0.1:4712]")),
            call(0, 6, Some("pipe:[7]")),
            call(0, 6, Some("/etc/passwd")),
            poll,
        ];
        let row = |name: &str| Row::new(ProcessId(0), Sysno::from_name(name).unwrap(), Counts::default());
        let wait = |row: u32, word: u64| WaitSpan { args: [word, 0, 0, 0, 0, 0], ..span(row, 0, 1) };
        let mut recording = Recording {
            processes: vec![Process::default()],
            stacks: vec![Stack::default()],
            rows: vec![row("read"), row("poll")],
            windows: vec![Window { process: ProcessId(0), thread: 0, row: RowId(0), octave: 0, calls }],
            ..Recording::default()
        };
        recording.wait_spans.spans = vec![wait(0, 4), wait(0, 5), wait(0, 6), wait(0, 9), wait(1, 0x2000)];
        name_objects(&mut recording);
        let names: Vec<_> = recording.wait_spans.spans.iter().map(|s| s.object.as_deref()).collect();
        let peers = shape("TCP:[127.0.0.1:80->127.0.0.1:4711]");
        assert_eq!(names, [Some("pipe:[7]"), Some(&*peers), None, None, Some("pipe:[7]")]);
    }
}
