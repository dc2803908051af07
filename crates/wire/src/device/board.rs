//! Hello, envelope, and which request gets which answer.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Display};

use serde_json::{Map, Value};

use super::arguments::Arguments;
use super::pages::page;
use super::reply::Reply;
use super::spec::ToolSpec;
use super::write::{Quoted, exact, length};
use crate::common::{PROTOCOL_VERSION, Transport, Vision};

/// A board and its tools.
pub struct Board {
    name: String,
    version: String,
    transport: Transport,
    dialect: BoardDialect,
    tools: Vec<(ToolSpec, Handler)>,
    session_id: String,
    greeted: bool,
    vision: Option<Vision>,
}

type Handler = Box<dyn FnMut(&Arguments) -> Result<Reply, String> + Send>;

/// How a board speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoardDialect {
    /// As MCP has it: errors have a code and are escaped, pictures are MCP image items, a failing tool answers with
    /// `isError`.
    #[default]
    Standard,
    /// As real firmware does, with its bugs. For tests of the gateway.
    Firmware,
}

/// Why a request is refused.
struct RequestError {
    code: i32,
    message: String,
}

/// The answer to a request, before it is written.
enum ResponseBody<'a> {
    Pong,
    Initialized,
    Tools { cursor: &'a str, user_tools: bool },
    Called { reply: Reply, failed: bool },
}

const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const INTERNAL_ERROR: i32 = -32603;

impl Board {
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Board {
        Board {
            name: name.into(),
            version: version.into(),
            transport: Transport::WebSocket,
            dialect: BoardDialect::Standard,
            tools: Vec::new(),
            session_id: String::new(),
            greeted: false,
            vision: None,
        }
    }

    /// Adds a tool. Where a name comes twice the first one counts.
    pub fn tool(
        mut self,
        spec: ToolSpec,
        handler: impl FnMut(&Arguments) -> Result<Reply, String> + Send + 'static,
    ) -> Board {
        self.add(spec, handler);
        self
    }

    pub fn over(mut self, transport: Transport) -> Board {
        self.transport = transport;
        self
    }

    pub fn speaking(mut self, dialect: BoardDialect) -> Board {
        self.dialect = dialect;
        self
    }

    /// Adds a tool while running; send [`Board::list_changed`] afterwards. False where the name is taken.
    pub fn add(
        &mut self,
        spec: ToolSpec,
        handler: impl FnMut(&Arguments) -> Result<Reply, String> + Send + 'static,
    ) -> bool {
        let is_new = self.tools.iter().all(|(known, _)| known.name != spec.name);
        if is_new {
            // A vector that doubles would waste memory.
            self.tools.reserve_exact(1);
            self.tools.push((spec, Box::new(handler)));
        }
        is_new
    }

    /// Removes a tool while running; send [`Board::list_changed`] afterwards. False where there is none.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.tools.len();
        self.tools.retain(|(spec, _)| spec.name != name);
        self.tools.len() < before
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where to send pictures to have them explained, as the gateway said at `initialize`.
    pub fn vision(&self) -> Option<&Vision> {
        self.vision.as_ref()
    }

    /// The gateway's name for the session; empty until its hello.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Whether the gateway has said hello. A board should give up on one that takes longer than 10 s.
    pub fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// The first text to send on a new connection.
    pub fn hello(&self) -> String {
        let version = match self.transport {
            Transport::WebSocket => 1,
            Transport::Udp => 3,
        };
        let transport = self.transport.word();
        format!(
            "{{\"type\":\"hello\",\"version\":{version},\"features\":{{\"mcp\":true}},\"transport\":\"{transport}\",\
             \"audio_params\":{{\"format\":\"opus\",\"sample_rate\":16000,\"channels\":1,\"frame_duration\":60}}}}"
        )
    }

    /// Something the gateway did not ask for, for example `notifications/state_changed`.
    pub fn notify(&self, method: &str, params: Value) -> String {
        let (opening, closing) = (self.opening(true), closing(true));
        let method = Quoted(method);
        match params {
            Value::Null => format!("{opening}{{\"jsonrpc\":\"2.0\",\"method\":{method}}}{closing}"),
            params => format!("{opening}{{\"jsonrpc\":\"2.0\",\"method\":{method},\"params\":{params}}}{closing}"),
        }
    }

    /// Tells the gateway to list the tools again.
    pub fn list_changed(&self) -> String {
        self.notify("notifications/tools/list_changed", Value::Null)
    }

    /// Takes text from the gateway and gives the text to answer with, if any. What is not for a board,
    /// or cannot be read, gets none. An answer for which the memory does not suffice becomes an error.
    pub fn handle_text(&mut self, text: &str) -> Option<String> {
        let mut message: Value = serde_json::from_str(text).ok()?;
        match message.get("type").and_then(Value::as_str) {
            Some("hello") => {
                self.greeted = true;
                self.session_id = message.get("session_id").and_then(Value::as_str).unwrap_or_default().to_string();
                None
            }
            Some("mcp") => {
                let payload = message.get_mut("payload")?.take();
                self.respond(payload, true)
            }
            Some(_) => None,
            // A gateway that sends no envelope gets none.
            None if self.dialect == BoardDialect::Standard => self.handle_rpc(message),
            None => None,
        }
    }

    /// Answers one JSON-RPC message, for transports that carry it without the envelope.
    pub fn handle_rpc(&mut self, message: Value) -> Option<String> {
        self.respond(message, false)
    }

    fn respond(&mut self, message: Value, in_envelope: bool) -> Option<String> {
        let Value::Object(message) = message else { return None };
        let id = self.read_id(message.get("id")?)?;
        let method = message.get("method")?.as_str()?;
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") || method.starts_with("notifications") {
            return None;
        }
        let answer = match message.get("params") {
            None => self.answer(method, None),
            Some(Value::Object(params)) => self.answer(method, Some(params)),
            Some(_) if self.dialect == BoardDialect::Firmware => return None,
            Some(Value::Null) => self.answer(method, None),
            Some(_) => Err(invalid("params must be an object")),
        };
        let written = answer.and_then(|answer| self.write(&id, answer, in_envelope));
        written.or_else(|refusal| self.refuse(&id, &refusal, in_envelope).ok_or(())).ok()
    }

    fn answer<'a>(
        &mut self,
        method: &str,
        params: Option<&'a Map<String, Value>>,
    ) -> Result<ResponseBody<'a>, RequestError> {
        let param = |name: &str| params.and_then(|params| params.get(name));
        match method {
            "initialize" => {
                self.learn_vision(param("capabilities").and_then(|all| all.get("vision")));
                Ok(ResponseBody::Initialized)
            }
            "tools/list" => Ok(ResponseBody::Tools {
                cursor: param("cursor").and_then(Value::as_str).unwrap_or_default(),
                user_tools: param("withUserTools").and_then(Value::as_bool).unwrap_or_default(),
            }),
            "tools/call" => self.call(params.ok_or_else(|| invalid("Missing params"))?),
            "ping" if self.dialect == BoardDialect::Standard => Ok(ResponseBody::Pong),
            other => Err(RequestError { code: METHOD_NOT_FOUND, message: format!("Method not implemented: {other}") }),
        }
    }

    fn learn_vision(&mut self, vision: Option<&Value>) {
        let text = |key: &str| vision.and_then(|vision| vision.get(key)).and_then(Value::as_str);
        if let Some(url) = text("url") {
            let token = text("token").unwrap_or_default();
            self.vision = Some(Vision { url: url.to_string(), token: token.to_string() });
        }
    }

    fn call<'a>(&mut self, params: &Map<String, Value>) -> Result<ResponseBody<'a>, RequestError> {
        let dialect = self.dialect;
        let name = params.get("name").and_then(Value::as_str).ok_or_else(|| invalid("Missing name"))?;
        let nothing = Map::new();
        let given = match params.get("arguments") {
            None => &nothing,
            Some(Value::Object(given)) => given,
            Some(Value::Null) if dialect == BoardDialect::Standard => &nothing,
            Some(_) => return Err(invalid("Invalid arguments")),
        };
        let (spec, handler) = self
            .tools
            .iter_mut()
            .find(|(spec, _)| spec.name == name)
            .ok_or_else(|| RequestError { code: METHOD_NOT_FOUND, message: format!("Unknown tool: {name}") })?;
        let arguments = Arguments::read(&spec.properties, given, dialect).map_err(|message| invalid(&message))?;
        match handler(&arguments) {
            Ok(reply) => Ok(ResponseBody::Called { reply, failed: false }),
            // The firmware has no failing results, only errors.
            Err(message) if dialect == BoardDialect::Firmware => Err(invalid(&message)),
            Err(message) => Ok(ResponseBody::Called { reply: Reply::Text(message), failed: true }),
        }
    }

    fn write(&self, id: &str, answer: ResponseBody<'_>, in_envelope: bool) -> Result<String, RequestError> {
        let before = Joined(self.opening(in_envelope), format_args!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":"));
        let after = Joined("}", closing(in_envelope));
        let whole = |result: &dyn Display| {
            let message = Joined(&before, Joined(result, &after));
            exact(&message).ok_or_else(|| no_memory(length(&message)))
        };
        match answer {
            ResponseBody::Pong => whole(&"{}"),
            ResponseBody::Initialized => whole(&self.introduction()),
            ResponseBody::Tools { cursor, user_tools } => {
                let tools = self.tools.iter().map(|(spec, _)| spec);
                whole(&page(tools, cursor, user_tools, self.dialect).map_err(|message| invalid(&message))?)
            }
            ResponseBody::Called { reply, failed } => {
                reply.into_message(self.dialect, &before, failed, &after).map_err(no_memory)
            }
        }
    }

    /// The result of `initialize`.
    fn introduction(&self) -> String {
        let tools = match self.dialect {
            BoardDialect::Standard => "{\"listChanged\":true}",
            BoardDialect::Firmware => "{}",
        };
        let (name, version) = (Quoted(&self.name), Quoted(&self.version));
        format!(
            "{{\"protocolVersion\":\"{PROTOCOL_VERSION}\",\"capabilities\":{{\"tools\":{tools}}},\
             \"serverInfo\":{{\"name\":{name},\"version\":{version}}}}}"
        )
    }

    fn refuse(&self, id: &str, refusal: &RequestError, in_envelope: bool) -> Option<String> {
        let RequestError { code, message } = refusal;
        let (opening, closing) = (self.opening(in_envelope), closing(in_envelope));
        let opening = Joined(opening, format_args!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{"));
        match self.dialect {
            // No code, and the text as it comes: a quote in it breaks the JSON.
            BoardDialect::Firmware => exact(&format_args!("{opening}\"message\":\"{message}\"}}}}{closing}")),
            BoardDialect::Standard => {
                exact(&format_args!("{opening}\"code\":{code},\"message\":{}}}}}{closing}", Quoted(message)))
            }
        }
    }

    /// The id as it is echoed. The firmware takes numbers only, as 32 bits.
    fn read_id(&self, id: &Value) -> Option<String> {
        match (self.dialect, id) {
            (BoardDialect::Firmware, Value::Number(number)) => Some((number.as_f64()? as i32).to_string()),
            (BoardDialect::Standard, Value::Number(_) | Value::String(_)) => Some(id.to_string()),
            _ => None,
        }
    }

    fn opening(&self, in_envelope: bool) -> EnvelopeStart<'_> {
        EnvelopeStart { session_id: in_envelope.then_some(&self.session_id) }
    }
}

/// What comes before the JSON-RPC message: the envelope, where there is one.
struct EnvelopeStart<'a> {
    session_id: Option<&'a str>,
}

impl Display for EnvelopeStart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.session_id {
            Some(id) => write!(f, "{{\"session_id\":{},\"type\":\"mcp\",\"payload\":", Quoted(id)),
            None => Ok(()),
        }
    }
}

fn closing(in_envelope: bool) -> &'static str {
    if in_envelope { "}" } else { "" }
}

/// One after the other.
struct Joined<A, B>(A, B);

impl<A: Display, B: Display> Display for Joined<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)?;
        self.1.fmt(f)
    }
}

fn no_memory(bytes: usize) -> RequestError {
    RequestError { code: INTERNAL_ERROR, message: format!("the board has no memory for an answer of {bytes} bytes") }
}

fn invalid(message: &str) -> RequestError {
    RequestError { code: INVALID_PARAMS, message: message.to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::Property;
    use super::*;
    use serde_json::json;

    fn board(dialect: BoardDialect) -> Board {
        Board::new("lamp", "1.2")
            .speaking(dialect)
            .tool(ToolSpec::new("set_volume", "").with(Property::integer("volume", 0..=100)), |arguments| {
                Ok(Reply::from(arguments.integer("volume")?))
            })
            .tool(ToolSpec::new("fail", "").for_users(), |_| Err("a \"quoted\" reason".to_string()))
    }

    fn ask(board: &mut Board, id: Value, method: &str, params: Value) -> Option<Value> {
        let request =
            json!({"type": "mcp", "payload": {"jsonrpc": "2.0", "id": id, "method": method, "params": params}});
        let answer = board.handle_text(&request.to_string())?;
        serde_json::from_str(&answer).ok().map(|mut answer: Value| answer["payload"].take())
    }

    fn code(answer: Option<Value>) -> Option<i64> {
        answer?["error"]["code"].as_i64()
    }

    #[test]
    fn the_hello_has_the_version_of_its_transport() {
        let hello = |transport| Board::new("lamp", "1.0").over(transport).hello();
        assert!(hello(Transport::WebSocket).contains(r#""version":1,"#));
        assert!(hello(Transport::Udp).contains(r#""version":3,"#));
    }

    #[test]
    fn the_session_id_is_learnt_from_the_hello_and_used_from_then_on() {
        let mut board = board(BoardDialect::Standard);
        assert!(board.list_changed().contains(r#""session_id":"""#) && !board.is_greeted());
        assert_eq!(board.handle_text(r#"{"type":"hello","transport":"websocket","session_id":"s\"1"}"#), None);
        assert_eq!((board.session_id(), board.is_greeted()), ("s\"1", true));
        let notice: Value = serde_json::from_str(&board.notify("x", json!([1]))).unwrap();
        let payload = json!({"jsonrpc": "2.0", "method": "x", "params": [1]});
        assert_eq!(notice, json!({"session_id": "s\"1", "type": "mcp", "payload": payload}));
    }

    #[test]
    fn vision_is_learnt_at_initialize() {
        let mut board = board(BoardDialect::Standard);
        assert_eq!(board.vision(), None);
        let params = json!({"capabilities": {"vision": {"url": "http://v", "token": "t"}}});
        let answer = ask(&mut board, json!(1), "initialize", params).unwrap();
        assert_eq!(answer["result"]["serverInfo"], json!({"name": "lamp", "version": "1.2"}));
        assert_eq!(board.vision(), Some(&Vision { url: "http://v".to_string(), token: "t".to_string() }));
    }

    #[test]
    fn wrong_requests_get_a_code_and_a_sentence() {
        let mut board = board(BoardDialect::Standard);
        let mut code = |method: &str, params: Value| code(ask(&mut board, json!("x"), method, params));
        assert_eq!(code("resources/list", json!({})), Some(-32601));
        assert_eq!(code("tools/list", json!([])), Some(-32602));
        assert_eq!(code("tools/list", json!({"cursor": "nowhere"})), Some(-32602));
        assert_eq!(code("tools/call", Value::Null), Some(-32602));
        assert_eq!(code("tools/call", json!({"arguments": {}})), Some(-32602));
        assert_eq!(code("tools/call", json!({"name": "set_volume", "arguments": [5]})), Some(-32602));
        assert_eq!(code("tools/call", json!({"name": "set_volume", "arguments": {"volume": 101}})), Some(-32602));
        assert_eq!(code("tools/call", json!({"name": "x"})), Some(-32601));
        assert_eq!(code("ping", Value::Null), None);
    }

    #[test]
    fn a_failing_tool_says_so_in_its_result() {
        let mut board = board(BoardDialect::Standard);
        let answer = ask(&mut board, json!(1), "tools/call", json!({"name": "fail"})).unwrap();
        let content = json!([{"type": "text", "text": "a \"quoted\" reason"}]);
        assert_eq!(answer["result"], json!({"content": content, "isError": true}));
    }

    #[test]
    fn the_firmware_dialect_has_the_faults_of_the_field() {
        let mut board = board(BoardDialect::Firmware);
        let call =
            r#"{"type":"mcp","payload":{"jsonrpc":"2.0","id":3.9,"method":"tools/call","params":{"name":"fail"}}}"#;
        let broken = r#"{"jsonrpc":"2.0","id":3,"error":{"message":"a "quoted" reason"}}"#;
        assert!(board.handle_text(call).is_some_and(|answer| answer.contains(broken)));
        assert_eq!(ask(&mut board, json!("1"), "initialize", json!({})), None);
        assert_eq!(ask(&mut board, json!(1), "initialize", json!([])), None);
        let ping = ask(&mut board, json!(1), "ping", json!({})).unwrap();
        assert_eq!(ping["error"], json!({"message": "Method not implemented: ping"}));
        assert_eq!(board.handle_text(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), None);
    }

    #[test]
    fn what_is_not_for_a_board_gets_no_answer() {
        let mut board = board(BoardDialect::Standard);
        for text in [
            "",
            "noise",
            "[]",
            "{}",
            r#"{"type":"tts","state":"start"}"#,
            r#"{"type":"mcp"}"#,
            r#"{"type":"mcp","payload":"x"}"#,
            r#"{"type":"mcp","payload":{"jsonrpc":"2.0","method":"notifications/initialized"}}"#,
            r#"{"type":"mcp","payload":{"jsonrpc":"2.0","method":"notifications/x","id":1}}"#,
            r#"{"type":"mcp","payload":{"jsonrpc":"1.0","method":"ping","id":1}}"#,
            r#"{"type":"mcp","payload":{"jsonrpc":"2.0","method":"ping","id":[]}}"#,
        ] {
            assert_eq!(board.handle_text(text), None, "{text}");
        }
    }

    #[test]
    fn a_message_without_envelope_is_answered_without_one() {
        let answer =
            board(BoardDialect::Standard).handle_text(r#"{"jsonrpc":"2.0","id":0,"method":"ping","params":{}}"#);
        assert_eq!(answer.as_deref(), Some(r#"{"jsonrpc":"2.0","id":0,"result":{}}"#));
    }

    #[test]
    fn tools_come_and_go_and_the_first_of_a_name_stays() {
        let mut board = board(BoardDialect::Standard);
        assert!(!board.add(ToolSpec::new("fail", ""), |_| Ok(Reply::from(1))));
        assert!(board.remove("fail") && !board.remove("fail"));
        assert!(board.add(ToolSpec::new("fail", ""), |_| Ok(Reply::from(1))));
        let answer = ask(&mut board, json!(1), "tools/call", json!({"name": "fail"})).unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "1");
    }
}
