//! Who may come in.

use sinew_gateway::{Gateway, IfTaken, Role, Settings};
use sinew_tool::{Admission, Admit, Bearer, DeviceKey, TokenId};

use crate::fake::*;

#[tokio::test]
async fn the_own_token_is_made_once_and_opens_everything() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = gateway_in(dir.path());
    let own = gateway.tokens().own();
    assert!(own.starts_with("snw_") && own.len() == 68, "{own}");
    assert_eq!(gateway.tokens().check(&own).map(|who| who.role), Some(Role::Admin));
    assert_eq!(gateway.admit(Some(&own), &key("any")), Some(Admission::OwnToken));
    drop(gateway);
    assert_eq!(gateway_in(dir.path()).tokens().own(), own);
    let told = Settings {
        state_dir: Some(dir.path().to_owned()),
        token: Some("my-own-token".to_owned()),
        ..Settings::default()
    };
    assert_eq!(Gateway::open(told).unwrap().tokens().own(), "my-own-token");
    assert_eq!(gateway_in(dir.path()).tokens().own(), own);
}

#[tokio::test]
async fn an_unusable_token_is_refused_at_the_start() {
    for token in ["", "short", "with a space in it"] {
        let settings = Settings { token: Some(token.to_owned()), ..Settings::default() };
        assert!(Gateway::open(settings).is_err(), "{token:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("token"), "\n").unwrap();
    let error =
        Gateway::open(Settings { state_dir: Some(dir.path().to_owned()), ..Settings::default() }).err().unwrap();
    assert!(error.to_string().contains("delete the file"), "{error}");
}

#[tokio::test]
async fn tokens_are_kept_and_revoked_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = gateway_in(dir.path());
    let (view, token) = gateway.tokens().create(Role::Client, "laptop").unwrap();
    assert_eq!((view.role, view.label.as_str()), ("client", "laptop"));
    drop(gateway);
    let gateway = gateway_in(dir.path());
    let who = gateway.tokens().check(&token).unwrap();
    assert_eq!((who.name.as_str(), &who.role), ("laptop", &Role::Client));
    assert_eq!(gateway.admit(Some(&token), &key("any")), None);
    assert_eq!(gateway.tokens().list().len(), 2);
    gateway.tokens().revoke(&view.id).unwrap();
    assert_eq!(gateway.tokens().check(&token), None);
    assert!(gateway.tokens().revoke(&view.id).is_err());
    assert!(gateway.tokens().revoke("gateway").is_err());
    drop(gateway);
    assert_eq!(gateway_in(dir.path()).tokens().check(&token), None);
}

#[tokio::test]
async fn wrong_tokens_open_nothing() {
    let gateway = gateway();
    let own = gateway.tokens().own();
    for wrong in ["", "snw_", &own[..own.len() - 1], &format!("{own}x"), &own.to_uppercase()] {
        assert_eq!(gateway.tokens().check(wrong), None);
        assert_eq!(gateway.admit(Some(wrong), &key("any")), None);
    }
    assert_eq!(gateway.admit(None, &key("any")), None);
}

#[tokio::test]
async fn a_device_token_opens_the_device_door_for_its_device_alone() {
    let gateway = gateway();
    let tokens = gateway.tokens();
    let admits = |token: &str, hardware_id: &str| {
        matches!(gateway.admit(Some(token), &key(hardware_id)), Some(Admission::DeviceToken(_)))
    };
    let (mac_one, mac_two) = ("aa:bb:cc:dd:00:01", "aa:bb:cc:dd:00:02");

    let (_, before) = tokens.create(Role::Device(mac_one.to_owned()), "by hardware id, before it came").unwrap();
    assert!(admits(&before, mac_one) && !admits(&before, mac_two));
    assert_eq!(tokens.check(&before), None);

    join(&gateway, Fake::board(1));
    join(&gateway, Fake::board(2));
    let (view, by_id) = tokens.create(Role::Device("board-0002".to_owned()), "").unwrap();
    assert_eq!(view.device.as_deref(), Some("board:aa:bb:cc:dd:00:02"));
    assert!(admits(&by_id, mac_two) && !admits(&by_id, mac_one));

    // Renaming does not lend a token to another device.
    gateway.rename("board-0001", "Lamp").unwrap();
    let (_, by_name) = tokens.create(Role::Device("lamp".to_owned()), "").unwrap();
    gateway.rename("board-0001", "").unwrap();
    gateway.rename("board-0002", "Lamp").unwrap();
    assert!(admits(&by_name, mac_one) && !admits(&by_name, mac_two));

    assert!(tokens.create(Role::Device(" ".to_owned()), "").is_err());
}

#[tokio::test]
async fn a_token_tells_whose_it_is_and_who_asked_is_told_when_it_is_revoked() {
    let gateway = gateway();
    let tokens = gateway.tokens();
    let mut revocations = tokens.revocations();
    let (device, token) = tokens.create(Role::Device("weather".to_owned()), "").unwrap();
    let id = TokenId::parse(&device.id).unwrap();
    let (client, of_client) = tokens.create(Role::Client, "").unwrap();
    assert_eq!(
        gateway.find_bearer(&token),
        Some(Bearer::Device { token: id.clone(), key: DeviceKey("provider:weather".to_owned()) })
    );
    assert_eq!(gateway.find_bearer(&tokens.own()), Some(Bearer::Any));
    assert_eq!(gateway.find_bearer(&of_client), None, "clients are no devices");
    tokens.revoke(&client.id).unwrap();
    revocations.mark_unchanged();
    assert!(tokens.valid().contains(&id));
    tokens.revoke(&device.id).unwrap();
    assert_eq!(gateway.find_bearer(&token), None, "a credential that is replayed opens nothing");
    assert!(revocations.has_changed().unwrap());
    assert_eq!(tokens.valid(), Default::default());
}

#[tokio::test]
async fn a_token_is_bound_to_one_key_however_its_device_is_written() {
    let gateway = gateway();
    let tokens = gateway.tokens();
    let bound = |text: &str| tokens.create(Role::Device(text.to_owned()), "").map(|(view, _)| view.device.unwrap());
    for (text, key) in [
        ("AA-BB-CC-DD-EE-01", "board:aa:bb:cc:dd:ee:01"),
        ("AABBCCDDEE01", "board:aa:bb:cc:dd:ee:01"),
        ("board:Kitchen_Sensor", "board:kitchen_sensor"),
        ("board:aa_bb_cc_dd_ee_01", "board:aa:bb:cc:dd:ee:01"),
        ("weather", "provider:weather"),
        ("provider:weather", "provider:weather"),
    ] {
        assert_eq!(bound(text).as_deref(), Ok(key), "{text}");
    }
    for wrong in ["kitchen_sensor", "Weather (Berlin)", "a-name-of-more-than-24-letters", "board:", "provider:", "a b"]
    {
        let error = bound(wrong).expect_err(wrong);
        assert!(error.message.contains("board:"), "{error}");
    }
    join(&gateway, Fake::board(1));
    for known in ["board-0001", "board:aa:bb:cc:dd:00:01", "aa:bb:cc:dd:00:01"] {
        assert_eq!(bound(known).as_deref(), Ok("board:aa:bb:cc:dd:00:01"), "{known}");
    }
}

#[tokio::test]
async fn a_token_of_one_family_admits_no_device_of_another() {
    let gateway = gateway();
    let tokens = gateway.tokens();
    let (_, of_provider) = tokens.create(Role::Device("weather".to_owned()), "").unwrap();
    let (_, of_board) = tokens.create(Role::Device("board:weather".to_owned()), "").unwrap();
    let provider = DeviceKey("provider:weather".to_owned());
    assert!(matches!(gateway.admit(Some(&of_provider), &provider), Some(Admission::DeviceToken(_))));
    assert_eq!(gateway.admit(Some(&of_provider), &key("weather")), None);
    assert!(matches!(gateway.admit(Some(&of_board), &key("weather")), Some(Admission::DeviceToken(_))));
    assert_eq!(gateway.admit(Some(&of_board), &provider), None);
}

#[tokio::test]
async fn whoever_waits_for_the_end_of_a_token_learns_of_it_and_of_no_other() {
    let gateway = gateway();
    let tokens = gateway.tokens();
    let (first, token) = tokens.create(Role::Client, "first").unwrap();
    let (second, _) = tokens.create(Role::Client, "second").unwrap();
    let who = tokens.check(&token).unwrap();
    let mut ended = Polled::new(tokens.revoked(&who));
    assert!(!ended.poll());
    tokens.revoke(&second.id).unwrap();
    assert!(!ended.poll() && tokens.is_valid(&who));
    tokens.revoke(&first.id).unwrap();
    assert!(ended.poll() && !tokens.is_valid(&who));
    assert!(Polled::new(tokens.revoked(&who)).poll(), "who comes late learns of it too");
    let own = tokens.check(&tokens.own()).unwrap();
    assert!(!Polled::new(tokens.revoked(&own)).poll());
}

/// A future that is polled by hand.
struct Polled<'a>(std::pin::Pin<Box<dyn Future<Output = ()> + 'a>>);

impl<'a> Polled<'a> {
    fn new(future: impl Future<Output = ()> + 'a) -> Polled<'a> {
        Polled(Box::pin(future))
    }

    /// Whether it has ended.
    fn poll(&mut self) -> bool {
        self.0.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_ready()
    }
}

/// Waits until the clock says so; a token's end is a time of day.
fn wait_until(at: i64) {
    while unix_millis() < at {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn unix_millis() -> i64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as i64
}

#[tokio::test]
async fn a_token_that_expired_opens_nothing_and_ends_what_stands_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = gateway_in(dir.path());
    let tokens = gateway.tokens();
    assert!(tokens.create_until(Role::Client, "", Some(unix_millis() - 1), IfTaken::Number).is_err());
    // The expiry is watched before the token is there, and a later one is not ended with it.
    let watching = gateway.clone();
    let watch = tokio::spawn(async move { watching.tokens().watch_expiry().await });
    let end = unix_millis() + 300;
    let (view, client) = tokens.create_until(Role::Client, "visitor", Some(end), IfTaken::Number).unwrap();
    let (_, device) = tokens.create_until(Role::Device("weather".to_owned()), "", Some(end), IfTaken::Number).unwrap();
    let (_, later) = tokens.create_until(Role::Client, "guest", Some(end + 3_600_000), IfTaken::Number).unwrap();
    assert_eq!(view.expires, Some(end));
    let who = tokens.check(&client).unwrap();
    assert!(gateway.find_bearer(&device).is_some());
    tokens.revoked(&who).await;
    assert!(unix_millis() >= end);
    assert_eq!((tokens.check(&client), gateway.find_bearer(&device)), (None, None));
    assert!(tokens.check(&later).is_some());
    assert_eq!(tokens.valid().len(), 1);
    watch.abort();
    gateway.close().await;
    wait_until(end);
    let gateway = gateway_in(dir.path());
    assert_eq!(gateway.tokens().check(&client), None);
    assert!(gateway.tokens().list().iter().any(|token| token.id == view.id && token.expires == Some(end)));
}

#[tokio::test]
async fn the_last_use_of_a_token_is_kept_without_a_write_for_each_call() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = gateway_in(dir.path());
    let (view, client) = gateway.tokens().create(Role::Client, "laptop").unwrap();
    let (_, device) = gateway.tokens().create(Role::Device("weather".to_owned()), "").unwrap();
    assert_eq!(view.last_use, None);
    let before = unix_millis();
    let last_uses =
        |gateway: &Gateway| gateway.tokens().list()[1..].iter().map(|token| token.last_use).collect::<Vec<_>>();
    for _ in 0..100 {
        assert!(gateway.tokens().check(&client).is_some() && gateway.find_bearer(&device).is_some());
    }
    let uses = last_uses(&gateway);
    assert!(uses.iter().all(|at| at.unwrap() >= before), "{uses:?}");
    gateway.close().await;
    drop(gateway);
    assert_eq!(last_uses(&gateway_in(dir.path())), uses);
    let changes: i64 = rusqlite::Connection::open(dir.path().join("gateway.db"))
        .unwrap()
        .query_row("SELECT count(*) FROM tokens WHERE last_use IS NOT NULL", [], |row| row.get(0))
        .unwrap();
    assert_eq!(changes, 2);
}

#[tokio::test]
async fn a_label_is_taken_only_as_long_as_its_token_is_valid() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = gateway_in(dir.path());
    let tokens = gateway.tokens();
    let create = |label: &str, if_taken| tokens.create_until(Role::Client, label, None, if_taken);
    let end = unix_millis() + 3_000;
    tokens.create_until(Role::Client, "dashboard", Some(end), IfTaken::Refuse).unwrap();
    assert!(create("Dashboard", IfTaken::Refuse).is_err());
    while unix_millis() < end {
        tokio::task::yield_now().await;
    }
    let (first, old) = create("dashboard", IfTaken::Refuse).unwrap();
    assert_eq!(first.label, "dashboard", "the one that expired has freed it");
    let refused = create("DASHBOARD", IfTaken::Refuse).unwrap_err().message;
    assert!(
        refused.contains(&format!("sinew token revoke {}", first.id)) && refused.contains("--replace"),
        "{refused}"
    );
    assert_eq!(create("dashboard", IfTaken::Number).unwrap().0.label, "dashboard 2");
    let (second, new) = create("dashboard", IfTaken::Replace).unwrap();
    assert_eq!(second.label, "dashboard");
    assert!(tokens.check(&old).is_none() && tokens.check(&new).unwrap().name == "dashboard");
    tokens.revoke(&second.id).unwrap();
    assert_eq!(create("dashboard", IfTaken::Refuse).unwrap().0.label, "dashboard");
}
