//! Detects threads that are made for each small job.

use crate::causes::fact::Fact;
use crate::collections::hash::Set;
use crate::evidence::claim::{Claim, Claims, Detector, put};
use crate::results::finding::Kind;
use crate::semantics::{ObservedCall, Semantics, ThreadSetup};
use crate::world::replay::Step;
use systoll_model::Recording;

/// Least number of threads that a process makes for a habit.
const MANY: u64 = 100;
/// Largest mean processor time of a short-lived thread, ns, with its making and end, which alone take some 20 to 50 µs in
/// C and 100 in Java: a twentieth of it and more. With the start of the runtime counted in, Java's threads for jobs of 5 µs
/// had 240 to 310 µs each.
const SHORT: u64 = 1_000_000;
/// Largest distance from the making or beginning of a thread to a call that belongs to it, calls.
const NEAR: usize = 12;

/// Claims the making of threads that reuse the stack of an ended thread, if threads are short-lived, and the calls
/// made once for each thread.
pub(super) struct ShortThreads {
    /// Processes with many short-lived threads.
    habit: Set<u32>,
    /// Stacks of the threads made so far.
    stacks: Set<(u32, u64)>,
    /// Processes that were seen in any window to reuse a thread's stack. They are collected first,
    /// since a thread's windows may come before those of its maker.
    proven: Set<u32>,
}

impl ShortThreads {
    pub(super) fn new(recording: &Recording, semantics: &Semantics) -> Self {
        // If the processor time of the only process is uncertain, its upper bound serves.
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
                let stack = semantics.lines_of(observed.syscall).spawns(&observed);
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
        let begins = |s: &Step<'_>| s.line::<ThreadSetup>().is_some_and(|setup| setup.only);
        starts.extend(steps.iter().enumerate().filter(|(_, s)| begins(s)).map(|(at, _)| at));
        for (at, step) in steps.iter().enumerate() {
            let near = || starts.iter().any(|start| start.abs_diff(at) <= NEAR);
            if step.line::<ThreadSetup>().is_some_and(|setup| setup.only || near()) {
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
