//! The address that a board asks first: it answers with the servers and credentials of the board.
//!
//! Firmware calls it OTA, because new firmware would be announced here too; Sinew announces none. An approved
//! board gets its own credentials. Any other board gets a code to show, and asks again until a user approves it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use sinew_tool::lenient;
use sinew_tool::text::clean_line;
use sinew_tool::{Applicant, Enrol, Enrolment, Value, json};

use crate::hub::BoardHub;
use crate::identity::{self, BoardIdentity, HttpResponse};
use crate::relay::OtaRequest;
use crate::{AdvertisedAddress, mqtt};

/// With and without the slash at its end.
pub(crate) const PATH: &str = "/xiaozhi/ota/";
pub(crate) const ACTIVATE: &str = "/xiaozhi/ota/activate";

/// Firmware describes itself in some 2 KB.
const BODY_BYTES: usize = 16 << 10;
/// How long firmware waits for each answer to "am I approved?".
const ACTIVATION_MS: u32 = 30_000;
/// The default of firmware.
const KEEPALIVE: u16 = 240;
/// Where firmware publishes; any topic would do.
const PUBLISH_TOPIC: &str = "device-server";

/// How boards are enrolled, and which transports they are offered.
#[derive(Clone)]
pub struct Bootstrap {
    pub enrol: Arc<dyn Enrol>,
    pub offer: OfferedTransport,
}

/// Which transports a board is offered. Firmware prefers MQTT if both are offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OfferedTransport {
    /// The board stays connected, and its tools can be used at any time.
    #[default]
    Mqtt,
    /// The board connects only while it is talked to.
    WebSocket,
    Both,
}

sinew_tool::choices! { OfferedTransport { "mqtt" => OfferedTransport::Mqtt, "websocket" => OfferedTransport::WebSocket, "both" => OfferedTransport::Both } }

/// Answers a board that asks for its settings.
pub(crate) async fn greet(request: Request<Incoming>, address: SocketAddr, hub: &BoardHub) -> HttpResponse {
    let (Some(bootstrap), Some(reach)) = (&hub.config.bootstrap, &hub.config.reach) else { return identity::nothing() };
    let (applicant, asked) = match apply(request, address).await {
        Ok(applied) => applied,
        Err(refusal) => return *refusal,
    };
    let mut settings = json!({
        "server_time": server_time(),
        // The board's own version and no URL: no update.
        "firmware": {"version": applicant.version, "url": ""},
    });
    match bootstrap.enrol.enrol(&applicant) {
        Enrolment::Approved { token } => {
            let offer = bootstrap.offer;
            // Firmware ends the host of an MQTT endpoint at its first colon, with brackets or without.
            let mqtt = reach.mqtt.filter(|_| !reach.host.contains(':'));
            if let (OfferedTransport::Mqtt | OfferedTransport::Both, Some(port)) = (offer, mqtt) {
                settings["mqtt"] = mqtt_section(&applicant, &token, reach, port);
            }
            if offer != OfferedTransport::Mqtt || mqtt.is_none() {
                let scheme = if hub.config.tls.is_some() { "wss" } else { "ws" };
                settings["websocket"] =
                    json!({"url": hub.url(reach, scheme, identity::PATH), "token": token, "version": 1});
            }
            add_server_settings(&mut settings, &applicant, asked, hub).await;
        }
        Enrolment::Pending { code } => {
            settings["activation"] = json!({
                "message": format!("sinew boards approve {code}"),
                "code": code,
                // Firmware asks whether it was approved only if it gets something to sign.
                "challenge": code,
                "timeout_ms": ACTIVATION_MS,
            });
        }
        Enrolment::Full => return identity::busy("too many boards wait for approval; try again later"),
        Enrolment::Taken => return *taken(&applicant),
    }
    identity::json(StatusCode::OK, &settings)
}

/// What the voice server of a relayed board has for it. Its addresses stay with us.
async fn add_server_settings(settings: &mut Value, applicant: &Applicant, asked: OtaRequest, hub: &BoardHub) {
    let Some(relay) = &hub.relay else { return };
    let key = identity::key(&applicant.hardware_id);
    let Some(server) = relay.settings(&key, asked).await else { return };
    for (name, value) in
        [("server_time", server.server_time), ("activation", server.activation), ("firmware", server.firmware)]
    {
        if let Some(value) = value {
            settings[name] = value;
        }
    }
}

/// Answers a board that asks whether it was approved, or has its voice server answer.
pub(crate) async fn activate(request: Request<Incoming>, address: SocketAddr, hub: &BoardHub) -> HttpResponse {
    let Some(bootstrap) = &hub.config.bootstrap else { return identity::nothing() };
    let (applicant, asked) = match apply(request, address).await {
        Ok(applied) => applied,
        Err(refusal) => return *refusal,
    };
    let enrolment = bootstrap.enrol.enrol(&applicant);
    if let (Enrolment::Approved { .. }, Some(relay)) = (&enrolment, &hub.relay)
        && let Some((status, body)) = relay.activate(&identity::key(&applicant.hardware_id), asked).await
    {
        return identity::raw_json(status, body);
    }
    match enrolment {
        Enrolment::Approved { .. } => identity::json(StatusCode::OK, &json!({"message": "approved"})),
        Enrolment::Taken => *taken(&applicant),
        Enrolment::Pending { .. } | Enrolment::Full => {
            identity::json(StatusCode::ACCEPTED, &json!({"message": "not approved yet"}))
        }
    }
}

fn taken(applicant: &Applicant) -> Box<HttpResponse> {
    let id = &applicant.hardware_id;
    let message = format!("the Device-Id {id} is the id, name or key of another device; send the board's MAC address");
    identity::refusal(StatusCode::FORBIDDEN, &message)
}

/// Reads who asks. The body is only for display, and may be missing.
async fn apply(request: Request<Incoming>, address: SocketAddr) -> Result<(Applicant, OtaRequest), Box<HttpResponse>> {
    let is_get = request.method() == Method::GET;
    if !is_get && request.method() != Method::POST {
        return Err(identity::refusal(StatusCode::METHOD_NOT_ALLOWED, "ask with POST, or with GET"));
    }
    let newcomer = BoardIdentity::read_ids(&request)?;
    let Some(client_id) = newcomer.client_id else {
        let message = "the header Client-Id is missing or too long; send the board's own UUID in it";
        return Err(identity::refusal(StatusCode::BAD_REQUEST, message));
    };
    let agent = identity::find_header(request.headers(), "user-agent").unwrap_or_default();
    let (head, body) = request.into_parts();
    let raw = Limited::new(body, BODY_BYTES).collect().await.map_err(|_| {
        let message = format!("the description of the board has more than {BODY_BYTES} bytes, or ended early");
        identity::refusal(StatusCode::PAYLOAD_TOO_LARGE, &message)
    })?;
    let raw = raw.to_bytes();
    // Firmware writes names of networks into it unescaped and in any encoding; then the headers are enough.
    let body: Value = lenient::read(&raw).unwrap_or_default();
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(|text| clean_line(text, 64));
    // `User-Agent` is BOARD/VERSION.
    let (agent_kind, agent_version) = agent.split_once('/').unwrap_or((&agent, ""));
    let kind = text(&body["board"]["type"]).or_else(|| text(&body["board"]["name"]));
    let applicant = Applicant {
        hardware_id: newcomer.hardware_id,
        secret: client_id,
        kind: kind.unwrap_or_else(|| clean_line(agent_kind, 64)),
        version: text(&body["application"]["version"]).unwrap_or_else(|| clean_line(agent_version, 64)),
        address: address.ip(),
    };
    Ok((applicant, OtaRequest::new(&head.headers, raw)))
}

fn mqtt_section(applicant: &Applicant, token: &str, reach: &AdvertisedAddress, port: u16) -> Value {
    // Other servers give colons in client ids a meaning. An id that could not be read back is left as it is.
    let id = &applicant.hardware_id;
    let plain = id.replace(':', "_");
    let plain = if identity::hardware_id(&plain).as_ref() == Some(id) { &plain } else { id };
    json!({
        "endpoint": format!("{}:{port}", reach.host),
        "client_id": format!("GID_sinew@@@{plain}@@@{}", applicant.secret),
        "username": plain,
        "password": token,
        "publish_topic": PUBLISH_TOPIC,
        "subscribe_topic": mqtt::topic(&applicant.hardware_id),
        "keepalive": KEEPALIVE,
    })
}

/// Firmware adds the offset and keeps local time.
fn server_time() -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let minutes = jiff::Zoned::now().offset().seconds() / 60;
    json!({"timestamp": now.as_millis() as u64, "timezone_offset": minutes})
}
