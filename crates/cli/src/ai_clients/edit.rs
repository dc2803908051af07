//! Changes one entry in the text of a configuration, and checks that nothing else changed.

use std::fmt;

use serde_json::{Map, Value};

use super::{entry, json_text, toml_text, yaml_text};

/// How a client writes its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// With comments and commas at the end, which some clients accept.
    Json,
    Toml,
    Yaml,
}

/// Why a configuration was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditProblem {
    /// Counted from 1; `None` where it is about the whole.
    pub line: Option<usize>,
    pub message: String,
}

impl EditProblem {
    pub(super) fn new(message: impl Into<String>) -> EditProblem {
        EditProblem { line: None, message: message.into() }
    }

    pub(super) fn at(text: &str, position: usize, message: impl Into<String>) -> EditProblem {
        let line = text.bytes().take(position).filter(|byte| *byte == b'\n').count() + 1;
        EditProblem { line: Some(line), message: message.into() }
    }

    fn unsafe_edit() -> EditProblem {
        EditProblem::new("it is written in a way that cannot be changed without changing other parts of it")
    }
}

impl fmt::Display for EditProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl FileFormat {
    pub fn name(self) -> &'static str {
        match self {
            FileFormat::Json => "JSON",
            FileFormat::Toml => "TOML",
            FileFormat::Yaml => "YAML",
        }
    }

    /// The entry of this name, if there is one.
    pub fn find_entry(self, text: &str, servers: &str, name: &str) -> Result<Option<Value>, EditProblem> {
        Ok(self.read(&Lines::of(text).plain)?.get(servers).and_then(|servers| servers.get(name)).cloned())
    }

    /// The text with this entry, in place of one of the same name. An entry of ours keeps what people added to it.
    pub fn with_entry(self, text: &str, servers: &str, name: &str, wanted: &Value) -> Result<String, EditProblem> {
        self.edit(text, servers, name, |old| match old {
            Some(old) if entry::is_ours(old) => Some(entry::merged(old, wanted)),
            _ => Some(wanted.clone()),
        })
    }

    /// The text without the entry.
    pub fn without_entry(self, text: &str, servers: &str, name: &str) -> Result<String, EditProblem> {
        self.edit(text, servers, name, |_| None)
    }

    fn edit(
        self,
        text: &str,
        servers: &str,
        name: &str,
        change: impl FnOnce(Option<&Value>) -> Option<Value>,
    ) -> Result<String, EditProblem> {
        let lines = Lines::of(text);
        let before = self.read(&lines.plain)?;
        let old = match before.get(servers) {
            None => None,
            Some(Value::Object(entries)) => entries.get(name),
            // YAML and JSON of other programs have nothing there at first.
            Some(Value::Null) => None,
            Some(_) => return Err(EditProblem::new(format!("`{servers}` is not a list of servers with names"))),
        };
        let wanted = change(old);
        if old == wanted.as_ref() {
            return Ok(text.to_owned());
        }
        let edited = match self {
            FileFormat::Json => json_text::edit(&lines.plain, servers, name, wanted.as_ref()),
            FileFormat::Toml => toml_text::edit(&lines.plain, servers, name, wanted.as_ref()),
            FileFormat::Yaml => yaml_text::edit(&lines.plain, servers, name, wanted.as_ref()),
        }?;
        let has_only_more = old.is_some() || is_within(&self.compared(&lines.plain), &edited);
        let has_only_less = wanted.is_some() || is_within(&self.compared(&edited), &lines.plain);
        let expected = with(before.clone(), servers, name, wanted);
        let is_same = self.read(&edited).is_ok_and(|after| is_same(after, expected, servers));
        match is_same && has_only_more && has_only_less {
            true => Ok(lines.restore(&edited)),
            false => Err(EditProblem::unsafe_edit()),
        }
    }

    /// What the text says.
    fn read(self, text: &str) -> Result<Value, EditProblem> {
        match self {
            FileFormat::Json => json_text::read(text),
            FileFormat::Toml => toml_text::read(text),
            FileFormat::Yaml => yaml_text::read(text),
        }
    }

    /// In YAML the braces of an empty list of servers come and go.
    fn compared(self, text: &str) -> String {
        match self {
            FileFormat::Yaml => text.replace(" {}", ""),
            FileFormat::Json | FileFormat::Toml => text.to_owned(),
        }
    }
}

fn with(before: Value, servers: &str, name: &str, entry: Option<Value>) -> Value {
    let mut all = match before {
        Value::Object(all) => all,
        _ => Map::new(),
    };
    match entry {
        Some(entry) => {
            let entries = all.entry(servers).or_insert_with(|| Value::Object(Map::new()));
            if !entries.is_object() {
                *entries = Value::Object(Map::new());
            }
            if let Some(entries) = entries.as_object_mut() {
                entries.insert(name.to_owned(), entry);
            }
        }
        None => {
            if let Some(entries) = all.get_mut(servers).and_then(Value::as_object_mut) {
                entries.shift_remove(name);
            }
        }
    }
    Value::Object(all)
}

/// Whether both say the same. TOML has no way to write that there are no servers.
fn is_same(mut after: Value, mut expected: Value, servers: &str) -> bool {
    for all in [&mut after, &mut expected].into_iter().filter_map(|all| all.as_object_mut()) {
        if all.get(servers).is_some_and(|entries| entries.as_object().is_some_and(Map::is_empty)) {
            all.shift_remove(servers);
        }
    }
    after == expected
}

/// Whether `longer` has everything of `shorter`, in this order: what was between was added, and nothing was changed.
fn is_within(shorter: &str, longer: &str) -> bool {
    let mut longer = longer.bytes();
    shorter.bytes().all(|wanted| longer.any(|byte| byte == wanted))
}

/// A text with the line ends that the editors write, and how to restore its own.
struct Lines {
    plain: String,
    has_mark: bool,
    is_windows: bool,
}

impl Lines {
    fn of(text: &str) -> Lines {
        let (has_mark, text) = text.strip_prefix('\u{feff}').map_or((false, text), |rest| (true, rest));
        let breaks = text.matches('\n').count();
        let is_windows = breaks > 0 && text.matches("\r\n").count() == breaks;
        let plain = if is_windows { text.replace("\r\n", "\n") } else { text.to_owned() };
        Lines { plain, has_mark, is_windows }
    }

    fn restore(&self, text: &str) -> String {
        let mark = if self.has_mark { "\u{feff}" } else { "" };
        let text = if self.is_windows { text.replace('\n', "\r\n") } else { text.to_owned() };
        format!("{mark}{text}")
    }
}

#[cfg(test)]
mod tests {
    use indoc::indoc;
    use serde_json::json;

    use super::super::{ClientAccess, ENTRY, find};
    use super::*;

    /// The entry of a client that starts `sinew stdio`.
    fn entry(client: &str) -> Value {
        let words = ["stdio", "--client", client].map(str::to_owned).to_vec();
        find(client).expect("a client").entry(&ClientAccess::Start {
            program: "/usr/bin/sinew".to_owned(),
            words,
            token: None,
        })
    }

    fn added(client: &str, text: &str) -> Result<String, EditProblem> {
        let known = find(client).expect("a client");
        known.format.with_entry(text, known.servers, ENTRY, &entry(client))
    }

    /// Adds the entry, adds it again and removes it. What is left differs only by what a client needs to keep its list.
    #[track_caller]
    fn check(client: &str, before: &str, after: &str) {
        let known = find(client).expect("a client");
        let new = added(client, before).expect("added");
        assert_eq!(new, after, "{client}\n{new}");
        assert_eq!(added(client, &new).as_deref(), Ok(after), "a second run changes nothing");
        assert_eq!(known.format.find_entry(&new, known.servers, ENTRY), Ok(Some(entry(client))));
        let removed = known.format.without_entry(&new, known.servers, ENTRY).expect("removed");
        let (mut was, mut is) =
            (known.format.read(before).expect("readable"), known.format.read(&removed).expect("readable"));
        for value in [&mut was, &mut is] {
            if value[known.servers].as_object().is_none_or(Map::is_empty) {
                value.as_object_mut().expect("an object").shift_remove(known.servers);
            }
        }
        assert_eq!(was, is, "{removed}");
        if known.format.read(before).expect("readable")[known.servers]
            .as_object()
            .is_some_and(|entries| !entries.is_empty())
        {
            assert_eq!(removed, before, "nothing is left");
        }
    }

    #[test]
    fn a_server_is_added_behind_the_others() {
        check(
            "claude-desktop",
            indoc! {r#"
                {
                  "globalShortcut": "Ctrl+Space",
                  "mcpServers": {
                    "filesystem": {
                      "command": "npx",
                      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/ada"]
                    }
                  },
                  "scale": 0
                }
            "#},
            indoc! {r#"
                {
                  "globalShortcut": "Ctrl+Space",
                  "mcpServers": {
                    "filesystem": {
                      "command": "npx",
                      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/ada"]
                    },
                    "sinew": {
                      "command": "/usr/bin/sinew",
                      "args": ["stdio", "--client", "claude-desktop"]
                    }
                  },
                  "scale": 0
                }
            "#},
        );
    }

    #[test]
    fn comments_and_commas_at_the_end_stay_where_they_are() {
        check(
            "zed",
            indoc! {r#"
                // Zed settings
                {
                    "theme": "One Dark", // at night
                    /* servers */
                    "context_servers": {
                        "docs": { "command": "docs-mcp", "args": [], }, // mine
                        // nothing more
                    },
                    "vim_mode": true,
                }
            "#},
            indoc! {r#"
                // Zed settings
                {
                    "theme": "One Dark", // at night
                    /* servers */
                    "context_servers": {
                        "docs": { "command": "docs-mcp", "args": [], }, // mine
                        "sinew": {
                            "command": "/usr/bin/sinew",
                            "args": ["stdio", "--client", "zed"]
                        },
                        // nothing more
                    },
                    "vim_mode": true,
                }
            "#},
        );
        check(
            "vscode",
            "{\n\t\"inputs\": [],\n\t\"servers\": {\n\t\t\"a\": {} // last\n\t}\n}\n",
            "{\n\t\"inputs\": [],\n\t\"servers\": {\n\t\t\"a\": {}, // last\n\t\t\"sinew\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"/usr/bin/sinew\",\n\t\t\t\"args\": [\"stdio\", \"--client\", \"vscode\"]\n\t\t}\n\t}\n}\n",
        );
    }

    #[test]
    fn files_without_servers_get_them() {
        let whole = "{\n  \"mcpServers\": {\n    \"sinew\": {\n      \"command\": \"/usr/bin/sinew\",\n      \"args\": [\"stdio\", \"--client\", \"cursor\"]\n    }\n  }\n}\n";
        check("cursor", "", whole);
        check("cursor", "{}", whole.trim_end());
        check("cursor", "{\n}\n", whole);
        check("cursor", "{\n  \"mcpServers\": {}\n}\n", whole);
        check("cursor", "{\n  \"mcpServers\": {\n  }\n}\n", whole);
        check("cursor", "// nothing yet\n", &format!("// nothing yet\n{whole}"));
        check(
            "gemini-cli",
            "{\"theme\": \"dark\"}",
            "{\"theme\": \"dark\", \"mcpServers\": {\"sinew\":{\"command\":\"/usr/bin/sinew\",\"args\":[\"stdio\",\"--client\",\"gemini-cli\"]}}}",
        );
    }

    #[test]
    fn line_ends_and_marks_of_windows_stay() {
        let before = "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"a\": {}\r\n  }\r\n}\r\n";
        let after = added("cursor", before).expect("added");
        assert!(after.starts_with('\u{feff}') && after.contains("\"a\": {},\r\n    \"sinew\": {\r\n"), "{after}");
        assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
        let known = find("cursor").expect("a client");
        assert_eq!(known.format.without_entry(&after, known.servers, ENTRY).as_deref(), Ok(before));
    }

    #[test]
    fn an_entry_of_ours_changes_only_where_it_must() {
        let before = indoc! {r#"
            {
              "mcpServers": {
                "sinew": { // the lamp
                  "command": "/old/sinew", // moved
                  "args": ["stdio", "--client", "cursor"],
                  "disabled": false
                },
                "z": {}
              }
            }
        "#};
        assert_eq!(added("cursor", before).expect("changed"), before.replace("/old/sinew", "/usr/bin/sinew"));
        let cursor = find("cursor").expect("a client");
        let http = cursor.entry(&ClientAccess::Http { url: "http://a/mcp".to_owned(), token: "snw_1".to_owned() });
        let changed = cursor.format.with_entry(before, cursor.servers, ENTRY, &http).expect("changed");
        let entry = cursor.format.find_entry(&changed, cursor.servers, ENTRY).expect("readable").expect("there");
        assert_eq!(
            entry,
            json!({"disabled": false, "url": "http://a/mcp", "headers": {"Authorization": "Bearer snw_1"}})
        );
        assert!(changed.contains("},\n    \"z\": {}\n"), "{changed}");
    }

    #[test]
    fn a_first_last_or_only_entry_is_removed_with_its_comma() {
        let json = FileFormat::Json;
        for (before, after) in [
            (r#"{"s": {"sinew": 1, "b": 2}}"#, r#"{"s": {"b": 2}}"#),
            (r#"{"s": {"a": 1, "sinew": 1, "b": 2}}"#, r#"{"s": {"a": 1, "b": 2}}"#),
            (r#"{"s": {"a": 1, "sinew": 1}}"#, r#"{"s": {"a": 1}}"#),
            (r#"{"s": {"a": 1, "sinew": 1,}}"#, r#"{"s": {"a": 1, }}"#),
            (r#"{"s": {"sinew": 1}}"#, r#"{"s": {}}"#),
            ("{\"s\": {\n  \"a\": 1, // one\n  \"sinew\": 1\n}}", "{\"s\": {\n  \"a\": 1 // one\n}}"),
            (
                "{\"s\": {\n  \"sinew\": {\n    \"x\": [1]\n  },\n  // b\n  \"b\": 1\n}}",
                "{\"s\": {\n  // b\n  \"b\": 1\n}}",
            ),
            ("{\"s\": {\n  \"a\": 1,\n  \"sinew\": 1}}", "{\"s\": {\n  \"a\": 1\n}}"),
            ("{\"s\": {\n  \"a\": 1\n  , \"sinew\": 1\n}}", "{\"s\": {\n  \"a\": 1\n\n}}"),
        ] {
            let removed = json.without_entry(before, "s", ENTRY).expect("removed");
            assert_eq!(json.read(&removed), json.read(after), "{before} becomes {removed}");
            assert!(is_within(&removed, before));
        }
        assert_eq!(json.without_entry("{\"a\": 1}", "s", ENTRY).as_deref(), Ok("{\"a\": 1}"));
    }

    #[test]
    fn toml_keeps_what_is_not_changed() {
        let before = indoc! {r#"
            # Codex
            model = "gpt-5"   # fast

            [mcp_servers.docs]
            command = "docs-mcp" # mine
            args = [
              "--all", # everything
            ]

            [tui]
            notifications = true
        "#};
        let after = added("codex", before).expect("added");
        assert!(
            after.contains(
                "\n[mcp_servers.sinew]\ncommand = \"/usr/bin/sinew\"\nargs = [\"stdio\", \"--client\", \"codex\"]\n"
            ),
            "{after}"
        );
        check("codex", before, &after);
        check(
            "codex",
            "",
            "[mcp_servers.sinew]\ncommand = \"/usr/bin/sinew\"\nargs = [\"stdio\", \"--client\", \"codex\"]\n",
        );
        let inline = "mcp_servers = { docs = { command = \"docs\" } }\n";
        let after = added("codex", inline).expect("added");
        assert!(
            after.starts_with("mcp_servers = { docs = { command = \"docs\" }")
                && after.contains(", sinew = {")
                && after.lines().count() == 1,
            "{after}"
        );
        let windows = before.replace('\n', "\r\n");
        assert_eq!(
            added("codex", &windows).expect("added"),
            added("codex", before).expect("added").replace('\n', "\r\n")
        );
    }

    #[test]
    fn toml_of_an_entry_of_ours_keeps_its_comments() {
        let before = indoc! {r#"
            [mcp_servers.sinew]
            command = "/old/sinew" # here
            args = ["stdio", "--client", "codex"]
            startup_timeout_sec = 20
            [mcp_servers.sinew.env]
            RUST_LOG = "info" # more
        "#};
        assert_eq!(added("codex", before).expect("changed"), before.replace("/old/sinew", "/usr/bin/sinew"));
    }

    #[test]
    fn yaml_gets_lines_and_nothing_else() {
        let sinew = indoc! {r#"
              sinew:
                enabled: true
                type: stdio
                cmd: "/usr/bin/sinew"
                args: ["stdio", "--client", "goose"]
                name: sinew
                description: "Devices behind Sinew"
                timeout: 300
        "#};
        let sinew: String = sinew.lines().map(|line| format!("  {line}\n")).collect();
        let before = indoc! {"
            # Goose
            GOOSE_MODEL: 'claude'   # mine
            extensions:
              developer:
                enabled: true
                type: builtin
              # the last one
              memory:
                enabled: yes
                display_name: Memory

            # provider
            GOOSE_PROVIDER: anthropic
        "};
        check("goose", before, &before.replace("Memory\n", &format!("Memory\n{sinew}")));
        check("goose", "", &format!("extensions:\n{sinew}"));
        check("goose", "A: 1", &format!("A: 1\nextensions:\n{sinew}"));
        check("goose", "extensions: {} # none\nA: 1\n", &format!("extensions: # none\n{sinew}A: 1\n"));
        check("goose", "extensions:\n", &format!("extensions:\n{sinew}"));
        let wide = "extensions:\n    memory:\n        enabled: true\n";
        let after = added("goose", wide).expect("added");
        assert!(after.starts_with(wide) && after.contains("\n    sinew:\n      enabled: true\n"), "{after}");
        let slow =
            format!("extensions:\n{}", sinew.replace("timeout: 300", "timeout: 900").replace("/usr/bin", "/old"));
        assert_eq!(added("goose", &slow).expect("changed"), format!("extensions:\n{}", sinew.replace("300", "900")));
    }

    #[test]
    fn what_cannot_be_read_or_changed_safely_is_refused_with_its_line() {
        for (client, text, line, part) in [
            ("cursor", "{\n  \"mcpServers\": {\n", Some(2), "not JSON"),
            ("cursor", "{\n \"a\": 1\n \"b\": 2\n}", Some(2), "not JSON"),
            ("cursor", "{'a': 1}", Some(1), "not JSON"),
            ("cursor", "[1]", Some(1), "must be an object"),
            ("cursor", "{\"mcpServers\": [1]}", None, "not a list of servers"),
            ("cursor", "{\n\"mcpServers\": {},\n\"mcpServers\": {}}", Some(3), "stands twice"),
            ("cursor", "{\"mcpServers\": {\"sinew\": {}, \"sinew\": {}}}", Some(1), "stands twice"),
            ("codex", "a = 1\nb = = 2\n", Some(2), "not TOML"),
            ("codex", "mcp_servers = 5\n", None, "not a list of servers"),
            ("codex", "[[mcp_servers]]\na = 1\n", None, "not a list of servers"),
            ("goose", "a: 1\n b: 2\n", Some(2), "not YAML"),
            ("goose", "- a\n", None, "expected names"),
            ("goose", "extensions: {a: {enabled: true}}\n", Some(1), "on one line"),
            ("goose", "extensions: [a]\n", None, "not a list of servers"),
            ("goose", "a: 1\na: 2\n", Some(2), "stands twice"),
            ("goose", "a: 1\n---\nb: 2\n", None, "second document"),
            ("goose", "text: |\n  a\n...\n", None, "cannot be changed"),
        ] {
            let problem = added(client, text).expect_err(text);
            assert!(problem.message.contains(part), "{text:?}: {problem}");
            assert!(line.is_none() || problem.line == line, "{text:?}: {problem}");
        }
        let deep = format!("{}{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
        assert!(added("cursor", &deep).is_err());
        assert!(added("goose", &"[".repeat(10_000)).is_err());
    }
}
