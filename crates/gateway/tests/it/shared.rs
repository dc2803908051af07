//! Two gateways that share what a cluster shares, each part through a second form of its contract.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sinew_gateway::shared::{
    AuditLog, AuditRow, EventLog, NameChange, NameClaim, NameClaims, RequestKeys, Shared, TokenListener, TokenRow,
    TokenStore,
};
use sinew_gateway::{AuditFilter, AuditRecord, EventPage, Gateway, Role, Settings, Shape};
use sinew_tool::{BoxFuture, DeviceId, Notice, Tool, ToolError, json};
use tokio::sync::broadcast;

use crate::fake::{Fake, admin, call, join, say};

/// What a cluster would keep on its servers.
#[derive(Default)]
struct Cluster {
    names: Mutex<HashMap<(String, String), NameClaim>>,
    tokens: Mutex<Vec<TokenRow>>,
    listeners: Mutex<Vec<TokenListener>>,
}

impl NameClaims for Cluster {
    fn keep(&self, changes: Vec<NameChange>) -> Result<Vec<NameClaim>, ToolError> {
        let mut names = self.names.lock().unwrap();
        let mut claimed = Vec::new();
        for change in changes {
            let NameChange::Keep(claim) = change else { continue };
            let key = (claim.tool.clone(), claim.digest.clone());
            let is_word = claim.digest.is_empty();
            let other = |known: &&NameClaim| known.name == claim.name && known.digest.is_empty() == is_word;
            let first = names.get(&key).or_else(|| names.values().find(other)).cloned();
            match first {
                Some(first)
                    if (&first.tool, &first.digest, &first.name) != (&claim.tool, &claim.digest, &claim.name) =>
                {
                    claimed.push(first);
                }
                _ => drop(names.insert(key, claim)),
            }
        }
        Ok(claimed)
    }
}

impl Cluster {
    fn notify(&self) {
        let tokens = self.tokens.lock().unwrap().clone();
        self.listeners.lock().unwrap().iter().for_each(|listener| listener(tokens.clone()));
    }
}

impl TokenStore for Cluster {
    fn add(&self, token: TokenRow) -> Result<(), ToolError> {
        self.tokens.lock().unwrap().push(token);
        self.notify();
        Ok(())
    }

    fn revoke(&self, id: &str) -> Result<(), ToolError> {
        self.tokens.lock().unwrap().retain(|token| token.id != id);
        self.notify();
        Ok(())
    }

    fn note_use(&self, _: &str, _: i64) {}

    fn listen(&self, listener: TokenListener) {
        self.listeners.lock().unwrap().push(listener);
        self.notify();
    }
}

impl RequestKeys for Cluster {
    fn keys(&self) -> Vec<[u8; 32]> {
        vec![[7; 32], [6; 32]]
    }
}

fn open(cluster: &Arc<Cluster>) -> Gateway {
    let cluster = cluster.clone();
    let share = move |local| Shared { names: cluster.clone(), tokens: cluster.clone(), request_keys: cluster, ..local };
    Gateway::open_shared(Settings::default(), share).unwrap()
}

fn tool(name: &str, number: u8) -> Tool {
    Tool::new(name, "", json!({"type": "object", "properties": {"v": {"maxLength": number}}}))
}

fn names(gateway: &Gateway) -> Vec<String> {
    let list = gateway.list(&admin(), Shape::Folded);
    list.tools.iter().filter(|tool| tool.selector.is_some()).map(|tool| tool.name.clone()).collect()
}

#[tokio::test]
async fn a_public_name_means_the_same_tool_on_all_gateways() {
    let cluster = Arc::new(Cluster::default());
    let (one, two) = (open(&cluster), open(&cluster));
    join(&one, Fake::new(1, [tool("set", 1), tool("get", 1)]));
    join(&two, Fake::new(2, [tool("set", 2), tool("get", 1)]));
    let (first, second) = (names(&one), names(&two));
    assert_eq!(first, ["get", "set"]);
    assert!(second.contains(&"get".to_owned()) && !second.contains(&"set".to_owned()), "{second:?}");
    // The tool that was second elsewhere has the same name here.
    join(&one, Fake::new(3, [tool("set", 2)]));
    assert!(second.iter().all(|name| names(&one).contains(name)), "{:?} {second:?}", names(&one));
}

#[tokio::test]
async fn a_token_of_one_gateway_is_valid_on_the_other_until_it_is_revoked_on_either() {
    let cluster = Arc::new(Cluster::default());
    let (one, two) = (open(&cluster), open(&cluster));
    let (view, token) = one.tokens().create(Role::Client, "laptop").unwrap();
    let who = two.tokens().check(&token).expect("made on the other gateway");
    let revoked = two.tokens().revoked(&who);
    one.tokens().revoke(&view.id).unwrap();
    revoked.await;
    assert_eq!(two.tokens().check(&token), None);
    assert_eq!(one.request_keys(), two.request_keys());
}

/// Adds a line to what another form of the same contract does.
struct Counted<T: ?Sized> {
    inner: Arc<T>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl<T: EventLog + ?Sized> EventLog for Counted<T> {
    fn add(&self, device: &DeviceId, notice: Notice) {
        self.seen.lock().unwrap().push(format!("{device} {}", notice.topic));
        self.inner.add(device, notice);
    }

    fn skip(&self, device: &DeviceId, count: u64) {
        self.inner.skip(device, count);
    }

    fn dropped(&self) -> u64 {
        self.inner.dropped()
    }

    fn forget(&self, device: &DeviceId) {
        self.inner.forget(device);
    }

    fn page(
        &self,
        device: Option<DeviceId>,
        since: Option<String>,
        limit: usize,
    ) -> BoxFuture<'_, Result<EventPage, ToolError>> {
        self.inner.page(device, since, limit)
    }

    fn subscribe(&self) -> broadcast::Receiver<DeviceId> {
        self.inner.subscribe()
    }
}

impl<T: AuditLog + ?Sized> AuditLog for Counted<T> {
    fn check(&self) -> Result<(), ToolError> {
        self.inner.check()
    }

    fn record(&self, call: AuditRow) -> BoxFuture<'_, Result<(), ToolError>> {
        self.seen.lock().unwrap().push(format!("{} {}", call.name, call.outcome));
        self.inner.record(call)
    }

    fn record_unawaited(&self, call: AuditRow) {
        self.inner.record_unawaited(call);
    }

    fn find(&self, filter: AuditFilter, limit: usize) -> BoxFuture<'_, Result<Vec<AuditRecord>, ToolError>> {
        self.inner.find(filter, limit)
    }
}

#[tokio::test]
async fn events_and_calls_go_through_the_shared_form_and_are_read_through_it() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let lines = seen.clone();
    let share = move |local: Shared| Shared {
        events: Arc::new(Counted { inner: local.events, seen: lines.clone() }),
        audit: Arc::new(Counted { inner: local.audit, seen: lines }),
        ..local
    };
    let gateway = Gateway::open_shared(Settings::default(), share).unwrap();
    let device = join(&gateway, Fake::new(1, [tool("set", 1)]));
    say(&gateway, &device, "button", json!({}));
    call(&gateway, "set", json!({})).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["board-0001 sinew/connected", "board-0001 button", "set ok"]);
    assert_eq!(gateway.events(None, None, 10).await.unwrap().events.len(), 2);
    assert_eq!(gateway.audit(10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_key_of_request_state_outlives_a_restart_and_differs_between_gateways() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let keys = |dir: &tempfile::TempDir| {
        let settings = Settings { state_dir: Some(dir.path().to_owned()), ..Settings::default() };
        Gateway::open(settings).unwrap().request_keys()
    };
    assert_eq!(keys(&dirs[0]), keys(&dirs[0]));
    assert_ne!(keys(&dirs[0]), keys(&dirs[1]));
}
