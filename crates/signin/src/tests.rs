//! The issuer from end to end, without sockets: what a client asks for, what a person agrees to, and what is refused.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use sinew_fetch::{AllowedHosts, HttpUrl};
use sinew_gateway::{AuditFilter, Gateway, Principal, Role, Settings};
use sinew_tool::BoxFuture;

use crate::clients::Client;
use crate::grants::{ACCESS_TIME, Book, Consent, Redeem, Refresh, challenge_of};
use crate::{AuthorizationServer, ChallengeError, DocumentSource, OAuthSettings, Refused, SignIn};

const URL: &str = "https://home.example";
const RESOURCE: &str = "https://home.example/mcp";
const REDIRECT: &str = "http://127.0.0.1:3000/callback";
const VERIFIER: &str = "a-verifier-that-is-long-enough-to-be-a-secret-of-its-own";
const NOW: i64 = 1_800_000_000_000;
const DAY: i64 = 86_400_000;

/// A client that publishes a document about itself.
struct OneClient;

impl DocumentSource for OneClient {
    fn fetch(&self, url: HttpUrl, _: AllowedHosts, _: usize) -> BoxFuture<'_, Result<Bytes, String>> {
        let about =
            json!({"client_id": url.whole(), "client_name": "An app", "redirect_uris": ["https://app.example/cb"]});
        Box::pin(async move { Ok(about.to_string().into()) })
    }
}

fn sign_in(settings: OAuthSettings, state: Option<&std::path::Path>) -> (SignIn, Gateway) {
    let gateway = Gateway::open(Settings::default()).unwrap();
    let sign_in = SignIn::with_source(&settings, URL, state, gateway.clone(), Arc::new(OneClient)).unwrap();
    (sign_in, gateway)
}

fn own(sign_in: &SignIn) -> &AuthorizationServer {
    sign_in.own().unwrap()
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn register(server: &AuthorizationServer) -> String {
    let body = json!({"client_name": "A program", "redirect_uris": ["http://127.0.0.1/callback"]});
    let answer = server.register(body.to_string().as_bytes()).unwrap();
    answer["client_id"].as_str().unwrap().to_owned()
}

/// What a client asks for, with some values replaced or, where they are empty, left out.
fn request(client: &str, other: &[(&str, &str)]) -> Vec<(String, String)> {
    let challenge = challenge_of(VERIFIER);
    let mut all = pairs(&[
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", REDIRECT),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("resource", RESOURCE),
        ("scope", "tools"),
        ("state", "xyz"),
    ]);
    for (name, value) in other {
        all.retain(|(key, _)| key != name);
        if !value.is_empty() {
            all.extend(pairs(&[(name, value)]));
        }
    }
    all
}

fn ada() -> Principal {
    Principal::person("ada")
}

/// A value of the address that leads back to the client.
fn answered(address: &str, name: &str) -> Option<String> {
    let (_, query) = address.split_once('?')?;
    query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")).map(str::to_owned))
}

async fn code(server: &AuthorizationServer, client: &str) -> String {
    let asked = server.check_request(&request(client, &[])).await.unwrap();
    answered(&server.allow(&asked, &ada()).unwrap(), "code").unwrap()
}

fn exchange(client: &str, code: &str, other: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut all = pairs(&[
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
        ("resource", RESOURCE),
    ]);
    for (name, value) in other {
        all.retain(|(key, _)| key != name);
        if !value.is_empty() {
            all.extend(pairs(&[(name, value)]));
        }
    }
    all
}

fn renewal(client: &str, token: &str) -> Vec<(String, String)> {
    pairs(&[("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", token)])
}

fn text<'a>(tokens: &'a Value, name: &str) -> &'a str {
    tokens[name].as_str().unwrap()
}

#[tokio::test]
async fn a_client_that_a_person_lets_in_calls_as_that_person() {
    let (sign_in, _) = sign_in(OAuthSettings::default(), None);
    let server = own(&sign_in);
    let client = register(server);
    let asked = server.check_request(&request(&client, &[])).await.unwrap();
    assert_eq!((asked.client.name.as_str(), asked.place.as_str(), asked.is_local()), ("A program", "localhost", true));
    let address = server.allow(&asked, &ada()).unwrap();
    assert!(address.starts_with(&format!("{REDIRECT}?code=snc_")), "{address}");
    assert_eq!(answered(&address, "state").as_deref(), Some("xyz"));
    assert_eq!(answered(&address, "iss").as_deref(), Some("https%3A%2F%2Fhome.example"));
    let code = answered(&address, "code").unwrap();
    let tokens = server.token(&exchange(&client, &code, &[]), |_| true).unwrap();
    assert_eq!((text(&tokens, "token_type"), tokens["expires_in"].as_i64()), ("Bearer", Some(3_600)));
    let signed_in = sign_in.check(text(&tokens, "access_token")).await.unwrap();
    assert_eq!((signed_in.who.name.as_str(), &signed_in.who.role), ("ada@localhost", &Role::Client));
    assert!(matches!(sign_in.check(text(&tokens, "refresh_token")).await, Err(Refused::Invalid(_))));
    assert!(matches!(sign_in.check(&code).await, Err(Refused::Invalid(_))));
    let renewed = server.token(&renewal(&client, text(&tokens, "refresh_token")), |_| true).unwrap();
    let again = sign_in.check(text(&renewed, "access_token")).await.unwrap();
    assert_eq!(again.who, signed_in.who, "the same caller, with what it was allowed");
    // What was on its way with the token before still arrives.
    assert!(sign_in.check(text(&tokens, "access_token")).await.is_ok());
    let list = server.list();
    assert_eq!((list.len(), list[0].person.as_str(), list[0].client.as_str()), (1, "ada", "A program"));
}

#[tokio::test]
async fn a_client_with_a_document_is_known_by_its_host() {
    let (sign_in, _) = sign_in(OAuthSettings::default(), None);
    let id = "https://app.example/client.json";
    let asked = own(&sign_in).check_request(&request(id, &[("redirect_uri", "https://app.example/cb")])).await.unwrap();
    assert_eq!((asked.place.as_str(), asked.redirect.form_action.as_str()), ("app.example", "https://app.example"));
    let problem = own(&sign_in).check_request(&request(id, &[("redirect_uri", "https://evil.example/cb")])).await;
    assert_eq!(problem.unwrap_err().back, None);
}

#[tokio::test]
async fn a_request_that_is_wrong_asks_nobody_and_answers_only_known_addresses() {
    let (sign_in, _) = sign_in(OAuthSettings::default(), None);
    let server = own(&sign_in);
    let client = register(server);
    for (name, value) in [
        ("client_id", ""),
        ("client_id", "client_other"),
        ("client_id", "https://app.example/"),
        ("redirect_uri", "https://evil.example/callback"),
        ("redirect_uri", "http://127.0.0.1:3000/other"),
        ("redirect_uri", "http://127.0.0.1:3000/callback/"),
        ("redirect_uri", "http://127.0.0.1:3000/callback?x=1"),
        ("redirect_uri", "http://localhost:3000/callback"),
        ("redirect_uri", "http://127.0.0.1:3000@evil.example/callback"),
        ("redirect_uri", "javascript:alert(1)"),
    ] {
        let problem = server.check_request(&request(&client, &[(name, value)])).await.unwrap_err();
        assert_eq!(problem.back, None, "{name} {value}");
    }
    for (name, value, error) in [
        ("response_type", "token", "unsupported_response_type"),
        ("response_type", "", "unsupported_response_type"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge_method", "", "invalid_request"),
        ("code_challenge", "", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("resource", "https://home.example", "invalid_target"),
        ("resource", "https://evil.example/mcp", "invalid_target"),
        ("resource", "https://home.example/mcp/v1", "invalid_target"),
        ("scope", "admin", "invalid_scope"),
    ] {
        let problem = server.check_request(&request(&client, &[(name, value)])).await.unwrap_err();
        let (host, address) = problem.back.unwrap_or_else(|| panic!("{name} {value}: {}", problem.message));
        assert_eq!(
            (host.as_str(), answered(&address, "error").as_deref()),
            ("localhost", Some(error)),
            "{name} {value}"
        );
        assert_eq!(answered(&address, "iss").as_deref(), Some("https%3A%2F%2Fhome.example"));
        assert!(address.starts_with(REDIRECT) && answered(&address, "code").is_none(), "{address}");
    }
    for fine in [
        ("resource", ""),
        ("resource", "https://home.example/mcp/"),
        ("scope", ""),
        ("scope", "tools offline_access"),
        ("state", ""),
    ] {
        assert!(server.check_request(&request(&client, &[fine])).await.is_ok(), "{fine:?}");
    }
    // What comes twice is read by others in another way.
    for name in ["client_id", "redirect_uri", "code_challenge", "resource", "state", "response_type"] {
        let mut twice = request(&client, &[]);
        twice.extend(pairs(&[(name, "other")]));
        assert!(server.check_request(&twice).await.is_err(), "{name}");
    }
    let denied = server.check_request(&request(&client, &[])).await.unwrap();
    assert_eq!(answered(&server.deny(&denied, &ada()), "error").as_deref(), Some("access_denied"));
}

#[tokio::test]
async fn a_code_is_good_once_for_its_client_its_address_and_its_verifier() {
    let (sign_in, _) = sign_in(OAuthSettings::default(), None);
    let server = own(&sign_in);
    let (client, other) = (register(server), register(server));
    let other_verifier = VERIFIER.replace("secret", "riddle");
    for (name, value, error) in [
        ("client_id", other.as_str(), "invalid_grant"),
        ("redirect_uri", "http://127.0.0.1:3001/callback", "invalid_grant"),
        ("code_verifier", other_verifier.as_str(), "invalid_grant"),
        ("code_verifier", &challenge_of(VERIFIER), "invalid_grant"),
        ("code_verifier", "short", "invalid_grant"),
        ("resource", "https://evil.example/mcp", "invalid_target"),
    ] {
        let code = code(server, &client).await;
        let refused = server.token(&exchange(&client, &code, &[(name, value)]), |_| true).unwrap_err();
        assert_eq!(refused.code, error, "{name} {value}");
        assert!(!refused.message.contains("snc_"), "{}", refused.message);
        // It was shown with something wrong, and is used up.
        assert!(server.token(&exchange(&client, &code, &[]), |_| true).is_err(), "{name} {value}");
    }
    for (name, error) in [
        ("code_verifier", "invalid_request"),
        ("code", "invalid_request"),
        ("client_id", "invalid_request"),
        ("grant_type", "invalid_request"),
    ] {
        let code = code(server, &client).await;
        let refused = server.token(&exchange(&client, &code, &[(name, "")]), |_| true).unwrap_err();
        assert_eq!(refused.code, error, "{name}");
    }
    let password = pairs(&[("grant_type", "password"), ("client_id", "x")]);
    assert_eq!(server.token(&password, |_| true).unwrap_err().code, "unsupported_grant_type");
    assert!(server.list().is_empty());
}

#[tokio::test]
async fn a_code_that_is_shown_again_ends_what_came_of_it() {
    let (sign_in, gateway) = sign_in(OAuthSettings::default(), None);
    let server = own(&sign_in);
    let client = register(server);
    let code = code(server, &client).await;
    let tokens = server.token(&exchange(&client, &code, &[]), |_| true).unwrap();
    let who = sign_in.check(text(&tokens, "access_token")).await.unwrap().who.clone();
    assert!(gateway.tokens().is_valid(&who));
    assert_eq!(server.token(&exchange(&client, &code, &[]), |_| true).unwrap_err().code, "invalid_grant");
    assert!(sign_in.check(text(&tokens, "access_token")).await.is_err());
    assert!(server.token(&renewal(&client, text(&tokens, "refresh_token")), |_| true).is_err());
    assert!(!gateway.tokens().is_valid(&who), "its open requests end");
    gateway.tokens().revoked(&who).await;
    let records = gateway.find_records(AuditFilter::default(), 10).await.unwrap();
    let said = format!("{records:?}");
    assert!(said.contains("connect_client") && said.contains("disconnect_client"), "{said}");
    assert!(!said.contains("snc_") && !said.contains("sna_") && !said.contains("snr_"), "{said}");
}

#[tokio::test]
async fn a_refresh_token_that_is_shown_again_ends_the_sign_in() {
    let (sign_in, _) = sign_in(OAuthSettings::default(), None);
    let server = own(&sign_in);
    let (client, other) = (register(server), register(server));
    let first = server.token(&exchange(&client, &code(server, &client).await, &[]), |_| true).unwrap();
    let old = text(&first, "refresh_token").to_owned();
    // Not by another client, not for more, not for others, not invented.
    assert!(server.token(&renewal(&other, &old), |_| true).is_err());
    for wrong in [("scope", "tools admin"), ("resource", "https://evil.example/mcp")] {
        let mut form = renewal(&client, &old);
        form.extend(pairs(&[wrong]));
        assert!(server.token(&form, |_| true).is_err(), "{wrong:?}");
    }
    let mut invented = old.clone();
    invented.replace_range(old.len() - 1.., if old.ends_with('0') { "1" } else { "0" });
    for wrong in [invented.as_str(), "snr_", "", "snr_a_1_b_c", &old.replace("_1_", "_0_"), &old.replace("_1_", "_9_")]
    {
        assert!(server.token(&renewal(&client, wrong), |_| true).is_err(), "{wrong}");
    }
    let second = server.token(&renewal(&client, &old), |_| true).unwrap();
    let third = server.token(&renewal(&client, text(&second, "refresh_token")), |_| true).unwrap();
    // Whoever has an earlier one has stolen it, or was stolen from: nobody goes on.
    assert_eq!(server.token(&renewal(&client, &old), |_| true).unwrap_err().code, "invalid_grant");
    assert!(server.token(&renewal(&client, text(&third, "refresh_token")), |_| true).is_err());
    assert!(sign_in.check(text(&third, "access_token")).await.is_err());
    assert!(server.list().is_empty());
}

#[tokio::test]
async fn sign_ins_end_with_their_person_with_an_administrator_and_with_their_client() {
    let (sign_in, gateway) = sign_in(OAuthSettings::default(), None);
    let server = own(&sign_in);
    let client = register(server);
    let open = async || {
        let tokens = server.token(&exchange(&client, &code(server, &client).await, &[]), |_| true).unwrap();
        let who = sign_in.check(text(&tokens, "access_token")).await.unwrap().who.clone();
        (tokens, who)
    };
    // An administrator.
    let (tokens, who) = open().await;
    server.end(&server.list()[0].id).unwrap();
    assert!(server.end("other").is_err());
    assert!(sign_in.check(text(&tokens, "access_token")).await.is_err() && !gateway.tokens().is_valid(&who));
    // The client, with either of its tokens; with others nothing happens.
    for kind in ["access_token", "refresh_token"] {
        let (tokens, who) = open().await;
        server.revoke(&pairs(&[("token", "sna_other")])).unwrap();
        assert!(sign_in.check(text(&tokens, "access_token")).await.is_ok());
        server.revoke(&pairs(&[("token", text(&tokens, kind))])).unwrap();
        assert!(sign_in.check(text(&tokens, "access_token")).await.is_err() && !gateway.tokens().is_valid(&who));
    }
    assert!(server.revoke(&[]).is_err());
    // The person: removed, or with another role when the client asks again.
    let (tokens, _) = open().await;
    server.end_people(|person| person == "bob");
    assert!(sign_in.check(text(&tokens, "access_token")).await.is_ok());
    server.end_people(|person| person == "ada");
    assert!(sign_in.check(text(&tokens, "access_token")).await.is_err());
    let (tokens, _) = open().await;
    assert!(server.token(&renewal(&client, text(&tokens, "refresh_token")), |_| false).is_err());
    assert!(sign_in.check(text(&tokens, "access_token")).await.is_err());
    let late = code(server, &client).await;
    assert!(server.token(&exchange(&client, &late, &[]), |_| false).is_err());
    assert!(server.list().is_empty());
}

#[tokio::test]
async fn sign_ins_outlast_a_restart_without_a_secret_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (client, tokens, code_text) = {
        let (sign_in, _) = sign_in(OAuthSettings::default(), Some(folder.path()));
        let server = own(&sign_in);
        let client = register(server);
        let code = code(server, &client).await;
        let tokens = server.token(&exchange(&client, &code, &[]), |_| true).unwrap();
        (client, tokens, code)
    };
    let file = folder.path().join("sign-ins.json");
    let kept = std::fs::read_to_string(&file).unwrap();
    for secret in [text(&tokens, "access_token"), text(&tokens, "refresh_token"), &code_text] {
        assert!(!kept.contains(secret) && !kept.contains(&secret[4..]), "{kept}");
    }
    let (again, _) = sign_in(OAuthSettings::default(), Some(folder.path()));
    assert!(again.check(text(&tokens, "access_token")).await.is_ok());
    let renewed = own(&again).token(&renewal(&client, text(&tokens, "refresh_token")), |_| true).unwrap();
    own(&again).revoke(&pairs(&[("token", text(&renewed, "access_token"))])).unwrap();
    let (last, _) = sign_in(OAuthSettings::default(), Some(folder.path()));
    assert!(own(&last).list().is_empty());
    std::fs::write(&file, "{").unwrap();
    let gateway = Gateway::open(Settings::default()).unwrap();
    let broken = SignIn::open(&OAuthSettings::default(), URL, Some(folder.path()), gateway);
    assert!(broken.err().unwrap().contains("sign-ins.json"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{", "nothing is lost");
}

#[tokio::test]
async fn tokens_of_another_address_are_not_for_this_one() {
    let folder = tempfile::tempdir().unwrap();
    let (first, gateway) = sign_in(OAuthSettings::default(), Some(folder.path()));
    let client = register(own(&first));
    let tokens = own(&first).token(&exchange(&client, &code(own(&first), &client).await, &[]), |_| true).unwrap();
    let settings = OAuthSettings::default();
    let moved = SignIn::open(&settings, "https://other.example", Some(folder.path()), gateway).unwrap();
    assert!(moved.check(text(&tokens, "access_token")).await.is_err());
}

#[tokio::test]
async fn what_the_disk_does_not_take_is_not_given_out() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    std::fs::create_dir(&state).unwrap();
    let (sign_in, _) = sign_in(OAuthSettings::default(), Some(&state));
    let server = own(&sign_in);
    let client = register(server);
    let first = code(server, &client).await;
    let tokens = server.token(&exchange(&client, &first, &[]), |_| true).unwrap();
    let second = code(server, &client).await;
    std::fs::remove_dir_all(&state).unwrap();
    assert_eq!(server.token(&exchange(&client, &second, &[]), |_| true).unwrap_err().code, "server_error");
    let failed = server.token(&renewal(&client, text(&tokens, "refresh_token")), |_| true).unwrap_err();
    assert_eq!((failed.code, server.list().len()), ("server_error", 1));
    std::fs::create_dir(&state).unwrap();
    let renewed = server.token(&renewal(&client, text(&tokens, "refresh_token")), |_| true);
    assert!(renewed.is_ok(), "the client lost nothing");
}

#[test]
fn codes_tokens_and_sign_ins_have_their_time() {
    let mut book = Book::new().unwrap();
    let consent = Consent {
        person: "ada".to_owned(),
        client_id: "client".to_owned(),
        client_name: "A program".to_owned(),
        place: "localhost".to_owned(),
        redirect: REDIRECT.to_owned(),
        challenge: challenge_of(VERIFIER),
        resource: RESOURCE.to_owned(),
        scope: "tools".to_owned(),
    };
    fn redeem(code: &str) -> Redeem<'_> {
        Redeem { code, client_id: "client", redirect: Some(REDIRECT), verifier: VERIFIER, resource: None }
    }
    fn refresh(token: &str) -> Refresh<'_> {
        Refresh { token, client_id: "client", scope: None, resource: None }
    }
    let late = book.issue_code(consent.clone(), NOW).unwrap();
    assert_eq!(book.redeem(&redeem(&late), NOW + 60_000).0.unwrap_err().code, "invalid_grant");
    let code = book.issue_code(consent.clone(), NOW).unwrap();
    let tokens = book.redeem(&redeem(&code), NOW + 59_999).0.unwrap();
    assert!(book.find(&tokens.access, NOW + ACCESS_TIME).is_some());
    assert!(book.find(&tokens.access, NOW + 60_000 + ACCESS_TIME).is_none());
    let (later, ended) = book.refresh(&refresh(&tokens.refresh), NOW + 29 * DAY);
    let later = later.unwrap();
    assert!(ended.is_empty());
    let (too_late, ended) = book.refresh(&refresh(&later.refresh), NOW + 60 * DAY);
    assert_eq!((too_late.unwrap_err().code, ended.len()), ("invalid_grant", 1));
    // Codes and sign-ins are bounded; the oldest give way.
    for number in 0..60 {
        let code = book.issue_code(consent.clone(), NOW + number).unwrap();
        assert!(book.redeem(&redeem(&code), NOW + number).0.is_ok());
    }
    assert_eq!(book.grants().len(), 50);
    let first = book.issue_code(consent.clone(), NOW).unwrap();
    for _ in 0..100 {
        book.issue_code(consent.clone(), NOW + 1).unwrap();
    }
    assert!(book.redeem(&redeem(&first), NOW + 1).0.is_err());
    assert_eq!(book.tidy(NOW + 31 * DAY).len(), 50);
}

#[test]
fn registrations_are_bounded_in_number_and_rate_and_forgotten() {
    let mut book = Book::new().unwrap();
    let client = |number: i64| Client {
        id: format!("client_{number}"),
        name: String::new(),
        redirects: vec![REDIRECT.to_owned()],
        host: None,
    };
    for number in 0..20 {
        book.register(&client(number), NOW).unwrap();
    }
    assert_eq!(book.register(&client(20), NOW + 59_000).unwrap_err().code, "temporarily_unavailable");
    for number in 20..100 {
        book.register(&client(number), NOW + 60_000 * (number / 20)).unwrap();
    }
    // All places are taken: those that have had their time give way, and young ones do not.
    assert!(book.register(&client(100), NOW + 5 * 60_000).is_err());
    book.register(&client(100), NOW + 10 * 60_000).unwrap();
    assert!(book.registered("client_0").is_none() && book.registered("client_1").is_some());
    book.tidy(NOW + 2 * DAY);
    assert!(book.registered("client_100").is_none());
}

#[test]
fn documents_and_challenges_say_where_to_sign_in() {
    let (sign_in, _) = sign_in(OAuthSettings::default(), None);
    let resource = sign_in.document("/.well-known/oauth-protected-resource/mcp").unwrap();
    assert_eq!(resource["resource"], RESOURCE);
    assert_eq!(resource["authorization_servers"], json!([URL]));
    let server = sign_in.document("/.well-known/oauth-authorization-server").unwrap();
    assert_eq!((&server["issuer"], &server["code_challenge_methods_supported"]), (&json!(URL), &json!(["S256"])));
    assert_eq!(server["registration_endpoint"], "https://home.example/oauth/register");
    assert!(sign_in.document("/.well-known/other").is_none());
    let metadata =
        "resource_metadata=\"https://home.example/.well-known/oauth-protected-resource/mcp\", scope=\"tools\"";
    assert_eq!(sign_in.challenge(ChallengeError::Missing), format!("Bearer realm=\"sinew\", {metadata}"));
    let invalid = format!("Bearer realm=\"sinew\", error=\"invalid_token\", {metadata}");
    assert_eq!(sign_in.challenge(ChallengeError::Invalid), invalid);
    let closed = OAuthSettings { registration: false, ..OAuthSettings::default() };
    let (closed, _) = self::sign_in(closed, None);
    assert!(closed.document("/.well-known/openid-configuration").unwrap().get("registration_endpoint").is_none());
    assert_eq!(own(&closed).register(b"{}").unwrap_err().code, "access_denied");
}
