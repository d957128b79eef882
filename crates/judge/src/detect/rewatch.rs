//! Detects watches of files (inotify) that are given up and taken up again right away.

use crate::collections::hash::Map;
use crate::evidence::claim::{Claim, Claims, Detector, put};
use crate::results::finding::Kind;
use crate::semantics::{Source, value};
use crate::world::barrier::Barrier;
use crate::world::bounds::REMEMBERED;
use crate::world::replay::Step;

/// Least number of watches given up and of watches taken up again, with no wait in between. A program that follows one
/// file gives its watch up because another file got the name, and has to take up the new one.
const AT_ONCE: usize = 3;
/// Flag of a watch that the kernel removes after its first event (`linux/inotify.h`).
const IN_ONESHOT: u32 = 1 << 31;

/// Claims the removal of watches and their adding, if the same paths are watched again before the program waits for
/// anything: nothing but the program ended those watches.
#[derive(Default)]
pub(super) struct Rewatch {
    /// By process, inotify descriptor and path: the number of the newest watch.
    watches: Map<(u32, i32, Vec<u8>), i32>,
}

/// A stretch of calls without a wait in it.
#[derive(Default)]
struct Stretch {
    /// Indices of the calls that give watches up.
    removed: Vec<usize>,
    /// Indices of the calls that take watches up of paths that were watched before.
    again: Vec<usize>,
    /// Indices of the calls that watch paths of which nothing is known.
    unknown: Vec<usize>,
}

impl Stretch {
    /// Claims as many removals as paths are watched again. `is_cut` is true if the window ends before the stretch does.
    fn claim(&self, is_cut: bool, claims: &mut Claims) {
        let repeats = self.removed.len() >= AT_ONCE && self.again.len() >= AT_ONCE;
        if repeats {
            let gone = self.removed.iter().rev().take(self.again.len());
            gone.chain(&self.again).for_each(|at| put(claims, *at, claim()));
        }
        if repeats || is_cut {
            self.removed.iter().chain(&self.unknown).for_each(|at| claims.leave_out(*at));
        }
    }
}

impl Detector for Rewatch {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut stretch = Stretch::default();
        for step in steps {
            if step.lets(Barrier::WAITS) {
                std::mem::take(&mut stretch).claim(false, claims);
            }
            if step.observed.call.errno().is_some() {
                continue;
            }
            match step.observed.syscall.name() {
                Some("inotify_rm_watch") => stretch.removed.push(step.index),
                Some("inotify_add_watch") if step.observed.arg(2) as u32 & IN_ONESHOT == 0 => {
                    let Some(path) = value(Source::In(1), &step.observed) else { continue };
                    let key = (step.who, step.observed.descriptor(0), path.to_vec());
                    let number = step.observed.call.result.unwrap_or(-1) as i32;
                    if self.watches.len() >= REMEMBERED && !self.watches.contains_key(&key) {
                        continue;
                    }
                    match self.watches.insert(key, number) {
                        Some(before) if before == number => {}
                        Some(_) if !stretch.removed.is_empty() => stretch.again.push(step.index),
                        Some(_) => {}
                        None => stretch.unknown.push(step.index),
                    }
                }
                _ => {}
            }
        }
        stretch.claim(true, claims);
    }
}

fn claim() -> Claim {
    Claim::of(
        Kind::Toggle,
        "the watch of a file that is still wanted",
        "keep the watches of files that are still wanted; add and remove only what differs",
    )
}
