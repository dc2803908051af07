//! Where examples are played: a virtual phone, alone or behind a gateway.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use sinew_gateway::{Gateway, Principal, Request, Role, Settings, Shape};
use sinew_phones::{PhoneDevice, Profile};
use sinew_sim::StraightCalls;
use sinew_sim::phone::{PhoneClock, PhoneSetup, VirtualPhone, shopping};
use sinew_tool::outcome::ResourceBody;
use sinew_tool::{Args, Content, Device, DeviceEvent, Outcome, Silent, Tool};

use sinew_phones::tools::row::Scene;

/// The longest answer that is shown whole.
const WHOLE: usize = 1_500;

pub fn phone() -> PhoneDevice<VirtualPhone> {
    let phone = VirtualPhone::new(PhoneSetup::default(), PhoneClock::Virtual);
    phone.handset.install(shopping());
    PhoneDevice::new(phone, Profile::Tester).with_apks(Some(apks().to_owned()))
}

/// A folder with an app to install.
fn apks() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("shopping.apk"), shopping().apk).expect("written");
        folder
    });
    folder.path()
}

pub fn built_in() -> Vec<Tool> {
    let settings = Settings { spec_tools: true, ..Settings::default() };
    let gateway = Gateway::open(settings).expect("a gateway in memory");
    let list = gateway.list(&Principal::new("reader", Role::Client), Shape::Folded);
    list.tools.iter().map(|public| public.tool.clone()).collect()
}

/// What a call of a built-in tool answers.
pub fn play_on_gateway(tool: &str, arguments: &Value) -> Answer {
    shown(runtime(false).block_on(on_gateway(tool, args(arguments))))
}

/// What a call of a phone tool answers, begun in a scene.
pub fn play(scene: Scene, tool: &str, arguments: &Value) -> Answer {
    // Time stands still but for those who wait, so that what took how long is always the same.
    let outcome = runtime(true).block_on(async {
        let phone: Arc<dyn Device> = Arc::new(phone());
        for (step, arguments) in scene.steps() {
            call(&phone, step, args(&serde_json::from_str(arguments).expect("JSON"))).await;
        }
        call(&phone, tool, args(arguments)).await
    });
    shown(outcome)
}

/// An answer as a page shows it.
#[derive(Debug, PartialEq)]
pub struct Answer {
    pub language: &'static str,
    pub body: String,
}

fn runtime(paused: bool) -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(paused).build();
    runtime.expect("a runtime")
}

async fn call(phone: &Arc<dyn Device>, tool: &str, args: Args) -> Outcome {
    let answer = StraightCalls::call_device(phone.clone(), tool, args).await;
    answer.unwrap_or_else(|error| panic!("{tool}: {error}"))
}

async fn on_gateway(tool: &str, args: Args) -> Outcome {
    let gateway = Gateway::open(Settings { spec_tools: true, ..Settings::default() }).expect("a gateway in memory");
    gateway.apply(DeviceEvent::Joined(Arc::new(phone())));
    let request = Request {
        is_confirmed: false,
        lease: None,
        is_plain: false,
        trace: None,
        who: Principal::new("reader", Role::Client),
        name: tool.to_owned(),
        args,
        shape: Shape::Folded,
        caller: Arc::new(Silent),
        budget: None,
        door: "test",
    };
    let mut outcome = gateway.call(request).await.unwrap_or_else(|error| panic!("{tool}: {error}"));
    // The id of a lease is random.
    if let Some(lease) = outcome.structured.as_mut().and_then(|answer| answer.get_mut("lease")) {
        *lease = json!("504077720d76aa85");
    }
    outcome
}

fn args(value: &Value) -> Args {
    value.as_object().cloned().expect("arguments are an object")
}

fn shown(outcome: Outcome) -> Answer {
    let mut parts: Vec<String> = Vec::new();
    for item in &outcome.content {
        match item {
            Content::Text(text) => parts.push(text.clone()),
            Content::Image { mime_type, size, .. } => {
                let size = size.map(|(width, height)| format!(", {width} × {height}")).unwrap_or_default();
                parts.push(format!("(a picture: {mime_type}{size})"));
            }
            Content::Resource { uri, mime_type, body } => {
                let kind = mime_type.as_deref().unwrap_or("unknown");
                parts.push(match body {
                    ResourceBody::Text(text) => format!("(a resource: {uri}, {kind})\n{text}"),
                    ResourceBody::Blob(data) => {
                        format!("(a resource: {uri}, {kind}, {} characters of base64)", data.len())
                    }
                });
            }
            other => panic!("an example answers with {other:?}"),
        }
    }
    let text = parts.join("\n");
    let json: Option<Value> = outcome.structured.or_else(|| serde_json::from_str(&text).ok());
    let pretty = json.filter(Value::is_object).map(|json| format!("{json:#}"));
    match pretty {
        Some(body) if body.len() <= WHOLE => Answer { language: "json", body },
        Some(body) => Answer { language: "text", body: cut(&body) },
        None => Answer { language: "text", body: cut(&text) },
    }
}

fn cut(text: &str) -> String {
    if text.len() <= WHOLE { text.to_owned() } else { format!("{}…", &text[..text.floor_char_boundary(WHOLE)]) }
}
