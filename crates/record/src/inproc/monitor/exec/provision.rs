//! Prepares a program's image: makes it before the exec, and fills it while the program maps our memory and when it
//! maps files.

use crate::inproc::monitor::exec::{no_calls, preload};
use crate::inproc::monitor::handles::{ProgramId, SlotRef};
use crate::inproc::monitor::program::{Patched, Program, Programs};
use crate::inproc::monitor::requests::doomed::is_waiter_doomed;
use crate::inproc::monitor::requests::request;
use crate::inproc::monitor::results::run_stats::RunStats;
use crate::inproc::monitor::results::sites::Arrival;
use crate::inproc::monitor::session::{DraftRecording, FileKnowledge, Provisioning, Reuse, Session, Targets};
use crate::inproc::monitor::shared::code::Code;
use crate::inproc::monitor::shared::maps::{Layout, Mapped, Maps};
use crate::inproc::monitor::shared::memory::{BLOBS, Memory, Runs};
use crate::inproc::monitor::shared::piecewise::Differences;
use crate::inproc::monitor::shared::remote::Mem;
use crate::problems::Problems;
use crate::procfs;
use crate::table::Table;
use std::rc::Rc;
use systoll_hooks::assemble::{AssembleError, own_words};
use systoll_hooks::layout::{BLOBS_AT, WRITE_CODE, image, slot};
use systoll_model::{ProblemKind, Random};
use systoll_symbols::{ModuleKey, Symbols};

/// Files remembered for the programs of one executable, at most.
const MOST_USUAL: usize = 16;

/// Memory of the process that a thread belongs to.
pub(crate) enum MemOf<'a> {
    /// Memory of the process that executed the program.
    First(&'a Mem),
    /// Memory of a forked child.
    Fork(Mem),
}

impl std::ops::Deref for MemOf<'_> {
    type Target = Mem;

    fn deref(&self) -> &Mem {
        match self {
            Self::First(mem) => mem,
            Self::Fork(mem) => mem,
        }
    }
}

/// Writes a file's roots into a program's image, unless they are there.
///
/// # Errors
/// A text, if they can't be written: no jump may then lead to code that counts at them.
fn lay(program: &mut Program, memory: &Memory, code: &Code) -> Result<(), String> {
    if program.hooks.regions.contains(&code.region) {
        return Ok(());
    }
    let (room, sites) = (&mut program.hooks.room, code.blob.sites.len() as u64);
    room.has(sites).then_some(()).ok_or_else(|| AssembleError::Records(sites).to_string())?;
    let roots = code.roots(room.roots()).map_err(|e| e.to_string())?;
    memory.write(program.id, &roots).then_some(()).ok_or("the memory shared with it can't be written")?;
    room.give_roots(code.region, sites);
    program.hooks.regions.insert(code.region);
    Ok(())
}

/// Makes an image with the contents that every program's image has at first.
pub(crate) fn blank_image(memory: &mut Memory, provisioning: &Provisioning, stats: &RunStats) -> Option<ProgramId> {
    let id = memory.new_image()?;
    let seed = Random::new(stats.facts.seed ^ u64::from(id.0)).below(u64::MAX);
    let mut words = provisioning.files.blank().clone();
    words.set(own_words(id.0).into_iter().chain([(image::SEED, seed)]));
    let written = memory.write(id, &words);
    if !written {
        memory.free_image(id);
    }
    written.then_some(id)
}

/// Makes the image of the next program while an exec is under way, which takes long enough.
pub(crate) fn make_ahead(session: &mut Session) {
    if session.knowledge.provisioning.spare.is_none()
        && session.traced.tracees.seized.len() > session.traced.tracees.lingering.len()
    {
        session.knowledge.provisioning.spare =
            blank_image(&mut session.targets.memory, &session.knowledge.provisioning, &session.draft.stats);
    }
}

/// Writes the id of process `pid` into the first slot. Returns false if that could not be written.
#[must_use]
pub(crate) fn enter(memory: &Memory, id: ProgramId, pid: i32) -> bool {
    let pid = pid as u64;
    let first = [(image::SLOTS + slot::TID, pid), (image::SLOTS + slot::PID, pid)];
    memory.write(id, &Runs::new(first))
}

/// Fills the image of a new program while the program maps our memory: its files' roots, its usual records, known
/// contexts.
pub(crate) fn provision(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    id: ProgramId,
) {
    let Some(program) = targets.programs.get(&id) else { return };
    let pid = program.pid;
    if let Some(image) = draft.table.images.get_mut(program.image.index()) {
        image.argv = procfs::argv(pid);
        let names_compiled = is_told_to_name_compiled(&image.exe, pid);
        targets.programs.entry(id).and_modify(|p| p.contexts.names_compiled = names_compiled);
    }
    let starting = targets.programs.get_mut(&id).and_then(|p| p.hooks.starting.take()).unwrap_or_default();
    let losses_before = draft.problems.losses;
    for file in starting {
        take_in(targets, &knowledge.symbols, &mut draft.problems, id, file);
    }
    if let Some(program) = targets.programs.get_mut(&id) {
        program.hooks.mapped_at_start = program.hooks.files.len();
        knowledge.provisioning.files.expect_roots(program.hooks.room.roots());
        program.hooks.seen_whole &= draft.problems.losses == losses_before;
        program.hooks.starting = Some(Vec::new());
    }
    // Usual files come first, so that their records are the same in all programs and their initial roots can be reused.
    lay_usual(targets, &knowledge.reuse, &draft.table, id);
    no_calls::begin(targets, knowledge, &draft.table, id);
    preload::preload(targets, knowledge, draft, id);
}

/// Returns true if a program at its exec may keep, from its start, a map of the functions that it compiles. Node and
/// Java do so by an option or an agent, named in their words or in a file of options. For other programs the way is
/// unknown.
fn is_told_to_name_compiled(exe: &str, pid: i32) -> bool {
    const TELLING: [&[u8]; 4] = [b"perf", b"agent", b"framepointer", b"native-stack"];
    let takes_files = match exe.rsplit('/').next() {
        Some("java") => true,
        Some("node" | "nodejs") => false,
        _ => return true,
    };
    let tells = |word: &[u8]| {
        let word = word.to_ascii_lowercase();
        takes_files && word.contains(&b'@')
            || TELLING.iter().any(|telling| word.windows(telling.len()).any(|part| part == *telling))
    };
    procfs::options_at_exec(pid).is_none_or(|words| words.split(|b| *b == 0).any(tells))
}

/// Writes the roots of files that programs with the same executable have mapped so far.
fn lay_usual(targets: &mut Targets, reuse: &Reuse, table: &Table, id: ProgramId) {
    let Some(program) = targets.programs.get_mut(&id) else { return };
    let exe = table.images.get(program.image.index()).map(|i| &i.exe);
    let Some(earlier) = exe.and_then(|exe| reuse.by_file.get(exe)) else { return };
    for code in &earlier.mapped {
        // If there is no room, the loss is reported when the program maps the file.
        let _ = lay(program, &targets.memory, code);
    }
}

/// Remembers that a program has mapped a file.
fn note_usual(programs: &Programs, reuse: &mut Reuse, table: &Table, id: ProgramId, code: Rc<Code>) {
    let image = programs.get(&id).and_then(|p| table.images.get(p.image.index()));
    if let Some(earlier) = image.and_then(|i| reuse.by_file.get_mut(&i.exe))
        && earlier.mapped.len() < MOST_USUAL
        && earlier.mapped.iter().all(|known| known.region != code.region)
    {
        earlier.mapped.push(code);
    }
}

/// A file of a program whose jumps are to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileOf {
    /// The waiting thread for whose process they are written.
    pub(crate) by: SlotRef,
    /// Index of the file among the program's files.
    pub(crate) index: usize,
    pub(crate) arrival: Arrival,
}

/// Writes the roots and jumps of a file that a program has mapped, and whose code is mapped already. `by` is the thread
/// that asks; `maps` are the mappings of its process.
pub(crate) fn patch(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    by: SlotRef,
    file: Patched,
    arrival: Arrival,
    maps: Layout<'_>,
) {
    if let Some(index) = take_in_usual(targets, knowledge, draft, by.program, file) {
        write_jumps(targets, knowledge, &mut draft.problems, FileOf { by, index, arrival }, maps);
    }
}

/// Does the same as [`patch`] for a file whose code the thread must map first, by the call `map`: releases the thread
/// to do both. Returns true if the thread still waited; otherwise nothing is written, which is reported.
pub(crate) fn let_patch(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    by: SlotRef,
    file: Patched,
    (map, writing): ([u64; 7], Writing),
) -> bool {
    let Some(index) = take_in_usual(targets, knowledge, draft, by.program, file) else { return false };
    let of = FileOf { by, index, arrival: Arrival::Mapped };
    let went = let_go(targets, &mut knowledge.provisioning, by, &[map, writing.call], (&[of], writing.pages));
    if !went && !is_waiter_doomed(&targets.memory, by) {
        not_hooked(&targets.programs, knowledge, &mut draft.problems, of, "it came too fast");
    }
    went
}

/// Adds a file to the program, and to the files that later programs with the same executable will probably map. Returns
/// its index.
fn take_in_usual(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    id: ProgramId,
    file: Patched,
) -> Option<usize> {
    let usual = Rc::clone(&file.code);
    let index = take_in(targets, &knowledge.symbols, &mut draft.problems, id, file)?;
    note_usual(&targets.programs, &mut knowledge.reuse, &draft.table, id, usual);
    Some(index)
}

/// Adds a file and its roots to the program. Returns its index; `None` if there is no room.
fn take_in(
    targets: &mut Targets,
    symbols: &Symbols,
    problems: &mut Problems,
    id: ProgramId,
    file: Patched,
) -> Option<usize> {
    let program = targets.programs.get_mut(&id)?;
    let area = targets.memory.image(id)?;
    if let Err(e) = lay(program, &targets.memory, &file.code) {
        lost(symbols, problems, file.key, &e);
        return None;
    }
    file.code.announce(area, file.bias.wrapping_add_signed(file.code.blob.delta));
    program.hooks.files.push(file);
    Some(program.hooks.files.len() - 1)
}

/// Writes the jumps of a program's file, whose roots are written and whose code is mapped.
pub(crate) fn write_jumps(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    problems: &mut Problems,
    of: FileOf,
    maps: Layout<'_>,
) {
    let arrival = of.arrival;
    let written =
        arrival != Arrival::MadeExecutable && has_jumps_written(targets, &mut knowledge.provisioning, of, maps);
    let Some(program) = targets.programs.get(&of.by.program) else { return };
    let Some(file) = program.hooks.files.get(of.index) else { return };
    let patched = memory_of(targets, of.by).and_then(|mem| match arrival {
        _ if written => Ok(()),
        Arrival::MadeExecutable => mem.patch_one(&file.code.jumps, file.bias),
        Arrival::AtStart | Arrival::Mapped => mem.patch(&file.code.jumps, file.bias),
    });
    match patched {
        Ok(()) => knowledge.provisioning.sites.note(file, Some(0), arrival),
        Err(_) => write_around(targets, knowledge, problems, of, maps),
    }
}

/// Writes the missing jumps of a program's file where its code is mapped, except for sites with other bytes.
pub(crate) fn write_around(
    targets: &Targets,
    knowledge: &mut FileKnowledge,
    problems: &mut Problems,
    of: FileOf,
    maps: Layout<'_>,
) {
    let Some(program) = targets.programs.get(&of.by.program) else { return };
    let Some(file) = program.hooks.files.get(of.index) else { return };
    let is_code = |at| maps.at(at).is_some_and(|m| m.executable && !m.shared);
    let left = memory_of(targets, of.by).and_then(|mem| mem.patch_around(&file.code.jumps, file.bias, &is_code));
    let whole = left.as_ref().is_ok_and(|left| left.sites.is_empty());
    if !whole && is_waiter_doomed(&targets.memory, of.by) {
        return;
    }
    knowledge.provisioning.sites.note(file, left.as_ref().ok().map(|left| left.sites.len() as u64), of.arrival);
    let (key, all) = (file.key, file.known.plan.sites.len());
    match left {
        Ok(left) if left.sites.is_empty() => {}
        Ok(left) => {
            let path = knowledge.symbols.path(key).unwrap_or_default();
            note_changed(problems, &path, (left.sites.len(), all), &left);
        }
        Err(why) => lost(&knowledge.symbols, problems, key, &why),
    }
}

/// Notes that `places` of all `sites` of a file were not hooked because the code in the process differs from the file's.
pub(crate) fn note_changed(problems: &mut Problems, path: &str, (places, sites): (usize, usize), left: &Differences) {
    let shown = left.shown();
    problems.note(
        ProblemKind::Lost,
        format!(
            "{path}: {places} of {sites} places that make system calls are not counted, where something has changed \
             the code: {shown}"
        ),
    );
}

/// Returns the memory of the process whose thread waits in the slot: a forked child's differs from its maker's.
///
/// # Errors
/// A text, if it can't be opened.
pub(crate) fn memory_of(targets: &Targets, thread: SlotRef) -> Result<MemOf<'_>, String> {
    let program = targets.programs.get(&thread.program).ok_or("it is gone")?;
    let pid = targets.memory.head(thread).pid as i32;
    if pid == program.pid {
        return Ok(MemOf::First(&program.mem));
    }
    Mem::open(pid).map(MemOf::Fork).map_err(|e| e.to_string())
}

/// Makes the waiting thread write the jumps of a file that no thread runs yet. This takes a third of the time of
/// writing from outside, where the kernel looks up each page and copies it twice. Returns true if all were written;
/// otherwise some jumps may have been written.
fn has_jumps_written(targets: &mut Targets, provisioning: &mut Provisioning, of: FileOf, maps: Layout<'_>) -> bool {
    let file = targets.programs.get(&of.by.program).and_then(|p| p.hooks.files.get(of.index));
    let Some(Writing { call, pages }) = file.and_then(|file| writing(targets, provisioning, of.by, file, maps)) else {
        return false;
    };
    let reply = request::request(targets, of.by, call);
    if let Some(program) = targets.programs.get_mut(&of.by.program) {
        program.hooks.faults += pages;
    }
    // A filter that forbids the call once will do so again, and may log it each time.
    let doomed = reply.is_none() && is_waiter_doomed(&targets.memory, of.by);
    provisioning.writes_code = reply == Some(0) || doomed;
    reply == Some(0)
}

/// The call by which a waiting thread writes a file's jumps.
pub(crate) struct Writing {
    call: [u64; 7],
    /// Number of pages that the call changes.
    pages: u64,
}

/// Returns the call by which the thread can write a file's jumps; `None` if the launcher must write them.
fn writing(
    targets: &Targets,
    provisioning: &Provisioning,
    by: SlotRef,
    file: &Patched,
    maps: Layout<'_>,
) -> Option<Writing> {
    let id = by.program;
    // Another thread might fork meanwhile, and the child's code would stay writable.
    let alone = targets.memory.image(id).is_some_and(|a| a.no_slot_drawn() && a.get(image::QUIET) as u32 == 0);
    (alone && provisioning.writes_code).then_some(())?;
    let (extent, pages) = file.code.jumps.extent()?;
    let bias = file.bias;
    let (start, end) = (bias.wrapping_add(extent.start), bias.wrapping_add(extent.end));
    // The whole mapping must change its protection: a part of it would stay a mapping of its own.
    let plain = |m: &Mapped| end <= m.range.end && m.executable && !m.writable && !m.shared;
    let text = maps.at(start).filter(plain)?.range;
    targets.programs.get(&id)?.mem.ready(&file.code.jumps, bias).ok()?;
    let from = BLOBS_AT + (file.code.writing - BLOBS);
    let (code, open) = (libc::PROT_READ | libc::PROT_EXEC, libc::PROT_WRITE);
    let call = [WRITE_CODE, text.start, text.end - text.start, (code | open) as u64, code as u64, from, bias];
    Some(Writing { call, pages })
}

/// Returns the call of [`writing`] if the launcher need not know its result before the thread goes on.
pub(crate) fn unseen_writing(
    targets: &Targets,
    provisioning: &Provisioning,
    by: SlotRef,
    file: &Patched,
    maps: Layout<'_>,
) -> Option<Writing> {
    (provisioning.elided == 0).then(|| writing(targets, provisioning, by, file, maps)).flatten()
}

/// Releases a program's first thread to write the jumps of all its files, if it can do so by itself. Returns true if it
/// was released; otherwise nothing is written.
pub(crate) fn let_write_all(
    targets: &mut Targets,
    provisioning: &mut Provisioning,
    by: SlotRef,
    maps: Layout<'_>,
) -> bool {
    let Some(program) = targets.programs.get(&by.program) else { return false };
    let all = program.hooks.files.iter().map(|file| unseen_writing(targets, provisioning, by, file, maps));
    let Some(writings) = all.collect::<Option<Vec<_>>>() else { return false };
    let files: Vec<_> = (0..writings.len()).map(|index| FileOf { by, index, arrival: Arrival::AtStart }).collect();
    let calls: Vec<_> = writings.iter().map(|w| w.call).collect();
    let_go(targets, provisioning, by, &calls, (&files, writings.iter().map(|w| w.pages).sum()))
}

/// Releases a waiting thread to make calls by which `files` are hooked, on `pages` pages.
fn let_go(
    targets: &mut Targets,
    provisioning: &mut Provisioning,
    by: SlotRef,
    calls: &[[u64; 7]],
    (files, pages): (&[FileOf], u64),
) -> bool {
    let Some(program) = targets.programs.get_mut(&by.program) else { return false };
    // Set this before the thread is released: it may be back at once.
    program.hooks.let_go = files.iter().map(|of| of.index).collect();
    let went = request::request_and_let_go(targets, by, calls);
    let Some(program) = targets.programs.get_mut(&by.program).filter(|_| went) else { return false };
    program.hooks.faults += pages;
    for of in files {
        if let Some(file) = program.hooks.files.get(of.index) {
            provisioning.sites.note(file, Some(0), of.arrival);
        }
    }
    true
}

/// Continues for a thread that was released to hook files and has come back, because a call failed after `made` others:
/// the launcher does the rest from outside.
pub(crate) fn finish(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    problems: &mut Problems,
    by: SlotRef,
    made: u64,
) {
    // A filter that forbids the call once will do so again, and may log it each time.
    knowledge.provisioning.writes_code = is_waiter_doomed(&targets.memory, by);
    let Some(program) = targets.programs.get_mut(&by.program) else { return };
    let (files, at_start) = (std::mem::take(&mut program.hooks.let_go), program.hooks.mapped_at_start);
    let maps = Maps::of(program.pid).all;
    for index in files {
        let arrival = if index < at_start { Arrival::AtStart } else { Arrival::Mapped };
        let of = FileOf { by, index, arrival };
        if arrival == Arrival::AtStart || made > 0 {
            write_around(targets, knowledge, problems, of, Layout::Known(&maps));
            continue;
        }
        // No jump may lead to code that is not mapped.
        not_hooked(&targets.programs, knowledge, problems, of, "no code near it");
    }
}

/// Notes that no site of a program's file is hooked.
fn not_hooked(programs: &Programs, knowledge: &mut FileKnowledge, problems: &mut Problems, of: FileOf, why: &str) {
    let Some(file) = programs.get(&of.by.program).and_then(|p| p.hooks.files.get(of.index)) else { return };
    let key = file.key;
    knowledge.provisioning.sites.note(file, None, of.arrival);
    lost(&knowledge.symbols, problems, key, why);
}

fn lost(symbols: &Symbols, problems: &mut Problems, key: ModuleKey, why: &str) {
    let path = symbols.path(key).unwrap_or_default();
    problems.note(ProblemKind::Lost, format!("{path}: its system calls are not counted: {why}"));
}
