//! Tools as people write them down without the template.

use sinew_spec::lint::{self, LintConfig};
use sinew_spec::{Document, print};

const TEXT: &str = "\
Weather Tools
=============

Available Tools
---------------

### get_forecast

- **Description**: Gets the forecast for a city.
- **Parameters**:
  - `city` (string, required): Name of the city
  - `days` (int, optional, default: 3): How many days
- **Idempotent**: Yes

### set_alarm

Sets an alarm (v1.1.9).

**Parameters**

```json
{\"time\": \"string (required) - ISO time\", \"label\": {\"type\": \"string\"}}
```

### list_alarms

`filter`
: string, optional. Only alarms that match.

### wait_some

| Arg | Kind | Unit | What |
|---|---|---|---|
| `delay` | int | seconds | Before the start |

### delete_alarm

Deletes an alarm for good.

## Changelog

- zebra
";

#[test]
fn lists_maps_definitions_and_other_columns_are_read() {
    let document = Document::parse(TEXT);
    let tools: Vec<(&str, Vec<&str>)> = document
        .tools
        .iter()
        .map(|tool| (tool.name.as_str(), tool.parameters().map(|(name, _)| name.as_str()).collect()))
        .collect();
    assert_eq!(
        tools,
        [
            ("get_forecast", vec!["city", "days"]),
            ("set_alarm", vec!["time", "label"]),
            ("list_alarms", vec!["filter"]),
            ("wait_some", vec!["delay"]),
        ]
    );
    assert_eq!(document.tools[0].input["required"], serde_json::json!(["city"]));
    assert_eq!(document.tools[0].input["properties"]["days"]["default"], 3);
    assert_eq!(document.tools[0].idempotency, "- **Idempotent**: Yes");
    assert_eq!(document.tools[1].version.as_deref(), Some("v1.1.9"));
    assert_eq!(document.tools[1].input["required"], serde_json::json!(["time"]));
    assert_eq!(document.tools[3].input["properties"]["delay"]["description"], "Before the start");
    let unread: Vec<usize> = lint::check(&document, &LintConfig::default())
        .iter()
        .filter(|finding| finding.rule.id == "tool-unread")
        .filter_map(|finding| finding.place.line())
        .collect();
    assert_eq!(unread, [TEXT.lines().position(|line| line.contains("delete_alarm")).unwrap() + 1]);
}

#[test]
fn text_without_a_section_is_printed_unchanged() {
    let document = Document::parse(TEXT);
    let rendered = print::render_document("Weather Tools", &document);
    assert!(rendered.lost.is_empty(), "{:?}", rendered.lost);
    for kept in ["zebra", "seconds", "Unit", "Deletes an alarm for good."] {
        assert!(rendered.text.contains(kept), "{kept}: {}", rendered.text);
    }
    assert!(!rendered.text.contains("takes no parameters"), "{}", rendered.text);
    assert!(!rendered.text.contains("**get_forecast**"), "{}", rendered.text);
    let heading =
        "# T\n\n## Tool: `x` (v2.0.1), for lamps\n\nSwitches lamps on.\n\n<!-- ask Ann -->\n\n### Odd one\n\ntext\n";
    let rendered = print::render_document("T", &Document::parse(heading));
    assert!(rendered.lost.is_empty() && rendered.text.contains("for lamps") && rendered.text.contains("ask Ann"));
    let again = print::render_document("T", &Document::parse(&rendered.text));
    assert_eq!(again.text, rendered.text);
}

#[test]
fn html_tables_numbered_lists_and_typed_code_are_read() {
    let text = "\
# Robot

## move_home()

Moves home. **Idempotent**: Yes, a second call finds it there.

<table>
<tr><th>Argument</th><th>Kind</th><th>Needed?</th><th>Meaning</th></tr>
<tr><td><code>speed</code></td><td>int</td><td>no</td><td>Degrees &amp; seconds</td></tr>
</table>

## grip

| | |
|---|---|
| Idempotent | No, it closes further |
| Owner | Ann |

Parameters:

1. `force` (number, required): Newton
2. `hand`: `string` = left – Which hand

## turn_base

| Nr | Feld | Datentyp | Pflicht | Bedeutung | Einheit |
|---|---|---|---|---|---|
| 1 | `winkel` | integer | ja | Wie weit gedreht wird | Grad |

## look_around

Parameters
: none
";
    let document = Document::parse(text);
    let found: Vec<(&str, String)> =
        document.tools.iter().map(|tool| (tool.name.as_str(), tool.input["properties"].to_string())).collect();
    assert_eq!(
        found,
        [
            ("move_home", r#"{"speed":{"type":"integer","description":"Degrees & seconds"}}"#.to_owned()),
            (
                "grip",
                r#"{"force":{"type":"number","description":"Newton"},"hand":{"type":"string","description":"Which hand","default":"left"}}"#
                    .to_owned()
            ),
            ("turn_base", r#"{"winkel":{"type":"integer","description":"Wie weit gedreht wird"}}"#.to_owned()),
        ]
    );
    assert_eq!(document.tools[0].idempotency, "**Idempotent**: Yes, a second call finds it there.");
    assert_eq!(document.tools[1].idempotency, "No, it closes further");
    assert_eq!(document.tools[2].input["required"], serde_json::json!(["winkel"]));
    let unread: Vec<&str> = document.problems.iter().map(|problem| problem.span.of(&document.text)).collect();
    assert_eq!(unread, ["look_around"]);
    let rendered = print::render_document("Robot", &document);
    assert!(rendered.lost.is_empty(), "{:?}", rendered.lost);
    assert_eq!(print::render_document("Robot", &Document::parse(&rendered.text)).text, rendered.text);
}

#[test]
fn tools_in_other_forms_are_read_beside_canonical_ones() {
    let text = "\
# Lamps - MCP Tool Specification

## Tool: `lamp_on`

Switches a lamp on.

### 3. Input Schema (Parameters)

| Parameter Name | Type | Required | Description | Example Value |
|---|---|---|---|---|
| `lamp` | `string` | Yes | Which lamp | `\"desk\"` |

### lamp_details

More about lamps.

## lamp_off

- **Description**: Switches a lamp off.
- **Parameters**:
  - `lamp` (string, required): Which lamp

## lamp_colours

Colours that lamps know.

## 4. lamp_list

`filter`
: string, optional. Only lamps that match.

### lamp_find

**Parameters**:

- `name` (string): What to look for

## Dim a lamp

- **Parameters**:
  - `level` (integer, required): Percent
";
    let document = Document::parse(text);
    let tools: Vec<&str> = document.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["lamp_on", "lamp_off", "lamp_list"]);
    assert_eq!(document.tools[1].input["required"], serde_json::json!(["lamp"]));
    let unread: Vec<&str> = document.problems.iter().map(|problem| problem.span.of(&document.text)).collect();
    assert_eq!(unread, ["lamp_colours", "lamp_find", "Dim a lamp"]);
    let says = |index: usize, words: &str| assert!(document.problems[index].message.contains(words));
    says(0, "nothing below it describes parameters");
    says(1, "was read as a part of `lamp_list`");
    says(2, "it is not a name");
}

fn parameters(text: &str) -> Vec<(String, String, bool)> {
    let document = Document::parse(text);
    let tool = &document.tools[0];
    let required: Vec<&str> =
        tool.input["required"].as_array().into_iter().flatten().filter_map(|name| name.as_str()).collect();
    let kind = |schema: &serde_json::Value| schema["type"].as_str().unwrap_or_default().to_owned();
    tool.parameters().map(|(name, schema)| (name.clone(), kind(schema), required.contains(&name.as_str()))).collect()
}

#[test]
fn html_definition_lists_and_parameters_on_one_line_are_read() {
    let expected = [("path".to_owned(), "string".to_owned(), true), ("depth".to_owned(), "integer".to_owned(), false)];
    let html = "<dl>\n<dt><code>path</code> (string, required)</dt>\n<dd>The file &amp; its folder.</dd>\n<DT>depth\n\
                <DD>integer, optional. How deep.\n</dl>\n";
    for text in [
        format!("### read_file\n\nReads a file.\n\n{html}"),
        format!("### read_file\n\nReads a file.\n\n**Parameters**\n\n{html}"),
        "### read_file\n\nReads a file.\n\nInputs: path (string, required), depth (integer, optional)\n".to_owned(),
        "### read_file\n\nReads a file.\nArguments: `path` (string, required), and `depth` (integer, optional).\n"
            .to_owned(),
        "## Tool: read_file\n\nReads.\n\n**Inputs:** `path` (string, required), depth (integer)\n\n**Output:** text\n"
            .to_owned(),
    ] {
        assert_eq!(parameters(&text), expected, "{text}");
        let document = Document::parse(&text);
        assert!(document.tools[0].purpose.starts_with("Reads"), "{text}");
        let rendered = print::render_document("T", &document);
        assert!(rendered.lost.is_empty(), "{text}{:?}", rendered.lost);
    }
}

#[test]
fn parameters_that_cannot_be_read_are_reported() {
    let found = |body: &str| -> Vec<&str> {
        let text = format!("## Tool: read_file\n\nReads.\n\n**Parameters**\n\n{body}\n");
        let findings = lint::check(&Document::parse(&text), &LintConfig::default());
        let ids = findings.iter().map(|finding| finding.rule.id);
        ids.filter(|id| matches!(*id, "tool-unread" | "schema-not-json")).collect()
    };
    assert_eq!(found("```yaml\nparameters:\n  path: string\n```"), ["schema-not-json"]);
    assert_eq!(found("```yaml\n- name: path\n  type: string\n```"), ["tool-unread"]);
    assert_eq!(found("```yaml\npath: string\n```"), ["tool-unread"]);
    assert_eq!(found("```ts\ninterface Input { path: string }\n```"), ["tool-unread"]);
    assert_eq!(found("The path, and how deep to go."), ["tool-unread"]);
    assert_eq!(found("<dl><dt>The path</dt><dd>A string</dd></dl>"), ["tool-unread"]);
    assert_eq!(found("- `path` (string): The file"), [] as [&str; 0]);
    assert_eq!(found("None."), [] as [&str; 0]);
}

#[test]
fn a_column_that_asks_whether_something_is_optional_is_read_so() {
    for (title, answers) in
        [("Optional", ["no", "yes"]), ("Optional?", ["❌", "✅"]), ("Opt.", ["required", "optional"])]
    {
        let text = format!(
            "## Tool: `lamp`\n\n### Parameters\n\n| Argument | Type | {title} | Description |\n|---|---|---|---|\n\
             | room | string | {} | Where |\n| level | integer | {} | How bright |\n",
            answers[0], answers[1]
        );
        let document = Document::parse(&text);
        assert_eq!(document.tools[0].input["required"], serde_json::json!(["room"]), "{text}");
        let rendered = print::render_document("T", &document);
        assert!(rendered.text.contains("| `room` | `string` | Yes |"), "{}", rendered.text);
    }
}

#[test]
fn the_page_in_html_keeps_what_stands_after_the_last_tool() {
    let text = "# T\n\n## Tool: `lamp`\n\n### Parameters\n\nNone.\n\n| odd | zebra |\n|---|---|\n| one | two |\n\n\
                ## Support\n\nAsk giraffe.\n";
    let rendered = print::render_html_document("T", &Document::parse(text));
    assert!(rendered.lost.is_empty(), "{:?}", rendered.lost);
    for kept in ["Support", "Ask giraffe.", "zebra"] {
        assert!(rendered.text.contains(kept), "{kept}: {}", rendered.text);
    }
}

#[test]
fn a_row_that_only_the_table_has_becomes_part_of_the_schema() {
    let text = include_str!("cases/read_file.md");
    let row = "| `max_lines` | `integer` |";
    assert!(text.contains(row));
    let text =
        text.replace(row, &format!("| `encoding` | `string` | Yes | How the text is encoded. | `\"utf-8\"` |\n{row}"));
    let document = Document::parse(&text);
    assert_eq!(document.tools[0].input["properties"]["encoding"]["type"], "string");
    assert!(document.tools[0].input["required"].as_array().unwrap().contains(&"encoding".into()));
    let findings = lint::check(&document, &LintConfig::default());
    assert!(findings.iter().any(|finding| finding.rule.id == "table-schema"), "{findings:?}");
    let rendered = print::render_document("Files", &document);
    assert!(rendered.lost.is_empty() && !rendered.text.contains("Further sections"), "{}", rendered.text);
    let again = Document::parse(&rendered.text);
    assert_eq!(again.tools[0].input, document.tools[0].input);
    assert!(lint::check(&again, &LintConfig::default()).iter().all(|finding| finding.rule.id != "table-schema"));
}

/// Tools and parameters of a document, in short: `dim(room!:string, level:integer)`, required ones with a mark.
fn read(text: &str) -> Vec<String> {
    let tool = |tool: &sinew_spec::ToolSpecification| {
        let required = tool.to_tool();
        let required = required.required();
        let parameter = |(name, schema): (&String, &serde_json::Value)| {
            let mark = if required.contains(&name.as_str()) { "!" } else { "" };
            format!("{name}{mark}:{}", schema.get("type").and_then(serde_json::Value::as_str).unwrap_or("?"))
        };
        format!("{}({})", tool.name, tool.parameters().map(parameter).collect::<Vec<_>>().join(", "))
    };
    Document::parse(text).tools.iter().map(tool).collect()
}

#[test]
fn parameters_in_groups_nests_and_lists_of_html_are_read_as_they_are_meant() {
    let input = |body: &str| read(&format!("# T\n\n## Tool: `dim`\n\n### 3. Input Schema (Parameters)\n\n{body}\n"));
    let table = |rows: &str| format!("| Name | Type | Description |\n|---|---|---|\n{rows}");
    for (body, expected) in [
        (
            format!(
                "**Required:**\n\n{}\n**Optional parameters:**\n\n{}",
                table("| room | string | Where. |\n"),
                table("| level | integer | Percent. |\n")
            ),
            "dim(room!:string, level:integer)",
        ),
        (
            "Required parameters:\n- `room` (string): Where.\n\nOptional:\n- `level` (integer): Percent.".to_owned(),
            "dim(room!:string, level:integer)",
        ),
        (
            format!(
                "#### Required\n\n{}\n#### Optional\n\n{}",
                table("| room | string | Where. |\n"),
                table("| level | integer | Percent. |\n")
            ),
            "dim(room!:string, level:integer)",
        ),
        (
            "#### Required\n\n- `room` (string): Where.\n\n#### Others\n\n- `level` (integer): Percent.".to_owned(),
            "dim(room!:string, level:integer)",
        ),
        (
            "Required:\n- `room` (string): Where.\n\nThe rest:\n- `level` (integer): Percent.".to_owned(),
            "dim(room!:string, level:integer)",
        ),
        // Another table describes something else.
        (
            format!("{}\nMembers of `room`:\n\n{}", table("| room | object | Where. |\n"), table("| x | number | Metres. |\n")),
            "dim(room:object)",
        ),
        (
            "- `room` (object, required): Where.\n  - `x` (number): Metres.\n- `level` (integer): Percent.\n  - `low` (integer): Never less."
                .to_owned(),
            // Inside a number there is nothing: it is only indented.
            "dim(room!:object, level:integer, low:integer)",
        ),
        (
            "<ul>\n<li><code>room</code> (string, required): Where.</li>\n<li><code>level</code> (integer): Percent.</li>\n</ul>"
                .to_owned(),
            "dim(room!:string, level:integer)",
        ),
        (
            "| 参数 | 类型 | 必填 | 说明 |\n|---|---|---|---|\n| room | string | 是 | 房间 |\n| level | integer | 否 | 百分比 |".to_owned(),
            "dim(room!:string, level:integer)",
        ),
    ] {
        assert_eq!(input(&body), [expected], "{body}");
    }
    let nested = Document::parse(
        "# T\n\n## Tool: `dim`\n\n### 3. Input Schema (Parameters)\n\n- `room` (object): Where.\n  - `x` (number, required): Metres.\n  - `y` (number): Metres.\n",
    );
    let room = &nested.tools[0].input["properties"]["room"];
    assert_eq!((&room["properties"]["x"]["type"], &room["required"]), (&"number".into(), &serde_json::json!(["x"])));
    assert_eq!(nested.tools[0].input.get("required"), None);
}

#[test]
fn a_sentence_may_say_that_there_are_no_parameters() {
    let known = |body: &str| {
        let text = format!("# T\n\n## Tool: `dim`\n\n### 3. Input Schema (Parameters)\n\n{body}\n");
        Document::parse(&text).tools[0].input_known
    };
    for body in [
        "This tool does not take any parameters.",
        "It doesn't need arguments.",
        "No input required.",
        "- None.",
        "_(none)_",
        "`{}`",
        "Empty object.",
        "Takes no arguments",
        "None — this tool takes no parameters.",
        "(This tool currently takes no input parameters.)",
        "No parameters. Checks whether the lamp answers.",
        "无",
    ] {
        assert!(known(body), "{body}");
    }
    for body in [
        "No parameters other than the room.",
        "It does not validate its parameters.",
        "Takes the room, and optionally the level.",
        "None of the parameters is optional.",
        "No input file is needed.",
        "It does not take input from other tools.",
        "No parameter validation.",
    ] {
        assert!(!known(body), "{body}");
    }
    // What such a sentence says beyond that is kept, once.
    let notes = |body: &str| {
        let text = format!("# T\n\n## Tool: `dim`\n\n### 3. Input Schema (Parameters)\n\n{body}\n");
        let printed = print::render_document("T", &Document::parse(&text));
        assert_eq!(printed.lost, [], "{body}");
        assert_eq!(print::render_document("T", &Document::parse(&printed.text)).text, printed.text, "{body}");
        Document::parse(&printed.text).tools[0].input_notes.clone()
    };
    for body in ["This tool currently takes no parameters.", "No parameters. Checks whether the lamp answers."] {
        assert_eq!(notes(body), body);
    }
    for body in ["None.", "This tool does not take any parameters.", "No inputs are required."] {
        assert_eq!(notes(body), "", "{body}");
    }
}

#[test]
fn a_tool_is_known_by_its_invocation_name_under_any_heading() {
    let sections = "### 1. Tool Purpose and Description\n\nDims a lamp.\n\n### 2. Invocation Name\n\n`dim_lamp`\n\n\
                    ### 3. Input Schema (Parameters)\n\n- `room` (string): Where.\n";
    assert_eq!(read(&format!("# Lamps\n\n## Dimming\n\n{sections}")), ["dim_lamp(room:string)"]);
    assert_eq!(read(&format!("# Lamps\n\n## Tool: `dim_lamp`\n\n{sections}")), ["dim_lamp(room:string)"]);
    let two =
        format!("# Lamps\n\n## Dimming\n\n{sections}\n## Listing\n\n{}", sections.replace("dim_lamp", "list_lamps"));
    assert_eq!(read(&two), ["dim_lamp(room:string)", "list_lamps(room:string)"]);
    // Below the title alone they describe no tool that could be printed again; the remedy is reported.
    let untitled = Document::parse(&format!("# Lamps\n\n{sections}"));
    assert_eq!(untitled.tools.len(), 0);
    let found = lint::check(&untitled, &LintConfig::default());
    assert!(found.iter().any(|finding| finding.rule.id == "tool-unread"), "{found:#?}");
}
