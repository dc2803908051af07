//! The tokens of clients that this program serves: one for each, made when it is first needed and kept in the state
//! directory, so that every client has a name of its own in the audit and none has the gateway's own token.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;
use sinew_api::{CreatedToken, IfTaken, NewToken, Token, TokenList, TokenRole};
use sinew_gateway::private_files::{create_private_folder, write_private};
use sinew_gateway::{Gateway, Principal, Role, label_of_client};
use sinew_tool::Digest;

use crate::client::{GatewayStream, GatewayTarget, encode};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::say;

const FOLDER: &str = "clients";
/// A client that does not say its name.
const NAMELESS: &str = "stdio";

/// What a client is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientName {
    /// By itself. It cannot choose another name, so where the name is taken it gets a number.
    Own(String),
    /// By whoever set it up. Rules for `token:NAME` are about this name, so it is had exactly or not at all.
    Given(String),
}

impl ClientName {
    fn text(&self) -> &str {
        match self {
            ClientName::Own(name) | ClientName::Given(name) => name,
        }
    }

    fn label(&self) -> String {
        match self {
            ClientName::Own(name) => label_of_client(name),
            ClientName::Given(name) => name.clone(),
        }
    }

    /// Whether a token with this label serves the client. A label that was not written down is from an earlier version.
    fn accepts(&self, label: Option<&str>) -> bool {
        match (self, label) {
            (ClientName::Given(name), Some(label)) => name.to_lowercase() == label.to_lowercase(),
            _ => true,
        }
    }

    /// Why a token could not be made, for whoever started the client.
    fn refused(&self, error: CliError) -> CliError {
        match self {
            ClientName::Given(name) if error.details["parameter_name"] == "label" => {
                let issue = error.details["issue"].as_str().unwrap_or(&error.message).to_owned();
                let message = format!(
                    "`--client {name}`: the name {issue}; choose another name, use that token with --token, or end it with `sinew token revoke` (`sinew token list` shows its id)"
                );
                CliError { details: error.details, ..CliError::new(CliErrorKind::TokenRefused, message) }
            }
            _ => error,
        }
    }

    /// A client that is not called what it says is told so: rules for the name are about another token.
    fn report(&self, label: &str) {
        if label.to_lowercase() != self.label().to_lowercase() {
            let name = self.text();
            say(&format!(
                "sinew: the token of this client is called `{label}`, because `{name}` is another's; rules for `token:{name}` are not about this one"
            ));
        }
    }
}

/// Whether a client without a valid token gets a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewTokens {
    /// Also in place of one that is no longer valid.
    IfNeeded,
    /// Only if it never had one at this gateway: one that was revoked must end its client.
    IfNone,
}

/// Opens a stream of MCP lines for a client, with a token of its own if the target has the gateway's.
pub async fn open(
    target: &GatewayTarget,
    client: &ClientName,
    path: &str,
    new: NewTokens,
) -> Result<impl GatewayStream + use<>, CliError> {
    let Some(directory) = &target.own_token_of else { return target.connect().await?.upgrade(path).await };
    if let Some(KeptToken { token, label }) = kept(directory, client.text())
        && client.accepts(label.as_deref())
    {
        match target.with_token(token).connect().await?.upgrade(path).await {
            // It was revoked or has expired, or the state is a new one.
            Err(failure) if failure.error_type == "TokenRefused" && new == NewTokens::IfNeeded => {}
            opened => return opened,
        }
    }
    let token = make(target, directory, client).await?;
    target.with_token(token).connect().await?.upgrade(path).await
}

/// The token of a client of a gateway on this machine: the one it has, or a new one.
pub async fn own(target: &GatewayTarget, directory: &Path, client: &ClientName) -> Result<String, CliError> {
    if let Some(KeptToken { token, label }) = kept(directory, client.text())
        && client.accepts(label.as_deref())
    {
        match target.with_token(token.clone()).check().await {
            Ok(()) => return Ok(token),
            // It was revoked or has expired.
            Err(failure) if failure.is(CliErrorKind::TokenRefused) => {}
            Err(failure) => return Err(failure),
        }
    }
    make(target, directory, client).await
}

/// Ends the token of a client; says whether it had one.
pub async fn end(target: &GatewayTarget, directory: &Path, client: &str) -> Result<bool, CliError> {
    let Some(KeptToken { label, .. }) = kept(directory, client) else { return Ok(false) };
    let label = label.unwrap_or_else(|| client.to_owned()).to_lowercase();
    let tokens: TokenList = target.connect().await?.get_all("/api/v1/tokens").await?;
    for token in tokens.tokens.iter().filter(|token| token.role == "client" && token.label.to_lowercase() == label) {
        let path = format!("/api/v1/tokens/{}", encode(&token.id));
        let _: Token = target.connect().await?.delete(&path).await?;
    }
    let _ = fs::remove_file(file(directory, client));
    Ok(true)
}

/// Asks the gateway for a token for the client, and keeps it.
async fn make(target: &GatewayTarget, directory: &Path, client: &ClientName) -> Result<String, CliError> {
    let request = NewToken {
        role: TokenRole::Client,
        label: client.label(),
        device: None,
        expires_in_s: None,
        if_taken: match client {
            ClientName::Own(_) => IfTaken::Number,
            ClientName::Given(_) => IfTaken::Refuse,
        },
    };
    let made = target.connect().await?.post("/api/v1/tokens", &request).await;
    let made: CreatedToken = made.map_err(|error| client.refused(error))?;
    client.report(&made.about.label);
    keep(directory, client.text(), &made.token, &made.about.label)?;
    Ok(made.token)
}

/// The token of a client of a gateway in this process.
pub fn token(
    gateway: &Gateway,
    directory: &Path,
    client: &ClientName,
    new: NewTokens,
) -> Result<(String, Principal), CliError> {
    let tokens = gateway.tokens();
    if let Some(KeptToken { token, label }) = kept(directory, client.text())
        && client.accepts(label.as_deref())
    {
        match tokens.check(&token) {
            Some(who) => return Ok((token, who)),
            None if new == NewTokens::IfNeeded => {}
            None => return Err(CliError::new(CliErrorKind::TokenRefused, "the token of this client was revoked")),
        }
    }
    let if_taken = match client {
        ClientName::Own(_) => sinew_gateway::IfTaken::Number,
        ClientName::Given(_) => sinew_gateway::IfTaken::Refuse,
    };
    let made = tokens.create_until(Role::Client, &client.label(), None, if_taken);
    let (view, token) = made.map_err(|error| client.refused(error.into()))?;
    client.report(&view.label);
    keep(directory, client.text(), &token, &view.label)?;
    let who = tokens.check(&token).ok_or_else(|| CliError::new(CliErrorKind::Io, "the new token is not accepted"))?;
    Ok((token, who))
}

/// The name that a client gives itself in its first message.
pub fn name(line: &[u8]) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct FirstMessage {
        params: FirstParams,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct FirstParams {
        client_info: ClientInfo,
        #[serde(rename = "_meta")]
        meta: FirstMeta,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct FirstMeta {
        #[serde(rename = "io.modelcontextprotocol/clientInfo")]
        client_info: ClientInfo,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct ClientInfo {
        name: String,
    }
    let FirstParams { client_info, meta } = serde_json::from_slice::<FirstMessage>(line).unwrap_or_default().params;
    let names = [client_info.name, meta.client_info.name, NAMELESS.to_owned()];
    let name = names.iter().map(|name| name.trim()).find(|name| !name.is_empty()).unwrap_or_default();
    name.chars().take(64).collect()
}

/// A token in the state directory, and the label it was made with.
#[derive(Debug, PartialEq)]
struct KeptToken {
    token: String,
    /// `None` in files of earlier versions.
    label: Option<String>,
}

fn kept(directory: &Path, client: &str) -> Option<KeptToken> {
    let text = fs::read_to_string(file(directory, client)).ok()?;
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned);
    Some(KeptToken { token: lines.next()?, label: lines.next() })
}

/// Readable by the owner alone.
fn keep(directory: &Path, client: &str, token: &str, label: &str) -> Result<(), CliError> {
    let path = file(directory, client);
    let write = || -> std::io::Result<()> {
        create_private_folder(&directory.join(FOLDER))?;
        write_private(&path, format!("{token}\n{label}\n").as_bytes())
    };
    write().map_err(|error| CliError::new(CliErrorKind::Io, format!("cannot write {}: {error}", path.display())))
}

/// A client chooses its name, so only plain characters of it reach the file system; the digest keeps names apart.
fn file(directory: &Path, client: &str) -> PathBuf {
    let plain: String = client.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    let digest = Digest::of(&json!(client)).hex();
    directory.join(FOLDER).join(format!("{plain}-{}", &digest[..12]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_called_as_it_says() {
        let said = |message: serde_json::Value| name(message.to_string().as_bytes());
        assert_eq!(said(json!({"method": "initialize", "params": {"clientInfo": {"name": " Desk "}}})), "Desk");
        let meta = json!({"io.modelcontextprotocol/clientInfo": {"name": "modern"}});
        assert_eq!(said(json!({"params": {"_meta": meta}})), "modern");
        for odd in [json!([]), json!({"params": 5}), json!({"params": {"clientInfo": {"name": 7}}}), json!({})] {
            assert_eq!(said(odd), "stdio");
        }
        assert_eq!(said(json!({"params": {"clientInfo": {"name": "ü".repeat(500)}}})).chars().count(), 64);
    }

    #[test]
    fn a_token_is_kept_for_each_name_and_never_leaves_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = ["a", "A", "../../a", "a/b", ""];
        for name in names {
            keep(folder.path(), name, &format!("snw_{name}"), "a 2").expect("kept");
        }
        for name in names {
            let label = Some("a 2".to_owned());
            assert_eq!(kept(folder.path(), name), Some(KeptToken { token: format!("snw_{name}"), label }));
        }
        assert_eq!(fs::read_dir(folder.path().join(FOLDER)).expect("a folder").count(), names.len());
        assert_eq!(kept(folder.path(), "other"), None);
    }
    #[test]
    fn a_given_name_is_had_exactly_or_not_at_all() {
        let given = ClientName::Given("desk".to_owned());
        assert!(given.accepts(Some("Desk")) && given.accepts(None) && !given.accepts(Some("desk 2")));
        assert!(ClientName::Own("desk".to_owned()).accepts(Some("desk 2")));
        assert_eq!(ClientName::Given("a:b".to_owned()).label(), "a:b", "the gateway refuses it");
        assert_eq!(ClientName::Own("a:b".to_owned()).label(), "a-b");
    }
}
