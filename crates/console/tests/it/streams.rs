//! The stream of changes that an open page reads.

use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use sinew_tool::{Applicant, DeviceEvent, Enrol as _, Enrolment, json};

use crate::browser::{Browser, Echo, House, unlock};

struct Stream {
    body: Incoming,
    text: String,
}

impl Stream {
    async fn open(browser: &Browser, headers: &[(&str, &str)]) -> Stream {
        let answer = browser.open("GET", "/console/stream", headers, "").await;
        assert_eq!(answer.status(), StatusCode::OK);
        Stream { body: answer.into_body(), text: String::new() }
    }

    /// Reads on until an event has this text; `None` at the end.
    async fn until(&mut self, wanted: &str) -> Option<String> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                if event.contains(wanted) {
                    return Some(event);
                }
                continue;
            }
            let frame = self.body.frame().await?.ok()?;
            self.text.push_str(&String::from_utf8_lossy(frame.data_ref()?));
        }
    }
}

#[tokio::test]
async fn a_page_learns_what_changed_and_continues_where_it_was() {
    let house = House::new().await;
    let admin = house.admin().await;
    let mut stream = Stream::open(&admin, &[]).await;
    let reset = stream.until("event: reset").await.unwrap();
    assert!(reset.contains("id: "), "{reset}");
    house.gateway.apply(DeviceEvent::Joined(Echo::new("lamp", "lamp", vec![unlock()])));
    let change = stream.until("\"devices\"").await.unwrap();
    let id = change.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    admin.post("api/v1/call", json!({"device": "lock", "tool": "self.unlock", "confirmed": true})).await;
    stream.until("\"calls\"").await.unwrap();
    let mut late = Stream::open(&admin, &[("last-event-id", &id)]).await;
    assert!(late.until("event: change").await.unwrap().contains("\"calls\""), "what it missed");
    for unknown in ["", "1-1", "nonsense", "99999999999999999999-1"] {
        let mut lost = Stream::open(&admin, &[("last-event-id", unknown)]).await;
        assert!(lost.until("event: ").await.unwrap().contains("event: reset"), "{unknown}");
    }
}

#[tokio::test]
async fn a_page_learns_who_gets_and_loses_a_device() {
    let house = House::new().await;
    let admin = house.admin().await;
    let mut stream = Stream::open(&admin, &[]).await;
    stream.until("event: reset").await.unwrap();
    for (change, body) in [
        ("reserve", json!({"seconds": 60})),
        ("release", json!({})),
        ("reserve", json!({"seconds": 60})),
        ("break-lease", json!({})),
    ] {
        let changed = admin.post(&format!("api/v1/devices/lock/{change}"), body).await;
        assert_eq!(changed.status, StatusCode::OK, "{change}: {}", changed.text);
        assert!(stream.until("\"leases\"").await.is_some(), "{change}");
    }
}

#[tokio::test]
async fn a_page_learns_which_boards_wait() {
    let house = House::new().await;
    let admin = house.admin().await;
    let mut stream = Stream::open(&admin, &[]).await;
    stream.until("event: reset").await.unwrap();
    let board = Applicant {
        hardware_id: "02:00:00:00:00:07".to_owned(),
        secret: "3b4f1c80-8c1e-4b52-9a1e-1f3f2d9a7c11".to_owned(),
        kind: "lamp".to_owned(),
        version: "1.0.0".to_owned(),
        address: [192, 0, 2, 7].into(),
    };
    assert!(matches!(house.gateway.enrol(&board), Enrolment::Pending { .. }));
    stream.until("\"boards\"").await.unwrap();
    let list = admin.get("api/v1/boards").await.json();
    assert!(list["boards"][0]["until"].as_i64() > list["boards"][0]["since"].as_i64(), "{list}");
    admin.post("api/v1/boards/approve", json!({"code": list["boards"][0]["code"]})).await;
    stream.until("\"boards\"").await.unwrap();
}

#[tokio::test]
async fn a_stream_ends_when_the_person_is_removed() {
    let house = House::new().await;
    let (ada, admin) = (house.person("ada", "viewer").await, house.admin().await);
    let mut stream = Stream::open(&ada, &[]).await;
    stream.until("event: reset").await.unwrap();
    let headers = [("origin", admin.origin.as_str()), ("x-sinew", "1")];
    admin.send("DELETE", "/console/api/v1/people/ada", &headers, "").await;
    assert_eq!(stream.until("never").await, None);
}

#[tokio::test]
async fn a_stream_ends_when_its_token_is_revoked() {
    let house = House::new().await;
    let (view, token) = house.gateway.tokens().create(sinew_gateway::Role::Admin, "desk").unwrap();
    let browser = house.browser();
    browser.sign_in(&[("token", &token)]).await;
    let mut stream = Stream::open(&browser, &[]).await;
    stream.until("event: reset").await.unwrap();
    house.gateway.tokens().revoke(&view.id).unwrap();
    assert_eq!(stream.until("never").await, None);
}

#[tokio::test]
async fn only_so_many_pages_are_open_at_once() {
    let house = House::new().await;
    let admin = house.admin().await;
    let mut open = Vec::new();
    for _ in 0..64 {
        open.push(Stream::open(&admin, &[]).await);
    }
    assert_eq!(admin.open("GET", "/console/stream", &[], "").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(house.browser().open("GET", "/console/stream", &[], "").await.status(), StatusCode::UNAUTHORIZED);
}
