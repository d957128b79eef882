//! PostgreSQL: a client's messages of the simple and the extended protocol
//! (<https://www.postgresql.org/docs/current/protocol-message-formats.html>).

use crate::sql::statement;
use crate::text::until_nul;

/// Bytes of a message, at most: PostgreSQL's own limit.
const LONGEST: u32 = 1 << 30;

/// Returns the kind of a request, if bytes begin with a message that begins one.
pub(crate) fn request(head: &[u8]) -> Option<String> {
    let Message { kind, body, behind } = message(head)?;
    match kind {
        b'Q' => statement(until_nul(body).0),
        b'P' => {
            let (name, rest) = until_nul(body);
            is_name(name).then_some(())?;
            let kind = statement(until_nul(rest).0)?;
            // If Describe, Sync or Flush follows instead of Bind, the statement is executed later.
            let prepares =
                behind.and_then(|behind| behind.first()).is_some_and(|next| matches!(next, b'D' | b'S' | b'H'));
            Some(if prepares && !name.is_empty() { format!("{kind} (prepared)") } else { kind })
        }
        b'B' => {
            let (portal, rest) = until_nul(body);
            let (name, rest) = until_nul(rest);
            // Format codes follow: 0 for text, 1 for binary.
            let codes = rest.first_chunk::<2>().map(|count| u16::from_be_bytes(*count));
            let plain = is_name(portal) && is_name(name) && codes.is_some_and(|codes| codes < 1 << 12);
            plain.then(|| "a prepared statement".into())
        }
        _ => None,
    }
}

/// A message, as far as it was received.
struct Message<'a> {
    kind: u8,
    body: &'a [u8],
    /// The bytes behind the message, if its end was received.
    behind: Option<&'a [u8]>,
}

/// Returns the first message.
fn message(head: &[u8]) -> Option<Message<'_>> {
    let (kind, rest) = head.split_first()?;
    let (length, body) = rest.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length);
    if !(5..=LONGEST).contains(&length) {
        return None;
    }
    let length = usize::try_from(length).ok()? - 4;
    Some(Message { kind: *kind, body: body.get(..length).unwrap_or(body), behind: body.get(length..) })
}

/// Returns true if bytes are a name of a statement or portal, or empty.
fn is_name(name: &[u8]) -> bool {
    name.len() < 64 && name.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(messages: &[(u8, &[u8])]) -> Option<String> {
        let one = |(kind, body): &(u8, &[u8])| [&[*kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat();
        request(&messages.iter().flat_map(one).collect::<Vec<u8>>())
    }

    #[test]
    fn statements_are_told_by_verb_and_table() {
        assert_eq!(kind_of(&[(b'Q', b"select * from orders where id = 'secret'\0")]), Some("SELECT orders".into()));
        assert_eq!(kind_of(&[(b'P', b"\0insert into t values ($1)\0\0\0"), (b'B', b"")]), Some("INSERT t".into()));
        assert_eq!(kind_of(&[(b'P', b"s1\0select 1\0\0\0"), (b'S', b"")]), Some("SELECT (prepared)".into()));
        assert_eq!(kind_of(&[(b'B', b"\0s1\0\0\0\0\x01")]), Some("a prepared statement".into()));
    }

    #[test]
    fn answers_are_no_requests() {
        assert_eq!(kind_of(&[(b'D', b"\0\x01\0\0\0\x05alice")]), None);
        assert_eq!(kind_of(&[(b'Z', b"I")]), None);
        assert_eq!(kind_of(&[(b'Q', b"hello world\0")]), None);
        assert_eq!(request(b"Q\0\0\0"), None);
        assert_eq!(request(b"Q\xff\xff\xff\xffselect 1"), None);
    }
}
