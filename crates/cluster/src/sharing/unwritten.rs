//! What was changed at this node and is not in the bucket yet.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::Notify;

use super::AT_ONCE;
use super::records::{SharedKey, SharedRecord};
use crate::core::lock;
use crate::nats::{Bucket, jittered};

/// Between two attempts to write what could not be written.
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MOST: Duration = Duration::from_secs(10);

/// The newest change of each record.
#[derive(Default)]
pub(super) struct Unwritten {
    changes: Mutex<HashMap<SharedKey, SharedRecord>>,
    more: Notify,
}

impl Unwritten {
    pub(super) fn add(&self, key: SharedKey, record: SharedRecord) {
        let mut changes = lock(&self.changes);
        // A token that was revoked stays so, in whatever order one hears of it.
        let is_revoked = matches!(changes.get(&key), Some(SharedRecord::Token(token)) if token.row.is_none());
        if !is_revoked {
            changes.insert(key, record);
        }
        self.more.notify_one();
    }

    pub(super) fn has(&self, key: &SharedKey) -> bool {
        lock(&self.changes).contains_key(key)
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.changes).len()
    }

    /// Writes each until it is written, and waits for more. Dropping this loses nothing.
    pub(super) async fn write_all(&self, bucket: &Bucket) {
        let mut pause = RETRY_FIRST;
        loop {
            let changes: Vec<_> = lock(&self.changes).iter().map(|(key, it)| (key.clone(), it.clone())).collect();
            if changes.is_empty() {
                self.more.notified().await;
                continue;
            }
            let written = futures_util::stream::iter(changes).map(|(key, record)| self.write(bucket, key, record));
            let failed = written.buffer_unordered(AT_ONCE).filter(|done| std::future::ready(!done)).count().await;
            if failed == 0 {
                pause = RETRY_FIRST;
            } else {
                tracing::warn!(records = failed, "changes are not shared with the cluster yet; they are tried again");
                tokio::time::sleep(jittered(pause)).await;
                pause = (pause * 2).min(RETRY_MOST);
            }
        }
    }

    /// Writes a record, over whatever there is. Returns whether that is done.
    async fn write(&self, bucket: &Bucket, key: SharedKey, record: SharedRecord) -> bool {
        let name = key.text();
        let written = match (record.text(), &record) {
            (None, _) => {
                tracing::warn!(record = name, "a change stays at this node: it is too long to be shared");
                Ok(())
            }
            (Some(text), SharedRecord::Token(token)) if token.row.is_some() => {
                bucket.keep(&name, Bytes::from(text)).await
            }
            (Some(text), _) => bucket.put(&name, Bytes::from(text)).await,
        };
        if let Err(why) = &written {
            tracing::debug!(key = name, "a shared record is not written yet: {why}");
            return false;
        }
        let mut changes = lock(&self.changes);
        if changes.get(&key) == Some(&record) {
            changes.remove(&key);
        }
        true
    }
}
