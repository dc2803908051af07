//! A server as the gateway sees it.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use arc_swap::ArcSwap;
use sinew_tool::{
    BoxFuture, Call, Device, DeviceInfo, Digest, ErrorKind, Family, FamilyName, Outcome, Reach, Status, TextTrust,
    Tool, ToolError, Toolset, json,
};
use tokio::sync::{Notify, Semaphore};

use crate::session::{Greeting, Session};
use crate::settings::{ServerPlace, ServerPlan};

pub(crate) struct ServerDevice {
    info: ArcSwap<DeviceInfo>,
    tools: ArcSwap<Toolset>,
    session: Arc<Session>,
    /// One for each request that the server can handle at the same time.
    pub(crate) turns: Semaphore,
    /// The server should be looked at now.
    pub(crate) look: Notify,
}

const FAMILY: Family =
    Family::new(FamilyName::of("server"), TextTrust::Attributed, Reach::SeveralGateways).pass_text_on();

impl ServerDevice {
    pub(crate) fn new(plan: &ServerPlan, session: Arc<Session>, greeting: &Greeting, tools: Toolset) -> ServerDevice {
        let mut info = info(plan);
        (info.name, info.version) = (greeting.name.clone(), greeting.version.clone());
        info.instructions = greeting.instructions.clone();
        info.attributes.insert("revision".to_owned(), json!(greeting.revision));
        let device = ServerDevice {
            info: ArcSwap::from_pointee(info),
            tools: ArcSwap::from_pointee(Toolset::default()),
            session,
            turns: Semaphore::new(plan.parallel),
            look: Notify::new(),
        };
        device.set_tools(tools);
        device
    }

    fn set_status(&self, status: Status) {
        let mut info = DeviceInfo::clone(&self.info.load());
        info.status = status;
        self.info.store(Arc::new(info));
    }

    pub(crate) fn set_tools(&self, tools: Toolset) {
        let status = match tools.is_empty() {
            false => Status::Ready,
            true => Status::Limited {
                state: "no tools".to_owned(),
                remedy: "the server answers but lists no tools; look at its log".to_owned(),
            },
        };
        self.tools.store(share(tools));
        self.set_status(status);
    }
}

/// The one copy of a toolset: boards are often many of a kind.
fn share(tools: Toolset) -> Arc<Toolset> {
    static KNOWN: LazyLock<Mutex<HashMap<Digest, Weak<Toolset>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(shared) = known.get(&tools.digest()).and_then(Weak::upgrade) {
        return shared;
    }
    known.retain(|_, tools| tools.strong_count() > 0);
    let tools = Arc::new(tools);
    known.insert(tools.digest(), Arc::downgrade(&tools));
    tools
}

/// What is known of a server before it is reached.
pub(crate) fn info(plan: &ServerPlan) -> DeviceInfo {
    let transport = match &plan.place {
        ServerPlace::Http { .. } => "MCP over HTTP",
        ServerPlace::Command(_) => "MCP over stdio",
    };
    let when_away = match &plan.place {
        ServerPlace::Http { .. } => "switch it on or start it; it is connected again by itself",
        ServerPlace::Command(_) => "see why the program ended (in the log); it is started again by itself",
    };
    let attributes =
        [("transport", transport.to_owned()), ("address", plan.place.describe()), ("when_away", when_away.to_owned())];
    DeviceInfo {
        key: plan.key.clone(),
        suggested_id: plan.suggested_id.clone(),
        family: FAMILY,
        admission: plan.admission.clone(),
        name: String::new(),
        version: String::new(),
        status: Status::Ready,
        instructions: None,
        labels: plan.labels.clone(),
        attributes: attributes.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect(),
    }
}

impl Device for ServerDevice {
    fn info(&self) -> Arc<DeviceInfo> {
        self.info.load_full()
    }

    fn tools(&self) -> Arc<Toolset> {
        self.tools.load_full()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let away = || {
                let message = format!("{} is not reached; nothing was sent", self.info.load().suggested_id);
                ToolError::new(ErrorKind::DeviceAway, message)
            };
            let _turn = match self.turns.try_acquire() {
                Ok(turn) => turn,
                Err(_) => {
                    call.caller.turn_awaited();
                    let turn = self.turns.acquire().await.map_err(|_| away())?;
                    call.caller.turn_came();
                    turn
                }
            };
            let tools = self.tools();
            let listed = tools.find(&call.tool).cloned();
            let tool = listed.unwrap_or_else(|| Tool::new(&call.tool, "", json!({})));
            let trace = call.nested.origin().and_then(|origin| origin.trace);
            let result = self.session.call(&tool, call.args, call.caller.as_ref(), trace.as_ref()).await;
            // The server may be gone, or have other tools now.
            if let Err(error) = &result
                && error.kind != ErrorKind::InputRequired
            {
                self.look.notify_one();
            }
            result
        })
    }
}
