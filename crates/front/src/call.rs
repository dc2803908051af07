//! One `tools/call` of an MCP client.

// Logging and requests to the client are deprecated in MCP, but older clients need them.
#![allow(deprecated)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomNotification, CustomRequest, ErrorData, InputRequiredResult,
    LoggingMessageNotificationParam, MetaObject, ProgressNotificationParam, ProgressToken, RequestMetaObject,
    SealOptions, ServerNotification, ServerRequest,
};
use rmcp::service::{Peer, RequestContext, ServiceError};
use serde_json::{Value, json};
use sinew_gateway::{Principal, Request, Shape};
use sinew_tool::{Answer, Args, Digest, ErrorKind, Outcome, Question, ToolError, TraceParent};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::caller::{self, Answers, CallerMessage, CapabilitySource, CarriedRounds, ClientCaller};
use crate::mcp::{Mcp, is_modern};
use crate::revision::Revision;
use crate::state::FrontState;
use crate::{trace, translate};

/// Many clients give up on a call that was silent for 60 s, some sooner. Less than 5 s, because reports may be delayed.
const REPORT_INTERVAL: Duration = Duration::from_secs(4);
/// The key of a call's lease in `_meta`.
const LEASE_KEY: &str = "sinew/lease";
/// How long a client may take to repeat a call with answers.
const ANSWER_TIME: Duration = Duration::from_secs(15 * 60);

pub(crate) async fn call(
    mcp: &Mcp,
    mut params: CallToolRequestParams,
    mut cx: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let who = mcp.who(&cx.extensions)?;
    let token = cx.meta.get_progress_token();
    let revision = Revision::of(&cx);
    let headers = cx.extensions.get::<http::request::Parts>().map(|parts| &parts.headers);
    let trace = trace::parent(cx.meta.get(TraceParent::KEY), headers);
    let tool_call = if is_modern(&cx) {
        params.meta = Some(std::mem::take(&mut cx.meta));
        ToolCall::modern(&mcp.front, who, params)?
    } else {
        let client = CapabilitySource::Handshake(cx.peer.clone());
        let (level, lease) = (Some(mcp.session.level()), lease_of(&cx.meta));
        let caller = ClientCaller::new(client, token.is_some(), level, CarriedRounds::default(), Answers::new());
        ToolCall { lease, ..ToolCall::new(who, params, caller, revision) }
    };
    let tool_call = tool_call.traced(trace);
    let (caller, who) = (tool_call.caller.clone(), tool_call.who.clone());
    let mut revoked = std::pin::pin!(mcp.front.gateway.tokens().revoked(&who));
    let mut call = std::pin::pin!(mcp.front.gateway.call(tool_call.request(mcp.form.shape, mcp.endpoint)));
    let mut questions = FuturesUnordered::new();
    let started = Instant::now();
    let mut silence = std::pin::pin!(sleep(REPORT_INTERVAL));
    let answer = loop {
        tokio::select! {
            biased;
            // Returning drops the call, which cancels it on the device where that is possible.
            () = cx.ct.cancelled() => return Err(ErrorData::internal_error("the call was cancelled", None)),
            answer = &mut call => break answer,
            // Otherwise the session would let the call run for some more seconds.
            () = &mut revoked => return Err(ErrorData::internal_error("the token of the caller was revoked", None)),
            message = caller.next() => match message {
                CallerMessage::Ask { questions: asked, reply } => questions.push(ask(&cx.peer, asked, reply)),
                message => {
                    silence.as_mut().reset(Instant::now() + REPORT_INTERVAL);
                    forward(&cx.peer, token.as_ref(), message, revision).await;
                }
            },
            Some(()) = questions.next(), if !questions.is_empty() => {}
            () = &mut silence, if token.is_some() => {
                silence.as_mut().reset(Instant::now() + REPORT_INTERVAL);
                let message = caller.still_running(started.elapsed());
                forward(&cx.peer, token.as_ref(), message, revision).await;
            }
        }
    };
    while let Some(message) = caller.try_next() {
        forward(&cx.peer, token.as_ref(), message, revision).await;
    }
    tool_call.finish(&mcp.front, mcp.form.shape, answer)
}

/// The lease that a call names.
fn lease_of(meta: &RequestMetaObject) -> Option<Arc<str>> {
    meta.get(LEASE_KEY).and_then(Value::as_str).map(Arc::from)
}

/// A call that a client asked for.
pub(crate) struct ToolCall {
    who: Arc<Principal>,
    tool: String,
    args: Args,
    caller: Arc<ClientCaller>,
    revision: Revision,
    lease: Option<Arc<str>>,
    trace: Option<TraceParent>,
}

impl ToolCall {
    fn new(who: Arc<Principal>, params: CallToolRequestParams, caller: ClientCaller, revision: Revision) -> ToolCall {
        let args = params.arguments.unwrap_or_default();
        let (tool, caller) = (params.name.into_owned(), Arc::new(caller));
        ToolCall { who, tool, args, caller, revision, lease: None, trace: None }
    }

    /// A call of a client that declares its capabilities with each call, and repeats earlier answers.
    pub(crate) fn modern(
        front: &FrontState,
        who: Arc<Principal>,
        mut params: CallToolRequestParams,
    ) -> Result<ToolCall, ErrorData> {
        let mut carried = CarriedRounds::default();
        if let Some(state) = params.request_state.take() {
            let binding = binding(&who, &params.name, params.arguments.as_ref());
            let opened = front.sealer().and_then(|sealer| sealer.open_json_with(&state, &binding));
            carried = opened.map_err(|error| {
                let message = format!("`requestState`: {error}; send it back unchanged, or call again without it");
                ErrorData::invalid_params(message, None)
            })?;
        }
        let sent = params.input_responses.take().unwrap_or_default().into_iter().collect();
        let meta = params.meta.take().unwrap_or_default();
        let progress = meta.get_progress_token().is_some();
        let (level, lease) = (meta.log_level().map(translate::from_level), lease_of(&meta));
        let caller = ClientCaller::new(CapabilitySource::Request(meta), progress, level, carried, sent);
        Ok(ToolCall { lease, ..ToolCall::new(who, params, caller, Revision::July2026) })
    }

    /// The call as a part of the caller's trace.
    pub(crate) fn traced(self, trace: Option<TraceParent>) -> ToolCall {
        ToolCall { trace, ..self }
    }

    pub(crate) fn request(&self, shape: Shape, endpoint: &'static str) -> Request {
        Request {
            is_confirmed: false,
            who: (*self.who).clone(),
            name: self.tool.clone(),
            args: self.args.clone(),
            shape,
            caller: self.caller.clone(),
            budget: None,
            door: endpoint,
            lease: self.lease.clone(),
            trace: self.trace.clone(),
            is_plain: false,
        }
    }

    /// The answer as the client gets it.
    pub(crate) fn finish(
        self,
        front: &FrontState,
        shape: Shape,
        answer: Result<Outcome, ToolError>,
    ) -> Result<CallToolResponse, ErrorData> {
        let error = match answer {
            Ok(outcome) => return Ok(translate::to_result(outcome, self.revision).into()),
            Err(error) => error,
        };
        if self.caller.is_modern()
            && let Some(unfinished) = self.unfinished(front, &error)
        {
            return unfinished;
        }
        let list = front.gateway.list(&self.who, shape);
        let declares_output = list.find(&self.tool).is_some_and(|public| public.tool.output_schema.is_some());
        translate::to_failure(&error, declares_output, self.revision).map(Into::into)
    }

    /// The answer to a call that needs an answer or a capability of the client first.
    fn unfinished(&self, front: &FrontState, error: &ToolError) -> Option<Result<CallToolResponse, ErrorData>> {
        match error.kind {
            ErrorKind::InputRequired => {
                let (open, carried) = self.caller.open_rounds()?;
                Some(match caller::input_requests(&open) {
                    Ok(requests) => self.seal(front, &carried).map(|state| {
                        let mut asked = InputRequiredResult::new(Some(requests), Some(state));
                        asked.meta = carried.run.map(|run| run_meta(&run));
                        asked.into()
                    }),
                    Err(error) => translate::to_failure(&error, true, self.revision).map(Into::into),
                })
            }
            ErrorKind::Unsupported => {
                let missing = self.caller.missing_capability();
                missing.map(|missing| Err(ErrorData::missing_required_client_capability(missing)))
            }
            _ => None,
        }
    }

    fn seal(&self, front: &FrontState, carried: &CarriedRounds) -> Result<String, ErrorData> {
        let binding = binding(&self.who, &self.tool, Some(&self.args));
        let options = SealOptions::new().associated_data(&binding).ttl(ANSWER_TIME);
        let fault = |error| ErrorData::internal_error(format!("the state of the call cannot be sealed: {error}"), None);
        front.sealer().and_then(|sealer| sealer.seal_json_with(carried, &options)).map_err(fault)
    }
}

/// By which a client can ask about a run that waits for its answer, or end it.
fn run_meta(run: &str) -> MetaObject {
    MetaObject([("sinew/run".to_owned(), json!({"id": run}))].into_iter().collect())
}

/// What the state of an unfinished call is bound to: other callers cannot use it, nor can it be used with another tool
/// or other arguments.
fn binding(who: &Principal, tool: &str, args: Option<&Args>) -> Vec<u8> {
    let digest = Digest::of(&Value::Object(args.cloned().unwrap_or_default())).hex();
    [who.id.as_str(), tool, digest.as_str()].join("\n").into_bytes()
}

async fn forward(peer: &Peer<RoleServer>, token: Option<&ProgressToken>, message: CallerMessage, revision: Revision) {
    let sent = match message {
        CallerMessage::Progress { progress, total, message } => {
            let Some(token) = token else { return };
            let mut report = ProgressNotificationParam::new(token.clone(), progress);
            report.total = total;
            report.message = message.filter(|_| revision.has_progress_messages());
            peer.notify_progress(report).await
        }
        CallerMessage::Log { level, data } => {
            let message = LoggingMessageNotificationParam::new(translate::to_level(level), data);
            peer.notify_logging_message(message).await
        }
        CallerMessage::PageDone { key } => {
            let done =
                CustomNotification::new("notifications/elicitation/complete", Some(json!({"elicitationId": key})));
            peer.send_notification(ServerNotification::CustomNotification(done)).await
        }
        // The call has ended already, so nobody waits for the reply.
        CallerMessage::Ask { .. } => return,
    };
    if let Err(error) = sent {
        tracing::debug!(%error, "a message to a client could not be sent");
    }
}

/// Asks the questions over the connection, one after the other, and gives the answers to the device.
async fn ask(
    peer: &Peer<RoleServer>,
    questions: BTreeMap<String, Question>,
    reply: oneshot::Sender<Result<BTreeMap<String, Answer>, ToolError>>,
) {
    let mut answers = BTreeMap::new();
    for (key, question) in &questions {
        match ask_one(peer, key, question).await {
            Ok(answer) => answers.insert(key.clone(), answer),
            Err(error) => return drop(reply.send(Err(error))),
        };
    }
    drop(reply.send(Ok(answers)));
}

async fn ask_one(peer: &Peer<RoleServer>, key: &str, question: &Question) -> Result<Answer, ToolError> {
    let (method, params) = caller::request(key, question);
    let request = ServerRequest::CustomRequest(CustomRequest::new(method, Some(params)));
    let answer = peer.send_request(request).await.map_err(|error| match error {
        ServiceError::McpError(error) => {
            ToolError::new(ErrorKind::InputRequired, format!("the client refused `{method}`: {}", error.message))
        }
        error => ToolError::new(ErrorKind::Cancelled, format!("the client did not answer `{method}`: {error}")),
    })?;
    let answer = serde_json::to_value(answer).unwrap_or_default();
    if caller::fits(question, &answer) {
        return Ok(answer);
    }
    Err(ToolError::new(
        ErrorKind::InputRequired,
        format!("the client's answer to `{method}` does not have the form that MCP defines"),
    ))
}
