//! Keeps the calls in progress, which the client can cancel.

use crate::message::Id;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A flag that is set when a call is cancelled.
pub(crate) type Cancelled = Arc<AtomicBool>;

/// The calls in progress, by the ids of their requests.
#[derive(Default)]
pub(crate) struct Calls(Mutex<BTreeMap<Id, Cancelled>>);

impl Calls {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Id, Cancelled>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count(&self) -> usize {
        self.all().len()
    }

    /// Registers a call. Returns `None` if a call with this id is in progress.
    pub(crate) fn begin(&self, id: &Id) -> Option<Cancelled> {
        let mut all = self.all();
        if all.contains_key(id) {
            return None;
        }
        let cancelled = Cancelled::default();
        all.insert(id.clone(), Arc::clone(&cancelled));
        Some(cancelled)
    }

    /// Removes a call that has ended.
    pub(crate) fn end(&self, id: &Id) {
        self.all().remove(id);
    }

    /// Cancels a call, if it is in progress.
    pub(crate) fn cancel(&self, id: &Id) {
        if let Some(cancelled) = self.all().get(id) {
            cancelled.store(true, Ordering::Release);
        }
    }

    /// Cancels all calls in progress.
    pub(crate) fn cancel_all(&self) {
        self.all().values().for_each(|cancelled| cancelled.store(true, Ordering::Release));
    }
}
