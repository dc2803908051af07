//! A gateway with a console, and a client that sends what a browser would.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use sinew_console::{Console, ConsoleSettings};
use sinew_front::{ConsolePages, Front, FrontSettings};
use sinew_gateway::{AccessSettings, Gateway, Settings};
use sinew_signin::{OAuthSettings, SignIn};
use sinew_tool::{
    Admission, BoxFuture, Call, Device, DeviceEvent, DeviceInfo, DeviceKey, Family, FamilyName, Outcome, Reach, Status,
    TextTrust, Tool, ToolError, Toolset, json,
};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// A device that answers every call with its arguments.
pub(crate) struct Echo {
    info: Arc<DeviceInfo>,
    tools: Arc<Toolset>,
}

impl Echo {
    pub(crate) fn new(id: &str, name: &str, tools: Vec<Tool>) -> Arc<Echo> {
        let info = DeviceInfo {
            key: DeviceKey(format!("board:{id}")),
            suggested_id: id.to_owned(),
            family: Family::new(FamilyName::of("board"), TextTrust::Attributed, Reach::OneLink),
            admission: Admission::OwnToken,
            name: name.to_owned(),
            version: "1.0".to_owned(),
            status: Status::Ready,
            instructions: None,
            labels: Vec::new(),
            attributes: Default::default(),
        };
        Arc::new(Echo { info: Arc::new(info), tools: Arc::new(Toolset::new(tools)) })
    }
}

impl Device for Echo {
    fn info(&self) -> Arc<DeviceInfo> {
        self.info.clone()
    }

    fn tools(&self) -> Arc<Toolset> {
        self.tools.clone()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move { Ok(Outcome::json(Value::Object(call.args))) })
    }
}

pub(crate) fn unlock() -> Tool {
    let schema = json!({"type": "object", "properties": {"door": {"type": "string"}}});
    Tool::new("self.unlock", "Unlocks a door", schema)
}

/// A running gateway with one device `lock`, whose tool needs a person's approval.
pub(crate) struct House {
    pub(crate) gateway: Gateway,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    shutdown: CancellationToken,
    _state: TempDir,
}

impl House {
    pub(crate) async fn new() -> House {
        House::with(ConsoleSettings::default()).await
    }

    pub(crate) async fn with(settings: ConsoleSettings) -> House {
        House::with_policy(settings, json!({"rules": [{"id": "doors", "tools": ["self.unlock"], "do": "ask"}]})).await
    }

    pub(crate) async fn with_policy(settings: ConsoleSettings, ask: Value) -> House {
        House::open(settings, ask, None).await
    }

    /// A house at which clients sign in.
    pub(crate) async fn with_sign_in(settings: ConsoleSettings, oauth: OAuthSettings) -> House {
        House::open(settings, json!({}), Some(oauth)).await
    }

    async fn open(settings: ConsoleSettings, ask: Value, oauth: Option<OAuthSettings>) -> House {
        let mut access = AccessSettings::default();
        sinew_tool::settings::Setting::read(&mut access.policy, ask).unwrap();
        let gateway = Gateway::open(Settings { access, ..Settings::default() }).unwrap();
        gateway.apply(DeviceEvent::Joined(Echo::new("lock", "door lock", vec![unlock()])));
        let state = tempfile::tempdir().unwrap();
        let console = Console::open(settings, state.path()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let sign_in = oauth.map(|oauth| {
            let url = format!("http://{address}");
            Arc::new(SignIn::open(&oauth, &url, Some(state.path()), gateway.clone()).unwrap())
        });
        let console: Arc<dyn ConsolePages> = Arc::new(console);
        let front = Front { console: Some(console), sign_in, ..Front::new(gateway.clone(), FrontSettings::default()) };
        tokio::spawn(sinew_front::http::run(listener, front, None, shutdown.clone()));
        let token = gateway.tokens().own();
        House { gateway, address, token, shutdown, _state: state }
    }

    pub(crate) fn browser(&self) -> Browser {
        Browser { address: self.address, cookies: Mutex::default(), origin: format!("http://{}", self.address) }
    }

    /// A browser that is signed in with the gateway's own token.
    pub(crate) async fn admin(&self) -> Browser {
        let browser = self.browser();
        assert_eq!(browser.sign_in(&[("token", &self.token)]).await.status, StatusCode::SEE_OTHER);
        browser
    }

    /// A browser of a new person with this role.
    pub(crate) async fn person(&self, name: &str, role: &str) -> Browser {
        let admin = self.admin().await;
        let made = admin.post("api/v1/people", json!({"name": name, "role": role})).await.json();
        let browser = self.browser();
        let passphrase = made["passphrase"].as_str().unwrap();
        let answer = browser.sign_in(&[("name", name), ("passphrase", passphrase)]).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER);
        browser
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// Keeps cookies and sends the headers of a page of `origin`.
pub(crate) struct Browser {
    pub(crate) address: SocketAddr,
    pub(crate) cookies: Mutex<HashMap<String, String>>,
    pub(crate) origin: String,
}

impl Browser {
    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> http::Response<Incoming> {
        let socket = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.unwrap();
        tokio::spawn(connection);
        let cookies: Vec<String> =
            self.cookies.lock().unwrap().iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut request = Request::builder().method(method).uri(path).header("host", self.address.to_string());
        if !cookies.is_empty() {
            request = request.header("cookie", cookies.join("; "));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        sender.send_request(request.body(Full::new(Bytes::from(body.to_owned()))).unwrap()).await.unwrap()
    }

    pub(crate) async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let (parts, body) = self.open(method, path, headers, body).await.into_parts();
        for cookie in parts.headers.get_all("set-cookie") {
            let (name, rest) = cookie.to_str().unwrap().split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            self.cookies.lock().unwrap().insert(name.to_owned(), value.to_owned());
        }
        let text = String::from_utf8_lossy(&body.collect().await.unwrap().to_bytes()).into_owned();
        Answer { status: parts.status, headers: parts.headers, text }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", &format!("/console/{path}"), &[], "").await
    }

    /// Sends what a script of the console sends.
    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        let headers = [("origin", self.origin.as_str()), ("x-sinew", "1"), ("content-type", "application/json")];
        self.send("POST", &format!("/console/{path}"), &headers, &body.to_string()).await
    }

    /// Sends a form of a page.
    pub(crate) async fn submit(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
        let body: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let headers = [("origin", self.origin.as_str()), ("content-type", "application/x-www-form-urlencoded")];
        self.send("POST", &format!("/console/{path}"), &headers, &body.join("&")).await
    }

    pub(crate) async fn sign_in(&self, fields: &[(&str, &str)]) -> Answer {
        self.submit("login", fields).await
    }

    /// The token in the forms of a page.
    pub(crate) async fn form_token(&self, page: &str) -> String {
        let text = self.get(page).await.text;
        let (_, rest) = text.split_once("name=\"form_token\" value=\"").expect("a form");
        rest.split('"').next().unwrap().to_owned()
    }
}
