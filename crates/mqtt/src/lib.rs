//! MQTT packets as bytes, without IO: [`server`] for a gateway that boards connect to, [`client`] for brokers and for
//! boards. Both speak versions 3.1.1 and 5. No other crate knows the codec library.

#![warn(unreachable_pub)]

pub mod client;
pub mod server;

use mqtt_protocol_core::mqtt::packet::GenericPacketTrait;
use mqtt_protocol_core::mqtt::result_code::MqttError;

/// The versions that are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 3.1.1.
    V3,
    V5,
}

/// A limit as the library has it.
fn clamp(limit: usize) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}

/// Appends a packet. Nothing is appended if it cannot be written, which only a text longer than 64 KiB could cause.
fn put<P: GenericPacketTrait>(packet: Result<P, MqttError>, out: &mut Vec<u8>) {
    match packet {
        Ok(packet) => out.extend_from_slice(&packet.to_continuous_buffer()),
        Err(error) => tracing::warn!(?error, "an MQTT packet could not be written"),
    }
}
