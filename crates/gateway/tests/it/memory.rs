//! What is still known after a restart.

use sinew_gateway::{Gateway, OpenError, Role, Settings, Shape, running_gateway};
use sinew_tool::{ErrorKind, Tool, json};

use crate::fake::*;

#[tokio::test]
async fn devices_names_tools_events_and_calls_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let of = |kind: &str| Tool::new("set", "", json!({"type": "object", "properties": {"to": {"type": kind}}}));
    let before = {
        let gateway = gateway_in(dir.path());
        let one = join(&gateway, Fake::new(1, [of("integer")]));
        join(&gateway, Fake::new(2, [of("string")]));
        gateway.rename("board-0002", "Zwei").unwrap();
        say(&gateway, &one, "t", json!({"a": 1}));
        call(&gateway, "set", json!({"to": 1})).await.unwrap();
        let list = gateway.list(&client(), Shape::Folded);
        gateway.close().await;
        list
    };
    let gateway = gateway_in(dir.path());
    let view = gateway.find_device("zwei").unwrap();
    assert_eq!((view.id.as_str(), view.state.as_str(), view.kind.as_str()), ("board-0002", "away", "bench"));
    assert_eq!(view.attributes["hardware_id"], "aa:bb:cc:dd:00:02");
    assert_eq!(gateway.list(&client(), Shape::Folded).digest, before.digest);
    assert_eq!(call_kind(&gateway, "set", json!({"to": 1})).await, ErrorKind::DeviceAway);
    assert_eq!(outcomes(&gateway).await, ["ok", "DeviceAway"]);
    let page = gateway.events(None, None, 10).await.unwrap();
    assert_eq!(page.events.last().unwrap().body, json!({"a": 1}));
    // The other way round this time: names do not depend on who comes first.
    join(&gateway, Fake::new(2, [of("string")]));
    let one = join(&gateway, Fake::new(1, [of("integer")]));
    assert_eq!(gateway.list(&client(), Shape::Folded).digest, before.digest);
    assert_eq!(gateway.devices().len(), 2);
    say(&gateway, &one, "t", json!(2));
    let page = gateway.events(Some("board-0001"), Some(&page.next), 10).await.unwrap();
    assert_eq!((page.events.len(), page.dropped), (2, 0));
}

#[tokio::test]
async fn tools_of_a_device_that_left_long_ago_are_not_listed_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let open = |grace| {
        let settings = Settings { state_dir: Some(dir.path().to_owned()), grace, ..Settings::default() };
        Gateway::open(settings).unwrap()
    };
    let gateway = open(600 * SECOND);
    let board = join(&gateway, Fake::board(1));
    leave(&gateway, &board);
    drop(gateway);
    let gateway = open(std::time::Duration::ZERO);
    assert!(device_tools(&gateway).is_empty());
    assert_eq!(gateway.find_device("board-0001").unwrap().tools, 0);
    drop(gateway);
    assert_eq!(device_tools(&open(600 * SECOND)).len(), 4);
}

#[tokio::test]
async fn a_state_directory_has_one_owner_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = gateway_in(dir.path());
    gateway.set_url("http://127.0.0.1:7300/mcp");
    let seen = running_gateway(dir.path()).unwrap();
    assert_eq!((seen.pid, seen.url.as_deref()), (std::process::id(), Some("http://127.0.0.1:7300/mcp")));
    let refusal = Gateway::open(Settings { state_dir: Some(dir.path().to_owned()), ..Settings::default() });
    let error = refusal.err().unwrap();
    assert!(matches!(error, OpenError::InUse { .. }));
    assert!(error.to_string().contains("http://127.0.0.1:7300/mcp"), "{error}");
    gateway.close().await;
    assert_eq!(running_gateway(dir.path()), None);
    drop(gateway_in(dir.path()));
}

#[tokio::test]
async fn old_audit_records_make_room() {
    let gateway = Gateway::open(Settings { max_audit: 500, ..Settings::default() }).unwrap();
    join(&gateway, Fake::new(1, [plain("x")]));
    let asks = (0..3_000).map(|_| call(&gateway, "nothing", json!({})));
    for ask in asks {
        assert!(ask.await.is_err());
    }
    let kept = gateway.audit(10_000).await.unwrap();
    assert!((500..2_000).contains(&kept.len()), "{}", kept.len());
    // Some records are about the device, and about what was removed.
    assert!(kept[0].id > 3_000, "{}", kept[0].id);
}

#[tokio::test]
async fn a_damaged_store_is_named_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("gateway.db"), vec![b'x'; 10_000]).unwrap();
    let error =
        Gateway::open(Settings { state_dir: Some(dir.path().to_owned()), ..Settings::default() }).err().unwrap();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    // The failed attempt lets go of the directory.
    std::fs::remove_file(dir.path().join("gateway.db")).unwrap();
    drop(gateway_in(dir.path()));
}

#[cfg(unix)]
#[tokio::test]
async fn the_state_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("deep/state");
    let gateway = gateway_in(&state);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    assert_eq!(mode(&state.join("token")), 0o600);
    let (_, token) = gateway.tokens().create(Role::Client, "x").unwrap();
    let store = || {
        let files = std::fs::read_dir(&state).unwrap().map(|file| file.unwrap().path());
        files.filter(|file| file.to_string_lossy().contains("gateway.db")).collect::<Vec<_>>()
    };
    assert!(store().iter().any(|file| file.ends_with("gateway.db-wal")), "{:?}", store());
    assert!(store().iter().all(|file| mode(file) == 0o600), "{:?}", store());
    gateway.close().await;
    drop(gateway);
    std::fs::set_permissions(state.join("gateway.db"), PermissionsExt::from_mode(0o644)).unwrap();
    let gateway = gateway_in(&state);
    assert!(store().iter().all(|file| mode(file) == 0o600), "{:?}", store());
    gateway.close().await;
    for file in std::fs::read_dir(&state).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(token.len()).any(|window| window == token.as_bytes()));
    }
}
