//! MCP servers in the configuration of the real program: from the file to a call, over a restart, and while it changes.

use std::path::Path;

use serde_json::json;

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
