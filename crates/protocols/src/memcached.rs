//! memcached: the text protocol's commands (memcached's doc/protocol.txt).

use crate::text::{HEAD, line, number};

/// Commands that name a key, with the number of words that may follow it, least and most.
const WITH_KEY: [(&str, usize, usize); 22] = [
    ("get", 0, 99),
    ("gets", 0, 99),
    ("gat", 1, 99),
    ("gats", 1, 99),
    ("set", 3, 4),
    ("add", 3, 4),
    ("replace", 3, 4),
    ("append", 3, 4),
    ("prepend", 3, 4),
    ("cas", 4, 5),
    ("delete", 0, 2),
    ("incr", 1, 2),
    ("decr", 1, 2),
    ("touch", 1, 2),
    ("mg", 0, 32),
    ("ms", 1, 32),
    ("md", 0, 32),
    ("ma", 0, 32),
    ("me", 0, 32),
    ("lru", 0, 4),
    ("slabs", 0, 4),
    ("stats", 0, 2),
];
/// Commands without a key.
const ALONE: [&str; 5] = ["stats", "version", "mn", "quit", "flush_all"];
/// Bytes of a key, at most.
const LONGEST_KEY: usize = 250;
/// Commands, each with the number of words behind the key that must be numbers.
const NUMBERS: [(&str, usize); 6] = [("set", 3), ("add", 3), ("replace", 3), ("append", 3), ("prepend", 3), ("cas", 3)];

/// Returns the command, if bytes begin with one.
pub(crate) fn request(head: &[u8]) -> Option<String> {
    let whole = line(head).map(|(line, _)| line);
    if let Some(name) = whole.and_then(|line| ALONE.iter().find(|name| name.as_bytes() == line)) {
        return Some((*name).into());
    }
    // A line that is longer than the bytes that were looked at names many keys.
    let text = whole.or_else(|| (head.len() >= HEAD).then_some(head))?;
    let mut words = text.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let name = words.next()?;
    let (name, least, most) = WITH_KEY.iter().find(|(known, ..)| known.as_bytes() == name)?;
    let key = words.next()?;
    let is_word = |word: &[u8]| word.iter().all(|byte| byte.is_ascii_graphic() || *byte >= 0x80);
    if key.len() > LONGEST_KEY || !is_word(key) {
        return None;
    }
    let rest: Vec<&[u8]> = words.take(most + 1).collect();
    let numbers = NUMBERS.iter().find(|(known, _)| known == name).map_or(0, |(_, numbers)| *numbers);
    let fits = whole.is_none() || (*least..=*most).contains(&rest.len());
    let tells = rest.iter().all(|word| is_word(word)) && rest.iter().take(numbers).all(|word| number(word).is_some());
    (fits && tells).then(|| (*name).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Option<String> {
        request(text.as_bytes())
    }

    #[test]
    fn commands_are_told_without_their_keys() {
        assert_eq!(kind("get secret\r\n"), Some("get".into()));
        assert_eq!(kind("set secret 0 60 5\r\nhello\r\n"), Some("set".into()));
        assert_eq!(kind("mg secret v t\r\n"), Some("mg".into()));
        assert_eq!(kind("version\r\n"), Some("version".into()));
        assert_eq!(kind(&format!("get {}", "key ".repeat(100))), Some("get".into()));
    }

    #[test]
    fn other_lines_are_no_commands() {
        for text in ["get\r\n", "GET secret\r\n", "set a b c d\r\n", "get secret", "VALUE a 0 5\r\n", "ms a\r\n"] {
            assert_eq!(kind(text), None, "{text}");
        }
    }
}
