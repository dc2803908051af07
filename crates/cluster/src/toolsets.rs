//! The tools of devices, which travel once for each distinct content.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sinew_tool::{Digest, Tool, Toolset, Value};

use crate::nats::Bucket;
use crate::records::VERSION;

/// Half of what a server takes by default.
const PART_BYTES: usize = 512 << 10;
/// As much as the tools of a board may have, and more than any device has.
const MAX_PARTS: usize = 32;

#[derive(Default)]
pub(crate) struct Toolsets {
    /// Those that some device has.
    known: Mutex<HashMap<Digest, Weak<Toolset>>>,
    /// Those that the store has.
    stored: Mutex<HashSet<Digest>>,
}

/// Says in how many parts the tools are kept.
#[derive(Serialize, Deserialize)]
struct SetHead {
    v: u32,
    parts: usize,
}

impl Toolsets {
    pub(crate) fn find(&self, digest: Digest) -> Option<Arc<Toolset>> {
        lock(&self.known).get(&digest).and_then(Weak::upgrade)
    }

    fn note(&self, tools: &Arc<Toolset>) {
        let mut known = lock(&self.known);
        known.retain(|_, set| set.strong_count() > 0);
        known.insert(tools.digest(), Arc::downgrade(tools));
    }

    /// The store is another one, or may be.
    pub(crate) fn forget_stored(&self) {
        lock(&self.stored).clear();
    }

    /// Puts tools into the store, unless they are there.
    pub(crate) async fn publish(&self, bucket: &Bucket, tools: &Arc<Toolset>) -> Result<(), String> {
        let digest = tools.digest();
        if lock(&self.stored).contains(&digest) {
            return Ok(());
        }
        self.note(tools);
        let records: Vec<Value> = tools.iter().map(Tool::to_record).collect();
        let text = serde_json::to_vec(&records).map_err(|error| error.to_string())?;
        let parts = text.chunks(PART_BYTES).len();
        if parts > MAX_PARTS {
            return Err(format!("the tools of a device have {} bytes, more than a cluster carries", text.len()));
        }
        for (number, part) in text.chunks(PART_BYTES).enumerate() {
            bucket.keep(&part_key(digest, number), Bytes::copy_from_slice(part)).await?;
        }
        // Last, so that whoever finds it finds the parts.
        let head = serde_json::to_vec(&SetHead { v: VERSION, parts }).map_err(|error| error.to_string())?;
        bucket.keep(&digest.hex(), head.into()).await?;
        lock(&self.stored).insert(digest);
        Ok(())
    }

    /// Reads tools from the store. What does not have the digest is not taken.
    pub(crate) async fn fetch(&self, bucket: &Bucket, digest: Digest) -> Result<Arc<Toolset>, String> {
        let missing = || format!("the store has no tools {}", digest.short(12));
        let (_, head) = bucket.read(&digest.hex()).await?.ok_or_else(missing)?;
        let head: SetHead = serde_json::from_slice(&head).map_err(|error| error.to_string())?;
        if head.v != VERSION || head.parts > MAX_PARTS {
            return Err(format!("the tools {} are kept in a form of another version", digest.short(12)));
        }
        let mut text = Vec::new();
        for number in 0..head.parts {
            let (_, part) = bucket.read(&part_key(digest, number)).await?.ok_or_else(missing)?;
            text.extend_from_slice(&part);
        }
        let records: Vec<Value> = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        let tools: Vec<Tool> = records.iter().map(Tool::from_record).collect::<Result<_, _>>()?;
        let tools = Arc::new(Toolset::new(tools));
        if tools.digest() != digest {
            return Err(format!("the tools {} are not what their name says", digest.short(12)));
        }
        self.note(&tools);
        Ok(tools)
    }
}

fn part_key(digest: Digest, number: usize) -> String {
    format!("{}.{number}", digest.hex())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
