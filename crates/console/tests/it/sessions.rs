//! Signing in and out, and what requests of other pages can do.

use http::StatusCode;
use http_body_util::BodyExt;
use sinew_console::ConsoleSettings;
use sinew_gateway::Role;
use sinew_tool::json;

use crate::browser::House;

#[tokio::test]
async fn a_browser_at_the_root_is_led_to_the_console_and_there_to_the_login() {
    let house = House::new().await;
    let browser = house.browser();
    let root = browser.send("GET", "/", &[], "").await;
    assert_eq!((root.status, root.header("location")), (StatusCode::SEE_OTHER, "console/"));
    let inside = browser.get("device?id=lock").await;
    assert_eq!((inside.status, inside.header("location")), (StatusCode::SEE_OTHER, "login?next=device%3Fid%3Dlock"));
    let login = browser.get("login?next=device%3Fid%3Dlock").await;
    assert!(login.text.contains("value=\"device?id=lock\""), "{}", login.text);
    let signed = browser.sign_in(&[("token", &house.token), ("next", "device?id=lock")]).await;
    assert_eq!((signed.status, signed.header("location")), (StatusCode::SEE_OTHER, "device?id=lock"));
    assert_eq!(browser.get("device?id=lock").await.status, StatusCode::OK);
}

#[tokio::test]
async fn every_answer_forbids_foreign_scripts_and_frames() {
    let house = House::with(ConsoleSettings {
        frame_ancestors: vec!["https://home.example".to_owned()],
        ..ConsoleSettings::default()
    })
    .await;
    let (stranger, admin) = (house.browser(), house.admin().await);
    for answer in [
        stranger.get("login").await,
        stranger.get("").await,
        admin.get("devices").await,
        admin.get("api/v1/devices").await,
    ] {
        let policy = answer.header("content-security-policy");
        assert!(policy.contains("default-src 'none'; script-src 'self'"), "{policy}");
        assert!(policy.contains("frame-ancestors https://home.example;"), "{policy}");
        assert!(policy.contains("require-trusted-types-for 'script'"), "{policy}");
        assert_eq!((answer.header("x-content-type-options"), answer.header("cache-control")), ("nosniff", "no-store"));
    }
    assert!(
        House::new()
            .await
            .browser()
            .get("login")
            .await
            .header("content-security-policy")
            .contains("frame-ancestors 'none'")
    );
}

#[tokio::test]
async fn wrong_secrets_open_nothing_and_too_many_of_them_are_refused() {
    let house = House::new().await;
    let browser = house.browser();
    let (_, client) = house.gateway.tokens().create(Role::Client, "tablet").unwrap();
    assert!(browser.sign_in(&[("token", &client)]).await.text.contains("the token of a client"));
    for fields in [[("token", "wrong")], [("code", "00")], [("name", "ada")], [("x", "")]] {
        let refused = browser.sign_in(&fields).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{fields:?}");
        assert!(refused.header("set-cookie").is_empty());
    }
    let right = browser.sign_in(&[("token", &house.token)]).await;
    assert_eq!(right.status, StatusCode::TOO_MANY_REQUESTS, "also the right token has to wait");
}

#[tokio::test]
async fn a_form_that_is_huge_or_broken_opens_nothing() {
    let house = House::new().await;
    let browser = house.browser();
    let refused = browser.sign_in(&[("token", &"x".repeat(100_000))]).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    let headers = [("origin", browser.origin.as_str())];
    for body in ["", "%", "token", "token=%ff%00", "=&=&=", "{\"token\": 1}"] {
        let refused = browser.send("POST", "/console/login", &headers, body).await;
        assert!(refused.status.is_client_error(), "{body}");
    }
}

#[tokio::test]
async fn the_cookie_belongs_to_scripts_of_nobody_and_to_this_site_alone() {
    let house = House::new().await;
    let signed = house.browser().sign_in(&[("token", &house.token)]).await;
    let cookie = signed.header("set-cookie");
    assert!(cookie.starts_with(&format!("sinew-{}=", house.address.port())), "{cookie}");
    assert!(cookie.ends_with("; HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(&house.token), "the token itself is in no cookie");
}

#[tokio::test]
async fn forged_old_and_other_cookies_open_nothing() {
    let house = House::new().await;
    let admin = house.admin().await;
    let name = format!("sinew-{}", house.address.port());
    let secret = admin.cookies.lock().unwrap()[&name].clone();
    let stranger = house.browser();
    for (name, value) in [
        (name.as_str(), "00"),
        (&name, ""),
        (&name, &secret[1..]),
        (&name, &house.token),
        ("sinew", &secret),
        ("sinew-1", &secret),
    ] {
        *stranger.cookies.lock().unwrap() = [(name.to_owned(), value.to_owned())].into();
        assert_eq!(stranger.get("api/v1/devices").await.status, StatusCode::UNAUTHORIZED, "{name}={value}");
    }
    *stranger.cookies.lock().unwrap() = [(name, secret)].into();
    assert_eq!(stranger.get("api/v1/devices").await.status, StatusCode::OK);
    let form_token = admin.form_token("devices").await;
    assert_eq!(admin.submit("logout", &[("form_token", &form_token)]).await.header("location"), "login");
    assert_eq!(stranger.get("api/v1/devices").await.status, StatusCode::UNAUTHORIZED, "it was signed out");
}

#[tokio::test]
async fn the_interfaces_for_programs_never_look_at_cookies() {
    let house = House::new().await;
    let admin = house.admin().await;
    for (method, path) in
        [("GET", "/api/v1/devices"), ("POST", "/mcp"), ("POST", "/mcp/v1/tools/list"), ("POST", "/api/v1/call")]
    {
        let headers = [("origin", admin.origin.as_str()), ("x-sinew", "1"), ("sec-fetch-site", "same-origin")];
        assert_eq!(admin.send(method, path, &headers, "{}").await.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    let bearer = format!("Bearer {}", house.token);
    let stranger = house.browser();
    let answer = stranger.send("GET", "/console/api/v1/devices", &[("authorization", &bearer)], "").await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "and the console looks at no token");
}

#[tokio::test]
async fn pages_of_other_sites_and_ports_change_nothing() {
    let house = House::new().await;
    let admin = house.admin().await;
    let own = admin.origin.as_str();
    let body = json!({"name": "mine"}).to_string();
    let path = "/console/api/v1/devices/lock/rename";
    for headers in [
        &[("x-sinew", "1")][..],
        &[("origin", own)],
        &[("origin", "http://127.0.0.1:1"), ("x-sinew", "1")],
        &[("origin", "http://localhost:7300"), ("x-sinew", "1")],
        &[("origin", "https://evil.example"), ("x-sinew", "1")],
        &[("origin", "null"), ("x-sinew", "1")],
        &[("origin", own), ("x-sinew", "1"), ("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "cross-site"), ("x-sinew", "1")],
    ] {
        assert_eq!(admin.send("POST", path, headers, &body).await.status, StatusCode::FORBIDDEN, "{headers:?}");
    }
    assert_eq!(house.gateway.device("lock").unwrap().name, None);
    let form_token = admin.form_token("devices").await;
    let form = format!("form_token={form_token}");
    let refused = admin.send("POST", "/console/logout", &[("origin", "http://127.0.0.1:1")], &form).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(admin.submit("logout", &[("form_token", "0")]).await.status, StatusCode::FORBIDDEN);
    let login = house
        .browser()
        .send("POST", "/console/login", &[("origin", "http://127.0.0.1:1")], &format!("token={}", house.token))
        .await;
    assert_eq!(login.status, StatusCode::FORBIDDEN, "nobody is signed in by a foreign page");
    assert_eq!(admin.post("api/v1/devices/lock/rename", json!({"name": "mine"})).await.status, StatusCode::OK);
}

#[tokio::test]
async fn pages_of_other_sites_and_ports_read_nothing_either() {
    let house = House::new().await;
    let admin = house.admin().await;
    let own = admin.origin.as_str();
    for path in ["/console/api/v1/devices", "/console/stream"] {
        for headers in [
            &[("sec-fetch-site", "same-site")][..],
            &[("sec-fetch-site", "cross-site")],
            &[("origin", "http://127.0.0.1:1")],
            &[("origin", "null")],
        ] {
            let answer = admin.open("GET", path, headers, "").await;
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{path} {headers:?}");
            assert!(!answer.headers().contains_key("access-control-allow-origin"));
        }
        for headers in [&[("sec-fetch-site", "same-origin")][..], &[("sec-fetch-site", "none")], &[("origin", own)]] {
            assert_eq!(admin.open("GET", path, headers, "").await.status(), StatusCode::OK, "{path} {headers:?}");
        }
    }
    // A link on another page leads to a page, as links do.
    let page = admin.send("GET", "/console/devices", &[("sec-fetch-site", "cross-site")], "").await;
    assert_eq!(page.status, StatusCode::OK);
}

#[tokio::test]
async fn many_guesses_at_once_are_as_few_as_one_after_another() {
    let house = House::new().await;
    let browser = house.browser();
    let guess = |number: usize| {
        let browser = &browser;
        async move { browser.sign_in(&[("name", "ada"), ("passphrase", &format!("a guess {number}"))]).await.status }
    };
    let answers = futures_util::future::join_all((0..20).map(guess)).await;
    let tried = answers.iter().filter(|status| **status == StatusCode::UNAUTHORIZED).count();
    let refused = answers.iter().filter(|status| **status == StatusCode::TOO_MANY_REQUESTS).count();
    assert_eq!((tried, refused), (5, 15));
}

#[tokio::test]
async fn somebody_who_is_removed_holds_no_device_and_waits_for_no_call() {
    let house = House::new().await;
    let (ada, admin) = (house.person("ada", "admin").await, house.admin().await);
    assert_eq!(ada.post("api/v1/devices/lock/reserve", json!({"seconds": 3_600})).await.status, StatusCode::OK);
    let lines = [("origin", ada.origin.as_str()), ("x-sinew", "1"), ("accept", "application/x-ndjson")];
    let call = json!({"device": "lock", "tool": "self.unlock"}).to_string();
    let mut answer = ada.open("POST", "/console/api/v1/call", &lines, &call).await.into_body();
    let waits = answer.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(String::from_utf8_lossy(&waits).contains("self.unlock"), "{waits:?}");
    let headers = [("origin", admin.origin.as_str()), ("x-sinew", "1")];
    assert_eq!(admin.send("DELETE", "/console/api/v1/people/ada", &headers, "").await.status, StatusCode::OK);
    while let Some(Ok(frame)) = answer.frame().await {
        let line = frame.into_data().unwrap();
        assert!(!String::from_utf8_lossy(&line).contains("error"), "it ends without an answer: {line:?}");
    }
    let devices = admin.get("api/v1/devices?search=lock").await.json();
    assert!(devices["devices"][0].get("lease").is_none_or(serde_json::Value::is_null), "{devices}");
    assert!(house.gateway.approval_requests().is_empty());
}

#[tokio::test]
async fn other_hosts_are_refused_before_anything_is_read() {
    let house = House::new().await;
    let socket = house.browser();
    let refused = ask_host(&socket, "evil.example").await;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
}

async fn ask_host(browser: &crate::browser::Browser, host: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut socket = tokio::net::TcpStream::connect(browser.address).await.unwrap();
    let request = format!("GET /console/login HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_link_signs_in_once() {
    let house = House::new().await;
    let admin = house.admin().await;
    let link = admin.post("api/v1/login-links", json!({})).await.json();
    let code = link["path"].as_str().unwrap().strip_prefix("/console/login#").unwrap();
    let browser = house.browser();
    assert_eq!(browser.sign_in(&[("code", code)]).await.status, StatusCode::SEE_OTHER);
    assert_eq!(browser.get("api/v1/tokens").await.status, StatusCode::OK);
    assert_eq!(house.browser().sign_in(&[("code", code)]).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn sessions_end_with_their_token_or_person() {
    let house = House::new().await;
    let (view, token) = house.gateway.tokens().create(Role::Admin, "desk").unwrap();
    let by_token = house.browser();
    by_token.sign_in(&[("token", &token)]).await;
    let ada = house.person("ada", "admin").await;
    for browser in [&by_token, &ada] {
        assert_eq!(browser.get("api/v1/devices").await.status, StatusCode::OK);
    }
    house.gateway.tokens().revoke(&view.id).unwrap();
    assert_eq!(by_token.get("api/v1/devices").await.status, StatusCode::UNAUTHORIZED);
    let admin = house.admin().await;
    let headers = [("origin", admin.origin.as_str()), ("x-sinew", "1")];
    assert_eq!(admin.send("DELETE", "/console/api/v1/people/ada", &headers, "").await.status, StatusCode::OK);
    assert_eq!(ada.get("api/v1/devices").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn roles_look_decide_or_do_everything() {
    let house = House::new().await;
    let viewer = house.person("vera", "viewer").await;
    let approver = house.person("Anton", "approver").await;
    for browser in [&viewer, &approver] {
        for path in ["api/v1/devices", "api/v1/audit", "api/v1/tokens", "api/v1/overview", "api/v1/people"] {
            assert_eq!(browser.get(path).await.status, StatusCode::OK, "{path}");
        }
        for (path, body) in [
            ("api/v1/call", json!({"device": "lock", "tool": "self.unlock"})),
            ("api/v1/tokens", json!({"role": "admin", "label": "x"})),
            ("api/v1/people", json!({"name": "x", "role": "admin"})),
            ("api/v1/login-links", json!({})),
            ("api/v1/devices/lock/rename", json!({"name": "x"})),
        ] {
            assert_eq!(browser.post(path, body).await.status, StatusCode::FORBIDDEN, "{path}");
        }
    }
    let nothing = viewer.post("api/v1/approvals/0", json!({"decision": "approve"})).await;
    assert_eq!(nothing.status, StatusCode::FORBIDDEN);
    let unknown = approver.post("api/v1/approvals/0", json!({"decision": "approve"})).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    for path in ["api/v1/../../mcp", "api/mcp", "api/v1/nothing"] {
        assert!(viewer.get(path).await.status.is_client_error(), "{path}");
    }
}
