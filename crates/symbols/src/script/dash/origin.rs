//! The file in which a function of dash's is written, which dash itself does not keep.
//!
//! A file counts only if its text has the function's name on the line at which the function begins.

use super::node::Function;
use std::path::PathBuf;

/// Bytes read of a script, at most.
const MAX_SCRIPT: u64 = 4 << 20;
/// Size expected of a command line, bytes.
const COMMAND_LINE: usize = 4096;

/// Text of the script in which a process's functions may be written.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// The script and its text; the text is `None` if it can't be read.
    script: Option<(Script, Option<Vec<u8>>)>,
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
    /// Returns true if a function is written in a script that the process of `tid` reads.
    pub(crate) fn has(&mut self, tid: i32, script: &Script, function: &Function) -> bool {
        if self.script.as_ref().is_none_or(|(of, _)| of != script) {
            self.script = Some((script.clone(), text(tid, script)));
        }
        let text = self.script.as_ref().and_then(|(_, text)| text.as_deref());
        text.is_some_and(|text| {
            let mut texts = text.split(|b| *b == 0);
            texts.any(|text| begins_at(text, function))
        })
    }
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

/// Returns true if a text has a function's name, as a word, on the line at which the function begins.
fn begins_at(text: &[u8], function: &Function) -> bool {
    let line = text.split(|b| *b == b'\n').nth(function.line as usize - 1);
    let is_of_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let name = function.name.as_bytes();
    line.is_some_and(|line| {
        memchr::memmem::find_iter(line, name).any(|at| {
            let before = at.checked_sub(1).and_then(|b| line.get(b));
            let after = line.get(at + name.len());
            !before.is_some_and(is_of_word) && !after.is_some_and(is_of_word)
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
