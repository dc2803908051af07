//! Where a client may have the answer to a sign-in sent.
//!
//! An address is compared letter by letter with those that the client named before. Only the port of an address on
//! the person's own machine may differ, because programs take any that is free (RFC 8252).

use sinew_fetch::HttpUrl;

/// Characters of an address.
const MAX_LENGTH: usize = 2_000;

/// Schemes of programs that take the answer themselves, besides those that have a dot in them, as RFC 8252 asks.
const PROGRAMS: [&str; 6] = ["claude", "cursor", "vscode", "vscode-insiders", "windsurf", "zed"];

/// An address that a client may be answered at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectAddress {
    text: String,
    /// What a page must allow its form to lead to.
    pub form_action: String,
    /// For people: the host, or the program.
    pub host: String,
    pub place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Web,
    /// Any program on the machine of the browser can take the answer.
    Loopback,
    Program,
}

impl RedirectAddress {
    pub fn parse(text: &str) -> Result<RedirectAddress, String> {
        let wrong = |why: &str| Err(format!("the redirect address {why}"));
        if text.len() > MAX_LENGTH {
            return wrong(&format!("has more than {MAX_LENGTH} characters"));
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?[]@!$&'()*+,;=%".contains(&byte);
        if !text.bytes().all(is_plain) {
            return wrong("has a fragment, or characters that no address has");
        }
        let Some((scheme, rest)) = text.split_once(':') else { return wrong("has no scheme") };
        let address = |form_action: String, host: String, place| {
            Ok(RedirectAddress { text: text.to_owned(), form_action, host, place })
        };
        match scheme {
            "http" | "https" => {
                let Ok(url) = HttpUrl::parse(text) else { return wrong("is not a web address that can be used") };
                let authority = rest.trim_start_matches("//").split(['/', '?']).next().unwrap_or_default();
                // It stands in a policy for pages, where other letters mean something.
                let is_host = authority.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte));
                if !rest.starts_with("//") || rest.starts_with("///") || authority.is_empty() || !is_host {
                    return wrong("is not a web address that can be used");
                }
                // A policy for pages cannot name an IPv6 address.
                let action = match authority.starts_with('[') {
                    true => format!("{scheme}:"),
                    false => format!("{scheme}://{authority}"),
                };
                if is_loopback_authority(authority) {
                    return address(action, "localhost".to_owned(), Place::Loopback);
                }
                if scheme == "http" {
                    return wrong("is not encrypted; only loopback addresses may be http");
                }
                address(action, url.host().to_owned(), Place::Web)
            }
            _ if is_program(scheme) => address(format!("{scheme}:"), scheme.to_owned(), Place::Program),
            _ => wrong(
                "has a scheme that is not allowed; expected https, http on loopback, or a program's own with a dot in it",
            ),
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether this is one of the addresses that a client named.
    pub fn is_one_of(&self, named: &[String]) -> bool {
        let without_port = loopback_without_port(&self.text);
        named.iter().any(|named| {
            *named == self.text || (without_port.is_some() && loopback_without_port(named) == without_port)
        })
    }

    /// The address with an answer.
    pub fn with(&self, pairs: &[(&str, &str)]) -> String {
        let mut text = self.text.clone();
        for (name, value) in pairs {
            text.push(if text.contains('?') { '&' } else { '?' });
            text.push_str(name);
            text.push('=');
            text.push_str(&encode(value));
        }
        text
    }
}

/// A scheme that belongs to a program. Those of browsers run scripts or open files.
fn is_program(scheme: &str) -> bool {
    let is_written =
        scheme.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+.-".contains(&byte));
    let begins = scheme.starts_with(|first: char| first.is_ascii_lowercase());
    is_written && begins && (scheme.contains('.') || PROGRAMS.contains(&scheme))
}

/// Whether a host with a port or without is the machine of whoever asks.
pub(crate) fn is_loopback_authority(authority: &str) -> bool {
    split_loopback(authority).is_some_and(|(_, rest)| rest.is_empty())
}

/// A loopback host at the beginning of a text, and what follows behind its port.
fn split_loopback(text: &str) -> Option<(&'static str, &str)> {
    let (host, rest) =
        ["127.0.0.1", "[::1]", "localhost"].into_iter().find_map(|host| Some((host, text.strip_prefix(host)?)))?;
    let rest = match rest.strip_prefix(':') {
        None => rest,
        Some(rest) => {
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            rest[..end].parse::<u16>().ok()?;
            &rest[end..]
        }
    };
    (rest.is_empty() || rest.starts_with(['/', '?'])).then_some((host, rest))
}

/// A loopback address in the parts that must be the same.
fn loopback_without_port(text: &str) -> Option<(&'static str, &str)> {
    split_loopback(text.strip_prefix("http://")?)
}

/// A text as a value in a query.
pub(crate) fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_lead_elsewhere_are_refused() {
        for fine in [
            "https://claude.ai/api/mcp/auth_callback",
            "http://127.0.0.1:33418/callback",
            "http://localhost/callback?x=1",
            "http://[::1]:9/",
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "com.example.app:/callback",
            "https://[2001:db8::1]/x",
        ] {
            assert!(RedirectAddress::parse(fine).is_ok(), "{fine}");
        }
        for wrong in [
            "",
            "callback",
            "/callback",
            "//evil.example/",
            "https://",
            "https:///evil",
            "https:evil",
            "https:/evil.example",
            "https://a/b#c",
            "https://user@evil.example/",
            "https://a;script-src/",
            "https://a,b/",
            "https://*.example/",
            "https://a%2fb/",
            "https://a\\@evil.example/",
            "https://a b/",
            "https://a/\r\nx: y",
            "https://a/\u{202e}",
            "https://ä.example/",
            "http://home.example/",
            "http://127.0.0.1.evil.example/",
            "http://127.0.0.1:80@evil.example/",
            "http://localhost@evil.example/",
            "http://127.0.0.1:99999/",
            "http://127.0.0.1:x/",
            "http://127.1/",
            "http://2130706433/",
            "http://0.0.0.0/",
            "http://192.168.1.5/",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "blob:https://a",
            "about:blank",
            "intent://x",
            "ws://a/",
            "JAVASCRIPT:alert(1)",
            "Https://a/",
            ".a:x",
            "view-source:https://a",
        ] {
            assert!(RedirectAddress::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(RedirectAddress::parse(&format!("https://a/{}", "x".repeat(2_000))).is_err());
    }

    #[test]
    fn an_address_is_the_same_letter_by_letter_and_on_loopback_at_any_port() {
        let is_same = |named: &str, asked: &str| RedirectAddress::parse(asked).unwrap().is_one_of(&[named.to_owned()]);
        assert!(is_same("https://a.example/cb", "https://a.example/cb"));
        assert!(is_same("http://127.0.0.1/cb", "http://127.0.0.1:3000/cb"));
        assert!(is_same("http://127.0.0.1:1/cb?x=1", "http://127.0.0.1:65535/cb?x=1"));
        assert!(is_same("http://localhost:1/cb", "http://localhost/cb"));
        for (named, asked) in [
            ("https://a.example/cb", "https://a.example/cb/"),
            ("https://a.example/cb", "https://a.example/cb?x=1"),
            ("https://a.example/cb", "https://a.example/CB"),
            ("https://a.example/cb", "https://A.example/cb"),
            ("https://a.example/cb", "https://a.example:443/cb"),
            ("https://a.example/cb", "https://a.example/x/../cb"),
            ("https://a.example/cb", "https://a.example/cb%2f"),
            ("https://a.example:1/cb", "https://a.example:2/cb"),
            ("https://127.0.0.1:1/cb", "https://127.0.0.1:2/cb"),
            ("http://127.0.0.1/cb", "http://localhost/cb"),
            ("http://127.0.0.1/cb", "http://[::1]/cb"),
            ("http://127.0.0.1/cb", "http://127.0.0.1:3000/other"),
            ("http://127.0.0.1/cb", "http://127.0.0.1:3000/cb?x"),
            ("http://127.0.0.1/cb", "https://127.0.0.1:3000/cb"),
        ] {
            assert!(!is_same(named, asked), "{named} {asked}");
        }
    }

    #[test]
    fn an_answer_is_added_to_an_address() {
        let answer = |text: &str| RedirectAddress::parse(text).unwrap().with(&[("code", "a b&c"), ("state", "ä")]);
        assert_eq!(answer("https://a/cb"), "https://a/cb?code=a%20b%26c&state=%C3%A4");
        assert_eq!(answer("https://a/cb?x=1"), "https://a/cb?x=1&code=a%20b%26c&state=%C3%A4");
    }

    #[test]
    fn a_page_may_lead_to_the_checked_address_alone() {
        let action = |text: &str| RedirectAddress::parse(text).unwrap().form_action;
        assert_eq!(action("https://a.example:8443/cb?x"), "https://a.example:8443");
        assert_eq!(action("http://127.0.0.1:3000"), "http://127.0.0.1:3000");
        assert_eq!(action("http://[::1]:3000/"), "http:");
        assert_eq!(action("cursor://x/y"), "cursor:");
    }
}
