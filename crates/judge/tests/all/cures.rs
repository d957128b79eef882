//! Tests of cures: each depends on the reader and on the object of the finding. A program in a
//! certain language that makes certain calls on a certain object gets certain words, and no others.

use crate::common::*;
use systoll_judge::{Catalogue, Finding, Options, judge};
use systoll_model::{Frame, FrameId, Language, Location, Process, Recording, Stack, StackId};

const BUSY: u64 = 5_000_000;
const SOCKET: &str = "TCP:[127.0.0.1:4711->127.0.0.1:80]";

/// Returns a recording of a program with this path and command line that makes these calls all the time.
fn run_of(command: &str, trace: &[Call]) -> Recording {
    let argv: Vec<std::sync::Arc<str>> = command.split(' ').map(Into::into).collect();
    let mut rec = recording(trace, BUSY);
    rec.processes[0] = Process { exe: argv[0].clone(), argv, ..rec.processes[0].clone() };
    rec
}

fn found(rec: &Recording) -> Finding {
    let mut judged = judge(rec, &Catalogue::builtin(), &Options::default());
    assert_eq!(judged.findings.len(), 1, "{:?}: {judged:?}", rec.processes[0].argv);
    judged.findings.remove(0)
}

fn writes(fd: u64, name: &'static str) -> Vec<Call> {
    rounds(20_000, move |_| vec![call("write", "write", &[fd, 0x1000, 8], 8).fd(name).toll(500)])
}

/// Returns the calls of a message in four parts and of its answer.
fn parts(fd: u64) -> Vec<Call> {
    rounds(6_000, move |_| {
        let part = call("write", "write", &[fd, 0x1000, 16], 16).fd(SOCKET).toll(900);
        vec![part.clone(), part.clone(), part.clone(), part, call("read", "read", &[fd, 1, 65536], 9).fd(SOCKET)]
    })
}

fn reads(fd: u64, name: &'static str) -> Vec<Call> {
    rounds(20_000, move |_| vec![call("read", "read", &[fd, 1, 1], 1).fd(name)])
}

fn stats(path: &'static str) -> Vec<Call> {
    rounds(20_000, move |i| vec![stat(path, "stat", 5, i)])
}

/// Returns two questions about a missing file, which is then created if `made`.
fn misses(made: bool) -> Vec<Call> {
    rounds(5_000, move |i| {
        let name = if made { format!("/srv/spool/{i}") } else { format!("/etc/app/{i}") };
        let asked = call("newfstatat", "stat", &[-100i64 as u32 as u64, 1, 2, 0], -2).path(1, &name).toll(900);
        let looked = call("access", "access", &[1, 4], -2).path(0, &name).toll(900);
        let open = call("openat", "open", &[-100i64 as u32 as u64, 1, 0o301, 0o644], 5).path(1, &name);
        let close = call("close", "close", &[5], 0).fd("/srv/spool/x");
        let asks = vec![asked, looked];
        if made { [asks, vec![open, close]].concat() } else { asks }
    })
}

fn localtimes_without_zone() -> Vec<Call> {
    let open = |_| call("openat", "localtime", &[-100i64 as u32 as u64, 1, 0x8_0000, 0], -2).path(1, "/etc/localtime");
    rounds(20_000, move |i| vec![open(i).toll(900)])
}

fn appends() -> Vec<Call> {
    rounds(5_000, |_| {
        let open = call("openat", "open", &[-100i64 as u32 as u64, 1, 0o2101, 0o644], 5).path(1, "/srv/app.log");
        let write = call("write", "write", &[5, 1, 20], 20).fd("/srv/app.log");
        vec![open.toll(900), write, call("close", "close", &[5], 0).fd("/srv/app.log").toll(300)]
    })
}

/// The program, its calls, words of its first cure, and words that no cure may have.
type Case = (&'static str, Vec<Call>, &'static str, &'static [&'static str]);

#[test]
fn object_and_cure_agree() {
    let file = "/srv/r.bin";
    let cases: &[Case] = &[
        ("/usr/bin/java W", writes(5, file), "new BufferedOutputStream(new FileOutputStream(path)", &["System.out"]),
        ("/usr/bin/java W", writes(1, file), "System.out", &["DataOutputStream"]),
        ("/usr/bin/java W", writes(2, file), "System.err", &["System.out"]),
        ("/usr/bin/java W", reads(5, SOCKET), "socket.getInputStream()", &["FileInputStream", "RandomAccessFile"]),
        ("/usr/bin/node a.js", parts(20), "socket.cork()", &["process.stdout", "fs.writeSync"]),
        ("/usr/bin/node a.js", writes(20, file), "fs.writeSync", &["process.stdout", "socket."]),
        ("/usr/bin/python3.11 a.py", parts(5), "sock.sendmsg(parts)", &["print", "PYTHONUNBUFFERED"]),
        ("/usr/bin/python3.11 a.py", writes(5, file), "f.write(line)", &["print(", "PYTHONUNBUFFERED", "sock."]),
        ("/usr/bin/python3.11 a.py", reads(5, SOCKET), "sock.recv(65536)", &["open(path"]),
        ("/usr/bin/python3.11 a.py", reads(0, "pipe:[7]"), "sys.stdin.buffer", &["open(path", "sock."]),
        ("/usr/bin/perl a.pl", writes(5, file), "$f->autoflush", &["$| = 1"]),
        ("/usr/bin/ruby3.1 a.rb", writes(5, file), "f.sync = true", &["$stdout"]),
        ("/usr/bin/php8.2 a.php", writes(5, file), "one fwrite($f, $lines)", &["ob_start"]),
        ("/usr/bin/tclsh8.6 a.tcl", writes(5, file), "fconfigure $f", &["stdout"]),
        ("/srv/app", writes(5, file), "fopen or fdopen", &["setvbuf(stdout"]),
        ("/srv/app", writes(2, file), "setvbuf(stderr", &["setvbuf(stdout"]),
        ("/srv/app", parts(5), "writev or sendmsg", &["setvbuf", "FILE"]),
        ("/srv/app", reads(5, SOCKET), "that belongs to the connection", &["fopen"]),
    ];
    for (command, trace, says, others) in cases {
        let f = found(&run_of(command, trace));
        assert!(f.stop()[0].contains(says), "{command}: {says}: {:?}", f.stop());
        for other in *others {
            assert!(!f.stop().iter().any(|cure| cure.contains(other)), "{command}, {other}: {:?}", f.stop());
        }
    }
}

/// One program that writes lines to a file and to its standard output has two things to change.
#[test]
fn two_objects_with_different_cures_are_two_findings() {
    let both = rounds(20_000, |_| {
        let to = |fd, api, name| call("write", api, &[fd, 0x1000, 8], 8).fd(name).toll(500);
        vec![to(5, "log:write", "/srv/app.log"), to(1, "out:write", "pipe:[7]")]
    });
    let judged = judge(&run_of("/usr/bin/java W", &both), &Catalogue::builtin(), &Options::default());
    let mut first: Vec<&str> = judged.findings.iter().map(|f| f.stop()[0]).collect();
    first.sort_unstable();
    assert!(
        first.len() == 2 && first[0].contains("FileOutputStream(path)") && first[1].contains("System.out"),
        "{first:?}"
    );
}

#[test]
fn what_must_be_so_for_a_cure_is_asked_for() {
    let one = stats("/etc/hostname");
    let mut two = one.clone();
    two.extend(rounds(20_000, |i| {
        vec![stat("/etc/hostname", "elsewhere:stat", 5, i), stat("/etc/hostname", "stat", 5, i)]
    }));
    let listed = rounds(20_000, |i| {
        let list = call("getdents64", "readdir", &[3, 1, 4096], 4000).fd("/srv/mail");
        if i % 50 == 0 { vec![list] } else { vec![stat("/srv/mail/a", "stat", 5, i)] }
    });
    let tz = "TZ=UTC0";
    let cases: &[Case] = &[
        // Several tests of one file can share an answer; one test can't.
        ("/usr/bin/perl a.pl", two, "-f _ && -r _ after one -e", &[]),
        ("/usr/bin/perl a.pl", one.clone(), "ask the hash", &["after one -e"]),
        // A listing helps only a program that lists the folder.
        ("/srv/app", listed, "one fstatat", &[]),
        ("/srv/app", one, "one fstatat", &["readdir"]),
        // A file that is only looked for must not be created.
        ("/srv/app", misses(true), "O_CREAT | O_EXCL", &[]),
        ("/srv/app", misses(false), "lstat", &["O_CREAT", "make the file", "inotify"]),
        ("/usr/bin/python3.11 a.py", misses(true), "os.O_CREAT", &[]),
        ("/usr/bin/python3.11 a.py", misses(false), "FileNotFoundError, once", &["O_CREAT", "makedirs"]),
        // A program that waits for no time zone's change needs no watch for it.
        ("/srv/app", localtimes_without_zone(), tz, &["inotify", ":/etc/localtime"]),
        ("/usr/bin/perl a.pl", localtimes_without_zone(), tz, &["remember", ":/etc/localtime"]),
        // A server starts a script anew for each request.
        ("/usr/bin/php8.2 a.php", appends(), "fopen($path, 'a'); once", &["error_log("]),
        ("/usr/bin/php8.2 -S 127.0.0.1:80", appends(), "error_log($line)", &["fopen($path, 'a'); once"]),
        ("/usr/sbin/php-fpm8.2", appends(), "error_log($line)", &["fopen($path, 'a'); once"]),
    ];
    for (command, trace, says, others) in cases {
        let f = found(&run_of(command, trace));
        assert!(f.stop()[0].contains(says), "{command}: {says}: {:?}", f.stop());
        for other in *others {
            assert!(!f.stop().iter().any(|cure| cure.contains(other)), "{command}, {other}: {:?}", f.stop());
        }
    }
    let zone = found(&run_of("/srv/app", &localtimes_without_zone()));
    assert_eq!(zone.cause.as_deref(), Some("tz-unset"));
    assert_eq!(zone.prove.get(..4).map(|words| words.join(" ")).as_deref(), Some("systoll prove --cure tz-unset:2"));
}

/// Returns the cures of the finding with this cause.
fn cures_of(rec: &Recording, cause: &str) -> Vec<String> {
    let judged = judge(rec, &Catalogue::builtin(), &Options::default());
    let named = |finding: &&Finding| finding.cause.as_deref() == Some(cause);
    let found = judged.findings.iter().find(named).unwrap_or_else(|| panic!("{cause}: {judged:?}"));
    found.stop().iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_changed_in_place_gets_no_buffer() {
    let name = "/srv/table";
    let written = |seeks: bool| {
        rounds(5_000, move |i| {
            let part = call("write", "write", &[5, 0x1000, 2], 2).fd(name).toll(900);
            let place = i * 37 % 4096 * 8;
            let seek = call("lseek", "lseek", &[5, place, 0], place as i64).fd(name);
            let parts = vec![part.clone(), part.clone(), part.clone(), part];
            if seeks { [vec![seek], parts].concat() } else { parts }
        })
    };
    let one_after_another = cures_of(&run_of("/srv/app", &written(false)), "unbuffered-output");
    assert!(one_after_another[0].contains("fopen or fdopen"), "{one_after_another:?}");
    let in_place = cures_of(&run_of("/srv/app", &written(true)), "unbuffered-output");
    assert!(in_place.len() == 1 && in_place[0].contains("pwrite"), "{in_place:?}");
}

#[test]
fn a_search_for_a_free_name_is_not_answered_from_memory() {
    let asked = |makes: bool| {
        rounds(1_000, move |i| {
            let is_there =
                |n: usize| call("access", "access", &[1, 0], 0).path(0, &format!("/srv/out/a-{n}")).toll(900);
            let free = format!("/srv/out/a-{}", 20 + i);
            let last = call("access", "access", &[1, 0], -2).path(0, &free).toll(900);
            let open = call("openat", "open", &[-100i64 as u32 as u64, 1, 0o101, 0o644], 5).path(1, &free);
            let close = call("close", "close", &[5], 0).fd("/srv/out/a");
            let known = (0..20).map(is_there).collect();
            if makes { [known, vec![last, open, close]].concat() } else { known }
        })
    };
    let kept = cures_of(&run_of("/srv/app", &asked(false)), "stat-per-op");
    assert!(kept[0].contains("one fstatat"), "{kept:?}");
    let free = cures_of(&run_of("/srv/app", &asked(true)), "stat-per-op");
    assert!(free.len() == 1 && free[0].contains("keep the next number"), "{free:?}");
}

/// Puts script frames on the stack of the first row, innermost first: file, function, and true if it is in the
/// language's library.
fn with_script(mut rec: Recording, frames: &[(&str, &str, bool)]) -> Recording {
    let mut ids = Vec::new();
    for (file, function, of_library) in frames {
        let class = if *of_library { systoll_model::FrameClass::Runtime } else { systoll_model::FrameClass::User };
        let locations = vec![Location { function: (*function).into(), file: Some((*file).into()), line: Some(12) }];
        rec.frames.push(Frame { class, locations, language: Some(Language::Python), ..Frame::default() });
        ids.push(FrameId(rec.frames.len() as u32 - 1));
    }
    rec.stacks.push(Stack { frames: ids, complete: false });
    rec.rows[0].outer = StackId(rec.stacks.len() as u32 - 1);
    rec
}

#[test]
fn who_does_not_write_the_code_is_told_so_and_what_is_left() {
    let getpid = || rounds(20_000, |_| vec![call("getpid", "getpid", &[], 7)]);
    let python = |frames: &[(&str, &str, bool)]| {
        found(&with_script(run_of("/usr/bin/python3.11 /srv/app.py", &getpid()), frames)).stop().join(" | ")
    };
    let own = ("/srv/app.py", "main", false);
    let says = |text: &str, all: &[&str]| all.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
    // The reader's own code makes the calls, itself or by a library function.
    for frames in [&[own][..], &[("/usr/lib/python3.11/os.py", "f", true), own]] {
        assert_eq!(
            python(frames),
            "PID = os.getpid() once; os.register_at_fork(after_in_child=…) where the program forks"
        );
    }
    // The code of a package makes the calls.
    let package = [("/srv/venv/lib/python3.11/site-packages/pymongo/pool.py", "get", false), own];
    says(&python(&package), &["in the code of pymongo: PID = os.getpid()", "call pymongo less often at app.py:12"]);
    // The language's own library makes the calls.
    let library =
        [("/usr/lib/python3.11/tempfile.py", "rng", true), ("/usr/lib/python3.11/tempfile.py", "mkstemp", true), own];
    says(&python(&library), &["in the code of tempfile: ", "call tempfile less often at app.py:12"]);
    // If the caller has a setting, a change of the package's code is no cure for them.
    let in_logging = |function| ("/usr/lib/python3.11/logging/__init__.py", function, true);
    let logging = [in_logging("makeRecord"), in_logging("info"), own];
    assert_eq!(python(&logging), "logging.logProcesses = False");
    // A program of the system: the reader only runs it.
    let fish = found(&run_of("/usr/bin/postgres", &getpid())).stop().join(" | ");
    says(&fish, &["in the code of postgres: ", "if you only run postgres: tell its authors"]);
    // A user of dd has its option, and can't change its code.
    let dd = found(&run_of("/usr/bin/dd", &reads(0, "/srv/in"))).stop().join(" | ");
    assert_eq!(dd, "bs=64K, and iflag=count_bytes beside count=");
    // A script belongs to its author, not to the author of the shell.
    let script = found(&run_of("/usr/bin/bash build.sh", &getpid())).stop().join(" | ");
    assert_eq!(script, "ask once and keep it, and again after a fork");
}

/// A list of one piece costs little more than the piece: only the difference counts.
#[test]
fn what_saves_a_part_of_a_call_costs_that_part() {
    let lists = rounds(20_000, |_| vec![call("writev", "writev", &[5, 0x1000, 1], 8192).fd("/srv/out").toll(800)]);
    let judged = judge(&run_of("/srv/app", &lists), &Catalogue::builtin(), &Options::default());
    assert!(judged.findings.is_empty(), "{:?}", judged.findings);
    let f = judged.also.first().expect("a remark");
    assert!(f.needless.estimate > 19_000 && f.toll_ns == 16_000_000, "{f:?}");
    assert_eq!(f.needless_toll_ns / f.needless.estimate, 80);
    assert!(f.stop()[0].contains("write, which takes one piece"), "{:?}", f.stop());
}

/// A cause can be bound to languages: PHP's advice is not given for Python.
#[test]
fn a_cause_may_be_for_some_languages_only() {
    let text = "id = \"php-config\"\ntitle = \"t\"\nwhy = \"w\"\n[[match]]\nkinds = [\"repeat\"]\nobjects = [\"*.ini\"]\n\
                languages = [\"php\"]\n[[stop]]\nhow = \"keep it\"\nkind = \"code\"";
    let mut catalogue = Catalogue::builtin();
    catalogue.extend([Catalogue::parse("php-config", text).unwrap()]);
    let cause = |command: &str| {
        let rec = run_of(command, &stats("/srv/app.ini"));
        only(judge(&rec, &catalogue, &Options::default())).cause.unwrap().to_string()
    };
    assert_eq!(
        (cause("/usr/bin/php8.2 a.php"), cause("/usr/bin/python3.11 a.py")),
        ("php-config".into(), "stat-per-op".into())
    );
    for (wrong, part) in
        [("languages = [\"phq\"]", "phq"), ("on = [\"files\"]", "files"), ("language = [\"php\"]", "language")]
    {
        let error = Catalogue::parse("x", &text.replace("languages = [\"php\"]", wrong)).unwrap_err();
        assert!(error.problem.contains(part), "{error}");
    }
}

/// Returns the calls of an awk script that opens a file anew for each line that it appends, with
/// awk's questions about the descriptor.
fn appends_of_awk() -> Vec<Call> {
    const LOG: &str = "/srv/out.a";
    rounds(3_000, |_| {
        let open = call("openat", "openat", &[-100i64 as u32 as u64, 1, 0o2101, 0o666], 4).path(1, LOG).toll(900);
        let fcntl = |what: u64, arg: u64, result| call("fcntl", "fcntl", &[4, what, arg], result).fd(LOG);
        let (asks, sets, flags) = (fcntl(1, 0, 0), fcntl(2, 1, 0), fcntl(3, 0, 0x8401));
        let asks_again = fcntl(1, 0, 1);
        let write = call("write", "write", &[4, 1, 5], 5).fd(LOG);
        let close = call("close", "close", &[4], 0).fd(LOG).toll(300);
        vec![open, asks, sets.clone(), flags.clone(), asks_again, sets, flags, write, close]
    })
}

#[test]
fn claims_of_several_kinds_in_one_row_do_not_hide_a_cause() {
    let finding = found(&run_of("/usr/bin/gawk -f a.awk", &appends_of_awk()));
    assert_eq!(finding.cause.as_deref(), Some("reopen-per-write"), "{finding:?}");
    assert!(finding.syscalls.contains(&systoll_model::Sysno::named("fcntl")), "{:?}", finding.syscalls);
    assert!(finding.cures[0].how.contains("without close(file)"), "{:?}", finding.cures);
}

#[test]
fn an_interpreter_s_own_calls_are_its_authors() {
    let protections = |n: u64| {
        let protect = |how| call("mprotect", "mprotect", &[0x7000_0000, 0x10_0000, how], 0).toll(900);
        rounds(n, move |_| vec![protect(3), protect(5)])
    };
    let of_node = found(&run_of("/opt/node/bin/node app.js", &protections(6_000)));
    let words: Vec<&str> = of_node.cures.iter().map(|cure| cure.how.as_str()).collect();
    assert!(words[0].starts_with("in the code of node: "), "{words:?}");
    assert!(words.iter().any(|how| how.contains("if you only run node")), "{words:?}");
    assert!(!words.iter().any(|how| how.contains("memfd_create")), "{words:?}");
    let of_luajit = found(&run_of("/opt/bin/luajit app.lua", &protections(6_000)));
    assert!(of_luajit.cures[0].how.starts_with("luajit -joff"), "{:?}", of_luajit.cures);
    // A script of awk has no word for a descriptor's flags.
    let flags = rounds(20_000, |_| vec![call("fcntl", "fcntl", &[4, 2, 1], 0).fd("/srv/data").toll(900)]);
    let of_awk = found(&run_of("/usr/bin/awk -f a.awk", &flags));
    assert!(of_awk.cures[0].how.starts_with("in the code of awk: "), "{:?}", of_awk.cures);
    let of_own = found(&run_of("/srv/app", &flags));
    assert!(!of_own.cures.iter().any(|cure| cure.how.contains("in the code of")), "{:?}", of_own.cures);
}

#[test]
fn two_objects_that_are_cured_alike_are_one_finding() {
    let log = |path: &'static str, apis: [&'static str; 3]| {
        rounds(5_000, move |_| {
            let [open, write, close] = apis;
            let open = call("openat", open, &[-100i64 as u32 as u64, 1, 0o2101, 0o644], 5).path(1, path).toll(900);
            let write = call("write", write, &[5, 1, 20], 20).fd(path);
            vec![open, write, call("close", close, &[5], 0).fd(path).toll(300)]
        })
    };
    let both = [log("/srv/a.log", ["open", "write", "close"]), log("/srv/b.log", ["fopen", "fwrite", "fclose"])];
    let finding = found(&run_of("/srv/app", &both.concat()));
    assert_eq!((finding.cause.as_deref(), finding.objects_seen), (Some("reopen-per-write"), 2), "{finding:?}");
}

#[test]
fn a_library_that_is_asked_about_is_not_loaded() {
    let finding = found(&run_of("/srv/app", &stats("/usr/lib/libz.so.1")));
    assert_eq!(finding.cause.as_deref(), Some("stat-per-op"), "{finding:?}");
}

#[test]
fn a_question_before_an_opening_is_left_to_it() {
    // Each of some files is asked about and then opened, again and again.
    let trace = rounds(9_000, |i| {
        let name = format!("/srv/{}", i % 3);
        let open = call("openat", "open", &[-100i64 as u32 as u64, 1, 0, 0], 5).path(1, &name);
        vec![stat(&name, "stat", 5, i).toll(2_000), open, call("close", "close", &[5], 0).fd("/srv/x")]
    });
    let judged = judge(&run_of("/srv/app", &trace), &Catalogue::builtin(), &Options::default());
    let causes: Vec<_> = judged.findings.iter().chain(&judged.also).map(|f| f.cause.as_deref()).collect();
    assert!(causes.contains(&Some("check-then-open")) && !causes.contains(&Some("stat-per-op")), "{causes:?}");
}
