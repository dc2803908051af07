//! How a virtual board finds its gateway: it asks the one address it knows, as firmware does at every start, and waits
//! for approval if it has to.

use std::time::Duration;

use serde_json::{Value, json};
use sinew_runner::{Account, RunError};
use tokio::time::sleep;

use crate::board::{BoardConfig, BoardNews};
use crate::web::{HttpAddress, WebRequestBody};

/// Between two questions whether it was approved, as firmware waits.
const ACTIVATION_PAUSE: Duration = Duration::from_secs(3);
const VERSION: &str = "2.0.0";
/// The network that virtual boards are in.
pub(crate) const NETWORK: &str = "Virtual network";

/// The answer of the gateway.
pub(crate) enum OtaAnswer {
    Mqtt { url: String, account: Account },
    WebSocket { url: String, token: String },
}

/// Asks until it is told. MQTT is chosen where it is offered, as firmware chooses.
pub(crate) async fn ask(config: &BoardConfig) -> Result<OtaAnswer, RunError> {
    let mut shown = String::new();
    loop {
        let settings = post(config, &config.url).await?.1;
        if settings["mqtt"].is_object() {
            return mqtt(&settings["mqtt"], &config.url);
        }
        let text = |name: &str| settings["websocket"][name].as_str().map(str::to_owned);
        if let Some(url) = text("url") {
            return Ok(OtaAnswer::WebSocket { url, token: text("token").unwrap_or_default() });
        }
        let code = settings["activation"]["code"].as_str().unwrap_or_default();
        if code.is_empty() {
            let why = "it offers neither MQTT nor WebSocket, and no activation".to_owned();
            return Err(RunError::Refused { url: config.url.clone(), status: None, why });
        }
        if shown != code {
            config.report.send(&config.hardware_id, &BoardNews::Waiting { code });
            code.clone_into(&mut shown);
        }
        let activate = format!("{}/activate", config.url.trim_end_matches('/'));
        while post(config, &activate).await?.0 == 202 {
            sleep(ACTIVATION_PAUSE).await;
        }
        config.report.send(&config.hardware_id, &BoardNews::Approved);
    }
}

async fn post(config: &BoardConfig, url: &str) -> Result<(u16, Value), RunError> {
    let headers = [
        ("Activation-Version", "1"),
        ("Device-Id", config.hardware_id.as_str()),
        ("Client-Id", config.client_id.as_str()),
        ("User-Agent", &format!("{}/{VERSION}", config.kind.board_name())),
        ("Accept-Language", "en-US"),
        ("Content-Type", "application/json"),
    ];
    let body = json!({
        "version": 2,
        "language": "en-US",
        "mac_address": config.hardware_id,
        "uuid": config.client_id,
        "chip_model_name": "virtual",
        "application": {"name": "virtual", "version": VERSION},
        "board": {"type": config.kind.board_name(), "name": config.kind.board_name(), "ssid": NETWORK},
    });
    let body = match config.faults.odd_bytes {
        true => with_odd_bytes(&body.to_string(), b"Caf\xe9 \"5G\""),
        false => body.to_string().into_bytes(),
    };
    let (status, answer) = HttpAddress::parse(url, &config.trust)?.post(&headers, WebRequestBody::Whole(&body)).await?;
    if !matches!(status, 200 | 202) {
        let why = String::from_utf8_lossy(&answer).trim().to_owned();
        return Err(RunError::Refused { url: url.to_owned(), status: Some(status), why });
    }
    Ok((status, serde_json::from_slice(&answer).unwrap_or_default()))
}

/// The text with another name of its network, as it comes: firmware neither converts nor escapes it here.
pub(crate) fn with_odd_bytes(text: &str, network: &[u8]) -> Vec<u8> {
    match text.split_once(NETWORK) {
        Some((before, after)) => [before.as_bytes(), network, after.as_bytes()].concat(),
        None => text.as_bytes().to_vec(),
    }
}

fn mqtt(section: &Value, url: &str) -> Result<OtaAnswer, RunError> {
    let text = |name: &str| section[name].as_str().unwrap_or_default().to_owned();
    // Firmware tells by the port whether to speak TLS; a virtual board asks as it was asked itself, so that it
    // can be tried on any port.
    let scheme = if url.starts_with("https:") { "mqtts" } else { "mqtt" };
    let account = Account {
        client_id: text("client_id"),
        username: text("username"),
        password: text("password"),
        publish: text("publish_topic"),
        subscribe: None,
        presence: None,
        keepalive: section["keepalive"].as_u64().and_then(|seconds| u16::try_from(seconds).ok()).unwrap_or(240),
    };
    let endpoint = text("endpoint");
    // As firmware reads it: everything up to the first colon is the host, the rest a number.
    let (host, port) = endpoint.split_once(':').unwrap_or((&endpoint, "8883"));
    if port.parse::<u16>().is_err() {
        let why = format!("firmware cannot read the MQTT endpoint `{endpoint}`: it ends the host at the first colon");
        return Err(RunError::Refused { url: url.to_owned(), status: None, why });
    }
    Ok(OtaAnswer::Mqtt { url: format!("{scheme}://{host}:{port}"), account })
}
