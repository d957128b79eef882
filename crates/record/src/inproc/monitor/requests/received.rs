//! Opens windows where threads receive requests from a network, if requests are to be reported.
//!
//! A thread asks at its first receive at each place, and from then on the launcher now and then has it ask at each call
//! until the next receive, where a window opens. The launcher records such a window call by call, since it may be
//! longer than one that a thread writes by itself.

use crate::inproc::monitor::handles::{NodeAddr, SlotRef};
use crate::inproc::monitor::requests::open_windows::{Open, OpenWindows, SampledReceive};
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::requests::windows;
use crate::inproc::monitor::session::{DraftRecording, FileKnowledge, Targets};
use crate::inproc::monitor::shared::memory::Memory;
use crate::inproc::monitor::sys;
use crate::request_windows::{Receive, is_open_socket, is_receive, is_socket};
use crate::sys::read_memory;
use std::sync::atomic::Ordering;
use std::time::Duration;
use systoll_hooks::layout::ring::call;
use systoll_hooks::layout::{look, may_hold_node, node, slot, want};

/// Calls at which a thread asks in vain, at most: it may have stopped receiving.
const PATIENCE: u32 = 512;
/// Time that a sample takes of a thread that asks for it, before the call and after it.
const ASKED: Duration = Duration::from_micros(20);
/// Nodes at which threads receive that are remembered, at most. At further nodes threads stop asking once a thread that
/// writes a window has planned the next place there.
const MOST_NODES: usize = 256;
/// Receiving threads that are remembered, at most; further ones are never chosen.
const MOST: usize = 4_096;

/// Handles a call at which a thread asks. Returns true if nothing else is to be done.
pub(crate) fn on_entry(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    waiter: &Waiter,
    at: NodeAddr,
    began: u64,
) -> bool {
    if !draft.windows.budget.tells_requests() {
        return false;
    }
    let thread = waiter.slot;
    draft.windows.sampled.remove(&thread);
    let (stands_for, is_open) = (stands_for(&targets.memory, thread), draft.windows.open.contains_key(&thread));
    if is_open && stands_for == 0 {
        return false;
    }
    let Some(entered) = windows::entered(targets, draft, waiter, at) else { return false };
    let receives = entered.syscall.signature().is_some_and(is_receive);
    // A thread that writes a window writes its samples too.
    let writes = windows::wanted(&targets.memory, thread) == want::WRITING;
    let is_sampled = receives && stands_for > 0 && !writes;
    if is_sampled {
        let sample = SampledReceive { row: entered.row, syscall: entered.syscall, args: waiter.args(), stands_for };
        draft.windows.sampled.insert(thread, sample);
    }
    if is_open {
        return false;
    }
    if receives && is_socket(waiter.tid, waiter.args()[0]) {
        ask_at_first(&targets.memory, &mut draft.windows, waiter, at);
        let receivers = &mut draft.windows.receivers;
        if receivers.len() < MOST && !receivers.contains(&thread) {
            receivers.push(thread);
        }
        let run_ns = draft.clock.at(began);
        if !writes && draft.windows.budget.opens_for_request(run_ns) {
            draft.windows.armed.remove(&thread);
            let mut window = windows::opened(&targets.memory, draft, waiter, &entered);
            window.tells_requests = true;
            draft.windows.open.insert(thread, Open { window, under_way: None });
            windows::record(targets, knowledge, draft, waiter, &entered, run_ns);
            return true;
        }
        // Another thread received before this one, which would go on to ask at each call.
        if !writes && draft.windows.armed.remove(&thread).is_some() {
            windows::set_wanted(&targets.memory, thread, want::NOTHING);
        }
    }
    let is_armed = count_armed(&targets.memory, &mut draft.windows, thread);
    if is_armed {
        let run_ns = draft.clock.at(began);
        windows::comes_due(targets, draft, thread.program, at, &entered, run_ns);
    }
    if is_sampled {
        // It asks again when the call returns.
        windows::set_wanted(&targets.memory, thread, want::HAND_SHAKE);
    }
    is_armed || is_sampled
}

/// Counts a call of a thread that asks at every call until it receives; after enough calls it need not ask any more.
/// Returns false if the thread does not ask for that reason.
fn count_armed(memory: &Memory, windows: &mut OpenWindows, thread: SlotRef) -> bool {
    let Some(left) = windows.armed.get_mut(&thread) else { return false };
    *left = left.saturating_sub(1);
    if *left == 0 {
        windows.armed.remove(&thread);
        windows::set_wanted(memory, thread, want::NOTHING);
    }
    true
}

/// Returns the number of calls for which a thread's next call stands; zero if that call is no sample.
fn stands_for(memory: &Memory, thread: SlotRef) -> u64 {
    let flags = memory.image(thread.program).map_or(0, |area| area.get(thread.offset() + slot::LOOK_FLAGS));
    let shift = u64::from((flags >> call::LOOK_SHIFT) as u8).min(look::MOST_SHIFT as u64);
    if flags & call::LOOK != 0 { 1 << shift } else { 0 }
}

/// Handles the return of a call at which a thread asks: if the call is a sample, counts the request that it has
/// received.
pub(crate) fn on_return(windows: &mut OpenWindows, waiter: &Waiter) {
    let Some(SampledReceive { row, syscall, args, stands_for }) = windows.sampled.remove(&waiter.slot) else {
        return;
    };
    let Some(signature) = syscall.signature() else { return };
    let is_socket = || match signature.name {
        "recvfrom" | "recvmsg" => Some(true),
        _ => is_open_socket(waiter.tid, args[0]),
    };
    let result = waiter.registers.ax as i64;
    let receive = Receive { signature, args: &args, result, bytes: None, is_socket: &is_socket };
    let read = |address: u64, buffer: &mut [u8]| read_memory(waiter.tid, address, buffer);
    if let Some(requests) = &mut windows.budget.requests {
        requests.count((row, stands_for), &receive, &read);
    }
    windows.looks.spend(ASKED, Duration::ZERO);
}

/// Makes threads ask at their first call at a node, if calls there receive and requests are to be reported. Returns
/// true if so.
pub(crate) fn on_first(targets: &mut Targets, draft: &mut DraftRecording, waiter: &Waiter, at: NodeAddr) -> bool {
    let receives = draft.windows.budget.tells_requests()
        && windows::entered(targets, draft, waiter, at).is_some_and(|e| e.syscall.signature().is_some_and(is_receive));
    if receives {
        ask_at_first(&targets.memory, &mut draft.windows, waiter, at);
    }
    receives
}

fn ask_at_first(memory: &Memory, windows: &mut OpenWindows, waiter: &Waiter, at: NodeAddr) {
    let program = waiter.slot.program;
    let known = &mut windows.receive_nodes;
    if known.len() < MOST_NODES && !known.contains(&(program, at)) {
        known.push((program, at));
    }
    let Some(area) = memory.image(program).filter(|_| may_hold_node(at.offset())) else { return };
    let transfers = area.get(at.offset() + node::TRANSFERS);
    area.set(at.offset() + node::TRANSFERS, transfers | node::ASKS);
    area.set(at.offset() + node::WINDOW_AT, 1);
}

/// Has a thread that receives ask from its next call on, if a window may open.
pub(crate) fn arm_one(memory: &Memory, draft: &mut DraftRecording) {
    if draft.windows.receive_nodes.is_empty() {
        return;
    }
    if !draft.windows.budget.request_is_due(draft.clock.at(sys::now())) {
        return;
    }
    // A thread that passed a node while it wrote a window has planned a later call there, so set it back to the first
    // call.
    for (program, at) in &draft.windows.receive_nodes {
        if let Some(area) = memory.image(*program).filter(|_| may_hold_node(at.offset())) {
            area.set(at.offset() + node::WINDOW_AT, 1);
        }
    }
    let next = draft.windows.next_receiver % draft.windows.receivers.len().max(1);
    draft.windows.next_receiver = next + 1;
    let Some(thread) = draft.windows.receivers.get(next).copied() else { return };
    let Some(area) = memory.image(thread.program) else {
        draft.windows.receivers.swap_remove(next);
        return;
    };
    // A thread that writes a window or a sample by itself is left alone.
    let word = area.half(thread.offset() + slot::WANT);
    let (nothing, asks) = (want::NOTHING as u32, want::HAND_SHAKE as u32);
    if word.is_some_and(|word| word.compare_exchange(nothing, asks, Ordering::SeqCst, Ordering::SeqCst).is_ok()) {
        draft.windows.armed.insert(thread, PATIENCE);
    }
}
