//! The tool list as MCP has it, in the form that a client chose.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{JsonObject, Tool};
use serde_json::Value;
use sinew_gateway::{Shape, ToolList};
use sinew_tool::portable::{self, Description, Portable};
use sinew_tool::{Digest, header_arguments};

use crate::{query, translate};

/// The choices in the query of the URL: `?tools=unfolded&schemas=exact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListForm {
    pub shape: Shape,
    pub schemas: Schemas,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Schemas {
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

    /// The path of an endpoint for this form.
    pub fn path(self, endpoint: &str) -> String {
        let tools = (self.shape == Shape::Unfolded).then_some("tools=unfolded");
        let schemas = (self.schemas == Schemas::Exact).then_some("schemas=exact");
        let query: Vec<&str> = tools.into_iter().chain(schemas).collect();
        if query.is_empty() { endpoint.to_owned() } else { format!("{endpoint}?{}", query.join("&")) }
    }

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
    pub tools: Vec<Tool>,
    /// What was simplified in the schemas of each tool.
    pub simplified: Vec<Vec<String>>,
}

impl McpToolList {
    pub(crate) fn new(list: Arc<ToolList>, schemas: Schemas, known: &KnownSchemas) -> McpToolList {
        let mut listed = ListedSchemas { known, here: HashMap::new() };
        let (tools, simplified): (Vec<Tool>, Vec<Vec<String>>) = list
            .tools
            .iter()
            .map(|public| {
                let tool = &public.tool;
                let exact = Some(&public.exact).filter(|_| schemas == Schemas::Exact);
                let input = exact.and_then(|exact| exact.input.as_ref()).unwrap_or(&tool.input_schema);
                let input = listed.get(input, schemas, SchemaUse::Input);
                let output = exact.and_then(|exact| exact.output.as_ref()).or(tool.output_schema.as_ref());
                let output = output.map(|schema| listed.get(schema, schemas, SchemaUse::Output));
                let in_output = output.iter().flat_map(|output| output.simplified.iter());
                let in_output = in_output.map(|simplified| format!("output {simplified}"));
                let description = match schemas {
                    Schemas::Portable => portable::describe(&tool.description, tool.title.as_deref(), &input.notes),
                    Schemas::Exact => Description { text: tool.description.clone(), simplified: None },
                };
                let in_text = description.simplified.map(|simplified| simplified.to_string());
                let simplified = in_text.into_iter().chain(input.simplified.iter().cloned()).chain(in_output).collect();
                let output = output.map(|output| output.schema);
                (translate::to_tool(public, description.text, input.schema, output), simplified)
            })
            .unzip();
        known.forget_unused();
        McpToolList { list, tools, simplified }
    }
}

/// The rewritten schemas of all lists, by what was rewritten. A list changes whenever a device comes or goes, and each
/// schema is rewritten once all the same.
#[derive(Default)]
pub(crate) struct KnownSchemas(Mutex<RewrittenSchemas>);

#[derive(Default)]
struct RewrittenSchemas {
    by_key: HashMap<SchemaKey, ListedSchema>,
    /// How many there were after the last time that unused ones were removed.
    kept: usize,
}

type SchemaKey = (Digest, SchemaUse, Schemas);

impl KnownSchemas {
    fn lock(&self) -> MutexGuard<'_, RewrittenSchemas> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A schema that is known, or that `rewrite` makes. Rewriting takes long, so others are not kept waiting for it.
    fn get(&self, key: SchemaKey, rewrite: impl FnOnce() -> ListedSchema) -> ListedSchema {
        let known = self.lock().by_key.get(&key).cloned();
        known.unwrap_or_else(|| {
            let rewritten = rewrite();
            self.lock().by_key.entry(key).or_insert(rewritten).clone()
        })
    }

    /// Removes what no list has any more, whenever there are twice as many as before.
    fn forget_unused(&self) {
        let mut rewritten = self.lock();
        if rewritten.by_key.len() > 64.max(2 * rewritten.kept) {
            rewritten.by_key.retain(|_, listed| Arc::strong_count(&listed.schema) > 1);
            rewritten.kept = rewritten.by_key.len();
        }
    }
}

/// The schemas of one list.
struct ListedSchemas<'a> {
    known: &'a KnownSchemas,
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
        let here = self.here.entry((Arc::as_ptr(schema).addr(), used)).or_insert_with(|| {
            self.known.get((Digest::of(schema), used, schemas), || ListedSchema::new(schema, schemas, used))
        });
        here.clone()
    }
}

impl ListedSchema {
    fn new(schema: &Value, schemas: Schemas, used: SchemaUse) -> ListedSchema {
        let Portable { schema, notes, simplified, .. } = match (schemas, used) {
            (Schemas::Portable, SchemaUse::Input) => portable::input(schema),
            (Schemas::Portable, SchemaUse::Output) => portable::output(schema),
            (Schemas::Exact, _) => Portable { schema: schema.clone(), notes: vec![], simplified: vec![], work: 0 },
        };
        let Value::Object(members) = schema else { return ListedSchema::default() };
        let simplified = simplified.iter().map(ToString::to_string).collect();
        ListedSchema { schema: Arc::new(members), notes: notes.into(), simplified }
    }
}

/// Removes the marks of arguments that are also sent as headers, for clients that do not know them.
pub(crate) fn remove_header_marks(tool: &mut Tool) {
    if header_arguments::has_any(&tool.input_schema) {
        header_arguments::remove(Arc::make_mut(&mut tool.input_schema));
    }
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
            let exact = Default::default();
            sinew_gateway::PublicTool { own_name: name.clone(), name, tool, exact, device: None, selector: None }
        };
        let digest = sinew_tool::Digest::of(&json!(0));
        Arc::new(ToolList { tools: schemas.iter().enumerate().map(public).collect(), digest })
    }

    #[test]
    fn the_path_of_a_form_is_read_back() {
        for form in ListForm::ALL {
            assert_eq!(ListForm::of(&form.path("/mcp").parse().expect("a path")), Ok(form));
        }
        assert_eq!(ListForm::ALL[0].path("/mcp"), "/mcp");
    }

    #[test]
    fn a_schema_that_many_tools_share_is_rewritten_once() {
        let shared = Arc::new(json!({"type": "object", "properties": {"a": {"type": "string", "format": "email"}}}));
        let other = Arc::new(json!({"type": "object"}));
        let mut schemas = vec![shared; 500];
        schemas.push(other);
        let listing = McpToolList::new(list(&schemas), Schemas::Portable, &KnownSchemas::default());
        assert_eq!(listing.tools.len(), 501);
        // One rewritten schema stands behind all of them.
        let first = &listing.tools[0].input_schema;
        assert_eq!(listing.tools.iter().filter(|tool| Arc::ptr_eq(&tool.input_schema, first)).count(), 500);
        assert_eq!(listing.simplified[7], ["/properties/a: format, for Gemini"]);
        assert!(listing.simplified[500].is_empty());
    }

    #[test]
    fn a_long_description_is_shortened_in_the_portable_form_only() {
        let mut tools = ToolList::clone(&list(&[Arc::new(json!({"type": "object", "minProperties": 1}))]));
        let long = "Many words. ".repeat(200);
        tools.tools[0].tool.description = long.clone();
        let tools = Arc::new(tools);
        let known = KnownSchemas::default();
        let listing = McpToolList::new(tools.clone(), Schemas::Portable, &known);
        let text = listing.tools[0].description.as_deref().expect("a description");
        assert!(text.len() <= 1_026 && text.ends_with("… [shortened]\nAt least 1 member."), "{text}");
        let reported = "description: more than 1,024 characters, for OpenAI, Claude Code (cuts at 2,048)";
        assert_eq!(listing.simplified[0][0], reported);
        let exact = McpToolList::new(tools, Schemas::Exact, &known);
        assert_eq!(exact.tools[0].description.as_deref(), Some(long.as_str()));
    }

    #[test]
    fn a_schema_is_not_rewritten_for_the_next_list() {
        // Each list has schemas of its own making, as folding makes them.
        let schema = |name: &str| Arc::new(json!({"type": "object", "properties": {name: {"format": "email"}}}));
        let known = KnownSchemas::default();
        let first = McpToolList::new(list(&[schema("a")]), Schemas::Portable, &known);
        let second = McpToolList::new(list(&[schema("b"), schema("a")]), Schemas::Portable, &known);
        assert!(Arc::ptr_eq(&first.tools[0].input_schema, &second.tools[1].input_schema));
        assert_eq!(known.lock().by_key.len(), 2);
        let exact = McpToolList::new(list(&[schema("a")]), Schemas::Exact, &known);
        assert_eq!(Value::Object((*exact.tools[0].input_schema).clone()), *schema("a"));
    }

    #[test]
    fn a_schema_that_is_being_rewritten_keeps_no_other_list_waiting() {
        let known = KnownSchemas::default();
        let key = (Digest::of(&json!(1)), SchemaUse::Input, Schemas::Portable);
        known.get(key, || {
            let other = McpToolList::new(list(&[Arc::new(json!({"type": "object"}))]), Schemas::Portable, &known);
            assert_eq!(other.tools.len(), 1);
            ListedSchema::default()
        });
        assert_eq!(known.lock().by_key.len(), 2);
    }

    #[test]
    fn schemas_that_no_list_has_any_more_are_forgotten() {
        let known = KnownSchemas::default();
        let stays =
            McpToolList::new(list(&[Arc::new(json!({"type": "object", "title": "stays"}))]), Schemas::Portable, &known);
        for number in 0..1_000 {
            let schema = Arc::new(json!({"type": "object", "title": number.to_string()}));
            McpToolList::new(list(&[schema]), Schemas::Portable, &known);
        }
        assert!(known.lock().by_key.len() <= 65, "{}", known.lock().by_key.len());
        let again = McpToolList::new(stays.list.clone(), Schemas::Portable, &known);
        assert!(Arc::ptr_eq(&stays.tools[0].input_schema, &again.tools[0].input_schema));
    }
}
