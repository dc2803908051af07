//! A call, and the way back to its caller.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::device::{BoxFuture, Picture};
use crate::error::{ErrorKind, ToolError};
use crate::outcome::Outcome;
use crate::tool::StepSource;
use crate::trace::TraceParent;

/// The arguments of a call, by name.
pub type Args = Map<String, Value>;

/// What stands in the place of a secret wherever calls are kept or shown.
pub const REDACTED: &str = "[redacted]";

/// A call of one tool of a device.
#[derive(Clone)]
pub struct Call {
    /// The name the device knows the tool by.
    pub tool: String,
    pub args: Args,
    /// How long the work may take, without the time that the call waits for others ([`Caller::turn_came`]). The gateway
    /// keeps the clock; a device may use this to give up earlier and free itself.
    pub budget: Duration,
    /// The caller's name in the audit; empty where it is not known. For devices that remember what they showed to
    /// whom, never for decisions.
    pub from: String,
    pub caller: Arc<dyn Caller>,
    /// For devices that are made of other tools: calls those with the rights of this call's caller.
    pub nested: Arc<dyn NestedCalls>,
}

impl Call {
    /// A call whose caller only takes the answer.
    pub fn new(tool: impl Into<String>, args: Args) -> Call {
        Call {
            tool: tool.into(),
            args,
            budget: Duration::from_secs(30),
            from: String::new(),
            caller: Arc::new(Silent),
            nested: Arc::new(Silent),
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("tool", &self.tool)
            .field("args", &self.args)
            .field("budget", &self.budget)
            .finish()
    }
}

/// What a device may send to its caller before it answers. To cancel a call, drop its future.
pub trait Caller: Send + Sync {
    /// `progress` of `total`; each report must be larger than the one before.
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>);

    fn log(&self, level: LogLevel, data: Value);

    /// Asks several questions at once, each under a key of the device's choosing, and waits for all
    /// answers. A caller that cannot be asked answers with [`ErrorKind::InputRequired`] or
    /// [`ErrorKind::Unsupported`]; the device passes that on.
    ///
    /// A caller without a lasting connection repeats the whole call with the answers, so ask before
    /// acting, and under the same keys each time.
    fn ask(&self, questions: BTreeMap<String, Question>) -> BoxFuture<'_, Result<BTreeMap<String, Answer>, ToolError>>;

    /// The device is busy with other calls, and has not begun with this one. A call that ends before its turn came had no
    /// effect.
    fn turn_awaited(&self) {}

    /// The device begins with the call only now; until now it was busy with others.
    fn turn_came(&self) {}

    /// The call, or one that it makes, waits for a person's approval. Only the gateway says so, never a device.
    fn waits_for_approval(&self, _: &PendingApproval) {}

    /// Lets the client ask its user about a call that waits. Only the gateway asks, and only for itself: a client sends
    /// answers to other questions unasked.
    fn consent<'a>(&'a self, _: &'a ConsentRequest) -> BoxFuture<'a, Consent> {
        Box::pin(std::future::ready(Consent::Waits))
    }

    /// The approval that the client was asked about was decided, or is not needed any more.
    fn consent_ended(&self, _approval: &str) {}

    /// The approval that the client was asked about when it made this call before.
    fn resumed_approval(&self) -> Option<String> {
        None
    }

    /// Whether the caller is told again and again that the call still runs, and so waits for long calls.
    fn is_patient(&self) -> bool {
        false
    }

    /// Whether the caller has no lasting connection: a question ends its call with [`ErrorKind::InputRequired`], and it
    /// repeats the call with the answer.
    fn repeats_calls(&self) -> bool {
        false
    }

    /// A question ends this round of the call, and the run of this id waits where it stands. A caller that repeats the
    /// call brings the id back, see [`Caller::continues`].
    fn parked(&self, _run: &str) {}

    /// The run that an earlier round of this call left waiting. Such a call begins nothing: it goes on with that run, or
    /// fails.
    fn continues(&self) -> Option<String> {
        None
    }

    /// Whether somebody waits for a spoken answer. Such a call comes next in the queue of its device.
    fn is_urgent(&self) -> bool {
        false
    }

    /// Files that the caller sends along with the call, for a tool that takes them.
    fn attachment(&self) -> Option<Arc<dyn Attachment>> {
        None
    }

    /// Lets the caller look at a photo that was taken for its call, and gives the answer for the board, as text. `None`
    /// where the caller does not look at photos.
    fn explain_photo(&self, question: &str, photo: &Picture) -> Option<BoxFuture<'_, Result<String, ToolError>>> {
        let _ = (question, photo);
        None
    }
}

/// Files that come with a call, piece by piece, one after another. They are never whole in memory.
pub trait Attachment: Send + Sync {
    /// The size of each file in bytes.
    fn sizes(&self) -> &[u64];

    /// What comes next; `None` at the end.
    fn next(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, ToolError>>;
}

/// A call that waits for a person's approval, as its caller may know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingApproval {
    /// The id by which an administrator decides.
    pub id: String,
    /// The id and name of the device.
    pub device: String,
    pub tool: String,
    /// Why a person is asked.
    pub reason: String,
}

/// A question of the gateway about a call that waits, for the user of its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentRequest {
    /// The id of the approval.
    pub approval: String,
    /// What would happen, in the gateway's words.
    pub message: String,
    pub way: ConsentWay,
}

/// How a client asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsentWay {
    /// With a form, and its answer counts: clients can also answer by themselves.
    Form,
    /// It opens a page on which somebody signs in and decides; what the client answers decides nothing.
    Page(String),
}

impl ConsentRequest {
    /// The same question about the approval with this id; the address of a page ends with it.
    pub fn about(&self, id: &str) -> ConsentRequest {
        let way = match &self.way {
            ConsentWay::Form => ConsentWay::Form,
            ConsentWay::Page(url) => ConsentWay::Page(format!("{url}{id}")),
        };
        ConsentRequest { approval: id.to_owned(), message: self.message.clone(), way }
    }
}

/// What came of a [`ConsentRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// The client cannot ask, or only a person's decision counts: the call waits.
    Waits,
    /// The client asks, and then repeats the call.
    Repeats,
    Accepted,
    Declined,
}

/// Calls other tools with the rights of the caller, within what is left of the caller's time.
pub trait NestedCalls: Send + Sync {
    /// Who calls: the same text for the same caller, and for nobody else.
    fn principal(&self) -> &str;

    /// The id of the device that was called.
    fn device(&self) -> &str;

    /// Whether the call that makes these is itself made by another tool, which waits for its answer as long as it must.
    fn is_part(&self) -> bool;

    /// The steps of the tool that was called, as it was decided about. A device whose tools change must not carry out
    /// others.
    fn steps(&self) -> StepSource {
        StepSource::Nowhere
    }

    /// What the caller may do with a tool of the device that was called, without asking anybody about it.
    fn access(&self, tool: &str) -> ToolAccess;

    /// Calls a tool of a device that is given by id, name or `label:NAME`, or without one by the tool's folded public
    /// name. To cancel the call, drop its future.
    fn call<'a>(
        &'a self,
        device: Option<&'a str>,
        tool: &'a str,
        args: Args,
    ) -> BoxFuture<'a, Result<Outcome, ToolError>>;

    /// Asks about calls that will be made, all at once, where a person must approve them. Each of them can then be made
    /// once without asking again. Fails where one of them is denied. Nothing is sent to a device.
    fn agree<'a>(&'a self, calls: &'a [PlannedCall]) -> BoxFuture<'a, Result<(), ToolError>>;

    /// Makes this call, and all that it calls, a part of a run: their audit records have its id. The outermost run counts;
    /// its id is returned.
    fn join_run(&self, id: &str) -> String;

    /// Who makes the call and what was decided about it, for another gateway that runs it; `None` where no gateway did.
    fn origin(&self) -> Option<CallOrigin> {
        None
    }

    /// The same for so long from now, whatever is left of the caller's time: for work that goes on after its call was
    /// answered. What devices ask meanwhile goes to `caller`.
    fn within(&self, time: Duration, caller: Arc<dyn Caller>) -> Arc<dyn NestedCalls>;
}

/// The caller of a call and what was decided about it, as gateways of one cluster tell each other. Each of them trusts the
/// others; nobody else may send one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallOrigin {
    /// The caller's name in the audit.
    pub name: String,
    /// Distinguishes callers of the same name.
    pub id: String,
    pub is_admin: bool,
    /// How the caller came in, by the word of the policy: `token`, `person`.
    pub kind: String,
    /// The endpoint's name in the audit.
    pub door: String,
    /// The version of the policy that decided.
    pub policy: String,
    /// Whether a person was asked, and agreed.
    pub is_approved: bool,
    /// The run that the call is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The lease of a device that the caller named, or that it has within the outer call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// The trace that the call belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
}

/// What a caller may do with a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolAccess {
    /// The device has no such tool, as far as this caller can know.
    Unknown,
    /// A call is denied, or a person is asked about it.
    Guarded,
    Free,
}

/// A call that will be made.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCall {
    pub device: Option<String>,
    pub tool: String,
    pub args: Args,
}

/// What can be asked of a caller. Parameters are those of the MCP request of that name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// A form for the person: a message and a flat JSON Schema of what is wanted.
    Form { message: String, schema: Value },
    /// The person is asked to open a page.
    Page { message: String, url: String },
    /// The model is asked to complete a conversation (`sampling/createMessage`).
    Completion { params: Value },
    /// Which folders the client works in (`roots/list`).
    Roots,
}

/// The MCP result that answers a question, for example `{"action": "accept", "content": {…}}`.
pub type Answer = Value;

/// Syslog's eight levels, as MCP uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// A caller that only takes the answer, and nested calls that always fail.
pub struct Silent;

impl Caller for Silent {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}

    fn log(&self, _: LogLevel, _: Value) {}

    fn ask(&self, _: BTreeMap<String, Question>) -> BoxFuture<'_, Result<BTreeMap<String, Answer>, ToolError>> {
        Box::pin(async {
            Err(ToolError::new(
                ErrorKind::InputRequired,
                "the device has a question, and this kind of call cannot carry one; call the tool through an MCP client that supports elicitation",
            ))
        })
    }
}

impl NestedCalls for Silent {
    fn principal(&self) -> &str {
        ""
    }

    fn device(&self) -> &str {
        ""
    }

    fn is_part(&self) -> bool {
        false
    }

    fn access(&self, _: &str) -> ToolAccess {
        ToolAccess::Free
    }

    fn call<'a>(&'a self, _: Option<&'a str>, tool: &'a str, _: Args) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        let message = format!("`{tool}` cannot be called from here: this call did not come through a gateway");
        Box::pin(std::future::ready(Err(ToolError::new(ErrorKind::Unsupported, message))))
    }

    fn agree<'a>(&'a self, _: &'a [PlannedCall]) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn join_run(&self, id: &str) -> String {
        id.to_owned()
    }

    fn within(&self, _: Duration, _: Arc<dyn Caller>) -> Arc<dyn NestedCalls> {
        Arc::new(Silent)
    }
}
