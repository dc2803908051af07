//! The console below a path of its own, behind a reverse proxy that ends TLS.

use std::net::SocketAddr;
use std::sync::Mutex;

use http::StatusCode;
use http_body_util::BodyExt;
use sinew_console::ConsoleSettings;
use sinew_tool::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::browser::{Browser, House};

const FOLDER: &str = "/lab/sinew";
const ORIGIN: &str = "https://home.example";

/// Passes on what is below the folder, one request for each connection; everything else gets no answer.
async fn proxy(gateway: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(pass_on(client, gateway));
        }
    });
    address
}

async fn pass_on(mut client: TcpStream, gateway: SocketAddr) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let (first, rest) = head.split_once("\r\n").unwrap();
    let Some((method, path)) = first.split_once(&format!(" {FOLDER}")) else { return };
    let headers: Vec<&str> = rest.lines().filter(|line| !line.is_empty() && !line.starts_with("host:")).collect();
    let forwarded = "x-forwarded-host: home.example\r\nx-forwarded-proto: https\r\nx-forwarded-for: 192.0.2.7";
    let head = format!("{method} {path}\r\nhost: {gateway}\r\n{forwarded}\r\n{}\r\n\r\n", headers.join("\r\n"));
    let mut server = TcpStream::connect(gateway).await.unwrap();
    server.write_all(head.as_bytes()).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}

async fn house() -> (House, Browser) {
    let settings = ConsoleSettings { trusted_proxy: vec!["127.0.0.1".to_owned()], ..ConsoleSettings::default() };
    let house = House::with(settings).await;
    let address = proxy(house.address).await;
    let browser = Browser { address, cookies: Mutex::default(), origin: ORIGIN.to_owned() };
    (house, browser)
}

/// Where a link of a page of the console leads; links that leave the folder lead nowhere.
fn below(link: &str) -> String {
    assert!(!link.starts_with('/') && !link.contains("//") && !link.contains(".."), "{link} leaves the folder");
    format!("{FOLDER}/console/{}", link.trim_start_matches("./"))
}

/// The addresses in a page.
fn links(page: &str) -> impl Iterator<Item = &str> {
    [" href=\"", " src=\"", " action=\""].into_iter().flat_map(move |name| {
        page.split(name).skip(1).filter_map(|rest| rest.split('"').next()).filter(|link| !link.starts_with('#'))
    })
}

#[tokio::test]
async fn it_is_used_below_the_folder_of_a_proxy() {
    let (_house, browser) = house().await;
    let first = browser.send("GET", &format!("{FOLDER}/console/"), &[], "").await;
    assert_eq!(first.status, StatusCode::SEE_OTHER);
    let login = below(first.header("location"));
    let page = browser.send("GET", &login, &[], "").await;
    assert_eq!(page.status, StatusCode::OK);
    let form = [("origin", ORIGIN), ("content-type", "application/x-www-form-urlencoded")];
    let token = format!("token={}", _house.token);
    let entered = browser.send("POST", &login, &form, &token).await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER, "{}", entered.text);
    let cookie = entered.header("set-cookie");
    assert!(cookie.starts_with("__Secure-sinew-443=") && !cookie.contains("Path"), "{cookie}");
    let overview = browser.send("GET", &below(entered.header("location")), &[], "").await;
    assert_eq!(overview.status, StatusCode::OK);
    let mut count = 0;
    for link in links(&page.text).chain(links(&overview.text)) {
        let method = if link == "logout" || link == "login" { continue } else { "GET" };
        let answer = browser.send(method, &below(link), &[], "").await;
        assert_eq!(answer.status, StatusCode::OK, "{link}");
        count += 1;
    }
    assert!(count > 10, "{count} links");
    let own = [("origin", ORIGIN), ("x-sinew", "1"), ("content-type", "application/json")];
    let renamed = browser.send("POST", &below("api/v1/devices/lock/rename"), &own, r#"{"name": "Door"}"#).await;
    assert_eq!((renamed.status, &renamed.json()["name"]), (StatusCode::OK, &json!("Door")));
    let mut stream = browser.open("GET", &below("stream"), &[], "").await.into_body();
    let event = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(event.starts_with(b"event: reset") || event.starts_with(b"id: "), "{event:?}");
}

#[tokio::test]
async fn pages_of_the_gateways_own_address_are_not_those_behind_the_proxy() {
    let (house, browser) = house().await;
    let origin = format!("http://{}", house.address);
    let form = [("origin", origin.as_str()), ("content-type", "application/x-www-form-urlencoded")];
    let token = format!("token={}", house.token);
    let refused = browser.send("POST", &below("login"), &form, &token).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    assert!(refused.text.contains(ORIGIN), "{}", refused.text);
}
