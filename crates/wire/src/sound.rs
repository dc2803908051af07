//! The packets that carry the sound of boards on MQTT, over UDP.
//!
//! A packet is a header of 16 bytes and one encrypted Opus frame: `01 | flags | length, 2 bytes | conversation, 4 | timestamp,
//! 4 | sequence, 4`, in network order. The header is also the first counter block of AES-128-CTR. Nothing proves who sent a
//! packet: whoever can change packets on the way can change the sound.

use aes::Aes128;
use ctr::Ctr128BE;
use ctr::cipher::{KeyIvInit, StreamCipher};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 16;
/// An Opus frame is at most 1,275 bytes, and a packet of several frames still fits into one datagram of a network.
pub const MAX_FRAME_BYTES: usize = 1_400;

const PACKET_TYPE: u8 = 1;

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoundHeader {
    pub length: u16,
    /// Which conversation the packet belongs to.
    pub conversation: u32,
    /// Milliseconds of sound; firmware sends 0, except with echo cancelling on the server.
    pub timestamp: u32,
    /// Counts packets of one direction, from 1.
    pub sequence: u32,
}

impl SoundHeader {
    /// The header of a packet that holds what it announces; `None` for anything else.
    pub fn parse(packet: &[u8]) -> Option<SoundHeader> {
        let (header, frame) = packet.split_at_checked(HEADER_BYTES)?;
        let number = |at: usize| Some(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?));
        let length = u16::from_be_bytes([header[2], header[3]]);
        let fits = header[0] == PACKET_TYPE && usize::from(length) == frame.len() && frame.len() <= MAX_FRAME_BYTES;
        fits.then_some(())?;
        Some(SoundHeader { length, conversation: number(4)?, timestamp: number(8)?, sequence: number(12)? })
    }

    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = PACKET_TYPE;
        bytes[2..4].copy_from_slice(&self.length.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.conversation.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }
}

/// The key of one conversation.
#[derive(Clone, PartialEq, Eq)]
pub struct SoundKey([u8; 16]);

impl SoundKey {
    pub fn new(key: [u8; 16]) -> SoundKey {
        SoundKey(key)
    }

    /// Reads a key as hellos write it: 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<SoundKey> {
        parse_hex(text).map(SoundKey)
    }

    /// As hellos write it.
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }

    /// The frame of a packet, with the header that [`SoundHeader::parse`] read from it.
    pub fn open(&self, packet: &[u8]) -> Option<(SoundHeader, Vec<u8>)> {
        let header = SoundHeader::parse(packet)?;
        let (counter, frame) = packet.split_first_chunk::<HEADER_BYTES>()?;
        let mut frame = frame.to_vec();
        self.apply(counter, &mut frame);
        Some((header, frame))
    }

    /// A packet with this frame; `None` where the frame is too long for one.
    pub fn seal(&self, conversation: u32, timestamp: u32, sequence: u32, frame: &[u8]) -> Option<Vec<u8>> {
        let length = u16::try_from(frame.len()).ok().filter(|_| frame.len() <= MAX_FRAME_BYTES)?;
        let header = SoundHeader { length, conversation, timestamp, sequence }.to_bytes();
        let mut packet = Vec::with_capacity(HEADER_BYTES + frame.len());
        packet.extend(header);
        packet.extend(frame);
        self.apply(&header, &mut packet[HEADER_BYTES..]);
        Some(packet)
    }

    fn apply(&self, counter: &[u8; HEADER_BYTES], frame: &mut [u8]) {
        Ctr128BE::<Aes128>::new(&self.0.into(), &(*counter).into()).apply_keystream(frame);
    }
}

/// The nonce of a hello: the header that a board fills in.
pub fn nonce(conversation: u32) -> String {
    hex(&SoundHeader { length: 0, conversation, timestamp: 0, sequence: 0 }.to_bytes())
}

/// The conversation that a nonce names.
pub fn parse_nonce(text: &str) -> Option<u32> {
    let nonce: [u8; HEADER_BYTES] = parse_hex(text)?;
    Some(u32::from_be_bytes(nonce[4..8].try_into().ok()?))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_survives_the_way_and_is_not_readable_on_it() {
        let key = SoundKey::new([7; 16]);
        let frame = b"one Opus frame of some length that is more than a block".as_slice();
        let packet = key.seal(0xa1b2_c3d4, 60, 3, frame).expect("short enough");
        assert_eq!(&packet[..16], [1, 0, 0, 55, 0xa1, 0xb2, 0xc3, 0xd4, 0, 0, 0, 60, 0, 0, 0, 3]);
        assert_ne!(&packet[16..], frame);
        let header = SoundHeader { length: 55, conversation: 0xa1b2_c3d4, timestamp: 60, sequence: 3 };
        assert_eq!(key.open(&packet), Some((header, frame.to_vec())));
        assert_ne!(SoundKey::new([8; 16]).open(&packet).expect("a packet").1, frame);
    }

    /// The first vector of NIST SP 800-38A, F.5.1, whose counter block does not start with a packet's 1: the cipher alone.
    #[test]
    fn the_cipher_is_the_standard_one() {
        let key = SoundKey::parse("2b7e151628aed2a6abf7158809cf4f3c").expect("a key");
        let counter = parse_hex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff").expect("a block");
        let mut text: [u8; 16] = parse_hex("6bc1bee22e409f96e93d7e117393172a").expect("a block");
        key.apply(&counter, &mut text);
        assert_eq!(hex(&text), "874d6191b620e3261bef6864990db6ce");
    }

    #[test]
    fn what_is_not_a_packet_is_left_out() {
        let packet = SoundKey::new([0; 16]).seal(1, 0, 1, &[5; 40]).expect("short enough");
        for (what, wrong) in [
            ("nothing", Vec::new()),
            ("half a header", packet[..9].to_vec()),
            ("another type", [&[2], &packet[1..]].concat()),
            ("too short", packet[..packet.len() - 1].to_vec()),
            ("too long", [&packet[..], &[0]].concat()),
        ] {
            assert_eq!(SoundHeader::parse(&wrong), None, "{what}");
        }
        assert_eq!(SoundKey::new([0; 16]).seal(1, 0, 1, &[0; MAX_FRAME_BYTES + 1]), None);
    }

    #[test]
    fn a_nonce_names_its_conversation() {
        assert_eq!(nonce(0x0102_0304), "01000000010203040000000000000000");
        assert_eq!(parse_nonce(&nonce(77)), Some(77));
        for wrong in ["", "01", "0100000001020304000000000000000g", "é100000001020304000000000000000"] {
            assert_eq!(parse_nonce(wrong), None, "{wrong}");
        }
        let key = SoundKey::parse("00112233445566778899aabbccddeeff").expect("a key");
        assert_eq!(key.to_hex(), "00112233445566778899aabbccddeeff");
    }
}
