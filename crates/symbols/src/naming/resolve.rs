//! Turns frames into functions, inlined functions and source lines.

use crate::code::Callee;
use crate::lines::ScriptLine;
use crate::lines::dwarf::{self, LineLookup};
use crate::module::{Module, is_libc};
use crate::names::demangle;
use crate::symbols::CallSite;
use crate::{ModuleKey, RawFrame, Symbols};
use foldhash::{HashMap, HashMapExt};
use std::collections::BTreeSet;
use std::sync::Arc;
use systoll_model as model;
use systoll_model::{FrameClass, Location, ModuleId, Problem, ProblemKind};

/// Choice of frames that get lines and inlined functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Every frame.
    All,
    /// Frames outside the C library's own file. The debug file of the C library can take tens of milliseconds to
    /// decompress, for lines that no report shows; the names of its functions are in symbol tables.
    OutsideLibc,
}

/// Starts of functions, by module.
type Starts = BTreeSet<(ModuleKey, u64)>;

/// Named frames, with their files.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// Files of the frames.
    pub modules: Vec<model::Module>,
    /// The frames, in the order of the request; their modules are indices into `modules`.
    pub frames: Vec<model::Frame>,
    /// Indices into `modules` by key, also for modules that [`Symbols::api`] returns.
    pub module_ids: HashMap<ModuleKey, ModuleId>,
    /// Problems of naming, one for each file or reason.
    pub problems: Vec<Problem>,
}

impl Symbols {
    /// Names `frames`, and lists every module ever loaded, so that [`Resolved::module_ids`] can translate any
    /// [`ModuleKey`].
    pub fn resolve(&mut self, frames: &[RawFrame]) -> Resolved {
        self.resolve_lines(frames, Lines::All)
    }

    /// Does the same as [`Symbols::resolve`], with lines and inlined functions of the frames that `lines` selects.
    pub fn resolve_lines(&mut self, frames: &[RawFrame], lines: Lines) -> Resolved {
        let mut resolved = Resolved::default();
        for (key, module) in self.modules() {
            resolved.module_ids.insert(key, ModuleId(key.0));
            let build_id = module.elf.build_id.as_deref().map(Arc::from);
            resolved.modules.push(model::Module { path: Arc::clone(&module.path), build_id });
        }
        self.read_lines(frames, lines);
        let sites: Vec<Option<CallSite>> = frames.iter().map(|frame| self.call_site(*frame)).collect();
        let starts = called(&sites);
        resolved.frames = frames.iter().zip(&sites).map(|(f, site)| self.frame(*f, site.as_ref(), &starts)).collect();
        resolved.problems = self.problems().to_vec();
        resolved.problems.extend(self.nameless(&resolved.frames));
        resolved
    }

    fn frame(&mut self, raw: RawFrame, site: Option<&CallSite>, starts: &Starts) -> model::Frame {
        if let Some((line, class)) = self.scripts.lines.get(raw) {
            // The line that runs stands beside the source's, as a function stands around one that is inlined.
            let lines = std::iter::once(line).chain(self.scripts.lines.running(raw));
            let location =
                |l: &ScriptLine| Location { function: Arc::clone(&l.function), file: l.file.clone(), line: l.line };
            return model::Frame {
                module: None,
                address: raw.address,
                class: *class,
                locations: lines.map(location).collect(),
                callee: None,
                language: Some(line.language),
            };
        }
        let is_interpreter = self.is_interpreter(raw);
        let mut class = if is_interpreter { FrameClass::Runtime } else { self.class(raw) };
        let Some((key, module)) = raw.module.and_then(|key| Some((key, self.module(key)?))) else {
            let function = format!("{:#x}", raw.address).into();
            let locations = vec![Location { function, ..Location::default() }];
            return model::Frame {
                module: None,
                address: raw.lookup(),
                class,
                locations,
                callee: None,
                language: None,
            };
        };
        let address = site.map_or(raw.lookup(), |site| site.at);
        let mut locations: Vec<Location> =
            self.locations.get(&(key, raw.lookup())).map_or_else(Vec::new, |l| l.to_vec());
        let function = function_name((key, module), raw, locations.last(), starts);
        match locations.last_mut() {
            Some(outermost) => outermost.function = function,
            None => locations.push(Location { function, ..Location::default() }),
        }
        // The frame gets the line of the user's code, not that of library code inlined into it. If the user's code, a
        // callback's, is inlined into a library's function, it gets the callback's line.
        let theirs = locations.iter().take_while(|l| module.is_runtimes(l)).count();
        // A package from a registry that is inlined into the program's own function is library code to it.
        let own = locations.iter().position(|l| !module.is_runtimes(l) && !is_from_registry(l));
        let theirs = own.map_or(theirs, |own| own.max(theirs));
        let inlined = locations.len().saturating_sub(1);
        let library = theirs.min(inlined).checked_sub(1).and_then(|last| locations.get(last));
        let library = library.filter(|_| raw.is_return).map(|place| Arc::clone(&place.function));
        let of_users = class == FrameClass::Runtime && theirs < inlined && !is_interpreter;
        if class == FrameClass::User || of_users {
            locations.drain(..theirs.min(inlined));
            class = FrameClass::User;
        }
        let inlined = library.filter(|name| class == FrameClass::User && !name.is_empty());
        let callee = inlined.or_else(|| site.and_then(|site| self.callee_name(site.module, site.callee.as_ref()?)));
        model::Frame { module: Some(ModuleId(key.0)), address, class, locations, callee, language: None }
    }

    fn callee_name(&self, key: ModuleKey, callee: &Callee) -> Option<Arc<str>> {
        let name = match callee {
            Callee::Symbol(name) => self.public_name(name),
            Callee::Local(addr) => self.module(key)?.names().exactly(*addr)?.to_string(),
        };
        Some(demangle(&name).into())
    }

    /// Looks up lines and inlined functions of the `frames` that were not looked up before.
    fn read_lines(&mut self, frames: &[RawFrame], lines: Lines) {
        let mut wanted: HashMap<ModuleKey, Vec<u64>> = HashMap::new();
        for frame in frames {
            if let Some(key) = frame.module
                && (lines == Lines::All || !self.module(key).is_some_and(|m| m.whole_class().is_some_and(is_libc)))
                && !self.locations.contains_key(&(key, frame.lookup()))
                && self.module(key).is_some_and(|m| m.elf.is_code(frame.lookup()))
            {
                wanted.entry(key).or_default().push(frame.lookup());
            }
        }
        for (key, mut addrs) in wanted {
            addrs.sort_unstable();
            addrs.dedup();
            let Some(module) = self.module(key) else { continue };
            let mut found: Vec<(u64, Arc<[Location]>)> = Vec::new();
            addrs.retain(|addr| {
                let kept = module.kept_lines(*addr).map(|lines| found.push((*addr, lines)));
                kept.is_none()
            });
            let mut ahead = self.lines_ahead.take(key, &addrs);
            let mut looked: Vec<(u64, LineLookup)> = addrs.iter().filter_map(|a| ahead.remove_entry(a)).collect();
            addrs.retain(|addr| looked.binary_search_by_key(addr, |(at, _)| *at).is_err());
            let Some(module) = self.module(key) else { continue };
            // If all lines are known, the debug information is not read.
            let read = if addrs.is_empty() { Ok(Vec::new()) } else { dwarf::look_up(module, &addrs) };
            let (read, failed) = read.map_or_else(|why| (Vec::new(), Some(why)), |read| (read, None));
            looked.extend(addrs.into_iter().zip(read));
            let is_split = looked.iter().any(|(_, looked)| looked.is_split);
            for (addr, LineLookup { locations, is_lasting, .. }) in looked {
                let lines = Arc::<[Location]>::from(locations);
                if is_lasting {
                    module.note_lines(addr, Arc::clone(&lines));
                }
                found.push((addr, lines));
            }
            let path = Arc::clone(&module.path);
            self.locations.extend(found.into_iter().map(|(addr, lines)| ((key, addr), lines)));
            if is_split {
                self.complain(format!("{path}: no inlined functions: they are described in .dwo files"));
            }
            if let Some(why) = failed {
                self.complain(format!("{path}: no source lines: {why}"));
            }
        }
    }

    /// Returns one problem for each file whose user's frames have no names.
    fn nameless(&self, frames: &[model::Frame]) -> Vec<Problem> {
        let mut files: Vec<_> = frames
            .iter()
            .filter(|f| f.class == FrameClass::User && f.function().contains("+0x"))
            .filter_map(|f| self.module(ModuleKey(f.module?.0)))
            .filter(|m| m.names().is_empty())
            .map(|m| Arc::clone(&m.path))
            .collect();
        files.sort();
        files.dedup();
        let text =
            |path| format!("{path}: stripped: its functions are shown by address; its debug symbols would name them");
        files.into_iter().map(|path| Problem::new(ProblemKind::Name, text(path))).collect()
    }
}

/// Returns true if a source location is in a Rust package from a registry.
fn is_from_registry(location: &Location) -> bool {
    location.file.as_deref().is_some_and(|file| file.contains("/registry/src/"))
}

/// Returns the starts of the functions that are called. Nothing else tells the start of a function that has neither a
/// symbol nor call frame information.
fn called(sites: &[Option<CallSite>]) -> Starts {
    let start = |site: &CallSite| match site.callee.as_ref()? {
        Callee::Local(to) => Some((site.module, *to)),
        Callee::Symbol(_) => None,
    };
    sites.iter().flatten().filter_map(start).collect()
}

/// Returns the function's name: by its symbol, else by DWARF, else by its start.
fn function_name(
    (key, module): (ModuleKey, &Module),
    raw: RawFrame,
    dwarf: Option<&Location>,
    starts: &Starts,
) -> Arc<str> {
    let addr = raw.lookup();
    let told = dwarf.map(|l| &l.function).filter(|n| !n.is_empty());
    // The names from Go's own table are the same whether the program is stripped or not.
    if let Some(name) = told.filter(|_| module.tells_go()) {
        return Arc::clone(name);
    }
    if let Some(symbol) = module.symbol(addr) {
        return demangle(&symbol.name).into();
    }
    // A function that a signal handler returns to is not entered by a call: its return address is its start.
    if raw.is_return
        && let Some(name) = module.names().exactly(raw.address)
    {
        return demangle(&name).into();
    }
    if let Some(name) = told {
        return Arc::clone(name);
    }
    let called = || starts.range((key, 0)..=(key, addr)).next_back().map(|(_, start)| *start);
    let start = match module.range(addr) {
        Some(range) => range.start,
        None => called().filter(|start| module.reaches(*start, addr)).unwrap_or(addr),
    };
    format!("{}+{start:#x}", module.file_name()).into()
}
