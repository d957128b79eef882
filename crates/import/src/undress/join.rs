//! Joins lines that a mail program or a terminal broke.

use crate::format::Format;
use crate::lex::{arguments, name_end};
use crate::strace::outcome::outcome;
use crate::strace::{self, leader};

/// Largest number of bytes joined to one line; a longer line is handed on as it is.
const MOST: usize = 1 << 20;

/// A step that undoes quoted-printable (RFC 2045, section 6.7).
#[derive(Debug, Default)]
pub(super) struct Printable {
    begun: Vec<u8>,
}

impl Printable {
    /// Returns true if a line looks like quoted-printable.
    pub(super) fn is_in(line: &[u8]) -> bool {
        let coded = |at: usize| line.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        line.trim_ascii_end().ends_with(b"=") || memchr::memchr_iter(b'=', line).any(coded)
    }

    pub(super) fn line(&mut self, line: &[u8], to: &mut dyn FnMut(&[u8])) {
        let text = line.trim_ascii_end();
        let (text, goes_on) = text.strip_suffix(b"=").map_or((text, false), |text| (text, true));
        decode(text, &mut self.begun);
        if !goes_on || self.begun.len() > MOST {
            to(&self.begun);
            self.begun.clear();
        }
    }

    pub(super) fn finish(&mut self, to: &mut dyn FnMut(&[u8])) {
        if !self.begun.is_empty() {
            to(&std::mem::take(&mut self.begun));
        }
    }
}

fn decode(text: &[u8], plain: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'=', rest) {
        plain.extend_from_slice(rest.get(..at).unwrap_or_default());
        let code = rest.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        // `from_str_radix` takes a sign, which is no digit here.
        let byte = code.filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
        match byte.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = rest.get(at + 3..).unwrap_or_default();
            }
            None => {
                plain.push(b'=');
                rest = rest.get(at + 1..).unwrap_or_default();
            }
        }
    }
    plain.extend_from_slice(rest);
}

/// A step that joins lines that were broken at a width.
#[derive(Debug)]
pub(super) struct Wrapped {
    /// Length of the longest line, bytes. No line was broken before that length, except in front of
    /// a word that did not fit.
    width: usize,
    /// True if lines are broken within words.
    within_words: bool,
    begun: Vec<u8>,
    /// Length of the line that was added last, bytes.
    last: usize,
}

/// Widths at which lines are broken: mail programs use 72 to 80 bytes, terminals their own width.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=250;

impl Wrapped {
    /// Returns the width at which lines are broken; `None` if the longest line is not within
    /// [`WIDTHS`].
    pub(super) fn of(lines: &[Vec<u8>]) -> Option<Self> {
        let length = |line: &Vec<u8>| line.trim_ascii_end().len();
        let width = lines.iter().map(length).max().filter(|width| WIDTHS.contains(width))?;
        let full = lines.iter().filter(|line| length(line) == width).count();
        // The longest of a few lines may be alone. Several lines of that length were broken within
        // words.
        let within_words = full >= 3;
        Some(Self { width, within_words, begun: Vec::new(), last: 0 })
    }

    /// Returns the same step without a begun line.
    pub(super) fn fresh(&self) -> Self {
        Self { begun: Vec::new(), last: 0, ..*self }
    }

    pub(super) fn line(&mut self, line: &[u8], to: &mut dyn FnMut(&[u8])) {
        let text = line.trim_ascii_end();
        if let Some(between) = self.goes_on(text) {
            self.begun.extend_from_slice(between);
            self.begun.extend_from_slice(text);
        } else {
            self.finish(to);
            self.begun.extend_from_slice(text);
        }
        self.last = text.len();
    }

    /// Returns the text that was lost between the line before and `text`, if `text` is the rest of
    /// that line.
    fn goes_on(&self, text: &[u8]) -> Option<&'static [u8]> {
        let first = text.trim_ascii_start();
        if self.begun.is_empty() || first.is_empty() || self.begun.len() + text.len() > MOST || begins_a_line(first) {
            return None;
        }
        if !begins_a_line(self.begun.trim_ascii_start()) || is_whole(&self.begun) {
            return None;
        }
        if self.last == self.width && self.within_words {
            // A blank at a line's end is lost; it stood behind a comma.
            let lost = self.begun.ends_with(b",") && !text.starts_with(b" ");
            return Some(if lost { b" " } else { b"" });
        }
        let word = first.iter().position(|b| *b == b' ').unwrap_or(first.len());
        (self.last + 1 + word > self.width).then_some(b" ")
    }

    pub(super) fn finish(&mut self, to: &mut dyn FnMut(&[u8])) {
        if !self.begun.is_empty() {
            to(&self.begun);
            self.begun.clear();
        }
    }
}

/// Returns true if a line of a trace begins with the text, whole or cut.
fn begins_a_line(text: &[u8]) -> bool {
    strace::begins_call(text) || Format::of_line(text).is_some()
}

/// Returns true if a call's line is complete: no bracket of its result is open.
fn is_whole(line: &[u8]) -> bool {
    let body = leader::led(line).body;
    let Some(rest) = name_end(body).and_then(|open| arguments(body.get(open + 1..)?).rest) else {
        return false;
    };
    let count = |byte: u8| rest.iter().filter(|b| **b == byte).count();
    outcome(rest).is_some() && count(b'(') <= count(b')') && count(b'<') <= count(b'>')
}
