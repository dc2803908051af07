//! A fake device, and a gateway with it behind a running server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sinew_front::{Front, FrontSettings, TlsIdentity};
use sinew_gateway::Gateway;
use sinew_signin::{OAuthSettings, SignIn};
use sinew_tool::{
    Admission, BoxFuture, Call, Content, Device, DeviceEvent, DeviceInfo, DeviceKey, ErrorKind, Family, FamilyName,
    LogLevel, Notice, Outcome, Question, Reach, Status, TextTrust, Tool, ToolError, Toolset, Version,
};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::client::Client;

/// One grey pixel, without its size beside it.
pub const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

pub struct FakeDevice {
    info: Arc<DeviceInfo>,
    tools: Arc<Toolset>,
    /// Gets `started` when the tool `wait` begins and `dropped` when its call is dropped.
    signals: mpsc::UnboundedSender<&'static str>,
    go_on: Arc<tokio::sync::Semaphore>,
}

pub fn tools() -> Vec<Tool> {
    let empty = json!({"type": "object", "properties": {}, "required": []});
    let plain = |name: &str| Tool::new(name, format!("The tool {name}"), empty.clone());
    vec![
        Tool::new(
            "echo",
            "Repeats the text",
            json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}),
        ),
        Tool::new(
            "fail",
            "Fails with the given type",
            json!({"type": "object", "properties": {"type": {"type": "string"}}}),
        ),
        plain("fail_declared").with_output_schema(json!({"type": "object", "required": ["n"]})),
        plain("measure").with_output_schema(json!({"type": "object"})).with_version(Version::new(2, 1, 0)),
        plain("picture"),
        plain("talk"),
        plain("ask_name"),
        plain("ask_model"),
        plain("wait"),
        plain("slow_steps"),
    ]
}

impl FakeDevice {
    fn new(key: &str, tools: Vec<Tool>, signals: mpsc::UnboundedSender<&'static str>) -> Arc<FakeDevice> {
        let info = DeviceInfo {
            key: DeviceKey(format!("board:{key}")),
            suggested_id: key.to_owned(),
            family: Family::new(FamilyName::of("board"), TextTrust::Attributed, Reach::OneLink),
            admission: Admission::OwnToken,
            name: "fake".to_owned(),
            version: "1.0".to_owned(),
            status: Status::Ready,
            instructions: None,
            labels: Vec::new(),
            attributes: Default::default(),
        };
        let go_on = Arc::new(tokio::sync::Semaphore::new(0));
        Arc::new(FakeDevice { info: Arc::new(info), tools: Arc::new(Toolset::new(tools)), signals, go_on })
    }
}

impl Device for FakeDevice {
    fn info(&self) -> Arc<DeviceInfo> {
        self.info.clone()
    }

    fn tools(&self) -> Arc<Toolset> {
        self.tools.clone()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            match call.tool.as_str() {
                "echo" => Ok(Outcome::text(call.args["text"].as_str().unwrap_or_default())),
                "fail" => {
                    let word = call.args.get("type").and_then(Value::as_str).unwrap_or_default();
                    let kind = ErrorKind::from_error_type(word).unwrap_or(ErrorKind::ActionFailed);
                    Err(ToolError::new(kind, "it went wrong").with_details(json!({"type": word})))
                }
                "fail_declared" => Err(ToolError::new(ErrorKind::ActionFailed, "no number")),
                "measure" => Ok(Outcome::json(json!({"n": 21.5}))),
                "picture" => Ok(Outcome::default().with(Content::Image {
                    data: PIXEL.to_owned(),
                    mime_type: "image/png".to_owned(),
                    size: None,
                })),
                "trace" => {
                    let trace = call.nested.origin().and_then(|origin| origin.trace);
                    Ok(Outcome::text(trace.map_or_else(|| "none".to_owned(), String::from)))
                }
                "talk" => {
                    call.caller.log(LogLevel::Debug, json!("too quiet"));
                    call.caller.log(LogLevel::Warning, json!("warm"));
                    for done in [1.0, 2.0, 2.0, 3.0] {
                        call.caller.progress(done, Some(3.0), Some("working"));
                    }
                    Ok(Outcome::text("talked"))
                }
                "slow_steps" => {
                    for step in 0..3 {
                        tokio::time::sleep(Duration::from_secs(10)).await;
                        call.caller.progress(f64::from(step), Some(3.0), Some(&format!("step {step}")));
                    }
                    Ok(Outcome::text("done"))
                }
                "ask_name" => ask_name(&call).await,
                "ask_model" => {
                    let message = json!({"role": "user", "content": {"type": "text", "text": "hello"}});
                    let params = json!({"messages": [message], "maxTokens": 5});
                    let question = BTreeMap::from([("model".to_owned(), Question::Completion { params })]);
                    let answers = call.caller.ask(question).await?;
                    Ok(Outcome::text(answers["model"]["content"]["text"].as_str().unwrap_or_default()))
                }
                "wait" => {
                    let on_drop = DropSignal(self.signals.clone());
                    let _ = self.signals.send("started");
                    if let Ok(permit) = self.go_on.acquire().await {
                        permit.forget();
                    }
                    std::mem::forget(on_drop);
                    Ok(Outcome::text("waited"))
                }
                other => Err(ToolError::new(ErrorKind::UnknownTool, format!("no tool {other}"))),
            }
        })
    }
}

/// Two rounds: a name, then a colour.
async fn ask_name(call: &Call) -> Result<Outcome, ToolError> {
    let form = |field: &str| Question::Form {
        message: format!("Your {field}?"),
        schema: json!({"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}),
    };
    let name = call.caller.ask(BTreeMap::from([("who".to_owned(), form("name"))])).await?;
    let colour = call.caller.ask(BTreeMap::from([("what".to_owned(), form("colour"))])).await?;
    let (name, colour) = (&name["who"]["content"]["name"], &colour["what"]["content"]["colour"]);
    Ok(Outcome::text(format!("{} likes {}", name.as_str().unwrap_or("?"), colour.as_str().unwrap_or("?"))))
}

struct DropSignal(mpsc::UnboundedSender<&'static str>);

impl Drop for DropSignal {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

/// A running server with one device `lamp`.
pub struct TestServer {
    pub gateway: Gateway,
    pub address: SocketAddr,
    pub token: String,
    pub shutdown: CancellationToken,
    pub signals: Mutex<mpsc::UnboundedReceiver<&'static str>>,
    signal: mpsc::UnboundedSender<&'static str>,
    lamp: Arc<FakeDevice>,
    task: Mutex<Option<JoinHandle<std::io::Result<()>>>>,
}

fn gateway(state: Option<&Path>) -> Gateway {
    let state_dir = state.map(Path::to_owned);
    Gateway::open(sinew_gateway::Settings { state_dir, ..sinew_gateway::Settings::default() }).unwrap()
}

impl TestServer {
    pub async fn new() -> TestServer {
        TestServer::with(FrontSettings::default(), None).await
    }

    pub async fn with(settings: FrontSettings, tls: Option<TlsIdentity>) -> TestServer {
        TestServer::open(gateway(None), settings, tls, None).await
    }

    /// A server with the gateway of a state directory, as before if there was one.
    pub async fn in_state(state: &Path) -> TestServer {
        TestServer::open(gateway(Some(state)), FrontSettings::default(), None, None).await
    }

    /// A server at which clients sign in.
    pub async fn with_sign_in(oauth: OAuthSettings) -> TestServer {
        TestServer::open(gateway(None), FrontSettings::default(), None, Some(oauth)).await
    }

    async fn open(
        gateway: Gateway,
        settings: FrontSettings,
        tls: Option<TlsIdentity>,
        oauth: Option<OAuthSettings>,
    ) -> TestServer {
        let (signal, signals) = mpsc::unbounded_channel();
        let lamp = FakeDevice::new("lamp", tools(), signal.clone());
        gateway.apply(DeviceEvent::Joined(lamp.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let url = format!("http://{address}");
        let sign_in = oauth.map(|oauth| Arc::new(SignIn::open(&oauth, &url, None, gateway.clone()).unwrap()));
        let front = Front { sign_in, ..Front::new(gateway.clone(), settings) };
        let task = tokio::spawn(sinew_front::http::run(listener, front, tls, shutdown.clone()));
        let token = gateway.tokens().own();
        let (signals, task) = (Mutex::new(signals), Mutex::new(Some(task)));
        TestServer { gateway, address, token, shutdown, signals, signal, lamp, task }
    }

    pub fn client(&self) -> Client {
        Client::new(self.address, &self.token)
    }

    /// A second device with these tools.
    pub fn join(&self, key: &str, tools: Vec<Tool>) -> Arc<FakeDevice> {
        let device = FakeDevice::new(key, tools, self.signal.clone());
        self.gateway.apply(DeviceEvent::Joined(device.clone()));
        device
    }

    pub fn lamp_sends(&self, topic: &str) {
        let notice = Notice { topic: topic.to_owned(), body: json!({}) };
        self.gateway.apply(DeviceEvent::Said(self.lamp.clone(), notice));
    }

    /// Lets one call of `wait` end.
    pub fn go_on(&self) {
        self.lamp.go_on.add_permits(1);
    }

    pub async fn signal(&self) -> &'static str {
        self.signals.lock().await.recv().await.unwrap()
    }

    pub async fn stop(&self) {
        self.shutdown.cancel();
        let task = self.task.lock().await.take();
        task.unwrap().await.unwrap().unwrap();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
