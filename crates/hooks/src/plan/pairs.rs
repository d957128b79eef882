//! Searches for pairs of bytes in all code of a program.

/// Returns true if two adjacent bytes are `wanted`. The loop over a piece has no exit in its middle, so that it
/// compares many bytes at a time: all code of a program is searched.
pub(super) fn has_pair(bytes: &[u8], wanted: impl Fn(u8, u8) -> bool) -> bool {
    const PIECE: usize = 1 << 12;
    let next = bytes.get(1..).unwrap_or_default();
    bytes.chunks(PIECE).zip(next.chunks(PIECE)).any(|(ones, nexts)| {
        ones.iter().zip(nexts).fold(0, |any, (one, next)| any | u8::from(wanted(*one, *next))) != 0
    })
}

/// Returns true if the bytes of a `syscall` or `int $0x80` occur.
pub(super) fn has_bytes(bytes: &[u8]) -> bool {
    has_pair(bytes, |one, next| (one == 0x0f) & (next == 0x05) | (one == 0xcd) & (next == 0x80))
}

/// Returns the offset of the last bytes of a `syscall` or `int $0x80`.
pub(super) fn last_bytes(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).rposition(|pair| matches!(pair, [0x0f, 0x05] | [0xcd, 0x80]))
}

/// Returns the offsets of bytes of a `syscall` or `int $0x80`, ascending.
pub(super) fn calls_in(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let first = memchr::memchr2_iter(0x0f, 0xcd, bytes);
    first.filter(|at| matches!(bytes.get(*at..), Some([0x0f, 0x05, ..] | [0xcd, 0x80, ..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_found_at_any_offset() {
        for len in [0, 1, 2, 100, 4_095, 4_096, 4_097, 8_192, 8_193] {
            let mut bytes = vec![0x0f; len];
            assert!(!has_bytes(&bytes) && last_bytes(&bytes).is_none(), "{len}");
            for at in (1..len).filter(|at| len < 200 || at % 4_096 < 3 || at % 4_096 > 4_093) {
                bytes[at] = 0x05;
                assert!(has_bytes(&bytes), "{at} of {len}");
                assert_eq!(last_bytes(&bytes), Some(at - 1), "{at} of {len}");
                bytes[at - 1] = 0xcd;
                assert!(!has_bytes(&bytes), "{at} of {len}");
                bytes[at] = 0x80;
                assert!(has_bytes(&bytes), "{at} of {len}");
                bytes[at - 1..=at].fill(0x0f);
            }
        }
    }
}
