//! Access tokens of another issuer, over real sockets: its keys are asked for, and its users come in as callers.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use sinew_signin::{AllowedCaller, CallerRole, OAuthSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::client::Reply;
use crate::server::TestServer;

/// An issuer with one key, which it serves at `/keys`; every other path leads there by a redirect.
struct Issuer {
    url: String,
    key: Ed25519KeyPair,
}

impl Issuer {
    async fn new() -> Issuer {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let key = Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap();
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "kid": "one", "x": URL_SAFE_NO_PAD.encode(key.public_key())});
        let keys = json!({"keys": [jwk]}).to_string();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut head = [0; 4096];
                let length = socket.read(&mut head).await.unwrap_or_default();
                let answer = match head[..length].starts_with(b"GET /keys ") {
                    true => format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{keys}", keys.len()),
                    false => "HTTP/1.1 302 Found\r\nlocation: /keys\r\ncontent-length: 0\r\n\r\n".to_owned(),
                };
                let _ = socket.write_all(answer.as_bytes()).await;
            }
        });
        Issuer { url, key }
    }

    fn settings(&self, keys: &str) -> OAuthSettings {
        let allow = |is: &str, role| AllowedCaller { is: is.to_owned(), role, ..AllowedCaller::default() };
        OAuthSettings {
            issuer: Some(self.url.clone()),
            keys: Some(format!("{}{keys}", self.url)),
            allow: vec![allow("ada", CallerRole::Client), allow("root", CallerRole::Admin)],
            ..OAuthSettings::default()
        }
    }

    fn token(&self, server: &TestServer, other: Value) -> String {
        let mut claims = json!({
            "iss": self.url,
            "aud": format!("http://{}/mcp", server.address),
            "sub": "ada",
            "scope": "tools",
            "exp": jiff::Timestamp::now().as_second() + 300,
        });
        claims.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        let parts =
            [json!({"alg": "EdDSA", "kid": "one"}), claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = parts.join(".");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(self.key.sign(signed.as_bytes())))
    }
}

async fn get(server: &TestServer, path: &str, token: &str) -> Reply {
    server.client().with_token(Some(token)).get(path).await
}

const TOOLS: &str = "/mcp/v1/tools/list";

#[tokio::test]
async fn users_of_another_issuer_come_in_as_the_configuration_says() {
    let issuer = Issuer::new().await;
    let server = TestServer::with_sign_in(issuer.settings("/keys")).await;
    let ada = issuer.token(&server, json!({}));
    let listed = get(&server, TOOLS, &ada).await;
    assert_eq!(listed.status, 200, "{:?}", listed.body);
    assert!(String::from_utf8_lossy(&listed.body).contains("echo"));
    assert_eq!(get(&server, "/api/v1/tokens", &ada).await.status, 403);
    let root = issuer.token(&server, json!({"sub": "root"}));
    assert_eq!(get(&server, "/api/v1/tokens", &root).await.status, 200);
    // Its own tokens are good as before.
    assert_eq!(server.client().get(TOOLS).await.status, 200);

    let metadata = format!("http://{}/.well-known/oauth-protected-resource/mcp", server.address);
    let eve = get(&server, TOOLS, &issuer.token(&server, json!({"sub": "eve"}))).await;
    assert_eq!((eve.status.as_u16(), eve.header("www-authenticate")), (403, ""));
    let scope = get(&server, TOOLS, &issuer.token(&server, json!({"scope": "openid"}))).await;
    let wanted = format!(
        "Bearer realm=\"sinew\", error=\"insufficient_scope\", resource_metadata=\"{metadata}\", scope=\"tools\""
    );
    assert_eq!((scope.status.as_u16(), scope.header("www-authenticate")), (403, wanted.as_str()));
    for wrong in
        [json!({"aud": "https://other.example/mcp"}), json!({"exp": 5}), json!({"iss": "https://evil.example"})]
    {
        let refused = get(&server, TOOLS, &issuer.token(&server, wrong.clone())).await;
        assert_eq!(refused.status, 401, "{wrong}");
        assert!(refused.header("www-authenticate").contains(&metadata), "{wrong}");
    }
    let other = Issuer { url: issuer.url.clone(), ..Issuer::new().await };
    assert_eq!(get(&server, TOOLS, &other.token(&server, json!({}))).await.status, 401, "another key of the same name");
    // The gateway itself issues nothing, and says who does.
    let client = server.client().with_token(None);
    assert_eq!(
        client.get("/.well-known/oauth-protected-resource").await.json()["authorization_servers"],
        json!([issuer.url])
    );
    assert_eq!(client.get("/.well-known/oauth-authorization-server").await.status, 404);
    assert_eq!(client.send("POST", "/oauth/token", &[], "").await.status, 404);
}

#[tokio::test]
async fn keys_behind_a_redirect_or_nowhere_are_not_used() {
    let issuer = Issuer::new().await;
    let server = TestServer::with_sign_in(issuer.settings("/elsewhere")).await;
    let refused = get(&server, TOOLS, &issuer.token(&server, json!({}))).await;
    assert_eq!((refused.status.as_u16(), refused.json()["error"].as_str()), (503, Some("sign_in_unavailable")));
    assert_eq!(server.client().get(TOOLS).await.status, 200, "others are served");
}
