//! What good boards lose while a hostile one does what it can: schemas that multiply, patterns that backtrack, lists as
//! long as they may be and another one every time, notices without pause, and answers that are late or costly to check.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Map, Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::load::{HttpConnection, bench_error, percentile};
use crate::process::{self, Scratch, TOKEN};
use crate::report::{Figure, Report};
use crate::{BenchPlan, CONNECTIONS, Error, PUBLIC_TOOL, in_thread, ready_boards, request};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

const HARDWARE_ID: &str = "aa:bb:cc:00:66:66";
/// Between two bursts of notices.
const PAUSE: Duration = Duration::from_millis(5);
const BURST: usize = 50;
/// Bursts between two announcements of another list.
const BURSTS_PER_LIST: usize = 100;
/// Some 250 kB together, which is what a board may list.
const COSTLY_TOOLS: usize = 100;

pub(crate) async fn measure(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let gateway = process::gateway(&scratch.folder("hostile")).await?;
    let address = gateway.address()?;
    let boards = process::boards(gateway.devices_url(), 1, CONNECTIONS).await?;
    let good = ready_boards(address, CONNECTIONS).await?;
    let calls: Vec<_> =
        good.iter().map(|device| request::call(address, TOKEN, PUBLIC_TOOL, json!({"device": device}))).collect();
    let (mut rates, mut tails): ([Vec<f64>; 2], [Vec<f64>; 2]) = Default::default();
    let (mut failures, mut resident) = (0, 0);
    // The first round warms up and is not counted.
    for round in 0..=plan.rounds {
        for is_attacked in [false, true] {
            let attack = match is_attacked {
                true => Some(Attack::start(gateway.devices_url(), address, &good).await?),
                false => None,
            };
            let mut tally = in_thread(address, calls.clone(), plan.time).await?;
            resident = resident.max(gateway.resident()?);
            drop(attack);
            if round > 0 {
                rates[usize::from(is_attacked)].push(tally.per_second());
                tails[usize::from(is_attacked)].push(percentile(&mut tally.latencies, 0.99) / 1e3);
                failures += tally.failures;
            }
        }
    }
    boards.stop().await;
    gateway.stop().await;
    let medians = |samples: &[Vec<f64>; 2]| samples.clone().map(|mut samples| percentile(&mut samples, 0.5));
    let ([quiet_rate, rate], [quiet_tail, tail]) = (medians(&rates), medians(&tails));
    for (key, label, value, unit) in [
        ("hostile_none_per_second", "tools/call without a hostile board", quiet_rate, "calls/s"),
        ("hostile_per_second", "the same to good boards beside one", rate, "calls/s"),
        ("hostile_rate_share", "share of the rate that is left", rate / quiet_rate, ""),
        ("hostile_none_p99_ms", "99th percentile without a hostile board", quiet_tail, "ms"),
        ("hostile_p99_ms", "the same beside one", tail, "ms"),
        ("hostile_p99_times", "how many times as long", tail / quiet_tail, ""),
    ] {
        report.push(Figure::plain(key, label, value, unit));
    }
    report.push(Figure::at_most("hostile_failures", "calls to good boards that failed", failures as f64, "", 0.0));
    report.push(Figure::at_most("hostile_mb", "memory of the gateway meanwhile", resident as f64 / 1e6, "MB", 200.0));
    Ok(())
}

/// A hostile board and clients that call it, until it is dropped.
struct Attack(Vec<JoinHandle<()>>);

impl Drop for Attack {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl Attack {
    /// Returns when the board is in the list.
    async fn start(url: &str, address: SocketAddr, good: &[String]) -> Result<Attack, Error> {
        let socket = connect(url).await?;
        let mut attack = Attack(vec![tokio::spawn(HostileBoard { socket, version: 0 }.run())]);
        let all = ready_boards(address, good.len() as u32 + 1).await?;
        let hostile = all.into_iter().find(|device| !good.contains(device));
        let hostile = hostile.ok_or_else(|| bench_error("the hostile board did not join"))?;
        for tool in ["late", "costly0", "patterns"] {
            attack.0.push(tokio::spawn(call_without_end(address, hostile.clone(), tool)));
        }
        Ok(attack)
    }
}

/// Calls a tool of the hostile board until the task is ended, whatever becomes of the calls.
async fn call_without_end(address: SocketAddr, device: String, tool: &'static str) {
    let call = json!({"device": device, "tool": tool, "arguments": {}});
    let call = request::post(address, TOKEN, "/api/v1/call", &call);
    loop {
        tokio::time::sleep(PAUSE).await;
        let Ok(mut connection) = HttpConnection::open(address).await else { continue };
        while connection.answer(&call).await.is_ok() {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn connect(url: &str) -> Result<Socket, Error> {
    let failed = |error: &dyn std::fmt::Display| bench_error(format!("the hostile board cannot connect: {error}"));
    let mut request = url.into_client_request().map_err(|error| failed(&error))?;
    for (name, value) in [("Authorization", format!("Bearer {TOKEN}")), ("Device-Id", HARDWARE_ID.to_owned())] {
        request.headers_mut().insert(name, value.parse().map_err(|error| failed(&error))?);
    }
    Ok(connect_async(request).await.map_err(|error| failed(&error))?.0)
}

struct HostileBoard {
    socket: Socket,
    /// Of the list of tools.
    version: usize,
}

impl HostileBoard {
    /// Until the gateway has had enough of it.
    async fn run(mut self) {
        let hello = json!({"type": "hello", "version": 1, "transport": "websocket", "features": {"mcp": true}});
        if self.socket.send(Message::text(hello.to_string())).await.is_err() {
            return;
        }
        let mut bursts = 0;
        loop {
            let heard = tokio::time::timeout(PAUSE, self.socket.next()).await;
            let is_open = match heard {
                Ok(Some(Ok(Message::Text(text)))) => self.answer(&text).await,
                Ok(Some(Ok(_))) => true,
                Ok(_) => false,
                Err(_) => {
                    bursts += 1;
                    self.notify(bursts).await
                }
            };
            if !is_open {
                return;
            }
        }
    }

    async fn say(&mut self, payload: Value) -> bool {
        self.socket.send(Message::text(json!({"type": "mcp", "payload": payload}).to_string())).await.is_ok()
    }

    /// A burst of notices; from time to time another list.
    async fn notify(&mut self, bursts: usize) -> bool {
        if bursts.is_multiple_of(BURSTS_PER_LIST) {
            self.version += 1;
            return self.say(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
        }
        for number in 0..BURST {
            let params = json!({"number": number, "text": "x".repeat(1_000)});
            if !self.say(json!({"jsonrpc": "2.0", "method": "notifications/noise", "params": params})).await {
                return false;
            }
        }
        true
    }

    async fn answer(&mut self, text: &str) -> bool {
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        let call = &message["payload"];
        let result = match call["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "hostile", "version": "1.0.0"},
            }),
            Some("tools/list") => json!({"tools": tools(self.version)}),
            Some("tools/call") => match call["params"]["name"].as_str() {
                // It never answers.
                Some("late") => return true,
                Some("patterns") => {
                    let values: Map<String, Value> =
                        (0..100).map(|number| (format!("p{number}"), json!("a".repeat(1_600)))).collect();
                    json!({"content": [], "structuredContent": values})
                }
                _ => {
                    let deep = (0..24).fold(json!(1), |inner, _| json!([inner]));
                    json!({"content": [], "structuredContent": {"a": deep}})
                }
            },
            _ => return true,
        };
        self.say(json!({"jsonrpc": "2.0", "id": call["id"], "result": result})).await
    }
}

fn tools(version: usize) -> Vec<Value> {
    let open = json!({"type": "object"});
    let patterns: Map<String, Value> =
        (0..100).map(|number| (format!("p{number}"), json!({"pattern": format!("^(a+)+(?=b{number})$")}))).collect();
    let special = [
        json!({"name": "late", "description": "", "inputSchema": open}),
        json!({"name": "patterns", "description": "", "inputSchema": open,
            "outputSchema": {"type": "object", "properties": patterns}}),
    ];
    let costly = (0..COSTLY_TOOLS).map(|number| {
        json!({"name": format!("costly{number}"), "description": format!("In version {version}"),
            "inputSchema": {"type": "object", "properties": {"a": nested(version)}}, "outputSchema": doubling()})
    });
    special.into_iter().chain(costly).collect()
}

/// Doubles the work of a check with each level of the value.
fn doubling() -> Value {
    let branch = json!({"items": {"$ref": "#/$defs/s"}});
    json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/s"}},
        "$defs": {"s": {"type": "array", "anyOf": [branch, branch]}}})
}

/// Takes long to compare with another version of itself.
fn nested(version: usize) -> Value {
    (0..3).fold(json!({"minimum": version}), |inner, depth| {
        let branch = |number: usize| json!({"items": inner, "maxItems": number + depth});
        json!({"anyOf": [branch(0), branch(1), branch(2), branch(3)]})
    })
}
