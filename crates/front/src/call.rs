//! One `tools/call`, from the request to the client's dialect and back.

// Logging and requests to the client are on their way out of MCP; older clients live by them.
#![allow(deprecated)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, ErrorData, InputRequiredResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, SealOptions, ServerRequest,
};
use rmcp::service::{Peer, RequestContext, ServiceError};
use serde_json::Value;
use sinew_gateway::{Principal, Request, Shape};
use sinew_tool::{Answer, Args, Digest, ErrorKind, Outcome, Question, ToolError};
use tokio::sync::oneshot;

use crate::ask::{self, Answers, Client, Said, Way};
use crate::hall::Hall;
use crate::mcp::{Mcp, is_modern};
use crate::translate;

/// How long a client may take to come back with answers.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

pub(crate) async fn call(
    mcp: &Mcp,
    mut params: CallToolRequestParams,
    mut cx: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let who = mcp.who(&cx.extensions)?;
    let token = cx.meta.get_progress_token();
    let errand = if is_modern(&cx) {
        params.meta = Some(std::mem::take(&mut cx.meta));
        Errand::modern(&mcp.hall, who, params)?
    } else {
        let client = Client::Connected(cx.peer.clone());
        let level = Some(mcp.session.level());
        Errand::new(who, params, Way::new(client, token.is_some(), level, Answers::new()))
    };
    let way = errand.way.clone();
    let caller = errand.who.clone();
    let mut revoked = std::pin::pin!(mcp.hall.gateway.tokens().revoked(&caller));
    let mut call = std::pin::pin!(mcp.hall.gateway.call(errand.request(mcp.form.shape, mcp.door)));
    let mut asked = FuturesUnordered::new();
    let answer = loop {
        tokio::select! {
            biased;
            // Leaving drops the call, and with it the device's work.
            () = cx.ct.cancelled() => return Err(ErrorData::internal_error("the call was cancelled", None)),
            answer = &mut call => break answer,
            // A session would let the call run on for some seconds.
            () = &mut revoked => return Err(ErrorData::internal_error("the token of the caller was revoked", None)),
            said = way.heard() => match said {
                Said::Ask { questions, reply } => asked.push(put(&cx.peer, questions, reply)),
                said => pass_on(&cx.peer, token.as_ref(), said).await,
            },
            Some(()) = asked.next(), if !asked.is_empty() => {}
        }
    };
    while let Some(said) = way.overhear() {
        pass_on(&cx.peer, token.as_ref(), said).await;
    }
    errand.finish(&mcp.hall, mcp.form.shape, answer)
}

/// What a client sent us out for.
pub(crate) struct Errand {
    who: Arc<Principal>,
    tool: String,
    args: Args,
    way: Arc<Way>,
}

impl Errand {
    fn new(who: Arc<Principal>, params: CallToolRequestParams, way: Way) -> Errand {
        let args = params.arguments.unwrap_or_default();
        Errand { who, tool: params.name.into_owned(), args, way: Arc::new(way) }
    }

    /// One of a client that says with each call what it is able to do, and brings along what it was asked before.
    pub(crate) fn modern(
        hall: &Hall,
        who: Arc<Principal>,
        mut params: CallToolRequestParams,
    ) -> Result<Errand, ErrorData> {
        let mut given = Answers::new();
        if let Some(state) = params.request_state.take() {
            let binding = binding(&who, &params.name, params.arguments.as_ref());
            given = hall.sealer.open_json_with(&state, &binding).map_err(|error| {
                let message = format!("`requestState`: {error}; send it back as it came, or call again without it");
                ErrorData::invalid_params(message, None)
            })?;
        }
        given.extend(params.input_responses.take().unwrap_or_default());
        let meta = params.meta.take().unwrap_or_default();
        let progress = meta.get_progress_token().is_some();
        let level = meta.log_level().map(translate::from_level);
        Ok(Errand::new(who, params, Way::new(Client::Modern(meta), progress, level, given)))
    }

    pub(crate) fn request(&self, shape: Shape, door: &'static str) -> Request {
        Request {
            who: (*self.who).clone(),
            name: self.tool.clone(),
            args: self.args.clone(),
            shape,
            caller: self.way.clone(),
            budget: None,
            door,
        }
    }

    /// The answer in the client's dialect.
    pub(crate) fn finish(
        self,
        hall: &Hall,
        shape: Shape,
        answer: Result<Outcome, ToolError>,
    ) -> Result<CallToolResponse, ErrorData> {
        let error = match answer {
            Ok(outcome) => return Ok(translate::to_result(outcome).into()),
            Err(error) => error,
        };
        if self.way.is_modern()
            && let Some(unfinished) = self.unfinished(hall, &error)
        {
            return unfinished;
        }
        let list = hall.gateway.list(&self.who, shape);
        let declares_output = list.find(&self.tool).is_some_and(|public| public.tool.output_schema.is_some());
        translate::to_failure(&error, declares_output).map(Into::into)
    }

    /// The answer to a call that could not end because the client must say or be able to do
    /// something first.
    fn unfinished(&self, hall: &Hall, error: &ToolError) -> Option<Result<CallToolResponse, ErrorData>> {
        match error.kind {
            ErrorKind::InputRequired => {
                let (open, used) = self.way.open_rounds()?;
                Some(match ask::input_requests(&open) {
                    Ok(requests) => {
                        self.seal(hall, &used).map(|state| InputRequiredResult::new(Some(requests), Some(state)).into())
                    }
                    Err(error) => translate::to_failure(&error, true).map(Into::into),
                })
            }
            ErrorKind::Unsupported => {
                let missing = self.way.missing_capability();
                missing.map(|missing| Err(ErrorData::missing_required_client_capability(missing)))
            }
            _ => None,
        }
    }

    fn seal(&self, hall: &Hall, used: &Answers) -> Result<String, ErrorData> {
        let binding = binding(&self.who, &self.tool, Some(&self.args));
        let options = SealOptions::new().associated_data(&binding).ttl(PATIENCE);
        let fault = |error| ErrorData::internal_error(format!("the state of the call cannot be kept: {error}"), None);
        hall.sealer.seal_json_with(used, &options).map_err(fault)
    }
}

/// What the state of an unfinished call is bound to: nobody else can send it back, nor with another
/// tool or other arguments.
fn binding(who: &Principal, tool: &str, args: Option<&Args>) -> Vec<u8> {
    let digest = Digest::of(&Value::Object(args.cloned().unwrap_or_default())).hex();
    [who.id.as_str(), tool, digest.as_str()].join("\n").into_bytes()
}

async fn pass_on(peer: &Peer<RoleServer>, token: Option<&ProgressToken>, said: Said) {
    let sent = match said {
        Said::Progress { progress, total, message } => {
            let Some(token) = token else { return };
            let mut report = ProgressNotificationParam::new(token.clone(), progress);
            report.total = total;
            report.message = message;
            peer.notify_progress(report).await
        }
        Said::Log { level, data } => {
            let message = LoggingMessageNotificationParam::new(translate::to_level(level), data);
            peer.notify_logging_message(message).await
        }
        // A question that comes with the answer has nobody left to hear its reply.
        Said::Ask { .. } => return,
    };
    if let Err(error) = sent {
        tracing::debug!(%error, "a message to a client was lost");
    }
}

/// Asks over the connection, one question after the other, and hands the answers to the device.
async fn put(
    peer: &Peer<RoleServer>,
    questions: BTreeMap<String, Question>,
    reply: oneshot::Sender<Result<BTreeMap<String, Answer>, ToolError>>,
) {
    let mut answers = BTreeMap::new();
    for (key, question) in &questions {
        match put_one(peer, key, question).await {
            Ok(answer) => answers.insert(key.clone(), answer),
            Err(error) => return drop(reply.send(Err(error))),
        };
    }
    drop(reply.send(Ok(answers)));
}

async fn put_one(peer: &Peer<RoleServer>, key: &str, question: &Question) -> Result<Answer, ToolError> {
    let (method, params) = ask::request(key, question);
    let request = ServerRequest::CustomRequest(CustomRequest::new(method, Some(params)));
    let answer = peer.send_request(request).await.map_err(|error| match error {
        ServiceError::McpError(error) => {
            ToolError::new(ErrorKind::InputRequired, format!("the client refused `{method}`: {}", error.message))
        }
        error => ToolError::new(ErrorKind::Cancelled, format!("the client did not answer `{method}`: {error}")),
    })?;
    let answer = serde_json::to_value(answer).unwrap_or_default();
    if ask::fits(question, &answer) {
        return Ok(answer);
    }
    Err(ToolError::new(
        ErrorKind::InputRequired,
        format!("the client's answer to `{method}` has not the form MCP gives it"),
    ))
}
