//! The function that a stack's frame calls.

use super::Symbols;
use crate::code::Callee;
use crate::{ModuleKey, RawFrame};

/// Size assumed for a function of unknown range, at most, bytes.
const MAX_UNKNOWN: u64 = 1 << 14;

/// A call instruction in a file.
pub(crate) struct CallSite {
    /// File that holds the call.
    pub(crate) module: ModuleKey,
    /// Address of the instruction.
    pub(crate) at: u64,
    /// Target of the call, if the file determines it.
    pub(crate) callee: Option<Callee>,
}

impl Symbols {
    /// Returns the call whose return address is `frame`.
    pub(crate) fn call_site(&self, frame: RawFrame) -> Option<CallSite> {
        let key = frame.module.filter(|_| frame.is_return)?;
        let module = self.module(key)?;
        let at = module.call_before(frame.address)?;
        Some(CallSite { module: key, at, callee: module.called_before(frame.address) })
    }

    /// Returns the target of the call at `frame`, and the file of the call.
    pub(crate) fn callee(&self, frame: RawFrame) -> Option<(ModuleKey, Callee)> {
        let CallSite { module, callee, .. } = self.call_site(frame)?;
        Some((module, callee?))
    }

    /// Returns true if the call before the return address `caller` calls the function around `here`; `None` if the
    /// file does not determine the call's target.
    pub(crate) fn leads(&self, caller: RawFrame, here: RawFrame) -> Option<bool> {
        let (from, callee) = self.callee(caller)?;
        let module = self.module(here.module?)?;
        let start = module.range(here.lookup()).map(|r| r.start);
        let to = match callee {
            Callee::Local(to) => (Some(from) == here.module).then_some(to),
            Callee::Symbol(name) => module.names().export(&name).map(|function| function.start),
        };
        // If the start of the function is unknown, it lies at or before the address that the function runs.
        Some(to.is_some_and(|to| start.map_or(to <= here.lookup() && here.lookup() - to < MAX_UNKNOWN, |s| s == to)))
    }
}
