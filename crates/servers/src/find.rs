//! Looks for MCP servers on the network, by multicast DNS. Nothing that is found is used before somebody approves it.
//!
//! The question is sent from a port of its own, so answers come to it alone and no port has to be shared.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use sinew_fetch::{AllowedHosts, HttpUrl};
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

use crate::mdns::{Announced, MdnsAnswers, question};

/// How long answers are waited for: responders wait up to 120 ms, sleeping Wi-Fi a beacon or two.
const SEARCH_TIME: Duration = Duration::from_millis(900);
/// Then is asked again, and for what is still missing.
const REPEAT_TIME: Duration = Duration::from_millis(350);
/// Packets that are read in one search.
const MAX_PACKETS: usize = 512;
/// The largest packet that is read.
const MAX_PACKET_BYTES: usize = 9000;

/// A server that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundServer {
    /// What it calls itself.
    pub name: String,
    pub url: HttpUrl,
}

/// Asks `group`, and gives the servers that answered and have an address that is `allowed`.
pub async fn find(group: SocketAddr, allowed: AllowedHosts) -> io::Result<Vec<FoundServer>> {
    let here: IpAddr = match group {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((here, 0)).await?;
    let mut answers = MdnsAnswers::default();
    let end = Instant::now() + SEARCH_TIME;
    socket.send_to(&question(), group).await?;
    listen(&socket, &mut answers, Instant::now() + REPEAT_TIME).await;
    let again = answers.further_question().unwrap_or_else(question);
    socket.send_to(&again, group).await?;
    listen(&socket, &mut answers, end).await;
    let mut found = Vec::new();
    for server in answers.servers() {
        found.extend(to_server(&server, allowed));
    }
    Ok(found)
}

async fn listen(socket: &UdpSocket, answers: &mut MdnsAnswers, until: Instant) {
    let mut buffer = vec![0; MAX_PACKET_BYTES];
    for _ in 0..MAX_PACKETS {
        match timeout_at(until, socket.recv_from(&mut buffer)).await {
            Ok(Ok((length, from))) => {
                if answers.read(&buffer[..length]).is_err() {
                    tracing::debug!(%from, "an mDNS answer cannot be read");
                }
            }
            // A port that is closed somewhere is reported to us; others may still answer.
            Ok(Err(_)) => {}
            Err(_) => return,
        }
    }
}

fn to_server(server: &Announced, allowed: AllowedHosts) -> Option<FoundServer> {
    let usable = |address: &&IpAddr| allowed.allows(**address);
    let first_v4 = server.addresses.iter().filter(usable).find(|address| address.is_ipv4());
    let Some(address) = first_v4.or_else(|| server.addresses.iter().find(usable)) else {
        tracing::debug!(server = %server.name, "a server found by mDNS has no address that is allowed");
        return None;
    };
    let place = SocketAddr::new(*address, server.port);
    let url = HttpUrl::parse(&format!("http://{place}{}", server.path)).ok()?;
    Some(FoundServer { name: server.name.clone(), url })
}
