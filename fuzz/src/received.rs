//! Targets for bytes that a network sends to a watched server.

use systoll_protocols::{HEAD, Kinds, Received, recognise};

/// Recognises the requests in received bytes, a line of the input being one receive, and keeps their kinds.
pub fn request(data: &[u8]) {
    let mut kinds = Kinds::default();
    let mut given = Vec::new();
    for received in std::iter::once(data).chain(data.split(|byte| *byte == 0xff)) {
        if let Received::Request(protocol, name) = recognise(received) {
            assert!(protocol.has_requests(), "{name:?}");
            assert!(!name.is_empty() && name.len() <= HEAD, "{name:?}");
            assert!(name.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '), "{name:?}");
            given.push(kinds.number(protocol, &name));
        }
    }
    let (kept, places) = kinds.kept();
    assert!(kept.len() <= places.len());
    for number in given {
        let place = places.get(number as usize).expect("each number has a kind");
        assert!((*place as usize) < kept.len());
    }
}

/// Returns requests of each protocol.
pub fn requests() -> Vec<Vec<u8>> {
    let all: [&[u8]; 9] = [
        b"GET /orders/17?x=1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST http://a.example/users/550e8400-e29b-41d4-a716-446655440000 HTTP/1.0\r\n\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n*1\r\n$4\r\nINFO\r\n",
        b"*2\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n",
        b"set key 0 60 5\r\nhello\r\n",
        b"get a b c\r\n",
        b"Q\0\0\0\x2dselect a from orders where b = 'some text'\0",
        b"P\0\0\0\x23s1\0insert into t values ($1)\0\0\0B\0\0\0\x0e\0s1\0\0\0\0\0\0",
        b"\x16\x03\x01\x02\0\x01GET /a HTTP/1.1\r\n",
    ];
    let several = all.join(&0xff);
    all.iter().map(|bytes| bytes.to_vec()).chain([several]).collect()
}
