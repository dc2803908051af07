//! Rings when a call begins to wait for a person: one signed request with a link for each. Nobody decides by answering
//! it; the link leads to a page on which somebody signs in.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;
use sinew_fetch::{AllowedHosts, HeaderMap, HeaderValue, HttpClient, HttpUrl, Method, header};
use sinew_gateway::{ApprovalRequest, Gateway};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::error::{ComposeErrorKind, Error};

/// Somebody waits: a service that needs longer is not waited for.
const TIME: Duration = Duration::from_secs(5);
/// Further attempts, and the pause before each.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// Requests under way at once. A service that is slow for one call does not keep the others from ringing.
const MAX_RINGING: usize = 8;
/// `t=TIME,v1=SIGNATURE`: HMAC-SHA-256 of the time, a dot and the body, in hex.
const SIGNATURE: &str = "x-sinew-signature";

/// Where to ring.
#[derive(Clone)]
pub(crate) struct Webhook {
    client: HttpClient,
    key: String,
    time: Duration,
    pauses: [Duration; 2],
}

/// Why a service was not reached.
enum Missed {
    /// The next attempt may reach it.
    Perhaps(String),
    /// Every attempt would end like this one.
    Surely(String),
}

impl Webhook {
    pub(crate) fn new(address: &str, key: String) -> Result<Webhook, Error> {
        let wrong = |why: String| Error::new(ComposeErrorKind::Config, format!("`webhook` of `[console]`: {why}"));
        let url = HttpUrl::parse(address).map_err(wrong)?;
        let client = HttpClient::new(url, HeaderMap::new(), AllowedHosts::Any).map_err(wrong)?;
        Ok(Webhook { client, key, time: TIME, pauses: PAUSES })
    }

    /// Rings for every call that begins to wait, until `stop`.
    pub(crate) async fn run(self, gateway: Gateway, stop: CancellationToken) {
        let mut changes = gateway.approval_changes();
        let (mut known, mut ringing) = (HashSet::new(), JoinSet::new());
        let places = Arc::new(Semaphore::new(MAX_RINGING));
        loop {
            changes.borrow_and_update();
            let waiting = gateway.approval_requests();
            known.retain(|id| waiting.iter().any(|request| request.id == *id));
            for request in waiting {
                if known.insert(request.id.clone()) {
                    let (webhook, gateway, places) = (self.clone(), gateway.clone(), places.clone());
                    ringing.spawn(async move {
                        if let Ok(_place) = places.acquire().await {
                            webhook.ring(&gateway, &request).await;
                        }
                    });
                }
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                Some(_) = ringing.join_next() => {}
                // What rings ends with the set.
                () = stop.cancelled() => return,
            }
        }
    }

    async fn ring(&self, gateway: &Gateway, request: &ApprovalRequest) {
        let page = gateway.approval_page().map(|page| format!("{page}{}", request.id));
        let body =
            json!({"event": "approval_waits", "approval": request.id, "url": page, "at": request.at}).to_string();
        let mut why = String::new();
        for pause in [Duration::ZERO].iter().chain(&self.pauses) {
            tokio::time::sleep(*pause).await;
            // Whoever decided meanwhile needs no ringing.
            if gateway.approval_request(&request.id).is_err() {
                return;
            }
            let silent = || Missed::Perhaps(format!("no answer within {} s", self.time.as_secs()));
            let sent = tokio::time::timeout(self.time, self.send(&body)).await;
            match sent.unwrap_or_else(|_| Err(silent())) {
                Ok(()) => return,
                Err(Missed::Perhaps(error)) => why = error,
                Err(Missed::Surely(error)) => {
                    why = error;
                    break;
                }
            }
        }
        tracing::warn!(approval = request.id, host = self.client.url().host(), why, "the webhook could not be called");
    }

    /// One attempt. The status is the answer; what comes after it is not read.
    async fn send(&self, body: &str) -> Result<(), Missed> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let signature = sign(&self.key, time, body)
            .and_then(|signature| HeaderValue::from_str(&signature).map_err(|error| error.to_string()));
        headers.insert(SIGNATURE, signature.map_err(Missed::Surely)?);
        let answer = self.client.send(Method::POST, None, headers, body.to_owned().into(), false).await;
        let status = answer.map_err(|error| Missed::Perhaps(error.to_string()))?.status;
        match status.as_u16() {
            200..=299 => Ok(()),
            300..=399 => Err(Missed::Surely(format!(
                "it answered {status}, and redirects are not followed; configure the address that it leads to"
            ))),
            408 | 425 | 429 | 500..=599 => Err(Missed::Perhaps(format!("it answered {status}"))),
            _ => Err(Missed::Surely(format!("it answered {status}"))),
        }
    }
}

fn sign(key: &str, time: u64, body: &str) -> Result<String, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).map_err(|error| error.to_string())?;
    mac.update(format!("{time}.{body}").as_bytes());
    let digits: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("t={time},v1={digits}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use sinew_gateway::{AccessSettings, ApprovalDecision, Principal, Request, Role, Settings};
    use sinew_tool::settings::Setting;
    use sinew_tool::{
        Admission, Args, BoxFuture, Call, Device, DeviceEvent, DeviceInfo, DeviceKey, Family, FamilyName, Outcome,
        Reach, Status, TextTrust, Tool, ToolError, Toolset,
    };
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::mpsc;

    use super::*;

    /// A test waits for events; this is how long it hopes for one.
    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(100);
    const MOMENT: Duration = Duration::from_millis(10);

    #[test]
    fn a_signature_covers_the_time_and_the_body() {
        // echo -n '5.{}' | openssl dgst -sha256 -hmac key
        let known = "t=5,v1=9be615aec64f0d044b5ad6854ab1d893ec88617fb728d2149dcd3a3428e8c45d";
        let signed = sign("key", 5, "{}").expect("a signature");
        assert_eq!(signed, known);
        assert_ne!(sign("key", 6, "{}").expect("a signature").split(',').nth(1), signed.split(',').nth(1));
        assert_ne!(sign("other", 5, "{}").expect("a signature"), signed);
    }

    struct Door {
        info: Arc<DeviceInfo>,
        tools: Arc<Toolset>,
    }

    impl Device for Door {
        fn info(&self) -> Arc<DeviceInfo> {
            self.info.clone()
        }

        fn tools(&self) -> Arc<Toolset> {
            self.tools.clone()
        }

        fn call(&self, _: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
            Box::pin(std::future::ready(Ok(Outcome::text("done"))))
        }
    }

    /// A gateway that asks a person before the door is opened.
    fn house() -> Gateway {
        let mut access = AccessSettings::default();
        let policy = json!({"rules": [{"id": "door", "tools": ["self.unlock"], "do": "ask", "ask": {"wait": 0}}]});
        Setting::read(&mut access.policy, policy).expect("a policy");
        let gateway = Gateway::open(Settings { access, ..Settings::default() }).expect("a gateway");
        let info = DeviceInfo {
            key: DeviceKey("board:door".to_owned()),
            suggested_id: "door".to_owned(),
            family: Family::new(FamilyName::of("board"), TextTrust::Attributed, Reach::OneLink),
            admission: Admission::OwnToken,
            name: "secret name".to_owned(),
            version: "1".to_owned(),
            status: Status::Ready,
            instructions: None,
            labels: Vec::new(),
            attributes: Default::default(),
        };
        let schema = json!({"type": "object", "properties": {"code": {"type": "integer"}}});
        let tools = Arc::new(Toolset::new(vec![Tool::new("self.unlock", "Unlocks", schema)]));
        gateway.apply(DeviceEvent::Joined(Arc::new(Door { info: Arc::new(info), tools })));
        gateway.set_approval_page("https://home.example/console/approval?id=".to_owned());
        gateway
    }

    /// Makes a call that begins to wait, and gives the id of its request.
    async fn ask(gateway: &Gateway, code: u32) -> String {
        let mut args = Args::new();
        args.insert("code".to_owned(), json!(code));
        let request = Request::new(Principal::new("model", Role::Client), "self.unlock", args, "test");
        let waits = gateway.call_on("door", request).await.expect_err("it waits");
        waits.details["approval"].as_str().expect("an id").to_owned()
    }

    /// What a service does with a request.
    #[derive(Clone, Copy)]
    enum Manner {
        /// Answers with these lines, and closes the connection.
        Answer(&'static str),
        /// Says that the call was taken, and never sends the text that it announces.
        Dawdle,
        Close,
        /// Keeps the connection and says nothing.
        Silence,
    }

    const OK: Manner = Manner::Answer("200 OK\r\nContent-Length: 0");
    const FAILURE: Manner = Manner::Answer("503 Service Unavailable\r\nContent-Length: 0");

    struct Service {
        address: String,
        rings: mpsc::UnboundedReceiver<Ring>,
    }

    /// A request as it came.
    struct Ring {
        head: String,
        body: String,
    }

    impl Ring {
        fn header(&self, name: &str) -> &str {
            let named = |line: &'_ str| line.split_once(": ").is_some_and(|(key, _)| key.eq_ignore_ascii_case(name));
            let line = self.head.lines().find(|line| named(line)).expect("the header");
            line.split_once(": ").map_or("", |(_, value)| value)
        }

        fn approval(&self) -> String {
            let body: serde_json::Value = serde_json::from_str(&self.body).expect("JSON");
            body["approval"].as_str().expect("an id").to_owned()
        }

        async fn read(stream: &mut TcpStream) -> Option<Ring> {
            let mut text = Vec::new();
            loop {
                let mut more = [0; 4_096];
                let read = stream.read(&mut more).await.ok().filter(|read| *read > 0)?;
                text.extend_from_slice(&more[..read]);
                let whole = String::from_utf8(text.clone()).ok()?;
                if let Some((head, body)) = whole.split_once("\r\n\r\n") {
                    let ring = Ring { head: head.to_owned(), body: body.to_owned() };
                    if ring.header("content-length").parse() == Ok(body.len()) {
                        return Some(ring);
                    }
                }
            }
        }
    }

    impl Service {
        /// Treats one request after the other like this, and all further ones like the last.
        async fn start(manners: &[Manner]) -> Service {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("an address");
            let (said, rings) = mpsc::unbounded_channel();
            let left = Arc::new(Mutex::new(manners.to_vec()));
            tokio::spawn(async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    let (said, left) = (said.clone(), left.clone());
                    tokio::spawn(async move {
                        let Some(ring) = Ring::read(&mut stream).await else { return };
                        let manner = {
                            let mut left = left.lock().expect("unlocked");
                            if left.len() > 1 { left.remove(0) } else { left[0] }
                        };
                        drop(said.send(ring));
                        let answer = match manner {
                            Manner::Answer(lines) => format!("HTTP/1.1 {lines}\r\nConnection: close\r\n\r\n"),
                            Manner::Dawdle => "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n".to_owned(),
                            Manner::Close => return,
                            Manner::Silence => String::new(),
                        };
                        let _ = stream.write_all(answer.as_bytes()).await;
                        if matches!(manner, Manner::Dawdle | Manner::Silence) {
                            // Until the gateway has enough of it.
                            let _ = stream.read(&mut [0; 1]).await;
                        }
                    });
                }
            });
            Service { address: format!("http://{address}/ring"), rings }
        }

        async fn next(&mut self) -> Ring {
            let ring = tokio::time::timeout(LONG, self.rings.recv()).await;
            ring.expect("it rings in time").expect("the service is there")
        }

        fn webhook(&self, time: Duration) -> Webhook {
            let webhook = Webhook::new(&self.address, "the key".to_owned()).expect("a webhook");
            Webhook { time, pauses: [MOMENT; 2], ..webhook }
        }

        fn rings_for(&self, gateway: &Gateway, time: Duration) -> CancellationToken {
            let stop = CancellationToken::new();
            tokio::spawn(self.webhook(time).run(gateway.clone(), stop.clone()));
            stop
        }
    }

    #[tokio::test]
    async fn a_call_that_waits_rings_once_with_a_signed_link_and_nothing_about_the_call() {
        let (gateway, mut service) = (house(), Service::start(&[OK]).await);
        let _stop = service.rings_for(&gateway, LONG);
        let id = ask(&gateway, 1).await;
        let ring = service.next().await;
        assert!(ring.head.starts_with("POST /ring HTTP/1.1\r\n"), "{}", ring.head);
        let body: serde_json::Value = serde_json::from_str(&ring.body).expect("JSON");
        assert_eq!(body["event"], "approval_waits");
        assert_eq!(body["url"], format!("https://home.example/console/approval?id={id}"));
        assert_eq!(body["at"], gateway.approval_requests()[0].at);
        assert_eq!(body.as_object().map(serde_json::Map::len), Some(4), "{body}");
        let signature = ring.header(SIGNATURE);
        let time = signature.strip_prefix("t=").and_then(|rest| rest.split(',').next()).expect("a time");
        let time: u64 = time.parse().expect("a number");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        assert!(now - time < 300, "{signature}");
        assert_eq!(signature, sign("the key", time, &ring.body).expect("a signature"));
        // The same call again is the same request.
        assert_eq!(ask(&gateway, 1).await, id);
        let other = ask(&gateway, 2).await;
        assert_eq!(service.next().await.approval(), other);
    }

    #[tokio::test]
    async fn a_service_that_fails_is_asked_again_and_one_that_refuses_is_not() {
        let refusal = Manner::Answer("403 Forbidden\r\nContent-Length: 0");
        let manners = [FAILURE, Manner::Close, OK, refusal, FAILURE, FAILURE, FAILURE, OK];
        let (gateway, mut service) = (house(), Service::start(&manners).await);
        let _stop = service.rings_for(&gateway, LONG);
        for (code, attempts) in [(1, 3), (2, 1), (3, 3), (4, 1)] {
            let id = ask(&gateway, code).await;
            for _ in 0..attempts {
                assert_eq!(service.next().await.approval(), id);
            }
        }
    }

    #[tokio::test]
    async fn nobody_is_led_elsewhere() {
        let mut elsewhere = Service::start(&[OK]).await;
        let away = format!("307 Temporary Redirect\r\nLocation: {}\r\nContent-Length: 0", elsewhere.address);
        let (gateway, mut service) = (house(), Service::start(&[Manner::Answer(away.leak()), OK]).await);
        let _stop = service.rings_for(&gateway, LONG);
        for code in [1, 2] {
            let id = ask(&gateway, code).await;
            assert_eq!(service.next().await.approval(), id);
        }
        assert!(elsewhere.rings.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_slow_text_after_the_status_is_not_waited_for() {
        let (gateway, mut service) = (house(), Service::start(&[Manner::Dawdle]).await);
        let _stop = service.rings_for(&gateway, LONG);
        for code in [1, 2] {
            let id = ask(&gateway, code).await;
            assert_eq!(service.next().await.approval(), id);
        }
    }

    #[tokio::test]
    async fn a_silent_service_keeps_no_other_call_from_ringing_and_is_given_up() {
        let (gateway, mut service) = (house(), Service::start(&[Manner::Silence]).await);
        let stop = service.rings_for(&gateway, LONG);
        // Each is still under way when the next rings.
        for code in 1..=3 {
            let id = ask(&gateway, code).await;
            assert_eq!(service.next().await.approval(), id);
        }
        stop.cancel();
        let (gateway, mut service) = (house(), Service::start(&[Manner::Silence]).await);
        let _stop = service.rings_for(&gateway, SHORT);
        let id = ask(&gateway, 1).await;
        for _ in 0..3 {
            assert_eq!(service.next().await.approval(), id);
        }
        let other = ask(&gateway, 2).await;
        assert_eq!(service.next().await.approval(), other, "there is no fourth attempt");
    }

    #[tokio::test]
    async fn what_was_decided_meanwhile_does_not_ring() {
        let (gateway, mut service) = (house(), Service::start(&[OK]).await);
        let webhook = service.webhook(LONG);
        let id = ask(&gateway, 1).await;
        let request = gateway.approval_request(&id).expect("it waits");
        webhook.ring(&gateway, &request).await;
        assert_eq!(service.next().await.approval(), id);
        gateway.decide_approval(&Principal::person("ada"), "test", &id, ApprovalDecision::Deny).expect("decided");
        webhook.ring(&gateway, &request).await;
        assert!(service.rings.try_recv().is_err());
    }
}
