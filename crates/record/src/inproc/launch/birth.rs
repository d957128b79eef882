//! A new program: what is done at its exec, before it has run an instruction.

use super::super::layout::image;
use super::super::plan::Why;
use super::doomed::is_doomed;
use super::engine::Engine;
use super::files::{Known, Unwatchable};
use super::maps::{Layout, Mapped, Maps};
use super::peer;
use super::program::{Patched, Program};
use super::shell::{self, Mapping, Source};
use super::sites::Arrival;
use super::sys;
use super::target::{self, Mem};
use crate::procfs;
use crate::table::Image;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use systoll_model::ProblemKind;
use systoll_symbols::{AddressSpace, MappedFile};

/// Code segment of 64-bit programs (kernel: __USER_CS).
const USER_CS: u64 = 0x33;

impl Engine {
    /// A program has taken over process `pid`, which is stopped; `from` is the program and slot
    /// it came from.
    pub(super) fn on_exec(&mut self, pid: i32, from: Option<(u32, u64)>) {
        let parent = self.leave_by_exec(from, pid);
        let first = pid == self.root && self.programs.is_empty() && self.root_image.is_none();
        let as_before = from.is_some_and(|(id, _)| self.has_no_filter_of_its_own(id));
        let exe = procfs::exe(pid).unwrap_or_default();
        let born = self.prepare(pid, (parent, first, as_before), from, &exe);
        if let Err(why) = &born {
            if first {
                // Nothing of it has run: whoever asked may choose another way.
                self.root_refused = Some(format!("{exe}: {why}"));
                sys::kill(pid);
            } else if !is_doomed(pid) {
                self.problem(ProblemKind::Unwatched, format!("{exe} ran unwatched: {why}"));
            }
        }
        let _ = sys::detach(pid, 0);
        if let Ok(id) = born {
            // It maps our memory now, and needs nobody for that.
            self.furnish(id);
        }
    }

    /// Whether a program's processes are confined as we are: it was looked at when it began, or
    /// came of one that was, and every call that could have added a filter since would be known of.
    pub(super) fn has_no_filter_of_its_own(&self, id: u32) -> bool {
        let Some(area) = self.memory.image(id) else { return false };
        let told = [image::QUIET, image::UNHEARD, image::UNSEEN, image::WRITES_CODE].map(|word| area.get(word) as u32);
        let seen = |p: &Program| p.seen_whole && p.generated.calls == 0 && !p.generated.too_much;
        told == [0; 4] && self.programs.get(&id).is_some_and(seen)
    }

    /// The program a thread has left by its exec: its slot is done. The image it ran in.
    fn leave_by_exec(&mut self, from: Option<(u32, u64)>, pid: i32) -> Option<u32> {
        let (id, index) = from?;
        let image = self.image_of_slot(id, index);
        self.close_window(id, index);
        self.note_exec_cpu(id, pid);
        let program = self.programs.get_mut(&id)?;
        program.gone_by_exec.insert(index);
        image
    }

    /// Makes all ready and lets the stopped process begin with the shell code.
    fn prepare(
        &mut self,
        pid: i32,
        (parent, first, as_before): (Option<u32>, bool, bool),
        from: Option<(u32, u64)>,
        exe: &Arc<str>,
    ) -> Result<u32, String> {
        if !as_before && let Some(obstacle) = target::obstacle(pid) {
            return Err(obstacle);
        }
        let regs = sys::registers(pid).map_err(|e| e.desc().to_owned())?;
        if regs.cs != USER_CS {
            return Err("it is a 32-bit program".into());
        }
        let mem = Mem::open(pid).map_err(|e| format!("its memory can't be opened: {e}"))?;
        let mut space = AddressSpace::new();
        let maps = Maps::of(pid);
        space.update_by(&mut self.symbols, pid, &maps.text);
        let mut taken = Taken::by(Layout::Known(&maps.all));
        let mut files = Vec::new();
        let unhooked = self.unhooked;
        for file in space.files().collect::<Vec<_>>() {
            if let Some(ready) = self.ready(&file, &mut taken)? {
                files.push(ready);
            }
        }
        let stub = files.first().map(|f| f.at).ok_or("nothing in it makes system calls that can be hooked")?;
        let id = self.spare.take().or_else(|| self.blank_image()).ok_or("no memory for another program")?;
        let code = files.iter().map(|f| Mapping::code(f.at, f.patched.code.size(), f.patched.code.offset));
        let native = self.is_native(pid, from);
        let [code_file, image_file] = if native {
            self.to_open(id).ok_or("no memory for another program")?
        } else {
            match self.handed_over(id, pid, (&mem, &maps.all), regs) {
                Ok(sources) => sources,
                Err(why) => {
                    self.memory.free_image(id);
                    return Err(format!("it has another user or other rights than systoll, and {why}"));
                }
            }
        };
        let mappings = shell::files(code_file, image_file, code);
        self.enter(id, pid);
        let away = from.filter(|(id, index)| self.asked_elsewhere(*id, *index)).and_then(|_| sys::Away::from_here(pid));
        let processors = away.as_ref().map_or(0, |_| sys::Away::EVERYWHERE);
        if let Err(why) = self.plant(pid, &mem, &maps.all, &mappings, (stub, processors), regs) {
            self.memory.free_image(id);
            return Err(why);
        }
        // It frees itself again, whatever becomes of us.
        away.inspect(|away| away.keep(pid));
        let now = self.at(sys::now());
        let image =
            Image { pid, parent, exe: Arc::clone(exe), start_ns: if first { 0 } else { now }, ..Image::default() };
        let image = self.table.image(image);
        let mut program = Program::new(id, pid, image, space, mem);
        let alike = self.alike.entry(Arc::clone(exe)).or_default();
        (program.alike, alike.begun) = (alike.begun, alike.begun + 1);
        program.native = native;
        program.cpu_before = sys::process_cpu(pid).unwrap_or(0);
        program.thread_before = procfs::Schedstat::open(pid, pid).and_then(|s| s.read()).map_or(0, |r| r.cpu_ns);
        program.seen_whole = self.unhooked == unhooked;
        program.maps = maps.all;
        program.newborn = Some(files.into_iter().map(|f| f.patched).collect());
        self.programs.insert(id, program);
        if first {
            self.root_image = Some(image);
            self.audit_base = procfs::io_calls(pid);
        }
        Ok(id)
    }

    /// Whether a new program can open what this process can: it has the same user and groups, and nothing
    /// that it came of has changed what it may do.
    fn is_native(&self, pid: i32, from: Option<(u32, u64)>) -> bool {
        let as_before = |(id, index)| self.programs.get(&id).is_some_and(|p| p.native && !p.changed.contains(&index));
        from.is_none_or(as_before) && procfs::has_our_credentials(pid)
    }

    /// A program's files, for it to open.
    fn to_open(&self, id: u32) -> Option<[Source; 2]> {
        let [code, image] = self.memory.paths(id)?;
        let (read, both) = (libc::O_RDONLY | libc::O_CLOEXEC, libc::O_RDWR | libc::O_CLOEXEC);
        Some([Source::Open(code, read), Source::Open(image, both)])
    }

    /// The same, handed over to a stopped process that may not open them.
    fn handed_over(
        &self,
        id: u32,
        pid: i32,
        (mem, mapped): (&Mem, &[Mapped]),
        regs: libc::user_regs_struct,
    ) -> Result<[Source; 2], String> {
        const INSTRUCTION: usize = 16;
        let at = target::unused(mem, mapped, INSTRUCTION).ok_or("there is no room in it for an instruction")?;
        let files = self.memory.to_hand_over(id).ok_or("there is no memory for it")?;
        Ok(peer::hand_over(&files, pid, (mem, at), regs)?.map(Source::Descriptor))
    }

    /// Has a file's code ready at a free place, `None` where nothing is to be hooked in it.
    ///
    /// # Errors
    /// Where the whole process must not be watched so.
    pub(super) fn ready(&mut self, file: &MappedFile, taken: &mut Taken<'_>) -> Result<Option<Ready>, String> {
        let path = self.symbols.path(file.module).unwrap_or_default();
        let known = match self.files.known(&mut self.symbols, file.module) {
            Ok(Some(known)) => known,
            Ok(None) => return Ok(None),
            Err(Unwatchable::GuardsMemory) => {
                return Err(format!("{path} is built with a sanitizer that knows where all its memory lies"));
            }
            Err(Unwatchable::UsesGs(by)) => return Err(format!("{path} uses the gs segment for itself: {by}")),
            Err(Unwatchable::Other(why)) => {
                self.problem(ProblemKind::Lost, format!("{path}: its system calls are not counted: {why}"));
                return Ok(None);
            }
        };
        let is_free = |range: &Range<u64>| taken.is_free(range);
        match self.files.code(self.memory.codes(), file.module, &known, file.bias, &is_free) {
            Ok((code, at)) => {
                taken.ours.push(at..at + code.size());
                self.note_uncounted(&path, &known, code.uncounted);
                let patched = Patched { key: file.module, known, code, bias: file.bias };
                Ok(Some(Ready { patched, at }))
            }
            Err(why) => {
                self.problem(ProblemKind::Lost, format!("{path}: its system calls are not counted: {why}"));
                Ok(None)
            }
        }
    }

    fn note_uncounted(&mut self, path: &str, known: &Rc<Known>, places: usize) {
        if places > 0 {
            let interrupts = known.plan.unplanned.iter().filter(|u| u.why == Why::Interrupt).count();
            let all = known.plan.sites.len() + interrupts;
            self.problem(
                ProblemKind::Lost,
                format!("{path}: {places} of {all} places that make system calls can't be counted; whether they did is not known"),
            );
        }
    }

    /// Writes the shell code into the stopped process and points it there.
    fn plant(
        &self,
        pid: i32,
        mem: &Mem,
        mapped: &[Mapped],
        files: &[shell::Mapped],
        (stub, processors): (u64, u64),
        regs: libc::user_regs_struct,
    ) -> Result<(), String> {
        // Its length does not depend on where it runs.
        let len = shell::code(0, files, (stub, processors), &regs).len();
        let at = target::unused(mem, mapped, len + 16).ok_or("no room in it for a few hundred bytes of code")?;
        let code = shell::code(at, files, (stub, processors), &regs);
        mem.write(at, &code).map_err(|e| format!("its code can't be written: {e}"))?;
        let mut start = regs;
        start.rip = at;
        // Not a call to be restarted.
        start.orig_rax = u64::MAX;
        sys::set_registers(pid, &start).map_err(|e| e.desc().to_owned())
    }

    /// A new program has its memory mapped, and its thread waits in `slot`: its files' jumps are written.
    pub(super) fn on_born(&mut self, id: u32, slot: u64) {
        let from = self.asked_from(id, slot);
        let Some(program) = self.programs.get_mut(&id) else { return };
        // Mapping our memory was not the program's work; what follows, until it goes on, is asking.
        let took = from.map_or(0, |from| from.saturating_sub(program.thread_before));
        self.births_ns = self.births_ns.saturating_add(took);
        self.births += 1;
        program.cpu_before = program.cpu_before.saturating_add(took);
        program.thread_before = program.thread_before.saturating_add(took);
        if program.newborn.take().is_none() {
            return;
        }
        let (unhooked, maps) = (self.unhooked, std::mem::take(&mut program.maps));
        for index in 0..program.files.len() {
            self.write_jumps(id, index, Arrival::Born, (slot, Layout::Known(&maps)));
        }
        self.allow_elision(id, unhooked);
        self.give_areas(id, slot);
    }

    /// Lets calls be answered in place if every call of the program is seen: no place was found
    /// since `unhooked` that nobody counts, and nothing runs that could not be looked at.
    pub(super) fn allow_elision(&mut self, id: u32, unhooked: u64) {
        let Some(program) = self.programs.get_mut(&id) else { return };
        program.seen_whole &= self.unhooked == unhooked;
        let Some(area) = self.memory.image(id).filter(|_| program.seen_whole && self.elided != 0) else { return };
        area.set(image::ELIDE, u64::from(self.elided));
        // Set first, looked at then: whoever finds both sees it taken down again.
        if area.get(image::UNSEEN) as u32 != 0 {
            area.set(image::ELIDE, 0);
        }
    }
}

/// Where a process has no room for code: what it has mapped, and what it is to map.
pub(super) struct Taken<'a> {
    mapped: Layout<'a>,
    ours: Vec<Range<u64>>,
}

impl<'a> Taken<'a> {
    pub(super) fn by(mapped: Layout<'a>) -> Self {
        Self { mapped, ours: Vec::new() }
    }

    fn is_free(&self, range: &Range<u64>) -> bool {
        self.mapped.is_free(range) && !self.ours.iter().any(|r| r.start < range.end && range.start < r.end)
    }
}

/// A file's code, and where it is to be mapped.
pub(super) struct Ready {
    pub(super) patched: Patched,
    pub(super) at: u64,
}
