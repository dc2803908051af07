//! What nodes say to each other, cut into parts that fit a message of NATS.
//!
//! A packet is a line with its head and a part of the JSON text of a message. Every byte is checked: others may share the
//! server.

use std::collections::{BTreeMap, HashMap, VecDeque};

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use sinew_presence::{Fence, NodeId, Owner, Revision, StoreId};
use sinew_tool::wire_form::CallForm;
use sinew_tool::{Answer, CallOrigin, LogLevel, Outcome, Question, ToolError, Value};

use crate::records::{VERSION, boot_text, parse_boot};

/// Half of what a server takes by default.
const PART_BYTES: usize = 512 << 10;
/// More than the longest call or answer.
const MAX_MESSAGE: usize = 25 << 20;
/// Heads are short.
const MAX_HEAD: usize = 512;
/// Messages that are not complete, of all nodes together, and their bytes. The oldest make room.
const MAX_UNFINISHED: usize = 256;
const MAX_UNFINISHED_BYTES: usize = 256 << 20;

/// A message, and which call it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NodeMessage {
    /// The id that the node which took the call gave it.
    pub(crate) call: String,
    pub(crate) body: MessageBody,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MessageBody {
    Call(Box<ForwardedCall>),
    Cancel,
    /// The answers to a question, or why there are none.
    Answers {
        question: u64,
        answers: Result<BTreeMap<String, Answer>, ToolError>,
    },
    /// A device moved to the sender.
    Evict {
        device: String,
        fence: FenceForm,
    },
    /// Asks whether a call still runs.
    Check,
    /// Reserve a device of the receiver, give it back, or take it away.
    Lease(Box<LeaseWish>),

    Progress {
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    },
    Log {
        level: LogLevel,
        data: Value,
    },
    Ask {
        question: u64,
        questions: BTreeMap<String, Question>,
    },
    TurnAwaited,
    TurnCame,
    /// The call was not run: the device is not held under its fence.
    Refused,
    /// The answer to a check: the call does not run here, and its answer, if there was one, came before.
    Unknown,
    /// The last message of a node that stops. It answered every call that it took, and reads no further ones; what was
    /// sent to it and has no answer was not run. That holds for the time in which nothing it said can have been lost.
    Stopped {
        connected_ms: u64,
    },
    End(Result<Outcome, ToolError>),
    /// The answer to a wish.
    LeaseDone(Result<LeaseGrant, ToolError>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LeaseWish {
    pub(crate) device: String,
    pub(crate) who: CallOrigin,
    pub(crate) what: LeaseAction,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LeaseAction {
    Reserve {
        time_ms: u64,
        wait_ms: u64,
        purpose: String,
        run: Option<String>,
        by_person: bool,
    },
    /// Under this lease, or any of the caller's.
    Release {
        lease: Option<String>,
    },
    Break,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LeaseGrant {
    Reserved { id: String, view: LeaseForm, seconds: u64, unused_seconds: Option<u64> },
    Released(bool),
    Broken(LeaseForm),
}

/// Who has a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LeaseForm {
    pub(crate) holder: String,
    pub(crate) purpose: Option<String>,
    pub(crate) until: i64,
    pub(crate) waiting: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ForwardedCall {
    pub(crate) device: String,
    pub(crate) fence: FenceForm,
    /// Its budget is what is left of the caller's time.
    pub(crate) form: CallForm,
    pub(crate) origin: CallOrigin,
    pub(crate) is_patient: bool,
    pub(crate) repeats_calls: bool,
    pub(crate) is_urgent: bool,
}

/// A fence as text: numbers of 64 bits do not survive every reader of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FenceForm {
    store: String,
    revision: String,
}

impl FenceForm {
    pub(crate) fn of(fence: Fence) -> FenceForm {
        FenceForm { store: format!("{:x}", fence.store.0), revision: format!("{:x}", fence.revision.0) }
    }

    pub(crate) fn fence(&self) -> Option<Fence> {
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        Some(Fence { store: StoreId(number(&self.store)?), revision: Revision(number(&self.revision)?) })
    }
}

#[derive(Serialize, Deserialize)]
struct PacketHead {
    v: u32,
    from: String,
    /// Which run of the sender.
    boot: String,
    /// Distinguishes the messages of a run.
    id: String,
    part: usize,
    parts: usize,
}

/// Cuts a message into packets. `None` where it is too long.
pub(crate) fn packets(from: &Owner, id: &str, message: &NodeMessage) -> Option<Vec<Bytes>> {
    let text = serde_json::to_vec(message).ok().filter(|text| text.len() <= MAX_MESSAGE)?;
    let parts = text.len().div_ceil(PART_BYTES);
    let packet = |(part, piece): (usize, &[u8])| {
        let (node, boot) = (from.node.to_string(), boot_text(from.boot));
        let head = PacketHead { v: VERSION, from: node, boot, id: id.to_owned(), part, parts };
        let head = serde_json::to_vec(&head).ok()?;
        let mut packet = BytesMut::with_capacity(head.len() + 1 + piece.len());
        packet.put_slice(&head);
        packet.put_u8(b'\n');
        packet.put_slice(piece);
        Some(packet.freeze())
    };
    text.chunks(PART_BYTES).enumerate().map(packet).collect()
}

/// Puts packets together again.
#[derive(Default)]
pub(crate) struct Assembly {
    unfinished: HashMap<(Owner, String), Unfinished>,
    /// Oldest first.
    order: VecDeque<(Owner, String)>,
    bytes: usize,
}

struct Unfinished {
    parts: usize,
    received: usize,
    text: Vec<u8>,
}

impl Assembly {
    /// The message that this packet completes, and who sent it. An error is a packet that no node of this version sends.
    pub(crate) fn add(&mut self, packet: &[u8]) -> Result<Option<(Owner, NodeMessage)>, &'static str> {
        let end = packet.iter().take(MAX_HEAD).position(|byte| *byte == b'\n').ok_or("it has no head")?;
        let head: PacketHead = serde_json::from_slice(&packet[..end]).map_err(|_| "its head cannot be read")?;
        if head.v != VERSION {
            return Err("it has another version");
        }
        let sender = NodeId::parse(&head.from).zip(parse_boot(&head.boot));
        let from = sender.map(|(node, boot)| Owner { node, boot }).ok_or("its sender has no valid name")?;
        let piece = &packet[end + 1..];
        if head.parts == 0 || head.parts > MAX_MESSAGE.div_ceil(PART_BYTES) || piece.len() > PART_BYTES {
            return Err("it is too long");
        }
        let key = (from.clone(), head.id);
        if head.part == 0 && head.parts == 1 {
            return read(piece).map(|message| Some((from, message)));
        }
        if head.part == 0 {
            self.forget(&key);
            self.order.push_back(key.clone());
            self.unfinished.insert(key.clone(), Unfinished { parts: head.parts, received: 0, text: Vec::new() });
        }
        // Parts come in order; what lacks one before it is dropped.
        let is_next = |unfinished: &Unfinished| (unfinished.parts, unfinished.received) == (head.parts, head.part);
        let Some(unfinished) = self.unfinished.get_mut(&key).filter(|unfinished| is_next(unfinished)) else {
            self.forget(&key);
            return Err("a part before it is missing");
        };
        unfinished.text.extend_from_slice(piece);
        unfinished.received += 1;
        self.bytes += piece.len();
        if unfinished.received == unfinished.parts {
            let text = std::mem::take(&mut unfinished.text);
            self.bytes -= text.len();
            self.forget(&key);
            return read(&text).map(|message| Some((from, message)));
        }
        while self.order.len() > MAX_UNFINISHED || self.bytes > MAX_UNFINISHED_BYTES {
            let Some(oldest) = self.order.front().cloned() else { break };
            self.forget(&oldest);
        }
        Ok(None)
    }

    fn forget(&mut self, key: &(Owner, String)) {
        if let Some(unfinished) = self.unfinished.remove(key) {
            self.bytes -= unfinished.text.len();
            self.order.retain(|other| other != key);
        }
    }
}

fn read(text: &[u8]) -> Result<NodeMessage, &'static str> {
    serde_json::from_slice(text).map_err(|_| "its text cannot be read")
}

#[cfg(test)]
mod tests {
    use sinew_presence::Boot;
    use sinew_tool::{Content, ErrorKind};

    use super::*;

    fn node() -> Owner {
        Owner { node: NodeId::parse("a").unwrap(), boot: Boot(7) }
    }

    fn message(body: MessageBody) -> NodeMessage {
        NodeMessage { call: "1".to_owned(), body }
    }

    #[test]
    fn a_long_message_travels_in_parts_between_others() {
        let text = "ä".repeat(3 * PART_BYTES / 2);
        let outcome = Outcome { content: vec![Content::Text(text)], ..Outcome::default() };
        let long = message(MessageBody::End(Ok(outcome)));
        let short = message(MessageBody::End(Err(ToolError::new(ErrorKind::Busy, "busy"))));
        let (parts, one) = (packets(&node(), "x", &long).unwrap(), packets(&node(), "y", &short).unwrap());
        assert_eq!((parts.len(), one.len()), (4, 1));
        let mut assembly = Assembly::default();
        for part in &parts[..3] {
            assert_eq!(assembly.add(part), Ok(None));
            assert_eq!(assembly.add(&one[0]), Ok(Some((node(), short.clone()))));
        }
        assert_eq!(assembly.add(&parts[3]), Ok(Some((node(), long))));
        assert!(assembly.unfinished.is_empty() && assembly.order.is_empty() && assembly.bytes == 0);
    }

    #[test]
    fn what_no_node_sends_is_refused_and_forgotten() {
        let mut assembly = Assembly::default();
        let long = message(MessageBody::Log { level: LogLevel::Info, data: "x".repeat(2 * PART_BYTES).into() });
        let parts = packets(&node(), "x", &long).unwrap();
        assert_eq!(assembly.add(&parts[1]), Err("a part before it is missing"));
        assert_eq!(assembly.add(&parts[0]), Ok(None));
        assert_eq!(assembly.add(&parts[2]), Err("a part before it is missing"));
        assert_eq!(assembly.add(&parts[1]), Err("a part before it is missing"));
        for wrong in [
            &b""[..],
            b"{}\n",
            b"no head",
            br#"{"v":9,"from":"a","boot":"7","id":"1","part":0,"parts":1}
{}"#,
            br#"{"v":1,"from":"A B","boot":"7","id":"1","part":0,"parts":1}
{}"#,
            br#"{"v":1,"from":"a","boot":"x","id":"1","part":0,"parts":1}
{"call":"1","body":"refused"}"#,
            br#"{"v":1,"from":"a","boot":"7","id":"1","part":0,"parts":1}
{"call":"1","body":"reboot"}"#,
            br#"{"v":1,"from":"a","boot":"7","id":"1","part":0,"parts":99999999}
{}"#,
        ] {
            assert!(assembly.add(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
        assert!(assembly.unfinished.is_empty() && assembly.bytes == 0);
    }

    #[test]
    fn messages_that_never_end_make_room_for_others() {
        let mut assembly = Assembly::default();
        let long = message(MessageBody::Log { level: LogLevel::Info, data: "x".repeat(PART_BYTES).into() });
        for number in 0..2 * MAX_UNFINISHED {
            let parts = packets(&node(), &number.to_string(), &long).unwrap();
            assert_eq!(assembly.add(&parts[0]), Ok(None));
        }
        assert!(assembly.order.len() <= MAX_UNFINISHED && assembly.bytes <= MAX_UNFINISHED_BYTES);
    }

    #[test]
    fn a_fence_comes_back_as_it_was() {
        let fence = Fence { store: StoreId(u64::MAX), revision: Revision(7) };
        assert_eq!(FenceForm::of(fence).fence(), Some(fence));
    }
}
