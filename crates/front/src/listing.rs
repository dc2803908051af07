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
    /// Whether a tool has arguments that are also sent as headers.
    pub has_header_arguments: bool,
}

impl McpToolList {
    pub(crate) fn new(list: Arc<ToolList>, schemas: Schemas) -> McpToolList {
        let mut listed = ListedSchemas::default();
        let tools: Vec<Tool> = list
            .tools
            .iter()
            .map(|public| {
                let tool = &public.tool;
                let input = listed.get(&tool.input_schema, schemas, SchemaUse::Input);
                let output = tool.output_schema.as_ref().map(|schema| listed.get(schema, schemas, SchemaUse::Output));
                translate::to_tool(public, &input.notes, input.schema, output.map(|output| output.schema))
            })
            .collect();
        let has_header_arguments = tools.iter().any(|tool| has_header_argument(&tool.input_schema));
        McpToolList { list, schemas, tools, has_header_arguments }
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
}

impl ListedSchemas {
    /// The list keeps every schema alive, so an address identifies a schema.
    fn get(&mut self, schema: &Arc<Value>, schemas: Schemas, used: SchemaUse) -> ListedSchema {
        let entry = self.0.entry((Arc::as_ptr(schema).addr(), used)).or_insert_with(|| {
            let Portable { schema, notes, .. } = match (schemas, used) {
                (Schemas::Portable, SchemaUse::Input) => portable::input(schema),
                (Schemas::Portable, SchemaUse::Output) => portable::output(schema),
                (Schemas::Exact, _) => Portable { schema: (**schema).clone(), notes: vec![], simplified: vec![] },
            };
            let Value::Object(members) = schema else { return ListedSchema::default() };
            ListedSchema { schema: Arc::new(members), notes: notes.into() }
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
