//! A device of another node, and the calls to it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sinew_presence::{CallAnswer, DeviceHash, Forward, NextHop, NodeId, Owner, Route};
use sinew_tool::wire_form::CallForm;
use sinew_tool::{BoxFuture, Call, CallOrigin, Device, DeviceInfo, ErrorKind, Outcome, ToolError, Toolset};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::core::{Core, lock};
use crate::messages::{FenceForm, ForwardedCall, MessageBody, NodeMessage};
use crate::serve::DOOR;

/// How long a device that no node holds, or whose node is gone, may take to connect to another node. Calls wait so long: a
/// board whose node stops dials again within a second or two.
pub(crate) const RETURN_TIME: Duration = Duration::from_secs(5);

/// How often a node is asked whether a call that it took still runs.
const CHECK_EVERY: Duration = Duration::from_secs(5);

/// Shows a device of another node as a device of this one.
pub(crate) struct RemoteDevice {
    core: Weak<Core>,
    hash: DeviceHash,
    state: Mutex<(Arc<DeviceInfo>, Arc<Toolset>)>,
}

impl RemoteDevice {
    pub(crate) fn new(core: Weak<Core>, hash: DeviceHash, info: DeviceInfo, tools: Arc<Toolset>) -> RemoteDevice {
        RemoteDevice { core, hash, state: Mutex::new((Arc::new(info), tools)) }
    }

    pub(crate) fn set(&self, info: DeviceInfo, tools: Arc<Toolset>) {
        *lock(&self.state) = (Arc::new(info), tools);
    }
}

impl Device for RemoteDevice {
    fn info(&self) -> Arc<DeviceInfo> {
        lock(&self.state).0.clone()
    }

    fn tools(&self) -> Arc<Toolset> {
        lock(&self.state).1.clone()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let core = self.core.upgrade().ok_or_else(|| away("this gateway is stopping"))?;
            let mut origin = call.nested.origin().ok_or_else(|| away("the call did not come through a gateway"))?;
            // A lease of another device says nothing there.
            let key = self.info().key.clone();
            origin.lease = origin.lease.filter(|lease| core.gateway.is_far_lease(&origin.id, lease, &key));
            // A call travels once: the node that it came to must have the device.
            if origin.door == DOOR {
                return Err(away("it moved to another node meanwhile; try again"));
            }
            // They are never whole in memory, and so in no message.
            if call.caller.attachment().is_some() {
                let node = core
                    .node_of(self.hash)
                    .map_or_else(|| "that has the device".to_owned(), |node| format!("`{node}`"));
                let message = format!(
                    "files cannot be sent to a device at another node of the cluster; nothing was sent. Make the call at \
                     the node {node}"
                );
                return Err(ToolError::new(ErrorKind::Unsupported, message));
            }
            forward(&core, self.hash, &self.tools(), call, origin).await
        })
    }
}

/// Sends a call to where its device is, and once more where it was not run there.
async fn forward(
    core: &Arc<Core>,
    hash: DeviceHash,
    tools: &Toolset,
    call: Call,
    origin: CallOrigin,
) -> Result<Outcome, ToolError> {
    let (mut forward, mut routes) = (Forward::default(), core.routes.subscribe());
    let ends = Instant::now() + call.budget;
    // Where it was not run.
    let mut left = None;
    loop {
        let until = ends.min(Instant::now() + RETURN_TIME);
        let (run, fence) = loop {
            routes.mark_unchanged();
            match core.route(hash) {
                (Route::At(run, fence), _) if left != Some((run.clone(), fence)) => break (run, fence),
                // It came here meanwhile, as it was.
                (Route::Here, Some(device)) if device.tools().digest() == tools.digest() => {
                    return device.call(call).await;
                }
                (Route::Here, _) => return Err(away("it came to this gateway with other tools; try again")),
                _ => {}
            }
            if tokio::time::timeout_at(until, routes.changed()).await.is_err() {
                return Err(away("no node holds it now; try again when list_devices shows it as ready"));
            }
        };
        if !core.nats.connected().borrow().is_now {
            return Err(away("this gateway cannot reach the cluster's NATS"));
        }
        let mut form = CallForm::of(&call);
        form.budget = ends.saturating_duration_since(Instant::now());
        let forwarded = ForwardedCall {
            device: hash.to_string(),
            fence: FenceForm::of(fence),
            form,
            origin: origin.clone(),
            is_patient: call.caller.is_patient(),
            repeats_calls: call.caller.repeats_calls(),
            is_urgent: call.caller.is_urgent(),
        };
        let (answer, result) = exchange(core, &run, forwarded, &call).await?;
        match forward.handle_answer(answer) {
            NextHop::Done => return result.unwrap_or_else(|| Err(lost(&run.node))),
            NextHop::MayHaveHappened => return Err(lost(&run.node)),
            NextHop::GiveUp => return Err(away("it moves between nodes; try again")),
            NextHop::RouteAgain => left = Some((run, fence)),
        }
    }
}

/// Sends a call to a node and waits for what comes back. An error is a call that could not be sent.
async fn exchange(
    core: &Arc<Core>,
    run: &Owner,
    forwarded: ForwardedCall,
    call: &Call,
) -> Result<(CallAnswer, Option<Result<Outcome, ToolError>>), ToolError> {
    let mut open = core.open.begin(core, run);
    let nobody = core.settings.name.nobody(&core.me.node, &open.id);
    let message = NodeMessage { call: open.id.clone(), body: MessageBody::Call(Box::new(forwarded)) };
    core.send(run, &message, Some(&nobody)).await.map_err(|why| {
        let message = format!("the call could not be sent to the node {}: {why}", run.node);
        ToolError::new(ErrorKind::TooLarge, message)
    })?;
    drop(message);
    let mut asked = FuturesUnordered::new();
    let mut checks = tokio::time::interval_at(Instant::now() + CHECK_EVERY, CHECK_EVERY);
    // Its node was asked about it, or said something of it.
    let (mut is_checked, mut was_taken) = (false, false);
    loop {
        let heard = tokio::select! {
            heard = open.heard.recv() => heard,
            Some((question, answers)) = asked.next() => {
                let message = NodeMessage { call: open.id.clone(), body: MessageBody::Answers { question, answers } };
                if let Err(why) = core.send(run, &message, None).await {
                    tracing::debug!(node = %run.node, "an answer was not sent: {why}");
                }
                continue;
            }
            _ = checks.tick() => {
                is_checked = true;
                let check = NodeMessage { call: open.id.clone(), body: MessageBody::Check };
                let _ = core.send(run, &check, Some(&nobody)).await;
                continue;
            }
        };
        let body = match heard {
            Some(Heard::Body(body)) => body,
            // Of the call, or of a check after it: then the call may have been taken.
            Some(Heard::Nobody) => {
                open.is_over = true;
                return Ok((if is_checked { CallAnswer::Lost } else { CallAnswer::NoResponder }, None));
            }
            Some(Heard::Stopped { answered_all_for }) => {
                open.is_over = true;
                let age = open.begun.elapsed();
                let is_unread =
                    !was_taken && age < answered_all_for && age < core.nats.connected().borrow().whole_for();
                return Ok((if is_unread { CallAnswer::Refused } else { CallAnswer::Lost }, None));
            }
            None => return Ok((CallAnswer::Lost, None)),
        };
        was_taken = true;
        match body {
            MessageBody::Progress { progress, total, message } => {
                call.caller.progress(progress, total, message.as_deref());
            }
            MessageBody::Log { level, data } => call.caller.log(level, data),
            MessageBody::TurnAwaited => call.caller.turn_awaited(),
            MessageBody::TurnCame => call.caller.turn_came(),
            MessageBody::Ask { question, questions } => {
                let caller = call.caller.clone();
                asked.push(async move { (question, caller.ask(questions).await) });
            }
            MessageBody::Refused => {
                open.is_over = true;
                return Ok((CallAnswer::Refused, None));
            }
            MessageBody::Unknown => {
                open.is_over = true;
                return Ok((CallAnswer::Lost, None));
            }
            MessageBody::End(result) => {
                open.is_over = true;
                return Ok((CallAnswer::Ended, Some(result)));
            }
            // Nobody answers a call with these.
            MessageBody::Call(_)
            | MessageBody::Cancel
            | MessageBody::Answers { .. }
            | MessageBody::Evict { .. }
            | MessageBody::Lease(_)
            | MessageBody::LeaseDone(_)
            | MessageBody::Check
            | MessageBody::Stopped { .. } => {}
        }
    }
}

pub(crate) fn away(why: &str) -> ToolError {
    ToolError::new(
        ErrorKind::DeviceAway,
        format!("the device is at another node of the cluster: {why}; nothing was sent"),
    )
}

fn lost(node: &NodeId) -> ToolError {
    let message = format!(
        "the node {node} took the call and is gone; the call may still have had its effect, so check the device before you \
         retry"
    );
    ToolError::new(ErrorKind::DeviceLost, message)
}

/// Calls to other nodes that are not answered.
#[derive(Default)]
pub(crate) struct OpenCalls {
    open: Mutex<HashMap<String, (Owner, mpsc::UnboundedSender<Heard>)>>,
    next: std::sync::atomic::AtomicU64,
}

pub(crate) enum Heard {
    Body(MessageBody),
    Nobody,
    /// The run stopped; whatever began within this time and has no answer was not read.
    Stopped {
        answered_all_for: Duration,
    },
}

/// One of them. Dropping it before it is over cancels the call.
pub(crate) struct OpenCall {
    core: Arc<Core>,
    run: Owner,
    begun: Instant,
    pub(crate) id: String,
    pub(crate) heard: mpsc::UnboundedReceiver<Heard>,
    pub(crate) is_over: bool,
}

impl OpenCalls {
    pub(crate) fn begin(&self, core: &Arc<Core>, run: &Owner) -> OpenCall {
        let number = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let id = format!("{:016x}-{number:x}", core.me.boot.0);
        let (sender, heard) = mpsc::unbounded_channel();
        lock(&self.open).insert(id.clone(), (run.clone(), sender));
        OpenCall { core: core.clone(), run: run.clone(), begun: Instant::now(), id, heard, is_over: false }
    }

    /// Something about a call from the run that it was sent to. What is about no open call is late, or not ours.
    pub(crate) fn hear(&self, from: &Owner, call: &str, body: MessageBody) {
        if let Some((run, sender)) = lock(&self.open).get(call)
            && run == from
        {
            let _ = sender.send(Heard::Body(body));
        }
    }

    /// The server says that nobody got the call.
    pub(crate) fn hear_nobody(&self, call: &str) {
        if let Some((_, sender)) = lock(&self.open).get(call) {
            let _ = sender.send(Heard::Nobody);
        }
    }

    /// A run says its last.
    pub(crate) fn hear_stopped(&self, from: &Owner, answered_all_for: Duration) {
        for (_, sender) in lock(&self.open).values().filter(|(run, _)| run == from) {
            let _ = sender.send(Heard::Stopped { answered_all_for });
        }
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.open).len()
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        lock(&self.core.open.open).remove(&self.id);
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && !self.is_over
        {
            let (core, run, call) = (self.core.clone(), self.run.clone(), std::mem::take(&mut self.id));
            runtime.spawn(async move {
                let _ = core.send(&run, &NodeMessage { call, body: MessageBody::Cancel }, None).await;
            });
        }
    }
}
