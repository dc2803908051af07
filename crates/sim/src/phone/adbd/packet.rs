//! adbd's packets: a header of six little-endian words, then the payload.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The most one packet carries; what adb itself offers since Android 7.
pub(super) const MAX_PAYLOAD: u32 = 1024 * 1024;
/// Since this version nobody computes checksums.
pub(super) const VERSION: u32 = 0x0100_0001;

pub(super) const CNXN: u32 = u32::from_le_bytes(*b"CNXN");
pub(super) const OPEN: u32 = u32::from_le_bytes(*b"OPEN");
pub(super) const OKAY: u32 = u32::from_le_bytes(*b"OKAY");
pub(super) const WRTE: u32 = u32::from_le_bytes(*b"WRTE");
pub(super) const CLSE: u32 = u32::from_le_bytes(*b"CLSE");

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AdbPacket {
    pub command: u32,
    pub arg0: u32,
    pub arg1: u32,
    pub data: Vec<u8>,
}

impl AdbPacket {
    pub(super) fn new(command: u32, arg0: u32, arg1: u32, data: impl Into<Vec<u8>>) -> AdbPacket {
        AdbPacket { command, arg0, arg1, data: data.into() }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        // The sum of the bytes, which hosts older than `VERSION` still check.
        let sum = self.data.iter().fold(0u32, |sum, byte| sum.wrapping_add(u32::from(*byte)));
        let words = [self.command, self.arg0, self.arg1, self.data.len() as u32, sum, !self.command];
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        bytes.extend_from_slice(&self.data);
        bytes
    }

    /// The next packet; `None` where the host hung up between two.
    pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<AdbPacket>> {
        let mut header = [0; 24];
        match from.read_exact(&mut header).await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        };
        let word = |index: usize| header.as_chunks::<4>().0.get(index).map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let (command, length) = (word(0), word(3));
        if word(5) != !command {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not an adb packet: its magic does not fit"));
        }
        if length > MAX_PAYLOAD {
            let message = format!("an adb packet of {length} bytes; at most {MAX_PAYLOAD} were agreed on");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let mut data = vec![0; length as usize];
        from.read_exact(&mut data).await?;
        Ok(Some(AdbPacket { command, arg0: word(1), arg1: word(2), data }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_packet_survives_the_wire() {
        let packet = AdbPacket::new(WRTE, 1, 2, b"hello".to_vec());
        let bytes = packet.to_bytes();
        assert_eq!(AdbPacket::read(&mut bytes.as_slice()).await.unwrap(), Some(packet));
        assert_eq!(AdbPacket::read(&mut [].as_slice()).await.unwrap(), None);
    }

    #[tokio::test]
    async fn nonsense_and_greed_are_refused() {
        let mut bytes = AdbPacket::new(WRTE, 1, 2, Vec::new()).to_bytes();
        bytes[20] ^= 1;
        assert!(AdbPacket::read(&mut bytes.as_slice()).await.is_err());
        let mut bytes = AdbPacket::new(WRTE, 1, 2, Vec::new()).to_bytes();
        bytes[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(AdbPacket::read(&mut bytes.as_slice()).await.is_err());
    }
}
