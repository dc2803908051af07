//! `[oauth]` in the configuration file.

use sinew_fetch::HttpUrl;
use sinew_policy::Glob;

use crate::redirect::is_loopback_authority;

/// The least role of people who may let a client in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectRole {
    #[default]
    Admin,
    Approver,
    Viewer,
}

sinew_tool::choices! {
    ConnectRole {
        "admin" => ConnectRole::Admin,
        "approver" => ConnectRole::Approver,
        "viewer" => ConnectRole::Viewer,
    }
}

/// What somebody of another issuer may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallerRole {
    #[default]
    Client,
    Admin,
}

sinew_tool::choices! { CallerRole { "client" => CallerRole::Client, "admin" => CallerRole::Admin } }

sinew_tool::settings! {
    /// Sign-in for clients that have no field for a token, see `docs/sign-in.md`. It needs `public-url` in `[clients]`.
    pub struct OAuthSettings {
        /// Issuer whose tokens are accepted, as it stands in its tokens: `https://login.example`. By default the gateway
        /// itself is the issuer, and people sign in at its console.
        pub issuer: Option<String> = None, check check_address;
        /// Address of the issuer's keys (JWKS). By default the issuer's metadata says it.
        pub keys: Option<String> = None, check check_address;
        /// What tokens of the issuer may be for (`aud`), besides the address of the MCP endpoint.
        pub audiences: Vec<String> = Vec::new();
        /// Claim in the issuer's tokens that names the caller, for example `email`; rules know it as `oauth:NAME`.
        pub name_claim: String = "sub".to_owned(), check |name| needs_text(name);
        /// Scope that a token needs. For an issuer without scopes of its own, an empty text.
        pub scope: String = "tools".to_owned(), check check_scope;
        /// Who of the issuer may come in. Without an entry nobody.
        pub allow: Vec<AllowedCaller> = Vec::new();
        /// Least role of people who may connect a client: `admin`, `approver` or `viewer`. The client may call what the
        /// policy allows, also where the person alone could not.
        pub role: ConnectRole = ConnectRole::Admin;
        /// Whether clients may register themselves. Clients that publish a document about themselves need not.
        pub registration: bool = true;
        /// Clients that may be connected, by the beginning of the address of their document: `https://claude.ai/`. By
        /// default all, and also those that register themselves.
        pub clients: Vec<String> = Vec::new(), check check_prefixes;
    }
}

sinew_tool::settings! {
    /// Somebody of another issuer who may come in.
    pub struct AllowedCaller {
        /// Claim that is compared. By default that of `name-claim`.
        pub claim: Option<String> = None;
        /// What the claim must say, with `*` for any text: `*@home.example`. Of a claim with several values one must fit.
        pub is: String = String::new(), check |text| check_pattern(text);
        /// What the caller may do: `client` lists and calls tools, `admin` also uses the administration interface.
        pub role: CallerRole = CallerRole::Client;
    }
}

/// An issuer must be encrypted, except one on this machine.
fn check_address(address: &Option<String>) -> Result<(), String> {
    let Some(address) = address else { return Ok(()) };
    let url = HttpUrl::parse(address).map_err(|why| format!("is not an address: {why}"))?;
    let authority = address.split_once("://").map_or("", |(_, rest)| rest).split(['/', '?']).next().unwrap_or_default();
    match url.is_encrypted() || is_loopback_authority(authority) {
        true => Ok(()),
        false => Err(format!("is `{address}`; expected https://, so that nobody on the way can change its keys")),
    }
}

/// Without a slash behind the host, another host could begin in the same way.
#[expect(clippy::ptr_arg, reason = "a setting is checked as it is declared")]
fn check_prefixes(prefixes: &Vec<String>) -> Result<(), String> {
    let is_fine =
        |prefix: &&String| prefix.strip_prefix("https://").is_some_and(|rest| rest.find('/').is_some_and(|at| at > 0));
    match prefixes.iter().find(|prefix| !is_fine(prefix)) {
        Some(wrong) => Err(format!("has `{wrong}`; expected https://HOST/ or https://HOST/PATH")),
        None => Ok(()),
    }
}

#[expect(clippy::ptr_arg, reason = "a setting is checked as it is declared")]
fn needs_text(text: &String) -> Result<(), String> {
    if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(()) }
}

#[expect(clippy::ptr_arg, reason = "a setting is checked as it is declared")]
fn check_scope(scope: &String) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    match scope.len() <= 128 && scope.bytes().all(is_plain) {
        true => Ok(()),
        false => Err("must be one scope, without spaces and quotation marks".to_owned()),
    }
}

#[expect(clippy::ptr_arg, reason = "a setting is checked as it is declared")]
fn check_pattern(text: &String) -> Result<(), String> {
    text.parse::<Glob>().map(drop).map_err(|why| format!("is not a pattern: {why}"))
}

impl OAuthSettings {
    /// What no setting alone can say: a key and what is wrong with it.
    pub fn check(&self) -> Result<(), (String, String)> {
        let wrong = |key: &str, message: &str| Err((key.to_owned(), message.to_owned()));
        let external = self.issuer.is_some();
        for (index, allowed) in self.allow.iter().enumerate() {
            if allowed.is.is_empty() {
                return wrong(&format!("allow.{index}"), "an entry of `allow` needs `is`: what the claim must say");
            }
        }
        if external && self.allow.is_empty() {
            return wrong(
                "issuer",
                "`issuer` without `[[oauth.allow]]` admits nobody; add for example `is = \"ada@home.example\"`",
            );
        }
        if !external && self.scope.is_empty() {
            return wrong("scope", "`scope` may be empty only with an `issuer`");
        }
        let only_external = [
            ("keys", self.keys.is_some()),
            ("audiences", !self.audiences.is_empty()),
            ("allow", !self.allow.is_empty()),
            ("name-claim", self.name_claim != "sub"),
        ];
        let only_own = [
            ("role", self.role != ConnectRole::Admin),
            ("registration", !self.registration),
            ("clients", !self.clients.is_empty()),
        ];
        let (others, why) = match external {
            true => (&only_own[..], "is about the gateway's own sign-in, and `issuer` names another"),
            false => (&only_external[..], "is about another issuer; name it with `issuer`"),
        };
        match others.iter().find(|(_, is_set)| *is_set) {
            Some((key, _)) => wrong(key, &format!("`{key}` {why}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use sinew_tool::settings::Setting;

    use super::*;

    fn settings(value: Value) -> Result<OAuthSettings, String> {
        let mut settings = OAuthSettings::default();
        settings.read(value).map_err(|error| error.to_string())?;
        settings.check().map(|()| settings).map_err(|(key, message)| format!("{key}: {message}"))
    }

    #[test]
    fn settings_of_one_kind_are_refused_with_the_other() {
        assert!(settings(json!({})).is_ok());
        assert!(settings(json!({"role": "viewer", "registration": false})).is_ok());
        let external = |key: &str, value: Value| {
            let mut table = json!({"issuer": "https://login.example", "allow": [{"is": "ada"}]});
            table[key] = value;
            settings(table)
        };
        assert!(external("name-claim", json!("email")).is_ok());
        assert!(external("scope", json!("")).is_ok());
        for (key, value) in [
            ("role", json!("viewer")),
            ("clients", json!(["https://a/"])),
            ("allow", json!([])),
            ("allow", json!([{"role": "admin"}])),
            ("issuer", json!("http://login.example")),
            ("keys", json!("ftp://x")),
            ("scope", json!("a b")),
        ] {
            let problem = external(key, value.clone()).unwrap_err();
            assert!(!problem.is_empty(), "{key} {value}");
        }
        for wrong in [
            json!({"keys": "https://a/"}),
            json!({"allow": [{"is": "x"}]}),
            json!({"scope": ""}),
            json!({"clients": ["https://a"]}),
        ] {
            assert!(settings(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
