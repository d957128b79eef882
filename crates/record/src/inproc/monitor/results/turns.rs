//! Answers calls in place in turns, and tells what was done up to each.

use crate::backend::{Control, TurnOrder, TurnTotals};
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::results::in_place::in_place_of;
use crate::inproc::monitor::results::{losses, recording};
use crate::inproc::monitor::session::{Session, Targets};
use crate::inproc::monitor::shared::memory::Memory;
use crate::inproc::monitor::sys;
use crate::table::Table;
use std::collections::{BTreeMap, HashSet};
use systoll_hooks::layout::global;

/// Has calls be made until an order says otherwise, if they are answered in turns.
pub(crate) fn begin(memory: &Memory, in_turns: bool) {
    if in_turns {
        memory.global().set(global::ANSWERING, 0);
    }
}

/// Carries out the orders that have come, and tells the totals after each.
pub(crate) fn follow(session: &mut Session, control: &mut dyn Control) {
    if !session.traced.root.attached.is_some_and(|attached| attached.in_turns) {
        return;
    }
    while let Some(order) = control.order() {
        let answering = match order {
            TurnOrder::Answer => Some(session.knowledge.provisioning.elided),
            TurnOrder::Make => Some(0),
            TurnOrder::Read => None,
        };
        if let Some(bits) = answering {
            session.targets.memory.global().set(global::ANSWERING, bits.into());
        }
        control.totals(totals(session));
    }
}

/// Returns the totals up to now.
fn totals(session: &mut Session) -> TurnTotals {
    // Read the processor time first: collecting the counts takes a while, and the time of calls made meanwhile belongs
    // to the next turn, as do these calls.
    session.targets.programs.values_mut().for_each(|program| program.note_cpu(&session.targets.memory));
    let at_ns = session.draft.clock.at(sys::now());
    let unanswered = unanswered(&session.targets, &session.draft.table);
    recording::with_the_living(session, |session| {
        let mut made = BTreeMap::new();
        for row in &session.draft.table.rows {
            let sum: &mut u64 = made.entry(row.syscall).or_default();
            *sum = sum.saturating_add(row.counts.calls);
        }
        let rows = || session.draft.table.rows.iter().map(|row| (row.syscall, &row.counts));
        TurnTotals {
            at_ns,
            cpu_ns: session.draft.table.images.iter().fold(0, |sum, image| sum.saturating_add(image.cpu_ns)),
            in_place: in_place_of(session.knowledge.provisioning.elided, &session.draft.stats.counted.in_place, rows),
            made,
            unanswered,
            processes: session
                .targets
                .programs
                .values()
                .map(|program| pids(&session.targets.memory, program).len())
                .sum(),
        }
    })
}

/// Returns the processes of a program that are alive.
fn pids(memory: &Memory, program: &Program) -> HashSet<i32> {
    let slots = 0..memory.slots_drawn(program.id);
    let pids = slots.map(|index| memory.head(program.id.slot(index)).pid as i32);
    pids.filter(|pid| *pid > 0 && sys::exists(*pid)).collect()
}

/// Returns the programs whose calls are not answered, each with the reason.
fn unanswered(targets: &Targets, table: &Table) -> Vec<String> {
    let of = |program: &Program| {
        let why = losses::why_unanswered(&targets.memory, program)?;
        let exe = table.images.get(program.image.index()).map_or("", |image| &image.exe);
        Some(format!("{exe}: {why}"))
    };
    let mut all: Vec<String> = targets.programs.values().filter_map(of).collect();
    all.sort();
    all.dedup();
    all
}
