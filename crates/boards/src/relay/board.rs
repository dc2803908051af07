//! The board's side of a conversation, in the board's own task.

use sinew_tool::{Device as _, DeviceEvent, DeviceKey, LeaveReason};
use sinew_wire::host::{Hello, Transport};

use super::conversation::{BoardFacts, ConversationStart};
use super::{Conversation, ConversationTask, FromServer, ToServer};
use crate::device::BoardCommand;
use crate::hub::Boards;
use crate::pipe::CloseReason;
use crate::pump::{Ending, Pump};

/// The attribute that shows whether a board is relayed, and what became of its last conversation.
pub(crate) const RELAY: &str = "relay";
/// A relayed board that is not talking.
pub(crate) const IDLE: &str = "idle";
/// A board whose voice goes nowhere, because only others are relayed.
const NOT_CHOSEN: &str = "off; `boards` of [relay] does not name it";

impl Boards {
    /// Has a board show whether it is relayed, because its name or its labels may have changed.
    pub fn check_relayed(&self, board: &DeviceKey) {
        if let Some((_, device)) = self.hub.roster.find(&board.0) {
            device.commands.push(Box::new(BoardCommand::CheckRelayed));
        }
    }
}

impl Pump {
    /// Answers a hello, or has the voice server answer it.
    pub(crate) fn handle_hello(&mut self, hello: Hello) {
        let now = self.now();
        let Some(relay) = self.hub.relay.clone().filter(|_| self.owner_greets) else { return };
        let previous = self.hang_up();
        let info = self.device.info();
        if !relay.is_relayed(&info.key) {
            self.show_relay(NOT_CHOSEN);
            return self.session.greet(now);
        }
        let board = BoardFacts::new(&info, self.pipe.transport());
        let start = ConversationStart { hub: self.hub.clone(), relay, board, hello: hello.body, previous };
        self.conversation = Some(Box::new(Conversation::start(start)));
        self.session.await_server();
        self.show_relay("connecting");
    }

    /// The board said something to its voice server.
    pub(crate) fn pass_to_server(&mut self, what: ToServer) {
        let is_text = !matches!(what, ToServer::Sound(_));
        let Some(conversation) = &self.conversation else { return };
        if !conversation.pass(what) && is_text {
            // Texts must not get lost: what follows would have no meaning.
            drop(self.hang_up());
            self.end_conversation(Err("the voice server does not keep up with the board".to_owned()), true);
        }
    }

    /// The board ended its conversation.
    pub(crate) fn handle_hung_up(&mut self) {
        drop(self.hang_up());
        self.show_idle();
    }

    /// Ends the conversation with the server, if there is one.
    pub(crate) fn hang_up(&mut self) -> Option<ConversationTask> {
        self.conversation.take().and_then(|conversation| conversation.hang_up())
    }

    pub(crate) fn handle_server(&mut self, news: FromServer) {
        let now = self.now();
        match news {
            FromServer::Opened { session_id, members } => {
                if let Some(conversation) = &mut self.conversation {
                    conversation.is_open = true;
                }
                self.session.greet_for(now, session_id, &members);
                self.show_relay("talking");
            }
            FromServer::Text(text) if self.pipe.text_bytes().is_some_and(|most| text.len() > most) => {
                self.warn(format!("a text of the voice server has {} bytes, too many for the board", text.len()));
            }
            FromServer::Text(text) => {
                let sent = self.pipe.send(text);
                self.check_sent(sent);
            }
            FromServer::Sound(frame) => {
                let sent = self.pipe.send_binary(frame);
                self.check_sent(sent);
            }
            FromServer::Ended(ended) => {
                let was_open = self.conversation.take().is_some_and(|conversation| conversation.is_open);
                self.end_conversation(ended, was_open);
            }
        }
    }

    fn end_conversation(&mut self, ended: Result<(), String>, was_open: bool) {
        let now = self.now();
        match ended {
            Ok(()) => self.show_idle(),
            Err(why) => {
                tracing::warn!(board = %self.device.info().key, "conversation ended: {why}");
                self.show_relay(&format!("failed: {why}"));
                if !was_open {
                    self.session.show_alert(now, &format!("No voice: {why}."));
                }
            }
        }
        self.session.end_conversation(now);
        if self.pipe.transport() == Transport::WebSocket {
            // The board is connected only to talk. Calls under way are answered first.
            self.leaves_by = Some(now + self.hub.config.limits.talk);
        }
    }

    /// Whether a board that has nothing to talk about any more is disconnected now.
    pub(crate) fn leave_after_talk(&mut self) {
        let Some(by) = self.leaves_by else { return };
        let is_busy = !self.pending.is_empty() || self.session.is_asking();
        if !is_busy || self.now() >= by {
            let ending = Ending { reason: LeaveReason::Closed, farewell: Some(CloseReason::Normal) };
            self.ending.get_or_insert(ending);
        }
    }

    /// What a board shows after a conversation, during which it may have been renamed.
    fn show_idle(&mut self) {
        let key = self.device.key();
        let is_relayed = self.hub.relay.as_ref().is_some_and(|relay| relay.is_relayed(&key));
        self.show_relay(if is_relayed { IDLE } else { NOT_CHOSEN });
    }

    fn show_relay(&mut self, state: &str) {
        if self.device.set_attribute_if_new(RELAY, state) && self.joined {
            self.announce(DeviceEvent::Changed(self.device.clone()));
        }
    }

    /// Remembers who asked for the call in flight, because photos are for them.
    pub(crate) fn note_asker(&mut self) {
        if self.hub.relay.is_none() {
            return;
        }
        let in_flight = self.session.in_flight();
        let asker = self.pending.iter().find(|pending| Some(pending.ticket) == in_flight);
        self.device.set_asker(asker.map(|pending| &pending.caller).filter(|caller| caller.is_urgent()).cloned());
    }

    /// What a board shows while it does not talk. A conversation goes on, also if the board is not relayed any more.
    pub(crate) fn show_whether_relayed(&mut self) {
        let info = self.device.info();
        let Some(relay) = self.hub.relay.as_ref().filter(|_| self.owner_greets && self.conversation.is_none()) else {
            return;
        };
        let shown = info.attributes.get(RELAY).and_then(|state| state.as_str());
        match (relay.is_relayed(&info.key), shown) {
            (true, None | Some(NOT_CHOSEN)) => {
                self.session.keep_private();
                self.show_relay(IDLE);
            }
            // Before it has joined, the gateway knows neither its name nor its labels.
            (false, _) if self.joined => self.show_relay(NOT_CHOSEN),
            _ => {}
        }
    }
}
