//! Tool providers that dial in: MCP servers at the other end of a WebSocket, one message a frame.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::SinkExt;
use serde_json::{Value, json};
use sinew_tool::{
    Admission, Answer, BoxFuture, Call, Caller, Device, DeviceEvent, ErrorKind, LeaveReason, LogLevel, Question,
    Silent, ToolError,
};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::support::{Played, TOKEN, TestGateway, answered, call, call_within, device_token};

/// A provider whose every word the test chooses.
struct Provider(Played);

impl Provider {
    async fn dial(gateway: &TestGateway, token: &str) -> Provider {
        let url = format!("ws://{}/mcp/?token={}", gateway.address, token.replace(' ', "%20"));
        Provider(Played::knock_with(&url, &[]).await.expect("admitted"))
    }

    async fn say(&mut self, message: Value) {
        self.0.say(message.to_string()).await;
    }

    /// The next message, which must be bare JSON-RPC.
    async fn hear(&mut self) -> Value {
        let message = self.0.hear().await;
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    async fn asked(&mut self, method: &str) -> Value {
        let message = self.hear().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    async fn answer(&mut self, request: &Value, result: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    /// Answers like a server with two tools on two pages.
    async fn set_up(&mut self, name: &str) {
        let request = self.asked("initialize").await;
        assert_eq!(request["params"]["capabilities"], json!({}), "pictures are for boards");
        let info = json!({"name": name, "version": "3.1"});
        let capabilities = json!({"tools": {"listChanged": true}});
        self.answer(
            &request,
            json!({"protocolVersion": "2024-11-05", "capabilities": capabilities, "serverInfo": info}),
        )
        .await;
        self.asked("notifications/initialized").await;
        let request = self.asked("tools/list").await;
        assert_eq!(request["params"], json!({}), "no cursor on the first page, and no words of firmware");
        self.answer(&request, json!({"tools": [tool("add")], "nextCursor": "2"})).await;
        let request = self.asked("tools/list").await;
        assert_eq!(request["params"], json!({"cursor": "2"}));
        self.answer(&request, json!({"tools": [tool("weather.now")]})).await;
    }
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}}})
}

async fn joined(gateway: &mut TestGateway, token: &str, name: &str) -> (Provider, Arc<dyn Device>) {
    let mut provider = Provider::dial(gateway, token).await;
    provider.set_up(name).await;
    (provider, gateway.joined().await)
}

#[tokio::test]
async fn a_provider_joins_as_a_device_and_its_tools_can_be_called() {
    let mut gateway = TestGateway::open_with(|config| config.user_tools = true).await;
    let (mut provider, device) = joined(&mut gateway, "token of provider:weather", "Weather Server").await;
    let info = device.info();
    assert_eq!((info.key.0.as_str(), info.suggested_id.as_str()), ("provider:weather", "weather"));
    assert_eq!(
        (info.family.name.as_str(), info.name.as_str(), info.version.as_str()),
        ("provider", "Weather Server", "3.1")
    );
    assert_eq!(info.admission, device_token("provider:weather"));
    assert_eq!(device.tools().len(), 2);

    let pending = call(&device, "weather.now", json!({"a": 1}));
    let request = provider.asked("tools/call").await;
    let params = &request["params"];
    assert_eq!((&params["name"], &params["arguments"]), (&json!("weather.now"), &json!({"a": 1})));
    let content = json!([{"type": "text", "text": "rain"}]);
    provider.answer(&request, json!({"content": content, "structuredContent": {"mm": 3}, "isError": false})).await;
    let outcome = answered(pending).await.expect("fine");
    assert_eq!(outcome.joined_text(), "rain");

    let pending = call(&device, "add", json!({}));
    let request = provider.asked("tools/call").await;
    let error = json!({"code": -32602, "message": "a is \"missing\""});
    provider.say(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
    let error = answered(pending).await.expect_err("refused");
    assert!(error.message.contains("a is \"missing\""), "{error}");
    gateway.close().await;
}

#[tokio::test]
async fn what_a_provider_asks_and_tells_is_answered_and_passed_on() {
    let mut gateway = TestGateway::open().await;
    let (mut provider, device) = joined(&mut gateway, TOKEN, "p").await;
    for id in [json!(0), json!("s-1"), json!(-7), json!("")] {
        provider.say(json!({"jsonrpc": "2.0", "id": id, "method": "ping"})).await;
        assert_eq!(provider.hear().await, json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }
    provider.say(json!({"jsonrpc": "2.0", "id": 0, "method": "roots/list"})).await;
    let refusal = provider.hear().await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(0), &json!(-32601)));

    provider
        .say(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}))
        .await;
    assert_eq!(gateway.said("notifications/message").await.body, json!({"level": "info", "data": "x"}));

    provider.say(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
    let request = provider.asked("tools/list").await;
    provider.answer(&request, json!({"tools": [tool("add"), tool("sub"), tool("mul")]})).await;
    loop {
        if let DeviceEvent::Changed(device) = gateway.next().await {
            break assert_eq!(device.tools().len(), 3);
        }
    }

    // What is no JSON-RPC is told, and disturbs nothing.
    provider.0.say("a line that a careless server printed").await;
    provider.say(json!({"type": "hello"})).await;
    assert!(gateway.said("warning").await.body["message"].is_string());
    let pending = call(&device, "sub", json!({}));
    let request = provider.asked("tools/call").await;
    provider.answer(&request, json!({"content": []})).await;
    answered(pending).await.expect("fine");
    gateway.close().await;
}

/// Passes on what is reported while a call runs.
struct ProgressCaller(mpsc::UnboundedSender<(f64, Option<f64>, Option<String>)>);

impl Caller for ProgressCaller {
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let _ = self.0.send((progress, total, message.map(str::to_owned)));
    }

    fn log(&self, _: LogLevel, _: Value) {}

    fn ask(&self, questions: BTreeMap<String, Question>) -> BoxFuture<'_, Result<BTreeMap<String, Answer>, ToolError>> {
        Silent.ask(questions)
    }
}

#[tokio::test]
async fn what_a_provider_reports_reaches_the_caller() {
    let mut gateway = TestGateway::open().await;
    let (mut provider, device) = joined(&mut gateway, TOKEN, "slow").await;
    let (sender, mut reports) = mpsc::unbounded_channel();
    let wanted = Call { caller: Arc::new(ProgressCaller(sender)), ..Call::new("add", Default::default()) };
    let pending = tokio::spawn(async move { device.call(wanted).await });
    let request = provider.asked("tools/call").await;
    let token = &request["params"]["_meta"]["progressToken"];
    let params = json!({"progressToken": token, "progress": 1, "total": 3, "message": "one of three"});
    provider.say(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})).await;
    assert_eq!(reports.recv().await, Some((1.0, Some(3.0), Some("one of three".to_owned()))));
    provider.answer(&request, json!({"content": []})).await;
    answered(pending).await.expect("an answer");
    gateway.close().await;
}

#[tokio::test]
async fn a_provider_is_told_of_calls_that_nobody_waits_for() {
    let mut gateway = TestGateway::open().await;
    let (mut provider, device) = joined(&mut gateway, TOKEN, "slow").await;
    let given_up = call(&device, "add", json!({}));
    let request = provider.asked("tools/call").await;
    given_up.abort();
    assert_eq!(provider.asked("notifications/cancelled").await["params"]["requestId"], request["id"]);

    let late = call_within(&device, "add", json!({}), Duration::from_millis(20));
    let request = provider.asked("tools/call").await;
    assert_eq!(answered(late).await.expect_err("late").kind, ErrorKind::Timeout);
    assert_eq!(provider.asked("notifications/cancelled").await["params"]["requestId"], request["id"]);
    gateway.close().await;
}

#[tokio::test]
async fn with_the_gateways_token_providers_are_known_by_their_names() {
    let mut gateway = TestGateway::open().await;
    let (_one, first) = joined(&mut gateway, TOKEN, "Calculator").await;
    let (_two, second) = joined(&mut gateway, TOKEN, "Weather (Berlin)").await;
    assert_eq!(first.info().key.0, "provider:calculator");
    assert_eq!(second.info().key.0, "provider:weather-berlin");
    assert_eq!(first.info().admission, Admission::OwnToken);

    // The same name again is the same provider, which has started anew.
    let (mut three, third) = joined(&mut gateway, TOKEN, "Calculator").await;
    assert_eq!(third.info().key, first.info().key);
    let pending = call(&third, "add", json!({}));
    let request = three.asked("tools/call").await;
    three.answer(&request, json!({"content": [{"type": "text", "text": "new"}]})).await;
    assert_eq!(answered(pending).await.expect("fine").joined_text(), "new");
    let (left, reason) = gateway.left().await;
    assert!(Arc::ptr_eq(&left, &first));
    assert_eq!(reason, LeaveReason::Replaced);
    gateway.close().await;
}

#[tokio::test]
async fn a_provider_whose_token_does_not_fit_is_refused() {
    let mut gateway = TestGateway::open().await;
    let boards = "?token=token%20of%20board:weather";
    for query in ["", "?token=", "?token=wrong", boards, "?token=token%20of%20provider:mqtt:a/b"] {
        let url = format!("ws://{}/mcp/{query}", gateway.address);
        let Err(Error::Http(answer)) = Played::knock_with(&url, &[]).await.map(|_| ()) else { panic!("refused") };
        assert_eq!(answer.status(), 401, "{query}");
        let body = String::from_utf8_lossy(answer.body().as_deref().expect("a body")).into_owned();
        assert!(body.contains("sinew token new --device"), "{body}");
    }
    let url = format!("ws://{}/mcp", gateway.address);
    let bearer = [("authorization", format!("Bearer {TOKEN}"))];
    Played::knock_with(&url, &bearer).await.expect("a header will do");
    let (status, _) = gateway.request("GET", &format!("/mcp/?token={TOKEN}"), &[], b"").await;
    assert_eq!(status, 426);
    assert!(gateway.events.try_recv().is_err(), "nobody was announced");
    gateway.close().await;
}

#[tokio::test]
async fn a_provider_that_dies_mid_call_answers_its_caller_and_a_board_beside_it_notices_nothing() {
    let mut gateway = TestGateway::open().await;
    let (mut board, witness) = gateway.played("aa").await;
    let (mut provider, device) = joined(&mut gateway, TOKEN, "p").await;
    let pending = call(&device, "add", json!({}));
    provider.asked("tools/call").await;
    provider.0.socket.send(Message::binary(vec![0; 64])).await.expect("sent");
    drop(provider);
    assert_eq!(answered(pending).await.expect_err("lost").kind, ErrorKind::DeviceLost);
    let pending = call(&witness, "echo", json!({}));
    let request = board.asked("tools/call").await;
    board.answer_text(&request, "well").await;
    assert_eq!(answered(pending).await.expect("fine").joined_text(), "well");
    gateway.close().await;
}
