//! Handles code that appears while a program runs: files that are mapped, and memory that becomes executable.
//!
//! Files are hooked before any thread runs them. Other memory is only searched for calls, which can't be hooked there:
//! in code that was just made, we don't know which instructions are jumped to.

use crate::inproc::monitor::exec::provision::FileOf;
use crate::inproc::monitor::exec::ready::{Ready, Taken};
use crate::inproc::monitor::exec::{no_calls, provision, ready};
use crate::inproc::monitor::handles::{NodeAddr, ProgramId, SlotRef};
use crate::inproc::monitor::program::{Patched, Programs};
use crate::inproc::monitor::requests::doomed::is_waiter_doomed;
use crate::inproc::monitor::requests::generated::{MOST_BYTES, MOST_LOOKS, calls_in};
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::requests::{leave_alone, request, translators};
use crate::inproc::monitor::results::sites::Arrival;
use crate::inproc::monitor::session::{FileKnowledge, Provisioning, Session, Targets};
use crate::inproc::monitor::shared::maps::{self, Layout, Mapped, Maps};
use crate::inproc::monitor::shared::memory::{Area, BLOBS};
use crate::problems::Problems;
use crate::sys::{read_memory, read_touched};
use std::ops::Range;
use systoll_binfile::maps::{KERNELS, lines};
use systoll_hooks::layout::{BLOBS_AT, BLOBS_SIZE, image};
use systoll_hooks::numbers::{MMAP, MREMAP};
use systoll_model::ProblemKind;
use systoll_symbols::MappedFile;

/// Returns true if a mapping belongs to a file that is known by its headers.
fn is_file(files: &[MappedFile], mapped: &Mapped) -> bool {
    files.iter().any(|f| f.start < mapped.range.end && mapped.range.start < f.end)
}

/// Handles a thread that has mapped a file executable, or has made memory executable, by a call counted at `root`: the
/// code is hooked or searched before any thread knows of it. Returns true if the thread was released to write the jumps
/// itself.
pub(crate) fn on_mapped(session: &mut Session, waiter: &Waiter, root: NodeAddr) -> bool {
    let losses_before = session.draft.problems.losses;
    let hooked = hook_mapped(session, waiter, root);
    if hooked.is_none() {
        session.draft.problems.losses += 1;
    }
    let Session { targets, knowledge, draft, .. } = session;
    ready::allow_elision(targets, &knowledge.provisioning, &draft.problems, waiter.slot.program, losses_before);
    hooked == Some(By::Thread)
}

/// The party that hooks new code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// The launcher has hooked the code, or there was nothing to hook.
    Launcher,
    /// The thread that has mapped the code; it was released to do so.
    Thread,
}

/// Hooks the code that has appeared. Returns `None` if it is not known where.
fn hook_mapped(session: &mut Session, waiter: &Waiter, root: NodeAddr) -> Option<By> {
    let Session { targets, knowledge, draft, .. } = session;
    let (id, r) = (waiter.slot.program, &waiter.registers);
    let (mapped, at) = if r.ax == 0 { (false, r.di) } else { (true, r.ax) };
    let range = at..at.saturating_add(r.si);
    no_calls::look_for_callers(targets, knowledge, &draft.table, id, waiter.tid);
    let now = no_calls::maps_file(&mut knowledge.provisioning, id, waiter.tid)?;
    let program = targets.programs.get_mut(&id)?;
    // Usually a file was mapped, and one line of `maps` tells everything. All of `maps` is needed if the program makes
    // code as it runs: it stops asking once there is much of it, and stacks lead through that code.
    let alone = mapped && program.hooks.generated.looks == 0;
    let line = if alone { maps::line_at(&now, &range) } else { None };
    if let Some(file) = line.and_then(|line| program.space.add_by(&mut knowledge.symbols, waiter.tid, &line)) {
        if translators::is_guest(&mut targets.programs, knowledge, draft, id, root, &file) {
            return None;
        }
        if matches!(knowledge.provisioning.files.known(&mut knowledge.symbols, file.module), Ok(None)) {
            no_calls::note(targets, knowledge, &draft.table, id, root, (file.module, r));
            knowledge.reuse.to_preload.push(id);
            return Some(By::Launcher);
        }
        return hook_file(session, waiter, (&file, mapped), (Layout::Asked(&now), true));
    }
    let maps = Maps::of(waiter.tid);
    program.space.update_by(&mut knowledge.symbols, waiter.tid, &maps.text);
    hook_range(session, waiter, root, &maps.all, (range, mapped))
}

/// Hooks the files in a range of addresses, and searches its other code. `mapped` is true if the thread has just mapped
/// the range. Returns `None` if some of the code is not hooked.
fn hook_range(
    session: &mut Session,
    waiter: &Waiter,
    root: NodeAddr,
    maps: &[Mapped],
    (range, mapped): (Range<u64>, bool),
) -> Option<By> {
    let Session { targets, knowledge, draft, .. } = session;
    let id = waiter.slot.program;
    let here = |f: &MappedFile| f.start < range.end && range.start < f.end;
    let files: Vec<MappedFile> = targets.programs.get(&id)?.space.files().filter(here).collect();
    let comes =
        |m: &&Mapped| m.executable && m.range.start < range.end && range.start < m.range.end && !is_file(&files, m);
    let memory: Vec<&Mapped> = maps.iter().filter(comes).collect();
    if files.is_empty() && memory.is_empty() {
        return None;
    }
    if !memory.is_empty() {
        translators::on_code_made(&mut targets.programs, &knowledge.symbols, draft, id, waiter.tid, root);
    }
    for m in memory {
        no_calls::end(&targets.memory, id);
        let part = m.range.start.max(range.start)..m.range.end.min(range.end);
        // Shared memory may be written through another mapping of it.
        let fresh = mapped && (waiter.registers.r8 as i32) < 0;
        let code = CodeInNoFile { range: part, fresh, ..CodeInNoFile::of(m) };
        look_through(targets, &mut knowledge.provisioning, (id, waiter.tid), code);
    }
    files.into_iter().try_fold(By::Launcher, |_, file| {
        let Session { targets, knowledge, draft, .. } = session;
        let known = !mapped && hooked(targets, waiter.slot, &file).is_some();
        match known || !translators::is_guest(&mut targets.programs, knowledge, draft, id, root, &file) {
            true => hook_file(session, waiter, (&file, mapped), (Layout::Known(maps), false)),
            false => None,
        }
    })
}

/// Hooks a file that has just become executable, unless it is hooked already. `alone` is true if nothing else must be
/// done before the thread may go on.
fn hook_file(
    session: &mut Session,
    waiter: &Waiter,
    (file, mapped): (&MappedFile, bool),
    (layout, alone): (Layout<'_>, bool),
) -> Option<By> {
    let Session { targets, knowledge, draft, polling, .. } = session;
    let (thread, id) = (waiter.slot, waiter.slot.program);
    let arrival = if mapped { Arrival::Mapped } else { Arrival::MadeExecutable };
    if let Some(known) = hooked(targets, thread, file) {
        // This is a further piece of a known file, or the same piece after its loader has worked on it.
        let file = FileOf { by: thread, index: known, arrival };
        provision::write_around(targets, knowledge, &mut draft.problems, file, layout);
        return Some(By::Launcher);
    }
    let ready = match ready::ready(targets, knowledge, &mut draft.problems, file, &mut Taken::by(layout)) {
        Ok(Some(ready)) => ready,
        Ok(None) => {
            knowledge.reuse.to_preload.push(id);
            return Some(By::Launcher);
        }
        Err(why) => {
            let why = format!("has loaded what can't be watched: {why}");
            leave_alone::leave_alone(&targets.programs, &mut draft.problems, id, waiter.tid, &why);
            return None;
        }
    };
    let shared = layout.at(file.start).is_some_and(|m| m.shared);
    let waited_long = |targets: &Targets| request::waited_long(&targets.memory, &draft.clock, polling, thread);
    if alone
        && mapped
        && !shared
        && !waited_long(targets)
        && let Some(writing) =
            provision::unseen_writing(targets, &knowledge.provisioning, thread, &ready.patched, layout)
    {
        knowledge.reuse.to_preload.push(id);
        let map = mapping_code(&ready);
        let is_done = provision::let_patch(targets, knowledge, draft, thread, ready.patched, (map, writing));
        return is_done.then_some(By::Thread);
    }
    let quiet = targets.memory.image(id).is_none_or(|a| a.get(image::QUIET) as u32 != 0);
    let obstacle = if shared {
        // Jumps would be written into the file itself.
        Some("it is mapped shared")
    } else if quiet || !map_code(targets, thread, &ready) {
        Some("no code near it")
    } else {
        waited_long(targets).then_some("it came too fast")
    };
    if let Some(why) = obstacle {
        note_not_hooked(targets, knowledge, &mut draft.problems, thread, (&ready.patched, why));
        return None;
    }
    provision::patch(targets, knowledge, draft, thread, ready.patched, arrival, layout);
    knowledge.reuse.to_preload.push(id);
    Some(By::Launcher)
}

/// Notes that a mapped file is not hooked, and why, unless its thread is about to end.
fn note_not_hooked(
    targets: &Targets,
    knowledge: &mut FileKnowledge,
    problems: &mut Problems,
    thread: SlotRef,
    (file, why): (&Patched, &str),
) {
    if is_waiter_doomed(&targets.memory, thread) {
        return;
    }
    let path = knowledge.symbols.path(file.key).unwrap_or_default();
    problems.note(ProblemKind::Lost, format!("{path}: its system calls are not counted: {why}"));
    knowledge.provisioning.sites.note(file, None, Arrival::Mapped);
}

/// Returns the index of a file among the program's, if it is hooked in the process whose thread has slot
/// `thread.index`.
fn hooked(targets: &Targets, thread: SlotRef, file: &MappedFile) -> Option<usize> {
    let program = targets.programs.get(&thread.program)?;
    let mem = provision::memory_of(targets, thread).ok()?;
    let is_it = |f: &Patched| f.key == file.module && f.bias == file.bias && f.is_in(&mem);
    program.hooks.files.iter().position(is_it)
}

/// Executable memory that belongs to no file.
struct CodeInNoFile {
    range: Range<u64>,
    /// True if nothing has been written to the memory yet.
    fresh: bool,
    /// True if the memory can be written while its code runs.
    in_place: bool,
    anonymous: bool,
}

impl CodeInNoFile {
    fn of(m: &Mapped) -> Self {
        Self { range: m.range.clone(), fresh: false, in_place: m.writable || m.shared, anonymous: m.anonymous }
    }
}

/// Searches the code that a process had in no file when it was entered: that of a just-in-time compiler, or of a program
/// that was unpacked into memory. `maps` are its mappings at that moment; code that it makes later is searched then.
pub(crate) fn look_at_earlier(
    targets: &mut Targets,
    provisioning: &mut Provisioning,
    (id, pid): (ProgramId, i32),
    maps: &Maps,
) {
    let Some(program) = targets.programs.get(&id) else { return };
    let files: Vec<MappedFile> = program.space.files().collect();
    let kernels = kernels_code(maps);
    let found = |m: &&Mapped| m.executable && !is_file(&files, m) && !kernels.contains(&m.range);
    for m in maps.all.iter().filter(found) {
        look_through(targets, provisioning, (id, pid), CodeInNoFile::of(m));
    }
}

/// Returns the mappings whose code is the kernel's.
fn kernels_code(maps: &Maps) -> Vec<Range<u64>> {
    lines(&maps.text).filter(|line| KERNELS.contains(&line.path)).map(|line| line.range).collect()
}

/// Returns the number of calls in a range of memory of the process of thread `tid`; `anonymous` is true if the memory is
/// private and belongs to no file.
fn calls_of(tid: i32, range: Range<u64>, anonymous: bool) -> u64 {
    let read = if anonymous { read_touched } else { read_memory };
    calls_in(range, |at, buffer| read(tid, at, buffer))
}

/// Searches executable memory for calls, in the process of thread `tid`.
fn look_through(
    targets: &mut Targets,
    provisioning: &mut Provisioning,
    (id, tid): (ProgramId, i32),
    CodeInNoFile { range, fresh, in_place, anonymous }: CodeInNoFile,
) {
    let Some(program) = targets.programs.get_mut(&id) else { return };
    let Some(area) = targets.memory.image(id) else { return };
    let generated = &mut program.hooks.generated;
    if in_place {
        generated.written_in_place = true;
        area.set(image::WRITES_CODE, 1);
    }
    generated.looks += 1;
    // Fresh memory is all zeroes, and reading it would allocate its pages.
    if !fresh {
        let most = MOST_BYTES.saturating_sub(generated.bytes);
        let end = range.end.min(range.start.saturating_add(most));
        generated.too_much |= end < range.end;
        generated.bytes += end - range.start;
        let calls = calls_of(tid, range.start..end, anonymous);
        generated.calls += calls;
        generated.in_place += if in_place { calls } else { 0 };
        provisioning.sites.note_generated(calls);
    }
    if generated.looks >= MOST_LOOKS || generated.bytes >= MOST_BYTES {
        generated.too_much = true;
        area.set(image::LOOKED, 1);
    }
}

/// Searches the writable code of programs that are about to be left.
pub(crate) fn on_leaving(programs: &mut Programs, knowledge: &mut FileKnowledge) {
    let writing = programs.values().filter(|program| program.hooks.generated.written_in_place);
    for (id, pid) in writing.map(|program| (program.id, program.pid)).collect::<Vec<_>>() {
        on_ending(programs, knowledge, id, pid);
    }
}

/// Searches the writable code of a program that ends: its current contents stand for all it ever had.
pub(crate) fn on_ending(programs: &mut Programs, knowledge: &mut FileKnowledge, id: ProgramId, tid: i32) {
    let maps = Maps::of(tid);
    let kernels = kernels_code(&maps);
    let Some(program) = programs.get_mut(&id) else { return };
    program.space.update_by(&mut knowledge.symbols, tid, &maps.text);
    let files: Vec<MappedFile> = program.space.files().collect();
    let ours = |m: &Mapped| {
        let is_place = m.range.start >= BLOBS_AT && m.range.start < BLOBS_AT + BLOBS_SIZE
            || program.hooks.files.iter().any(|f| f.code_range().contains(&m.range.start));
        is_place && maps.are_ours(&m.range)
    };
    let others = |m: &Mapped| ours(m) || kernels.contains(&m.range);
    let in_place = |m: &&Mapped| m.executable && (m.writable || m.shared) && !is_file(&files, m) && !others(m);
    let (mut calls, mut budget) = (0, MOST_BYTES);
    for m in maps.all.iter().filter(in_place) {
        let end = m.range.end.min(m.range.start.saturating_add(budget));
        budget -= end - m.range.start;
        calls += calls_of(tid, m.range.start..end, m.anonymous);
    }
    let generated = &mut program.hooks.generated;
    // Only the first process's end is the program's; forked processes end by themselves.
    let is_first = std::fs::exists(format!("/proc/{}/task/{tid}", program.pid)).unwrap_or(false);
    generated.seen_at_end |= is_first && budget > 0 && !maps.all.is_empty();
    let more = calls.saturating_sub(generated.in_place);
    generated.calls += more;
    generated.in_place += more;
    knowledge.provisioning.sites.note_generated(more);
}

/// Makes the waiting thread map code: first a reservation, which can't hit a mapping that another thread makes at this
/// moment, then the code over it.
fn map_code(targets: &mut Targets, thread: SlotRef, ready: &Ready) -> bool {
    let Patched { code, .. } = &ready.patched;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
    let (at, size) = (ready.at, code.size());
    // A process that never had a second thread has none whose mapping could be hit.
    let alone = targets.memory.image(thread.program).is_some_and(Area::no_slot_drawn);
    let reserve = [MMAP.into(), at, size, 0, flags as u64, u64::MAX, 0];
    if !alone && request::request(targets, thread, reserve) != Some(at) {
        return false;
    }
    request::request(targets, thread, mapping_code(ready)) == Some(at)
}

/// Returns the call by which a process maps the code to its place.
fn mapping_code(ready: &Ready) -> [u64; 7] {
    let code = &ready.patched.code;
    let from = BLOBS_AT + (code.offset - BLOBS);
    let fixed = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64;
    [MREMAP.into(), from, 0, code.size(), fixed, ready.at, 0]
}
