//! The executable mappings of one address space.

use crate::mapped::{MapsEntry, maps};
use crate::script::{FileAt, Interpreters, ReadMemory, Stopped, Thread, has_map};
use crate::unwind::Switches;
use crate::{ModuleKey, PlacedFrame, RawFrame, Symbols};
use std::ops::Range;
use std::sync::Arc;

/// An executable mapping, with the file behind it.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    start: u64,
    end: u64,
    /// Address in memory minus ELF virtual address.
    bias: u64,
    module: Option<ModuleKey>,
}

/// A file that is mapped executable, with its place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedFile {
    /// First address of the mapping.
    pub start: u64,
    /// End of the mapping, one past its last address.
    pub end: u64,
    /// Address in memory minus ELF virtual address.
    pub bias: u64,
    /// Key of the file.
    pub module: ModuleKey,
}

/// The executable mappings of one address space. Clone it for a fork.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// The mappings when the kernel last listed them; shared between forks.
    mapped: Arc<Vec<MapsEntry>>,
    /// The mappings with their files, sorted by address.
    mappings: Arc<Vec<Mapping>>,
    interpreters: Interpreters,
    /// True if a mapped file compiles scripts at run time.
    compiles: bool,
    /// True if a mapped file holds an interpreter whose frames can be read from its start on.
    reads_scripts: bool,
    /// True if the program ran before it was watched, so that its interpreter has started.
    runs_already: bool,
    /// True if the last walk ended at a return address outside all executable mappings that are known.
    pub(super) ended_outside: bool,
    /// The callers of `swapcontext` that unwinding has found.
    pub(super) switches: Switches,
}

impl AddressSpace {
    /// Returns an address space without mappings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an address space, without mappings yet, of a program that ran before it was watched.
    pub fn of_running() -> Self {
        Self { runs_already: true, ..Self::default() }
    }

    /// Reads `/proc/PID/maps` again and loads new files while they are mapped. Takes little time if nothing changed. If
    /// the process is gone, its last mappings stay.
    pub fn update(&mut self, symbols: &mut Symbols, pid: i32) {
        if let Some(mapped) = maps::executable(pid) {
            self.take(symbols, pid, mapped);
        }
    }

    /// Does the same as [`AddressSpace::update`] with the text of `/proc/PID/maps`, read just now.
    pub fn update_by(&mut self, symbols: &mut Symbols, pid: i32, maps: &[u8]) {
        if let Some(mapped) = maps::executable_in(maps) {
            self.take(symbols, pid, mapped);
        }
    }

    /// Adds a new mapping, given by its line of `/proc/PID/maps`, in place of any mapping that was there. Returns
    /// `None` and changes nothing if it is not a readable file.
    pub fn add_by(&mut self, symbols: &mut Symbols, pid: i32, line: &[u8]) -> Option<MappedFile> {
        let [new] = <[MapsEntry; 1]>::try_from(maps::executable_in(line)?).ok()?;
        let apart = |m: &MapsEntry| m.end <= new.start || new.end <= m.start;
        if !self.mapped.iter().all(|m| apart(m) || new.start <= m.start && m.end <= new.end) {
            return None;
        }
        let mapping = load(symbols, pid, &new);
        let file = MappedFile { start: mapping.start, end: mapping.end, bias: mapping.bias, module: mapping.module? };
        // Mappings are sorted by address, so the replaced ones are adjacent.
        let before = self.mapped.partition_point(|m| m.end <= new.start);
        let replaced = before..self.mapped.partition_point(|m| m.start < new.end).max(before);
        Arc::make_mut(&mut self.mappings).splice(replaced.clone(), [mapping]);
        Arc::make_mut(&mut self.mapped).splice(replaced, [new]);
        self.compiles |= symbols.compiles(file.module);
        self.reads_scripts |= self.reads_scripts_of(symbols, file.module);
        Some(file)
    }

    /// Returns true if a mapping, given by its line of `/proc/PID/maps`, is known already.
    pub fn knows(&self, line: &[u8]) -> bool {
        let entry = maps::executable_in(line).and_then(|entries| <[MapsEntry; 1]>::try_from(entries).ok());
        entry.is_some_and(|[entry]| self.mapped.iter().any(|m| m.is_same(&entry)))
    }

    /// Returns the mapping that `address` lies in, with its file.
    pub fn file_at(&self, address: u64) -> Option<MappedFile> {
        let m = self.mapping(address)?;
        Some(MappedFile { start: m.start, end: m.end, bias: m.bias, module: m.module? })
    }

    fn take(&mut self, symbols: &mut Symbols, pid: i32, mapped: Vec<MapsEntry>) {
        if mapped == *self.mapped {
            return;
        }
        // A file that was deleted meanwhile is still the same file.
        let known = |m: &MapsEntry| {
            let i = self.mapped.iter().position(|k| k.is_same(m))?;
            self.mappings.get(i).copied()
        };
        let mappings = mapped.iter().map(|m| known(m).unwrap_or_else(|| load(symbols, pid, m))).collect();
        (self.mapped, self.mappings) = (Arc::new(mapped), Arc::new(mappings));
        let compiles = self.files().any(|f| symbols.compiles(f.module));
        let reads_scripts = self.files().any(|f| self.reads_scripts_of(symbols, f.module));
        (self.compiles, self.reads_scripts) = (compiles, reads_scripts);
    }

    /// Returns true if a file's scripts may be in what is watched from the first call on.
    fn reads_scripts_of(&self, symbols: &Symbols, file: ModuleKey) -> bool {
        symbols.interprets_at_once(file) || self.runs_already && symbols.interprets(file)
    }

    /// Returns true if the last stack that was unwound ended at a return address outside all executable mappings: code may
    /// have been mapped since the last update.
    pub fn ended_outside(&self) -> bool {
        self.ended_outside
    }

    /// Returns true if `address` lay in an executable mapping at the last update.
    pub fn maps_executable(&self, address: u64) -> bool {
        self.mapping(address).is_some()
    }

    /// Returns true if any address of `range` lay in an executable mapping at the last update.
    pub fn maps_executable_in(&self, range: Range<u64>) -> bool {
        let before_its_end = self.mappings.partition_point(|m| m.start < range.end);
        let last = before_its_end.checked_sub(1).and_then(|at| self.mappings.get(at));
        last.is_some_and(|m| m.end > range.start)
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|m| m.start <= address);
        self.mappings.get(after.checked_sub(1)?).filter(|m| address < m.end)
    }

    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn map_for_test(&mut self, module: ModuleKey, mapped: &MapsEntry, bias: u64) {
        let mapping = Mapping { start: mapped.start, end: mapped.end, bias, module: Some(module) };
        self.mappings = Arc::new(vec![mapping]);
    }

    /// Returns every executable mapping of a readable file, by address, as of the last update.
    pub fn files(&self) -> impl Iterator<Item = MappedFile> + '_ {
        let file = |m: &Mapping| Some(MappedFile { start: m.start, end: m.end, bias: m.bias, module: m.module? });
        self.mappings.iter().filter_map(file)
    }

    /// Returns the frame for `address` in memory, a return address if `is_return`.
    pub fn frame(&self, address: u64, is_return: bool) -> RawFrame {
        let less = u64::from(is_return);
        let (module, at) = self.locate(address.wrapping_sub(less));
        RawFrame { module, address: at.wrapping_add(less), is_return }
    }

    /// Returns the file in which `address` lies, and its ELF virtual address there.
    pub(super) fn locate(&self, address: u64) -> (Option<ModuleKey>, u64) {
        match self.mapping(address) {
            Some(Mapping { module: Some(key), bias, .. }) => (Some(*key), address.wrapping_sub(*bias)),
            _ => (None, address),
        }
    }

    /// Returns true if lines of scripts can be read, or have been.
    pub fn runs_scripts(&self) -> bool {
        self.reads_scripts || self.interpreters.any()
    }

    /// Returns true if a stack may have a script's line or function: lines can be read, or a mapped file compiles
    /// scripts and may write their names to a map as the program runs.
    pub fn may_run_scripts(&self) -> bool {
        self.compiles || self.runs_scripts()
    }

    /// Returns true if a known mapped file runs scripts.
    pub fn holds_interpreter(&self, symbols: &Symbols) -> bool {
        self.compiles || self.files().any(|f| symbols.interprets(f.module))
    }

    /// Returns true if the stack of `tid` can have names beyond those of frames in files. Returns false for an
    /// address space that compiles scripts while it has no map of them.
    pub fn has_names_on_stack(&self, tid: i32) -> bool {
        !self.compiles || self.runs_scripts() || has_map(tid)
    }

    /// Returns the frames of a waiting thread, as just unwound, with the lines of scripts between them.
    pub fn with_scripts(
        &mut self,
        symbols: &mut Symbols,
        placed: &[PlacedFrame],
        thread: Thread,
        read: &mut ReadMemory<'_>,
    ) -> Vec<RawFrame> {
        let file = |m: &Mapping| Some(FileAt { module: m.module?, bias: m.bias });
        let files = self.mappings.iter().filter_map(file);
        self.interpreters.with_scripts(symbols, files, placed, Stopped { thread, read })
    }
}

fn load(symbols: &mut Symbols, pid: i32, mapped: &MapsEntry) -> Mapping {
    let module = symbols.load(pid, mapped);
    let bias = module.and_then(|key| symbols.bias(key, mapped));
    Mapping { start: mapped.start, end: mapped.end, bias: bias.unwrap_or(0), module: module.filter(|_| bias.is_some()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_mapping_replaces_those_it_overlaps() {
        let pid = std::process::id() as i32;
        let text = std::fs::read_to_string("/proc/self/maps").unwrap();
        let here = a_new_mapping_replaces_those_it_overlaps as *const () as u64;
        let (mut symbols, mut space) = (Symbols::new(), AddressSpace::new());
        let holds = |m: &MapsEntry| m.start <= here && here < m.end;
        let own = maps::executable(pid).unwrap().into_iter().find(holds).unwrap();
        let line = text.lines().find(|l| l.starts_with(&format!("{:x}-", own.start))).unwrap();
        let file = space.add_by(&mut symbols, pid, line.as_bytes()).expect("our own program");
        assert_eq!((file.start, file.end), (own.start, own.end));
        space.update(&mut symbols, pid);
        assert_eq!(space.files().find(|f| f.start == own.start), Some(file));
        let before = space.files().count();
        assert_eq!(space.add_by(&mut symbols, pid, line.as_bytes()), Some(file));
        assert_eq!(space.files().count(), before);
        // The lines describe a mapping within another one, and one without a file.
        let [half, no_file] = [own.start + 4096, own.end].map(|end| format!("{:x}-{end:x} r-xp 0 0:0 0", own.start));
        assert_eq!(space.add_by(&mut symbols, pid, half.as_bytes()), None);
        assert_eq!(space.add_by(&mut symbols, pid, no_file.as_bytes()), None);
        assert_eq!(space.files().count(), before);
    }

    #[test]
    fn ignored_files_are_not_loaded() {
        let pid = std::process::id() as i32;
        let exe = std::fs::metadata("/proc/self/exe").unwrap();
        let (mut symbols, mut space) = (Symbols::new(), AddressSpace::new());
        symbols.ignore(&exe);
        space.update(&mut symbols, pid);
        let here = ignored_files_are_not_loaded as *const () as u64;
        assert!(space.files().all(|f| !(f.start..f.end).contains(&here)));
        assert!(space.files().count() > 0 && space.maps_executable(here));
        // The first segment of a library is not code, but unmapping the whole library unmaps its code too.
        let around = [here - (64 << 20)..here, here..here + 1, 0..4096];
        assert_eq!(around.map(|range| space.maps_executable_in(range)), [true, true, false]);
    }
}
