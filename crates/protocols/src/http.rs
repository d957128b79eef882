//! HTTP/1: the request line (RFC 9112, 3).

use crate::path::folded;
use crate::text::{HEAD, line};

/// Methods that begin a request: those of RFC 9110, PATCH, those of WebDAV that servers get, and PURGE of caches.
const METHODS: [&str; 21] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "OPTIONS",
    "CONNECT",
    "TRACE",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "REPORT",
    "SEARCH",
    "MKCALENDAR",
    "QUERY",
    "PURGE",
];

/// Text in place of the path of a request whose line comes in pieces.
const IN_PIECES: &str = "(line in pieces)";

/// Returns the method and the folded path, if bytes begin with a request line. A line may be longer than the bytes that
/// were looked at, but then all of them must be part of it.
pub(crate) fn request(head: &[u8]) -> Option<String> {
    without_first_byte(head).or_else(|| whole(head))
}

/// Returns the kind of a request whose first byte an earlier call received: Go's `net/http` waits for a connection's
/// end by a read of one byte, which gets the first byte of a request that comes early.
fn without_first_byte(head: &[u8]) -> Option<String> {
    let space = head.iter().take(12).position(|byte| *byte == b' ')?;
    let tail = head.get(..space)?;
    let method = METHODS.iter().find(|method| method.as_bytes().get(1..) == Some(tail))?;
    line(head)?;
    let first = method.as_bytes().first()?;
    whole(&[&[*first], head].concat()).filter(|_| head.get(space + 1) == Some(&b'/'))
}

fn whole(head: &[u8]) -> Option<String> {
    // A client may send empty lines in front (RFC 9112, 2.2).
    let start = head.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).filter(|start| *start <= 4)?;
    let head = head.get(start..)?;
    let space = head.iter().take(12).position(|byte| *byte == b' ')?;
    let method = METHODS.iter().find(|method| head.get(..space) == Some(method.as_bytes()))?;
    let rest = head.get(space + 1..)?;
    let target = match line(rest) {
        Some((line, _)) => {
            let end = line.iter().rposition(|byte| *byte == b' ')?;
            let version = line.get(end + 1..)?;
            matches!(version, b"HTTP/1.0" | b"HTTP/1.1").then(|| line.get(..end))??
        }
        None if start + space + 1 + rest.len() >= HEAD => rest,
        None => return matches!(rest, [b'/', ..]).then(|| format!("{method} {IN_PIECES}")),
    };
    if target.is_empty() || !target.iter().all(|byte| byte.is_ascii_graphic() || *byte >= 0x80) {
        return None;
    }
    let path = match target {
        [b'/', ..] => folded(target),
        _ if *method == "CONNECT" => "*".into(),
        b"*" => "*".into(),
        _ => folded(of_absolute(target)?),
    };
    Some(format!("{method} {path}"))
}

/// Returns the path of a target with scheme and host, as clients send it to proxies.
fn of_absolute(target: &[u8]) -> Option<&[u8]> {
    let rest = target.strip_prefix(b"http://").or_else(|| target.strip_prefix(b"https://"))?;
    let path = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    Some(path.and_then(|at| rest.get(at..)).unwrap_or(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Option<String> {
        request(text.as_bytes())
    }

    #[test]
    fn request_lines_give_method_and_path() {
        assert_eq!(kind("GET / HTTP/1.1\r\n"), Some("GET /".into()));
        assert_eq!(kind("\r\nPOST /a/17/b?x=secret HTTP/1.0\n"), Some("POST /a/N/b".into()));
        assert_eq!(kind("OPTIONS * HTTP/1.1\r\n"), Some("OPTIONS *".into()));
        assert_eq!(kind("CONNECT bank.example:443 HTTP/1.1\r\n"), Some("CONNECT *".into()));
        assert_eq!(kind("GET http://a.example/x?y HTTP/1.1\r\n"), Some("GET /x".into()));
        assert_eq!(kind(&format!("GET /a/{} HTTP/1.1\r\n", "x".repeat(400))), Some("GET /a/*".into()));
    }

    #[test]
    fn lines_in_pieces_are_requests_once() {
        assert_eq!(kind("G"), None);
        assert_eq!(kind("ET /a/17 HTTP/1.1\r\n"), Some("GET /a/N".into()));
        assert_eq!(kind("GET /ord"), Some("GET (line in pieces)".into()));
        assert_eq!(kind("ers/17 HTTP/1.1\r\n"), None);
    }

    #[test]
    fn other_lines_are_no_requests() {
        for text in [
            "HTTP/1.1 200 OK\r\n",
            "GET /\r\n",
            "GET / HTTP/2.0\r\n",
            "GET ",
            "GET a",
            "T / HTTP/1.1\r\n",
            "ET /a",
            "ET a HTTP/1.1\r\n",
            "get / HTTP/1.1\r\n",
            "GET  HTTP/1.1\r\n",
        ] {
            assert_eq!(kind(text), None, "{text}");
        }
        assert_eq!(kind("GET /a\tb HTTP/1.1\r\n"), None);
        assert_eq!(kind("SUBSCRIBE /x HTTP/1.1\r\n"), None);
    }
}
