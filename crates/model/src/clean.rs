//! Makes strangers' text safe to print on a terminal.

use std::fmt::Write as _;

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

/// Returns true for control characters and for the invisible ones of Unicode that reorder, join or
/// separate: general category Cc, Zl, Zp and the format characters of
/// <https://www.unicode.org/reports/tr36/>.
pub fn acts_on_terminals(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0xad | 0x61c | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f
            | 0xfe00..=0xfe0f | 0xfeff | 0xfff9..=0xfffb | 0xe0000..=0xe01ef)
}
