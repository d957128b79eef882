//! Makes strangers' text safe to print on a terminal.

use std::fmt::Write as _;
use std::io::{self, Write};

/// Returns `text` with certain characters escaped: those that a terminal would act on, and those
/// that would hide or reorder text: `\n`, `\t`, `\x1b`, `\u{202e}`. The result is for people; it
/// can't be turned back into `text`.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if !acts_on_terminals(c) => out.push(c),
            // Writing to a String does not fail.
            c if u32::from(c) < 0x100 => _ = write!(out, "\\x{:02x}", u32::from(c)),
            c => _ = write!(out, "\\u{{{:x}}}", u32::from(c)),
        }
    }
    out
}

/// Returns JSON text with characters escaped on which a terminal would act: `\u009b`, `\u202e`. It is the same JSON, as
/// these characters occur inside strings only.
pub fn inert_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        // ASCII's control characters are escaped already, or are spaces between values.
        if c < '\u{7f}' || !acts_on_terminals(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String does not fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

/// A writer of JSON that escapes characters on which a terminal would act ([`inert_json`]).
#[derive(Debug)]
pub struct InertJson<W>(pub W);

impl<W: Write> Write for InertJson<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A writer of JSON hands over whole characters.
        match std::str::from_utf8(bytes) {
            Ok(text) if !text.is_ascii() || text.contains('\u{7f}') => self.0.write_all(inert_json(text).as_bytes())?,
            _ => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Returns true for control characters and for the invisible ones of Unicode that reorder, join or
/// separate: general category Cc, Zl, Zp and the format characters of
/// <https://www.unicode.org/reports/tr36/>.
pub fn acts_on_terminals(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0xad | 0x61c | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f
            | 0xfe00..=0xfe0f | 0xfeff | 0xfff9..=0xfffb | 0xe0000..=0xe01ef)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_holds_nothing_that_a_terminal_acts_on_and_stays_the_same() {
        let text = "a\u{9b}31m\u{202e}b\u{7f}\u{e0041}é\n";
        let (mut plain, mut inert) = (Vec::new(), InertJson(Vec::new()));
        for writer in [&mut plain as &mut dyn Write, &mut inert] {
            writer.write_all(b"{\n\"").unwrap();
            writer.write_all(text.replace('\n', "\\n").as_bytes()).unwrap();
            writer.write_all(b"\"\n}").unwrap();
        }
        let told = String::from_utf8(inert.0).unwrap();
        assert!(
            !told.chars().any(|c| c != '\n' && acts_on_terminals(c))
                && told.contains("\\u009b31m")
                && told.contains('é')
        );
        assert!(told.contains("\\udb40\\udc41"), "a pair of surrogates: {told}");
        assert_eq!(inert_json("[1,\n2]"), "[1,\n2]");
    }
}
