//! `docs/limits.md`: every limit with its reason, printed from the settings and from the constants in the sources.
//! `UPDATE_DOCS=1 cargo test -p sinew --test it limits` rewrites it.
//!
//! Every constant that is a number, a time or a set of limits is a limit, except for those named in [`NOT_LIMITS`]; its
//! doc comment is the reason, and that of the field for defaults. A limit without a reason fails the test, and so does a
//! crate that is neither shown nor named as one without limits.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use sinew_compose::GatewayConfig;
use sinew_tool::settings::{Field, Setting};

/// What the program itself uses.
const CRATES: &[&str] = &[
    "tool", "schema", "mqtt", "wire", "spec", "policy", "gateway", "front", "console", "boards", "phones", "apps",
    "compose", "cli", "fetch", "serial", "servers", "things", "steps", "routines", "cluster", "presence", "signin",
    "runner",
];

/// Data types only, and what bounds nothing foreign: the virtual devices and the benchmark.
const CRATES_WITHOUT_LIMITS: &[&str] = &["api", "sim", "bench"];

/// Structs whose fields are limits.
const SETS: &[&str] = &["Cost", "Limits", "Timing"];

/// Numbers that limit nothing: of formats, of layouts, of algorithms.
const NOT_LIMITS: &[&str] = &[
    "tool/slots.rs EVICTED",
    "tool/finding/place.rs STEP",
    "tool/finding/report/people.rs SUMMARY_FROM",
    "tool/finding/report/people.rs WIDTH",
    "wire/device/pages.rs MARGIN",
    "wire/workarounds.rs INVALID_REQUEST",
    "servers/mdns.rs A",
    "servers/mdns.rs PTR",
    "servers/mdns.rs TXT",
    "servers/mdns.rs AAAA",
    "servers/mdns.rs SRV",
    "servers/mdns.rs INTERNET",
    "spec/compare/keywords.rs FEW",
    "spec/lint/schemas.rs APART",
    "spec/lock.rs FORM",
    "policy/hours.rs MINUTES_OF_A_DAY",
    "runner/mqtt/link.rs SUBSCRIPTION_ID",
    "runner/mqtt/link.rs PRESENCE_ID",
    "signin/grants.rs DAY",
    "signin/grants.rs FORMAT",
    "signin/grants.rs SECOND",
    "signin/jwt.rs NOW",
    "gateway/access/secrets.rs ANY",
    "gateway/held.rs DIGEST",
    "gateway/names.rs COMPUTED",
    "gateway/names.rs EARLIER_MAX_LENGTH",
    "gateway/store/chain.rs VERSION",
    "gateway/store/format.rs CURRENT",
    "front/message_memory.rs VALUE",
    "boards/frames.rs HEADER",
    "boards/queue.rs SMALL",
    "boards/socket.rs LARGE",
    "phones/adb/server.rs DEFAULT_PORT",
    "phones/agent/companion.rs PROTOCOL",
    "phones/agent/hello.rs PROTOCOL",
    "phones/agent/tree.rs RUN",
    "phones/control/notifications.rs FLAG_ONGOING",
    "phones/image/jpeg/mod.rs WORTH_SHARING",
    "phones/tools/gesture.rs GAP",
    "phones/tools/gesture.rs TAP",
    "phones/tools/get_screen.rs DEFAULT_SIDE",
    "apps/lint/manifest.rs EXPORTED_REQUIRED",
    "apps/lint/manifest.rs MATCH_REQUIRED",
    "apps/lint/tools.rs MIN_WORDS",
    "mqtt/client.rs UNSUPPORTED",
    "cluster/records.rs VERSION",
    "compose/log.rs SECOND",
    "cli/commands/doctor/mod.rs INDENT",
    "cli/commands/spec/patch.rs CONTEXT",
    "cli/commands/story.rs LINES",
    "cli/terminal/json.rs COMMA",
    "cli/terminal/mod.rs FACT",
    "cli/terminal/mod.rs MAX_JSON_LINE",
    "cli/terminal/mod.rs MIN_TERMINAL",
    "cli/terminal/table.rs BELOW",
    "cli/terminal/table.rs GAP",
    "cli/terminal/table.rs MIN_TEXT",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `file` is a path like `boards/hub.rs`.
fn is_limit(file: &str, name: &str, value: &str) -> bool {
    let begins = ["MAX_", "MOST_", "LONGEST", "DEEPEST"].iter().any(|start| name.starts_with(start));
    let ends = ["_BYTES", "_TIME", "_TIMEOUT"].iter().any(|end| name.ends_with(end));
    // The files of apps are full of offsets and marks.
    let is_of_format = value.starts_with("0x") || value.ends_with("::MAX") || file.starts_with("apps/apk/");
    let is_known = NOT_LIMITS.contains(&format!("{file} {name}").as_str());
    !is_known && (begins || ends || !is_of_format)
}

struct Limit {
    file: String,
    name: String,
    value: String,
    reason: String,
}

/// The limits of one source file of a crate. A constant without a comment shares that of the constant right above it.
fn limits_of(folder: &str, file: &str, text: &str) -> Vec<Limit> {
    // Tests come last in a file.
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let (mut found, mut comment, mut above) = (defaults_of(file, text), String::new(), String::new());
    for line in &statements(text) {
        if let Some(words) = line.strip_prefix("///") {
            let space = if comment.is_empty() { "" } else { " " };
            let _ = write!(comment, "{space}{}", words.trim());
            continue;
        }
        match visible(line).strip_prefix("const ").and_then(constant) {
            Some((name, value)) => {
                let reason = if comment.is_empty() { above.clone() } else { comment.clone() };
                above.clone_from(&reason);
                if is_limit(&format!("{folder}/{file}"), name, value) {
                    found.push(Limit { file: file.to_owned(), name: name.to_owned(), value: shown(value), reason });
                }
            }
            // An attribute or a plain comment may stand between.
            None if line.starts_with("//") || line.starts_with("#[") => continue,
            None => above.clear(),
        }
        comment.clear();
    }
    found
}

/// The lines of a source, each constant on one.
fn statements(text: &str) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim) {
        let is_open = |line: &String| {
            let rest = visible(line).strip_prefix("const ");
            rest.is_some_and(|rest| !rest.starts_with("fn ") && !line.ends_with(';'))
        };
        match statements.last_mut().filter(|last| is_open(last)) {
            Some(last) => last.extend([" ", line]),
            None => statements.push(line.to_owned()),
        }
    }
    statements
}

fn visible(line: &str) -> &str {
    line.trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ").trim_start_matches("pub ")
}

/// The default values of a set of limits, with the comments of its fields.
fn defaults_of(file: &str, text: &str) -> Vec<Limit> {
    let block = |start: String| text.split_once(&start)?.1.split_once("\n}").map(|(inside, _)| inside);
    let mut found = Vec::new();
    for set in SETS {
        let (Some(fields), Some(values)) =
            (block(format!("struct {set} {{\n")), block(format!("impl Default for {set} {{\n")))
        else {
            continue;
        };
        let mut reason = String::new();
        let mut is_new = true;
        for line in fields.lines().map(str::trim) {
            if let Some(words) = line.strip_prefix("///") {
                reason = if is_new { words.trim().to_owned() } else { format!("{reason} {}", words.trim()) };
                is_new = false;
            } else if let Some((name, _)) = visible(line).split_once(": ") {
                is_new = true;
                let value = values.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
                let value = shown(value.unwrap_or_default().trim_end_matches(','));
                let name = format!("{set}.{name}");
                found.push(Limit { file: file.to_owned(), name, value, reason: reason.clone() });
            }
        }
    }
    found
}

/// Name and value of a constant that is a number, a time or a set of limits.
fn constant(rest: &str) -> Option<(&str, &str)> {
    let (name, rest) = rest.split_once(": ")?;
    let (kind, value) = rest.split_once(" = ")?;
    let is_known =
        ["usize", "u64", "u32", "u16", "i64", "Duration", "(u32, u32)"].contains(&kind) || SETS.contains(&kind);
    is_known.then_some((name, value.strip_suffix(';')?))
}

/// `4 << 20` as `4 MiB`, `Duration::from_secs(10)` as `10 s`, `20_000` as `20,000`; anything else as it is written.
fn shown(value: &str) -> String {
    if let Some((_, fields)) = value.strip_suffix(" }").and_then(|set| set.split_once(" { ")) {
        let fields = fields.trim_end_matches(',').split(", ").filter_map(|field| field.split_once(": "));
        return fields.map(|(name, value)| format!("`{name}` {}", shown(value))).collect::<Vec<_>>().join("; ");
    }
    let number = |text: &str| text.replace('_', "").parse::<u64>().ok();
    let times = [("secs", "s"), ("millis", "ms"), ("micros", "µs")];
    for (unit, short) in times {
        let inner = value.strip_prefix("Duration::from_").and_then(|rest| rest.strip_prefix(unit));
        let inner = inner.and_then(|rest| rest.strip_prefix('(')).and_then(|rest| rest.strip_suffix(')'));
        if let Some(amount) = inner.map(|text| text.split(" * ").map(number).product::<Option<u64>>()) {
            return amount.map_or_else(|| format!("`{value}`"), |amount| format!("{} {short}", grouped(amount)));
        }
    }
    if let Some((amount, shift)) = value.split_once(" << ")
        && let (Some(amount), Some(unit)) =
            (number(amount), [("10", "KiB"), ("20", "MiB")].iter().find(|(known, _)| *known == shift))
    {
        return format!("{} {}", grouped(amount), unit.1);
    }
    number(value).map_or_else(|| format!("`{value}`"), grouped)
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && path.file_stem() != Some("tests".as_ref())
        {
            files.push(path);
        }
    }
}

fn settings(path: &str, fields: &[Field], page: &mut String) {
    for field in fields {
        let key = if path.is_empty() { field.name.to_string() } else { format!("{path}.{}", field.name) };
        settings(&key, &field.inside, page);
        let least = field.schema.get("minimum").and_then(serde_json::Value::as_u64);
        let most = field.schema.get("maximum").and_then(serde_json::Value::as_u64);
        if let (true, Some(least), Some(most)) = (field.inside.is_empty() && field.default.is_number(), least, most) {
            let _ = writeln!(
                page,
                "| `{key}` | {} | {} to {} | {} |",
                field.default,
                grouped(least),
                grouped(most),
                field.about
            );
        }
    }
}

fn page() -> String {
    let mut page = String::from(
        "# Limits\n\n\
         <!-- Printed from the code; a test checks that it is fresh. -->\n\n\
         ## Limits that you can set\n\n\
         Keys of `sinew.toml`; times are in seconds. [config.md](config.md) has all settings.\n\n\
         | key | default | range | meaning |\n|---|---|---|---|\n",
    );
    settings("", &GatewayConfig::fields(), &mut page);
    page.push_str("\n## Fixed limits\n\nConstants in the sources, with the reason that stands beside them.\n");
    for name in CRATES {
        let folder = root().join("crates").join(name).join("src");
        let mut files = Vec::new();
        sources(&folder, &mut files);
        let limits: Vec<Limit> = files
            .iter()
            .flat_map(|path| {
                let file = path.strip_prefix(&folder).expect("inside").display().to_string();
                limits_of(name, &file, &std::fs::read_to_string(path).expect("a text"))
            })
            .collect();
        if limits.is_empty() {
            continue;
        }
        let _ = write!(page, "\n### `crates/{name}`\n\n| limit | value | reason |\n|---|---|---|\n");
        for Limit { file, name: limit, value, reason } in limits {
            assert!(!reason.is_empty(), "crates/{name}/src/{file}: `{limit}` has no comment that says why");
            let _ = writeln!(page, "| `{limit}` in {file} | {value} | {} |", reason.replace('|', "\\|"));
        }
    }
    page
}

#[test]
fn the_page_of_limits_is_fresh_and_every_limit_has_a_reason() {
    let path = root().join("docs/limits.md");
    let expected = page();
    assert!(expected.lines().count() > 100, "the limits were not found");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).expect("written");
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(found == expected, "docs/limits.md is stale; run: UPDATE_DOCS=1 cargo test -p sinew --test it limits");
}

#[test]
fn no_crate_is_forgotten() {
    let folders = std::fs::read_dir(root().join("crates")).expect("a folder").flatten();
    let folders = folders.filter(|entry| entry.path().join("Cargo.toml").exists());
    let mut found: Vec<String> = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let mut known: Vec<&str> = [CRATES, CRATES_WITHOUT_LIMITS].concat();
    found.sort();
    known.sort_unstable();
    assert_eq!(found, known);
}

#[test]
fn sets_of_limits_are_found_in_constants_and_defaults() {
    let text = "/// Why.\nconst ROOM: Cost =\n    Cost { bytes: 32 << 10, time: Duration::from_secs(5) };\n\
                pub struct Limits {\n    /// Pages.\n    pub pages: usize,\n    pub more: u32,\n}\n\n\
                impl Default for Limits {\n    fn default() -> Limits {\n        Limits {\n            pages: 64,\n            \
                more: 1_000,\n        }\n    }\n}\n";
    let found: Vec<[String; 3]> =
        limits_of("tool", "x.rs", text).into_iter().map(|limit| [limit.name, limit.value, limit.reason]).collect();
    let expected = [
        ["Limits.pages", "64", "Pages."],
        ["Limits.more", "1,000", "Pages."],
        ["ROOM", "`bytes` 32 KiB; `time` 5 s", "Why."],
    ];
    assert_eq!(found, expected);
}

#[test]
fn values_are_shown_as_people_write_them() {
    for (value, expected) in [
        ("4 << 20", "4 MiB"),
        ("96 << 10", "96 KiB"),
        ("20_000", "20,000"),
        ("0xffff", "`0xffff`"),
        ("Duration::from_secs(30 * 86_400)", "2,592,000 s"),
        ("Duration::from_millis(250)", "250 ms"),
        ("4 * MAX_MANIFEST", "`4 * MAX_MANIFEST`"),
    ] {
        assert_eq!(shown(value), expected, "{value}");
    }
}

#[test]
fn constants_share_the_comment_of_the_one_above_them() {
    let text = "/// Why.\nconst MAX_A: usize = 1;\nconst MAX_B: usize = 2;\n\nconst MAX_C: usize = 3;\nconst CODE: u8 = 4;\nconst MARK: u32 = 0x1;\n";
    let reasons: Vec<String> = limits_of("tool", "x.rs", text).into_iter().map(|limit| limit.reason).collect();
    assert_eq!(reasons, ["Why.", "Why.", ""]);
}

#[test]
fn what_is_no_limit_still_exists() {
    for entry in NOT_LIMITS {
        let (file, name) = entry.split_once(' ').expect("a file and a name");
        let (folder, file) = file.split_once('/').expect("a crate and a file");
        let path = root().join("crates").join(folder).join("src").join(file);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(text.contains(&format!("const {name}: ")), "{} has no `{name}`", path.display());
    }
}
