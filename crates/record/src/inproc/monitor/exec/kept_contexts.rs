//! Contexts that programs had in earlier runs, kept in the cache for the file of their outermost frame. Contexts with
//! frames of varying size are kept for the program's executable, since the sizes depend on it.
//!
//! The contexts are valid as long as all their files have the same contents and the hooks are the same code. Files are
//! named by their [`Key`](crate::inproc::cache::Key).

use crate::inproc::monitor::exec::context_reuse::{
    Context, HadBy, KnownAbove, KnownContext, KnownContexts, KnownStep, KnownTrunk, Origin,
};
use crate::inproc::monitor::exec::file_notes::Section;
use crate::inproc::monitor::exec::files::Files;
use prost::Message;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use systoll_hooks::assemble::FramePointer;
use systoll_symbols::{ModuleKey, RawFrame};

/// Contexts kept for one file, at most. Each is a record in every thread's memory, which has some thousands.
const MOST: usize = 1024;

/// Largest number of known contexts per new one for which an entry is rewritten. If threads take turns by chance, every
/// run has a few new contexts, and asking for those costs less than writing all of them.
const WORTH_WRITING: usize = 16;

/// Number of runs, on average, in one of which a context whose trunk has changed counts as new.
const RENEWS: u64 = 8;

#[derive(Clone, PartialEq, Message)]
struct WireContexts {
    /// Keys of the files that contexts refer to.
    #[prost(string, repeated, tag = "1")]
    files: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    contexts: Vec<WireContext>,
}

impl Section for WireContexts {
    const NUMBER: u32 = 3;
}

#[derive(Clone, PartialEq, Message)]
struct WireContext {
    /// Index of the site's file in `files`.
    #[prost(uint32, tag = "1")]
    file: u32,
    #[prost(uint32, tag = "2")]
    site: u32,
    #[prost(uint64, tag = "3")]
    site_address: u64,
    #[prost(uint32, optional, tag = "4")]
    number: Option<u32>,
    /// Address of the site's own frame.
    #[prost(uint64, tag = "5")]
    address: u64,
    #[prost(bool, tag = "6")]
    is_return: bool,
    #[prost(bool, tag = "7")]
    whole: bool,
    #[prost(bool, tag = "8")]
    main: bool,
    #[prost(message, repeated, tag = "9")]
    steps: Vec<WireStep>,
    #[prost(message, optional, tag = "10")]
    trunk: Option<WireTrunk>,
}

#[derive(Clone, PartialEq, Message)]
struct WireTrunk {
    #[prost(bool, tag = "1")]
    from_rbp: bool,
    #[prost(bool, tag = "2")]
    complete: bool,
    /// File of each return address of the trunk, in a column of its own, as addresses and places are.
    #[prost(uint32, repeated, tag = "3")]
    files: Vec<u32>,
    #[prost(uint64, repeated, tag = "4")]
    addresses: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    places: Vec<u64>,
}

impl WireTrunk {
    /// Encodes a trunk; `file` returns the index of a file. Returns `None` if a file has none.
    fn of(trunk: &KnownTrunk, mut file: impl FnMut(ModuleKey) -> Option<u32>) -> Option<Self> {
        let KnownTrunk { from_rbp, complete, above } = trunk;
        Some(Self {
            from_rbp: *from_rbp,
            complete: *complete,
            files: above.iter().map(|a| file(a.file)).collect::<Option<_>>()?,
            addresses: above.iter().map(|a| a.address).collect(),
            places: above.iter().map(|a| a.place).collect(),
        })
    }

    /// Decodes the trunk; returns `None` if one of its files has not been seen.
    fn trunk(&self, module: impl Fn(u32) -> Option<ModuleKey>) -> Option<KnownTrunk> {
        let above = self.files.iter().zip(&self.addresses).zip(&self.places);
        let above =
            above.map(|((f, address), place)| Some(KnownAbove { file: module(*f)?, address: *address, place: *place }));
        Some(KnownTrunk { from_rbp: self.from_rbp, complete: self.complete, above: above.collect::<Option<_>>()? })
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
struct WireStep {
    #[prost(uint32, tag = "1")]
    file: u32,
    #[prost(uint64, tag = "2")]
    address: u64,
    #[prost(uint64, tag = "3")]
    next: u64,
    #[prost(message, optional, tag = "4")]
    pointer: Option<WirePointer>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct WirePointer {
    #[prost(uint64, optional, tag = "1")]
    saved: Option<u64>,
    #[prost(uint64, tag = "2")]
    distance: u64,
}

/// Contexts that earlier runs have kept for the files seen in this run.
#[derive(Debug, Default)]
pub(crate) struct KeptContexts {
    by_file: foldhash::HashMap<ModuleKey, OfFile>,
}

/// Contexts that were kept for one file.
#[derive(Debug, Default)]
struct OfFile {
    /// Contexts that are not decoded yet, because one of their files has not been seen.
    waiting: WireContexts,
    /// Files that were seen when decoding was last tried.
    met: foldhash::HashSet<ModuleKey>,
}

impl KeptContexts {
    /// Makes the contexts known that earlier runs kept for the files a program has mapped.
    pub(crate) fn make_known(&mut self, modules: &[ModuleKey], files: &Files, contexts: &mut KnownContexts) {
        let mut by_name: Option<HashMap<&str, ModuleKey>> = None;
        for by in modules {
            // A file has no name before it has been read.
            let Some(name) = files.name(*by) else { continue };
            let of_file = self.by_file.entry(*by).or_insert_with(|| OfFile::read(files, *by));
            let is_new = |module: &ModuleKey| files.name(*module).is_some() && !of_file.met.contains(module);
            if of_file.waiting.contexts.is_empty() || !modules.iter().any(is_new) {
                continue;
            }
            let named = |module: &ModuleKey| Some((files.name(*module)?, *module));
            let by_name = by_name.get_or_insert_with(|| modules.iter().filter_map(named).collect());
            // Files of the same contents share a name; the contexts belong to this file.
            by_name.insert(name, *by);
            of_file.met.extend(by_name.values());
            of_file.know_again(by_name, contexts, *by);
        }
    }

    /// Keeps the contexts of this run for later runs, if enough of them are new.
    pub(crate) fn keep(&self, files: &mut Files, known: &KnownContexts) {
        for (by, contexts) in self.worth_writing(known) {
            let mut wire = WireContexts::default();
            for context in contexts {
                wire.add(&context.context, context.trunk().as_deref(), |module| files.name(module));
            }
            if let Some(of_file) = self.by_file.get(&by) {
                wire.add_all(&of_file.waiting);
            }
            wire.contexts.truncate(MOST);
            files.note_with_hooks(by, &wire);
        }
    }

    /// Returns the files that have enough new contexts for their entries to be rewritten, with the contexts of this
    /// run.
    fn worth_writing<'k>(&self, known: &'k KnownContexts) -> Vec<(ModuleKey, Vec<&'k KnownContext>)> {
        let mut by_file: HashMap<ModuleKey, Vec<(bool, &KnownContext)>> = HashMap::new();
        for ((_, outermost), contexts) in known.pairs() {
            for known in contexts.iter().filter(|known| known.origin != Origin::Other) {
                // Contexts of varying size differ between programs: one that is in one program's entry may be missing
                // in another's.
                let mut by = known.programs();
                if by.is_empty() {
                    by.push(HadBy { program: *outermost, kept: known.origin == Origin::EarlierRun });
                }
                for HadBy { program, kept } in by {
                    by_file.entry(program).or_default().push((kept, known));
                }
            }
        }
        let is_drawn = RandomState::new().hash_one(()).is_multiple_of(RENEWS);
        let is_worth_it = |(by, contexts): &(ModuleKey, Vec<(bool, &KnownContext)>)| {
            // A context that comes now by one trunk and now by another should not cause a rewrite in each run.
            let is_renewed = |known: &KnownContext| known.is_renewed() && is_drawn;
            let new = contexts.iter().filter(|(kept, known)| !kept || is_renewed(known)).count();
            let waiting = self.by_file.get(by).map_or(0, |of_file| of_file.waiting.contexts.len());
            new > 0 && new >= (contexts.len() - new + waiting) / WORTH_WRITING
        };
        let what = |(by, mut contexts): (ModuleKey, Vec<(bool, &'k KnownContext)>)| {
            // New contexts come first: if there are too many, the last ones are dropped.
            contexts.sort_by_key(|(kept, _)| *kept);
            (by, contexts.into_iter().map(|(_, context)| context).collect())
        };
        by_file.into_iter().filter(is_worth_it).map(what).collect()
    }
}

impl OfFile {
    fn read(files: &Files, by: ModuleKey) -> Self {
        Self { waiting: files.notes_with_hooks(by).unwrap_or_default(), met: foldhash::HashSet::default() }
    }

    /// Makes known the kept contexts whose files are all among `by_name`, and drops them from the waiting ones.
    fn know_again(&mut self, by_name: &HashMap<&str, ModuleKey>, contexts: &mut KnownContexts, by: ModuleKey) {
        let WireContexts { files, contexts: waiting } = &mut self.waiting;
        let modules: Vec<Option<ModuleKey>> = files.iter().map(|name| by_name.get(name.as_str()).copied()).collect();
        waiting.retain(|wire| match wire.file_in(&modules).zip(wire.context(&modules)) {
            Some((file, (context, trunk))) => {
                contexts.take_in_kept(file, context, trunk, by);
                false
            }
            None => true,
        });
    }
}

impl WireContexts {
    /// Adds a context, unless one of its files has no name.
    fn add<'a>(&mut self, context: &Context, trunk: Option<&KnownTrunk>, name: impl Fn(ModuleKey) -> Option<&'a str>) {
        let file = |wire: &mut Self, module: Option<ModuleKey>| Some(wire.file(name(module?)?));
        let Some(own) = context.frames.first() else { return };
        let Some(site_file) = file(self, own.module) else { return };
        let step = |wire: &mut Self, step: &KnownStep| {
            let pointer = step.pointer.map(|FramePointer { saved, distance }| WirePointer { saved, distance });
            Some(WireStep { file: file(wire, Some(step.file))?, address: step.address, next: step.next, pointer })
        };
        let Some(steps) = context.steps.iter().map(|s| step(self, s)).collect() else { return };
        let trunk = trunk.and_then(|trunk| WireTrunk::of(trunk, |module| file(self, Some(module))));
        let (site, site_address) = context.site;
        self.contexts.push(WireContext {
            file: site_file,
            site: site as u32,
            site_address,
            number: context.number,
            address: own.address,
            is_return: own.is_return,
            whole: context.whole,
            main: context.main,
            steps,
            trunk,
        });
    }

    /// Adds the contexts of another entry, and only the names of their files: unused names would pile up from run to
    /// run.
    fn add_all(&mut self, other: &Self) {
        let place = |wire: &mut Self, file: u32| Some(wire.file(other.files.get(file as usize)?));
        let step = |wire: &mut Self, step: &WireStep| Some(WireStep { file: place(wire, step.file)?, ..*step });
        for context in &other.contexts {
            let steps = context.steps.iter().map(|s| step(self, s)).collect::<Option<Vec<_>>>();
            let trunk = context.trunk.as_ref().and_then(|trunk| {
                let files = trunk.files.iter().map(|f| place(self, *f)).collect::<Option<_>>()?;
                Some(WireTrunk { files, ..trunk.clone() })
            });
            if let Some((file, steps)) = place(self, context.file).zip(steps) {
                self.contexts.push(WireContext { file, steps, trunk, ..context.clone() });
            }
        }
    }

    /// Returns the index of a file's name, which is added if it is new.
    fn file(&mut self, name: &str) -> u32 {
        let known = self.files.iter().position(|known| known == name);
        let place = known.unwrap_or_else(|| {
            self.files.push(name.to_owned());
            self.files.len() - 1
        });
        place as u32
    }
}

impl WireContext {
    /// Returns the file of the context's site, if it was seen.
    fn file_in(&self, modules: &[Option<ModuleKey>]) -> Option<ModuleKey> {
        modules.get(self.file as usize).copied().flatten()
    }

    /// Returns the context and its trunk, if all files of both were seen.
    fn context(&self, modules: &[Option<ModuleKey>]) -> Option<(Context, Option<KnownTrunk>)> {
        let module = |file: u32| modules.get(file as usize).copied().flatten();
        let own = RawFrame { module: Some(self.file_in(modules)?), address: self.address, is_return: self.is_return };
        let step = |wire: &WireStep| {
            let pointer = wire.pointer.map(|WirePointer { saved, distance }| FramePointer { saved, distance });
            Some(KnownStep { file: module(wire.file)?, address: wire.address, next: wire.next, pointer })
        };
        let steps: Vec<_> = self.steps.iter().map(step).collect::<Option<_>>()?;
        let trunk = match &self.trunk {
            Some(trunk) => Some(trunk.trunk(module)?),
            None => None,
        };
        let callers = steps.iter().map(|s| RawFrame { module: Some(s.file), address: s.address, is_return: true });
        let context = Context {
            site: (self.site as usize, self.site_address),
            number: self.number,
            frames: std::iter::once(own).chain(callers).collect(),
            steps,
            whole: self.whole,
            main: self.main,
        };
        Some((context, trunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inproc::monitor::exec::context_reuse::SiteOfFile;
    use proptest::prelude::*;
    use std::rc::Rc;
    use systoll_hooks::assemble::Step;
    use systoll_symbols::{AddressSpace, Symbols};

    /// Two files that this process has mapped, and their names.
    fn two_files() -> [(ModuleKey, &'static str); 2] {
        let (mut symbols, mut space) = (Symbols::new(), AddressSpace::new());
        space.update(&mut symbols, std::process::id() as i32);
        let mut files = space.files().map(|f| f.module);
        [(files.next().unwrap(), "one"), (files.next().unwrap(), "another")]
    }

    fn name(module: ModuleKey) -> Option<&'static str> {
        two_files().into_iter().find(|(known, _)| *known == module).map(|(_, name)| name)
    }

    fn context() -> Context {
        let [(one, _), (another, _)] = two_files();
        let pointer = Some(FramePointer { saved: Some(0x20), distance: 0x100 });
        let steps = vec![
            KnownStep { file: one, address: 0x1234, next: 0x58, pointer },
            KnownStep { file: another, address: 0x4321, next: 0, pointer: None },
        ];
        let frame = |module, address, is_return| RawFrame { module: Some(module), address, is_return };
        let frames = [frame(one, 0x1000, false), frame(one, 0x1234, true), frame(another, 0x4321, true)];
        Context { site: (7, 0xffe), number: Some(39), steps, frames: Rc::from(frames), whole: true, main: true }
    }

    /// Returns a trunk above the context of [`context`].
    fn trunk() -> KnownTrunk {
        let [(one, _), (another, _)] = two_files();
        let above = |file, address, place| KnownAbove { file, address, place };
        KnownTrunk { from_rbp: true, above: vec![above(another, 0x99, 0x60), above(one, 0x77, 0x80)], complete: true }
    }

    #[test]
    fn a_context_comes_back_as_it_was() {
        let [(one, _), (another, _)] = two_files();
        let mut wire = WireContexts::default();
        wire.add(&context(), Some(&trunk()), name);
        let read = WireContexts::decode(wire.encode_to_vec().as_slice()).unwrap();
        let mut of_file = OfFile { waiting: read, met: foldhash::HashSet::default() };
        let mut contexts = KnownContexts::default();
        // The entry is not decoded while one of its files has not been seen.
        of_file.know_again(&HashMap::from([("one", one)]), &mut contexts, one);
        assert!(contexts.pairs().is_empty() && of_file.waiting.contexts.len() == 1);
        of_file.know_again(&HashMap::from([("one", one), ("another", another)]), &mut contexts, another);
        assert!(of_file.waiting.contexts.is_empty());
        let known = &contexts.pairs()[&(one, another)];
        assert!(known.len() == 1 && known[0].origin == Origin::EarlierRun && *known[0].context == context());
        assert_eq!(known[0].trunk().as_deref(), Some(&trunk()));
        assert!(!known[0].is_seen(), "another run has");
    }

    #[test]
    fn what_one_program_s_entry_has_another_s_may_lack() {
        let [(one, _), (another, _)] = two_files();
        let (mut contexts, kept) = (KnownContexts::default(), KeptContexts::default());
        let written = |contexts: &KnownContexts| -> Vec<ModuleKey> {
            kept.worth_writing(contexts).into_iter().map(|(by, _)| by).collect()
        };
        contexts.take_in_kept(one, context(), None, one);
        assert!(written(&contexts).is_empty());
        // A program with another executable has the same context, with the same frame sizes.
        let Context { site: (site, address), number, steps, frames, whole, main } = context();
        let met = SiteOfFile { file: one, site, address, number, origin: Origin::Native, program: Some(another) };
        let steps: Vec<Step> =
            steps.iter().map(|step| Step { word: 0, next: step.next, pointer: step.pointer }).collect();
        contexts.keep(met, &steps, (&frames, whole), main);
        assert_eq!(written(&contexts), [another]);
        contexts.take_in_kept(one, context(), None, another);
        assert!(written(&contexts).is_empty());
    }

    #[test]
    fn one_with_a_file_that_has_no_name_is_not_kept() {
        let mut wire = WireContexts::default();
        wire.add(&context(), None, |_| None);
        assert!(wire.contexts.is_empty());
    }

    #[test]
    fn entries_are_joined_by_their_files_names() {
        let mut other = WireContexts { files: vec!["another".into(), "one".into()], contexts: Vec::new() };
        other.add(&context(), Some(&trunk()), name);
        let mut wire = WireContexts::default();
        wire.add(&context(), Some(&trunk()), name);
        wire.add_all(&other);
        assert_eq!(wire.files, ["one", "another"]);
        assert_eq!(wire.contexts[0], wire.contexts[1]);
        // The name of a file without contexts is dropped.
        other.files.push("gone".into());
        wire.add_all(&other);
        assert_eq!(wire.files, ["one", "another"]);
    }

    fn any_context() -> impl Strategy<Value = WireContext> {
        let pointer = any::<Option<(Option<u64>, u64)>>()
            .prop_map(|pointer| pointer.map(|(saved, distance)| WirePointer { saved, distance }));
        let step = (0..4u32, any::<u64>(), any::<u64>(), pointer).prop_map(|(file, address, next, pointer)| WireStep {
            file,
            address,
            next,
            pointer,
        });
        let steps = proptest::collection::vec(step, 0..5);
        let columns = (proptest::collection::vec(0..4u32, 0..4), any::<[Vec<u64>; 2]>());
        let trunk = proptest::option::of(columns.prop_map(|(files, [addresses, places])| WireTrunk {
            files,
            addresses,
            places,
            ..WireTrunk::default()
        }));
        (0..4u32, any::<u32>(), any::<[u64; 2]>(), any::<Option<u32>>(), (steps, trunk)).prop_map(
            |(file, site, [site_address, address], number, (steps, trunk))| WireContext {
                file,
                site,
                site_address,
                number,
                address,
                steps,
                trunk,
                ..WireContext::default()
            },
        )
    }

    proptest! {
        #[test]
        fn whatever_was_kept_does_no_harm(contexts in proptest::collection::vec(any_context(), 0..20), bytes: Vec<u8>) {
            let _ = WireContexts::decode(bytes.as_slice());
            let [one, another] = two_files();
            let waiting = WireContexts { files: vec!["one".into(), "another".into(), "third".into()], contexts };
            let mut joined = WireContexts::default();
            joined.add_all(&waiting);
            prop_assert!(joined.contexts.len() <= waiting.contexts.len());
            let has_files = |c: &&WireContext| {
                let of_trunk = c.trunk.iter().flat_map(|t| t.files.iter().zip(&t.addresses).zip(&t.places)).map(|((f, _), _)| f);
                c.file < 2 && c.steps.iter().all(|s| s.file < 2) && of_trunk.into_iter().all(|f| *f < 2)
            };
            let known = waiting.contexts.iter().filter(has_files).count();
            let (mut of_file, mut contexts) = (OfFile { waiting, met: foldhash::HashSet::default() }, KnownContexts::default());
            let before = of_file.waiting.contexts.len();
            of_file.know_again(&[one, another].map(|(module, name)| (name, module)).into(), &mut contexts, one.0);
            prop_assert_eq!(before - of_file.waiting.contexts.len(), known);
        }
    }
}
