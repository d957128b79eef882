//! Files without calls that programs' loaders mapped in earlier runs, kept in the cache for the executable: programs
//! need not ask about them.
//!
//! An entry identifies files by their state in the file system, as [`Cache`](crate::inproc::cache::Cache) does for
//! plans. A file with a frame on some context's stack is not kept: the program asks about it, so that it is known
//! before the context is.

use crate::inproc::monitor::exec::file_notes::Section;
use crate::inproc::monitor::exec::files::Files;
use prost::Message;
use std::collections::{HashMap, HashSet};
use systoll_symbols::{FileState, ModuleKey, Symbols};

/// Files kept for one program, at most; those mapped longest ago are dropped.
const MOST: usize = 512;

/// A file that a loader mapped, and the arguments of that call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MappedAs {
    pub(crate) state: FileState,
    /// Length, protection and flags, and offset, encoded as in [`systoll_hooks::layout::no_calls`].
    pub(crate) arguments: [u64; 3],
}

/// The site at which a loader maps files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoaderSite {
    /// Key of the loader's file in the cache.
    pub(crate) loader: String,
    /// Index of the site among the loader's sites.
    pub(crate) site: usize,
    pub(crate) address: u64,
}

#[derive(Clone, PartialEq, Message)]
struct WireNoCalls {
    #[prost(string, tag = "1")]
    loader: String,
    #[prost(uint32, tag = "2")]
    site: u32,
    #[prost(uint64, tag = "3")]
    address: u64,
    #[prost(message, repeated, tag = "4")]
    files: Vec<WireFile>,
}

impl Section for WireNoCalls {
    const NUMBER: u32 = 4;
}

#[derive(Clone, Copy, PartialEq, Message)]
struct WireFile {
    #[prost(uint64, tag = "1")]
    device: u64,
    #[prost(uint64, tag = "2")]
    inode: u64,
    #[prost(uint64, tag = "3")]
    size: u64,
    #[prost(int64, tag = "4")]
    modified_s: i64,
    #[prost(int64, tag = "5")]
    modified_ns: i64,
    #[prost(int64, tag = "6")]
    changed_s: i64,
    #[prost(int64, tag = "7")]
    changed_ns: i64,
    #[prost(int64, tag = "8")]
    file_system: i64,
    #[prost(uint64, tag = "9")]
    len: u64,
    #[prost(uint64, tag = "10")]
    how: u64,
    #[prost(uint64, tag = "11")]
    offset: u64,
}

/// Files kept for all programs of a run.
#[derive(Debug, Default)]
pub(crate) struct CallFreeFiles {
    by_program: HashMap<ModuleKey, OfProgram>,
}

/// Files kept for the programs of one executable.
#[derive(Debug, Default)]
struct OfProgram {
    site: Option<LoaderSite>,
    kept: Vec<MappedAs>,
    /// Files mapped in this run.
    new: Vec<(ModuleKey, MappedAs)>,
}

impl CallFreeFiles {
    /// Returns the files that earlier runs kept for programs with the executable `program`; `None` if there are none,
    /// or if they were returned before.
    pub(crate) fn read(&mut self, program: ModuleKey, files: &Files) -> Option<(&LoaderSite, &[MappedAs])> {
        if self.by_program.contains_key(&program) {
            return None;
        }
        let of_program = self.by_program.entry(program).or_default();
        let wire: WireNoCalls = files.notes_with_hooks(program)?;
        of_program.kept = wire.files.iter().take(MOST).map(MappedAs::from).collect();
        let site = LoaderSite { loader: wire.loader, site: wire.site as usize, address: wire.address };
        Some((of_program.site.insert(site), &of_program.kept))
    }

    /// Notes that a program with the executable `program` has mapped `file` by the call at `site`, and has asked about
    /// it.
    pub(crate) fn note(&mut self, program: ModuleKey, site: LoaderSite, (file, mapped): (ModuleKey, MappedAs)) {
        let of_program = self.by_program.entry(program).or_default();
        if of_program.site.as_ref() != Some(&site) {
            // The loader is another one than in earlier runs, or has changed.
            *of_program = OfProgram { site: Some(site), ..OfProgram::default() };
        }
        if of_program.new.len() < MOST {
            of_program.new.push((file, mapped));
        }
    }

    /// Keeps the files of this run for later runs, except those in `on_way`, which have frames of contexts.
    pub(crate) fn keep(&self, files: &mut Files, symbols: &Symbols, on_way: &HashSet<ModuleKey>) {
        let asked_about: HashSet<FileState> = on_way.iter().filter_map(|key| symbols.state(*key)).collect();
        for (program, OfProgram { site, kept, new }) in &self.by_program {
            let Some(site) = site else { continue };
            let is_telling = |file: ModuleKey| !on_way.contains(&file) && files.is_known_by_state(symbols, file);
            let mut all: Vec<MappedAs> =
                new.iter().filter(|(file, _)| is_telling(*file)).map(|(_, mapped)| *mapped).collect();
            let is_unchanged = all.is_empty();
            let still = kept.iter().filter(|mapped| !asked_about.contains(&mapped.state) && !all.contains(mapped));
            let still: Vec<MappedAs> = still.copied().collect();
            if is_unchanged && still.len() == kept.len() {
                continue;
            }
            all.extend(still);
            all.truncate(MOST);
            let wire = WireNoCalls {
                loader: site.loader.clone(),
                site: site.site as u32,
                address: site.address,
                files: all.iter().map(WireFile::from).collect(),
            };
            files.note_with_hooks(*program, &wire);
        }
    }
}

impl From<&WireFile> for MappedAs {
    fn from(wire: &WireFile) -> Self {
        let state = FileState {
            device: wire.device,
            inode: wire.inode,
            size: wire.size,
            modified: (wire.modified_s, wire.modified_ns),
            changed: (wire.changed_s, wire.changed_ns),
            file_system: wire.file_system,
        };
        Self { state, arguments: [wire.len, wire.how, wire.offset] }
    }
}

impl From<&MappedAs> for WireFile {
    fn from(MappedAs { state, arguments: [len, how, offset] }: &MappedAs) -> Self {
        Self {
            device: state.device,
            inode: state.inode,
            size: state.size,
            modified_s: state.modified.0,
            modified_ns: state.modified.1,
            changed_s: state.changed.0,
            changed_ns: state.changed.1,
            file_system: state.file_system,
            len: *len,
            how: *how,
            offset: *offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inproc::cache::Cache;
    use crate::inproc::monitor::exec::place::Maker;
    use crate::inproc::monitor::exec::read_ahead::Ahead;
    use crate::inproc::monitor::{Closely, options};
    use proptest::prelude::*;
    use std::sync::Arc;
    use systoll_symbols::AddressSpace;

    /// A run that begins with the contents of `cache`, and all files that this process has mapped.
    fn run(cache: &Arc<Cache>) -> (Files, Symbols, Vec<ModuleKey>) {
        let mut files = Files::new(Maker::new(options(Closely::All, true)), Arc::clone(cache), Ahead::default());
        let (mut symbols, mut space) = (Symbols::new(), AddressSpace::new());
        space.update(&mut symbols, std::process::id() as i32);
        let all: Vec<ModuleKey> = space.files().map(|f| f.module).collect();
        for file in &all {
            let _ = files.known(&mut symbols, *file);
        }
        (files, symbols, all)
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "whoever runs tests must see it")]
    fn what_a_run_has_met_the_next_one_knows_but_for_what_is_on_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Arc::new(Cache::at(dir.path(), 1 << 26));
        let (mut files, symbols, all) = run(&cache);
        let (program, met) = (all[0], &all[1..3]);
        let strict = std::env::var("SYSTOLL_TEST_STRICT").as_deref() == Ok("1");
        if !strict && !met.iter().all(|file| files.is_known_by_state(&symbols, *file)) {
            eprintln!("skipped: the file system that has this box's libraries does not tell of every change");
            return;
        }
        let site = LoaderSite { loader: "loader".into(), site: 3, address: 0x1234 };
        let mapped =
            |n: usize| MappedAs { state: symbols.state(met[n]).unwrap(), arguments: [n as u64, 1 << 33 | 5, 0] };
        let mut first = CallFreeFiles::default();
        assert_eq!(first.read(program, &files), None);
        for (n, file) in met.iter().enumerate() {
            first.note(program, site.clone(), (*file, mapped(n)));
        }
        first.keep(&mut files, &symbols, &HashSet::from([met[1]]));
        let mut second = CallFreeFiles::default();
        assert_eq!(second.read(program, &files), Some((&site, &[mapped(0)][..])));
        assert_eq!(second.read(program, &files), None, "it has been told");
        // Nothing is kept for this program yet. A file that turned out to have frames of contexts is asked about from
        // now on.
        assert_eq!(second.read(met[0], &files), None);
        second.note(program, site.clone(), (met[1], mapped(1)));
        second.keep(&mut files, &symbols, &HashSet::from([met[0]]));
        let mut third = CallFreeFiles::default();
        assert_eq!(third.read(program, &files), Some((&site, &[mapped(1)][..])));
        // Files of another loader are dropped.
        let other = LoaderSite { address: 0x5678, ..site };
        third.note(program, other.clone(), (met[0], mapped(0)));
        third.keep(&mut files, &symbols, &HashSet::new());
        assert_eq!(CallFreeFiles::default().read(program, &files), Some((&other, &[mapped(0)][..])));
    }

    proptest! {
        #[test]
        fn a_file_comes_back_as_it_was(
            [device, inode, size] in any::<[u64; 3]>(),
            modified: (i64, i64),
            changed: (i64, i64),
            file_system: i64,
            arguments: [u64; 3],
            bytes: Vec<u8>,
        ) {
            let mapped = MappedAs { state: FileState { device, inode, size, modified, changed, file_system }, arguments };
            prop_assert_eq!(MappedAs::from(&WireFile::from(&mapped)), mapped);
            let _ = WireNoCalls::decode(bytes.as_slice());
        }
    }
}
