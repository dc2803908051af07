//! The tool list in MCP's words, in the form a client chose.

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool};
use serde_json::Value;
use sinew_gateway::{Shape, ToolList};
use sinew_tool::portable::{self, Portable};

use crate::{query, translate};

/// What a client chose in the address: `?tools=unfolded&schemas=exact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub shape: Shape,
    pub schemas: Schemas,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schemas {
    /// In the subset of JSON Schema that every client takes.
    Portable,
    /// As the device wrote them.
    Exact,
}

impl From<Shape> for Form {
    fn from(shape: Shape) -> Form {
        Form { shape, schemas: Schemas::Portable }
    }
}

impl Form {
    pub(crate) const ALL: [Form; 4] = [
        Form { shape: Shape::Folded, schemas: Schemas::Portable },
        Form { shape: Shape::Folded, schemas: Schemas::Exact },
        Form { shape: Shape::Unfolded, schemas: Schemas::Portable },
        Form { shape: Shape::Unfolded, schemas: Schemas::Exact },
    ];

    pub(crate) fn of(uri: &http::Uri) -> Result<Form, String> {
        let mut form = Form::from(Shape::Folded);
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
    format!("`{key}` in the address is `{choices}`, not `{}`", sinew_tool::text::clip(given))
}

/// A tool list, put into MCP's words once.
pub(crate) struct Listing {
    pub list: Arc<ToolList>,
    pub schemas: Schemas,
    pub tools: Vec<Tool>,
    /// Some tool has arguments that also travel as headers.
    pub annotated: bool,
}

impl Listing {
    pub(crate) fn new(list: Arc<ToolList>, schemas: Schemas) -> Listing {
        let mut rewritten = Rewritten::default();
        let tools: Vec<Tool> = list
            .tools
            .iter()
            .map(|public| {
                let tool = &public.tool;
                let input = rewritten.get(&tool.input_schema, schemas, Use::Input);
                let output = tool.output_schema.as_ref().map(|schema| rewritten.get(schema, schemas, Use::Output));
                translate::to_tool(public, &input.words, input.schema, output.map(|output| output.schema))
            })
            .collect();
        let annotated = tools.iter().any(|tool| annotated(&tool.input_schema));
        Listing { list, schemas, tools, annotated }
    }
}

/// The schemas of a list: thousands of equal devices share theirs.
#[derive(Default)]
struct Rewritten(HashMap<(usize, Use), Schema>);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Use {
    Input,
    Output,
}

#[derive(Clone, Default)]
struct Schema {
    schema: Arc<JsonObject>,
    words: Arc<[String]>,
}

impl Rewritten {
    /// The list keeps every schema alive, so that an address stands for one schema.
    fn get(&mut self, schema: &Arc<Value>, schemas: Schemas, used: Use) -> Schema {
        let entry = self.0.entry((Arc::as_ptr(schema).addr(), used)).or_insert_with(|| {
            let Portable { schema, notes: words, .. } = match (schemas, used) {
                (Schemas::Portable, Use::Input) => portable::input(schema),
                (Schemas::Portable, Use::Output) => portable::output(schema),
                (Schemas::Exact, _) => Portable { schema: (**schema).clone(), notes: vec![], simplified: vec![] },
            };
            let Value::Object(members) = schema else { return Schema::default() };
            Schema { schema: Arc::new(members), words: words.into() }
        });
        entry.clone()
    }
}

/// Whether an argument also travels as a header. The gateway lets such a wish of a device through only
/// where clients accept it.
fn annotated(schema: &JsonObject) -> bool {
    schema.get("properties").and_then(Value::as_object).is_some_and(|properties| {
        properties.values().filter_map(Value::as_object).any(|one| one.contains_key("x-mcp-header") || annotated(one))
    })
}
