//! A thread of the test that plays the launcher: it answers the questions of hooked threads.

#![allow(dead_code, reason = "each of those who share this use a part of it")]

use crate::lab::{half, image_words, room};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use systoll_hooks::assemble::{
    Above, Due, FramePointer, Room, Step, TreeError, Trunk, grow, grow_due, grow_known, grow_seen, number_site,
};
use systoll_hooks::layout::{GLOBAL, IMAGE, Question, Saved, global, image, node, slot, slot_address, state};

/// A running thread that answers questions.
pub(crate) struct Server {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Answered>>,
}

/// The questions that were answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answered {
    /// Each question, with the call's number or result (rax) and its first argument.
    pub(crate) questions: Vec<(Question, u64, u64)>,
}

impl Answered {
    /// Returns the number of questions of a kind.
    pub(crate) fn count(&self, question: Question) -> usize {
        self.questions.iter().filter(|(q, ..)| *q == question).count()
    }
}

impl Server {
    /// Starts answering. Contexts are told apart by the first return address and by those at the given distances from
    /// rsp.
    pub(crate) fn start(distances: &'static [u64]) -> Self {
        Self::opening(distances, 0)
    }

    /// Starts answering like [`Server::start`]; the first window of each context is due at call `window_at`.
    pub(crate) fn opening(distances: &'static [u64], window_at: u64) -> Self {
        Self::with(distances, Due { at: window_at, asks: false })
    }

    /// Starts answering like [`Server::start`]; the thread asks for a window at call `window_at` of each context.
    pub(crate) fn looking(distances: &'static [u64], window_at: u64) -> Self {
        Self::with(distances, Due { at: window_at, asks: true })
    }

    /// Starts answering. Contexts are told apart by one return address. Above each lies a trunk: the words at these
    /// distances from rsp. The last word that the trunk holds differs from the stack's by `changed`.
    pub(crate) fn knowing(above: &'static [u64], changed: u64) -> Self {
        Self::finding(Callers::Below { above, changed }, Due::default())
    }

    /// Starts answering. Contexts are told apart by the return address at `first` from rsp, and by the one right
    /// above the word that the frame pointer points to.
    pub(crate) fn by_pointer(first: u64, pointer: Pointer) -> Self {
        Self::finding(Callers::ByPointer { first, pointer }, Due::default())
    }

    /// Starts answering like [`Server::start`], for a launcher that has no time for new contexts: except for the
    /// first, the contexts of a level count at one node.
    pub(crate) fn sparing() -> Self {
        Self::finding(Callers::First, Due::default())
    }

    fn with(distances: &'static [u64], due: Due) -> Self {
        Self::finding(Callers::At(distances), due)
    }

    fn finding(callers: Callers, due: Due) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut serving = Serving { taken: 0, room: room(), callers, due, answered: Answered::default() };
            while !stopped.load(Ordering::SeqCst) {
                serving.turn();
            }
            serving.answered
        });
        Self { stop, thread: Some(thread) }
    }

    /// Stops answering. Returns the questions.
    pub(crate) fn stop(mut self) -> Answered {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// Place at which the interrupted function keeps the frame pointer.
#[derive(Clone, Copy)]
pub(crate) enum Pointer {
    /// In memory, at this distance from rsp.
    Saved(u64),
    InRbp,
}

/// The server's source for the callers of a thread that asks.
#[derive(Clone, Copy)]
enum Callers {
    At(&'static [u64]),
    Below { above: &'static [u64], changed: u64 },
    ByPointer { first: u64, pointer: Pointer },
    First,
}

struct Serving {
    taken: u64,
    room: Room,
    callers: Callers,
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
            Question::Number => {
                let first = if let Callers::ByPointer { first, .. } = self.callers { first } else { 0 };
                number_site(image_words(), &mut self.room, asked, saved(Saved::Rax) as u32, first).ok()
            }
            _ => None,
        };
        if let Some(root) = root {
            let first = word(root + node::OFFSET).load(Ordering::SeqCst);
            let rsp = saved(Saved::Rsp);
            // SAFETY: the word lies on the stack of a thread of this process, which waits for the answer.
            let on_stack = |distance: u64| unsafe { *(rsp.wrapping_add(distance) as *const u64) };
            let steps = match self.callers {
                Callers::At(distances) => {
                    let next = distances.iter().copied().chain([0]);
                    let places = std::iter::once(first).chain(distances.iter().copied());
                    places.zip(next).map(|(at, next)| Step { word: on_stack(at), next, pointer: None }).collect()
                }
                Callers::Below { .. } | Callers::First => vec![Step { word: on_stack(first), ..Step::default() }],
                Callers::ByPointer { first, pointer } => {
                    let (place, value) = match pointer {
                        Pointer::Saved(at) => (Some(at), on_stack(at)),
                        Pointer::InRbp => (None, saved(Saved::Rbp)),
                    };
                    let distance = value.wrapping_sub(rsp);
                    let next = distance + 8;
                    let pointer = Some(FramePointer { saved: place, distance });
                    vec![
                        Step { word: on_stack(first), next, pointer },
                        Step { word: on_stack(next), ..Step::default() },
                    ]
                }
            };
            let trunk = |above: &[u64], changed: u64| {
                let mut above: Vec<Above> =
                    above.iter().map(|place| Above { place: *place, word: on_stack(*place) }).collect();
                above.last_mut().unwrap().word ^= changed;
                Trunk { from_rbp: false, above }
            };
            let grown = if let Callers::Below { above, changed } = self.callers {
                let node = grow_seen(image_words(), &mut self.room, root, &steps, Some(&trunk(above, changed)));
                // The launcher samples the first call, too, so the next is due at 2.
                node.inspect(|node| word(node + node::WINDOW_AT).store(2, Ordering::SeqCst))
            } else if let Callers::First = self.callers {
                grow_known(image_words(), &mut self.room, root, &steps)
            } else if self.due == Due::default() {
                grow(image_words(), &mut self.room, root, &steps)
            } else {
                grow_due(image_words(), &mut self.room, root, &steps, self.due, None)
            };
            let node = match grown {
                Ok(node) | Err(TreeError::Varies { node, .. }) => node,
                Err(_) => root,
            };
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
    // SAFETY: the address lies in a mapped area, and the limit outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, address, operation, value, &raw const limit, 0, 0) };
}
