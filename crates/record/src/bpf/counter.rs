//! The counting programs and their maps, loaded into the kernel.

use super::call::{Map, MapType, Plain, Program, READ_ONLY_TO_PROGRAMS};
use super::layout::{
    AWAITS_EXEC, Allowance, ErrorKey, IS_NEW, LAST, NO_CALL, NUMBERS, Nothing, Row, RowKey, RuleKey, Settings, Slot,
    TASK_BYTES, Task, Totals,
};
use super::object::{self, Compiled};
use super::ring::{self, Ring};
use super::sample::{Part, Sample};
use super::{arch, refusal};
use crate::{limits, procfs};
use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use systoll_hooks::layout::capture;
use systoll_model::{Machine, Sysno};

/// Threads that are watched at a time, at most. Slots cost 152 bytes each.
const SLOTS: u32 = 32_767;
/// Slots that are free before anything is watched. The others are handed out while it runs ([`Counter::hand_out`]), in
/// pieces of as many: that takes 10 ms in all, in which a thread starts 600 others at most (17 µs each).
const SLOTS_AT_FIRST: u32 = 2_048;
/// Slots that are free beside those in use where a whole box is watched. All of them take 30 ms to hand out, for each of an
/// agent's spans.
const SPARE: u64 = 8_192;
/// Rows, at most: an image makes some 40 on each processor. They take 6 MB.
pub(super) const ROWS: u32 = 16_384;
/// Rows of a whole box, at most. They take 26 MB.
pub(super) const ROWS_OF_BOX: u32 = 65_536;
/// Errors by errno, at most.
const ERRORS: u32 = 8_192;
/// Addresses of code for which it is known where the return address lies, at most. They take 2 MB.
const RULES: u32 = 16_384;
/// Numbers that tell if descriptors are still the same files. Several descriptors may share one.
const CHANGES: u32 = 1 << 16;
/// Bytes of a sampled call, at most (`struct sample`).
const SAMPLE: usize = 152 + 34 * 8 + 12_288;
/// Largest number of threads that Linux allows (PID_MAX_LIMIT).
const MOST_THREADS: u32 = 1 << 22;
/// Entries read by one call.
const BATCH: usize = 4_096;
/// Name of the settings in the object.
const SETTINGS: &str = "settings";
/// The program that is not for a tracepoint.
const LEARN: &str = "learn";

/// The maps that the programs use, by the names that they have there.
struct Maps {
    slot_of: Map<u32, u16>,
    slots: Map<u32, Slot>,
    free_slots: Map<Nothing, u32>,
    rows: Map<RowKey, Row>,
    empty_row: Map<u32, Row>,
    full_rows: Map<u32, Row>,
    errors: Map<ErrorKey, u64>,
    totals: Map<u32, Totals>,
    own_task: Map<u32, Task>,
    settings: Map<u32, Settings>,
    rules: Map<RuleKey, u32>,
    captures: Map<u32, [u8; 16]>,
    changes: Map<u32, u32>,
    allowance: Map<u32, Allowance>,
    scratch: Map<u32, Scratch>,
    events: Ring,
    samples: Ring,
    mapped: Arc<Ring>,
}

/// Room in which a program puts a sampled call together.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Scratch([u8; SAMPLE]);

impl Default for Scratch {
    fn default() -> Self {
        Self([0; SAMPLE])
    }
}

// SAFETY: bytes.
unsafe impl Plain for Scratch {}
// SAFETY: bytes.
unsafe impl Plain for [u8; 16] {}

/// What is asked of the programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) timed: bool,
    /// True if children are watched, too.
    pub(super) follows: bool,
    /// True if calls are counted by place, and some are sampled.
    pub(super) samples: bool,
    /// Rows by image, at most, and bytes of the rings of events and of samples.
    pub(super) rows: u32,
    pub(super) rings: (usize, usize),
}

/// The programs and maps. Once this is dropped, or its process has ended, the kernel keeps nothing of them.
pub(super) struct Counter {
    maps: Maps,
    programs: Vec<(Compiled, Program)>,
    /// Attachments of the programs to their tracepoints.
    attached: Vec<OwnedFd>,
    slots_made: u32,
    /// Rows by image, at most.
    pub(super) most_rows: u32,
}

impl Counter {
    /// Loads the programs; nothing is counted yet.
    ///
    /// # Errors
    /// The reason why that can't be done here, as text for the user.
    pub(super) fn load(wanted: Wanted) -> Result<Self, String> {
        refusal::beforehand()?;
        let numbers =
            procfs::read("/proc/sys/kernel/pid_max").and_then(|t| String::from_utf8(t).ok()?.trim().parse().ok());
        let numbers = numbers.unwrap_or(MOST_THREADS).clamp(1, MOST_THREADS).saturating_add(1);
        let processors = possible_processors();
        let maps = refusal::with_locked_memory(|| Maps::new(numbers, processors, wanted))?;
        let compiled = object::programs();
        let learn = compiled.iter().find(|p| p.name == LEARN).ok_or("the programs are not in this build")?;
        let learn = maps.load(learn)?;
        let pid_offset = maps.thread_number_offset(&learn)?;
        let settings = Settings {
            pid_offset,
            timed: u32::from(wanted.timed),
            follows: u32::from(wanted.follows),
            processors,
            samples: u32::from(wanted.samples),
            ..arch::settings()
        };
        if wanted.samples {
            maps.set_captures().map_err(|e| refusal::of("setting the programs up", &e, ""))?;
        }
        let set = maps.settings.set(0, settings).and_then(|()| maps.settings.freeze());
        set.map_err(|e| refusal::of("setting the programs up", &e, ""))?;
        let programs = compiled.into_iter().filter(|p| p.name != LEARN);
        let programs = programs.map(|p| Ok((p.clone(), maps.load(&p)?))).collect::<Result<Vec<_>, String>>()?;
        let mut counter = Self { maps, programs, attached: Vec::new(), slots_made: 0, most_rows: wanted.rows };
        counter.add_slots(SLOTS_AT_FIRST);
        Ok(counter)
    }

    /// Begins to count. A call's end is seen before its entry is, so that no entry is left without its end.
    ///
    /// # Errors
    /// The reason, as text for the user.
    pub(super) fn attach(&mut self) -> Result<(), String> {
        for (compiled, program) in self.programs.iter().rev() {
            let name = CString::new(compiled.name.as_str()).map_err(|e| e.to_string())?;
            let attached = program.attach(&name);
            self.attached.push(attached.map_err(|e| refusal::of(&format!("attaching to {}", compiled.name), &e, ""))?);
        }
        Ok(())
    }

    /// Ends counting. If threads live that are watched, waits until no program runs any more.
    pub(super) fn detach(&mut self) {
        // A call's entry ends to be seen before its end does, for the same reason as in `attach`.
        while let Some(last) = self.attached.pop() {
            drop(last);
        }
        if self.totals().live != 0 {
            // Programs run with preemption off, which this call waits out on all processors.
            // SAFETY: no memory is involved.
            unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_GLOBAL, 0, 0) };
        }
    }

    /// Watches a thread; returns its image. If it `awaits_exec`, its calls count from its execve on.
    ///
    /// # Errors
    /// The reason, as text for the user.
    pub(super) fn watch(&mut self, tid: i32, image: Option<u64>, awaits_exec: bool) -> Result<u64, String> {
        let failed = |e: std::io::Error| refusal::of("watching a thread", &e, "");
        let free =
            self.maps.free_slots.pop().or_else(|e| if self.hand_out() { self.maps.free_slots.pop() } else { Err(e) });
        let at = free.map_err(|_| "more threads than can be watched".to_owned())?;
        let generation = self.maps.slots.get(at).map_err(failed)?.generation.wrapping_add(1);
        let image = image.unwrap_or(u64::from(generation) << 16 | u64::from(at));
        let flags = if awaits_exec { AWAITS_EXEC } else { IS_NEW };
        let slot = Slot {
            image,
            call_image: image,
            number: NO_CALL,
            tid: tid as u32,
            flags,
            generation,
            space: image,
            known: NO_CALL,
            ..Slot::default()
        };
        self.maps.slots.set(at, slot).map_err(failed)?;
        self.maps.slot_of.set(tid as u32, at as u16).map_err(failed)?;
        Ok(image)
    }

    /// Adds threads that we watch to the number of those that live.
    ///
    /// # Errors
    /// The reason, as text for the user.
    pub(super) fn add_living(&mut self, threads: u64) -> Result<(), String> {
        let mut totals = self.totals();
        totals.live += threads;
        self.maps.totals.set(0, totals).map_err(|e| refusal::of("watching a thread", &e, ""))
    }

    /// Ends the watching of one of our own threads, and removes what was counted for its image. Returns the row of a
    /// call that it made.
    pub(super) fn forget_own(&mut self, tid: i32, image: u64, number: u32) -> Row {
        let at = (image & 0xffff) as u32;
        self.unwatch(tid, at);
        // Programs that have seen the slot are done with it: they run in the thread that makes this call.
        let mut sum = Row::default();
        let mut gone = Vec::new();
        self.rows(|key, row| {
            if key.image == image {
                gone.push(key);
                if key.number == number {
                    sum.add(&row);
                }
            }
        });
        let _ = self.maps.rows.remove(&gone);
        let mut errors = Vec::new();
        self.errors(|key, _| errors.extend((key.image == image).then_some(key)));
        let _ = self.maps.errors.remove(&errors);
        sum
    }

    /// Learns the place of the call that a thread of ours has made: a function of the C library that leaves the stack
    /// alone made it, and another function called that.
    pub(super) fn learn_own(&self, tid: i32) {
        let place_at = arch::settings();
        self.maps.samples.read(u64::MAX, |bytes| {
            let Some(sample) = Sample::read(bytes).filter(|s| s.part == Part::Stack && s.tid == tid) else { return };
            let (registers, stack) = sample.stack();
            let ip = registers.get((place_at.place_at + 8 * place_at.ip_word) as usize..).and_then(<[u8]>::first_chunk);
            let Some((ip, caller)) = ip.zip(stack.first_chunk()) else { return };
            let key = |address: &[u8; 8]| RuleKey { space: sample.space, address: u64::from_ne_bytes(*address) };
            self.set_rule(key(ip), 0);
            self.set_rule(key(caller), LAST);
        });
    }

    /// Drops the samples so far.
    pub(super) fn drop_samples(&self) {
        self.maps.samples.read(u64::MAX, |_| {});
    }

    /// Ends the watching of a thread that has ended.
    pub(super) fn forget(&self, tid: i32) {
        if let Ok(at @ 1..) = self.maps.slot_of.get(tid as u32) {
            self.unwatch(tid, u32::from(at));
        }
    }

    /// Ends the watching of a thread that can't make calls now.
    fn unwatch(&self, tid: i32, at: u32) {
        let slot = self.maps.slots.get(at).map(|slot| Slot { tid: 0, number: NO_CALL, entered: 0, ..slot });
        let ended = self.maps.slot_of.set(tid as u32, 0).and_then(|()| self.maps.slots.set(at, slot?));
        debug_assert!(ended.is_ok(), "{ended:?}");
        let _ = self.maps.free_slots.push(at);
    }

    /// Returns true if a thread is watched.
    pub(super) fn watches(&self, tid: i32) -> bool {
        self.maps.slot_of.get(tid as u32).is_ok_and(|slot| slot != 0)
    }

    /// Returns the image of a thread that is watched.
    pub(super) fn image_of(&self, tid: i32) -> Option<u64> {
        let at = self.maps.slot_of.get(tid as u32).ok().filter(|at| *at != 0)?;
        self.maps.slots.get(u32::from(at)).ok().map(|slot| slot.image)
    }

    /// Makes more slots free, as long as there are further ones. Returns true if there are.
    pub(super) fn hand_out(&mut self) -> bool {
        self.add_slots(SLOTS_AT_FIRST);
        self.slots_made < SLOTS
    }

    /// Makes more slots free if there are less than [`SPARE`] beyond those of so many threads.
    pub(super) fn keep_spare(&mut self, threads: u64) {
        if u64::from(self.slots_made) < threads.saturating_add(SPARE) {
            self.hand_out();
        }
    }

    fn add_slots(&mut self, slots: u32) {
        let to = SLOTS.min(self.slots_made + slots);
        // Slot 0 stands for none.
        while self.slots_made < to && self.maps.free_slots.push(self.slots_made + 1).is_ok() {
            self.slots_made += 1;
        }
    }

    /// Returns the slots of all threads that are watched.
    pub(super) fn living(&self) -> Vec<Slot> {
        let mut living = Vec::new();
        let read = self
            .maps
            .slots
            .read_first(self.slots_made as usize + 1, BATCH, |_, slot| living.extend((slot.tid != 0).then_some(slot)));
        debug_assert!(read.is_ok(), "{read:?}");
        living
    }

    /// Calls `each` with all rows by image.
    pub(super) fn rows(&self, each: impl FnMut(RowKey, Row)) {
        let read = self.maps.rows.read(BATCH, each);
        debug_assert!(read.is_ok(), "{read:?}");
    }

    /// Calls `each` with the rows of calls for which there was no room by image.
    pub(super) fn full_rows(&self, mut each: impl FnMut(Sysno, Row)) {
        let read = self.maps.full_rows.read(BATCH, |at, row| {
            let number = at % NUMBERS;
            if row.calls + row.unreturned > 0 {
                each(if number == NUMBERS - 1 { Sysno::UNKNOWN } else { Machine::HERE.call(number) }, row);
            }
        });
        debug_assert!(read.is_ok(), "{read:?}");
    }

    /// Calls `each` with all errors by image.
    pub(super) fn errors(&self, each: impl FnMut(ErrorKey, u64)) {
        let read = self.maps.errors.read(BATCH, each);
        debug_assert!(read.is_ok(), "{read:?}");
    }

    /// Removes rows and errors of images that no thread runs any more.
    pub(super) fn remove(&self, rows: &[RowKey], errors: &[ErrorKey]) {
        let removed = self.maps.rows.remove(rows).and_then(|()| self.maps.errors.remove(errors));
        debug_assert!(removed.is_ok(), "{removed:?}");
    }

    pub(super) fn totals(&self) -> Totals {
        self.maps.totals.get(0).unwrap_or_default()
    }

    pub(super) fn events(&self) -> &Ring {
        &self.maps.events
    }

    pub(super) fn samples(&self) -> &Ring {
        &self.maps.samples
    }

    /// Returns the ring with the threads that have mapped code.
    pub(super) fn mapped(&self) -> Arc<Ring> {
        Arc::clone(&self.maps.mapped)
    }

    /// Sets where the return address lies at an address of code. Returns false if there is no room.
    pub(super) fn set_rule(&self, key: RuleKey, rule: u32) -> bool {
        self.maps.rules.set(key, rule).is_ok()
    }

    /// Removes rules, some of which may be gone.
    pub(super) fn remove_rules(&self, keys: &[RuleKey]) {
        // A key that is gone ends a removal of many.
        if self.maps.rules.remove(keys).is_err() {
            keys.iter().for_each(|key| drop(self.maps.rules.remove(&[*key])));
        }
    }

    /// Sets what may still be sampled.
    pub(super) fn allow(&self, windows: Allowance) {
        let set = self.maps.allowance.set(0, windows);
        debug_assert!(set.is_ok(), "{set:?}");
    }

    /// Returns the number that changes when a descriptor of a process, by its image, may have become another file.
    pub(super) fn changes(&self, image: u64, descriptor: u32) -> Option<u64> {
        let of = |descriptor: u32| {
            let at = (image as u32).wrapping_mul(0x9e37_79b1) ^ descriptor.wrapping_mul(0x85eb_ca6b);
            self.maps.changes.get(at >> 16).ok().map(u64::from)
        };
        Some(of(descriptor)? + of(u32::MAX)?)
    }

    /// Returns the number of times that the kernel has left a program out.
    pub(super) fn left_out(&self) -> u64 {
        self.programs.iter().map(|(_, program)| program.left_out()).sum()
    }
}

impl Maps {
    fn new(numbers: u32, processors: u32, wanted: Wanted) -> std::io::Result<Self> {
        Ok(Self {
            slot_of: Map::new(MapType::Array, "slot_of", numbers, 0)?,
            slots: Map::new(MapType::Array, "slots", SLOTS + 1, 0)?,
            free_slots: Map::new(MapType::Queue, "free_slots", SLOTS + 1, 0)?,
            rows: Map::new(MapType::Hash, "rows", wanted.rows, 0)?,
            empty_row: Map::new(MapType::Array, "empty_row", 1, 0)?,
            full_rows: Map::new(MapType::Array, "full_rows", NUMBERS.saturating_mul(processors), 0)?,
            errors: Map::new(MapType::Hash, "errors", ERRORS, 0)?,
            totals: Map::new(MapType::Array, "totals", 1, 0)?,
            own_task: Map::new(MapType::Array, "own_task", 1, 0)?,
            settings: Map::new(MapType::Array, SETTINGS, 1, READ_ONLY_TO_PROGRAMS)?,
            rules: Map::new(MapType::Hash, "rules", RULES, 0)?,
            captures: Map::new(MapType::Array, "captures", NUMBERS, 0)?,
            changes: Map::new(MapType::Array, "changes", CHANGES, 0)?,
            allowance: Map::new(MapType::Array, "allowance", 1, 0)?,
            scratch: Map::new(MapType::Array, "scratch", processors, 0)?,
            events: Ring::new("events", wanted.rings.0)?,
            samples: Ring::new("samples", wanted.rings.1)?,
            mapped: Arc::new(Ring::new("mapped", ring::MAPPED)?),
        })
    }

    /// Says what is to be copied of calls' memory.
    fn set_captures(&self) -> std::io::Result<()> {
        const ARGUMENTS: usize = capture::AT_RETURN as usize;
        (0..NUMBERS).try_for_each(|number| {
            let mut entry = capture::entry(Machine::HERE.call(number).0);
            if entry == [0; 16] {
                return Ok(());
            }
            // The last two bytes are for threads that copy memory themselves; the programs have others there.
            let first = |at: usize| entry[at..at + ARGUMENTS].iter().position(|how| *how != 0).unwrap_or(0) as u8;
            [entry[14], entry[15]] = [first(0), first(ARGUMENTS)];
            self.captures.set(number, entry)
        })
    }

    /// Returns the descriptor of a map that a program names, and true if the program wants its value's address.
    fn find(&self, name: &str) -> Option<(i32, bool)> {
        let fd = match name {
            "slot_of" => self.slot_of.fd(),
            "slots" => self.slots.fd(),
            "free_slots" => self.free_slots.fd(),
            "rows" => self.rows.fd(),
            "empty_row" => self.empty_row.fd(),
            "full_rows" => self.full_rows.fd(),
            "errors" => self.errors.fd(),
            "totals" => self.totals.fd(),
            "own_task" => self.own_task.fd(),
            "rules" => self.rules.fd(),
            "captures" => self.captures.fd(),
            "changes" => self.changes.fd(),
            "allowance" => self.allowance.fd(),
            "scratch" => self.scratch.fd(),
            "events" => self.events.map.fd(),
            "samples" => self.samples.map.fd(),
            "mapped" => self.mapped.map.fd(),
            SETTINGS => self.settings.fd(),
            _ => return None,
        };
        Some((fd.as_raw_fd(), name == SETTINGS))
    }

    fn load(&self, program: &Compiled) -> Result<Program, String> {
        let code = program.linked(|name| self.find(name)).ok_or("the programs name a map that is not there")?;
        let name = format!("systoll_{}", program.name);
        Program::load(&name, &code, c"Dual MIT/GPL")
            .map_err(|(error, log)| refusal::of(&format!("loading the program for {}", program.name), &error, &log))
    }

    /// Finds where the kernel keeps a thread's number in its `task_struct`, which differs from kernel to kernel: where
    /// two threads have their own numbers, and no other place agrees.
    fn thread_number_offset(&self, learn: &Program) -> Result<u32, String> {
        let own_task = &self.own_task;
        let task = || -> std::io::Result<(u32, Task)> {
            learn.run()?;
            // SAFETY: returns a number.
            Ok((unsafe { libc::gettid() } as u32, own_task.get(0)?))
        };
        let failed = |e: std::io::Error| refusal::of("running a program", &e, "");
        let (number, ours) = task().map_err(failed)?;
        let (other_number, others) = std::thread::scope(|scope| {
            let other = limits::spawn_scoped(scope, "numbers", task).map_err(failed)?;
            other.join().map_err(|_| "a thread of systoll's own has failed".to_owned())?.map_err(failed)
        })?;
        let agree = |at: &usize| ours.0[*at] == number && others.0[*at] == other_number;
        let mut places = (0..TASK_BYTES / 4).filter(agree);
        match (places.next(), places.next()) {
            (Some(at), None) => Ok(at as u32 * 4),
            _ => Err("this kernel does not keep threads' numbers where they can be found".into()),
        }
    }
}

/// Returns the number of processors that the machine can have: numbers of processors are lower.
fn possible_processors() -> u32 {
    let text = procfs::read("/sys/devices/system/cpu/possible").and_then(|t| String::from_utf8(t).ok());
    let last = text.and_then(|t| t.trim().rsplit([',', '-']).next()?.parse::<u32>().ok());
    last.map_or(1_024, |last| last.saturating_add(1)).clamp(1, 8_192)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::Command;

    /// Returns programs that count, or says why there are none.
    fn counting(rows: u32, ring: usize) -> Option<Counter> {
        let wanted = Wanted { timed: true, follows: true, samples: false, rows, rings: (ring, 4096) };
        match Counter::load(wanted) {
            Ok(mut counter) => {
                counter.attach().unwrap();
                Some(counter)
            }
            Err(why) => {
                let _ = writeln!(std::io::stderr(), "skipped: {why}");
                None
            }
        }
    }

    /// Returns the calls that all rows hold together, and those among them of `number`.
    fn counted(counter: &Counter, number: Sysno) -> (u64, u64, u64) {
        let (mut all, mut of_number, mut without) = (0, 0, 0);
        counter.rows(|key, row| {
            all += row.calls + row.unreturned;
            of_number += if Machine::HERE.call(key.number) == number { row.calls } else { 0 };
        });
        counter.full_rows(|syscall, row| {
            all += row.calls + row.unreturned;
            without += row.calls + row.unreturned;
            of_number += if syscall == number { row.calls } else { 0 };
        });
        for slot in counter.living().iter().filter(|slot| slot.number != NO_CALL) {
            assert_ne!(slot.tid, 0);
            all += 1;
        }
        (all, of_number, without)
    }

    fn entered(counter: &Counter) -> u64 {
        counter.totals().entered + counter.living().iter().map(|slot| slot.entered).sum::<u64>()
    }

    fn own_tid() -> i32 {
        // SAFETY: returns a number.
        unsafe { libc::gettid() }
    }

    #[test]
    fn calls_that_find_no_row_are_counted_by_their_number() {
        const CALLS: [libc::c_long; 6] = [
            libc::SYS_getuid,
            libc::SYS_getgid,
            libc::SYS_geteuid,
            libc::SYS_getegid,
            libc::SYS_getpid,
            libc::SYS_getppid,
        ];
        let Some(mut counter) = counting(3, ring::EVENTS) else { return };
        counter.watch(own_tid(), None, false).unwrap();
        for number in CALLS {
            for _ in 0..100 {
                // SAFETY: the calls only return a number.
                unsafe { libc::syscall(number) };
            }
        }
        counter.detach();
        let (all, last, without) = counted(&counter, Sysno::named("getppid"));
        assert_eq!((entered(&counter), last), (all, 100));
        assert!(without >= 300 && counter.totals().no_row >= without, "{without} {:?}", counter.totals());
        assert_eq!(counter.left_out(), 0);
    }

    #[test]
    fn events_that_find_no_room_are_counted_and_no_call_is_lost() {
        let Some(mut counter) = counting(ROWS, 4096) else { return };
        counter.watch(own_tid(), None, false).unwrap();
        for _ in 0..40 {
            assert!(Command::new("true").status().unwrap().success());
        }
        counter.detach();
        let (all, execs, without) = counted(&counter, Sysno::named("execve"));
        assert_eq!((entered(&counter), without), (all, 0));
        assert!(execs >= 40 && counter.totals().no_notice > 0, "{execs} {:?}", counter.totals());
        let mut events = 0;
        counter.events().read(u64::MAX, |_| events += 1);
        assert!(events > 10, "{events}");
    }
}
