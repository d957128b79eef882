//! Detects questions whether one descriptor is ready, right before it is read or written: the transfer itself tells
//! (a dearer road).

use crate::causes::fact::Fact;
use crate::collections::hash::Map;
use crate::evidence::claim::{Claim, Claims, put};
use crate::results::finding::Kind;
use crate::semantics::Way;
use crate::world::replay::Step;
use systoll_model::{Errno, Moment, Sysno};

/// Events of poll (POLLIN, POLLPRI) that ask for something to read.
const TO_READ: u16 = 1 | 2;
/// Event of poll (POLLOUT) that asks for room to write.
const TO_WRITE: u16 = 4;
/// Flag of a transfer that must not wait (linux/socket.h).
const MSG_DONTWAIT: u64 = 0x40;
/// Least number of questions about a descriptor, in a window, that were answered at once.
const LEAST: usize = 3;
/// Least ratio of questions answered at once to those that waited or ran out: to try first costs a call more for each
/// of those, so that little is won at a lower one.
const RATIO: usize = 4;

/// The questions about a descriptor in a window.
#[derive(Default)]
struct Asked {
    /// Indices of those that were answered at once, and followed by the transfer.
    at_once: Vec<usize>,
    /// Number of the others.
    of_use: usize,
    /// True if the window shows that the transfers do not wait.
    never_waits: bool,
}

/// Claims such questions if nearly all are answered at once.
pub(super) fn window(steps: &[Step<'_>], claims: &mut Claims) {
    let mut asked: Map<(i32, Way), Asked> = Map::default();
    for (at, step) in steps.iter().enumerate() {
        if let Some(tried) = step.moved.filter(|_| step.observed.call.errno() == Some(Errno::EAGAIN))
            && let Some(fd) = tried.fd
        {
            // The program tries first already, so that its questions wait for something new.
            asked.entry((fd, tried.line.way)).or_default().of_use += 1;
        }
        let Some(one) = watched(step) else { continue };
        let of_fd = asked.entry(one).or_default();
        let call = step.observed.call;
        let Some(next) = steps.get(at + 1).filter(|_| call.result == Some(1) && call.waited_ns == Some(0)) else {
            // A question at the window's end may go with the transfer after it.
            of_fd.of_use += usize::from(call.result != Some(1) || call.waited_ns != Some(0));
            continue;
        };
        let moves = next.moved.is_some_and(|m| (m.fd, m.line.way) == (Some(one.0), one.1) && m.got.is_some());
        if moves && call.signals_before == 0 {
            of_fd.never_waits |= does_not_wait(next);
            of_fd.at_once.push(step.index);
        } else {
            of_fd.of_use += 1;
        }
    }
    for of_fd in asked.into_values() {
        if of_fd.at_once.len() >= LEAST && of_fd.at_once.len() >= RATIO * of_fd.of_use {
            let never_waits = of_fd.never_waits;
            of_fd.at_once.into_iter().for_each(|at| put(claims, at, claim(!never_waits)));
        }
    }
}

/// Returns the descriptor, and the way of the transfer, if a step asks about one alone.
fn watched(step: &Step<'_>) -> Option<(i32, Way)> {
    const POLLS: [Sysno; 2] = [Sysno::named("poll"), Sysno::named("ppoll")];
    const SELECTS: [Sysno; 2] = [Sysno::named("select"), Sysno::named("pselect6")];
    let observed = &step.observed;
    if POLLS.contains(&observed.syscall) && observed.arg(1) == 1 {
        let asked = observed.data(0, Moment::Entry)?;
        let (fd, events) = (asked.first_chunk::<4>()?, asked.get(4..6)?);
        let events = u16::from_le_bytes([events[0], events[1]]);
        let way = match (events & TO_READ != 0, events & TO_WRITE != 0) {
            (true, false) => Way::In,
            (false, true) => Way::Out,
            _ => return None,
        };
        return Some((i32::from_le_bytes(*fd), way));
    }
    if !SELECTS.contains(&observed.syscall) {
        return None;
    }
    let [reads, writes] = [1, 2].map(|arg| watched_set(step, arg));
    match (reads?, writes?, watched_set(step, 3)?) {
        (Watched::One(fd), Watched::None, _) => Some((fd, Way::In)),
        (Watched::None, Watched::One(fd), Watched::None) => Some((fd, Way::Out)),
        _ => None,
    }
}

/// The descriptors in a set of select.
enum Watched {
    None,
    One(i32),
}

/// Returns the descriptor in a set that a call of select was given; `None` if there are several or the set was not read.
fn watched_set(step: &Step<'_>, arg: u8) -> Option<Watched> {
    if step.observed.arg(arg) == 0 {
        return Some(Watched::None);
    }
    let set = step.observed.data(arg, Moment::Entry)?;
    let mut places = (0_i32..)
        .zip(set)
        .flat_map(|(at, byte)| (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| 8 * at + bit));
    match (places.next(), places.next()) {
        (None, _) => Some(Watched::None),
        (Some(fd), None) => Some(Watched::One(fd)),
        _ => None,
    }
}

/// Returns true if a transfer was told not to wait (MSG_DONTWAIT).
fn does_not_wait(step: &Step<'_>) -> bool {
    const WITH_FLAGS: [Sysno; 2] = [Sysno::named("recvfrom"), Sysno::named("sendto")];
    WITH_FLAGS.contains(&step.observed.syscall) && step.observed.arg(3) & MSG_DONTWAIT != 0
}

/// Returns a claim. It is weak if the transfer could have waited: the question may set its time limit.
fn claim(weak: bool) -> Claim {
    Claim {
        weak,
        facts: Fact::Ready.into(),
        gives_up: "the longest time to wait is then the descriptor's (SO_RCVTIMEO, SO_SNDTIMEO)",
        ..Claim::of(
            Kind::SlowPath,
            "asks whether the descriptor is ready, which the transfer after it tells as well",
            "try first, without waiting, and wait only where that says EAGAIN",
        )
    }
}
