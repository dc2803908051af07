//! `sinew serve` with the configuration file and the state directory of 0.1.0.

use std::path::Path;

use crate::gateway::TestGateway;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../gateway/tests/data/0.1.0");

#[test]
fn the_configuration_and_the_state_of_0_1_0_are_served() {
    let state = tempfile::tempdir().expect("a folder");
    for file in std::fs::read_dir(Path::new(DATA).join("state")).expect("the old state") {
        let file = file.expect("a file").path();
        std::fs::copy(&file, state.path().join(file.file_name().expect("a name"))).expect("a copy");
    }
    // The lock that the file names is relative to it, and is written to.
    let config = state.path().join("sinew.toml");
    let text = std::fs::read_to_string(Path::new(DATA).join("sinew.toml")).expect("the old configuration");
    std::fs::write(&config, text.replace("state/sinew.lock", "sinew.lock")).expect("a copy");

    let gateway = TestGateway::open("serve", state, &["--config", config.to_str().expect("a plain path")]);
    let devices = gateway.json(&["devices"]);
    let names: Vec<_> = devices["devices"].as_array().expect("devices").iter().map(|device| &device["name"]).collect();
    assert_eq!(names.len(), 8, "{devices:#}");
    assert!(names.iter().any(|name| *name == "Küche (links)"), "{devices:#}");
    // `max-devices`, `user-tools` and so on are read; `spec-tools` can be seen from outside.
    let tools = gateway.json(&["tools"]);
    assert!(tools.to_string().contains("validate_tool_specification"), "{tools:#}");
    assert_eq!(gateway.own_token(), "the-gateways-own-token-in-test-data");
}
