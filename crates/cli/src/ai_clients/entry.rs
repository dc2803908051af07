//! The entry for Sinew in the configuration of a client: what it says, and whether an entry that is there is ours.

use serde_json::{Map, Value, json};

use super::AiClient;

/// What the entry is called.
pub const ENTRY: &str = "sinew";

const DESCRIPTION: &str = "Devices behind Sinew";
/// Seconds that Goose waits for a call; a call may take so long while its device reports progress.
const GOOSE_TIMEOUT_S: u64 = 300;

/// How a client gets to the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAccess {
    /// It starts `sinew stdio` with these words. The token is for a gateway elsewhere; here `stdio` has one itself.
    Start { program: String, words: Vec<String>, token: Option<String> },
    /// It speaks Streamable HTTP itself.
    Http { url: String, token: String },
}

/// Members that say how the server is reached; those of another way are removed.
const WAYS: &[&str] = &["type", "command", "cmd", "args", "url", "uri", "serverUrl", "httpUrl"];
/// Members with secrets of ours among those of other people.
const SHARED: &[(&str, &str)] =
    &[("env", TOKEN), ("envs", TOKEN), ("headers", AUTHORIZATION), ("http_headers", AUTHORIZATION)];
/// Members that people may change.
const PROPOSED: &[&str] = &["name", "description", "timeout"];

const TOKEN: &str = "SINEW_TOKEN";
const AUTHORIZATION: &str = "Authorization";

/// Options of `sinew stdio` that an entry of ours may have. One with others was made by a person, who wants them.
const OPTIONS: &[&str] = &["--client", "--state", "--url", "--fingerprint", "--ca", "--token"];

impl AiClient {
    /// Whether it can speak Streamable HTTP with a token.
    pub fn speaks_http(&self) -> bool {
        self.id != "claude-desktop"
    }

    /// The entry of a client that has none.
    pub fn entry(&self, access: &ClientAccess) -> Value {
        let mut entry = Map::new();
        let is_goose = self.id == "goose";
        let has_type = matches!(self.id, "claude-code" | "vscode");
        if is_goose {
            entry.insert("enabled".to_owned(), json!(true));
        }
        match access {
            ClientAccess::Start { program, words, token } => {
                if is_goose || has_type {
                    entry.insert("type".to_owned(), json!("stdio"));
                }
                entry.insert(if is_goose { "cmd" } else { "command" }.to_owned(), json!(program));
                entry.insert("args".to_owned(), json!(words));
                if let Some(token) = token {
                    entry.insert(if is_goose { "envs" } else { "env" }.to_owned(), json!({TOKEN: token}));
                }
            }
            ClientAccess::Http { url, token } => {
                if is_goose || has_type {
                    entry.insert("type".to_owned(), json!(if is_goose { "streamable_http" } else { "http" }));
                }
                let (address, headers) = match self.id {
                    "goose" => ("uri", "headers"),
                    "windsurf" => ("serverUrl", "headers"),
                    "gemini-cli" => ("httpUrl", "headers"),
                    "codex" => ("url", "http_headers"),
                    _ => ("url", "headers"),
                };
                entry.insert(address.to_owned(), json!(url));
                entry.insert(headers.to_owned(), json!({AUTHORIZATION: format!("Bearer {token}")}));
            }
        }
        if is_goose {
            entry.insert("name".to_owned(), json!(ENTRY));
            entry.insert("description".to_owned(), json!(DESCRIPTION));
            entry.insert("timeout".to_owned(), json!(GOOSE_TIMEOUT_S));
        }
        Value::Object(entry)
    }
}

/// An entry of ours, changed to what is wanted. What people added to it stays.
pub(super) fn merged(old: &Value, wanted: &Value) -> Value {
    let (Some(old), Some(wanted)) = (old.as_object(), wanted.as_object()) else { return wanted.clone() };
    let mut entry = old.clone();
    entry.retain(|name, _| !WAYS.contains(&name.as_str()) || wanted.contains_key(name));
    for (holder, secret) in SHARED {
        if let Some(members) = entry.get_mut(*holder).and_then(Value::as_object_mut)
            && members.shift_remove(*secret).is_some()
            && members.is_empty()
            && !wanted.contains_key(*holder)
        {
            entry.shift_remove(*holder);
        }
    }
    for (name, value) in wanted {
        match (entry.get_mut(name), value) {
            (Some(_), _) if PROPOSED.contains(&name.as_str()) => {}
            (Some(Value::Object(members)), Value::Object(ours)) => members.extend(ours.clone()),
            _ => drop(entry.insert(name.clone(), value.clone())),
        }
    }
    Value::Object(entry)
}

/// Whether `sinew connect` could have written the entry, so that it may change it.
pub fn is_ours(entry: &Value) -> bool {
    let Some(mut words) = words(entry) else { return token_in(entry).is_some() && program(entry).is_none() };
    while let Some(option) = words.next() {
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        if !OPTIONS.contains(&name) || value.or_else(|| words.next()).is_none() {
            return false;
        }
    }
    true
}

/// The words after `sinew stdio`, where the entry starts that.
fn words(entry: &Value) -> Option<impl Iterator<Item = &str>> {
    let program = program(entry)?.rsplit(['/', '\\']).next()?.to_lowercase();
    let mut words = entry.get("args")?.as_array()?.iter().map(|word| word.as_str().unwrap_or_default());
    let is_sinew = matches!(program.as_str(), "sinew" | "sinew.exe");
    (is_sinew && words.next() == Some("stdio")).then_some(words)
}

fn program(entry: &Value) -> Option<&str> {
    entry.get("command").or_else(|| entry.get("cmd")).and_then(Value::as_str)
}

/// The token in an entry.
pub fn token_in(entry: &Value) -> Option<&str> {
    SHARED.iter().find_map(|(holder, secret)| {
        let value = entry.get(holder)?.get(secret)?.as_str()?;
        let token = value.strip_prefix("Bearer ").unwrap_or(value);
        token.starts_with("snw_").then_some(token)
    })
}

/// The name that an entry gives its client with `--client`.
pub fn client_name(entry: &Value) -> Option<&str> {
    let mut words = words(entry)?;
    words.find(|word| *word == "--client")?;
    words.next()
}

#[cfg(test)]
mod tests {
    use super::super::{CLIENTS, find};
    use super::*;

    fn start(words: &[&str], token: Option<&str>) -> ClientAccess {
        ClientAccess::Start {
            program: "/usr/bin/sinew".to_owned(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            token: token.map(str::to_owned),
        }
    }

    fn http() -> ClientAccess {
        ClientAccess::Http { url: "https://gateway:7300/mcp".to_owned(), token: "snw_1".to_owned() }
    }

    #[test]
    fn every_client_gets_the_members_it_reads() {
        let entry = |client: &str, access: &ClientAccess| find(client).expect("a client").entry(access);
        let words = ["stdio", "--client", "x"];
        let local = start(&words, None);
        assert_eq!(entry("cursor", &local), json!({"command": "/usr/bin/sinew", "args": words}));
        assert_eq!(entry("vscode", &local), json!({"type": "stdio", "command": "/usr/bin/sinew", "args": words}));
        let remote = start(&words, Some("snw_1"));
        assert_eq!(entry("goose", &remote)["envs"], json!({"SINEW_TOKEN": "snw_1"}));
        assert_eq!(entry("codex", &remote)["env"], json!({"SINEW_TOKEN": "snw_1"}));
        let headers = json!({"Authorization": "Bearer snw_1"});
        let url = "https://gateway:7300/mcp";
        assert_eq!(entry("claude-code", &http()), json!({"type": "http", "url": url, "headers": headers}));
        assert_eq!(entry("windsurf", &http()), json!({"serverUrl": url, "headers": headers}));
        assert_eq!(entry("gemini-cli", &http()), json!({"httpUrl": url, "headers": headers}));
        assert_eq!(entry("codex", &http()), json!({"url": url, "http_headers": headers}));
        assert_eq!(entry("goose", &http())["type"], "streamable_http");
        assert_eq!(entry("goose", &http())["uri"], url);
    }

    #[test]
    fn an_entry_is_ours_only_if_nothing_in_it_is_another_persons() {
        for client in CLIENTS {
            for access in
                [start(&["stdio", "--client", "x"], None), start(&["stdio", "--url", "u"], Some("snw_1")), http()]
            {
                assert!(is_ours(&client.entry(&access)), "{}", client.id);
            }
        }
        assert!(is_ours(&json!({"command": "C:\\Program Files\\Sinew\\SINEW.exe", "args": ["stdio"]})));
        for other in [
            json!({"command": "npx", "args": ["-y", "sinew", "stdio"]}),
            json!({"command": "sinew", "args": ["stdio", "--unfolded"]}),
            json!({"command": "sinew", "args": ["stdio", "--client"]}),
            json!({"command": "sinew", "args": ["serve"]}),
            json!({"command": "/opt/sinew/other", "args": ["stdio"]}),
            json!({"command": "sinew"}),
            json!({"url": "http://127.0.0.1:7300/mcp"}),
            json!({"url": "x", "headers": {"Authorization": "Bearer abc"}}),
            json!(null),
            json!([1]),
        ] {
            assert!(!is_ours(&other), "{other}");
        }
    }

    #[test]
    fn what_people_added_to_an_entry_of_ours_stays() {
        let cursor = find("cursor").expect("a client");
        let old = json!({
            "command": "sinew", "args": ["stdio"], "disabled": true,
            "env": {"RUST_LOG": "debug", "SINEW_TOKEN": "snw_0"},
        });
        let local = merged(&old, &cursor.entry(&start(&["stdio", "--client", "a"], None)));
        assert_eq!(
            local,
            json!({
                "command": "/usr/bin/sinew", "args": ["stdio", "--client", "a"], "disabled": true,
                "env": {"RUST_LOG": "debug"},
            })
        );
        let remote = merged(&local, &cursor.entry(&http()));
        assert_eq!(remote["env"], json!({"RUST_LOG": "debug"}));
        assert!(remote.get("command").is_none() && remote.get("args").is_none());
        assert_eq!(merged(&remote, &cursor.entry(&start(&["stdio"], None))).get("headers"), None);
        let goose = find("goose").expect("a client");
        let slow = json!({"timeout": 900, "enabled": false});
        let entry = merged(&slow, &goose.entry(&start(&["stdio"], None)));
        assert_eq!((&entry["timeout"], &entry["enabled"]), (&json!(900), &json!(true)));
    }

    #[test]
    fn the_token_and_the_name_are_found_in_an_entry() {
        let entry = json!({"command": "sinew", "args": ["stdio", "--client", "desk"], "env": {"SINEW_TOKEN": "snw_2"}});
        assert_eq!((token_in(&entry), client_name(&entry)), (Some("snw_2"), Some("desk")));
        assert_eq!((token_in(&json!({"env": 5})), client_name(&json!({"args": 5}))), (None, None));
    }
}
