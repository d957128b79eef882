//! The file in which a function of dash's is written, which dash itself does not keep.
//!
//! A file counts only if its text defines the function on the line at which the function begins. The files are the
//! script itself, and those that it names after `.` or `source`.

use super::node::Function;
use std::path::PathBuf;

/// Bytes read of a script, at most.
const MAX_SCRIPT: u64 = 4 << 20;
/// Files that a script reads by `.` and in which functions are looked for, at most.
const MAX_SOURCED: usize = 16;
/// Bytes read of such a file, at most.
const MAX_SOURCED_TEXT: u64 = 1 << 20;
/// Size expected of a command line, bytes.
const COMMAND_LINE: usize = 4096;

/// Texts in which a process's functions may be written.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    script: Option<Known>,
}

/// A script whose text was read.
#[derive(Debug)]
struct Known {
    script: Script,
    /// The script's text; `None` if it can't be read.
    text: Option<Vec<u8>>,
    /// Paths and texts of the files that the script reads by `.`; `None` until one is needed.
    sourced: Option<Vec<(String, Vec<u8>)>>,
}

/// The way by which a script is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    /// By the descriptor under which the shell has it open.
    Open(i32),
    /// By its name, relative to the process's current folder.
    Named(String),
    /// Not opened: its commands are on the command line.
    Given,
}

impl Texts {
    /// Returns the file in which a function is written: the script called `name` that the process of `tid` reads, or a
    /// file that this script reads by `.`; `None` if neither has it.
    pub(crate) fn file_of(
        &mut self,
        tid: i32,
        (script, name): &(Script, String),
        function: &Function,
    ) -> Option<String> {
        let known = match self.script.take().filter(|known| known.script == *script) {
            Some(known) => known,
            None => Known { script: script.clone(), text: text(tid, script), sourced: None },
        };
        let known = self.script.insert(known);
        let text = known.text.as_deref()?;
        if text.split(|b| *b == 0).any(|text| begins_at(text, function)) {
            return Some(name.clone());
        }
        let sourced = known.sourced.get_or_insert_with(|| sourced(tid, script, name, text));
        sourced.iter().find(|(_, text)| begins_at(text, function)).map(|(path, _)| path.clone())
    }
}

/// Returns the paths and texts of the files that a script reads by `.`, and of those that these read.
fn sourced(tid: i32, script: &Script, name: &str, text: &[u8]) -> Vec<(String, Vec<u8>)> {
    let path = match script {
        Script::Open(descriptor) => opened(tid, *descriptor),
        _ => Some(name.to_owned()).filter(|name| name.starts_with('/')),
    };
    let folder_of = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let current =
        std::fs::read_link(format!("/proc/{tid}/cwd")).ok().and_then(|path| path.into_os_string().into_string().ok());
    let mut folders: Vec<String> = path.as_deref().and_then(folder_of).into_iter().collect();
    folders.extend(current.filter(|path| path.starts_with('/')));
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    let mut wanted: Vec<String> = named(text).into_iter().rev().collect();
    while let Some(name) = wanted.pop().filter(|_| all.len() < MAX_SOURCED) {
        let paths = match name.starts_with('/') {
            true => vec![name],
            false => folders.iter().map(|folder| format!("{folder}/{}", name.trim_start_matches("./"))).collect(),
        };
        let read = |path: &String| systoll_files::head(format!("/proc/{tid}/root{path}"), MAX_SOURCED_TEXT).ok();
        let unread = |path: &&String| !all.iter().any(|(known, _)| known == *path);
        let found = paths.iter().filter(unread).find_map(|path| Some((path.clone(), read(path)?)));
        if let Some((path, text)) = found {
            wanted.extend(named(&text).into_iter().rev());
            wanted.truncate(MAX_SOURCED);
            all.push((path, text));
        }
    }
    all
}

/// Returns the files that the commands `.` and `source` of a script name. Of a word that has to be expanded, as
/// `"$(dirname "$0")/lib.sh"`, it is the part after the last slash.
fn named(text: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    for line in text.split(|b| *b == b'\n').filter_map(|line| std::str::from_utf8(line).ok()) {
        for command in line.split([';', '&', '|']).map(str::trim_start) {
            let rest = command.strip_prefix(". ").or_else(|| command.strip_prefix("source "));
            let Some(rest) = rest.filter(|_| names.len() < MAX_SOURCED) else { continue };
            let is_plain = |text: &str| !text.contains(['$', '`', '(', ')', '*', '~']);
            let word = match is_plain(rest) {
                true => rest.split_ascii_whitespace().next(),
                false => rest.trim_end().rsplit_once('/').map(|(_, last)| last),
            };
            let word = word.map(|word| word.trim_matches(['"', '\'']));
            names.extend(word.filter(|word| is_plain(word) && !word.is_empty()).map(str::to_owned));
        }
    }
    names
}

fn text(tid: i32, script: &Script) -> Option<Vec<u8>> {
    let path = match script {
        Script::Open(descriptor) => PathBuf::from(format!("/proc/{tid}/fd/{descriptor}")),
        Script::Named(name) if name.starts_with('/') => PathBuf::from(format!("/proc/{tid}/root{name}")),
        Script::Named(name) => PathBuf::from(format!("/proc/{tid}/cwd/{name}")),
        Script::Given => return systoll_files::read_kernel(format!("/proc/{tid}/cmdline"), COMMAND_LINE).ok(),
    };
    systoll_files::head(path, MAX_SCRIPT).ok()
}

/// Returns true if a text defines a function of this name, `name ()`, on the line at which the function begins.
fn begins_at(text: &[u8], function: &Function) -> bool {
    let line = text.split(|b| *b == b'\n').nth(function.line as usize - 1);
    let is_of_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let name = function.name.as_bytes();
    line.is_some_and(|line| {
        memchr::memmem::find_iter(line, name).any(|at| {
            let before = at.checked_sub(1).and_then(|b| line.get(b));
            let after = line.get(at + name.len()..).unwrap_or_default().trim_ascii_start();
            !before.is_some_and(is_of_word) && after.starts_with(b"(")
        })
    })
}

/// Returns the path of the file that a process has open.
pub(crate) fn opened(tid: i32, descriptor: i32) -> Option<String> {
    let path = std::fs::read_link(format!("/proc/{tid}/fd/{descriptor}")).ok()?;
    Some(path.to_string_lossy().into_owned()).filter(|p| p.starts_with('/'))
}

/// Returns the address of a process's first argument, the name by which it was called.
pub(crate) fn first_argument(tid: i32) -> Option<u64> {
    /// Index of `arg_start` in the fields of /proc/PID/stat, from the state on.
    const START: usize = 45;
    let stat = String::from_utf8(systoll_files::read_kernel(format!("/proc/{tid}/stat"), 1024).ok()?).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(START)?.parse().ok().filter(|at| *at != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_at_its_own_line_only() {
        let function = |name: &str, line| Function { name: name.into(), line };
        let text = b"#!/bin/sh\nleaf() {\n  :\n}\nbig_leaf () { :; }\n";
        assert!(begins_at(text, &function("leaf", 2)) && begins_at(text, &function("big_leaf", 5)));
        assert!(!begins_at(text, &function("leaf", 5)) && !begins_at(text, &function("leaf", 3)));
        assert!(!begins_at(text, &function("leaf", 99)));
        assert!(!begins_at(b"leaf; leaf.sh leaf\n", &function("leaf", 1)));
    }

    #[test]
    fn files_are_those_that_the_script_names() {
        let text = b"# . not.sh\n. ./lib.sh a b\n  . \"$(dirname \"$0\")/inc/a.sh\"\nset -e; . /etc/rc.d/x && source 'b.sh'\n. $LIB\n.x\n";
        assert_eq!(named(text), ["./lib.sh", "a.sh", "/etc/rc.d/x", "b.sh"]);
        assert!(named(b"\xff\n. \n. \"\"").is_empty());
    }

    #[test]
    fn a_function_of_a_sourced_file_has_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
        std::fs::write(path("main.sh"), ". ./lib.sh\nown() { :; }\n").expect("written");
        std::fs::write(path("lib.sh"), ". ./deep.sh\nleaf() {\n  :\n}\n").expect("written");
        std::fs::write(path("deep.sh"), "deep() { :; }\n. ./lib.sh\n").expect("written");
        let script = (Script::Named(path("main.sh")), path("main.sh"));
        let mut texts = Texts::default();
        let mut file = |name: &str, line| {
            let function = Function { name: name.into(), line };
            let file = texts.file_of(std::process::id() as i32, &script, &function)?;
            file.rsplit('/').next().map(str::to_owned)
        };
        assert_eq!((file("own", 2).as_deref(), file("leaf", 2).as_deref()), (Some("main.sh"), Some("lib.sh")));
        assert_eq!((file("deep", 1).as_deref(), file("leaf", 3), file("other", 1)), (Some("deep.sh"), None, None));
    }

    #[test]
    fn the_first_argument_is_that_of_the_process() {
        let own = std::process::id() as i32;
        let at = first_argument(own).expect("its own process is readable");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("readable");
        let stack = maps.lines().find(|l| l.ends_with("[stack]")).and_then(|l| l.split([' ', '-']).nth(1));
        let end = u64::from_str_radix(stack.expect("a stack"), 16).expect("hexadecimal");
        assert!(at < end && end - at < 4 << 20);
    }
}
