//! Tables of values that messages refer to by index.

use super::error::{FileError, damaged};
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Distinct values in the order they were first seen.
pub(super) struct Interner<T> {
    index: HashMap<T, u32>,
    values: Vec<T>,
}

impl<T: Clone + Eq + Hash> Interner<T> {
    /// Makes a table with `first` at index 0.
    pub(super) fn with(first: T) -> Self {
        let mut new = Self { index: HashMap::new(), values: Vec::new() };
        new.add(first);
        new
    }

    /// Returns the index of `value`; adds it if it is new.
    pub(super) fn index<Q>(&mut self, value: &Q) -> u32
    where
        Q: ?Sized + Eq + Hash + ToOwned<Owned = T>,
        T: Borrow<Q>,
    {
        match self.index.get(value) {
            Some(index) => *index,
            None => self.add(value.to_owned()),
        }
    }

    fn add(&mut self, value: T) -> u32 {
        // The index can't overflow: memory can't hold 2^32 values.
        let index = self.values.len() as u32;
        self.index.insert(value.clone(), index);
        self.values.push(value);
        index
    }

    /// Returns all values, by index.
    pub(super) fn into_values(self) -> Vec<T> {
        self.values
    }
}

/// The strings of a message, by index.
pub(super) struct Strings(Vec<Arc<str>>);

impl Strings {
    /// Takes over the strings of a message.
    pub(super) fn of(strings: &[String]) -> Self {
        Self(strings.iter().map(|s| Arc::from(s.as_str())).collect())
    }

    /// Returns the string with this index.
    pub(super) fn get(&self, index: u32) -> Result<Arc<str>, FileError> {
        self.0.get(index as usize).cloned().ok_or_else(|| damaged("a string is missing"))
    }

    /// Returns the string with this index, or `None` if there is no index.
    pub(super) fn optional(&self, index: Option<u32>) -> Result<Option<Arc<str>>, FileError> {
        index.map(|i| self.get(i)).transpose()
    }
}
