//! Tests that a window's pages are allocated as needed, and do not count as the program's page
//! faults.

use crate::lab::apart;
use crate::ring::{BAD, drain, lab, word};
use crate::server::Server;
use std::sync::atomic::Ordering::SeqCst;
use systoll_hooks::layout::{ring, slot, want};

#[test]
fn faults_for_a_window_s_pages_are_not_the_program_s() {
    apart("ring_pages::faults_for_a_window_s_pages_are_not_the_program_s", || {
        let lab = lab();
        lab.enter(0);
        let server = Server::opening(&[], 1);
        let path = std::ffi::CString::new(vec![b'/'; 230]).unwrap();
        let mut status = [0u64; 18];
        // There are two rounds, because in the first window all calls are new to the thread.
        for round in 0..2 {
            word(0, slot::WANT).store(want::RING, SeqCst);
            for _ in 0..ring::CALLS / 2 {
                lab.call("munmap", &[BAD, 4096]);
                lab.call("stat", &[path.as_ptr() as u64, status.as_mut_ptr() as u64]);
            }
            let reach = word(0, slot::RING_REACH).load(SeqCst) - word(0, slot::RING_BUFFER).load(SeqCst);
            assert!(reach > ring::REACH && reach <= ring::BUFFER, "{round}: {reach}");
        }
        server.stop();
        let windows: Vec<_> = drain(0).into_iter().filter(|calls| calls.len() as u64 == ring::CALLS).collect();
        let faults: Vec<u64> = windows.last().unwrap().iter().filter_map(|call| call.faults).collect();
        assert_eq!(faults.len() as u64, ring::CALLS / 2);
        assert!(faults.iter().all(|all| *all == faults[0]), "{faults:?}");
        assert!(word(0, slot::RING_FAULTS).load(SeqCst) >= 2);
    });
}
