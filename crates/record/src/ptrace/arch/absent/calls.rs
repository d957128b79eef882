//! The places at which the engine would have to care for counting code.

use super::state::OfProcess;
use crate::ptrace::engine::Engine;
use crate::ptrace::state::Pending;
use crate::tracee::Regs;
use systoll_model::{BackendKind, Sysno};

impl Engine {
    pub(crate) fn count_as(&mut self, _: BackendKind) {}

    pub(crate) fn counts_itself(&self, _: i32) -> bool {
        false
    }

    pub(crate) fn is_asked(&mut self, _: i32, _: i32) -> bool {
        false
    }

    pub(crate) fn before_handler(&mut self, _: i32, _: i32) {}

    pub(crate) fn call_entered(&mut self, _: i32, _: &Pending) {}

    pub(crate) fn call_left(&mut self, _: i32, _: &Pending, _: i64) {}

    pub(crate) fn is_put_off(&mut self, _: i32, _: Sysno, _: &[u64; 6]) -> bool {
        false
    }

    pub(crate) fn was_put_off(&mut self, _: i32) -> bool {
        false
    }

    pub(crate) fn in_file(&self, _: i32, regs: Regs) -> Regs {
        regs
    }

    pub(crate) fn inherited(&self, _: i32) -> OfProcess {
        OfProcess::default()
    }

    pub(crate) fn begins(&mut self, _: i32) {}

    pub(crate) fn take_in(&mut self, _: i32) {}

    pub(crate) fn ends(&mut self, _: i32) {}

    pub(crate) fn take_out(&mut self, _: i32) {}
}
