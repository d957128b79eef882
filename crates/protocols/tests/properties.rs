//! Properties that hold for any received bytes.

use proptest::prelude::*;
use systoll_model::RequestProtocol;
use systoll_protocols::{HEAD, Received, recognise};

/// Bytes as strangers send them: requests with parts replaced.
fn received() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"GET /".to_vec()),
        Just(b"POST http://".to_vec()),
        Just(b" HTTP/1.1\r\n".to_vec()),
        Just(b"*2\r\n$3\r\nGET\r\n$".to_vec()),
        Just(b"set k 0 0 ".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"Q\0\0\0\x20select ".to_vec()),
        Just(b" from ".to_vec()),
        Just(b"P\0\0\0\x40s\0".to_vec()),
        "[ -~]{0,40}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..40),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn a_kind_is_short_and_printable(bytes in received()) {
        if let Received::Request(_, kind) = recognise(&bytes) {
            prop_assert!(kind.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '), "{kind:?}");
            prop_assert!(!kind.is_empty() && kind.len() <= HEAD, "{kind:?}");
        }
    }

    #[test]
    fn bytes_behind_the_head_change_nothing(bytes in received(), more in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut head = bytes;
        head.resize(HEAD, b'x');
        let longer = [&head[..], &more].concat();
        prop_assert_eq!(recognise(&head), recognise(&longer));
    }

    #[test]
    fn a_path_s_values_are_dropped(secret in "[0-9a-f]{12,30}", query in "[!-~&&[^ ]]{0,30}") {
        let text = format!("GET /users/7{secret}/x?key={query} HTTP/1.1\r\nCookie: {query}\r\n\r\n");
        let Received::Request(RequestProtocol::Http, kind) = recognise(text.as_bytes()) else {
            return Err(TestCaseError::fail("no request"));
        };
        prop_assert!(kind == "GET /users/ID/x" || kind == "GET /users/N/x", "{}", kind);
    }

    #[test]
    fn keys_and_literals_are_dropped(secret in "[a-z]{8,30}") {
        let redis = format!("*3\r\n$3\r\nSET\r\n${}\r\n{secret}\r\n$2\r\nxx\r\n", secret.len());
        let sql = format!("select a from t where b = '{secret}'\0");
        let postgres = [&b"Q"[..], &(sql.len() as u32 + 4).to_be_bytes(), sql.as_bytes()].concat();
        let all = [redis.into_bytes(), format!("get {secret}\r\n").into_bytes(), postgres];
        for (bytes, kind) in all.iter().zip(["SET", "get", "SELECT t"]) {
            let Received::Request(_, told) = recognise(bytes) else { return Err(TestCaseError::fail("no request")) };
            prop_assert_eq!(told, kind);
        }
    }
}
