//! Handles calls that may show the moment at which watching ends: threads ask at each of them.

use crate::inproc::monitor::handles::NodeAddr;
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::requests::windows;
use crate::inproc::monitor::session::{DraftRecording, Targets};
use crate::sys::read_memory;
use systoll_hooks::layout::ring::call;
use systoll_hooks::layout::{node, record, slot, want};

/// Handles a call at which a thread asks, and has the thread ask at its next call of that kind too. Returns true if
/// nothing else is to be done.
pub(crate) fn on_entry(targets: &mut Targets, draft: &mut DraftRecording, waiter: &Waiter, at: NodeAddr) -> bool {
    if !draft.awaited.waits() {
        return false;
    }
    let thread = waiter.slot;
    let Some(entered) = windows::entered(targets, draft, waiter, at) else { return false };
    let Some(signature) = entered.syscall.signature().filter(|signature| draft.awaited.asks_at(signature)) else {
        return false;
    };
    let read = |address: u64, buffer: &mut [u8]| read_memory(waiter.tid, address, buffer);
    draft.awaited.entered(waiter.tid, signature, &waiter.args(), &read);
    let Some(area) = targets.memory.image(thread.program) else { return false };
    let base = thread.offset();
    let by_launcher = area.get(base + slot::LOOK_FLAGS) & call::BY_LAUNCHER != 0;
    // This call is no sample.
    area.set(base + slot::LOOK_FLAGS, 0);
    area.set(base + entered.record + record::LOOK_LEFT, 0);
    let planned = area.get(at.offset() + node::WINDOW_AT);
    let is_due = planned != 0 && entered.nth >= planned;
    let asks_for_more = windows::wanted(&targets.memory, thread) == want::HAND_SHAKE;
    by_launcher && !is_due && !asks_for_more && !draft.windows.open.contains_key(&thread)
}
