//! Tool providers that dial in to the real program: another gateway, and what `sinew token` says of them.

use serde_json::json;

use crate::gateway::{Process, TestGateway, sinew};

#[test]
fn a_gateway_that_dials_out_is_a_device_of_the_gateway_it_dials() {
    let (far, near) = (TestGateway::demo(), TestGateway::serve());
    let token = near.json(&["token", "new", "--device", "far-gateway"])["token"].as_str().expect("a token").to_owned();
    let devices = near.page["devices_url"].as_str().expect("an address").replace("/xiaozhi/v1/", "/mcp/");
    let endpoint = format!("{devices}?token={token}");
    let _pipe = Process::start(sinew(far.state.path()).args(["endpoint", &endpoint]));

    let device = near.wait_for("far-gateway", "ready");
    assert_eq!((&device["id"], &device["family"]), (&json!("far-gateway"), &json!("provider")));
    assert_eq!(device["admitted_by"], "device token");
    let tools = near.json(&["tools", "far-gateway"]).to_string();
    assert!(tools.contains("self_audio_speaker_set_volume"), "{tools}");
    let call = ["call", "far-gateway", "self_audio_speaker_set_volume", "device=board-ddee01", "volume=23"];
    assert_eq!(near.json(&call)["content"][0]["text"], "true");
    let status = far.json(&["call", "board-ddee01", "self.get_device_status"]).to_string();
    assert!(status.contains("23"), "{status}");
    assert!(near.run(&["devices"]).ok().out.contains("far-gateway"));
}
