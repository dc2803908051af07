//! One call to all devices with a label: each is called by itself, with a record of its own, and answers for itself.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use sinew_tool::outcome::SOURCE_KEY;
use sinew_tool::text::clean_line;
use sinew_tool::{Args, Content, ErrorKind, Outcome, Schema, ToolError};

use crate::access::Lens;
use crate::call::Request;
use crate::gateway::Gateway;
use crate::labels::Label;
use crate::nested::{Nesting, PartCaller};
use crate::principal::Role;
use crate::record::{CallRecord, weigh};
use crate::snapshot::{DeviceEntry, Holder, Snapshot};
use crate::source;
use crate::view::Shape;

/// Devices of one call at most: a household's worth, and an answer that a model can still read.
const MAX_MEMBERS: usize = 64;
/// Devices called at the same time.
const AT_ONCE: usize = 8;

/// A call to a label.
pub(crate) struct LabelCall {
    label: String,
    /// The argument that names the label; `None` where the caller named it apart from the arguments.
    selector: Option<String>,
}

/// The devices to call, and those with the label that do not have the tool.
struct LabelMembers {
    label: Label,
    called: Vec<Arc<DeviceEntry>>,
    without: Vec<String>,
}

impl LabelCall {
    /// The label that a call is for; `None` where it is for one device.
    pub(crate) fn find(
        snapshot: &Snapshot,
        device: Option<&str>,
        request: &Request,
        lens: impl FnOnce() -> Lens,
    ) -> Option<LabelCall> {
        if let Role::Device(_) = request.who.role {
            return None;
        }
        if let Some(device) = device {
            return Label::selected(device).map(|label| LabelCall { label: label.to_owned(), selector: None });
        }
        // Most calls end here, without a look at the tool.
        let named = |value: &Value| value.as_str().and_then(Label::selected).map(str::to_owned);
        if request.shape != Shape::Folded || !request.args.values().any(|value| named(value).is_some()) {
            return None;
        }
        let selector = &snapshot.find_seen(&request.name, &lens())?.selector;
        let label = named(request.args.get(selector)?)?;
        Some(LabelCall { label, selector: Some(selector.clone()) })
    }

    fn members(&self, snapshot: &Snapshot, tool: &str, lens: &Lens) -> Result<LabelMembers, ToolError> {
        let label = Label::parse(&self.label)?;
        let has_tool = |entry: &&Arc<DeviceEntry>| {
            let offered = match self.selector {
                Some(_) => snapshot.offered(tool, entry),
                None => entry.offer.find(tool),
            };
            offered.is_some_and(|offered| lens.sees(Holder { entry, offered }))
        };
        let labelled = snapshot.devices.iter().filter(|entry| entry.labels.contains(&label) && lens.sees_device(entry));
        let (called, without): (Vec<_>, Vec<_>) = labelled.partition(has_tool);
        let tool = clean_line(tool, 128);
        let problem = match (called.len(), without.len()) {
            (0, 0) => format!("0 devices have the label `{label}`; list_devices shows the labels of each device"),
            (0, all) => format!("0 devices with the label `{label}` have the tool `{tool}`, of {all} with the label"),
            (count, _) if count > MAX_MEMBERS => format!(
                "{count} devices with the label `{label}` have the tool `{tool}`; at most {MAX_MEMBERS} can be called at once"
            ),
            _ => {
                let without = without.into_iter().map(|entry| entry.id.to_string()).collect();
                return Ok(LabelMembers { label, called: called.into_iter().cloned().collect(), without });
            }
        };
        let details = json!({"parameter_name": "device", "issue": problem, "count": called.len()});
        let kind = if called.is_empty() { ErrorKind::UnknownDevice } else { ErrorKind::InvalidArguments };
        Err(ToolError::new(kind, problem).with_details(details))
    }
}

impl Gateway {
    pub(crate) async fn call_label(
        &self,
        label_call: LabelCall,
        request: Request,
        nesting: Nesting,
    ) -> Result<Outcome, ToolError> {
        let snapshot = self.snapshot();
        let members = match label_call.members(&snapshot, &request.name, &self.lens(&request.who)) {
            Ok(members) => members,
            Err(error) => {
                let record =
                    CallRecord::open(self.recorder().clone(), &request.who, request.door, &request.name, &request.args);
                return record.close(Err(error)).await;
            }
        };
        let (whole, total) = (request.caller.clone(), members.called.len() as f64);
        let calls: Vec<_> = members
            .called
            .iter()
            .map(|entry| self.call_member(entry.clone(), &label_call, &request, nesting.clone()))
            .collect();
        let mut calls = stream::iter(calls).buffer_unordered(AT_ONCE);
        let (mut answers, mut size) = (Vec::new(), 0);
        while let Some((entry, result)) = calls.next().await {
            let result = result.and_then(|outcome| {
                size += weigh(&outcome);
                self.within(size, outcome)
            });
            answers.push((entry, result));
            whole.progress(answers.len() as f64, Some(total), None);
        }
        drop(calls);
        answers.sort_by(|(one, _), (two, _)| one.id.cmp(&two.id));
        join(&members, answers)
    }

    async fn call_member(
        &self,
        entry: Arc<DeviceEntry>,
        label_call: &LabelCall,
        request: &Request,
        nesting: Nesting,
    ) -> Answered {
        let mut part =
            Request { caller: Arc::new(PartCaller { whole: request.caller.clone(), asker: None }), ..request.clone() };
        let id = entry.id.as_str();
        let device = match &label_call.selector {
            Some(selector) => {
                part.args.insert(selector.clone(), json!(id));
                None
            }
            None => Some(id),
        };
        let result = self.call_one(device, part, nesting).await;
        (entry, result)
    }

    /// What all devices answer together must be of a size to pass on, like the answer of one.
    fn within(&self, size: usize, outcome: Outcome) -> Result<Outcome, ToolError> {
        let max = self.settings().max_result;
        if size <= max {
            return Ok(outcome);
        }
        let message = format!(
            "the answers of all devices have more than the {max} bytes that are passed on; call this device by itself"
        );
        Err(ToolError::new(ErrorKind::TooLarge, message))
    }
}

type Answered = (Arc<DeviceEntry>, Result<Outcome, ToolError>);

/// One answer of many. It fails only where every device failed.
fn join(members: &LabelMembers, answers: Vec<Answered>) -> Result<Outcome, ToolError> {
    let failed = answers.iter().filter(|(_, result)| result.is_err()).count();
    let devices: Vec<Value> = answers.iter().map(line).collect();
    let mut whole = json!({
        "label": members.label,
        "succeeded": answers.len() - failed,
        "failed": failed,
        "devices": devices,
    });
    if !members.without.is_empty() {
        whole["without_tool"] = json!(members.without);
    }
    let has_quotes =
        |(_, result): &Answered| result.as_ref().map_or_else(ToolError::is_third_party, Outcome::is_third_party);
    let source = source::own(json!({"label": members.label}), answers.iter().any(has_quotes));
    if failed == answers.len() {
        let kind = common_kind(&answers);
        let first = answers.iter().find_map(|(_, result)| result.as_ref().err());
        let message = format!(
            "the call failed on all {failed} devices with the label `{}`; the first error: {}",
            members.label,
            first.map_or("", |error| error.message.as_str())
        );
        return Err(ToolError { source: Some(Box::new(source)), ..ToolError::new(kind, message).with_details(whole) });
    }
    let mut content = Vec::new();
    for (entry, result) in answers {
        match result {
            Ok(outcome) => {
                content.push(Content::Text(format!("{}: ok", entry.id)));
                content.extend(outcome.content);
            }
            Err(error) => content.push(Content::Text(format!("{}: failed: {error}", entry.id))),
        }
    }
    Ok(Outcome { content, structured: Some(whole), meta: Args::from_iter([(SOURCE_KEY.to_owned(), source)]) })
}

fn line((entry, result): &Answered) -> Value {
    let mut line = json!({"id": entry.id.as_str(), "ok": result.is_ok()});
    if let Some(name) = &entry.name {
        line["name"] = json!(**name);
    }
    match result {
        Ok(outcome) => {
            line["result"] = outcome.structured.clone().unwrap_or_else(|| json!(outcome.joined_text()));
        }
        Err(error) => line["error"] = error.to_object(),
    }
    line
}

fn common_kind(answers: &[Answered]) -> ErrorKind {
    let mut kinds = answers.iter().filter_map(|(_, result)| result.as_ref().err().map(|error| error.kind));
    let first = kinds.next().unwrap_or(ErrorKind::ActionFailed);
    if kinds.all(|kind| kind == first) { first } else { ErrorKind::ActionFailed }
}

/// The output schema of a tool that may also be called for a label, whose answer has another form.
pub(crate) fn output_schema(schema: &Schema) -> Schema {
    // A reference means another place once its schema is nested.
    if schema.to_string().contains("\"$") {
        return Arc::new(json!({"type": "object"}));
    }
    let devices = json!({
        "type": "object",
        "required": ["label", "devices"],
        "properties": {"label": {"type": "string"}, "devices": {"type": "array"}},
    });
    Arc::new(json!({"type": "object", "anyOf": [**schema, devices]}))
}
