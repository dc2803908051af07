//! `[[things]]` in the configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use sinew_boards::broker::Address;
use sinew_fetch::header::CONTENT_TYPE;
use sinew_fetch::{HeaderName, HttpUrl, Method};
use sinew_policy::MarkedEffect;
use sinew_schema::{Cost, Validator};
use sinew_tool::settings::{Deserializer, Setting};
use sinew_tool::{DeviceId, Tool, Value, check_labels, json};

use crate::template::{BodyTemplate, TextPlace, TextTemplate};

sinew_tool::settings! {
    /// A gadget that speaks no MCP.
    pub struct ThingConfig {
        /// Name of the device: letters a-z, digits and hyphens.
        pub name: String = String::new();
        /// What models should know about it.
        pub instructions: Option<String> = None;
        /// Labels of the device, see `docs/labels.md`.
        pub labels: Vec<String> = Vec::new(), check |labels| check_labels(labels);
        /// Its broker, by the `url` of one of `[[brokers]]`. Needed only if there are several.
        pub broker: Option<String> = None;
        /// MQTT topics whose messages become events of the device; `+` and `#` stand for any levels.
        pub events: Vec<String> = Vec::new();
        /// Its tools.
        pub tools: Vec<ThingToolConfig> = Vec::new();
    }
}

sinew_tool::settings! {
    /// A tool of a gadget: one MQTT message or one HTTP request.
    pub struct ThingToolConfig {
        /// Name of the tool.
        pub name: String = String::new();
        /// What the tool does, for models.
        pub description: String = String::new();
        /// What calling it can do: `read`, `change` or `danger`.
        pub effect: Option<MarkedEffect> = None;
        /// JSON Schema of the arguments. By default every `${name}` is a text that is required.
        pub input: InputSchema = InputSchema::default();
        /// The MQTT message that is sent.
        pub mqtt: Option<MqttToolConfig> = None;
        /// The HTTP request that is sent.
        pub http: Option<HttpToolConfig> = None;
    }
}

sinew_tool::settings! {
    /// A message to a gadget, and where it answers.
    pub struct MqttToolConfig {
        /// Topic to publish to; `${name}` inserts an argument as one level.
        pub topic: String = String::new();
        /// What is published; `${name}` inserts an argument.
        pub payload: String = String::new();
        /// Topic of the answer. Without it the tool is done when the broker has the message.
        pub answer: Option<String> = None;
        /// JSON Pointer to the part of the answer that is returned: `/POWER`.
        pub pick: Option<String> = None;
        /// Seconds to wait for the answer.
        pub timeout: Duration = Duration::from_secs(5), within 1..=600;
    }
}

sinew_tool::settings! {
    /// A request to a gadget.
    pub struct HttpToolConfig {
        /// GET, POST, PUT, PATCH or DELETE. By default POST with a `body` and GET without.
        pub method: Option<String> = None;
        /// Address; after the host, `${name}` inserts an argument.
        pub url: String = String::new();
        /// Headers; `${name}` inserts an argument.
        pub headers: BTreeMap<String, String> = BTreeMap::new();
        /// Headers whose values are secret: files whose first line is the value, or credentials of systemd with that name.
        /// Relative to the configuration file.
        pub header_files: BTreeMap<String, PathBuf> = BTreeMap::new();
        /// What is sent; `${name}` inserts an argument.
        pub body: Option<String> = None;
        /// JSON Pointer to the part of the answer that is returned: `/ison`.
        pub pick: Option<String> = None;
        /// Seconds to wait for the answer.
        pub timeout: Duration = Duration::from_secs(10), within 1..=600;
    }
}

/// A JSON Schema in the configuration; null where there is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputSchema(pub Value);

impl Setting for InputSchema {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        let schema = Value::deserialize(from)?;
        if !schema.is_object() {
            return Err(<D::Error as sinew_tool::settings::Error>::custom("the schema must be a table"));
        }
        self.0 = schema;
        Ok(())
    }

    fn schema() -> Value {
        json!({"type": "object"})
    }

    fn to_value(&self) -> Value {
        self.0.clone()
    }
}

/// A gadget, ready to be used.
#[derive(Clone, Debug)]
pub struct ThingPlan {
    pub(crate) config: ThingConfig,
    pub(crate) broker: Option<Address>,
    pub(crate) tools: Vec<ThingTool>,
}

impl PartialEq for ThingPlan {
    /// The rest follows from the configuration and the broker.
    fn eq(&self, other: &ThingPlan) -> bool {
        self.config == other.config && self.broker == other.broker
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ThingTool {
    pub(crate) tool: Tool,
    pub(crate) action: ThingAction,
    pub(crate) pick: Option<String>,
    pub(crate) timeout: Duration,
}

#[derive(Clone, Debug)]
pub(crate) enum ThingAction {
    Mqtt { topic: TextTemplate, payload: BodyTemplate, answer: Option<TextTemplate> },
    Http { method: Method, url: TextTemplate, headers: Vec<(HeaderName, TextTemplate)>, body: Option<BodyTemplate> },
}

/// Tools of one gadget: people write them by hand.
const MAX_TOOLS: usize = 128;
/// What the `input` of one tool may take; people write some dozen lines.
const SCHEMA_ROOM: Cost =
    Cost { schemas: 2_000, patterns: 64, pattern_bytes: 16 << 10, pattern_states: 16 << 10, properties: 64 };
/// MQTT allows more, small gadgets do not.
const MAX_TOPIC_BYTES: usize = 256;

/// The plans of all things, or the number of the wrong one and what is wrong with it. `brokers` are those of the
/// configuration.
pub fn plan(things: &[ThingConfig], brokers: &[Address]) -> Result<Vec<ThingPlan>, (usize, String)> {
    let mut plans: Vec<ThingPlan> = Vec::new();
    for (index, thing) in things.iter().enumerate() {
        if plans.iter().any(|other| other.config.name == thing.name) {
            return Err((index, format!("two things are called `{}`; rename one of them", thing.name)));
        }
        plans.push(thing.plan(brokers).map_err(|why| (index, why))?);
    }
    Ok(plans)
}

impl ThingConfig {
    fn plan(&self, brokers: &[Address]) -> Result<ThingPlan, String> {
        if DeviceId::parse(&self.name).is_none() {
            let most = DeviceId::MAX_LENGTH;
            return Err(format!(
                "a thing needs a `name` of 1 to {most} letters a-z, digits and hyphens, not `{}`",
                self.name
            ));
        }
        if self.tools.is_empty() || self.tools.len() > MAX_TOOLS {
            return Err(format!("`{}` needs 1 to {MAX_TOOLS} `tools`", self.name));
        }
        let mut names = BTreeSet::new();
        let mut tools = Vec::new();
        for tool in &self.tools {
            let wrong = |why: String| format!("the tool `{}` of `{}`: {why}", tool.name, self.name);
            if !names.insert(&tool.name) {
                return Err(wrong("its name is used twice".to_owned()));
            }
            tools.push(tool.plan().map_err(wrong)?);
        }
        for topic in &self.events {
            check_filter(topic)?;
        }
        let needs_broker = !self.events.is_empty() || self.tools.iter().any(|tool| tool.mqtt.is_some());
        let broker = if needs_broker { Some(self.find_broker(brokers)?) } else { None };
        Ok(ThingPlan { config: self.clone(), broker, tools })
    }

    fn find_broker(&self, brokers: &[Address]) -> Result<Address, String> {
        let name = &self.name;
        match (&self.broker, brokers) {
            (_, []) => Err(format!("`{name}` uses MQTT and there is no broker; add a `[[brokers]]` with its `url`")),
            (None, [only]) => Ok(only.clone()),
            (None, _) => Err(format!("`{name}` uses MQTT and there are several brokers; name one with `broker`")),
            (Some(wanted), _) => {
                let wanted = Address::new(wanted, None, None)?.to_string();
                let found = brokers.iter().find(|address| address.to_string() == wanted);
                found.cloned().ok_or_else(|| format!("`{name}`: {wanted} is none of the `[[brokers]]`; add it there"))
            }
        }
    }
}

impl ThingToolConfig {
    fn plan(&self) -> Result<ThingTool, String> {
        let is_plain = |each: char| each.is_ascii_alphanumeric() || matches!(each, '_' | '-' | '.');
        if !(1..=64).contains(&self.name.len()) || !self.name.chars().all(is_plain) {
            return Err("a tool needs a `name` of 1 to 64 letters, digits, `_`, `-` and `.`".to_owned());
        }
        let (action, pick, timeout) = match (&self.mqtt, &self.http) {
            (Some(mqtt), None) => (mqtt.action()?, &mqtt.pick, mqtt.timeout),
            (None, Some(http)) => (http.action()?, &http.pick, http.timeout),
            (Some(_), Some(_)) => return Err("`mqtt` and `http` are two ways to do it; keep one".to_owned()),
            (None, None) => return Err("it needs `mqtt` or `http`, which says what is sent".to_owned()),
        };
        if let Some(pick) = pick.as_ref().filter(|pick| !pick.is_empty() && !pick.starts_with('/')) {
            return Err(format!("`pick` is a JSON Pointer and begins with a slash: `/{pick}`"));
        }
        let names: BTreeSet<&str> = action.names().into_iter().collect();
        let schema = self.schema(&names)?;
        let mut tool = Tool::new(&self.name, &self.description, schema);
        tool.effect = self.effect.map(Into::into);
        Ok(ThingTool { tool, action, pick: pick.clone().filter(|pick| !pick.is_empty()), timeout })
    }

    /// The given schema, whose arguments the templates use; or one that is made from the templates.
    fn schema(&self, names: &BTreeSet<&str>) -> Result<Value, String> {
        let Some(given) = self.input.0.as_object() else {
            let properties: serde_json::Map<String, Value> =
                names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
            return Ok(
                json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false}),
            );
        };
        let mut schema = given.clone();
        schema.entry("type").or_insert_with(|| json!("object"));
        let properties = schema.get("properties").and_then(Value::as_object);
        let missing = names.iter().find(|name| properties.is_none_or(|known| !known.contains_key(**name)));
        if let Some(name) = missing {
            return Err(format!("`${{{name}}}` is not one of the `properties` of `input`"));
        }
        let schema = Value::Object(schema);
        check_schema(&schema).map_err(|why| format!("`input` cannot be checked: {why}"))?;
        Ok(schema)
    }
}

/// A rule that cannot be read would let everything through.
fn check_schema(schema: &Value) -> Result<(), String> {
    let validator = Validator::compile(schema, SCHEMA_ROOM).map_err(|invalid| invalid.to_string())?;
    validator.unenforced().first().map_or(Ok(()), |why| Err(why.clone()))
}

impl MqttToolConfig {
    fn action(&self) -> Result<ThingAction, String> {
        let topic = template("topic", &self.topic)?;
        check_topic("topic", &self.topic)?;
        if let Some(answer) = &self.answer {
            check_topic("answer", answer)?;
        }
        let answer = self.answer.as_deref().map(|answer| template("answer", answer)).transpose()?;
        Ok(ThingAction::Mqtt { topic, payload: body("payload", &self.payload, "")?, answer })
    }
}

impl HttpToolConfig {
    fn action(&self) -> Result<ThingAction, String> {
        let method = match &self.method {
            None if self.body.is_some() => Method::POST,
            None => Method::GET,
            Some(word) => {
                let known = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
                let found = known.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(word));
                found.ok_or_else(|| format!("`method` is `{word}`, not one of GET, POST, PUT, PATCH, DELETE"))?
            }
        };
        let url = template("url", &self.url)?;
        // What is before the first argument names the machine.
        let start = url.fixed_start();
        let is_whole = start.split_once("://").is_some_and(|(_, rest)| rest.contains('/') || url.names().is_empty());
        if !is_whole {
            return Err("the host in `url` cannot be an argument; write http://HOST/ first".to_owned());
        }
        HttpUrl::parse(start).map_err(|why| format!("`url`: {why}"))?;
        let header = |(name, value): (&String, &String)| {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is not a header"))?;
            Ok::<_, String>((name, template("headers", value)?))
        };
        let headers: Vec<(HeaderName, TextTemplate)> = self.headers.iter().map(header).collect::<Result<_, _>>()?;
        let content_type = headers.iter().find(|(name, _)| *name == CONTENT_TYPE).map(|(_, value)| value);
        if content_type.is_some_and(|value| !value.names().is_empty()) {
            return Err("`Content-Type` cannot have an argument: it says how the `body` is written".to_owned());
        }
        let content_type = content_type.map_or("", TextTemplate::fixed_start);
        let body = self.body.as_deref().map(|text| body("body", text, content_type)).transpose()?;
        Ok(ThingAction::Http { method, url, headers, body })
    }
}

impl ThingAction {
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            ThingAction::Mqtt { topic, payload, answer } => {
                let answer = answer.iter().flat_map(TextTemplate::names);
                topic.names().into_iter().chain(payload.names()).chain(answer).collect()
            }
            ThingAction::Http { url, headers, body, .. } => {
                let headers = headers.iter().flat_map(|(_, value)| value.names());
                let body = body.iter().flat_map(BodyTemplate::names);
                url.names().into_iter().chain(headers).chain(body).collect()
            }
        }
    }
}

fn template(key: &str, text: &str) -> Result<TextTemplate, String> {
    TextTemplate::parse(text).map_err(|why| format!("`{key}`: {why}"))
}

fn body(key: &str, text: &str, content_type: &str) -> Result<BodyTemplate, String> {
    BodyTemplate::parse_as(text, content_type).map_err(|why| format!("`{key}`: {why}"))
}

fn check_topic(key: &str, topic: &str) -> Result<(), String> {
    // An argument stands for one whole level or a part of it, and is checked when it is known.
    let sample = TextTemplate::parse(topic).map_err(|why| format!("`{key}`: {why}"))?;
    let args = sample.names().into_iter().map(|name| (name.to_owned(), json!("x"))).collect();
    let sample = sample.fill(&args, TextPlace::Topic).map_err(|error| error.message)?;
    match sample.is_empty()
        || sample.len() > MAX_TOPIC_BYTES
        || sample.contains(['+', '#'])
        || sample.contains(char::is_control)
        || sample.starts_with('$')
    {
        true => Err(format!("`{key}` must be an MQTT topic without `+`, `#` and a `$` at its start, not `{topic}`")),
        false => Ok(()),
    }
}

fn check_filter(filter: &str) -> Result<(), String> {
    let levels: Vec<&str> = filter.split('/').collect();
    let fits = |(at, level): (usize, &&str)| match *level {
        "#" => at + 1 == levels.len(),
        "+" => true,
        other => !other.contains(['#', '+']) && !other.contains(char::is_control),
    };
    match (1..=MAX_TOPIC_BYTES).contains(&filter.len()) && levels.iter().enumerate().all(fits) {
        true => Ok(()),
        false => Err(format!("`events` has `{filter}`, which is not a filter of MQTT topics")),
    }
}
