//! Tells programs the files in which there is nothing to hook, so that their loaders need not ask about them again. The
//! mappings of such files are read with the program's next question.

use crate::inproc::monitor::exec::call_free_files::{LoaderSite, MappedAs};
use crate::inproc::monitor::exec::seccomp;
use crate::inproc::monitor::handles::{NodeAddr, ProgramId};
use crate::inproc::monitor::program::{CheckedMappings, Programs};
use crate::inproc::monitor::session::{FileKnowledge, MapsFile, Provisioning, Targets};
use crate::inproc::monitor::shared::maps::{self, Maps};
use crate::inproc::monitor::shared::memory::Memory;
use crate::table::Table;
use std::fs::File;
use std::rc::Rc;
use systoll_hooks::layout::{NODE_SIZE, global, image, no_calls};
use systoll_symbols::{ModuleKey, PlacedFrame, Registers, Symbols};

/// Tells a new program its loader's site, if the site is known. The loader's thread then need not ask about known
/// files.
pub(crate) fn begin(targets: &Targets, knowledge: &mut FileKnowledge, table: &Table, id: ProgramId) {
    tell_kept(targets, &mut knowledge.provisioning, id);
    let Some(program) = targets.programs.get(&id) else { return };
    let loaders = &knowledge.provisioning.no_calls.loaders;
    let root = program.hooks.files.iter().take(program.hooks.mapped_at_start).find_map(|f| {
        let root = loaders.get(&f.key)?;
        is_loader(&targets.programs, &knowledge.symbols, table, id, f.key).then_some(*root)
    });
    if let (Some(root), Some(area)) = (root, targets.memory.image(id)) {
        area.set(image::LOADER, root.0);
    }
}

/// Tells threads which files programs with the same executable have mapped in earlier runs.
fn tell_kept(targets: &Targets, provisioning: &mut Provisioning, id: ProgramId) -> Option<()> {
    let program = targets.programs.get(&id).filter(|program| program.native && may_tell(provisioning))?;
    let (files, known) = (&provisioning.files, &mut provisioning.no_calls);
    let (site, mapped) = known.kept.read(program.file?, files)?;
    let mapped = mapped.to_vec();
    let mut at_start = program.hooks.files.iter().take(program.hooks.mapped_at_start);
    let loader = at_start.find(|f| files.name(f.key) == Some(site.loader.as_str()))?;
    let counted = loader.code.blob.sites.get(site.site).filter(|s| s.address == site.address)?;
    // A call whose number the site does not tell has its root elsewhere.
    counted.number?;
    let root = NodeAddr(loader.known.region + site.site as u64 * NODE_SIZE);
    known.loaders.insert(loader.key, root);
    for mapped in mapped {
        provisioning.no_calls.unasked.insert(mapped.state);
        tell(&targets.memory, provisioning, mapped);
    }
    Some(())
}

/// Returns true if threads may skip questions about known files. A filter may forbid the call by which they recognise a
/// file.
fn may_tell(provisioning: &Provisioning) -> bool {
    *seccomp::inherited() == seccomp::Inherited::Nothing && provisioning.elided == 0
}

/// Returns true if the file is the program's loader: the kernel has mapped it to load other files, so what it does with
/// them is known.
fn is_loader(programs: &Programs, symbols: &Symbols, table: &Table, id: ProgramId, key: ModuleKey) -> bool {
    let exe = programs.get(&id).and_then(|p| table.images.get(p.image.index())).map(|i| &i.exe);
    exe.is_some() && symbols.path(key).as_ref() != exe
}

/// Notes that the thread whose call with these registers is counted at `root` has mapped a file without calls. Later
/// threads of this run and of later runs are told.
pub(crate) fn note(
    targets: &Targets,
    knowledge: &mut FileKnowledge,
    table: &Table,
    id: ProgramId,
    root: NodeAddr,
    (file, r): (ModuleKey, &Registers),
) {
    // Files that compile or interpret are not noted: the launcher must know at once which programs run scripts.
    if !may_tell(&knowledge.provisioning) || knowledge.symbols.compiles(file) || knowledge.symbols.interprets(file) {
        return;
    }
    let Some(program) = targets.programs.get(&id).filter(|p| p.native) else { return };
    let Some(at) = program.site_of(root).filter(|at| at.file < program.hooks.mapped_at_start) else { return };
    let Some(by) = program.hooks.files.get(at.file) else { return };
    let Some(state) =
        knowledge.symbols.state(file).filter(|_| is_loader(&targets.programs, &knowledge.symbols, table, id, by.key))
    else {
        return;
    };
    let mapped = MappedAs { state, arguments: [r.si, no_calls::how(r.dx, r.r10), r.r9] };
    let site = by.code.blob.sites.get(at.site).filter(|site| site.number.is_some());
    let (files, known) = (&knowledge.provisioning.files, &mut knowledge.provisioning.no_calls);
    known.loaders.insert(by.key, root);
    if let (Some(own), Some(site), Some(loader)) = (program.file, site, files.name(by.key)) {
        let site = LoaderSite { loader: loader.to_owned(), site: at.site, address: site.address };
        known.kept.note(own, site, (file, mapped));
    }
    if tell(&targets.memory, &mut knowledge.provisioning, mapped) {
        knowledge.provisioning.no_calls.files.insert(file);
    }
    if let Some(area) = targets.memory.image(id) {
        area.set(image::LOADER, root.0);
    }
}

/// Adds an entry if it is new and there is room. Its inode is written last, for threads that read it meanwhile.
fn tell(memory: &Memory, provisioning: &mut Provisioning, mapped: MappedAs) -> bool {
    let known = &mut provisioning.no_calls;
    let nth = known.told.len() as u64;
    if nth >= global::NO_CALLS_LEN || !known.told.insert(mapped) {
        return false;
    }
    let MappedAs { state, arguments: [len, how, offset] } = mapped;
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
    words.into_iter().for_each(|(at, word)| memory.global().set(entry + at, word));
    true
}

/// Keeps the files without calls that programs of this run have mapped, for later runs.
pub(crate) fn keep(knowledge: &mut FileKnowledge) {
    let Provisioning { files, no_calls: known, .. } = &mut knowledge.provisioning;
    known.kept.keep(files, &knowledge.symbols, &knowledge.reuse.contexts.files());
}

/// Makes a program ask about each file from now on, because it does things that loaders don't do.
pub(crate) fn end(memory: &Memory, id: ProgramId) {
    if let Some(area) = memory.image(id) {
        area.set(image::LOADER, 0);
    }
}

/// Notes, by the frames of a stack, that a program makes calls through files that it does not ask about.
pub(crate) fn note_callers(
    programs: &Programs,
    knowledge: &mut FileKnowledge,
    table: &Table,
    id: ProgramId,
    frames: &[PlacedFrame],
) {
    let known = &mut knowledge.provisioning.no_calls;
    let mut is_told = |key: ModuleKey| {
        let is_new = !known.unasked.is_empty() && known.seen.insert(key);
        if is_new && knowledge.symbols.state(key).is_some_and(|state| known.unasked.contains(&state)) {
            known.files.insert(key);
        }
        known.files.contains(&key)
    };
    if !frames.iter().filter_map(|f| f.frame.module).any(&mut is_told) {
        return;
    }
    let image = programs.get(&id).and_then(|p| table.images.get(p.image.index()));
    if let Some(earlier) = image.and_then(|image| knowledge.reuse.by_file.get_mut(&image.exe)) {
        earlier.calls_through = true;
    }
}

/// Calls [`look`] if the program's contexts can't be recognised without it.
pub(crate) fn look_for_callers(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    table: &Table,
    id: ProgramId,
    tid: i32,
) {
    let image = targets.programs.get(&id).and_then(|p| table.images.get(p.image.index()));
    if image.and_then(|image| knowledge.reuse.by_file.get(&image.exe)).is_some_and(|earlier| earlier.calls_through) {
        read_mappings(targets, &mut knowledge.symbols, id, tid);
    }
}

/// Returns true if a file that was not asked about may lie where one of these frames of the waiting thread `tid` is
/// attributed to another file, or if the frames are incomplete. Checking a few mappings takes a fraction of reading all
/// mappings of a program with hundreds of libraries.
pub(crate) fn may_lie_in(
    targets: &mut Targets,
    provisioning: &mut Provisioning,
    id: ProgramId,
    tid: i32,
    (frames, complete): (&[PlacedFrame], bool),
) -> bool {
    let unasked = targets.memory.image(id).map_or(0, |area| area.get(image::UNASKED_FILES));
    if targets.programs.get(&id).is_none_or(|program| program.hooks.unasked == unasked) {
        return false;
    }
    if !complete {
        return true;
    }
    let (Some(maps), Some(program)) = (maps_file(provisioning, id, tid), targets.programs.get_mut(&id)) else {
        return true;
    };
    let (space, unmoved) = (&program.space, &mut program.hooks.unmoved);
    if unmoved.unasked != unasked {
        *unmoved = CheckedMappings { unasked, starts: Vec::new() };
    }
    frames.iter().any(|f| {
        let Some(file) = space.file_at(f.ip.wrapping_sub(u64::from(f.frame.is_return))) else { return false };
        if unmoved.starts.contains(&file.start) {
            return false;
        }
        let is_there = maps::line_around(&maps, file.start).is_some_and(|line| space.knows(&line));
        if is_there {
            unmoved.starts.push(file.start);
        }
        !is_there
    })
}

/// Returns the `maps` file of a thread's process. The file stays open until another thread's file is asked for, since
/// libraries come by the dozen.
pub(crate) fn maps_file(provisioning: &mut Provisioning, id: ProgramId, tid: i32) -> Option<Rc<File>> {
    let last = provisioning.maps_file.as_ref().filter(|last| (last.program, last.tid) == (id, tid));
    if let Some(last) = last {
        return Some(Rc::clone(&last.file));
    }
    let file = Rc::new(maps::open(tid)?);
    provisioning.maps_file = Some(MapsFile { program: id, tid, file: Rc::clone(&file) });
    Some(file)
}

/// Reads the mappings that the program of the waiting thread `tid` has made without asking.
pub(crate) fn read_mappings(targets: &mut Targets, symbols: &mut Symbols, id: ProgramId, tid: i32) {
    let Some(program) = targets.programs.get_mut(&id) else { return };
    let unasked = targets.memory.image(id).map_or(0, |area| area.get(image::UNASKED_FILES));
    if unasked != program.hooks.unasked {
        program.hooks.unasked = unasked;
        program.space.update_by(symbols, tid, &Maps::of(tid).text);
    }
}
