//! The tools the gateway itself offers. Their text is short, because every client lists them.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};
use sinew_schema::Meter;
use sinew_tool::outcome::SOURCE_KEY;
use sinew_tool::text::clean_line;
use sinew_tool::{Args, ErrorKind, Hints, Outcome, Tool, ToolError};

use crate::call::drop_nulls;
use crate::caller_view::CallerView;
use crate::check::CompiledSchema;
use crate::device_filter::DeviceFilter;
use crate::gateway::Gateway;
use crate::held::{OWN_TOPICS, WARNING};
use crate::leases::{self, Reservation};
use crate::page_of::in_background;
use crate::prepare::{ExactSchemas, SCHEMA_BUDGET};
use crate::principal::Principal;
use crate::specification;
use crate::view::{DeviceView, PublicTool};

const LIST_DEVICES: &str = "list_devices";
const GET_DEVICE_EVENTS: &str = "get_device_events";
const RESERVE_DEVICE: &str = "reserve_device";
const RELEASE_DEVICE: &str = "release_device";

/// Names that no tool of a device gets.
pub(crate) const NAMES: &[&str] =
    &[LIST_DEVICES, GET_DEVICE_EVENTS, RESERVE_DEVICE, RELEASE_DEVICE, specification::VALIDATE, specification::COMPARE];

/// Devices or events of one answer, unless the caller says otherwise: a model reads all of them.
const USUALLY_LISTED: usize = 50;
const MAX_LISTED: usize = 200;
/// What a page is continued from.
const NEXT: &str = "`next` of the last answer";

/// Work units for checking the arguments of a built-in tool, whose schemas are small.
const MAX_WORK: u64 = 5_000;

pub(crate) struct BuiltIn {
    tool: Tool,
    input: CompiledSchema,
    /// Whether it is offered only where the settings say so.
    is_extra: bool,
}

static TOOLS: LazyLock<Vec<BuiltIn>> = LazyLock::new(|| {
    let list_devices = Tool::new(
        LIST_DEVICES,
        "Devices, their state and tools. Other tools take an id or a name as `device`.",
        json!({
            "type": "object",
            "properties": {
                "search": {"type": "string", "description": "words in ids, names, kinds, labels"},
                "label": {"type": "string"},
                "family": {"type": "string", "description": "`board`, `phone`, `app`, …"},
                "state": {"type": "string", "enum": DeviceFilter::STATES},
                "after": {"type": "string", "description": NEXT},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LISTED},
            },
        }),
    )
    .with_output_schema(json!({"type": "object", "properties": {
        "devices": {"type": "array", "items": {"type": "object"}},
        "total": {"type": "integer"},
        "next": {"type": "string"},
    }}));
    let events = json!({
        "type": "object",
        "properties": {
            "device": {"type": "string"},
            "since": {"type": "string", "description": NEXT},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LISTED},
        },
    });
    let get_device_events = Tool::new(GET_DEVICE_EVENTS, "What devices reported, oldest first.", events)
        .with_output_schema(
            json!({"type": "object", "properties": {"events": {"type": "array", "items": {"type": "object"}}, "next": {"type": "string"}}}),
        );
    let reading = [list_devices, get_device_events].map(|tool| (tool.with_hints(Hints::reading()), false));
    let repeatable = Hints { destructive: Some(false), idempotent: Some(true), ..Hints::default() };
    let leasing = leasing().map(|tool| (tool.with_hints(repeatable), false));
    let extra = specification::tools().map(|tool| (tool.with_hints(Hints::reading()), true));
    let built_in = |(tool, is_extra): (Tool, bool)| {
        let input = CompiledSchema::new(tool.input_schema.clone(), SCHEMA_BUDGET).ok()?;
        Some(BuiltIn { input, tool, is_extra })
    };
    reading.into_iter().chain(leasing).chain(extra).filter_map(built_in).collect()
});

fn leasing() -> [Tool; 2] {
    let input = json!({
        "type": "object",
        "properties": {
            "device": {"type": "string", "description": "id, name, or `label:NAME` for one that is free"},
            "seconds": {"type": "integer", "minimum": 1, "maximum": leases::MAX_CLIENT_SECONDS},
            "wait": {"type": "integer", "minimum": 0, "maximum": leases::MAX_WAIT_SECONDS,
                "description": "seconds to wait for it"},
            "purpose": {"type": "string", "maxLength": 100},
            "run": {"type": "string", "maxLength": 64,
                "description": "if others share your token: any name; then call with `device`: `lease:ID`"},
        },
        "required": ["device"],
    });
    let output = json!({"type": "object", "properties": {
        "lease": {"type": "string"}, "device": {"type": "string"}, "seconds": {"type": "integer"},
    }});
    let reserve = Tool::new(
        RESERVE_DEVICE,
        "Have a device to yourself: others can read, not change it. Ends when unused for 60 s. Repeat to prolong.",
        input,
    );
    let input = json!({
        "type": "object",
        "properties": {"device": {"type": "string", "description": "id, name or `lease:ID`"}},
        "required": ["device"],
    });
    let release = Tool::new(RELEASE_DEVICE, "Give a reserved device back.", input);
    let released = json!({"type": "object", "properties": {"released": {"type": "boolean"}}});
    [reserve.with_output_schema(output), release.with_output_schema(released)]
}

/// The built-in tools, as lists show them; with those for specifications where they are wanted.
pub(crate) fn tools(spec_tools: bool) -> Vec<PublicTool> {
    let public = |built_in: &BuiltIn| PublicTool {
        name: built_in.tool.name.clone(),
        tool: built_in.tool.clone(),
        exact: ExactSchemas::default(),
        own_name: built_in.tool.name.clone(),
        device: None,
        selector: None,
    };
    TOOLS.iter().filter(|built_in| spec_tools || !built_in.is_extra).map(public).collect()
}

pub(crate) fn find(name: &str, spec_tools: bool) -> Option<&'static BuiltIn> {
    TOOLS.iter().find(|built_in| built_in.tool.name == name && (spec_tools || !built_in.is_extra))
}

impl BuiltIn {
    /// The device that a call is about, where the record should name it.
    pub(crate) fn device<'a>(&self, args: &'a Args) -> Option<&'a str> {
        let is_about = matches!(self.tool.name.as_str(), RESERVE_DEVICE | RELEASE_DEVICE);
        args.get("device").filter(|_| is_about).and_then(Value::as_str)
    }

    pub(crate) async fn run(&self, gateway: &Gateway, who: &Principal, args: Args) -> Result<Outcome, ToolError> {
        let mut args = Value::Object(args);
        if let Err(error) = self.check(&args) {
            if !drop_nulls(&self.tool, &mut args) {
                return Err(error);
            }
            self.check(&args)?;
        }
        match self.tool.name.as_str() {
            LIST_DEVICES => list_devices(gateway.seen_by(who), &args).await,
            RESERVE_DEVICE => reserve_device(gateway, who, &args).await,
            RELEASE_DEVICE => {
                let released = gateway.release(who, text(&args, "device").unwrap_or_default()).await?;
                Ok(Outcome::json(json!({ "released": released })))
            }
            specification::VALIDATE => in_background(move || specification::validate(&args)).await?,
            specification::COMPARE => in_background(move || specification::compare(&args)).await?,
            _ => get_device_events(&gateway.seen_by(who), &args).await,
        }
    }

    fn check(&self, args: &Value) -> Result<(), ToolError> {
        // These schemas are ours, and none takes more than a few steps for each argument.
        let verdict = self.input.arguments(&self.tool.name, args, &mut Meter::new(MAX_WORK));
        verdict.map_err(|error| ToolError::new(ErrorKind::InvalidArguments, error.to_string()))?
    }
}

async fn list_devices(seen: CallerView, args: &Value) -> Result<Outcome, ToolError> {
    let wanted = DeviceFilter::read(|key| text(args, key))?;
    let page = seen.devices(wanted, text(args, "after"), limit(args)).await?;
    let has_quotes = page.items.iter().any(DeviceView::has_quotes);
    let page = page.map(line);
    let mut answer = json!({"devices": page.items, "total": page.total});
    if let Some(next) = page.next {
        answer["next"] = json!(next);
    }
    Ok(with_quotes(has_quotes, Outcome::json(answer)))
}

/// Notes that an answer holds text that anybody may have written.
fn with_quotes(has_quotes: bool, mut outcome: Outcome) -> Outcome {
    if has_quotes {
        outcome.meta.insert(SOURCE_KEY.to_owned(), json!({"third_party": true}));
    }
    outcome
}

fn line(device: DeviceView) -> Value {
    let mut line = json!({"id": device.id.as_str()});
    if let Some(name) = &device.name {
        line["name"] = json!(name);
    }
    if !device.labels.is_empty() {
        line["labels"] = json!(device.labels);
    }
    line["kind"] = json!(device.kind);
    line["state"] = json!(device.state);
    line["tools"] = json!(device.tools);
    if let Some(lease) = device.lease {
        line["reserved"] = json!({"holder": lease.holder, "until": lease.until});
    }
    if let Some(remedy) = device.remedy {
        line["remedy"] = json!(remedy);
    }
    if let Some(words) = device.instructions {
        line["instructions"] = json!(clean_line(&words, 200));
    }
    line
}

/// How many items an answer has at most.
fn limit(args: &Value) -> usize {
    // A model may write 60.0.
    let wanted = args.get("limit").and_then(Value::as_f64);
    wanted.map_or(USUALLY_LISTED, |limit| limit as usize).clamp(1, MAX_LISTED)
}

fn text<'a>(args: &'a Value, key: &str) -> Option<&'a str> {
    args.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

async fn reserve_device(gateway: &Gateway, who: &Principal, args: &Value) -> Result<Outcome, ToolError> {
    // A model may write 60.0.
    let seconds = |key: &str| args.get(key).and_then(Value::as_f64).map(|seconds| seconds as u64);
    let lease = gateway
        .reserve(
            who,
            Reservation {
                device: text(args, "device").unwrap_or_default().to_owned(),
                time: Duration::from_secs(seconds("seconds").unwrap_or(leases::USUAL_SECONDS)),
                wait: Duration::from_secs(seconds("wait").unwrap_or_default()),
                purpose: text(args, "purpose").unwrap_or_default().to_owned(),
                run: text(args, "run").map(str::to_owned),
                by_person: false,
            },
        )
        .await?;
    let device = lease.view.device.as_str();
    Ok(Outcome::json(json!({"lease": lease.id, "device": device, "seconds": lease.seconds})))
}

async fn get_device_events(seen: &CallerView, args: &Value) -> Result<Outcome, ToolError> {
    let text = |key: &str| text(args, key);
    let page = seen.events(text("device"), text("since"), limit(args)).await?;
    let has_quotes = page.events.iter().any(|event| event.topic == WARNING || !event.topic.starts_with(OWN_TOPICS));
    let page = serde_json::to_value(&page).map_err(|error| ToolError::new(ErrorKind::Internal, error.to_string()))?;
    Ok(with_quotes(has_quotes, Outcome::json(page)))
}
