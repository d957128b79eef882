//! Reads sets of signals and of processors.

use crate::lex::{members, within};
use crate::literal::number;
use systoll_model::signal_number;

/// Returns true if the argument `name` of `call` is a set of signals.
pub(super) fn is_signals(call: &str, name: &str) -> bool {
    match name {
        "set" | "oldset" | "sigmask" => call != "pselect6",
        "mask" => call.starts_with("rt_sig") || call.starts_with("signalfd"),
        _ => false,
    }
}

/// Returns true if the call has a set of processors.
pub(super) fn is_processors(call: &str) -> bool {
    matches!(call, "sched_getaffinity" | "sched_setaffinity")
}

/// Reads a set of signals, `[INT TERM]` or `~[KILL STOP]`. Bit 0 stands for signal 1.
pub(super) fn signals(text: &[u8]) -> Option<u64> {
    let (most, listed) = match text.strip_prefix(b"~") {
        Some(listed) => (true, listed),
        None => (false, text),
    };
    let mut set = 0u64;
    let inner = within(listed, b'[', b']')?;
    for name in inner.split(|b| *b == b' ' || *b == b',').filter(|name| !name.is_empty()) {
        let name = std::str::from_utf8(name).ok()?;
        let number = signal_number(name).or_else(|| name.parse().ok())?;
        set |= 1u64.checked_shl(u32::try_from(number).ok()?.checked_sub(1)?)?;
    }
    Some(if most { !set } else { set })
}

/// Reads a set of processors, `[0, 1, 4]` or `[0-3 8]`, into `bound` bytes.
pub(super) fn processors(text: &[u8], bound: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0u8; bound];
    let inner = within(text, b'[', b']')?;
    // A range names each processor once; ranges that name the same ones again and again end at this
    // limit.
    let mut left = 2 * bound * 8;
    for member in members(inner, 256).iter().flat_map(|m| m.split(|b| *b == b' ')).filter(|m| !m.is_empty()) {
        let mut ends = member.splitn(2, |b| *b == b'-').map(number);
        let from = usize::try_from(ends.next()??).ok()?;
        let to = ends.next().flatten().and_then(|to| usize::try_from(to).ok()).unwrap_or(from);
        for cpu in from..=to.min(bound * 8) {
            left = left.checked_sub(1)?;
            if let Some(byte) = bytes.get_mut(cpu / 8) {
                *byte |= 1 << (cpu % 8);
            }
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_name_the_same_processors_again_and_again_are_no_set() {
        let many = [b"[".to_vec(), b"0-524287 ".repeat(100_000), b"]".to_vec()].concat();
        assert_eq!(processors(&many, 1 << 16), None);
        assert_eq!(processors(b"[0-7 8-15]", 2), Some(vec![0xff, 0xff]));
    }

    #[test]
    fn sets() {
        assert_eq!(signals(b"[]"), Some(0));
        assert_eq!(signals(b"~[]"), Some(u64::MAX));
        assert_eq!(signals(b"[INT TERM]"), Some(1 << 1 | 1 << 14));
        assert_eq!((signals(b"[NONSENSE]"), signals(b"{a=1}")), (None, None));
        assert_eq!(processors(b"[0-2 9]", 2), Some(vec![7, 2]));
        assert_eq!(processors(b"[0-99999999999]", 1), Some(vec![255]));
    }
}
