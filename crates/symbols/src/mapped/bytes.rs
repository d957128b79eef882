//! Reads the bytes of a file that was mapped, even after the file was deleted or changed.
//!
//! Files are kept open and read with `pread`, never mapped. A read from a truncated file is short; an access to a
//! mapping of it would kill the observer with SIGBUS.

use super::state::{FileState, Identity};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use systoll_binfile::Bytes;

/// Bytes read from a file in one piece, at most.
const MAX_READ: u64 = 256 << 20;

/// The blocks of a file that were read last. They serve the many reads of a few bytes around calls, each of which
/// would take a system call otherwise.
#[derive(Debug, Default)]
pub(crate) struct Blocks(Mutex<VecDeque<(u64, Box<[u8]>)>>);

impl Blocks {
    /// Size of a block, bytes.
    const SIZE: u64 = 4096;
    /// Size of a read that uses a block, at most, bytes.
    const SMALL: usize = 2048;
    /// Number of blocks kept.
    const KEPT: usize = 32;

    /// Fills `buffer` from `offset` on if one block has all of it. Otherwise returns `None`, and the caller reads
    /// from the file.
    fn read(&self, file: &File, offset: u64, buffer: &mut [u8]) -> Option<()> {
        let (start, into) = (offset - offset % Self::SIZE, (offset % Self::SIZE) as usize);
        let wanted = into..into + buffer.len();
        if buffer.len() > Self::SMALL || wanted.end > Self::SIZE as usize {
            return None;
        }
        let mut blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, block)) = blocks.iter().find(|(at, _)| *at == start) {
            buffer.copy_from_slice(block.get(wanted)?);
            return Some(());
        }
        let mut block = vec![0; Self::SIZE as usize];
        let got = file.read_at(&mut block, start).ok()?;
        block.truncate(got);
        buffer.copy_from_slice(block.get(wanted)?);
        blocks.truncate(Self::KEPT - 1);
        blocks.push_front((start, block.into()));
        Some(())
    }
}

/// The bytes of a module, in a file or in memory.
#[derive(Debug)]
pub(crate) enum FileBytes {
    File { file: File, identity: Identity, blocks: Blocks },
    Memory(Arc<[u8]>),
}

impl FileBytes {
    pub(crate) fn from_file(file: File) -> std::io::Result<Self> {
        let identity = Identity::of(&file)?;
        Ok(Self::File { file, identity, blocks: Blocks::default() })
    }

    /// Returns the identity of the file; `None` for memory.
    pub(crate) fn identity(&self) -> Option<Identity> {
        match self {
            Self::File { identity, .. } => Some(*identity),
            Self::Memory(_) => None,
        }
    }

    /// Returns the file's state now; `None` for memory, and for a file that has changed since it was opened.
    pub(crate) fn state(&self) -> Option<FileState> {
        let Self::File { file, identity, .. } = self else { return None };
        let state = FileState::of(file).ok()?;
        (state.identity() == *identity).then_some(state)
    }

    /// Returns the size in bytes when the file was opened.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::File { identity, .. } => identity.size,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Returns true if reading takes no system call.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self, Self::Memory(_))
    }

    /// Returns true if the file has `len` bytes from `offset` on, and `len` is within the limit of one read.
    pub(crate) fn may_read(&self, offset: u64, len: u64) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len()) && len <= MAX_READ
    }

    /// Fills `buffer` from `offset` on. Returns false if there are fewer bytes.
    pub(crate) fn read_into(&self, offset: u64, buffer: &mut [u8]) -> bool {
        match self {
            Self::File { file, blocks, .. } => {
                blocks.read(file, offset, buffer).is_some() || file.read_exact_at(buffer, offset).is_ok()
            }
            Self::Memory(bytes) => {
                let slice = usize::try_from(offset).ok().and_then(|o| bytes.get(o..o.checked_add(buffer.len())?));
                slice.map(|s| buffer.copy_from_slice(s)).is_some()
            }
        }
    }

    /// Returns `len` bytes from `offset` on; `None` if the file is shorter, or `len` is above the limit of one read.
    pub(crate) fn read(&self, offset: u64, len: u64) -> Option<Vec<u8>> {
        if !self.may_read(offset, len) {
            return None;
        }
        let mut buffer = vec![0; usize::try_from(len).ok()?];
        self.read_into(offset, &mut buffer).then_some(buffer)
    }

    /// Returns all bytes if the file has not changed since it was opened.
    pub(crate) fn read_all(&self) -> Option<Vec<u8>> {
        if let Self::File { file, identity, .. } = self
            && Identity::of(file).ok()? != *identity
        {
            return None;
        }
        self.read(0, self.len())
    }
}

impl Bytes for FileBytes {
    fn size(&self) -> u64 {
        self.len()
    }

    fn piece(&self, offset: u64, len: u64) -> Option<Cow<'_, [u8]>> {
        self.read(offset, len).map(Cow::Owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_shrinks_reads_short() {
        let mut path = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut path, &[7; 8192]).unwrap();
        let source = FileBytes::from_file(path.reopen().unwrap()).unwrap();
        assert_eq!(source.read(0, 8192).unwrap(), [7; 8192]);
        path.as_file().set_len(100).unwrap();
        assert_eq!(source.read(4096, 4), None);
        assert_eq!(source.read_all(), None);
    }

    #[test]
    fn small_pieces_equal_the_files_bytes() {
        let bytes: Vec<u8> = (0..Blocks::SIZE * (Blocks::KEPT as u64 + 3) + 77).map(|i| (i % 251) as u8).collect();
        let mut path = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut path, &bytes).unwrap();
        let source = FileBytes::from_file(path.reopen().unwrap()).unwrap();
        for _ in 0..2 {
            for at in (0..bytes.len()).step_by(501) {
                let mut got = [0; 9];
                assert_eq!(source.read_into(at as u64, &mut got), at + 9 <= bytes.len(), "at {at}");
                assert!(at + 9 > bytes.len() || got == bytes[at..at + 9], "at {at}");
            }
        }
        assert!(!source.read_into(u64::MAX, &mut [0; 9]) && !source.read_into(bytes.len() as u64, &mut [0; 1]));
    }

    #[test]
    fn reads_beyond_the_end_fail() {
        let source = FileBytes::Memory(Arc::from([1u8, 2, 3].as_slice()));
        assert_eq!(source.read(1, 2).unwrap(), [2, 3]);
        assert_eq!(source.read(1, 3), None);
        assert_eq!(source.read(u64::MAX, 2), None);
        assert_eq!(source.read(0, u64::MAX), None);
    }
}
