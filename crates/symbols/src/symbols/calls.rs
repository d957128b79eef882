//! Which function a stack's frame calls.

use super::Symbols;
use crate::code::Callee;
use crate::{ModuleKey, RawFrame};

/// The longest function of unknown extent.
const MAX_UNKNOWN: u64 = 1 << 14;

/// A call instruction in a file.
pub(crate) struct CallSite {
    /// The file.
    pub(crate) module: ModuleKey,
    /// Where the instruction lies.
    pub(crate) at: u64,
    /// What it calls, as far as the file tells.
    pub(crate) callee: Option<Callee>,
}

impl Symbols {
    /// The call that `frame` returns to.
    pub(crate) fn call_site(&self, frame: RawFrame) -> Option<CallSite> {
        let key = frame.module.filter(|_| frame.is_return)?;
        let module = self.module(key)?;
        let at = module.call_before(frame.address)?;
        Some(CallSite { module: key, at, callee: module.called_before(frame.address) })
    }

    /// What the call at `frame` calls, and the file it is made from.
    pub(crate) fn callee(&self, frame: RawFrame) -> Option<(ModuleKey, Callee)> {
        let CallSite { module, callee, .. } = self.call_site(frame)?;
        Some((module, callee?))
    }

    /// Whether the call that `caller` returns to is one of the function around `here`; `None` where that
    /// can't be told: the file does not know the call's target.
    pub(crate) fn leads(&self, caller: RawFrame, here: RawFrame) -> Option<bool> {
        let (from, callee) = self.callee(caller)?;
        let module = self.module(here.module?)?;
        let start = module.range(here.lookup()).map(|r| r.start);
        let to = match callee {
            Callee::Local(to) => (Some(from) == here.module).then_some(to),
            Callee::Symbol(name) => module.names().export(&name).map(|function| function.start),
        };
        // A function of unknown start begins at or before the address that it runs.
        Some(to.is_some_and(|to| start.map_or(to <= here.lookup() && here.lookup() - to < MAX_UNKNOWN, |s| s == to)))
    }
}
