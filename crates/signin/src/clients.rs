//! Who a client says it is: by a document that it publishes at its own address, or by registering itself.
//!
//! Both are texts of strangers. The address of a document is proof of its host, and a name proves nothing.

use serde_json::{Map, Value, json};
use sinew_fetch::HttpUrl;
use sinew_tool::text::clean_line;

use crate::redirect::RedirectAddress;

/// Addresses that one client may name.
const MAX_ADDRESSES: usize = 16;
/// Characters of the name of a client; people read it in a sentence.
const MAX_NAME: usize = 64;
/// Characters of the address of a document.
const MAX_ADDRESS: usize = 512;

/// A client as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    pub id: String,
    /// Cleaned for people; empty where it gives none.
    pub name: String,
    pub redirects: Vec<String>,
    /// The host of its document; none where it registered itself.
    pub host: Option<String>,
}

impl Client {
    /// How rules and people know it: by a host that is proven. Of a client that registered itself only the place is
    /// known to which its answers go.
    pub fn place(&self, redirect: &RedirectAddress) -> String {
        self.host.clone().unwrap_or_else(|| redirect.host.clone())
    }
}

/// Whether a client id is the address of a document, and which.
pub fn document_address(id: &str) -> Option<Result<HttpUrl, String>> {
    id.starts_with("https://").then(|| check_address(id))
}

/// The address must be written in the one form that it has, so that no two ids are one client.
fn check_address(id: &str) -> Result<HttpUrl, String> {
    let wrong = |why: &str| Err(format!("the client id {why}"));
    if id.len() > MAX_ADDRESS || !id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
        return wrong("is too long or has characters that no address has");
    }
    let Ok(url) = HttpUrl::parse(id) else { return wrong("is not an address that can be used") };
    if url.path() == "/" {
        return wrong("is an address without a path");
    }
    if url.path().split(['/', '?']).any(|part| part == "." || part == ".." || part.to_ascii_lowercase().contains("%2e"))
    {
        return wrong("has dots in its path");
    }
    match url.whole() == id {
        true => Ok(url),
        false => wrong("is not written in its shortest form"),
    }
}

/// Reads the document at the address of a client.
pub fn parse_document(id: &str, url: &HttpUrl, text: &[u8]) -> Result<Client, String> {
    let document: Map<String, Value> =
        serde_json::from_slice(text).map_err(|_| "the document of the client is not a JSON object".to_owned())?;
    if document.get("client_id").and_then(Value::as_str) != Some(id) {
        return Err("the document of the client is about another one: its `client_id` is not its address".to_owned());
    }
    let method = document.get("token_endpoint_auth_method").and_then(Value::as_str).unwrap_or("none");
    if method != "none" || document.contains_key("client_secret") {
        return Err("the client wants to authenticate itself, and this gateway takes public clients only (`token_endpoint_auth_method` `none`)".to_owned());
    }
    let client = read(id.to_owned(), Some(url.host().to_owned()), &document)?;
    Ok(client)
}

/// Reads a registration; `id` is new.
pub fn parse_registration(id: String, text: &[u8]) -> Result<Client, String> {
    let body: Map<String, Value> =
        serde_json::from_slice(text).map_err(|_| "the registration is not a JSON object".to_owned())?;
    read(id, None, &body)
}

fn read(id: String, host: Option<String>, about: &Map<String, Value>) -> Result<Client, String> {
    let texts = |name: &str| match about.get(name) {
        None => Ok(None),
        Some(Value::Array(list)) => list.iter().map(Value::as_str).collect::<Option<Vec<_>>>().map(Some).ok_or(()),
        Some(_) => Err(()),
    };
    let list = |name: &str| texts(name).map_err(|()| format!("`{name}` must be a list of texts"));
    let redirects = list("redirect_uris")?.unwrap_or_default();
    if redirects.is_empty() || redirects.len() > MAX_ADDRESSES {
        return Err(format!("`redirect_uris` must have 1 to {MAX_ADDRESSES} addresses"));
    }
    for redirect in &redirects {
        RedirectAddress::parse(redirect)?;
    }
    for (name, needed) in [("grant_types", "authorization_code"), ("response_types", "code")] {
        if list(name)?.is_some_and(|values| !values.contains(&needed)) {
            return Err(format!("`{name}` must have `{needed}`, which is all that this gateway does"));
        }
    }
    let name = clean_line(about.get("client_name").and_then(Value::as_str).unwrap_or_default().trim(), MAX_NAME);
    Ok(Client { id, name, redirects: redirects.into_iter().map(str::to_owned).collect(), host })
}

/// What a client that registered itself is answered.
pub(crate) fn registration_answer(client: &Client, issued: i64) -> Value {
    json!({
        "client_id": client.id,
        "client_id_issued_at": issued,
        "client_name": client.name,
        "redirect_uris": client.redirects,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "https://client.example/about.json";

    fn document(extra: Value) -> Result<Client, String> {
        let mut document =
            json!({"client_id": ID, "client_name": "An app", "redirect_uris": ["https://client.example/cb"]});
        document.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        parse_document(ID, &HttpUrl::parse(ID).unwrap(), document.to_string().as_bytes())
    }

    #[test]
    fn the_address_of_a_document_has_one_form() {
        assert!(document_address("client_abc").is_none());
        assert!(document_address(ID).unwrap().is_ok());
        assert!(document_address("https://client.example:8443/a?b=c").unwrap().is_ok());
        for wrong in [
            "https://client.example",
            "https://client.example/",
            "https://Client.example/a",
            "https://client.example:443/a",
            "https://client.example/a/../b",
            "https://client.example/./b",
            "https://client.example/%2E%2e/b",
            "https://client.example/a#b",
            "https://user@client.example/a",
            "https://client.example\\@evil.example/a",
            "https://client.example/a b",
            "https:///a",
        ] {
            assert!(document_address(wrong).unwrap().is_err(), "{wrong}");
        }
        assert!(document_address(&format!("https://a/{}", "x".repeat(600))).unwrap().is_err());
    }

    #[test]
    fn a_document_is_about_its_own_address_and_a_public_client() {
        let client = document(json!({})).unwrap();
        assert_eq!((client.name.as_str(), client.host.as_deref()), ("An app", Some("client.example")));
        for lie in [
            json!({"client_id": "https://client.example/other.json"}),
            json!({"client_id": null}),
            json!({"token_endpoint_auth_method": "private_key_jwt"}),
            json!({"client_secret": "x"}),
            json!({"redirect_uris": []}),
            json!({"redirect_uris": "https://client.example/cb"}),
            json!({"redirect_uris": ["https://client.example/cb", 5]}),
            json!({"redirect_uris": ["javascript:alert(1)"]}),
            json!({"redirect_uris": vec!["https://a/cb"; 17]}),
            json!({"grant_types": ["implicit"]}),
            json!({"response_types": ["token"]}),
        ] {
            assert!(document(lie.clone()).is_err(), "{lie}");
        }
        for text in ["", "[]", "\"x\"", "{", &"[".repeat(100_000)] {
            assert!(parse_document(ID, &HttpUrl::parse(ID).unwrap(), text.as_bytes()).is_err());
        }
    }

    #[test]
    fn a_name_is_shown_without_tricks() {
        let name = |name: Value| document(json!({"client_name": name})).unwrap().name;
        assert!(!name(json!("\u{202e}evil\u{0}\n<b>")).contains(['\u{202e}', '\n', '\u{0}']));
        assert!(name(json!("x".repeat(500))).chars().count() <= MAX_NAME);
        assert_eq!(name(json!(5)), "");
    }

    #[test]
    fn a_registration_becomes_a_public_client_whatever_it_wants() {
        let body =
            json!({"redirect_uris": ["http://127.0.0.1/cb"], "token_endpoint_auth_method": "client_secret_post"});
        let client = parse_registration("client_1".to_owned(), body.to_string().as_bytes()).unwrap();
        let answer = registration_answer(&client, 5);
        assert_eq!((answer["token_endpoint_auth_method"].as_str(), answer.get("client_secret")), (Some("none"), None));
        let redirect = RedirectAddress::parse("http://127.0.0.1:3000/cb").unwrap();
        assert_eq!(client.place(&redirect), "localhost");
    }
}
