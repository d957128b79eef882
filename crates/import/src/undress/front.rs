//! Text that a log, a container or a search put in front of each line.

use crate::format::Format;
use crate::strace::leader::{Stamp, led};

/// Largest number of bytes in front of a line among which its beginning is searched.
const MOST: usize = 240;

/// Text of the same kind in front of each line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Front {
    /// Number of words of the text.
    words: usize,
    /// The character that ends the text if it is no blank: `12:`, `file-12-`.
    mark: Option<u8>,
    /// True if the text has a time that the tracer's own lines lack.
    moments: bool,
}

impl Front {
    /// Returns the text in front of most lines that a tracer wrote; `None` if there is none.
    pub(super) fn of(lines: &[Vec<u8>]) -> Option<Self> {
        let mut fronts: Vec<(Self, usize)> = Vec::new();
        for found in lines.iter().filter_map(|line| cut(line).map(|at| Self::before(line, at))) {
            match fronts.iter_mut().find(|(front, _)| *front == found) {
                Some((_, times)) => *times += 1,
                None => fronts.push((found, 1)),
            }
        }
        fronts.into_iter().max_by_key(|(_, times)| *times).map(|(front, _)| front)
    }

    fn before(line: &[u8], at: usize) -> Self {
        let front = line.get(..at).unwrap_or_default();
        let (words, mark) = Self::kind(front);
        let own = led(line.get(at..).unwrap_or_default()).stamp;
        // No tracer writes a date: a time behind a date was put there by whoever wrote the date.
        let moments = match own {
            None => moment(front).is_some(),
            Some(Stamp::OfDay(_)) => ends_with_date(front),
            Some(_) => false,
        };
        Self { words, mark, moments }
    }

    /// Returns true if the text tells when lines were written, and the tracer does not tell when
    /// calls were made.
    pub(super) fn has_moments(&self) -> bool {
        self.moments
    }

    /// Returns the number of words of a text, and the character that ends it.
    fn kind(front: &[u8]) -> (usize, Option<u8>) {
        let mark = front.last().copied().filter(|b| !b.is_ascii_whitespace());
        (front.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count(), mark)
    }

    /// Hands on the line without the text in front. A time in it goes to the front if the tracer
    /// wrote none.
    pub(super) fn line(&self, line: &[u8], to: &mut dyn FnMut(&[u8])) {
        let Some(at) = cut(line)
            .filter(|at| Self::kind(line.get(..*at).unwrap_or_default()) == (self.words, self.mark))
            .or_else(|| self.end(line))
        else {
            return to(line);
        };
        let (front, rest) = line.split_at(at);
        match moment(front).filter(|_| led(rest).stamp.is_none()) {
            Some(moment) => to(&[moment, b" ", rest].concat()),
            None => to(rest),
        }
    }

    /// Returns the end of the text in a line that is not readable by itself, such as a table's or a
    /// message's.
    fn end(&self, line: &[u8]) -> Option<usize> {
        let mut at = 0;
        for n in 0..self.words {
            let rest = line.get(at..)?;
            let begins = rest.iter().position(|b| !b.is_ascii_whitespace())?;
            let word = rest.get(begins..)?;
            let last = n + 1 == self.words;
            let ends = match self.mark.filter(|_| last) {
                Some(mark) => memchr::memchr(mark, word)? + 1,
                None => {
                    word.iter().position(u8::is_ascii_whitespace).map_or(word.len(), |end| (end + 1).min(word.len()))
                }
            };
            at += begins + ends;
        }
        (at < line.len()).then_some(at)
    }
}

/// Returns the first place in a line at which a tracer's line may begin.
fn cut(line: &[u8]) -> Option<usize> {
    let text = line.get(..MOST.min(line.len()))?;
    let places =
        text.iter().enumerate().filter(|(_, b)| b.is_ascii_whitespace() || b":-|".contains(b)).map(|(at, _)| at + 1);
    let mut places = places.filter(|at| line.get(*at).is_some_and(|b| !b.is_ascii_whitespace()));
    places.find(|at| {
        let (front, rest) = line.split_at(*at);
        // The day of `Jul 01 13:55:25` and the hour of `13:55:25` are not thread ids.
        !(is_split_moment(front, rest)) && Format::of_line(rest).is_some()
    })
}

/// Returns true if a time or a date goes on from one text to the other.
fn is_split_moment(front: &[u8], rest: &[u8]) -> bool {
    let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let within = matches!(front.last(), Some(b':' | b'-')) && digit(front.iter().rev().nth(1)) && digit(rest.first());
    let last = front.trim_ascii_end().rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
    let after_month = last.len() == 3 && last.iter().all(u8::is_ascii_alphabetic) && digit(rest.first());
    within && !matches!(led(rest).stamp, Some(Stamp::OfDay(_))) || after_month
}

/// Returns true if a text ends with a date: `Jul 01 `, `2024-02-11 `.
fn ends_with_date(front: &[u8]) -> bool {
    let mut words = front.rsplit(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (Some(last), before) = (words.next(), words.next()) else { return false };
    let is_month = |word: &[u8]| word.len() == 3 && word.iter().all(u8::is_ascii_alphabetic);
    let is_day = last.len() <= 2 && last.iter().all(u8::is_ascii_digit);
    let is_iso = last.len() == 10
        && last.iter().enumerate().all(|(at, b)| if matches!(at, 4 | 7) { *b == b'-' } else { b.is_ascii_digit() });
    is_iso || is_day && before.is_some_and(is_month)
}

/// Returns the time of day in a text: `13:55:25.5`.
fn moment(front: &[u8]) -> Option<&[u8]> {
    let is_moment = |from: usize| {
        let text = front.get(from..)?;
        let wanted = |at: usize| {
            if matches!(at, 2 | 5) { text.get(at) == Some(&b':') } else { text.get(at).is_some_and(u8::is_ascii_digit) }
        };
        if !(0..8).all(wanted) {
            return None;
        }
        let fraction = match text.get(8) {
            Some(b'.') => 1 + text.iter().skip(9).take_while(|b| b.is_ascii_digit()).count(),
            _ => 0,
        };
        text.get(..8 + fraction)
    };
    let begins = |from: &usize| *from == 0 || front.get(from - 1).is_some_and(|b| !b.is_ascii_digit() && *b != b':');
    (0..front.len()).filter(begins).find_map(is_moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert!(ends_with_date(b"Jul 01 ") && ends_with_date(b"Jul  1 ") && ends_with_date(b"x 2024-02-11 "));
        assert!(!ends_with_date(b"web-1  | ") && !ends_with_date(b"12 ") && !ends_with_date(b""));
    }

    #[test]
    fn moments() {
        assert_eq!(moment(b"Jul 01 13:55:25 "), Some(&b"13:55:25"[..]));
        assert_eq!(moment(b"2024-02-11T09:15:00.000123Z stderr F "), Some(&b"09:15:00.000123"[..]));
        assert_eq!(moment(b"app.log:7:"), None);
        assert_eq!(moment(b"1:22:33:44"), None);
    }
}
