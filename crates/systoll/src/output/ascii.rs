//! Output for locales without UTF-8: the few signs of ours that are not ASCII become such.

use std::io::{self, Write};

/// Whether the locale has no UTF-8: `LC_ALL`, else `LC_CTYPE`, else `LANG`, as setlocale(3) looks at them.
pub(super) fn wanted() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    // Where nothing is set nothing says that the terminal could not: reports in files stay as they are.
    locale.is_some_and(|locale| !is_utf8(&locale))
}

fn is_utf8(locale: &str) -> bool {
    let lower = locale.to_ascii_lowercase();
    lower.contains("utf-8") || lower.contains("utf8")
}

/// Passes text on, its own signs replaced; what a program named stays as it is.
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
        // Renderers write whole pieces of text; what ends within a character goes on as it is.
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

/// One column for one, so that tables stay in step.
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
