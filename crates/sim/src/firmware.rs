//! Virtual boards that serve a given tool list, as real firmware would.
//!
//! What firmware does differently from the standard is `sinew_wire::device`'s [`BoardDialect::Firmware`]: errors
//! without code and escapes, pages of 8,000 bytes, silence to whatever it cannot read, only numbers as ids.
//! The tests below hold that to the bytes.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sinew_tool::{Value, json};
use sinew_wire::device::{Argument, Board, BoardDialect, Property, Reply, ToolSpec};

use crate::board::{BoardMachine, MachineState, VirtualBoard};

/// The tools that a board's source declares.
#[derive(Clone, Debug)]
pub struct Blueprint {
    name: String,
    tools: Arc<[DeclaredTool]>,
    /// Where every execution of a tool is reported, with its arguments.
    executions: Option<std::sync::mpsc::Sender<Value>>,
}

#[derive(Clone, Debug)]
struct DeclaredTool {
    spec: ToolSpec,
    properties: Vec<String>,
    users_only: bool,
}

impl Blueprint {
    /// From the entries of a `tools/list` answer. What firmware cannot declare is refused with a reason.
    pub fn read(name: &str, entries: &[Value]) -> Result<Blueprint, String> {
        let tools = entries.iter().map(DeclaredTool::read).collect::<Result<_, _>>()?;
        Ok(Blueprint { name: name.to_owned(), tools, executions: None })
    }

    /// Reports the arguments of every execution.
    pub fn reporting_to(self, executions: std::sync::mpsc::Sender<Value>) -> Blueprint {
        Blueprint { executions: Some(executions), ..self }
    }

    /// With the tools that firmware brings to every board. Its order is theirs, the board's, and at the end
    /// those for users; of two tools of one name the first counts.
    pub fn with_common(&self, common: &Blueprint) -> Blueprint {
        let mut seen = HashSet::new();
        let all = common.tools.iter().chain(self.tools.iter());
        let all: Vec<&DeclaredTool> = all.filter(|tool| seen.insert(tool.spec.name().to_owned())).collect();
        let (users, models): (Vec<&DeclaredTool>, _) = all.into_iter().partition(|tool| tool.users_only);
        let models: Vec<&DeclaredTool> = models;
        Blueprint { tools: models.into_iter().chain(users).cloned().collect(), ..self.clone() }
    }

    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.spec.name())
    }

    pub(crate) fn build(&self) -> VirtualBoard {
        let mut firmware = Board::new(self.name.clone(), "2.0.0").speaking(BoardDialect::Firmware);
        for DeclaredTool { spec, properties, .. } in self.tools.iter().cloned() {
            let (name, executions) = (spec.name().to_owned(), self.executions.clone());
            firmware.add(spec, move |arguments| {
                let taken = properties.iter().filter_map(|name| Some((name.clone(), value(arguments.find(name)?))));
                let taken = taken.collect::<sinew_tool::Args>();
                if let Some(executions) = &executions {
                    let _ = executions.send(json!(taken));
                }
                Ok(Reply::Json(json!({"tool": name, "arguments": taken})))
            });
        }
        VirtualBoard::from_parts(firmware, Arc::new(Mutex::new(IdleMachine::default())))
    }
}

/// What a tool of a blueprint says: how firmware understood its arguments.
fn value(argument: &Argument) -> Value {
    match argument {
        Argument::Boolean(value) => json!(value),
        Argument::Integer(value) => json!(value),
        Argument::Text(value) => json!(value),
    }
}

impl DeclaredTool {
    fn read(entry: &Value) -> Result<DeclaredTool, String> {
        let Some(name) = entry["name"].as_str() else { return Err(format!("a tool has no name: {entry}")) };
        let mut spec = ToolSpec::new(name.to_owned(), entry["description"].as_str().unwrap_or_default().to_owned());
        let mut properties = Vec::new();
        let schema = &entry["inputSchema"];
        for (property, about) in schema["properties"].as_object().into_iter().flatten() {
            let bounds = (about["minimum"].as_i64(), about["maximum"].as_i64());
            let range = bounds.0.unwrap_or(i32::MIN.into())..=bounds.1.unwrap_or(i32::MAX.into());
            let bounded = bounds != (None, None);
            let default = &about["default"];
            let property = property.clone();
            spec = spec.with(match (about["type"].as_str(), default.is_null()) {
                (Some("boolean"), true) => Property::boolean(property.clone()),
                (Some("boolean"), false) => Property::boolean_or(property.clone(), default == true),
                (Some("integer"), true) if bounded => Property::integer(property.clone(), range),
                (Some("integer"), true) => Property::integer(property.clone(), ..),
                (Some("integer"), false) if bounded => {
                    Property::integer_or(property.clone(), range, default.as_i64().unwrap_or_default())
                }
                (Some("integer"), false) => {
                    Property::integer_or(property.clone(), .., default.as_i64().unwrap_or_default())
                }
                (Some("string"), true) => Property::text(property.clone()),
                (Some("string"), false) => {
                    Property::text_or(property.clone(), default.as_str().unwrap_or_default().to_owned())
                }
                (kind, _) => {
                    let kind = kind.unwrap_or("no type");
                    return Err(format!(
                        "`{property}` of `{name}` has {kind}; firmware knows boolean, integer and string"
                    ));
                }
            });
            properties.push(property);
        }
        let users_only = entry["annotations"]["audience"] == json!(["user"]);
        if users_only {
            spec = spec.for_users();
        }
        Ok(DeclaredTool { spec, properties, users_only })
    }
}

/// A machine that does nothing by itself.
#[derive(Default)]
struct IdleMachine(MachineState);

impl BoardMachine for IdleMachine {
    fn handle_time(&mut self, _now: Duration) {}

    fn next_due(&self) -> Option<Duration> {
        None
    }

    fn state(&mut self) -> &mut MachineState {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> VirtualBoard {
        let volume = json!({"name": "self.audio_speaker.set_volume", "description": "Set it.", "inputSchema": {
            "type": "object", "properties": {"volume": {"type": "integer", "minimum": 0, "maximum": 100}},
            "required": ["volume"]}});
        let optional = json!({"name": "self.say", "description": "Say", "inputSchema": {"type": "object",
            "properties": {"text": {"type": "string", "default": "hi"}, "loud": {"type": "boolean"}}}});
        let reboot = json!({"name": "self.reboot", "description": "Restart", "inputSchema": {"type": "object",
            "properties": {}}, "annotations": {"audience": ["user"]}});
        let common = Blueprint::read("common", &[reboot, volume]).expect("fine");
        Blueprint::read("bread-compact-wifi", &[optional]).expect("fine").with_common(&common).build()
    }

    /// The payload of the one answer, or nothing, which is what firmware says to what it cannot read.
    fn answer(board: &mut VirtualBoard, payload: &str) -> Option<String> {
        let text = format!(r#"{{"session_id":"","type":"mcp","payload":{payload}}}"#);
        let mut answers = board.handle_text(Duration::ZERO, &text);
        assert!(answers.len() < 2, "{answers:?}");
        let answer = answers.pop()?;
        let payload = answer.strip_prefix(r#"{"session_id":"","type":"mcp","payload":"#).expect("an envelope");
        Some(payload.strip_suffix('}').expect("whole").to_owned())
    }

    fn check(payload: &str, expected: &str) {
        assert_eq!(answer(&mut board(), payload).as_deref(), Some(expected), "{payload}");
    }

    fn call(name: &str, arguments: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
        )
    }

    #[test]
    fn hello_is_that_of_firmware_to_the_byte() {
        let audio = r#""audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}"#;
        let hello =
            format!(r#"{{"type":"hello","version":1,"features":{{"mcp":true}},"transport":"websocket",{audio}}}"#);
        assert_eq!(board().hello(), hello);
    }

    #[test]
    fn initialize_and_lists_are_those_of_firmware_to_the_byte() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2099-01-01"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"bread-compact-wifi","version":"2.0.0"}}}"#,
        );
        let volume = r#"{"name":"self.audio_speaker.set_volume","description":"Set it.","inputSchema":{"type":"object","properties":{"volume":{"type":"integer","minimum":0,"maximum":100}},"required":["volume"]}}"#;
        let say = r#"{"name":"self.say","description":"Say","inputSchema":{"type":"object","properties":{"text":{"type":"string","default":"hi"},"loud":{"type":"boolean"}},"required":["loud"]}}"#;
        let reboot = r#"{"name":"self.reboot","description":"Restart","inputSchema":{"type":"object","properties":{}},"annotations":{"audience":["user"]}}"#;
        check(
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
            &format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"tools":[{volume},{say}]}}}}"#),
        );
        check(
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"self.say","withUserTools":true}}"#,
            &format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"tools":[{say},{reboot}]}}}}"#),
        );
    }

    #[test]
    fn errors_have_no_code_and_no_escapes() {
        let error = |message: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"error":{{"message":"{message}"}}}}"#);
        for (payload, message) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#.to_owned(), "Method not implemented: ping"),
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#.to_owned(), "Missing params"),
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}"#.to_owned(), "Missing name"),
            (call("self.say", "[]"), "Invalid arguments"),
            (call("self.say", "null"), "Invalid arguments"),
            (call("a \\\"b\\\"", "{}"), "Unknown tool: a \"b\""),
            (call("self.say", "{}"), "Missing valid argument: loud"),
            (call("self.audio_speaker.set_volume", r#"{"volume":"5"}"#), "Missing valid argument: volume"),
            (call("self.audio_speaker.set_volume", r#"{"volume":-1}"#), "Value is below minimum allowed: 0"),
            (call("self.audio_speaker.set_volume", r#"{"volume":101}"#), "Value exceeds maximum allowed: 100"),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"x"}}"#.to_owned(),
                "Failed to add tool  because of payload size limit",
            ),
        ] {
            check(&payload, &error(message));
        }
    }

    #[test]
    fn what_firmware_cannot_read_gets_no_answer() {
        for payload in [
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
            r#"{"jsonrpc":"2.0","id":"1","method":"initialize"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"initialize"}"#,
            r#"{"jsonrpc":"2.0","method":"initialize"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}"#,
            r#""text""#,
        ] {
            assert_eq!(answer(&mut board(), payload), None, "{payload}");
        }
        assert!(board().handle_text(Duration::ZERO, r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#).is_empty());
    }

    #[test]
    fn ids_and_numbers_are_cut_to_32_bits_and_wrong_options_are_ignored() {
        for (id, echoed) in [("3.9", "3"), ("-2", "-2"), ("1e12", "2147483647")] {
            let payload = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            let answer = answer(&mut board(), &payload).expect("an answer");
            assert!(answer.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{echoed},"error""#)), "{answer}");
        }
        let text = r#"{\"tool\":\"self.audio_speaker.set_volume\",\"arguments\":{\"volume\":3}}"#;
        let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}"#);
        check(
            &call("self.audio_speaker.set_volume", r#"{"volume":3.7,"more":1}"#),
            &format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#),
        );
        let answer = answer(&mut board(), &call("self.say", r#"{"text":5,"loud":true}"#)).expect("an answer");
        assert!(answer.contains(r#"{\"text\":\"hi\",\"loud\":true}"#), "{answer}");
    }

    #[test]
    fn pages_hold_8000_bytes_and_the_cursor_is_the_next_name() {
        let tool = |index: usize| {
            json!({"name": format!("self.tool_{index:02}"), "description": "d".repeat(400),
                "inputSchema": {"type": "object", "properties": {}}})
        };
        let tools: Vec<Value> = (0..40).map(tool).collect();
        let mut board = Blueprint::read("many", &tools).expect("fine").build();
        let (mut cursor, mut pages, mut listed) = (String::new(), 0, 0);
        loop {
            let params = json!({"cursor": cursor});
            let payload = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}).to_string();
            let answer: Value = serde_json::from_str(&answer(&mut board, &payload).expect("a page")).expect("JSON");
            let page = &answer["result"];
            assert!(page.to_string().len() <= 8000, "{}", page.to_string().len());
            (pages, listed) = (pages + 1, listed + page["tools"].as_array().map_or(0, Vec::len));
            match page["nextCursor"].as_str() {
                Some(next) => {
                    assert_eq!(next, format!("self.tool_{listed:02}"));
                    next.clone_into(&mut cursor);
                }
                None => break,
            }
        }
        assert_eq!((pages, listed), (3, 40));
    }

    #[test]
    fn what_firmware_cannot_declare_is_refused() {
        let tool = json!({"name": "a", "inputSchema": {"properties": {"x": {"type": "array"}}}});
        assert!(Blueprint::read("b", &[tool]).expect_err("an array").contains("array"));
        assert!(Blueprint::read("b", &[json!({})]).is_err());
    }
}
