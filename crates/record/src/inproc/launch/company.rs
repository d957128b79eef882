//! Who else is there: another for the processors, another process with our memory.

use super::super::layout::{global, image, slot, state};
use super::ahead::Reader;
use super::engine::{Engine, SPINS};
use super::memory::Area;
use std::time::Duration;

/// How long the launcher looks for questions before it sleeps.
const LOOKS: Duration = Duration::from_micros(60);

impl Engine {
    /// Leaves a processor to who reads ahead: where there are two, launcher and targets then share one,
    /// and each would keep the other waiting by looking for it instead of sleeping.
    pub(super) fn make_way(&mut self, reader: Option<Reader>) {
        self.reader = reader.filter(|_| self.processors == 2);
        if self.reader.is_some() {
            self.memory.global.set(global::SPINS, 0);
        }
    }

    /// Uses both processors again once all has been read ahead.
    pub(super) fn look_for_reader(&mut self) {
        if self.reader.as_ref().is_some_and(Reader::has_ended) && self.nobody_asks() {
            self.reader = None;
            self.memory.global.set(global::SPINS, SPINS);
        }
    }

    /// Whether no thread is at a question, of which it will say how often it looked for the answer.
    fn nobody_asks(&self) -> bool {
        self.programs.keys().all(|id| {
            let area = self.memory.image(*id);
            let state = |index| area.map(|a| a.get(image::SLOTS + index * slot::SIZE + slot::STATE) as u32);
            (0..self.slots_drawn(*id)).all(|index| state(index).is_none_or(|state| state == state::IDLE))
        })
    }

    /// How long the launcher looks for questions before it sleeps, ns.
    pub(super) fn looks_for(&self) -> u64 {
        let alone = self.processors < 2 || self.reader.is_some();
        if alone { 0 } else { LOOKS.as_nanos() as u64 }
    }

    /// Whether the command, which has ended, was all there ever was: one program in one process, each of
    /// whose calls was seen, and that never made another. Then nobody has our memory mapped, and the
    /// kernel need not be asked, which takes it as long as ending a process.
    pub(super) fn was_alone(&self) -> bool {
        let mut programs = self.programs.values();
        let (Some(only), None, 1) = (programs.next(), programs.next(), self.table.images.len()) else { return false };
        let made_none = self.memory.image(only.id).is_some_and(Area::no_slot_drawn);
        only.pid == self.root && made_none && self.has_no_filter_of_its_own(only.id)
    }
}
