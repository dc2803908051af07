//! The listener for boards that speak MQTT: Sinew is the other end itself, not a client of a broker.
//!
//! Real firmware connects, publishes to one topic and never subscribes; what is meant for it is pushed.
//! That is all of MQTT that is served: no messages from one client to another, no retained ones, no
//! wills. Sound comes to a UDP port beside the listener. That of relayed conversations is passed on, the rest is counted and
//! dropped.
//!
//! - `link`: the connection of an admitted board

mod link;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sinew_mqtt::Version;
use sinew_mqtt::server::{ClientPacket, ClientReader, ConnectRefusal, ConnectRequest, ReadProblem, ServerWriter};
use sinew_tool::DeviceInfo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio_util::sync::CancellationToken;

use self::link::Terms;
use crate::hub;
use crate::hub::{AdmittedBoard, BoardHub, Boards};
use crate::identity::{self, BoardIdentity};
use crate::pipe::{self, Pipe};
use crate::roster::{Registration, RegistrationError};
use crate::stream::BoardStream;

pub(crate) use self::link::Link;

/// CONNECT is read before anybody is trusted; firmware's has some 300 bytes.
const CONNECT_BYTES: usize = 4096;
/// Larger than any packet of sound; what does not fit is cut, and then dropped.
const SOUND_BYTES: usize = 2048;

/// Admits boards until `shutdown`; returns when the last of them has left. `sound` is the socket whose
/// port boards are told for their audio.
pub async fn run(
    listener: TcpListener,
    sound: UdpSocket,
    boards: Boards,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let hub = boards.hub;
    let sound = hub.sounds.socket.get_or_init(|| Arc::new(sound)).clone();
    let receiving = shutdown.run_until_cancelled(receive_sound(&sound, &hub));
    let admitting =
        hub::admit_all(listener, hub.clone(), shutdown.clone(), |tcp, address, hub, handshake| async move {
            let identifying = tokio::time::timeout(hub.config.limits.handshake_time, identify(tcp, address, &hub));
            let met = handshake.evicted.run_until_cancelled(identifying).await;
            met.unwrap_or_else(|| Ok(Err(hub::evicted_error())))?
        });
    let (_, ()) = tokio::join!(receiving, admitting);
    Ok(())
}

/// A board that is not relayed may talk all the same, and must not find a closed port.
async fn receive_sound(sound: &UdpSocket, hub: &BoardHub) {
    let mut room = [0; SOUND_BYTES];
    loop {
        match sound.recv_from(&mut room).await {
            Ok((count, from)) => {
                if !hub.sounds.receive(&room[..count], from) {
                    hub.sound_packets.fetch_add(1, Ordering::Relaxed);
                }
            }
            // Where a board's port is closed, the system reports it here.
            Err(error) => {
                tracing::debug!(%error, "sound could not be received");
                tokio::time::sleep(hub::ACCEPT_PAUSE).await;
            }
        }
    }
}

/// From the first byte to an admitted board.
async fn identify(tcp: TcpStream, address: SocketAddr, hub: &Arc<BoardHub>) -> io::Result<Option<AdmittedBoard>> {
    let mut stream = hub.encrypt(tcp).await?;
    let mut reader = ClientReader::new(CONNECT_BYTES);
    let mut room = [0; CONNECT_BYTES];
    let (connect, early) = loop {
        let count = stream.read(&mut room).await?;
        if count == 0 {
            return Ok(None);
        }
        let mut bytes = &room[..count];
        match reader.read(&mut bytes) {
            Ok(Some(ClientPacket::Connect(connect))) => break (connect, bytes.to_vec()),
            Ok(Some(_)) => return Err(io::Error::other("the first packet is not CONNECT")),
            Ok(None) => {}
            Err(ReadProblem::Version) => {
                let why = "only MQTT 3.1.1 and 5 are spoken here";
                refuse(stream, Version::V3, ConnectRefusal::Version, why).await?;
                return Err(io::Error::other(why));
            }
            Err(problem) => return Err(io::Error::other(format!("no MQTT client: {problem:?}"))),
        }
    };
    match admit(&connect, address, hub) {
        Ok((info, registration)) => {
            let hardware_id = registration.key.strip_prefix(identity::BOARD).unwrap_or(&registration.key);
            let terms = Terms {
                version: connect.version,
                topic: topic(hardware_id),
                // MQTT's own measure of a client that is gone.
                silence_limit: (connect.keep_alive > 0).then(|| Duration::from_secs(connect.keep_alive.into()) * 3 / 2),
                packet_bytes: connect.packet_bytes,
                message_bytes: hub.config.limits.message_bytes,
                unsent_bytes: pipe::unsent_bytes(&hub.config.limits),
            };
            let pipe = Pipe::Mqtt(Box::new(Link::new(stream, reader, terms, &early)));
            Ok(Some(AdmittedBoard { pipe, info, registration }))
        }
        Err((refusal, why)) => {
            refuse(stream, connect.version, refusal, &why).await?;
            Ok(None)
        }
    }
}

fn admit(
    connect: &ConnectRequest,
    address: SocketAddr,
    hub: &Arc<BoardHub>,
) -> Result<(DeviceInfo, Registration), (ConnectRefusal, String)> {
    let Some(newcomer) = newcomer(connect) else {
        let why = "the client id must be the board's MAC address, or GROUP@@@MAC@@@UUID".to_owned();
        tracing::warn!(%address, "a board was refused over MQTT: {why}");
        return Err((ConnectRefusal::ClientId, why));
    };
    let key = identity::key(&newcomer.hardware_id);
    let Some(admission) = hub.config.admit.admit(newcomer.token(), &key) else {
        hub.refuse(&key, address);
        return Err((ConnectRefusal::Credentials, identity::wrong_token(&newcomer)));
    };
    let registration = hub.register(&key, &admission).map_err(|refused| {
        let refusal = match refused {
            RegistrationError::Full | RegistrationError::Closing => ConnectRefusal::Full,
            RegistrationError::TooOften => ConnectRefusal::TooOften,
            RegistrationError::Revoked => ConnectRefusal::Credentials,
        };
        (refusal, refused.reason(&hub.config.limits))
    })?;
    Ok((newcomer.to_info("mqtt", address, admission), registration))
}

async fn refuse(mut stream: BoardStream, version: Version, refusal: ConnectRefusal, why: &str) -> io::Result<()> {
    let mut out = Vec::new();
    ServerWriter { version }.refuse(refusal, why, &mut out);
    stream.write_all(&out).await?;
    stream.shutdown().await
}

/// Who the client says it is: `GROUP@@@aa_bb_cc_dd_ee_ff@@@uuid` as firmware is told by its servers, or
/// the hardware id alone.
fn newcomer(connect: &ConnectRequest) -> Option<BoardIdentity> {
    let mut parts = connect.client_id.trim().split("@@@");
    let (first, second, third) = (parts.next()?, parts.next(), parts.next());
    let hardware_id = identity::hardware_id(second.unwrap_or(first))?;
    let client_id = third.filter(|id| !id.is_empty()).map(str::to_owned);
    Some(BoardIdentity::new(hardware_id, client_id, connect.password.clone()))
}

/// Where a board's messages go: the topic that servers of this firmware use.
pub(crate) fn topic(hardware_id: &str) -> String {
    let plain: String = hardware_id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("devices/p2p/{plain}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(client_id: &str) -> Option<String> {
        let (client_id, password) = (client_id.to_owned(), None);
        let connect = ConnectRequest { version: Version::V3, client_id, password, keep_alive: 0, packet_bytes: None };
        newcomer(&connect).map(|newcomer| newcomer.hardware_id)
    }

    #[test]
    fn a_client_id_names_the_hardware() {
        let mac = Some("aa:bb:cc:dd:ee:ff".to_owned());
        for id in ["GID_x@@@AA_bb_cc_dd_ee_ff@@@7b9f", "g@@@aa_bb_cc_dd_ee_ff", "aa:bb:cc:dd:ee:ff", "AABBCCDDEEFF"] {
            assert_eq!(who(id), mac, "{id}");
        }
        assert_eq!(who("kitchen_sensor"), Some("kitchen_sensor".to_owned()));
        for wrong in ["", "g@@@", "a b", &"x".repeat(65), "ä"] {
            assert_eq!(who(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_topic_holds_nothing_that_means_something_in_topics() {
        assert_eq!(topic("aa:bb:01"), "devices/p2p/aa_bb_01");
        assert_eq!(topic("a/+#"), "devices/p2p/a___");
    }
}
