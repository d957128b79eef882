//! Writes output for locales without UTF-8: our own non-ASCII characters are replaced.

use crate::environment;
use std::io::{self, Write};

/// Returns true if a locale is set and is no UTF-8 one.
pub(crate) fn wanted() -> bool {
    // Without a locale, nothing says that the terminal lacks UTF-8: reports in files keep their signs.
    environment::locale().is_some_and(|locale| !is_utf8(&locale))
}

fn is_utf8(locale: &str) -> bool {
    let lower = locale.to_ascii_lowercase();
    lower.contains("utf-8") || lower.contains("utf8")
}

/// Replaces our own characters in what is written. Names chosen by programs stay as they are.
pub(super) struct Ascii<'a> {
    to: &'a mut dyn Write,
}

impl<'a> Ascii<'a> {
    pub(super) fn new(to: &'a mut dyn Write) -> Self {
        Self { to }
    }
}

impl Write for Ascii<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Renderers write whole pieces of text. Bytes that end within a character are passed on
        // unchanged.
        match std::str::from_utf8(bytes) {
            Ok(text) => self.to.write_all(plain(text).as_bytes())?,
            Err(_) => self.to.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Replaces characters one by one, which keeps tables aligned.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            'µ' => 'u',
            '…' => '~',
            '×' => 'x',
            '±' => '~',
            '–' | '—' => '-',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_become_ascii_in_one_column_each() {
        let mut out = Vec::new();
        Ascii::new(&mut out).write_all("1.4 µs  a…b  (×3)  /tmp/ä".as_bytes()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "1.4 us  a~b  (x3)  /tmp/ä");
        assert!(is_utf8("C.UTF-8") && is_utf8("de_DE.utf8") && !is_utf8("C") && !is_utf8("POSIX") && !is_utf8("en_US"));
    }
}
