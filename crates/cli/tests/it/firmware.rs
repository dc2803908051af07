//! The tools that real firmware declares, served by virtual boards and used through the whole gateway.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};
use sinew_sim::board::{BoardConfig, BoardKind, hardware_id, run};
use sinew_sim::firmware::Blueprint;
use tokio_util::sync::CancellationToken;

use crate::gateway::{TestGateway, sinew};
use crate::stdio::Client;

/// Source file, and the tools it declares. They lie beside the repository, where somebody collected them.
fn declared() -> Option<BTreeMap<String, Vec<Value>>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/fixtures/xiaozhi/78-device-tools-by-source-file.json");
    Some(serde_json::from_str(&std::fs::read_to_string(path).ok()?).expect("JSON"))
}

/// Arguments that fit a schema.
fn arguments(schema: &Value) -> Map<String, Value> {
    let properties = schema["properties"].as_object().expect("properties").iter();
    let fitting = properties.map(|(name, about)| {
        let value = match about["type"].as_str() {
            Some("boolean") => json!(true),
            Some("integer") => about["maximum"].clone(),
            _ => json!("words"),
        };
        (name.clone(), value)
    });
    fitting.collect()
}

/// All tools of the firmware, also those that models see only where they are named.
const FIRMWARE_TESTS: &str = "[gateway]\nuser-tools = true\nharmful-user-tools = ['self.reboot', 'self.upgrade_firmware']\n\
                              [policy]\ndanger = 'allow'\n";

#[test]
fn every_tool_that_real_firmware_declares_is_listed_with_a_legal_name_and_called() {
    let Some(declared) = declared() else { return };
    assert_eq!(declared.values().map(Vec::len).sum::<usize>(), 151);
    let common = Blueprint::read("common", &declared["main/mcp_server.cc"]).expect("fine");
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config.toml");
    std::fs::write(&config, FIRMWARE_TESTS).expect("written");
    let state = tempfile::tempdir().expect("a folder");
    let gateway = TestGateway::open("serve", state, &["--config", config.to_str().expect("UTF-8")]);

    // One board a source file, by turns over WebSocket and MQTT.
    let doors = [gateway.devices_url().to_owned(), gateway.page["mqtt_url"].as_str().expect("a door").to_owned()];
    let (runtime, shutdown) = (tokio::runtime::Runtime::new().expect("a runtime"), CancellationToken::new());
    let mut expected = BTreeMap::new();
    for (index, (file, tools)) in (1u32..).zip(&declared) {
        let name = file.rsplit('/').next().unwrap_or(file);
        let blueprint = Blueprint::read(name, tools).expect("fine").with_common(&common);
        let tools: BTreeSet<String> = blueprint.tools().map(str::to_owned).collect();
        expected.insert(format!("board-{index:06x}"), tools);
        let config = BoardConfig {
            token: Some(gateway.own_token()),
            blueprint: Some(blueprint),
            ..BoardConfig::new(&doors[index as usize % 2], hardware_id(index), BoardKind::Talking)
        };
        runtime.spawn(run(config, shutdown.clone()));
    }
    for id in expected.keys() {
        gateway.wait_for(id, "ready");
    }

    let mut client = Client::start(sinew(gateway.state.path()).args(["stdio", "--unfolded"]));
    let (mut found, mut cursor) = (BTreeMap::<String, BTreeSet<String>>::new(), Value::Null);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        let page = client.ask("tools/list", params);
        for tool in page["tools"].as_array().expect("tools") {
            let name = tool["name"].as_str().expect("a name");
            let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            assert!((1..=64).contains(&name.len()) && name.bytes().all(is_legal), "{name}");
            let Some((device, _)) = name.split_once("__") else { continue };
            let arguments = arguments(&tool["inputSchema"]);
            let result = client.ask("tools/call", json!({"name": name, "arguments": arguments}));
            let said = &result["structuredContent"];
            assert_eq!(said["arguments"], json!(arguments), "{name}: {result}");
            let called = said["tool"].as_str().expect("a tool").to_owned();
            assert!(found.entry(device.to_owned()).or_default().insert(called), "{name} is the only one of its name");
        }
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(found, expected);
    shutdown.cancel();
}
