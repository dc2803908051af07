//! The rules of the portable subset: what each is for, where it was reported, and an example.
//!
//! `docs/clients.md` is printed from this table, and the tests apply every rule to its example.

/// A rule of the portable subset.
pub struct PortableRule {
    /// What a device may write.
    pub given: &'static str,
    /// What is listed.
    pub listed: &'static str,
    /// The client or API that refuses it, or reads it wrongly.
    pub refused_by: &'static str,
    /// The public thread that shows it: `owner/repository#number`.
    pub source: &'static str,
    /// What is reported as simplified where the rule applied: keywords, or a few words.
    pub reported: &'static [&'static str],
    /// Whether the listed schema has another shape. Otherwise it says the same, where a caller needs it as text.
    pub changes_shape: bool,
    /// An input schema with it, as JSON.
    pub example: &'static str,
    /// The listed schema of the example.
    pub result: &'static str,
}

impl PortableRule {
    /// The rule that something was simplified for.
    pub(super) fn of(reported: &str) -> &'static PortableRule {
        RULES.iter().find(|rule| rule.reported.contains(&reported)).unwrap_or(&OTHER_KEYWORDS)
    }
}

/// 700 characters.
macro_rules! long_pattern {
    () => {
        long_pattern!(long_pattern!("abcdefg"))
    };
    ($text:expr) => {
        concat!($text, $text, $text, $text, $text, $text, $text, $text, $text, $text)
    };
}

/// 513 texts in quotes.
macro_rules! many_texts {
    ($quote:expr) => {
        concat!(
            $quote, "on", $quote, many_texts!($quote, "a"), many_texts!($quote, "b"), many_texts!($quote, "c"),
            many_texts!($quote, "d"), many_texts!($quote, "e"), many_texts!($quote, "f"), many_texts!($quote, "g"),
            many_texts!($quote, "h")
        )
    };
    ($quote:expr, $first:expr) => {
        concat!(
            many_texts!($quote, $first, "a"), many_texts!($quote, $first, "b"), many_texts!($quote, $first, "c"),
            many_texts!($quote, $first, "d"), many_texts!($quote, $first, "e"), many_texts!($quote, $first, "f"),
            many_texts!($quote, $first, "g"), many_texts!($quote, $first, "h")
        )
    };
    ($quote:expr, $first:expr, $second:expr) => {
        many_texts!($quote, $first, $second, "a", "b", "c", "d", "e", "f", "g", "h")
    };
    ($quote:expr, $first:expr, $second:expr, $($third:expr),+) => {
        concat!($(", ", $quote, $first, $second, $third, $quote),+)
    };
}

/// Every rule.
pub const RULES: &[PortableRule] = &[
    PortableRule {
        given: "no `properties` at the root",
        listed: "`\"properties\": {}`; the root is always `\"type\": \"object\"`",
        refused_by: "OpenAI",
        source: "openai/openai-agents-python#449",
        reported: &[],
        changes_shape: false,
        example: r#"{"type": "object"}"#,
        result: r#"{"type": "object", "properties": {}}"#,
    },
    PortableRule {
        given: "`anyOf`, `oneOf` at the root",
        listed: "all members as `properties`; the rule is in the tool's description",
        refused_by: "Anthropic",
        source: "makenotion/notion-mcp-server#340",
        reported: &["alternatives at the root"],
        changes_shape: true,
        example: r#"{"type": "object", "anyOf": [
            {"properties": {"text": {"type": "string"}}, "required": ["text"]},
            {"properties": {"url": {"type": "string"}}, "required": ["url"]}]}"#,
        result: r#"{"type": "object", "properties": {"text": {"type": "string"}, "url": {"type": "string"}}}"#,
    },
    PortableRule {
        given: "`allOf`, `if`, `then`, `else`",
        listed: "`allOf` is merged; the others are written as text; every argument that a part of the root names is listed",
        refused_by: "Claude Code (drops the tool)",
        source: "anthropics/claude-code#95504",
        reported: &["if", "arguments of parts"],
        changes_shape: true,
        example: r#"{"type": "object", "allOf": [
            {"properties": {"a": {"type": "integer"}}}, {"if": {"required": ["a"]}, "then": {"required": ["b"]}}]}"#,
        result: r#"{"type": "object", "properties": {
            "a": {"type": "integer"}, "b": {"type": "string", "description": "Any JSON value."}}}"#,
    },
    PortableRule {
        given: "`$ref` and `$defs`",
        listed: "written out; recursion, and what is deeper than 10 levels or beyond 2,000 parts or 16 KiB more than the original, is cut, with text that says so; a reference to another document is only mentioned",
        refused_by: "Claude Code, Cursor, Kiro",
        source: "anthropics/claude-code#76881",
        reported: &["$ref", "recursion", "nested too deep", "more than 2,000 parts", "more text than is listed"],
        changes_shape: true,
        example: r##"{"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"$ref": "#/$defs/m"}},
            "$defs": {"n": {"type": "number"}, "m": {"type": "array", "items": {"$ref": "#/$defs/m"}}}}"##,
        result: r#"{"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "array", "items":
            {"type": "array", "items": {"type": "string", "description": "Any JSON value."},
            "description": "Repeats the form of `b`."}}}}"#,
    },
    PortableRule {
        given: "an object without members, below the root",
        listed: "a member `any_name` that stands for all; `unused` where none is allowed",
        refused_by: "Gemini",
        source: "MarkusPfundstein/mcp-obsidian#21",
        reported: &["no members"],
        changes_shape: true,
        example: r#"{"type": "object", "properties": {"a": {"type": "object"}}}"#,
        result: r#"{"type": "object", "properties": {"a": {"type": "object", "properties": {
            "any_name": {"type": "string", "description": "A placeholder: give members by their own names instead."}}}}}"#,
    },
    PortableRule {
        given: "an array without `items`",
        listed: "`items` of type string, \"Any JSON value.\"",
        refused_by: "VS Code, Gemini",
        source: "microsoft/vscode-copilot-release#7891",
        reported: &["no items"],
        changes_shape: true,
        example: r#"{"type": "object", "properties": {"a": {"type": "array"}}}"#,
        result: r#"{"type": "object", "properties": {
            "a": {"type": "array", "items": {"type": "string", "description": "Any JSON value."}}}}"#,
    },
    PortableRule {
        given: "`[\"T\", \"null\"]`, `anyOf` with null, null alone",
        listed: "`T`: leave the argument out instead; what must be null is written as text",
        refused_by: "Gemini",
        source: "taylorwilsdon/google_workspace_mcp#1099",
        reported: &["null"],
        changes_shape: true,
        example: r#"{"type": "object", "properties": {"a": {"type": ["string", "null"]}}}"#,
        result: r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#,
    },
    PortableRule {
        given: "several types, `oneOf`, more than 16 alternatives",
        listed: "`anyOf` with nothing beside it; values in one list; the 17th alternative and later ones as text",
        refused_by: "Gemini",
        source: "github/copilot-cli#4623",
        reported: &["several types", "oneOf", "more than 16 alternatives"],
        changes_shape: true,
        example: r#"{"type": "object", "properties": {"a": {"type": ["string", "integer"], "description": "Which"}}}"#,
        result: r#"{"type": "object", "properties": {"a": {"anyOf": [
            {"type": "string", "description": "Which"}, {"type": "integer", "description": "Which"}]}}}"#,
    },
    PortableRule {
        given: "`enum` of numbers or of several types",
        listed: "the strings stay; the others are written as text",
        refused_by: "Gemini",
        source: "microsoft/azure-devops-mcp#139",
        reported: &["enum of other things than texts"],
        changes_shape: true,
        example: r#"{"type": "object", "properties": {"a": {"type": "integer", "enum": [0, 1]}}}"#,
        result: r#"{"type": "object", "properties": {"a": {"type": "integer", "description": "One of: 0, 1."}}}"#,
    },
    PortableRule {
        given: "`\"\"` in an `enum`",
        listed: "left out; the text says that it is valid",
        refused_by: "Gemini",
        source: "sbroenne/mcp-server-excel#607",
        reported: &["enum with an empty text"],
        changes_shape: true,
        example: r#"{"type": "object", "properties": {"a": {"type": "string", "enum": ["", "on"]}}}"#,
        result: r#"{"type": "object", "properties": {"a": {"type": "string", "enum": ["on"],
            "description": "An empty string is valid too."}}}"#,
    },
    PortableRule {
        given: "more than 500 values in all `enum` of a schema, or more than 15,000 characters in one of more than 250",
        listed: "lists that do not fit are written as text: the first 4,000 characters, and how many values there are",
        refused_by: "OpenAI (strict), Gemini (many values)",
        source: "googleapis/python-genai#950",
        reported: &["more than 500 values"],
        changes_shape: true,
        example: concat!(r#"{"type": "object", "properties": {"a": {"enum": ["#, many_texts!("\""), "]}}}"),
        result: concat!(
            r#"{"type": "object", "properties": {"a": {"type": "string", "description": "One of: "#,
            many_texts!("\\\""),
            r#"."}}}"#
        ),
    },
    PortableRule {
        given: "`enum` or `const` without a `type`",
        listed: "with its type; `const` is an `enum` of one",
        refused_by: "Gemini",
        source: "google-gemini/gemini-cli#4400",
        reported: &[],
        changes_shape: false,
        example: r#"{"type": "object", "properties": {"a": {"const": "on"}}}"#,
        result: r#"{"type": "object", "properties": {"a": {"type": "string", "enum": ["on"]}}}"#,
    },
    PortableRule {
        given: "`true`, `{}` or something that is not a schema",
        listed: "a string, \"Any JSON value.\"",
        refused_by: "OpenAI",
        source: "smallmain/vscode-unify-chat-provider#162",
        reported: &["any value"],
        changes_shape: true,
        example: r#"{"type": "object", "properties": {"a": true, "type": "object"}}"#,
        result: r#"{"type": "object", "properties": {"a": {"type": "string", "description": "Any JSON value."},
            "type": {"type": "string", "description": "Any JSON value."}}}"#,
    },
    PortableRule {
        given: "`false`",
        listed: "left out, with text",
        refused_by: "Gemini",
        source: "google-gemini/gemini-cli#4400",
        reported: &["false"],
        changes_shape: true,
        example: r#"{"type": "object", "properties": {"a": false}}"#,
        result: r#"{"type": "object", "properties": {}}"#,
    },
    PortableRule {
        given: "an argument whose name has other characters than `a-z A-Z 0-9 _ . -`, or more than 64",
        listed: "named in the description; it can still be given",
        refused_by: "Anthropic",
        source: "twilio-labs/mcp#56",
        reported: &["name"],
        changes_shape: true,
        example: r#"{"type": "object", "properties": {"time<": {"type": "string"}}}"#,
        result: r#"{"type": "object", "properties": {}}"#,
    },
    PortableRule {
        given: "`format`, `pattern`, `multipleOf`, exclusive limits, `uniqueItems`, `not`, `contains`, `examples`",
        listed: "written as text",
        refused_by: "Gemini",
        source: "taylorwilsdon/google_workspace_mcp#1099",
        reported: &[
            "format",
            "pattern",
            "multipleOf",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "uniqueItems",
            "not",
            "contains",
            "contentEncoding",
            "contentMediaType",
            "minProperties",
            "maxProperties",
            "examples",
        ],
        changes_shape: false,
        example: r#"{"type": "object", "properties": {"a": {"type": "string", "format": "uri-template"}}}"#,
        result: r#"{"type": "object", "properties": {"a": {"type": "string", "description": "Format: uri-template."}}}"#,
    },
    PortableRule {
        given: "`additionalProperties`, `patternProperties`, `propertyNames`, `dependent…`, `prefixItems`, `unevaluated…`",
        listed: "written as text",
        refused_by: "Gemini, Qwen-Agent (drops them)",
        source: "QwenLM/Qwen-Agent#873",
        reported: &[
            "additionalProperties",
            "patternProperties",
            "propertyNames",
            "dependentRequired",
            "dependentSchemas",
            "dependencies",
            "prefixItems",
            "unevaluatedProperties",
            "unevaluatedItems",
        ],
        changes_shape: false,
        example: r#"{"type": "object", "properties": {}, "additionalProperties": false}"#,
        result: r#"{"type": "object", "properties": {}}"#,
    },
    PortableRule {
        given: "a tool's description of more than 1,024 characters, rules that are written as text included",
        listed: "the device's text is shortened, with a mark; rules of more than 640 characters are in the description of the input schema",
        refused_by: "OpenAI, Claude Code (cuts at 2,048)",
        source: "modelcontextprotocol/servers#799",
        reported: &["more than 1,024 characters", "more rules than 640 characters"],
        changes_shape: false,
        example: concat!(r#"{"type": "object", "propertyNames": {"pattern": ""#, long_pattern!(), r#""}}"#),
        result: concat!(
            r#"{"type": "object", "properties": {}, "description": "Names of members: {\"pattern\":\""#,
            long_pattern!(),
            r#"\"}."}"#
        ),
    },
    OTHER_KEYWORDS,
];

/// The rule for every keyword that no other rule has.
const OTHER_KEYWORDS: PortableRule = PortableRule {
    given: "`$schema`, `$id`, `$comment`, other keywords",
    listed: "left out",
    refused_by: "clients with another draft of JSON Schema",
    source: "basicmachines-co/basic-memory#444",
    reported: &[],
    changes_shape: false,
    example: r#"{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {}}"#,
    result: r#"{"type": "object", "properties": {}}"#,
};
