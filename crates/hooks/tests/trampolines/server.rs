//! The launcher's side of the hand-shake, played by a thread of the test.

#![allow(dead_code, reason = "each of those who share this use a part of it")]

use crate::lab::{half, image_words, room};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use systoll_hooks::assemble::{Due, Room, Step, grow_due, number_site};
use systoll_hooks::layout::{GLOBAL, IMAGE, Question, Saved, global, image, node, slot, slot_address, state};

/// A thread that answers.
pub(crate) struct Server {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Answered>>,
}

/// What was asked, by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answered {
    /// Questions, each with number or result (rax) and first argument.
    pub(crate) questions: Vec<(Question, u64, u64)>,
}

impl Answered {
    /// How many of a kind.
    pub(crate) fn count(&self, question: Question) -> usize {
        self.questions.iter().filter(|(q, ..)| *q == question).count()
    }
}

impl Server {
    /// Starts answering; contexts are told apart by `depth` return addresses, the second and
    /// further ones at the given distances from rsp.
    pub(crate) fn start(distances: &'static [u64]) -> Self {
        Self::opening(distances, 0)
    }

    /// The same, where the first window of each context is due at its call `window_at`.
    pub(crate) fn opening(distances: &'static [u64], window_at: u64) -> Self {
        Self::with(distances, Due { at: window_at, asks: false })
    }

    /// The same, where the server is to be asked there.
    pub(crate) fn looking(distances: &'static [u64], window_at: u64) -> Self {
        Self::with(distances, Due { at: window_at, asks: true })
    }

    fn with(distances: &'static [u64], due: Due) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut serving = Serving { taken: 0, room: room(), distances, due, answered: Answered::default() };
            while !stopped.load(Ordering::SeqCst) {
                serving.turn();
            }
            serving.answered
        });
        Self { stop, thread: Some(thread) }
    }

    /// Stops, and tells what was asked.
    pub(crate) fn stop(mut self) -> Answered {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap()
    }
}

struct Serving {
    taken: u64,
    room: Room,
    distances: &'static [u64],
    due: Due,
    answered: Answered,
}

impl Serving {
    fn turn(&mut self) {
        half(GLOBAL + global::AWAKE).store(1, Ordering::SeqCst);
        for _ in 0..2000 {
            self.drain();
            std::hint::spin_loop();
        }
        half(GLOBAL + global::AWAKE).store(0, Ordering::SeqCst);
        let seen = half(GLOBAL + global::WAKE).load(Ordering::SeqCst);
        if self.taken == word(IMAGE + image::TICKET).load(Ordering::SeqCst) {
            futex(GLOBAL + global::WAKE, libc::FUTEX_WAIT, seen);
        }
    }

    fn drain(&mut self) {
        while self.taken < word(IMAGE + image::TICKET).load(Ordering::SeqCst) {
            let entry = word(IMAGE + image::RING + 8 * (self.taken % image::RING_LEN));
            let tag = entry.swap(0, Ordering::SeqCst);
            if tag != 0 {
                self.taken += 1;
                self.answer((tag & 0xffff) - 1);
            }
        }
    }

    fn answer(&mut self, index: u64) {
        let at = slot_address(index);
        if half(at + slot::STATE).load(Ordering::SeqCst) != state::WAITING {
            return;
        }
        let question = Question::from_resume(word(at + slot::RESUME).load(Ordering::SeqCst)).unwrap();
        let saved = |s: Saved| word(at + s.offset()).load(Ordering::SeqCst);
        self.answered.questions.push((question, saved(Saved::Rax), saved(Saved::Rdi)));
        let asked = word(at + slot::ANSWER).load(Ordering::SeqCst);
        let root = match question {
            Question::Context => Some(asked),
            Question::Number => number_site(image_words(), &mut self.room, asked, saved(Saved::Rax) as u32, 0).ok(),
            _ => None,
        };
        if let Some(root) = root {
            let first = word(root + node::OFFSET).load(Ordering::SeqCst);
            let mut steps = Vec::new();
            for distance in std::iter::once(first).chain(self.distances.iter().copied()) {
                // SAFETY: the stack of a thread of this process that waits for us.
                let word = unsafe { *((saved(Saved::Rsp) + distance) as *const u64) };
                steps.push(Step { word, next: self.distances.get(steps.len()).copied().unwrap_or(0) });
            }
            let node = grow_due(image_words(), &mut self.room, root, &steps, self.due).unwrap_or(root);
            word(at + slot::ANSWER).store(node, Ordering::SeqCst);
        }
        half(at + slot::STATE).store(state::ANSWERED, Ordering::SeqCst);
        futex(at + slot::STATE, libc::FUTEX_WAKE, 1);
    }
}

fn word(address: u64) -> &'static AtomicU64 {
    &image_words()[(address - IMAGE) as usize / 8]
}

pub(crate) fn futex(address: u64, operation: i32, value: u32) {
    let limit = libc::timespec { tv_sec: 0, tv_nsec: 5_000_000 };
    // SAFETY: the address is in a mapped area, the limit outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, address, operation, value, &raw const limit, 0, 0) };
}
