//! Recognises the kind of a request in the first bytes that a server receives: the method and path of HTTP/1, the
//! command of Redis and memcached, the verb and table of PostgreSQL.
//!
//! The bytes come from the network. Invariants: no function panics, each looks at [`HEAD`] bytes at most, and a kind is
//! short printable ASCII that holds no value: bodies, headers, keys, query strings, numbers and literals are dropped, and
//! words of a path that look like an id are replaced.
//!
//! ```
//! use systoll_protocols::{Received, recognise};
//! use systoll_model::RequestProtocol;
//!
//! let received = recognise(b"GET /orders/4711?token=x HTTP/1.1\r\nHost: a\r\n\r\n");
//! assert_eq!(received, Received::Request(RequestProtocol::Http, "GET /orders/N".into()));
//! assert_eq!(recognise(b"HTTP/1.1 200 OK\r\n\r\n"), Received::Other);
//! ```
#![forbid(unsafe_code)]

mod http;
mod kinds;
mod memcached;
mod path;
mod postgres;
mod redis;
mod sql;
mod text;

pub use kinds::Kinds;
pub use text::HEAD;

use systoll_model::RequestProtocol;

/// The meaning of received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The bytes begin a request of this kind.
    Request(RequestProtocol, String),
    /// The bytes belong to a protocol in which requests can't be told apart: TLS, or HTTP/2.
    Unreadable(RequestProtocol),
    /// The bytes begin no request that is known here: they are a body's next part, an answer, or another protocol.
    Other,
}

/// Returns the meaning of the first bytes that a call has received.
#[must_use]
pub fn recognise(bytes: &[u8]) -> Received {
    let head = bytes.get(..HEAD).unwrap_or(bytes);
    if is_tls(head) {
        return Received::Unreadable(RequestProtocol::Tls);
    }
    if head.starts_with(b"PRI * HTTP/2.0\r\n") {
        return Received::Unreadable(RequestProtocol::Http2);
    }
    let request = |protocol| move |kind| Received::Request(protocol, kind);
    http::request(head)
        .map(request(RequestProtocol::Http))
        .or_else(|| redis::request(head).map(request(RequestProtocol::Redis)))
        .or_else(|| memcached::request(head).map(request(RequestProtocol::Memcached)))
        .or_else(|| postgres::request(head).map(request(RequestProtocol::Postgres)))
        .unwrap_or(Received::Other)
}

/// Returns true if bytes begin with the header of a TLS record (RFC 8446, 5.1).
fn is_tls(head: &[u8]) -> bool {
    matches!(head, [0x14..=0x17, 3, 0..=4, high, _, ..] if *high <= 0x48)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_bytes_are_no_requests() {
        assert_eq!(recognise(&[0x16, 3, 1, 2, 0, 1]), Received::Unreadable(RequestProtocol::Tls));
        assert_eq!(recognise(&[0x17, 3, 3, 0, 30]), Received::Unreadable(RequestProtocol::Tls));
        assert_eq!(recognise(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Received::Unreadable(RequestProtocol::Http2));
        assert_eq!(recognise(&[0x17, 3, 3]), Received::Other);
        assert_eq!(recognise(b""), Received::Other);
    }
}
