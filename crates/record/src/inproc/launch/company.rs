//! Who else is there: another for the processors, another process with our memory.

use super::super::layout::global;
use super::ahead::{Ahead, Reading};
use super::engine::Engine;
use super::memory::Area;
use super::sys;
use crate::procfs;
use std::time::Duration;

/// How long the launcher looks for questions before it sleeps.
const LOOKS: Duration = Duration::from_micros(60);

impl Engine {
    /// Begins to read ahead for process `pid`, a child that has not begun to run, in a thread of its own.
    /// Where there are two processors it has one to itself: launcher and targets share the other, sleep
    /// rather than look for each other, and to have the next turn there takes a tenth of the time that it
    /// takes to wake a processor.
    pub(super) fn read_ahead(&mut self, ahead: &Ahead, what: Reading, pid: i32) {
        let beside = if self.processors == 2 { procfs::processor(pid) } else { None };
        self.reader = ahead.begin(what, beside);
        // Not before that: a thread begins where its maker may run.
        self.stay = beside.filter(|_| self.reader.is_some()).and_then(sys::Stay::on);
        if self.stay.is_some() {
            self.memory.global.set(global::SPINS, 0);
            self.asked_here = true;
        }
    }

    /// How long the launcher looks for questions before it sleeps, ns. While it looks, nobody else has its
    /// processor, and what is only ready to run there may have to wait for the timer: so not at all where
    /// the last thread that asked is on it too.
    pub(super) fn looks_for(&mut self) -> u64 {
        if self.reader.take_if(|reader| reader.is_finished()).is_some() {
            self.stay = None;
            self.memory.global.set(global::SPINS, self.spins());
        }
        if self.processors < 2 || self.asked_here { 0 } else { LOOKS.as_nanos() as u64 }
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
