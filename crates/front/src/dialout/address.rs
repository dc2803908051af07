//! The URL of a broker. It has a token, so it is shown without path and query.

use std::fmt;
use std::str::FromStr;

use http::Uri;

/// For example `wss://broker.example/mcp/?token=…`.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointAddress {
    uri: Uri,
}

impl EndpointAddress {
    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.uri.scheme_str() == Some("wss")
    }

    pub(super) fn host(&self) -> &str {
        self.uri.host().unwrap_or_default().trim_matches(['[', ']'])
    }

    pub(super) fn port(&self) -> u16 {
        self.uri.port_u16().unwrap_or(if self.is_encrypted() { 443 } else { 80 })
    }

    /// `text` from the broker without the secrets of the URL, which it may have repeated.
    pub(super) fn hide(&self, text: &str) -> String {
        let values = self.uri.query().into_iter().flat_map(|query| query.split('&'));
        let values = values.filter_map(|pair| Some(pair.split_once('=')?.1)).filter(|value| value.len() >= 4);
        values.fold(text.to_owned(), |text, value| text.replace(value, "…"))
    }
}

impl FromStr for EndpointAddress {
    type Err = String;

    /// The error does not repeat the URL.
    fn from_str(text: &str) -> Result<EndpointAddress, String> {
        let form = "write it as wss://HOST/mcp/?token=TOKEN";
        let uri: Uri = text.parse().map_err(|_| format!("the URL of the broker is not valid; {form}"))?;
        if !matches!(uri.scheme_str(), Some("ws" | "wss")) {
            return Err(format!("the URL of the broker must begin with ws:// or wss://; {form}"));
        }
        if uri.host().is_none_or(str::is_empty) {
            return Err(format!("the URL of the broker has no host; {form}"));
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(format!("the URL of the broker must not have a user name; {form}"));
        }
        Ok(EndpointAddress { uri })
    }
}

impl fmt::Display for EndpointAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        write!(f, "{}://{authority}", self.uri.scheme_str().unwrap_or_default())
    }
}

impl fmt::Debug for EndpointAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_token() {
        let address: EndpointAddress = "wss://broker.example:8004/mcp/?agent=7&token=secret-1".parse().expect("fine");
        assert_eq!(address.to_string(), "wss://broker.example:8004");
        assert_eq!(format!("{address:?}"), "wss://broker.example:8004");
        assert_eq!(address.hide("no token secret-1 here"), "no token … here");
    }

    #[test]
    fn errors_do_not_repeat_the_address() {
        for wrong in ["", "https://x/?token=secret-1", "wss://", "ws://a b?token=secret-1", "wss://me:secret-1@x/"] {
            let problem = wrong.parse::<EndpointAddress>().expect_err(wrong);
            assert!(problem.contains("wss://HOST") && !problem.contains("secret-1"), "{problem}");
        }
    }
}
