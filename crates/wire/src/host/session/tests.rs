//! Single sentences of the dialogue; whole dialogues with a board are in `tests/pair.rs`.

use serde_json::{Value, json};
use sinew_tool::{Notice, Outcome};

use super::*;
use crate::host::{Limits, Ready, Transport, Vision};

const SECOND: u64 = 1_000_000;
const BUDGET: Duration = Duration::from_secs(30);

/// A session whose board is the test itself.
struct Driver {
    session: Session,
    sent: Vec<Value>,
    events: Vec<Event>,
    wake: Option<Moment>,
}

impl Driver {
    fn new(config: Config) -> Driver {
        Driver { session: Session::new(config, Moment(0)), sent: vec![], events: vec![], wake: None }
    }

    fn ready(config: Config) -> Driver {
        let mut driver = Driver::new(config);
        driver.says(json!({"type": "hello", "features": {"mcp": true}}));
        driver.answers(1, json!({"serverInfo": {"name": "lamp", "version": "1.2"}}));
        driver.answers(2, json!({"tools": [{"name": "a"}]}));
        driver.sent.clear();
        driver.events.clear();
        driver
    }

    fn drain(&mut self) {
        loop {
            match self.session.poll() {
                Output::Send(text) | Output::Reply(text) => self.sent.push(serde_json::from_str(&text).unwrap()),
                Output::Event(event) => self.events.push(event),
                Output::Wait(wake) => return self.wake = wake,
            }
        }
    }

    fn text(&mut self, text: &str) {
        self.session.handle_text(self.session.now, text);
        self.drain();
    }

    fn says(&mut self, message: Value) {
        self.text(&message.to_string());
    }

    fn rpc(&mut self, payload: Value) {
        self.says(json!({"type": "mcp", "payload": payload}));
    }

    fn answers(&mut self, id: i64, result: Value) {
        self.rpc(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn refuses(&mut self, id: i64, message: &str) {
        self.rpc(json!({"jsonrpc": "2.0", "id": id, "error": {"message": message}}));
    }

    fn at(&mut self, seconds: u64) {
        self.session.handle_time(Moment(seconds * SECOND));
        self.drain();
    }

    fn call(&mut self, tool: &str) -> Ticket {
        let ticket = self.session.call(self.session.now, tool, &Args::new(), BUDGET);
        self.drain();
        ticket
    }

    fn methods(&mut self) -> Vec<String> {
        let methods = self.sent.drain(..).map(|sent| sent["payload"]["method"].as_str().unwrap_or("-").to_owned());
        methods.collect()
    }

    fn kinds(&mut self) -> Vec<(Ticket, Option<ErrorKind>)> {
        let answer = |event: Event| match event {
            Event::Answered(ticket, answer) => Some((ticket, answer.err().map(|error| error.kind))),
            _ => None,
        };
        self.events.drain(..).filter_map(answer).collect()
    }

    fn tools(&self) -> Option<Vec<&str>> {
        self.events.iter().rev().find_map(|event| match event {
            Event::Ready(Ready { tools, .. }) | Event::ToolsChanged { tools, .. } => {
                Some(tools.iter().map(|tool| tool.name.as_str()).collect())
            }
            _ => None,
        })
    }

    fn warnings(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::Warned(_))).count()
    }

    fn closed(&self) -> Option<&str> {
        self.events.iter().find_map(|event| match event {
            Event::Closed(why) => Some(why.as_str()),
            _ => None,
        })
    }
}

#[test]
fn a_session_is_small() {
    assert!(size_of::<Session>() <= 640, "{} bytes", size_of::<Session>());
}

#[test]
fn our_hello_names_the_transport_and_carries_the_extras() {
    let udp = json!({"udp": {"server": "10.0.0.1", "port": 8888}});
    let mut driver = Driver::new(Config {
        session_id: "s\"1".into(),
        transport: Transport::Udp,
        hello_extra: Some(udp),
        ..Config::default()
    });
    driver.says(json!({"type": "hello", "version": 3, "transport": "udp", "features": {"mcp": "true"}}));
    assert_eq!(
        driver.sent[0],
        json!({
            "type": "hello",
            "transport": "udp",
            "session_id": "s\"1",
            "audio_params": {"format": "opus", "sample_rate": 24000, "channels": 1, "frame_duration": 60},
            "udp": {"server": "10.0.0.1", "port": 8888},
        })
    );
    assert_eq!(driver.sent[1]["session_id"], "s\"1");
    assert!(matches!(&driver.events[0], Event::Hello(hello) if hello.mcp && hello.version == Some(3)));
    assert_eq!(driver.methods(), ["-", "initialize"]);
}

#[test]
fn vision_is_offered_when_configured() {
    let vision = Vision { url: "http://v".into(), token: "t".into() };
    let mut driver = Driver::new(Config { vision: Some(vision), ..Config::default() });
    driver.says(json!({"type": "hello", "features": {"mcp": true}}));
    let params = &driver.sent[1]["payload"]["params"];
    assert_eq!(params["capabilities"], json!({"vision": {"url": "http://v", "token": "t"}}));
    assert_eq!(params["protocolVersion"], "2024-11-05");
}

#[test]
fn a_hello_without_mcp_is_answered_and_not_initialised() {
    let mut driver = Driver::new(Config::default());
    let early = driver.call("a");
    driver.says(json!({"type": "hello", "features": {}}));
    assert_eq!(driver.methods(), ["-"]);
    assert!(driver.events.contains(&Event::NoMcp));
    assert_eq!(driver.kinds(), [(early, Some(ErrorKind::Unsupported))]);
    let late = driver.call("a");
    assert_eq!(driver.kinds(), [(late, Some(ErrorKind::Unsupported))]);

    driver.rpc(json!({"jsonrpc": "2.0", "method": "notifications/awake"}));
    assert_eq!(driver.methods(), ["initialize"]);
    driver.answers(1, json!({}));
    driver.answers(2, json!({"tools": [{"name": "a"}]}));
    assert_eq!(driver.tools(), Some(vec!["a"]));
}

#[test]
fn mcp_before_hello_and_without_session_id_starts_the_same() {
    let mut driver = Driver::new(Config::default());
    driver.text(r#"{"session_id":"","type":"mcp","payload":{"jsonrpc":"2.0","id":10000,"result":{}}}"#);
    assert_eq!(driver.methods(), ["initialize"]);
    driver.says(json!({"type": "hello", "features": {"mcp": true}}));
    assert_eq!(driver.methods(), ["-"]);
    assert_eq!(driver.session.stats().stray_answers, 1);
}

#[test]
fn calls_made_early_wait_for_the_board() {
    let mut driver = Driver::new(Config::default());
    let ticket = driver.call("a");
    assert_eq!(driver.wake, Some(Moment(0) + BUDGET));
    driver.says(json!({"type": "hello", "features": {"mcp": true}}));
    driver.answers(1, json!({"serverInfo": {"name": "lamp", "version": "1.2"}}));
    driver.answers(2, json!({"tools": []}));
    assert_eq!(driver.methods(), ["-", "initialize", "notifications/initialized", "tools/list", "tools/call"]);
    driver.answers(3, json!({"content": []}));
    assert_eq!(driver.events.last(), Some(&Event::Answered(ticket, Ok(Outcome::default()))));
}

#[test]
fn calls_go_out_one_at_a_time_in_order() {
    let mut driver = Driver::ready(Config::default());
    let (first, second) = (driver.call("a"), driver.call("b"));
    assert_eq!(driver.sent.len(), 1);
    assert_eq!(driver.sent[0]["payload"]["params"], json!({"name": "a", "arguments": {}}));
    driver.answers(3, json!({"content": []}));
    assert_eq!(driver.sent[1]["payload"]["id"], 4);
    driver.answers(4, json!({"content": []}));
    assert_eq!(driver.kinds(), [(first, None), (second, None)]);
}

#[test]
fn a_silent_board_costs_one_call_its_budget_and_the_queue_moves_on() {
    let mut driver = Driver::ready(Config::default());
    let (first, second) = (driver.call("a"), driver.call("b"));
    driver.at(20);
    assert_eq!(driver.kinds(), []);
    assert_eq!(driver.wake, Some(Moment(30 * SECOND)));
    let third = driver.call("c");
    driver.at(30);
    // The second waited as long and was never sent; the third has all of its time.
    assert_eq!(driver.kinds(), [(second, Some(ErrorKind::Busy)), (first, Some(ErrorKind::Timeout))]);
    assert_eq!(driver.methods(), ["tools/call", "tools/call"]);
    driver.answers(3, json!({"content": []}));
    driver.answers(4, json!({"content": []}));
    assert_eq!(driver.kinds(), [(third, None)]);
    let stats = driver.session.stats();
    assert_eq!((stats.late_answers, stats.timeouts, stats.calls), (1, 1, 2));
}

#[test]
fn a_call_that_waited_for_another_has_all_of_its_time() {
    let mut driver = Driver::ready(Config::default());
    let first = driver.call("a");
    driver.at(1);
    let second = driver.call("b");
    driver.events.clear();
    driver.at(30);
    assert_eq!(driver.events.last(), Some(&Event::TurnCame(second)));
    driver.at(59);
    assert_eq!(driver.kinds(), [(first, Some(ErrorKind::Timeout))]);
    driver.answers(4, json!({"content": []}));
    assert_eq!(driver.kinds(), [(second, None)]);
    assert_eq!((driver.session.stats().calls, driver.wake), (2, None));
}

#[test]
fn a_provider_that_reports_gets_its_time_anew() {
    let mut driver = Driver::new(Config { bare: true, ..Config::default() });
    driver.session.begin(Moment(0));
    driver.drain();
    driver.says(json!({"jsonrpc": "2.0", "id": 1, "result": {"serverInfo": {"name": "p", "version": "1"}}}));
    driver.says(json!({"jsonrpc": "2.0", "id": 2, "result": {"tools": [{"name": "a"}]}}));
    let ticket = driver.call("a");
    for (second, progress) in [(20, 1), (45, 2), (70, 3)] {
        driver.at(second);
        let params = json!({"progressToken": ticket.0, "progress": progress});
        driver.says(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
    }
    driver.at(99);
    assert_eq!(driver.kinds(), []);
    driver.at(100);
    assert_eq!(driver.kinds(), [(ticket, Some(ErrorKind::Timeout))], "30 s after its last report");
}

#[test]
fn a_doubled_answer_is_counted_not_delivered() {
    let mut driver = Driver::ready(Config::default());
    let ticket = driver.call("a");
    driver.answers(3, json!({"content": []}));
    driver.answers(3, json!({"content": []}));
    assert_eq!(driver.kinds(), [(ticket, None)]);
    assert_eq!(driver.session.stats().duplicate_answers, 1);
}

#[test]
fn a_cancelled_call_gets_no_answer_and_the_queue_moves_on() {
    let mut driver = Driver::ready(Config::default());
    let (first, second, third) = (driver.call("a"), driver.call("b"), driver.call("c"));
    driver.session.cancel(second);
    driver.session.cancel(first);
    driver.session.cancel(first);
    driver.drain();
    assert_eq!(driver.sent.last().unwrap()["payload"]["params"]["name"], "c");
    driver.answers(3, json!({"content": []}));
    driver.answers(4, json!({"content": []}));
    assert_eq!(driver.kinds(), [(third, None)]);
    assert_eq!(driver.session.stats().late_answers, 1);
    assert_eq!(driver.wake, None);
}

#[test]
fn a_full_queue_refuses_at_once() {
    let mut driver = Driver::ready(Config { limits: Limits { queue: 1, ..Limits::default() }, ..Config::default() });
    driver.call("a");
    driver.call("b");
    let third = driver.call("c");
    assert_eq!(driver.kinds(), [(third, Some(ErrorKind::Busy))]);
}

#[test]
fn arguments_beyond_what_a_board_takes_are_refused() {
    let mut driver =
        Driver::ready(Config { limits: Limits { call_bytes: 1000, ..Limits::default() }, ..Config::default() });
    let mut args = Args::new();
    args.insert("x".into(), json!("y".repeat(1000)));
    let ticket = driver.session.call(Moment(0), "a", &args, BUDGET);
    driver.drain();
    assert_eq!(driver.kinds(), [(ticket, Some(ErrorKind::TooLarge))]);
}

#[test]
fn a_board_that_goes_answers_every_caller_at_once() {
    let mut driver = Driver::ready(Config::default());
    let (first, second) = (driver.call("a"), driver.call("b"));
    driver.session.close(Moment(0));
    driver.session.close(Moment(0));
    driver.drain();
    assert_eq!(driver.events.iter().filter(|event| matches!(event, Event::Closed(_))).count(), 1);
    // Only the first was sent, so only of the first it is not known what became of it.
    assert_eq!(driver.kinds(), [(first, Some(ErrorKind::DeviceLost)), (second, Some(ErrorKind::DeviceAway))]);
    let third = driver.call("c");
    assert_eq!(driver.kinds(), [(third, Some(ErrorKind::DeviceAway))]);
    assert_eq!(driver.wake, None);
}

#[test]
fn goodbye_ends_a_websocket_session_and_only_a_conversation_over_mqtt() {
    for (transport, ends) in [(Transport::WebSocket, true), (Transport::Udp, false)] {
        let mut driver = Driver::ready(Config { transport, ..Config::default() });
        driver.says(json!({"type": "goodbye", "session_id": "s"}));
        assert_eq!(driver.events[0], Event::Notified(Notice { topic: "goodbye".into(), body: json!({}) }));
        assert_eq!(driver.closed().is_some(), ends);
    }
}

#[test]
fn other_messages_are_notices_by_their_type() {
    let mut driver = Driver::ready(Config::default());
    driver.says(json!({"session_id": "s", "type": "listen", "state": "start", "mode": "auto"}));
    driver.rpc(json!({"jsonrpc": "2.0", "method": "anything", "params": {"a": 1}}));
    driver.rpc(json!({"jsonrpc": "2.0", "method": "anything", "id": null}));
    let notice = |topic: &str, body: Value| Event::Notified(Notice { topic: topic.into(), body });
    assert_eq!(
        driver.events,
        [
            notice("listen", json!({"state": "start", "mode": "auto"})),
            notice("anything", json!({"a": 1})),
            notice("anything", Value::Null),
        ]
    );
    assert_eq!(driver.session.stats().notices, 3);
}

#[test]
fn a_ping_is_answered_and_any_other_request_is_not_found() {
    let mut driver = Driver::ready(Config::default());
    driver.rpc(json!({"jsonrpc": "2.0", "method": "ping", "id": "x\"1"}));
    driver.rpc(json!({"jsonrpc": "2.0", "method": "sampling/createMessage", "id": 7}));
    assert_eq!(driver.sent[0]["payload"], json!({"jsonrpc": "2.0", "id": "x\"1", "result": {}}));
    assert_eq!(driver.sent[1]["payload"]["error"]["code"], -32601);
    driver.rpc(json!({"jsonrpc": "2.0", "method": "ping", "id": [1]}));
    assert_eq!((driver.sent.len(), driver.warnings()), (2, 1));
}

#[test]
fn list_changed_reads_the_list_again_and_only_a_difference_is_told() {
    let mut driver = Driver::ready(Config::default());
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    driver.rpc(changed.clone());
    // Not at once: the list was read a moment ago.
    assert_eq!(driver.methods(), Vec::<String>::new());
    assert_eq!(driver.wake, Some(Moment(250_000)));
    driver.at(1);
    driver.answers(3, json!({"tools": [{"name": "a"}]}));
    assert_eq!(driver.tools(), None);
    driver.at(2);
    driver.rpc(changed);
    driver.answers(4, json!({"tools": [{"name": "b"}]}));
    assert_eq!(driver.tools(), Some(vec!["b"]));
}

#[test]
fn a_board_that_cries_changed_for_ever_does_not_stop_the_calls() {
    let mut driver = Driver::ready(Config::default());
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    driver.at(1);
    driver.rpc(changed.clone());
    let ticket = driver.call("a");
    driver.rpc(changed);
    driver.answers(3, json!({"tools": [{"name": "a"}]}));
    assert_eq!(driver.methods(), ["tools/list", "tools/call"]);
    driver.answers(4, json!({"content": []}));
    assert_eq!(driver.kinds(), [(ticket, None)]);
}

#[test]
fn an_unknown_tool_makes_us_list_again() {
    let mut driver = Driver::ready(Config::default());
    driver.at(1);
    let ticket = driver.call("a");
    driver.refuses(3, "Unknown tool: a");
    assert_eq!(driver.methods(), ["tools/call", "tools/list"]);
    assert_eq!(driver.kinds(), [(ticket, Some(ErrorKind::ActionFailed))]);
}

#[test]
fn a_second_hello_is_answered_and_lists_again() {
    let mut driver = Driver::ready(Config::default());
    driver.at(1);
    driver.says(json!({"type": "hello", "features": {"mcp": true}}));
    assert_eq!(driver.methods(), ["-", "tools/list"]);
}

#[test]
fn initialize_is_tried_twice_then_the_session_ends() {
    let mut driver = Driver::new(Config::default());
    driver.says(json!({"type": "hello", "features": {"mcp": true}}));
    driver.at(10);
    assert_eq!(driver.methods(), ["-", "initialize", "initialize"]);
    driver.at(20);
    assert!(driver.closed().unwrap().contains("initialize"));
}

#[test]
fn a_board_that_refuses_initialize_may_still_list() {
    let mut driver = Driver::new(Config::default());
    driver.says(json!({"type": "hello", "features": {"mcp": true}}));
    driver.refuses(1, "Method not implemented: initialize");
    driver.answers(2, json!({"tools": [{"name": "a"}]}));
    assert!(
        matches!(driver.events.last(), Some(Event::Ready(ready)) if ready.name.is_empty() && ready.warnings.len() == 1)
    );
}

#[test]
fn a_page_that_fails_keeps_what_was_read() {
    let begin = || {
        let mut driver = Driver::new(Config { user_tools: true, ..Config::default() });
        driver.says(json!({"type": "hello", "features": {"mcp": true}}));
        driver.answers(1, json!({}));
        assert_eq!(driver.sent[3]["payload"]["params"], json!({"cursor": "", "withUserTools": true}));
        driver.answers(2, json!({"tools": [{"name": "a"}], "nextCursor": "b"}));
        assert_eq!(driver.sent[4]["payload"]["params"], json!({"cursor": "b", "withUserTools": true}));
        driver
    };
    let mut refused = begin();
    refused.refuses(3, "Failed to add tool b because of payload size limit");
    let mut silent = begin();
    silent.at(10);
    silent.at(20);
    for driver in [refused, silent] {
        assert_eq!(driver.tools(), Some(vec!["a"]));
        assert!(matches!(driver.events.last(), Some(Event::Ready(ready)) if ready.warnings.len() == 1));
    }
}

#[test]
fn a_board_that_never_lists_is_given_up_and_one_that_refuses_to_is_ready_without_tools() {
    let begin = || {
        let mut driver = Driver::new(Config::default());
        driver.says(json!({"type": "hello", "features": {"mcp": true}}));
        driver.answers(1, json!({}));
        driver
    };
    let mut silent = begin();
    silent.at(10);
    silent.at(20);
    assert!(silent.closed().unwrap().contains("tools/list"));
    let mut refusing = begin();
    refusing.refuses(2, "Failed to add tool a because of payload size limit");
    assert_eq!(refusing.tools(), Some(vec![]));
}

#[test]
fn a_failing_relist_keeps_the_former_list() {
    let mut driver = Driver::ready(Config::default());
    driver.session.relist(Moment(SECOND));
    driver.drain();
    driver.refuses(3, "no");
    assert_eq!((driver.tools(), driver.warnings()), (None, 1));
}

#[test]
fn noise_is_counted_and_warned_about() {
    let mut driver = Driver::ready(Config::default());
    let noise = [
        "",
        "5",
        "[]",
        "{}",
        "nonsense",
        r#"{"type":5}"#,
        r#"{"type":"mcp"}"#,
        r#"{"type":"mcp","payload":5}"#,
        r#"{"id":3}"#,
    ];
    for text in noise {
        driver.text(text);
    }
    driver.text(&format!(r#"{{"type":"listen","x":{}{}}}"#, "[".repeat(5000), "]".repeat(5000)));
    driver.session.handle_binary(&[&[0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1][..], &[0xff]].concat());
    driver.drain();
    assert_eq!(driver.session.stats().garbled_frames, 11);
    // What is not UTF-8 is told too.
    assert_eq!(driver.warnings(), 12);
    assert_eq!(driver.events.len(), 12);
}

#[test]
fn a_broken_answer_ends_its_call_at_once() {
    let mut driver = Driver::ready(Config::default());
    let cut = driver.call("a");
    driver.text(r#"{"session_id":"","type":"mcp","payload":{"jsonrpc":"2.0","id":3,"result":{"content":[{"ty"#);
    let unescaped = driver.call("a");
    driver
        .text(r#"{"type":"mcp","payload":{"jsonrpc":"2.0","id":4,"error":{"message":"Missing valid argument: "x""}}}"#);
    assert_eq!(driver.kinds(), [(cut, Some(ErrorKind::BadAnswer)), (unescaped, Some(ErrorKind::InvalidArguments))]);
    let stats = driver.session.stats();
    assert_eq!((stats.garbled_frames, stats.repaired_frames), (1, 1));
}

#[test]
fn an_answer_that_says_nothing_ends_its_call_at_once() {
    let mut driver = Driver::ready(Config::default());
    let empty = [
        r#"{"type":"mcp","payload":{"jsonrpc":"2.0","id":3}}"#,
        r#"{"type":"mcp","payload":{"jsonrpc":"2.0","id":"4","error":null}}"#,
        r#"{"jsonrpc":"2.0","id":5}"#,
        r#"{"type":"mcp","id":6}"#,
    ];
    for text in empty {
        let ticket = driver.call("a");
        driver.text(r#"{"type":"mcp","payload":{"jsonrpc":"2.0","id":99}}"#);
        assert_eq!(driver.kinds(), []);
        driver.text(text);
        assert_eq!(driver.kinds(), [(ticket, Some(ErrorKind::BadAnswer))]);
    }
    assert_eq!((driver.session.stats().garbled_frames, driver.wake), (8, None));
}

#[test]
fn a_broken_page_is_asked_for_again() {
    let mut driver = Driver::new(Config::default());
    driver.says(json!({"type": "hello", "features": {"mcp": true}}));
    driver.answers(1, json!({}));
    driver.text(r#"{"type":"mcp","payload":{"id":2,"result":{"tools":["#);
    driver.answers(3, json!({"tools": [{"name": "a"}]}));
    assert_eq!(driver.tools(), Some(vec!["a"]));
}

#[test]
fn an_oversized_answer_is_told_as_such() {
    let mut driver =
        Driver::ready(Config { limits: Limits { frame_bytes: 10_000, ..Limits::default() }, ..Config::default() });
    let ticket = driver.call("a");
    driver.answers(3, json!({"content": [{"type": "text", "text": "x".repeat(20_000)}]}));
    assert_eq!(driver.warnings(), 1);
    assert_eq!(driver.kinds(), [(ticket, Some(ErrorKind::TooLarge))]);
    driver.rpc(json!({"jsonrpc": "2.0", "method": "big", "params": "x".repeat(20_000)}));
    assert_eq!(driver.session.stats().oversized_frames, 2);
}

#[test]
fn payloads_as_text_and_messages_without_envelope_are_read() {
    let mut driver = Driver::ready(Config::default());
    let (first, second, third) = (driver.call("a"), driver.call("a"), driver.call("a"));
    driver.says(json!({"type": "mcp", "payload": json!({"id": 3, "result": {"content": []}}).to_string()}));
    driver.says(json!({"jsonrpc": "2.0", "id": "4", "result": {"content": []}, "error": null}));
    driver.text("\u{feff}{\"type\":\"mcp\",\"payload\":{\"id\":5.0,\"result\":null}}\n\0");
    assert_eq!(driver.kinds(), [(first, None), (second, None), (third, None)]);
}

#[test]
fn sound_is_counted_and_json_in_a_binary_frame_is_read() {
    let mut driver = Driver::ready(Config::default());
    driver.session.handle_binary(&[0xf8, 0xff, 0xfe]);
    let json = br#"{"type":"mcp","payload":{"method":"x"}}"#;
    let size = u32::try_from(json.len()).unwrap().to_be_bytes();
    driver.session.handle_binary(&[&[0, 2, 0, 1][..], &[0; 8], &size, json].concat());
    driver.drain();
    assert_eq!(driver.events.len(), 1);
    assert_eq!((driver.session.stats().audio_frames, driver.session.stats().notices), (1, 1));
}

#[test]
fn a_flooding_board_fills_neither_memory_nor_the_log() {
    let mut driver = Driver::ready(Config::default());
    for _ in 0..10_000 {
        driver.session.handle_text(Moment(0), "noise");
        driver.session.handle_text(Moment(0), r#"{"type":"mcp","payload":{"method":"x"}}"#);
        driver.session.handle_text(Moment(0), r#"{"type":"mcp","payload":{"method":"ping","id":1}}"#);
        driver.session.handle_text(Moment(0), r#"{"type":"hello"}"#);
    }
    assert!(driver.session.out.len() < UNPOLLED + 10);
    driver.drain();
    assert_eq!(driver.warnings(), 31);
    assert!(driver.session.stats().dropped > 20_000);
    driver.at(61);
    driver.text("noise");
    assert_eq!(driver.warnings(), 32);
}

#[test]
fn over_mqtt_a_board_is_asked_without_a_hello_and_sessions_have_a_name_only_while_it_talks() {
    let mut driver = Driver::new(Config { session_id: "s".into(), transport: Transport::Udp, ..Config::default() });
    driver.session.begin(Moment(0));
    driver.drain();
    assert_eq!(
        (&driver.sent[0]["session_id"], &driver.sent[0]["payload"]["method"]),
        (&json!(""), &json!("initialize"))
    );
    driver.answers(1, json!({}));
    driver.answers(2, json!({"tools": [{"name": "a"}]}));
    assert_eq!(driver.tools(), Some(vec!["a"]));
    driver.sent.clear();

    driver.says(json!({"type": "hello", "version": 3, "transport": "udp", "features": {"mcp": true}}));
    assert_eq!((&driver.sent[0]["transport"], &driver.sent[0]["session_id"]), (&json!("udp"), &json!("s")));
    driver.at(1);
    driver.answers(3, json!({"tools": [{"name": "a"}]}));
    driver.sent.clear();
    driver.call("a");
    driver.answers(4, json!({"content": []}));
    driver.says(json!({"type": "goodbye", "session_id": "s"}));
    driver.call("a");
    let named: Vec<&Value> = driver.sent.iter().map(|sent| &sent["session_id"]).collect();
    assert_eq!(named, [&json!("s"), &json!("")]);
}

#[test]
fn over_mqtt_a_board_that_leaves_mcp_unanswered_stays_without_it_until_it_speaks() {
    let mut driver = Driver::new(Config { transport: Transport::Udp, ..Config::default() });
    driver.session.begin(Moment(0));
    let early = driver.call("a");
    driver.at(10);
    driver.at(20);
    assert!(driver.events.contains(&Event::NoMcp));
    assert_eq!(driver.kinds(), [(early, Some(ErrorKind::Unsupported))]);
    assert_eq!(driver.wake, None);
    driver.sent.clear();
    driver.says(json!({"type": "hello", "features": {"mcp": true}}));
    driver.answers(3, json!({}));
    driver.answers(4, json!({"tools": [{"name": "a"}]}));
    assert_eq!(driver.tools(), Some(vec!["a"]));
}

#[test]
fn a_provider_is_spoken_to_without_envelope_and_without_hello() {
    let mut driver = Driver::new(Config { bare: true, ..Config::default() });
    driver.session.begin(Moment(0));
    driver.drain();
    assert_eq!((&driver.sent[0]["method"], &driver.sent[0]["id"]), (&json!("initialize"), &json!(1)));
    driver.says(json!({"jsonrpc": "2.0", "id": 1, "result": {"serverInfo": {"name": "p", "version": "1"}}}));
    assert_eq!(driver.sent[1], json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(driver.sent[2], json!({"jsonrpc": "2.0", "method": "tools/list", "params": {}, "id": 2}));
    driver.says(json!({"jsonrpc": "2.0", "id": 2, "result": {"tools": [{"name": "a"}]}}));
    assert!(matches!(&driver.events[..], [Event::Ready(ready)] if ready.name == "p"), "{:?}", driver.events);

    let ticket = driver.session.call(Moment(0), "a", &Args::new(), BUDGET);
    driver.drain();
    let meta = json!({"progressToken": ticket.0});
    let params = json!({"name": "a", "arguments": {}, "_meta": meta});
    assert_eq!(driver.sent[3], json!({"jsonrpc": "2.0", "method": "tools/call", "params": params, "id": 3}));
    driver.events.clear();
    let progress = |token: u64| json!({"progressToken": token, "progress": 1, "total": 2, "message": "half"});
    for token in [ticket.0 + 1, ticket.0] {
        driver.says(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress(token)}));
    }
    let report = Event::Progress { ticket, progress: 1.0, total: Some(2.0), message: Some("half".to_owned()) };
    assert_eq!(driver.events, [report], "only the open call is reported on");
    driver.session.cancel(ticket);
    driver.drain();
    assert_eq!(driver.sent[4]["params"]["requestId"], 3, "it is told that nobody waits");
    driver.says(json!({"jsonrpc": "2.0", "id": "x", "method": "ping"}));
    assert_eq!(driver.sent[5], json!({"jsonrpc": "2.0", "id": "x", "result": {}}));
    // An envelope is no message here, whatever is in it.
    driver.says(json!({"type": "mcp", "payload": {"jsonrpc": "2.0", "id": 1, "method": "ping"}}));
    assert_eq!((driver.sent.len(), driver.session.stats().garbled_frames), (6, 1));
}

// ---- ids ----

#[test]
fn requests_are_numbered_from_the_first_id_on() {
    let mut driver = Driver::new(Config { first_id: 5000, ..Config::default() });
    driver.says(json!({"type": "hello", "features": {"mcp": true}}));
    driver.answers(5000, json!({}));
    driver.answers(5001, json!({"tools": [{"name": "a"}]}));
    let ticket = driver.call("a");
    driver.answers(5002, json!({"content": []}));
    assert_eq!(driver.kinds(), [(ticket, None)]);
}

#[test]
fn a_request_whose_id_was_seen_is_asked_once_more_under_another_and_a_call_never() {
    let seen = |driver: &mut Driver, id: i64| {
        let error = json!({"code": -32600, "message": "duplicate request id in session"});
        driver.rpc(json!({"jsonrpc": "2.0", "id": id, "error": error}));
    };
    let mut driver = Driver::new(Config::default());
    driver.says(json!({"type": "hello", "features": {"mcp": true}}));
    seen(&mut driver, 1);
    driver.answers(1002, json!({}));
    seen(&mut driver, 1003);
    driver.answers(2004, json!({"tools": [{"name": "a"}]}));
    assert_eq!(driver.tools(), Some(vec!["a"]));
    driver.sent.clear();
    // What the board has seen may be a copy of this call, on which it acts: the caller decides.
    let ticket = driver.call("a");
    seen(&mut driver, 2005);
    assert_eq!(driver.sent.len(), 1, "sent once");
    assert_eq!(driver.kinds(), [(ticket, Some(ErrorKind::BadAnswer))]);
    driver.answers(2005, json!({"content": []}));
    assert_eq!(driver.session.stats().duplicate_answers, 1);

    // The next call has an id that the board cannot have seen.
    let ticket = driver.call("a");
    driver.answers(3006, json!({"content": []}));
    assert_eq!(driver.kinds(), [(ticket, None)]);
}

#[test]
fn a_board_that_lists_no_tools_is_a_reason_to_warn() {
    let mut driver = Driver::new(Config::default());
    driver.says(json!({"type": "hello", "features": {"mcp": true}}));
    driver.answers(1, json!({}));
    driver.answers(2, json!({"tools": []}));
    let warned = |event: &Event| matches!(event, Event::Ready(ready) if ready.warnings.len() == 1);
    assert!(driver.events.iter().any(warned), "{:?}", driver.events);
}

// ---- conversations ----

#[test]
fn a_conversation_over_mqtt_is_ended_with_its_name_and_one_alert() {
    let mut driver =
        Driver::new(Config { session_id: "s9".to_owned(), transport: Transport::Udp, ..Config::default() });
    driver.session.begin(Moment(0));
    driver.drain();
    driver.answers(1, json!({}));
    driver.answers(2, json!({"tools": [{"name": "a"}]}));
    driver.sent.clear();
    for (second, kinds) in [(0, vec!["alert", "goodbye"]), (10, vec!["goodbye"])] {
        driver.at(second);
        driver.says(json!({"type": "hello", "version": 3, "transport": "udp", "features": {"mcp": true}}));
        driver.sent.clear();
        driver.at(second + 2);
        assert!(driver.sent.iter().all(|sent| sent["type"] == "mcp"), "{:?}", driver.sent);
        driver.sent.clear();
        driver.at(second + 3);
        let said: Vec<&Value> = driver.sent.iter().filter(|sent| sent["type"] != "mcp").collect();
        assert_eq!(said.iter().map(|said| said["type"].as_str().unwrap()).collect::<Vec<_>>(), kinds);
        assert_eq!(said.last().unwrap()["session_id"], "s9");
        driver.sent.clear();
    }
}

#[test]
fn a_conversation_that_the_board_ends_is_not_ended_again() {
    let mut driver = Driver::new(Config { transport: Transport::Udp, ..Config::default() });
    driver.says(json!({"type": "hello", "transport": "udp"}));
    driver.says(json!({"type": "goodbye"}));
    driver.sent.clear();
    driver.at(60);
    assert!(driver.sent.is_empty());
}

#[test]
fn a_board_that_streams_over_a_websocket_without_a_call_is_to_be_let_go() {
    let ended = |driver: &Driver| driver.events.contains(&Event::TalkEnded);
    let mut driver = Driver::ready(Config::default());
    driver.at(600);
    assert!(!ended(&driver), "a board that does not talk stays");
    driver.session.handle_binary(&[0; 40]);
    driver.says(json!({"type": "listen", "state": "start"}));
    driver.at(659);
    assert!(!ended(&driver));
    let ticket = driver.call("a");
    driver.answers(3, json!({"content": []}));
    assert_eq!(driver.kinds(), [(ticket, None)]);
    driver.at(718);
    assert!(!ended(&driver), "a call goes on");
    driver.at(719);
    assert!(ended(&driver));
}

#[test]
fn the_time_to_talk_counts_from_the_answer_of_a_call_and_not_from_its_budget() {
    let ended = |driver: &Driver| driver.events.contains(&Event::TalkEnded);
    let mut driver = Driver::ready(Config::default());
    driver.says(json!({"type": "listen", "state": "start"}));
    driver.session.call(driver.session.now, "a", &Args::new(), Duration::from_secs(3_600));
    driver.drain();
    driver.at(100);
    assert!(!ended(&driver), "a call is open");
    driver.answers(3, json!({"content": []}));
    driver.at(159);
    assert!(!ended(&driver));
    driver.at(160);
    assert!(ended(&driver));
}

#[test]
fn a_failure_that_only_speaks_of_duplicates_calls_nothing_twice() {
    let mut driver = Driver::ready(Config::default());
    for (id, error) in [
        (3, json!({"message": "the card was pressed; avoid duplicate presses"})),
        (4, json!({"code": -32000, "message": "duplicate request id"})),
        (5, json!({"code": -32600, "message": "a duplicate idea"})),
    ] {
        driver.sent.clear();
        let ticket = driver.call("a");
        driver.rpc(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        assert_eq!(driver.sent.len(), 1, "{error}");
        assert_eq!(driver.kinds(), [(ticket, Some(ErrorKind::ActionFailed))]);
    }
}

#[test]
fn a_reboot_is_done_when_the_board_goes_away() {
    let mut driver = Driver::ready(Config::default());
    let (reboot, waiting) = (driver.call("self.reboot"), driver.call("a"));
    driver.session.close(Moment(0));
    driver.drain();
    assert_eq!(driver.kinds(), [(reboot, None), (waiting, Some(ErrorKind::DeviceAway))]);
}

#[test]
fn text_that_is_not_utf8_is_read_as_far_as_it_can_be() {
    let mut driver = Driver::ready(Config::default());
    let ticket = driver.call("a");
    let answer = b"{\"type\":\"mcp\",\"payload\":{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"caf\xe9\"}]}}}";
    driver.session.handle_lossy(Moment(0), &String::from_utf8_lossy(answer));
    driver.drain();
    assert_eq!(driver.warnings(), 1);
    assert_eq!(driver.kinds(), [(ticket, None)]);
}

#[test]
fn calls_are_kept_back_while_held_and_refused_as_not_sent_in_time() {
    let mut driver = Driver::ready(Config::default());
    driver.session.hold(Moment(0), true);
    let (expired, sent) = (driver.call("a"), driver.session.call(Moment(0), "a", &Args::new(), 4 * BUDGET));
    driver.at(31);
    assert!(driver.sent.is_empty());
    assert_eq!(driver.kinds(), [(expired, Some(ErrorKind::Busy))]);
    driver.session.hold(Moment(31 * SECOND), false);
    driver.drain();
    driver.answers(3, json!({"content": []}));
    assert_eq!(driver.kinds(), [(sent, None)]);
}
