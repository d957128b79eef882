//! The strings of a symbol table. A large program has tens of megabytes of them, of which few are asked for:
//! those are read one by one.

use crate::mapped::FileBytes;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use systoll_binfile::c_str;

/// Longer names are none: a hostile table could make each of a million symbols a megabyte long.
const MAX_NAME: usize = 8192;
/// Nearly all names are shorter.
const SHORT: usize = 256;

/// Strings, each with a NUL behind it.
#[derive(Debug)]
pub(crate) enum Strings {
    Whole(Vec<u8>),
    InFile { bytes: Arc<FileBytes>, offset: u64, size: u64, whole: OnceLock<Vec<u8>> },
}

impl Strings {
    /// Tables no larger than this are read as a whole.
    pub(super) const SMALL: u64 = 1 << 20;

    /// Those in the file, of which a few will be asked for.
    pub(super) fn in_file(bytes: &Arc<FileBytes>, offset: u64, size: u64) -> Option<Self> {
        let is_inside = offset.checked_add(size)? <= bytes.len();
        is_inside.then(|| Self::InFile { bytes: Arc::clone(bytes), offset, size, whole: OnceLock::new() })
    }

    /// Whether all of them have been read already.
    pub(crate) fn at_hand(&self) -> bool {
        match self {
            Self::Whole(_) => true,
            Self::InFile { whole, .. } => whole.get().is_some(),
        }
    }

    /// All of them, read now if they have not been; none where there are too many.
    pub(crate) fn whole(&self) -> &[u8] {
        match self {
            Self::Whole(all) => all,
            Self::InFile { bytes: file, offset, size, whole } => {
                whole.get_or_init(|| file.read(*offset, *size).unwrap_or_default())
            }
        }
    }

    /// The string that begins at `at`; `None` where there is none, or one without end.
    pub(crate) fn get(&self, at: u32) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::InFile { bytes: file, offset, size, whole } if whole.get().is_none() => {
                let rest = size.checked_sub(u64::from(at))?;
                let at = offset.checked_add(u64::from(at))?;
                let read = |most: usize| {
                    let mut bytes = vec![0; most.min(usize::try_from(rest).unwrap_or(usize::MAX))];
                    file.read_into(at, &mut bytes).then_some(())?;
                    let end = c_str(&bytes, 0)?.len();
                    bytes.truncate(end);
                    Some(Cow::Owned(bytes))
                };
                read(SHORT).or_else(|| read(MAX_NAME))
            }
            _ => {
                let rest = self.whole().get(at as usize..)?;
                c_str(rest.get(..MAX_NAME).unwrap_or(rest), 0).map(Cow::Borrowed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn in_file(bytes: &[u8], offset: usize) -> Strings {
        let (at, size) = (offset as u64, (bytes.len() - offset) as u64);
        Strings::in_file(&Arc::new(FileBytes::Memory(bytes.into())), at, size).unwrap()
    }

    proptest! {
        #[test]
        fn a_string_is_the_same_read_alone_and_with_all(
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
            let whole = Strings::Whole(bytes[offset..].to_vec());
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
