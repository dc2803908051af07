//! The connection to the store, kept up: watches, writes, and messages of other nodes.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::select_all;
use sinew_presence::{Change, Key, Output, Owner, ReadAnswer, Record, Revision, WriteAnswer};
use sinew_tool::Digest;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::core::{Core, Step};
use crate::messages::{Assembly, FenceForm, MessageBody, NodeMessage};
use crate::nats::{Bucket, Received, Watched, jittered, store_id};
use crate::records::{Card, SHARDS, parse_hash, parse_key, parse_record, shard_of, text_of, text_of_key};
use crate::serve::{answer, handle_call};

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
    let left = CancellationToken::new();
    let leaving = async {
        shutdown.cancelled().await;
        core.leave(Duration::ZERO).await;
        left.cancel();
    };
    // The last record of this node is written while it leaves.
    let keeping = async {
        keep_up(core.clone(), receivers.asked).await;
        std::future::pending().await
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(listen(&core, &left), leaving) } => {}
        () = keeping => {}
    }
    core.say_stopped().await;
    steps.abort();
}

async fn take_steps(core: Arc<Core>, mut steps: mpsc::UnboundedReceiver<Step>) {
    while let Some(step) = steps.recv().await {
        core.take(step).await;
    }
}

/// Hears what other nodes say to this one, until it left the cluster and everything that came before was handled.
async fn listen(core: &Arc<Core>, left: &CancellationToken) {
    let name = &core.settings.name;
    let subscribed = async {
        let messages = core.nats.subscribe(name.subject(&core.me)).await?;
        Ok::<_, String>((messages, core.nats.subscribe(name.nobody(&core.me.node, "*")).await?))
    };
    let (mut messages, mut nobody) = match subscribed.await {
        Ok(subscribed) => subscribed,
        Err(error) => return tracing::error!("messages of other nodes cannot be heard: {error}"),
    };
    let mut assembly = Assembly::default();
    let mut is_ending = false;
    loop {
        let heard = tokio::select! {
            heard = messages.next() => heard,
            heard = nobody.next() => heard,
            () = left.cancelled(), if !is_ending => {
                is_ending = true;
                messages.end().await;
                continue;
            }
        };
        let Some(Received { subject, payload, is_nobody }) = heard else { return };
        if is_nobody {
            core.open.hear_nobody(subject.rsplit('.').next().unwrap_or_default());
            continue;
        }
        match assembly.add(&payload) {
            Ok(Some((from, message))) => handle_message(core, from, message),
            Ok(None) => {}
            Err(why) => tracing::debug!("a message in the cluster was left alone: {why}"),
        }
    }
}

fn handle_message(core: &Arc<Core>, from: Owner, message: NodeMessage) {
    let NodeMessage { call, body } = message;
    match body {
        MessageBody::Call(forwarded) => handle_call(core, from, call, forwarded),
        MessageBody::Cancel => core.served.cancel(&from, call),
        MessageBody::Answers { question, answers } => core.served.answer(&from, call, question, answers),
        MessageBody::Evict { device, fence } => {
            if let (Some(device), Some(fence)) = (parse_hash(&device), fence.fence()) {
                core.with(|members, now| members.presence.handle_evict(now, device, fence, from.node));
            }
        }
        MessageBody::Lease(wish) => crate::leases::handle_wish(core, from, call, wish),
        MessageBody::Check if core.served.has(&from, &call) => {}
        MessageBody::Check => answer(core, from, call, MessageBody::Unknown),
        MessageBody::Stopped { connected_ms } => {
            core.open.hear_stopped(&from, Duration::from_millis(connected_ms));
        }
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
                tokio::time::sleep(jittered(pause)).await;
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
    let mut writing = pin!(core.shared.write_all(&buckets.shared));
    loop {
        let facts = core.facts();
        if told.as_ref() != Some(&facts) {
            told = Some(facts.clone());
            core.shared.tell_facts(facts);
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
            () = &mut writing => {}
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
            Output::Evict { run, device, fence } => {
                let body = MessageBody::Evict { device: device.to_string(), fence: FenceForm::of(fence) };
                // The watch brings the same, later.
                let _ = core.send(&run, &NodeMessage { call: String::new(), body }, None).await;
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
