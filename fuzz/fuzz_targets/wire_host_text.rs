//! Arbitrary frames into a host session, with calls, cancellations and time between them.
//! Whatever the board says, every call that is not cancelled is answered exactly once.
//!
//! The input is cut at each 0xFF byte; the first byte of a piece says what is done with the rest.
#![no_main]

use std::collections::BTreeMap;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use sinew_wire::Moment;
use sinew_wire::host::{Config, Event, Limits, Output, Session, Ticket};

fuzz_target!(|input: &[u8]| {
    let limits = Limits { frame_bytes: 4096, list_bytes: 4096, pages: 4, tools: 8, queue: 4, ..Limits::default() };
    let mut desk = Desk {
        session: Session::new(Config { session_id: "s".into(), limits, ..Config::default() }, Moment(0)),
        now: Moment(0),
        answers: BTreeMap::new(),
    };
    for piece in input.split(|byte| *byte == 0xff) {
        let Some((deed, rest)) = piece.split_first() else { continue };
        match deed {
            b'c' => {
                let args = Map::from_iter([("x".to_owned(), Value::from(String::from_utf8_lossy(rest)))]);
                let ticket = desk.session.call(desk.now, "tool", &args, Duration::from_secs(30));
                desk.answers.insert(ticket, Some(0));
            }
            b'x' => {
                if let Some((ticket, answers)) = desk.answers.iter_mut().find(|(_, answers)| **answers == Some(0)) {
                    desk.session.cancel(*ticket);
                    *answers = None;
                }
            }
            b't' => {
                desk.now = desk.now + Duration::from_secs(u64::from(rest.first().copied().unwrap_or(1)));
                desk.session.handle_time(desk.now);
            }
            b'r' => desk.session.relist(desk.now),
            b'b' => drop(desk.session.handle_binary(rest)),
            // The way to a ready board is long; this is its last step.
            b'1' | b'2' => {
                let text = format!(r#"{{"type":"mcp","payload":{{"id":{},"result":{{}}}}}}"#, *deed as char);
                desk.session.handle_text(desk.now, &text);
            }
            _ => desk.session.handle_text(desk.now, &String::from_utf8_lossy(piece)),
        }
        desk.drain();
    }
    desk.session.close(desk.now);
    desk.drain();
    assert_eq!(desk.session.poll(), Output::Wait(None));
    for (ticket, answers) in desk.answers {
        assert!(matches!(answers, None | Some(1)), "{ticket:?} has {answers:?} answers");
    }
});

struct Desk {
    session: Session,
    now: Moment,
    /// How often each call was answered; `None` once it is cancelled.
    answers: BTreeMap<Ticket, Option<u32>>,
}

impl Desk {
    fn drain(&mut self) {
        loop {
            match self.session.poll() {
                Output::Wait(_) => return,
                Output::Send(text) | Output::Reply(text) => {
                    assert!(serde_json::from_str::<Value>(&text).is_ok(), "we sent {text}")
                }
                Output::Event(Event::Answered(ticket, _)) => match self.answers.get_mut(&ticket) {
                    Some(Some(answers)) => *answers += 1,
                    _ => panic!("{ticket:?} was cancelled or never given out"),
                },
                Output::Event(_) => {}
            }
        }
    }
}
