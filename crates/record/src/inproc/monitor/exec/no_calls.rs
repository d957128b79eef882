//! Files in which there is nothing to be hooked: programs are told which, so that their loaders need not ask about
//! them again. What a program has mapped so is looked up with its next question.

use crate::inproc::monitor::exec::seccomp;
use crate::inproc::monitor::handles::{NodeAddr, ProgramId};
use crate::inproc::monitor::session::Session;
use crate::inproc::monitor::shared::maps::Maps;
use systoll_hooks::layout::{global, image, no_calls};
use systoll_symbols::{FileState, ModuleKey, PlacedFrame, Registers};

/// A program begins: its thread need not ask where its loader is known.
pub(crate) fn begin(session: &Session, id: ProgramId) {
    let Some(program) = session.programs.get(&id) else { return };
    let loaders = &session.provisioning.no_calls.loaders;
    let root = program.hooks.files.iter().take(program.hooks.mapped_at_start).find_map(|f| {
        let root = loaders.get(&f.key)?;
        is_loader(session, id, f.key).then_some(*root)
    });
    if let (Some(root), Some(area)) = (root, session.memory.image(id)) {
        area.set(image::LOADER, root.0);
    }
}

/// Whether the kernel has mapped a file of a program for it to load others: what is done with those is known.
fn is_loader(session: &Session, id: ProgramId, key: ModuleKey) -> bool {
    let exe = session.programs.get(&id).and_then(|p| session.table.images.get(p.image.index())).map(|i| &i.exe);
    exe.is_some() && session.symbols.path(key).as_ref() != exe
}

/// The thread whose call with these registers is counted at `root` has mapped a file that has no calls: later ones of
/// this run are told.
pub(crate) fn note(session: &mut Session, id: ProgramId, root: NodeAddr, (file, r): (ModuleKey, &Registers)) {
    // A filter may forbid the call by which threads know a file; and which programs run scripts is to be known at once.
    let may = *seccomp::inherited() == seccomp::Inherited::Nothing && session.provisioning.elided == 0;
    if !may || session.symbols.compiles(file) {
        return;
    }
    let Some(program) = session.programs.get(&id).filter(|p| p.native) else { return };
    let by = program.site_of(root).filter(|at| at.file < program.hooks.mapped_at_start);
    let Some(by) = by.and_then(|at| program.hooks.files.get(at.file)).map(|f| f.key) else { return };
    let Some(state) = session.symbols.state(file).filter(|_| is_loader(session, id, by)) else { return };
    let arguments = [r.si, no_calls::how(r.dx, r.r10), r.r9];
    let known = &mut session.provisioning.no_calls;
    known.loaders.insert(by, root);
    let nth = known.told.len() as u64;
    if nth < global::NO_CALLS_LEN && known.told.insert((file, arguments)) {
        known.files.insert(file);
        tell(session, nth, &state, arguments);
    }
    if let Some(area) = session.memory.image(id) {
        area.set(image::LOADER, root.0);
    }
}

/// Writes entry `nth`; its inode comes last, for threads that look meanwhile.
fn tell(session: &Session, nth: u64, state: &FileState, [len, how, offset]: [u64; 3]) {
    let (modified, changed) = (state.modified, state.changed);
    let words = [
        (no_calls::DEVICE, state.device),
        (no_calls::FILE_SIZE, state.size),
        (no_calls::MODIFIED, modified.0 as u64),
        (no_calls::MODIFIED + 8, modified.1 as u64),
        (no_calls::CHANGED, changed.0 as u64),
        (no_calls::CHANGED + 8, changed.1 as u64),
        (no_calls::LEN, len),
        (no_calls::HOW, how),
        (no_calls::OFFSET, offset),
        (no_calls::INODE, state.inode),
    ];
    let entry = global::NO_CALLS + nth * no_calls::SIZE;
    words.into_iter().for_each(|(at, word)| session.memory.global().set(entry + at, word));
}

/// A program does what loaders don't: from now on it asks about each file.
pub(crate) fn end(session: &Session, id: ProgramId) {
    if let Some(area) = session.memory.image(id) {
        area.set(image::LOADER, 0);
    }
}

/// Notes that a program makes calls through files that are not asked about, where these frames say so.
pub(crate) fn note_callers(session: &mut Session, id: ProgramId, frames: &[PlacedFrame]) {
    let told = &session.provisioning.no_calls.files;
    if !frames.iter().any(|f| f.frame.module.is_some_and(|key| told.contains(&key))) {
        return;
    }
    let image = session.programs.get(&id).and_then(|p| session.table.images.get(p.image.index()));
    if let Some(earlier) = image.and_then(|image| session.reuse.by_file.get_mut(&image.exe)) {
        earlier.calls_through = true;
    }
}

/// The same as [`look`] for a program whose contexts can't be known again without it.
pub(crate) fn look_for_callers(session: &mut Session, id: ProgramId, tid: i32) {
    let image = session.programs.get(&id).and_then(|p| session.table.images.get(p.image.index()));
    if image.and_then(|image| session.reuse.by_file.get(&image.exe)).is_some_and(|earlier| earlier.calls_through) {
        look(session, id, tid);
    }
}

/// Looks at what the program of the waiting thread `tid` has mapped without asking.
pub(crate) fn look(session: &mut Session, id: ProgramId, tid: i32) {
    let Some(program) = session.programs.get_mut(&id) else { return };
    let unasked = session.memory.image(id).map_or(0, |area| area.get(image::UNASKED_FILES));
    if unasked != program.hooks.unasked {
        program.hooks.unasked = unasked;
        program.space.update_by(&mut session.symbols, tid, &Maps::of(tid).text);
    }
}
