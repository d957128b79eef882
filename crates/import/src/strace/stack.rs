//! Reads frames of `strace -k`: ` > /lib/libc.so.6(read+0x14) [0xf9a14]`.

use crate::frames::{SourceLine, TracedFrame};

/// Largest number of bytes read of a frame.
const MOST: usize = 2_048;

/// Returns the frame in a line; `None` if the line is none.
pub(super) fn frame(line: &[u8]) -> Option<TracedFrame> {
    let text = line.strip_prefix(b" > ").or_else(|| line.strip_prefix(b"\t> "))?;
    let text = String::from_utf8_lossy(text.get(..text.len().min(MOST))?);
    let text = text.trim_end();
    let Some((front, behind)) = text.rsplit_once(" [0x") else {
        return Some(TracedFrame { module: String::new(), function: None, address: 0, source: None });
    };
    let (address, source) = behind.split_once(']')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let (module, function) = match front.strip_suffix(')').and_then(|front| split(front)) {
        Some((module, inside)) => (module, inside),
        None => (front, ""),
    };
    let function = function.rsplit_once('+').map_or(function, |(name, _)| name);
    let source = source.trim().rsplit_once(':');
    let source = source.and_then(|(file, line)| Some(SourceLine { file: file.to_owned(), line: line.parse().ok()? }));
    let function = (!function.is_empty()).then(|| function.to_owned());
    Some(TracedFrame { module: module.to_owned(), function, address, source })
}

/// Splits a frame's text into the file and the text in the last brackets; names of C++ have
/// brackets of their own.
fn split(front: &str) -> Option<(&str, &str)> {
    let mut depth = 1;
    for (at, c) in front.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((front.get(..at)?, front.get(at + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames() {
        let read = frame(b" > /usr/lib/libc.so.6(read+0x14) [0xf9a14]").unwrap();
        assert_eq!(
            (&*read.module, read.function.as_deref(), read.address),
            ("/usr/lib/libc.so.6", Some("read"), 0xf9a14)
        );
        let nameless = frame(b" > /usr/bin/app() [0x1234]").unwrap();
        assert_eq!((&*nameless.module, nameless.function), ("/usr/bin/app", None));
        let cpp = frame(b" > /usr/bin/app(ns::f(int, char const*)+0x2) [0x10] app.cc:12").unwrap();
        assert_eq!(
            (cpp.function.as_deref(), cpp.source),
            (Some("ns::f(int, char const*)"), Some(SourceLine { file: "app.cc".into(), line: 12 }))
        );
        assert!(frame(b" > unexpected_backtracing_error [0x7f]").is_some());
        assert_eq!(frame(b"read(3) = 0"), None);
    }
}
