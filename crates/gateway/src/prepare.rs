//! What a device offers, checked and compiled, before it is named.
//!
//! This runs outside the registry's lock and takes time in proportion to the text; the automata of patterns
//! are made when they are first used. All schemas of a device share one [`SCHEMA_BUDGET`]: a tool that does not fit
//! into what is left is withdrawn, and the others stay.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::{Value, json};
use sinew_schema::{Cost, Invalid};
use sinew_tool::text::{clean, clean_line};
use sinew_tool::{Audience, Digest, Family, Schema, Tool, Toolset};

use crate::aside::aside;
use crate::bounds;
use crate::check::CompiledSchema;
use crate::commanding;
use crate::listed_size;
use crate::redaction;
use crate::schema;

/// Tools of one device. Phones have 29; a device with more than this is not a device.
const MAX_TOOLS: usize = 512;
/// Tools that the owner of the gateway wrote in files may be so many times as much; a hostile device never is.
const OWN_SHARE: usize = 4;
/// A tool name is also sent back to the device and kept in the name book.
const MAX_NAME: usize = 256;
/// Parts of a schema that refer to themselves without end and are left out; with more, the whole is not checked.
const MAX_CIRCLES: usize = 8;
const MAX_DESCRIPTION: usize = 8_192;
/// Of a tool whose description also says what is not listed or not checked, so that no client cuts that off.
const MAX_SHORT_DESCRIPTION: usize = 700;

/// All schemas of one device together: about 2 MB compiled. The largest toolsets known have 1,500 schemas
/// and a dozen patterns.
pub(crate) const SCHEMA_BUDGET: Cost =
    Cost { schemas: 10_000, patterns: 256, pattern_bytes: 32 << 10, pattern_states: 32 << 10, properties: 64 };
/// The text of all schemas of one device.
const MAX_SCHEMAS: usize = 1 << 20;

/// All tools of a device.
pub(crate) struct PreparedToolset {
    /// As the device gave it.
    pub toolset: Arc<Toolset>,
    /// The tools that can be offered, in the device's order.
    pub ready: Vec<Arc<PreparedTool>>,
    /// Why the others cannot, by name.
    pub withdrawn: Arc<Withdrawn>,
    pub warnings: Vec<String>,
}

/// Tools of a device that are not offered, because they would cost too much; the reason by name.
pub(crate) type Withdrawn = BTreeMap<String, String>;

/// A tool that can be listed and called.
pub(crate) struct PreparedTool {
    /// The tool under its own name, with corrected schemas.
    pub tool: Tool,
    /// The digest of the input schema as the device gave it.
    pub digest: Digest,
    /// The digest of everything else that a caller reads: description, title, hints, output schema, version.
    pub face: Digest,
    /// The argument that selects the device in the folded form.
    pub selector: String,
    pub input: Arc<CompiledSchema>,
    pub output: Option<Arc<CompiledSchema>>,
    /// The schemas as the device wrote them, where those of `tool` differ.
    pub exact: ExactSchemas,
    /// The input schema of the device, where it marks arguments as secret.
    pub secrets: Option<Schema>,
}

/// The schemas of a tool as its device wrote them; `None` where they are those of the tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExactSchemas {
    pub input: Option<Schema>,
    pub output: Option<Schema>,
}

/// What was prepared and is still in use, so that equal devices and equal schemas share it.
#[derive(Default)]
pub(crate) struct ToolPreparer {
    toolsets: Mutex<HashMap<(Digest, usize), Weak<PreparedToolset>>>,
    checks: Mutex<HashMap<Digest, Weak<CompiledSchema>>>,
}

/// What one device may still take.
struct SchemaBudget {
    cost: Cost,
    bytes: usize,
}

impl SchemaBudget {
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left
            .ok_or_else(|| format!("the schemas of this device are larger than {} KiB together", MAX_SCHEMAS >> 10))?;
        Ok(())
    }
}

/// So many times as much room.
fn times(cost: Cost, share: usize) -> Cost {
    let Cost { schemas, patterns, pattern_bytes, pattern_states, properties } = cost;
    Cost {
        schemas: schemas * share,
        patterns: patterns * share,
        pattern_bytes: pattern_bytes * share,
        pattern_states: pattern_states * share,
        properties,
    }
}

impl ToolPreparer {
    pub(crate) fn prepare(&self, toolset: &Arc<Toolset>, family: &Family) -> Arc<PreparedToolset> {
        let share = if family.passes_on { OWN_SHARE } else { 1 };
        let key = (toolset.digest(), share);
        if let Some(prepared) = lock(&self.toolsets).get(&key).and_then(Weak::upgrade) {
            return prepared;
        }
        let prepared = aside(|| self.prepare_new(toolset, share));
        let mut toolsets = lock(&self.toolsets);
        forget_the_dead(&mut toolsets);
        toolsets.insert(key, Arc::downgrade(&prepared));
        prepared
    }

    fn prepare_new(&self, toolset: &Arc<Toolset>, share: usize) -> Arc<PreparedToolset> {
        let mut budget = SchemaBudget { cost: times(SCHEMA_BUDGET, share), bytes: share * MAX_SCHEMAS };
        let (mut ready, mut withdrawn, mut warnings) = (Vec::new(), Withdrawn::new(), Vec::new());
        let most = share * MAX_TOOLS;
        if toolset.len() > most {
            warnings.push(format!("it has {} tools; only the first {most} are offered", toolset.len()));
        }
        for tool in toolset.iter().take(most) {
            let mut faults = Vec::new();
            match self.ready(tool, &mut budget, &mut faults) {
                Ok(tool) => ready.push(Arc::new(tool)),
                Err(why) => {
                    faults.push(format!("it is not offered: {why}"));
                    withdrawn.insert(clean_line(&tool.name, 128), why);
                }
            }
            let name = clean_line(&tool.name, 64);
            warnings.extend(faults.into_iter().map(|fault| format!("tool `{name}`: {fault}")));
        }
        let (ready, unlisted) = listed_size::divide(ready);
        for tool in unlisted {
            let why = listed_size::reason();
            let name = clean_line(&tool.tool.name, 128);
            warnings.push(format!("tool `{name}`: it is not offered: {why}"));
            withdrawn.insert(name, why);
        }
        Arc::new(PreparedToolset { toolset: toolset.clone(), ready, withdrawn: Arc::new(withdrawn), warnings })
    }

    /// The error is why the tool cannot be offered.
    fn ready(
        &self,
        tool: &Tool,
        budget: &mut SchemaBudget,
        warnings: &mut Vec<String>,
    ) -> Result<PreparedTool, String> {
        if tool.name.len() > MAX_NAME {
            return Err(format!("its name is longer than {MAX_NAME} bytes"));
        }
        let schema = schema::input(&tool.input_schema, warnings);
        let mut notice = schema.notice;
        let selector = schema::selector(&schema.listed);
        let mut circles = Vec::new();
        let (unchecked, check) = match schema.is_checked {
            true => (None, self.check_without_circles(schema.listed, budget, &mut circles)?),
            false => {
                budget.take(bounds::listed_size(&schema.listed)?)?;
                (Some(Arc::new(schema.listed)), self.check(json!({"type": "object"}), budget)?.ok())
            }
        };
        let input = match check {
            Some(check) => check,
            None => {
                let reason = "refers to itself without end";
                warnings.push(format!("its input schema {reason}; its arguments are not listed and not checked"));
                notice = Some(schema::unlisted_notice(reason));
                let any = self.check(json!({"type": "object"}), budget)?;
                any.ok().ok_or("its input schema cannot be checked")?
            }
        };
        let circles = circles.iter().map(|at| format!("{}: it refers to itself without end", clean_line(at, 128)));
        let unread: Vec<String> = input.unread().chain(circles).collect();
        if !unread.is_empty() {
            let parts = unread.join("; ");
            warnings.push(format!("parts of its input schema cannot be read and are not checked: {parts}"));
            notice = Some(schema::unread_notice(&unread));
        }
        let output = match tool.output_schema.as_ref().and_then(|schema| schema::output(schema, warnings)) {
            Some(schema) => self.output(schema, budget, warnings)?,
            None => None,
        };
        let checks = std::iter::once(&input).chain(&output);
        warnings.extend(checks.flat_map(|check| check.unenforced().to_vec()));
        if let Some(phrase) = commanding::find(tool) {
            warnings
                .push(format!("its text reads like instructions to a model (`{phrase}`); read it before you use it"));
        }
        let digest = tool.input_digest();
        // As the device wrote it: the schema that is offered has lost references by which a secret is marked.
        let secrets = redaction::has_secrets(&tool.input_schema).then(|| tool.input_schema.clone());
        let (input_as_written, output_as_written) = (tool.input_schema.clone(), tool.output_schema.clone());
        let mut tool = tool.clone();
        tool.title = tool.title.map(|title| clean_line(&title, 200));
        tool.description = match notice {
            None => clean(&tool.description, MAX_DESCRIPTION),
            Some(notice) => {
                let text = clean(&tool.description, MAX_SHORT_DESCRIPTION);
                format!("{}\n{notice}", text.trim_end()).trim_start().to_owned()
            }
        };
        tool.input_schema = unchecked.unwrap_or_else(|| input.schema().clone());
        tool.output_schema = output.as_ref().map(|output| output.schema().clone());
        let exact_input = schema::exact_input(&input_as_written).filter(|exact| *exact != *tool.input_schema);
        let exact_output = tool
            .output_schema
            .as_ref()
            .zip(output_as_written)
            .and_then(|(listed, written)| Some(schema::exact_output(&written)).filter(|exact| exact != &**listed));
        let exact = ExactSchemas { input: exact_input.map(Arc::new), output: exact_output.map(Arc::new) };
        let face = face(&tool);
        Ok(PreparedTool { tool, digest, face, selector, input, output, exact, secrets })
    }

    fn output(
        &self,
        schema: Value,
        budget: &mut SchemaBudget,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Arc<CompiledSchema>>, String> {
        let fault = match self.check(schema, budget)? {
            Err(_) => "it refers to itself without end".to_owned(),
            Ok(check) => match check.fault() {
                None => return Ok(Some(check)),
                Some(fault) => fault,
            },
        };
        warnings.push(format!("its output schema is not valid and was left out: {fault}"));
        Ok(None)
    }

    /// The check of a schema without the parts that refer to themselves without end, whose places are added to `circles`;
    /// `None` where the whole does.
    fn check_without_circles(
        &self,
        mut schema: Value,
        budget: &mut SchemaBudget,
        circles: &mut Vec<String>,
    ) -> Result<Option<Arc<CompiledSchema>>, String> {
        loop {
            let at = match self.check(schema.clone(), budget)? {
                Ok(check) => return Ok(Some(check)),
                Err(at) if circles.len() < MAX_CIRCLES => at,
                Err(_) => return Ok(None),
            };
            let part = at.as_deref().filter(|at| !at.is_empty()).and_then(|at| schema.pointer_mut(at));
            let (Some(part), Some(at)) = (part, at.as_ref()) else { return Ok(None) };
            *part = json!({});
            circles.push(at.clone());
        }
    }

    /// The check of a schema; where there is none, the place at which it refers to itself without end.
    fn check(
        &self,
        schema: Value,
        budget: &mut SchemaBudget,
    ) -> Result<Result<Arc<CompiledSchema>, Option<String>>, String> {
        budget.take(bounds::size(&schema).unwrap_or_default())?;
        let digest = Digest::of(&schema);
        let known = lock(&self.checks).get(&digest).and_then(Weak::upgrade);
        let check = match known {
            Some(check) => check,
            None => match CompiledSchema::new(Arc::new(schema), budget.cost) {
                Ok(check) => {
                    let check = Arc::new(check);
                    let mut checks = lock(&self.checks);
                    forget_the_dead(&mut checks);
                    checks.insert(digest, Arc::downgrade(&check));
                    check
                }
                Err(Invalid::TooCostly(what)) => return Err(too_costly(what)),
                Err(Invalid::Wrong { .. }) => return Ok(Err(None)),
                Err(Invalid::Endless { at }) => return Ok(Err(Some(at))),
            },
        };
        budget.cost = budget.cost.minus(check.cost()).map_err(too_costly)?;
        Ok(Ok(check))
    }
}

fn face(tool: &Tool) -> Digest {
    // Whom a tool is meant for is decided for each device by itself.
    let mut record = Tool { audience: Audience::Everyone, ..tool.clone() }.to_record();
    if let Some(members) = record.as_object_mut() {
        members.retain(|name, _| name != "name" && name != "inputSchema");
    }
    Digest::of(&record)
}

fn too_costly(what: &str) -> String {
    format!("the schemas of this device have more {what} than the gateway compiles for one device")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looked after whenever the map has doubled, so that it costs little and never grows without end.
pub(crate) fn forget_the_dead<K, T>(map: &mut HashMap<K, Weak<T>>) {
    if map.len() >= 64 && map.len() == map.capacity() {
        map.retain(|_, weak| weak.strong_count() > 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Map;
    use sinew_schema::Meter;

    use sinew_tool::{FamilyName, Reach, TextTrust};

    use super::*;

    /// JSON that looks like a schema more often than chance would have it.
    fn schema() -> impl Strategy<Value = Value> {
        let words = [
            "type",
            "properties",
            "items",
            "anyOf",
            "allOf",
            "not",
            "$ref",
            "$defs",
            "enum",
            "const",
            "pattern",
            "minimum",
            "required",
            "additionalProperties",
            "$schema",
            "$id",
            "format",
            "x-mcp-header",
            "if",
            "multipleOf",
            "a",
            "prefixItems",
        ];
        let texts = [
            "object",
            "string",
            "integer",
            "#",
            "#/$defs/a",
            "#/properties/a",
            "http://x/y",
            "(a+)+$",
            "[",
            "date-time",
            "",
            "ä",
            "https://json-schema.org/draft/2020-12/schema",
            "http://json-schema.org/draft-04/schema#",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-2i64..3).prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            proptest::sample::select(texts.to_vec()).prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, move |inner| {
            let word = proptest::sample::select(words.to_vec()).prop_map(str::to_owned);
            prop_oneof![
                1 => proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                4 => proptest::collection::vec((word, inner), 0..6).prop_map(|members| Value::Object(Map::from_iter(members))),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_schema_and_no_argument_makes_it_stumble(input in schema(), output in schema(), args in schema()) {
            let tool = Tool::new("x", "", input).with_output_schema(output);
            for ready in &prepare([tool]).ready {
                prop_assert_eq!(&ready.tool.input_schema["type"], "object");
                let mut meter = Meter::new(50_000);
                let _ = ready.input.arguments("x", &args, &mut meter);
                let _ = ready.output.as_ref().map(|output| output.answer("x", &args, &mut meter));
            }
        }
    }

    fn prepare(tools: impl IntoIterator<Item = Tool>) -> Arc<PreparedToolset> {
        ToolPreparer::default().prepare(&Arc::new(Toolset::new(tools)), &DEVICE)
    }

    const DEVICE: Family = Family::new(FamilyName::of("test"), TextTrust::Attributed, Reach::OneLink);

    fn with_input(name: impl Into<String>, schema: Value) -> Tool {
        Tool::new(name, "", schema)
    }

    #[test]
    fn equal_toolsets_are_prepared_once_and_equal_schemas_compiled_once() {
        let preparer = ToolPreparer::default();
        let tool = |name: &str| with_input(name, json!({"type": "object", "properties": {"a": {"type": "string"}}}));
        let one = preparer.prepare(&Arc::new(Toolset::new([tool("x"), tool("y")])), &DEVICE);
        let two = preparer.prepare(&Arc::new(Toolset::new([tool("x"), tool("y")])), &DEVICE);
        assert!(Arc::ptr_eq(&one, &two));
        assert!(Arc::ptr_eq(&one.ready[0].input, &one.ready[1].input));
    }

    #[test]
    fn a_part_of_a_schema_that_cannot_be_read_is_named() {
        let prepared = prepare([with_input("x", json!({"type": "object", "properties": {"a": {"type": "loud"}}}))]);
        let warning = &prepared.warnings[0];
        assert!(warning.contains("tool `x`") && warning.contains("not checked"), "{warning}");
        assert_eq!(
            prepared.ready[0].tool.description,
            "Parts of its input schema cannot be read and are not checked: at `/properties/a`: `type` is not the name \
             of a type."
        );
        let many: Map<String, Value> = (0..50).map(|n| (format!("{n}"), json!({"type": "é".repeat(500)}))).collect();
        let prepared = prepare([Tool::new("x", "d".repeat(20_000), json!({"type": "object", "properties": many}))]);
        let description = &prepared.ready[0].tool.description;
        assert!(description.contains("not checked: at `/properties/"), "{description}");
        assert!(description.chars().count() <= sinew_tool::portable::LONGEST_DESCRIPTION);
    }

    #[test]
    fn a_tool_whose_schema_is_too_deep_to_be_checked_says_so() {
        let deep = (0..40).fold(json!({"type": "null"}), |inner, _| json!({"items": inner}));
        let prepared = prepare([Tool::new("x", "Opens.", json!({"type": "object", "properties": {"a": deep}}))]);
        let description = &prepared.ready[0].tool.description;
        assert!(description.starts_with("Opens.\nIts arguments are not checked, because"), "{description}");
    }

    #[test]
    fn a_tool_whose_arguments_are_not_listed_says_so() {
        let large =
            json!({"type": "object", "properties": {"a": {"type": "string", "description": "d".repeat(70_000)}}});
        let prepared =
            prepare([Tool::new("x", "Opens the door.", large), Tool::new("y", "", json!({"type": "array"}))]);
        let description = |tool: usize| prepared.ready[tool].tool.description.clone();
        assert_eq!(
            description(0),
            "Opens the door.\nIts arguments are not listed and not checked, because its input schema is larger than \
             64 KiB. The author of the device can shorten the schema, or split the tool."
        );
        assert!(
            description(1).starts_with("Its arguments are not listed and not checked, because its input schema is not")
        );
        assert!(prepared.warnings.iter().all(|warning| warning.contains("not listed")), "{:?}", prepared.warnings);
    }

    #[test]
    fn of_a_schema_without_end_only_that_part_is_not_checked() {
        let endless = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}});
        let prepared = prepare([with_input("x", endless.clone()).with_output_schema(endless)]);
        let listed = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}});
        assert_eq!(*prepared.ready[0].tool.input_schema, listed);
        assert!(prepared.ready[0].output.is_none());
        assert_eq!(prepared.warnings.len(), 2, "{:?}", prepared.warnings);
        let description = &prepared.ready[0].tool.description;
        assert!(description.contains("/$defs/a: it refers to itself without end"), "{description}");

        let definitions: serde_json::Map<String, Value> =
            (0..9).map(|place| (place.to_string(), json!({"$ref": format!("#/$defs/{place}")}))).collect();
        let circles = json!({"type": "object", "required": ["on"], "$defs": definitions});
        let prepared = prepare([with_input("x", circles)]);
        assert_eq!(*prepared.ready[0].tool.input_schema, json!({"type": "object"}), "too many circles");
        let whole = json!({"type": "object", "allOf": [{"$ref": "#"}]});
        assert_eq!(*prepare([with_input("x", whole)]).ready[0].tool.input_schema, json!({"type": "object"}));
    }

    #[test]
    fn a_broken_schema_is_broken_wherever_it_is_used_again() {
        let broken = json!({"type": "object", "properties": {"a": {"type": "loud"}}});
        let both = with_input("x", broken.clone()).with_output_schema(broken.clone());
        let prepared = prepare([both, with_input("y", broken)]);
        assert!(prepared.ready[0].output.is_none() && prepared.ready[0].tool.output_schema.is_none());
        assert_eq!(prepared.warnings.len(), 3, "{:?}", prepared.warnings);
        assert!(prepared.warnings[2].contains("tool `y`") && prepared.warnings[2].contains("not checked"));
    }

    #[test]
    fn a_thousand_routines_fit_where_a_device_may_have_half_as_many() {
        let schema = |number: usize| {
            let properties = json!({"text": {"type": "string", "description": "x".repeat(200), "examples": [number]}});
            json!({"type": "object", "properties": properties, "required": ["text"]})
        };
        let routine =
            |number| with_input(format!("routine_{number}"), schema(number)).with_output_schema(schema(number));
        let tools = Arc::new(Toolset::new((0..1_000).map(routine)));
        let preparer = ToolPreparer::default();
        assert_eq!(preparer.prepare(&tools, &DEVICE).ready.len(), MAX_TOOLS);
        assert_eq!(preparer.prepare(&tools, &DEVICE.pass_on()).ready.len(), 1_000);
    }

    #[test]
    fn a_device_with_too_much_of_everything_is_bounded() {
        let many =
            (0..600).map(|number| Tool::new(format!("t{number}"), "d".repeat(20_000), json!({"type": "string"})));
        let prepared = prepare(many);
        assert_eq!(prepared.ready.len(), MAX_TOOLS);
        assert!(prepared.ready[0].tool.description.chars().count() <= sinew_tool::portable::LONGEST_DESCRIPTION);
        let long = prepare([Tool::new("x", "d".repeat(20_000), json!({"type": "object"}))]);
        assert_eq!(long.ready[0].tool.description.chars().count(), MAX_DESCRIPTION);
        let prepared = prepare([with_input("n".repeat(300), json!({}))]);
        assert!(prepared.ready.is_empty() && prepared.withdrawn.len() == 1);
    }

    #[test]
    fn tools_beyond_the_room_of_a_device_are_withdrawn_with_the_reason_and_the_others_stay() {
        let with =
            |name: String, schema: Value| with_input(name, json!({"type": "object", "properties": {"a": schema}}));
        let wide = |count: usize| -> Value {
            let properties: Map<String, Value> =
                (0..count).map(|n| (format!("p{n}"), json!({"type": "null"}))).collect();
            json!({"type": "object", "properties": properties})
        };
        type Flood = Box<dyn Fn(usize) -> Tool>;
        let floods: [(usize, &str, Flood); 4] = [
            (400, "patterns", Box::new(move |n| with(format!("t{n}"), json!({"pattern": format!("^{n}$")})))),
            (
                100,
                "Unicode properties",
                Box::new(move |n| with(format!("t{n}"), json!({"pattern": format!(r"\p{{L}}{{20}}{n}")}))),
            ),
            (50, "states", Box::new(move |n| with(format!("t{n}"), json!({"pattern": format!("^a{{1000}}{n}")})))),
            (50, "subschemas", Box::new(move |n| with_input(format!("t{n}"), wide(300 + n)))),
        ];
        for (count, what, tool) in floods {
            let prepared = prepare((0..count).map(tool).chain([with_input("last", json!({"type": "object"}))]));
            assert!(!prepared.ready.is_empty() && !prepared.withdrawn.is_empty(), "{what}");
            assert_eq!(prepared.ready.len() + prepared.withdrawn.len(), count + 1);
            assert!(prepared.ready.iter().any(|ready| ready.tool.name == "last"), "{what}");
            assert!(prepared.withdrawn.values().all(|why| why.contains(what)), "{:?}", prepared.withdrawn);
            let cost = prepared.ready.iter().fold(Cost::default(), |mut sum, ready| {
                sum += ready.input.cost();
                sum
            });
            assert!(SCHEMA_BUDGET.minus(cost).is_ok());
        }
    }

    #[test]
    fn the_text_of_all_schemas_together_is_bounded() {
        let long = |n: usize| {
            with_input(format!("t{n}"), json!({"type": "object", "title": format!("{n}{}", "x".repeat(60_000))}))
        };
        let prepared = prepare((0..30).map(long));
        assert_eq!(prepared.ready.len(), 17);
        assert!(prepared.withdrawn["t17"].contains("1024 KiB together"));
    }

    #[test]
    fn a_pattern_that_is_not_enforced_is_a_warning() {
        let prepared =
            prepare([with_input("x", json!({"type": "object", "properties": {"a": {"pattern": r"(a)\1"}}}))]);
        assert_eq!(prepared.warnings.len(), 1);
        assert!(prepared.warnings[0].starts_with("tool `x`: the pattern at `/properties/a` is not enforced"));
    }
}
