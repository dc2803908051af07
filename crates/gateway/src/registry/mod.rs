//! The known devices, connected and away, with their names. [`Registry::apply`] is the only writer.
//!
//! The writer's state is behind a mutex that is held briefly and never across an await. A change only counts up the
//! version; the next reader makes the snapshot, so a thousand boards that join at once cost one.

mod agreeing;
mod faces;
mod forgetting;
mod writer;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use serde_json::json;
use sinew_spec::lock::Follow;
use sinew_tool::{DeviceEvent, DeviceId, DeviceInfo, DeviceKey, ErrorKind, FamilyName, Notice, ToolError, Toolset};
use tokio::sync::watch;

use crate::aside::aside;
use crate::held::device_topic;
use crate::labels::Label;
use crate::pins::{self, Pins, Review};
use crate::prepare::ToolPreparer;
use crate::record::Recorder;
use crate::settings::{OpenError, Settings};
use crate::shared::{DeviceMarks, GivenMarks, NameClaim, Shared};
use crate::snapshot::{Snapshot, Traffic};
use crate::store::{Commit, Store, StoredState};
use crate::view::DeviceView;
use agreeing::Agreed;
pub(crate) use agreeing::Agreement;
pub(crate) use writer::PRESENCE_TOPICS;
use writer::RegistryWriter;

pub(crate) struct Registry {
    writer: Mutex<RegistryWriter>,
    version: AtomicU64,
    current: ArcSwap<Snapshot>,
    /// Sends the version to those who wait for a change.
    versions: watch::Sender<u64>,
    preparer: ToolPreparer,
    marks: Arc<dyn DeviceMarks>,
}

impl Registry {
    /// Continues where the last gateway on this store stopped: all devices are known, and away.
    pub(crate) fn new(
        loaded: StoredState,
        store: Arc<Store>,
        pins: Pins,
        settings: &Settings,
        shared: &Shared,
        recorder: Recorder,
    ) -> Registry {
        let preparer = ToolPreparer::default();
        let writer = RegistryWriter::new(loaded, store, pins, settings, shared, &preparer, recorder);
        let first = Snapshot::build(0, writer.entries(), writer.names.clone(), &writer.offers.names, None);
        Registry {
            writer: Mutex::new(writer),
            version: AtomicU64::new(0),
            current: ArcSwap::from_pointee(first),
            versions: watch::Sender::new(0),
            preparer,
            marks: shared.marks.clone(),
        }
    }

    pub(crate) fn apply(&self, event: DeviceEvent) {
        // Device information is read and checked before the lock is taken: families have locks too, and nobody waits
        // while schemas are compiled.
        let mut toolset_change = None;
        let has_forgotten = self.write(RegistryWriter::tidy);
        let has_changed = match event {
            DeviceEvent::Joined(device) => {
                let info = device.info();
                let tools = self.preparer.prepare(&device.tools(), &info.family);
                self.write_reviewed(&info, &tools.toolset, |writer, review| {
                    writer.join(device, info.clone(), &tools, review, &mut toolset_change)
                })
            }
            DeviceEvent::Changed(device) => {
                let info = device.info();
                let tools = self.preparer.prepare(&device.tools(), &info.family);
                self.write_reviewed(&info, &tools.toolset, |writer, review| {
                    writer.change(&device, info.clone(), &tools, review, &mut toolset_change)
                })
            }
            DeviceEvent::Said(device, notice) => {
                let info = device.info();
                let topic = device_topic(&notice.topic);
                self.lock().add_event_of(&info.key, Notice { topic, ..notice });
                false
            }
            DeviceEvent::Dropped(device, count) => {
                let info = device.info();
                self.lock().skip(&info.key, count);
                false
            }
            DeviceEvent::Left(device, reason) => {
                let info = device.info();
                self.write(|writer| writer.leave(&device, &info.key, &reason))
            }
        };
        if has_changed || has_forgotten {
            self.notify();
        }
        // Comparing tools takes a while, so nobody waits for it.
        if let Some(toolset_change) = toolset_change
            && let Some(notice) = aside(|| toolset_change.notice())
        {
            self.lock().add_event(&toolset_change.id, notice);
        }
    }

    /// How often a device connected since the gateway started, by family.
    pub(crate) fn joins(&self) -> BTreeMap<FamilyName, u64> {
        self.lock().joins.clone()
    }

    /// Stops offering a tool of a device for as long as this connection lasts.
    pub(crate) fn withdraw(&self, id: &DeviceId, traffic: &Arc<Traffic>, tool: &str, why: &str) {
        if self.write(|writer| writer.withdraw(id, traffic, tool, why)) {
            self.notify();
        }
    }

    /// What people agree on about a device's tools.
    pub(crate) fn agree(&self, device: &str, agreement: Agreement<'_>) -> Result<DeviceView, ToolError> {
        let (view, commit) = loop {
            let (entry, agreed) = {
                let writer = self.lock();
                let entry = writer.find(device)?;
                let agreed = writer.pins.agreed(&entry.info.key);
                (entry, agreed)
            };
            let agreed = aside(|| Agreed::new(entry, agreed, agreement))?;
            let mut writer = self.lock();
            if let Some(kept) = writer.agree(&agreed) {
                writer.note_pin(&agreed.info);
                break kept;
            }
        };
        self.notify_all();
        commit.map_or(Ok(()), Commit::wait)?;
        Ok(view)
    }

    /// Which changes a pinned device may make by itself.
    pub(crate) fn follow(&self, key: &DeviceKey) -> Option<Follow> {
        self.lock().pins.follow(key)
    }

    /// Says once that pins of an older version became strict: they are kept so from here on.
    pub(crate) fn report_strict_pins(&self, count: usize) -> Result<(), OpenError> {
        tracing::warn!(
            devices = count,
            "pinned devices of an older version are strict now: every difference is held back until it is accepted; \
             `sinew devices pin ID --follow patch|minor|major` lets a device change what its version announces"
        );
        let mut writer = self.lock();
        writer.add_own_event(Notice { topic: "sinew/pins_strict".to_owned(), body: json!({ "devices": count }) });
        let Some((path, text)) = writer.pins.to_file() else { return Ok(()) };
        let failed = |error: ToolError| OpenError::Lock { path: path.clone(), detail: error.message };
        writer.store.file(path.clone(), text).wait().map_err(failed)
    }

    pub(crate) fn rename(&self, device: &str, name: &str) -> Result<DeviceView, ToolError> {
        let view = self.change(|writer| writer.rename(device, name))?;
        self.note_marks(&view);
        Ok(view)
    }

    pub(crate) fn label(&self, device: &str, add: &[Label], remove: &[Label]) -> Result<DeviceView, ToolError> {
        let view = self.change(|writer| writer.label(device, add, remove))?;
        self.note_marks(&view);
        Ok(view)
    }

    fn note_marks(&self, view: &DeviceView) {
        let Some((key, marks)) = self.lock().given_marks(&view.id) else { return };
        self.marks.note(&key, marks);
    }

    /// What people gave devices.
    pub(crate) fn given_marks(&self) -> Vec<(DeviceKey, GivenMarks)> {
        let writer = self.lock();
        let all = writer.devices.keys().filter_map(|id| writer.given_marks(id));
        all.filter(|(_, marks)| *marks != GivenMarks::default()).collect()
    }

    /// Takes over what another gateway says that people gave a device. Nobody else is told of it.
    pub(crate) fn set_marks(&self, key: &DeviceKey, marks: GivenMarks) -> Result<bool, ToolError> {
        let Some(commit) = self.lock().set_marks(key, marks) else { return Ok(false) };
        if let Some(commit) = commit {
            self.version.fetch_add(1, Ordering::AcqRel);
            self.notify();
            commit.wait()?;
        }
        Ok(true)
    }

    /// What is agreed on about pinned devices.
    pub(crate) fn agreed_pins(&self) -> Vec<(DeviceKey, String)> {
        self.lock().agreed_pins()
    }

    /// Takes over what another gateway says is agreed on about a device. It is told only of what the device then changes by
    /// itself.
    pub(crate) fn set_pin(&self, key: &DeviceKey, agreed: Option<&str>) -> Result<(), ToolError> {
        let wrong = |why: String| ToolError::new(ErrorKind::InvalidArguments, format!("the pin cannot be used: {why}"));
        let next = agreed.map(|text| pins::of_text(key, text)).transpose().map_err(wrong)?.map(Arc::new);
        let commit = loop {
            let (entry, before) = {
                let mut writer = self.lock();
                let before = writer.pins.agreed(key);
                if before == next {
                    return Ok(());
                }
                match writer.entry_of(key) {
                    None => break writer.set_pin(key, next),
                    Some(entry) => (entry, before),
                }
            };
            let agreed = aside(|| Agreed::on(entry, before, next.clone()));
            let mut writer = self.lock();
            if let Some((_, commit)) = writer.agree(&agreed) {
                if writer.pins.agreed(key) != next {
                    writer.note_pin(&agreed.info);
                }
                break commit;
            }
        };
        self.notify_all();
        commit.map_or(Ok(()), Commit::wait)
    }

    pub(crate) fn name_claims(&self) -> Vec<NameClaim> {
        self.lock().offers.names.claims()
    }

    /// A change that somebody asked for, who waits until it is on disk.
    fn change(
        &self,
        change: impl FnOnce(&mut RegistryWriter) -> Result<(DeviceView, Commit), ToolError>,
    ) -> Result<DeviceView, ToolError> {
        let (view, commit) = {
            let mut writer = self.lock();
            let changed = change(&mut writer)?;
            self.version.fetch_add(1, Ordering::AcqRel);
            changed
        };
        self.notify();
        commit.wait()?;
        Ok(view)
    }

    /// Forgets a device that is away.
    pub(crate) fn forget(&self, device: &str) -> Result<DeviceView, ToolError> {
        let (view, commits) = {
            let mut writer = self.lock();
            let forgotten = writer.forget(device)?;
            self.version.fetch_add(1, Ordering::AcqRel);
            forgotten
        };
        self.notify();
        commits.into_iter().try_for_each(Commit::wait)?;
        Ok(view)
    }

    /// Reports that the store cannot be written, or can be again.
    pub(crate) fn report_store(&self, problem: Option<&str>) {
        let (topic, body) = match problem {
            Some(problem) => ("sinew/store_failed", json!({ "problem": problem })),
            None => ("sinew/store_recovered", json!({})),
        };
        self.lock().add_own_event(Notice { topic: topic.to_owned(), body });
    }

    /// Stores how long the gateway ran.
    pub(crate) fn save_running(&self) {
        self.lock().save_running();
    }

    /// The current state. Rebuilt only when something changed, or when a grace period ended.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        let current = self.current.load();
        if self.is_fresh(&current) {
            return Arc::clone(&current);
        }
        let writer = self.lock();
        let current = self.current.load();
        if self.is_fresh(&current) {
            return Arc::clone(&current);
        }
        let version = self.version.load(Ordering::Acquire);
        let next =
            Snapshot::build(version, writer.entries(), writer.names.clone(), &writer.offers.names, Some(&current));
        let next = Arc::new(next);
        self.current.store(next.clone());
        next
    }

    pub(crate) fn id_of(&self, key: &DeviceKey) -> Option<DeviceId> {
        self.lock().by_key.get(key).cloned()
    }

    pub(crate) fn is_known(&self, key: &DeviceKey) -> bool {
        self.lock().by_key.contains_key(key)
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.versions.subscribe()
    }

    /// Lets every reader look again, because what callers may see has changed.
    pub(crate) fn notify_all(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
        self.notify();
    }

    fn notify(&self) {
        self.versions.send_replace(self.version.load(Ordering::Acquire));
    }

    fn is_fresh(&self, snapshot: &Snapshot) -> bool {
        snapshot.version == self.version.load(Ordering::Acquire) && !snapshot.is_over()
    }

    /// Like `write`, with what is held back of a device's tools.
    fn write_reviewed(
        &self,
        info: &DeviceInfo,
        tools: &Toolset,
        change: impl FnOnce(&mut RegistryWriter, &Review) -> bool,
    ) -> bool {
        let (mut writer, review) = loop {
            let known = self.lock().review_of(info, tools);
            let review = known.unwrap_or_else(|agreed| aside(|| Review::of(agreed.clone(), agreed, info, tools)));
            let writer = self.lock();
            if writer.pins.can_settle(&info.key, &review) {
                break (writer, review);
            }
        };
        let has_changed = change(&mut writer, &review);
        if has_changed {
            self.version.fetch_add(1, Ordering::AcqRel);
        }
        has_changed
    }

    fn write(&self, change: impl FnOnce(&mut RegistryWriter) -> bool) -> bool {
        let mut writer = self.lock();
        let has_changed = change(&mut writer);
        if has_changed {
            self.version.fetch_add(1, Ordering::AcqRel);
        }
        has_changed
    }

    fn lock(&self) -> MutexGuard<'_, RegistryWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Milliseconds of Unix time.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
