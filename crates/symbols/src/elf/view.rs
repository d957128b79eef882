//! A part of a file that is read on demand: a run looks up few names and functions in tables of megabytes.

use crate::mapped::FileBytes;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A section, or another part of a file. The bytes that were read are kept.
#[derive(Debug)]
pub(crate) struct View {
    file: Arc<FileBytes>,
    offset: u64,
    size: u64,
    pieces: Mutex<BTreeMap<u64, Box<[u8]>>>,
    whole: OnceLock<Vec<u8>>,
}

impl View {
    /// Bytes that are read at once: one page, because lookups lie far apart.
    const PIECE: u64 = 4096;

    /// Returns a view of bytes that are in memory already.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        let file = Arc::new(FileBytes::Memory(Arc::default()));
        let size = bytes.len() as u64;
        Self { file, offset: 0, size, pieces: Mutex::default(), whole: bytes.into() }
    }

    /// Returns a view of `size` bytes from `offset` on; `None` if the file is shorter, or the size is above the limit.
    pub(super) fn in_file(file: &Arc<FileBytes>, offset: u64, size: u64) -> Option<Self> {
        let file = Arc::clone(file);
        let view = Self { file, offset, size, pieces: Mutex::default(), whole: OnceLock::new() };
        view.file.may_read(offset, size).then_some(view)
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns all bytes if they have been read as a whole.
    pub(crate) fn at_hand(&self) -> Option<&[u8]> {
        self.whole.get().map(Vec::as_slice)
    }

    /// Returns all bytes, reading them if necessary; empty if the file has shrunk.
    pub(crate) fn whole(&self) -> &[u8] {
        self.whole.get_or_init(|| {
            self.pieces.lock().unwrap_or_else(PoisonError::into_inner).clear();
            self.file.read(self.offset, self.size).unwrap_or_default()
        })
    }

    /// Fills `buffer` from `at` on. Returns false if there are fewer bytes.
    pub(crate) fn read_into(&self, at: u64, buffer: &mut [u8]) -> bool {
        let (len, end) = (buffer.len() as u64, at.checked_add(buffer.len() as u64));
        if end.is_none_or(|end| end > self.size) {
            return false;
        }
        if let Some(whole) = self.at_hand() {
            let from = whole.get(at as usize..).and_then(|rest| rest.get(..buffer.len()));
            return from.map(|from| buffer.copy_from_slice(from)).is_some();
        }
        if len > Self::PIECE || self.file.is_memory() {
            return self.file.read_into(self.offset + at, buffer);
        }
        self.read_pieces(at, buffer).is_some()
    }

    fn read_pieces(&self, mut at: u64, mut buffer: &mut [u8]) -> Option<()> {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        while !buffer.is_empty() {
            let (start, into) = (at - at % Self::PIECE, (at % Self::PIECE) as usize);
            let piece = match pieces.entry(start) {
                Entry::Occupied(kept) => kept.into_mut(),
                Entry::Vacant(free) => {
                    let read = self.file.read(self.offset + start, Self::PIECE.min(self.size - start))?;
                    free.insert(read.into())
                }
            };
            let rest = piece.get(into..)?;
            let len = rest.len().min(buffer.len());
            let (now, later) = buffer.split_at_mut(len);
            now.copy_from_slice(rest.get(..len)?);
            (at, buffer) = (at + len as u64, later);
        }
        Some(())
    }

    /// Returns `len` bytes from `at` on; `None` if there are fewer.
    pub(crate) fn read(&self, at: u64, len: u64) -> Option<Vec<u8>> {
        if len > self.size {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(len).ok()?];
        self.read_into(at, &mut bytes).then_some(bytes)
    }

    /// Returns the 4-byte little-endian word at `at`.
    pub(crate) fn half(&self, at: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.read_into(at, &mut bytes).then(|| u32::from_le_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write as _;

    fn stored(bytes: &[u8]) -> (tempfile::NamedTempFile, Arc<FileBytes>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let opened = FileBytes::from_file(file.reopen().unwrap()).unwrap();
        (file, Arc::new(opened))
    }

    proptest! {
        #[test]
        fn pieces_equal_the_same_part_of_the_whole(
            len in 0usize..20_000,
            from in 0usize..9000,
            reads in prop::collection::vec((0u64..21_000, 0usize..9000), 0..30),
            in_memory in any::<bool>(),
        ) {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 7 % 251) as u8).collect();
            let (_kept, file) = stored(&bytes);
            let file = if in_memory { Arc::new(FileBytes::Memory(bytes.as_slice().into())) } else { file };
            let part = bytes.get(from..).unwrap_or_default();
            let Some(view) = View::in_file(&file, from as u64, part.len() as u64) else {
                prop_assert!(from > len);
                return Ok(());
            };
            for last in [false, true] {
                for (at, len) in &reads {
                    let expected = part.get(*at as usize..).and_then(|rest| rest.get(..*len));
                    let read = view.read(*at, *len as u64);
                    prop_assert_eq!(read.as_deref(), expected);
                    let half = part.get(*at as usize..).and_then(|rest| rest.first_chunk().copied());
                    prop_assert_eq!(view.half(*at), half.map(u32::from_le_bytes));
                }
                prop_assert_eq!(view.at_hand().is_some(), last);
                prop_assert_eq!(view.whole(), part);
            }
            prop_assert_eq!(view.read(u64::MAX, 2), None);
            prop_assert_eq!(view.read(0, u64::MAX), None);
        }
    }

    #[test]
    fn bytes_cut_off_the_file_are_not_returned() {
        let (kept, file) = stored(&[7; 3 * 4096]);
        let view = View::in_file(&file, 0, 3 * 4096).unwrap();
        assert_eq!(view.read(0, 2), Some(vec![7; 2]));
        kept.as_file().set_len(100).unwrap();
        assert_eq!(view.read(0, 2), Some(vec![7; 2]), "what was read stays");
        assert_eq!(view.read(8192, 2), None);
        assert!(view.whole().is_empty());
        assert_eq!(view.read(0, 2), None);
        assert!(View::in_file(&file, 1, 3 * 4096).is_none() && View::in_file(&file, u64::MAX, 2).is_none());
    }
}
