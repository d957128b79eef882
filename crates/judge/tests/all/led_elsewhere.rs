//! Tests of what a program asks again for good reason: names that it gives to other files, bytes that it flushed
//! before, files that it keeps open for a while; each with the sick neighbour.

use crate::common::*;
use systoll_judge::{Finding, Kind};

/// O_RDWR.
const BOTH: u64 = 2;

fn moves(from: &str, to: &str) -> Call {
    call("rename", "rename", &[1, 2], 0).path(0, from).path(1, to).toll(3_000)
}

fn opens(path: &str, flags: u64, fd: i64) -> Call {
    call("openat", "open", &[CWD, 1, flags, 0o600], fd).path(1, path).toll(2_000)
}

fn close(fd: u64, name: &'static str) -> Call {
    call("close", "close", &[fd], 0).fd(name).toll(300)
}

fn told(trace: &[Call]) -> Vec<String> {
    let judgement = judged(trace, BUSY);
    let all = judgement.findings.iter().chain(&judgement.also);
    all.map(|f| f.cause.as_deref().unwrap_or("none").to_owned()).collect()
}

/// Returns the questions about a path and its folders, from the path upwards.
fn resolved(path: &str, ctime: u64, n: u64) -> Vec<Call> {
    let mut calls = vec![stat(path, "realpath:lstat", ctime, n)];
    let mut rest = path;
    while let Some((folder, _)) = rest.rsplit_once('/').filter(|(folder, _)| !folder.is_empty()) {
        calls.push(stat(folder, "realpath:lstat", 1, n));
        rest = folder;
    }
    calls
}

#[test]
fn a_path_to_a_name_that_is_another_file_each_time() {
    let live = "/srv/site/etc/live.php";
    let swapped = |n: u64| [vec![moves("/srv/site/etc/live.new", live)], resolved(live, 1_000 + n, n)].concat();
    assert_eq!(told(&rounds(3_000, swapped)), Vec::<String>::new());
    // Moved once, and asked about ever since; moved each time, though another name is asked about.
    let once = |n: u64| [if n == 0 { vec![moves("/srv/new", live)] } else { vec![] }, resolved(live, 1, n)].concat();
    let beside = |n: u64| [vec![moves("/srv/site/a", "/srv/site/b")], resolved("/var/www/html/page", 1, n)].concat();
    for sick in [rounds(3_000, once), rounds(3_000, beside)] {
        assert!(told(&sick).iter().any(|cause| cause == "stat-per-op"), "{:?}", told(&sick));
    }
}

#[test]
fn a_link_that_leads_elsewhere_each_time() {
    let link = |path: &str, to: &str| {
        let (result, bytes) = if to.is_empty() { (-22, vec![]) } else { (to.len() as i64, to.as_bytes().to_vec()) };
        let asks = call("readlink", "realpath", &[1, 0x1000, 4_096], result).path(0, path).toll(700);
        if bytes.is_empty() { asks } else { asks.output(1, &bytes) }
    };
    let walk = |to: &str| {
        let path = format!("/srv/{to}");
        vec![link("/srv", ""), link("/srv/current", to), link("/srv", ""), link(&path, "")]
    };
    let walk = &walk;
    let swapped = |n: u64| {
        let to = ["r0", "r1", "r2"][n as usize % 3];
        [vec![moves("/srv/next", "/srv/current")], walk(to)].concat()
    };
    assert_eq!(told(&rounds(3_000, swapped)), Vec::<String>::new());
    assert_eq!(told(&rounds(3_000, |_| walk("r0"))), ["path-canonicalise"]);
}

#[test]
fn files_in_memory_are_no_devices() {
    let state = |file: &'static str| {
        rounds(5_000, move |n| {
            vec![
                call("ftruncate", "ftruncate", &[4, 0], 0).fd(file).toll(900),
                call("pwrite64", "pwrite", &[4, 0x1000, 8 + n % 4, 0], (8 + n % 4) as i64).fd(file).toll(600),
            ]
        })
    };
    let of = |file| judged(&state(file), BUSY).findings.iter().map(|f| (f.kind, f.calls)).collect::<Vec<_>>();
    assert_eq!(of("/dev/shm/state"), of("/srv/state"));
    assert!(!of("/dev/shm/state").is_empty() && of("/dev/sdb").is_empty());
}

#[test]
fn a_flush_of_a_file_that_was_only_renamed_since() {
    let write = |name| call("write", "write", &[4, 0x1000, 4_096], 4_096).fd(name).toll(600);
    let sync = |fd: u64, name| call("fsync", "fsync", &[fd], 0).fd(name).waited(900_000).toll(20_000);
    let kept = |then: Vec<Call>| {
        let file =
            [opens("/srv/new", 0o1101, 4), write("/srv/new"), sync(4, "/srv/new"), moves("/srv/new", "/srv/state")];
        [file.to_vec(), then, vec![close(4, "/srv/state")]].concat()
    };
    let unsure = |trace: &[Call]| {
        let judgement = judged(trace, BUSY);
        assert!(judgement.findings.is_empty(), "{judgement:#?}");
        judgement.untold.calls
            + judgement.untold.unsure_calls
            + judgement.also.iter().map(|f| f.needless.estimate).sum::<u64>()
    };
    let again = rounds(1_000, |_| kept(vec![sync(4, "/srv/state")]));
    assert!(unsure(&again) >= 900, "the bytes were on the disk");
    // The folder holds the new name, and what is written in between is not on the disk.
    let folder = rounds(1_000, |_| kept(vec![sync(5, "/srv")]));
    let written = rounds(1_000, |_| kept(vec![write("/srv/state"), sync(4, "/srv/state")]));
    assert!(unsure(&folder) < 20 && unsure(&written) < 20);
}

#[test]
fn a_file_that_is_locked_and_not_written() {
    let lock = |kind: u64| call("flock", "flock", &[4, kind], 0).fd("/srv/lock").toll(400);
    let locked = |name: &'static str, work: Vec<Call>| {
        [vec![opens(name, BOTH, 4), lock(2)], work, vec![close(4, name)]].concat()
    };
    let f = only(judged(&rounds(3_000, |_| locked("/srv/lock", vec![])), BUSY));
    is(&f, Kind::Toggle, "lock-per-line");
    assert!(f.stop()[0].contains("stays open"), "{f:#?}");
}

#[test]
fn a_list_of_open_files_that_is_too_short() {
    const NAMES: [&str; 6] = ["/srv/0", "/srv/1", "/srv/2", "/srv/3", "/srv/4", "/srv/5"];
    let read = |fd: u64, name| call("pread64", "pread", &[fd, 0x1000, 100, 0], 100).fd(name).toll(500);
    // Four files are open at a time.
    let turns = rounds(3_000, |n| {
        let (next, oldest) = (NAMES[n as usize % 6], NAMES[(n as usize + 2) % 6]);
        vec![close(4 + n % 4, oldest), opens(next, BOTH, (4 + n % 4) as i64), read(4 + n % 4, next)]
    });
    let f = only(judged(&turns, BUSY));
    is(&f, Kind::Toggle, "reopen-per-part");
    assert!(f.stop()[0].contains("room for more files") && f.stop().len() == 1, "{:?}", f.stop());
    // One file at a time: no list at all.
    let one = rounds(3_000, |n| {
        let name = NAMES[n as usize % 6];
        vec![opens(name, BOTH, 4), read(4, name), close(4, name)]
    });
    let f = only(judged(&one, BUSY));
    is(&f, Kind::Toggle, "reopen-per-part");
    assert!(f.stop().iter().all(|how| !how.contains("room for more files")), "{:?}", f.stop());
}

#[test]
fn what_is_written_under_a_lock_that_others_want_is_not_joined() {
    let work = |waited: u64| {
        let lock = |kind: u64| call("flock", "flock", &[3, kind], 0).fd("/srv/lock").toll(400);
        let write = call("write", "write", &[4, 0x1000, 60], 60).fd("/srv/data").toll(600);
        rounds(5_000, move |_| vec![lock(2).waited(waited), write.clone(), lock(8)])
    };
    silent(&work(30_000), BUSY);
    assert_eq!(told(&work(0)), ["lock-per-line"]);
    // Closing the file of the lock leaves it.
    let lock = call("flock", "flock", &[3, 2], 0).fd("/srv/lock").toll(400).waited(30_000);
    let write = call("write", "write", &[4, 0x1000, 60], 60).fd("/srv/data").toll(600);
    let closes =
        rounds(5_000, move |_| vec![opens("/srv/lock", BOTH, 3), lock.clone(), write.clone(), close(3, "/srv/lock")]);
    assert!(!told(&closes).iter().any(|cause| cause == "unbuffered-output"), "{:?}", told(&closes));
}

#[test]
fn files_that_are_opened_once_and_kept_are_not_opened_for_each_record() {
    const NAMES: [&str; 4] = ["/srv/0", "/srv/1", "/srv/2", "/srv/3"];
    let write = |fd: u64, name| call("write", "write", &[fd, 0x1000, 4_000], 4_000).fd(name).toll(900);
    let open_all = || NAMES.iter().zip(4..).map(|(name, fd)| opens(name, 0o2001, fd));
    // Opened to make them, and once more to write to them.
    let made = NAMES.iter().zip(4..).flat_map(|(name, fd)| [opens(name, 0o101, fd), close(fd as u64, name)]);
    let kept = |n: u64| vec![write(4 + n % 4, NAMES[n as usize % 4])];
    let trace: Vec<Call> = made.chain(open_all()).chain(rounds(3_000, kept)).collect();
    assert_eq!(told(&trace), Vec::<String>::new());
    let anew = rounds(3_000, |n| {
        let name = NAMES[n as usize % 4];
        vec![opens(name, 0o2001, 4), write(4, name), close(4, name)]
    });
    assert_eq!(told(&anew), ["reopen-per-write"]);
}

#[test]
fn the_way_back_is_asked_for_each_time() {
    let goes = |to: &str| call("chdir", "chdir", &[1], 0).path(0, to).toll(700);
    let asks = || call("getcwd", "getcwd", &[0x1000, 4_096], 6).output(0, b"/srv/a\0").toll(400);
    let work = |n: u64| stat("f", "stat", 1_000 + n, n);
    let there = |n: u64| vec![asks(), goes(&format!("/srv/k{}", n % 8)), work(n), goes("/srv/a")];
    let claimed = |trace: &[Call]| {
        let judgement = judged(trace, BUSY);
        let of = |f: &&Finding| f.cause.as_deref() == Some("cwd-toggle");
        judgement.findings.iter().find(of).map_or(0, |f| f.needless.estimate)
    };
    assert!(claimed(&rounds(5_000, there)) > 14_000);
    // A relative way there, and rounds that are longer than half a window.
    let relative = |n: u64| vec![asks(), goes("k"), work(n), goes("/srv/a")];
    assert!(claimed(&rounds(5_000, relative)) > 14_000);
    let long = |n: u64| {
        let writes = (0..20).map(|_| call("write", "write", &[5, 0x1000, 9_000], 9_000).fd("/srv/out").toll(100));
        [vec![goes(&format!("/srv/k{}", n % 8)), work(n)], writes.collect(), vec![goes("/srv/a")]].concat()
    };
    assert!(claimed(&rounds(3_000, long)) > 5_000);
    // On and on, and never back.
    assert_eq!(claimed(&rounds(5_000, |n| vec![goes(&format!("/srv/k{}", n % 8)), work(n)])), 0);
}

#[test]
fn a_counter_under_a_lock_is_a_remark_at_most() {
    let lock = |kind: u64| call("flock", "flock", &[3, kind], 0).fd("/srv/count").toll(400);
    let counts = |n: u64| {
        let digits = n.to_string();
        let size = digits.len() as u64;
        let read = call("pread64", "pread", &[3, 0x1000, 20, 0], size as i64).output(1, digits.as_bytes());
        let write = call("pwrite64", "pwrite", &[3, 0x1000, size, 0], size as i64);
        vec![lock(2), read.fd("/srv/count").toll(300), write.fd("/srv/count").toll(500), lock(8)]
    };
    let judgement = judged(&rounds(5_000, counts), BUSY);
    assert!(judgement.findings.is_empty(), "{judgement:#?}");
    assert!(judgement.also.iter().any(|f| f.cause.as_deref() == Some("lock-per-line")), "{judgement:#?}");
}

#[test]
fn a_file_that_changes_between_most_looks_is_asked_for_its_news() {
    let looks = |every: u64| rounds(4_000, move |n| vec![stat("/srv/feed", "stat", n / every, n)]);
    assert_eq!(told(&looks(1)), Vec::<String>::new());
    let mostly = rounds(4_000, |n| vec![stat("/srv/feed", "stat", n - n / 4, n)]);
    assert_eq!(told(&mostly), Vec::<String>::new());
    assert_eq!(told(&looks(100)), ["stat-per-op"]);
}
