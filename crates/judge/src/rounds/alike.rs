//! Joins the rounds that processes which a program forks make in the same way as the process that forks them.

use super::round::{Round, RoundStep};
use systoll_model::Sysno;

/// Joins rounds with the same calls in the same place, so that each is told once.
pub(super) fn joined(rounds: Vec<Round>) -> Vec<Round> {
    let mut all: Vec<Round> = Vec::with_capacity(rounds.len());
    for round in rounds {
        match all.iter_mut().find(|other| are_alike(other, &round)) {
            Some(other) => add(other, round),
            None => all.push(round),
        }
    }
    all
}

/// Returns true if two rounds are made of the same calls in the same order, in the same place.
fn are_alike(one: &Round, other: &Round) -> bool {
    let calls = |round: &Round| -> Vec<Vec<Sysno>> {
        round.steps.iter().map(|step: &RoundStep| step.calls().iter().map(|call| call.syscall).collect()).collect()
    };
    one.place == other.place && calls(one) == calls(other)
}

/// Adds the rounds of `more` to those of `all`.
fn add(all: &mut Round, more: Round) {
    let add = |sum: &mut u64, part: u64| *sum = sum.saturating_add(part);
    let shares = |one: Option<f64>, other: Option<f64>| Some((one? + other?).min(1.0));
    add(&mut all.count.estimate, more.count.estimate);
    add(&mut all.count.low, more.count.low);
    add(&mut all.count.high, more.count.high);
    let weight = more.count.estimate as f64 / all.count.estimate.max(1) as f64;
    let pairs = all.steps.iter_mut().zip(&more.steps);
    for (mine, theirs) in pairs.flat_map(|(mine, theirs)| mine.calls_mut().iter_mut().zip(theirs.calls())) {
        add(&mut mine.calls, theirs.calls);
        mine.share += (theirs.share - mine.share) * weight;
        mine.times.least = mine.times.least.min(theirs.times.least);
        mine.times.most = mine.times.most.max(theirs.times.most);
        mine.times.mean += (theirs.times.mean - mine.times.mean) * weight;
    }
    add(&mut all.calls, more.calls);
    add(&mut all.toll_ns, more.toll_ns);
    all.waited_ns = all.waited_ns.zip(more.waited_ns).map(|(one, other)| one.saturating_add(other));
    all.share_of_cpu = shares(all.share_of_cpu, more.share_of_cpu);
    all.share_of_wall = shares(all.share_of_wall, more.share_of_wall);
    add(&mut all.claimed.calls, more.claimed.calls);
    add(&mut all.claimed.toll_ns, more.claimed.toll_ns);
    add(&mut all.claimed.waited_ns, more.claimed.waited_ns);
    add(&mut all.looked_at, more.looked_at);
    add(&mut all.agree, more.agree);
    add(&mut all.threads, more.threads);
    // Threads of one process make rounds of their own.
    all.images.extend(more.images);
    all.images.sort_unstable();
    all.images.dedup();
    all.are_all_processes &= more.are_all_processes;
    all.startup &= more.startup;
    all.rows.extend(more.rows);
}
