//! Tests of samples: single calls that name an object, written over the whole run.

use crate::lab::{apart, half};
use crate::ring::{GETPPID, OPENAT, READ, STAT, WINDOWS, drain, in_state, lab, lab_with, open, piece, word};
use crate::server::Server;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering::SeqCst;
use systoll_hooks::assemble::Options;
use systoll_hooks::layout::{IMAGE, image, look, ring, slot, want, windows};
use systoll_hooks::ring_reader::{Read, WrittenCall};

/// Returns the samples written since the last reading, without a window's calls.
fn looks() -> Vec<WrittenCall<'static>> {
    drain(0).into_iter().chain([open(0)]).flatten().filter(|call| call.alone).collect()
}

#[test]
fn the_first_are_all_looked_at_and_later_ones_stand_for_more() {
    apart("looks::the_first_are_all_looked_at_and_later_ones_stand_for_more", || {
        let lab = lab();
        half(IMAGE + image::WINDOWS).store(windows::NONE, SeqCst);
        lab.enter(0);
        let server = Server::opening(&[], 1);
        let mut status = [0u64; 18];
        let (path, all) = (c"/etc/passwd", 40_000u64);
        let mut nths: Vec<(u64, u64)> = Vec::new();
        for n in 1..=all {
            assert_eq!(lab.call("stat", &[path.as_ptr() as u64, status.as_mut_ptr() as u64]), 0);
            if n % 1_000 == 0 {
                for call in drain(0).into_iter().flatten() {
                    assert!(call.alone && call.result == Some(0) && call.number == STAT, "{call:?}");
                    let name = piece(&call, 0, Read::Entry).unwrap_or_default();
                    assert!(name.starts_with(c"/etc/passwd".to_bytes_with_nul()), "{call:?}");
                    assert_eq!(piece(&call, 1, Read::Return).map(<[u8]>::len), Some(144));
                    nths.push((call.nth, call.stands_for));
                }
            }
        }
        nths.extend(open(0).iter().map(|call| (call.nth, call.stands_for)));
        server.stop();
        nths.sort_unstable();
        let (first, later) = nths.split_at(nths.partition_point(|(nth, _)| *nth < look::ALL));
        // The test's launcher requests samples on first sight; one of those may belong to a window.
        assert!(first.iter().all(|(_, calls)| *calls == 1) && first.len() as u64 >= look::ALL - 2, "{}", first.len());
        assert!(later.iter().all(|(nth, calls)| *calls == 1 << (nth.ilog2() - look::OF_OCTAVE_BITS)), "{later:?}");
        let stands_for: u64 = nths.iter().map(|(_, calls)| calls).sum();
        assert!(stands_for.abs_diff(all) <= 64, "{stands_for}");
        let places: Vec<u64> = later.iter().map(|(nth, _)| nth % 8).collect();
        assert!((0..8).all(|place| places.iter().filter(|p| **p == place).count() > places.len() / 16), "in step");
        assert_eq!(lab.total(STAT).0, all);
    });
}

#[test]
fn unread_samples_are_dropped_and_calls_still_counted() {
    apart("looks::unread_samples_are_dropped_and_calls_still_counted", || {
        let lab = lab();
        half(IMAGE + image::WINDOWS).store(windows::NONE, SeqCst);
        lab.enter(0);
        let server = Server::opening(&[], 1);
        for _ in 0..6_000 {
            assert_eq!(lab.call("stat", &[c"/nowhere".as_ptr() as u64, 0x6666_0000]), -i64::from(libc::ENOENT));
        }
        assert_eq!(in_state(0, ring::state::WRITTEN).len() as u64, look::SHARE.of_old);
        assert_eq!(word(0, slot::WANT).load(SeqCst), want::NOTHING);
        // Calls that are new to the thread are sampled although the buffers are full.
        lab.call("openats", &[look::CALLS, libc::AT_FDCWD as u32 as u64, c"/nowhere".as_ptr() as u64, 0]);
        server.stop();
        let looks = looks();
        assert!(looks.len() as u64 <= (look::SHARE.of_old + 2) * look::CALLS, "{}", looks.len());
        assert_eq!(looks.iter().filter(|call| call.number == OPENAT).count() as u64, look::CALLS);
        assert_eq!(lab.total(STAT), (6_000, 6_000, 6_000, 0));
        // The buffers have been read, so there is room again.
        assert_eq!(lab.call("stat", &[c"/nowhere".as_ptr() as u64, 0x6666_0000]), -i64::from(libc::ENOENT));
        assert_eq!(open(0).len(), 1);
    });
}

#[test]
fn other_calls_and_threads_that_may_make_no_call_are_not_sampled() {
    apart("looks::other_calls_and_threads_that_may_make_no_call_are_not_sampled", || {
        let lab = lab();
        half(IMAGE + image::WINDOWS).store(windows::NONE, SeqCst);
        lab.enter(0);
        let server = Server::opening(&[], 1);
        lab.call("getppid 1", &[2_000]);
        half(IMAGE + image::QUIET).store(1, SeqCst);
        for _ in 0..200 {
            lab.call("stat", &[c"/nowhere".as_ptr() as u64, 0x6666_0000]);
        }
        server.stop();
        assert_eq!(lab.total(GETPPID).0, 2_000);
        assert_eq!(looks(), []);
    });
}

#[test]
fn samples_are_rarer_up_to_the_calls_of_earlier_programs() {
    apart("looks::samples_are_rarer_up_to_the_calls_of_earlier_programs", || {
        const ASKED: u64 = 1_600;
        let lab = lab();
        half(IMAGE + image::WINDOWS).store(windows::NONE, SeqCst);
        half(IMAGE + image::FAMILIAR).store(ASKED as u32, SeqCst);
        lab.enter(0);
        let server = Server::opening(&[], 1);
        let mut seen: Vec<(u64, u64)> = Vec::new();
        for n in 1..=2 * ASKED {
            lab.call("stat", &[c"/nowhere".as_ptr() as u64, 0x6666_0000]);
            if n % 400 == 0 {
                seen.extend(drain(0).into_iter().flatten().map(|call| (call.nth, call.stands_for)));
            }
        }
        server.stop();
        seen.extend(open(0).iter().map(|call| (call.nth, call.stands_for)));
        seen.sort_unstable();
        let part = 1 << look::FAMILIAR_SHIFT;
        let (familiar, new) = seen.split_at(seen.partition_point(|(nth, _)| *nth < ASKED));
        // The very first call has none before it that it could stand for, and the last part may
        // extend beyond the end.
        assert!(familiar.iter().filter(|(_, calls)| *calls == part).count() as u64 >= ASKED / part - 1, "{familiar:?}");
        assert!(familiar.len() as u64 <= ASKED / part + 2, "{familiar:?}");
        assert!(new.len() as u64 >= ASKED - part && new.iter().skip(1).all(|(_, calls)| *calls == 1), "{new:?}");
        assert!(seen.iter().map(|(_, calls)| calls).sum::<u64>().abs_diff(2 * ASKED) <= part);
        assert_eq!(lab.total(STAT).0, 2 * ASKED);
    });
}

#[test]
fn receives_are_sampled_with_their_bytes_and_descriptor() {
    apart("looks::receives_are_sampled_with_their_bytes_and_descriptor", || {
        let lab = lab_with(Options { receives: true, ..WINDOWS });
        half(IMAGE + image::WINDOWS).store(windows::NONE, SeqCst);
        lab.enter(0);
        let server = Server::opening(&[], 1);
        let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let (fd, mut bytes) = (theirs.as_raw_fd() as u64, [0u8; 32]);
        for n in 0..100 {
            ours.write_all(format!("GET /{n:02} ").as_bytes()).unwrap();
            assert_eq!(lab.call("read", &[fd, bytes.as_mut_ptr() as u64, 32]), 8);
        }
        // Behind vectors only the launcher can read, which is asked before and after the call.
        let asked = word(0, slot::LOOK_FLAGS).load(SeqCst);
        assert_eq!(asked & ring::call::BY_LAUNCHER, 0);
        ours.write_all(b"GET /").unwrap();
        let vector = [bytes.as_mut_ptr() as u64, 32];
        assert_eq!(lab.call("readv", &[fd, vector.as_ptr() as u64, 1]), 5);
        assert_ne!(word(0, slot::LOOK_FLAGS).load(SeqCst) & ring::call::BY_LAUNCHER, 0);
        server.stop();
        let looks = looks();
        let reads: Vec<_> = looks.iter().filter(|call| call.number == READ).collect();
        // The test's launcher is asked about the first call.
        assert!(reads.len() >= 99 && reads.len() == looks.len(), "{}", looks.len());
        for call in reads {
            assert!(call.stands_for == 1 && call.result == Some(8), "{call:?}");
            let name = call.pieces().find(|p| p.read == Read::Name).map(|p| p.bytes);
            assert!(name.is_some_and(|name| name.starts_with(b"socket:[")), "{call:?}");
            let expected = format!("GET /{:02} ", call.nth - 1);
            assert_eq!(piece(call, 1, Read::Return), Some(expected.as_bytes()), "{call:?}");
        }
    });
}
