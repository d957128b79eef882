//! The queue of threads that ask something.

use super::super::layout::{global, image, slot, state};
use super::engine::Engine;
use super::sys;

impl Engine {
    /// Says that something is begun now, which may take long.
    pub(super) fn begin_item(&mut self) {
        self.item = sys::tsc();
        self.memory.global.set(global::BUSY, self.item);
        self.memory.global.set(global::PROCESSOR, sys::processor().into());
    }

    /// Answers what is in the queue; whether there was anything.
    pub(super) fn serve(&mut self) -> bool {
        let head = self.memory.global.get(global::TICKET);
        let mut did = false;
        if head.saturating_sub(self.tail) > global::RING_LEN || self.quiet {
            did = self.serve_all();
            if !self.quiet {
                self.tail = head;
            }
        }
        while self.tail < head {
            let entry = global::RING + 8 * (self.tail % global::RING_LEN);
            let tag = self.memory.global.get(entry);
            if tag == 0 && !self.given_up(self.tail) {
                // Its thread has drawn the ticket and is about to write; the others don't wait.
                self.serve_all();
                break;
            }
            self.memory.global.set(entry, 0);
            self.tail += 1;
            if let Some((program, index)) = untag(tag) {
                self.begin_item();
                self.answer(program, index);
            }
            did = true;
        }
        if did && self.memory.global.get(global::DEAD) as u32 != 0 {
            // Somebody lost patience while we were at something long; we are back.
            self.memory.global.set(global::DEAD, 0);
        }
        did
    }

    /// Whether an entry that nobody has filled never will be: its thread was killed meanwhile.
    fn given_up(&mut self, ticket: u64) -> bool {
        const PATIENCE_NS: u64 = 50_000_000;
        let now = sys::now();
        if self.empty_since.0 != ticket {
            self.empty_since = (ticket, now);
        }
        now.saturating_sub(self.empty_since.1) > PATIENCE_NS
    }

    /// Looks at every slot of every program.
    fn serve_all(&mut self) -> bool {
        let mut did = false;
        for id in self.programs.keys().copied().collect::<Vec<_>>() {
            for index in 0..self.slots_drawn(id) {
                let state = image::SLOTS + index * slot::SIZE + slot::STATE;
                let waits = self.memory.image(id).is_some_and(|a| a.get(state) as u32 == state::WAITING);
                if waits {
                    self.begin_item();
                    self.answer(id, index);
                    did = true;
                }
            }
        }
        did
    }
}

/// Program and slot of a tag in the queue.
fn untag(tag: u64) -> Option<(u32, u64)> {
    let index = (tag & 0xffff).checked_sub(1)?;
    Some((u32::try_from(tag >> 16).ok()?, index))
}
