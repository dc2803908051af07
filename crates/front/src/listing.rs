//! The tool list as MCP has it, in the form that a client chose.

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool};
use serde_json::Value;
use sinew_gateway::{Shape, ToolList};
use sinew_tool::Digest;
use sinew_tool::portable::{self, Portable};

use crate::{query, translate};

/// The choices in the query of the URL: `?tools=unfolded&schemas=exact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListForm {
    pub shape: Shape,
    pub schemas: Schemas,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Schemas {
    /// In the subset of JSON Schema that every client accepts.
    Portable,
    /// As the device wrote them.
    Exact,
}

impl From<Shape> for ListForm {
    fn from(shape: Shape) -> ListForm {
        ListForm { shape, schemas: Schemas::Portable }
    }
}

impl ListForm {
    pub(crate) const ALL: [ListForm; 4] = [
        ListForm { shape: Shape::Folded, schemas: Schemas::Portable },
        ListForm { shape: Shape::Folded, schemas: Schemas::Exact },
        ListForm { shape: Shape::Unfolded, schemas: Schemas::Portable },
        ListForm { shape: Shape::Unfolded, schemas: Schemas::Exact },
    ];

    pub(crate) fn of(uri: &http::Uri) -> Result<ListForm, String> {
        let mut form = ListForm::from(Shape::Folded);
        for (key, value) in query::pairs(uri.query().unwrap_or_default()) {
            match (key.as_str(), value.as_str()) {
                ("tools", "folded") => form.shape = Shape::Folded,
                ("tools", "unfolded") => form.shape = Shape::Unfolded,
                ("tools", other) => return Err(wrong("tools", "folded` or `unfolded", other)),
                ("schemas", "portable") => form.schemas = Schemas::Portable,
                ("schemas", "exact") => form.schemas = Schemas::Exact,
                ("schemas", other) => return Err(wrong("schemas", "portable` or `exact", other)),
                _ => {}
            }
        }
        Ok(form)
    }
}

fn wrong(key: &str, choices: &str, given: &str) -> String {
    format!("`{key}` in the URL must be `{choices}`, not `{}`", sinew_tool::text::clip(given))
}

/// A tool list as MCP has it.
pub(crate) struct McpToolList {
    pub list: Arc<ToolList>,
    pub schemas: Schemas,
    pub tools: Vec<Tool>,
    /// What was simplified in the schemas of each tool.
    pub simplified: Vec<Vec<String>>,
    /// Whether a tool has arguments that are also sent as headers.
    pub has_header_arguments: bool,
}

impl McpToolList {
    pub(crate) fn new(list: Arc<ToolList>, schemas: Schemas, known: &mut KnownSchemas) -> McpToolList {
        let mut listed = ListedSchemas { known, here: HashMap::new() };
        let (tools, simplified): (Vec<Tool>, Vec<Vec<String>>) = list
            .tools
            .iter()
            .map(|public| {
                let tool = &public.tool;
                let input = listed.get(&tool.input_schema, schemas, SchemaUse::Input);
                let output = tool.output_schema.as_ref().map(|schema| listed.get(schema, schemas, SchemaUse::Output));
                let in_output = output.iter().flat_map(|output| output.simplified.iter());
                let in_output = in_output.map(|simplified| format!("output {simplified}"));
                let simplified = input.simplified.iter().cloned().chain(in_output).collect();
                let output = output.map(|output| output.schema);
                (translate::to_tool(public, &input.notes, input.schema, output), simplified)
            })
            .unzip();
        known.forget_unused();
        let has_header_arguments = tools.iter().any(|tool| has_header_argument(&tool.input_schema));
        McpToolList { list, schemas, tools, simplified, has_header_arguments }
    }
}

/// The rewritten schemas of all lists, by what was rewritten. A list changes whenever a device comes or goes, and each
/// schema is rewritten once all the same.
#[derive(Default)]
pub(crate) struct KnownSchemas {
    rewritten: HashMap<(Digest, SchemaUse, Schemas), ListedSchema>,
    /// How many there were after the last time that unused ones were removed.
    kept: usize,
}

impl KnownSchemas {
    /// Removes what no list has any more, whenever there are twice as many as before.
    fn forget_unused(&mut self) {
        if self.rewritten.len() > 64.max(2 * self.kept) {
            self.rewritten.retain(|_, listed| Arc::strong_count(&listed.schema) > 1);
            self.kept = self.rewritten.len();
        }
    }
}

/// The schemas of one list.
struct ListedSchemas<'a> {
    known: &'a mut KnownSchemas,
    /// By address: equal devices share theirs, and the list keeps every schema alive.
    here: HashMap<(usize, SchemaUse), ListedSchema>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum SchemaUse {
    Input,
    Output,
}

#[derive(Clone, Default)]
struct ListedSchema {
    schema: Arc<JsonObject>,
    notes: Arc<[String]>,
    simplified: Arc<[String]>,
}

impl ListedSchemas<'_> {
    fn get(&mut self, schema: &Arc<Value>, schemas: Schemas, used: SchemaUse) -> ListedSchema {
        let known = &mut self.known.rewritten;
        let here = self.here.entry((Arc::as_ptr(schema).addr(), used)).or_insert_with(|| {
            let key = (Digest::of(schema), used, schemas);
            known.entry(key).or_insert_with(|| ListedSchema::new(schema, schemas, used)).clone()
        });
        here.clone()
    }
}

impl ListedSchema {
    fn new(schema: &Value, schemas: Schemas, used: SchemaUse) -> ListedSchema {
        let Portable { schema, notes, simplified } = match (schemas, used) {
            (Schemas::Portable, SchemaUse::Input) => portable::input(schema),
            (Schemas::Portable, SchemaUse::Output) => portable::output(schema),
            (Schemas::Exact, _) => Portable { schema: schema.clone(), notes: vec![], simplified: vec![] },
        };
        let Value::Object(members) = schema else { return ListedSchema::default() };
        let simplified = simplified.iter().map(ToString::to_string).collect();
        ListedSchema { schema: Arc::new(members), notes: notes.into(), simplified }
    }
}

/// Whether an argument is also sent as a header. The gateway keeps `x-mcp-header` only where clients accept it.
fn has_header_argument(schema: &JsonObject) -> bool {
    schema.get("properties").and_then(Value::as_object).is_some_and(|properties| {
        properties
            .values()
            .filter_map(Value::as_object)
            .any(|one| one.contains_key("x-mcp-header") || has_header_argument(one))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sinew_tool::Tool as DeviceTool;

    use super::*;

    fn list(schemas: &[Arc<Value>]) -> Arc<ToolList> {
        let public = |(index, schema): (usize, &Arc<Value>)| {
            let tool = DeviceTool { input_schema: schema.clone(), ..DeviceTool::new("t", "A tool", json!({})) };
            let name = format!("t{index}");
            sinew_gateway::PublicTool { own_name: name.clone(), name, tool, device: None, selector: None }
        };
        let digest = sinew_tool::Digest::of(&json!(0));
        Arc::new(ToolList { tools: schemas.iter().enumerate().map(public).collect(), digest })
    }

    #[test]
    fn a_schema_that_many_tools_share_is_rewritten_once() {
        let shared = Arc::new(json!({"type": "object", "properties": {"a": {"type": "string", "format": "email"}}}));
        let other = Arc::new(json!({"type": "object"}));
        let mut schemas = vec![shared; 500];
        schemas.push(other);
        let listing = McpToolList::new(list(&schemas), Schemas::Portable, &mut KnownSchemas::default());
        assert_eq!(listing.tools.len(), 501);
        // One rewritten schema stands behind all of them.
        let first = &listing.tools[0].input_schema;
        assert_eq!(listing.tools.iter().filter(|tool| Arc::ptr_eq(&tool.input_schema, first)).count(), 500);
        assert_eq!(listing.simplified[7], ["/properties/a: format, for Gemini"]);
        assert!(listing.simplified[500].is_empty());
    }

    #[test]
    fn a_schema_is_not_rewritten_for_the_next_list() {
        // Each list has schemas of its own making, as folding makes them.
        let schema = |name: &str| Arc::new(json!({"type": "object", "properties": {name: {"format": "email"}}}));
        let mut known = KnownSchemas::default();
        let first = McpToolList::new(list(&[schema("a")]), Schemas::Portable, &mut known);
        let second = McpToolList::new(list(&[schema("b"), schema("a")]), Schemas::Portable, &mut known);
        assert!(Arc::ptr_eq(&first.tools[0].input_schema, &second.tools[1].input_schema));
        assert_eq!(known.rewritten.len(), 2);
        let exact = McpToolList::new(list(&[schema("a")]), Schemas::Exact, &mut known);
        assert_eq!(Value::Object((*exact.tools[0].input_schema).clone()), *schema("a"));
    }

    #[test]
    fn schemas_that_no_list_has_any_more_are_forgotten() {
        let mut known = KnownSchemas::default();
        let stays = McpToolList::new(
            list(&[Arc::new(json!({"type": "object", "title": "stays"}))]),
            Schemas::Portable,
            &mut known,
        );
        for number in 0..1_000 {
            let schema = Arc::new(json!({"type": "object", "title": number.to_string()}));
            McpToolList::new(list(&[schema]), Schemas::Portable, &mut known);
        }
        assert!(known.rewritten.len() <= 65, "{}", known.rewritten.len());
        let again = McpToolList::new(stays.list.clone(), Schemas::Portable, &mut known);
        assert!(Arc::ptr_eq(&stays.tools[0].input_schema, &again.tools[0].input_schema));
    }
}
