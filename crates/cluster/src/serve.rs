//! Calls that come from other nodes, for devices of this one.
//!
//! A run of a node answers every call that it takes, and then says that it stopped: what it did not answer, it did not
//! read, and the caller sends that elsewhere.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sinew_gateway::{Principal, Request, Role, Shape};
use sinew_policy::CallerKind;
use sinew_presence::Owner;
use sinew_tool::{Answer, BoxFuture, CallOrigin, Caller, ErrorKind, LogLevel, Question, ToolError, Value};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::core::{Core, lock};
use crate::messages::{ForwardedCall, MessageBody, NodeMessage};
use crate::records::parse_hash;

/// The endpoint's name in the audit of the node that runs a call.
pub(crate) const DOOR: &str = "cluster";
/// Calls from other nodes at once; further ones are refused as busy.
const MAX_CALLS: usize = 10_000;
/// Reports of a call that wait to be sent. Where NATS is slower than the device, progress and log messages are left out.
const WAITING_REPORTS: usize = 256;
/// The last places are kept for questions and turns, which must arrive.
const KEPT_PLACES: usize = 32;

/// Calls from other nodes that are under way, by node and id.
#[derive(Default)]
pub(crate) struct ServedCalls {
    open: Mutex<HashMap<(Owner, String), ServedCall>>,
    is_empty: Notify,
    /// The node stops, and waits no longer for them.
    cut_off: CancellationToken,
    /// The store has the last record of this node.
    pub(crate) farewell: Notify,
}

struct ServedCall {
    end: CancellationToken,
    caller: Arc<FarCaller>,
}

impl ServedCalls {
    pub(crate) fn len(&self) -> usize {
        lock(&self.open).len()
    }

    /// Waits until none is under way.
    pub(crate) async fn ended(&self) {
        loop {
            let notified = self.is_empty.notified();
            if self.len() == 0 {
                return;
            }
            notified.await;
        }
    }

    /// Ends those that still run.
    pub(crate) fn cut_off(&self) {
        self.cut_off.cancel();
    }

    pub(crate) fn has(&self, from: &Owner, call: &str) -> bool {
        lock(&self.open).contains_key(&(from.clone(), call.to_owned()))
    }

    /// The caller gave a call up.
    pub(crate) fn cancel(&self, from: &Owner, call: String) {
        if let Some(served) = lock(&self.open).get(&(from.clone(), call)) {
            served.end.cancel();
        }
    }

    /// The answers to a question of a device.
    pub(crate) fn answer(&self, from: &Owner, call: String, question: u64, answers: Answers) {
        let caller = lock(&self.open).get(&(from.clone(), call)).map(|served| served.caller.clone());
        if let Some(asked) = caller.and_then(|caller| lock(&caller.asked).remove(&question)) {
            let _ = asked.send(answers);
        }
    }

    /// `None` where the call runs already, or too many do.
    fn begin(&self, key: (Owner, String), served: ServedCall) -> Option<()> {
        let mut open = lock(&self.open);
        if open.len() >= MAX_CALLS || open.contains_key(&key) {
            return None;
        }
        open.insert(key, served);
        Some(())
    }

    fn end(&self, key: &(Owner, String)) {
        let mut open = lock(&self.open);
        open.remove(key);
        if open.is_empty() {
            self.is_empty.notify_waiters();
        }
    }
}

/// Takes a call, or refuses it before anything is done.
pub(crate) fn handle_call(core: &Arc<Core>, from: Owner, id: String, call: Box<ForwardedCall>) {
    let accepted = parse_hash(&call.device).zip(call.fence.fence()).filter(|(device, fence)| {
        !core.is_over() && core.with(|members, now| members.presence.accept(now, *device, *fence)).is_ok()
    });
    let key = accepted.and_then(|(device, _)| core.local_key(device));
    let Some(device) = key.and_then(|key| core.gateway.device_id(&key)) else {
        return answer(core, from, id, MessageBody::Refused);
    };
    let Some(who) = principal(&call.origin) else {
        let message = "another node sent a caller that this one does not know; nothing was sent to the device";
        return answer(core, from, id, MessageBody::End(Err(ToolError::new(ErrorKind::PermissionDenied, message))));
    };
    let (reports, mut reported) = mpsc::channel(WAITING_REPORTS);
    let ForwardedCall { form, origin, is_patient, repeats_calls, is_urgent, .. } = *call;
    let flags = CallerFlags { is_patient, repeats_calls, is_urgent };
    let caller = Arc::new(FarCaller { reports, flags, asked: Mutex::default(), next: AtomicU64::new(0) });
    let (end, key) = (CancellationToken::new(), (from.clone(), id.clone()));
    if core.served.begin(key.clone(), ServedCall { end: end.clone(), caller: caller.clone() }).is_none() {
        let message = "the node that has the device has too many calls of other nodes; nothing was sent, try again";
        return answer(core, from, id, MessageBody::End(Err(ToolError::new(ErrorKind::Busy, message))));
    }
    let request = Request {
        who,
        name: form.tool,
        args: form.args,
        shape: Shape::Folded,
        caller,
        budget: Some(form.budget),
        door: DOOR,
        is_confirmed: false,
        lease: origin.lease.as_deref().map(Arc::from),
        trace: origin.trace.clone(),
        is_plain: false,
    };
    let core = core.clone();
    tokio::spawn(async move {
        let _served = Ending { core: core.clone(), key };
        let running = core.gateway.call_forwarded(device.as_str(), request, &origin);
        tokio::pin!(running);
        let result = loop {
            tokio::select! {
                biased;
                () = end.cancelled() => return,
                () = core.served.cut_off.cancelled() => break Err(cut_off()),
                Some(report) = reported.recv() => send(&core, &from, &id, report).await,
                result = &mut running => break result,
            }
        };
        while let Ok(report) = reported.try_recv() {
            send(&core, &from, &id, report).await;
        }
        send(&core, &from, &id, MessageBody::End(result)).await;
    });
}

fn cut_off() -> ToolError {
    let message = "the node that has the device stopped before the call ended; the call may still have had its effect, so \
                   check the device before you retry";
    ToolError::new(ErrorKind::DeviceLost, message)
}

/// Ends a served call, also where its task panics.
struct Ending {
    core: Arc<Core>,
    key: (Owner, String),
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.core.served.end(&self.key);
    }
}

pub(crate) fn answer(core: &Arc<Core>, to: Owner, call: String, body: MessageBody) {
    let core = core.clone();
    tokio::spawn(async move { send(&core, &to, &call, body).await });
}

async fn send(core: &Core, to: &Owner, call: &str, body: MessageBody) {
    let mut message = NodeMessage { call: call.to_owned(), body };
    let Err(why) = core.send(to, &message, None).await else { return };
    tracing::warn!(node = %to.node, "an answer could not be sent: {why}");
    if let MessageBody::End(Ok(_)) = message.body {
        let text =
            format!("the answer could not be sent to the node {}: {why}; the call may have had its effect", to.node);
        message.body = MessageBody::End(Err(ToolError::new(ErrorKind::TooLarge, text)));
        let _ = core.send(to, &message, None).await;
    }
}

/// The caller, as the node that took the call knows it.
pub(crate) fn principal(origin: &CallOrigin) -> Option<Principal> {
    let role = if origin.is_admin { Role::Admin } else { Role::Client };
    let kind = CallerKind::parse(&origin.kind)?;
    // Whether its token is still valid is known where it came in.
    Some(Principal { id: origin.id.clone(), kind, revocable: false, ..Principal::new(origin.name.clone(), role) })
}

pub(crate) type Answers = Result<BTreeMap<String, Answer>, ToolError>;

#[derive(Clone, Copy)]
struct CallerFlags {
    is_patient: bool,
    repeats_calls: bool,
    is_urgent: bool,
}

/// A caller at another node.
struct FarCaller {
    reports: mpsc::Sender<MessageBody>,
    flags: CallerFlags,
    /// Questions without an answer.
    asked: Mutex<HashMap<u64, oneshot::Sender<Answers>>>,
    next: AtomicU64,
}

impl FarCaller {
    fn report(&self, report: MessageBody) {
        if self.reports.capacity() > KEPT_PLACES {
            let _ = self.reports.try_send(report);
        }
    }
}

impl Caller for FarCaller {
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.report(MessageBody::Progress { progress, total, message: message.map(str::to_owned) });
    }

    fn log(&self, level: LogLevel, data: Value) {
        self.report(MessageBody::Log { level, data });
    }

    fn ask(&self, questions: BTreeMap<String, Question>) -> BoxFuture<'_, Answers> {
        let question = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        lock(&self.asked).insert(question, sender);
        let asked = self.reports.send(MessageBody::Ask { question, questions });
        Box::pin(async move {
            if asked.await.is_err() {
                // Nobody hears it, so nobody answers either.
                lock(&self.asked).remove(&question);
            }
            receiver.await.unwrap_or_else(|_| {
                let message = "the caller is at another node, which is gone";
                Err(ToolError::new(ErrorKind::InputRequired, message))
            })
        })
    }

    fn turn_awaited(&self) {
        let _ = self.reports.try_send(MessageBody::TurnAwaited);
    }

    fn turn_came(&self) {
        let _ = self.reports.try_send(MessageBody::TurnCame);
    }

    fn is_patient(&self) -> bool {
        self.flags.is_patient
    }

    fn repeats_calls(&self) -> bool {
        self.flags.repeats_calls
    }

    fn is_urgent(&self) -> bool {
        self.flags.is_urgent
    }
}
