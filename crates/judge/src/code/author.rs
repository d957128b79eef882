//! The author of a finding's calls: the language, files and owner of the code that makes them.

use crate::code::language::{CodeLanguage, Version, applet, compiled, version_of};
use crate::code::owner::{Owner, is_served};
use crate::collections::sums::Sums;
use crate::pool::requested;
use std::collections::{BTreeMap, BTreeSet};
use systoll_model::{Frame, Module, Recording, Row, RowId, RowLine};

/// Least share of a row's calls, 0 to 1, that go through a script's line or come by the functions for which a cure is.
pub(crate) const HALF: f64 = 0.5;

/// The function of a language's library that a part of a row's calls came by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiShare {
    /// The function's name; `None` if it is not known, so that the C library's function stands for it.
    pub name: Option<String>,
    /// The part of the row's calls, from 0 to 1.
    pub share: f64,
}

/// The author of a row's calls: the language of their code, its version, and the files that it consists of.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Author {
    /// The language of the code; `None` where neither a frame, a file name nor a compiled user frame tells it.
    pub language: Option<CodeLanguage>,
    /// The language's version, where the interpreter's file name gives it.
    pub version: Option<Version>,
    /// File names of the program, of its script and of the modules on the row's stacks.
    pub files: Vec<String>,
    /// Source files on the stacks of at least half of the row's calls, as their language names them.
    pub sources: Vec<String>,
    /// Functions on the row's stacks.
    pub functions: Vec<String>,
    /// The function of the language's library that the code called, where it is known.
    pub called: Option<String>,
    /// The functions of the language's library by which the calls came, each with its share; empty where nothing was
    /// asked about it.
    pub shares: Vec<ApiShare>,
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
        let own = frames.iter().flat_map(|f| &f.locations).filter_map(|l| l.file.as_deref());
        let shared = main_sources(recording, row).into_iter().chain(called_sources(recording, row));
        let sources = own.chain(shared).map(str::to_owned).collect();
        let functions = frames.iter().flat_map(|f| &f.locations).map(|l| l.function.to_string()).collect();
        let script = all().find_map(|f| f.language).map(CodeLanguage::of_script);
        let interpreter = || files.iter().find_map(|file| CodeLanguage::of_file(file)).or_else(|| applet(program));
        let is_served = is_served(program, &files);
        let user = row.user.map(|id| recording.frame(id));
        let outside = script.is_none() && is_outside_of_scripts(recording, row);
        let interpreter = || interpreter().filter(|_| !outside);
        let language = script.or_else(interpreter).or_else(|| compiled(user, &frames));
        let version = language.and_then(|l| files.iter().find(|f| CodeLanguage::of_file(f) == Some(l)));
        let version = version.and_then(|file| version_of(file));
        let owner = if outside { Owner::Program(program.name().to_owned()) } else { Owner::of(recording, row) };
        Self { language, version, files, sources, functions, called: None, shares: Vec::new(), owner, is_served }
    }
}

/// Returns the source files of the functions of scripts that at least half of the row's calls go through.
fn main_sources<'r>(recording: &'r Recording, row: &Row) -> Vec<&'r str> {
    let mut of_function: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for RowLine { frame, weight, .. } in &row.lines {
        for place in &recording.frame(*frame).locations {
            of_function.add((place.file.as_deref().unwrap_or_default(), &place.function), *weight);
        }
    }
    let least = HALF * row.counts.calls as f64;
    of_function.into_iter().filter(|(_, weight)| *weight as f64 >= least).map(|((file, _), _)| file).collect()
}

/// Returns the source files below the row's line through which at least half of its sampled calls came: where one line comes
/// by several functions of a module, the row's stack has none of these.
fn called_sources<'r>(recording: &'r Recording, row: &Row) -> BTreeSet<&'r str> {
    let at = recording.rows.iter().position(|other| std::ptr::eq(other, row)).filter(|_| !row.lines.is_empty());
    let Some(at) = at else { return BTreeSet::new() };
    let trunks = recording.trunks_of(RowId(at as u32));
    let mut of_file: BTreeMap<&str, u64> = BTreeMap::new();
    for trunk in trunks {
        let below = recording.stack(trunk.stack).frames.iter().take_while(|frame| Some(**frame) != row.user);
        let places = below.flat_map(|frame| &recording.frame(*frame).locations);
        for file in places.filter_map(|place| place.file.as_deref()).collect::<BTreeSet<_>>() {
            of_file.add(file, trunk.weight);
        }
    }
    let all = trunks.iter().fold(0u64, |sum, trunk| sum.saturating_add(trunk.weight));
    of_file.into_iter().filter(|(_, weight)| *weight as f64 >= HALF * all as f64).map(|(file, _)| file).collect()
}

/// Returns true if an interpreter makes a row's calls while it runs no script, as php-fpm does while it reads a
/// request: the row's stacks were seen up to their ends and hold no line, while other calls of the program have lines.
/// Shells are left out: most of their calls are made in children, of which few are looked at.
fn is_outside_of_scripts(recording: &Recording, row: &Row) -> bool {
    let program = recording.process(row.process);
    let interprets = CodeLanguage::of_program(program).filter(|language| {
        !language.is_a(CodeLanguage::Shell) && !matches!(language, CodeLanguage::Awk | CodeLanguage::Fish)
    });
    let own = |other: &&Row| recording.process(other.process).exe == program.exe;
    interprets.is_some()
        && row.lines.is_empty()
        && recording.stack(row.outer).complete
        && !recording.stack(row.outer).frames.is_empty()
        && recording.rows.iter().filter(|other| !other.lines.is_empty()).any(|other| own(&other))
        && !is_asked_for(recording, row)
}

/// Returns true if threads of a pool make a row's calls for a line of the program: their stacks end where the threads
/// begin.
fn is_asked_for(recording: &Recording, row: &Row) -> bool {
    let id = recording.rows.iter().position(|other| std::ptr::eq(other, row));
    let work = id.and_then(|id| requested(recording, &[RowId(id as u32)]));
    work.is_some_and(|work| !work.lines.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{
        Counts, FrameClass, FrameId, Language as ScriptLanguage, Location, Process, ProcessId, RowLine, RowTrunk,
        Stack, StackId, Sysno,
    };

    /// Returns php-fpm's recording: a read by the stack 1, which is told up to its end or not, and, where a script `ran`, a stat
    /// that a line of it made.
    fn served(complete: bool, ran: bool) -> Recording {
        let frame = |function: &str| Frame {
            locations: vec![Location { function: function.into(), file: None, line: None }],
            class: FrameClass::User,
            ..Frame::default()
        };
        let stack =
            |frames: &[u32], complete| Stack { frames: frames.iter().copied().map(FrameId).collect(), complete };
        let row = |syscall, outer| Row {
            outer: StackId(outer),
            user: Some(FrameId(0)),
            ..Row::new(ProcessId(0), Sysno::named(syscall), Counts::default())
        };
        let line = RowLine { frame: FrameId(2), looks: 4, weight: 4 };
        let lines = if ran { vec![line] } else { Vec::new() };
        Recording {
            processes: vec![Process { exe: "/usr/sbin/php-fpm8.2".into(), ..Process::default() }],
            frames: vec![
                frame("fcgi_read"),
                frame("main"),
                Frame { language: Some(ScriptLanguage::Php), ..frame("page") },
            ],
            stacks: vec![stack(&[0], false), stack(&[1], complete), stack(&[], false)],
            rows: vec![row("read", 1), Row { lines, ..row("stat", 2) }],
            ..Recording::default()
        }
    }

    #[test]
    fn the_sources_are_those_of_half_of_the_calls() {
        let frame = |file: &str| Frame {
            locations: vec![Location { function: "f".into(), file: Some(file.into()), line: Some(3) }],
            ..Frame::default()
        };
        let line = |(at, weight): (usize, &u64)| RowLine { frame: FrameId(at as u32), looks: 1, weight: *weight };
        let sources = |weights: &[u64]| {
            let mut row = Row::new(ProcessId(0), Sysno::named("stat"), Counts { calls: 1_000, ..Counts::default() });
            row.lines = weights.iter().enumerate().map(line).collect();
            let recording = Recording {
                processes: vec![Process { exe: "/usr/bin/python3.11".into(), ..Process::default() }],
                frames: vec![frame("app.py"), frame("<frozen importlib._bootstrap_external>")],
                stacks: vec![Stack::default()],
                ..Recording::default()
            };
            Author::of(&recording, &row).sources
        };
        assert_eq!(sources(&[970, 7]), ["app.py"]);
        assert_eq!(sources(&[300, 700]), ["<frozen importlib._bootstrap_external>"]);
    }

    #[test]
    fn a_module_that_a_line_calls_by_several_functions_is_a_source() {
        let frame = |function: &str, file: &str| Frame {
            locations: vec![Location { function: function.into(), file: Some(file.into()), line: Some(3) }],
            language: Some(ScriptLanguage::Python),
            ..Frame::default()
        };
        let stack = |of: &[u32]| Stack { frames: of.iter().copied().map(FrameId).collect(), complete: true };
        let sources = |weights: [u64; 2]| {
            let mut row = Row::new(ProcessId(0), Sysno::named("stat"), Counts { calls: 1_000, ..Counts::default() });
            row.lines = vec![RowLine { frame: FrameId(3), looks: 9, weight: 1_000 }];
            (row.user, row.context, row.outer) = (Some(FrameId(3)), StackId(2), StackId(3));
            let trunk = |(at, weight)| RowTrunk { row: RowId(0), stack: StackId(at), weight, looks: 0 };
            let recording = Recording {
                processes: vec![Process { exe: "/usr/bin/python3.11".into(), ..Process::default() }],
                frames: vec![
                    frame("exists", "genericpath.py"),
                    frame("isfile", "genericpath.py"),
                    frame("emit", "logging/handlers.py"),
                    frame("main", "app.py"),
                    frame("run", "framework.py"),
                ],
                stacks: vec![stack(&[0, 2, 3, 4]), stack(&[1, 3, 4]), stack(&[]), stack(&[3])],
                rows: vec![row],
                trunks: (0..).zip(weights).map(trunk).collect(),
                ..Recording::default()
            };
            Author::of(&recording, &recording.rows[0]).sources
        };
        let has = |weights, file: &str| sources(weights).iter().any(|source| source == file);
        assert!(has([60, 40], "logging/handlers.py") && has([60, 40], "genericpath.py") && has([60, 40], "app.py"));
        assert!(!has([40, 60], "logging/handlers.py") && !has([60, 40], "framework.py"));
    }

    #[test]
    fn what_a_server_reads_outside_of_scripts_is_its_own() {
        let of = |recording: &Recording, at: usize| Author::of(recording, &recording.rows[at]);
        let recording = served(true, true);
        let own = of(&recording, 0);
        assert!(matches!(&own.owner, Owner::Program(name) if name == "php-fpm8.2"), "{:?}", own.owner);
        assert_ne!(own.language, Some(CodeLanguage::Php));
        assert_eq!(of(&recording, 1).language, Some(CodeLanguage::Php), "a script's line made it");
        // Where stacks end early, or no line was ever read, a script may be behind the call.
        assert_eq!(of(&served(false, true), 0).language, Some(CodeLanguage::Php));
        assert_eq!(of(&served(true, false), 0).language, Some(CodeLanguage::Php));
    }
}
