//! Tests that counts, errors, bytes and contexts are exact.

use crate::lab::{File, Lab, SHORT, apart, image_words, set_limits};
use crate::server::{Pointer, Server};
use iced_x86::code_asm::{qword_ptr, rax, rbp, rbx, rcx, rdi, rsi, rsp};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;
use systoll_hooks::assemble::{Losses, Options, long_calls};
use systoll_hooks::layout::{Question, image, slot};

const READ: u32 = 0;
const CLOSE: u32 = 3;
const POLL: u32 = 7;
const GETPPID: u32 = 110;
const GETPGRP: u32 = 111;

pub(crate) const COUNT: Options = Options::COUNT;
pub(crate) const TIMED: Options = Options { results: true, time: true, waited: true, ..COUNT };
const SAMPLED: Options = Options { sampled: true, ..TIMED };
/// With a limit of 0 every call is a long one, so all go through the code that keeps calls one by one.
pub(crate) const EACH_LONG: Options = Options { long: Some(0), ..TIMED };

/// Returns a file of wrapper functions, and of functions that call them repeatedly.
pub(crate) fn file() -> File {
    let mut file = File::new();
    let getppid = file.wrapper("getppid", GETPPID);
    file.wrapper("getpgrp", GETPGRP);
    let read = file.wrapper("read", READ);
    let close = file.wrapper("close", CLOSE);
    let any = file.any("any");
    file.repeat("getppid 1", getppid);
    file.repeat("getppid 2", getppid);
    file.repeat("getppid 3", getppid);
    file.repeat("reads", read);
    file.repeat("closes", close);
    file.repeat("anys", any);
    file.wrapper("exit_group", 231);
    file
}

#[test]
fn contexts_are_told_apart() {
    apart("counts::contexts_are_told_apart", || {
        for_each_mode(|lab, options| {
            let server = Server::start(&[]);
            for (i, name) in (1..).zip(["getppid 1", "getppid 2", "getppid 3"]) {
                lab.call(name, &[i * 100_000]);
            }
            lab.call("getppid 2", &[1]);
            let asked = server.stop();
            let rows = lab.read().rows;
            let mut counts: Vec<_> =
                rows.iter().map(|r| (r.path.len(), r.threads[0].1.entered + r.threads[0].1.elided)).collect();
            counts.sort_unstable();
            assert_eq!(counts, [(1, 100_000), (1, 200_001), (1, 300_000)]);
            assert_eq!(asked.count(Question::Context), 3);
            let returned: u64 = rows.iter().map(|r| r.threads[0].1.returned).sum();
            // This call, getppid, is never answered in place, because a parent may die. Answering in place also hooks
            // returns.
            assert_eq!(returned, if options.results || options.elide { 600_001 } else { 0 });
            assert_eq!(lab.read().losses, Losses::default());
        });
    });
}

#[test]
fn contexts_that_are_not_looked_up_count_together_without_asking() {
    apart("counts::contexts_that_are_not_looked_up_count_together_without_asking", || {
        for_each_mode(|lab, _| {
            let server = Server::sparing();
            for (i, name) in (1..).zip(["getppid 1", "getppid 2", "getppid 3", "getppid 2", "getppid 1"]) {
                lab.call(name, &[i * 100]);
            }
            let asked = server.stop();
            let rows = lab.read().rows;
            let mut counts: Vec<_> = rows.iter().map(|r| r.threads[0].1.entered + r.threads[0].1.elided).collect();
            counts.sort_unstable();
            assert_eq!(counts, [100 + 500, 200 + 300 + 400]);
            assert_eq!(asked.count(Question::Context), 2);
            assert_eq!(lab.read().losses, Losses::default());
        });
    });
}

/// Runs the modes one after the other, each in a process of its own, because the areas can be mapped only once in
/// each.
fn for_each_mode(body: impl Fn(&Lab, Options)) {
    let modes = [COUNT, Options { results: true, ..COUNT }, Options { results: true, time: true, ..COUNT }, TIMED];
    for options in
        modes.into_iter().chain([Options { windows: true, ..TIMED }, Options { elide: true, ..TIMED }, SAMPLED])
    {
        let lab = |_: ()| Lab::new(file(), options);
        crate::forked(|| {
            let lab = lab(());
            lab.enter(0);
            body(&lab, options);
        });
    }
}

#[test]
fn deep_contexts_are_told_apart() {
    apart("counts::deep_contexts_are_told_apart", || {
        // The generated outer calls inner, and inner calls getppid; between them lies the frame of inner.
        let mut file = file();
        let inner = file.function("inner");
        file.a.sub(rsp, 24).unwrap();
        file.site(Some(GETPPID), false, 32);
        file.a.add(rsp, 24).unwrap();
        file.a.ret().unwrap();
        let middle = file.function("middle");
        file.a.sub(rsp, 8).unwrap();
        file.a.call(inner).unwrap();
        file.a.add(rsp, 8).unwrap();
        file.a.ret().unwrap();
        file.repeat("outer 1", middle);
        file.repeat("outer 2", middle);
        let lab = Lab::new(file, TIMED);
        lab.enter(0);
        // Return addresses lie at rsp + 24 (into middle), and above that word and the 8 bytes of middle's frame.
        let server = Server::start(&[24 + 8 + 8]);
        lab.call("outer 1", &[70]);
        lab.call("outer 2", &[500]);
        server.stop();
        let mut rows: Vec<_> =
            lab.read().rows.iter().map(|r| (r.path.len(), r.path[0], r.threads[0].1.entered)).collect();
        rows.sort_by_key(|r| r.2);
        assert_eq!(rows.iter().map(|r| (r.0, r.2)).collect::<Vec<_>>(), [(2, 70), (2, 500)]);
        assert_eq!(rows[0].1, rows[1].1);
    });
}

#[test]
fn callers_are_found_behind_frames_of_any_size() {
    apart("counts::callers_are_found_behind_frames_of_any_size", || {
        for (pointer, options) in [(Pointer::Saved(16), TIMED), (Pointer::InRbp, TIMED), (Pointer::InRbp, COUNT)] {
            for number in [Some(GETPPID), None] {
                crate::forked(|| find_behind_frames(pointer, number, options));
            }
        }
    });
}

/// Asserts that calls are counted by their callers although the function between has frames of many sizes.
fn find_behind_frames(pointer: Pointer, number: Option<u32>, options: Options) {
    let mut file = file();
    let inner = file.function("inner");
    let saves = matches!(pointer, Pointer::Saved(_));
    let own = if saves { 16 } else { 24 };
    if saves {
        file.a.push(rbp).unwrap();
    }
    file.a.sub(rsp, own).unwrap();
    if saves {
        file.a.mov(rbp, 0x5757_u64).unwrap();
    } else {
        file.a.mov(qword_ptr(rsp + 16), 0x5757).unwrap();
    }
    file.a.mov(rax, rsi).unwrap();
    file.site(number, false, 32);
    file.a.add(rsp, own).unwrap();
    if saves {
        file.a.pop(rbp).unwrap();
    }
    file.a.ret().unwrap();
    // The generated middle(size, number) has a frame of `size` bytes.
    let middle = file.function("middle");
    file.a.push(rbp).unwrap();
    file.a.mov(rbp, rsp).unwrap();
    file.a.sub(rsp, rdi).unwrap();
    file.a.call(inner).unwrap();
    file.a.leave().unwrap();
    file.a.ret().unwrap();
    file.repeat("outer 1", middle);
    file.repeat("outer 2", middle);
    let lab = Lab::new(file, options);
    lab.enter(0);
    let server = Server::by_pointer(24, pointer);
    let call = |outer, times, size| lab.call(outer, &[times, size, u64::from(GETPPID)]);
    call("outer 1", 70, 16);
    call("outer 1", 500, 4096);
    call("outer 1", 7, 16);
    call("outer 2", 1000, 16);
    let counts = || {
        let mut rows: Vec<_> = lab.read().rows.iter().map(|r| (r.path.clone(), r.threads[0].1.entered)).collect();
        rows.sort_by_key(|(_, entered)| *entered);
        rows
    };
    let rows = counts();
    assert_eq!(rows.iter().map(|(path, n)| (path.len(), *n)).collect::<Vec<_>>(), [(2, 77), (2, 500), (2, 1000)]);
    assert!(rows.iter().all(|(path, _)| path[0] == rows[0].0[0]), "one call in middle");
    assert!(rows[0].0 == rows[1].0 && rows[0].0 != rows[2].0, "two calls of it");
    // Behind sixteen sizes, further contexts are no longer told apart.
    let sizes = (1..20).map(|n| 128 * n);
    for size in sizes.clone().chain(sizes) {
        call("outer 1", 3, size);
    }
    let asked = server.stop();
    let rows = counts();
    let told = |callers: usize| rows.iter().filter(|(path, _)| path.len() == callers).map(|(_, n)| *n).sum::<u64>();
    assert_eq!([told(1), told(2)], [(19 - 14) * 6, 77 + 500 + 1000 + 14 * 6]);
    // The thread asks once for each context, and once more when there are too many.
    assert_eq!(asked.count(Question::Context) + asked.count(Question::Number), 3 + 14 + 1);
    assert_eq!(lab.read().losses, Losses::default());
}

#[test]
fn samples_stand_for_all_calls() {
    apart("counts::samples_stand_for_all_calls", || {
        const CALLS: u64 = 100_000;
        let lab = Lab::new(file(), SAMPLED);
        lab.enter(0);
        let server = Server::start(&[]);
        lab.call("closes", &[CALLS, u64::MAX]);
        server.stop();
        let of_close: Vec<_> = lab.read().rows.into_iter().filter(|r| r.number == Some(CLOSE)).collect();
        let counts = &of_close[0].threads[0].1;
        assert_eq!((counts.entered, counts.returned, counts.failed), (CALLS, CALLS, CALLS));
        let stood_for: u64 = counts.histogram.iter().sum();
        if crate::lab::rseq_area().is_some() {
            // One call of 16 is timed, except before a block begins, behind long calls, and if it waited.
            assert!(counts.sampled.calls > CALLS / 32 && counts.sampled.calls <= CALLS / 16, "{counts:?}");
            assert!(stood_for.abs_diff(CALLS) <= CALLS / 50, "{counts:?}");
            assert!(counts.sampled.cycles > 0 && counts.sampled.squares > counts.sampled.cycles, "{counts:?}");
        } else {
            assert_eq!((counts.sampled.calls, stood_for), (0, CALLS));
        }
        assert!(counts.cycles >= counts.sampled.cycles && counts.longest >= counts.shortest.unwrap(), "{counts:?}");
    });
}

#[test]
fn errors_are_exact_by_errno() {
    apart("counts::errors_are_exact_by_errno", || {
        let lab = Lab::new(file(), TIMED);
        lab.enter(0);
        let server = Server::start(&[]);
        assert_eq!(lab.call("closes", &[12_345, u64::MAX]), -i64::from(libc::EBADF));
        // At the same site and in the same context, calls fail with EFAULT and succeed.
        let file = std::fs::File::open("/dev/zero").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file) as u64;
        let mut buffer = [1u8; 100];
        assert_eq!(lab.call("reads", &[777, fd, 8, 100]), -i64::from(libc::EFAULT));
        assert_eq!(lab.call("reads", &[1000, fd, buffer.as_mut_ptr() as u64, 100]), 100);
        assert_eq!(lab.call("reads", &[10, u64::MAX, buffer.as_mut_ptr() as u64, 100]), -i64::from(libc::EBADF));
        server.stop();
        let errors = |number| {
            let rows = lab.read().rows;
            let of = rows.into_iter().filter(move |r| r.number == Some(number)).flat_map(|r| r.threads);
            of.flat_map(|(_, c)| c.errors).fold(BTreeMap::new(), |mut all, (errno, count)| {
                *all.entry(i32::from(errno)).or_insert(0) += count;
                all
            })
        };
        assert_eq!(errors(CLOSE), BTreeMap::from([(libc::EBADF, 12_345)]));
        assert_eq!(errors(READ), BTreeMap::from([(libc::EFAULT, 777), (libc::EBADF, 10)]));
        assert_eq!(lab.total(READ), (1787, 1787, 787, 100_000));
        assert_eq!(lab.total(CLOSE), (12_345, 12_345, 12_345, 0));
        assert_eq!(lab.read().losses, Losses::default());
        let timed: u64 = lab.read().rows.iter().flat_map(|r| &r.threads).flat_map(|(_, c)| c.histogram).sum();
        assert_eq!(timed, 12_345 + 1787);
    });
}

#[test]
fn every_errno_finds_its_place_or_is_missed() {
    apart("counts::every_errno_finds_its_place_or_is_missed", || {
        let lab = Lab::new(file(), Options { results: true, ..COUNT });
        lab.enter(0);
        set_limits(SHORT);
        // Each number of the table has a record of its own, so each failure has its own key.
        for number in 400..511 {
            lab.call("any", &[number, u64::MAX, 1, 1, u64::MAX, u64::MAX]);
        }
        let reading = lab.read();
        let counts: Vec<_> = reading.rows.iter().flat_map(|r| &r.threads).map(|(_, c)| c).collect();
        let failed: u64 = counts.iter().map(|c| c.failed).sum();
        let known: u64 = counts.iter().flat_map(|c| &c.errors).map(|(_, n)| n).sum();
        assert!(failed > 60, "{failed}");
        assert_eq!(known + reading.losses.errors, failed);
        // Fill the groups: errors that find no room are reported as missing.
        for at in (slot::ERRORS..slot::ERRORS + slot::ERROR_GROUPS * slot::ERROR_GROUP).step_by(16) {
            let word = &image_words()[(image::SLOTS + at) as usize / 8];
            let _ = word.compare_exchange(0, u64::MAX, SeqCst, SeqCst);
        }
        assert_eq!(lab.call("close", &[u64::MAX]), -i64::from(libc::EBADF));
        assert_eq!(lab.total(CLOSE), (1, 1, 1, 0));
        assert_eq!(lab.read().losses.errors, reading.losses.errors + 1);
    });
}

#[test]
fn unknown_numbers_are_told_apart() {
    apart("counts::unknown_numbers_are_told_apart", || {
        let lab = Lab::new(file(), TIMED);
        lab.enter(0);
        let server = Server::start(&[]);
        let zero = std::fs::File::open("/dev/zero").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&zero) as u64;
        let mut buffer = [1u8; 100];
        for i in 0..1000 {
            lab.call("anys", &[3, u64::from(GETPPID)]);
            assert_eq!(lab.call("any", &[0, fd, buffer.as_mut_ptr() as u64, 10 + i % 2]), 10 + i as i64 % 2);
            assert_eq!(lab.call("any", &[u64::from(CLOSE), u64::MAX]), -i64::from(libc::EBADF));
            assert_eq!(lab.call("any", &[9999]), -i64::from(libc::ENOSYS));
        }
        let asked = server.stop();
        assert_eq!(lab.total(GETPPID), (3000, 3000, 0, 0));
        assert_eq!(lab.total(READ), (1000, 1000, 0, 10_500));
        assert_eq!(lab.total(CLOSE), (1000, 1000, 1000, 0));
        assert_eq!(lab.total(systoll_model::Sysno::UNKNOWN.0), (1000, 1000, 1000, 0));
        assert_eq!(asked.count(Question::Number), 4);
        let no_site = lab.read().rows.iter().filter(|r| r.site.is_none()).count();
        assert_eq!(no_site, 0);
    });
}

#[test]
fn without_a_launcher_numbers_are_still_right() {
    apart("counts::without_a_launcher_numbers_are_still_right", || {
        let lab = Lab::new(file(), TIMED);
        lab.enter(0);
        set_limits(SHORT);
        lab.call("anys", &[4000, u64::from(GETPPID)]);
        lab.call("getppid 1", &[500]);
        assert_eq!(lab.total(GETPPID), (4500, 4500, 0, 0));
        let reading = lab.read();
        assert!(reading.rows.iter().all(|r| r.path.is_empty()));
        // The thread waits once without an answer; then it holds the launcher for dead and asks no more.
        assert_eq!(reading.losses, Losses { unanswered: 1, ..Losses::default() });
    });
}

#[test]
fn entries_of_functions_are_counted_without_a_register_lost() {
    apart("counts::entries_of_functions_are_counted_without_a_register_lost", || {
        for answered in [true, false] {
            crate::forked(|| {
                let mut file = file();
                let entry = file.entry("time");
                file.function("times");
                let a = &mut file.a;
                let mut again = a.create_label();
                a.push(rbx).unwrap();
                a.mov(rbx, rdi).unwrap();
                a.set_label(&mut again).unwrap();
                a.mov(rcx, rbx).unwrap();
                a.call(entry).unwrap();
                a.cmp(rax, rbx).unwrap();
                let mut bad = a.create_label();
                a.jne(bad).unwrap();
                a.dec(rbx).unwrap();
                a.jne(again).unwrap();
                a.set_label(&mut bad).unwrap();
                a.mov(rax, rbx).unwrap();
                a.pop(rbx).unwrap();
                a.ret().unwrap();
                let lab = Lab::new(file, TIMED);
                lab.enter(0);
                let server = answered.then(|| Server::start(&[]));
                if !answered {
                    set_limits(SHORT);
                }
                assert_eq!(lab.call("times", &[100_000]), 0);
                assert_eq!(lab.call("time", &[1, 2, 3, 4, 5, 6]), 4);
                drop(server.map(Server::stop));
                let rows = lab.read().rows;
                let mut counts: Vec<_> = rows.iter().map(|r| (r.path.len(), r.threads[0].1.entered)).collect();
                counts.sort_unstable();
                assert_eq!(counts, if answered { vec![(1, 1), (1, 100_000)] } else { vec![(0, 100_001)] });
                assert!(rows.iter().all(|r| r.number.is_none()));
            });
        }
    });
}

#[test]
fn coming_to_a_return_without_a_call_counts_nothing() {
    apart("counts::coming_to_a_return_without_a_call_counts_nothing", || {
        let mut file = File::new();
        file.returns_are_targets = true;
        file.function("getppid");
        let behind = file.site(Some(GETPPID), false, 8);
        file.a.ret().unwrap();
        file.function("skips");
        file.a.mov(rax, rdi).unwrap();
        file.a.jmp(behind).unwrap();
        let lab = Lab::new(file, TIMED);
        lab.enter(0);
        let server = Server::start(&[]);
        for i in 0..1000u64 {
            assert_eq!(lab.call("skips", &[u64::MAX - i]), -1 - i as i64);
            assert!(lab.call("getppid", &[]) > 0);
            assert_eq!(lab.call("skips", &[i]), i as i64);
        }
        server.stop();
        assert_eq!(lab.total(GETPPID), (1000, 1000, 0, 0));
        assert_eq!(lab.read().losses, Losses::default());
    });
}

#[test]
fn long_calls_are_kept_with_their_arguments_and_results() {
    apart("counts::long_calls_are_kept_with_their_arguments_and_results", || {
        // 2^20 cycles are less than a millisecond on any machine.
        for options in [Options { long: Some(20), ..TIMED }, Options { long: Some(20), ..SAMPLED }] {
            crate::forked(|| {
                let mut file = File::new();
                file.wrapper("poll", POLL);
                let lab = Lab::new(file, options);
                lab.enter(0);
                let server = Server::start(&[]);
                for _ in 0..3 {
                    assert_eq!(lab.call("poll", &[0, 0, 5]), 0);
                    assert_eq!(lab.call("poll", &[0, 0, 0]), 0);
                    // The kernel reads no descriptors if there are too many, and answers at once.
                    assert_eq!(lab.call("poll", &[0, u64::MAX >> 1, 5]), -22);
                }
                server.stop();
                let kept = long_calls(image_words(), 0, |_| Some(7));
                assert_eq!((kept.calls.len(), kept.overwritten, kept.pending), (3, 0, None));
                for call in &kept.calls {
                    assert_eq!((call.record, call.result, call.args[..3].to_vec()), (7, Some(0), vec![0, 0, 5]));
                    assert!(call.waited != Some(false) && call.cycles > 1 << 20, "{call:?}");
                }
            });
        }
    });
}
