//! What a listener that expects TLS answers to a request without TLS.

/// The answer to a connection that starts with this byte, if it is plain HTTP: its methods are capital letters, and no
/// TLS record starts with one.
pub fn answer_to_plain_http(first: u8) -> Option<String> {
    const BODY: &str =
        r#"{"error":"https_required","message":"this port speaks HTTPS only; use https:// in the address"}"#;
    first.is_ascii_uppercase().then(|| {
        let length = BODY.len();
        format!(
            "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{BODY}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_answered_and_handshakes_are_not() {
        const TLS_HANDSHAKE: u8 = 0x16;
        assert_eq!(answer_to_plain_http(TLS_HANDSHAKE), None);
        assert!(answer_to_plain_http(b'P').is_some_and(|answer| answer.contains("https://")));
    }
}
