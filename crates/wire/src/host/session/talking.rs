//! Conversations: who has them, and when they end.
//!
//! Without a voice server a conversation soon ends, because the board would stream its microphone for ever. A voice server
//! ends its conversations itself.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Session, SessionPhase};
use crate::common::Transport;
use crate::host::{Event, Moment, Output};

/// Over MQTT a conversation ends so long after its start: nobody answers speech here, and the microphone would stream on.
/// Firmware needs some time to open it.
const TALK_OVER_MQTT: Duration = Duration::from_secs(3);

impl Session {
    /// Answers the board's hello where no voice server is asked.
    pub fn greet(&mut self, now: Moment) {
        self.now = self.now.max(now);
        self.greet_as_host();
    }

    /// The board has a voice server, so what is said to it becomes neither a notice nor a part of a warning.
    pub fn keep_private(&mut self) {
        self.is_private = true;
    }

    /// A voice server is asked to answer the board's hello.
    pub fn await_server(&mut self) {
        self.keep_private();
        (self.awaits_server, self.talk_ends) = (true, None);
    }

    /// Answers the board's hello for a voice server, which has the conversation from now on. `members` are added to the
    /// hello: `audio_params`, and over MQTT `udp`.
    pub fn greet_for(&mut self, now: Moment, session_id: String, members: &Map<String, Value>) {
        self.now = self.now.max(now);
        self.config.session_id = session_id;
        (self.relayed, self.awaits_server, self.talk_ends) = (true, false, None);
        self.send_hello(members);
    }

    /// Shows a text on the board.
    pub fn show_alert(&mut self, now: Moment, message: &str) {
        self.now = self.now.max(now);
        self.send_alert(message);
    }

    /// The voice server has ended the conversation. A board on a WebSocket should be disconnected then.
    pub fn end_conversation(&mut self, now: Moment) {
        self.now = self.now.max(now);
        self.awaits_server = false;
        if std::mem::take(&mut self.relayed) && self.config.transport == Transport::Udp {
            self.send_goodbye();
        }
    }

    pub(super) fn greet_as_host(&mut self) {
        let audio = json!({"format": "opus", "sample_rate": 24000, "channels": 1, "frame_duration": 60});
        let mut members = Map::from_iter([("audio_params".to_owned(), audio)]);
        if let Some(Value::Object(extra)) = &self.config.hello_extra {
            members.extend(extra.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        (self.relayed, self.awaits_server) = (false, false);
        self.send_hello(&members);
        if self.config.transport == Transport::Udp {
            self.talk();
        }
    }

    fn send_hello(&mut self, members: &Map<String, Value>) {
        let mut hello = Map::new();
        hello.insert("type".to_owned(), json!("hello"));
        hello.insert("transport".to_owned(), json!(self.config.transport.word()));
        hello.insert("session_id".to_owned(), json!(self.config.session_id));
        hello.extend(members.iter().map(|(key, value)| (key.clone(), value.clone())));
        self.out.push_back(Output::Reply(Value::Object(hello).to_string()));
        self.greeted = true;
    }

    /// The board spoke to the voice server.
    pub(super) fn hear_spoken(&mut self, kind: &str, text: &str) {
        if text.len() > self.config.limits.notice_bytes {
            return self.too_large(kind, text.len());
        }
        if kind != "goodbye" {
            return self.say(Output::Event(Event::Spoken(text.to_owned())));
        }
        (self.greeted, self.relayed) = (false, false);
        self.out.push_back(Output::Event(Event::HungUp));
        if self.config.transport == Transport::WebSocket {
            self.end("the board said goodbye".to_owned());
        }
    }

    /// The board said hello over MQTT, or streams its microphone over a WebSocket.
    pub(super) fn talk(&mut self) {
        if self.talk_ends.is_none() && !self.config.bare && !self.relayed && !self.awaits_server {
            let time = match self.config.transport {
                Transport::Udp => TALK_OVER_MQTT,
                Transport::WebSocket => self.config.limits.talk_time,
            };
            self.talk_ends = Some(self.now + time);
        }
    }

    pub(super) fn end_talk(&mut self) {
        if self.talk_ends.take_if(|end| *end <= self.now).is_none() || self.phase == SessionPhase::Closed {
            return;
        }
        if self.config.transport == Transport::WebSocket {
            return self.out.push_back(Output::Event(Event::TalkEnded));
        }
        if !std::mem::replace(&mut self.alerted, true) {
            self.send_alert("There is no voice service here. The tools of this board work.");
        }
        self.send_goodbye();
    }

    fn send_alert(&mut self, message: &str) {
        let alert = json!({"type": "alert", "status": "Sinew", "message": message, "emotion": "neutral"});
        self.out.push_back(Output::Send(alert.to_string()));
    }

    fn send_goodbye(&mut self) {
        let goodbye = json!({"type": "goodbye", "session_id": self.config.session_id});
        self.out.push_back(Output::Send(goodbye.to_string()));
        self.greeted = false;
    }
}
