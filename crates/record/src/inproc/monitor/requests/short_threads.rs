//! Samples the calls of threads that come and go.
//!
//! A window is due at a number of calls that one thread makes at a node. A thread that ends sooner never reaches it: of
//! a server with a thread for each request, only the first thread was sampled, and its calls had no lines. So each
//! time that the number of threads has grown by a part of an octave, windows are set to numbers that the threads of
//! these nodes do reach.

use crate::inproc::monitor::handles::NodeAddr;
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::requests::open_windows::OpenWindows;
use crate::inproc::monitor::session::Targets;
use crate::inproc::monitor::shared::memory::{Area, Memory};
use crate::windows::Windows;
use systoll_hooks::layout::{node, record};

/// Sets the windows of programs whose threads come and go, where more threads have come since the last time.
pub(crate) fn sample_again(targets: &mut Targets, windows: &mut OpenWindows) {
    for program in targets.programs.values_mut() {
        let Some(area) = targets.memory.image(program.id) else { continue };
        program.threads.tickets.note_drawn(area);
        let drawn = program.threads.tickets.seen;
        // The first thread draws no slot.
        if drawn <= 1 || drawn < program.threads.sample_at {
            continue;
        }
        program.threads.sample_at = windows.budget.place_after(drawn);
        program.threads.come_and_go |= set_windows(program, area, &targets.memory, &mut windows.budget);
    }
}

/// Sets the windows of a program's nodes at which threads end before they reach them. Returns true if there are such
/// nodes.
fn set_windows(program: &Program, area: &Area, memory: &Memory, budget: &mut Windows) -> bool {
    let mut found = false;
    let threads: Vec<(u64, bool)> = std::iter::once(0)
        .chain(program.threads.tickets.recent().iter().copied())
        .map(|index| program.id.slot(index))
        .map(|thread| (thread.offset(), memory.head(thread).leaving))
        .collect();
    for node in program.contexts.nodes.keys() {
        let field = node.offset() + node::WINDOW_AT;
        let (at, most) = (area.get(field), counts(area, *node, &threads));
        // Zero means that no call is sampled.
        if at == 0 || most.ended == 0 {
            continue;
        }
        // A node has one number for all threads. If a living thread has made more calls there than any that ended,
        // chance decides if the number suits living threads or those that end.
        if most.living <= most.ended || budget.below(2) == 0 {
            if at > most.ended {
                area.set(field, 1 + budget.below(most.ended));
                found = true;
            }
        } else if at <= most.living {
            area.set(field, budget.place_after(most.living));
        }
    }
    found
}

/// The largest number of calls that one thread has made at a node.
#[derive(Default)]
struct MostCalls {
    /// The largest number among threads that are about to end, or have ended.
    ended: u64,
    /// The largest number among the other threads.
    living: u64,
}

/// Returns the largest numbers of calls at `node`. `threads` has the offset of each thread's slot, and true if the thread
/// is about to end.
fn counts(area: &Area, node: NodeAddr, threads: &[(u64, bool)]) -> MostCalls {
    let mut most = MostCalls::default();
    let Some(record) = area.record_of(node) else { return most };
    for (thread, is_ending) in threads {
        let calls = area.get(thread + record + record::ENTERED);
        let most = if *is_ending { &mut most.ended } else { &mut most.living };
        *most = (*most).max(calls);
    }
    most
}
