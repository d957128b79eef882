//! Brings frequent contexts to the front of their levels, where threads find them first.

use crate::inproc::monitor::handles::NodeAddr;
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::session::Targets;
use crate::inproc::monitor::shared::memory::Area;
use std::collections::BTreeSet;
use systoll_hooks::assemble::sort_tree;
use systoll_hooks::layout::{is_record, may_hold_node, node, record};

/// Time after a program was first seen here at which its contexts are sorted, and again after the same time, twice that and
/// so on, ns. A Node server that was entered while it ran spent 15 % of the counting code's time on the contexts of `futex`
/// that came before the frequent ones.
const FIRST_NS: u64 = 200_000_000;
/// Threads whose counts stand for those of all.
const THREADS: usize = 15;

/// Sorts the contexts of the programs for which it is time. `now` is the monotonic clock's time, ns.
pub(crate) fn sort_some(targets: &mut Targets, now: u64) {
    for program in targets.programs.values_mut() {
        let (at, pause) = *program.contexts.sort_at.get_or_insert((now + FIRST_NS, FIRST_NS));
        if now < at {
            continue;
        }
        program.contexts.sort_at = Some((now + pause, 2 * pause));
        if let Some(area) = targets.memory.image(program.id) {
            sort(program, area);
        }
    }
}

fn sort(program: &Program, area: &Area) {
    let recent = program.threads.tickets.recent().iter().rev().take(THREADS);
    let threads: Vec<u64> = std::iter::once(&0).chain(recent).map(|n| program.id.slot(*n).offset()).collect();
    let calls = |record: u64| {
        let counted =
            threads.iter().filter(|_| is_record(record)).map(|slot| area.get(slot + record + record::ENTERED));
        counted.fold(0, u64::saturating_add)
    };
    let nodes = program.contexts.nodes.keys().map(|at: &NodeAddr| at.offset()).filter(|at| may_hold_node(*at));
    let roots: BTreeSet<u64> = nodes.map(|at| area.get(at + node::ROOT)).collect();
    for root in roots {
        // A damaged tree belongs to a program that writes over our memory.
        let _ = sort_tree(area.words(), root, &calls);
    }
}
