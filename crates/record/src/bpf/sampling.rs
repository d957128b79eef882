//! Turns the calls that the kernel sends into windows and samples of stacks.

use super::counter::Counter;
use super::descriptors::Descriptors;
use super::images::Images;
use super::layout::{Allowance, BUCKETS};
use super::mappings::Mappings;
use super::places::{Places, SampledStack};
use super::sample::{ENDS_WINDOW, IN_WINDOW, IS_LONG, IS_SAMPLED, OPENS_WINDOW, Part, Sample};
use crate::backend::WindowPolicy;
use crate::long_calls::RawLong;
use crate::procfs;
use crate::raw_window::{Opener, RawWindow};
use crate::ring_windows::{Times, question, raw_call};
use crate::sys::own_cpu;
use crate::table::{Look, Table};
use crate::windows::Windows;
use foldhash::{HashMap, HashSet};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use systoll_hooks::layout::capture::{FdsChanged, fds_changed};
use systoll_hooks::ring_reader::{Piece, Read, WrittenCall};
use systoll_model::{ArgKind, Looked, Machine, RowId, Signature, Sysno, WaitSpan, object_of};
use systoll_symbols::Symbols;

/// Windows of each doubling of a row's calls, and first stacks of rows, that may be sampled until the allowance is renewed.
const AT_ONCE: u32 = 8;
const STACKS_AT_ONCE: u64 = 1_024;
/// Number of rt_sigreturn, whose result is a register of the code that the handler interrupted.
const RT_SIGRETURN: Sysno = Sysno(15);

/// An entered call that was sampled, until it returns.
struct EnteredCall {
    row: u32,
    nth: u64,
    /// The call's number in its thread.
    in_thread: u64,
    at: u64,
    args: [u64; 6],
    fd: Option<Arc<str>>,
    stack: Option<u32>,
    memory: Vec<(u8, Vec<u8>)>,
    stands_for: u64,
    in_window: bool,
}

/// What is known of a thread.
#[derive(Default)]
struct Thread {
    ordinal: u32,
    stack: Option<SampledStack>,
    entered: Option<EnteredCall>,
    window: Option<RawWindow>,
}

/// The sampled calls of a run.
pub(super) struct Sampling {
    pub(super) windows: Windows,
    pub(super) symbols: Symbols,
    pub(super) places: Places,
    /// The thread that reads maps, unless calls are only counted.
    mappings: Option<Mappings>,
    descriptors: Descriptors,
    threads: HashMap<i32, Thread>,
    ordinals: u32,
    /// Time that stacks have taken, and may take: that much, and a share of the run's time added to it.
    for_stacks: Duration,
    first_stacks: (Duration, f64),
    /// Rows that were sampled before the program's `main` began, and not since.
    startup: HashSet<u32>,
    /// False if calls are only counted.
    is_on: bool,
    /// True if a program ran before it was watched: its `main` has begun.
    runs_already: bool,
    pub(super) start_ns: u64,
}

impl Sampling {
    pub(super) fn new(policy: WindowPolicy, seed: u64, is_on: bool) -> Self {
        Self {
            first_stacks: policy.first_stacks,
            windows: Windows::new(policy, seed),
            symbols: Symbols::new(),
            places: Places::default(),
            mappings: None,
            descriptors: Descriptors::default(),
            threads: HashMap::default(),
            ordinals: 0,
            for_stacks: Duration::ZERO,
            startup: HashSet::default(),
            is_on,
            runs_already: false,
            start_ns: 0,
        }
    }

    /// Adds the address space of a process that runs already.
    pub(super) fn add_running(&mut self, space: u64) {
        self.runs_already = true;
        if self.is_on {
            self.places.add_running(space);
        }
    }

    /// Starts to read maps.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn begin(&mut self, counter: &Counter) -> std::io::Result<()> {
        self.mappings = if self.is_on { Some(Mappings::read_from(counter.mapped())?) } else { None };
        Ok(())
    }

    /// Tells the kernel how many windows may be opened in a run that has lasted `run_ns`.
    /// `rows` is the number of rows up to which places have rows of their own.
    pub(super) fn allow(&mut self, counter: &Counter, run_ns: u64, rows: u64) {
        if !self.is_on {
            return;
        }
        let mut windows = [0; BUCKETS];
        for (octave, allowed) in (0u8..).zip(&mut windows) {
            *allowed = if self.windows.affordable(octave, run_ns) { AT_ONCE } else { 0 };
        }
        let (least, share) = self.first_stacks;
        let has_time = self.for_stacks < least + Duration::from_nanos(run_ns).mul_f64(share);
        counter.allow(Allowance { rows, stacks: if has_time { STACKS_AT_ONCE } else { 0 }, windows });
        self.windows.refused = counter.totals().refused;
    }

    /// Takes all samples that the kernel has sent up to a position of its ring.
    pub(super) fn take(&mut self, counter: &Counter, end: u64, table: &mut Table, images: &mut Images) {
        let own = std::process::id() as i32;
        for mapped in self.mappings.iter().flat_map(Mappings::take) {
            self.places.note_mapped(mapped);
        }
        counter.samples().read(end, |bytes| {
            let is_wanted = |sample: &Sample<'_>| sample.process != own && images.knows(sample.image);
            let Some(sample) = Sample::read(bytes).filter(is_wanted) else { return };
            let began = own_cpu();
            let octave = sample.nth.max(1).ilog2() as u8;
            match sample.part {
                Part::Stack => self.on_stack(counter, &sample, table, images),
                Part::Entry => self.on_entry(counter, &sample, table, images),
                Part::Return => self.on_return(counter, &sample, table, images),
            }
            let took = own_cpu().saturating_sub(began);
            let thread = self.threads.get(&sample.tid).and_then(|thread| thread.window.as_ref());
            match sample.part {
                Part::Stack => self.for_stacks += took,
                _ => self.windows.spend(thread.map_or(octave, |w| w.octave), took),
            }
        });
    }

    fn on_stack(&mut self, counter: &Counter, sample: &Sample<'_>, table: &mut Table, images: &mut Images) {
        let image = images.of(sample.image, table);
        let stack = self.places.take_stack(&mut self.symbols, table, counter, sample);
        if let Some(image) = table.images.get_mut(image.index())
            && image.main_at_ns.is_none()
            && stack.as_ref().is_some_and(|stack| stack.reaches_main)
        {
            image.main_at_ns = Some(sample.at.saturating_sub(self.start_ns));
        }
        self.thread(sample.tid).stack = stack;
    }

    fn on_entry(&mut self, counter: &Counter, sample: &Sample<'_>, table: &mut Table, images: &mut Images) {
        let (syscall, args) = call_of(sample);
        let signature = syscall.signature();
        let image = images.of(sample.image, table);
        let row = self.row(sample, table, images);
        let fd = signature.and_then(|s| self.descriptors.name(counter, sample, s, &args));
        if let (Some(signature), Some(name)) = (signature, &fd) {
            self.windows.seen(sample.process, signature, name);
        }
        let in_main = self.runs_already || table.images.get(image.index()).is_some_and(|i| i.main_at_ns.is_some());
        if in_main {
            self.startup.remove(&row);
        } else {
            self.startup.insert(row);
        }
        let (place, tid) = (sample.place, sample.tid);
        let sampled = self.thread(tid).stack.take().filter(|stack| stack.place == place);
        let object =
            signature.and_then(|s| object_of(s, &args, |arg, kind| bytes_of(sample, arg, kind), || fd.clone()));
        let stack = sampled.filter(|s| !s.frames.is_empty() && table.has_room_for_stacks()).map(|stack| {
            let symbols = &self.symbols;
            let is_interpreter = |f| symbols.is_interpreter(f);
            let look = Look {
                object: object.as_deref(),
                of_object: false,
                frames: &stack.frames,
                complete: stack.is_complete,
                line: None,
                is_interpreter: &is_interpreter,
            };
            table.whole_stack(row, sample.nth, &look)
        });
        if sample.is(OPENS_WINDOW) {
            self.close_window(tid, table);
            let octave = sample.nth.max(1).ilog2() as u8;
            let by = Opener { thread: self.thread(tid).ordinal, tid, process: sample.process as u32 };
            let window = Windows::open(table, row, octave, by);
            self.windows.note_opened(octave);
            self.thread(tid).window = Some(window);
        }
        let in_window = sample.is(IN_WINDOW) && self.thread(tid).window.is_some();
        let memory = sample.memory().map(|piece| (piece.argument, piece.bytes.to_vec())).collect();
        let nth = sample.nth;
        let before = self.thread(tid).entered.replace(EnteredCall {
            row,
            nth,
            in_thread: sample.took,
            at: sample.at,
            args,
            fd,
            stack,
            memory,
            stands_for: sample.stands_for,
            in_window,
        });
        if before.is_some_and(|before| before.in_window) && !sample.is(OPENS_WINDOW) {
            // The end of the call before was lost: the window's calls would no longer follow one another.
            self.close_window(tid, table);
            if let Some(entered) = &mut self.thread(tid).entered {
                entered.in_window = false;
            }
        }
    }

    fn on_return(&mut self, counter: &Counter, sample: &Sample<'_>, table: &mut Table, images: &mut Images) {
        let (syscall, args) = call_of(sample);
        let signature = syscall.signature();
        let result = if syscall == RT_SIGRETURN { 0 } else { sample.result };
        let result = Machine::HERE.result(syscall, &args, result);
        if sample.is(IS_LONG) {
            self.keep_wait(counter, (sample, signature, &args, result), table, images);
        }
        if !sample.is(IS_SAMPLED) {
            return;
        }
        let Some(entered) = self.thread(sample.tid).entered.take() else { return };
        if entered.in_thread != sample.nth {
            return;
        }
        if let Some(signature) = signature
            && matches!(fds_changed(signature, &args, Some(result)), FdsChanged::One(_))
            && signature.name != "close"
            && let Some(of_path) = signature.path_arg()
            && let Some((_, bytes)) = entered.memory.iter().find(|(at, _)| usize::from(*at) == of_path)
            && let Some(path) = path(bytes).map(String::from_utf8_lossy)
        {
            let has_folder = signature.fd_arg().is_some_and(|at| args[at] as i32 >= 0);
            let folder = match has_folder {
                true => entered.fd.clone(),
                false => std::fs::read_link(format!("/proc/{}/cwd", sample.process))
                    .ok()
                    .map(|path| path.to_string_lossy().as_ref().into()),
            };
            self.descriptors.opened(counter, sample, &path, folder.as_deref());
        }
        let at = signature.and_then(|s| s.fd_arg()).and_then(|at| u8::try_from(at).ok());
        let name = at.zip(entered.fd.as_deref());
        let name = name.map(|(argument, name)| Piece { argument, read: Read::Name, bytes: name.as_bytes() });
        let before = entered.memory.iter();
        let before = before.map(|(argument, bytes)| Piece { argument: *argument, read: Read::Entry, bytes });
        let mut memory = name.into_iter().chain(before).chain(sample.memory());
        let written =
            WrittenCall { pieces: std::array::from_fn(|_| memory.next()), ..written(&entered, syscall, Some(result)) };
        if !entered.in_window {
            self.note_look(&written, (&entered, sample), signature, (table, images));
            return;
        }
        let times = Times {
            entry_ns: entered.at.saturating_sub(self.start_ns),
            elapsed_ns: sample.took,
            waited_ns: Some(sample.waited),
        };
        let bound = self.windows.bytes();
        let mut call = raw_call(entered.row, &written, signature, (times, entered.fd.clone(), bound));
        call.stack = entered.stack;
        if let Some(window) = self.thread(sample.tid).window.as_mut() {
            window.calls.push(call);
        }
        if sample.is(ENDS_WINDOW) {
            self.close_window(sample.tid, table);
        }
    }

    /// Notes the question about an object that a call outside windows has asked.
    fn note_look(
        &mut self,
        written: &WrittenCall<'_>,
        (entered, sample): (&EnteredCall, &Sample<'_>),
        signature: Option<&Signature>,
        (table, images): (&mut Table, &mut Images),
    ) {
        let Some(question) = signature.and_then(|s| question(written, s, self.windows.bytes())) else { return };
        if entered.stands_for == 0 {
            return;
        }
        let image = images.of(sample.image, table);
        self.windows.ledger.note_look(Looked {
            process: table.process(image, sample.process as u32),
            row: entered.row,
            syscall: Machine::HERE.call(sample.number),
            question: &question,
            at_ns: entered.at.saturating_sub(self.start_ns),
            stands_for: entered.stands_for,
        });
    }

    /// Keeps a call that waited for long.
    fn keep_wait(
        &mut self,
        counter: &Counter,
        (sample, signature, args, result): (&Sample<'_>, Option<&Signature>, &[u64; 6], i64),
        table: &mut Table,
        images: &mut Images,
    ) {
        let row = self.row(sample, table, images);
        let object = signature.and_then(|s| self.descriptors.name(counter, sample, s, args));
        let begin_ns = sample.at.saturating_sub(self.start_ns);
        if table.slowest.is_long(sample.took) {
            let thread = format!("{} {}", procfs::comm(sample.tid), sample.tid).into();
            let startup = self.startup.contains(&row);
            table.slowest.add(RawLong { ns: sample.took, row, at_ns: begin_ns, thread, startup });
        }
        table.waited_long(WaitSpan {
            row: RowId(row),
            pid: sample.process as u32,
            tid: sample.tid as u32,
            begin_ns,
            ns: sample.took,
            args: *args,
            result: Some(result),
            queued_most_ns: None,
            line: None,
            object,
        });
    }

    /// Returns the row of a sampled call.
    fn row(&self, sample: &Sample<'_>, table: &mut Table, images: &mut Images) -> u32 {
        let image = images.of(sample.image, table);
        let frames = self.places.context(table, sample.space, sample.place);
        table.row(image, Machine::HERE.call(sample.number), &frames).0
    }

    /// Returns true if all of a row's calls were made before the program's `main` began, as far as is known.
    pub(super) fn is_startup(&self, row: u32) -> bool {
        self.startup.contains(&row)
    }

    fn thread(&mut self, tid: i32) -> &mut Thread {
        let ordinals = &mut self.ordinals;
        self.threads.entry(tid).or_insert_with(|| {
            *ordinals += 1;
            Thread { ordinal: *ordinals - 1, ..Thread::default() }
        })
    }

    /// Keeps the calls of a thread's open window.
    fn close_window(&mut self, tid: i32, table: &mut Table) {
        if let Some(window) = self.threads.get_mut(&tid).and_then(|thread| thread.window.take()) {
            self.windows.keep(table, window);
        }
    }

    /// Ends the windows of threads that have ended, or have a new program; a call that has not returned is their last.
    pub(super) fn end_threads(&mut self, ended: &[(i32, bool)], table: &mut Table) {
        for (tid, goes_on) in ended {
            self.end_window(*tid, table);
            if !goes_on {
                self.threads.remove(tid);
            }
        }
    }

    /// Ends all windows.
    pub(super) fn end(&mut self, table: &mut Table) {
        let all: Vec<(i32, bool)> = self.threads.keys().map(|tid| (*tid, false)).collect();
        self.end_threads(&all, table);
    }

    fn end_window(&mut self, tid: i32, table: &mut Table) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let entered = thread.entered.take().filter(|entered| entered.in_window);
        if let (Some(entered), Some(window)) = (entered, thread.window.as_mut()) {
            let syscall = table.rows.get(entered.row as usize).map_or(Sysno::UNKNOWN, |row| row.syscall);
            let mut memory = entered.memory.iter().map(|(at, bytes)| Piece { argument: *at, read: Read::Entry, bytes });
            let written =
                WrittenCall { pieces: std::array::from_fn(|_| memory.next()), ..written(&entered, syscall, None) };
            let entry_ns = entered.at.saturating_sub(self.start_ns);
            let times = Times { entry_ns, elapsed_ns: 0, waited_ns: None };
            let bound = self.windows.bytes();
            let mut call = raw_call(entered.row, &written, syscall.signature(), (times, entered.fd.clone(), bound));
            call.stack = entered.stack;
            window.calls.push(call);
        }
        self.close_window(tid, table);
    }
}

/// Returns a call in the form in which threads write theirs, without memory.
fn written<'b>(entered: &EnteredCall, syscall: Sysno, result: Option<i64>) -> WrittenCall<'b> {
    WrittenCall {
        node: 0,
        nth: entered.nth,
        args: entered.args,
        number: syscall.0,
        time: 0,
        result,
        cycles: 0,
        waited: None,
        faults: None,
        after_gap: false,
        stands_for: entered.stands_for,
        alone: false,
        names: false,
        pieces: [None; 6],
    }
}

/// Returns a sampled call and its arguments, in the form of x86-64.
fn call_of(sample: &Sample<'_>) -> (Sysno, [u64; 6]) {
    let syscall = Machine::HERE.call(sample.number);
    (syscall, Machine::HERE.args(syscall, sample.args))
}

/// Returns what an argument of a sampled call points to, a path without its NUL.
fn bytes_of<'b>(sample: &Sample<'b>, arg: u8, kind: ArgKind) -> Option<Cow<'b, [u8]>> {
    let bytes = sample.memory().find(|piece| piece.argument == arg)?.bytes;
    if kind == ArgKind::Path { Some(path(bytes)?.into()) } else { Some(bytes.into()) }
}

/// Returns a path without its NUL; `None` if it is cut.
fn path(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(..bytes.iter().position(|byte| *byte == 0)?)
}
