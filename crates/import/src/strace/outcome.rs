//! Reads a call's result: the text behind its arguments.

use super::leader::elapsed;
use crate::lex::arguments;
use crate::literal::plain;
use crate::trace::failed;

/// The result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome<'a> {
    /// The result as in rax; `None` if the call never returned.
    pub(crate) result: Option<i64>,
    /// The text of the result, which may hold a descriptor's file.
    pub(crate) told: &'a [u8],
    /// Elapsed time, ns.
    pub(crate) elapsed_ns: Option<u64>,
}

/// Reads ` = -1 ENOENT (No such file or directory) <0.000016>`; `None` if the text is something
/// else.
pub(crate) fn outcome(rest: &[u8]) -> Option<Outcome<'_>> {
    let (elapsed_ns, rest) = elapsed(rest);
    let rest = rest.trim_ascii_start();
    // strace before 4.9 wrote `sigreturn() (mask []) = 0`.
    let rest = rest.strip_prefix(b"(mask ").and_then(|mask| arguments(mask).rest).unwrap_or(rest);
    let told = rest.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let mut words = told.split(|b| *b == b' ');
    let value = words.next().unwrap_or_default();
    let errno = words.next().and_then(failed);
    let result = match value {
        b"?" => errno,
        b"-1" => Some(errno.or_else(|| numbered(told)).unwrap_or(-1)),
        _ => {
            let end = value.iter().position(|b| !(b.is_ascii_alphanumeric() || *b == b'-')).unwrap_or(value.len());
            Some(plain(value.get(..end)?)?)
        }
    };
    Some(Outcome { result, told, elapsed_ns })
}

/// Reads `-1 (errno 530)`.
fn numbered(told: &[u8]) -> Option<i64> {
    let text = told.strip_prefix(b"-1 (errno ")?;
    let end = memchr::memchr(b')', text)?;
    plain(text.get(..end)?).filter(|n| (1..=4095).contains(n)).map(|n| -n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes() {
        let said = |text: &str| outcome(text.as_bytes()).map(|o| (o.result, o.elapsed_ns));
        assert_eq!(said("     = 0"), Some((Some(0), None)));
        assert_eq!(said(" = -1 ENOENT (No such file or directory) <0.000016>"), Some((Some(-2), Some(16_000))));
        assert_eq!(said(" = ?"), Some((None, None)));
        assert_eq!(said(" = ? ERESTARTSYS (To be restarted if SA_RESTART is set)"), Some((Some(-512), None)));
        assert_eq!(said(" = 3</etc/passwd>"), Some((Some(3), None)));
        assert_eq!(said(" = 0x7f00 (flags O_RDWR)"), Some((Some(0x7f00), None)));
        assert_eq!(said(" = 4951<sh>"), Some((Some(4951), None)));
        assert_eq!(said(" = -1 (errno 530)"), Some((Some(-530), None)));
        assert_eq!(said(" = 1 ([{fd=3, revents=POLLIN}])"), Some((Some(1), None)));
        assert_eq!(said(" (mask [CHLD]) = -1 EINTR (Interrupted)"), Some((Some(-4), None)));
        assert_eq!((said("= nonsense"), said("hello")), (None, None));
    }
}
