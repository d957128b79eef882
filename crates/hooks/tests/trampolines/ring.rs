//! Tests of windows that threads write by themselves: every call in them is right, whatever happens in between.

use crate::counts::TIMED;
use crate::lab::{Lab, apart, half, image_words};
use crate::server::Server;
use crate::signals::Timer;
use crate::threads::wait;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use systoll_hooks::assemble::{Losses, Options};
use systoll_hooks::layout::{IMAGE, Question, image, ring, slot, slot_address, want, windows};
use systoll_hooks::ring_reader::{Read, WrittenCall, written_calls};

pub(crate) const WINDOWS: Options = Options { windows: true, ..TIMED };
pub(crate) const READ: u32 = 0;
const READV: u32 = 19;
const CLOSE: u32 = 3;
pub(crate) const STAT: u32 = 4;
const MUNMAP: u32 = 11;
const DUP: u32 = 32;
const FORK: u32 = 57;
const FCNTL: u32 = 72;
pub(crate) const GETPPID: u32 = 110;
pub(crate) const GETPGRP: u32 = 111;
pub(crate) const OPENAT: u32 = 257;
pub(crate) const BAD: u64 = 0x6666_0000;

pub(crate) fn lab() -> Lab {
    lab_with(WINDOWS)
}

pub(crate) fn lab_with(options: Options) -> Lab {
    let mut file = crate::counts::file();
    file.wrapper("stat", STAT);
    file.wrapper("munmap", MUNMAP);
    file.wrapper("dup", DUP);
    file.wrapper("fcntl", FCNTL);
    file.wrapped("fork", FORK);
    let openat = file.wrapper("openat", OPENAT);
    file.repeat("openats", openat);
    file.wrapper("readv", READV);
    let lab = Lab::new(file, options);
    half(IMAGE + image::WINDOWS).store(windows::OWN, SeqCst);
    lab
}

pub(crate) fn word(index: u64, offset: u64) -> &'static AtomicU64 {
    &image_words()[(slot_address(index) - IMAGE + offset) as usize / 8]
}

/// Returns the calls in buffer `n` of a slot.
fn buffer(index: u64, n: u64) -> Vec<WrittenCall<'static>> {
    let from = slot::RINGS + n * ring::BUFFER;
    let words = (0..ring::BUFFER).step_by(8).map(|at| word(index, from + at).load(SeqCst));
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    // The bytes leak, which does no harm: a test ends soon.
    let bytes: &'static [u8] = bytes.leak();
    written_calls(bytes, n, word(index, slot::RING_HEADERS + n * ring::HEADER + ring::LEN).load(SeqCst)).collect()
}

/// Returns the numbers of a slot's buffers that are in `state`.
pub(crate) fn in_state(index: u64, state: u64) -> Vec<u64> {
    let state_of = |n: &u64| word(index, slot::RING_HEADERS + n * ring::HEADER + ring::STATE).load(SeqCst);
    (0..ring::COUNT).filter(|n| state_of(n) == state).collect()
}

/// Takes the windows that a slot's thread has written, as the launcher does.
pub(crate) fn drain(index: u64) -> Vec<Vec<WrittenCall<'static>>> {
    let written = in_state(index, ring::state::WRITTEN);
    let taken = |n: &u64| {
        let calls = buffer(index, *n);
        word(index, slot::RING_HEADERS + n * ring::HEADER + ring::STATE).store(ring::state::FREE, SeqCst);
        calls
    };
    written.iter().map(taken).collect()
}

/// Returns the calls of the window that a slot's thread is writing.
pub(crate) fn open(index: u64) -> Vec<WrittenCall<'static>> {
    let all = in_state(index, ring::state::WRITING);
    assert!(all.len() <= 1, "{all:?}");
    all.first().map_or_else(Vec::new, |n| buffer(index, *n))
}

pub(crate) fn piece<'b>(call: &WrittenCall<'b>, argument: u8, read: Read) -> Option<&'b [u8]> {
    call.pieces().find(|p| (p.argument, p.read) == (argument, read)).map(|p| p.bytes)
}

/// Returns the bytes of a string, up to its end.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap()
}

#[test]
fn a_call_is_written_whole() {
    apart("ring::a_call_is_written_whole", || {
        let lab = lab();
        lab.enter(0);
        let server = Server::opening(&[], 1);
        let (path, mut status, mut bytes) = (c"/etc/passwd", [0u64; 18], [0u8; 100]);
        assert_eq!(lab.call("stat", &[path.as_ptr() as u64, status.as_mut_ptr() as u64]), 0);
        let fd = lab.call("openat", &[libc::AT_FDCWD as u32 as u64, path.as_ptr() as u64, 0]);
        assert!(fd > 0);
        assert_eq!(lab.call("read", &[fd as u64, bytes.as_mut_ptr() as u64, 10]), 10);
        assert_eq!(lab.call("read", &[fd as u64, bytes.as_mut_ptr() as u64 + 10, 20]), 20);
        assert_eq!(lab.call("close", &[fd as u64]), 0);
        assert_eq!(lab.call("close", &[fd as u64]), -i64::from(libc::EBADF));
        assert_eq!(lab.call("munmap", &[BAD, 4096]), 0);
        server.stop();
        let calls = open(0);
        let [stat, open, read, again, close, bad, unmapped] = calls.as_slice() else { panic!("{calls:?}") };
        let results: Vec<_> = calls.iter().map(|c| (c.number, c.nth, c.result.unwrap())).collect();
        let expected = [
            (STAT, 1, 0),
            (OPENAT, 1, fd),
            (READ, 1, 10),
            (READ, 2, 20),
            (CLOSE, 1, 0),
            (CLOSE, 2, -i64::from(libc::EBADF)),
            (MUNMAP, 1, 0),
        ];
        assert_eq!(results, expected);
        assert_eq!(read.args[..3], [fd as u64, bytes.as_ptr() as u64, 10]);
        assert!(calls.iter().all(|c| c.cycles > 0 && !c.after_gap && c.waited.is_some()));
        assert!(calls.windows(2).all(|two| two[0].time + two[0].cycles < two[1].time));
        assert_eq!(text(piece(stat, 0, Read::Entry).unwrap()), path.to_bytes());
        let status: Vec<u8> = status.iter().flat_map(|w| w.to_ne_bytes()).collect();
        assert_eq!(piece(stat, 1, Read::Return).unwrap(), status);
        assert_eq!(text(piece(open, 1, Read::Entry).unwrap()), path.to_bytes());
        assert_eq!(piece(read, 1, Read::Return).unwrap(), &bytes[..10]);
        assert_eq!(piece(again, 1, Read::Return).unwrap(), &bytes[10..30]);
        // The name is read once, and again when the descriptor may stand for another file.
        assert_eq!(piece(read, 0, Read::Name).unwrap(), path.to_bytes());
        assert!(again.pieces().chain(close.pieces()).all(|p| p.read != Read::Name));
        assert_eq!(bad.pieces, [None; 6]);
        assert!(unmapped.faults.is_some_and(|n| n > 100) && stat.faults.is_none());
    });
}

/// Tests every way to a new descriptor: its name is asked for, or follows from arguments.
#[test]
fn names_that_follow_are_not_asked_for() {
    apart("ring::names_that_follow_are_not_asked_for", || {
        let lab = lab();
        lab.enter(0);
        let server = Server::opening(&[], 1);
        let opens = |folder: i64, path: &std::ffi::CStr, flags: i32| {
            lab.call("openat", &[folder as u64, path.as_ptr() as u64, flags as u64])
        };
        let mut byte = [0u8];
        // The launcher is asked only if the name does not follow from arguments.
        let mut reads = |fd: i64| lab.call("read", &[fd as u64, byte.as_mut_ptr() as u64, 1]);
        let mut expected = Vec::new();
        let etc = opens(i64::from(libc::AT_FDCWD), c"/etc", libc::O_DIRECTORY | libc::O_NOFOLLOW);
        expected.push((OPENAT, false, None));
        let long = std::ffi::CString::new(vec![b'a'; 255]).unwrap();
        for (path, flags, follows) in [
            (c"passwd", libc::O_NOFOLLOW, true),
            (c"passwd", 0, false),
            (c"./passwd", libc::O_NOFOLLOW, false),
            (c".", libc::O_NOFOLLOW, false),
            (c"..", libc::O_NOFOLLOW, false),
            (c"ssl/certs", libc::O_NOFOLLOW, false),
            (c"ssl", libc::O_NOFOLLOW | libc::O_DIRECTORY, true),
            (c"nothing", libc::O_NOFOLLOW, false),
            (long.as_c_str(), libc::O_NOFOLLOW, false),
        ] {
            let fd = opens(etc, path, flags);
            let first = expected.len() == 1;
            expected.push((OPENAT, follows && fd >= 0, first.then_some("/etc")));
            if fd >= 0 {
                reads(fd);
                let real = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
                let real: &'static str = real.into_os_string().into_string().unwrap().leak();
                expected.push((READ, false, (!follows).then_some(real)));
                lab.call("close", &[fd as u64]);
                expected.push((CLOSE, false, None));
            }
        }
        let copy = lab.call("dup", &[etc as u64]);
        expected.push((DUP, true, None));
        reads(copy);
        expected.push((READ, false, None));
        let other = lab.call("fcntl", &[copy as u64, libc::F_DUPFD_CLOEXEC as u64, 0]);
        expected.push((FCNTL, true, None));
        assert_eq!(lab.call("fcntl", &[other as u64, libc::F_GETFD as u64]), 1);
        expected.push((FCNTL, false, None));
        server.stop();
        let calls = open(0);
        let name = |call: &WrittenCall<'_>| piece(call, 0, Read::Name).map(|n| String::from_utf8(n.to_vec()).unwrap());
        let seen: Vec<_> = calls.iter().map(|c| (c.number, c.names, name(c))).collect();
        assert!(calls.len() < 32, "{}", calls.len());
        let expected: Vec<_> =
            expected.into_iter().map(|(n, names, name)| (n, names, name.map(str::to_owned))).collect();
        assert_eq!(seen, expected);
    });
}

/// Maps two pages and unmaps the second. Returns the address of the first.
fn page_at_an_edge() -> u64 {
    // SAFETY: the mappings are new, and the kernel chooses their place.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), 8192, 3, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        assert_eq!(libc::munmap(at.byte_add(4096), 4096), 0);
        at as u64
    }
}

#[test]
fn pointers_that_are_wrong_harm_nothing() {
    apart("ring::pointers_that_are_wrong_harm_nothing", || {
        for threads in [0, 1] {
            crate::forked(|| wrong_pointers(threads));
        }
    });
}

fn wrong_pointers(threads: u32) {
    let lab = lab();
    lab.enter(0);
    half(IMAGE + image::THREADS).store(threads, SeqCst);
    let server = Server::opening(&[], 1);
    let edge = page_at_an_edge() + 4096;
    // SAFETY: the nine bytes are the last of a page of ours.
    unsafe { std::ptr::copy_nonoverlapping(c"/etc/pass".as_ptr(), (edge - 9) as *mut libc::c_char, 9) };
    let efault = -i64::from(libc::EFAULT);
    let kernel = 0xffff_8000_0000_0000;
    for at in [BAD, kernel, edge, edge - 9, 1, u64::MAX] {
        assert_eq!(lab.call("stat", &[at, BAD]), efault, "{at:#x}");
    }
    // Strings end right before the unmapped page, or cross the end of a page.
    let whole = page_at_an_edge() + 4096;
    // SAFETY: the ten bytes are the last of a page of ours.
    unsafe { std::ptr::copy_nonoverlapping(c"/etc/pass".as_ptr(), (whole - 10) as *mut libc::c_char, 10) };
    assert_eq!(lab.call("stat", &[whole - 10, BAD]), -i64::from(libc::ENOENT));
    // SAFETY: the mapping is new; only two of its three pages are written.
    let across = unsafe {
        let at = libc::mmap(std::ptr::null_mut(), 8192, 3, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) as u64;
        std::ptr::copy_nonoverlapping(c"/etc/pass".as_ptr(), (at + 4091) as *mut libc::c_char, 10);
        at + 4091
    };
    assert_eq!(lab.call("stat", &[across, BAD]), -i64::from(libc::ENOENT));
    server.stop();
    let calls = open(0);
    let texts: Vec<_> = calls.iter().map(|c| piece(c, 0, Read::Entry)).collect();
    // A call that did not read a string to its end does not show that it is readable, so the string is not copied.
    assert_eq!(texts[..6], [None; 6]);
    for text_of in &texts[6..] {
        assert_eq!(text(text_of.unwrap()), b"/etc/pass");
    }
    assert!(calls.iter().all(|c| piece(c, 1, Read::Return).is_none()));
}

#[test]
fn places_are_drawn_in_every_half_octave() {
    apart("ring::places_are_drawn_in_every_half_octave", || {
        let lab = lab();
        lab.enter(0);
        let server = Server::opening(&[], 1);
        let mut begun: Vec<u64> = Vec::new();
        for _ in 0..500 {
            lab.call("getppid 1", &[100]);
            begun.extend(drain(0).iter().map(|w| w[0].nth));
        }
        let asked = server.stop();
        assert_eq!(asked.questions.iter().filter(|q| q.0 != Question::Context).count(), 0);
        // From call 48 on, each half of an octave has a window, unless another is open.
        assert_eq!(begun[0], 1);
        let halves: Vec<(u32, u64)> = begun.iter().map(|n| (n.ilog2(), n >> (n.ilog2().max(1) - 1) & 1)).collect();
        assert!(halves.windows(2).all(|two| two[0] != two[1]), "{begun:?}");
        for half in (7..15).flat_map(|octave| [(octave, 0), (octave, 1)]) {
            assert!(halves.contains(&half), "{half:?} {begun:?}");
        }
        assert_eq!(lab.total(GETPPID), (50_000, 50_000, 0, 0));
        assert_eq!(word(0, slot::RING_REFUSED).load(SeqCst), 0);
    });
}

static GETPGRP_AT: AtomicU64 = AtomicU64::new(0);
static HANDLED: AtomicU64 = AtomicU64::new(0);

fn call_at(address: u64) -> i64 {
    // SAFETY: the address is that of a generated function without arguments.
    let function = unsafe { std::mem::transmute::<u64, extern "C" fn() -> i64>(address) };
    function()
}

/// Calls the hooked getpgrp twice.
extern "C" fn handler(_: i32) {
    HANDLED.fetch_add(1, SeqCst);
    for _ in 0..2 {
        call_at(GETPGRP_AT.load(SeqCst));
    }
}

/// Calls that handlers have interrupted at the same time after they were counted and before they were written, at most.
const INTERRUPTED: u64 = 2;

/// Checks the calls of a window: their arguments and results, and that every gap between them is marked. Returns the
/// number of calls, counted before others of the same node, that are not written: they may come later, if handlers
/// interrupted them before they were written.
pub(crate) fn check(window: &[WrittenCall<'_>], results: &HashMap<u32, i64>, cookie: u64) -> u64 {
    let mut last: HashMap<u64, u64> = HashMap::new();
    let mut pending = 0;
    // A handler may have interrupted calls that were counted before the window began, or in a gap.
    let mut from_before = INTERRUPTED;
    for call in window {
        let Some(result) = results.get(&call.number) else { panic!("{call:?}") };
        assert!(call.result.is_none() || call.result == Some(*result), "{call:?}");
        assert!(call.number != GETPPID || call.args[0] == cookie, "{call:?}");
        if call.after_gap {
            last.clear();
            (pending, from_before) = (0, INTERRUPTED);
        }
        match last.insert(call.node, call.nth) {
            Some(before) if before == call.nth && pending > 0 => pending -= 1,
            Some(before) if before == call.nth && from_before > 0 => from_before -= 1,
            Some(before) => pending += call.nth.checked_sub(before + 1).unwrap_or_else(|| panic!("{before} {call:?}")),
            None => {}
        }
    }
    pending
}

#[test]
fn handlers_calls_are_written_in_between() {
    apart("ring::handlers_calls_are_written_in_between", || {
        for flags in [libc::SA_RESTART, libc::SA_RESTART | libc::SA_NODEFER] {
            crate::forked(|| {
                let lab = lab();
                lab.enter(0);
                GETPGRP_AT.store(lab.address("getpgrp"), SeqCst);
                let server = Server::opening(&[], 1);
                // SAFETY: these calls take no arguments.
                let results = unsafe {
                    HashMap::from([(GETPPID, i64::from(libc::getppid())), (GETPGRP, i64::from(libc::getpgrp()))])
                };
                let timer = Timer::start(libc::SIGALRM, handler as *const (), flags, Duration::from_micros(100));
                let (mut made, mut written, mut between, mut gaps) = (0, 0, 0, 0);
                let begun = Instant::now();
                // Other work may delay the timer, so continue until there is enough to check.
                let enough = |written, between, gaps| written > 10_000 && between > 50 && gaps > 5;
                while begun.elapsed() < Duration::from_secs(3)
                    || !enough(written, between, gaps) && begun.elapsed() < Duration::from_secs(60)
                {
                    if word(0, slot::WANT).load(SeqCst) == want::NOTHING {
                        word(0, slot::WANT).store(want::RING, SeqCst);
                    }
                    lab.call("getppid 1", &[40, 0x4711]);
                    made += 40;
                    for window in drain(0) {
                        let pending = check(&window, &results, 0x4711);
                        // Only a handler that another one interrupts is counted before calls of the same node.
                        let nests = flags & libc::SA_NODEFER != 0 && window.len() as u64 == ring::CALLS;
                        assert!(pending == 0 || nests, "{window:?}");
                        written += window.len();
                        between += window.iter().filter(|c| c.number == GETPGRP).count();
                        gaps += window.iter().filter(|c| c.after_gap).count();
                    }
                }
                drop(timer);
                server.stop();
                let handled = HANDLED.load(SeqCst);
                assert_eq!(lab.total(GETPPID), (made, made, 0, 0));
                assert_eq!(lab.total(GETPGRP), (2 * handled, 2 * handled, 0, 0));
                assert!(enough(written, between, gaps), "{written} {between} {gaps}");
                assert_eq!(Losses { unasked: 0, ..lab.read().losses }, Losses::default());
            });
        }
    });
}

#[test]
fn a_call_that_a_handler_interrupts_has_its_own_result() {
    apart("ring::a_call_that_a_handler_interrupts_has_its_own_result", || {
        let lab = lab();
        lab.enter(0);
        GETPGRP_AT.store(lab.address("getpgrp"), SeqCst);
        let server = Server::opening(&[], 1);
        let mut ends = [0; 2];
        // SAFETY: pipe writes two numbers into an array of two.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        lab.call("getpgrp", &[]);
        let timer = Timer::start(libc::SIGALRM, handler as *const (), 0, Duration::from_millis(20));
        let mut byte = 0u8;
        let read = lab.call("read", &[ends[0] as u64, (&raw mut byte) as u64, 1]);
        drop(timer);
        server.stop();
        assert_eq!(read, -i64::from(libc::EINTR));
        let calls = open(0);
        let at = calls.iter().position(|c| c.number == READ).unwrap();
        assert_eq!(calls[at].result, Some(read));
        assert!(calls.len() > at + 2 && calls[at + 1..].iter().all(|c| c.number == GETPGRP && c.result > Some(0)));
        assert!(calls.windows(2).all(|two| two[0].time < two[1].time));
    });
}

#[test]
fn threads_write_their_own() {
    apart("ring::threads_write_their_own", || {
        let lab = lab();
        half(IMAGE + image::THREADS).store(1, SeqCst);
        let server = Server::opening(&[], 1);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..3u64)
                .map(|index| {
                    let (lab, done) = (&lab, &done);
                    scope.spawn(move || {
                        lab.enter(index);
                        // The path does not lie on the stack, so it is copied only if it is known to be readable.
                        let mut path = format!("/nowhere/of/{index}").into_bytes().into_boxed_slice().into_vec();
                        path.push(0);
                        let mut seen = 0;
                        while !done.load(SeqCst) {
                            if word(index, slot::WANT).load(SeqCst) == want::NOTHING {
                                word(index, slot::WANT).store(want::RING, SeqCst);
                            }
                            lab.call("openats", &[40, libc::AT_FDCWD as u32 as u64, path.as_ptr() as u64, 0]);
                            for call in drain(index).into_iter().flatten() {
                                assert_eq!(call.result, Some(-i64::from(libc::ENOENT)));
                                assert_eq!(text(piece(&call, 1, Read::Entry).unwrap()), text(&path));
                                seen += 1;
                            }
                        }
                        seen
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_secs(1));
            done.store(true, SeqCst);
            for thread in all {
                assert!(thread.join().unwrap() > 100);
            }
        });
        server.stop();
        assert_eq!(lab.read().losses, Losses::default());
    });
}

#[test]
fn a_forked_process_has_no_window_of_its_makers() {
    apart("ring::a_forked_process_has_no_window_of_its_makers", || {
        let lab = lab();
        lab.enter(0);
        let server = Server::opening(&[], 1);
        lab.call("getppid 1", &[5]);
        let child = lab.call("fork", &[]);
        if child == 0 {
            lab.call("getppid 1", &[5]);
            let nothing = word(1, slot::WANT).load(SeqCst) == want::NOTHING && open(1).is_empty();
            word(1, slot::WANT).store(want::RING, SeqCst);
            lab.call("getppid 1", &[7]);
            let own = open(1);
            let me = i64::from(std::process::id());
            let good = nothing && own.len() == 7 && own.iter().all(|c| c.result.is_some_and(|r| r < me));
            lab.call("exit_group", &[u64::from(!good)]);
        }
        assert_eq!(wait(child), 0);
        lab.call("getppid 1", &[3]);
        server.stop();
        let numbers: Vec<_> = open(0).iter().map(|c| c.number).collect();
        assert_eq!(numbers, [[GETPPID; 5].as_slice(), &[FORK], &[GETPPID; 3]].concat());
        assert!(open(0).iter().all(|c| c.result.is_some_and(|r| r > 0)));
        assert_eq!(open(0)[5].result, Some(child));
    });
}

static FORK_AT: AtomicU64 = AtomicU64::new(0);

/// Forks if an address is in `FORK_AT`. Both processes then continue with what was interrupted.
extern "C" fn forker(_: i32) {
    let address = FORK_AT.swap(0, SeqCst);
    if address != 0 {
        assert!(call_at(address) >= 0);
    }
}

/// Runs `look` with SIGALRM blocked. Otherwise a child that is forked in the middle of it would go on reading its
/// parent's slot, whose buffers the parent fills again.
fn alone<T>(look: impl FnOnce() -> T) -> T {
    // SAFETY: the sets lie in this frame, and the C library's own function is not hooked.
    unsafe {
        let (mut alarm, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&raw mut alarm);
        libc::sigaddset(&raw mut alarm, libc::SIGALRM);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const alarm, &raw mut before);
        let told = look();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        told
    }
}

#[test]
fn both_processes_continue_after_a_fork_in_a_handler() {
    apart("ring::both_processes_continue_after_a_fork_in_a_handler", || {
        let lab = lab();
        lab.enter(0);
        let server = Server::opening(&[], 1);
        let (me, path) = (std::process::id(), c"/nowhere/at/all".to_owned());
        let open = |n| lab.call("openats", &[n, libc::AT_FDCWD as u32 as u64, path.as_ptr() as u64, 0]);
        // The thread learns all contexts first, so no child asks about one.
        open(1);
        if call_at(lab.address("fork")) == 0 {
            lab.call("exit_group", &[0]);
        }
        let leave_if_child = || {
            // SAFETY: the call takes no arguments, and the C library's own getpid is not hooked.
            if unsafe { libc::getpid() } as u32 != me {
                assert_eq!(open(50), -i64::from(libc::ENOENT));
                lab.call("exit_group", &[0]);
            }
        };
        let timer = Timer::start(libc::SIGALRM, forker as *const (), libc::SA_RESTART, Duration::from_micros(1_300));
        let mut written = 0;
        for _ in 0..40 {
            FORK_AT.store(lab.address("fork"), SeqCst);
            while FORK_AT.load(SeqCst) != 0 {
                if word(0, slot::WANT).load(SeqCst) == want::NOTHING {
                    word(0, slot::WANT).store(want::RING, SeqCst);
                }
                assert_eq!(open(50), -i64::from(libc::ENOENT));
                leave_if_child();
                for call in alone(|| drain(0)).into_iter().flatten().filter(|c| c.number == OPENAT) {
                    // If a child was forked in the middle of this call, only the child returned from it: there is no
                    // result here.
                    let Some(result) = call.result else { continue };
                    assert_eq!(text(piece(&call, 1, Read::Entry).unwrap()), path.to_bytes());
                    assert_eq!(result, -i64::from(libc::ENOENT));
                    written += 1;
                }
            }
            // A child may have been forked behind the check above.
            leave_if_child();
            let mut status = 0;
            // SAFETY: waits for a child of ours, if one has ended.
            while unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } > 0 {
                assert_eq!(status, 0);
            }
        }
        drop(timer);
        let mut status = 0;
        // SAFETY: waits for a child of ours.
        while unsafe { libc::wait(&raw mut status) } > 0 {
            assert_eq!(status, 0);
        }
        server.stop();
        assert!(written > 1_000, "{written}");
    });
}

#[test]
#[allow(clippy::print_stderr, reason = "a figure to be read")]
fn a_written_call_costs_little() {
    apart("ring::a_written_call_costs_little", || {
        let lab = lab();
        lab.enter(0);
        let server = Server::opening(&[], 1);
        let path = c"/etc/passwd";
        let mut least = [f64::MAX; 4];
        let mut time = |at: usize, name: &str, arguments: &[u64], rings: bool| {
            let mut arguments = arguments.to_vec();
            arguments.insert(0, ring::CALLS);
            for _ in 0..2_000 {
                word(0, slot::WANT).store(if rings { want::RING } else { want::NOTHING }, SeqCst);
                let begun = Instant::now();
                lab.call(name, &arguments);
                least[at] = least[at].min(begun.elapsed().as_nanos() as f64 / ring::CALLS as f64);
                word(0, slot::RING_HEADERS + ring::STATE).store(ring::state::FREE, SeqCst);
            }
        };
        lab.call("getppid 1", &[1 << 21]);
        lab.call("openats", &[1 << 19, 0, 0, 0]);
        time(0, "getppid 1", &[], false);
        time(1, "getppid 1", &[], true);
        let open = [u64::MAX, path.as_ptr() as u64, 0xffff_ffff];
        time(2, "openats", &open, false);
        time(3, "openats", &open, true);
        server.stop();
        eprintln!("a call, ns: plain, written: {least:.0?}");
        // The bounds are loose: the machine may be busy, and on some machines entering the kernel takes long.
        assert!(least[1] - least[0] < 1_500.0 && least[3] - least[2] < 3_000.0, "{least:?}");
    });
}
