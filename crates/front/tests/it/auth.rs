//! Tokens, and the allowed hosts and origins.

use serde_json::json;
use sinew_api::{Access, Method, ROUTES};
use sinew_front::FrontSettings;
use sinew_gateway::Role;
use sinew_tool::Tool;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::Client;
use crate::server::TestServer;

const ENDPOINTS: [(&str, &str); 6] = [
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("GET", "/mcp/stream"),
    ("GET", "/mcp/v1/tools/list"),
    ("GET", "/api/v1/devices"),
    ("GET", "/nowhere"),
];

#[tokio::test]
async fn no_endpoint_answers_without_a_token() {
    let server = TestServer::new().await;
    let client = server.client().with_token(None);
    for (method, path) in ENDPOINTS {
        let reply = client.send(method, path, &[], "{}").await;
        assert_eq!(reply.status, 401, "{path}");
        assert!(reply.header("www-authenticate").starts_with("Bearer"), "{path}");
        let message = "Missing Authorization header. Expected: Bearer <token>";
        assert_eq!(reply.json(), json!({"error": "unauthorized", "message": message}), "{path}");
    }
    assert_eq!(client.get("/health").await.json()["status"], "healthy");
    let ready = client.get("/ready").await;
    assert_eq!((ready.status.as_u16(), ready.json()), (200, json!({"ready": true, "reasons": []})));
    assert_eq!(client.get("/api/v1/openapi.json").await.json()["openapi"], "3.1.0");
}

#[tokio::test]
async fn every_route_needs_the_access_in_the_table() {
    let server = TestServer::new().await;
    let (_, token) = server.gateway.tokens().create(Role::Client, "guest").unwrap();
    let (nobody, client) = (server.client().with_token(None), server.client().with_token(Some(&token)));
    for route in ROUTES {
        let method = if route.method == Method::Any { "GET" } else { route.method.as_str() };
        let path = route.path.replace("{id}", "nothing");
        let status = async |client: &Client| client.send(method, &path, &[], "{}").await.status.as_u16();
        let refused = (status(&nobody).await == 401, status(&client).await == 403);
        let expected = (route.access != Access::Open, route.access == Access::Admin);
        assert_eq!(refused, expected, "{method} {path}");
        let own = status(&server.client()).await;
        assert!(!matches!(own, 401 | 403 | 405), "{method} {path}: {own}");
    }
}

#[tokio::test]
async fn wrong_and_malformed_tokens_get_different_errors() {
    let server = TestServer::new().await;
    let client = server.client().with_token(None);
    let message = async |header: &str| {
        let reply = client.send("GET", "/api/v1/devices", &[("authorization", header)], "").await;
        assert_eq!(reply.status, 401, "{header}");
        reply.json()["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(message("Bearer wrong").await, "Invalid bearer token");
    let malformed = "Malformed Authorization header. Expected: Bearer <token>";
    for header in ["Basic abc", "Bearer", "Bearer   ", "nonsense"] {
        assert_eq!(message(header).await, malformed, "{header}");
    }
    let lower_case = format!("bearer   {} ", server.token);
    let reply = client.send("GET", "/api/v1/devices", &[("authorization", &lower_case)], "").await;
    assert_eq!(reply.status, 200, "the scheme is not case-sensitive");
}

#[tokio::test]
async fn a_device_token_is_forbidden() {
    let server = TestServer::new().await;
    let (_, token) = server.gateway.tokens().create(Role::Device("lamp".to_owned()), "lamp").unwrap();
    let client = server.client().with_token(Some(&token));
    for (method, path) in ENDPOINTS {
        let reply = client.send(method, path, &[], "{}").await;
        assert_eq!((reply.status.as_u16(), &reply.json()["error"]), (403, &json!("forbidden")), "{path}");
    }
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let settings = FrontSettings {
        allowed_hosts: vec!["lab.local".to_owned(), "exact.example:9000".to_owned()],
        allowed_origins: vec!["https://console.example".to_owned()],
        ..FrontSettings::default()
    };
    let server = TestServer::with(settings, None).await;
    let client = server.client();
    let status = async |headers: &[(&str, &str)]| client.send("GET", "/health", headers, "").await.status.as_u16();
    for host in ["localhost", "127.0.0.1:7300", "[::1]:7300", "lab.local", "LAB.local:1", "exact.example:9000"] {
        assert_eq!(status(&[("host", host)]).await, 200, "{host}");
    }
    for host in ["evil.example", "lab.local.evil.example", "exact.example", "exact.example:1"] {
        assert_eq!(status(&[("host", host)]).await, 403, "{host}");
    }
    for origin in ["http://localhost:3000", "http://127.0.0.1", "http://[::1]:1", "https://console.example"] {
        assert_eq!(status(&[("origin", origin)]).await, 200, "{origin}");
    }
    for origin in ["http://evil.example", "null", "https://console.example.evil.example", "file://localhost", "x"] {
        assert_eq!(status(&[("origin", origin)]).await, 403, "{origin}");
    }
    let twice = [("host", "localhost"), ("host", "localhost")];
    assert_eq!(status(&twice).await, 400, "which of two hosts is meant nobody knows");
    let own_page = [("host", "lab.local:7300"), ("origin", "https://lab.local:7300")];
    assert_eq!(status(&own_page).await, 200, "our own pages may call us");
}

#[tokio::test]
async fn headers_that_decide_are_there_once_and_say_what_the_address_says() {
    let server = TestServer::new().await;
    let (address, token) = (server.address, &server.token);
    let status = async |target: &str, headers: &[String]| {
        let headers = headers.join("\r\n");
        let request = format!("GET {target} HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\r\n");
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    const PATH: &str = "/api/v1/devices";
    let (host, bearer) = (format!("Host: {address}"), format!("Authorization: Bearer {token}"));
    let with = |more: &str| [host.clone(), bearer.clone(), more.to_owned()];
    assert_eq!(status(PATH, &[host.clone(), bearer.clone()]).await, 200);
    for twice in ["Host: evil.example", "Authorization: Bearer other-token", "authorization: Basic eDp5"] {
        assert_eq!(status(PATH, &with(twice)).await, 400, "{twice}");
    }
    let page = format!("Origin: http://{address}");
    assert_eq!(status(PATH, &with(&page)).await, 200);
    assert_eq!(status(PATH, &with(&format!("{page}\r\nOrigin: http://evil.example"))).await, 400);
    assert_eq!(status(PATH, &[format!("Host: somebody@{address}"), bearer.clone()]).await, 400);
    assert_eq!(status(&format!("http://{address}{PATH}"), &[host.clone(), bearer.clone()]).await, 200);
    assert_eq!(status(&format!("http://evil.example{PATH}"), &[host.clone(), bearer.clone()]).await, 400);
}

#[tokio::test]
async fn an_open_server_needs_no_token_and_listens_only_on_loopback() {
    let server = TestServer::with(FrontSettings { open: true, ..FrontSettings::default() }, None).await;
    let client = Client::new(server.address, "unused").with_token(None);
    assert_eq!(client.modern("tools/list", json!({})).await.status, 200);

    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let settings = FrontSettings { open: true, ..FrontSettings::default() };
    let front = sinew_front::Front::new(server.gateway.clone(), settings);
    let refused = sinew_front::http::run(listener, front, None, server.shutdown.clone()).await;
    assert!(refused.unwrap_err().to_string().contains("loopback"));
}

#[tokio::test]
async fn tools_for_people_are_hidden_from_a_model_even_with_the_gateways_own_token() {
    let server = TestServer::new().await;
    server.join("board:00:01", vec![Tool::new("reboot", "Restart the board.", json!({"type": "object"})).for_users()]);
    let list = server.client().modern("tools/list", json!({})).await.json()["result"]["tools"].to_string();
    assert!(list.contains("echo") && !list.contains("reboot"), "{list}");
    let guessed = server.client().modern("tools/call", json!({"name": "reboot", "arguments": {}})).await;
    assert_eq!(guessed.json()["error"]["code"], -32602);
    let people = server.client().get("/api/v1/tools").await.json().to_string();
    assert!(people.contains("reboot"), "{people}");
}
