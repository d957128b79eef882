//! Programs that map other programs to translate their code: valgrind, emulators.
//!
//! A translator reads its guest's code and runs code of its own instead. A jump written there would
//! lead the guest to addresses that its translator has not given it, so no byte of a guest may
//! change. Translators are known by what they do, not by name. Whoever maps code to run it is a
//! dynamic loader, or a program that does a loader's work from the start: it maps libraries, or, if
//! it has no loader itself, a program and that one's loader, and jumps there. Whoever has a
//! loader and maps a program past it, or maps one and makes code while it runs, translates it.

use super::engine::Engine;
use super::program::Program;
use super::target::Mem;
use std::collections::HashMap;
use systoll_hooks::plan::Kind;
use systoll_model::ProblemKind;
use systoll_symbols::{MappedFile, ModuleKey};

/// What a program's file, whose code maps others, maps them for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hand {
    /// To run them.
    Loads,
    /// To run them, as far as can be told: a program first, and these files, with where each lies.
    /// Whoever makes code after that has meant to translate them.
    Starts(Vec<(ModuleKey, u64)>),
    /// To translate them.
    Translates,
}

/// What is known of a program's files that map others.
#[derive(Clone, Debug, Default)]
pub(super) struct Hands(HashMap<ModuleKey, Hand>);

/// What decides at the first file that a program's file maps.
#[derive(Clone, Copy, Debug)]
struct First {
    /// What the mapping file is.
    by: Option<Kind>,
    /// What it maps.
    what: Option<Kind>,
    /// Whether the program has made code.
    makes_code: bool,
}

impl First {
    fn hand(self) -> Hand {
        let starts = matches!(self.what, Some(Kind::Program { .. } | Kind::Loader | Kind::Foreign));
        // A program that has no loader of its own may be one for others.
        let is_static = matches!(self.by, Some(Kind::Program { interpreted: false }));
        match (self.by, starts) {
            (None | Some(Kind::Loader), _) | (_, false) => Hand::Loads,
            (_, true) if is_static && !self.makes_code && self.what != Some(Kind::Foreign) => Hand::Starts(Vec::new()),
            _ => Hand::Translates,
        }
    }
}

impl Engine {
    /// Whether a file that has come by a call counted at `root` is a guest's, which its program
    /// translates.
    pub(super) fn is_guest(&mut self, id: u32, root: u64, file: &MappedFile) -> bool {
        let Some((index, by)) = self.programs.get(&id).and_then(|p| mapper(p, root)) else { return false };
        let born = self.programs.get(&id).and_then(|p| p.files.get(..p.born)).unwrap_or_default();
        // Some programs map their own code anew, onto larger pages or to change a copy, and run that.
        let in_place = born.iter().any(|f| f.key == file.module && f.bias == file.bias);
        let exe = self.programs.get(&id).and_then(|p| self.table.images.get(p.image as usize)).map(|i| &i.exe);
        let own = self.symbols.path(file.module).as_ref() == exe;
        let translates = self.programs.get(&id).is_some_and(|p| p.hands.0.get(&by) == Some(&Hand::Translates));
        if in_place || own && !translates {
            return false;
        }
        if self.programs.get(&id).is_some_and(|p| !p.hands.0.contains_key(&by)) {
            let hand = self.new_hand(id, (index, by), file.module);
            if let (Hand::Translates, Some(program)) = (&hand, self.programs.get(&id)) {
                let image = program.image;
                self.note_guest(image, file.module);
            }
            if let Some(program) = self.programs.get_mut(&id) {
                program.hands.0.insert(by, hand);
            }
        }
        let hand = self.programs.get_mut(&id).and_then(|p| p.hands.0.get_mut(&by));
        if let Some(Hand::Starts(files)) = hand {
            // A program and its loader; whoever maps more than that is no start.
            if files.len() < MOST_STARTED {
                files.push((file.module, file.bias));
            }
            return false;
        }
        hand == Some(&mut Hand::Translates)
    }

    fn new_hand(&mut self, id: u32, (index, by): (usize, ModuleKey), file: ModuleKey) -> Hand {
        let Some(program) = self.programs.get(&id) else { return Hand::Loads };
        let exe = self.table.images.get(program.image as usize).map(|i| &i.exe);
        // What the kernel has mapped beside the program itself is its loader.
        if index < program.born && self.symbols.path(by).as_ref() != exe {
            return Hand::Loads;
        }
        let makes_code = program.generated.any();
        let [by, what] = [by, file].map(|key| self.kind(key));
        First { by, what, makes_code }.hand()
    }

    fn kind(&mut self, key: ModuleKey) -> Option<Kind> {
        let read = || Kind::of(&self.symbols.bytes(key)?);
        *self.kinds.entry(key).or_insert_with(read)
    }

    /// Code that is in no file has come by a call counted at `root`: if the same file has mapped a
    /// program before, it is to translate that, whose jumps are taken back before it does.
    pub(super) fn on_code_made(&mut self, id: u32, tid: i32, root: u64) {
        let Some(program) = self.programs.get_mut(&id) else { return };
        let Some((_, by)) = mapper(program, root) else { return };
        let Some(Hand::Starts(files)) = program.hands.0.get(&by).cloned() else { return };
        program.hands.0.insert(by, Hand::Translates);
        // Not the program's own: a forked process has memory of its own.
        if let Ok(mem) = Mem::open(tid) {
            let started = program.files.iter().filter(|f| files.contains(&(f.key, f.bias)));
            started.for_each(|f| mem.restore(&f.code.jumps, f.bias));
        }
        let image = program.image;
        if let Some((first, _)) = files.first() {
            self.note_guest(image, *first);
        }
    }

    fn note_guest(&mut self, image: u32, file: ModuleKey) {
        let exe = self.table.images.get(image as usize).map(|i| i.exe.to_string()).unwrap_or_default();
        let path = self.symbols.path(file).unwrap_or_default();
        let said = format!("{exe} translates ");
        if self.problems.iter().any(|p| p.text.starts_with(&said)) {
            return;
        }
        let text = format!(
            "{said}other programs' code ({path} first), which is left as it is: calls are counted where the translator \
             makes them, and not where that code would"
        );
        self.problem(ProblemKind::Lost, text);
    }
}

/// Most files whose jumps are taken back.
const MOST_STARTED: usize = 64;

/// The file of `program` that makes the call counted at `root`: its place among the program's, and
/// which it is.
fn mapper(program: &Program, root: u64) -> Option<(usize, ModuleKey)> {
    let (index, _) = program.site_of(root)?;
    Some((index, program.files.get(index)?.key))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATIC: Kind = Kind::Program { interpreted: false };
    const DYNAMIC: Kind = Kind::Program { interpreted: true };

    fn hand(by: Kind, what: Kind, makes_code: bool) -> Hand {
        First { by: Some(by), what: Some(what), makes_code }.hand()
    }

    #[test]
    fn loaders_load() {
        for what in [STATIC, DYNAMIC, Kind::Loader, Kind::Library] {
            for makes_code in [false, true] {
                assert_eq!(hand(Kind::Loader, what, makes_code), Hand::Loads);
            }
        }
    }

    #[test]
    fn a_static_program_that_loads_libraries_is_a_loader() {
        assert_eq!(hand(STATIC, Kind::Library, false), Hand::Loads);
        assert_eq!(hand(STATIC, Kind::Library, true), Hand::Loads);
    }

    #[test]
    fn a_static_program_that_maps_a_program_runs_it_unless_it_makes_code() {
        for what in [STATIC, DYNAMIC, Kind::Loader] {
            assert_eq!(hand(STATIC, what, false), Hand::Starts(Vec::new()));
            assert_eq!(hand(STATIC, what, true), Hand::Translates);
        }
    }

    #[test]
    fn a_program_mapped_past_the_loader_is_translated() {
        for by in [DYNAMIC, Kind::Library] {
            assert_eq!(hand(by, DYNAMIC, false), Hand::Translates);
            assert_eq!(hand(by, Kind::Loader, false), Hand::Translates);
            assert_eq!(hand(by, Kind::Library, true), Hand::Loads);
        }
    }

    #[test]
    fn another_processors_code_is_translated() {
        assert_eq!(hand(STATIC, Kind::Foreign, false), Hand::Translates);
        assert_eq!(hand(Kind::Library, Kind::Foreign, false), Hand::Translates);
    }

    #[test]
    fn what_can_not_be_read_is_taken_as_before() {
        let first = First { by: None, what: Some(DYNAMIC), makes_code: true };
        assert_eq!(first.hand(), Hand::Loads);
        assert_eq!(First { by: Some(STATIC), what: None, makes_code: true }.hand(), Hand::Loads);
    }
}
