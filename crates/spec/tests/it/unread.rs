//! Tools that are written in other forms: each is read, or a finding names it.

use sinew_spec::Document;
use sinew_spec::compare::{Impact, diff_documents};
use sinew_spec::lint::{self, LintConfig};

const READ: &str = "\
# Lamps - MCP Tool Specification

## Tool: `lamp.on`

### 3. Input Schema (Parameters)

| Parameter Name | Type | Required | Description | Example Value |
|---|---|---|---|---|
| `room` | `string` | Yes | The room. | `\"hall\"` |

";

/// The tools of a text beside the one that is read, and those that findings name, with their lines.
fn seen(text: &str) -> (Vec<String>, Vec<(String, usize)>) {
    let document = Document::parse(text);
    let findings = lint::check(&document, &LintConfig::default());
    let unread = findings.iter().filter(|finding| finding.rule.id == "tool-unread").map(|finding| {
        let name = finding.message.split(['`', '"']).nth(1).unwrap_or_default();
        (name.to_owned(), finding.place.line().unwrap())
    });
    let names = document.tools.iter().map(|tool| tool.name.clone()).filter(|name| name != "lamp.on");
    (names.collect(), unread.collect())
}

#[test]
fn headings_in_other_styles_are_read() {
    let body = "Dims.\n\n**Parameters**:\n- `level` (integer, required): How much.\n";
    for heading in [
        "### dim_it(level: integer) -> object",
        "### `dim_it(level)`",
        "### 🔧 `dim_it`",
        "### **dim_it**",
        "### [dim_it](#dim_it)",
        "### dim_it {#dim}",
        "### <a id=\"dim\"></a>dim_it",
        "### Dim a lamp (`dim_it`)",
        "### dim_it - Dims a lamp",
        "### 2.1 dim_it",
        "### Tool 2: dim_it",
        "### MCP Tool: `dim_it`",
        "### Function: `dim_it`",
        "<h3>dim_it</h3>",
        "<h3 class=\"tool\"><code>dim_it</code></h3>",
        "dim_it\n------",
    ] {
        for end in ["\n", "\r\n"] {
            let text = format!("{READ}## More tools\n\n{heading}\n\n{body}").replace('\n', end);
            assert_eq!(seen(&text), (vec!["dim_it".to_owned()], vec![]), "{heading}");
        }
    }
}

#[test]
fn a_tool_that_is_only_listed_is_named_with_its_line() {
    for listed in [
        "## More tools\n\n| Tool | Description |\n|---|---|\n| `dim_it` | Dims. |\n",
        "## More tools\n\n| # | Name | Description |\n|---|---|---|\n| 1 | dim_it | Dims. |\n",
        "## Notes\n\n| Tool | Description |\n|---|---|\n| **dim_it** | Dims. |\n",
        "## Tools\n\n<table><tr><th>Tool</th><th>Does</th></tr>\n<tr><td><code>dim_it</code></td><td>Dims.</td></tr></table>\n",
        "## More tools\n\n- `dim_it`: Dims.\n  - `level` (integer): How much.\n",
        "## More tools\n\n* **dim_it** - Dims.\n",
        "## More tools\n\n1. dim_it: Dims.\n",
        "## More tools\n\n- Lamps\n  - `dim_it`: Dims.\n",
        "## Notes\n\nThere are further tools:\n\n- `dim_it`: Dims.\n",
        "## More tools\n\n**`dim_it`**\n\nDims.\n",
        "## More tools\n\n<dl>\n<dt>dim_it</dt>\n<dd>Dims.</dd>\n</dl>\n",
        "## More tools\n\n<details>\n<summary>dim_it</summary>\n\nDims.\n\n</details>\n",
        "## More tools\n\n> ### dim_it\n>\n> Dims.\n",
        "## More tools\n\n- ### dim_it\n\n  Dims.\n",
        "## More tools\n\n### dim_it\n\nDims.\n",
        "## More tools\n\n### dim.it\n\nDims.\n",
        "## More tools\n\n### dim_it(level: integer)\n\nDims.\n",
        "## More\n\n```json\n{\"tools\": [\n{\"name\": \"dim_it\", \"inputSchema\": {\"type\": \"object\"}}]}\n```\n",
        "## More\n\n```json\n[{\"type\": \"function\", \"function\": {\n\"name\": \"dim_it\", \"parameters\": {}}}]\n```\n",
        "## 工具\n\n- `dim_it`：调光\n",
        "## What it does\n\n- `dim_it`: Dims a lamp.\n- Nothing else.\n",
        "## Overview\n\n- `dim_it(level)`\n",
        "## Overview\n\n1. **dim_it** - Dims a lamp.\n",
        "## Overview\n\n- `dim_it` — Dims one.\n",
        "## Overview\n\n- `dim_it`\n  - `level` (integer, required): How much.\n",
        "## Werkzeuge\n\n| Werkzeug | Zweck |\n|---|---|\n| `dim_it` | Dimmt. |\n",
    ] {
        for text in [format!("{READ}{listed}"), format!("{READ}{listed}").replace('\n', "\r\n")] {
            let line = text.lines().position(|line| line.contains("dim_it") || line.contains("dim.it")).unwrap() + 1;
            let (tools, unread) = seen(&text);
            assert_eq!(tools, [] as [&str; 0], "{listed}");
            let names: Vec<(String, usize)> =
                unread.into_iter().map(|(name, line)| (name.replace('.', "_"), line)).collect();
            assert_eq!(names, [("dim_it".to_owned(), line)], "{listed}");
        }
    }
}

#[test]
fn lists_go_on_below_deeper_headings_and_end_with_their_own() {
    for (listed, expected) in [
        (
            "## More tools\n\n### Rooms\n\n- `dim_it`: Dims.\n\n#### Errors\n\n- `no_lamp`: None there.\n\n### Doors\n\n\
             - `shut_it`: Shuts.\n",
            &["dim_it", "shut_it"][..],
        ),
        (
            "## Tools\n\n### Tools for reading\n\n- `dim_it`: Dims.\n\n### Doors\n\n- `door_it`: Shuts.\n",
            &["dim_it", "door_it"],
        ),
        ("## More tools\n\n- `dim_it`: Dims.\n- Doors\n  - `shut_it`: Shuts.\n", &["dim_it", "shut_it"]),
        ("### Further sections\n\nWords.\n\n## More tools\n\n- `dim_it`: Dims.\n", &["dim_it"]),
        ("## Tools\n\n### Related tools\n\n- `list_it`: A program.\n", &[]),
        ("## Tools\n\n- `dim_it`: Dims.\n\n## Glossary\n\n- `lamp_it`: A word.\n", &["dim_it"]),
        ("#### Tools\n\n- `dim_it`: Dims.\n\n### Glossary\n\n- `lamp_it`: A word.\n", &[]),
    ] {
        let names: Vec<String> = seen(&format!("{READ}{listed}")).1.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, expected, "{listed}");
    }
}

/// The names of the tools of a text, and what of it belongs to none.
fn outline(text: &str) -> (Vec<(String, Vec<String>)>, String) {
    let document = Document::parse(text);
    let tools = document.tools.iter().map(|tool| {
        let parts = tool.parameters().map(|(name, _)| name.clone());
        (tool.name.clone(), parts.chain(tool.extra.iter().map(|(title, _)| title.clone())).collect())
    });
    (tools.collect(), document.further.clone())
}

#[test]
fn a_tool_ends_where_its_level_does_wherever_it_begins() {
    let one = |level: &str, inner: &str| {
        format!(
            "{level} dim_it\n\nDims.\n\n{inner} Parameters\n\n- `room` (string, required): The room.\n\n{inner} Quirks\n\nOdd.\n"
        )
    };
    let tool = ("dim_it".to_owned(), vec!["room".to_owned(), "Quirks".to_owned()]);
    for (level, inner, around, after) in [
        ("##", "###", "", "## Glossary"),
        ("###", "####", "## Tools\n\n", "## Glossary"),
        ("###", "####", "## Tools\n\n", "### Glossary"),
        ("####", "#####", "## Tools\n\n### Rooms\n\n", "### Glossary"),
        ("#####", "######", "## Tools\n\n### Rooms\n\n#### Light\n\n", "#### Glossary"),
    ] {
        let text = format!("# Lamps\n\n{around}{}\n{after}\n\nA lamp gives light.\n", one(level, inner));
        let (tools, further) = outline(&text);
        assert_eq!(tools, std::slice::from_ref(&tool), "{text}");
        assert!(further.contains("A lamp gives light."), "{text}\n{further}");
    }
}

#[test]
fn what_is_no_tool_or_is_read_elsewhere_is_not_named() {
    for other in [
        "## Overview of tools\n\n| Tool | Does |\n|---|---|\n| `lamp.on` | Switches on. |\n| `on` | The same. |\n",
        "## Tools\n\n- [lamp.on](#lamp-on)\n- [Errors](#errors)\n- [overview](#overview)\n",
        "## Related tools\n\n- `jq`: reads JSON.\n",
        "## Errors\n\n- `not_found`: no such lamp.\n",
        "## Environment variables\n\n- `set_home`: where the lamps are.\n",
        "## Overview\n\n- `max_rooms`: how many rooms there may be.\n- `lamp.on` switches one on.\n",
        "## Python functions\n\n- `get_lamp(room)`: for programs.\n",
        "## Notes\n\n| Setting | Value |\n|---|---|\n| `max_rooms` | 12 |\n",
        "## Notes\n\n**Important**\n\nWords.\n",
        "## Example\n\n```json\n{\"name\": \"hall\", \"level\": 3}\n```\n",
    ] {
        assert_eq!(seen(&format!("{READ}{other}")), (vec![], vec![]), "{other}");
    }
}

#[test]
fn in_a_document_without_tools_every_explained_name_in_a_list_is_named() {
    let text =
        "# Lamps - MCP Tool Specification\n\n## Overview\n\n- `lamp_state`: Whether it is on.\n- `LAMP_KEY`: a key.\n";
    assert_eq!(seen(text).1, [("lamp_state".to_owned(), 5)]);
}

#[test]
fn a_common_word_above_parameters_is_reported() {
    let text =
        format!("{READ}## Appendix\n\n### blink\n\n<dl><dt>times</dt><dd>How many (integer, required)</dd></dl>\n");
    assert_eq!(seen(&text).1, [("blink".to_owned(), 13)]);
}

#[test]
fn a_version_below_a_title_of_its_column_is_read() {
    let text = READ.replace("### 3.", "| Version | Since |\n|---|---|\n| 1.4.0 | 2024 |\n\n### 3.");
    assert_eq!(Document::parse(&text).tools[0].version.as_deref(), Some("1.4.0"));
}

#[test]
fn definitions_of_other_programs_are_read() {
    for definition in [
        r#"{"type": "function", "function": {"name": "dim_it", "parameters": {"type": "object", "properties": {"level": {}}}}}"#,
        r#"{"name": "dim_it", "input_schema": {"type": "object", "properties": {"level": {}}}}"#,
    ] {
        let document = Document::parse(&format!("# T\n\n### dim_it\n\nDims.\n\n```json\n{definition}\n```\n"));
        let parameters: Vec<_> = document.tools[0].parameters().map(|(name, _)| name.as_str()).collect();
        assert_eq!(parameters, ["level"], "{definition}");
    }
}

#[test]
fn sections_of_the_tools_own_level_belong_to_it() {
    let one =
        "### dim_it\n\nDims.\n\n### Parameters\n\n- `room` (string, required): The room.\n\n### Security\n\nSafe.\n";
    let two = one.replace("dim_it", "blink_it").replace("room", "times");
    let text = format!("# Lamps\n\n{one}\n{two}\n### Glossary\n\nA lamp gives light.\n");
    let (tools, further) = outline(&text);
    let tool = |name: &str, parameter: &str| (name.to_owned(), vec![parameter.to_owned()]);
    assert_eq!(tools, [tool("dim_it", "room"), tool("blink_it", "times")]);
    assert_eq!(further, "### Glossary\n\nA lamp gives light.");
    assert!(Document::parse(&text).tools.iter().all(|tool| tool.security == "Safe."));
    // What is said of all tools after one with sections of its own is not that tool's.
    for body in ["#### Parameters\n\n- `room` (string): The room.\n", "**Parameters**:\n- `room` (string): The room.\n"]
    {
        let (tools, further) =
            outline(&format!("# Lamps\n\n### dim_it\n\n{body}\n### Returns\n\nText, from all tools.\n"));
        assert_eq!(tools, [tool("dim_it", "room")]);
        assert!(further.contains("from all tools"), "{further}");
    }
    let table = "| Name | Type | Description |\n|---|---|---|\n| `room` | string | The room. |\n";
    let (_, further) = outline(&format!("# Lamps\n\n### dim_it\n\n{table}\n### Summary\n\nLamps.\n"));
    assert!(further.contains("Lamps."), "{further}");
}

#[test]
fn names_in_tables_have_no_marks_and_brackets_mean_items() {
    let table = "| Name | Type | Required | Description |\n|---|---|---|---|\n| `room`* | string | Yes | The room. |\n\
                 | `tags[]` | string | No | A tag. |\n| `users[]` | object | Yes | A user. |\n| `users[].id` | integer | Yes | The id. |\n\
                 | `list` | array | No | A list. |\n| `list[]` | number | No | A number. |\n";
    let text = format!("# T\n\n## Tool: `dim_it`\n\n### 3. Input Schema (Parameters)\n\n{table}");
    let expected = serde_json::json!({"type": "object", "properties": {
        "room": {"type": "string", "description": "The room."},
        "tags": {"type": "array", "items": {"type": "string", "description": "A tag."}},
        "users": {"type": "array", "items": {"type": "object", "description": "A user.",
            "properties": {"id": {"type": "integer", "description": "The id."}}, "required": ["id"]}},
        "list": {"type": "array", "description": "A list.", "items": {"type": "number", "description": "A number."}},
    }, "required": ["room", "users"]});
    assert_eq!(*Document::parse(&text).tools[0].input, expected);
}

#[test]
fn a_second_schema_of_the_parameters_is_reported_and_one_of_the_result_is_not() {
    let fence = |name: &str| {
        format!("```json\n{{\"type\": \"object\", \"properties\": {{\"{name}\": {{\"type\": \"string\"}}}}}}\n```\n")
    };
    let lines = |section: &str, second: &str| {
        let text = format!("# T\n\n## Tool: `dim_it`\n\n### {section}\n\n{}\n{}", fence("room"), fence(second));
        seen(&text).1.into_iter().map(|(_, line)| line).collect::<Vec<_>>()
    };
    assert_eq!(lines("Parameters", "level"), [12]);
    assert_eq!(lines("Parameters", "room"), [0; 0]);
    assert_eq!(lines("Returns", "error"), [0; 0]);
}

#[test]
fn sections_and_parameters_in_more_spellings_are_read() {
    let input = |body: &str| {
        let document = Document::parse(&format!("# T\n\n## Tool: `dim_it`\n\n{body}\n"));
        assert_eq!(document.tools[0].extra, [], "{body}");
        (*document.tools[0].input).clone()
    };
    let room = serde_json::json!({"type": "object", "properties": {
        "room": {"type": "string", "description": "The room."}, "level": {"type": "integer", "description": "How much."}},
        "required": ["room"]});
    for body in [
        "### 📥 Parameters\n\n- `room` (string, required): The room.\n- `level` (integer): How much.\n",
        "### III. Input Schema\n\n- `room` (string, required): The room.\n- `level` (integer): How much.\n",
        "### Required Parameters\n\n- `room` (string): The room.\n\n### Optional Parameters\n\n- `level` (integer): How much.\n",
        "### Parameters\n\n-\t`room`\t(string, required):\tThe room.\n-\t`level`\t(integer):\tHow much.\n",
        "### Parameters\n\n* **room** *(string, required)* – The room.\n* **level** _(integer)_ – How much.\n",
    ] {
        assert_eq!(input(body), room, "{body}");
    }
    let listed = input(
        "### Parameters\n\n- `sep` (string, default: `\", \"`): What is between.\n- `mode` (one of `a`, `b`, optional): Which.\n",
    );
    assert_eq!(listed["properties"]["sep"]["default"], ", ");
    assert_eq!(listed["properties"]["sep"]["description"], "What is between.");
    assert_eq!(listed["properties"]["mode"]["enum"], serde_json::json!(["a", "b"]));
}

#[test]
fn none_below_the_heading_of_all_tools_says_that_there_are_none() {
    assert!(Document::parse("# Lamps\n\n## MCP Tools\n\nNone.\n").says_no_tools.is_some());
    assert!(Document::parse("# Lamps\n\n## Requirements\n\nNone.\n").says_no_tools.is_none());
}

#[test]
fn a_bullet_between_parameters_that_could_not_be_read_is_named() {
    let named = |list: &str| seen(&format!("# T\n\n## Tool: `dim_it`\n\n### Parameters\n\n{list}\n")).1;
    let read = "- `room` (string, required): The room.\n";
    for bullet in ["- `mode` (some mode): Which.\n", "- `mode`: Which.\n", "- **`mode`** – Which.\n"] {
        assert_eq!(named(&format!("{read}{bullet}")), [("mode".to_owned(), 8)], "{bullet}");
    }
    for other in [
        "- `room` must be in the house.\n",
        "- `room`: see above.\n",
        "  - `hall`: the first room.\n",
        "- **Note**: rooms are small.\n",
        "- See `mode`.\n",
    ] {
        assert_eq!(named(&format!("{read}{other}")), [], "{other}");
    }
}

#[test]
fn whatever_a_tool_is_called_it_is_read_or_named() {
    const TABLE: &str =
        "| Parameter | Type | Required | Description |\n|---|---|---|---|\n| `p` | string | Yes | The path. |\n";
    for heading in [
        "## Tool — theta",
        "## 1) Tool theta",
        "## Tool \"theta\"",
        "## **Tool:** *theta*",
        "## `Tool: theta`",
        "## _read_theta_",
        "## ~~read_theta~~",
        "## Endpoint: `theta`",
        "## Werkzeug: theta",
        "## 工具：theta",
        "## theta:",
        "## Read theta",
        "**Tool: theta**",
        "Tool: theta",
        "**Tool:** `theta`",
    ] {
        let text = format!("{READ}### 8. Security Considerations\n\nAsk.\n\n{heading}\n\nReads.\n\n{TABLE}");
        let (tools, unread) = seen(&text);
        let names: Vec<String> = tools.into_iter().chain(unread.into_iter().map(|(name, _)| name)).collect();
        assert_eq!(names.len(), 1, "{heading}: {names:?}");
        let changed = Document::parse(&text.replace("| `p` | string", "| `p` | integer"));
        let impact = diff_documents(&Document::parse(&text), &changed).changes.iter().map(|change| change.impact).max();
        assert!(impact >= Some(Impact::Undecided), "{heading}: {impact:?}");
    }
    for other in ["## Common parameters", "## Settings of the server"] {
        let table = TABLE.replace("Parameter", "Setting");
        assert_eq!(seen(&format!("{READ}{other}\n\n{table}")), (vec![], vec![]), "{other}");
    }
    let fence = "### 8. Security Considerations\n\n```json\n[{\"name\": \"dim_it\", \"inputSchema\": {\"type\": \"object\"}}, \
        {\"name\": \"shut_it\", \"inputSchema\": {\"type\": \"object\"}}]\n```\n";
    let names: Vec<String> = seen(&format!("{READ}{fence}")).1.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["dim_it", "shut_it"]);
}

#[test]
fn a_row_with_more_cells_than_the_header_is_kept_and_reported() {
    let text = READ.replace("The room. | `\"hall\"` |", "The room. | hall | stairs |");
    let document = Document::parse(&text);
    let findings = lint::check(&document, &LintConfig::default());
    assert!(findings.iter().any(|finding| finding.message.contains("more cells than the header")));
    assert_eq!(document.tools[0].input["properties"]["room"]["examples"][0], "hall | stairs");
}

#[test]
fn a_cell_with_more_than_one_name_is_reported() {
    for name in ["`room`, `lamp`", "room (required)"] {
        let (_, unread) = seen(&READ.replace("`room`", name));
        assert_eq!(unread.len(), 1, "{name}: {unread:?}");
    }
}
