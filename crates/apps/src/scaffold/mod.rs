//! Generates an app: a manifest and code that offer given tools.
//!
//! The Kotlin templates are beside this file, with `@MARKS@` for the parts that vary. The code checks its caller and
//! its arguments and reports failures; the author writes what the tools do.

use std::fmt::Write as _;

use sinew_tool::{Manifest, ProtocolVersion, Tool};

use super::offer::ProtocolNames;

const ACTIVITY: &str = include_str!("activity.kt");
const PROVIDER: &str = include_str!("provider.kt");
const ARGUMENTS: &str = include_str!("arguments.kt");
const KEYWORDS: &[&str] = &[
    "as",
    "break",
    "class",
    "continue",
    "do",
    "else",
    "false",
    "for",
    "fun",
    "if",
    "in",
    "interface",
    "is",
    "null",
    "object",
    "package",
    "return",
    "super",
    "this",
    "throw",
    "true",
    "try",
    "typealias",
    "typeof",
    "val",
    "var",
    "when",
    "while",
];

/// The protocol of the generated app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaffoldKind {
    /// An activity with its tools in the meta-data.
    Activity,
    /// A content provider for each tool.
    Provider,
}

/// A generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaffoldFile {
    pub name: &'static str,
    pub text: String,
}

/// Generates the manifest and the code. `instructions` describe the app to models.
pub fn scaffold(
    shape: ScaffoldKind,
    package: &str,
    instructions: &str,
    tools: &[Tool],
    names: &ProtocolNames,
) -> Result<Vec<ScaffoldFile>, String> {
    if !is_package(package) {
        return Err(format!(
            "`{package}` is not a valid package name; use two or more parts of letters and digits, joined by dots, such as com.example.notes"
        ));
    }
    if tools.is_empty() {
        return Err("there are no tools to generate code for".to_owned());
    }
    let tools = named(tools);
    let (component, code) = match shape {
        ScaffoldKind::Activity => (activity(instructions, &tools, names), activity_code(package, &tools, names)),
        ScaffoldKind::Provider => (providers(package, &tools, names), provider_code(package, &tools, names)),
    };
    let manifest = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
         <manifest xmlns:android=\"http://schemas.android.com/apk/res/android\"\n    package=\"{package}\">\n\n\
         \x20   <application>\n{component}    </application>\n</manifest>\n"
    );
    let name = if shape == ScaffoldKind::Activity { "ToolActivity.kt" } else { "McpToolProvider.kt" };
    Ok(vec![ScaffoldFile { name: "AndroidManifest.xml", text: manifest }, ScaffoldFile { name, text: code }])
}

fn is_package(package: &str) -> bool {
    let word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphabetic())
            && word.chars().all(|one| one.is_ascii_alphanumeric() || one == '_')
    };
    package.len() <= 200 && package.contains('.') && package.split('.').all(word)
}

/// A tool with a unique name that is valid in Kotlin, such as `ReadFile`.
struct NamedTool<'a> {
    tool: &'a Tool,
    word: String,
}

fn named(tools: &[Tool]) -> Vec<NamedTool<'_>> {
    let mut named: Vec<NamedTool<'_>> = Vec::new();
    for tool in tools {
        let parts = tool.name.split(|one: char| !one.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
        let mut word: String = parts.map(|part| part[..1].to_ascii_uppercase() + &part[1..]).collect();
        if !word.starts_with(|first: char| first.is_ascii_alphabetic()) {
            word.insert_str(0, "Tool");
        }
        let taken = |word: &str| named.iter().any(|other| other.word.eq_ignore_ascii_case(word));
        let free = (2..).map(|number| format!("{word}{number}")).find(|word| !taken(word));
        let word = if taken(&word) { free.unwrap_or_default() } else { word };
        named.push(NamedTool { tool, word });
    }
    named
}

fn activity(instructions: &str, tools: &[NamedTool<'_>], names: &ProtocolNames) -> String {
    let tools = tools.iter().map(|named| named.tool.clone()).collect();
    let manifest =
        Manifest { instructions: instructions.to_owned(), tools, protocol_version: ProtocolVersion::CURRENT };
    let json = serde_json::to_string_pretty(&manifest.to_json()).unwrap_or_default();
    let ProtocolNames { advertise, call, manifest, .. } = names;
    format!(
        r#"        <!-- Without configChanges, Android would restart a call when the screen is rotated. -->
        <activity
            android:name=".ToolActivity"
            android:configChanges="keyboard|keyboardHidden|orientation|screenLayout|screenSize|smallestScreenSize|uiMode"
            android:excludeFromRecents="true"
            android:exported="true"
            android:theme="@android:style/Theme.Translucent.NoTitleBar">
            <intent-filter>
                <action android:name="{advertise}" />
                <action android:name="{call}" />
                <category android:name="android.intent.category.DEFAULT" />
            </intent-filter>
            <!-- The packager removes one of two backslashes, so each is written twice. -->
            <meta-data
                android:name="{manifest}"
                android:value='{}' />
        </activity>
"#,
        attribute(&json)
    )
}

/// Escapes a text for an attribute in single quotes, so that XML parser and packager restore it.
fn attribute(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 32);
    for character in text.chars() {
        match character {
            '\\' => safe.push_str("\\\\"),
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            // The packager removes an apostrophe without a backslash.
            '\'' => safe.push_str("\\&apos;"),
            '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(safe, "\\\\u{:04x}", u32::from(character));
            }
            other => safe.push(other),
        }
    }
    safe
}

fn providers(package: &str, tools: &[NamedTool<'_>], names: &ProtocolNames) -> String {
    let mut text = String::new();
    for NamedTool { word, .. } in tools {
        let _ = write!(
            text,
            r#"        <provider
            android:name=".{word}Provider"
            android:authorities="{package}.mcp.{}"
            android:exported="true">
            <intent-filter>
                <action android:name="android.intent.action.VIEW" />
                <data android:mimeType="{}" />
            </intent-filter>
        </provider>
"#,
            word.to_ascii_lowercase(),
            names.provider_type
        );
    }
    text
}

fn activity_code(package: &str, tools: &[NamedTool<'_>], names: &ProtocolNames) -> String {
    let (mut branches, mut methods, mut schemas) = (String::new(), String::new(), String::new());
    for NamedTool { tool, word } in tools {
        let name = literal(&tool.name);
        let method = word[..1].to_ascii_lowercase() + &word[1..];
        let method = if KEYWORDS.contains(&method.as_str()) { format!("{method}Tool") } else { method };
        let _ = writeln!(branches, "            {name} -> {method}(parameters)");
        let _ = writeln!(
            methods,
            "    private fun {method}(parameters: JSONObject): String {{\n        throw ToolFailure({})\n    }}\n",
            not_implemented(tool)
        );
        let _ =
            writeln!(schemas, "            {name} to JSONObject(\n{},\n            ),", raw(tool, "                "));
    }
    let code = ACTIVITY.replace("@PACKAGE@", &kotlin_package(package)).replace("@CALL@", &names.call);
    let code = code.replace("@BRANCHES@\n", &branches).replace("@METHODS@\n", &methods);
    code.replace("@SCHEMAS@\n", &schemas) + ARGUMENTS
}

fn provider_code(package: &str, tools: &[NamedTool<'_>], names: &ProtocolNames) -> String {
    let mut classes = String::new();
    for NamedTool { tool, word } in tools {
        let _ = writeln!(
            classes,
            "class {word}Provider : McpToolProvider(\n    name = {},\n    description = {},\n    schema =\n{},\n) {{\n    \
             override fun run(arguments: JSONObject): String {{\n        throw ToolFailure({})\n    }}\n}}\n",
            literal(&tool.name),
            literal(tool.description.trim()),
            raw(tool, "        "),
            not_implemented(tool)
        );
    }
    let code = PROVIDER.replace("@PACKAGE@", &kotlin_package(package)).replace("@TYPE@", &names.provider_type);
    code.replace("@CLASSES@\n", &classes) + ARGUMENTS
}

fn not_implemented(tool: &Tool) -> String {
    literal(&format!("{} is not implemented yet", tool.name))
}

fn kotlin_package(package: &str) -> String {
    let names =
        package.split('.').map(|word| if KEYWORDS.contains(&word) { format!("`{word}`") } else { word.to_owned() });
    names.collect::<Vec<_>>().join(".")
}

/// A Kotlin string on one line.
fn literal(text: &str) -> String {
    let mut safe = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' | '$' => safe.extend(['\\', character]),
            '\n' => safe.push_str("\\n"),
            other if other.is_control() => {
                let _ = write!(safe, "\\u{:04x}", u32::from(other));
            }
            other => safe.push(other),
        }
    }
    safe.push('"');
    safe
}

/// The schema as a raw Kotlin string. JSON never has three quotes in a row; a dollar would start a template.
fn raw(tool: &Tool, indent: &str) -> String {
    let json = serde_json::to_string_pretty(&*tool.input_schema).unwrap_or_default().replace('$', "${'$'}");
    let mut lines: Vec<String> = json.lines().map(|line| format!("{indent}{line}")).collect();
    if let Some(first) = lines.first_mut() {
        first.insert_str(indent.len(), "\"\"\"");
    }
    lines.join("\n") + "\"\"\""
}
