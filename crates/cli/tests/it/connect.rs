//! `sinew connect CLIENT`: the files of AI clients are written, and what they start works.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::gateway::{CommandOutput, TestGateway, run, sinew};

/// A person with nothing but a home.
struct Home(TempDir);

impl Home {
    fn new() -> Home {
        Home(TempDir::new().expect("a folder"))
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    fn json(&self, file: &str) -> Value {
        serde_json::from_str(&self.read(file)).expect("JSON")
    }

    fn command(&self, state: &Path, arguments: &[&str]) -> Command {
        let mut command = sinew(state);
        command.arg("connect").args(arguments).env("HOME", self.0.path());
        for name in ["XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "APPDATA", "USERPROFILE"] {
            command.env_remove(name);
        }
        command
    }

    fn connect(&self, state: &Path, arguments: &[&str]) -> CommandOutput {
        run(&mut self.command(state, arguments))
    }
}

/// The answer to `initialize` of what the client would start.
fn started(entry: &Value) -> Value {
    let words = entry["args"].as_array().expect("words").iter().map(|word| word.as_str().expect("a word"));
    let mut command = Command::new(entry["command"].as_str().expect("a program"));
    for (name, value) in entry["env"].as_object().into_iter().flatten() {
        command.env(name, value.as_str().expect("a text"));
    }
    let mut child =
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program of the entry");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    writeln!(child.stdin.take().expect("an input"), "{hello}").expect("written");
    let answer = child.wait_with_output().expect("an answer").stdout;
    serde_json::from_slice(answer.split(|byte| *byte == b'\n').next().expect("a line")).expect("JSON")
}

#[test]
fn a_client_gets_an_entry_with_a_token_of_its_own_and_loses_both() {
    let (gateway, home) = (TestGateway::demo(), Home::new());
    let state = gateway.state.path();
    let before = "{\n  // mine\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" },\n  },\n}\n";
    home.write(".cursor/mcp.json", before);
    let printed = home.connect(state, &["cursor", "--print"]).ok();
    assert!(
        printed.out.contains("+     \"sinew\": {") && printed.out.contains("~/.cursor/mcp.json"),
        "{}",
        printed.out
    );
    assert_eq!(home.read(".cursor/mcp.json"), before, "--print changes nothing");

    let out = home.connect(state, &["cursor"]).ok().out;
    assert!(out.contains("was added to ~/.cursor/mcp.json") && out.contains("mcp.json.sinew-backup"), "{out}");
    assert_eq!(home.read(".cursor/mcp.json.sinew-backup"), before);
    let after = home.read(".cursor/mcp.json");
    assert!(
        after.starts_with("{\n  // mine\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" },\n"),
        "{after}"
    );
    let again = home.connect(state, &["cursor"]).ok().out;
    assert!(again.contains("has this entry already"), "{again}");
    assert_eq!(home.read(".cursor/mcp.json"), after);
    assert!(!home.path(".cursor/mcp.json.sinew-backup-2").exists(), "nothing changed, so there is nothing to keep");

    let labels = || {
        let tokens = gateway.json(&["token", "list"])["tokens"].as_array().expect("tokens").clone();
        tokens.into_iter().map(|token| token["label"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert!(labels().contains(&"cursor".to_owned()), "{:?}", labels());
    let plain = after.replace("  // mine\n", "").replace("},\n  },\n}", "}}}").replace("},\n  }", "}}");
    let entry: Value = match serde_json::from_str::<Value>(&plain) {
        Ok(file) => file["mcpServers"]["sinew"].clone(),
        Err(error) => panic!("{error}: {plain}"),
    };
    assert_eq!(started(&entry)["result"]["serverInfo"]["name"], "sinew", "{entry}");

    let list = home.connect(state, &["--list"]).ok().out;
    assert!(list.lines().any(|line| line.starts_with("cursor") && line.contains(" connected")), "{list}");
    assert!(list.lines().any(|line| line.starts_with("goose") && line.contains("not found here")), "{list}");

    let out = home.connect(state, &["cursor", "--remove"]).ok().out;
    assert!(out.contains("was removed from") && out.contains("Its token is revoked"), "{out}");
    assert_eq!(home.read(".cursor/mcp.json"), before);
    assert!(!labels().contains(&"cursor".to_owned()), "{:?}", labels());
    assert!(home.connect(state, &["cursor", "--remove"]).ok().out.contains("has no entry"));
}

#[test]
fn every_client_can_be_set_up_before_a_gateway_runs() {
    let (state, home) = (TempDir::new().expect("a folder"), Home::new());
    for client in ["claude-desktop", "claude-code", "vscode", "windsurf", "zed", "gemini-cli", "codex", "goose"] {
        let done = home.connect(state.path(), &[client, "--json"]).ok().json();
        assert_eq!((&done["changed"], &done["backup"]), (&json!(true), &Value::Null), "{client}");
        let text = fs::read_to_string(done["file"].as_str().expect("a path")).expect("a file");
        assert!(text.contains("stdio") && text.contains(client), "{client}: {text}");
        assert_eq!(home.connect(state.path(), &[client, "--json"]).ok().json()["changed"], false, "{client}");
    }
    let list = home.connect(state.path(), &["--list", "--json"]).ok().json();
    let connected = list["clients"].as_array().expect("clients").iter().filter(|client| client["state"] == "connected");
    assert_eq!(connected.count(), 8, "{list}");
    let refused = home.connect(state.path(), &["cursor", "--http"]);
    assert_eq!(refused.code, 69, "{}", refused.err);
    let refused = home.connect(state.path(), &["curser"]);
    assert!(refused.code == 2 && refused.err.contains("Did you mean `cursor`?"), "{}", refused.err);
    let refused = home.connect(state.path(), &["claude-desktop", "--http"]);
    assert!(refused.code == 2 && refused.err.contains("speaks no HTTP"), "{}", refused.err);
}

#[test]
fn a_client_that_speaks_http_or_is_elsewhere_gets_a_token_in_its_file() {
    let (gateway, home) = (TestGateway::serve(), Home::new());
    let state = gateway.state.path();
    home.connect(state, &["vscode", "--http"]).ok();
    let entry = home.json(".config/Code/User/mcp.json")["servers"]["sinew"].clone();
    assert_eq!(entry["url"], format!("{}/mcp", gateway.url()));
    let token =
        entry["headers"]["Authorization"].as_str().and_then(|text| text.strip_prefix("Bearer ")).expect("a token");
    assert_eq!(gateway.http("GET", "/api/v1/devices", Some(token), "").0, 200);
    assert_eq!(gateway.http("GET", "/api/v1/tokens", Some(token), "").0, 403, "it is a client's");
    home.connect(state, &["vscode", "--http"]).ok();
    assert_eq!(home.json(".config/Code/User/mcp.json")["servers"]["sinew"], entry, "the same token");
    home.connect(state, &["vscode", "--remove"]).ok();
    assert_eq!(gateway.http("GET", "/api/v1/devices", Some(token), "").0, 401);

    // From another machine, which has no state directory of this gateway.
    let elsewhere = TempDir::new().expect("a folder");
    let refused = home.connect(elsewhere.path(), &["cursor", "--url", gateway.url()]);
    assert!(refused.code == 77 && refused.err.contains("needs a token"), "{}", refused.err);
    let admin = gateway.own_token();
    let there = ["cursor", "--url", gateway.url(), "--token", &admin, "--client", "laptop"];
    home.connect(elsewhere.path(), &there).ok();
    let entry = home.json(".cursor/mcp.json")["mcpServers"]["sinew"].clone();
    let token = entry["env"]["SINEW_TOKEN"].as_str().expect("a token").to_owned();
    assert!(token != admin && entry["args"].as_array().expect("words").contains(&json!(gateway.url())), "{entry}");
    assert_eq!(started(&entry)["result"]["serverInfo"]["name"], "sinew");
    home.connect(elsewhere.path(), &there).ok();
    assert_eq!(home.json(".cursor/mcp.json")["mcpServers"]["sinew"], entry, "a second run makes no second token");
    // A client's token is used as it is.
    let given = ["windsurf", "--url", gateway.url(), "--token", &token, "--http"];
    home.connect(elsewhere.path(), &given).ok();
    let entry = home.json(".codeium/windsurf/mcp_config.json")["mcpServers"]["sinew"].clone();
    assert_eq!(entry["headers"]["Authorization"], format!("Bearer {token}"));
}

#[test]
fn what_is_broken_or_another_persons_is_left_alone() {
    let (state, home) = (TempDir::new().expect("a folder"), Home::new());
    for (client, file, text, part) in [
        ("cursor", ".cursor/mcp.json", "{\n  \"mcpServers\": {\n    \"a\": 1,,\n  }\n}", "line 3"),
        ("codex", ".codex/config.toml", "a = 1\nb = ]\n", "line 2"),
        ("goose", ".config/goose/config.yaml", "a: [1\nb: 2\n", "line"),
        (
            "goose",
            ".config/goose/config.yaml",
            "extensions: {a: {enabled: true}}\n",
            "To add it yourself:\nextensions:\n  sinew:",
        ),
        ("zed", ".config/zed/settings.json", "{\"context_servers\": {\"sinew\": {\"command\": \"mine\"}}}", "--force"),
    ] {
        home.write(file, text);
        let refused = home.connect(state.path(), &[client]);
        assert!(refused.code == 78 && refused.err.contains(part), "{client}: {}", refused.err);
        assert_eq!(home.read(file), text);
        assert!(!home.path(&format!("{file}.sinew-backup")).exists());
    }
    let list = home.connect(state.path(), &["--list"]).ok().out;
    assert!(list.contains("has another `sinew`") && list.contains("cannot be read"), "{list}");
    home.connect(state.path(), &["zed", "--force"]).ok();
    let entry = home.json(".config/zed/settings.json")["context_servers"]["sinew"].clone();
    assert_eq!(entry["args"], json!(["stdio", "--client", "zed", "--state", state.path()]));
    // A file that the client does not have by default.
    home.write("project/mcp.json", "{}");
    let file = home.path("project/mcp.json");
    home.connect(state.path(), &["vscode", "--file", file.to_str().expect("a path")]).ok();
    assert!(home.read("project/mcp.json").contains("\"type\": \"stdio\""));
}
