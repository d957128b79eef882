//! Detects programs that read a descriptor's flags (F_GETFD) right before they close it.

use super::claim::{Claim, Claims, Detector, put};
use crate::finding::Kind;
use crate::replay::Step;
use crate::signs::Signs;
use systoll_model::Sysno;
use systoll_model::constants::F_GETFD;

const FCNTL: Sysno = Sysno::named("fcntl");
const CLOSE: Sysno = Sysno::named("close");

/// Claims questions whose answer can't matter any more.
pub(super) struct LastQuestion;

impl Detector for LastQuestion {
    fn looks_for(&self) -> Signs {
        Signs::CALL
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        for pair in steps.windows(2) {
            let [question, close] = pair else { continue };
            let asks = question.observed.syscall == FCNTL && question.observed.arg(1) == u64::from(F_GETFD);
            let closes =
                close.observed.syscall == CLOSE && close.observed.arg(0) as u32 == question.observed.arg(0) as u32;
            if asks && closes && close.observed.call.errno().is_none() {
                let about = "asks for a descriptor's flags right before it closes the descriptor";
                let instead = "close it without asking; Rust's standard library asks only in builds with debug assertions: build with --release";
                put(claims, question.index, Claim::of(Kind::SlowPath, about, instead));
            }
        }
    }
}
