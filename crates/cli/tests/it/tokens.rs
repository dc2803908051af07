//! Roles: which token opens which door.

use crate::gateway::{Process, TestGateway, run, sinew};

fn new(gateway: &TestGateway, role: &str, name: &str) -> String {
    gateway.run(&["token", "new", role, name]).ok().out.trim().to_owned()
}

#[test]
fn a_device_token_opens_only_the_boards_door_and_only_for_its_device() {
    let gateway = TestGateway::serve();
    let made = gateway.run(&["token", "new", "--device", "02:51:00:00:00:01"]).ok();
    assert!(made.err.contains("bound to the board with the hardware id 02:51:00:00:00:01"), "{}", made.err);
    let token = made.out.trim().to_owned();
    let nameless = gateway.run(&["token", "new", "--client", " "]);
    assert!(nameless.code == 2 && nameless.err.contains("a name is needed"), "{nameless:?}");
    assert_eq!(gateway.http("GET", "/api/v1/devices", Some(&token), "").0, 403);
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    assert_eq!(gateway.http("POST", "/mcp", Some(&token), initialize).0, 403);

    let board = |first: &str, token: &str| {
        let mut command = sinew(gateway.state.path());
        command.args(["sim", "board", "--connect", gateway.devices_url(), "--first", first, "--token", token]);
        command
    };
    let other = run(&mut board("2", &token));
    assert_eq!(other.code, 69, "{other:?}");
    assert!(other.err.contains("refused"), "{}", other.err);
    let list = gateway.run(&["token", "list"]).ok().out;
    assert!(list.contains("DEVICE") && list.matches("02:51:00:00:00:01").count() == 2, "{list}");
    let mut own = Process::start(&mut board("1", &token));
    own.until("Connecting");
    assert_eq!(gateway.wait_for("02:51:00:00:00:01", "ready")["admitted_by"], "device token");
    let wrong = run(&mut board("1", "wrong-token-0123456789"));
    assert_eq!(wrong.code, 69, "{wrong:?}");
    assert!(wrong.err.contains("401"), "{}", wrong.err);
}

#[test]
fn a_client_may_call_and_only_an_administrator_may_rename_and_make_tokens() {
    let gateway = TestGateway::demo();
    let client = new(&gateway, "--client", "reader");
    let admin = new(&gateway, "--admin", "deputy");
    let code = |token: &str, arguments: &[&str]| gateway.run(&[arguments, &["--token", token]].concat()).code;
    assert_eq!(code(&client, &["call", "board-ddee01", "self.get_device_status"]), 0);
    assert_eq!(code(&client, &["devices", "rename", "board-ddee01", "x"]), 77);
    assert_eq!(code(&client, &["token", "list"]), 77);
    assert_eq!(code(&client, &["token", "new", "--admin", "me"]), 77);
    assert_eq!(code(&admin, &["devices", "rename", "board-ddee01", "desk"]), 0);
    assert_eq!(code(&admin, &["token", "list"]), 0);
}

#[test]
fn a_revoked_token_opens_nothing_and_no_list_shows_a_secret() {
    let gateway = TestGateway::demo();
    let made = gateway.json(&["token", "new", "--client", "guest"]);
    let (id, token) = (made["id"].as_str().expect("an id"), made["token"].as_str().expect("a token"));
    let list = gateway.run(&["token", "list"]).ok().out;
    assert!(list.contains(id) && list.contains("guest") && !list.contains(token), "{list}");
    assert!(!gateway.json(&["token", "list"]).to_string().contains(token));
    assert_eq!(gateway.run(&["devices", "--token", token]).code, 0);
    gateway.run(&["token", "revoke", id]).ok();
    assert_eq!(gateway.run(&["devices", "--token", token]).code, 77);
    assert_ne!(gateway.run(&["token", "revoke", id]).code, 0);
}

#[test]
fn a_gateway_can_be_given_its_token() {
    let state = tempfile::tempdir().expect("a folder");
    let gateway = TestGateway::open("demo", state, &["--token", "a-token-of-my-own"]);
    assert_ne!(gateway.page["token"], "a-token-of-my-own", "a client gets a token of its own");
    gateway.run(&["devices"]).ok();
    assert_eq!(gateway.http("GET", "/api/v1/devices", Some("a-token-of-my-own"), "").0, 200);
}

#[test]
fn an_expired_token_is_told_from_a_wrong_and_from_a_missing_one() {
    let gateway = TestGateway::serve();
    let made = gateway.json(&["token", "new", "--client", "guest", "--expires", "1s"]);
    let token = made["token"].as_str().expect("a token");
    let (status, body) = (0..200)
        .map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            gateway.http("GET", "/api/v1/devices", Some(token), "")
        })
        .find(|(status, _)| *status != 200)
        .expect("it expires");
    assert!(status == 401 && body.contains("\"token_expired\"") && body.contains("expired on 20"), "{body}");
    let expired = gateway.run(&["devices", "--token", token]);
    assert!(expired.code == 77 && expired.err.contains("expired on 20"), "{expired:?}");
    assert!(expired.err.contains("`sinew token new`"), "{expired:?}");
    let wrong = gateway.run(&["devices", "--token", "snw_wrong"]);
    assert!(wrong.code == 77 && wrong.err.contains("does not accept the token"), "{wrong:?}");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let port = gateway.url().rsplit(':').next().expect("a port");
    let address = format!("localhost:{port}");
    let missing = run(sinew(elsewhere.path()).args(["devices", "--url", &address]));
    assert!(missing.code == 77 && missing.err.contains("needs a token"), "{missing:?}");
    gateway.run(&["devices", "--url", &address]).ok();
}

#[test]
fn a_token_may_expire_and_its_last_use_is_shown() {
    let gateway = TestGateway::serve();
    let made = gateway.json(&["token", "new", "--client", "guest", "--expires", "30d"]);
    let days = (made["expires"].as_i64().expect("a time") - made["created"].as_i64().expect("a time")) / 86_400_000;
    assert!((29..=30).contains(&days), "{made}");
    assert_eq!(gateway.run(&["token", "new", "--client", "x", "--expires", "soon"]).code, 2);
    let token = made["token"].as_str().expect("a token");
    assert_eq!(gateway.http("GET", "/api/v1/devices", Some(token), "").0, 200);
    let list = gateway.json(&["token", "list"]);
    let guest = list["tokens"].as_array().expect("tokens").iter().find(|token| token["id"] == made["id"]);
    assert!(guest.is_some_and(|guest| guest["last_use"].is_i64()), "{list}");
    assert!(gateway.run(&["token", "list"]).ok().out.contains("LAST USE"));
}

#[test]
fn a_renewed_token_keeps_its_name_and_a_second_one_is_refused() {
    let gateway = TestGateway::serve();
    let old = new(&gateway, "--client", "dashboard");
    let refused = gateway.run(&["token", "new", "--client", "Dashboard"]);
    assert!(refused.code != 0 && refused.err.contains("sinew token revoke"), "{refused:?}");
    let made = gateway.json(&["token", "new", "--client", "dashboard", "--replace"]);
    assert_eq!(made["label"], "dashboard");
    let status = |token: &str| gateway.http("GET", "/api/v1/devices", Some(token), "").0;
    assert_eq!((status(&old), status(made["token"].as_str().expect("a token"))), (401, 200));
}
