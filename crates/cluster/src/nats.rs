//! NATS: the only module that knows its client library.
//!
//! Written for servers from 2.9 on. Buckets are made as streams, because the library's own way asks the account for
//! fields that such a server does not send; a time to live for one key does not exist there, and nobody hears when a
//! record expires.

use std::time::Duration;

use async_nats::jetstream::kv::{Operation, Store, UpdateErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions, Event, StatusCode, Subscriber};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use sha2::{Digest as _, Sha256};
use sinew_presence::{Revision, StoreId, WriteAnswer};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::settings::ClusterSettings;

/// How long the store may take to answer.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two attempts to connect; less at first, and never all nodes at once.
const RECONNECT_MOST: Duration = Duration::from_secs(5);
/// A server that is gone without a word is noticed after two of these.
const PING_EVERY: Duration = Duration::from_secs(5);
/// How often an unfinished first reading of a bucket is looked at: its last records may expire meanwhile.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The connection.
#[derive(Clone)]
pub(crate) struct Nats {
    client: Client,
    store: Context,
    /// How often it was connected; 0 while it is not.
    connected: watch::Receiver<Connected>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Connected {
    pub(crate) times: u64,
    pub(crate) is_now: bool,
    /// Since when no message can have been lost.
    pub(crate) whole_since: Option<Instant>,
}

impl Connected {
    /// How long no message can have been lost.
    pub(crate) fn whole_for(&self) -> Duration {
        self.whole_since.filter(|_| self.is_now).map(|since| since.elapsed()).unwrap_or_default()
    }
}

/// A message of another node.
pub(crate) struct Received {
    pub(crate) subject: String,
    pub(crate) payload: Bytes,
    /// It is the server's word that nobody listens.
    pub(crate) is_nobody: bool,
}

impl Nats {
    /// Begins to connect, and goes on for as long as it takes.
    pub(crate) async fn connect(settings: &ClusterSettings) -> Result<Nats, String> {
        let (sender, connected) = watch::channel(Connected::default());
        let address = settings.nats.clone();
        let mut options = ConnectOptions::new()
            .name(format!("sinew {} {}", settings.name.as_str(), settings.node))
            .retry_on_initial_connect()
            .max_reconnects(None)
            .ping_interval(PING_EVERY)
            .require_tls(settings.tls)
            .reconnect_delay_callback(delay)
            .event_callback(move |event| {
                note(&sender, &address, &event);
                std::future::ready(())
            });
        if let Some(file) = &settings.tls_ca {
            options = options.add_root_certificates(file.clone());
        }
        if let Some(file) = &settings.credentials {
            let unread = |error| format!("the credentials {} cannot be used: {error}", file.display());
            options = options.credentials_file(file).await.map_err(unread)?;
        }
        let servers: Vec<&str> = settings.nats.split(',').map(str::trim).collect();
        let client = options.connect(servers).await.map_err(|error| format!("`{}`: {error}", settings.nats))?;
        let mut store = jetstream::new(client.clone());
        store.set_timeout(STORE_TIMEOUT);
        Ok(Nats { client, store, connected })
    }

    pub(crate) fn connected(&self) -> watch::Receiver<Connected> {
        self.connected.clone()
    }

    pub(crate) fn server_version(&self) -> String {
        self.client.server_info().version
    }

    pub(crate) async fn publish(&self, subject: String, payload: Bytes, nobody: Option<String>) -> Result<(), String> {
        let published = match nobody {
            Some(nobody) => self.client.publish_with_reply(subject, nobody, payload).await,
            None => self.client.publish(subject, payload).await,
        };
        published.map_err(|error| error.to_string())
    }

    pub(crate) async fn subscribe(&self, subject: String) -> Result<Subscription, String> {
        let messages = self.client.subscribe(subject).await.map_err(|error| error.to_string())?;
        Ok(Subscription { messages })
    }

    /// Waits until everything that was published is on its way.
    pub(crate) async fn flush(&self) {
        let _ = tokio::time::timeout(STORE_TIMEOUT, self.client.flush()).await;
    }

    /// Opens a bucket, and makes it where it is missing.
    pub(crate) async fn bucket(&self, name: &str, max_age: Option<Duration>) -> Result<Bucket, String> {
        let config = Config {
            name: format!("KV_{name}"),
            subjects: vec![format!("$KV.{name}.>")],
            max_messages_per_subject: 1,
            max_age: max_age.unwrap_or_default(),
            storage: StorageType::File,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            num_replicas: 1,
            ..Config::default()
        };
        let failed = |error: String| format!("the bucket `{name}` cannot be used: {error}");
        self.store.get_or_create_stream(config).await.map_err(|error| failed(error.to_string()))?;
        let store = self.store.get_key_value(name).await.map_err(|error| failed(error.to_string()))?;
        Ok(Bucket { store })
    }
}

fn delay(attempts: usize) -> Duration {
    let base = Duration::from_millis(100) * u32::try_from(attempts.min(50)).unwrap_or(50);
    jittered(base.min(RECONNECT_MOST))
}

/// From half of a pause to the whole, so that nodes do not all come at once.
pub(crate) fn jittered(pause: Duration) -> Duration {
    let mut byte = [0];
    let _ = getrandom::fill(&mut byte);
    pause.mul_f64(0.5 + f64::from(byte[0]) / 510.0)
}

fn note(connected: &watch::Sender<Connected>, address: &str, event: &Event) {
    match event {
        Event::Connected => {
            tracing::info!(nats = address, "connected to the cluster's NATS");
            connected.send_modify(|connected| {
                let whole_since = Some(Instant::now());
                *connected = Connected { times: connected.times + 1, is_now: true, whole_since };
            });
        }
        Event::Disconnected | Event::Closed => {
            tracing::warn!(nats = address, "the connection to the cluster's NATS is gone; it is tried again");
            connected.send_modify(|connected| connected.is_now = false);
        }
        Event::SlowConsumer(_) => {
            tracing::warn!("messages of other nodes were dropped: this node does not keep up");
            connected.send_modify(|connected| connected.whole_since = Some(Instant::now()));
        }
        Event::ServerError(error) => tracing::warn!(nats = address, "NATS reports an error: {error}"),
        Event::ClientError(error) => tracing::debug!(nats = address, "{error}"),
        Event::LameDuckMode | Event::Draining => {}
    }
}

/// Messages to one subject.
pub(crate) struct Subscription {
    messages: Subscriber,
}

impl Subscription {
    pub(crate) async fn next(&mut self) -> Option<Received> {
        self.messages.next().await.map(|message| Received {
            subject: message.subject.to_string(),
            payload: message.payload,
            is_nobody: message.status == Some(StatusCode::NO_RESPONDERS),
        })
    }

    /// Ends it: what is published after this, the server gives to nobody. What came already can still be read; what is on
    /// its way is lost.
    pub(crate) async fn end(&mut self) {
        let _ = self.messages.unsubscribe().await;
    }
}

/// Records by key, each with the revision of its last change.
#[derive(Clone)]
pub(crate) struct Bucket {
    store: Store,
}

/// What a watch brings.
pub(crate) enum Watched {
    Change {
        key: String,
        value: Bytes,
        revision: Revision,
    },
    /// Everything that there was at the beginning was brought.
    Synced,
}

impl Bucket {
    /// Another one after the bucket was lost and made again.
    fn identify(&self, hash: &mut Sha256) {
        hash.update(self.store.name.as_bytes());
        hash.update(self.store.stream.cached_info().created.unix_timestamp_nanos().to_be_bytes());
    }

    pub(crate) async fn write(&self, key: &str, value: Bytes, expected: Revision) -> WriteAnswer {
        match self.store.update(key, value, expected.0).await {
            Ok(revision) => WriteAnswer::Done(Revision(revision)),
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => WriteAnswer::Conflict,
            Err(error) => {
                tracing::debug!(key, "a record may not be written: {error}");
                WriteAnswer::Lost
            }
        }
    }

    /// Writes a record whose content follows from its key; one that is there already is left.
    pub(crate) async fn keep(&self, key: &str, value: Bytes) -> Result<(), String> {
        match self.store.update(key, value, 0).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Writes a record over whatever there is.
    pub(crate) async fn put(&self, key: &str, value: Bytes) -> Result<(), String> {
        self.store.put(key, value).await.map(drop).map_err(|error| error.to_string())
    }

    /// May be older than what was written last.
    pub(crate) async fn read(&self, key: &str) -> Result<Option<(Revision, Bytes)>, String> {
        let entry = self.store.entry(key).await.map_err(|error| error.to_string())?;
        let entry = entry.filter(|entry| entry.operation == Operation::Put);
        Ok(entry.map(|entry| (Revision(entry.revision), entry.value)))
    }

    /// All records as they are, and then their changes. Ends with an error when the bucket is gone.
    pub(crate) async fn watch(&self) -> Result<impl Stream<Item = Result<Watched, String>> + Send + use<>, String> {
        let watch = self.store.watch_with_history(">").await.map_err(|error| error.to_string())?;
        let bucket = self.clone();
        // What was read already and waits for its turn, and whether the beginning was read.
        let state = (watch.boxed(), Vec::new(), false, bucket);
        Ok(futures_util::stream::unfold(state, |(mut watch, mut waiting, mut is_synced, bucket)| async move {
            if let Some(next) = waiting.pop() {
                return Some((Ok(next), (watch, waiting, is_synced, bucket)));
            }
            loop {
                let look = async {
                    match is_synced {
                        true => std::future::pending().await,
                        false => tokio::time::sleep(LOOK_AGAIN).await,
                    }
                };
                let entry = tokio::select! {
                    entry = watch.next() => entry,
                    () = look => match bucket.is_empty().await {
                        Ok(false) => continue,
                        Ok(true) => {
                            is_synced = true;
                            return Some((Ok(Watched::Synced), (watch, waiting, is_synced, bucket)));
                        }
                        Err(error) => return Some((Err(error), (watch, waiting, is_synced, bucket))),
                    },
                };
                let item = match entry {
                    None => Err(format!("the watch of the bucket `{}` ended", bucket.store.name)),
                    Some(Err(error)) => Err(error.to_string()),
                    Some(Ok(entry)) => {
                        if entry.delta == 0 && !is_synced {
                            is_synced = true;
                            waiting.push(Watched::Synced);
                        }
                        let (key, value, revision) = (entry.key, entry.value, Revision(entry.revision));
                        Ok(Watched::Change { key, value, revision })
                    }
                };
                return Some((item, (watch, waiting, is_synced, bucket)));
            }
        }))
    }

    async fn is_empty(&self) -> Result<bool, String> {
        let info = self.store.stream.get_info().await.map_err(|error| error.to_string())?;
        Ok(info.state.messages == 0)
    }
}

/// Which store the buckets are: another one when any of them was lost. All nodes compute the same.
pub(crate) fn store_id<'a>(buckets: impl Iterator<Item = &'a Bucket>) -> StoreId {
    let mut hash = Sha256::new();
    buckets.for_each(|bucket| bucket.identify(&mut hash));
    let mut id = [0; 8];
    id.copy_from_slice(&hash.finalize()[..8]);
    StoreId(u64::from_be_bytes(id))
}
