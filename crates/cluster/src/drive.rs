//! The connection to the store, kept up: watches, writes, and messages of other nodes.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::select_all;
use sinew_presence::{Change, Key, NodeId, Output, ReadAnswer, Record, Revision, WriteAnswer};
use sinew_tool::Digest;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::core::{Core, GONE, Step};
use crate::messages::{Assembly, FenceForm, MessageBody, NodeMessage};
use crate::nats::{Bucket, Received, Watched, store_id};
use crate::records::{Card, SHARDS, parse_hash, parse_key, parse_record, shard_of, text_of, text_of_key};
use crate::serve::handle_call;

/// The broom for leases of nodes that nobody declared dead. Nodes count by their own clocks, much earlier.
const LEASE_AGE: Duration = Duration::from_secs(60);
/// Between two attempts to use the store; growing, and never all nodes at once.
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_MOST: Duration = Duration::from_secs(30);
/// The longest between two attempts to get tools.
const FETCH_MOST: Duration = Duration::from_secs(5);

/// The store of a cluster.
pub(crate) struct Buckets {
    nodes: Bucket,
    devices: Vec<Bucket>,
    pub(crate) sets: Bucket,
    shared: Bucket,
}

/// What a watch is about.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    Nodes,
    Devices,
    Shared,
}

impl Buckets {
    async fn open(core: &Core) -> Result<Buckets, String> {
        let name = |what: &str| core.settings.name.bucket(what);
        let nodes = core.nats.bucket(&name("nodes"), Some(LEASE_AGE)).await?;
        let mut devices = Vec::new();
        for shard in 0..SHARDS {
            devices.push(core.nats.bucket(&name(&format!("devices-{shard}")), None).await?);
        }
        let sets = core.nats.bucket(&name("toolsets"), None).await?;
        let shared = core.nats.bucket(&name("shared"), None).await?;
        Ok(Buckets { nodes, devices, sets, shared })
    }

    fn of(&self, key: &Key) -> &Bucket {
        match key {
            Key::Node(_) => &self.nodes,
            Key::Device(device) => &self.devices[shard_of(*device)],
        }
    }
}

/// Runs a node until shutdown.
pub(crate) async fn run(core: Arc<Core>, shutdown: CancellationToken) {
    let Some(receivers) = core.take_receivers() else { return };
    let steps = tokio::spawn(take_steps(core.clone(), receivers.steps));
    let work = async {
        tokio::join!(listen(core.clone()), keep_up(core.clone(), receivers.asked));
    };
    // The last record is written by the work.
    let leaving = async {
        shutdown.cancelled().await;
        core.leave(Duration::ZERO).await;
    };
    tokio::select! {
        () = work => {}
        () = leaving => {}
    }
    steps.abort();
}

async fn take_steps(core: Arc<Core>, mut steps: mpsc::UnboundedReceiver<Step>) {
    while let Some(step) = steps.recv().await {
        core.take(step).await;
    }
}

/// Hears what other nodes say to this one.
async fn listen(core: Arc<Core>) {
    let (name, me) = (&core.settings.name, &core.me.node);
    let subjects = [name.subject(me), name.nobody(me, "*")];
    let mut heard = Vec::new();
    for subject in subjects {
        match core.nats.subscribe(subject).await {
            Ok(messages) => heard.push(messages.boxed()),
            Err(error) => return tracing::error!("messages of other nodes cannot be heard: {error}"),
        }
    }
    let mut heard = select_all(heard);
    let mut assembly = Assembly::default();
    while let Some(Received { subject, payload, is_nobody }) = heard.next().await {
        if is_nobody {
            let what = subject.rsplit('.').next().unwrap_or_default();
            match what.strip_prefix(GONE).and_then(NodeId::parse) {
                Some(node) => core.open.lose(&node),
                None => core.open.hear_nobody(what),
            }
            continue;
        }
        match assembly.add(&payload) {
            Ok(Some((from, message))) => handle_message(&core, from, message),
            Ok(None) => {}
            Err(why) => tracing::debug!("a message in the cluster was left alone: {why}"),
        }
    }
}

fn handle_message(core: &Arc<Core>, from: NodeId, message: NodeMessage) {
    let NodeMessage { call, body } = message;
    match body {
        MessageBody::Call(forwarded) => handle_call(core, from, call, forwarded),
        MessageBody::Cancel => core.served.cancel(&from, call),
        MessageBody::Answers { question, answers } => core.served.answer(&from, call, question, answers),
        MessageBody::Evict { device, fence } => {
            if let (Some(device), Some(fence)) = (parse_hash(&device), fence.fence()) {
                core.with(|members, now| members.presence.handle_evict(now, device, fence, from));
            }
        }
        MessageBody::Lease(wish) => crate::leases::handle_wish(core, from, call, wish),
        answer => core.open.hear(&from, &call, answer),
    }
}

/// Uses the store whenever it can be reached.
async fn keep_up(core: Arc<Core>, mut asked: mpsc::UnboundedReceiver<Output<Card>>) {
    let mut connected = core.nats.connected();
    let mut pause = RETRY_FIRST;
    loop {
        if connected.wait_for(|connected| connected.is_now).await.is_err() {
            return;
        }
        let used = use_store(&core, &mut asked).await;
        core.shared.set_away();
        match used {
            Ok(()) => pause = RETRY_FIRST,
            Err(why) => {
                tracing::warn!("the cluster's store cannot be used; it is tried again: {why}");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(RETRY_MOST);
            }
        }
    }
}

/// Uses the store until the connection is gone.
async fn use_store(core: &Arc<Core>, asked: &mut mpsc::UnboundedReceiver<Output<Card>>) -> Result<(), String> {
    let mut connected = core.nats.connected();
    let times = connected.borrow_and_update().times;
    let buckets = Arc::new(Buckets::open(core).await?);
    core.set_buckets(buckets.clone());
    // Whoever finds a device finds its tools. They are few, and the store may be a new one.
    core.toolsets.forget_stored();
    for tools in core.local_toolsets() {
        core.toolsets.publish(&buckets.sets, &tools).await?;
    }
    let mut watches = vec![buckets.nodes.watch().await?.map(|watched| (Source::Nodes, watched)).boxed()];
    for bucket in &buckets.devices {
        watches.push(bucket.watch().await?.map(|watched| (Source::Devices, watched)).boxed());
    }
    let mut unread = watches.len();
    core.shared.begin(buckets.shared.clone());
    watches.push(buckets.shared.watch().await?.map(|watched| (Source::Shared, watched)).boxed());
    let mut watches = select_all(watches);
    let mut told = None;
    let store = store_id([&buckets.nodes, &buckets.sets].into_iter().chain(&buckets.devices));
    core.with(|members, now| members.presence.handle_store(now, store));
    loop {
        let facts = core.facts();
        if told.as_ref() != Some(&facts) {
            told = Some(facts.clone());
            let shared = core.shared.clone();
            tokio::spawn(async move { shared.tell_facts(facts).await });
        }
        let due = core.due.notified();
        let next = core.next_time();
        let timer = async {
            match next {
                Some(next) => tokio::time::sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = timer => core.with(|members, now| members.presence.handle_time(now)),
            changed = connected.changed() => {
                let now = *connected.borrow_and_update();
                if changed.is_err() || !now.is_now || now.times != times {
                    return Ok(());
                }
            }
            Some(output) = asked.recv() => ask(core, &buckets, output),
            watched = watches.next() => match watched {
                Some((Source::Shared, Ok(Watched::Change { key, value, .. }))) => core.handle_shared(&key, &value),
                Some((Source::Shared, Ok(Watched::Synced))) => {
                    let (shared, gateway) = (core.shared.clone(), core.gateway.clone());
                    tokio::spawn(async move { shared.reconcile(&gateway).await });
                }
                Some((source, Ok(Watched::Change { key, value, revision }))) => {
                    let Some(key) = parse_key(&key, source == Source::Devices) else { continue };
                    let Some(record) = parse_record(&key, &value) else {
                        tracing::debug!(?key, "a record of another version was left alone");
                        continue;
                    };
                    core.with(|members, now| members.presence.handle_change(now, Change { key, revision, record }));
                }
                Some((_, Ok(Watched::Synced))) => {
                    unread -= 1;
                    if unread == 0 {
                        core.with(|members, now| members.presence.handle_synced(now));
                    }
                }
                Some((_, Err(error))) => return Err(error),
                None => return Err("the watch ended".to_owned()),
            },
        }
    }
}

/// Asks the store, or tells a node, without waiting for it.
fn ask(core: &Arc<Core>, buckets: &Arc<Buckets>, output: Output<Card>) {
    let (core, buckets) = (core.clone(), buckets.clone());
    tokio::spawn(async move {
        match output {
            Output::Write { ticket, key, record, expected } => {
                let is_farewell = record == Record::Ended && key == Key::Node(core.me.node.clone());
                let answer = match text_of(&record) {
                    Some(text) => buckets.of(&key).write(&text_of_key(&key), Bytes::from(text), expected).await,
                    None => WriteAnswer::Lost,
                };
                core.with(|members, now| members.presence.handle_write(now, ticket, answer));
                if is_farewell {
                    core.served.farewell.notify_one();
                }
            }
            Output::Read { ticket, key } => {
                let answer = match buckets.of(&key).read(&text_of_key(&key)).await {
                    Err(_) => ReadAnswer::Lost,
                    Ok(None) => ReadAnswer::Missing,
                    Ok(Some((revision, text))) => found(&key, revision, &text),
                };
                core.with(|members, now| members.presence.handle_read(now, ticket, answer));
            }
            Output::Evict { node, device, fence } => {
                let body = MessageBody::Evict { device: device.to_string(), fence: FenceForm::of(fence) };
                // The watch brings the same, later.
                let _ = core.send(&node, &NodeMessage { call: String::new(), body }, None).await;
            }
            Output::Event(_) => {}
        }
    });
}

/// What cannot be read holds nothing, and may be written over.
fn found(key: &Key, revision: Revision, text: &[u8]) -> ReadAnswer<Card> {
    let empty = match key {
        Key::Node(_) => Record::Ended,
        Key::Device(_) => Record::Left,
    };
    ReadAnswer::Found(revision, parse_record(key, text).unwrap_or(empty))
}

/// Gets tools that devices of other nodes have, for as long as one has them.
pub(crate) async fn fetch(core: Weak<Core>, digest: Digest) {
    let mut pause = Duration::from_millis(100);
    loop {
        {
            let Some(core) = core.upgrade() else { return };
            if !core.needs(digest) {
                return;
            }
            if let Some(buckets) = core.buckets() {
                match core.toolsets.fetch(&buckets.sets, digest).await {
                    Ok(tools) => return core.handle_tools(digest, &tools),
                    Err(why) => tracing::debug!("the tools of a device at another node are not here yet: {why}"),
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(FETCH_MOST);
    }
}
