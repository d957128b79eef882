//! Names functions, files and programs in a way that is the same in every build.
//!
//! Invariant: no address, compiler's hash or library's version decides whether two rows match.

use std::collections::HashMap;
use std::sync::Arc;
use systoll_model::{Frame, ModuleId, ProcessId, Recording};

/// Suffixes that compilers add to copies of a function.
const COPIES: [&str; 7] = [".constprop", ".isra", ".part", ".cold", ".lto_priv", ".llvm", ".localalias"];
/// Least number of hexadecimal digits of a word in brackets that is a crate's hash, not an index.
const HASH_DIGITS: usize = 8;
/// Name of a function that has none, in a file whose builds differ.
const UNNAMED: &str = "(no name)";

/// Maps names to those that are compared.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// By the new side's name of a program that was run, the old side's name, if the two differ.
    aliases: HashMap<Arc<str>, Arc<str>>,
    /// The build of each file. If all recordings have the same build, an address means the same in
    /// all.
    builds: HashMap<Arc<str>, Build>,
}

#[derive(Debug, PartialEq)]
enum Build {
    One(Arc<str>),
    Several,
}

impl Names {
    /// Makes the names of two sides. The program that was run counts as one program on both sides,
    /// whatever its name.
    pub(crate) fn of(old: &[Recording], new: &[Recording]) -> Self {
        let mut names = Self::default();
        if let (Some(a), Some(b)) = (old.first(), new.first()) {
            let (a, b) = (chain(a), chain(b));
            if a.len() == b.len() {
                names.aliases = b.into_iter().zip(a).filter(|(b, a)| b != a).collect();
            }
        }
        for module in old.iter().chain(new).flat_map(|r| &r.modules) {
            let name = names.library(module.file_name());
            let build = module.build_id.clone().map_or(Build::Several, Build::One);
            match names.builds.get_mut(&name) {
                Some(known) if *known == build => {}
                Some(known) => *known = Build::Several,
                None => _ = names.builds.insert(name, build),
            }
        }
        names
    }

    /// Returns a file's name without a version: `libc.so` for `libc.so.6`.
    pub(crate) fn library(&self, file_name: &str) -> Arc<str> {
        if let Some(alias) = self.aliases.get(file_name) {
            return alias.clone();
        }
        match file_name.find(".so.") {
            Some(at) if file_name[at + 4..].chars().all(|c| c.is_ascii_digit() || c == '.') => {
                file_name[..at + 3].into()
            }
            _ => file_name.into(),
        }
    }

    /// Returns the name of the file `id`.
    pub(crate) fn module(&self, recording: &Recording, id: ModuleId) -> Option<Arc<str>> {
        recording.modules.get(id.0 as usize).map(|m| self.library(m.file_name()))
    }

    /// Returns the name of the program that the image `id` runs.
    pub(crate) fn program(&self, recording: &Recording, id: ProcessId) -> Option<Arc<str>> {
        let name = recording.processes.get(id.0 as usize)?.name();
        Some(self.aliases.get(name).cloned().unwrap_or_else(|| name.into()))
    }

    /// Returns the name of a frame's function. `name` is the name of the frame's innermost or
    /// outermost location.
    pub(crate) fn function(&self, recording: &Recording, frame: &Frame, name: &Arc<str>) -> Arc<str> {
        let Some((_, address)) =
            name.rsplit_once("+0x").or_else(|| name.split_once("0x").filter(|(p, _)| p.is_empty()))
        else {
            return plain(name);
        };
        if !address.chars().all(|c| c.is_ascii_hexdigit()) {
            return plain(name);
        }
        let module = frame.module.and_then(|id| self.module(recording, id));
        let same = module.is_some_and(|m| matches!(self.builds.get(&m), Some(Build::One(_))));
        if same { name.clone() } else { UNNAMED.into() }
    }
}

/// Returns the programs that the first process ran, in order.
fn chain(recording: &Recording) -> Vec<Arc<str>> {
    let Some(pid) = recording.processes.first().map(|p| p.pid) else { return Vec::new() };
    let mut chain: Vec<Arc<str>> = Vec::new();
    for process in recording.processes.iter().filter(|p| p.pid == pid) {
        if chain.last().is_none_or(|last| **last != *process.name()) {
            chain.push(process.name().into());
        }
    }
    chain
}

/// Returns a function's name without the suffixes that compilers add.
pub(crate) fn plain(name: &Arc<str>) -> Arc<str> {
    let mut rest: &str = name;
    while let Some(at) = rest.rfind(|c: char| c != '.' && !c.is_ascii_digit()) {
        let stem = &rest[..at + rest[at..].chars().next().map_or(1, char::len_utf8)];
        let Some(shorter) = COPIES.iter().find_map(|copy| stem.strip_suffix(copy)).filter(|s| !s.is_empty()) else {
            break;
        };
        rest = shorter;
    }
    if let Some((shorter, hash)) = rest.rsplit_once("::h")
        && hash.len() == 16
        && hash.chars().all(|c| c.is_ascii_hexdigit())
    {
        rest = shorter;
    }
    let unhashed = without_crate_hashes(rest);
    match unhashed {
        Some(text) => text.into(),
        None if rest.len() == name.len() => name.clone(),
        None => rest.into(),
    }
}

/// Returns `core::fmt` for `core[8cc3e4]::fmt`, or `None` if there is no hash.
fn without_crate_hashes(name: &str) -> Option<String> {
    let is_hash = |word: &str| word.len() >= HASH_DIGITS && word.chars().all(|c| c.is_ascii_hexdigit());
    let mut out = String::new();
    let mut rest = name;
    let mut found = false;
    while let Some((before, after)) = rest.split_once('[') {
        out.push_str(before);
        match after.split_once(']') {
            Some((word, after)) if is_hash(word) => {
                found = true;
                rest = after;
            }
            _ => {
                out.push('[');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    found.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{Module, Process};

    #[test]
    fn compiler_suffixes_are_not_part_of_a_name() {
        for (name, is) in [
            ("read_config.constprop.0", "read_config"),
            ("read_config.isra.0.part.12.cold", "read_config"),
            ("_ZN3app4main17h", "_ZN3app4main17h"),
            ("app::look::h0123456789abcdef", "app::look"),
            ("core[8cc3e4a0b1]::fmt::write", "core::fmt::write"),
            ("a[0]", "a[0]"),
            ("main.part", "main"),
            (".cold", ".cold"),
            ("main.main.func1", "main.main.func1"),
            ("größe.part.1", "größe"),
            ("", ""),
        ] {
            assert_eq!(&*plain(&name.into()), is, "{name}");
        }
    }

    fn recording(program: &str, build: &str) -> Recording {
        let mut recording = Recording::default();
        recording.processes.push(Process { exe: program.into(), pid: 7, ..Process::default() });
        recording.modules.push(Module { path: program.into(), build_id: Some(build.into()) });
        recording
    }

    #[test]
    fn an_address_is_a_name_only_within_one_build() {
        let frame = Frame { module: Some(ModuleId(0)), ..Frame::default() };
        let name: Arc<str> = "app+0x1234".into();
        let (a, b) = (recording("/bin/app", "1"), recording("/bin/app", "2"));
        let of = |a: &Recording, b: &Recording| {
            Names::of(std::slice::from_ref(a), std::slice::from_ref(b)).function(a, &frame, &name).to_string()
        };
        assert_eq!(of(&a, &a), "app+0x1234");
        assert_eq!(of(&a, &b), UNNAMED);
    }

    #[test]
    fn one_program_has_one_name_under_every_path() {
        let (a, b) = (recording("/old/bench-1", "1"), recording("/new/bench-2", "2"));
        let names = Names::of(std::slice::from_ref(&a), std::slice::from_ref(&b));
        assert_eq!(names.program(&b, ProcessId(0)).as_deref(), Some("bench-1"));
        assert_eq!(names.module(&b, ModuleId(0)).as_deref(), Some("bench-1"));
        assert_eq!(&*names.library("libc.so.6"), "libc.so");
        assert_eq!(&*names.library("libx.so.conf"), "libx.so.conf");
    }
}
