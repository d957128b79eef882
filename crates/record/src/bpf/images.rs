//! Follows processes and programs by the events that the kernel reports.

use super::layout::{Event, Kind};
use crate::table::{Image, ImageId, Table};
use foldhash::HashMap;
use std::sync::Arc;

/// Names of executed files that are remembered until the execve has succeeded, at most.
const MOST_TRIED: usize = 65_536;

/// A program of a process, as the kernel numbers it.
#[derive(Clone, Copy, Debug)]
struct Running {
    image: ImageId,
    /// Number of the image that made the address space.
    space: u64,
    /// Threads that run the program, or make their last call in it.
    threads: u32,
    start_ns: u64,
    /// Processor time of its threads that have ended, ns.
    ran_ns: u64,
}

/// A program that no thread runs any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndedImage {
    pub(super) image: ImageId,
    /// Number of the image that made its address space.
    pub(super) space: u64,
}

/// The programs that are watched.
#[derive(Default)]
pub(super) struct Images {
    running: HashMap<u64, Running>,
    /// Programs that no thread runs any more, whose rows are not taken yet.
    ended: HashMap<u64, EndedImage>,
    /// By thread: the program that it has left by an execve that has not returned.
    leaving: HashMap<i32, u64>,
    /// By thread: the file that its last execve named.
    tried: HashMap<i32, String>,
    /// The program that files became when they were executed: the name of those that have ended when it is asked for.
    resolved: HashMap<String, Arc<str>>,
    /// The image of calls whose program is not known.
    unknown: Option<ImageId>,
    root: i32,
    /// True if all processes of the box are watched: they have names of services and processor times then.
    pub(super) is_whole_box: bool,
    /// True once the command's own process has executed the command.
    pub(super) has_begun: bool,
    pub(super) start_ns: u64,
}

impl Images {
    /// Begins with the process in which the command is to be executed.
    pub(super) fn started(root: i32, image: u64, table: &mut Table) -> Self {
        let mut images = Self { root, ..Self::default() };
        images.add(image, image, 1, Image { pid: root, ..Image::default() }, table);
        images
    }

    /// Adds a process that runs already, with a number of threads.
    pub(super) fn add_running(&mut self, pid: i32, image: u64, threads: u32, table: &mut Table) {
        let exe = crate::procfs::exe(pid).unwrap_or_default();
        let service = if self.is_whole_box { crate::service::of(pid, &exe) } else { Arc::default() };
        let image_of_process = Image { pid, exe, argv: crate::procfs::argv(pid), service, ..Image::default() };
        self.add(image, image, threads, image_of_process, table);
    }

    fn add(&mut self, number: u64, space: u64, threads: u32, image: Image, table: &mut Table) -> ImageId {
        let start_ns = image.start_ns;
        let id = table.image(image);
        if let Some(image) = table.images.get_mut(id.index()) {
            image.threads = image.threads.saturating_add(u64::from(threads.saturating_sub(1)));
        }
        self.running.insert(number, Running { image: id, space, threads, start_ns, ran_ns: 0 });
        id
    }

    /// Adds a thread of a program.
    pub(super) fn add_thread(&mut self, image: u64, table: &mut Table) {
        if let Some(running) = self.running.get_mut(&image) {
            running.threads += 1;
            if let Some(image) = table.images.get_mut(running.image.index()) {
                image.threads += 1;
            }
        }
    }

    /// Returns the processor time of a program's threads that have ended, ns.
    pub(super) fn ran_ns(&self, number: u64) -> u64 {
        self.running.get(&number).map_or(0, |running| running.ran_ns)
    }

    /// Returns the number of processes that run.
    pub(super) fn processes(&self) -> usize {
        self.running.len()
    }

    /// Returns true if a program has ended and its rows can be taken.
    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Takes the programs that have ended. No thread adds to their rows any more.
    pub(super) fn take_ended(&mut self) -> HashMap<u64, EndedImage> {
        std::mem::take(&mut self.ended)
    }

    /// Returns the number of the image that made the address space of a program; 0 if it is not known.
    pub(super) fn space_of(&self, number: u64) -> u64 {
        let running = self.running.get(&number).map(|r| r.space);
        running.or_else(|| self.ended.get(&number).map(|e| e.space)).unwrap_or(0)
    }

    /// Returns true if a program runs, or has rows that are not taken yet.
    pub(super) fn knows(&self, number: u64) -> bool {
        self.running.contains_key(&number) || self.ended.contains_key(&number)
    }

    /// Returns true if a program runs in an address space, or one that did has rows that are not taken yet.
    pub(super) fn has_space(&self, space: u64) -> bool {
        self.running.values().any(|r| r.space == space) || self.ended.values().any(|e| e.space == space)
    }

    /// Returns the image of a row's number.
    pub(super) fn of(&mut self, number: u64, table: &mut Table) -> ImageId {
        let known = self.running.get(&number).map(|r| r.image).or_else(|| self.ended.get(&number).map(|e| e.image));
        known.unwrap_or_else(|| {
            let unknown = || table.image(Image { exe: "(processes that are not known)".into(), ..Image::default() });
            *self.unknown.get_or_insert_with(unknown)
        })
    }

    /// Takes in an event. `image_of` returns the image that a thread has now. Returns the program of another machine
    /// that was let go, if the event is about one.
    pub(super) fn take(
        &mut self,
        event: Event,
        table: &mut Table,
        image_of: impl Fn(i32) -> Option<u64>,
    ) -> Option<Arc<str>> {
        let at_ns = event.at.saturating_sub(self.start_ns);
        match event.kind {
            Kind::Started => self.on_start(&event, at_ns, table),
            Kind::TriesExec => {
                if self.tried.len() < MOST_TRIED {
                    self.tried.insert(event.tid, event.text);
                }
            }
            Kind::HasExecuted => self.on_exec(event, at_ns, table, image_of),
            Kind::ReturnedFromExec => self.has_left(event.tid, at_ns, table),
            Kind::Ended => {
                self.has_left(event.tid, at_ns, table);
                self.tried.remove(&event.tid);
                if let Some(running) = self.running.get_mut(&event.image) {
                    running.ran_ns = running.ran_ns.saturating_add(event.ran);
                }
                self.leave(event.image, at_ns, table);
            }
            Kind::IsForeign => {
                self.has_left(event.tid, at_ns, table);
                let running = self.running.get(&event.image).map(|r| r.image);
                let exe = running.and_then(|id| table.images.get(id.index())).map(|i| i.exe.clone());
                self.leave(event.image, at_ns, table);
                return Some(exe.unwrap_or_default());
            }
        }
        None
    }

    fn on_start(&mut self, event: &Event, at_ns: u64, table: &mut Table) {
        if !event.is_process {
            self.add_thread(event.image, table);
            return;
        }
        let parent = self.running.get(&event.from).map(|r| r.image);
        let space = self.space_of(event.from);
        let like = parent.and_then(|id| table.images.get(id.index())).cloned().unwrap_or_default();
        let image = Image {
            pid: event.tid,
            parent,
            exe: like.exe,
            argv: like.argv,
            service: like.service,
            start_ns: at_ns,
            main_at_ns: like.main_at_ns.map(|_| at_ns),
            ..Image::default()
        };
        self.add(event.image, space, 1, image, table);
    }

    fn on_exec(&mut self, event: Event, at_ns: u64, table: &mut Table, image_of: impl Fn(i32) -> Option<u64>) {
        let tried = self.tried.remove(&event.tid);
        let (exe, argv) = (crate::procfs::exe(event.tid), crate::procfs::argv(event.tid));
        // The process may be gone by now, or run yet another program.
        let is_still_there = image_of(event.tid) == Some(event.image);
        let (exe, argv) = match exe.filter(|_| is_still_there) {
            Some(exe) => {
                if let Some(path) = tried.filter(|_| self.resolved.len() < MOST_TRIED) {
                    self.resolved.insert(path, exe.clone());
                }
                (exe, argv)
            }
            None => {
                let path = tried.filter(|path| path.starts_with('/')).unwrap_or(event.text);
                let name = self.resolved.get(&path).cloned().unwrap_or_else(|| path.as_str().into());
                (name, vec![path.into()])
            }
        };
        if event.tid == self.root && !self.has_begun {
            // The command's first image began as systoll's child.
            self.has_begun = true;
            let before = self.running.get(&event.from).copied();
            let id = before.map_or(ImageId::FIRST, |r| r.image);
            if let Some(image) = table.images.get_mut(id.index()) {
                (image.exe, image.argv) = (exe, argv);
            }
            let space = event.image;
            self.running.insert(event.image, Running { image: id, space, threads: 1, start_ns: at_ns, ran_ns: 0 });
            self.leaving.insert(event.tid, event.from);
            return;
        }
        let parent = self.running.get(&event.from).map(|r| r.image);
        let before = parent.and_then(|id| table.images.get(id.index()));
        let service = match before {
            _ if !self.is_whole_box => Arc::default(),
            _ if is_still_there => crate::service::of(event.tid, &exe),
            // A service that has a name of its own is that of its programs, too.
            Some(before) if before.service != crate::service::of_program(&before.exe) => before.service.clone(),
            _ => crate::service::of_program(&exe),
        };
        let image = Image { pid: event.tid, parent, exe, argv, service, start_ns: at_ns, ..Image::default() };
        self.add(event.image, event.image, 1, image, table);
        self.leaving.insert(event.tid, event.from);
    }

    /// Notes that a thread's execve has returned, so that it makes no more calls of the program before.
    fn has_left(&mut self, tid: i32, at_ns: u64, table: &mut Table) {
        if let Some(from) = self.leaving.remove(&tid) {
            self.leave(from, at_ns, table);
        }
    }

    fn leave(&mut self, number: u64, at_ns: u64, table: &mut Table) {
        let Some(running) = self.running.get_mut(&number) else { return };
        running.threads = running.threads.saturating_sub(1);
        if running.threads > 0 {
            return;
        }
        let Running { image, space, start_ns, ran_ns, .. } = *running;
        self.running.remove(&number);
        self.ended.insert(number, EndedImage { image, space });
        // The command's first image has two numbers: of the child that was held, and of the program.
        let goes_on = image == ImageId::FIRST && self.running.values().any(|r| r.image == image);
        if let Some(image) = table.images.get_mut(image.index()) {
            image.end_ns = if goes_on { 0 } else { at_ns };
            image.life_ns += at_ns.saturating_sub(start_ns);
            image.cpu_ns += if self.is_whole_box { ran_ns } else { 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: Kind, tid: i32, image: u64, from: u64, text: &str) -> Event {
        Event { at: 10, image, from, kind, tid, is_process: kind == Kind::Started, ran: 0, text: text.into() }
    }

    /// Returns the images of a command, number 1, that has executed its program, number 2.
    fn begun(table: &mut Table) -> Images {
        let mut images = Images::started(7, 1, table);
        images.take(event(Kind::TriesExec, 7, 1, 0, "/no/such/program"), table, |_| None);
        images.take(event(Kind::HasExecuted, 7, 2, 1, "program"), table, |_| None);
        images
    }

    #[test]
    fn the_command_and_the_child_that_becomes_it_are_one_image() {
        let mut table = Table::default();
        let mut images = begun(&mut table);
        assert!(images.has_begun && !images.has_ended());
        // A process that is gone has the name by which it was executed.
        assert_eq!((&*table.images[0].exe, table.images.len()), ("/no/such/program", 1));
        images.take(event(Kind::ReturnedFromExec, 7, 2, 1, ""), &mut table, |_| None);
        assert_eq!((images.of(1, &mut table), images.of(2, &mut table)), (ImageId::FIRST, ImageId::FIRST));
        assert_eq!(table.images[0].end_ns, 0);
        images.take(event(Kind::Ended, 7, 2, 2, ""), &mut table, |_| None);
        assert_eq!((images.processes(), table.images[0].end_ns), (0, 10));
        assert_eq!(images.take_ended().len(), 2);
    }

    #[test]
    fn a_program_ends_with_the_last_thread_that_left_it() {
        let mut table = Table::default();
        let mut images = begun(&mut table);
        images.take(event(Kind::ReturnedFromExec, 7, 2, 1, ""), &mut table, |_| None);
        images.take_ended();
        images.take(event(Kind::Started, 8, 3, 2, ""), &mut table, |_| None);
        let thread = Event { is_process: false, ..event(Kind::Started, 9, 3, 3, "") };
        images.take(thread, &mut table, |_| None);
        assert_eq!((table.images[1].threads, table.images[1].parent), (2, Some(ImageId::FIRST)));
        // The second thread executes a program: the first one ends, then the call returns.
        images.take(event(Kind::Ended, 8, 3, 3, ""), &mut table, |_| None);
        images.take(event(Kind::HasExecuted, 8, 4, 3, "other"), &mut table, |_| None);
        assert!(!images.has_ended());
        images.take(event(Kind::ReturnedFromExec, 8, 4, 3, ""), &mut table, |_| None);
        assert_eq!(
            images.take_ended().into_iter().collect::<Vec<_>>(),
            [(3, EndedImage { image: ImageId::at(1), space: 2 })]
        );
        assert_eq!(&*table.images[2].exe, "other");
    }

    #[test]
    fn rows_of_programs_that_no_event_told_of_are_kept() {
        let mut table = Table::default();
        let mut images = begun(&mut table);
        let unknown = images.of(99, &mut table);
        assert_eq!((unknown, images.of(98, &mut table)), (ImageId::at(1), unknown));
        // Events about them change nothing.
        for kind in [Kind::ReturnedFromExec, Kind::Ended, Kind::IsForeign] {
            images.take(event(kind, 50, 99, 98, ""), &mut table, |_| None);
        }
        assert_eq!(images.processes(), 2);
    }
}
