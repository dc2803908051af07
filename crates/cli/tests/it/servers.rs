//! MCP servers in the configuration of the real program: from the file to a call, over a restart, and while it changes.

use std::path::Path;

use serde_json::json;
use sinew_sim::mdns::Announcement;

use crate::gateway::{Process, TestGateway, run, sinew};

fn kiln() -> (Process, String) {
    let folder = std::env::temp_dir();
    let mut kiln =
        Process::start(sinew(&folder).args(["sim", "http-board", "--listen", "127.0.0.1:0", "--output", "json"]));
    let page: serde_json::Value = serde_json::from_str(&kiln.line()).expect("a page");
    let url = page["url"].as_str().expect("an address").to_owned();
    (kiln, url)
}

fn write(path: &Path, text: &str) -> String {
    std::fs::write(path, text).expect("written");
    path.display().to_string()
}

#[test]
fn a_server_of_the_configuration_is_called_keeps_its_name_and_follows_the_file() {
    let (_kiln, url) = kiln();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sinew.toml");
    let listed = format!("[[servers]]\nname = 'kiln'\nurl = '{url}'\n");
    let config = write(&path, &listed);
    let gateway = TestGateway::open("serve", tempfile::tempdir().expect("a folder"), &["--config", &config]);
    let device = gateway.wait_for("kiln", "ready");
    assert_eq!((&device["family"], &device["admitted_by"]), (&json!("server"), &json!("configuration")));
    assert_eq!(gateway.json(&["call", "kiln", "set_target", "celsius=900"])["content"][0]["text"], "900");
    let refused = gateway.run(&["call", "kiln", "set_target", "celsius=5000"]);
    assert!(refused.code != 0 && refused.err.contains("celsius"), "{refused:?}");
    gateway.run(&["devices", "rename", "kiln", "Big kiln"]).ok();

    let TestGateway { state, process, .. } = gateway;
    drop(process);
    let gateway = TestGateway::open("serve", state, &["--config", &config]);
    assert_eq!(gateway.wait_for("kiln", "ready")["name"], "Big kiln");

    // A mistake changes nothing; a server that is gone from the file leaves, and comes back with it.
    write(&path, "[[servers]]\nurl = 'nonsense'\n");
    assert_eq!(gateway.json(&["call", "kiln", "temperature"])["content"][0]["text"], "21");
    write(&path, "# no servers\n");
    gateway.wait_for("kiln", "away");
    write(&path, &listed);
    gateway.wait_for("kiln", "ready");
}

#[test]
fn a_mistake_in_a_server_is_named_before_anything_is_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = write(&folder.path().join("sinew.toml"), "[[servers]]\nurl = 'http://me:s3cr3t@kiln/'\n");
    let refused = run(sinew(folder.path()).args(["config", "check", &config]));
    assert!(
        refused.code != 0 && refused.err.contains("sinew.toml:2") && refused.err.contains("user name"),
        "{refused:?}"
    );
    assert!(!refused.err.contains("s3cr3t"), "{refused:?}");
}

/// A gateway that may call servers on this machine, with a search that asks nobody else.
fn gateway_with(config: &str) -> (TestGateway, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let config = write(&folder.path().join("sinew.toml"), config);
    (TestGateway::open("serve", tempfile::tempdir().expect("a folder"), &["--config", &config]), folder)
}

#[test]
fn a_server_is_added_kept_over_a_restart_and_removed() {
    let (_kiln, url) = kiln();
    let (gateway, folder) = gateway_with("[find]\nmdns = false\ninward = true\n");
    let secret = write(&folder.path().join("secret"), "s3cr3t\n");
    let added = gateway.json(&[
        "servers",
        "add",
        &url,
        "--name",
        "kiln",
        "--label",
        "studio",
        "--poll",
        "5",
        "--bearer-file",
        &secret,
        "--header",
        "X-Key=abc",
    ]);
    assert_eq!((&added["name"], &added["source"], &added["poll_s"]), (&json!("kiln"), &json!("added"), &json!(5)));
    let device = gateway.wait_for("kiln", "ready");
    assert_eq!(device["labels"], json!(["studio"]));
    assert_eq!(gateway.json(&["call", "kiln", "temperature"])["content"][0]["text"], "21");
    let refused = gateway.run(&["servers", "add", &url, "--name", "kiln"]);
    assert!(refused.code != 0 && refused.err.contains("already"), "{refused:?}");
    let listed = gateway.run(&["servers"]).ok().out;
    assert!(listed.contains("kiln") && listed.contains("added") && !listed.contains("s3cr3t"), "{listed}");
    // What the configuration gives cannot be taken by a command.
    let refused = gateway.run(&["devices", "unlabel", "kiln", "studio"]);
    assert!(refused.code != 0 && refused.err.contains("configuration"), "{refused:?}");

    let TestGateway { state, process, .. } = gateway;
    drop(process);
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(state.path().join("servers.json")).expect("it is kept").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    let config = folder.path().join("sinew.toml").display().to_string();
    let gateway = TestGateway::open("serve", state, &["--config", &config]);
    gateway.wait_for("kiln", "ready");
    gateway.run(&["servers", "remove", "kiln"]).ok();
    gateway.wait_for("kiln", "away");
    assert_eq!(gateway.json(&["servers", "list"])["servers"], json!([]));
    let refused = gateway.run(&["servers", "remove", "kiln"]);
    assert!(refused.code != 0 && refused.err.contains("sinew servers"), "{refused:?}");
    let audit = gateway.json(&["audit"]).to_string();
    assert!(audit.contains("remove_server") && !audit.contains("s3cr3t"), "{audit}");
}

#[test]
fn a_server_on_this_machine_is_added_only_where_the_configuration_allows_it() {
    let (_kiln, url) = kiln();
    let (gateway, _folder) = gateway_with("[find]\nmdns = false\n");
    let port = url.rsplit(':').next().expect("a port");
    let own = gateway.url().to_owned();
    for inward in [
        url.clone(),
        own,
        format!("http://localhost:{port}"),
        format!("http://[::1]:{port}"),
        format!("http://[::ffff:127.0.0.1]:{port}"),
        "http://169.254.169.254/latest".to_owned(),
        "http://0.0.0.0:80/".to_owned(),
    ] {
        let refused = gateway.run(&["servers", "add", &inward]);
        assert!(refused.code != 0 && refused.err.contains("[[servers]]"), "{inward}: {refused:?}");
    }
    let program = r#"{"url":"http://a/","command":["sh"]}"#;
    let (status, body) = gateway.http("POST", "/api/v1/servers", Some(&gateway.own_token()), program);
    assert!(status >= 400 && body.contains("command"), "{status} {body}");
    assert_eq!(gateway.json(&["servers"])["servers"], json!([]));
}

/// Announces a server of this machine to everybody who asks.
fn responder(instance: &str, port: u16) -> String {
    let address = std::net::Ipv4Addr::LOCALHOST;
    let announced = Announcement { instance: instance.to_owned(), address, port, path: "/mcp".to_owned() };
    let packet = announced.packet();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = socket.local_addr().expect("bound").to_string();
    std::thread::spawn(move || {
        let mut buffer = [0; 1500];
        while let Ok((_, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&packet, from);
        }
    });
    address
}

#[test]
fn a_server_that_is_found_is_called_only_after_somebody_approved_it() {
    let (_kiln, url) = kiln();
    let port = url.trim_end_matches("/mcp").rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let address = responder("Big \u{202e}Kiln", port);
    let (gateway, _folder) = gateway_with(&format!("[find]\ninward = true\nmdns-address = '{address}'\n"));
    let unknown = gateway.run(&["boards", "approve", "big-kiln"]);
    assert!(unknown.code != 0 && unknown.err.contains("sinew boards"), "{unknown:?}");
    let found = gateway.json(&["boards"])["found"].clone();
    assert_eq!((&found[0]["name"], &found[0]["url"]), (&json!("big-kiln"), &json!(url)));
    let shown = gateway.run(&["boards"]).ok().out;
    assert!(shown.contains("big-kiln") && shown.contains("Nobody checked") && !shown.contains('\u{202e}'), "{shown}");
    assert_eq!(gateway.json(&["servers"])["servers"], json!([]));
    gateway.run(&["boards", "approve", "big-kiln"]).ok();
    gateway.wait_for("big-kiln", "ready");
    assert_eq!(gateway.json(&["call", "big-kiln", "temperature"])["content"][0]["text"], "21");
    assert_eq!(gateway.json(&["boards"])["found"], json!([]));
}

#[test]
fn an_announcement_that_points_inward_is_not_even_shown() {
    let address = responder("trap", 7300);
    let (gateway, _folder) = gateway_with(&format!("[find]\nmdns-address = '{address}'\n"));
    assert_eq!(gateway.json(&["boards"])["found"], json!([]));
    assert_ne!(gateway.run(&["boards", "approve", "trap"]).code, 0);
}
