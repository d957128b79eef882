//! Calls that are being served, so that they can be taken back.

use crate::message::Id;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whether a call has been taken back.
pub(crate) type Cancelled = Arc<AtomicBool>;

/// The calls, by the ids of their requests.
#[derive(Default)]
pub(crate) struct Calls(Mutex<BTreeMap<Id, Cancelled>>);

impl Calls {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Id, Cancelled>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count(&self) -> usize {
        self.all().len()
    }

    /// A call begins; `None` where one with this id is being served.
    pub(crate) fn begin(&self, id: &Id) -> Option<Cancelled> {
        let mut all = self.all();
        if all.contains_key(id) {
            return None;
        }
        let cancelled = Cancelled::default();
        all.insert(id.clone(), Arc::clone(&cancelled));
        Some(cancelled)
    }

    /// A call has ended.
    pub(crate) fn end(&self, id: &Id) {
        self.all().remove(id);
    }

    /// Takes one back, if it is still being served.
    pub(crate) fn cancel(&self, id: &Id) {
        if let Some(cancelled) = self.all().get(id) {
            cancelled.store(true, Ordering::Release);
        }
    }

    /// Takes all back.
    pub(crate) fn cancel_all(&self) {
        self.all().values().for_each(|cancelled| cancelled.store(true, Ordering::Release));
    }
}
