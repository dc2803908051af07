//! Photos and copies of screens, sent as firmware sends them and as it never would.

use std::sync::Arc;

use serde_json::{Value, json};
use sinew_boards::{Backend, HubConfig, Pictures};
use sinew_sim::board::{BoardConfig, BoardKind};
use sinew_tool::{Content, Device};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::mqtt::Client;
use crate::support::{TOKEN, TestGateway, answered, call, soon};

const JPEG: &[u8] = &[0xff, 0xd8, 0xff, 0xe0, b'p', b'i', b'x'];
const FORM: &str = "multipart/form-data; boundary=----B";

fn attach(config: &mut HubConfig) {
    config.pictures = Some(Pictures::Attach);
}

fn form(question: Option<&str>, file: &[u8]) -> Vec<u8> {
    let mut form = Vec::new();
    if let Some(question) = question {
        form.extend(
            format!("------B\r\nContent-Disposition: form-data; name=\"question\"\r\n\r\n{question}\r\n").bytes(),
        );
    }
    form.extend(b"------B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n");
    form.extend(file);
    form.extend(b"\r\n------B--\r\n");
    form
}

/// A board played by hand, and the `vision` it was given.
async fn seeing(gateway: &mut TestGateway, id: &str) -> (Client, Arc<dyn Device>, Value) {
    let mut client = Client::admitted(gateway, id).await;
    let first = client.introduce().await;
    let device = gateway.joined().await;
    (client, device, first["payload"]["params"]["capabilities"]["vision"].clone())
}

async fn photo(device: &Arc<dyn Device>) -> sinew_tool::Outcome {
    answered(call(device, "self.camera.take_photo", json!({"question": "What is there?"}))).await.expect("a photo")
}

#[tokio::test]
async fn a_photo_comes_back_as_text_and_picture_and_stays_as_a_resource() {
    let mut gateway = TestGateway::open_with(attach).await;
    for (number, url) in [gateway.url(), gateway.mqtt_url()].into_iter().enumerate() {
        let id = format!("02:51:00:00:00:0{number}");
        gateway.switch_on(BoardConfig { url, ..gateway.board(&id, BoardKind::Talking) });
        let device = gateway.joined().await;
        assert!(device.pictures().is_empty());
        let outcome = photo(&device).await;
        let [Content::Text(text), picture @ Content::Image { mime_type, .. }] = &outcome.content[..] else {
            panic!("{outcome:?}")
        };
        let said: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(said["success"], true);
        assert_eq!(mime_type, "image/jpeg");
        let [kept] = &device.pictures()[..] else { panic!("one picture") };
        assert_eq!((&*kept.name, &*kept.mime_type), ("photo", "image/jpeg"));
        assert_eq!(&kept.bytes[..], &picture.bytes().expect("base64")[..]);
        let second = photo(&device).await;
        assert_eq!(second.content.len(), 2, "one picture an answer");
        assert_ne!(device.pictures()[0].bytes, kept.bytes, "the last one is kept");
    }
    gateway.close().await;
}

/// A backend that gives one answer after the other, and what it was asked.
async fn backend(answers: Vec<(u16, Value)>) -> (String, tokio::task::JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/v1/chat/completions", listener.local_addr().expect("bound"));
    let serving = tokio::spawn(async move {
        let mut asked = Vec::new();
        for (status, answer) in answers {
            let (mut tcp, _) = listener.accept().await.expect("a client");
            let mut request = Vec::new();
            let body = loop {
                let mut room = [0; 65536];
                let count = tcp.read(&mut room).await.expect("more");
                request.extend_from_slice(&room[..count]);
                let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
                let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
                assert!(head.contains("authorization: bearer k3y"), "{head}");
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
                if request.len() >= end + 4 + length.parse::<usize>().expect("a number") {
                    break request[end + 4..].to_vec();
                }
            };
            asked.push(serde_json::from_slice(&body).expect("JSON"));
            let answer = answer.to_string();
            let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", answer.len());
            tcp.write_all(format!("{head}{answer}").as_bytes()).await.expect("sent");
        }
        asked
    });
    (url, serving)
}

#[tokio::test]
async fn a_backend_answers_the_question_and_where_it_fails_the_picture_is_shown() {
    let answers = vec![
        (200, json!({"choices": [{"message": {"role": "assistant", "content": "A little gateway."}}]})),
        (500, json!({"error": {"message": "out of tokens"}})),
    ];
    let (url, serving) = backend(answers).await;
    let backend = Backend::new(&url, "eyes-1", Some("k3y")).expect("an address");
    let mut gateway = TestGateway::open_with(|config| config.pictures = Some(Pictures::Ask(backend))).await;
    gateway.switch_on(gateway.board("02:51:00:00:00:01", BoardKind::Talking));
    let device = gateway.joined().await;

    let outcome = photo(&device).await;
    let said: Value = serde_json::from_str(&outcome.joined_text()).expect("JSON");
    assert_eq!(said, json!({"success": true, "action": "RESPONSE", "response": "A little gateway."}));
    assert_eq!(outcome.content.len(), 1, "the model has looked; nobody else needs to");
    assert_eq!(device.pictures().len(), 1);

    let outcome = photo(&device).await;
    let said: Value = serde_json::from_str(&outcome.joined_text()).expect("JSON");
    assert_eq!(said["success"], false);
    assert!(said["message"].as_str().is_some_and(|why| why.contains("out of tokens")), "{said}");
    assert!(matches!(outcome.content[1], Content::Image { .. }));

    let asked = serving.await.expect("no panic");
    assert_eq!(asked[0]["model"], "eyes-1");
    let parts = &asked[0]["messages"][0]["content"];
    assert_eq!(parts[0]["text"], "What is there?");
    assert!(parts[1]["image_url"]["url"].as_str().is_some_and(|url| url.starts_with("data:image/jpeg;base64,/9j/")));
    gateway.close().await;
}

#[tokio::test]
async fn only_the_board_itself_may_send_its_photos_and_only_while_it_is_here() {
    let mut gateway = TestGateway::open_with(attach).await;
    let (_first, _, vision) = seeing(&mut gateway, "aa").await;
    let (mut second, other, other_vision) = seeing(&mut gateway, "bb").await;
    assert_eq!(vision["url"], format!("http://{}/vision/explain", gateway.address));
    let (token, other_token) =
        (vision["token"].as_str().expect("a token"), other_vision["token"].as_str().expect("one"));
    assert_ne!(token, other_token);
    let body = form(Some("?"), JPEG);
    let post = async |gateway: &TestGateway, id: &str, authorization: &str| {
        let headers = [("Device-Id", id), ("Authorization", authorization), ("Content-Type", FORM)];
        gateway.request("POST", "/vision/explain", &headers, &body).await.0
    };
    let bearer = |token: &str| format!("Bearer {token}");
    assert_eq!(post(&gateway, "aa", &bearer(token)).await, 200);
    for (id, authorization) in [
        ("aa", bearer(other_token)),
        ("bb", bearer(token)),
        ("cc", bearer(token)),
        ("aa", bearer(TOKEN)),
        ("aa", "Bearer ".to_owned()),
        ("", bearer(token)),
    ] {
        assert_eq!(post(&gateway, id, &authorization).await, 401, "{id} {authorization}");
    }
    second.send(0xe0, &[]).await;
    assert!(Arc::ptr_eq(&gateway.left().await.0, &other));
    assert_eq!(post(&gateway, "bb", &bearer(other_token)).await, 401, "a token ends with its stay");
    gateway.close().await;
}

/// A picture that is begun and not finished.
async fn slow_upload(gateway: &TestGateway, id: &str, vision: &Value) -> TcpStream {
    let mut tcp = TcpStream::connect(gateway.address).await.expect("open");
    let bearer = vision["token"].as_str().expect("a token");
    let head = format!(
        "POST /vision/explain HTTP/1.1\r\nHost: x\r\nDevice-Id: {id}\r\nAuthorization: Bearer {bearer}\r\n\
         Content-Type: {FORM}\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
    );
    tcp.write_all(head.as_bytes()).await.expect("sent");
    // It is asked to go on once its body is being read.
    let mut answer = [0; 25];
    soon(tcp.read_exact(&mut answer)).await.expect("an interim answer");
    assert!(answer.starts_with(b"HTTP/1.1 100"), "{}", String::from_utf8_lossy(&answer));
    tcp
}

async fn status(mut tcp: TcpStream) -> String {
    let mut answer = Vec::new();
    soon(tcp.read_to_end(&mut answer)).await.expect("an answer");
    String::from_utf8_lossy(&answer).split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn slow_pictures_make_room_for_those_of_other_boards() {
    let mut gateway = TestGateway::open_with(|config| {
        attach(config);
        (config.limits.uploads, config.limits.uploads_per_board) = (3, 2);
    })
    .await;
    let (_slow, _, slow) = seeing(&mut gateway, "aa").await;
    let (_other, _, other) = seeing(&mut gateway, "bb").await;
    let (_honest, _, honest) = seeing(&mut gateway, "cc").await;
    let first = slow_upload(&gateway, "aa", &slow).await;
    let second = slow_upload(&gateway, "aa", &slow).await;
    let _third = slow_upload(&gateway, "aa", &slow).await;
    assert_eq!(status(first).await, "503", "a board has two at most");
    let _fourth = slow_upload(&gateway, "bb", &other).await;
    let bearer = format!("Bearer {}", honest["token"].as_str().expect("a token"));
    let headers = [("Device-Id", "cc"), ("Authorization", bearer.as_str()), ("Content-Type", FORM)];
    let body = form(Some("?"), JPEG);
    assert_eq!(gateway.request("POST", "/vision/explain", &headers, &body).await.0, 200);
    assert_eq!(status(second).await, "503", "the board with the most pictures loses its oldest");
    gateway.close().await;
}

#[tokio::test]
async fn what_is_no_picture_or_too_large_is_refused() {
    let mut gateway = TestGateway::open_with(attach).await;
    let (_client, device, vision) = seeing(&mut gateway, "aa").await;
    let bearer = format!("Bearer {}", vision["token"].as_str().expect("a token"));
    let png = [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 1];
    let cases: [(&str, Vec<u8>, u16); 8] = [
        (FORM, form(None, &png), 200),
        (FORM, form(None, b"GIF89a"), 415),
        (FORM, form(None, b""), 415),
        (FORM, form(None, &[JPEG, &vec![0; 5 << 20]].concat()), 413),
        (FORM, form(None, &[JPEG, &vec![0; 6 << 20]].concat()), 413),
        (FORM, form(Some(&"?".repeat(5000)), JPEG), 400),
        (FORM, b"------B\r\n".to_vec(), 400),
        ("image/jpeg", JPEG.to_vec(), 400),
    ];
    for (content_type, body, expected) in cases {
        let headers = [("Device-Id", "aa"), ("Authorization", bearer.as_str()), ("Content-Type", content_type)];
        let (status, answer) = gateway.request("POST", "/vision/explain", &headers, &body).await;
        assert_eq!(status, expected, "{answer}");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(answer["success"], expected == 200, "{answer}");
    }
    assert_eq!(device.pictures()[0].mime_type, "image/png");
    // Nobody had called anything, so it is told.
    assert_eq!(gateway.said("picture").await.body["bytes"], png.len());
    gateway.close().await;
}

#[tokio::test]
async fn a_copy_of_the_screen_comes_to_an_address_nobody_can_guess() {
    let mut gateway = TestGateway::open_with(|config| {
        attach(config);
        config.user_tools = true;
    })
    .await;
    gateway
        .switch_on(BoardConfig { url: gateway.mqtt_url(), ..gateway.board("02:51:00:00:00:01", BoardKind::Talking) });
    let device = gateway.joined().await;
    let url = device.info().attributes["upload_url"].as_str().expect("an address").to_owned();
    let outcome = answered(call(&device, "self.screen.snapshot", json!({"url": url}))).await.expect("a copy");
    assert_eq!(outcome.joined_text(), "true");
    assert!(matches!(outcome.content[1], Content::Image { .. }));
    assert_eq!(device.pictures()[0].name, "screen");

    let path = url.split_once(&gateway.address.to_string()).expect("our own address").1;
    let guessed = path[..path.len() - 1].to_owned() + if path.ends_with('0') { "1" } else { "0" };
    for (path, expected) in [(path, 200), (&guessed, 401), ("/vision/upload", 401)] {
        let status = gateway.request("POST", path, &[("Content-Type", FORM)], &form(None, JPEG)).await.0;
        assert_eq!(status, expected, "{path}");
    }
    gateway.close().await;
}

#[tokio::test]
async fn where_nobody_looks_at_pictures_boards_are_told_of_no_place_for_them() {
    let mut gateway = TestGateway::open().await;
    let (_client, _, vision) = seeing(&mut gateway, "aa").await;
    assert_eq!(vision, Value::Null);
    let headers = [("Device-Id", "aa"), ("Authorization", "Bearer x"), ("Content-Type", FORM)];
    assert_eq!(gateway.request("POST", "/vision/explain", &headers, &form(None, JPEG)).await.0, 401);
    gateway.close().await;
}
