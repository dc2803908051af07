//! `tools/list`, page by page, within limits. If a list ends early, what was read is kept.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sinew_tool::text::clip;
use sinew_tool::{Audience, Effect, Tool, Toolset};

use super::Limits;
use crate::raw;

/// A tool list while it is being read.
pub struct ToolListing {
    tools: Vec<Tool>,
    warnings: Vec<String>,
    cursor: String,
    /// Cursors that were used: a board that repeats one would be asked forever.
    used: Vec<String>,
    bytes: usize,
}

/// A page whose tools are read one by one.
#[derive(Deserialize)]
struct LongPage<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

/// A longer name is a mistake; clients accept 64 characters at most.
const NAME_BYTES: usize = 128;
/// Warnings about one list; people read them.
const WARNINGS: usize = 32;

impl Default for ToolListing {
    fn default() -> ToolListing {
        ToolListing::new()
    }
}

impl ToolListing {
    pub fn new() -> ToolListing {
        ToolListing { tools: Vec::new(), warnings: Vec::new(), cursor: String::new(), used: Vec::new(), bytes: 0 }
    }

    /// The parameters of the next request. The first cursor is empty for boards, and absent for a `bare`
    /// provider, as MCP has it; the wish for user tools must be repeated on every page, because a cursor may
    /// point at one.
    pub fn params(&self, user_tools: bool, bare: bool) -> String {
        let mut params = json!({});
        if !bare || !self.cursor.is_empty() {
            params["cursor"] = json!(self.cursor);
        }
        if user_tools {
            params["withUserTools"] = json!(true);
        }
        params.to_string()
    }

    /// Whether no tool was read yet.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Notes what is wrong with the list.
    pub fn warn(&mut self, warning: String) {
        if self.warnings.len() < WARNINGS {
            self.warnings.push(warning);
        } else if self.warnings.len() == WARNINGS {
            self.warnings.push("further warnings about this tool list are left out".to_owned());
        }
    }

    /// Reads one page; true when there is another.
    pub fn read(&mut self, page: &RawValue, limits: &Limits) -> bool {
        let room = limits.list_bytes.saturating_sub(self.bytes);
        if page.get().len() > room {
            self.warn(format!(
                "the tool list is longer than {} bytes; the device should describe its tools more briefly; what was read so far is kept",
                limits.list_bytes
            ));
            self.take_what_fits(page, room, limits);
            return false;
        }
        self.bytes += page.get().len();
        let mut page: Value = match raw::read(page.get()) {
            Ok(page) => page,
            Err(problem) => {
                self.warn(format!("a page of the tool list cannot be read ({problem}); what was read so far is kept"));
                return false;
            }
        };
        match page.get_mut("tools").map(Value::take) {
            Some(Value::Array(entries)) => {
                for mut entry in entries {
                    if self.tools.len() == limits.tools {
                        self.warn(format!("the device has more than {} tools; the rest is left out", limits.tools));
                        return false;
                    }
                    name_boolean_types(&mut entry);
                    self.take(&entry);
                }
            }
            _ => self.warn("a page of the tool list has no array `tools`".to_owned()),
        }
        self.turn(page.get("nextCursor"), limits)
    }

    /// Takes the first tools of a page that is too long.
    fn take_what_fits(&mut self, page: &RawValue, mut room: usize, limits: &Limits) {
        let Ok(LongPage { tools }) = serde_json::from_str(page.get()) else { return };
        for entry in tools.into_iter().take(limits.tools.saturating_sub(self.tools.len())) {
            let Some(rest) = room.checked_sub(entry.get().len()) else { return };
            room = rest;
            if let Ok(mut entry) = raw::read(entry.get()) {
                name_boolean_types(&mut entry);
                self.take(&entry);
            }
        }
    }

    fn take(&mut self, entry: &Value) {
        let tool = match Tool::from_json(entry) {
            Ok(tool) => tool,
            Err(problem) => {
                return self.warn(format!("a tool is left out: {problem}, got {}", clip(&entry.to_string())));
            }
        };
        if tool.name.len() > NAME_BYTES || tool.name.contains(char::is_control) {
            return self.warn(format!("the tool `{}` is left out: its name is unusable", clip(&tool.name)));
        }
        if self.tools.iter().any(|earlier| earlier.name == tool.name) {
            return self.warn(format!("the tool `{}` is listed twice; the first one counts", clip(&tool.name)));
        }
        if entry.get("inputSchema").is_some_and(|schema| !schema.is_object()) {
            self.warn(format!(
                "the input schema of `{}` is not an object; any arguments are let through",
                clip(&tool.name)
            ));
        }
        self.tools.push(mark_harmful(tool));
    }

    fn turn(&mut self, next: Option<&Value>, limits: &Limits) -> bool {
        let next = match next {
            None | Some(Value::Null) => return false,
            Some(Value::String(cursor)) if cursor.is_empty() => return false,
            Some(Value::String(cursor)) => cursor.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(other) => {
                self.warn(format!(
                    "the tool list ends early: `nextCursor` is {}, not a string",
                    clip(&other.to_string())
                ));
                return false;
            }
        };
        if next == self.cursor || self.used.contains(&next) {
            self.warn(format!("the tool list repeats: the cursor `{}` came twice", clip(&next)));
            return false;
        }
        if self.used.len() + 1 >= limits.pages {
            self.warn(format!("the tool list has more than {} pages; the rest is left out", limits.pages));
            return false;
        }
        self.used.push(std::mem::replace(&mut self.cursor, next));
        true
    }

    /// The tools, and what was wrong with their list.
    pub fn finish(self) -> (Toolset, Vec<String>) {
        (Toolset::new(self.tools), self.warnings)
    }
}

/// User tools of firmware that interrupt a device or change its program, by the last part of their names. Firmware gives
/// no hints.
const HARMFUL: [&str; 4] = ["reboot", "restart", "upgrade_firmware", "factory_reset"];

fn mark_harmful(mut tool: Tool) -> Tool {
    let is_harmful = tool.name.rsplit('.').next().is_some_and(|last| HARMFUL.contains(&last));
    if tool.audience == Audience::User && is_harmful {
        tool.hints.read_only = Some(false);
        tool.hints.destructive = Some(true);
        tool.effect = Some(Effect::Danger);
    }
    tool
}

/// A small MCP server of EMQ's names the type of switches with the switch itself, `true`.
fn name_boolean_types(entry: &mut Value) {
    let properties = entry.pointer_mut("/inputSchema/properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(|properties| properties.values_mut()) {
        if let Some(kind) = property.get_mut("type").filter(|kind| kind.is_boolean()) {
            *kind = json!("boolean");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(listing: &mut ToolListing, page: Value) -> bool {
        let limits = Limits { pages: 4, tools: 3, list_bytes: 2000, ..Limits::default() };
        let page = serde_json::value::to_raw_value(&page).unwrap();
        listing.read(&page, &limits)
    }

    fn names(listing: ToolListing) -> (Vec<String>, usize) {
        let (tools, warnings) = listing.finish();
        (tools.iter().map(|tool| tool.name.clone()).collect(), warnings.len())
    }

    #[test]
    fn an_absent_null_or_empty_cursor_ends_the_list_quietly() {
        for end in
            [json!({"tools": []}), json!({"tools": [], "nextCursor": null}), json!({"tools": [], "nextCursor": ""})]
        {
            let mut listing = ToolListing::new();
            assert!(read(&mut listing, json!({"tools": [{"name": "a"}], "nextCursor": "b"})));
            assert_eq!(listing.params(true, false), r#"{"cursor":"b","withUserTools":true}"#);
            assert!(!read(&mut listing, end));
            assert_eq!(names(listing), (vec!["a".to_owned()], 0));
        }
    }

    #[test]
    fn a_repeated_cursor_ends_the_list_with_a_warning_and_keeps_what_was_read() {
        let mut listing = ToolListing::new();
        assert!(read(&mut listing, json!({"tools": [{"name": "a"}], "nextCursor": "x"})));
        assert!(read(&mut listing, json!({"tools": [{"name": "b"}], "nextCursor": "y"})));
        assert!(!read(&mut listing, json!({"tools": [{"name": "c"}], "nextCursor": "x"})));
        assert_eq!(names(listing), (vec!["a".to_owned(), "b".to_owned(), "c".to_owned()], 1));
    }

    #[test]
    fn odd_entries_are_left_out_or_mended_with_a_warning_each() {
        let mut listing = ToolListing::new();
        let tools = json!([5, {}, {"name": ""}, {"name": "a\u{7}"}, {"name": "a"}, {"name": "a"}, {"name": "b", "inputSchema": 3}]);
        assert!(!read(&mut listing, json!({"tools": tools})));
        assert_eq!(names(listing), (vec!["a".to_owned(), "b".to_owned()], 6));
    }

    #[test]
    fn a_type_that_is_a_switch_is_a_boolean() {
        let mut listing = ToolListing::new();
        let schema = json!({"type": "object", "properties": {"on": {"type": true}, "n": {"type": "number"}}});
        assert!(!read(&mut listing, json!({"tools": [{"name": "a", "inputSchema": schema}]})));
        let (tools, _) = listing.finish();
        let tool = tools.find("a").unwrap();
        assert_eq!(tool.input_schema["properties"]["on"]["type"], "boolean");
        assert_eq!(tool.input_schema["properties"]["n"]["type"], "number");
    }

    #[test]
    fn half_a_surrogate_pair_costs_no_tool() {
        let page = r#"{"tools": [{"name": "a", "description": "Cut \ud83d"}, {"name": "b"}], "nextCursor": ""}"#;
        let mut listing = ToolListing::new();
        assert!(!listing.read(&RawValue::from_string(page.to_owned()).unwrap(), &Limits::default()));
        let (tools, warnings) = listing.finish();
        assert_eq!((tools.find("a").unwrap().description.as_str(), warnings.len()), ("Cut \u{fffd}", 0));
        assert!(tools.find("b").is_some());
    }

    #[test]
    fn pages_tools_and_bytes_are_bounded() {
        let mut listing = ToolListing::new();
        let pages =
            (0..10).take_while(|n| read(&mut listing, json!({"tools": [], "nextCursor": n.to_string()}))).count();
        assert_eq!(pages, 3);

        let mut listing = ToolListing::new();
        let many: Vec<Value> = (0..10).map(|n| json!({"name": n.to_string()})).collect();
        assert!(!read(&mut listing, json!({"tools": many, "nextCursor": "x"})));
        assert_eq!(names(listing).0.len(), 3);

        let mut listing = ToolListing::new();
        assert!(!read(
            &mut listing,
            json!({"tools": [{"name": "a", "description": "x".repeat(3000)}], "nextCursor": "x"})
        ));
        assert_eq!(names(listing), (vec![], 1));

        let mut listing = ToolListing::new();
        let long = |name: &str| json!({"name": name, "description": "x".repeat(900)});
        assert!(!read(&mut listing, json!({"tools": [long("a"), long("b"), long("c")], "nextCursor": "x"})));
        assert_eq!(names(listing), (vec!["a".to_owned(), "b".to_owned()], 1));
    }

    #[test]
    fn a_page_of_another_shape_ends_the_list_with_a_warning() {
        for page in [json!(null), json!([]), json!({"tools": {}}), json!({"tools": [], "nextCursor": []})] {
            let mut listing = ToolListing::new();
            assert!(!read(&mut listing, page));
            assert_eq!(names(listing), (vec![], 1));
        }
    }
}
