//! Reads the entries that getdents writes.

use systoll_model::Sysno;

/// Bytes of an entry before its name: inode, place of the next entry, length. `struct linux_dirent64` has the kind
/// of the file in one more byte (getdents(2)).
const HEAD: usize = 18;
/// Place of the entry's length in it, 2 bytes.
const LENGTH_AT: usize = 16;

/// Appends the entries in `bytes` to `to`, without the padding after each name: the kernel does not write it, so it
/// holds what the program's buffer held before. An entry that is cut off is left out.
pub(crate) fn append_entries(bytes: &[u8], syscall: Sysno, to: &mut Vec<u8>) {
    let head = HEAD + usize::from(syscall == Sysno::named("getdents64"));
    let mut rest = bytes;
    while let Some(length) = rest.get(LENGTH_AT..HEAD) {
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        let Some((entry, next)) = rest.split_at_checked(length).filter(|_| length > head) else { return };
        let name = entry[head..].iter().position(|byte| *byte == 0).unwrap_or(length - head);
        to.extend_from_slice(&entry[..head + name]);
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(name: &str, padding: &[u8]) -> Vec<u8> {
        let length = (HEAD + 1 + name.len() + 1 + padding.len()) as u16;
        let mut bytes = [7_u64.to_le_bytes(), 9_u64.to_le_bytes()].concat();
        bytes.extend(length.to_le_bytes());
        bytes.push(8);
        bytes.extend(name.bytes().chain([0]).chain(padding.iter().copied()));
        bytes
    }

    fn entries(bytes: &[u8]) -> Vec<u8> {
        let mut to = Vec::new();
        append_entries(bytes, Sysno::named("getdents64"), &mut to);
        to
    }

    #[test]
    fn padding_does_not_count_but_names_do() {
        let first = [entry("a", b"xyz"), entry("bc", b"")].concat();
        assert_eq!(entries(&first), entries(&[entry("a", b"\0qz"), entry("bc", b"")].concat()));
        assert_ne!(entries(&first), entries(&[entry("a", b"xyz"), entry("bd", b"")].concat()));
    }

    #[test]
    fn an_entry_that_is_cut_off_is_left_out() {
        let whole = [entry("a", b"xyz"), entry("bc", b"")].concat();
        assert_eq!(entries(&whole[..whole.len() - 1]), entries(&entry("a", b"xyz")));
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(entries(&bytes).len() <= bytes.len());
        }
    }
}
