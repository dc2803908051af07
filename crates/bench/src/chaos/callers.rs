//! The clients: they call without pause, and note how each call ended.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use sinew_sim::faults::Faults;
use tokio_util::sync::CancellationToken;

use super::ledger::{CallEnd, Ledger};
use crate::Error;
use crate::load::HttpConnection;
use crate::process::TOKEN;
use crate::request;

/// The one tool of the boards, as they know it and as clients see it.
pub(super) const TOOL: &str = "self.count";
const PUBLIC_TOOL: &str = "self_count";

/// Longer than a call may take, in whatever trouble the gateway is.
const PATIENCE: Duration = Duration::from_secs(30);
/// Before the next attempt to reach a gateway that is not there.
const PAUSE: Duration = Duration::from_millis(20);

/// A device that is called.
#[derive(Clone, Debug)]
pub(super) enum Callee {
    Board(String),
    Phone(String),
}

/// What all clients share.
pub(super) struct Callers {
    pub(super) address: SocketAddr,
    pub(super) callees: Vec<Callee>,
    next_number: AtomicU64,
    /// How often the gateway was killed; a connection breaks for no other reason.
    deaths: AtomicU64,
    ledger: Mutex<Ledger>,
}

/// A connection, and how often the gateway had been killed when it was opened.
struct OpenConnection {
    http: HttpConnection,
    deaths: u64,
}

impl Callers {
    pub(super) fn new(address: SocketAddr, callees: Vec<Callee>) -> Arc<Callers> {
        let (next_number, deaths) = (AtomicU64::new(1), AtomicU64::new(0));
        Arc::new(Callers { address, callees, next_number, deaths, ledger: Mutex::default() })
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The gateway is about to be killed.
    pub(super) fn expect_death(&self) {
        self.deaths.fetch_add(1, Ordering::SeqCst);
    }

    /// Calls one device after another until `stop`, as drawn from the seed.
    pub(super) async fn call_until(self: Arc<Callers>, seed: u64, client: usize, stop: CancellationToken) {
        let mut dice = Faults { seed, ..Faults::default() }.dice(&format!("client {client}"));
        let mut connection = None;
        while !stop.is_cancelled() {
            let callee = &self.callees[dice.pick(self.callees.len() as u64) as usize];
            let over_mcp = dice.pick(2) == 0;
            if !self.call(callee, over_mcp, &mut connection).await {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// So many calls of one device at the same time, each on a connection of its own.
    pub(super) async fn flood(self: &Arc<Callers>, callee: &Callee, count: usize) {
        let calls = (0..count).map(|_| async {
            let mut connection = None;
            self.call(callee, false, &mut connection).await;
        });
        futures_util::future::join_all(calls).await;
    }

    /// One call. False if the gateway was not there to take it.
    async fn call(&self, callee: &Callee, over_mcp: bool, connection: &mut Option<OpenConnection>) -> bool {
        let OpenConnection { mut http, deaths } = match connection.take() {
            Some(open) => open,
            None => {
                let deaths = self.deaths.load(Ordering::SeqCst);
                let Ok(http) = HttpConnection::open(self.address).await else { return false };
                OpenConnection { http, deaths }
            }
        };
        let number = self.next_number.fetch_add(1, Ordering::SeqCst);
        let request = self.request(callee, number, over_mcp);
        let is_board = matches!(callee, Callee::Board(_));
        match tokio::time::timeout(PATIENCE, http.answer(&request)).await {
            Ok(Ok((status, body))) => {
                self.ledger().ended(number, end_of(status, &body), is_board);
                *connection = Some(OpenConnection { http, deaths });
                true
            }
            Ok(Err(error)) => {
                self.ledger().ended(number, CallEnd::Cut, is_board);
                self.explain_cut(number, deaths, &error).await;
                false
            }
            Err(_) => {
                let mut ledger = self.ledger();
                ledger.ended(number, CallEnd::Cut, is_board);
                ledger.violated(format!("call {number} to {callee:?} got no answer within {PATIENCE:?}"));
                false
            }
        }
    }

    /// A connection that broke must have broken because the gateway was killed.
    async fn explain_cut(&self, number: u64, deaths: u64, error: &Error) {
        if self.deaths.load(Ordering::SeqCst) == deaths {
            self.ledger().violated(format!("call {number} lost its connection while the gateway ran: {error}"));
        }
    }

    fn request(&self, callee: &Callee, number: u64, over_mcp: bool) -> Vec<u8> {
        match callee {
            Callee::Board(id) if over_mcp => {
                request::call(self.address, TOKEN, PUBLIC_TOOL, json!({"device": id, "number": number}))
            }
            Callee::Board(id) => {
                let call = json!({"device": id, "tool": TOOL, "arguments": {"number": number}});
                request::post(self.address, TOKEN, "/api/v1/call", &call)
            }
            Callee::Phone(id) => {
                let call = json!({"device": id, "tool": "tap", "arguments": tap(number)});
                request::post(self.address, TOKEN, "/api/v1/call", &call)
            }
        }
    }
}

/// A tap whose place says which call it is.
fn tap(number: u64) -> Value {
    json!({"x": number % TAP_COLUMNS, "y": number / TAP_COLUMNS})
}

const TAP_COLUMNS: u64 = 1000;

/// The number of a call, from its arguments.
pub(super) fn number_of(arguments: &Value) -> Option<u64> {
    match (arguments["number"].as_u64(), arguments["x"].as_u64(), arguments["y"].as_u64()) {
        (Some(number), ..) => Some(number),
        (None, Some(x), Some(y)) => Some(y * TAP_COLUMNS + x),
        _ => None,
    }
}

/// What an answer of `/mcp` or `/api/v1/call` says about its call.
fn end_of(status: u16, body: &Value) -> CallEnd {
    // Wherever the endpoint puts it; no answer of a device has this word.
    if body.to_string().contains("NotRecorded") {
        return CallEnd::NotRecorded;
    }
    if status == 503 && body["error"].is_string() {
        return CallEnd::TurnedAway;
    }
    let failed = !body["error"].is_null() || body["result"]["isError"] == true || body["isError"] == true;
    CallEnd::Answered { success: status == 200 && !failed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_known_by_its_arguments() {
        for number in [1, 999, 1000, 123_456] {
            assert_eq!(number_of(&tap(number)), Some(number));
            assert_eq!(number_of(&json!({"number": number, "device": "board-1"})), Some(number));
        }
        assert_eq!(number_of(&json!({})), None);
    }

    #[test]
    fn answers_say_how_a_call_ended() {
        for (status, body, end) in [
            (200, json!({"result": {"content": []}}), CallEnd::Answered { success: true }),
            (200, json!({"result": {"content": [], "isError": true}}), CallEnd::Answered { success: false }),
            (404, json!({"error": {"error_type": "DeviceNotFound"}}), CallEnd::Answered { success: false }),
            (503, json!({"error": {"error_type": "NotRecorded"}}), CallEnd::NotRecorded),
            (200, json!({"error": {"code": -1, "data": {"error_type": "NotRecorded"}}}), CallEnd::NotRecorded),
            (503, json!({"error": "busy", "message": "later"}), CallEnd::TurnedAway),
        ] {
            assert_eq!(end_of(status, &body), end, "{body}");
        }
    }
}
