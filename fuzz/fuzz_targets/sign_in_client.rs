//! What clients say of themselves: addresses, documents and registrations of strangers.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_signin::clients::{document_address, parse_document, parse_registration};
use sinew_signin::redirect::RedirectAddress;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (id, document) = text.split_once('\n').unwrap_or((&text, ""));
    if let Some(Ok(url)) = document_address(id) {
        assert!(url.is_encrypted() && url.whole() == id);
        if let Ok(client) = parse_document(id, &url, document.as_bytes()) {
            assert!(client.id == id && client.host.as_deref() == Some(url.host()));
        }
    }
    if let Ok(client) = parse_registration("client_1".to_owned(), document.as_bytes()) {
        assert!(client.name.chars().count() <= 64 && !client.name.chars().any(char::is_control));
        for redirect in &client.redirects {
            let address = RedirectAddress::parse(redirect).expect("it was checked");
            assert!(address.is_one_of(&client.redirects) && address.with(&[("code", "x")]).starts_with(redirect.as_str()));
        }
    }
    if let Ok(address) = RedirectAddress::parse(id) {
        // It stands in headers.
        assert!(id.is_ascii() && !id.contains(['\r', '\n', '#', ' ']) && !address.form_action.contains([';', ',', ' ']));
    }
});
