//! Who a board is, read and checked before any MCP, and the HTTP answers to boards that are refused.

use std::net::SocketAddr;

use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use sinew_tool::{Admission, DeviceId, DeviceInfo, DeviceKey, Reach, Status, Value, json};
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;

use crate::roster::RegistrationError;
use crate::{BoardLimits, board_family, provider};

/// The path of the board protocol, with and without the slash at its end.
pub(crate) const PATH: &str = "/xiaozhi/v1/";
/// The prefix of the keys of boards.
pub(crate) const BOARD: &str = "board:";
/// A MAC has 17 characters and a UUID 36; more than this is not an id.
const LONGEST_ID: usize = 64;

/// What brings a board back that is on a WebSocket.
const WAKE_IT: &str = "wake it by its wake word or button, or switch it on; firmware on a WebSocket is connected only during a conversation";

/// What a connecting board says about itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BoardIdentity {
    /// In lower case, as firmware writes its MAC.
    pub(crate) hardware_id: String,
    pub(crate) client_id: Option<String>,
    protocol_version: Option<u8>,
    token: Option<String>,
}

pub(crate) type HttpResponse = Response<Full<Bytes>>;

impl BoardIdentity {
    pub(crate) fn new(hardware_id: String, client_id: Option<String>, token: Option<String>) -> BoardIdentity {
        let client_id = client_id.filter(|id| id.len() <= LONGEST_ID);
        BoardIdentity { hardware_id, client_id, protocol_version: None, token }
    }

    /// Reads the headers; for a missing header, the query parameter of the same name, which boards behind
    /// simple proxies use.
    pub(crate) fn read<B>(request: &Request<B>) -> Result<BoardIdentity, Box<HttpResponse>> {
        let path = request.uri().path();
        if path != PATH && path != PATH.trim_end_matches('/') {
            return Err(Box::new(nothing()));
        }
        let parameter = |name: &str| find_parameter(request, name);
        Ok(BoardIdentity {
            protocol_version: parameter("protocol-version").and_then(|version| version.parse().ok()),
            token: parameter(AUTHORIZATION.as_str()).and_then(|value| bare_token(&value)),
            ..BoardIdentity::read_ids(request)?
        })
    }

    /// Reads the ids of the board, without its token.
    pub(crate) fn read_ids<B>(request: &Request<B>) -> Result<BoardIdentity, Box<HttpResponse>> {
        let Some(hardware_id) = find_parameter(request, "device-id") else {
            let message =
                "the header Device-Id is missing; send the board's MAC address in it, for example aa:bb:cc:dd:ee:01";
            return Err(refusal(StatusCode::BAD_REQUEST, message));
        };
        let Some(hardware_id) = self::hardware_id(&hardware_id) else {
            let message = format!(
                "the header Device-Id must be 1 to {LONGEST_ID} visible ASCII characters, for example aa:bb:cc:dd:ee:01"
            );
            return Err(refusal(StatusCode::BAD_REQUEST, &message));
        };
        Ok(BoardIdentity::new(hardware_id, find_parameter(request, "client-id"), None))
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The device's info before the board has reported its name.
    pub(crate) fn to_info(&self, transport: &str, address: SocketAddr, admission: Admission) -> DeviceInfo {
        let attributes = [
            ("hardware_id", Some(json!(self.hardware_id))),
            ("client_id", self.client_id.as_ref().map(|id| json!(id))),
            ("protocol_version", self.protocol_version.map(|version| json!(version))),
            ("transport", Some(json!(transport))),
            ("when_away", (transport == "websocket").then(|| json!(WAKE_IT))),
            ("address", Some(json!(address.to_string()))),
        ];
        DeviceInfo {
            key: key(&self.hardware_id),
            suggested_id: suggest_id(&self.hardware_id),
            family: board_family(Reach::OneLink),
            admission,
            name: String::new(),
            version: String::new(),
            status: Status::Ready,
            instructions: None,
            labels: Vec::new(),
            attributes: attributes.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect(),
        }
    }
}

/// The answer that turns the connection into a WebSocket, or why it cannot.
pub(crate) fn accept<B>(request: &Request<B>) -> Result<HttpResponse, Box<HttpResponse>> {
    create_response_with_body(request, Full::default).map_err(|error| {
        let message = format!("{error}; this path speaks WebSocket only");
        refusal(StatusCode::UPGRADE_REQUIRED, &message)
    })
}

/// 401 with the challenge that HTTP requires.
pub(crate) fn unauthorized(message: &str) -> Box<HttpResponse> {
    let mut answer = refusal(StatusCode::UNAUTHORIZED, message);
    let challenge = http::HeaderValue::from_static("Bearer realm=\"sinew boards\"");
    answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    answer
}

pub(crate) fn registration_refused(refused: RegistrationError, limits: &BoardLimits) -> Box<HttpResponse> {
    let (status, wait) = match refused {
        RegistrationError::Full => (StatusCode::SERVICE_UNAVAILABLE, "60"),
        RegistrationError::TooOften => (StatusCode::TOO_MANY_REQUESTS, "5"),
        RegistrationError::Closing => (StatusCode::SERVICE_UNAVAILABLE, "5"),
        RegistrationError::Revoked => return unauthorized(&refused.reason(limits)),
    };
    let mut answer = refusal(status, &refused.reason(limits));
    answer.headers_mut().insert(RETRY_AFTER, http::HeaderValue::from_static(wait));
    answer
}

pub(crate) fn wrong_token(newcomer: &BoardIdentity) -> String {
    let what = if newcomer.token.is_some() { "the token does not fit" } else { "a token is missing" };
    let (id, key) = (&newcomer.hardware_id, key(&newcomer.hardware_id));
    format!(
        "{what}: the board {id} must send its device token (sinew token new --device {key}), as `Authorization: Bearer TOKEN` or as its MQTT password"
    )
}

/// 404, naming the paths that exist.
pub(crate) fn nothing() -> HttpResponse {
    *refusal(
        StatusCode::NOT_FOUND,
        &format!("there is nothing here; boards connect to {PATH}, tool providers to {}", provider::PATH),
    )
}

pub(crate) fn busy(message: &str) -> HttpResponse {
    let mut answer = refusal(StatusCode::SERVICE_UNAVAILABLE, message);
    answer.headers_mut().insert(RETRY_AFTER, http::HeaderValue::from_static("60"));
    *answer
}

pub(crate) fn json(status: StatusCode, body: &Value) -> HttpResponse {
    raw_json(status, body.to_string())
}

/// A body that is JSON already.
pub(crate) fn raw_json(status: StatusCode, body: impl Into<Bytes>) -> HttpResponse {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    headers.insert(CONNECTION, http::HeaderValue::from_static("close"));
    answer
}

pub(crate) fn refusal(status: StatusCode, message: &str) -> Box<HttpResponse> {
    let mut answer = Response::new(Full::from(format!("{message}\n")));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, http::HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CONNECTION, http::HeaderValue::from_static("close"));
    if status == StatusCode::UPGRADE_REQUIRED {
        headers.insert(http::header::UPGRADE, http::HeaderValue::from_static("websocket"));
    }
    Box::new(answer)
}

pub(crate) fn find_parameter<B>(request: &Request<B>, name: &str) -> Option<String> {
    let in_header = find_header(request.headers(), name);
    in_header.or_else(|| {
        let query = request.uri().query()?.as_bytes();
        let (_, value) = form_urlencoded::parse(query).find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    })
}

pub(crate) fn find_header(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

/// Firmware adds `Bearer ` only to a token without a space, and users store tokens with and without it.
pub(crate) fn bare_token(value: &str) -> Option<String> {
    let token = match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => value,
    };
    (!token.is_empty()).then(|| token.to_owned())
}

/// Normalizes a hardware id: visible ASCII in lower case, a MAC address with colons.
pub(crate) fn hardware_id(text: &str) -> Option<String> {
    if text.is_empty() || text.len() > LONGEST_ID || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let text = text.to_ascii_lowercase();
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let parted = text.split(['_', '-']).all(|pair| pair.len() == 2);
    if digits.len() == 12 && ((text.len() == 17 && parted) || text.len() == 12) {
        let pairs: Vec<String> = digits.chunks(2).map(|pair| pair.iter().copied().map(char::from).collect()).collect();
        return Some(pairs.join(":"));
    }
    Some(text)
}

/// The identity of the board with this hardware id.
pub(crate) fn key(hardware_id: &str) -> DeviceKey {
    DeviceKey(format!("{BOARD}{hardware_id}"))
}

/// `board-` and the last six digits of the MAC; for other ids as much of them as fits.
pub(crate) fn suggest_id(hardware_id: &str) -> String {
    let digits: String = hardware_id.chars().filter(char::is_ascii_hexdigit).collect();
    let is_mac =
        digits.len() == 12 && hardware_id.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '-' | '_'));
    if is_mac { format!("board-{}", &digits[6..]) } else { DeviceId::slug(&format!("board-{hardware_id}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(uri: &str, headers: &[(&str, &str)]) -> Result<BoardIdentity, u16> {
        let request = headers.iter().fold(Request::get(uri), |request, (name, value)| request.header(*name, *value));
        BoardIdentity::read(&request.body(()).expect("a request")).map_err(|answer| answer.status().as_u16())
    }

    #[test]
    fn the_headers_of_firmware_are_read() {
        let headers = [
            ("Authorization", "Bearer secret"),
            ("Protocol-Version", "1"),
            ("Device-Id", "AA:bb:cc:dd:ee:01"),
            ("Client-Id", "7b9f"),
        ];
        let newcomer = read("/xiaozhi/v1/", &headers).expect("admissible");
        assert_eq!(newcomer.token(), Some("secret"));
        let info = newcomer.to_info("websocket", ([127, 0, 0, 1], 9).into(), Admission::OwnToken);
        assert_eq!((info.key.0.as_str(), info.suggested_id.as_str()), ("board:aa:bb:cc:dd:ee:01", "board-ddee01"));
        assert_eq!(
            json!(info.attributes),
            json!({
                "address": "127.0.0.1:9", "client_id": "7b9f",
                "hardware_id": "aa:bb:cc:dd:ee:01", "protocol_version": 1, "transport": "websocket", "when_away": WAKE_IT,
            })
        );
    }

    #[test]
    fn query_parameters_stand_in_for_missing_headers() {
        let uri = "/xiaozhi/v1?device-id=aa%3Abb%3A01&client-id=c&authorization=Bearer%20t";
        let newcomer = read(uri, &[("Client-Id", "header")]).expect("admissible");
        assert_eq!(newcomer.hardware_id, "aa:bb:01");
        assert_eq!(newcomer.client_id.as_deref(), Some("header"));
        assert_eq!(newcomer.token(), Some("t"));
    }

    #[test]
    fn what_does_not_say_who_it_is_is_refused() {
        let long = "a".repeat(65);
        assert_eq!(read("/", &[("Device-Id", "a")]), Err(404));
        assert_eq!(read("/xiaozhi/v1/more", &[("Device-Id", "a")]), Err(404));
        assert_eq!(read("/xiaozhi/v1/", &[]), Err(400));
        assert_eq!(read("/xiaozhi/v1/", &[("Device-Id", "  ")]), Err(400));
        assert_eq!(read("/xiaozhi/v1/", &[("Device-Id", &long)]), Err(400));
        assert_eq!(read("/xiaozhi/v1/?device-id=a%0Ab", &[]), Err(400));
    }

    #[test]
    fn tokens_come_with_and_without_their_scheme() {
        for (value, token) in
            [("t", Some("t")), ("bearer t", Some("t")), ("Bearer ", Some("Bearer")), ("a b", Some("a b"))]
        {
            assert_eq!(
                read("/xiaozhi/v1/", &[("Device-Id", "a"), ("Authorization", value)]).expect("read").token(),
                token
            );
        }
        assert_eq!(read("/xiaozhi/v1/", &[("Device-Id", "a"), ("Authorization", "")]).expect("read").token(), None);
    }

    #[test]
    fn a_suggested_id_fits_whatever_the_hardware_is_called() {
        assert_eq!(suggest_id("aa-bb-cc-dd-ee-ff"), "board-ddeeff");
        assert_eq!(suggest_id("kitchen_sensor"), "board-kitchen-sensor");
        for id in ["aa", "::::", "abcdefabcdefabcdefabcdefabcdef", "!"] {
            assert!(DeviceId::parse(&suggest_id(id)).is_some(), "{id}");
        }
    }
}
