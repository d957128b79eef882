//! The author of a finding's calls: the language, files and owner of the code that makes them.

use crate::language::{CodeLanguage, Version, applet, compiled, version_of};
use crate::owner::{Owner, is_served};
use systoll_model::{Frame, Module, Recording, Row};

/// The author of a row's calls: the language of their code, its version, and the files that it consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Author {
    /// The language of the code; `None` where neither a frame, a file name nor a compiled user frame tells it.
    pub language: Option<CodeLanguage>,
    /// The language's version, where the interpreter's file name gives it.
    pub version: Option<Version>,
    /// File names of the program, of its script and of the modules on the row's stacks.
    pub files: Vec<String>,
    /// Source files on the row's stacks, as their language names them.
    pub sources: Vec<String>,
    /// Functions on the row's stacks.
    pub functions: Vec<String>,
    /// The function of the language's library that the code called, where it is known.
    pub called: Option<String>,
    /// Owner of the code that makes the calls.
    pub owner: Owner,
    /// True if each request of a server starts the code anew.
    pub is_served: bool,
}

impl Author {
    pub(crate) fn of(recording: &Recording, row: &Row) -> Self {
        let frames: Vec<&Frame> = recording.row_frames(row).collect();
        let lines: Vec<&Frame> = row.lines.iter().map(|line| recording.frame(line.frame)).collect();
        let modules: Vec<&Module> = frames.iter().filter_map(|f| f.module).map(|id| recording.module(id)).collect();
        let program = recording.process(row.process);
        let mut files: Vec<String> = modules.iter().map(|m| m.file_name().to_owned()).collect();
        files.push(program.name().to_owned());
        // `perl /usr/bin/parallel`: a script that is a program of its own.
        let script_file = program.argv.get(1).filter(|_| CodeLanguage::of_file(program.name()).is_some());
        files.extend(script_file.map(|path| path.rsplit('/').next().unwrap_or(path).to_owned()));
        files.dedup();
        let all = || frames.iter().chain(&lines).copied();
        let sources = all().flat_map(|f| &f.locations).filter_map(|l| l.file.as_deref()).map(str::to_owned).collect();
        let functions = frames.iter().flat_map(|f| &f.locations).map(|l| l.function.to_string()).collect();
        let script = all().find_map(|f| f.language).map(CodeLanguage::of_script);
        let interpreter = || files.iter().find_map(|file| CodeLanguage::of_file(file)).or_else(|| applet(program));
        let is_served = is_served(program, &files);
        let user = row.user.map(|id| recording.frame(id));
        let language = script.or_else(interpreter).or_else(|| compiled(user, &frames));
        let version = language.and_then(|l| files.iter().find(|f| CodeLanguage::of_file(f) == Some(l)));
        let version = version.and_then(|file| version_of(file));
        let owner = Owner::of(recording, row);
        Self { language, version, files, sources, functions, called: None, owner, is_served }
    }
}
