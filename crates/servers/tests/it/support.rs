//! The family in a test: its events, and a caller that writes down what it hears.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sinew_servers::ServerConfig;
use sinew_tool::{
    Answer, Args, BoxFuture, Call, Caller, Device, DeviceEvent, DeviceKey, LogLevel, Outcome, Question, ToolError,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Longer than anything takes on a busy machine; only a hanging test waits for it.
const HANG: Duration = Duration::from_secs(60);

pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, future).await.expect("it happens")
}

pub struct Family {
    pub events: mpsc::UnboundedReceiver<DeviceEvent>,
    pub shutdown: CancellationToken,
    pub running: JoinHandle<std::io::Result<()>>,
}

pub fn at(url: &str) -> ServerConfig {
    ServerConfig { name: Some("kiln".to_owned()), url: Some(url.to_owned()), ..ServerConfig::default() }
}

impl Family {
    pub fn start(server: ServerConfig) -> Family {
        let (sender, events) = mpsc::unbounded_channel();
        let plan = sinew_servers::plan(&[server]).expect("valid").remove(0);
        let shutdown = CancellationToken::new();
        let unknown = Arc::new(|_: Option<&str>, _: &DeviceKey| None);
        let announce = Arc::new(move |event| drop(sender.send(event)));
        let running = tokio::spawn(sinew_servers::run(plan, unknown, announce, shutdown.clone()));
        Family { events, shutdown, running }
    }

    pub async fn joined(&mut self) -> Arc<dyn Device> {
        match soon(self.events.recv()).await {
            Some(DeviceEvent::Joined(device)) => device,
            other => panic!("it did not join but {}", name(other)),
        }
    }

    /// Skips everything until the tools have changed.
    pub async fn changed(&mut self) -> Arc<dyn Device> {
        loop {
            match soon(self.events.recv()).await {
                Some(DeviceEvent::Changed(device)) => return device,
                Some(DeviceEvent::Said(..)) => {}
                other => panic!("it did not change but {}", name(other)),
            }
        }
    }

    pub async fn left(&mut self) -> String {
        match soon(self.events.recv()).await {
            Some(DeviceEvent::Left(_, reason)) => reason.to_string(),
            other => panic!("it did not leave but {}", name(other)),
        }
    }

    pub async fn stop(mut self) -> String {
        self.shutdown.cancel();
        soon(self.running).await.expect("no panic").expect("no error");
        match self.events.recv().await {
            Some(DeviceEvent::Left(_, reason)) => reason.to_string(),
            other => panic!("it did not leave but {}", name(other)),
        }
    }
}

fn name(event: Option<DeviceEvent>) -> String {
    match event {
        None => "the family ended".to_owned(),
        Some(DeviceEvent::Joined(device)) => format!("joined as {:?}", device.info().status),
        Some(DeviceEvent::Changed(device)) => format!("changed to {:?}", device.info().status),
        Some(DeviceEvent::Said(_, notice)) => format!("said {notice:?}"),
        Some(DeviceEvent::Dropped(..)) => "dropped events".to_owned(),
        Some(DeviceEvent::Left(_, reason)) => format!("left: {reason}"),
    }
}

pub fn args(value: Value) -> Args {
    value.as_object().cloned().expect("an object")
}

pub async fn call(device: &Arc<dyn Device>, tool: &str, arguments: Value) -> Result<Outcome, ToolError> {
    soon(device.call(Call::new(tool, args(arguments)))).await
}

pub fn tool_names(device: &Arc<dyn Device>) -> Vec<String> {
    device.tools().iter().map(|tool| tool.name.clone()).collect()
}

/// A caller that answers every question with `accept`, and writes down what it hears.
#[derive(Default)]
pub struct Witness(pub Mutex<Vec<String>>);

impl Caller for Witness {
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.0.lock().expect("no panic").push(format!("{progress} of {total:?} {}", message.unwrap_or_default()));
    }

    fn log(&self, level: LogLevel, data: Value) {
        self.0.lock().expect("no panic").push(format!("{level:?} {data}"));
    }

    fn ask(&self, questions: BTreeMap<String, Question>) -> BoxFuture<'_, Result<BTreeMap<String, Answer>, ToolError>> {
        let answers = questions.into_iter().map(|(key, question)| {
            self.0.lock().expect("no panic").push(format!("{question:?}"));
            (key, json!({"action": "accept", "content": {"sure": true}}))
        });
        let answers = answers.collect();
        Box::pin(async move { Ok(answers) })
    }
}

pub fn witnessed(tool: &str, arguments: Value) -> (Call, Arc<Witness>) {
    let witness = Arc::new(Witness::default());
    let mut call = Call::new(tool, args(arguments));
    call.caller = witness.clone();
    (call, witness)
}
