//! Tests when a thread asks the launcher for a window, and when it writes windows by itself.

use crate::lab::{Lab, apart, half};
use crate::ring::{lab, open, word};
use crate::server::Server;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use systoll_hooks::layout::{IMAGE, Question, image, slot, want, windows};

#[test]
fn asked_once_a_thread_writes_by_itself() {
    apart("asked_windows::asked_once_a_thread_writes_by_itself", || {
        let lab = lab();
        lab.enter(0);
        half(IMAGE + image::WINDOWS).store(windows::ASKED_ONCE, SeqCst);
        // The test's launcher opens no window, so the thread only asks.
        let server = Server::opening(&[], 3);
        lab.call("getppid 1", &[10]);
        word(0, slot::WANT).store(want::RING, SeqCst);
        lab.call("getppid 1", &[10]);
        let asked = server.stop();
        // The thread asks at call 3, and at the calls that it draws in the window.
        assert!(asked.count(Question::WindowEntry) >= 1 && asked.count(Question::WindowReturn) == 0);
        assert_eq!(open(0).iter().map(|c| c.nth).collect::<Vec<_>>(), (11..=20).collect::<Vec<_>>());
    });
}

/// Returns the number of questions that a thread asks during `calls` while it writes a window.
fn asked_while_it_writes(calls: impl FnOnce(&Lab)) -> usize {
    let lab = lab();
    lab.enter(0);
    half(IMAGE + image::WINDOWS).store(windows::ASKED_ONCE, SeqCst);
    word(0, slot::WANT).store(want::RING, SeqCst);
    let server = Server::opening(&[], 3);
    calls(&lab);
    server.stop().count(Question::WindowEntry)
}

#[test]
fn within_a_window_a_few_cheap_calls_are_not_asked_about() {
    apart("asked_windows::within_a_window_a_few_cheap_calls_are_not_asked_about", || {
        assert_eq!(asked_while_it_writes(|lab| _ = lab.call("getppid 1", &[7])), 0);
    });
}

#[test]
fn within_a_window_many_calls_are_asked_about() {
    apart("asked_windows::within_a_window_many_calls_are_asked_about", || {
        assert!(asked_while_it_writes(|lab| _ = lab.call("getppid 1", &[24])) >= 1);
    });
}

#[test]
fn within_a_window_a_few_dear_calls_are_asked_about() {
    apart("asked_windows::within_a_window_a_few_dear_calls_are_asked_about", || {
        let reads = |lab: &Lab| {
            let (reader, writer) = std::io::pipe().unwrap();
            for _ in 0..3 {
                let mut later = writer.try_clone().unwrap();
                let writes = std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(2));
                    later.write_all(b"x").unwrap();
                });
                let mut byte = [0u8; 1];
                assert_eq!(lab.call("read", &[reader.as_raw_fd() as u64, byte.as_mut_ptr() as u64, 1]), 1);
                writes.join().unwrap();
            }
        };
        assert!(asked_while_it_writes(reads) >= 1);
    });
}

/// Asserts how often a thread asks for a window when the server samples call 3 of one context. `opens` is one of
/// [`windows`], the party that opens windows; `wants` is one of [`want`], the thread's treatment of calls.
fn is_asked_where_it_looks(opens: u32, wants: u64, times: std::ops::RangeInclusive<usize>) {
    let lab = lab();
    lab.enter(0);
    half(IMAGE + image::WINDOWS).store(opens, SeqCst);
    word(0, slot::WANT).store(wants, SeqCst);
    let server = Server::looking(&[], 3);
    lab.call("getppid 1", &[10]);
    let asked = server.stop();
    assert!(times.contains(&asked.count(Question::WindowEntry)), "{}", asked.count(Question::WindowEntry));
    assert_eq!(lab.total(systoll_model::Sysno::from_name("getppid").unwrap().0).0, 10);
}

#[test]
fn threads_that_open_windows_ask_at_calls_the_launcher_samples() {
    apart("asked_windows::threads_that_open_windows_ask_at_calls_the_launcher_samples", || {
        is_asked_where_it_looks(windows::OWN, want::NOTHING, 1..=1);
    });
}

#[test]
fn threads_that_open_no_windows_ask_at_calls_the_launcher_samples() {
    apart("asked_windows::threads_that_open_no_windows_ask_at_calls_the_launcher_samples", || {
        is_asked_where_it_looks(windows::NONE, want::NOTHING, 1..=1);
    });
}

#[test]
fn the_launcher_is_asked_within_a_window_at_calls_it_samples() {
    apart("asked_windows::the_launcher_is_asked_within_a_window_at_calls_it_samples", || {
        // The thread also asks, once each, at the calls that it draws while it writes.
        is_asked_where_it_looks(windows::OWN, want::RING, 1..=8);
    });
}
