//! A virtual responder of multicast DNS: it announces an MCP server to everybody who asks.

use std::net::Ipv4Addr;

/// A server that announces itself, as ESP-IDF's component does: everything in one packet.
#[derive(Clone, Debug)]
pub struct Announcement {
    pub instance: String,
    pub address: Ipv4Addr,
    pub port: u16,
    pub path: String,
}

impl Announcement {
    /// The answer to a question for `_mcp._tcp.local`.
    pub fn packet(&self) -> Vec<u8> {
        let service = [label("_mcp"), label("_tcp"), label("local"), vec![0]].concat();
        let name = [label(&self.instance), service.clone()].concat();
        let host = [label("board"), label("local"), vec![0]].concat();
        let place = [&[0, 0, 0, 0][..], &self.port.to_be_bytes(), &host].concat();
        [
            // An answer with one record, and three that belong to it.
            vec![0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 3],
            record(&service, 12, &name),
            record(&name, 33, &place),
            record(&name, 16, &label(&format!("path={}", self.path))),
            record(&host, 1, &self.address.octets()),
        ]
        .concat()
    }
}

fn label(text: &str) -> Vec<u8> {
    let bytes = &text.as_bytes()[..text.len().min(63)];
    [&[bytes.len() as u8], bytes].concat()
}

fn record(name: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    // The class of the internet, for one machine alone, to be kept for two minutes.
    let head = [kind.to_be_bytes(), [0x80, 1], [0, 0], [0, 120], (data.len() as u16).to_be_bytes()].concat();
    [name, &head, data].concat()
}
