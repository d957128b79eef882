//! Tests of trunks: a thread compares the stack above a context with the one that was found there before.

use crate::lab::{apart, half};
use crate::ring::lab;
use crate::server::{Answered, Server};
use std::sync::atomic::Ordering::SeqCst;
use systoll_hooks::assemble::TrunkLooks;
use systoll_hooks::layout::{IMAGE, Question, image, windows};

/// Makes `calls` calls with a trunk of three words, the last of which differs from the stack's by `changed`. Returns
/// the results of the thread's comparisons, and its questions. `set` is the offset of a half word of the image that
/// is 1 meanwhile.
fn found(calls: u64, changed: u64, set: Option<u64>) -> (TrunkLooks, Answered) {
    let lab = lab();
    lab.enter(0);
    set.into_iter().for_each(|offset| half(IMAGE + offset).store(1, SeqCst));
    half(IMAGE + image::WINDOWS).store(windows::OWN, SeqCst);
    let server = Server::knowing(&[0x40, 0x50, 0x68], changed);
    lab.call("getppid 1", &[calls]);
    let asked = server.stop();
    let reading = lab.read();
    let looks = reading.rows.iter().flat_map(|row| &row.threads).map(|(_, counts)| counts.trunk);
    (looks.fold(TrunkLooks::default(), |all, one| if one == TrunkLooks::default() { all } else { one }), asked)
}

#[test]
fn the_same_stack_is_found_without_asking() {
    apart("trunks::the_same_stack_is_found_without_asking", || {
        let (looks, asked) = found(1000, 0, None);
        // The thread compares once or twice in each octave of calls.
        assert!((9..=20).contains(&looks.looks), "{looks:?}");
        assert!((900..4000).contains(&looks.seen) && looks.others == 0, "{looks:?}");
        assert_eq!(asked.count(Question::WindowEntry), 0);
    });
}

#[test]
fn another_stack_is_asked_about_once_calls_have_taken_as_long_as_asking() {
    apart("trunks::another_stack_is_asked_about_once_calls_have_taken_as_long_as_asking", || {
        let (looks, asked) = found(100_000, 1, None);
        assert!(looks.looks == 0 && asked.count(Question::WindowEntry) > 0, "{looks:?}");
    });
}

#[test]
fn another_stack_of_a_few_calls_is_not_asked_about() {
    apart("trunks::another_stack_of_a_few_calls_is_not_asked_about", || {
        let (looks, asked) = found(4, 1, None);
        assert!(looks.looks == 0 && looks.others > 0 && looks.missed == 1, "{looks:?}");
        assert_eq!(asked.count(Question::WindowEntry), 0);
    });
}

#[test]
fn the_launcher_is_not_asked_about_trunks_sampled_enough() {
    apart("trunks::the_launcher_is_not_asked_about_trunks_sampled_enough", || {
        let (looks, asked) = found(100_000, 1, Some(image::LOOKED_ENOUGH));
        assert!(looks.others > 50_000 && asked.count(Question::WindowEntry) == 0, "{looks:?}");
    });
}

#[test]
fn no_sample_is_taken_by_threads_that_may_make_no_call() {
    apart("trunks::no_sample_is_taken_by_threads_that_may_make_no_call", || {
        let (looks, _) = found(1000, 1, Some(image::QUIET));
        assert_eq!(looks, TrunkLooks::default());
    });
}
