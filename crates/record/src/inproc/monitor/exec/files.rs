//! Plans each file of watched programs once, and assembles its code once for each distance.

use crate::inproc::cache::{Cache, Key, Kind};
use crate::inproc::monitor::exec::file_notes::{FileNotes, FixedFrames, Section};
use crate::inproc::monitor::exec::kept_names::{self, AllAsked};
use crate::inproc::monitor::exec::place::{Maker, first_room, place};
use crate::inproc::monitor::exec::plan_ahead::{NewFile, Placed};
use crate::inproc::monitor::exec::read_ahead::Ahead;
use crate::inproc::monitor::shared::code::Code;
use crate::inproc::monitor::shared::memory::{CodeRoom, Runs};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use systoll_hooks::assemble::{Blob, assemble};
use systoll_hooks::plan::{Evidence, Plan, PlanError};
use systoll_symbols::{ModuleKey, Symbols};

/// Entries of [`Symbols::fixed`] kept for one file, at most.
const MOST_FIXED: usize = 4096;

/// Condition of facts that hold with any hooks and any debug files.
const ALWAYS: u64 = 0;

/// A file with its plan.
pub(crate) struct PlannedFile {
    pub(crate) plan: Plan,
    /// Address of the file's region of roots, the same in every image.
    pub(crate) region: u64,
    /// Key of the file in the cache.
    id: Option<Key>,
}

/// The reason why a file can't be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unwatchable {
    /// The file uses the gs segment itself, by this instruction.
    UsesGs(Evidence),
    /// The file decides where all of its memory lies.
    GuardsMemory,
    /// The file can't be watched for the reason in this text.
    Other(String),
}

/// A file in the cache.
struct Cached {
    /// Key of the file in the cache.
    id: Key,
    notes: FileNotes,
    /// Number of results of [`Symbols::fixed`] in the notes.
    fixed: usize,
}

/// All files seen in a run.
pub(crate) struct Files {
    known: foldhash::HashMap<ModuleKey, Result<Option<Rc<PlannedFile>>, Unwatchable>>,
    codes: foldhash::HashMap<(ModuleKey, i64), Rc<Code>>,
    cached: foldhash::HashMap<ModuleKey, Cached>,
    cache: Arc<Cache>,
    maker: Maker,
    ahead: Ahead,
}

impl Files {
    pub(crate) fn new(maker: Maker, cache: Arc<Cache>, ahead: Ahead) -> Self {
        let (known, codes, cached) = Default::default();
        Self { known, codes, cached, cache, maker, ahead }
    }

    /// Returns the planned file; `None` if it has nothing to hook.
    ///
    /// # Errors
    /// If the file can't be watched.
    pub(crate) fn known(
        &mut self,
        symbols: &mut Symbols,
        key: ModuleKey,
    ) -> Result<Option<Rc<PlannedFile>>, Unwatchable> {
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let known = self.look_up(symbols, key);
        self.known.insert(key, known.clone());
        known
    }

    fn look_up(&mut self, symbols: &mut Symbols, key: ModuleKey) -> Result<Option<Rc<PlannedFile>>, Unwatchable> {
        let (id, placed) = self.placed(symbols, key);
        let Placed { plan, region } = placed?;
        if let Some(id) = &id {
            let notes = self.ahead.notes.share(id, || Some(FileNotes::read(&self.cache, id))).unwrap_or_default();
            if symbols.name_counts(key).kept == 0
                && let Some(answers) = kept_names::answers(&notes, symbols.debug_file_state(key))
            {
                symbols.know_names(key, answers);
            }
            let fixed = notes.get::<FixedFrames>(ALWAYS).unwrap_or_default().results();
            self.cached.insert(key, Cached { id: id.clone(), notes, fixed: fixed.len() });
            symbols.know_fixed(key, fixed);
        }
        if plan.has_shadow_memory {
            return Err(Unwatchable::GuardsMemory);
        }
        if let Some(evidence) = plan.uses_gs {
            return Err(Unwatchable::UsesGs(evidence));
        }
        if plan.sites.is_empty() && !plan.unplanned.is_empty() {
            return Err(Unwatchable::Other("they are made by int $0x80, as 32-bit programs make them".into()));
        }
        if plan.sites.is_empty() && plan.entries.is_empty() && plan.unwinder.is_none() {
            return Ok(None);
        }
        let region = region.or_else(|| self.ahead.regions.give(&plan));
        let region = region.ok_or_else(|| Unwatchable::Other("no room for more files".into()))?;
        Ok(Some(Rc::new(PlannedFile { plan, region, id })))
    }

    /// Returns the file's key in the cache, and its plan.
    fn placed(&self, symbols: &Symbols, key: ModuleKey) -> (Option<Key>, Result<Placed, Unwatchable>) {
        let (state, build_id) = (symbols.state(key), symbols.build_id(key));
        let unplanned = |why: PlanError| Unwatchable::Other(why.to_string());
        let unread = self.cache.unread(state.as_ref(), build_id);
        if let Some(NewFile { id, placed }) = unread.and_then(|unread| self.ahead.new.take(&unread, || None)) {
            return (Some(id), placed.map_err(unplanned));
        }
        // Read the file once, if its key or its plan is new.
        let content = || {
            if let Some(program) = symbols.path(key).filter(|_| symbols.is_dynamic_program(key)) {
                self.ahead.plan_for(Path::new(&*program));
            }
            symbols.bytes(key)
        };
        let (id, content) = self.cache.key_and_content(state.as_ref(), build_id, content);
        let read = |id: &Key| Some(Placed { plan: self.cache.kept_plan(id)?, region: None });
        let kept = id.as_ref().and_then(|id| self.ahead.plans.take(id, || read(id)));
        let new = || {
            let bytes = content.or_else(|| symbols.bytes(key));
            let bytes = bytes.ok_or_else(|| Unwatchable::Other("it can't be read".into()))?;
            let plan = self.cache.new_plan(id.as_ref(), &bytes).map_err(unplanned)?;
            Ok(Placed { plan, region: None })
        };
        let placed = kept.map_or_else(new, Ok);
        (id, placed)
    }

    /// Tells the thread that reads ahead how many records of roots precede those of the next file to be hooked.
    pub(crate) fn expect_roots(&self, first: u64) {
        // Only the number of the first program is of use; later ones are not stored.
        let _ = self.ahead.first_roots.set(first);
    }

    /// Returns true if the clock is read around some of the calls only.
    pub(crate) fn samples_time(&self) -> bool {
        self.maker.options.sampled
    }

    /// Returns the initial contents of every image.
    pub(crate) fn blank(&self) -> &Runs {
        self.ahead.blank()
    }

    /// Keeps the facts that this run has found out about files, for later runs.
    pub(crate) fn keep_notes(&mut self, symbols: &Symbols) {
        for (key, Cached { id, notes, fixed: kept }) in &mut self.cached {
            let fixed = symbols.fixed(*key).take(MOST_FIXED);
            if fixed.len() > *kept {
                notes.set(ALWAYS, &FixedFrames::of(fixed));
            }
            if kept_names::is_worth_keeping(symbols.name_counts(*key)) {
                let asked = AllAsked {
                    names: symbols.asked_names(*key),
                    lines: symbols.asked_lines(*key),
                    frames: symbols.asked_frames(*key),
                };
                kept_names::keep(notes, symbols.debug_file_state(*key), &asked);
            }
            notes.write(&self.cache, id);
        }
    }

    /// Returns a file's key in the cache, once the file has been read.
    pub(crate) fn name(&self, key: ModuleKey) -> Option<&str> {
        self.cached.get(&key).map(|cached| cached.id.as_str())
    }

    /// Returns the facts about a file that earlier runs found out with the same hooks.
    pub(crate) fn notes_with_hooks<S: Section>(&self, key: ModuleKey) -> Option<S> {
        self.cached.get(&key)?.notes.get(u64::from(self.maker.options.bits()))
    }

    /// Notes facts about a file that hold with these hooks, until [`Files::keep_notes`] keeps them.
    pub(crate) fn note_with_hooks<S: Section>(&mut self, key: ModuleKey, facts: &S) {
        if let Some(cached) = self.cached.get_mut(&key) {
            cached.notes.set(u64::from(self.maker.options.bits()), facts);
        }
    }

    /// Returns true if the file's state alone identifies its contents.
    pub(crate) fn is_known_by_state(&self, symbols: &Symbols, key: ModuleKey) -> bool {
        self.cache.unread(symbols.state(key).as_ref(), symbols.build_id(key)).is_some()
    }

    /// Returns the file's code at a distance where there is room for it, and the code's address, in a process that has
    /// the file at `bias`.
    ///
    /// # Errors
    /// A text, if there is no room or no code.
    pub(crate) fn code(
        &mut self,
        room_for: &CodeRoom,
        key: ModuleKey,
        known: &PlannedFile,
        bias: u64,
        is_free: &dyn Fn(&Range<u64>) -> bool,
    ) -> Result<(Rc<Code>, u64), String> {
        let mut room = first_room(&known.plan);
        loop {
            let Some(at) = place(&known.plan, bias, room, is_free) else { return Err("no room near it".into()) };
            let code = self.stored(room_for, key, known, at.wrapping_sub(bias) as i64)?;
            if code.size() <= room {
                return Ok((code, at));
            }
            room = code.size() + 4096;
        }
    }

    /// Returns the file's code, made for a place `delta` bytes from the file's bias. Stores the code in the shared
    /// memory if it is new.
    fn stored(&mut self, room: &CodeRoom, key: ModuleKey, known: &PlannedFile, delta: i64) -> Result<Rc<Code>, String> {
        if let Some(code) = self.codes.get(&(key, delta)) {
            return Ok(Rc::clone(code));
        }
        let id = known.id.as_ref().map(|id| self.maker.key(id, delta));
        let ahead = id.as_ref().and_then(|id| self.ahead.codes.take(id, || None));
        let ahead = ahead.filter(|code| code.blob.delta == delta && code.region == known.region);
        let kept = || {
            let entry = self.maker.kept(&self.cache, id.as_ref()?)?;
            Code::kept(entry, delta, &known.plan, known.region, room)
        };
        let code = match ahead.or_else(kept) {
            Some(code) => code,
            None => Code::store(self.assembled(known, id.as_ref(), delta)?, &known.plan, known.region, room)?,
        };
        let code = Rc::new(code);
        self.codes.insert((key, delta), Rc::clone(&code));
        Ok(code)
    }

    /// Assembles the code, and keeps it for later runs.
    fn assembled(&self, known: &PlannedFile, id: Option<&Key>, delta: i64) -> Result<Blob, String> {
        let blob = assemble(&known.plan, &self.maker.options, delta).map_err(|e| e.to_string())?;
        if let Some(id) = id {
            self.cache.put(Kind::Code, id, &blob.to_bytes());
        }
        Ok(blob)
    }
}
