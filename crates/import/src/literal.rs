//! Reads numbers and strings as strace writes them.

use crate::lex::{behind, find, members, string_end};
use systoll_model::constants::{MEMBARRIER_CMD_GLOBAL, number_of};
use systoll_model::signal_number;

/// Former names of constants, with their values.
const OLD_NAMES: &[(&str, u32)] = &[("MEMBARRIER_CMD_SHARED", MEMBARRIER_CMD_GLOBAL)];

/// A string of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    /// The string's bytes.
    pub(crate) bytes: Vec<u8>,
    /// True if the trace says that there was more, or ends within the string.
    pub(crate) cut: bool,
}

/// Returns the string that `text` begins with, at most `most` bytes of it.
pub(crate) fn string(text: &[u8], most: usize) -> Option<Text> {
    // The bytes that read and write moved may stand in front of their length: @"…".
    let text = text.strip_prefix(b"@").unwrap_or(text);
    let inner = text.strip_prefix(b"\"")?;
    let end = string_end(text, 0);
    let whole = text.get(1..end).unwrap_or(inner);
    let after = text.get(end + 1..).unwrap_or_default();
    let mut found = Text { bytes: Vec::new(), cut: end >= text.len() || after.starts_with(b"...") };
    let mut rest = whole.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if found.bytes.len() >= most {
            found.cut = true;
            break;
        }
        if byte != b'\\' {
            found.bytes.push(byte);
            continue;
        }
        let digit = |b: u8, radix: u32| char::from(b).to_digit(radix).map(|d| d as u8);
        let byte = match rest.next() {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'v') => 0x0b,
            Some(b'f') => 0x0c,
            Some(b'a') => 0x07,
            Some(b'b') => 0x08,
            Some(b'x') => {
                let mut value = 0u8;
                for _ in 0..2 {
                    let Some(d) = rest.peek().and_then(|b| digit(*b, 16)) else { break };
                    value = value << 4 | d;
                    rest.next();
                }
                value
            }
            Some(first @ b'0'..=b'7') => {
                let mut value = u16::from(first - b'0');
                for _ in 0..2 {
                    let Some(d) = rest.peek().and_then(|b| digit(*b, 8)) else { break };
                    value = value << 3 | u16::from(d);
                    rest.next();
                }
                value as u8
            }
            Some(other) => other,
            None => break,
        };
        found.bytes.push(byte);
    }
    Some(found)
}

/// Returns the number that `text` stands for: digits, names, both joined by `|`, `*` and `<<`,
/// comments left out. Returns `None` if it is no number, or a name is unknown.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    // These bytes begin a string, a struct, an array or a set, none of which is a number.
    if text.first().is_some_and(|byte| b"\"{[~@".contains(byte)) {
        return None;
    }
    let text = without_comment(behind(text).0).trim_ascii();
    if text.is_empty() {
        return None;
    }
    if text.first().is_some_and(|b| b.is_ascii_digit() || *b == b'-')
        && let Some(number) = plain(text)
    {
        return Some(number);
    }
    let mut sum = 0;
    for part in text.split(|b| *b == b'|') {
        sum |= term(part.trim_ascii())?;
    }
    Some(sum)
}

/// Returns the text in front of a comment, or behind one that stands in front of a raw number's name.
fn without_comment(text: &[u8]) -> &[u8] {
    find(text, b"/*", 0).and_then(|at| text.get(..at)).unwrap_or(text)
}

/// Returns the value of a term: `8192*1024`, `1<<CAP_CHOWN`, `makedev(0x8, 0x1)`, `htons(80)`,
/// `-1`, `0644`, `O_RDWR`.
fn term(text: &[u8]) -> Option<i64> {
    if let Some(at) = find(text, b"<<", 0) {
        let shift = u32::try_from(atom(text.get(at + 2..)?)?).ok()?;
        return atom(text.get(..at)?)?.checked_shl(shift);
    }
    let mut factors = text.split(|b| *b == b'*').map(|factor| atom(factor.trim_ascii()));
    let first = factors.next()??;
    factors.try_fold(first, |product, factor| Some(product.wrapping_mul(factor?)))
}

fn atom(text: &[u8]) -> Option<i64> {
    if let Some(at) = memchr::memchr(b'(', text) {
        return function(text.get(..at)?, text.get(at + 1..)?.strip_suffix(b")")?);
    }
    word(text)
}

/// Returns the value of digits or of one name.
fn word(text: &[u8]) -> Option<i64> {
    plain(text).or_else(|| {
        let name = std::str::from_utf8(text).ok()?;
        let before = || OLD_NAMES.iter().find(|(old, _)| *old == name).map(|(_, number)| i64::from(*number));
        number_of(name)
            .or_else(before)
            .or_else(|| name.starts_with("SIG").then(|| signal_number(name).map(i64::from))?)
    })
}

/// Returns the value of a macro of the kernel's headers. Its arguments may not be macros, since a
/// text may nest as many as it likes.
fn function(name: &[u8], inside: &[u8]) -> Option<i64> {
    let parts = members(inside, 2);
    let first = word(parts.first()?)?;
    match name {
        b"makedev" => {
            let (major, minor) = (first as u64, word(parts.get(1)?)? as u64);
            // The kernel's new_encode_dev packs the numbers in this way into 64 bits.
            Some(((minor & 0xff) | (major & 0xfff) << 8 | (minor & !0xff) << 12) as i64)
        }
        b"htons" => Some(i64::from((first as u16).swap_bytes())),
        b"htonl" => Some(i64::from((first as u32).swap_bytes())),
        _ => None,
    }
}

/// Returns the value of decimal, octal or hexadecimal digits, with or without a sign.
pub(crate) fn plain(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (radix, digits): (u64, &[u8]) = match digits {
        [b'0', b'x' | b'X', rest @ ..] => (16, rest),
        [b'0', rest @ ..] if !rest.is_empty() => (8, rest),
        _ => (10, digits),
    };
    if digits.is_empty() || digits.len() > 22 {
        return None;
    }
    let mut value = 0u64;
    for byte in digits {
        let digit = char::from(*byte).to_digit(radix as u32)?;
        value = value.checked_mul(radix)?.checked_add(digit.into())?;
    }
    let value = value as i64;
    Some(if negative { value.wrapping_neg() } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_written_in_many_ways() {
        for (text, value) in [
            ("0", 0),
            ("-1", -1),
            ("0644", 0o644),
            ("0x7fff", 0x7fff),
            ("8192*1024", 8 << 20),
            ("O_RDONLY|O_CLOEXEC", 0o200_0000),
            ("S_IFREG|0644", 0o10_0644),
            ("0x80000 /* O_RDONLY|O_CLOEXEC */", 0x80000),
            ("3</etc/passwd>", 3),
            ("AT_FDCWD</tmp>", -100),
            ("SIGCHLD", 17),
            ("CLONE_VM|SIGCHLD", 0x111),
            ("makedev(0xfe, 0)", 0xfe00),
            ("htons(80)", 0x5000),
            ("18446744073709551615", -1),
        ] {
            assert_eq!(number(text.as_bytes()), Some(value), "{text}");
        }
        for text in ["", "{st_mode=1}", "\"x\"", "O_NONSENSE", "[1]", "1<<70", "x|", "0x", "htons(htons(1))"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn macros_within_each_other_end_soon() {
        let deep = [b"htons(".repeat(100_000), b"1".to_vec(), b")".repeat(100_000)].concat();
        assert_eq!(number(&deep), None);
    }

    #[test]
    fn strings_are_unescaped() {
        let said = |text: &str| string(text.as_bytes(), 64).map(|t| (t.bytes, t.cut));
        assert_eq!(said(r#""a\"b\\\n\0\177\1772\x41""#), Some((b"a\"b\\\n\0\x7f\x7f2A".to_vec(), false)));
        assert_eq!(said(r#""abc"..."#), Some((b"abc".to_vec(), true)));
        assert_eq!(said(r#""abc"#), Some((b"abc".to_vec(), true)));
        assert_eq!(said("NULL"), None);
        assert_eq!(string(b"\"abcdef\"", 3), Some(Text { bytes: b"abc".to_vec(), cut: true }));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_number_and_a_string_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            number(&bytes);
            prop_assert!(string(&bytes, 16).is_none_or(|t| t.bytes.len() <= 16));
        }

        #[test]
        fn what_strace_escapes_is_read_back(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let escaped: String = bytes.iter().map(|b| format!("\\x{b:02x}")).collect();
            let read = string(format!("\"{escaped}\"").as_bytes(), 100).map(|t| t.bytes);
            prop_assert_eq!(read, Some(bytes));
        }
    }
}
