//! Stores the memory that arguments pointed to: each piece as its difference from an earlier one.
//!
//! A program that repeats a question gets nearly the same bytes (a `struct stat` with another
//! access time). If they were stored whole, they would be most of a recording.

use super::error::{FileError, damaged};
use super::wire;
use std::collections::HashMap;

/// Bytes to which all pieces of a file may unfold, at most. The same bound holds for the bytes of
/// all arguments together.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// Bytes of a piece from which on it is stored as a difference; a shorter piece is stored whole.
const WORTHWHILE: usize = 8;

/// Encodes each piece as its difference from the latest earlier piece of the same length.
pub(super) fn encode(pieces: &[Vec<u8>]) -> wire::Blobs {
    let mut out = wire::Blobs::default();
    let mut latest: HashMap<usize, usize> = HashMap::new();
    for (index, piece) in pieces.iter().enumerate() {
        let base = latest.insert(piece.len(), index).filter(|_| piece.len() >= WORTHWHILE);
        let before = base.and_then(|base| pieces.get(base)).map_or(&[][..], Vec::as_slice);
        let prefix = piece.iter().zip(before).take_while(|(a, b)| a == b).count();
        let rest = piece.get(prefix..).unwrap_or_default();
        let suffix = rest.iter().rev().zip(before.iter().rev()).take_while(|(a, b)| a == b).count();
        let middle = rest.get(..rest.len() - suffix).unwrap_or_default();
        out.back.push(base.map_or(0, |base| (index - base) as u32));
        out.prefix.push(prefix as u32);
        out.suffix.push(suffix as u32);
        out.middle.push(middle.to_vec());
    }
    out
}

/// Decodes the pieces.
pub(super) fn decode(blobs: &wire::Blobs) -> Result<Vec<Vec<u8>>, FileError> {
    let count = blobs.middle.len();
    if [blobs.back.len(), blobs.prefix.len(), blobs.suffix.len()] != [count; 3] {
        return Err(damaged("the arguments' bytes are not whole"));
    }
    let mut pieces: Vec<Vec<u8>> = Vec::with_capacity(count);
    let mut room = MAX_BYTES;
    let parts = blobs.back.iter().zip(&blobs.prefix).zip(&blobs.suffix).zip(&blobs.middle);
    for (index, (((back, prefix), suffix), middle)) in parts.enumerate() {
        let piece = match *back as usize {
            0 => middle.clone(),
            back => {
                let base = index.checked_sub(back).and_then(|base| pieces.get(base));
                let base = base.ok_or_else(|| damaged("an argument's bytes differ from none"))?;
                let ends =
                    || Some((base.get(..*prefix as usize)?, base.get(base.len().checked_sub(*suffix as usize)?..)?));
                let (head, tail) = ends().ok_or_else(|| damaged("an argument's bytes are too short"))?;
                take(&mut room, head.len() + tail.len())?;
                [head, middle, tail].concat()
            }
        };
        pieces.push(piece);
    }
    Ok(pieces)
}

/// Subtracts `bytes` from `room`, the bytes that may still be unfolded. Fails if `room` is too
/// small.
pub(super) fn take(room: &mut usize, bytes: usize) -> Result<(), FileError> {
    let left = room.checked_sub(bytes);
    *room = left.ok_or_else(|| FileError::TooLarge(format!("arguments of more than {MAX_BYTES} bytes")))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_back_and_like_ones_cost_little() {
        let stat = |atime: u64| [vec![1; 72], atime.to_le_bytes().to_vec(), vec![2; 64]].concat();
        let pieces = vec![vec![], stat(5), b"/etc/localtime".to_vec(), stat(6), vec![7; 144], stat(7)];
        let encoded = encode(&pieces);
        assert_eq!(decode(&encoded).expect("whole"), pieces);
        assert_eq!(encoded.middle[3], [6]);
        assert_eq!(encoded.back, [0, 0, 0, 2, 1, 1]);
    }

    #[test]
    fn a_repeating_byte_does_not_overlap_itself() {
        let pieces = vec![vec![1; 16], vec![1; 16], [vec![1; 8], vec![0], vec![1; 7]].concat()];
        assert_eq!(decode(&encode(&pieces)).expect("whole"), pieces);
    }

    #[test]
    fn decompression_bombs_are_refused() {
        let mut bomb = encode(&[vec![1; 1 << 20]]);
        for _ in 0..100 {
            bomb.back.push(1);
            bomb.prefix.push(1 << 20);
            bomb.suffix.push(0);
            bomb.middle.push(Vec::new());
        }
        assert!(matches!(decode(&bomb), Err(FileError::TooLarge(_))));
        bomb.back[1] = 2;
        assert!(matches!(decode(&bomb), Err(FileError::Damaged(_))));
    }
}
