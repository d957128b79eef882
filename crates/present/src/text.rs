//! Prepares strangers' text for a terminal: escapes, measures, shortens, wraps, quotes.
//!
//! Invariant: nothing that a watched program chose (paths, names, arguments) reaches a terminal
//! without going through [`clean`] or [`shell_words`].

pub use systoll_model::clean;

use std::fmt::Write as _;
use systoll_model::acts_on_terminals;
use unicode_width::UnicodeWidthChar;

/// Returns the columns that `text` takes on a terminal. It adds up characters, as most terminals
/// do: the width of a whole string (ligatures, emoji sequences) would not be the sum of its parts.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Returns `text` with its middle left out if it takes more than `max` columns. The cut is between
/// words, or within one if words are too long for that.
pub fn shorten(text: &str, max: usize) -> String {
    if columns(text) <= max {
        return text.to_owned();
    }
    let room = max.saturating_sub(1);
    // The end gets more room because it tells more: the file of a path, the function of a name.
    let tail = words_from_end(text, room / 2);
    let head = words_from_start(text, room - columns(tail));
    let tail = words_from_end(text, room - columns(head));
    // If the words are as long as the room, a part of a word tells more than none.
    if !tail.is_empty() && 2 * (columns(head) + columns(tail)) >= room {
        return format!("{head}…{tail}");
    }
    let head = take_columns(text.chars(), room.div_ceil(2));
    let tail: String = take_columns(text.chars().rev(), room / 2).chars().rev().collect();
    format!("{head}…{tail}")
}

/// Returns true if a name continues from `before` to `after`.
fn is_within_word(before: char, after: char) -> bool {
    let of_word = |c: char| c.is_alphanumeric() || c == '_';
    of_word(before) && of_word(after)
}

/// Returns as many whole words from the text's end as fit into `max` columns.
fn words_from_end(text: &str, max: usize) -> &str {
    let (mut used, mut start, mut after) = (0, text.len(), None);
    for (at, c) in text.char_indices().rev() {
        if after.is_some_and(|after| !is_within_word(c, after)) {
            start = at + c.len_utf8();
        }
        used += c.width().unwrap_or(0);
        if used > max {
            return text.get(start..).unwrap_or_default();
        }
        after = Some(c);
    }
    text
}

/// Returns as many whole words from the text's start as fit into `max` columns.
fn words_from_start(text: &str, max: usize) -> &str {
    let (mut used, mut end, mut before) = (0, 0, None);
    for (at, c) in text.char_indices() {
        if before.is_some_and(|before| !is_within_word(before, c)) {
            end = at;
        }
        used += c.width().unwrap_or(0);
        if used > max {
            return text.get(..end).unwrap_or_default();
        }
        before = Some(c);
    }
    text
}

fn take_columns(chars: impl Iterator<Item = char>, max: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= max
        })
        .collect()
}

/// Returns `text` on one line: one space between words, each word [`clean`]ed.
pub(crate) fn sentence(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().map(clean).collect();
    words.join(" ")
}

/// Breaks `text` at spaces into lines of at most `width` columns. A longer word stays whole, and so
/// does a number with its unit.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut words: Vec<String> = vec![];
    for word in text.split_whitespace() {
        let unit = word.trim_end_matches([',', '.', ':', ';', ')']);
        match words.last_mut() {
            Some(number) if UNITS.contains(&unit) && number.ends_with(|c: char| c.is_ascii_digit()) => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    wrap_words(words.into_iter(), width, "")
}

/// Breaks `text` into lines with the same indent if it is wider than `width`. Shorter text keeps
/// its spaces.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    if columns(text) <= width {
        return vec![text.to_owned()];
    }
    let indent = text.len() - text.trim_start_matches(' ').len();
    let lines = wrap(text, width.saturating_sub(indent).max(SHORTEST_LINE));
    lines.into_iter().map(|line| " ".repeat(indent) + &line).collect()
}

/// Least width of a wrapped line, in columns.
const SHORTEST_LINE: usize = 20;

/// Units that stay with the number before them.
const UNITS: [&str; 12] = ["%", "ns", "µs", "ms", "s", "min", "h", "bytes", "KiB", "MiB", "GiB", "×"];

/// Joins `words` with spaces into lines of at most `width` columns. Every line but the last ends
/// with `go_on`.
fn wrap_words(words: impl Iterator<Item = String>, width: usize, go_on: &str) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    let mut line = String::new();
    for word in words {
        if !line.is_empty() && columns(&line) + 1 + columns(&word) + columns(go_on) > width {
            line.push_str(go_on);
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Quotes `argv` for a POSIX shell. Words with control characters get the `$'…'` form of bash, zsh
/// and POSIX 2024.
pub fn shell_words<S: AsRef<str>>(argv: &[S]) -> String {
    let words: Vec<_> = argv.iter().map(|w| shell_word(w.as_ref())).collect();
    words.join(" ")
}

/// Quotes `argv` as [`shell_words`] does, on several lines of at most `width` columns that can be
/// pasted.
pub(crate) fn shell_lines<S: AsRef<str>>(argv: &[S], width: usize) -> Vec<String> {
    wrap_words(argv.iter().map(|w| shell_word(w.as_ref())), width, " \\")
}

fn shell_word(word: &str) -> String {
    let safe =
        |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%^".contains(c) || (!c.is_ascii() && !acts_on_terminals(c));
    if !word.is_empty() && word.chars().all(safe) {
        return word.to_owned();
    }
    if !word.chars().any(acts_on_terminals) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut out = String::from("$'");
    for c in word.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\'' | '\\' => out.extend(['\\', c]),
            c if acts_on_terminals(c) => {
                let mut utf8 = [0; 4];
                for byte in c.encode_utf8(&mut utf8).bytes() {
                    // Octal escapes have a fixed length. A hex digit after `\x1b` would be read as
                    // part of the escape.
                    let _ = write!(out, "\\{byte:03o}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn terminal_controls_are_escaped() {
        assert_eq!(clean("a\x1b[31mb\nc\u{9b}2J\u{202e}d\u{7f}"), "a\\x1b[31mb\\nc\\x9b2J\\u{202e}d\\x7f");
        assert_eq!(clean("/usr/lib/grüße/日本"), "/usr/lib/grüße/日本");
    }

    #[test]
    fn words_are_quoted_as_a_shell_reads_them() {
        assert_eq!(
            shell_words(&["perl", "-e", "localtime for 1..3", "it's", "", "TZ=:/etc/localtime"]),
            r"perl -e 'localtime for 1..3' 'it'\''s' '' TZ=:/etc/localtime"
        );
        assert_eq!(shell_words(&["a\x1bb\n'"]), r"$'a\033b\n\''");
        assert_eq!(shell_words(&["~", "#x", "*"]), "'~' '#x' '*'");
    }

    #[test]
    fn shortening_keeps_both_ends() {
        assert_eq!(shorten("abcdefghij", 10), "abcdefghij");
        assert_eq!(shorten("abcdefghijk", 6), "abc…jk");
    }

    #[test]
    fn names_are_cut_between_words() {
        assert_eq!(shorten("core::ops::function::FnOnce::call_once", 24), "core::ops::…::call_once");
        assert_eq!(shorten("/usr/share/zoneinfo/Europe/Berlin", 20), "/usr/share/…/Berlin");
        assert_eq!(shorten("sock_send_impl socketmodule.c:4182", 26), "sock_send_impl ….c:4182");
    }

    #[test]
    fn a_wrapped_command_can_be_pasted() {
        assert_eq!(shell_lines(&["systoll", "run", "--", "x"], 14), ["systoll run \\", "-- x"]);
        assert_eq!(wrap("a bb ccc", 4), ["a bb", "ccc"]);
        assert_eq!(wrap("it is 0.1 %, yes", 10), ["it is", "0.1 %, yes"]);
    }

    proptest! {
        #[test]
        fn cleaned_text_has_no_control_character(text in any::<String>()) {
            prop_assert!(!clean(&text).chars().any(acts_on_terminals));
            prop_assert!(!shell_words(&[&text]).chars().any(acts_on_terminals));
        }

        #[test]
        fn shortened_text_fits(text in any::<String>(), max in 1usize..60) {
            prop_assert!(columns(&shorten(&clean(&text), max)) <= max);
        }

        #[test]
        fn wrapping_loses_no_word(text in "[a-z ]{0,200}", width in 5usize..40) {
            let lines = wrap(&text, width);
            prop_assert_eq!(lines.join(" "), text.split_whitespace().collect::<Vec<_>>().join(" "));
            prop_assert!(lines.iter().all(|l| columns(l) <= width || !l.contains(' ')));
        }

        #[test]
        fn a_shell_reads_back_the_quoted_words(words in proptest::collection::vec("[^\0]{0,12}", 1..4)) {
            // bash is used, as not every sh knows the $'…' form.
            let script = format!("printf '%s\\0' {}", shell_words(&words));
            #[allow(clippy::disallowed_types, reason = "a shell is what the words are for")]
            let Ok(out) = std::process::Command::new("bash").args(["-c", &script]).output() else { return Ok(()) };
            let expected: Vec<u8> = words.iter().flat_map(|w| w.bytes().chain([0])).collect();
            prop_assert_eq!(out.stdout, expected);
        }
    }
}
