//! Tests of languages: advice is for the language of the reader who must act, and none is for another.

use crate::common::*;
use systoll_judge::{Catalogue, CodeLanguage, Finding, Options, judge};
use systoll_model::{Frame, FrameId, Location, Process, Recording, Stack, StackId};

const BUSY: u64 = 5_000_000;

/// Returns the only finding of a program that runs `exe` and makes these calls all the time.
fn found_in(exe: &str, trace: &[Call]) -> Finding {
    let mut rec = recording(trace, BUSY);
    rec.processes[0] = Process { exe: exe.into(), ..rec.processes[0].clone() };
    only(judge(&rec, &Catalogue::builtin(), &Options::default()))
}

fn getpid() -> Vec<Call> {
    rounds(20_000, |_| vec![call("getpid", "getpid", &[], 7)])
}

fn byte_writes() -> Vec<Call> {
    rounds(20_000, |_| vec![call("write", "write", &[1, 0x1000, 8], 8).fd("/tmp/out").toll(500)])
}

fn byte_reads() -> Vec<Call> {
    rounds(20_000, |_| vec![call("read", "read", &[3, 1, 1], 1).fd("/srv/in")])
}

fn readlinks() -> Vec<Call> {
    rounds(20_000, |_| vec![call("readlink", "realpath", &[1, 2, 1023], -22).path(0, "/srv/app").toll(500)])
}

fn localtimes() -> Vec<Call> {
    rounds(20_000, |i| vec![stat("/etc/localtime", "localtime", 5, i)])
}

/// Words that new users once got and found ridiculous must not come again.
#[test]
fn advice_for_another_language_is_gone() {
    let wrong: &[(&str, Vec<Call>, &str, &[&str])] = &[
        ("/usr/bin/ruby3.1", readlinks(), "File.realpath", &["gcc", "canonical-system-headers", "os.path"]),
        ("/usr/bin/ruby3.1", getpid(), "Process.pid", &["logging", "pthread_atfork", "glibc"]),
        ("/usr/bin/perl", getpid(), "$$", &["logging", "pthread_atfork"]),
        ("/usr/bin/tclsh8.6", getpid(), "set pid [pid] once", &["logging", "os.getpid", "pthread_atfork"]),
        ("/usr/bin/bash", getpid(), "ask once", &["logging", "os.getpid", "pthread_atfork"]),
        ("/bin/app", getpid(), "pthread_atfork", &["logging", "Python", "Ruby"]),
        ("/usr/bin/perl", byte_writes(), "$| = 1", &["PYTHONUNBUFFERED", "setvbuf", "BufWriter", "bufio"]),
        ("/usr/bin/ruby3.1", byte_writes(), "$stdout.sync", &["PYTHONUNBUFFERED", "setvbuf", "BufWriter"]),
        ("/usr/bin/node", byte_writes(), "process.stdout.write", &["PYTHONUNBUFFERED", "setvbuf", "bufio"]),
        ("/bin/app", byte_writes(), "setvbuf", &["PYTHONUNBUFFERED", "BufWriter", "bufio", "io.BufferedWriter"]),
        ("/bin/app", byte_reads(), "getc", &["shell", "while read", "BufReader"]),
        ("/usr/bin/bash", byte_reads(), "read from a file", &["stdio", "BufReader", "bufio", "BufferedReader"]),
        ("/usr/bin/dash", byte_reads(), "one awk for the whole loop", &["not from a pipe"]),
        ("/usr/bin/dd", byte_reads(), "bs=64K", &["not from a pipe", "shell"]),
        ("/usr/bin/perl", localtimes(), "TZ=:/etc/localtime", &["localtime_r"]),
        ("/usr/bin/python3.11", localtimes(), "TZ=:/etc/localtime", &["localtime_r"]),
    ];
    for (exe, trace, says, others) in wrong {
        let f = found_in(exe, trace);
        assert!(f.stop()[0].contains(says), "{exe}: {:?}", f.stop());
        for other in *others {
            assert!(!f.stop().iter().any(|cure| cure.contains(other)), "{exe}, {other}: {:?}", f.stop());
        }
    }
}

/// A caller in an unknown language gets advice that holds for all languages.
#[test]
fn where_the_language_is_not_known_no_language_is_advised() {
    let mut rec = recording(&getpid(), BUSY);
    for frame in &mut rec.frames {
        frame.locations[0].function = "app+0x1234".into();
    }
    let f = only(judge(&rec, &Catalogue::builtin(), &Options::default()));
    assert_eq!((f.language, f.stop()), (None, vec!["ask once and keep it, and again after a fork"]));
}

#[test]
fn a_script_s_own_file_and_the_sources_on_the_stack_are_looked_at() {
    let mut rec = recording(&getpid(), BUSY);
    rec.processes[0] = Process { exe: "/usr/bin/python3.11".into(), ..rec.processes[0].clone() };
    let advice = |rec: &Recording| only(judge(rec, &Catalogue::builtin(), &Options::default())).stop()[0].to_owned();
    assert!(advice(&rec).contains("os.getpid()"), "{}", advice(&rec));
    let file = Some("/usr/lib/python3.11/logging/__init__.py".into());
    let location = Location { function: "__init__".into(), file, line: Some(369) };
    rec.frames.push(Frame { locations: vec![location], ..Frame::default() });
    rec.stacks.push(Stack { frames: vec![FrameId(rec.frames.len() as u32 - 1)], complete: false });
    rec.rows[0].outer = StackId(rec.stacks.len() as u32 - 1);
    assert_eq!(advice(&rec), "logging.logProcesses = False");
}

/// A newer Ruby keeps its process id: users of an older one are told so first, and others not at all.
#[test]
fn what_a_newer_version_mends_is_told_to_older_ones() {
    let newer = |exe: &str| found_in(exe, &getpid()).stop().iter().any(|cure| cure.contains("Ruby 3.3 or newer"));
    assert!(newer("/usr/bin/ruby3.1") && newer("/usr/bin/ruby"));
    assert!(!newer("/usr/bin/ruby3.3") && !newer("/usr/bin/ruby3.4.1"));
}

/// Each cause has advice for each language.
#[test]
fn every_cause_has_a_cure_for_every_language() {
    for cause in Catalogue::builtin().iter() {
        let general = |cure: &&systoll_judge::Cure| {
            cure.languages.is_empty() && cure.modules.is_empty() && cure.sources.is_empty() && cure.about.is_empty()
        };
        assert!(cause.cures.iter().any(|cure| general(&cure)), "{}: nothing for languages it does not name", cause.id);
    }
}

/// Cures that are shown for all languages hold no names of libraries, functions and variables of one.
#[test]
fn what_is_said_to_all_names_no_language() {
    const NAMES: &[&str] = &[
        "PYTHON",
        "Python",
        "os.",
        "Ruby",
        "Perl",
        "BufReader",
        "BufWriter",
        "bufio",
        "setvbuf",
        "stdio",
        "pthread_atfork",
        "localtime_r",
        "shell",
        "xargs",
        "gcc",
        "Node",
        "fs.",
        "nginx",
        "jemalloc",
        "timeout of -1",
    ];
    for cause in Catalogue::builtin().iter() {
        for cure in cause.cures.iter().filter(|c| c.languages.is_empty() && c.modules.is_empty() && c.shim.is_none()) {
            let named: Vec<_> = NAMES.iter().filter(|name| cure.how.contains(**name)).collect();
            assert!(named.is_empty(), "{}: {:?} names {named:?}", cause.id, cure.how);
        }
    }
}

/// A wait without a timeout cures nothing: the loop has other work, or it would not poll.
#[test]
fn no_cure_says_to_wait_for_ever() {
    for cause in Catalogue::builtin().iter() {
        for cure in &cause.cures {
            assert!(!cure.how.contains("-1, ") && !cure.how.contains("of -1"), "{}: {}", cause.id, cure.how);
        }
    }
    let spin = rounds(50_000, |_| vec![call("poll", "poll", &[0x1000, 1, 0], 0)]);
    let f = found_in("/bin/app", &spin);
    assert!(f.stop()[0].contains("until something else is due"), "{:?}", f.stop());
}

#[test]
fn languages_have_different_names() {
    let mut names: Vec<&str> = CodeLanguage::ALL.iter().map(|l| l.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), CodeLanguage::ALL.len());
}
