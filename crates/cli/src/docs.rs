//! The reference pages that are printed from the code, kept fresh by a test. `UPDATE_DOCS=1 cargo test -p
//! sinew docs` rewrites them.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use clap::Command;
use sinew_compose::GatewayConfig;
use sinew_compose::config::MOVED;
use sinew_tool::Value;
use sinew_tool::error::{Actor, McpForm, Retry, TABLE};
use sinew_tool::settings::{Field, Setting};

use crate::args::command_tree;
use crate::error::KINDS;

#[test]
fn the_error_page_is_fresh() {
    check("errors.md", &errors());
}

#[test]
fn the_configuration_page_is_fresh() {
    check("config.md", &config());
}

#[test]
fn the_command_line_page_is_fresh() {
    check("cli.md", &cli());
}

/// What a gateway for a home might have.
const EXAMPLE: &str = r#"listen = "0.0.0.0:7300"
devices = "0.0.0.0:7301"
mqtt = "0.0.0.0:7302"
tls = true
insecure-lan = true # boards speak without TLS

[gateway]
call-timeout = 60

[clients]
allowed-hosts = ["sinew.example"]

[boards]
bootstrap = "both"
vision = { url = "http://127.0.0.1:11434/v1/chat/completions", model = "llava" }

[phones]
profile = "compact"

[phones.apps]
interval = 60

[[brokers]]
url = "mqtts://broker.example:8883"
username = "sinew"
password-file = "broker-password"
"#;

#[test]
fn the_example_is_valid() {
    GatewayConfig::parse(EXAMPLE).and_then(|config| config.check()).expect("valid");
}

#[test]
fn the_document_of_the_interface_is_fresh() {
    check("api.json", &format!("{:#}\n", sinew_api::document()));
}

#[test]
fn the_table_of_routes_is_fresh() {
    check_part("http.md", "routes", &routes());
}

#[test]
fn the_table_of_schema_rules_is_fresh() {
    check_part("clients.md", "rules", &schema_rules());
}

/// Checks the part of a page between `<!-- NAME -->` and `<!-- end of NAME -->`.
fn check_part(page: &str, name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = fs::read_to_string(path).expect("the page can be read");
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = text.split_once(&begin).expect("the page has the part");
    let (_, after) = rest.split_once(&end).expect("the part ends");
    check(page, &format!("{before}{begin}{expected}{end}{after}"));
}

fn schema_rules() -> String {
    let mut table =
        String::from("| in the schema of the device | in the list | for | reported in |\n|---|---|---|---|\n");
    for rule in sinew_tool::portable::RULES {
        let address = rule.source.replace('#', "/issues/");
        let source = format!("[{}](https://github.com/{address})", rule.source);
        let _ = writeln!(table, "| {} | {} | {} | {source} |", rule.given, rule.listed, rule.refused_by);
    }
    table
}

fn routes() -> String {
    let mut table = String::from("| method and path | what | token |\n|---|---|---|\n");
    for route in sinew_api::ROUTES.iter().filter(|route| route.path.starts_with("/api/")) {
        let parameters: Vec<String> = route.parameters.iter().map(|one| format!("`?{}=`", one.name)).collect();
        let parameters = if parameters.is_empty() { String::new() } else { format!("; {}", parameters.join(", ")) };
        let (method, access) = (route.method.as_str(), route.access.as_str());
        let _ = writeln!(table, "| {method} `{}` | {}{parameters} | {access} |", route.path, route.about);
    }
    table
}

fn check(name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, expected).expect("the page can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/{name} is stale; run: UPDATE_DOCS=1 cargo test -p sinew docs");
}

fn errors() -> String {
    let mut page = String::from(
        "# Errors\n\n\
         Every failure of a call is one of these. `error_type` is the word in the standard failure object\n\
         (`{\"status\": \"failure\", \"error_type\": …, \"error_message\": …, \"error_details\": …}`), which travels\n\
         in `_meta.\"sinew/error\"` and in `structuredContent` (of tools without an output schema) at `/mcp`, with the number of `/mcp/v1` as `code` among its details, in `error.data` at the REST endpoint, and is what\n\
         the command line prints with `--output json`. A request that is refused before it became a call, for example one\n\
         that is too large, is a JSON-RPC error at `/mcp` too, with the code of `/mcp/v1` and the object in `error.data`.\n\n\
         | error_type | meaning | at `/mcp` | at `/mcp/v1` | exit code | retry | who can fix it |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for row in TABLE {
        let mcp = match row.mcp {
            McpForm::Protocol(code) => format!("error {code}"),
            McpForm::Result => "result with `isError`".to_owned(),
        };
        let retry = match row.retry {
            Retry::No => "no",
            Retry::Later => "later; nothing was sent",
            Retry::LookFirst => "look first: it may have happened",
        };
        let actor = match row.actor {
            Actor::Caller => "the caller",
            Actor::Operator => "the operator",
            Actor::Device => "the device",
            Actor::Sinew => "Sinew",
        };
        let _ = writeln!(
            page,
            "| `{}` | {} | {mcp} | {} | {} | {retry} | {actor} |",
            row.error_type, row.meaning, row.code, row.exit
        );
    }
    page.push_str(
        "\n## Refusals before a call\n\n\
         What never becomes a call is refused by the endpoint, in its own form, mostly without `error_type`. Outside MCP the\n\
         body is `{\"error\": WORD, \"message\": …}`; a failed call at `/api/v1` is `{\"error\": OBJECT, \"code\": …}`.\n\n\
         | where | HTTP status | in the body | meaning |\n\
         |---|---|---|---|\n\
         | every path | 400 | `bad_host` | The `Host` header is missing, doubled or not a valid name. |\n\
         | every path but `/health` | 401 | `unauthorized` | The token is missing or unknown; `WWW-Authenticate` says which. |\n\
         | every path but `/health` | 401 | `token_expired` | The token is no longer valid; the message says since when. |\n\
         | every path, without TLS where TLS is served | 400 | `https_required` | Use https:// in the address. |\n\
         | every path | 403 | `host_not_allowed`, `origin_not_allowed` | Name the host or the origin in the configuration. |\n\
         | every path | 403 | `forbidden` | The role of the token is too small, or it is a device's. |\n\
         | every path, with [sign-in](sign-in.md) | 403 | `insufficient_scope` | The access token is for other things; sign in again. |\n\
         | every path, with sign-in | 503 | `sign_in_unavailable` | The keys of the issuer cannot be fetched; the token may be good. |\n\
         | `/oauth/…` | 400, 403, 500, 503 | a word of OAuth, `error_description` | What a client asks for its tokens is wrong; [sign-in](sign-in.md) says which is what. |\n\
         | every other path | 404 | `not_found` | Nothing is served there. |\n\
         | every path but `/mcp` | 405 | `method_not_allowed` | `Allow` names the methods that are served. |\n\
         | `/mcp`, `/mcp/v1` | 408 | `timeout` | The body stopped coming for 10 s; at `/api/v1` this is 400 and `InvalidRequest`. |\n\
         | `/mcp` | 400 | error -32020 | A header contradicts the message (`Mcp-Method`, `Mcp-Name`, `MCP-Protocol-Version`). |\n\
         | `/mcp` | 400 | error -32602 | `_meta` lacks what the revision 2026-07-28 wants in every request. |\n\
         | `/mcp` | 404, 400 | error -32600 | The session is unknown or not named; begin again with `initialize`. |\n\
         | `/mcp` | 405, 406, 415 | error -32600 | A method, `Accept` or `Content-Type` that MCP does not have. |\n\
         | `/mcp` | 400 | error -32600 | Another request of the session with the same `id` is still open. |\n\
         | `/mcp` | 503 | error -32603 | Every session has a stream or a call open, so none makes room for a new one. |\n\
         | every path but `/health` | 503 | `busy` | Too many bytes of answers wait for clients to read them. |\n\n\
         ## Failures of the command line\n\n\
         These never leave a gateway. A misspelt flag or command exits with 2. `sinew spec` exits for CI: 0 clean, 1 something\n\
         found or a declared version too small, 2 wrong usage, an unreadable file or a wrong configuration.\n\n\
         | error_type | meaning | exit code |\n|---|---|---|\n",
    );
    for (_, word, exit, meaning) in KINDS {
        let _ = writeln!(page, "| `{word}` | {meaning} | {exit} |");
    }
    page
}

fn config() -> String {
    let mut page = String::from(
        "# Configuration\n\n\
         `sinew serve --config sinew.toml` reads these keys. Each may be left out; a flag of the same name wins over\n\
         the file. An unknown key is refused, with the nearest known one. `sinew config check sinew.toml` says what is\n\
         wrong and in which line; `sinew config schema` prints a JSON Schema for editors.\n\n\
         ```toml\n",
    );
    page.push_str(EXAMPLE);
    page.push_str("```\n");
    table("", &GatewayConfig::fields(), &mut page);
    page.push_str(
        "\n## Keys of older versions\n\n\
         These stood at the top of the file and are still read there.\n\n\
         | key | now |\n|---|---|\n",
    );
    for (key, table) in MOVED {
        let key = key.replace('_', "-");
        let _ = writeln!(page, "| `{key}` | `{key}` in `[{table}]` |");
    }
    page.push_str(
        "\n## Environment\n\n\
         | variable | meaning |\n|---|---|\n\
         | `SINEW_STATE` | state directory, as `--state` |\n\
         | `SINEW_CONFIG` | configuration file, as `--config` |\n\
         | `SINEW_CA` | certificate authorities that client commands trust, as `--ca` |\n\
         | `SINEW_URL` | the gateway client commands talk to, as `--url` |\n\
         | `SINEW_TOKEN` | the token client commands use, and the own token of a gateway that is started, as `--token` |\n\
         | `SINEW_FINGERPRINT` | the key of the certificate client commands trust, as `--fingerprint` |\n\
         | `SINEW_LOG` | log level, as `log.level`: for example `debug` or `info,sinew_boards=trace` |\n\
         | `NO_COLOR` | no colour, as `--no-color` |\n",
    );
    page
}

/// The plain settings of a table, and then the tables inside it.
fn table(path: &str, fields: &[Field], page: &mut String) {
    let (tables, plain): (Vec<&Field>, Vec<&Field>) = fields.iter().partition(|field| !field.inside.is_empty());
    if !plain.is_empty() {
        page.push_str("\n| key | default | values | meaning |\n|---|---|---|---|\n");
    }
    for field in plain {
        let default = match &field.default {
            Value::Null => String::new(),
            value => format!("`{value}`"),
        };
        let _ = writeln!(page, "| `{}` | {default} | {} | {} |", field.name, values(&field.schema), field.about);
    }
    for field in tables {
        let path = format!("{path}{}", field.name);
        let heading = if field.schema["type"] == "array" { format!("[[{path}]]") } else { format!("[{path}]") };
        let _ = write!(page, "\n## `{heading}`\n\n{}\n", field.about);
        table(&format!("{path}."), &field.inside, page);
    }
}

/// What a setting accepts, in a few words.
fn values(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    let range = match (&schema["minimum"], &schema["maximum"]) {
        (low, Value::Number(high)) => format!(" from {low} to {high}"),
        _ => String::new(),
    };
    match &schema["type"] {
        Value::String(one) if one == "array" => format!("list: {}", values(&schema["items"])),
        Value::String(one) => format!("{one}{range}"),
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => String::new(),
    }
}

fn cli() -> String {
    let mut page = String::from(
        "# Command line\n\n\
         `--output json` makes every command print one JSON document (`events --follow` one a line), but for `stdio`, whose\n\
         output is MCP, and `completions`, whose output is a script; a failure is the standard failure object. Exit codes are in [errors.md](errors.md).\n",
    );
    let mut root = command_tree().term_width(100);
    root.build();
    describe(&root, "sinew", &mut page);
    page
}

fn describe(command: &Command, path: &str, page: &mut String) {
    let help = command.clone().render_long_help().to_string();
    let help: String = help.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    let _ = write!(page, "\n## {path}\n\n```text\n{}\n```\n", help.trim());
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        describe(command, &format!("{path} {}", command.get_name()), page);
    }
}
