//! Splits calls that stand in one line, since a page lost its line ends.

use crate::lex::{arguments, name_end};
use crate::strace::{leader, named};

/// Hands on each call of a line as a line of its own; hands on the line itself if it holds one call
/// at most.
pub(super) fn lines(line: &[u8], to: &mut dyn FnMut(&[u8])) {
    let starts = starts(line);
    if starts.len() < 2 {
        return to(line);
    }
    for (n, from) in starts.iter().enumerate() {
        let end = starts.get(n + 1).copied().unwrap_or(line.len());
        to(line.get(*from..end).unwrap_or_default().trim_ascii());
    }
}

/// Returns the offsets at which the calls of a line begin, with the text in front of each.
fn starts(line: &[u8]) -> Vec<usize> {
    let (mut starts, mut at) = (Vec::new(), 0);
    // Text in front that belongs to no call is passed over word by word.
    while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(length) = call(rest) {
            starts.push(at);
            at += length;
        } else {
            let word = rest.iter().position(u8::is_ascii_whitespace).map_or(rest.len(), |end| end + 1);
            at += word;
        }
    }
    starts
}

/// Returns the length of a whole call at the beginning of a text, with its result and elapsed time.
fn call(text: &[u8]) -> Option<usize> {
    let body = leader::led(text).body;
    let open = name_end(body)?;
    named(body.get(..open)?)?;
    let rest = arguments(body.get(open + 1..)?).rest?;
    let result = result(rest)?;
    Some(text.len() - rest.len() + result)
}

/// Returns the length of a result such as ` = -1 ENOENT (No such file or directory) <0.000012>`.
fn result(text: &[u8]) -> Option<usize> {
    let blank = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let mut at = blank(text);
    at += text.get(at..)?.strip_prefix(b"=").map(|_| 1)?;
    at += blank(text.get(at..)?);
    let value = text.get(at..)?.iter().take_while(|b| b.is_ascii_alphanumeric() || b"-?".contains(b)).count();
    if value == 0 {
        return None;
    }
    at += value;
    // Behind the value may stand a descriptor's file, the error's name and words, and the time.
    loop {
        let rest = text.get(at..)?;
        let skipped = blank(rest);
        let rest = rest.get(skipped..)?;
        let length = match rest.first() {
            Some(b'<') => memchr::memchr(b'>', rest)? + 1,
            Some(b'(') => rest.len() - arguments(rest.get(1..)?).rest?.len(),
            Some(b'E') => {
                let name =
                    rest.iter().take_while(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || **b == b'_').count();
                if name < 3 {
                    return Some(at);
                }
                name
            }
            _ => return Some(at),
        };
        at += skipped + length;
    }
}

#[cfg(test)]
mod tests {
    fn apart(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        super::lines(text.as_bytes(), &mut |line| all.push(String::from_utf8_lossy(line).into_owned()));
        all
    }

    #[test]
    fn calls_of_a_line() {
        assert_eq!(
            apart(
                "$ strace ls open(\"/a\", O_RDONLY) = -1 ENOENT (No such file) <0.1> [pid 7] close(3) = 0 brk(NULL) = 0x5"
            ),
            ["open(\"/a\", O_RDONLY) = -1 ENOENT (No such file) <0.1>", "[pid 7] close(3) = 0", "brk(NULL) = 0x5"]
        );
        // A call in the text that a program writes is no call.
        let one = "write(1, \"close(3) = 0 close(4) = 0\", 25) = 25";
        assert_eq!(apart(one), [one]);
        assert_eq!(apart("close(3"), ["close(3"]);
        assert_eq!(apart(""), [""]);
    }
}
