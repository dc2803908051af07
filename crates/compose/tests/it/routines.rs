//! Many runs at once, on virtual boards over real sockets.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::json;
use sinew_compose::config::{GatewayConfig, MqttAddress};
use sinew_compose::{GatewayServer, Overrides};
use sinew_gateway::{AuditFilter, Principal, Request, Role};
use sinew_sim::board::{self, BoardConfig, BoardKind, hardware_id};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const BOARDS: u32 = 20;
const RUNS: usize = 1_000;

/// Reads the sensors of a board twice.
fn read_twice() -> String {
    let text = sinew_routines::new_from_template("read_twice").replace("{{", "").replace("}}", "");
    let parameter = "| Parameter Name | Type | Required | Description | Example Value |\n|---|---|---|---|---|\n\
                     | `device` | string | Yes | The board. | `kitchen` |";
    let text = text.replace("This tool takes no parameters.", parameter);
    let start = text.find("```yaml\n").expect("steps") + "```yaml\n".len();
    let step = "- call: self.read_sensors\n  device: \"${device}\"\n";
    format!("{}{step}{step}- return: {{status: success}}\n```\n", &text[..start])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_runs_in_parallel_end_and_each_has_its_own_records() {
    let state = tempfile::tempdir().expect("a folder");
    let free = "127.0.0.1:0".parse().expect("an address");
    let mut config = GatewayConfig { listen: free, devices: free, mqtt: MqttAddress::Off, ..GatewayConfig::default() };
    config.phones.enabled = false;
    let flags = Overrides { state: Some(state.path().to_owned()), ..Overrides::default() };
    let server = GatewayServer::open(config.with(&flags).expect("settings")).await.expect("a gateway");
    // The directory may come while the gateway runs.
    let folder = state.path().join("routines");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("read_twice.md"), read_twice()).expect("written");
    let gateway = server.gateway.clone();
    let end = CancellationToken::new();
    for number in 0..BOARDS {
        let url = &server.addresses.devices_url;
        let token = Some(server.addresses.token.clone());
        let config = BoardConfig { token, ..BoardConfig::new(url, hardware_id(number), BoardKind::Relay) };
        tokio::spawn(board::run(config, end.clone()));
    }
    let mut watch = gateway.watch();
    let boards = loop {
        let ready: Vec<_> = gateway.devices().into_iter().filter(|device| device.is_ready()).collect();
        let boards: Vec<String> = ready
            .iter()
            .filter(|device| device.family.name.as_str() == "board")
            .map(|own| own.id.to_string())
            .collect();
        let has_routine = ready.iter().any(|device| device.id.as_str() == "routines" && device.tools > 1);
        if boards.len() == BOARDS as usize && has_routine {
            break boards;
        }
        let waited = tokio::time::timeout(Duration::from_secs(60), watch.next()).await;
        waited.unwrap_or_else(|_| panic!("{} devices are ready", ready.len()));
    };

    let mut calls = JoinSet::new();
    for number in 0..RUNS {
        let args = json!({"device": boards[number % boards.len()]}).as_object().cloned().unwrap_or_default();
        let request = Request::new(Principal::new("tester", Role::Admin), "read_twice", args, "test");
        let gateway = gateway.clone();
        calls.spawn(async move { gateway.call_on("routines", request).await });
    }
    let answers = calls.join_all().await;
    let failed: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    assert!(failed.is_empty(), "{} of {RUNS} failed: {:?}", failed.len(), failed.first());

    let filter = AuditFilter { principal: Some("tester".to_owned()), ..AuditFilter::default() };
    let records = gateway.find_records(filter, 10_000).await.expect("records");
    let mut runs: HashMap<String, usize> = HashMap::new();
    for record in records {
        *runs.entry(record.run.expect("a run")).or_default() += 1;
    }
    assert_eq!(runs.len(), RUNS);
    assert!(runs.values().all(|count| *count == 3), "a run has a record of its own and one of each step");
    end.cancel();
    server.close(std::future::pending()).await;
}
