//! Servers that announce themselves by multicast DNS, with a responder of our own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use sinew_fetch::AllowedHosts;
use sinew_servers::{FoundServer, find};
use sinew_sim::mdns::Announcement;
use tokio::net::UdpSocket;

use crate::support::soon;

fn announcement(instance: &str, address: Ipv4Addr, port: u16, path: &str) -> Vec<u8> {
    Announcement { instance: instance.to_owned(), address, port, path: path.to_owned() }.packet()
}

/// Answers every question with these packets.
async fn responder(socket: UdpSocket, packets: Vec<Vec<u8>>) {
    let mut buffer = [0; 1500];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        assert!(buffer[..length].windows(5).any(|part| part == b"\x04_mcp"), "the question names the service");
        for packet in &packets {
            let _ = socket.send_to(packet, from).await;
        }
    }
}

async fn found(packets: Vec<Vec<u8>>, allowed: AllowedHosts) -> Vec<FoundServer> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    let address = socket.local_addr().expect("bound");
    let answering = tokio::spawn(responder(socket, packets));
    let found = soon(find(address, allowed)).await.expect("asked");
    answering.abort();
    found
}

fn shown(servers: &[FoundServer]) -> Vec<(String, String)> {
    servers.iter().map(|server| (server.name.clone(), server.url.to_string())).collect()
}

#[tokio::test]
async fn a_server_that_announces_itself_is_found_with_its_path() {
    let packet = announcement("Big kiln", Ipv4Addr::new(192, 0, 2, 7), 8000, "/tools/mcp");
    let servers = found(vec![packet.clone(), packet, b"nonsense".to_vec()], AllowedHosts::OtherMachines).await;
    assert_eq!(shown(&servers), [("Big kiln".to_owned(), "http://192.0.2.7:8000/tools/mcp".to_owned())]);
}

#[tokio::test]
async fn nothing_that_is_found_leads_to_this_machine() {
    let inward = ["127.0.0.1", "169.254.7.7", "0.0.0.0", "224.0.0.251"];
    let packets =
        inward.iter().map(|address| announcement("trap", address.parse().expect("an address"), 7300, "/mcp/v1"));
    assert_eq!(found(packets.collect(), AllowedHosts::OtherMachines).await, []);
    let packet = announcement("near", Ipv4Addr::LOCALHOST, 7300, "/mcp");
    assert_eq!(found(vec![packet], AllowedHosts::Any).await.len(), 1);
}

#[tokio::test]
async fn a_flood_of_announcements_is_cut() {
    let packets = (0..600)
        .map(|number| announcement(&format!("server {number}"), Ipv4Addr::new(192, 0, 2, 7), 8000 + number, "/mcp"));
    assert!(found(packets.collect(), AllowedHosts::OtherMachines).await.len() <= 64);
}

/// The same through the network's own multicast. Containers often have none, which the test says.
#[tokio::test]
async fn a_server_is_found_by_real_multicast() {
    let group = Ipv4Addr::new(224, 0, 0, 251);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await.expect("a socket");
    let port = socket.local_addr().expect("bound").port();
    if let Err(error) = socket.join_multicast_v4(group, Ipv4Addr::UNSPECIFIED) {
        println!("not tried: this machine has no multicast ({error})");
        return;
    }
    let packet = announcement("kiln", Ipv4Addr::new(192, 0, 2, 7), 80, "/mcp");
    let answering = tokio::spawn(responder(socket, vec![packet]));
    let found = soon(find(SocketAddr::new(IpAddr::V4(group), port), AllowedHosts::OtherMachines)).await;
    answering.abort();
    match found {
        Ok(servers) if servers.is_empty() => println!("not tried: multicast does not come back to this machine"),
        Ok(servers) => assert_eq!(shown(&servers), [("kiln".to_owned(), "http://192.0.2.7/mcp".to_owned())]),
        Err(error) => println!("not tried: this machine has no multicast ({error})"),
    }
}
