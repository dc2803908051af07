//! Admission: what a device offers, checked, named and shared.
//!
//! Equal toolsets are one [`Offer`], however many devices bring them: its names, its mended schemas
//! and its compiled checks exist once.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use serde_json::Value;
use sinew_tool::{Audience, DeviceKey, Digest, Tool, Toolset};

use crate::check::Check;
use crate::names::{NameBook, NameChange};
use crate::schema;
use crate::text::{clean, clean_line};

/// Tools of one device. Phones have 29; a device with more than this is not a device.
const MAX_TOOLS: usize = 512;
/// A tool name is also sent back to the device and kept in the name book.
const MAX_NAME: usize = 256;
const MAX_DESCRIPTION: usize = 8_192;
/// Warnings kept of one toolset; the rest would say the same.
const MAX_WARNINGS: usize = 20;

/// A toolset, ready to be listed and called.
pub(crate) struct Offer {
    /// As the device gave it.
    pub toolset: Arc<Toolset>,
    pub digest: Digest,
    pub tools: Vec<Offered>,
    /// What is wrong with the toolset, for people.
    pub warnings: Vec<String>,
}

pub(crate) struct Offered {
    /// The name in the folded form.
    pub public: Arc<str>,
    /// The tool's part of the name in the unfolded form.
    pub word: Arc<str>,
    /// The tool under its own name, with mended schemas.
    pub tool: Tool,
    /// The argument that selects the device in the folded form.
    pub selector: String,
    pub input: Arc<Check>,
    pub output: Option<Arc<Check>>,
}

impl Offered {
    pub(crate) fn is_seen(&self, sees_user_tools: bool) -> bool {
        sees_user_tools || self.tool.audience == Audience::Everyone
    }
}

impl Offer {
    /// A tool by the device's own name for it, or else by its public one.
    pub(crate) fn find(&self, name: &str) -> Option<&Offered> {
        let own = self.tools.iter().find(|offered| offered.tool.name == name);
        own.or_else(|| self.find_public(name))
    }

    pub(crate) fn find_public(&self, name: &str) -> Option<&Offered> {
        self.tools.iter().find(|offered| *offered.public == *name)
    }
}

/// What admission brought, besides the offer itself.
#[derive(Default)]
pub(crate) struct News {
    /// The toolset was not known before.
    pub is_new: bool,
    pub names: Vec<NameChange>,
    pub warnings: Vec<String>,
}

/// All offers alive, and the name book they are named from.
pub(crate) struct Offers {
    pub names: NameBook,
    known: HashMap<Digest, Weak<Offer>>,
    checks: HashMap<Digest, Weak<Check>>,
}

impl Offers {
    pub(crate) fn new(names: NameBook) -> Offers {
        Offers { names, known: HashMap::new(), checks: HashMap::new() }
    }

    /// `owner` is the device that new names count for.
    pub(crate) fn admit(&mut self, owner: &DeviceKey, toolset: &Arc<Toolset>) -> (Arc<Offer>, News) {
        if let Some(offer) = self.known.get(&toolset.digest()).and_then(Weak::upgrade) {
            return (offer, News::default());
        }
        let mut news = News { is_new: true, ..News::default() };
        let mut tools = Vec::with_capacity(toolset.len().min(MAX_TOOLS));
        let mut long_names = 0;
        for tool in toolset.iter().take(MAX_TOOLS) {
            let mut warnings = Vec::new();
            match tool.name.len() <= MAX_NAME {
                true => tools.push(self.offer(owner, tool, &mut news.names, &mut long_names, &mut warnings)),
                false => warnings.push(format!("it cannot be offered: its name is longer than {MAX_NAME} bytes")),
            }
            let name = clean_line(&tool.name, 64);
            news.warnings.extend(warnings.into_iter().map(|warning| format!("tool `{name}`: {warning}")));
        }
        if toolset.len() > MAX_TOOLS {
            news.warnings.insert(0, format!("it has {} tools; only the first {MAX_TOOLS} are offered", toolset.len()));
        }
        if long_names > 0 {
            let owned = self.names.owned_by(owner);
            let text = format!(
                "{long_names} tools have long public names: it has had {owned} different tools, which is its quota of \
                 names, or all names are in use; `sinew devices forget` gives the names of a device back"
            );
            news.warnings.insert(0, text);
        }
        news.warnings.truncate(MAX_WARNINGS);
        let warnings = news.warnings.clone();
        let offer = Arc::new(Offer { toolset: toolset.clone(), digest: toolset.digest(), tools, warnings });
        forget_the_dead(&mut self.known);
        self.known.insert(offer.digest, Arc::downgrade(&offer));
        (offer, news)
    }

    /// Forgets an offer that no device has any more, so that whoever brings it next owns its names.
    pub(crate) fn forget(&mut self, offer: &Offer) {
        self.known.remove(&offer.digest);
    }

    fn offer(
        &mut self,
        owner: &DeviceKey,
        tool: &Tool,
        names: &mut Vec<NameChange>,
        long_names: &mut usize,
        warnings: &mut Vec<String>,
    ) -> Offered {
        let public = self.names.public(owner, &tool.name, tool.input_digest(), names);
        let word = self.names.word(owner, &tool.name, names);
        *long_names += usize::from(public.is_computed || word.is_computed);
        let (public, word) = (public.name, word.name);
        let input = schema::input(&tool.input_schema, warnings);
        let selector = schema::selector(&input);
        let input = self.check(input);
        if let Some(fault) = input.fault() {
            warnings.push(format!("its arguments are not checked, because its input schema is not valid: {fault}"));
        }
        let output = tool.output_schema.as_ref().and_then(|schema| schema::output(schema, warnings));
        let output = output.and_then(|schema| {
            let check = self.check(schema);
            if let Some(fault) = check.fault() {
                warnings.push(format!("its output schema is not valid and was left out: {fault}"));
                return None;
            }
            Some(check)
        });
        let mut tool = tool.clone();
        tool.title = tool.title.map(|title| clean_line(&title, 200));
        tool.description = clean(&tool.description, MAX_DESCRIPTION);
        tool.input_schema = input.schema().clone();
        tool.output_schema = output.as_ref().map(|output| output.schema().clone());
        Offered { public, word, tool, selector, input, output }
    }

    fn check(&mut self, schema: Value) -> Arc<Check> {
        let digest = Digest::of(&schema);
        if let Some(check) = self.checks.get(&digest).and_then(Weak::upgrade) {
            return check;
        }
        let check = Arc::new(Check::new(Arc::new(schema)));
        forget_the_dead(&mut self.checks);
        self.checks.insert(digest, Arc::downgrade(&check));
        check
    }
}

/// Looked after whenever the map has doubled, so that it costs little and never grows without end.
fn forget_the_dead<T>(map: &mut HashMap<Digest, Weak<T>>) {
    if map.len() >= 64 && map.len() == map.capacity() {
        map.retain(|_, weak| weak.strong_count() > 0);
    }
}

/// The toolset as the store keeps it; `None` where it is too large to be worth it.
pub(crate) fn to_text(toolset: &Toolset) -> Option<String> {
    let entries: Vec<Value> = toolset.iter().map(Tool::to_record).collect();
    serde_json::to_string(&entries).ok().filter(|text| text.len() <= 1 << 20)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, json};

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
            let (offer, _) = offers().admit(&owner(), &Arc::new(Toolset::new([tool])));
            for offered in &offer.tools {
                prop_assert_eq!(&offered.tool.input_schema["type"], "object");
                let _ = offered.input.arguments("x", &args);
                let _ = offered.output.as_ref().map(|output| output.answer(&args));
            }
        }
    }

    fn owner() -> DeviceKey {
        DeviceKey("board:1".to_owned())
    }

    fn offers() -> Offers {
        Offers::new(NameBook::new(&["list_devices"], 10_000, []))
    }

    #[test]
    fn equal_toolsets_are_one_offer_and_equal_schemas_one_check() {
        let mut offers = offers();
        let tool = |name: &str| Tool::new(name, "", json!({"type": "object", "properties": {"a": {"type": "string"}}}));
        let (one, news) = offers.admit(&owner(), &Arc::new(Toolset::new([tool("x"), tool("y")])));
        assert!(news.is_new);
        let (two, news) = offers.admit(&owner(), &Arc::new(Toolset::new([tool("x"), tool("y")])));
        assert!(!news.is_new && Arc::ptr_eq(&one, &two));
        assert!(Arc::ptr_eq(&one.tools[0].input, &one.tools[1].input));
    }

    #[test]
    fn a_schema_that_is_no_schema_is_offered_with_a_warning() {
        let broken = Tool::new("x", "", json!({"type": "object", "properties": {"a": {"type": "loud"}}}));
        let (offer, news) = offers().admit(&owner(), &Arc::new(Toolset::new([broken])));
        assert_eq!(offer.tools.len(), 1);
        assert!(
            news.warnings[0].contains("tool `x`") && news.warnings[0].contains("not checked"),
            "{:?}",
            news.warnings
        );
    }

    #[test]
    fn a_broken_output_schema_is_left_out() {
        let tool = Tool::new("x", "", json!({}))
            .with_output_schema(json!({"type": "object", "properties": {"a": {"type": 5}}}));
        let (offer, news) = offers().admit(&owner(), &Arc::new(Toolset::new([tool])));
        assert!(offer.tools[0].output.is_none() && offer.tools[0].tool.output_schema.is_none());
        assert_eq!(news.warnings.len(), 1);
    }

    #[test]
    fn a_broken_schema_is_broken_wherever_it_is_used_again() {
        let broken = json!({"type": "object", "properties": {"a": {"type": "loud"}}});
        let both = Tool::new("x", "", broken.clone()).with_output_schema(broken.clone());
        let mut offers = offers();
        let (offer, news) = offers.admit(&owner(), &Arc::new(Toolset::new([both, Tool::new("y", "", broken.clone())])));
        assert!(offer.tools[0].output.is_none() && offer.tools[0].tool.output_schema.is_none());
        assert_eq!(news.warnings.len(), 3, "{:?}", news.warnings);
        assert!(news.warnings[2].contains("tool `y`") && news.warnings[2].contains("not checked"));
        let (_, news) = offers.admit(&owner(), &Arc::new(Toolset::new([Tool::new("z", "", broken)])));
        assert_eq!(news.warnings.len(), 1, "{:?}", news.warnings);
    }

    #[test]
    fn a_device_with_too_much_of_everything_is_bounded() {
        let many =
            (0..600).map(|number| Tool::new(format!("t{number}"), "d".repeat(20_000), json!({"type": "string"})));
        let (offer, news) = offers().admit(&owner(), &Arc::new(Toolset::new(many)));
        assert_eq!(offer.tools.len(), MAX_TOOLS);
        assert_eq!(news.warnings.len(), MAX_WARNINGS);
        assert!(offer.tools[0].tool.description.chars().count() <= MAX_DESCRIPTION);
        let (offer, _) = offers().admit(&owner(), &Arc::new(Toolset::new([Tool::new("n".repeat(300), "", json!({}))])));
        assert!(offer.tools.is_empty());
    }
}
