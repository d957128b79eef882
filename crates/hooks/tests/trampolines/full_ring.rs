//! Tests of a ring that the launcher does not read in time.

use crate::lab::{apart, image_words};
use crate::ring::{BAD, GETPPID, STAT, drain, in_state, lab, piece, word};
use crate::server::Server;
use std::sync::atomic::Ordering::SeqCst;
use systoll_hooks::layout::{Question, image, ring, slot, want};
use systoll_hooks::ring_reader::{Read, WrittenCall};

#[test]
fn without_a_free_buffer_windows_are_refused() {
    apart("full_ring::without_a_free_buffer_windows_are_refused", || {
        let lab = lab();
        lab.enter(0);
        let server = Server::opening(&[], 1);
        for n in 0..ring::COUNT + 5 {
            word(0, slot::WANT).store(want::RING, SeqCst);
            lab.call("getppid 1", &[ring::CALLS]);
            assert_eq!(word(0, slot::WANT).load(SeqCst), want::NOTHING, "{n}");
        }
        assert_eq!(in_state(0, ring::state::WRITTEN).len() as u64, ring::SHARE.of_old);
        let refused = word(0, slot::RING_REFUSED).load(SeqCst);
        assert!(refused >= ring::COUNT + 5 - ring::SHARE.of_old, "{refused}");
        // In a full ring, some calls at nodes that are new to the thread are still written, and always the first one at
        // a node.
        let open = |name: &str, arguments: &[u64]| {
            word(0, slot::WANT).store(want::RING, SeqCst);
            lab.call(name, arguments);
        };
        (0..4).for_each(|_| open("getppid 2", &[ring::CALLS]));
        assert_eq!(in_state(0, ring::state::WRITTEN).len() as u64, ring::SHARE.of_old + 4);
        (0..4).for_each(|_| open("getppid 3", &[ring::CALLS]));
        assert_eq!(in_state(0, ring::state::WRITTEN).len() as u64, ring::SHARE.of_new + 1);
        (0..2).for_each(|_| open("openats", &[ring::CALLS, BAD, BAD, 0]));
        assert_eq!(in_state(0, ring::state::WRITTEN).len() as u64, ring::SHARE.of_new + 2);
        server.stop();
        assert_eq!(image_words()[image::WRITTEN as usize / 8].load(SeqCst), ring::SHARE.of_new + 2);
        let windows = drain(0);
        assert!(windows.iter().all(|w| w.len() as u64 == ring::CALLS && w.iter().all(|c| c.result.is_some())));
        let calls = (ring::COUNT + 5 + 2 * 4) * ring::CALLS;
        assert_eq!(lab.total(GETPPID), (calls, calls, 0, 0));
    });
}

#[test]
fn with_full_buffers_the_launcher_is_asked_at_first_calls_only() {
    apart("full_ring::with_full_buffers_the_launcher_is_asked_at_first_calls_only", || {
        let lab = lab();
        lab.enter(0);
        let server = Server::opening(&[], 1);
        let fill = |state| {
            let state_of = |n| word(0, slot::RING_HEADERS + n * ring::HEADER + ring::STATE);
            (0..ring::COUNT).for_each(|n| state_of(n).store(state, SeqCst));
        };
        fill(ring::state::WRITTEN);
        for name in ["getppid 1", "getppid 2"] {
            lab.call(name, &[10 * ring::CALLS]);
        }
        fill(ring::state::FREE);
        lab.call("getppid 3", &[10 * ring::CALLS]);
        let asked = server.stop();
        assert_eq!(asked.count(Question::WindowEntry), 2);
        assert_eq!(lab.total(GETPPID), (30 * ring::CALLS, 30 * ring::CALLS, 0, 0));
    });
}

#[test]
fn a_window_ends_when_argument_data_finds_no_room() {
    apart("full_ring::a_window_ends_when_argument_data_finds_no_room", || {
        let lab = lab();
        lab.enter(0);
        let server = Server::opening(&[], 1);
        let (path, mut status) = (c"/etc/passwd", [0u64; 18]);
        let mut stat = || assert_eq!(lab.call("stat", &[path.as_ptr() as u64, status.as_mut_ptr() as u64]), 0);
        stat();
        let (data, buffer) = (word(0, slot::RING_DATA), word(0, slot::RING_BUFFER).load(SeqCst));
        // The buffer has room for one more call, which is the window's last.
        data.store(buffer + ring::BUFFER - ring::ROOM, SeqCst);
        stat();
        assert_eq!(word(0, slot::WANT).load(SeqCst), want::NOTHING);
        stat();
        // A handler's call may leave less room than the interrupted call needs.
        word(0, slot::WANT).store(want::RING, SeqCst);
        stat();
        data.store(word(0, slot::RING_BUFFER).load(SeqCst) + ring::BUFFER - 8, SeqCst);
        stat();
        server.stop();
        let windows = drain(0);
        assert_eq!(windows.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        let whole = |c: &WrittenCall<'_>| piece(c, 0, Read::Entry).is_some() && piece(c, 1, Read::Return).is_some();
        assert!(windows.iter().flatten().all(whole));
        assert_eq!(lab.total(STAT), (5, 5, 0, 0));
    });
}
