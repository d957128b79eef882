//! A thread made for each little job.

use super::claim::{Claim, Claims, Detector, put};
use crate::fact::Fact;
use crate::finding::Kind;
use crate::hash::Set;
use crate::replay::Step;
use crate::semantics::{ObservedCall, Semantics};
use systoll_model::Recording;

/// Threads that a process makes before that is a habit.
const MANY: u64 = 100;
/// Processor time of such a thread on average, ns, at most, its making and end included: these alone take some
/// 20 to 50 µs.
const SHORT: u64 = 300_000;
/// Calls around a thread's making or beginning that may belong to it.
const NEAR: usize = 12;

/// Claims the making of threads whose stack a thread had that has ended, where threads hardly live, and what is
/// done once for each.
pub(super) struct ShortThreads {
    /// Processes with many threads that hardly did anything.
    habit: Set<u32>,
    /// Stacks that were handed out.
    stacks: Set<(u32, u64)>,
    /// Processes that were seen to make one thread after the other, in whichever window: those of the threads may come
    /// before those of who makes them.
    proven: Set<u32>,
}

impl ShortThreads {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        // Where the time of the only process is in doubt, it took no more than was measured.
        let at_most = recording.header.own_cpu_most_ns.filter(|_| recording.processes.len() == 1);
        let habit = (0u32..).zip(&recording.processes).filter(|(_, p)| {
            let threads = p.threads.saturating_sub(p.instances.max(1));
            threads >= MANY && p.cpu_ns.or(at_most).is_some_and(|ns| ns / threads <= SHORT)
        });
        let habit: Set<u32> = habit.map(|(process, _)| process).collect();
        let (mut stacks, mut proven) = (Set::default(), Set::default());
        for window in recording.windows.iter().filter(|w| habit.contains(&w.process.0)) {
            for call in window.calls.iter().filter(|call| call.errno().is_none()) {
                let observed = ObservedCall { window, call, syscall: recording.row(call.row).syscall };
                let stack = semantics.of(observed.syscall).spawns(&observed);
                if stack.is_some_and(|stack| !stacks.insert((window.process.0, stack))) {
                    proven.insert(window.process.0);
                }
            }
        }
        Self { habit, stacks: Set::default(), proven }
    }
}

impl Detector for ShortThreads {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let Some(process) = steps.first().map(|s| s.observed.window.process.0).filter(|p| self.habit.contains(p))
        else {
            return;
        };
        let mut starts: Vec<usize> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            if let Some(stack) = step.lines.spawns(&step.observed).filter(|_| step.observed.call.errno().is_none()) {
                starts.push(at);
                if !self.stacks.insert((process, stack)) {
                    put(claims, step.index, claim());
                }
            }
        }
        if !self.proven.contains(&process) {
            return;
        }
        let begins = |s: &Step<'_>| s.lines.thread_setup(&s.observed).is_some_and(|setup| setup.only);
        starts.extend(steps.iter().enumerate().filter(|(_, s)| begins(s)).map(|(at, _)| at));
        for (at, step) in steps.iter().enumerate() {
            let near = || starts.iter().any(|start| start.abs_diff(at) <= NEAR);
            if step.lines.thread_setup(&step.observed).is_some_and(|setup| setup.only || near()) {
                put(claims, step.index, claim());
            }
        }
    }
}

fn claim() -> Claim {
    Claim {
        facts: Fact::Thread.into(),
        ..Claim::of(
            Kind::SlowPath,
            "makes a thread for each little job, which costs more than the job",
            "keep a few threads and hand them jobs, several at a time",
        )
    }
}
