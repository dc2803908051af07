//! Access tokens and keys of other issuers, from whoever sends them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_signin::jwt::{Expected, Token};
use sinew_signin::keys::KeySet;

fuzz_target!(|bytes: &[u8]| {
    // A token, a byte that neither has, and the keys.
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let text = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let keys = KeySet::parse(parts.next().unwrap_or_default()).unwrap_or_default();
    let audiences = ["https://home.example/mcp".to_owned()];
    let expected = Expected { issuer: "https://login.example", audiences: &audiences };
    if let Ok(token) = Token::parse(&text) {
        let _ = token.check(&expected, 1_800_000_000);
        // The fuzzer has no private key of any key that it could write.
        let _ = token.verify(&keys);
        let _ = (token.expires(), token.scopes(), token.denies("email_verified"), token.texts("groups"));
        if let Ok(name) = token.name("sub") {
            assert!(!name.is_empty() && name.len() <= 128 && !name.chars().any(char::is_control));
        }
    }
});
