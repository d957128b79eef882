//! Recognises programs that map other programs to translate their code: valgrind, emulators.
//!
//! A translator reads its guest's code and runs code of its own instead. A jump written into the guest would lead it to
//! addresses that its translator has not given it, so no byte of a guest may change. Translators are recognised by
//! their behaviour, not by name. A file that maps code to run it is a dynamic loader, or a program that does a loader's
//! work from the start: it maps libraries, or, if it has no loader itself, a program and that one's loader, and jumps
//! there. A program that has a loader and maps a program past it, or that maps one and makes code while it runs,
//! translates it.

use crate::inproc::monitor::handles::{NodeAddr, ProgramId};
use crate::inproc::monitor::program::{Program, Programs};
use crate::inproc::monitor::requests::mapper_roles::{FirstMapped, MOST_STARTED, MapperRole};
use crate::inproc::monitor::session::{DraftRecording, FileKnowledge};
use crate::inproc::monitor::shared::remote::Mem;
use crate::table::{ImageId, Table};
use systoll_hooks::plan::Kind;
use systoll_model::ProblemKind;
use systoll_symbols::{MappedFile, ModuleKey, Symbols};

/// A file of a program that maps other files.
#[derive(Clone, Copy)]
struct Mapper {
    /// Index of the file among the program's files.
    index: usize,
    key: ModuleKey,
}

/// Returns the file of `program` that makes the call counted at `root`.
fn mapper(program: &Program, root: NodeAddr) -> Option<Mapper> {
    let index = program.site_of(root)?.file;
    Some(Mapper { index, key: program.hooks.files.get(index)?.key })
}

/// Returns true if a file mapped by a call counted at `root` is a guest's, which its program translates.
pub(crate) fn is_guest(
    programs: &mut Programs,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    id: ProgramId,
    root: NodeAddr,
    file: &MappedFile,
) -> bool {
    let Some(mapped_by) = programs.get(&id).and_then(|p| mapper(p, root)) else { return false };
    let by = mapped_by.key;
    let at_start = programs.get(&id).and_then(|p| p.hooks.files.get(..p.hooks.mapped_at_start)).unwrap_or_default();
    // Some programs map their own code again, onto larger pages or to change a copy, and run that.
    let in_place = at_start.iter().any(|f| f.key == file.module && f.bias == file.bias);
    let exe = programs.get(&id).and_then(|p| draft.table.images.get(p.image.index())).map(|i| &i.exe);
    let own = knowledge.symbols.path(file.module).as_ref() == exe;
    let translates = programs.get(&id).is_some_and(|p| p.hooks.roles.0.get(&by) == Some(&MapperRole::Translates));
    if in_place || own && !translates {
        return false;
    }
    if programs.get(&id).is_some_and(|p| !p.hooks.roles.0.contains_key(&by)) {
        let role = new_role(programs, knowledge, &draft.table, id, mapped_by, file.module);
        if let (MapperRole::Translates, Some(program)) = (&role, programs.get(&id)) {
            let image = program.image;
            note_guest(&knowledge.symbols, draft, image, file.module);
        }
        if let Some(program) = programs.get_mut(&id) {
            program.hooks.roles.0.insert(by, role);
        }
    }
    let role = programs.get_mut(&id).and_then(|p| p.hooks.roles.0.get_mut(&by));
    if let Some(MapperRole::Starts(files)) = role {
        // These are a program and its loader. A file that maps more files than [`MOST_STARTED`] starts no program.
        if files.len() < MOST_STARTED {
            files.push((file.module, file.bias));
        }
        return false;
    }
    role == Some(&mut MapperRole::Translates)
}

fn new_role(
    programs: &Programs,
    knowledge: &mut FileKnowledge,
    table: &Table,
    id: ProgramId,
    Mapper { index, key: by }: Mapper,
    file: ModuleKey,
) -> MapperRole {
    let Some(program) = programs.get(&id) else { return MapperRole::Loads };
    let exe = table.images.get(program.image.index()).map(|i| &i.exe);
    // The file that the kernel has mapped besides the program itself is its loader.
    if index < program.hooks.mapped_at_start && knowledge.symbols.path(by).as_ref() != exe {
        return MapperRole::Loads;
    }
    let makes_code = program.hooks.generated.any();
    let [by, what] = [by, file].map(|key| kind(knowledge, key));
    FirstMapped { by, what, makes_code }.role()
}

fn kind(knowledge: &mut FileKnowledge, key: ModuleKey) -> Option<Kind> {
    let read = || Kind::of(&knowledge.symbols.bytes(key)?);
    *knowledge.provisioning.kinds.entry(key).or_insert_with(read)
}

/// Handles code without a file, made by a call counted at `root`: if the same file has mapped a program before, it will
/// translate it, so the jumps in that program are removed first.
pub(crate) fn on_code_made(
    programs: &mut Programs,
    symbols: &Symbols,
    draft: &mut DraftRecording,
    id: ProgramId,
    tid: i32,
    root: NodeAddr,
) {
    let Some(program) = programs.get_mut(&id) else { return };
    let Some(Mapper { key: by, .. }) = mapper(program, root) else { return };
    let Some(MapperRole::Starts(files)) = program.hooks.roles.0.get(&by).cloned() else { return };
    program.hooks.roles.0.insert(by, MapperRole::Translates);
    // Use the thread's memory, not the program's: a forked process has memory of its own.
    if let Ok(mem) = Mem::open(tid) {
        let started = program.hooks.files.iter().filter(|f| files.contains(&(f.key, f.bias)));
        started.for_each(|f| mem.restore(&f.code.jumps, f.bias));
    }
    let image = program.image;
    if let Some((first, _)) = files.first() {
        note_guest(symbols, draft, image, *first);
    }
}

fn note_guest(symbols: &Symbols, draft: &mut DraftRecording, image: ImageId, file: ModuleKey) {
    let exe = draft.table.images.get(image.index()).map(|i| i.exe.to_string()).unwrap_or_default();
    let path = symbols.path(file).unwrap_or_default();
    let said = format!("{exe} translates ");
    if draft.problems.list.iter().any(|p| p.text.starts_with(&said)) {
        return;
    }
    let text = format!(
        "{said}other programs' code ({path} first), which is left as it is: calls are counted where the translator \
         makes them, and not where that code would"
    );
    draft.problems.note(ProblemKind::Lost, text);
}
