//! Effects of calls on connections and events.

use super::effects::Effect;
use super::registry::Lines;

impl Lines {
    /// Returns true if the call connects a socket to a peer.
    pub(crate) fn connects(&self) -> bool {
        self.does(|effect| matches!(effect, Effect::Connects))
    }

    /// Returns true if the call ends one way of a connection.
    pub(crate) fn ends_streams(&self) -> bool {
        self.does(|effect| matches!(effect, Effect::EndsStream))
    }

    /// Returns true if the call delivers events.
    pub(crate) fn delivers(&self) -> bool {
        self.does(|effect| matches!(effect, Effect::Delivers(_)))
    }
}
