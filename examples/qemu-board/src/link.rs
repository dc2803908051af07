//! Text over a WebSocket.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use embedded_websocket::{
    Client, Error, WebSocket, WebSocketClient, WebSocketOptions, WebSocketReceiveMessageType as Incoming,
    WebSocketSendMessageType as Outgoing,
};
use rand_core::{RngCore, impls};
use smoltcp::wire::IpAddress;

use crate::machine::milliseconds;
use crate::network::{Closed, Network};

/// QEMU's name for the machine it runs on.
const HOST: IpAddress = IpAddress::v4(10, 0, 2, 2);
/// Messages travel in frames of this size, so that none is copied whole.
const FRAME: usize = 1024;
/// The gateway's requests are a few hundred bytes; what is longer ends the connection.
const LONGEST: usize = 16 * 1024;
const HANDSHAKE_MILLISECONDS: u64 = 10_000;

/// Why there is no connection.
pub enum Refusal {
    /// The gateway answered with this status.
    Status(u16),
    Unreachable,
}

pub struct Link<'a> {
    network: &'a mut Network,
    socket: WebSocketClient<Dice>,
    unread: Vec<u8>,
    message: Vec<u8>,
}

impl<'a> Link<'a> {
    pub fn open(network: &'a mut Network, port: u16, id: &str, token: &str) -> Result<Link<'a>, Refusal> {
        network.connect(HOST, port).map_err(|Closed| Refusal::Unreachable)?;
        let mut socket: WebSocketClient<Dice> = WebSocket::<Dice, Client>::new_client(Dice::new());
        let mut buffer = [0; FRAME];
        let host = format!("10.0.2.2:{port}");
        let headers = [
            format!("Authorization: Bearer {token}"),
            "Protocol-Version: 1".into(),
            format!("Device-Id: {id}"),
            format!("Client-Id: {id}"),
        ];
        let headers = headers.each_ref().map(String::as_str);
        let options = WebSocketOptions {
            path: "/xiaozhi/v1/",
            host: &host,
            origin: "",
            sub_protocols: None,
            additional_headers: Some(&headers),
        };
        let (length, key) = socket.client_connect(&options, &mut buffer).map_err(|_| Refusal::Unreachable)?;
        network.write(&buffer[..length]).map_err(|Closed| Refusal::Unreachable)?;

        let mut unread = Vec::new();
        let deadline = milliseconds() + HANDSHAKE_MILLISECONDS;
        while milliseconds() < deadline && unread.len() < LONGEST {
            let length = network.read(&mut buffer).map_err(|Closed| Refusal::Unreachable)?;
            unread.extend_from_slice(&buffer[..length]);
            match socket.client_accept(&key, &unread) {
                Ok((length, _)) => {
                    unread.drain(..length);
                    return Ok(Link { network, socket, unread, message: Vec::new() });
                }
                Err(Error::HttpHeaderIncomplete) => {}
                Err(Error::HttpResponseCodeInvalid(Some(status))) => return Err(Refusal::Status(status)),
                Err(_) => return Err(Refusal::Unreachable),
            }
        }
        Err(Refusal::Unreachable)
    }

    pub fn send(&mut self, text: &str) -> Result<(), Closed> {
        let mut parts = text.as_bytes().chunks(FRAME).peekable();
        while let Some(part) = parts.next() {
            self.write(Outgoing::Text, parts.peek().is_none(), part)?;
        }
        Ok(())
    }

    /// The next message; `None` while none is whole.
    pub fn receive(&mut self) -> Result<Option<String>, Closed> {
        let mut buffer = [0; FRAME];
        let length = self.network.read(&mut buffer)?;
        self.unread.extend_from_slice(&buffer[..length]);
        while !self.unread.is_empty() {
            let read = match self.socket.read(&self.unread, &mut buffer) {
                Ok(read) => read,
                Err(Error::ReadFrameIncomplete) => break,
                Err(_) => return Err(Closed),
            };
            self.unread.drain(..read.len_from);
            let part = &buffer[..read.len_to];
            match read.message_type {
                Incoming::Text => {
                    self.message.extend_from_slice(part);
                    if self.message.len() > LONGEST {
                        return Err(Closed);
                    }
                    if read.end_of_message {
                        let text = String::from_utf8(core::mem::take(&mut self.message));
                        return text.map(Some).map_err(|_| Closed);
                    }
                }
                Incoming::Ping => self.write(Outgoing::Pong, true, &Vec::from(part))?,
                Incoming::CloseMustReply | Incoming::CloseCompleted => return Err(Closed),
                Incoming::Pong | Incoming::Binary => {}
            }
        }
        Ok(None)
    }

    fn write(&mut self, kind: Outgoing, is_last: bool, part: &[u8]) -> Result<(), Closed> {
        // A frame of ours has a header of at most 8 bytes.
        let mut frame = [0; FRAME + 8];
        let length = self.socket.write(kind, is_last, part, &mut frame).map_err(|_| Closed)?;
        self.network.write(&frame[..length])
    }
}

impl Drop for Link<'_> {
    fn drop(&mut self) {
        self.network.close();
    }
}

/// Masks of frames need no secrecy here, only change.
struct Dice(u64);

impl Dice {
    fn new() -> Dice {
        Dice(milliseconds() | 1)
    }
}

impl RngCore for Dice {
    fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn fill_bytes(&mut self, into: &mut [u8]) {
        impls::fill_bytes_via_next(self, into)
    }

    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), rand_core::Error> {
        self.fill_bytes(into);
        Ok(())
    }
}
