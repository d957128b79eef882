//! Who else is there: another for the processors, another process with our memory.

use super::ahead::{Ahead, Reading};
use super::engine::Engine;
use super::filter;
use super::memory::Area;
use super::sys;
use crate::procfs;
use std::time::Duration;
use systoll_hooks::layout::{global, image, slot};

/// How long the launcher looks for questions, where others want its processor, before it sleeps; and how
/// often it offers it.
const LOOKS: Duration = Duration::from_micros(60);
/// How long it looks where nobody else does: to wake it takes longer than most answers, and where there is
/// one question more come soon.
const LOOKS_ON: Duration = Duration::from_millis(1);
/// The same where programs begin, which ask much.
const LOOKS_AT_BIRTH: Duration = Duration::from_millis(2);
/// Offered for as long as this, a processor was taken by somebody who has more to do on it.
const AWAY: Duration = Duration::from_micros(200);
/// For how long that is taken to be so.
const CROWDED: Duration = Duration::from_millis(10);

const fn ns(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

impl Engine {
    /// Begins to read ahead for process `pid`, a child that has not begun to run, in a thread of its own.
    /// Where there are two processors it has one to itself: launcher and targets share the other, sleep
    /// rather than look for each other, and to have the next turn there takes a tenth of the time that it
    /// takes to wake a processor.
    pub(super) fn read_ahead(&mut self, ahead: &Ahead, what: Reading, pid: i32) {
        if self.processors < 2 {
            return;
        }
        let beside = if self.processors == 2 { procfs::processor(pid) } else { None };
        self.reader = ahead.begin(what, beside);
        // Not before that: a thread begins where its maker may run.
        self.stay = beside.filter(|_| self.reader.is_some()).and_then(sys::Stay::on);
        if self.stay.is_some() {
            self.memory.global().set(global::SPINS, 0);
            self.asked_here = true;
        }
    }

    /// Whether a thread that is about to exec was on another processor than ours, which it had better keep:
    /// some kernels wake a program beside who wakes it, where it waits for us and finds nothing in the caches.
    pub(super) fn asked_elsewhere(&self, id: u32, index: u64) -> bool {
        let here = |area: &Area| area.get(image::SLOTS + index * slot::SIZE + slot::PATIENCE) == 0;
        self.stay.is_none()
            && *filter::inherited() == filter::Inherited::Nothing
            && self.memory.image(id).is_some_and(|area| !here(area))
    }

    /// Has both processors used again once all has been read ahead.
    pub(super) fn look_for_reader(&mut self) {
        if self.reader.take_if(|reader| reader.is_finished()).is_some() {
            self.stay = None;
            self.memory.global().set(global::SPINS, self.spins());
        }
    }

    /// Whether to look for questions once more rather than sleep.
    ///
    /// While the launcher looks, nobody else has its processor, and what is only ready to run there may
    /// have to wait for the timer. So it offers it, at once if the thread that asked last is on it too,
    /// and does not look for long where it was taken: who sleeps has the next turn when woken.
    pub(super) fn looks_on(&mut self) -> bool {
        if self.processors < 2 || self.stay.is_some() {
            return false;
        }
        let now = sys::now();
        let idle = now.saturating_sub(self.answered);
        if now < self.crowded_until {
            std::hint::spin_loop();
            return !self.asked_here && idle < ns(LOOKS);
        }
        if idle >= ns(LOOKS_ON) && now >= self.births_until {
            return false;
        }
        if self.asked_here || now.saturating_sub(self.offered) >= ns(LOOKS) {
            std::thread::yield_now();
            self.offered = sys::now();
            if self.offered.saturating_sub(now) >= ns(AWAY) {
                self.crowded_until = self.offered + ns(CROWDED);
            }
        }
        std::hint::spin_loop();
        true
    }

    /// A program begins, or goes on to.
    pub(super) fn expect_births(&mut self) {
        self.births_until = sys::now() + ns(LOOKS_AT_BIRTH);
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
