//! Multicast DNS, as far as it is needed to find MCP servers: questions, and the records of answers.
//!
//! Foreign bytes: names point to earlier names, lengths lie. Names and records are bounded, and a pointer only ever
//! leads towards the beginning of a packet.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sinew_tool::text::clean_line;

/// What MCP servers announce themselves as.
const SERVICE: [&str; 3] = ["_mcp", "_tcp", "local"];
/// Servers of one search; a home has a few.
const MAX_SERVERS: usize = 64;
/// Records of one packet that are read.
const MAX_RECORDS: usize = 256;
/// Addresses of one host.
const MAX_ADDRESSES: usize = 8;
/// The longest name that DNS allows.
const MAX_NAME_BYTES: usize = 255;
/// One text of a record has no more.
const MAX_PATH_BYTES: usize = 255;

const A: u16 = 1;
const PTR: u16 = 12;
const TXT: u16 = 16;
const AAAA: u16 = 28;
const SRV: u16 = 33;
/// The class of the internet. Its highest bit marks records that only one machine has, and questions whose answer should
/// come to the asker alone.
const INTERNET: u16 = 1;

/// The labels of a name, in lower case but for what people read.
type DnsName = Vec<String>;

/// What answers said so far.
#[derive(Debug, Default)]
pub struct MdnsAnswers {
    instances: BTreeSet<DnsName>,
    services: BTreeMap<DnsName, (DnsName, u16)>,
    paths: BTreeMap<DnsName, String>,
    addresses: BTreeMap<DnsName, Vec<IpAddr>>,
}

/// A server as it announces itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announced {
    pub name: String,
    pub addresses: Vec<IpAddr>,
    pub port: u16,
    pub path: String,
}

/// A packet that is broken off or points nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenPacket;

/// The question for all MCP servers.
pub fn question() -> Vec<u8> {
    write_questions(&[(SERVICE.map(str::to_owned).to_vec(), PTR)])
}

fn write_questions(questions: &[(DnsName, u16)]) -> Vec<u8> {
    let count = u16::try_from(questions.len()).unwrap_or(u16::MAX);
    let mut packet = Vec::new();
    for number in [0, 0, count, 0, 0, 0] {
        packet.extend(number.to_be_bytes());
    }
    for (name, kind) in questions.iter().take(count.into()) {
        for label in name {
            let bytes = &label.as_bytes()[..label.len().min(63)];
            packet.push(bytes.len() as u8);
            packet.extend(bytes);
        }
        packet.push(0);
        packet.extend(kind.to_be_bytes());
        packet.extend(INTERNET.to_be_bytes());
    }
    packet
}

impl MdnsAnswers {
    /// Takes what a packet says about MCP servers.
    pub fn read(&mut self, packet: &[u8]) -> Result<(), BrokenPacket> {
        let mut reader = PacketReader { packet, at: 2 };
        let is_answer = reader.number()? & 0x8000 != 0;
        let [questions, answers, authorities, more] =
            [reader.number()?, reader.number()?, reader.number()?, reader.number()?];
        if !is_answer {
            return Ok(());
        }
        for _ in 0..usize::from(questions).min(MAX_RECORDS) {
            reader.name()?;
            reader.skip(4)?;
        }
        let records = usize::from(answers) + usize::from(authorities) + usize::from(more);
        for _ in 0..records.min(MAX_RECORDS) {
            self.read_record(&mut reader)?;
        }
        Ok(())
    }

    fn read_record(&mut self, reader: &mut PacketReader<'_>) -> Result<(), BrokenPacket> {
        let name = reader.name()?;
        let (kind, class) = (reader.number()?, reader.number()? & !0x8000);
        reader.skip(4)?;
        let length = usize::from(reader.number()?);
        let start = reader.at;
        let data = reader.skip(length)?;
        if class != INTERNET {
            return Ok(());
        }
        let mut inner = PacketReader { packet: reader.packet, at: start };
        match kind {
            PTR if is_service(&name) && self.instances.len() < MAX_SERVERS => {
                self.instances.insert(inner.name()?);
            }
            SRV if self.services.len() < MAX_SERVERS => {
                inner.skip(4)?;
                let port = inner.number()?;
                self.services.insert(name, (lower(inner.name()?), port));
            }
            TXT if self.paths.len() < MAX_SERVERS => {
                if let Some(path) = read_path(data) {
                    self.paths.insert(name, path);
                }
            }
            A | AAAA => {
                let address = match data.len() {
                    4 => <[u8; 4]>::try_from(data).ok().map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes))),
                    16 => <[u8; 16]>::try_from(data).ok().map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes))),
                    _ => None,
                };
                let has_room = self.addresses.len() < MAX_SERVERS;
                let known = self.addresses.entry(lower(name));
                if let (Some(address), true) = (address, has_room) {
                    let known = known.or_default();
                    if known.len() < MAX_ADDRESSES && !known.contains(&address) {
                        known.push(address);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What is still to be asked about the servers that were named; `None` where all is known.
    pub fn further_question(&self) -> Option<Vec<u8>> {
        let mut questions = Vec::new();
        for instance in &self.instances {
            match self.services.get(instance) {
                None => questions.extend([(instance.clone(), SRV), (instance.clone(), TXT)]),
                Some((host, _)) if !self.addresses.contains_key(host) => questions.push((host.clone(), A)),
                Some(_) => {}
            }
        }
        (!questions.is_empty()).then(|| write_questions(&questions))
    }

    /// The servers of which everything is known.
    pub fn servers(&self) -> Vec<Announced> {
        let complete = |instance: &DnsName| {
            let (host, port) = self.services.get(instance)?;
            Some(Announced {
                name: clean_line(instance.first()?, 63),
                addresses: self.addresses.get(host)?.clone(),
                port: *port,
                path: self.paths.get(instance).cloned().unwrap_or_else(|| "/mcp".to_owned()),
            })
        };
        self.instances
            .iter()
            .filter_map(complete)
            .filter(|server| server.port != 0 && !server.name.is_empty())
            .collect()
    }
}

fn lower(name: DnsName) -> DnsName {
    name.into_iter().map(|label| label.to_ascii_lowercase()).collect()
}

fn is_service(name: &DnsName) -> bool {
    name.len() == SERVICE.len() && name.iter().zip(SERVICE).all(|(label, wanted)| label.eq_ignore_ascii_case(wanted))
}

/// `path=/mcp` among the texts of a record. Anything else than a plain path is not taken.
fn read_path(mut data: &[u8]) -> Option<String> {
    while let Some((length, rest)) = data.split_first() {
        let (text, rest) = rest.split_at_checked(usize::from(*length))?;
        if text.len() > 5 && text[..5].eq_ignore_ascii_case(b"path=") {
            let path = std::str::from_utf8(&text[5..]).ok()?;
            let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
            return (path.len() <= MAX_PATH_BYTES && path.bytes().all(is_plain)).then_some(path);
        }
        data = rest;
    }
    None
}

struct PacketReader<'a> {
    packet: &'a [u8],
    at: usize,
}

impl<'a> PacketReader<'a> {
    fn skip(&mut self, count: usize) -> Result<&'a [u8], BrokenPacket> {
        let end = self.at.checked_add(count).ok_or(BrokenPacket)?;
        let bytes = self.packet.get(self.at..end).ok_or(BrokenPacket)?;
        self.at = end;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u16, BrokenPacket> {
        let bytes = self.skip(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn name(&mut self) -> Result<DnsName, BrokenPacket> {
        let mut name = DnsName::new();
        let (mut place, mut length) = (self.at, 0);
        let mut after_pointer = None;
        loop {
            let size = *self.packet.get(place).ok_or(BrokenPacket)?;
            match size {
                0 => {
                    self.at = after_pointer.unwrap_or(place + 1);
                    return Ok(name);
                }
                0xc0.. => {
                    let low = *self.packet.get(place + 1).ok_or(BrokenPacket)?;
                    let target = usize::from(u16::from_be_bytes([size & 0x3f, low]));
                    after_pointer.get_or_insert(place + 2);
                    // Only backwards, so that no circle is possible.
                    if target >= place {
                        return Err(BrokenPacket);
                    }
                    place = target;
                }
                1..=63 => {
                    let bytes = self.packet.get(place + 1..place + 1 + usize::from(size)).ok_or(BrokenPacket)?;
                    length += bytes.len() + 1;
                    if length > MAX_NAME_BYTES {
                        return Err(BrokenPacket);
                    }
                    name.push(String::from_utf8_lossy(bytes).into_owned());
                    place += 1 + usize::from(size);
                }
                _ => return Err(BrokenPacket),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An answer with one record of each kind, names written once and pointed to.
    fn answer(path: &[u8]) -> Vec<u8> {
        let mut packet = vec![0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 3];
        let record = |packet: &mut Vec<u8>, name: &[u8], kind: u16, data: &[u8]| {
            packet.extend(name);
            packet.extend(kind.to_be_bytes());
            packet.extend([0x80, 1, 0, 0, 0, 120]);
            packet.extend((data.len() as u16).to_be_bytes());
            packet.extend(data);
        };
        // At 12: the service. Its record's data, the instance, is at 12 + 17 + 10.
        record(&mut packet, b"\x04_mcp\x04_tcp\x05local\0", PTR, b"\x04Kiln\xc0\x0c");
        record(&mut packet, b"\xc0\x27", SRV, b"\0\0\0\0\x1f\x40\x04kiln\xc0\x16");
        record(&mut packet, b"\xc0\x27", TXT, path);
        record(&mut packet, b"\x04KILN\x05local\0", A, &[192, 168, 1, 9]);
        packet
    }

    fn read(packet: &[u8]) -> MdnsAnswers {
        let mut answers = MdnsAnswers::default();
        answers.read(packet).expect("a whole packet");
        answers
    }

    #[test]
    fn a_server_is_found_with_its_port_and_path() {
        let mut answers = read(&answer(b"\x08txtvers1\x0apath=/mcp2"));
        let kiln = Announced {
            name: "Kiln".to_owned(),
            addresses: vec![IpAddr::from([192, 168, 1, 9])],
            port: 8000,
            path: "/mcp2".to_owned(),
        };
        assert_eq!(answers.servers(), [kiln]);
        assert_eq!(answers.further_question(), None);
        answers.read(&question()).expect("a question of somebody else");
        assert_eq!(answers.servers().len(), 1);
    }

    #[test]
    fn a_path_that_is_none_is_not_taken() {
        for path in [&b"\x0dpath=/a b?x=#"[..], b"\x05path=", b"\xffpath=/x", b""] {
            assert_eq!(read(&answer(path)).servers()[0].path, "/mcp");
        }
        assert_eq!(read(&answer(b"\x08path=mcp")).servers()[0].path, "/mcp");
    }

    #[test]
    fn what_is_missing_is_asked_for() {
        let whole = answer(b"");
        // The first record alone.
        let mut first = whole[..46].to_vec();
        first[11] = 0;
        let further = read(&first).further_question().expect("more to know");
        assert!(further.windows(5).any(|part| part == b"\x04Kiln"));
        assert!(read(&first).servers().is_empty());
    }

    #[test]
    fn names_that_point_in_circles_end() {
        let mut packet = vec![0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        packet.extend(b"\xc0\x0c\0\x0c\0\x01\0\0\0\0\0\0");
        assert_eq!(MdnsAnswers::default().read(&packet), Err(BrokenPacket));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(mut packet in proptest::collection::vec(any::<u8>(), 0..200), cut in 0..150_usize) {
            let _ = MdnsAnswers::default().read(&packet);
            let whole = answer(b"\x0apath=/mcp2");
            packet.splice(0..0, whole[..cut.min(whole.len())].iter().copied());
            let mut answers = MdnsAnswers::default();
            let _ = answers.read(&packet);
            let _ = (answers.servers(), answers.further_question());
        }
    }
}
