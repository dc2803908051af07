//! A host session and a device board facing each other in virtual time, with good luck and bad.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use sinew_tool::{Args, Content, ErrorKind, Notice, Outcome, ToolError};
use sinew_wire::Moment;
use sinew_wire::device::{Board, BoardDialect, Property, Reply, ToolSpec};
use sinew_wire::host::{Config, Event, Output, Ready, Session, Ticket, Transport, Vision};

const BUDGET: Duration = Duration::from_secs(30);

// ---- with good luck ----

#[test]
fn a_board_is_ready_after_its_hello_and_answers() {
    for dialect in [BoardDialect::Standard, BoardDialect::Firmware] {
        let mut pair = Pair::new(board(dialect), Luck::good());
        pair.greet();
        pair.settle();
        let ready = pair.ready();
        assert_eq!((ready.name.as_str(), ready.version.as_str()), ("companion", "2.0"));
        assert_eq!((ready.tools.len(), ready.warnings.len()), (5, 0));

        assert_eq!(pair.ask("set_volume", json!({"volume": 30})), Ok(Outcome::text("true")));
        assert_eq!(pair.ask("status", json!({})), Ok(Outcome::json(json!({"volume": 30}))));
        let photo = pair.ask("photo", json!({})).unwrap();
        assert_eq!(photo.content, [Content::image(&[0xff, 0xd8, 0xff, 0xd9], "image/jpeg", None)]);
        assert_eq!(photo.structured, None);
    }
}

#[test]
fn errors_arrive_with_their_kind_and_their_words() {
    for dialect in [BoardDialect::Standard, BoardDialect::Firmware] {
        let mut pair = Pair::new(board(dialect), Luck::good());
        pair.greet();
        let check = |error: Result<Outcome, ToolError>, kind: ErrorKind, words: &str| {
            let error = error.unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.message.contains(words), "{error}");
        };
        check(pair.ask("set_volume", json!({})), ErrorKind::InvalidArguments, "Missing valid argument: volume");
        check(pair.ask("set_volume", json!({"volume": -1})), ErrorKind::InvalidArguments, "below minimum allowed: 0");
        check(
            pair.ask("set_volume", json!({"volume": 101})),
            ErrorKind::InvalidArguments,
            "exceeds maximum allowed: 100",
        );
        check(pair.ask("fail", json!({})), ErrorKind::ActionFailed, r#"the "lens" is dirty"#);
        check(pair.ask("gone", json!({})), ErrorKind::ActionFailed, "Unknown tool: gone");
        let repaired = if dialect == BoardDialect::Firmware { 1 } else { 0 };
        assert_eq!((pair.host.stats().repaired_frames, pair.host.stats().garbled_frames), (repaired, 0));
    }
}

#[test]
fn a_long_tool_list_comes_in_pages() {
    for dialect in [BoardDialect::Standard, BoardDialect::Firmware] {
        let mut board = Board::new("big", "1").speaking(dialect);
        for index in 0..60 {
            board = board.tool(ToolSpec::new(format!("tool_{index}"), "x".repeat(500)), |_| Ok(Reply::from(true)));
        }
        let mut pair = Pair::new(board, Luck::good());
        pair.greet();
        pair.settle();
        let names: Vec<String> = pair.ready().tools.iter().map(|tool| tool.name.clone()).collect();
        assert_eq!(names, (0..60).map(|index| format!("tool_{index}")).collect::<Vec<_>>());
        assert!(pair.sent.iter().filter(|text| text.contains("tools/list")).count() > 3);
    }
}

#[test]
fn a_tool_bigger_than_a_page_costs_the_firmware_the_rest_of_its_list() {
    let check = |dialect: BoardDialect, tools: usize, warnings: usize| {
        let big = ToolSpec::new("big", "x".repeat(9000));
        let mut pair = Pair::new(board(dialect).tool(big, |_| Ok(Reply::from(true))), Luck::good());
        pair.greet();
        pair.settle();
        let ready = pair.ready();
        assert_eq!((ready.tools.len(), ready.warnings.len()), (tools, warnings), "{:?}", ready.warnings);
    };
    check(BoardDialect::Standard, 6, 0);
    check(BoardDialect::Firmware, 5, 1);
}

#[test]
fn user_tools_are_read_when_configured_and_known_as_such() {
    let mut pair = Pair::with(board(BoardDialect::Firmware), Luck::good(), Config { user_tools: true, ..config() });
    pair.greet();
    pair.settle();
    let tools = pair.ready().tools;
    assert_eq!(tools.len(), 6);
    assert_eq!(tools.find("reboot").map(|tool| tool.audience), Some(sinew_tool::Audience::User));
}

#[test]
fn the_board_learns_the_session_and_where_to_send_pictures() {
    let vision = Vision { url: "http://127.0.0.1/vision".into(), token: "secret".into() };
    let mut pair =
        Pair::with(board(BoardDialect::Standard), Luck::good(), Config { vision: Some(vision.clone()), ..config() });
    pair.greet();
    pair.settle();
    assert_eq!((pair.board.session_id(), pair.board.vision()), ("s-1", Some(&vision)));
}

#[test]
fn notices_arrive_and_a_changed_list_is_read_again() {
    let mut pair = Pair::new(board(BoardDialect::Standard), Luck::good());
    pair.greet();
    pair.settle();
    pair.events.clear();
    pair.board_says(|board| board.notify("notifications/state_changed", json!({"newState": "idle"})));
    pair.settle();
    let notice = Notice { topic: "notifications/state_changed".into(), body: json!({"newState": "idle"}) };
    assert_eq!(pair.events, [Event::Notified(notice)]);

    pair.board.remove("fail");
    pair.board_says(|board| board.list_changed());
    pair.settle();
    assert!(matches!(pair.events.last(), Some(Event::ToolsChanged { tools, .. }) if tools.len() == 4));
}

#[test]
fn a_board_over_mqtt_needs_no_hello() {
    let config = Config { transport: Transport::Udp, ..config() };
    let mut pair = Pair::with(board(BoardDialect::Firmware).over(Transport::Udp), Luck::good(), config);
    pair.board_says(|board| board.notify("notifications/awake", Value::Null));
    pair.settle();
    assert_eq!(pair.ready().tools.len(), 5);
    assert_eq!(pair.ask("set_volume", json!({"volume": 3})), Ok(Outcome::text("true")));
}

// ---- with bad luck ----

#[test]
fn the_same_luck_gives_the_same_story() {
    let story = || {
        let mut pair =
            Pair::new(board(BoardDialect::Firmware), Luck { seed: 7, lost: 15, late: 15, garbled: 15, doubled: 15 });
        pair.greet();
        for volume in 0..50 {
            pair.call("set_volume", json!({ "volume": volume }));
        }
        pair.settle();
        (pair.events, pair.sent, pair.now)
    };
    assert_eq!(story(), story());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_on_the_way_every_ticket_is_answered_exactly_once(
        luck in luck(),
        firmware: bool,
        deeds in prop::collection::vec(deed(), 1..60),
    ) {
        let mut pair = Pair::new(board(if firmware { BoardDialect::Firmware } else { BoardDialect::Standard }), luck);
        pair.greet();
        let (mut tickets, mut cancelled) = (Vec::new(), Vec::new());
        for deed in deeds {
            match deed {
                Deed::Call(tool) => tickets.push(pair.call(tool, json!({"volume": 5}))),
                Deed::Cancel(index) => {
                    let ticket = tickets.get(index).copied().filter(|ticket| !pair.answers.contains_key(ticket));
                    if let Some(ticket) = ticket {
                        pair.host.cancel(ticket);
                        cancelled.push(ticket);
                    }
                }
                Deed::Hello => pair.greet(),
                Deed::Relist => pair.host.relist(pair.now),
                Deed::Pass(millis) => pair.pass(Duration::from_millis(millis)),
            }
            pair.drain();
        }
        pair.pass(Duration::from_secs(600));
        pair.host.close(pair.now);
        pair.drain();
        for ticket in tickets {
            let answers = pair.answers.get(&ticket).map_or(0, Vec::len);
            prop_assert_eq!(answers, usize::from(!cancelled.contains(&ticket)), "{:?}", ticket);
        }
        prop_assert_eq!(pair.host.poll(), Output::Wait(None));
    }

    #[test]
    fn no_text_makes_either_end_panic(texts in prop::collection::vec(text(), 0..40)) {
        let mut pair = Pair::new(board(BoardDialect::Firmware), Luck::good());
        pair.greet();
        pair.settle();
        let ticket = pair.call("set_volume", json!({}));
        for text in &texts {
            pair.host.handle_text(pair.now, text);
            pair.host.handle_binary(text.as_bytes());
            let _ = pair.board.handle_text(text);
        }
        pair.host.close(pair.now);
        pair.settle();
        prop_assert_eq!(pair.answers.get(&ticket).map(Vec::len), Some(1));
    }
}

#[derive(Clone, Debug)]
enum Deed {
    Call(&'static str),
    Cancel(usize),
    Hello,
    Relist,
    Pass(u64),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        5 => prop::sample::select(vec!["set_volume", "status", "photo", "fail", "gone"]).prop_map(Deed::Call),
        2 => (0..40usize).prop_map(Deed::Cancel),
        1 => Just(Deed::Hello),
        1 => Just(Deed::Relist),
        3 => (0..20_000u64).prop_map(Deed::Pass),
    ]
}

fn luck() -> impl Strategy<Value = Luck> {
    (any::<u64>(), 0..30u64, 0..30u64, 0..30u64, 0..30u64).prop_map(|(seed, lost, late, garbled, doubled)| Luck {
        seed,
        lost,
        late,
        garbled,
        doubled,
    })
}

/// Text that is nothing, text that is nearly the protocol, and text that is the protocol cut to pieces.
fn text() -> impl Strategy<Value = String> {
    let pieces = vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "null",
        "true",
        "3",
        "1e999",
        "-0",
        "\0",
        "ä",
        " ",
        "\"id\":",
        "\"id\":3",
        "\"type\":\"mcp\"",
        "\"type\":\"hello\"",
        "\"type\":\"goodbye\"",
        "\"payload\":",
        "\"jsonrpc\":\"2.0\"",
        "\"method\":\"tools/call\"",
        "\"method\":\"ping\"",
        "\"params\":",
        "\"result\":",
        "\"error\":",
        "\"message\":\"",
        "\"content\":[",
        "\"image\":\"",
        "\"tools\":[",
        "\"nextCursor\":\"a\"",
    ];
    prop_oneof![
        any::<String>(),
        prop::collection::vec(prop::sample::select(pieces), 0..30).prop_map(|pieces| pieces.concat()),
        (0..200usize).prop_map(|length| {
            let whole =
                r#"{"session_id":"","type":"mcp","payload":{"jsonrpc":"2.0","id":3,"error":{"message":"a "b" c"}}}"#;
            whole.chars().take(length).collect()
        }),
    ]
}

// ---- the pair ----

struct Pair {
    host: Session,
    board: Board,
    now: Moment,
    luck: Luck,
    /// What is under way, by arrival; the number keeps the order of what arrives together.
    wire: BTreeMap<(Moment, u64), (Side, String)>,
    parcels: u64,
    sent: Vec<String>,
    events: Vec<Event>,
    answers: BTreeMap<Ticket, Vec<Result<Outcome, ToolError>>>,
    wake: Option<Moment>,
}

#[derive(Clone, Copy)]
enum Side {
    Host,
    Board,
}

/// Chances in percent, for each text on its way.
#[derive(Clone, Debug)]
struct Luck {
    seed: u64,
    lost: u64,
    late: u64,
    garbled: u64,
    doubled: u64,
}

fn config() -> Config {
    Config { session_id: "s-1".into(), ..Config::default() }
}

fn board(dialect: BoardDialect) -> Board {
    let volume = std::sync::Arc::new(std::sync::atomic::AtomicI64::new(50));
    let heard = volume.clone();
    let ordering = std::sync::atomic::Ordering::Relaxed;
    Board::new("companion", "2.0")
        .speaking(dialect)
        .tool(
            ToolSpec::new("set_volume", "Set the volume").with(Property::integer("volume", 0..=100)),
            move |arguments| {
                volume.store(arguments.integer("volume")?, ordering);
                Ok(Reply::from(true))
            },
        )
        .tool(ToolSpec::new("status", "The state of the board"), move |_| {
            Ok(Reply::from(json!({"volume": heard.load(ordering)})))
        })
        .tool(ToolSpec::new("photo", "Take a photo"), |_| Ok(Reply::jpeg([0xff, 0xd8, 0xff, 0xd9])))
        .tool(ToolSpec::new("fail", "Fail"), |_| Err(r#"the "lens" is dirty"#.to_owned()))
        .tool(ToolSpec::new("theme", "Set the theme").with(Property::text_or("theme", "light")), |arguments| {
            Ok(Reply::from(arguments.text("theme")?))
        })
        .tool(ToolSpec::new("reboot", "Start anew").for_users(), |_| Ok(Reply::from(true)))
}

impl Pair {
    fn new(board: Board, luck: Luck) -> Pair {
        Pair::with(board, luck, config())
    }

    fn with(board: Board, luck: Luck, config: Config) -> Pair {
        Pair {
            host: Session::new(config, Moment(0)),
            board,
            now: Moment(0),
            luck,
            wire: BTreeMap::new(),
            parcels: 0,
            sent: Vec::new(),
            events: Vec::new(),
            answers: BTreeMap::new(),
            wake: None,
        }
    }

    fn greet(&mut self) {
        self.board_says(|board| board.hello());
    }

    fn board_says(&mut self, words: impl FnOnce(&Board) -> String) {
        let text = words(&self.board);
        self.post(Side::Host, text);
    }

    fn call(&mut self, tool: &str, args: Value) -> Ticket {
        let args: Args = args.as_object().cloned().unwrap_or_default();
        let ticket = self.host.call(self.now, tool, &args, BUDGET);
        self.drain();
        ticket
    }

    fn ask(&mut self, tool: &str, args: Value) -> Result<Outcome, ToolError> {
        let ticket = self.call(tool, args);
        self.settle();
        self.answers[&ticket][0].clone()
    }

    fn ready(&self) -> Ready {
        let ready = self.events.iter().find_map(|event| match event {
            Event::Ready(ready) => Some(ready.clone()),
            _ => None,
        });
        ready.unwrap_or_else(|| panic!("the board is not ready: {:?}", self.events))
    }

    /// Until nothing is under way and nobody waits.
    fn settle(&mut self) {
        while self.step(Moment(u64::MAX)) {}
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    /// The next thing to happen, if it happens before the end.
    fn step(&mut self, end: Moment) -> bool {
        self.drain();
        let arrival = self.wire.keys().next().map(|(arrival, _)| *arrival);
        let Some(next) = arrival.into_iter().chain(self.wake).min().filter(|next| *next <= end) else { return false };
        self.now = self.now.max(next);
        if arrival != Some(next) {
            self.host.handle_time(self.now);
        } else if let Some((_, (side, text))) = self.wire.pop_first() {
            match side {
                Side::Host => self.host.handle_text(self.now, &text),
                Side::Board => {
                    if let Some(answer) = self.board.handle_text(&text) {
                        self.post(Side::Host, answer);
                    }
                }
            }
        }
        self.drain();
        true
    }

    fn drain(&mut self) {
        loop {
            match self.host.poll() {
                Output::Send(text) | Output::Reply(text) => {
                    assert!(serde_json::from_str::<Value>(&text).is_ok(), "we never send broken text: {text}");
                    self.sent.push(text.clone());
                    self.post(Side::Board, text);
                }
                Output::Event(Event::Answered(ticket, answer)) => self.answers.entry(ticket).or_default().push(answer),
                Output::Event(event) => self.events.push(event),
                Output::Wait(wake) => return self.wake = wake,
            }
        }
    }

    fn post(&mut self, to: Side, text: String) {
        let copies = if self.luck.strikes(self.luck.doubled) { 2 } else { 1 };
        for _ in 0..copies {
            if self.luck.strikes(self.luck.lost) {
                continue;
            }
            let delay =
                if self.luck.strikes(self.luck.late) { self.luck.draw(60_000_000) } else { self.luck.draw(5_000) };
            let text = if self.luck.strikes(self.luck.garbled) { self.luck.garble(&text) } else { text.clone() };
            self.parcels += 1;
            self.wire.insert((self.now + Duration::from_micros(delay), self.parcels), (to, text));
        }
    }
}

impl Luck {
    fn good() -> Luck {
        Luck { seed: 1, lost: 0, late: 0, garbled: 0, doubled: 0 }
    }

    /// SplitMix64.
    fn draw(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below.max(1)
    }

    fn strikes(&mut self, percent: u64) -> bool {
        percent > 0 && self.draw(100) < percent
    }

    /// Cuts the text short, or changes, adds or takes away a character.
    fn garble(&mut self, text: &str) -> String {
        let mut characters: Vec<char> = text.chars().collect();
        let place = self.draw(characters.len() as u64) as usize;
        let other = ['"', '{', '}', '0', '\\', 'x'][self.draw(6) as usize];
        match self.draw(4) {
            0 => characters.truncate(place),
            1 => characters[place] = other,
            2 => characters.insert(place, other),
            _ => drop(characters.remove(place)),
        }
        characters.into_iter().collect()
    }
}
