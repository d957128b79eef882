//! Addresses of sockets, as calls give them.

use crate::syscalls::constants::{AF_INET, AF_INET6};
use crate::sysno::Sysno;
use std::net::{IpAddr, SocketAddr};

/// The call that names a socket's other end, and its argument that does.
const CONNECT: Sysno = Sysno::named("connect");
const PEER: u8 = 1;

/// Returns the address in the bytes of a `sockaddr` (man 7 ip, ipv6); `None` if it is of another kind, or cut.
#[must_use]
pub fn address(bytes: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    let ip: IpAddr = match u32::from(u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?)) {
        AF_INET => <[u8; 4]>::try_from(bytes.get(4..8)?).ok()?.into(),
        AF_INET6 => <[u8; 16]>::try_from(bytes.get(8..24)?).ok()?.into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// Returns the argument of a call that names the peer to which it connects its socket.
#[must_use]
pub fn peer_argument(syscall: Sysno) -> Option<u8> {
    (syscall == CONNECT).then_some(PEER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_whole_or_not_at_all() {
        let four = [2, 0, 0x1f, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        let six = [&[10, 0, 0, 80, 0, 0, 0, 0][..], &[0; 15], &[1, 0, 0, 0, 0]].concat();
        assert_eq!(address(&four).map(|a| a.to_string()).as_deref(), Some("127.0.0.1:8080"));
        assert_eq!(address(&six).map(|a| a.to_string()).as_deref(), Some("[::1]:80"));
        assert_eq!((address(&four[..7]), address(&six[..23]), address(b"\x01\0/run/x")), (None, None, None));
    }

    #[test]
    fn only_connecting_names_a_peer() {
        assert_eq!(peer_argument(Sysno::named("connect")), Some(1));
        assert_eq!(peer_argument(Sysno::named("bind")), None);
    }
}
