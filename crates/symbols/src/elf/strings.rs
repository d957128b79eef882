//! The strings of a symbol table. A large program has tens of megabytes of them, and few are needed: those are read
//! one by one.

use super::view::View;
use std::borrow::Cow;
use systoll_binfile::c_str;

/// Bytes of a name, at most. Longer ones count as missing, because a hostile table could make each of a million
/// symbols a megabyte long.
const MAX_NAME: u64 = 8192;
/// Bytes read at first for a name; nearly all names are shorter.
const SHORT: u64 = 256;

/// A table of NUL-terminated strings.
#[derive(Debug)]
pub(crate) struct Strings(View);

impl Strings {
    /// Size of a table, bytes, up to which it is read as a whole if all names will be searched.
    pub(super) const SMALL: u64 = 1 << 20;

    /// Returns a table of strings that are in memory already.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        Self(View::of(bytes))
    }

    /// Returns a table of which only a few strings will be needed: each is read by itself.
    pub(super) fn of_view(view: View) -> Self {
        Self(view)
    }

    /// Returns true if all strings are in memory.
    pub(crate) fn at_hand(&self) -> bool {
        self.0.at_hand().is_some()
    }

    /// Returns all strings, reading them if necessary; empty if there are too many.
    pub(crate) fn whole(&self) -> &[u8] {
        self.0.whole()
    }

    /// Returns the string at offset `at`; `None` if there is none, or if it is not terminated.
    pub(crate) fn get(&self, at: u32) -> Option<Cow<'_, [u8]>> {
        if let Some(all) = self.0.at_hand() {
            let rest = all.get(at as usize..)?;
            return c_str(rest.get(..MAX_NAME as usize).unwrap_or(rest), 0).map(Cow::Borrowed);
        }
        let rest = self.0.size().checked_sub(at.into())?;
        let read = |most: u64| {
            let mut bytes = self.0.read(at.into(), most.min(rest))?;
            let end = c_str(&bytes, 0)?.len();
            bytes.truncate(end);
            Some(Cow::Owned(bytes))
        };
        read(SHORT).or_else(|| read(MAX_NAME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapped::FileBytes;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn in_file(bytes: &[u8], offset: usize) -> Strings {
        let (at, size) = (offset as u64, (bytes.len() - offset) as u64);
        Strings::of_view(View::in_file(&Arc::new(FileBytes::Memory(bytes.into())), at, size).unwrap())
    }

    proptest! {
        #[test]
        fn a_string_read_alone_equals_the_one_in_the_whole_table(
            lens in prop::collection::vec(prop_oneof![0usize..40, 200..300usize, 8100..8300usize], 0..12),
            cut in 0usize..3,
            offset in 0usize..20,
        ) {
            let mut bytes = vec![b'#'; offset];
            for (len, letter) in lens.iter().zip(b'a'..) {
                bytes.resize(bytes.len() + len, letter);
                bytes.push(0);
            }
            bytes.truncate((bytes.len() - cut.min(bytes.len())).max(offset));
            let whole = Strings::of(bytes[offset..].to_vec());
            let read = in_file(&bytes, offset);
            for at in (0..bytes.len() + 3).step_by(7).chain([bytes.len().saturating_sub(offset), usize::from(u16::MAX)]) {
                prop_assert!(!read.at_hand());
                prop_assert_eq!(read.get(at as u32), whole.get(at as u32), "at {}", at);
            }
            prop_assert_eq!(read.whole(), whole.whole());
            prop_assert_eq!(read.get(0), whole.get(0));
        }
    }
}
