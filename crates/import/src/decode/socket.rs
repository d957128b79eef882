//! Reads addresses of sockets.

use crate::lex::{members, within};
use crate::literal::{number, string};
use std::net::{Ipv4Addr, Ipv6Addr};
use systoll_model::constants::{AF_INET, AF_INET6, AF_UNIX};

/// Returns the bytes of an address such as `{sa_family=AF_INET, sin_port=htons(80),
/// sin_addr=inet_addr("127.0.0.1")}`; `None` if it has another family, or lacks a part.
pub(super) fn address(text: &[u8]) -> Option<Vec<u8>> {
    let inner = within(text, b'{', b'}')?;
    let all = members(inner, 8);
    let field = |name: &str| all.iter().find_map(|m| m.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    let family = number(field("sa_family")?)? as u32;
    let mut bytes = (family as u16).to_le_bytes().to_vec();
    let port = |name: &str| number(field(name)?).map(|port| (port as u16).to_le_bytes());
    match family {
        AF_INET => {
            bytes.extend(port("sin_port")?);
            bytes.extend(quoted(field("sin_addr")?)?.parse::<Ipv4Addr>().ok()?.octets());
            bytes.resize(16, 0);
        }
        AF_INET6 => {
            bytes.extend(port("sin6_port")?);
            bytes.extend([0; 4]);
            let address = all.iter().find(|m| m.starts_with(b"inet_pton(") || m.starts_with(b"sin6_addr="))?;
            bytes.extend(quoted(address)?.parse::<Ipv6Addr>().ok()?.octets());
            bytes.extend([0; 4]);
        }
        AF_UNIX => {
            let path = field("sun_path")?;
            let hidden = path.starts_with(b"@");
            bytes.extend(hidden.then_some(0));
            bytes.extend(string(path, 107)?.bytes);
            bytes.extend((!hidden).then_some(0));
        }
        _ => return None,
    }
    Some(bytes)
}

/// Returns an address as long as the program said, up to `bound` bytes: what follows a path's end means nothing.
pub(super) fn filled(mut address: Vec<u8>, bound: usize) -> Vec<u8> {
    let is_path = address.starts_with(&(AF_UNIX as u16).to_le_bytes()) && address.ends_with(&[0]);
    if is_path && address.len() < bound {
        address.resize(bound, 0);
    }
    address
}

/// Returns the first string in the text.
fn quoted(text: &[u8]) -> Option<String> {
    let from = memchr::memchr(b'"', text)?;
    Some(String::from_utf8_lossy(&string(text.get(from..)?, 64)?.bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let got = address(br#"{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}"#).unwrap();
        assert_eq!(got, [2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        let six = br#"{sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0}"#;
        assert_eq!(address(six).map(|b| (b.len(), b[3], b[23])), Some((28, 0xbb, 1)));
        assert_eq!(address(br#"{sa_family=AF_UNIX, sun_path="/run/a"}"#), Some(b"\x01\0/run/a\0".to_vec()));
        assert_eq!(address(br#"{sa_family=AF_UNIX, sun_path=@"a"}"#), Some(b"\x01\0\0a".to_vec()));
        assert_eq!(address(b"{st_mode=1}"), None);
    }
}
