//! Follows threads and processes: the maker of each, and the program that it runs.

use crate::hash::Map;
use crate::table::Table;
use crate::waits::Untimed;
use std::sync::Arc;
use systoll_model::{Exit, Process, ProcessId};

/// Largest number of threads followed at a time; further ones are taken for a single one.
const MAX_THREADS: usize = 65_536;
/// Largest number of announced children that have not been seen yet.
const MAX_BIRTHS: usize = 65_536;
/// Largest number of unreturned calls that make a child: each such call that returns is searched
/// for among them.
const MAX_MAKING: usize = 4_096;

/// A thread of the trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    /// The thread's process, by a number of ours.
    pub(crate) process: u32,
    /// The thread's number within the recording.
    pub(crate) ordinal: u32,
    /// Number of signals since the thread's last call.
    pub(crate) signals: u32,
    /// Time at which the thread's last call returned, or was entered if nothing tells when it
    /// returned.
    pub(crate) last_end: Option<u64>,
    /// The thread's last call, if it may have waited and no line tells for how long.
    pub(crate) untimed: Option<Untimed>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    image: ProcessId,
    pid: u32,
    threads: u32,
    start_ns: u64,
}

/// The maker of a thread, and the kind of its birth.
#[derive(Clone, Copy, Debug)]
struct Birth {
    /// The maker's process. It may have ended meanwhile, since files of several threads are read
    /// one after the other; `image` is therefore kept too.
    process: u32,
    image: ProcessId,
    shares: bool,
}

/// A call that makes a child and has not returned.
#[derive(Clone, Copy, Debug)]
struct Making {
    maker: u32,
    /// True if the child shares the maker's process.
    shares: bool,
}

#[derive(Clone, Debug, Default)]
struct ToldProcess {
    pid: u32,
    words: Vec<Arc<str>>,
}

/// Threads and processes that run.
#[derive(Default)]
pub(crate) struct Family {
    threads: Map<u32, Thread>,
    processes: Map<u32, Running>,
    births: Map<u32, Birth>,
    /// Facts that the trace tells beside its calls, by thread: its process and command line.
    told: Map<u32, ToldProcess>,
    /// Numbers of the processes of threads that were told of, by process id.
    of_pid: Map<u32, u32>,
    next_process: u32,
    ordinals: u32,
    /// Calls that make a child and have not returned, in the order of their entry.
    making: Vec<Making>,
    /// A thread of the process that the tracer attached to. Threads that no call made belong to
    /// this process.
    attached: Option<u32>,
    /// The end of the first process.
    pub(crate) exit: Option<Exit>,
    /// Number of threads that were ever seen.
    pub(crate) seen: u64,
    root: Option<u32>,
}

/// The result of looking up a thread.
pub(crate) struct Met {
    pub(crate) thread: Thread,
    /// The new process and its maker, if the thread is the first of a process that another has
    /// made.
    pub(crate) forked: Option<Forked>,
}

/// A process that another has made, both by our numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forked {
    pub(crate) child: u32,
    pub(crate) parent: u32,
}

/// A thread that has ended.
pub(crate) struct Gone {
    pub(crate) thread: Thread,
    /// True if it was the last thread of its process.
    pub(crate) last: bool,
}

impl Family {
    /// Returns the thread with this id, and takes it in if it is new. `now` is the time since the
    /// trace's start, ns.
    pub(crate) fn thread(&mut self, table: &mut Table, tid: u32, now: u64) -> Met {
        let tid = if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&tid) { u32::MAX } else { tid };
        if let Some(thread) = self.threads.get(&tid) {
            return Met { thread: thread.clone(), forked: None };
        }
        self.seen += 1;
        let birth = self.births.remove(&tid).or_else(|| self.unborn(tid));
        let process = self.adopt(table, tid, birth, now);
        let forked = birth.filter(|b| !b.shares).map(|b| Forked { child: process, parent: b.process });
        let thread = Thread { process, ordinal: self.ordinals, signals: 0, last_end: None, untimed: None };
        self.ordinals = self.ordinals.wrapping_add(1);
        self.threads.insert(tid, thread.clone());
        Met { thread, forked }
    }

    fn adopt(&mut self, table: &mut Table, tid: u32, birth: Option<Birth>, now: u64) -> u32 {
        let attached = || self.attached.and_then(|tid| self.threads.get(&tid)).map(|t| t.process);
        let told = self.told.get(&tid).map(|told| told.pid);
        let shared = match (told, birth) {
            (Some(pid), _) => self.of_pid.get(&pid).copied(),
            (None, Some(birth)) => birth.shares.then_some(birth.process),
            (None, None) => attached(),
        };
        if let Some(process) = shared {
            let ended = |image| Running { image, pid: tid, threads: 0, start_ns: now };
            let image = birth.map_or_else(|| self.image(process), |b| b.image);
            let running = self.processes.entry(process).or_insert_with(|| ended(image));
            running.threads += 1;
            if let Some(image) = table.image_mut(running.image) {
                image.threads = image.threads.saturating_add(1);
            }
            return process;
        }
        let parent = birth.map(|b| b.image);
        let of = parent.and_then(|image| table.images.get(image.0 as usize)).cloned();
        let pid = told.unwrap_or(tid);
        let words = self.told.get(&pid).map(|told| told.words.clone()).filter(|words| !words.is_empty());
        let (exe, argv) = match (words, of) {
            (Some(words), _) => (words.first().cloned().unwrap_or_default(), words),
            (None, Some(of)) => (of.exe, of.argv),
            (None, None) => (Arc::default(), Vec::new()),
        };
        let image = table.image(Process { pid, parent, exe, argv, start_ns: now, ..Process::default() });
        let process = self.next_process;
        self.next_process = self.next_process.wrapping_add(1);
        self.processes.insert(process, Running { image, pid, threads: 1, start_ns: now });
        if told.is_some() {
            self.of_pid.insert(pid, process);
        }
        self.root.get_or_insert(process);
        process
    }

    /// Returns the birth of a thread that no line announced: a call that has not returned made it.
    fn unborn(&mut self, tid: u32) -> Option<Birth> {
        let at = self.making.iter().rposition(|making| making.maker != tid)?;
        let Making { maker, shares } = self.making.remove(at);
        self.birth(maker, shares)
    }

    fn birth(&self, maker: u32, shares: bool) -> Option<Birth> {
        let process = self.threads.get(&maker)?.process;
        Some(Birth { process, image: self.image(process), shares })
    }

    /// Notes a fact that the trace tells beside its calls: the process of a thread, or the command
    /// line of a process, if `tid` is its own id. It holds for threads that are met later.
    pub(crate) fn told(&mut self, tid: u32, pid: u32, words: Vec<Arc<str>>) {
        if self.told.len() < MAX_THREADS || self.told.contains_key(&tid) {
            let told = self.told.entry(tid).or_default();
            told.pid = pid;
            if !words.is_empty() {
                told.words = words;
            }
        }
    }

    /// Returns the image that a process runs.
    pub(crate) fn image(&self, process: u32) -> ProcessId {
        self.processes.get(&process).map_or(ProcessId(0), |p| p.image)
    }

    /// Returns the thread for changing it.
    pub(crate) fn thread_mut(&mut self, tid: u32) -> Option<&mut Thread> {
        let tid = if self.threads.contains_key(&tid) { tid } else { u32::MAX };
        self.threads.get_mut(&tid)
    }

    /// Returns true if the thread was seen.
    pub(crate) fn knows(&self, tid: u32) -> bool {
        self.threads.contains_key(&tid)
    }

    /// Returns true if the thread has not been seen, but a call announced it.
    pub(crate) fn expects(&self, tid: u32) -> bool {
        self.births.contains_key(&tid)
    }

    /// Returns the only thread that runs; `None` if there are several.
    pub(crate) fn only(&self) -> Option<u32> {
        let mut all = self.threads.keys();
        all.next().copied().filter(|_| all.next().is_none())
    }

    /// Notes the id of a thread that the trace has not told until now.
    pub(crate) fn named(&mut self, table: &mut Table, was: u32, tid: u32) {
        let Some(thread) = self.threads.remove(&was) else { return };
        if let Some(running) = self.processes.get_mut(&thread.process).filter(|r| r.pid == was) {
            running.pid = tid;
            if let Some(image) = table.image_mut(running.image) {
                image.pid = tid;
            }
        }
        self.making.iter_mut().filter(|making| making.maker == was).for_each(|making| making.maker = tid);
        self.threads.insert(tid, thread);
    }

    /// Notes that a call which makes a child has been entered.
    pub(crate) fn making(&mut self, tid: u32, shares: bool) {
        if self.making.len() < MAX_MAKING {
            self.making.push(Making { maker: tid, shares });
        }
    }

    /// Notes that a call of thread `tid` has made a child.
    pub(crate) fn made(&mut self, tid: u32, child: u32, shares: bool) {
        let making = self.making.iter().position(|making| making.maker == tid);
        if let Some(at) = making {
            self.making.remove(at);
        }
        let room = self.births.len() < MAX_BIRTHS && !self.threads.contains_key(&child);
        if let Some(birth) = self.birth(tid, shares).filter(|_| room) {
            self.births.insert(child, birth);
        }
    }

    /// Notes that a call which was to make a child has failed.
    pub(crate) fn made_none(&mut self, tid: u32) {
        self.making.retain(|making| making.maker != tid);
    }

    /// Notes that the tracer has attached to all threads of `tid`'s process.
    pub(crate) fn attached(&mut self, tid: u32) {
        self.attached = Some(tid);
    }

    /// Notes that another program runs in the thread's process from now on.
    pub(crate) fn exec(&mut self, table: &mut Table, tid: u32, exe: Arc<str>, argv: Vec<Arc<str>>, now: u64) {
        let Some(process) = self.threads.get(&tid).map(|t| t.process) else { return };
        let Some(running) = self.processes.get_mut(&process) else { return };
        let first = Some(process) == self.root
            && table.images.get(running.image.0 as usize).is_some_and(|i| i.exe.is_empty() && i.parent.is_none());
        if first {
            if let Some(image) = table.image_mut(running.image) {
                (image.exe, image.argv) = (exe, argv);
            }
            return;
        }
        end(table, running, now, None);
        let parent = Some(running.image);
        running.image =
            table.image(Process { pid: running.pid, parent, exe, argv, start_ns: now, ..Process::default() });
        (running.start_ns, running.threads) = (now, 1);
    }

    /// Notes that a thread has ended; returns `None` if it was never met.
    pub(crate) fn exited(&mut self, table: &mut Table, tid: u32, exit: Exit, now: u64) -> Option<Gone> {
        let thread = self.threads.remove(&tid)?;
        self.made_none(tid);
        let running = self.processes.get_mut(&thread.process)?;
        running.threads = running.threads.saturating_sub(1);
        let main = running.pid == tid;
        if main && Some(thread.process) == self.root {
            self.exit = Some(exit);
        }
        let last = running.threads == 0;
        if main || last {
            end(table, running, now, main.then_some(exit));
        }
        if last {
            self.processes.remove(&thread.process);
        }
        Some(Gone { thread, last })
    }

    /// Ends all that still runs when the trace ends.
    pub(crate) fn finish(&mut self, table: &mut Table, now: u64) {
        for running in self.processes.values() {
            if let Some(image) = table.image_mut(running.image).filter(|i| i.end_ns == 0) {
                image.life_ns = image.life_ns.saturating_add(now.saturating_sub(running.start_ns));
            }
        }
    }
}

fn end(table: &mut Table, running: &Running, now: u64, exit: Option<Exit>) {
    let Some(image) = table.image_mut(running.image) else { return };
    if image.instances == 1 && image.end_ns != 0 {
        image.exit = image.exit.or(exit);
        return;
    }
    image.life_ns = image.life_ns.saturating_add(now.saturating_sub(running.start_ns));
    image.end_ns = now.max(1);
    image.exit = exit.or(image.exit);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_told_apart_from_threads() {
        let (mut family, mut table) = (Family::default(), Table::default());
        let root = family.thread(&mut table, 10, 0).thread;
        family.made(10, 11, true);
        family.made(10, 12, false);
        let thread = family.thread(&mut table, 11, 1).thread;
        let child = family.thread(&mut table, 12, 2);
        assert_eq!(thread.process, root.process);
        assert_eq!(child.forked, Some(Forked { child: child.thread.process, parent: root.process }));
        assert_eq!((table.images.len(), table.images[0].threads), (2, 2));
        // The call that made this child has not returned.
        family.making(12, false);
        let grandchild = family.thread(&mut table, 13, 3);
        assert_eq!(grandchild.forked.map(|forked| forked.parent), Some(child.thread.process));
        family.made(12, 13, false);
        assert_eq!(family.exited(&mut table, 11, Exit::Code(0), 4).map(|gone| gone.last), Some(false));
        assert_eq!(family.exited(&mut table, 10, Exit::Code(3), 5).map(|gone| gone.last), Some(true));
        assert_eq!((family.exit, table.images[0].exit), (Some(Exit::Code(3)), Some(Exit::Code(3))));
    }

    #[test]
    fn an_exec_begins_an_image() {
        let (mut family, mut table) = (Family::default(), Table::default());
        family.thread(&mut table, 0, 0);
        family.exec(&mut table, 0, Arc::from("/bin/sh"), Vec::new(), 0);
        assert_eq!((table.images.len(), &*table.images[0].exe), (1, "/bin/sh"));
        family.exec(&mut table, 0, Arc::from("/bin/ls"), Vec::new(), 7);
        assert_eq!((table.images.len(), table.images[0].end_ns, table.images[1].start_ns), (2, 7, 7));
        family.named(&mut table, 0, 44);
        assert!(family.knows(44) && !family.knows(0));
        assert_eq!(table.images[1].pid, 44);
    }

    #[test]
    fn what_is_told_of_threads_holds() {
        let (mut family, mut table) = (Family::default(), Table::default());
        family.told(10, 10, vec![Arc::from("/bin/sh"), Arc::from("-c")]);
        family.told(11, 10, Vec::new());
        // Perfetto tells of the same process again.
        family.told(10, 10, Vec::new());
        let thread = family.thread(&mut table, 11, 0).thread;
        assert_eq!(family.thread(&mut table, 10, 1).thread.process, thread.process);
        assert_ne!(family.thread(&mut table, 12, 2).thread.process, thread.process);
        let sh = &table.images[0];
        assert_eq!((sh.pid, &*sh.exe, sh.argv.len(), sh.threads, table.images.len()), (10, "/bin/sh", 2, 2, 2));
    }

    #[test]
    fn threads_without_end_are_one() {
        let (mut family, mut table) = (Family::default(), Table::default());
        for tid in 0..MAX_THREADS as u32 + 10 {
            family.thread(&mut table, tid, 0);
        }
        assert!(family.threads.len() <= MAX_THREADS + 1);
    }
}
