//! The exact table that a backend fills: calls by raw addresses, with each stack stored once.

use crate::long_calls::SlowestCalls;
use crate::queued::QueuedTimes;
use crate::row_lines::{self, Line};
use crate::sampled_calls::SampledCalls;
use crate::samples::{SampledStack, Samples, WeighedSample};
use crate::stacks::Stacks;
use crate::trunks::Trunks;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use systoll_model::{Counts, Errno, Exit, KeptWaits, Process, ProcessId, Sysno, ThreadCalls, WaitSpan};
use systoll_symbols::RawFrame;

/// Images with an entry of their own; further ones are folded by program, but for the first of programs that begin late.
const MAX_IMAGES: usize = 96;
/// Further images with an entry of their own, at most: who waits for a program, and where, is known of such images only.
const MAX_LATE_IMAGES: usize = 64;
/// Images of [`MAX_LATE_IMAGES`] of one program, at most. Of a dash that ran three programs in two loops, the second after these
/// 96, the line of the first program was then known in five of six runs (`shared_lines.lines_of_programs`).
const LATE_OF_PROGRAM: u32 = 8;
/// Entries of folded images, at most; further programs share one.
const MAX_FOLDED: usize = 512;
/// Rows of the table, at most. Further calls go to one row per system call, without context.
const MAX_ROWS: usize = 20_000;
/// Contexts of calls into the vDSO, at most. Further calls are counted without context.
const MAX_VDSO: usize = 2_000;
/// Script lines remembered for a row, at most.
pub(crate) const MAX_LINES: usize = 64;
/// Threads with an entry of their own, at most. Further threads of an image share one.
const MAX_THREADS: usize = 512;

/// Index of an image in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ImageId(u32);

impl ImageId {
    /// Id of the command's first image.
    pub(crate) const FIRST: Self = Self(0);

    /// Returns the id of the image at an index of the table.
    pub(crate) fn at(index: usize) -> Self {
        Self(index as u32)
    }

    /// Returns the image's index in the table.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the image's id in a recording.
    pub(crate) fn process(self) -> ProcessId {
        ProcessId(self.0)
    }
}

/// A process image, or several folded into one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    pub(crate) pid: i32,
    pub(crate) parent: Option<ImageId>,
    pub(crate) exe: Arc<str>,
    pub(crate) argv: Vec<Arc<str>>,
    /// Service of the process; empty unless all of a box are watched.
    pub(crate) service: Arc<str>,
    pub(crate) instances: u64,
    /// True if later images of the program are folded into this one.
    pub(crate) is_folded: bool,
    pub(crate) threads: u64,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) life_ns: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) main_at_ns: Option<u64>,
    pub(crate) startup_cpu_ns: u64,
    /// Number of calls made when `startup_cpu_ns` was read.
    pub(crate) startup_calls: u64,
    pub(crate) exit: Option<Exit>,
}

impl Image {
    /// Returns the process for a recording of a run of `wall_ns`; the observer's share is not subtracted.
    pub(crate) fn process(&self, wall_ns: u64) -> Process {
        Process {
            pid: self.pid as u32,
            parent: self.parent.map(ImageId::process),
            exe: self.exe.clone(),
            argv: self.argv.clone(),
            service: self.service.clone(),
            instances: self.instances,
            threads: self.threads,
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            life_ns: if self.end_ns == 0 { wall_ns.saturating_sub(self.start_ns) } else { self.life_ns },
            cpu_ns: Some(self.cpu_ns).filter(|ns| *ns > 0),
            main_at_ns: self.main_at_ns,
            startup_cpu_ns: self.startup_cpu_ns,
            queued_ns: None,
            exit: self.exit,
        }
    }
}

/// A row with raw addresses.
#[derive(Clone, Debug)]
pub(crate) struct RawRow {
    pub(crate) image: ImageId,
    pub(crate) syscall: Sysno,
    pub(crate) context: u32,
    pub(crate) counts: Counts,
    /// Number of calls entered, including those that have not returned.
    pub(crate) entered: u64,
    /// Whole stacks sampled, grouped by the script line they contain, or by none.
    pub(crate) lines: Vec<Line>,
    /// Octave of the last sample, and index of its line.
    pub(crate) last_look: Option<(u32, usize)>,
    /// All different whole stacks that were sampled, with any line.
    pub(crate) trunks: Trunks,
    /// The sampled calls by the objects that they are about.
    pub(crate) samples: Samples,
    /// Number of the call that was the first to be sampled in its part of an octave, the latest of these.
    pub(crate) part_begun: u64,
    /// Numbers of the calls at which windows are to open in this octave, ascending.
    pub(crate) picks: Vec<u64>,
    /// Kept windows that this row opened, oldest first.
    pub(crate) windows: Vec<u32>,
    /// Processor time inside sampled calls: sum in ns, and number.
    pub(crate) in_call: (u64, u64),
    /// Calls that threads have counted by themselves under a tracer, and the time in them, ns.
    pub(crate) inside: (u64, u64),
}

/// Octaves without a sample, at most, whose calls are divided between the lines of the samples before and after them.
const SKIPPED: u32 = 2;

impl RawRow {
    /// Returns true if the sampled lines show the code that made the row's calls.
    pub(crate) fn lines_tell(&self) -> bool {
        row_lines::tell(&self.lines, self.entered)
    }

    /// Returns the samples by object of a row that serves several lines or callers; none of another, which needs no objects.
    pub(crate) fn weighed_samples(&self) -> Vec<WeighedSample> {
        let is_shared = self.samples.has_several_callers() || self.trunks.all.len() > 1;
        if is_shared { self.samples.weighed(self.entered) } else { Vec::new() }
    }

    /// Attributes the calls between the last sampled octave and this one, if at most [`SKIPPED`] octaves lie between:
    /// half of them to the last sample's line. Returns the other half, which belongs to the current sample's line.
    fn share_skipped(&mut self, octave: u32) -> u64 {
        let Some((last, line)) = self.last_look else { return 0 };
        if !(last + 2..=last + 1 + SKIPPED).contains(&octave) {
            return 0;
        }
        let half = ((1u64 << octave) - (1 << (last + 1))) / 2;
        if let Some(line) = self.lines.get_mut(line) {
            line.weight = line.weight.saturating_add(half);
        }
        half
    }

    /// Returns the line that made most of the sampled calls.
    pub(crate) fn main_line(&self) -> Option<&Line> {
        row_lines::main(&self.lines)
    }
}

/// A whole stack that was sampled at a call, with facts about its frames.
pub(crate) struct Look<'a> {
    /// The object that the call is about, as [`systoll_model::object_name`] names it.
    pub(crate) object: Option<&'a str>,
    /// True for a sample beside the usual ones, of an object with few: it says nothing of the row as a whole.
    pub(crate) of_object: bool,
    pub(crate) frames: &'a [RawFrame],
    pub(crate) complete: bool,
    /// The script line that the stack contains, if any.
    pub(crate) line: Option<RawFrame>,
    /// Test for the interpreter's own frames, which tell nothing where there are script lines.
    pub(crate) is_interpreter: &'a dyn Fn(RawFrame) -> bool,
}

/// The calls of a thread, by system call.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawThread {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) calls: BTreeMap<Sysno, ThreadCalls>,
}

#[derive(Clone, Default)]
pub(crate) struct Table {
    pub(crate) images: Vec<Image>,
    /// Folded images by program and service.
    folded: HashMap<(Arc<str>, Arc<str>), ImageId>,
    /// Number of images beyond [`MAX_IMAGES`] with an entry of their own, by program and service.
    late: HashMap<(Arc<str>, Arc<str>), u32>,
    pub(crate) stacks: Stacks,
    pub(crate) rows: Vec<RawRow>,
    row_index: foldhash::HashMap<(ImageId, Sysno, u32), u32>,
    pub(crate) slowest: SlowestCalls,
    /// The calls that waited for long.
    pub(crate) waits: KeptWaits,
    /// Threads' waiting time for a processor.
    pub(crate) queued: QueuedTimes,
    pub(crate) sampled_calls: SampledCalls,
    /// Calls into the vDSO, by image, function and context.
    pub(crate) vdso: HashMap<(ImageId, &'static str, u32), u64>,
    /// Threads by image and thread id; 0 for the threads that share an entry.
    pub(crate) threads: BTreeMap<(ImageId, u32), RawThread>,
    pub(crate) rows_folded: bool,
    pub(crate) calls: u64,
}

/// Calls that begin another image of a process.
const EXECS: [Sysno; 2] = [Sysno::named("execve"), Sysno::named("execveat")];

impl Table {
    /// Creates an empty table in which calls that take `longer` are listed one by one.
    pub(crate) fn listing_longer(longer: Option<Duration>) -> Self {
        let longer_ns = longer.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        Self { slowest: SlowestCalls::above(longer_ns), ..Self::default() }
    }

    /// Returns true if every call above a given time is listed.
    pub(crate) fn lists_longer(&self) -> bool {
        self.slowest.longer_ns.is_some()
    }

    /// Adds the image of a process or a new program. Returns its id, or that of the image into which the images of its
    /// program are folded.
    pub(crate) fn image(&mut self, mut image: Image) -> ImageId {
        image.instances = 1;
        image.threads = 1;
        let own = (image.exe.clone(), image.service.clone());
        if self.images.len() < MAX_IMAGES || self.has_room_for_late(&own) {
            self.images.push(image);
            return ImageId::at(self.images.len() - 1);
        }
        let is_full = self.folded.len() >= MAX_FOLDED && !self.folded.contains_key(&own);
        let key = if is_full { (Arc::from("(others)"), Arc::from("")) } else { own };
        if let Some(id) = self.folded.get(&key) {
            let shared = &mut self.images[id.index()];
            shared.instances += 1;
            shared.threads += 1;
            return *id;
        }
        (image.exe, image.service) = key.clone();
        image.is_folded = true;
        self.images.push(image);
        let id = ImageId::at(self.images.len() - 1);
        self.folded.insert(key, id);
        id
    }

    /// Counts an image beyond [`MAX_IMAGES`]. Returns true if it gets an entry of its own.
    fn has_room_for_late(&mut self, program: &(Arc<str>, Arc<str>)) -> bool {
        let all = self.late.values().fold(0, |sum, of| sum + *of as usize);
        let of_program = self.late.get(program).copied().unwrap_or(0);
        let has_room = all < MAX_LATE_IMAGES && of_program < LATE_OF_PROGRAM;
        if has_room {
            self.late.insert(program.clone(), of_program + 1);
        }
        has_room
    }

    /// Returns the number that stands for a process of `image` in the ledger, which keeps the questions of processes
    /// apart. If several images are folded into `image`, `own` tells their processes apart: any number unique to the
    /// process.
    pub(crate) fn process(&self, image: ImageId, own: u32) -> u32 {
        const OF_FOLDED: u32 = 1 << 31;
        let is_folded = self.images.get(image.index()).is_some_and(|image| image.is_folded);
        if is_folded { OF_FOLDED | own } else { image.index() as u32 }
    }

    /// Returns the number of threads of all images: a thread that continues in another program by `execve` counts once.
    pub(crate) fn threads_in_all(&self) -> u64 {
        self.images.iter().map(|i| i.threads).sum::<u64>().saturating_sub(self.went_on())
    }

    /// Returns the number of images that replaced another image of the same process by `execve`.
    fn went_on(&self) -> u64 {
        if self.images_folded() {
            // In a folded image, only the first image's process is known, so calls are counted instead. The run's first
            // `execve` made the first image.
            let made = |row: &RawRow| row.counts.calls.saturating_sub(row.counts.failed());
            let execs = self.rows.iter().filter(|row| EXECS.contains(&row.syscall));
            return execs.map(made).sum::<u64>().saturating_sub(1);
        }
        let pid_of = |image: &ImageId| self.images.get(image.index()).map(|i| i.pid);
        self.images.iter().filter(|i| i.parent.as_ref().and_then(pid_of) == Some(i.pid)).map(|i| i.instances).sum()
    }

    /// Returns true if further whole stacks may be stored.
    pub(crate) fn has_room_for_stacks(&self) -> bool {
        self.stacks.has_room()
    }

    /// Returns true if images were folded.
    pub(crate) fn images_folded(&self) -> bool {
        !self.folded.is_empty()
    }

    /// Returns the number of the stack made of `frames`; stores it if it is new.
    pub(crate) fn stack(&mut self, frames: &[RawFrame], complete: bool) -> u32 {
        self.stacks.add(frames, complete)
    }

    /// Returns the row of a call, and true if it is new.
    pub(crate) fn row(&mut self, image: ImageId, syscall: Sysno, frames: &[RawFrame]) -> (u32, bool) {
        if self.rows.len() >= MAX_ROWS && !frames.is_empty() {
            let context = self.stacks.find(frames, false);
            if let Some(id) = context.and_then(|context| self.row_index.get(&(image, syscall, context))) {
                return (*id, false);
            }
            self.rows_folded = true;
            return self.row(image, syscall, &[]);
        }
        let context = self.stack(frames, false);
        if let Some(id) = self.row_index.get(&(image, syscall, context)) {
            return (*id, false);
        }
        let id = self.rows.len() as u32;
        self.rows.push(RawRow {
            image,
            syscall,
            context,
            counts: Counts::default(),
            entered: 0,
            lines: Vec::new(),
            last_look: None,
            trunks: Trunks::default(),
            samples: Samples::default(),
            part_begun: 0,
            picks: Vec::new(),
            windows: Vec::new(),
            in_call: (0, 0),
            inside: (0, 0),
        });
        self.row_index.insert((image, syscall, context), id);
        (id, true)
    }

    /// Counts calls of a function in the vDSO.
    pub(crate) fn vdso(&mut self, image: ImageId, function: &'static str, frames: &[RawFrame], calls: u64) {
        let context = self.stack(frames, false);
        if self.vdso.len() >= MAX_VDSO && !self.vdso.contains_key(&(image, function, context)) {
            let nowhere = self.stack(&[], false);
            let all = self.vdso.entry((image, function, nowhere)).or_default();
            *all = all.saturating_add(calls);
            self.rows_folded = true;
            return;
        }
        let all = self.vdso.entry((image, function, context)).or_default();
        *all = all.saturating_add(calls);
    }

    /// Counts calls of a thread, in addition to their row.
    pub(crate) fn by_thread(&mut self, image: ImageId, tid: u32, syscall: Sysno, counts: &Counts) {
        if counts.calls == 0 {
            return;
        }
        let thread = self.thread(image, tid).calls.entry(syscall);
        let none = ThreadCalls { syscall, calls: 0, failed: 0, toll_ns: None, waited_ns: None };
        thread.or_insert(none).add(counts);
    }

    /// Notes a thread's name, which may change.
    pub(crate) fn name_thread(&mut self, image: ImageId, tid: u32, name: &str) {
        let thread = self.thread(image, tid);
        if thread.name.as_deref() != Some(name) {
            thread.name = Some(name.into());
        }
    }

    /// Returns a thread's name with its number. An unknown name is replaced by the program's.
    pub(crate) fn thread_label(&self, image: ImageId, tid: u32) -> Arc<str> {
        let name = self.threads.get(&(image, tid)).and_then(|t| t.name.as_deref());
        let exe = || self.images.get(image.index()).map_or("", |i| i.exe.rsplit('/').next().unwrap_or_default());
        format!("{} {tid}", name.unwrap_or_else(exe)).into()
    }

    fn thread(&mut self, image: ImageId, tid: u32) -> &mut RawThread {
        let room = self.threads.len() < MAX_THREADS || self.threads.contains_key(&(image, tid));
        self.threads.entry((image, if room { tid } else { 0 })).or_default()
    }

    /// Adds the whole stack of a row's `nth` call. Updates the part above the context that all stacks of the same line
    /// share. Returns the stack's number.
    pub(crate) fn whole_stack(&mut self, row: u32, nth: u64, look: &Look<'_>) -> u32 {
        let id = self.stack(look.frames, look.complete);
        let octave = nth.max(1).ilog2();
        let raw = &self.rows[row as usize];
        let context = self.stacks[raw.context as usize].frames.len();
        // The innermost interpreter frame is the one that called the C library.
        let innermost = look.frames.iter().position(|f| (look.is_interpreter)(*f)).map_or(0, |at| at + 1);
        let told = |(at, f): &(usize, &RawFrame)| *at < context.max(innermost) || !(look.is_interpreter)(**f);
        let chain: Vec<RawFrame> = look.frames.iter().enumerate().filter(told).map(|(_, f)| *f).collect();
        let whole = if chain.len() == look.frames.len() { id } else { self.stack(&chain, look.complete) };
        let sampled = SampledStack { line: look.line, whole, full: id };
        self.rows[row as usize].samples.note(octave, look.object, Some(sampled));
        if look.of_object {
            return id;
        }
        // One sample in an octave is taken for all its calls.
        let skipped = self.rows[row as usize].share_skipped(octave);
        let weight = (1 << octave) + skipped;
        self.rows[row as usize].trunks.note(whole, weight, id);
        let raw = &self.rows[row as usize];
        let line = match raw.lines.iter().position(|l| l.line == look.line) {
            Some(at) => {
                let seen = &mut self.rows[row as usize].lines[at];
                let first = &self.stacks[seen.whole as usize].frames;
                seen.shared = first.iter().take(seen.shared).zip(&chain).take_while(|(a, b)| a == b).count();
                seen.looks += 1;
                seen.weight = seen.weight.saturating_add(weight);
                Some(at)
            }
            None if raw.lines.len() < MAX_LINES => {
                let line = Line { line: look.line, looks: 1, weight, whole, shared: chain.len() };
                let lines = &mut self.rows[row as usize].lines;
                lines.push(line);
                Some(lines.len() - 1)
            }
            None => None,
        };
        self.rows[row as usize].last_look = line.map(|line| (octave, line));
        id
    }

    /// Keeps a call that waited for long. The line of `span` is one of [`SampledCalls`].
    pub(crate) fn waited_long(&mut self, span: WaitSpan) {
        if let Some(row) = self.rows.get(span.row.0 as usize) {
            self.waits.add(span, row.syscall);
        }
    }

    /// Counts a call that returned.
    pub(crate) fn returned(&mut self, row: u32, call: ReturnedCall) {
        let counts = &mut self.rows[row as usize].counts;
        self.calls += 1;
        counts.calls += 1;
        match Errno::from_result(call.result) {
            Some(errno) => *counts.errors.entry(errno).or_default() += 1,
            None => counts.bytes = counts.bytes.saturating_add(call.bytes),
        }
        counts.time(call.elapsed_ns);
        if let Some(ns) = call.waited_ns {
            *counts.waited_ns.get_or_insert(0) += ns;
        }
        if call.startup {
            counts.startup_calls += 1;
            counts.startup_waited_ns += call.waited_ns.unwrap_or(0);
        }
    }
}

/// A call that has returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReturnedCall {
    pub(crate) result: i64,
    /// Bytes that the call moved, if it succeeded.
    pub(crate) bytes: u64,
    pub(crate) elapsed_ns: u64,
    pub(crate) waited_ns: Option<u64>,
    pub(crate) startup: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(address: u64) -> RawFrame {
        RawFrame { module: None, address, is_return: true }
    }

    #[test]
    fn images_beyond_the_bound_are_folded_by_program() {
        let mut table = Table::default();
        let mut last = ImageId::FIRST;
        for pid in 0..1000 {
            last = table.image(Image { pid, exe: "/bin/true".into(), ..Image::default() });
        }
        let single = MAX_IMAGES + LATE_OF_PROGRAM as usize;
        assert_eq!(table.images.len(), single + 1);
        assert_eq!(table.images[last.index()].instances, 1000 - single as u64);
        assert!(table.images_folded());
        // Processes folded into one image do not know what others of them have asked.
        let own = ImageId::at(3);
        assert_eq!((table.process(own, 7), table.process(own, 8)), (3, 3));
        assert_ne!(table.process(last, 7), table.process(last, 8));
        assert!(table.process(last, 7) as usize > table.images.len());
    }

    #[test]
    fn threads_of_folded_images_are_counted_once() {
        let mut table = Table::default();
        let first = table.image(Image { pid: 1, exe: "/bin/sh".into(), ..Image::default() });
        let (row, _) = table.row(first, EXECS[0], &[]);
        table.rows[row as usize].counts.calls = 1;
        for pid in 2..500 {
            let child = table.image(Image { pid, parent: Some(first), exe: "/bin/sh".into(), ..Image::default() });
            table.image(Image { pid, parent: Some(child), exe: "/bin/true".into(), ..Image::default() });
            let (row, _) = table.row(child, EXECS[0], &[]);
            table.rows[row as usize].counts.calls += 1;
        }
        assert!(table.images_folded());
        assert_eq!(table.threads_in_all(), 499);
    }

    #[test]
    fn calls_of_skipped_octaves_are_of_the_lines_before_and_behind() {
        let mut table = Table::default();
        let (row, _) = table.row(ImageId::FIRST, Sysno(1), &[frame(1)]);
        let mut look = |nth: u64, line: u64| {
            let frames = [frame(1), frame(line)];
            let look = Look {
                object: None,
                of_object: false,
                frames: &frames,
                complete: true,
                line: Some(frame(line)),
                is_interpreter: &|_| false,
            };
            table.whole_stack(row, nth, &look);
            table.rows[row as usize].lines.iter().map(|l| l.weight).collect::<Vec<_>>()
        };
        assert_eq!(look(1, 10), [1]);
        // No call between 2 and 7 is sampled, and none between 16 and 63.
        assert_eq!(look(9, 10), [1 + 3 + 3 + 8]);
        assert_eq!(look(70, 20), [15 + 24, 24 + 64]);
        assert_eq!(look(80, 20), [39, 88 + 64]);
        assert_eq!(look(130, 10), [39 + 128, 152]);
        // If so many octaves were skipped, their calls are attributed to no line.
        assert_eq!(look(5000, 10), [167 + 4096, 152]);
    }

    #[test]
    fn threads_beyond_the_bound_are_one_and_nothing_is_lost() {
        let mut table = Table::default();
        let one = Counts { calls: 1, toll_ns: Some(5), ..Counts::default() };
        for tid in 1..=MAX_THREADS as u32 + 100 {
            table.name_thread(ImageId::FIRST, tid, "worker");
            table.by_thread(ImageId::FIRST, tid, Sysno(1), &one);
            table.by_thread(ImageId::FIRST, tid, Sysno(2), &Counts::default());
        }
        let of = |tid| table.threads.get(&(ImageId::FIRST, tid)).and_then(|t| t.calls.get(&Sysno(1)));
        assert_eq!(of(1).map(|c| (c.calls, c.toll_ns)), Some((1, Some(5))));
        assert_eq!(of(0).map(|c| (c.calls, c.toll_ns)), Some((100, Some(500))));
        assert!(table.threads.values().all(|t| !t.calls.contains_key(&Sysno(2))));
    }

    #[test]
    fn merged_stacks_keep_the_shared_frames() {
        let mut table = Table::default();
        let (row, new) = table.row(ImageId::at(0), Sysno(1), &[frame(1)]);
        assert!(new);
        let interpreter = frame(77);
        let mut look = |row, nth, line, frames: &[RawFrame]| {
            let is_interpreter = |f| f == interpreter;
            table.whole_stack(
                row,
                nth,
                &Look { object: None, of_object: false, frames, complete: true, line, is_interpreter: &is_interpreter },
            );
            let main = table.rows[row as usize].main_line().copied();
            main.map(|l| (l.line, table.stacks[l.whole as usize].frames[..l.shared].to_vec(), l.looks, l.weight))
        };
        let [one, two, three, four] = [frame(1), frame(2), frame(3), frame(4)];
        look(row, 1, None, &[one, two, three]);
        assert_eq!(look(row, 2, None, &[one, two, four]), Some((None, vec![one, two], 2, 3)));
        assert_eq!(look(row, 3, None, &[frame(9)]), Some((None, vec![], 3, 5)));
        // A script's line takes precedence over stacks without one, and stacks of other lines do not reduce what its
        // stacks share.
        let (a, b) = (RawFrame { is_return: false, ..frame(70) }, RawFrame { is_return: false, ..frame(71) });
        look(row, 4, Some(a), &[one, a, frame(5)]);
        look(row, 64, Some(b), &[one, b, three]);
        // The interpreter's frames above the line do not reduce the shared frames either.
        let seen = look(row, 80, Some(b), &[one, b, interpreter, three, four]);
        assert_eq!(seen.map(|s| s.1), Some(vec![one, b]));
        let (c, way) = (RawFrame { is_return: false, ..frame(72) }, interpreter);
        look(row, 256, Some(c), &[one, way, c, three]);
        let seen = look(row, 300, Some(c), &[one, way, way, c, way, three]);
        // Half of the calls between 128 and 256 are attributed to the line, too.
        assert_eq!(seen, Some((Some(c), vec![one, way, c, three], 2, 512 + 64)));
    }

    #[test]
    fn rows_are_bounded_and_nothing_is_lost() {
        let mut table = Table::default();
        let one = ReturnedCall { result: 0, bytes: 0, elapsed_ns: 1, waited_ns: None, startup: false };
        for n in 0..MAX_ROWS as u64 + 500 {
            let (row, _) = table.row(ImageId::at(0), Sysno(1), &[frame(n)]);
            table.returned(row, one);
        }
        assert!(table.rows_folded && table.rows.len() == MAX_ROWS + 1);
        assert!(table.stacks.len() <= table.rows.len(), "stacks that no row is of");
        assert_eq!(table.rows.iter().map(|r| r.counts.calls).sum::<u64>(), table.calls);
    }
}
