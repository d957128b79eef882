//! Takes off one kind of decoration.

use super::front::Front;
use super::join::{Printable, Wrapped};
use super::{html, several};
use std::borrow::Cow;

/// A decoration that can be taken off.
#[derive(Debug)]
pub(super) enum Step {
    /// Escape sequences of a terminal, and carriage returns.
    Colours,
    /// Quote marks `> ` and `| `, to any depth.
    Quotes,
    /// Tags and entities of a page.
    Html,
    /// Quoted-printable: `=3D`, and lines that end with `=`.
    Printable(Printable),
    /// Line numbers `   12  `, as `cat -n` and `nl` write them.
    Numbers,
    /// Text of the same kind in front of each line.
    Front(Front),
    /// Lines that a mail program or a terminal broke.
    Wrapped(Wrapped),
    /// Calls that stand in one line.
    Several,
}

impl Step {
    /// Returns the decoration's name for people.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Colours => "colours",
            Self::Quotes => "quote marks",
            Self::Html => "HTML",
            Self::Printable(_) => "quoted-printable",
            Self::Numbers => "line numbers",
            Self::Front(_) => "text before each line",
            Self::Wrapped(_) => "wrapped lines",
            Self::Several => "several calls in one line",
        }
    }

    /// Hands on the lines that are in `line`, or that it completes.
    pub(super) fn line(&mut self, line: &[u8], to: &mut dyn FnMut(&[u8])) {
        match self {
            Self::Colours => without_escapes(line).split(|b| *b == b'\r').for_each(to),
            Self::Quotes => to(unquoted(line)),
            Self::Html => html::lines(line, to),
            Self::Printable(printable) => printable.line(line, to),
            Self::Numbers => to(numbered(line).map_or(line, |(_, rest)| rest)),
            Self::Front(front) => front.line(line, to),
            Self::Wrapped(wrapped) => wrapped.line(line, to),
            Self::Several => several::lines(line, to),
        }
    }

    /// Returns the same step without a begun line.
    pub(super) fn fresh(&self) -> Self {
        match self {
            Self::Colours => Self::Colours,
            Self::Quotes => Self::Quotes,
            Self::Html => Self::Html,
            Self::Printable(_) => Self::Printable(Printable::default()),
            Self::Numbers => Self::Numbers,
            Self::Front(front) => Self::Front(front.clone()),
            Self::Wrapped(wrapped) => Self::Wrapped(wrapped.fresh()),
            Self::Several => Self::Several,
        }
    }

    /// Hands on the text that waited for another line.
    pub(super) fn finish(&mut self, to: &mut dyn FnMut(&[u8])) {
        match self {
            Self::Printable(printable) => printable.finish(to),
            Self::Wrapped(wrapped) => wrapped.finish(to),
            _ => {}
        }
    }
}

/// Returns the line without escape sequences (ECMA-48: CSI up to its final byte, OSC up to BEL or ST, others of two bytes).
fn without_escapes(line: &[u8]) -> Cow<'_, [u8]> {
    const ESCAPE: u8 = 0x1b;
    if !line.contains(&ESCAPE) {
        return Cow::Borrowed(line);
    }
    let (mut plain, mut rest) = (Vec::with_capacity(line.len()), line);
    while let Some(at) = memchr::memchr(ESCAPE, rest) {
        plain.extend_from_slice(rest.get(..at).unwrap_or_default());
        let sequence = rest.get(at + 1..).unwrap_or_default();
        let length = match sequence.first() {
            Some(b'[') => sequence.iter().skip(1).position(|b| (0x40..=0x7e).contains(b)).map(|last| last + 2),
            Some(b']') => sequence.iter().position(|b| matches!(*b, 0x07 | ESCAPE)).map(|last| last + 1),
            Some(_) => Some(1),
            None => None,
        };
        rest = length.and_then(|length| sequence.get(length..)).unwrap_or_default();
    }
    plain.extend_from_slice(rest);
    Cow::Owned(plain)
}

/// Returns the line without quote marks in front.
pub(super) fn unquoted(line: &[u8]) -> &[u8] {
    let mut rest = line;
    loop {
        match rest.trim_ascii_start().split_first() {
            // strace's frames begin with " > ", which is no quote mark.
            Some((b'>', text)) if rest.first() != Some(&b' ') || rest.len() < line.len() => rest = text,
            Some((b'|', text)) => rest = text,
            _ => break,
        }
    }
    if rest.len() == line.len() { line } else { rest.strip_prefix(b" ").unwrap_or(rest) }
}

/// Takes a number, a mark and blanks off the front of a line. Returns the number and the rest.
pub(super) fn numbered(line: &[u8]) -> Option<(u64, &[u8])> {
    let text = line.trim_ascii_start();
    let digits = text.iter().take(12).take_while(|b| b.is_ascii_digit()).count();
    let number = std::str::from_utf8(text.get(..digits)?).ok()?.parse().ok()?;
    let rest = text.get(digits..)?;
    let rest = rest.strip_prefix(b":").or_else(|| rest.strip_prefix(b".")).unwrap_or(rest);
    (rest.is_empty() || rest.first().is_some_and(u8::is_ascii_whitespace)).then_some((number, rest.trim_ascii_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        let plain = |text: &str| String::from_utf8_lossy(&without_escapes(text.as_bytes())).into_owned();
        assert_eq!(plain("\x1b[1;31mred\x1b[0m \x1b]0;title\x07on\x1b(B"), "red onB");
        assert_eq!(plain("cut \x1b[1;3"), "cut ");
        assert_eq!(plain("\x1b"), "");
    }

    #[test]
    fn quote_marks() {
        let plain = |text: &str| String::from_utf8_lossy(unquoted(text.as_bytes())).into_owned();
        assert_eq!(plain("> > a"), "a");
        assert_eq!(plain(">> | a > b"), "a > b");
        assert_eq!(plain(">  indented"), " indented");
        assert_eq!(plain(" > /lib/libc.so.6(read+0x10)"), " > /lib/libc.so.6(read+0x10)");
        assert_eq!(plain("a"), "a");
    }

    #[test]
    fn numbers() {
        assert_eq!(numbered(b"   12\tx"), Some((12, &b"x"[..])));
        assert_eq!(numbered(b"12: x"), Some((12, &b"x"[..])));
        assert_eq!((numbered(b"12.5 x"), numbered(b"x")), (None, None));
    }
}
