//! Folds the path of a URL: ids and numbers become a letter, everything behind `?` is dropped.

/// Parts of a path that are kept; `…` stands for the others.
const MOST_PARTS: usize = 6;
/// Letters of a word that is kept, at most.
const LONGEST_WORD: usize = 20;
/// Bytes of a part that is kept, at most.
const LONGEST_PART: usize = 32;

/// Returns a path with ids, numbers and values folded: `/orders/17?x=1` is `/orders/N`. The result is printable ASCII.
pub(crate) fn folded(path: &[u8]) -> String {
    let end = path.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(path.len());
    let path = path.get(..end).unwrap_or(path);
    let mut text = String::new();
    for (at, part) in path.split(|byte| *byte == b'/').skip(1).enumerate() {
        if at == MOST_PARTS {
            text.push_str("/...");
            break;
        }
        // What follows a semicolon is a parameter: `;jsessionid=…`.
        let part = part.split(|byte| *byte == b';').next().unwrap_or_default();
        text.push('/');
        text.push_str(&folded_part(part));
    }
    if text.is_empty() { "/".into() } else { text }
}

fn folded_part(part: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    if part.len() > LONGEST_PART && is_id(part) {
        return "ID".into();
    }
    if !part.iter().all(is_plain) || part.len() > LONGEST_PART {
        return "*".into();
    }
    if is_id(part) {
        return "ID".into();
    }
    let mut text = String::new();
    let mut last = "";
    for word in part.chunk_by(|a, b| a.is_ascii_alphanumeric() == b.is_ascii_alphanumeric()) {
        let Ok(word) = std::str::from_utf8(word) else { return "*".into() };
        let folded =
            if word.starts_with(|c: char| c.is_ascii_alphanumeric()) { folded_word(word) } else { word.into() };
        text.push_str(&folded);
        last = word;
    }
    // A trailing separator says nothing.
    if text.len() > LONGEST_PART || last.len() > LONGEST_WORD { "*".into() } else { text }
}

/// Returns a word of letters and digits, folded.
fn folded_word(word: &str) -> String {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.len() - digits;
    let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
    match (letters, digits) {
        _ if word.len() > LONGEST_WORD => "*".into(),
        (_, 0) => word.into(),
        (0, _) => "N".into(),
        // A version of an interface: `v1`.
        (1, 1..=2) if word.starts_with(['v', 'V']) => word.into(),
        // A numbered name: `page12`.
        _ if name.len() == letters && letters <= 12 && digits <= 6 => format!("{name}N"),
        _ => "ID".into(),
    }
}

/// Returns true if a part is hexadecimal and long, with or without the dashes of a UUID.
fn is_id(part: &[u8]) -> bool {
    let hex = part.iter().filter(|byte| byte.is_ascii_hexdigit()).count();
    let all = part.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    let digit = part.iter().any(u8::is_ascii_digit);
    let letter = part.iter().any(u8::is_ascii_alphabetic);
    all && letter && (hex >= 8 && digit || hex >= 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_numbers_are_folded() {
        for (path, expected) in [
            ("/", "/"),
            ("/orders/17", "/orders/N"),
            ("/api/v2/orders/17/items/3", "/api/v2/orders/N/items/N"),
            ("/u/550e8400-e29b-41d4-a716-446655440000/x", "/u/ID/x"),
            ("/c/deadbeefdeadbeef", "/c/ID"),
            ("/static/app.3f2a9c1b77.js", "/static/app.ID.js"),
            ("/page12.html", "/pageN.html"),
            ("/2026/11/26/", "/N/N/N/"),
            ("/a/me@example.org", "/a/*"),
            ("/a/b%20c", "/a/*"),
            ("/a;jsessionid=secret/b", "/a/b"),
            ("/a/b/c/d/e/f/g/h", "/a/b/c/d/e/f/..."),
            ("/a/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln", "/a/*"),
        ] {
            assert_eq!(folded(path.as_bytes()), expected, "{path}");
        }
    }
}
