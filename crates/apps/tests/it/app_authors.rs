//! What app authors get: the rules, and a generated app that follows them.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::path::Path;

use crate::recipes::{Recipe, build_with_aapt2};
use sinew_apps::apk;
use sinew_apps::lint::{code_words, lint};
use sinew_apps::offer::{self, ProtocolNames};
use sinew_apps::rules::{RULES, rules_page};
use sinew_apps::scaffold::{ScaffoldKind, scaffold};
use sinew_tool::finding::{Finding, Findings, Severity};
use sinew_tool::{Tool, Value, json};

/// Lints a source manifest of `com.example.app` with these components.
fn lint_for(target: u32, components: &str, code: Option<&[&str]>) -> Findings {
    let text = format!(
        "<manifest xmlns:android=\"http://schemas.android.com/apk/res/android\" package=\"com.example.app\">\n\
         <uses-sdk android:targetSdkVersion=\"{target}\"/>\n<application>\n{components}\n</application></manifest>"
    );
    let manifest = apk::source_xml::parse_manifest(&text).unwrap();
    let words = ProtocolNames::default();
    lint(&manifest, &offer::offers(&manifest, &words), &words, code)
}

fn lint_components(components: &str) -> Findings {
    lint_for(29, components, Some(&code_words()))
}

/// The rules with findings, and their severities.
fn said(findings: &[Finding]) -> Vec<(&'static str, Severity)> {
    findings.iter().map(|finding| (finding.rule.id, finding.severity)).collect()
}

fn activity(json: &str) -> String {
    format!(
        r#"<activity android:name=".Tools" android:exported="true">
             <intent-filter>
               <action android:name="com.example.mMCP.ACTION_TOOL_ADVERTISE"/><action android:name="com.example.mMCP.ACTION_TOOL_CALL"/>
               <category android:name="android.intent.category.DEFAULT"/>
             </intent-filter>
             <meta-data android:name="mMCP_manifest" android:value='{json}'/>
           </activity>"#
    )
}

/// A manifest with one tool, of which some members are replaced.
fn tool(changes: Value) -> String {
    let mut tool = json!({
        "name": "read_pdf",
        "description": "Reads the text of a PDF file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string", "description": "Where it lies"}}, "required": ["path"]},
    });
    for (key, value) in changes.as_object().unwrap() {
        tool[key.as_str()] = value.clone();
    }
    json!({"instructions": "Reads PDF files", "tools": [tool]}).to_string()
}

fn provider(attributes: &str, filter: &str) -> String {
    format!(
        r#"<provider android:name=".McpToolProvider" {attributes}><intent-filter>{filter}</intent-filter></provider>"#
    )
}

const EXPORTED: &str = r#"android:authorities="com.example.app.mcptool" android:exported="true""#;
const TYPED: &str =
    r#"<action android:name="android.intent.action.VIEW"/><data android:mimeType="application/vnd.mcp.tool"/>"#;

#[test]
fn good_apps_have_no_findings() {
    assert_eq!(said(&lint_components(&activity(&tool(json!({}))))), []);
    assert_eq!(said(&lint_components(&provider(EXPORTED, TYPED))), []);
    assert_eq!(said(&lint_components(r#"<activity android:name=".Main"/>"#)), []);
}

#[test]
fn discovery_mistakes_of_providers_are_found() {
    use Severity::{Error, Warning};
    let hidden = lint_components(&provider(r#"android:authorities="com.example.app.mcptool""#, TYPED));
    assert_eq!(said(&hidden), [("not-exported", Error)]);
    let mistyped = lint_components(&provider(EXPORTED, &TYPED.replace("mcp.tool", "mcp.tools")));
    assert_eq!(said(&mistyped), [("filter", Error)]);
    assert!(mistyped[0].message.contains("application/vnd.mcp.tool"), "{}", mistyped[0].message);
    let viewless = lint_components(&provider(EXPORTED, r#"<data android:mimeType="application/vnd.mcp.tool"/>"#));
    assert_eq!(said(&viewless), [("filter", Error)]);
    let filterless = lint_components(&format!(r#"<provider android:name=".McpToolProvider" {EXPORTED}/>"#));
    assert_eq!(said(&filterless), [("filter", Error)]);
    let foreign = lint_components(&provider(r#"android:authorities="mcptool" android:exported="true""#, TYPED));
    assert_eq!(said(&foreign), [("authority", Warning)]);
    let none = lint_components(&provider(r#"android:exported="true""#, TYPED));
    assert_eq!(said(&none), [("authority-missing", Error)]);
    let twice = lint_components(
        &(provider(EXPORTED, TYPED) + &provider(EXPORTED, TYPED).replace(".McpToolProvider", ".Other")),
    );
    assert_eq!(said(&twice), [("authority-repeated", Error)]);
    let guarded = lint_components(&provider(&format!(r#"{EXPORTED} android:permission="com.example.P""#), TYPED));
    assert_eq!(said(&guarded), [("permission", Warning)]);
    let gradle =
        lint_components(&provider(r#"android:authorities="${applicationId}.mcp" android:exported="true""#, TYPED));
    assert_eq!(said(&gradle), []);
}

#[test]
fn discovery_mistakes_of_activities_are_found() {
    use Severity::{Error, Warning};
    let good = activity(&tool(json!({})));
    let silent = good.replace(r#" android:exported="true""#, "");
    assert_eq!(said(&lint_components(&silent)), [("exported-unsaid", Warning)]);
    assert_eq!(said(&lint_for(31, &silent, Some(&code_words()))), [("exported-unsaid", Error)]);
    let uncalled = good.replace(r#"<action android:name="com.example.mMCP.ACTION_TOOL_CALL"/>"#, "");
    assert_eq!(said(&lint_components(&uncalled)), [("call-action", Warning)]);
    assert_eq!(said(&lint_for(33, &uncalled, Some(&code_words()))), [("call-action", Error)]);
    let unsorted = good.replace(r#"<category android:name="android.intent.category.DEFAULT"/>"#, "");
    assert_eq!(said(&lint_components(&unsorted)), [("category", Warning)]);
    let misspelled = good.replace("ACTION_TOOL_ADVERTISE", "ACTION_TOOLS_ADVERTISE");
    assert_eq!(said(&lint_components(&misspelled)), [("filter", Error)]);
    let off = good.replace(r#"android:exported="true""#, r#"android:exported="true" android:enabled="false""#);
    assert_eq!(said(&lint_components(&off)), [("disabled", Warning)]);
    let bare = good.replace("mMCP_manifest", "mMCP_tools");
    assert_eq!(said(&lint_components(&bare)), [("manifest-missing", Error)]);
    let elsewhere = lint_components(&activity("@string/tools"));
    assert_eq!(said(&elsewhere), [("manifest-elsewhere", Severity::Advice)]);
    assert_eq!(elsewhere[0].place.line(), Some(9), "the line of the meta-data");
    let deaf = r#"<receiver android:name=".R" android:exported="true"><intent-filter><action android:name="com.example.ACTION_MMCP_DISCOVERY"/></intent-filter></receiver>"#;
    assert_eq!(said(&lint_components(deaf)), [("call-action", Error)]);
}

#[test]
fn names_descriptions_and_schemas_are_checked() {
    use Severity::{Advice, Error, Warning};
    let of = |changes: Value| said(&lint_components(&activity(&tool(changes))));
    assert_eq!(of(json!({"name": "{{tool_name}}"})), [("unfilled", Error)]);
    assert_eq!(of(json!({"description": "Reads {{what}} of a file"})), [("unfilled", Error)]);
    assert_eq!(of(json!({"name": "my_tool_name"})), [("name-vague", Warning)]);
    assert_eq!(of(json!({"name": "tool2"})), [("name-vague", Warning)]);
    assert_eq!(of(json!({"name": "read PDF file"})), [("name-form", Warning)]);
    assert_eq!(of(json!({"description": ""})), [("description", Error)]);
    assert_eq!(of(json!({"description": "Reads things"})), [("description", Warning)]);
    assert_eq!(of(json!({"description": "Description of what my tool does"})), [("description", Warning)]);
    assert_eq!(of(json!({"parameters": ["path"]})), [("schema-not-object", Error)]);
    assert_eq!(of(json!({"parameters": {"type": "string"}})), [("schema-not-object", Error)]);
    let required = json!({"parameters": {"type": "object", "properties": {}, "required": ["path"]}});
    assert_eq!(of(required), [("required", Error)]);
    let untyped = json!({"parameters": {"type": "object", "properties": {"path": {"description": "Where"}}}});
    assert_eq!(of(untyped), [("parameter-type", Warning)]);
    for wrong in
        [json!({"type": "str"}), json!({"type": ["string", "nul"]}), json!({"type": "array", "items": {"type": 5}})]
    {
        let mut property = wrong;
        property["description"] = json!("Where");
        let mistyped = json!({"parameters": {"type": "object", "properties": {"path": property}}});
        assert_eq!(of(mistyped), [("parameter-type", Error)]);
    }
    let silent = json!({"parameters": {"type": "object", "properties": {"path": {"type": "string"}}}});
    assert_eq!(of(silent), [("parameter-description", Advice)]);
    let shy = lint_components(&activity(&tool(json!({})).replace("Reads PDF files", "")));
    assert_eq!(said(&shy), [("instructions", Advice)]);
}

#[test]
fn the_json_itself_is_checked() {
    use Severity::Error;
    let of = |json: &str| said(&lint_components(&activity(json)));
    assert_eq!(of("{"), [("json-broken", Error)]);
    assert_eq!(of("[]"), [("manifest-shape", Error)]);
    assert_eq!(of("{}"), [("manifest-shape", Error)]);
    assert_eq!(of(r#"{"tools": [{"description": "nameless"}]}"#), [("tool-shape", Error)]);
    assert_eq!(of(r#"{"tools": [], "protocolVersion": "2.0"}"#), [("protocol-version", Error)]);
    let compatible = tool(json!({})).replacen('{', r#"{"protocolVersion": "1.4","#, 1);
    assert_eq!(of(&compatible), []);
    let broken = tool(json!({"description": "Reads the text\\nof a PDF"}));
    assert_eq!(of(&broken.replace("\\\\n", "\\n")), [("json-escapes", Severity::Warning)]);
    assert_eq!(of(&format!("{{\"x\": \"{}\"}}", "y".repeat(1_100_000))), [("manifest-size", Error)]);
    let mut two: Value = serde_json::from_str(&tool(json!({}))).unwrap();
    let first = two["tools"][0].clone();
    two["tools"].as_array_mut().unwrap().push(first);
    assert_eq!(of(&two.to_string()), [("name-repeated", Severity::Warning)]);
    let many: Vec<Value> = (0..130)
        .map(|index| {
            let mut one = two["tools"][0].clone();
            one["name"] = json!(format!("read_pdf_{index}x"));
            one
        })
        .collect();
    two["tools"] = json!(many);
    assert_eq!(of(&two.to_string()), [("too-many", Severity::Warning)]);
}

#[test]
fn code_is_searched_for_the_strings_of_its_protocol() {
    use Severity::{Advice, Error, Warning};
    let of = |code: Option<&[&str]>| said(&lint_for(29, &provider(EXPORTED, TYPED), code));
    assert_eq!(of(None), [("caller-check", Advice)]);
    let words = ["get_tool_info", "execute_tool", "tool_arguments", "error_message"];
    assert_eq!(of(Some(&words)), [("caller-check", Warning)]);
    assert_eq!(of(Some(&[&words[..], &["getCallingUid"]].concat())), []);
    assert_eq!(of(Some(&["getCallingUid", "execute_tool"])), [("protocol-words", Error)]);
    assert_eq!(of(Some(&[&words[..3], &["getCallingUid"]].concat())), [("error-message", Warning)]);
}

#[test]
fn every_rule_of_the_lint_is_tested() {
    let text = include_str!("app_authors.rs").to_owned() + include_str!("apk.rs");
    // Those after it are about apps that are installed; the tests of these are in `offered.rs` and beside the code.
    for known in RULES.iter().take_while(|known| known.id != "apk") {
        assert!(text.contains(&format!("\"{}\"", known.id)), "{} is not tested", known.id);
    }
}

#[test]
fn the_page_of_rules_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/app-rules.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, rules_page()).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(found == rules_page(), "docs/app-rules.md is stale; run: UPDATE_DOCS=1 cargo test -p sinew-apps");
}

/// Tools whose text is difficult for XML, the packager and Kotlin.
fn hard_tools() -> Vec<Tool> {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "It's \"here\" & <there>\\n\n$HOME ${x} @a ?b \u{e9}日本"},
            "$ref$": {"type": "integer", "description": "a number", "enum": [1, 2]},
        },
        "required": ["path"],
    });
    vec![
        Tool::new("read_file", "Reads a file: it's \"quoted\", \\ and\nbroken 'twice'", schema.clone()),
        Tool::new("read-file", "Reads another file than the first", schema),
        Tool::new("return", "Gives back what was lent to somebody", json!({"type": "object"})),
    ]
}

#[tokio::test]
async fn tools_survive_scaffolding_and_packaging() {
    let words = ProtocolNames::default();
    let tools = hard_tools();
    let drafts = scaffold(ScaffoldKind::Activity, "com.example.in.app", "It's \"mine\"", &tools, &words).unwrap();
    let (manifest, found) = offer::read(&Recipe::new(&*drafts[0].text).build(), &words).await.unwrap();
    assert_eq!(found.findings, []);
    assert_eq!(found.instructions.as_deref(), Some("It's \"mine\""));
    let read: Vec<Tool> = found.tools.iter().map(|tool| tool.tool.clone()).collect();
    assert_eq!(read, tools);
    let (_, other) = offer::read(&build_with_aapt2(&drafts[0].text), &words).await.unwrap();
    assert_eq!(other.tools, found.tools);
    // The source says the same as the APK.
    let source = apk::source_xml::parse_manifest(&drafts[0].text).unwrap();
    assert_eq!(offer::offers(&source, &words).tools, found.tools);
    let findings = lint(&manifest, &found, &words, Some(&code_words()));
    assert!(findings.iter().all(|finding| finding.severity == Severity::Advice), "{findings:?}");
}

#[tokio::test]
async fn a_scaffolded_provider_is_found_under_an_authority_for_each_tool() {
    let words = ProtocolNames::default();
    let drafts = scaffold(ScaffoldKind::Provider, "com.example.app", "", &hard_tools(), &words).unwrap();
    let (manifest, found) = offer::read(&Recipe::new(&*drafts[0].text).build(), &words).await.unwrap();
    let authorities: Vec<&str> = found.queries.iter().filter_map(|ask| ask.authority.as_deref()).collect();
    assert_eq!(
        authorities,
        ["com.example.app.mcp.readfile", "com.example.app.mcp.readfile2", "com.example.app.mcp.return"]
    );
    assert_eq!(said(&lint(&manifest, &found, &words, Some(&code_words()))), []);
}

#[test]
fn generated_code_contains_the_strings_of_its_protocol() {
    let words = ProtocolNames::default();
    let code = |shape| scaffold(shape, "com.example.in.app", "x", &hard_tools(), &words).unwrap().remove(1).text;
    let (intent, provider) = (code(ScaffoldKind::Activity), code(ScaffoldKind::Provider));
    for part in [
        "\"tool_name\"",
        "\"parameters\"",
        "\"result\"",
        "callingPackage",
        "package com.example.`in`.app",
        "returnTool(parameters)",
    ] {
        assert!(intent.contains(part), "{part}");
    }
    for part in [
        "\"get_tool_info\"",
        "\"execute_tool\"",
        "\"tool_arguments\"",
        "\"error_message\"",
        "getCallingUid",
        "class ReadFile2Provider",
    ] {
        assert!(provider.contains(part), "{part}");
    }
    for code in [intent, provider] {
        assert!(
            !code.contains('@')
                || !code.contains("@PACKAGE@") && !code.contains("@METHODS@") && !code.contains("@CLASSES@")
        );
        assert!(!code.contains("\"$HOME") && code.contains("${'$'}HOME"));
    }
}

#[test]
fn a_scaffold_needs_tools_and_a_package() {
    let words = ProtocolNames::default();
    assert!(scaffold(ScaffoldKind::Activity, "com.example.app", "", &[], &words).is_err());
    for package in ["app", "com..app", "com.1app", "com.example.app\"", "", ".a.b", "com.exämple"] {
        assert!(scaffold(ScaffoldKind::Activity, package, "", &hard_tools(), &words).is_err(), "{package}");
    }
}
