//! Clients that sign in: the whole way over real sockets, and what pages and clients of others cannot do.

use http::StatusCode;
use serde_json::Value;
use sinew_console::ConsoleSettings;
use sinew_signin::{ConnectRole, OAuthSettings};
use sinew_tool::json;

use crate::browser::{Answer, Browser, House};

const REDIRECT: &str = "http://127.0.0.1:33418/callback";
const VERIFIER: &str = "a-verifier-that-is-long-enough-to-be-a-secret-of-its-own";
/// Its SHA-256.
const CHALLENGE: &str = "RSdCukdV0NgigfNOYffk2YZMoaebhXUNaqLGHquQLEY";
const LIST: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;

async fn house() -> House {
    House::with_sign_in(ConsoleSettings::default(), OAuthSettings::default()).await
}

/// What a client sends, which is no browser: without cookies and origin.
async fn client(house: &House, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    house.browser().send(method, path, headers, body).await
}

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

async fn form(house: &House, path: &str, fields: &[(&str, &str)]) -> Answer {
    let body: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    client(house, "POST", path, &[("content-type", "application/x-www-form-urlencoded")], &body.join("&")).await
}

async fn register(house: &House, redirect: &str) -> String {
    let about = json!({"client_name": "A <b>program</b>", "redirect_uris": [redirect]}).to_string();
    let answer = client(house, "POST", "/oauth/register", &[("content-type", "application/json")], &about).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    answer.json()["client_id"].as_str().unwrap().to_owned()
}

fn query(house: &House, client: &str) -> String {
    let resource = format!("http://{}/mcp", house.address);
    let fields = [
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", REDIRECT),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("resource", &resource),
        ("state", "x y"),
    ];
    fields.map(|(name, value)| format!("{name}={}", encode(value))).join("&")
}

/// Presses a button of the page, with the values of its form.
async fn press(browser: &Browser, page: &str, decision: &str) -> Answer {
    let mut fields: Vec<(String, String)> = Vec::new();
    let (_, form) = page.split_once("action=\"authorize\"").expect("a form");
    for input in form.split("<input type=\"hidden\" name=\"").skip(1) {
        let (name, rest) = input.split_once("\" value=\"").unwrap();
        fields.push((name.to_owned(), rest.split('"').next().unwrap().replace("&amp;", "&")));
    }
    fields.push(("decision".to_owned(), decision.to_owned()));
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    browser.submit("authorize", &fields).await
}

fn answered(address: &str, name: &str) -> String {
    let (_, query) = address.split_once('?').unwrap();
    let value = query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    value.unwrap_or_else(|| panic!("no {name} in {address}")).to_owned()
}

async fn tokens(house: &House, browser: &Browser, id: &str) -> Value {
    let page = browser.get(&format!("authorize?{}", query(house, id))).await;
    let pressed = press(browser, &page.text, "allow").await;
    let code = answered(pressed.header("location"), "code");
    let fields = [
        ("grant_type", "authorization_code"),
        ("client_id", id),
        ("code", code.as_str()),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
    ];
    let answer = form(house, "/oauth/token", &fields).await;
    assert_eq!((answer.status, answer.header("cache-control")), (StatusCode::OK, "no-store"), "{}", answer.text);
    answer.json()
}

async fn list(house: &House, token: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    client(house, "POST", "/mcp/v1/tools/list", &headers, LIST).await
}

#[tokio::test]
async fn a_client_finds_where_to_sign_in_and_comes_in_as_its_person() {
    let house = house().await;
    let base = format!("http://{}", house.address);
    // Without a token it is told where to look.
    let refused = client(&house, "POST", "/mcp", &[("content-type", "application/json")], LIST).await;
    let metadata = format!("{base}/.well-known/oauth-protected-resource/mcp");
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    let challenge = format!("Bearer realm=\"sinew\", resource_metadata=\"{metadata}\", scope=\"tools\"");
    assert_eq!(refused.header("www-authenticate"), challenge);
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        // From any page: clients in browsers read it.
        let found = client(&house, "GET", path, &[("origin", "https://client.example")], "").await;
        assert_eq!((found.status, found.header("access-control-allow-origin")), (StatusCode::OK, "*"));
        assert_eq!(found.json()["resource"], format!("{base}/mcp"));
        assert_eq!(found.json()["authorization_servers"], json!([base]));
    }
    let server = client(&house, "GET", "/.well-known/oauth-authorization-server", &[], "").await.json();
    assert_eq!(server["issuer"], base);
    assert_eq!(server["authorization_endpoint"], format!("{base}/oauth/authorize"));

    let id = register(&house, REDIRECT).await;
    // The browser comes from elsewhere, so its cookie is not sent before a page of ours leads on.
    let stranger = house.browser();
    let first = stranger.send("GET", &format!("/oauth/authorize?{}", query(&house, &id)), &[], "").await;
    assert_eq!(first.status, StatusCode::OK);
    assert!(
        first.text.contains("http-equiv=\"refresh\" content=\"0;url=../console/authorize?response_type="),
        "{}",
        first.text
    );
    let login = stranger.get(&format!("authorize?{}", query(&house, &id))).await;
    assert!(login.header("location").starts_with("login?next=authorize%3F"), "{}", login.header("location"));

    let ada = house.person("ada", "admin").await;
    let page = ada.get(&format!("authorize?{}", query(&house, &id))).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    assert!(page.text.contains("A &lt;b&gt;program&lt;/b&gt;") && page.text.contains("ada@localhost"), "{}", page.text);
    let policy = page.header("content-security-policy");
    assert!(policy.contains("form-action 'self' http://127.0.0.1:33418;"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("script-src 'self'"), "{policy}");
    let pressed = press(&ada, &page.text, "allow").await;
    let address = pressed.header("location");
    assert!(pressed.status == StatusCode::SEE_OTHER && address.starts_with(&format!("{REDIRECT}?code=")), "{address}");
    assert_eq!((answered(address, "state"), answered(address, "iss")), ("x%20y".to_owned(), encode_url(&base)));

    let tokens = tokens(&house, &ada, &id).await;
    let answer = list(&house, tokens["access_token"].as_str().unwrap()).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert!(answer.text.contains("unlock"), "{}", answer.text);
    // It is a client: administration is not its business, and the console is not open to it.
    let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
    let admin = client(&house, "GET", "/api/v1/tokens", &[("authorization", &bearer)], "").await;
    assert_eq!(admin.status, StatusCode::FORBIDDEN);
    let console = client(&house, "GET", "/console/api/v1/devices", &[("authorization", &bearer)], "").await;
    assert_eq!(console.status, StatusCode::UNAUTHORIZED);
    let stream = client(&house, "GET", "/mcp/stream", &[("authorization", &bearer)], "").await;
    assert_eq!(stream.status, StatusCode::FORBIDDEN);
    // Administrators see it, and end it.
    let admin = house.admin().await;
    let entry = admin.get("api/v1/sign-ins").await.json()["sign_ins"][0].clone();
    assert_eq!((&entry["caller"], &entry["client"]), (&json!("ada@localhost"), &json!("A <b>program</b>")));
    let path = format!("/console/api/v1/sign-ins/{}", entry["id"].as_str().unwrap());
    let ended = admin.send("DELETE", &path, &[("origin", &admin.origin), ("x-sinew", "1")], "").await;
    assert_eq!(ended.status, StatusCode::OK, "{}", ended.text);
    let refused = list(&house, tokens["access_token"].as_str().unwrap()).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert!(refused.header("www-authenticate").contains("error=\"invalid_token\", resource_metadata="));
}

/// As the gateway writes a value in a query.
fn encode_url(text: &str) -> String {
    text.replace(':', "%3A").replace('/', "%2F")
}

#[tokio::test]
async fn without_sign_in_nothing_of_it_is_there() {
    let house = House::new().await;
    let refused = client(&house, "POST", "/mcp", &[], LIST).await;
    assert_eq!(refused.header("www-authenticate"), "Bearer realm=\"sinew\"");
    let paths =
        ["/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server", "/oauth/authorize"];
    for path in paths {
        assert_eq!(client(&house, "GET", path, &[], "").await.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    for path in ["/oauth/token", "/oauth/register", "/oauth/revoke"] {
        assert_eq!(client(&house, "POST", path, &[], "{}").await.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    let ada = house.person("ada", "admin").await;
    assert_eq!(ada.get("authorize?client_id=x").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_page_of_others_cannot_press_the_button() {
    let house = house().await;
    let id = register(&house, REDIRECT).await;
    let ada = house.person("ada", "admin").await;
    let page = ada.get(&format!("authorize?{}", query(&house, &id))).await;
    // Another origin with the cookie of the person, also from another port of the same host.
    for origin in ["https://evil.example", "http://127.0.0.1:1", "null"] {
        let foreign = Browser { address: house.address, cookies: Default::default(), origin: origin.to_owned() };
        foreign.cookies.lock().unwrap().extend(ada.cookies.lock().unwrap().clone());
        let pressed = press(&foreign, &page.text, "allow").await;
        assert_eq!((pressed.status, pressed.header("location")), (StatusCode::FORBIDDEN, ""), "{origin}");
    }
    // Our own page with the form of another session, or with none.
    let bob = house.person("bob", "admin").await;
    assert_eq!(press(&bob, &page.text, "allow").await.status, StatusCode::FORBIDDEN);
    let fields = [("client_id", id.as_str()), ("decision", "allow")];
    assert_eq!(ada.submit("authorize", &fields).await.status, StatusCode::FORBIDDEN);
    // Looking alone connects nothing, and no button is none.
    assert_eq!(press(&ada, &page.text, "").await.status, StatusCode::BAD_REQUEST);
    let denied = press(&ada, &page.text, "deny").await;
    assert_eq!(answered(denied.header("location"), "error"), "access_denied");
    let admin = house.admin().await;
    assert_eq!(admin.get("api/v1/sign-ins").await.json(), json!({"enabled": true, "sign_ins": []}));
}

#[tokio::test]
async fn only_people_with_the_role_connect_clients() {
    let oauth = OAuthSettings { role: ConnectRole::Approver, ..OAuthSettings::default() };
    let house = House::with_sign_in(ConsoleSettings::default(), oauth).await;
    let id = register(&house, REDIRECT).await;
    let address = format!("authorize?{}", query(&house, &id));
    let viewer = house.person("vera", "viewer").await;
    assert_eq!(viewer.get(&address).await.status, StatusCode::FORBIDDEN);
    // A token is nobody.
    let token = house.admin().await.get(&address).await;
    assert!(token.status == StatusCode::FORBIDDEN && token.text.contains("passphrase"), "{}", token.text);
    let approver = house.person("anna", "approver").await;
    let tokens = tokens(&house, &approver, &id).await;
    let access = tokens["access_token"].as_str().unwrap();
    assert_eq!(list(&house, access).await.status, StatusCode::OK);
    // Who is somebody else now is admitted nowhere any more.
    house.person("anna", "viewer").await;
    assert_eq!(list(&house, access).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_wrong_request_leads_nowhere_by_itself() {
    let house = house().await;
    let id = register(&house, REDIRECT).await;
    let ada = house.person("ada", "admin").await;
    let right = query(&house, &id);
    for (from, to) in [("33418", "33418%2F%2Fevil"), ("callback", "other"), ("127.0.0.1:33418", "evil.example")] {
        let wrong = right.replace(&encode(from), to).replace(from, to);
        let page = ada.get(&format!("authorize?{wrong}")).await;
        assert_eq!((page.status, page.header("location")), (StatusCode::BAD_REQUEST, ""), "{wrong}");
        assert!(!page.text.contains("href=\"http"), "{}", page.text);
    }
    let plain = right.replace(&encode("S256"), "plain");
    let page = ada.get(&format!("authorize?{plain}")).await;
    assert_eq!((page.status, page.header("location")), (StatusCode::BAD_REQUEST, ""));
    assert!(page.text.contains(&format!("href=\"{REDIRECT}?error=invalid_request")), "{}", page.text);
    // The client's document is on this machine, or in this network.
    for inward in ["https://127.0.0.1/me", "https://localhost:7300/me", "https://169.254.169.254/latest"] {
        let page = ada.get(&format!("authorize?{}", right.replace(&encode(&id), &encode(inward)))).await;
        assert_eq!(page.status, StatusCode::BAD_REQUEST);
    }
}

#[tokio::test]
async fn malformed_requests_of_clients_get_the_errors_of_the_protocol() {
    let house = house().await;
    let id = register(&house, REDIRECT).await;
    let error = |answer: &Answer| answer.json()["error"].as_str().unwrap().to_owned();
    for (path, kind, body, expected) in [
        ("/oauth/token", "application/json", "{}", "invalid_request"),
        ("/oauth/token", "application/x-www-form-urlencoded", "", "invalid_request"),
        (
            "/oauth/token",
            "application/x-www-form-urlencoded",
            "client_id=a&client_id=b&grant_type=x",
            "invalid_request",
        ),
        (
            "/oauth/token",
            "application/x-www-form-urlencoded",
            "client_id=a&grant_type=password",
            "unsupported_grant_type",
        ),
        ("/oauth/revoke", "application/x-www-form-urlencoded", "", "invalid_request"),
        ("/oauth/register", "application/json", "[]", "invalid_client_metadata"),
        (
            "/oauth/register",
            "application/json",
            "{\"redirect_uris\": [\"javascript:alert(1)\"]}",
            "invalid_client_metadata",
        ),
    ] {
        let answer = client(&house, "POST", path, &[("content-type", kind)], body).await;
        assert_eq!((answer.status, error(&answer).as_str()), (StatusCode::BAD_REQUEST, expected), "{path} {body}");
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    let long = form(&house, "/oauth/token", &[("client_id", &id), ("code", &"x".repeat(20_000))]).await;
    assert_eq!(error(&long), "invalid_request");
    let revoked = form(&house, "/oauth/revoke", &[("token", "sna_unknown")]).await;
    assert_eq!(revoked.status, StatusCode::OK, "it tells nobody which tokens there are");
    // A second host, of which nobody knows which counts.
    let two = client(&house, "GET", "/.well-known/oauth-protected-resource", &[("host", "evil.example")], "").await;
    assert_eq!(two.status, StatusCode::BAD_REQUEST);
    let tricks = ["\"><script>alert(1)</script>", "a=b'onx=1", "x=%0d%0aset-cookie:a"];
    for trick in tricks {
        let trick = trick.replace('<', "%3C").replace('>', "%3E").replace('"', "%22").replace(' ', "%20");
        let page = client(&house, "GET", &format!("/oauth/authorize?{trick}"), &[], "").await;
        assert!(!page.text.contains("<script") && !page.text.contains("'onx"), "{}", page.text);
        assert_eq!(page.header("set-cookie"), "");
    }
}

#[tokio::test]
async fn the_sign_in_ends_when_its_person_is_removed() {
    let house = house().await;
    let id = register(&house, REDIRECT).await;
    let ada = house.person("ada", "admin").await;
    let tokens = tokens(&house, &ada, &id).await;
    let access = tokens["access_token"].as_str().unwrap();
    assert_eq!(list(&house, access).await.status, StatusCode::OK);
    let admin = house.admin().await;
    let headers = [("origin", admin.origin.as_str()), ("x-sinew", "1")];
    assert_eq!(admin.send("DELETE", "/console/api/v1/people/Ada", &headers, "").await.status, StatusCode::OK);
    assert_eq!(list(&house, access).await.status, StatusCode::UNAUTHORIZED);
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", &id),
        ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
    ];
    assert_eq!(form(&house, "/oauth/token", &fields).await.status, StatusCode::BAD_REQUEST);
}
