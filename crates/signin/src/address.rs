//! The addresses of sign-in, which all follow from the one address that the configuration gives. A request never says
//! them: its `Host` header would choose for whom a token is.

use serde_json::{Value, json};

/// The path of the MCP endpoint, which tokens are for.
const ENDPOINT: &str = "/mcp";
const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";
const SERVER_METADATA: [&str; 2] = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];

/// The address under which clients reach the gateway, in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicAddress {
    /// Scheme, host and port.
    origin: String,
    /// The folder of a proxy: empty, or with a slash in front and none behind.
    path: String,
}

impl PublicAddress {
    /// `https`, or `http` on this machine alone: what else can be read on the way is no place for a token.
    pub fn parse(public_url: &str) -> Result<PublicAddress, String> {
        let (scheme, rest) = public_url.split_once("://").unwrap_or(("", public_url));
        let (host, path) =
            rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")));
        let is_loopback = crate::redirect::is_loopback_authority(host);
        match scheme {
            "https" => {}
            "http" if is_loopback => {}
            _ => {
                return Err(format!(
                    "is `{public_url}`, but clients sign in over TLS only; expected https://HOST (http:// with a loopback address is good for trying)"
                ));
            }
        }
        Ok(PublicAddress {
            origin: format!("{scheme}://{}", host.to_ascii_lowercase()),
            path: path.trim_end_matches('/').to_owned(),
        })
    }

    /// The issuer: without a slash at the end, as clients compare it letter by letter.
    pub fn issuer(&self) -> String {
        format!("{}{}", self.origin, self.path)
    }

    /// What tokens are for.
    pub fn resource(&self) -> String {
        self.at(ENDPOINT)
    }

    /// Host and port.
    pub fn authority(&self) -> &str {
        self.origin.split_once("://").map_or("", |(_, authority)| authority)
    }

    pub fn at(&self, path: &str) -> String {
        format!("{}{}{path}", self.origin, self.path)
    }

    /// Where the metadata of the endpoint is, by RFC 9728: the well-known part comes before the path.
    pub fn resource_metadata(&self) -> String {
        format!("{}{RESOURCE_METADATA}{}{ENDPOINT}", self.origin, self.path)
    }

    /// Which document a path asks for. Proxies may have removed their folder from the path, or not.
    pub fn document(&self, path: &str) -> Option<WellKnown> {
        let behind = |prefix: &str| path.strip_prefix(prefix).map(|rest| rest.trim_end_matches('/'));
        if let Some(rest) = behind(RESOURCE_METADATA) {
            let own = format!("{}{ENDPOINT}", self.path);
            return (rest.is_empty() || rest == ENDPOINT || rest == own || rest == self.path)
                .then_some(WellKnown::Resource);
        }
        let rest = SERVER_METADATA.into_iter().find_map(behind)?;
        (rest.is_empty() || rest == self.path).then_some(WellKnown::Server)
    }
}

/// A document at a well-known address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WellKnown {
    Resource,
    Server,
}

/// Who issues tokens for the endpoint, by RFC 9728.
pub(crate) fn resource_document(address: &PublicAddress, issuer: &str, scope: &str) -> Value {
    let scopes: Vec<&str> = scope.split_ascii_whitespace().collect();
    json!({
        "resource": address.resource(),
        "authorization_servers": [issuer],
        "scopes_supported": scopes,
        "bearer_methods_supported": ["header"],
        "resource_name": "Sinew",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_follow_from_one() {
        let plain = PublicAddress::parse("https://Home.example/").unwrap();
        assert_eq!(plain.issuer(), "https://home.example");
        assert_eq!(plain.resource(), "https://home.example/mcp");
        assert_eq!(plain.resource_metadata(), "https://home.example/.well-known/oauth-protected-resource/mcp");
        let below = PublicAddress::parse("https://home.example:8443/sinew/").unwrap();
        assert_eq!(below.issuer(), "https://home.example:8443/sinew");
        assert_eq!(below.authority(), "home.example:8443");
        assert_eq!(below.resource(), "https://home.example:8443/sinew/mcp");
        let metadata = "https://home.example:8443/.well-known/oauth-protected-resource/sinew/mcp";
        assert_eq!(below.resource_metadata(), metadata);
    }

    #[test]
    fn only_tls_and_this_machine_are_fine() {
        for fine in ["http://127.0.0.1:7300", "http://localhost", "http://[::1]:80/x"] {
            assert!(PublicAddress::parse(fine).is_ok(), "{fine}");
        }
        for wrong in
            ["http://home.example", "http://192.168.1.5:7300", "http://127.0.0.1.evil.example", "home", "ftp://a"]
        {
            assert!(PublicAddress::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn documents_are_at_the_plain_address_and_at_that_with_the_path() {
        let plain = PublicAddress::parse("https://home.example").unwrap();
        let below = PublicAddress::parse("https://home.example/sinew").unwrap();
        let resource = "/.well-known/oauth-protected-resource";
        for (address, path, expected) in [
            (&plain, resource.to_owned(), Some(WellKnown::Resource)),
            (&plain, format!("{resource}/mcp"), Some(WellKnown::Resource)),
            (&plain, format!("{resource}/mcp/"), Some(WellKnown::Resource)),
            (&plain, format!("{resource}/other"), None),
            (&plain, format!("{resource}x"), None),
            (&below, format!("{resource}/sinew/mcp"), Some(WellKnown::Resource)),
            (&below, format!("{resource}/mcp"), Some(WellKnown::Resource)),
            (&below, "/.well-known/oauth-authorization-server/sinew".to_owned(), Some(WellKnown::Server)),
            (&plain, "/.well-known/openid-configuration".to_owned(), Some(WellKnown::Server)),
            (&plain, "/.well-known/oauth-authorization-server/mcp".to_owned(), None),
            (&plain, "/.well-known/other".to_owned(), None),
        ] {
            assert_eq!(address.document(&path), expected, "{path}");
        }
    }
}
