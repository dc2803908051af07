//! AI clients that `sinew connect` sets up: where each keeps its configuration, and what its entry for Sinew says.
//!
//! `edit.rs` changes the text of a configuration, with `json_text.rs`, `toml_text.rs` and `yaml_text.rs`; `entry.rs` has
//! the entries, `client_file.rs` the file on the disk.

mod client_file;
mod edit;
mod entry;
mod json_text;
mod toml_text;
mod yaml_text;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use client_file::ClientFile;
pub use edit::{EditProblem, FileFormat};
pub use entry::{ClientAccess, ENTRY, client_name, is_ours, token_in};

/// A client that Sinew knows.
#[derive(Debug)]
pub struct AiClient {
    /// How people name it here, and its name for rules unless another is given.
    pub id: &'static str,
    pub title: &'static str,
    /// Other names that people use for it, without spaces and dashes.
    names: &'static [&'static str],
    pub format: FileFormat,
    /// The member of its configuration that has the servers.
    pub servers: &'static str,
    /// What to do so that it notices the change.
    pub notice: &'static str,
}

/// All of them, in the order of the pages.
pub const CLIENTS: &[AiClient] = &[
    AiClient {
        id: "claude-desktop",
        title: "Claude Desktop",
        names: &["claude"],
        format: FileFormat::Json,
        servers: "mcpServers",
        notice: "Quit it and start it again",
    },
    AiClient {
        id: "claude-code",
        title: "Claude Code",
        names: &[],
        format: FileFormat::Json,
        servers: "mcpServers",
        notice: "Start a new session",
    },
    AiClient {
        id: "vscode",
        title: "VS Code",
        names: &["code", "visualstudiocode"],
        format: FileFormat::Json,
        servers: "servers",
        notice: "Run `MCP: List Servers` in it and start sinew",
    },
    AiClient {
        id: "cursor",
        title: "Cursor",
        names: &[],
        format: FileFormat::Json,
        servers: "mcpServers",
        notice: "Enable sinew under Settings, Tools & MCP",
    },
    AiClient {
        id: "windsurf",
        title: "Windsurf",
        names: &[],
        format: FileFormat::Json,
        servers: "mcpServers",
        notice: "Refresh its list of MCP servers",
    },
    AiClient {
        id: "zed",
        title: "Zed",
        names: &[],
        format: FileFormat::Json,
        servers: "context_servers",
        notice: "It notices the change itself",
    },
    AiClient {
        id: "gemini-cli",
        title: "Gemini CLI",
        names: &["gemini"],
        format: FileFormat::Json,
        servers: "mcpServers",
        notice: "Start a new session",
    },
    AiClient {
        id: "codex",
        title: "Codex",
        names: &["codexcli"],
        format: FileFormat::Toml,
        servers: "mcp_servers",
        notice: "Start a new session",
    },
    AiClient {
        id: "goose",
        title: "Goose",
        names: &[],
        format: FileFormat::Yaml,
        servers: "extensions",
        notice: "Start a new session",
    },
];

/// A client by its name in any spelling: `cursor`, `Claude Code`, `vscode`.
pub fn find(name: &str) -> Option<&'static AiClient> {
    let wanted = plain(name);
    CLIENTS.iter().find(|client| {
        plain(client.id) == wanted || plain(client.title) == wanted || client.names.contains(&wanted.as_str())
    })
}

/// A path as people write it, where it is in their home.
pub fn shown(path: &Path) -> String {
    let home = PersonFolders::of_this_machine().map(|folders| folders.home);
    let in_home = home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned));
    match in_home {
        Some(rest) if !cfg!(windows) => PathBuf::from("~").join(rest).display().to_string(),
        _ => path.display().to_string(),
    }
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric(), "")
}

/// A kind of machine, as far as clients keep their files in other places on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineKind {
    Linux,
    MacOs,
    Windows,
}

/// Where a person's files are on this machine.
#[derive(Clone, Debug)]
pub struct PersonFolders {
    pub kind: MachineKind,
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`.
    config: Option<PathBuf>,
    /// `%APPDATA%`.
    roaming: Option<PathBuf>,
    /// Folders of single clients, from variables that those read.
    claude_code: Option<PathBuf>,
    codex: Option<PathBuf>,
}

impl PersonFolders {
    /// `None` where nobody's home is known.
    pub fn of_this_machine() -> Option<PersonFolders> {
        let kind = match std::env::consts::OS {
            "windows" => MachineKind::Windows,
            "macos" => MachineKind::MacOs,
            _ => MachineKind::Linux,
        };
        PersonFolders::new(kind, |name| std::env::var_os(name))
    }

    fn new(kind: MachineKind, variable: impl Fn(&str) -> Option<OsString>) -> Option<PersonFolders> {
        // A relative path would be another file in every folder.
        let folder = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.has_root());
        let home = match kind {
            MachineKind::Windows => folder("USERPROFILE").or_else(|| folder("HOME")),
            _ => folder("HOME"),
        };
        Some(PersonFolders {
            kind,
            home: home?,
            config: folder("XDG_CONFIG_HOME"),
            roaming: folder("APPDATA"),
            claude_code: folder("CLAUDE_CONFIG_DIR"),
            codex: folder("CODEX_HOME"),
        })
    }

    /// `~/.config`, where programs of Linux keep their settings and some of macOS do.
    fn dot_config(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| self.home.join(".config"))
    }

    /// Where programs with windows keep their settings.
    fn application(&self) -> PathBuf {
        match self.kind {
            MachineKind::Linux => self.dot_config(),
            MachineKind::MacOs => self.home.join("Library/Application Support"),
            MachineKind::Windows => self.roaming.clone().unwrap_or_else(|| self.home.join("AppData/Roaming")),
        }
    }
}

impl AiClient {
    /// The file with its servers, for all projects of this person.
    pub fn file(&self, folders: &PersonFolders) -> PathBuf {
        let home = &folders.home;
        let is_windows = folders.kind == MachineKind::Windows;
        match self.id {
            "claude-desktop" => folders.application().join("Claude/claude_desktop_config.json"),
            "claude-code" => folders.claude_code.as_ref().unwrap_or(home).join(".claude.json"),
            "vscode" => folders.application().join("Code/User/mcp.json"),
            "cursor" => home.join(".cursor/mcp.json"),
            "windsurf" => home.join(".codeium/windsurf/mcp_config.json"),
            "zed" if is_windows => folders.application().join("Zed/settings.json"),
            "zed" => folders.dot_config().join("zed/settings.json"),
            "gemini-cli" => home.join(".gemini/settings.json"),
            "codex" => folders.codex.clone().unwrap_or_else(|| home.join(".codex")).join("config.toml"),
            "goose" if is_windows => folders.application().join("Block/goose/config/config.yaml"),
            _ => folders.dot_config().join("goose/config.yaml"),
        }
    }

    /// Whether the client was started here before: its file or its own folder is there.
    pub fn is_present(&self, folders: &PersonFolders) -> bool {
        let file = self.file(folders);
        let own_folder = match self.id {
            "claude-code" => folders.home.join(".claude"),
            "vscode" => folders.application().join("Code"),
            _ => file.parent().unwrap_or(&file).to_owned(),
        };
        file.exists() || own_folder.is_dir()
    }

    /// The whole configuration of a client that has no other server, for people who write it themselves.
    pub fn new_file(&self, entry: &Value) -> String {
        self.format.with_entry("", self.servers, ENTRY, entry).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(kind: MachineKind, variables: &[(&str, &str)]) -> PersonFolders {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value));
        PersonFolders::new(kind, variable).expect("a home")
    }

    fn file(client: &str, folders: &PersonFolders) -> String {
        find(client).expect("a client").file(folders).display().to_string()
    }

    #[test]
    fn each_client_has_its_documented_place_on_each_system() {
        let linux = folders(MachineKind::Linux, &[("HOME", "/home/ada")]);
        let mac = folders(MachineKind::MacOs, &[("HOME", "/Users/ada")]);
        let windows =
            folders(MachineKind::Windows, &[("USERPROFILE", "/C/ada"), ("APPDATA", "/C/ada/AppData/Roaming")]);
        let expected = [
            (
                "claude-desktop",
                "/home/ada/.config/Claude/claude_desktop_config.json",
                "/Users/ada/Library/Application Support/Claude/claude_desktop_config.json",
                "/C/ada/AppData/Roaming/Claude/claude_desktop_config.json",
            ),
            ("claude-code", "/home/ada/.claude.json", "/Users/ada/.claude.json", "/C/ada/.claude.json"),
            (
                "vscode",
                "/home/ada/.config/Code/User/mcp.json",
                "/Users/ada/Library/Application Support/Code/User/mcp.json",
                "/C/ada/AppData/Roaming/Code/User/mcp.json",
            ),
            ("cursor", "/home/ada/.cursor/mcp.json", "/Users/ada/.cursor/mcp.json", "/C/ada/.cursor/mcp.json"),
            (
                "windsurf",
                "/home/ada/.codeium/windsurf/mcp_config.json",
                "/Users/ada/.codeium/windsurf/mcp_config.json",
                "/C/ada/.codeium/windsurf/mcp_config.json",
            ),
            (
                "zed",
                "/home/ada/.config/zed/settings.json",
                "/Users/ada/.config/zed/settings.json",
                "/C/ada/AppData/Roaming/Zed/settings.json",
            ),
            (
                "gemini-cli",
                "/home/ada/.gemini/settings.json",
                "/Users/ada/.gemini/settings.json",
                "/C/ada/.gemini/settings.json",
            ),
            ("codex", "/home/ada/.codex/config.toml", "/Users/ada/.codex/config.toml", "/C/ada/.codex/config.toml"),
            (
                "goose",
                "/home/ada/.config/goose/config.yaml",
                "/Users/ada/.config/goose/config.yaml",
                "/C/ada/AppData/Roaming/Block/goose/config/config.yaml",
            ),
        ];
        assert_eq!(expected.len(), CLIENTS.len());
        for (client, on_linux, on_mac, on_windows) in expected {
            assert_eq!(file(client, &linux), on_linux);
            assert_eq!(file(client, &mac), on_mac);
            assert_eq!(file(client, &windows), on_windows);
        }
    }

    #[test]
    fn variables_that_clients_read_move_their_files() {
        let variables = [
            ("HOME", "/home/ada"),
            ("XDG_CONFIG_HOME", "/etc/ada"),
            ("CODEX_HOME", "/opt/codex"),
            ("CLAUDE_CONFIG_DIR", "relative"),
        ];
        let folders = folders(MachineKind::Linux, &variables);
        assert_eq!(file("zed", &folders), "/etc/ada/zed/settings.json");
        assert_eq!(file("codex", &folders), "/opt/codex/config.toml");
        assert_eq!(file("claude-code", &folders), "/home/ada/.claude.json");
        assert!(PersonFolders::new(MachineKind::Linux, |_| None).is_none());
    }

    #[test]
    fn a_client_is_found_in_any_spelling() {
        for (name, id) in [
            ("Claude Code", "claude-code"),
            ("claude", "claude-desktop"),
            ("VSCode", "vscode"),
            ("vs-code", "vscode"),
            ("gemini", "gemini-cli"),
        ] {
            assert_eq!(find(name).map(|client| client.id), Some(id), "{name}");
        }
        assert!(find("emacs").is_none() && find("").is_none());
    }
}
