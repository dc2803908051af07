//! The listeners for boards: which boards are admitted, what the bootstrap answers, and under which address.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use sinew_boards::{
    AdvertisedAddress, BoardLimits, Boards, Bootstrap, HubConfig, OfferedTransport, Pictures, VoiceRelay,
};
use sinew_gateway::Gateway;
use tokio::net::{TcpListener, UdpSocket};
use tokio_util::sync::CancellationToken;

/// The MQTT listener and the UDP port for sound.
pub struct MqttSockets {
    pub listener: TcpListener,
    pub sound: UdpSocket,
}

/// The settings of the board listeners.
pub struct BoardsPlan {
    pub offer: OfferedTransport,
    pub pictures: Pictures,
    pub relay: Option<VoiceRelay>,
    pub user_tools: bool,
    pub limits: BoardLimits,
    pub tls: Option<Arc<rustls::ServerConfig>>,
    pub reach: AdvertisedAddress,
}

/// The boards of a gateway.
pub fn boards(gateway: &Gateway, plan: BoardsPlan) -> io::Result<Boards> {
    Boards::new(HubConfig {
        pictures: Some(plan.pictures),
        bootstrap: Some(Bootstrap { enrol: Arc::new(gateway.clone()), offer: plan.offer }),
        relay: plan.relay,
        user_tools: plan.user_tools,
        limits: plan.limits,
        tls: plan.tls,
        reach: Some(plan.reach),
        ..HubConfig::new(Arc::new(gateway.clone()), gateway.announce())
    })
}

/// Ends the connections of boards whose token is revoked or expires.
pub async fn end_revoked(gateway: Gateway, boards: Boards, shutdown: CancellationToken) -> io::Result<()> {
    let tokens = gateway.tokens();
    let mut revocations = tokens.revocations();
    let end = async {
        while revocations.changed().await.is_ok() {
            boards.keep_admitted(&tokens.valid());
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = tokens.watch_expiry() => {}
        () = end => {}
    }
    Ok(())
}

/// The address that boards use if none is configured: that of a listener they can reach, or of this machine on the
/// default route.
pub fn guess_host(addresses: &[SocketAddr]) -> IpAddr {
    let open = addresses.iter().map(SocketAddr::ip).find(|ip| !ip.is_loopback());
    match open {
        Some(ip) if ip.is_unspecified() => outward_address().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        Some(ip) => ip,
        None => addresses.first().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), SocketAddr::ip),
    }
}

/// Our address on the default route. Nothing is sent: connecting a UDP socket only selects the route.
fn outward_address() -> Option<IpAddr> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address that is reserved for documentation, and so certainly beyond the default route.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_unspecified())
}

/// The one address a board must know.
pub fn ota_url(reach: &AdvertisedAddress, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    let AdvertisedAddress { host, http, .. } = reach;
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    format!("{scheme}://{host}:{http}/xiaozhi/ota/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_that_of_a_listener_boards_can_reach() {
        let guess = |addresses: &[&str]| {
            let addresses: Vec<SocketAddr> = addresses.iter().map(|text| text.parse().expect("an address")).collect();
            guess_host(&addresses).to_string()
        };
        assert_eq!(guess(&["127.0.0.1:7301"]), "127.0.0.1");
        assert_eq!(guess(&["127.0.0.1:7301", "192.168.1.5:7302"]), "192.168.1.5");
        assert_ne!(guess(&["0.0.0.0:7301"]), "0.0.0.0");
    }

    #[test]
    fn the_one_address_works_for_both_kinds_of_hosts() {
        let reach = |host: &str| AdvertisedAddress { host: host.to_owned(), http: 7301, mqtt: None, sound: None };
        assert_eq!(ota_url(&reach("192.168.1.5"), false), "http://192.168.1.5:7301/xiaozhi/ota/");
        assert_eq!(ota_url(&reach("fd00::1"), true), "https://[fd00::1]:7301/xiaozhi/ota/");
    }
}
