//! A list that mostly holds one element, which then needs no allocation: most rows are in one window only.

/// A list whose first element is stored in place.
#[derive(Clone, Debug)]
pub(crate) struct SmallList<T> {
    first: Option<T>,
    more: Vec<T>,
}

impl<T> Default for SmallList<T> {
    fn default() -> Self {
        Self { first: None, more: Vec::new() }
    }
}

impl<T> SmallList<T> {
    /// Adds an element at the end.
    pub(crate) fn push(&mut self, new: T) {
        match self.first {
            None => self.first = Some(new),
            Some(_) => self.more.push(new),
        }
    }

    /// Returns the last element.
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.more.last_mut().or(self.first.as_mut())
    }

    /// Returns all elements in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_in_the_order_in_which_they_were_added() {
        let mut list = SmallList::default();
        assert!(list.last_mut().is_none() && list.iter().next().is_none());
        for n in 0..4 {
            list.push(n);
            assert_eq!(list.last_mut().copied(), Some(n));
        }
        assert!(list.iter().copied().eq(0..4));
    }
}
