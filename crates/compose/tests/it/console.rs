//! Whether the console is there is a setting.

use sinew_compose::config::{GatewayConfig, MqttAddress};
use sinew_compose::{GatewayServer, Overrides};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn answers(config: &str, paths: &[&str]) -> Vec<String> {
    let state = tempfile::tempdir().expect("a folder");
    let free = "127.0.0.1:0".parse().expect("an address");
    let file = state.path().join("sinew.toml");
    std::fs::write(&file, config).expect("a file");
    let mut config = GatewayConfig::load(&file).expect("a configuration");
    (config.listen, config.devices, config.mqtt, config.phones.enabled) = (free, free, MqttAddress::Off, false);
    let flags = Overrides { state: Some(state.path().to_owned()), ..Overrides::default() };
    let server = GatewayServer::open(config.with(&flags).expect("settings")).await.expect("a gateway");
    let address = server.addresses.url.trim_start_matches("http://").to_owned();
    let mut answers = Vec::new();
    for path in paths {
        let mut socket = TcpStream::connect(&address).await.expect("a connection");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.expect("an answer");
        answers.push(answer);
    }
    server.close(std::future::ready(())).await;
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_console_its_paths_are_like_any_that_do_not_exist() {
    let paths = ["/nothing", "/", "/console", "/console/", "/console/login", "/console/api/v1/devices"];
    let answers = answers("[console]\nenabled = false\n", &paths).await;
    let text = |answer: &str| answer.lines().filter(|line| !line.starts_with("date: ")).collect::<Vec<_>>().join("\n");
    assert!(answers[0].starts_with("HTTP/1.1 401"), "{}", answers[0]);
    for (path, answer) in paths.iter().zip(&answers) {
        assert_eq!(text(answer), text(&answers[0]), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_console_a_browser_is_led_there() {
    let answers = answers("", &["/", "/console/login"]).await;
    assert!(answers[0].starts_with("HTTP/1.1 303") && answers[0].contains("location: console/"), "{}", answers[0]);
    assert!(answers[1].starts_with("HTTP/1.1 200"), "{}", answers[1]);
}
