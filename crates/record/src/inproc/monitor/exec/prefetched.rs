//! Holds items that one thread reads for another one.

use crate::inproc::cache::Key;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Items that were read, until they are taken.
#[derive(Debug)]
pub(crate) struct Prefetched<T>(Mutex<HashMap<Key, Arc<Mutex<Item<T>>>>>);

#[derive(Debug)]
enum Item<T> {
    Unread,
    Read(Option<T>),
    Taken,
}

impl<T> Default for Prefetched<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Prefetched<T> {
    fn item(&self, key: &Key) -> Arc<Mutex<Item<T>>> {
        let mut items = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(items.entry(key.clone()).or_insert_with(|| Arc::new(Mutex::new(Item::Unread))))
    }

    /// Reads an item by `read`, unless it has been read.
    pub(crate) fn put(&self, key: &Key, read: impl FnOnce() -> Option<T>) {
        let item = self.item(key);
        let mut item = item.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*item, Item::Unread) {
            *item = Item::Read(read());
        }
    }

    /// Returns a copy of the item, which is read by `read` unless it has been read.
    pub(crate) fn share(&self, key: &Key, read: impl FnOnce() -> Option<T>) -> Option<T>
    where
        T: Clone,
    {
        self.put(key, read);
        match &*self.item(key).lock().unwrap_or_else(PoisonError::into_inner) {
            Item::Read(found) => found.clone(),
            Item::Unread | Item::Taken => None,
        }
    }

    /// Takes the item that was read ahead; otherwise reads it by `read`.
    pub(crate) fn take(&self, key: &Key, read: impl FnOnce() -> Option<T>) -> Option<T> {
        let item = self.item(key);
        let mut item = item.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *item, Item::Taken) {
            Item::Read(found) => found,
            Item::Unread | Item::Taken => read(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inproc::cache::Cache;

    #[test]
    fn what_was_read_ahead_is_taken_once() {
        let shelf = Prefetched::default();
        let key = Cache::key_named("a");
        shelf.put(&key, || Some(1));
        shelf.put(&key, || unreachable!("it has been read"));
        assert_eq!(shelf.take(&key, || unreachable!("it has been read")), Some(1));
        shelf.put(&key, || unreachable!("it is no longer needed"));
        assert_eq!(shelf.take(&key, || Some(2)), Some(2));
        let missing = Cache::key_named("b");
        shelf.put(&missing, || None);
        assert_eq!(shelf.take(&missing, || unreachable!("there is none")), None);
        let shared = Cache::key_named("c");
        assert_eq!(shelf.share(&shared, || Some(3)), Some(3));
        assert_eq!(shelf.share(&shared, || unreachable!("it has been read")), Some(3));
    }

    #[test]
    fn who_comes_while_it_is_read_waits_for_it() {
        let shelf = Arc::new(Prefetched::default());
        let key = Cache::key_named("a");
        let (begun, has_begun) = std::sync::mpsc::channel();
        let reader = {
            let (shelf, key) = (Arc::clone(&shelf), key.clone());
            std::thread::spawn(move || {
                shelf.put(&key, || {
                    begun.send(()).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    Some(7)
                });
            })
        };
        has_begun.recv().unwrap();
        assert_eq!(shelf.take(&key, || unreachable!("it is being read")), Some(7));
        reader.join().unwrap();
    }
}
