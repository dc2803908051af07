//! The settings that the voice server has for a board: where it is, whether the board must be activated there.
//!
//! The board asks Sinew, and Sinew asks the voice server in its name. The addresses and tokens of the voice server stay here;
//! the board gets Sinew's own.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::Full;
use sinew_tool::lenient;
use sinew_tool::{DeviceKey, Value, json};

use super::RelayHub;
use super::conversation::BoardFacts;
use super::server::{OtaAddress, VoiceAddress, VoiceServer};

/// The board waits for this, too.
const OTA_TIME: Duration = Duration::from_secs(5);
/// Settings are some kilobytes.
const OTA_BYTES: usize = 64 << 10;
/// The headers of a board that its voice server may read. Its token is for Sinew alone.
const FORWARDED: [&str; 7] =
    ["device-id", "client-id", "user-agent", "accept-language", "activation-version", "serial-number", "content-type"];

/// A request of a board, for its voice server.
pub(crate) struct OtaRequest {
    headers: HeaderMap,
    body: Bytes,
}

/// What the voice server says besides its own address.
#[derive(Default)]
pub(crate) struct OtaSettings {
    pub(crate) server_time: Option<Value>,
    pub(crate) activation: Option<Value>,
    pub(crate) firmware: Option<Value>,
}

impl OtaRequest {
    pub(crate) fn new(headers: &HeaderMap, body: Bytes) -> OtaRequest {
        let known = FORWARDED.into_iter().filter_map(|name| Some((name, headers.get(name)?)));
        let headers = known.map(|(name, value)| (http::HeaderName::from_static(name), value.clone())).collect();
        OtaRequest { headers, body }
    }

    /// The question of a board that has not asked since Sinew started.
    fn for_board(board: &BoardFacts) -> OtaRequest {
        OtaRequest::of(&board.hardware_id, &board.client_id, (&board.name, &board.version))
    }

    fn of(hardware_id: &str, client_id: &str, (name, version): (&str, &str)) -> OtaRequest {
        let mut headers = HeaderMap::new();
        let agent = format!("{name}/{version}");
        for (name, text) in [
            ("device-id", hardware_id),
            ("client-id", client_id),
            ("user-agent", agent.as_str()),
            ("content-type", "application/json"),
        ] {
            if let Ok(value) = HeaderValue::from_str(text) {
                headers.insert(name, value);
            }
        }
        let body = json!({
            "version": 2,
            "mac_address": hardware_id,
            "uuid": client_id,
            "application": {"name": name, "version": version},
            "board": {"type": name, "name": name, "mac": hardware_id},
        });
        OtaRequest { headers, body: body.to_string().into() }
    }
}

impl RelayHub {
    /// Where the voice server of a board is.
    pub(super) async fn find_server(&self, board: &BoardFacts) -> Result<VoiceAddress, String> {
        let ota = match &self.config.server {
            VoiceServer::At(address) => return Ok(address.clone()),
            VoiceServer::Ota(ota) => ota,
        };
        let known = self.boards().get(&board.key).and_then(|known| known.server.clone());
        if let Some(address) = known {
            return Ok(address);
        }
        self.ask(ota, &board.key, OtaRequest::for_board(board)).await?;
        let known = self.boards().get(&board.key).and_then(|known| known.server.clone());
        known.ok_or_else(|| "the voice server wants the board to be activated first".to_owned())
    }

    /// What the voice server has for a board that asks for its settings; `None` where it is not asked or does not answer.
    pub(crate) async fn settings(&self, board: &DeviceKey, request: OtaRequest) -> Option<OtaSettings> {
        let VoiceServer::Ota(ota) = &self.config.server else { return None };
        if !self.is_relayed(board) {
            return None;
        }
        let settings = self.ask(ota, board, request).await;
        settings.inspect_err(|why| tracing::warn!(%board, "the board gets Sinew's own settings: {why}")).ok()
    }

    async fn ask(&self, ota: &OtaAddress, board: &DeviceKey, request: OtaRequest) -> Result<OtaSettings, String> {
        let mut answer = ota.answer(request).await?;
        let server = read_server(&answer, ota);
        let section = |answer: &mut Value, name: &str| {
            let value = answer.get_mut(name).map(Value::take);
            value.filter(Value::is_object)
        };
        let settings = OtaSettings {
            server_time: section(&mut answer, "server_time"),
            activation: section(&mut answer, "activation"),
            firmware: section(&mut answer, "firmware").filter(|_| self.config.passes_firmware),
        };
        let mut boards = self.boards();
        let known = boards.entry(board.clone()).or_default();
        known.awaits_activation = settings.activation.is_some();
        match server {
            Ok(address) => known.server = Some(address),
            // A board that is not activated yet is often told no server.
            Err(_) if known.awaits_activation => {}
            Err(why) => return Err(why),
        }
        Ok(settings)
    }

    /// Passes the activation of a board on, where its voice server wants one: status and body of the answer.
    pub(crate) async fn activate(&self, board: &DeviceKey, request: OtaRequest) -> Option<(StatusCode, Bytes)> {
        let VoiceServer::Ota(ota) = &self.config.server else { return None };
        if !self.boards().get(board).is_some_and(|known| known.awaits_activation) {
            return None;
        }
        match post(ota, "activate", request).await {
            Ok(answer) => Some(answer),
            Err(why) => {
                tracing::warn!(%board, "the activation of a board was not passed on: {why}");
                Some((StatusCode::BAD_GATEWAY, Bytes::from(why)))
            }
        }
    }
}

impl OtaAddress {
    async fn answer(&self, request: OtaRequest) -> Result<Value, String> {
        let (status, body) = post(self, "", request).await?;
        let host = &self.address.host;
        if !status.is_success() {
            return Err(format!("the OTA address of the voice server {host} answers {status}"));
        }
        lenient::read(&body).map_err(|_| format!("the OTA answer of the voice server {host} is not JSON"))
    }

    /// The voice server of a board that does not exist; `None` where such a board would have to be activated first.
    pub(super) async fn settings_of_nobody(
        &self,
        hardware_id: &str,
        client_id: &str,
    ) -> Result<Option<VoiceAddress>, String> {
        let answer = self.answer(OtaRequest::of(hardware_id, client_id, ("sinew-doctor", "1.0.0"))).await?;
        match read_server(&answer, self) {
            Ok(_) | Err(_) if answer["activation"].is_object() => Ok(None),
            server => server.map(Some),
        }
    }
}

/// Where the voice server is, as its settings say.
fn read_server(answer: &Value, ota: &OtaAddress) -> Result<VoiceAddress, String> {
    let host = &ota.address.host;
    match answer["websocket"]["url"].as_str().filter(|url| !url.is_empty()) {
        Some(url) => {
            let token = answer["websocket"]["token"].as_str();
            VoiceAddress::new(url, token, ota.allows_plain).and_then(|address| address.named_by(ota))
        }
        None if answer["mqtt"].is_object() => Err(format!(
            "the voice server {host} offers MQTT only, which is not supported yet; it must offer a WebSocket"
        )),
        None => Err(format!("the OTA answer of the voice server {host} names no WebSocket")),
    }
}

async fn post(ota: &OtaAddress, below: &str, request: OtaRequest) -> Result<(StatusCode, Bytes), String> {
    let host = &ota.address.host;
    let failed = |why: String| format!("the OTA address of the voice server {host} cannot be asked: {why}");
    let address = ota.below(below).map_err(failed)?;
    let mut question =
        Request::post("/").body(Full::<Bytes>::from(request.body)).map_err(|error| failed(error.to_string()))?;
    *question.headers_mut() = request.headers;
    let answer = tokio::time::timeout(OTA_TIME, address.send(question, OTA_BYTES)).await;
    let answer = answer
        .map_err(|_| failed(format!("no answer within {} s", OTA_TIME.as_secs())))?
        .map_err(|error| failed(error.to_string()))?;
    Ok((answer.status, answer.body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_a_board_is_never_forwarded() {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("authorization", "Bearer secret"), ("cookie", "secret"), ("device-id", "aa:bb"), ("client-id", "c")]
        {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let request = OtaRequest::new(&headers, Bytes::new());
        assert_eq!(request.headers.len(), 2);
        assert_eq!(request.headers["device-id"], "aa:bb");
    }

    #[test]
    fn a_server_without_a_websocket_is_named_as_such() {
        let ota = OtaAddress::new("http://127.0.0.1/xiaozhi/ota/", false).expect("valid");
        let read = |answer: Value| read_server(&answer, &ota);
        assert!(read(json!({"websocket": {"url": "ws://127.0.0.1:8000/", "token": "t"}})).is_ok());
        assert!(read(json!({"mqtt": {"endpoint": "x"}})).expect_err("MQTT").contains("MQTT only"));
        assert!(
            read(json!({"websocket": {"url": "ws://voice.example/"}})).expect_err("plain").contains("insecure-lan")
        );
        for odd in [json!({}), json!({"websocket": {"url": 7}}), json!([]), json!(null)] {
            assert!(read(odd).is_err());
        }
    }
}
