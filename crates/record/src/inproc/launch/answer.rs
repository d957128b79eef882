//! What threads ask, and the answers.

use super::super::assemble::number_site;
use super::super::layout::{
    IMAGE, Question, image, may_hold_node, node, record, record_offset, root_record_offset, slot, state,
};
use super::super::nr::{ARCH_PRCTL, EXECVEAT, MLOCKALL, MUNMAP};
use super::engine::{BUSY_LIMIT, Engine, LONG_LIMIT, Seized};
use super::memory::{BLOBS_AT, BLOBS_SIZE};
use super::program::{Program, Waiter};
use super::seeds::{Seed, Sown};
use super::shell::NEWBORN;
use super::sys;
use super::target::Mem;
use super::window::LastUnwound;
use crate::setid::{self, Nature, World};
use crate::sys::read_memory;
use crate::windows::argument_data;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;
use systoll_model::{Moment, ProblemKind, Sysno};

/// The call at which a window may open where none could be afforded at the first: the beginning of
/// an octave, and not so soon that most asking would be for nothing.
const LATER_OCTAVE: u64 = 16;
/// Requests that a program's threads may leave undone: others wait meanwhile.
const MOST_UNHEEDED: u32 = 8;
/// How often it is looked at whether a thread that has been asked for something has ended, ns.
const LOOKS_AFTER: u64 = 2_000_000;
/// Most memory kept of a first slot for telling start-up.
const MOST_AT_MAIN: u64 = 8 << 20;
/// Threads that were in our code when its jumps were taken out have left it by then, but for those the
/// kernel keeps waiting.
const LEAVES_OUR_CODE: Duration = Duration::from_millis(2);

impl Engine {
    /// Answers the thread of slot `index` of program `id`, if it asks anything; whether it waited.
    pub(super) fn answer(&mut self, mut id: u32, index: u64) -> bool {
        if index >= image::SLOT_COUNT {
            return false;
        }
        let base = image::SLOTS + index * slot::SIZE;
        let Some(area) = self.memory.image(id) else { return false };
        if area.get(base + slot::STATE) as u32 != state::WAITING {
            return false;
        }
        let (resume, asked) = (area.get(base + slot::RESUME), area.get(base + slot::ANSWER));
        self.asked_here = area.get(base + slot::PATIENCE) == 0;
        let waiter = Waiter::read(area, index);
        let mut answer = asked;
        let problems = self.problems.len();
        let unwound = self.unwound.take();
        if self.is_itself(id, index, (waiter.tid, Question::from_resume(resume))) {
            match Question::from_resume(resume) {
                Some(Question::Context) => answer = self.on_context(id, index, &waiter, asked),
                Some(Question::Number) => answer = self.on_number(id, index, &waiter, asked),
                Some(Question::Slots) => self.recycle(id, true),
                Some(Question::Ending) => self.on_ending(id, waiter.tid),
                Some(Question::Mapped) if waiter.registers.ax == NEWBORN => {
                    self.on_born(id, index);
                }
                Some(Question::Mapped) => {
                    self.on_mapped(id, index, &waiter, asked);
                }
                Some(Question::Exec) => self.on_exec_asked(id, index, &waiter),
                Some(Question::ExecFailed) => self.on_exec_failed(id, &waiter),
                Some(Question::Last) => {
                    id = self.part_ways(id, index, &waiter);
                    self.on_last(id, index, &waiter);
                }
                Some(Question::Identity) => id = self.part_ways(id, index, &waiter),
                Some(Question::Confine) => {
                    id = self.part_ways(id, index, &waiter);
                    self.on_confine(id);
                }
                Some(Question::WindowEntry) => {
                    self.unwound = unwound.filter(|last| last.is_of(&waiter, asked));
                    self.on_window_entry(id, index, &waiter, asked);
                }
                Some(Question::WindowReturn) => self.on_window_return(id, index, &waiter),
                None => {}
            }
        }
        if Question::from_resume(resume) == Some(Question::Mapped) {
            self.forget_what_doomed_lack((id, index), problems);
        }
        if Question::from_resume(resume).is_some_and(Question::is_long) {
            self.expect_births();
        }
        let Some(area) = self.memory.image(id) else { return true };
        area.set(base + slot::ANSWER, answer);
        let Some(word) = area.half(base + slot::STATE) else { return true };
        // It may have lost patience meanwhile.
        let done = word.compare_exchange(state::WAITING, state::ANSWERED, Ordering::SeqCst, Ordering::SeqCst);
        if done.is_ok() {
            sys::futex_wake(word);
        }
        for id in std::mem::take(&mut self.unsown) {
            self.sow(id);
        }
        true
    }

    /// Whether the thread that calls itself `tid` is the one with that slot: not one of another
    /// PID namespace, where numbers mean others.
    fn is_itself(&mut self, id: u32, index: u64, (tid, question): (i32, Option<Question>)) -> bool {
        let tag = u64::from(id) << 16 | (index + 1);
        if tid <= 0 {
            return false;
        }
        // A slot's thread stays the same until it is given back; the last one is anybody's. Where more is
        // done than to look, its word is not enough: it may be gone, and its number another's.
        let looks_only = matches!(question, Some(Question::WindowEntry | Question::WindowReturn));
        if looks_only && self.programs.get(&id).and_then(|p| p.told.get(&index)) == Some(&tid) {
            return true;
        }
        let mut word = [0; 8];
        let at = IMAGE + image::SLOTS + index * slot::SIZE + slot::TAG;
        let sure = read_memory(tid, at, &mut word) == 8 && u64::from_ne_bytes(word) == tag;
        if let Some(program) = self.programs.get_mut(&id).filter(|_| sure && index + 1 < image::SLOT_COUNT) {
            program.told.insert(index, tid);
        }
        if !sure && !self.is_ending(id, index, tid) {
            self.problem(ProblemKind::Lost, "some threads could not be looked at: contexts and new code are missing");
        }
        sure
    }

    /// Whether the thread of a slot is about to end: another has ended its process while it waited, and
    /// nothing that it asked for comes to pass. Its maker knows it by the same number, so that it is no
    /// thread of another PID namespace.
    fn is_ending(&self, id: u32, index: u64, tid: i32) -> bool {
        let same_number = index == 0 || self.memory.head(id, index).made_as as i32 == tid;
        same_number && crate::procfs::is_ending(tid)
    }

    fn on_context(&mut self, id: u32, index: u64, waiter: &Waiter, root: u64) -> u64 {
        let Some(program) = self.programs.get_mut(&id) else { return root };
        let Some(at) = program.site_of(root) else { return root };
        let (frames, complete) = program.unwind(&mut self.symbols, waiter, at);
        let Some(area) = self.memory.image(id) else { return root };
        let (node, main) = program.context((&mut self.symbols, &mut self.seeds), area, waiter, root, at, &frames);
        if index == 0 && !program.main_seen && main {
            self.on_main(id);
        }
        if !self.windows.affordable(0, self.at(sys::now())) {
            self.look_at_script(id, index, waiter, node, (&frames, complete));
        }
        self.ask_for_window(id, index, node);
        self.unwound = Some(LastUnwound { tid: waiter.tid, sp: waiter.sp, node, frames, complete });
        node
    }

    /// Has the thread ask for a window at this call, the first of its context, if one can be
    /// afforded.
    fn ask_for_window(&mut self, id: u32, index: u64, node: u64) {
        let affordable = self.windows.affordable(0, self.at(sys::now()));
        let Some(area) = self.memory.image(id) else { return };
        let within = may_hold_node(node.wrapping_sub(IMAGE));
        if !within || area.get(node - IMAGE + node::WINDOW_AT) != 0 {
            return;
        }
        if !affordable {
            self.windows.refused += 1;
            return area.set(node - IMAGE + node::WINDOW_AT, LATER_OCTAVE);
        }
        let base = image::SLOTS + index * slot::SIZE;
        let record = area.get(node - IMAGE + node::RECORD);
        if (slot::RECORDS..slot::SIZE).contains(&record) {
            let entered = area.get(base + record + record::ENTERED);
            area.set(node - IMAGE + node::WINDOW_AT, entered + 1);
        }
    }

    /// Gives a program the contexts of earlier ones, where their files are the same.
    pub(super) fn sow(&mut self, id: u32) {
        let affordable = self.windows.affordable(0, self.at(sys::now()));
        let Some(program) = self.programs.get_mut(&id) else { return };
        let Some(area) = self.memory.image(id) else { return };
        let looked_at = affordable && program.is_looked_at();
        let main_seen = program.main_seen;
        // The first call in `main` has to be heard of in any case.
        let window_at = |seed: &Seed, main: bool| if looked_at || main && !main_seen { 1 } else { seed.later() };
        for Sown { node, main, seed } in self.seeds.sow(program, area, window_at) {
            program.seeds.insert(node, seed);
            if main {
                program.main_nodes.push(node);
            } else if !looked_at {
                program.unopened.push(node);
            }
        }
    }

    /// A call at a node taken from an earlier program is made: whether it is the first in `main`.
    pub(super) fn look_for_main(&mut self, id: u32, index: u64, node: u64) {
        let Some(program) = self.programs.get_mut(&id).filter(|p| index == 0 && !p.main_seen) else { return };
        if !program.main_nodes.contains(&node) {
            return;
        }
        let nodes = std::mem::take(&mut program.main_nodes);
        self.on_main(id);
        let affordable = self.windows.affordable(0, self.at(sys::now()));
        if affordable && self.programs.get(&id).is_some_and(Program::is_looked_at) {
            return;
        }
        let (Some(area), Some(program)) = (self.memory.image(id), self.programs.get_mut(&id)) else { return };
        for other in nodes.into_iter().filter(|other| *other != node) {
            let later = program.seeds.get(&other).map_or(LATER_OCTAVE, |seed| seed.later());
            area.set(other - IMAGE + node::WINDOW_AT, later);
            program.unopened.push(other);
        }
    }

    /// `main` is on the stack of the program's first thread: start-up is over.
    fn on_main(&mut self, id: u32) {
        let now = self.at(sys::now());
        // The first thread's own, and it asks right now.
        let (from, asked) = (self.asked_from(id, 0), self.asked_before(id, 0));
        let Some(program) = self.programs.get_mut(&id) else { return };
        program.main_seen = true;
        program.at_main = Some(self.memory.slot_data(id, 0, MOST_AT_MAIN));
        let before = program.thread_before;
        if let Some(image) = self.table.images.get_mut(program.image as usize)
            && image.main_at_ns.is_none()
        {
            image.main_at_ns = Some(now);
            image.startup_cpu_ns = from.map_or(0, |from| from.saturating_sub(before).saturating_sub(asked));
        }
    }

    fn on_number(&mut self, id: u32, index: u64, waiter: &Waiter, table: u64) -> u64 {
        let Some(program) = self.programs.get_mut(&id) else { return table };
        let Some(at) = program.site_of_table(table) else { return table };
        let Some(area) = self.memory.image(id) else { return table };
        let offset = program.files.get(at.0).and_then(|f| f.code.blob.sites.get(at.1)).and_then(|s| s.offset);
        // Numbers are 32 bits wide, as the kernel and the trampolines see them.
        let number = waiter.registers.ax as u32;
        let made = number_site(area.words(), &mut program.room, table, number, u64::from(offset.unwrap_or(0)));
        let Ok(root) = made else { return table };
        program.number_roots.insert(root, at);
        if offset.is_some() {
            self.on_context(id, index, waiter, root)
        } else {
            self.ask_for_window(id, index, root);
            root
        }
    }

    /// Has a waiting thread make a system call; its result, `None` if it does not come back.
    pub(super) fn request(&mut self, id: u32, index: u64, call: [u64; 7]) -> Option<u64> {
        // On a busy box it may be long before the thread is let run.
        self.request_and_come_back((id, id), index, call, LONG_LIMIT / 4)
    }

    /// [`Engine::request`] of a call after which the thread waits in another image.
    pub(super) fn request_and_come_back(
        &mut self,
        (id, back): (u32, u32),
        index: u64,
        call: [u64; 7],
        patience: Duration,
    ) -> Option<u64> {
        let patience = patience.as_nanos() as u64;
        let base = image::SLOTS + index * slot::SIZE;
        if self.programs.get(&id).is_some_and(|p| p.unheeded >= MOST_UNHEEDED) {
            return None;
        }
        let area = self.memory.image(id)?;
        for (i, word) in (0..).zip(call) {
            area.set(base + slot::REQUEST + 8 * i, word);
        }
        let word = area.half(base + slot::STATE)?;
        word.compare_exchange(state::WAITING, state::REQUEST, Ordering::SeqCst, Ordering::SeqCst).ok()?;
        sys::futex_wake(word);
        let (asked, mut looked) = (sys::now(), sys::now());
        let area = self.memory.image(back)?;
        let word = area.half(base + slot::STATE)?;
        let tid = self.memory.head(id, index).tid as i32;
        while word.load(Ordering::SeqCst) != state::WAITING {
            let now = sys::now();
            // One that was killed meanwhile is not waited for: others are waiting for us.
            if now.saturating_sub(looked) > LOOKS_AFTER && tid > 0 {
                looked = now;
                if crate::procfs::is_ending(tid) {
                    return None;
                }
            }
            if now.saturating_sub(asked) > patience {
                if let Some(program) = self.programs.get_mut(&id) {
                    program.unheeded += 1;
                }
                return None;
            }
            std::hint::spin_loop();
            std::thread::yield_now();
        }
        Some(area.get(base + slot::REPLY))
    }

    /// Whether a thread has waited so long that it may go on at any moment: it was about to when
    /// its question was looked at, or that was too long ago.
    pub(super) fn waited_long(&self, id: u32, index: u64) -> bool {
        let base = image::SLOTS + index * slot::SIZE;
        let start = self.memory.image(id).map_or(0, |a| a.get(base + slot::WAIT_START));
        let past =
            |cycles: u64, limit: Duration| cycles as f64 / self.ratio.cycles_per_ns() > limit.as_nanos() as f64 / 2.0;
        past(self.item.saturating_sub(start), LONG_LIMIT) || past(sys::tsc().saturating_sub(self.item), BUSY_LIMIT)
    }

    /// A thread is about to exec: attached to for its exec stop, unless that would take privilege.
    fn on_exec_asked(&mut self, id: u32, index: u64, waiter: &Waiter) {
        let tid = waiter.tid;
        if !self.privileged
            && let Some(path) = exec_path(waiter)
        {
            let world = World {
                root: PathBuf::from(format!("/proc/{tid}/root")),
                euid: crate::procfs::euid(tid).unwrap_or(u32::MAX),
            };
            if let Nature::Privileged(what) = setid::nature(&path, &world)
                && !crate::procfs::no_new_privs(tid)
            {
                let shown = path.strip_prefix(&world.root).map_or_else(|_| path.clone(), |p| Path::new("/").join(p));
                if self.seized.contains_key(&tid) {
                    self.let_go(tid);
                }
                return self.problem(ProblemKind::Unwatched, format!("{} ran unwatched: {what}", shown.display()));
            }
        }
        if let Some(seized) = self.seized.get_mut(&tid) {
            seized.from = Some((id, index));
            return self.lingering.retain(|t| *t != tid);
        }
        match sys::seize(tid) {
            Ok(()) => {
                self.seized.insert(tid, Seized { from: Some((id, index)) });
            }
            Err(errno) => {
                let text = format!("a program ran unwatched: it can't be attached to: {}", errno.desc());
                self.problem(ProblemKind::Unwatched, text);
            }
        }
    }

    /// Whoever looks for a program in one folder after the other tries again at once. An exec that
    /// nobody asks about must not find us attached: there it might take privilege.
    fn on_exec_failed(&mut self, id: u32, waiter: &Waiter) {
        if !self.seized.contains_key(&waiter.tid) {
            return;
        }
        if self.programs.get(&id).is_some_and(|p| p.seen_whole) {
            self.lingering.push(waiter.tid);
        } else {
            self.let_go(waiter.tid);
        }
    }

    /// Takes all jumps out of the process of a waiting thread, which goes on by itself.
    pub(super) fn leave_alone(&mut self, id: u32, tid: i32, why: &str) {
        let Some(program) = self.programs.get(&id) else { return };
        // Not the program's own: a forked process has memory of its own.
        if let Ok(mem) = Mem::open(tid) {
            for file in &program.files {
                mem.restore(&file.code.jumps, file.bias);
            }
        }
        let exe = crate::procfs::exe(tid).unwrap_or_default();
        self.problem(ProblemKind::Unwatched, format!("{exe} {why}: what it did from then on is not watched"));
    }

    /// A thread is about to make a call after which its process can't be watched any more.
    fn on_last(&mut self, id: u32, index: u64, waiter: &Waiter) {
        self.leave_alone(id, waiter.tid, gives_up(waiter));
        self.take_area_back(id, index);
        if waiter.registers.ax as u32 == MLOCKALL {
            self.take_back(id, index, waiter.tid);
        }
    }

    /// Has the waiting thread of a process that was left alone unmap what we share with it, but for
    /// what threads that are in our code at this moment may touch: to have all of it filled with memory
    /// would take gigabytes.
    fn take_back(&mut self, id: u32, index: u64, tid: i32) {
        if self.memory.image(id).is_none_or(|area| area.get(image::QUIET) as u32 != 0) {
            return;
        }
        let Some(room) = self.programs.get(&id).map(|p| p.room.clone()) else { return };
        if std::fs::read_dir(format!("/proc/{tid}/task")).is_ok_and(|all| all.count() > 1) {
            std::thread::sleep(LEAVES_OUR_CODE);
        }
        let contexts = record_offset(room.records).unwrap_or(slot::SIZE);
        let roots = root_record_offset(room.roots).unwrap_or(contexts);
        let unused = self.memory.unused(id, contexts..roots).into_iter().map(|r| IMAGE + r.start..IMAGE + r.end);
        let all = unused.chain(std::iter::once(BLOBS_AT..BLOBS_AT + BLOBS_SIZE)).chain(self.unused_areas(id));
        for range in all.collect::<Vec<_>>() {
            let call = [MUNMAP.into(), range.start, range.end - range.start, 0, 0, 0, 0];
            if self.request(id, index, call) != Some(0) {
                return;
            }
        }
    }

    /// A filter is coming: from now on no system calls of ours.
    fn on_confine(&mut self, id: u32) {
        if let Some(word) = self.memory.image(id).and_then(|a| a.half(image::QUIET)) {
            word.store(1, Ordering::SeqCst);
            self.quiet = true;
        }
    }
}

/// What a thread does that can't be watched any more.
fn gives_up(waiter: &Waiter) -> &'static str {
    match waiter.registers.ax as u32 {
        ARCH_PRCTL => "sets its gs base",
        MLOCKALL => "locks all its memory",
        _ => "gives its time stamp counter up",
    }
}

/// The file an exec names, as a path we can open.
fn exec_path(waiter: &Waiter) -> Option<PathBuf> {
    let tid = waiter.tid;
    let args = waiter.args();
    let at = waiter.registers.ax as u32 == EXECVEAT;
    let signature = Sysno::made(waiter.registers.ax as u32).signature()?;
    let read = |address: u64, buffer: &mut [u8]| read_memory(tid, address, buffer);
    let data = argument_data(signature, Moment::Entry, &args, None, 0, &read);
    let path = data.into_iter().find(|d| d.arg == u8::from(at))?.bytes;
    let path = Path::new(OsStr::from_bytes(&path));
    if let Ok(below_root) = path.strip_prefix("/") {
        return Some(Path::new(&format!("/proc/{tid}/root")).join(below_root));
    }
    let [dir, ..] = args;
    let dir = dir as i32;
    Some(match (at, path.as_os_str().is_empty()) {
        (true, true) => PathBuf::from(format!("/proc/{tid}/fd/{dir}")),
        (true, false) if dir != libc::AT_FDCWD => Path::new(&format!("/proc/{tid}/fd/{dir}")).join(path),
        _ => Path::new(&format!("/proc/{tid}/cwd")).join(path),
    })
}
