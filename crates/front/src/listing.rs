//! The tool list as MCP has it, in the form that a client chose.

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool};
use serde_json::Value;
use sinew_gateway::{Shape, ToolList};
use sinew_tool::portable::{self, Portable};

use crate::{query, translate};

/// The choices in the query of the URL: `?tools=unfolded&schemas=exact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListForm {
    pub shape: Shape,
    pub schemas: Schemas,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub(crate) fn new(list: Arc<ToolList>, schemas: Schemas) -> McpToolList {
        let mut listed = ListedSchemas::default();
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
        let has_header_arguments = tools.iter().any(|tool| has_header_argument(&tool.input_schema));
        McpToolList { list, schemas, tools, simplified, has_header_arguments }
    }
}

/// The schemas of a list. Equal devices share theirs, so each is rewritten once.
#[derive(Default)]
struct ListedSchemas(HashMap<(usize, SchemaUse), ListedSchema>);

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

impl ListedSchemas {
    /// The list keeps every schema alive, so an address identifies a schema.
    fn get(&mut self, schema: &Arc<Value>, schemas: Schemas, used: SchemaUse) -> ListedSchema {
        let entry = self.0.entry((Arc::as_ptr(schema).addr(), used)).or_insert_with(|| {
            let Portable { schema, notes, simplified } = match (schemas, used) {
                (Schemas::Portable, SchemaUse::Input) => portable::input(schema),
                (Schemas::Portable, SchemaUse::Output) => portable::output(schema),
                (Schemas::Exact, _) => Portable { schema: (**schema).clone(), notes: vec![], simplified: vec![] },
            };
            let Value::Object(members) = schema else { return ListedSchema::default() };
            let simplified = simplified.iter().map(ToString::to_string).collect();
            ListedSchema { schema: Arc::new(members), notes: notes.into(), simplified }
        });
        entry.clone()
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
        let listing = McpToolList::new(list(&schemas), Schemas::Portable);
        assert_eq!(listing.tools.len(), 501);
        // One rewritten schema stands behind all of them.
        let first = &listing.tools[0].input_schema;
        assert_eq!(listing.tools.iter().filter(|tool| Arc::ptr_eq(&tool.input_schema, first)).count(), 500);
        assert_eq!(listing.simplified[7], ["/properties/a: format, for Gemini"]);
        assert!(listing.simplified[500].is_empty());
    }
}
