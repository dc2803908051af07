//! Changes outside the schemas: each kind of text is told, once and with its class.

use serde_json::{Value, json};
use sinew_spec::compare::{Impact, diff_documents, diff_lists};
use sinew_spec::{Document, print};

use Impact::{Additive, Breaking, Cosmetic, Undecided};

const PAGE: &str = "\
# Lamps

For the hall.

---

## Tool: `dim_it`

- **Version**: 1.2.0
- **Title**: Dimmer
- **Hints**: `openWorldHint=false`

### 1. Tool Purpose and Description

Dims a lamp.

### 2. Invocation Name

`dim_it`

### 3. Input Schema (Parameters)

| Parameter Name | Type | Required | Description | Example Value |
| :--- | :--- | :--- | :--- | :--- |
| `room` | `string` | Yes | The room. | `\"hall\"` |

Rooms are named once.

### 4. Output Schema (Return Value)

| Field Name | Type | Description | Example Value |
| :--- | :--- | :--- | :--- |
| `level` | `integer` | The level. | `5` |

Levels are percent.

### 5. Error Handling

- `no_lamp`: there is none.

### 6. Idempotency

- **Idempotent**: Yes
- **Explanation**: the level stays.

### 7. Usage Examples (for MCP context)

Dims the hall.

```json
{\"tool_name\": \"dim_it\", \"arguments\": {\"room\": \"hall\"}}
```

Other rooms are alike.

### 8. Security Considerations

Only lamps are dimmed.

### Quirks

Old lamps blink.

## Glossary

A lamp gives light.
";

/// What is replaced, by what, and the change that must be told.
type Row = (&'static str, &'static str, (&'static str, &'static str, Impact));

const ROWS: [Row; 25] = [
    ("# Lamps", "# Lights", ("/title", "title-changed", Cosmetic)),
    ("For the hall.", "For the attic.", ("/introduction", "text-changed", Cosmetic)),
    ("A lamp gives light.", "A lamp burns.", ("/further", "text-changed", Cosmetic)),
    ("Title**: Dimmer", "Title**: Dim", ("/title", "title-changed", Cosmetic)),
    ("1.2.0", "1.1.0", ("/version", "version-lowered", Breaking)),
    ("- **Version**: 1.2.0\n", "", ("/version", "version-removed", Undecided)),
    ("- **Hints**", "- **Audience**: `user`\n- **Hints**", ("/annotations/audience", "audience-narrowed", Breaking)),
    ("openWorldHint=false", "openWorldHint=true", ("/annotations/openWorldHint", "open-world-changed", Breaking)),
    ("Dims a lamp.", "Dims one lamp.", ("/description", "description-changed", Cosmetic)),
    ("The room.", "A room.", ("/inputSchema/properties/room", "words-changed", Cosmetic)),
    ("`\"hall\"`", "`\"attic\"`", ("/inputSchema/properties/room", "annotation-changed", Cosmetic)),
    ("Rooms are named once.", "Rooms have numbers.", ("/inputSchema", "notes-changed", Cosmetic)),
    ("Rooms are named once.\n", "", ("/inputSchema", "notes-changed", Cosmetic)),
    ("Levels are percent.", "Levels are lumen.", ("/outputSchema", "notes-changed", Cosmetic)),
    ("- `no_lamp`: there is none.", "- `no_lamp`: it is gone.", ("/errors", "errors-changed", Cosmetic)),
    ("is none.", "is none.\n- `no_bulb`: it is dark.", ("/errors", "error-added", Additive)),
    ("- `no_lamp`: there is none.", "None are known.", ("/errors", "error-removed", Cosmetic)),
    ("the level stays", "it stays as it is", ("/idempotency", "idempotency-changed", Cosmetic)),
    ("Dims the hall.", "Dims the hall now.", ("/examples", "examples-changed", Cosmetic)),
    ("{\"room\": \"hall\"}", "{\"room\": \"attic\"}", ("/examples", "examples-changed", Cosmetic)),
    ("Other rooms are alike.", "Other rooms differ.", ("/examples", "notes-changed", Cosmetic)),
    ("Only lamps are dimmed.", "Fuses may blow.", ("/security", "security-changed", Cosmetic)),
    ("Old lamps blink.", "Old lamps hum.", ("/sections", "section-changed", Cosmetic)),
    ("### Quirks\n\nOld lamps blink.\n", "", ("/sections", "section-removed", Cosmetic)),
    ("### Quirks", "### Limits\n\nOne room.\n\n### Quirks", ("/sections", "section-added", Cosmetic)),
];

fn told(old: &Document, new: &Document) -> Vec<(String, &'static str, Impact)> {
    let changes = diff_documents(old, new).changes;
    changes.into_iter().map(|change| (change.path, change.kind, change.impact)).collect()
}

#[test]
fn each_text_of_a_document_is_told_once_and_with_its_class() {
    let old = Document::parse(PAGE);
    assert_eq!(told(&old, &old), []);
    for (from, to, (path, kind, impact)) in ROWS {
        assert_eq!(PAGE.matches(from).count(), 1, "{from}");
        let new = Document::parse(&PAGE.replace(from, to));
        assert_eq!(told(&old, &new), [(path.to_owned(), kind, impact)], "{from} -> {to}");
    }
}

#[test]
fn white_space_and_the_version_of_the_whole_document_are_no_text() {
    let page = |version: &str| PAGE.replace("For the hall.", &format!("For the hall.\n\nVersion: {version}"));
    let old = Document::parse(&page("2.0.0"));
    assert_eq!(told(&old, &Document::parse(&page("2.1.0"))), []);
    assert_eq!(told(&old, &Document::parse(&page("2.0.0").replace("\n\n", "\r\n\r\n\r\n"))), []);
}

/// A tool with a text in every member that MCP knows, and in some that it does not.
fn entry() -> Value {
    json!({
        "name": "dim_it",
        "title": "Dimmer",
        "description": "Dims a lamp.",
        "inputSchema": {
            "type": "object",
            "title": "Arguments",
            "$comment": "Made by hand.",
            "x-ui": {"order": ["room"]},
            "properties": {
                "room": {"type": "string", "description": "The room.", "examples": ["hall"], "markdownDescription": "*It*"},
                "mode": {"anyOf": [{"const": "a", "title": "One"}, {"const": "b", "title": "Two"}]},
                "rest": {"not": {"type": "null", "description": "Never null."}},
                "tree": {"$ref": "#/$defs/tree"},
            },
            "patternProperties": {"^x-": {"description": "Anything else."}},
            "if": {"required": ["mode"], "description": "With a mode"},
            "then": {"required": ["room"], "$comment": "also a room."},
            "$defs": {
                "tree": {"type": "array", "description": "A tree.", "items": {"$ref": "#/$defs/tree"}},
                "spare": {"description": "For nobody."},
            },
        },
        "outputSchema": {"type": "object", "properties": {"level": {"type": "integer", "description": "The level."}}},
        "annotations": {"title": "Dim", "audience": ["assistant"], "note": "x", "readOnlyHint": "no"},
        "execution": {"note": "Slow."},
        "icons": [{"src": "data:,"}],
        "_meta": {"sinew/version": "1.2.0", "vendor": {"unit": "lumen"}},
        "version": "9.9.9",
    })
}

/// Everything that a list says, also what no client reads, is in the document that is printed of it.
#[test]
fn printing_a_list_loses_nothing() {
    let mut odd = entry();
    for (key, value) in [
        ("parameters", json!({"type": "object", "title": "The other one"})),
        ("title", json!({"en": "Dimmer", "de": "Regler"})),
        ("outputSchema", json!("see the wiki")),
        ("note", json!(["first", {"second": 12345.5}])),
    ] {
        odd[key] = value;
    }
    let odder = json!({"name": "x", "description": "# Not a heading\n\n## Tool: `y`\n\n```\nno end", "annotations": 7,
        "inputSchema": {"type": "object", "properties": {"a b": {"description": "line\nbreak \"quoted\" | <b>tag</b>"}}}});
    let list = json!({"tools": [odd, odder, {"name": "z"}], "nextCursor": "page7", "_meta": {"from": "hall9"}});
    let message = json!({"jsonrpc": "2.0", "id": 77, "result": list});
    let manifest = json!({"instructions": "# Use it\n\n## Tool: `q`\n\nwith care", "tools": [
        {"name": "a", "description": "Does.", "parameters": {"type": "object"}, "extra": "kept"}], "author": "Ann"});
    for text in [list.to_string(), message.to_string(), json!([entry()]).to_string(), manifest.to_string()] {
        let document = Document::parse(&text);
        let rendered = print::render_document("Lamps", &document);
        assert_eq!(rendered.lost, [], "{}", rendered.text);
        for word in ["page7", "hall9", "wiki", "Regler", "12345.5", "Ann"].iter().filter(|word| text.contains(**word)) {
            assert!(rendered.text.contains(word), "{word}\n{}", rendered.text);
        }
        assert_eq!(Document::parse(&rendered.text).tools.len(), document.tools.len(), "{}", rendered.text);
        assert_eq!(print::render_html_document("Lamps", &document).lost, []);
    }
}

#[test]
fn what_printing_a_list_would_lose_is_named_with_its_line() {
    // Of two members of one name clients read the last; an entry without a name is no tool.
    let text = "{\"tools\": [\n{\"name\": \"a\", \"description\": \"Gone words.\", \"description\": \"Kept.\"},\n\
                {\"title\": \"Nameless\", \"n\": 4711}]} // remarks";
    let lost = print::render_document("T", &Document::parse(text)).lost;
    let expected = [(2, "gone"), (2, "words"), (3, "nameless"), (3, "n"), (3, "4711"), (3, "remarks")];
    assert_eq!(lost, expected.map(|(line, word)| (line, word.to_owned())));
}

/// JSON pointers of all texts below a value.
fn texts(value: &Value, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(pointer.to_owned()),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| texts(item, &format!("{pointer}/{index}"), found));
        }
        Value::Object(members) => {
            for (key, member) in members {
                texts(member, &format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        _ => {}
    }
}

#[test]
fn no_text_of_a_list_changes_unseen() {
    let list = |entry: &Value| json!({"tools": [entry]}).to_string();
    let old = list(&entry());
    let mut pointers = Vec::new();
    texts(&entry(), "", &mut pointers);
    assert!(pointers.len() >= 30, "{pointers:?}");
    for pointer in pointers {
        let mut changed = entry();
        let text = changed.pointer_mut(&pointer).unwrap();
        // A greater version is what announces changes.
        let is_version = pointer.ends_with("version");
        *text = json!(if is_version { "1.0.0".to_owned() } else { format!("{} ~", text.as_str().unwrap()) });
        let new = list(&changed);
        let found = diff_documents(&Document::parse(&old), &Document::parse(&new));
        assert!(!found.changes.is_empty(), "{pointer}");
        assert_eq!(diff_lists(&old, &new), Some(found), "{pointer}");
    }
}

#[test]
fn members_of_a_list_have_their_path_and_class() {
    let list = |more: Value| {
        let mut tool = json!({"name": "dim_it", "description": "Dims.", "inputSchema": {"type": "object"}});
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Document::parse(&json!([tool]).to_string())
    };
    for (old, new, path, kind, impact) in [
        (json!({}), json!({"execution": {"taskSupport": "required"}}), "/execution", "execution-changed", Breaking),
        (json!({}), json!({"execution": {"taskSupport": "optional"}}), "/execution", "execution-changed", Additive),
        (json!({}), json!({"annotations": {"title": "D"}}), "/annotations/title", "member-changed", Cosmetic),
        (json!({"_meta": {"a/b": 1}}), json!({"_meta": {"a/b": 2}}), "/_meta/a~1b", "member-changed", Cosmetic),
        (json!({"icons": []}), json!({}), "/icons", "member-changed", Cosmetic),
        (json!({"title": 1}), json!({"title": 2}), "/title", "member-changed", Cosmetic),
        (json!({"version": "new"}), json!({"version": "newer"}), "/version", "version-changed", Cosmetic),
    ] {
        assert_eq!(told(&list(old), &list(new)), [(path.to_owned(), kind, impact)], "{path}");
    }
}

#[test]
fn what_only_a_document_can_say_is_not_compared_with_a_list() {
    let page = Document::parse(PAGE);
    let list = Document::parse(&json!([page.tools[0].to_tool().to_json()]).to_string());
    let found = diff_documents(&page, &list);
    assert_eq!(found.changes, []);
    for part in ["notes on parameters and results", "further sections", "error handling"] {
        assert!(found.not_compared.contains(&part), "{part}: {:?}", found.not_compared);
    }
}

/// The gravest class of the changes from one version of a tool's entry to another; `null` for no tool.
fn gravest(old: Value, new: Value) -> &'static str {
    let list = |more: Value| {
        let mut tool =
            json!({"name": "dim_it", "description": "Dims.", "version": "1.2.0", "inputSchema": {"type": "object"}});
        let Some(more) = more.as_object() else { return Document::parse("[]") };
        tool.as_object_mut().unwrap().extend(more.clone());
        tool.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        Document::parse(&json!([tool]).to_string())
    };
    let changes = diff_documents(&list(old), &list(new)).changes;
    changes.iter().map(|change| change.impact).max().unwrap().word()
}

#[test]
fn the_page_about_agreements_names_the_classes_that_changes_have() {
    let input = |schema: Value| json!({"inputSchema": {"type": "object", "properties": {"a": schema}}});
    let output = |schema: Value| json!({"outputSchema": {"type": "object", "properties": {"a": schema}}});
    let page = |from: &str, to: &str| {
        let changes = diff_documents(&Document::parse(PAGE), &Document::parse(&PAGE.replace(from, to))).changes;
        changes.iter().map(|change| change.impact).max().unwrap().word()
    };
    let examples = [
        ("arguments: something is refused", gravest(input(json!({})), input(json!({"type": "string"})))),
        ("arguments: more is accepted", gravest(json!({}), input(json!({"type": "string"})))),
        ("results: something may come", gravest(output(json!({"type": "integer"})), output(json!({"type": "number"})))),
        ("results: less may come", gravest(output(json!({"enum": ["x", "y"]})), output(json!({"enum": ["x"]})))),
        ("a new error", page("is none.", "is none.\n- `no_bulb`: it is dark.")),
        ("a tool must be run as a task", gravest(json!({}), json!({"execution": {"taskSupport": "required"}}))),
        ("a tool may be run as a task", gravest(json!({}), json!({"execution": {"taskSupport": "optional"}}))),
        ("hints: the tool may do more", gravest(json!({"annotations": {"readOnlyHint": true}}), json!({}))),
        ("a tool is gone", gravest(json!({}), Value::Null)),
        ("the version goes down", gravest(json!({}), json!({"version": "1.1.0"}))),
        ("the version is no longer", gravest(json!({}), json!({"version": null}))),
        ("descriptions, titles", gravest(json!({}), json!({"description": "Dims it."}))),
        ("notes, errors", page("Old lamps blink.", "Old lamps hum.")),
        ("the title and the text", page("For the hall.", "For the attic.")),
        ("only a costly proof", gravest(input(json!({"pattern": "^a+$"})), input(json!({"pattern": "^(a|b)+$"})))),
    ];
    let text = include_str!("../../../../docs/agreements.md");
    let table = text.split("## What counts as a breaking change").nth(1).unwrap().split("\n\n").nth(1).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().skip(2).map(|row| row.split('|').map(str::trim).collect()).collect();
    assert_eq!(rows.len(), examples.len());
    for (row, (change, class)) in rows.iter().zip(examples) {
        assert!(row[1].starts_with(change), "{} {change}", row[1]);
        assert_eq!(row[2], class, "{change}");
    }
}
