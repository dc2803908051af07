//! Forgetting devices: by a person, after a long absence, or to make space.
//!
//! Absence is counted in the time that gateways ran on this store, not by the wall clock: a gateway that was off for
//! months, or whose clock jumps, forgets nobody for it. What a person named, labelled or pinned is forgotten by a person only. The
//! id of a forgotten device rests like its public names: for a time only the same device gets it back, so that nobody
//! takes its place unnoticed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sinew_tool::{DeviceId, DeviceKey, ErrorKind, Notice, ToolError};
use tokio::time::Instant;

use super::writer::RegistryWriter;
use crate::settings::Settings;
use crate::snapshot::{DeviceEntry, Presence};
use crate::store::{Commit, RestingId, Write};
use crate::view::DeviceView;

/// The event about a device that is forgotten.
const FORGOTTEN: &str = "sinew/forgotten";
/// How long the ids and public names of forgotten devices rest: longer than a list of tools lives in any client.
const REST: Duration = Duration::from_secs(30 * 86_400);
/// How often it is looked whether somebody can be forgotten; a crash loses this much of the running time.
const TIDY: Duration = Duration::from_secs(600);

pub(super) struct Forgetting {
    pub(super) max_devices: usize,
    /// 0 forgets nobody.
    after: Duration,
    /// How long gateways had run on this store when this one started, and when that was.
    ran_before: i64,
    started: Instant,
    tidied: Instant,
    resting: HashMap<DeviceId, RestingId>,
    resting_by_key: HashMap<DeviceKey, DeviceId>,
}

impl Forgetting {
    pub(super) fn new(settings: &Settings, ran_before: i64, resting: Vec<RestingId>) -> Forgetting {
        let mut forgetting = Forgetting {
            max_devices: settings.max_devices.max(1),
            after: settings.forget_after,
            ran_before,
            started: Instant::now(),
            tidied: Instant::now(),
            resting: HashMap::new(),
            resting_by_key: HashMap::new(),
        };
        resting.into_iter().for_each(|resting| forgetting.rest(resting));
        forgetting
    }

    fn rest(&mut self, resting: RestingId) {
        self.resting_by_key.insert(resting.key.clone(), resting.id.clone());
        self.resting.insert(resting.id.clone(), resting);
    }

    fn wake(&mut self, id: &DeviceId) {
        if let Some(resting) = self.resting.remove(id)
            && self.resting_by_key.get(&resting.key) == Some(id)
        {
            self.resting_by_key.remove(&resting.key);
        }
    }

    /// How long gateways have run on this store, in milliseconds.
    pub(super) fn running(&self) -> i64 {
        self.ran_before.saturating_add(millis(self.started.elapsed()))
    }

    pub(super) fn rests(&self, id: &DeviceId) -> bool {
        self.resting.contains_key(id)
    }
}

impl RegistryWriter {
    /// Forgets a device because a person says so.
    pub(super) fn forget(&mut self, device: &str) -> Result<(DeviceView, Vec<Commit>), ToolError> {
        let entry = self.find(device)?;
        if let Presence::Here(_) = entry.presence {
            let message =
                format!("{} is connected; switch it off or revoke its token first, then forget it", entry.title());
            return Err(ToolError::new(ErrorKind::InvalidArguments, message));
        }
        let view = entry.view();
        let mut commits = Vec::new();
        if entry.pinned {
            self.pins.unpin(&entry.info.key);
            self.note_pin(&entry.info);
            commits.extend(self.pins.to_file().map(|(path, text)| self.store.file(path, text)));
        }
        commits.push(self.drop_device(&entry, "a person forgot it"));
        Ok((view, commits))
    }

    /// Forgets a device that is away, where all places are taken; `false` where every device is here or kept.
    pub(super) fn make_room(&mut self) -> bool {
        if self.devices.len() < self.forgetting.max_devices {
            return true;
        }
        let oldest = self.devices.values().filter(|entry| can_go(entry)).min_by_key(|entry| entry.left_at).cloned();
        let Some(oldest) = oldest else { return false };
        drop(self.drop_device(&oldest, "the places of all devices are taken, and it was away longest"));
        true
    }

    /// Forgets who was away too long, and frees what has rested long enough. Now and then; says whether anything
    /// changed that readers see.
    pub(super) fn tidy(&mut self) -> bool {
        if self.forgetting.tidied.elapsed() < TIDY {
            return false;
        }
        self.forgetting.tidied = Instant::now();
        self.save_running();
        let running = self.forgetting.running();
        let mut gone = Vec::new();
        let after = millis(self.forgetting.after);
        if after > 0 {
            let is_over = |entry: &&Arc<DeviceEntry>| can_go(entry) && running - entry.left_at >= after;
            gone.extend(self.devices.values().filter(is_over).cloned());
        }
        for entry in &gone {
            drop(self.drop_device(entry, "it was away too long"));
        }
        self.release(running - millis(REST));
        !gone.is_empty()
    }

    pub(super) fn save_running(&self) {
        self.store.write(Write::Running(self.forgetting.running()));
    }

    /// The id that a device had when it was forgotten.
    pub(super) fn take_back_id(&mut self, key: &DeviceKey) -> Option<DeviceId> {
        let id = self.forgetting.resting_by_key.get(key)?.clone();
        if self.names.contains_key(id.as_str()) {
            return None;
        }
        self.forgetting.wake(&id);
        self.store.write(Write::Return(id.clone()));
        Some(id)
    }

    /// Names of a store of 0.1.0 have no owner; those that no device claimed rest from now on.
    pub(super) fn rest_unowned_names(&mut self) {
        let mut changes = Vec::new();
        self.offers.names.rest_unowned(self.forgetting.running(), &mut changes);
        self.offers.keep(changes);
    }

    /// Removes a device that was only shown because it could not be reached. Nobody was offered anything under its id, so
    /// the id is free at once: the device may come with another key.
    pub(super) fn drop_unreached(&mut self, entry: &Arc<DeviceEntry>) {
        self.drop_device(entry, "it was never connected");
        self.forgetting.wake(&entry.id);
        self.store.write(Write::Release(entry.id.clone()));
    }

    fn drop_device(&mut self, entry: &Arc<DeviceEntry>, why: &str) -> Commit {
        tracing::info!(device = %entry.id, "device forgotten: {why}");
        let body = json!({"why": why, "name": entry.name.as_deref()});
        self.record(&entry.id, &entry.info, "forget_device", body.clone());
        self.add_event(&entry.id, Notice { topic: FORGOTTEN.to_owned(), body });
        self.remove(entry);
        self.by_key.remove(&entry.info.key);
        Arc::make_mut(&mut self.names).retain(|_, id| *id != entry.id);
        self.give_names_back(entry);
        let since = self.forgetting.running();
        let resting = RestingId { id: entry.id.clone(), key: entry.info.key.clone(), since };
        let commit = self.store.write_awaited(Write::Forget(resting.clone()));
        self.forgetting.rest(resting);
        if self.forgetting.resting.len() > 2 * self.forgetting.max_devices {
            self.release(i64::MIN);
        }
        commit
    }

    fn give_names_back(&mut self, entry: &DeviceEntry) {
        if !self.devices.values().any(|other| Arc::ptr_eq(&other.offer, &entry.offer)) {
            self.offers.forget(&entry.offer);
        }
        if self.offers.names.owned_by(&entry.info.key) == 0 {
            return;
        }
        // Equal devices share an offer, so there are few to look through.
        let mut users: HashMap<(String, String), DeviceKey> = HashMap::new();
        let mut seen = HashSet::new();
        for other in self.devices.values().filter(|other| seen.insert(Arc::as_ptr(&other.offer))) {
            for tool in other.toolset().iter() {
                for digest in [tool.input_digest().hex(), String::new()] {
                    users.insert((tool.name.clone(), digest), other.info.key.clone());
                }
            }
        }
        let heir = |tool: &str, digest: &str| users.get(&(tool.to_owned(), digest.to_owned())).cloned();
        let mut changes = Vec::new();
        self.offers.names.forget(&entry.info.key, heir, self.forgetting.running(), &mut changes);
        self.offers.keep(changes);
    }

    /// Frees the names and ids that began to rest before `until`, and the oldest ids beyond the number of devices.
    fn release(&mut self, until: i64) {
        let mut changes = Vec::new();
        self.offers.names.release(until, &mut changes);
        self.offers.keep(changes);
        let mut ids: Vec<(i64, DeviceId)> =
            self.forgetting.resting.values().map(|resting| (resting.since, resting.id.clone())).collect();
        ids.sort_unstable();
        let surplus = ids.len().saturating_sub(self.forgetting.max_devices);
        for (place, (since, id)) in ids.into_iter().enumerate() {
            if since < until || place < surplus {
                self.forgetting.wake(&id);
                self.events.forget(&id);
                self.store.write(Write::Release(id));
            }
        }
    }
}

/// Whether a device may be forgotten without a person: it is away, and nobody named, labelled or pinned it.
fn can_go(entry: &DeviceEntry) -> bool {
    matches!(entry.presence, Presence::Away(_)) && !entry.is_kept()
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
