//! Devices that do as they are told, and shortcuts to a gateway.

use std::future::{pending, ready};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sinew_gateway::{DeviceFilter, DeviceView, Gateway, Principal, Request, Role, Settings, Shape};
use sinew_tool::{
    Admission, Args, BoxFuture, Call, Device, DeviceEvent, DeviceInfo, DeviceKey, ErrorKind, Family, FamilyName,
    LeaveReason, Notice, Outcome, PlannedCall, Reach, ShownScreen, Status, StepSource, TextTrust, Tool, ToolError,
    Toolset, TraceParent, Value, json,
};
use tokio::sync::{Notify, Semaphore};

/// What a fake device does when it is called.
pub enum Manner {
    /// Answers with its id and what came.
    Echo,
    Answer(Result<Outcome, ToolError>),
    /// Waits until it is told to go on.
    Wait(Arc<Notify>),
    /// Serves one call per permit; the others wait in line.
    Queue(Arc<Semaphore>),
    Never,
    /// It is busy with other calls and never begins.
    Busy,
    /// Says `Busy` when the budget is spent.
    SpendBudget,
    Panic,
    /// Makes the calls of its `steps` one after another, after asking about them together; answers other calls as
    /// `Echo` does. A step without a device is for itself.
    Steps,
}

pub struct Fake {
    info: Mutex<Arc<DeviceInfo>>,
    tools: Mutex<Arc<Toolset>>,
    pub manner: Manner,
    /// Calls that reached the device.
    pub calls: AtomicUsize,
    /// Calls whose turn came.
    pub served: AtomicUsize,
    /// The last arguments that reached it.
    pub args: Mutex<Option<Args>>,
    /// The trace of the last call that reached it.
    pub trace: Mutex<Option<TraceParent>>,
}

impl Fake {
    pub fn new(number: usize, tools: impl IntoIterator<Item = Tool>) -> Fake {
        let mac = format!("aa:bb:cc:dd:{:02x}:{:02x}", number / 256, number % 256);
        let info = DeviceInfo {
            key: DeviceKey(format!("board:{mac}")),
            suggested_id: format!("board-{number:04}"),
            family: Family::new(FamilyName::of("board"), TextTrust::Attributed, Reach::OneLink),
            admission: Admission::OwnToken,
            name: "bench".to_owned(),
            version: "1.2.3".to_owned(),
            status: Status::Ready,
            instructions: None,
            labels: Vec::new(),
            attributes: [("hardware_id", json!(mac))]
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        };
        Fake {
            info: Mutex::new(Arc::new(info)),
            tools: Mutex::new(Arc::new(Toolset::new(tools))),
            manner: Manner::Echo,
            calls: AtomicUsize::new(0),
            served: AtomicUsize::new(0),
            args: Mutex::new(None),
            trace: Mutex::new(None),
        }
    }

    pub fn board(number: usize) -> Fake {
        Fake::new(number, board_tools())
    }

    pub fn with_manner(mut self, manner: Manner) -> Fake {
        self.manner = manner;
        self
    }

    pub fn with_info(self, change: impl FnOnce(&mut DeviceInfo)) -> Fake {
        self.set_info(change);
        self
    }

    pub fn set_info(&self, change: impl FnOnce(&mut DeviceInfo)) {
        let mut info = self.info.lock().unwrap();
        change(Arc::make_mut(&mut info));
    }

    pub fn set_tools(&self, tools: impl IntoIterator<Item = Tool>) {
        *self.tools.lock().unwrap() = Arc::new(Toolset::new(tools));
    }

    pub fn count(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Device for Fake {
    fn info(&self) -> Arc<DeviceInfo> {
        self.info.lock().unwrap().clone()
    }

    fn tools(&self) -> Arc<Toolset> {
        self.tools.lock().unwrap().clone()
    }

    fn screen<'a>(&'a self, _args: &'a Args) -> BoxFuture<'a, Option<ShownScreen>> {
        let landmarks = vec![json!({"text": "always"}), json!({"text": format!("{} calls", self.count())})];
        let text = format!("{} calls so far", self.count());
        let lasting_args = Some(Args::from_iter([("lasting".to_owned(), json!(true))]));
        Box::pin(ready(Some(ShownScreen { text, landmarks, lasting_args })))
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            *self.args.lock().unwrap() = Some(call.args.clone());
            *self.trace.lock().unwrap() = call.nested.origin().and_then(|origin| origin.trace);
            match &self.manner {
                Manner::Steps if call.args.contains_key("steps") => make_steps(&call).await,
                Manner::Echo | Manner::Steps => {
                    let device = self.info().suggested_id.clone();
                    Ok(Outcome::json(json!({"device": device, "tool": call.tool, "args": call.args})))
                }
                Manner::Answer(answer) => answer.clone(),
                Manner::Wait(go) => {
                    go.notified().await;
                    Ok(Outcome::text("done"))
                }
                Manner::Queue(turns) => {
                    turns.acquire().await.unwrap().forget();
                    self.served.fetch_add(1, Ordering::SeqCst);
                    Ok(Outcome::text("done"))
                }
                Manner::Never => pending().await,
                Manner::Busy => {
                    call.caller.turn_awaited();
                    pending().await
                }
                Manner::SpendBudget => {
                    tokio::time::sleep(call.budget).await;
                    Err(ToolError::new(ErrorKind::Busy, "it was not sent"))
                }
                Manner::Panic => panic!("this device's driver has a fault"),
            }
        })
    }
}

async fn make_steps(call: &Call) -> Result<Outcome, ToolError> {
    let steps: Vec<PlannedCall> = call.args["steps"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|step| PlannedCall {
            device: Some(step["device"].as_str().unwrap_or(call.nested.device()).to_owned()),
            tool: step["call"].as_str().unwrap_or_default().to_owned(),
            args: args(step["arguments"].clone()),
        })
        .collect();
    call.nested.agree(&steps).await?;
    for step in steps {
        call.nested.call(step.device.as_deref(), &step.tool, step.args).await?;
    }
    Ok(Outcome::text("done"))
}

/// A tool that makes the calls in its argument.
pub fn run_steps() -> Tool {
    let schema = json!({"type": "object", "properties": {"steps": {"type": "array"}}});
    let mut tool = Tool::new("run_steps", "", schema).with_effect(sinew_tool::Effect::Read);
    tool.steps = StepSource::Argument("steps".to_owned());
    tool
}

pub fn set_volume() -> Tool {
    Tool::new(
        "self.audio_speaker.set_volume",
        "Set the volume of the audio speaker.",
        json!({
            "type": "object",
            "properties": {"volume": {"type": "integer", "minimum": 0, "maximum": 100}},
            "required": ["volume"],
        }),
    )
}

pub fn plain(name: &str) -> Tool {
    Tool::new(name, "", json!({"type": "object"}))
}

/// Four tools, as real firmware has them.
pub fn board_tools() -> Vec<Tool> {
    let status = "Provides the real-time information of the device, including the current status of the audio speaker, screen, battery, network, etc.\nUse this tool for: \n1. Answering questions about current condition (e.g. what is the current volume of the audio speaker?)\n2. As the first step to control the device (e.g. turn up / down the volume of the audio speaker, etc.)";
    vec![
        Tool::new("self.get_device_status", status, json!({"type": "object", "properties": {}})),
        set_volume(),
        Tool::new(
            "self.screen.set_brightness",
            "Set the brightness of the screen.",
            json!({
                "type": "object",
                "properties": {"brightness": {"type": "integer", "minimum": 0, "maximum": 100}},
                "required": ["brightness"],
            }),
        ),
        Tool::new(
            "self.screen.set_theme",
            "Set the theme of the screen. The theme can be `light` or `dark`.",
            json!({"type": "object", "properties": {"theme": {"type": "string"}}, "required": ["theme"]}),
        ),
    ]
}

/// The key of the board with this hardware id.
pub fn key(hardware_id: &str) -> DeviceKey {
    DeviceKey(format!("board:{hardware_id}"))
}

pub fn gateway() -> Gateway {
    Gateway::open(Settings::default()).unwrap()
}

pub fn gateway_in(dir: &Path) -> Gateway {
    Gateway::open(Settings { state_dir: Some(dir.to_owned()), ..Settings::default() }).unwrap()
}

/// The device as the registry knows it; keep the `Arc` to speak of the same stay.
pub fn stay(fake: &Arc<Fake>) -> Arc<dyn Device> {
    fake.clone()
}

pub fn join(gateway: &Gateway, fake: Fake) -> Arc<Fake> {
    let fake = Arc::new(fake);
    gateway.apply(DeviceEvent::Joined(stay(&fake)));
    fake
}

pub fn leave(gateway: &Gateway, fake: &Arc<Fake>) {
    gateway.apply(DeviceEvent::Left(stay(fake), LeaveReason::Closed));
}

pub fn say(gateway: &Gateway, fake: &Arc<Fake>, topic: &str, body: Value) {
    gateway.apply(DeviceEvent::Said(stay(fake), Notice { topic: topic.to_owned(), body }));
}

pub fn client() -> Principal {
    Principal::new("tester", Role::Client)
}

pub fn admin() -> Principal {
    Principal::new("person", Role::Admin)
}

pub fn args(value: Value) -> Args {
    value.as_object().cloned().unwrap_or_default()
}

pub fn request(name: &str, arguments: Value) -> Request {
    Request::new(client(), name, args(arguments), "test")
}

pub async fn call(gateway: &Gateway, name: &str, arguments: Value) -> Result<Value, ToolError> {
    gateway.call(request(name, arguments)).await.map(|outcome| outcome.structured.unwrap_or_default())
}

pub async fn call_kind(gateway: &Gateway, name: &str, arguments: Value) -> ErrorKind {
    call(gateway, name, arguments).await.unwrap_err().kind
}

/// All devices that somebody sees.
pub async fn seen_devices(gateway: &Gateway, who: &Principal) -> Vec<DeviceView> {
    gateway.seen_by(who).devices(DeviceFilter::default(), None, 1_000).await.unwrap().items
}

/// The names of a list.
pub fn names(gateway: &Gateway, who: &Principal, shape: Shape) -> Vec<String> {
    gateway.list(who, shape).tools.iter().map(|tool| tool.name.clone()).collect()
}

/// The names of the devices' own tools in the folded list.
pub fn device_tools(gateway: &Gateway) -> Vec<String> {
    let names = names(gateway, &client(), Shape::Folded);
    let built_in = ["list_devices", "get_device_events", "reserve_device", "release_device"];
    names.into_iter().filter(|name| !built_in.contains(&name.as_str())).collect()
}

pub async fn outcomes(gateway: &Gateway) -> Vec<String> {
    let mut records = gateway.audit(1_000).await.unwrap();
    records.reverse();
    records.into_iter().map(|record| record.outcome).collect()
}

/// Waits until the store has written everything that was handed to it before.
pub async fn settled(gateway: &Gateway) {
    gateway.audit(0).await.unwrap();
}

pub const SECOND: Duration = Duration::from_secs(1);
