//! `sinew spec` as a repository's CI uses it, and against a live device.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::gateway::{CommandOutput, TestGateway, run, sinew};

/// A folder to work in, as a repository would be.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().expect("a folder"))
    }

    fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).expect("a text")
    }

    fn spec(&self, arguments: &[&str]) -> CommandOutput {
        run(sinew(self.0.path()).current_dir(self.0.path()).arg("spec").args(arguments))
    }
}

fn list(tools: Value) -> String {
    json!({ "tools": tools }).to_string()
}

fn relay(description: &str, version: &str, required: &[&str]) -> Value {
    json!({
        "name": "relay", "description": description, "version": version,
        "inputSchema": {"type": "object", "properties": {
            "on": {"type": "boolean", "description": "Whether current flows.", "examples": [true]},
            "channel": {"type": "integer", "description": "Which relay, counted from 1.", "examples": [1]},
        }, "required": required},
    })
}

const SAYS: &str = "Switches one relay of the board on or off and answers with its new state.";

fn case(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec/tests/it/cases").join(name);
    fs::read_to_string(path).expect("a case")
}

#[test]
fn a_new_form_is_unfilled_and_nothing_else() {
    let desk = Desk::new();
    desk.spec(&["new", "relay_switch", "-o", "MCP_TOOL_SPECIFICATION.md"]).ok();
    let again = desk.spec(&["new", "relay_switch", "-o", "MCP_TOOL_SPECIFICATION.md"]);
    assert_eq!(again.code, 2, "a file that is there stays: {again:?}");
    assert_eq!(desk.spec(&["new", "switch the relay"]).code, 2);
    let found = desk.spec(&["lint", ".", "--format", "json"]);
    assert_eq!(found.code, 1);
    let file = &found.json()["files"][0];
    assert_eq!(
        (&file["tools"], file["path"].as_str()),
        (&json!(["relay_switch"]), Some("./MCP_TOOL_SPECIFICATION.md"))
    );
    let findings = file["findings"].as_array().expect("findings");
    assert!(!findings.is_empty() && findings.iter().all(|finding| finding["rule"] == "unfilled"), "{findings:#?}");
    for key in ["rule", "severity", "line", "column", "message"] {
        assert!(findings[0].get(key).is_some(), "{key}");
    }
}

#[test]
fn a_good_document_is_clean_and_a_broken_one_is_shown_in_every_format() {
    let desk = Desk::new();
    desk.put("good.md", case("read_file.md"));
    desk.put("bad.md", case("broken.md"));
    assert!(desk.spec(&["lint", "--strict", "good.md"]).ok().out.contains('1'));
    let text = desk.spec(&["lint", "bad.md"]);
    assert_eq!(text.code, 1);
    assert!(text.out.contains("--> bad.md:") && text.err.is_empty(), "{text:?}");
    let sarif = desk.spec(&["lint", "bad.md", "--format", "sarif"]).json();
    assert_eq!(sarif["version"], "2.1.0");
    assert!(desk.spec(&["lint", "bad.md", "--format", "github"]).out.starts_with("::"));
    assert!(desk.spec(&["lint", "bad.md", "--format", "junit"]).out.contains("<testsuite"));
    let json = desk.spec(&["lint", "bad.md", "good.md", "--output", "json"]);
    assert_eq!((json.code, json.json()["files"].as_array().map(Vec::len)), (1, Some(2)), "one JSON document");
}

#[test]
fn fixes_are_applied_to_the_file() {
    let desk = Desk::new();
    desk.put("a.md", case("read_file.md").replace("`string`", "`str`").replace('\n', "\r\n").replacen("\r\n", "\n", 3));
    let before = desk.spec(&["lint", "a.md", "--format", "json"]).json();
    let fixable = |report: &Value| {
        let findings = report["files"][0]["findings"].as_array().expect("findings").clone();
        findings.iter().filter(|finding| finding["fixable"] == true).count()
    };
    assert!(fixable(&before) > 0, "{before:#}");
    let mended = desk.spec(&["lint", "a.md", "--fix", "--format", "json"]).ok();
    assert!(mended.err.contains("fixed"), "{mended:?}");
    assert_eq!(fixable(&mended.json()), 0);
    assert!(!desk.read("a.md").contains("`str`"));
    assert_eq!(fs::read_dir(desk.0.path()).expect("a folder").count(), 1, "nothing is left beside it");
}

#[test]
fn rules_are_switched_in_the_repositorys_sinew_toml() {
    let desk = Desk::new();
    let mut tool = relay(SAYS, "1.2.0", &["on"]);
    tool["inputSchema"]["properties"]["on"] = json!({"type": "boolean"});
    desk.put("list.json", list(json!([tool])));
    assert_eq!(desk.spec(&["lint", "list.json"]).code, 1, "a parameter is not described");
    desk.put("sinew.toml", "[spec.rules]\nparameter-description = 'off'\n");
    desk.spec(&["lint", "list.json"]).ok();
    let rules = desk.spec(&["rules", "--output", "json"]).ok().json();
    let rule = |id: &str| rules["rules"].as_array().expect("rules").iter().find(|rule| rule["rule"] == id).cloned();
    assert_eq!(rule("parameter-description").expect("a rule")["severity"], "off");
    desk.put("sinew.toml", "[spec.rules]\nparameter-words = 'off'\n");
    let wrong = desk.spec(&["lint", "list.json"]);
    assert!(
        wrong.code == 2 && wrong.err.contains("parameter-words") && wrong.err.contains("sinew spec rules"),
        "{wrong:?}"
    );
    desk.put("other.toml", "");
    assert_eq!(desk.spec(&["lint", "list.json", "--config", "other.toml"]).code, 1);
}

#[test]
fn known_findings_are_hidden_and_only_failures_are_shown() {
    let desk = Desk::new();
    let name = "MCP_TOOL_SPECIFICATION.md";
    desk.put(name, case("read_file.md").replace("`integer`", "`int`"));
    let advice = desk.spec(&["lint", ".", "--format", "json"]).ok().out;
    assert!(advice.contains("type-alias"), "{advice}");
    desk.put("known.json", &advice);
    assert!(!desk.spec(&["lint", ".", "--baseline", "known.json"]).ok().out.contains("type-alias"));
    let typed_otherwise = desk.spec(&["lint", name, "--baseline", "known.json"]).ok().out;
    assert!(!typed_otherwise.contains("type-alias"), "{typed_otherwise}");
    assert!(!desk.spec(&["lint", ".", "--min-severity", "warning"]).ok().out.contains("type-alias"));
    assert_eq!(desk.spec(&["lint", ".", "--quiet"]).ok().out, "");
    assert_eq!(desk.spec(&["lint", ".", "--baseline", "nowhere.json"]).code, 2);
    let diff = desk.spec(&["lint", ".", "--fix", "--dry-run"]).ok().out;
    assert!(diff.contains("-| `max_lines` | `int`") && diff.contains("+| `max_lines` | `integer`"), "{diff}");
    assert!(desk.read(name).contains("`int`"), "a dry run changes nothing");
}

#[test]
fn the_nearest_configuration_sets_rules_by_path_and_a_comment_by_tool() {
    let desk = Desk::new();
    let aliased = case("read_file.md").replace("`integer`", "`int`");
    desk.put("sinew.toml", "[spec.rules]\ntype-alias = \"error\"\n[[spec.overrides]]\npaths = [\"old/**\"]\nrules = { type-alias = \"off\" }\n");
    desk.put("new/MCP_TOOL_SPECIFICATION.md", &aliased);
    desk.put("old/deep/MCP_TOOL_SPECIFICATION.md", &aliased);
    assert_eq!(desk.spec(&["lint", "new"]).code, 1);
    desk.spec(&["lint", "old"]).ok();
    let ignored = aliased.replace(
        "## Tool: `files.read_text`\n",
        "## Tool: `files.read_text`\n\n<!-- sinew: ignore type-alias because of history -->\n",
    );
    desk.put("new/MCP_TOOL_SPECIFICATION.md", ignored);
    desk.spec(&["lint", "new"]).ok();
}

#[test]
fn a_tool_is_added_and_a_blank_form_is_not_locked() {
    let desk = Desk::new();
    desk.put("tools.md", case("read_file.md"));
    desk.spec(&["add", "relay_switch", "tools.md"]).ok();
    let tools = desk.spec(&["lint", "tools.md", "--format", "json"]).json()["files"][0]["tools"].clone();
    assert_eq!(tools, json!(["files.read_text", "relay_switch"]));
    assert_eq!(desk.spec(&["add", "relay_switch", "tools.md"]).code, 2);
    let refused = desk.spec(&["lock", "tools.md"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(!desk.0.path().join("sinew.lock").exists());
}

#[test]
fn a_rule_is_explained_and_an_unknown_one_is_not() {
    let desk = Desk::new();
    assert!(desk.spec(&["explain", "example-invalid"]).ok().out.contains("Good:"));
    assert!(desk.spec(&["rules"]).ok().out.contains("split-tool"));
    assert_eq!(desk.spec(&["explain", "nonsense"]).code, 2);
}

#[test]
fn a_name_that_another_file_uses_is_reported() {
    let desk = Desk::new();
    desk.put("one/MCP_TOOL_SPECIFICATION.md", case("read_file.md"));
    desk.put("two/MCP_TOOL_SPECIFICATION.md", case("read_file.md"));
    desk.put("target/MCP_TOOL_SPECIFICATION.md", "not ours");
    let found = desk.spec(&["lint", ".", "--format", "json"]);
    let files = found.json()["files"].clone();
    assert_eq!(files.as_array().map(Vec::len), Some(2));
    assert_eq!((&files[0]["findings"], &files[1]["findings"][0]["rule"]), (&json!([]), &json!("name-duplicate")));
}

#[test]
fn bad_files_are_findings_or_usage_and_never_a_panic() {
    let desk = Desk::new();
    desk.put("binary.md", [0x7f, b'E', b'L', b'F', 0, 0, 0xff, 0xfe]);
    desk.put("large.md", vec![b'x'; 50 << 20]);
    desk.put("empty.md", "");
    desk.put("deep.json", "[".repeat(100_000));
    for (name, rule) in
        [("binary.md", "not-text"), ("large.md", "too-large"), ("empty.md", "no-tools"), ("deep.json", "list-not-json")]
    {
        let found = desk.spec(&["lint", name, "--fix", "--format", "json"]);
        assert_eq!(found.code, 1, "{found:?}");
        assert_eq!(found.json()["files"][0]["findings"][0]["rule"], rule);
    }
    let message = desk.spec(&["lint", "large.md"]).out;
    assert!(message.contains("50 MiB"), "{message}");
    for arguments in [
        &["lint", "nowhere.md"][..],
        &["lint", "--config", "nowhere.toml", "empty.md"],
        &["lint"],
        &["render", "binary.md"],
        &["diff", "binary.md", "empty.md"],
        &["diff", "empty.md", "empty.md", "--old-version", "one", "--new-version", "2.0.0"],
        &["lock", "--check", "empty.md"],
    ] {
        let refused = desk.spec(arguments);
        assert!(refused.code == 2 && !refused.err.contains("panicked"), "{arguments:?}: {refused:?}");
    }
}

#[test]
fn a_printed_document_reads_back_as_the_same_tools() {
    let desk = Desk::new();
    desk.put("list.json", list(json!([relay(SAYS, "1.2.0", &["on"])])));
    desk.spec(&["render", "list.json", "-o", "list.md"]).ok();
    assert!(desk.read("list.md").contains("### 8. Security Considerations"));
    assert_eq!(desk.spec(&["diff", "list.json", "list.md"]).ok().out, "No changes.\n");
    assert!(desk.spec(&["render", "list.md", "--html"]).ok().out.starts_with("<!"));
}

#[test]
fn a_version_that_is_too_small_fails_and_one_that_is_enough_does_not() {
    let desk = Desk::new();
    desk.put("old.json", list(json!([relay(SAYS, "1.2.0", &["on"])])));
    desk.put("same.json", list(json!([relay(SAYS, "1.2.1", &["on", "channel"])])));
    desk.put("major.json", list(json!([relay(SAYS, "2.0.0", &["on", "channel"])])));
    let small = desk.spec(&["diff", "old.json", "same.json"]);
    assert!(small.code == 1 && small.out.contains("2.0.0") && small.out.contains("breaking"), "{small:?}");
    let json = desk.spec(&["diff", "old.json", "same.json", "--format", "json"]);
    let value = json.json();
    assert_eq!((json.code, value["bump"].as_str()), (1, Some("major")));
    for key in ["tool", "path", "kind", "impact", "message"] {
        assert!(value["changes"][0].get(key).is_some(), "{value:#}");
    }
    assert_eq!(value["changes"][0]["impact"], "breaking");
    let enough = desk.spec(&["diff", "old.json", "major.json", "--format", "markdown"]).ok().out;
    assert!(enough.contains("**major**"), "{enough}");
    desk.put("one.md", "Some words.\n");
    desk.put("two.md", "Other words.\n");
    assert_eq!(desk.spec(&["diff", "one.md", "two.md"]).code, 2);
    desk.put("none.json", list(json!([])));
    let gone = desk.spec(&["diff", "old.json", "none.json"]);
    assert_eq!(gone.code, 1, "{gone:?}");
    desk.spec(&["diff", "old.json", "none.json", "--allow", "breaking"]).ok();
    assert_eq!(desk.spec(&["diff", "old.json", "none.json", "--allow", "undecided"]).code, 1);
    let unmeasured = gone.out;
    assert!(unmeasured.contains("major") && unmeasured.contains("--old-version"), "{unmeasured}");
    let package = ["diff", "old.json", "none.json", "--old-version", "1.0.0", "--new-version"];
    assert_eq!(desk.spec(&[&package[..], &["1.1.0"]].concat()).code, 1);
    desk.spec(&[&package[..], &["2.0.0"]].concat()).ok();
}

#[test]
fn an_undecided_change_fails_unless_it_is_allowed_or_announced() {
    let desk = Desk::new();
    let named = |version: &str, pattern: &str| {
        let mut tool = relay(SAYS, version, &["on"]);
        tool["inputSchema"]["properties"]["on"] = json!({"type": "string", "pattern": pattern});
        list(json!([tool]))
    };
    desk.put("old.json", named("1.2.0", "^a[0-9]+x$"));
    desk.put("new.json", named("1.2.1", "^a[0-9]*b?x$"));
    desk.put("major.json", named("2.0.0", "^a[0-9]*b?x$"));
    let fails = desk.spec(&["diff", "old.json", "new.json"]);
    assert!(fails.code == 1 && fails.out.contains("undecided") && fails.out.contains("2.0.0"), "{fails:?}");
    desk.spec(&["diff", "old.json", "new.json", "--allow", "undecided"]).ok();
    desk.spec(&["diff", "old.json", "new.json", "--allow", "breaking"]).ok();
    desk.spec(&["diff", "old.json", "major.json"]).ok();
    // Notes are text, which needs no more than a patch version and fails nothing.
    let page = |notes: &str| {
        format!("# T\n\n## Tool: `a_b`\n\n### 3. Input Schema (Parameters)\n\nNone.\n\n### Quirks\n\n{notes}\n")
    };
    desk.put("one.md", page("It hums."));
    desk.put("two.md", page("It sings."));
    let text = desk.spec(&["diff", "one.md", "two.md"]).ok().out;
    assert!(text.contains("Quirks") && text.contains("cosmetic") && text.contains("patch"), "{text}");
}

#[test]
fn a_locked_repository_changes_only_with_a_version() {
    let desk = Desk::new();
    desk.put("tools.json", list(json!([relay(SAYS, "1.2.0", &["on"])])));
    assert!(desk.spec(&["lock", "tools.json"]).ok().out.contains("1 tool written to sinew.lock"));
    desk.spec(&["lock", "--check", "tools.json"]).ok();
    desk.put("tools.json", list(json!([relay("Switches off the alarm without a word to anybody.", "1.2.0", &["on"])])));
    let silent = desk.spec(&["lock", "--check", "tools.json"]);
    assert!(silent.code == 1 && silent.out.contains("without a new version"), "{silent:?}");
    desk.put("tools.json", list(json!([relay(SAYS, "2.0.0", &["on", "channel"])])));
    desk.spec(&["lock", "--check", "tools.json"]).ok();
    desk.put("tools.json", list(json!([relay(SAYS, "1.1.0", &["on"])])));
    let lowered = desk.spec(&["lock", "--check", "tools.json"]);
    assert!(lowered.code == 1 && lowered.out.contains("went down from 1.2.0 to 1.1.0"), "{lowered:?}");
    desk.put("unread.md", "# T\n\n## `blink_it`\n\nBlinks.\n");
    let unread = desk.spec(&["lock", "unread.md"]);
    assert!(unread.code == 2 && unread.err.contains("only what was read can be locked"), "{unread:?}");
    desk.put("tools.json", list(json!([])));
    let gone = desk.spec(&["lock", "--check", "tools.json", "--output", "json"]);
    assert_eq!((gone.code, &gone.json()["files"][0]["verdicts"][0]["decision"]), (1, &json!("gone")));
}

#[test]
fn a_lock_recognises_a_file_by_any_path_and_reports_a_missing_one() {
    let desk = Desk::new();
    desk.put("MCP_TOOL_SPECIFICATION.md", case("read_file.md"));
    let other = case("read_file.md").replace("files.read_text", "files.other");
    desk.put("sub/MCP_TOOL_SPECIFICATION.md", &other);
    assert!(desk.spec(&["lock", "."]).ok().out.contains("2 tools written"));
    let whole = desk.0.path().to_str().expect("a path").to_owned();
    for path in [".", "./sub", "sub/MCP_TOOL_SPECIFICATION.md", "./MCP_TOOL_SPECIFICATION.md", "sub/..", &whole] {
        let checked = desk.spec(&["lock", "--check", path]).ok().out;
        assert!(!checked.contains(" new: "), "{path}: {checked}");
    }
    fs::remove_dir_all(desk.0.path().join("sub")).expect("removed");
    let gone = desk.spec(&["lock", "--check", "."]);
    assert!(gone.code == 1 && gone.out.contains("sub/MCP_TOOL_SPECIFICATION.md: files.other gone"), "{gone:?}");
    desk.spec(&["lock", "--check", "MCP_TOOL_SPECIFICATION.md"]).ok();
    desk.spec(&["lock", "."]).ok();
    desk.spec(&["lock", "--check", "."]).ok();
}

#[test]
fn the_blank_form_overwrites_nothing_and_a_misspelt_rule_is_recognised() {
    let desk = Desk::new();
    desk.spec(&["new", "relay", "-o", "form.md"]).ok();
    let again = desk.spec(&["new", "relay", "-o", "form.md"]);
    assert!(again.code == 2 && again.err.contains("exists already"), "{again:?}");
    let rule = desk.spec(&["explain", "unfiled"]);
    assert!(rule.code == 2 && rule.err.contains("did you mean `unfilled`?"), "{rule:?}");
}

#[test]
fn a_live_device_is_checked_printed_and_compared() {
    let gateway = TestGateway::demo();
    let found = gateway.run(&["spec", "lint", "--device", "board-ddee01", "--format", "json"]);
    let file = &found.json()["files"][0];
    assert!(
        file["tools"].as_array().is_some_and(|tools| tools.contains(&json!("self.audio_speaker.set_volume"))),
        "{file:#}"
    );
    let page = gateway.run(&["spec", "render", "--device", "board-ddee01"]).ok().out;
    assert!(page.contains("## Tool: `self.audio_speaker.set_volume`"), "{page}");
    assert!(
        page.contains("- `DeviceAway`: ") && page.contains("- **Idempotent**: {{"),
        "no section is left empty: {page}"
    );
    assert_eq!(gateway.run(&["spec", "diff", "device:board-ddee01", "device:board-ddee02"]).ok().out, "No changes.\n");
    let url = format!("{}/mcp", gateway.url());
    let written = gateway.run(&["spec", "from", &url, "--token", &gateway.own_token()]).ok().out;
    assert!(written.contains("## Tool: `"), "{written}");
    assert_ne!(gateway.run(&["spec", "from", "http://127.0.0.1:1/mcp"]).code, 0);
    assert_ne!(gateway.run(&["spec", "diff", "device:board-ddee01", "device:board-nowhere"]).code, 0);
}

/// Answers one request a connection, and closes it. `modern` knows no `initialize`.
fn terse_server(modern: bool) -> String {
    use std::io::{BufRead, BufReader, Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.expect("a connection"));
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if stream.read_line(&mut head).expect("a line") == 0 {
                    break;
                }
            }
            let head = head.to_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or_default()];
            stream.read_exact(&mut body).expect("a body");
            let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
            let tool = |name: &str| json!({"name": name, "description": "Dims.", "inputSchema": {"type": "object"}});
            let result = match (asked["method"].as_str().unwrap_or_default(), asked["params"]["cursor"].as_str()) {
                ("initialize", _) if !modern => {
                    json!({"protocolVersion": "2025-06-18", "serverInfo": {"name": "Lamps"}})
                }
                ("server/discover", _) if modern => {
                    json!({"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "Lamps"}}})
                }
                ("tools/list", None) => json!({"tools": [tool("dim_one")], "nextCursor": "2"}),
                ("tools/list", Some(_)) => json!({"tools": [tool("dim_two")]}),
                _ => Value::Null,
            };
            let is_stateless = modern == head.contains("mcp-protocol-version: 2026-07-28");
            let (status, headers, body) = match (head.starts_with("post /mcp/ "), result) {
                (false, _) => ("307 Temporary Redirect", "Location: /mcp/\r\n", String::new()),
                (true, Value::Null) => ("400 Bad Request", "", json!({"error": {"message": "no"}}).to_string()),
                (true, _) if !is_stateless => ("400 Bad Request", "", String::new()),
                (true, result) => {
                    ("200 OK", "", json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string())
                }
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.get_mut().write_all(format!("{head}{body}").as_bytes());
        }
    });
    format!("http://{address}/mcp")
}

#[test]
fn servers_of_both_eras_are_written_down_also_if_they_close_every_connection() {
    let desk = Desk::new();
    for modern in [false, true] {
        let page = desk.spec(&["from", &terse_server(modern)]).ok().out;
        assert!(page.starts_with("# Lamps - MCP Tool Specification"), "{page}");
        assert!(page.contains("## Tool: `dim_one`") && page.contains("## Tool: `dim_two`"), "{page}");
    }
    let nobody = desk.spec(&["from", "http://127.0.0.1:1/mcp"]);
    assert!(nobody.code != 0 && nobody.err.contains("127.0.0.1:1"), "{nobody:?}");
}

fn example(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/spec-ci").join(name)
}

/// A command of the example, with this program on the path.
fn with_sinew(command: &str, desk: &Desk) -> std::process::Command {
    let folder = Path::new(env!("CARGO_BIN_EXE_sinew")).parent().expect("a folder").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path))).expect("a path");
    let mut process = std::process::Command::new(command);
    process.current_dir(desk.0.path()).env("PATH", path).env("HOME", desk.0.path());
    process
}

#[test]
fn the_example_hook_accepts_only_good_specifications() {
    let desk = Desk::new();
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        run(with_sinew("git", &desk).args(identity).args(arguments))
    };
    git(&["init", "-q"]).ok();
    let hook = desk.0.path().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().expect("a folder")).expect("made");
    fs::copy(example("pre-commit"), &hook).expect("copied");
    desk.put("a b/MCP_TOOL_SPECIFICATION.md", case("read_file.md"));
    git(&["add", "."]).ok();
    git(&["commit", "-q", "-m", "good"]).ok();
    desk.put("a b/MCP_TOOL_SPECIFICATION.md", case("broken.md"));
    git(&["add", "."]).ok();
    let refused = git(&["commit", "-q", "-m", "bad"]);
    assert!(refused.code != 0 && refused.err.contains("a b/MCP_TOOL_SPECIFICATION.md"), "{refused:?}");
}

#[test]
fn the_example_configuration_loads_and_the_workflow_uses_existing_options() {
    let desk = Desk::new();
    desk.put("sinew.toml", fs::read(example("sinew.toml")).expect("a file"));
    assert!(desk.spec(&["rules"]).ok().out.contains("split-tool"));
    let workflow = fs::read_to_string(example("tool-specifications.yml")).expect("a file");
    let verbs: Vec<Vec<&str>> = workflow
        .lines()
        .filter_map(|line| line.split_once("sinew spec ").map(|(_, rest)| rest))
        .map(|rest| rest.split_whitespace().take_while(|word| !word.starts_with(['>', '|'])).collect())
        .collect();
    assert_eq!(verbs.iter().map(|words| words[0]).collect::<Vec<_>>(), ["lint", "diff", "lock"]);
    desk.put("MCP_TOOL_SPECIFICATION.md", case("read_file.md"));
    desk.spec(&["lock", "."]).ok();
    for words in verbs.iter().filter(|words| words[0] != "diff") {
        desk.spec(words).ok();
    }
    let versions = ["--old-version", "1.0.0", "--new-version", "1.0.0"];
    let meant = |word: &str| match word {
        word if word.contains("file") => vec!["MCP_TOOL_SPECIFICATION.md"],
        word if word.contains("versions") => versions.to_vec(),
        _ => Vec::new(),
    };
    let diff: Vec<&str> =
        verbs[1].iter().flat_map(|word| if word.contains('$') { meant(word) } else { vec![*word] }).collect();
    let text = fs::File::open(desk.0.path().join("MCP_TOOL_SPECIFICATION.md")).expect("a file");
    let same = run(sinew(desk.0.path()).current_dir(desk.0.path()).arg("spec").args(diff).stdin(text)).ok().out;
    assert_eq!(same, "No changes.\n");
}
