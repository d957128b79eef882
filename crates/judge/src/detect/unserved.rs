//! Detects waits that report a descriptor as ready again, at once, since the program did nothing about it.

use crate::collections::hash::Map;
use crate::evidence::claim::{Claim, Claims, put};
use crate::results::finding::Kind;
use crate::world::replay::Step;
use systoll_model::{ArgData, Moment, Sysno};

/// Calls that do nothing about a ready descriptor, such as reads of clocks or ids.
const IDLE: [Sysno; 10] = [
    Sysno::named("clock_gettime"),
    Sysno::named("gettimeofday"),
    Sysno::named("time"),
    Sysno::named("times"),
    Sysno::named("getrusage"),
    Sysno::named("getpid"),
    Sysno::named("gettid"),
    Sysno::named("getcpu"),
    Sysno::named("sched_yield"),
    Sysno::named("rt_sigprocmask"),
];

/// Least number of waits with the same answer for a habit.
const HABIT: usize = 4;

/// The answer of a wait.
struct Told<'a> {
    ready: &'a [u8],
    result: i64,
    /// Indices of the consecutive waits with the same answer.
    again: Vec<usize>,
    /// True if a call since then may have served the ready descriptor.
    served: bool,
}

/// Claims waits that report the same as the one before, if nothing was done about it.
pub(super) fn window(steps: &[Step<'_>], claims: &mut Claims) {
    let mut told: Map<(Sysno, u64), Told<'_>> = Map::default();
    for step in steps {
        let call = step.observed.call;
        if !step.lines.tells_ready() {
            let idle = IDLE.contains(&step.observed.syscall);
            if !idle || call.signals_before > 0 {
                told.values_mut().for_each(|told| told.served = true);
            }
            continue;
        }
        let (key, ready) = ((step.observed.syscall, step.observed.arg(0)), ready(&call.data));
        let Some((ready, result)) = ready.zip(call.result.filter(|result| *result > 0)) else {
            told.remove(&key).into_iter().for_each(|told| claim(told, claims));
            continue;
        };
        match told.get_mut(&key) {
            Some(told) if !told.served && (told.ready, told.result) == (ready, result) => told.again.push(step.index),
            _ => {
                let new = Told { ready, result, again: Vec::new(), served: false };
                told.insert(key, new).into_iter().for_each(|told| claim(told, claims));
            }
        }
    }
    told.drain().for_each(|(_, told)| claim(told, claims));
}

/// Returns the bytes with which a wait reports what is ready: the first argument's for `poll`, the second's for
/// `epoll_wait`.
fn ready(data: &[ArgData]) -> Option<&[u8]> {
    data.iter().find(|data| data.at == Moment::Exit && data.arg < 2).map(|data| &*data.bytes)
}

fn claim(told: Told<'_>, claims: &mut Claims) {
    if told.again.len() < HABIT {
        return;
    }
    let about = "what is ready, of which it has used nothing since the last such answer,";
    let instead =
        "use what is ready (read or write until it would wait), or stop asking for it until there is something to do";
    for index in told.again {
        // The claim is weak: another thread may be about to use the descriptor, and on a busy box it is late.
        put(claims, index, Claim { weak: true, ..Claim::of(Kind::Repeat, about, instead) });
    }
}
