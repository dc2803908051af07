//! The tokens of clients that this program serves: one for each, made when it is first needed and kept in the state
//! directory, so that every client has a name of its own in the audit and none has the gateway's own token.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;
use sinew_api::{CreatedToken, IfTaken, NewToken, TokenRole};
use sinew_gateway::{Gateway, Principal, Role, label_of_client};
use sinew_tool::Digest;

use crate::client::{GatewayStream, GatewayTarget};
use crate::error::{CliError, CliErrorKind};

const FOLDER: &str = "clients";
/// A client that does not say its name.
const NAMELESS: &str = "stdio";

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
    client: &str,
    path: &str,
    new: NewTokens,
) -> Result<impl GatewayStream + use<>, CliError> {
    let Some(directory) = &target.own_token_of else { return target.connect().await?.upgrade(path).await };
    if let Some(token) = kept(directory, client) {
        match target.with_token(token).connect().await?.upgrade(path).await {
            // It was revoked or has expired, or the state is a new one.
            Err(failure) if failure.error_type == "TokenRefused" && new == NewTokens::IfNeeded => {}
            opened => return opened,
        }
    }
    let request = NewToken {
        role: TokenRole::Client,
        label: label_of_client(client),
        device: None,
        expires_in_s: None,
        // A client cannot choose another name by itself.
        if_taken: IfTaken::Number,
    };
    let made: CreatedToken = target.connect().await?.post("/api/v1/tokens", &request).await?;
    keep(directory, client, &made.token)?;
    target.with_token(made.token).connect().await?.upgrade(path).await
}

/// The token of a client of a gateway in this process.
pub fn token(
    gateway: &Gateway,
    directory: &Path,
    client: &str,
    new: NewTokens,
) -> Result<(String, Principal), CliError> {
    let tokens = gateway.tokens();
    if let Some(token) = kept(directory, client) {
        match tokens.check(&token) {
            Some(who) => return Ok((token, who)),
            None if new == NewTokens::IfNeeded => {}
            None => return Err(CliError::new(CliErrorKind::TokenRefused, "the token of this client was revoked")),
        }
    }
    let (_, token) = tokens.create(Role::Client, &label_of_client(client))?;
    keep(directory, client, &token)?;
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

fn kept(directory: &Path, client: &str) -> Option<String> {
    let text = fs::read_to_string(file(directory, client)).ok()?;
    Some(text.trim().to_owned()).filter(|token| !token.is_empty())
}

/// Readable by the owner alone.
fn keep(directory: &Path, client: &str, token: &str) -> Result<(), CliError> {
    let path = file(directory, client);
    let write = || -> std::io::Result<()> {
        let mut folder = fs::DirBuilder::new();
        folder.recursive(true);
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        {
            std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        folder.create(directory.join(FOLDER))?;
        let beside = path.with_extension("new");
        writeln!(options.open(&beside)?, "{token}")?;
        fs::rename(&beside, &path)
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
            keep(folder.path(), name, &format!("snw_{name}")).expect("kept");
        }
        for name in names {
            assert_eq!(kept(folder.path(), name), Some(format!("snw_{name}")));
        }
        assert_eq!(fs::read_dir(folder.path().join(FOLDER)).expect("a folder").count(), names.len());
        assert_eq!(kept(folder.path(), "other"), None);
    }
}
