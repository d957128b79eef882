//! The verb and the table of an SQL statement.

use crate::text::known;

/// Words that begin a statement.
const VERBS: &[&str] = &[
    "ABORT",
    "ALTER",
    "ANALYZE",
    "BEGIN",
    "CALL",
    "CHECKPOINT",
    "CLOSE",
    "CLUSTER",
    "COMMENT",
    "COMMIT",
    "COPY",
    "CREATE",
    "DEALLOCATE",
    "DECLARE",
    "DELETE",
    "DISCARD",
    "DO",
    "DROP",
    "END",
    "EXECUTE",
    "EXPLAIN",
    "FETCH",
    "GRANT",
    "INSERT",
    "LISTEN",
    "LOCK",
    "MERGE",
    "MOVE",
    "NOTIFY",
    "PREPARE",
    "REFRESH",
    "REINDEX",
    "RELEASE",
    "RESET",
    "REVOKE",
    "ROLLBACK",
    "SAVEPOINT",
    "SELECT",
    "SET",
    "SHOW",
    "START",
    "TABLE",
    "TRUNCATE",
    "UNLISTEN",
    "UPDATE",
    "VACUUM",
    "VALUES",
    "WITH",
];
/// Letters of a table's name that are kept, at most.
const LONGEST_NAME: usize = 40;

/// A part of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A keyword or a name.
    Word(&'a [u8]),
    /// A name between quotes, without them.
    Quoted(&'a [u8]),
    /// Any other byte.
    Byte(u8),
    /// A literal, which is dropped.
    Literal,
}

/// Returns the verb of a statement and the table that it is about, if the bytes tell one; literals are dropped. Returns
/// `None` if it begins with no verb.
pub(crate) fn statement(text: &[u8]) -> Option<String> {
    let mut tokens = Tokens(text);
    let verb = tokens.find_map(|token| match token {
        Token::Byte(b'(' | b';') => None,
        Token::Word(word) => Some(known(word, VERBS)),
        _ => Some(None),
    })??;
    let before: &[&str] = match verb {
        "SELECT" | "DELETE" => &["FROM"],
        "INSERT" | "MERGE" => &["INTO"],
        "UPDATE" | "COPY" | "TABLE" => &[],
        "TRUNCATE" | "LOCK" | "VACUUM" | "ANALYZE" => &["TABLE"],
        _ => return Some(verb.into()),
    };
    Some(match table(tokens, before) {
        Some(table) => format!("{verb} {table}"),
        None => verb.into(),
    })
}

/// Returns the first table's name behind one of the words `before`; behind the verb if there are none, or if such a word
/// may be left out.
fn table(mut tokens: Tokens<'_>, before: &[&str]) -> Option<String> {
    let optional = matches!(before, [] | ["TABLE"]);
    let is_before = |token: &Token<'_>| matches!(token, Token::Word(word) if before.iter().any(|b| b.as_bytes().eq_ignore_ascii_case(word)));
    if !optional {
        tokens.find(is_before)?;
    }
    let skipped =
        |token: &Token<'_>| matches!(token, Token::Word(word) if known(word, &["ONLY", "TABLE", "LATERAL"]).is_some());
    let first = tokens.by_ref().find(|token| !skipped(token))?;
    let mut name = part(first)?;
    // Schema and table are one name.
    let mut ahead = Tokens(tokens.0);
    if ahead.next() == Some(Token::Byte(b'.'))
        && let Some(second) = ahead.next().and_then(part)
    {
        name = format!("{name}.{second}");
    }
    Some(name)
}

/// Returns a name without its digits; `None` if the token is none, or can't be shown.
fn part(token: Token<'_>) -> Option<String> {
    let (Token::Word(name) | Token::Quoted(name)) = token else { return None };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'$');
    let text = std::str::from_utf8(name).ok().filter(|_| !name.is_empty() && name.iter().all(plain))?;
    if text.len() > LONGEST_NAME {
        return Some("*".into());
    }
    let mut folded = String::new();
    // The server folds a name without quotes to small letters.
    let text = if matches!(token, Token::Word(_)) { text.to_ascii_lowercase() } else { text.into() };
    for run in text.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()) {
        match std::str::from_utf8(run) {
            Ok(run) if !run.starts_with(|c: char| c.is_ascii_digit()) => folded.push_str(run),
            _ => folded.push('N'),
        }
    }
    Some(folded)
}

/// The tokens of a statement, without comments.
struct Tokens<'a>(&'a [u8]);

impl<'a> Tokens<'a> {
    fn rest(&self, at: usize) -> &'a [u8] {
        self.0.get(at..).unwrap_or_default()
    }

    /// Takes the bytes up to `end` and the byte there. Without one, everything is taken.
    fn until(&mut self, end: u8) -> &'a [u8] {
        let at = self.0.iter().position(|byte| *byte == end).unwrap_or(self.0.len());
        let taken = self.0.get(..at).unwrap_or_default();
        self.0 = self.rest(at + 1);
        taken
    }

    /// Takes the rest of a comment that ends with `*/`.
    fn comment(&mut self) {
        let end = self.0.windows(2).position(|pair| pair == b"*/");
        self.0 = end.map_or(&[][..], |end| self.rest(end + 2));
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            match *self.0 {
                [] => return None,
                [b'-', b'-', ..] => drop(self.until(b'\n')),
                [b'/', b'*', ..] => {
                    self.0 = self.rest(2);
                    self.comment();
                }
                [byte, ..] if byte.is_ascii_whitespace() => self.0 = self.rest(1),
                _ => break,
            }
        }
        let (first, _) = self.0.split_first()?;
        match *first {
            b'\'' => {
                self.0 = self.rest(1);
                self.until(b'\'');
                Some(Token::Literal)
            }
            b'"' => {
                self.0 = self.rest(1);
                Some(Token::Quoted(self.until(b'"')))
            }
            first if first.is_ascii_alphabetic() || first == b'_' => {
                let is_in = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
                let end = self.0.iter().position(|byte| !is_in(byte)).unwrap_or(self.0.len());
                let word = self.0.get(..end).unwrap_or_default();
                self.0 = self.rest(end);
                Some(Token::Word(word))
            }
            first if first.is_ascii_digit() => {
                let end = self.0.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(self.0.len());
                self.0 = self.rest(end);
                Some(Token::Literal)
            }
            // A body between dollars: `$$ … $$`.
            b'$' if self.rest(1).starts_with(b"$") => {
                self.0 = &[];
                Some(Token::Literal)
            }
            first => {
                self.0 = self.rest(1);
                Some(Token::Byte(first))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_a_verb_and_mostly_a_table() {
        for (text, expected) in [
            ("SELECT a, 'x from y' FROM Orders o WHERE id = 17", "SELECT orders"),
            ("/* from a */ select count(*) from only \"Big Orders\"", "SELECT"),
            ("-- hi\n  insert into public.orders_2024 values (1, 'secret')", "INSERT public.orders_N"),
            ("update t set a = 'secret'", "UPDATE t"),
            ("delete from \"Orders\" where x = 1", "DELETE Orders"),
            ("select 1", "SELECT"),
            ("select * from (select 1) x", "SELECT"),
            ("begin", "BEGIN"),
            ("truncate a", "TRUNCATE a"),
            ("truncate table a", "TRUNCATE a"),
            ("copy t from stdin", "COPY t"),
            ("with x as (select 1) select * from x", "WITH"),
            ("set password = 'secret'", "SET"),
        ] {
            assert_eq!(statement(text.as_bytes()).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(statement(b"hello"), None);
        assert_eq!(statement(b"'select'"), None);
        assert_eq!(statement(b""), None);
    }
}
