//! The writer's state: devices, their ids and names, what they offer, and the count of events.
//!
//! Everything here runs under the registry's mutex and does no IO; the store has a thread of its own, and
//! only newly minted names wait for it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sinew_spec::lock::LockedOwner;
use sinew_tool::text::clean_line;
use sinew_tool::{
    Admission, Device, DeviceId, DeviceInfo, DeviceKey, FamilyName, LeaveReason, Notice, Status, ToolError, Toolset,
};
use tokio::time::Instant;

use super::agreeing::Agreed;
use super::faces::Faces;
use super::forgetting::Forgetting;
use super::now;
use crate::builtin;
use crate::held::{HeldTools, ToolsetChange, WARNING};
use crate::identity;
use crate::labels::{self, Label};
use crate::names::NameBook;
use crate::offer::{self, Offer, Offers, UserTools};
use crate::pins::{self, Pins, Review};
use crate::prepare::{PreparedToolset, ToolPreparer, Withdrawn};
use crate::record::{Note, Recorder};
use crate::settings::Settings;
use crate::shared::{AgreedPins, EventLog, GivenMarks, IdClaims, RecordKind, Shared};
use crate::snapshot::{DeviceEntry, Presence, Traffic};
use crate::store::{Commit, DeviceRow, Store, StoredState, Write};
use crate::view::DeviceView;

/// The id under which the gateway's own events stand; no device gets it.
const OWN_ID: &str = "gateway";
const CONNECTED: &str = "sinew/connected";
const DISCONNECTED: &str = "sinew/disconnected";
/// Events that say who is here.
pub(crate) const PRESENCE_TOPICS: [&str; 2] = [CONNECTED, DISCONNECTED];
/// Longer keys are refused.
const MAX_KEY: usize = 256;

/// What admission makes of the tools a device brings.
struct Admitted {
    /// With the agreed text in place of one that is held back.
    info: Arc<DeviceInfo>,
    offer: Arc<Offer>,
    pinned: bool,
    held: Option<Arc<HeldTools>>,
    warnings: Vec<String>,
}

pub(super) struct RegistryWriter {
    pub(super) devices: BTreeMap<DeviceId, Arc<DeviceEntry>>,
    pub(super) by_key: HashMap<DeviceKey, DeviceId>,
    /// Lower-case given names.
    pub(super) names: Arc<HashMap<String, DeviceId>>,
    pub(super) offers: Offers,
    pub(super) pins: Pins,
    pub(super) store: Arc<Store>,
    grace: Duration,
    pub(super) forgetting: Forgetting,
    ids: Arc<dyn IdClaims>,
    agreed: Arc<dyn AgreedPins>,
    pub(super) events: Arc<dyn EventLog>,
    pub(super) faces: Faces,
    /// How often a device connected, by family.
    pub(super) joins: BTreeMap<FamilyName, u64>,
    recorder: Recorder,
}

impl RegistryWriter {
    /// Continues where the last gateway on this store stopped: all devices are known, and away.
    pub(super) fn new(
        mut loaded: StoredState,
        store: Arc<Store>,
        pins: Pins,
        settings: &Settings,
        shared: &Shared,
        preparer: &ToolPreparer,
        recorder: Recorder,
    ) -> RegistryWriter {
        let mut writer = RegistryWriter {
            devices: BTreeMap::new(),
            by_key: HashMap::new(),
            names: Arc::default(),
            offers: Offers::new(
                NameBook::new(builtin::NAMES, settings.names_per_device, loaded.names),
                shared.names.clone(),
                UserTools::new(settings),
            ),
            pins,
            store,
            grace: settings.grace,
            forgetting: Forgetting::new(settings, loaded.running, loaded.resting_ids),
            ids: shared.ids.clone(),
            agreed: shared.pins.clone(),
            events: shared.events.clone(),
            faces: Faces::default(),
            joins: BTreeMap::new(),
            recorder,
        };
        for row in loaded.devices {
            let toolset = loaded.toolsets.get(&row.toolset).cloned().unwrap_or_default();
            let told = loaded.held.remove(&row.id).unwrap_or_default();
            let tools = preparer.prepare(&toolset, &row.family);
            writer.restore(row, &tools, &told);
        }
        writer.settle_all();
        writer.rest_unowned_names();
        writer
    }

    pub(super) fn entries(&self) -> Vec<Arc<DeviceEntry>> {
        self.devices.values().cloned().collect()
    }

    pub(super) fn join(
        &mut self,
        device: Arc<dyn Device>,
        info: Arc<DeviceInfo>,
        prepared: &Arc<PreparedToolset>,
        review: &Review,
        toolset_change: &mut Option<ToolsetChange>,
    ) -> bool {
        if info.key.0.is_empty() || info.key.0.len() > MAX_KEY {
            tracing::warn!(
                family = %info.family.name,
                "a device was left out: its key is empty or longer than {MAX_KEY} bytes"
            );
            return false;
        }
        let known = self.by_key.get(&info.key).and_then(|id| self.devices.get(id)).cloned();
        if known.is_none() && !self.make_room() {
            let max = self.forgetting.max_devices;
            tracing::warn!(device = %info.key, "a device was left out: {max} are here or kept already");
            return false;
        }
        let id = match &known {
            Some(entry) => Some(entry.id.clone()),
            None => self
                .take_back_id(&info.key)
                .or_else(|| identity::mint(&info, |id| self.is_taken(id) || !self.ids.claim(id, &info.key))),
        };
        let Some(id) = id else { return false };
        *self.joins.entry(info.family.name.clone()).or_default() += 1;
        let name = known.as_ref().and_then(|entry| entry.name.clone());
        let given = known.as_ref().map(|entry| labels::given(&entry.labels, &entry.info)).unwrap_or_default();
        let labels = labels::joined(given, &info);
        *toolset_change = self.toolset_change(&id, known.as_deref(), &info, &prepared.toolset);
        let withdrawn = prepared.withdrawn.clone();
        let Admitted { info, offer, pinned, held, warnings } = self.admit(review, &info, prepared, &withdrawn);
        self.by_key.insert(info.key.clone(), id.clone());
        if let Some(toolset_change) = toolset_change {
            toolset_change.held.clone_from(&held);
        }
        if known.is_none() {
            let details = json!({"key": info.key.0, "family": info.family.name, "admission": info.admission});
            self.record(&id, &info, "new_device", details);
        }
        let (family, kind, tools) = (&info.family.name, clean_line(&info.name, 64), offer.tools.len());
        tracing::info!(device = %id, %family, kind, tools, admitted_by = info.admission.word(), "device connected");
        let connected = Notice { topic: CONNECTED.to_owned(), body: json!({ "tools": tools }) };
        let (presence, traffic) = (Presence::Here(device), Arc::new(Traffic::default()));
        let (since, left_at) = (now(), 0);
        self.keep(DeviceEntry {
            id: id.clone(),
            name,
            labels,
            info,
            offer,
            pinned,
            held,
            withdrawn,
            presence,
            since,
            left_at,
            traffic,
        });
        self.add_event(&id, connected);
        self.warn(&id, warnings);
        self.warn_of_set_apart(&id);
        true
    }

    pub(super) fn change(
        &mut self,
        device: &Arc<dyn Device>,
        info: Arc<DeviceInfo>,
        prepared: &Arc<PreparedToolset>,
        review: &Review,
        toolset_change: &mut Option<ToolsetChange>,
    ) -> bool {
        let Some(entry) = self.current(device, &info.key) else { return false };
        *toolset_change = self.toolset_change(&entry.id, Some(&entry), &info, &prepared.toolset);
        // The same tools again are not a new chance for those that were withdrawn.
        let is_same = entry.toolset().digest() == prepared.toolset.digest();
        let withdrawn = if is_same { &entry.withdrawn } else { &prepared.withdrawn }.clone();
        let Admitted { info, offer, pinned, held, warnings } = self.admit(review, &info, prepared, &withdrawn);
        if let Some(toolset_change) = toolset_change {
            toolset_change.held.clone_from(&held);
        }
        let since = if info.status == entry.info.status { entry.since } else { now() };
        let id = entry.id.clone();
        self.keep(DeviceEntry { info, offer, pinned, held, withdrawn, since, ..(*entry).clone() });
        self.warn(&id, warnings);
        self.warn_of_set_apart(&id);
        true
    }

    /// Stops offering a tool of a device for as long as this connection lasts.
    pub(super) fn withdraw(&mut self, id: &DeviceId, traffic: &Arc<Traffic>, tool: &str, why: &str) -> bool {
        let entry = self.devices.get(id).filter(|entry| Arc::ptr_eq(&entry.traffic, traffic)).cloned();
        let Some(entry) = entry.filter(|entry| !entry.withdrawn.contains_key(tool)) else { return false };
        let mut withdrawn = (*entry.withdrawn).clone();
        withdrawn.insert(tool.to_owned(), why.to_owned());
        let withdrawn = Arc::new(withdrawn);
        let review = Review::as_before(self.pins.agreed(&entry.info.key), entry.held.clone());
        let Admitted { offer, pinned, held, .. } = self.admit(&review, &entry.info, &entry.offer.prepared, &withdrawn);
        self.keep(DeviceEntry { offer, pinned, held, withdrawn, ..(*entry).clone() });
        self.warn(id, vec![format!("tool `{}` is not offered any more: {why}", clean_line(tool, 64))]);
        true
    }

    pub(super) fn leave(&mut self, device: &Arc<dyn Device>, key: &DeviceKey, reason: &LeaveReason) -> bool {
        let Some(entry) = self.current(device, key) else { return false };
        if *reason == LeaveReason::NeverConnected && !entry.is_kept() {
            self.drop_unreached(&entry);
            return true;
        }
        let reason = clean_line(&reason.to_string(), 300);
        tracing::info!(device = %entry.id, reason, "device disconnected");
        let disconnected = Notice { topic: DISCONNECTED.to_owned(), body: json!({ "reason": reason }) };
        self.add_event(&entry.id, disconnected);
        let presence = Presence::Away(Instant::now() + self.grace);
        let left_at = self.forgetting.running();
        self.keep(DeviceEntry { presence, since: now(), left_at, ..(*entry).clone() });
        true
    }

    /// Also from an earlier connection of the device.
    pub(super) fn add_event_of(&mut self, key: &DeviceKey, notice: Notice) {
        let Some(id) = self.by_key.get(key).cloned() else { return };
        self.add_event(&id, notice);
    }

    /// Counts events that were dropped before they came here.
    pub(super) fn skip(&mut self, key: &DeviceKey, count: u64) {
        if let Some(id) = self.by_key.get(key) {
            self.events.skip(id, count);
        }
    }

    pub(super) fn add_event(&mut self, id: &DeviceId, notice: Notice) {
        if self.devices.contains_key(id) {
            self.events.add(id, notice);
        }
    }

    /// Records what happened to a device. Whoever reaches a broker can make up devices there, and would push out what else
    /// is recorded: those are only in the events.
    pub(super) fn record(&self, id: &DeviceId, info: &DeviceInfo, what: &'static str, details: Value) {
        if matches!(info.admission, Admission::Broker(_)) {
            return;
        }
        self.recorder.note(Note {
            kind: RecordKind::Device,
            who: None,
            door: "",
            device: Some(id.clone()),
            tool: None,
            what,
            details,
            outcome: "ok",
        });
    }

    /// An event of the gateway itself.
    pub(super) fn add_own_event(&mut self, notice: Notice) {
        if let Some(id) = DeviceId::parse(OWN_ID) {
            self.events.add(&id, notice);
        }
    }

    fn warn_of_set_apart(&mut self, id: &DeviceId) {
        let offer = self.devices.get(id).map(|entry| entry.offer.clone());
        let warning = offer.and_then(|offer| self.set_apart(&offer));
        self.warn(id, warning.into_iter().collect());
    }

    fn warn(&mut self, id: &DeviceId, warnings: Vec<String>) {
        for text in warnings {
            tracing::warn!(device = %id, "{text}");
            self.add_event(id, Notice { topic: WARNING.to_owned(), body: json!({ "text": text }) });
        }
    }

    pub(super) fn rename(&mut self, device: &str, name: &str) -> Result<(DeviceView, Commit), ToolError> {
        let entry = self.find(device)?;
        // The id is not a name.
        let name = identity::given_name(name)?.filter(|name| !name.eq_ignore_ascii_case(entry.id.as_str()));
        if let Some(name) = &name
            && let Some(other) = self.holder(name).filter(|other| *other != entry.id)
        {
            return Err(identity::name_taken(name, &other));
        }
        let mut names = (*self.names).clone();
        names.retain(|_, id| *id != entry.id);
        names.extend(name.iter().map(|name| (name.to_lowercase(), entry.id.clone())));
        self.names = Arc::new(names);
        Ok(self.keep_awaited(DeviceEntry { name: name.map(Arc::from), ..(*entry).clone() }))
    }

    pub(super) fn label(
        &mut self,
        device: &str,
        add: &[Label],
        remove: &[Label],
    ) -> Result<(DeviceView, Commit), ToolError> {
        let entry = self.find(device)?;
        let labels = labels::changed(&entry.labels, add, remove, &entry.info)?;
        Ok(self.keep_awaited(DeviceEntry { labels, ..(*entry).clone() }))
    }

    /// What people gave a device, and its key.
    pub(super) fn given_marks(&self, id: &DeviceId) -> Option<(DeviceKey, GivenMarks)> {
        let entry = self.devices.get(id)?;
        let name = entry.name.as_deref().map(str::to_owned);
        Some((entry.info.key.clone(), GivenMarks { name, labels: labels::given(&entry.labels, &entry.info) }))
    }

    /// Takes over marks. `None` for an unknown device; without a commit, nothing changed.
    pub(super) fn set_marks(&mut self, key: &DeviceKey, marks: GivenMarks) -> Option<Option<Commit>> {
        let entry = self.devices.get(self.by_key.get(key)?)?.clone();
        let is_free = |name: &String| self.holder(name).is_none_or(|holder| holder == entry.id);
        let name = match marks.name.map(|name| identity::given_name(&name).ok().flatten().filter(is_free)) {
            // What cannot be its name here leaves the name that it has.
            Some(None) => entry.name.clone(),
            name => name.flatten().map(Arc::from),
        };
        let labels = labels::joined(marks.labels, &entry.info);
        if name == entry.name && labels == entry.labels {
            return Some(None);
        }
        let mut names = (*self.names).clone();
        names.retain(|_, id| *id != entry.id);
        names.extend(name.iter().map(|name| (name.to_lowercase(), entry.id.clone())));
        self.names = Arc::new(names);
        Some(Some(self.keep_awaited(DeviceEntry { name, labels, ..(*entry).clone() }).1))
    }

    /// What a device is to be reviewed against; the review itself where nothing changed since the last one.
    pub(super) fn review_of(&self, info: &DeviceInfo, tools: &Toolset) -> Result<Review, Option<Arc<LockedOwner>>> {
        let agreed = self.pins.agreed(&info.key);
        let is_as_before = |entry: &&Arc<DeviceEntry>| {
            let is_same_text = entry.info.name == info.name && entry.info.instructions == info.instructions;
            let is_same_version = entry.info.version == info.version;
            entry.pinned && is_same_version && is_same_text && entry.toolset().digest() == tools.digest()
        };
        let known = self.by_key.get(&info.key).and_then(|id| self.devices.get(id));
        match known.filter(is_as_before) {
            Some(entry) => Ok(Review::as_before(agreed, entry.held.clone())),
            None => Err(agreed),
        }
    }

    /// Keeps what people agreed on about a device's tools; `None` where the device or the agreement changed since it was
    /// reviewed.
    pub(super) fn agree(&mut self, agreed: &Agreed) -> Option<(DeviceView, Option<Commit>)> {
        let Agreed { entry, info, review } = agreed;
        let is_current = self.devices.get(&entry.id).is_some_and(|now| Arc::ptr_eq(now, entry));
        if !is_current || !self.pins.can_settle(&info.key, review) {
            return None;
        }
        self.pins.settle(&info.key, review);
        let commit = self.pins.to_file().map(|(path, text)| self.store.file(path, text));
        let (prepared, withdrawn) = (entry.offer.prepared.clone(), entry.withdrawn.clone());
        let Admitted { info, offer, pinned, held, .. } = self.admit(review, info, &prepared, &withdrawn);
        let entry = DeviceEntry { info, offer, pinned, held, ..(**entry).clone() };
        let view = entry.view();
        self.keep(entry);
        Some((view, commit))
    }

    /// Keeps what another gateway says is agreed on about a device that is unknown here.
    pub(super) fn set_pin(&mut self, key: &DeviceKey, agreed: Option<Arc<LockedOwner>>) -> Option<Commit> {
        self.pins.set(key, agreed);
        self.pins.to_file().map(|(path, text)| self.store.file(path, text))
    }

    pub(super) fn entry_of(&self, key: &DeviceKey) -> Option<Arc<DeviceEntry>> {
        self.by_key.get(key).and_then(|id| self.devices.get(id)).cloned()
    }

    /// What is agreed on about devices that other gateways may have too.
    pub(super) fn agreed_pins(&self) -> Vec<(DeviceKey, String)> {
        let entries = self.devices.values().filter(|entry| !entry.info.family.passes_on);
        let keys = entries.map(|entry| &entry.info.key);
        keys.filter_map(|key| Some((key.clone(), self.pins.text_of(key)?))).collect()
    }

    /// Each gateway has its own devices that only pass calls on, and its own pins of them.
    pub(super) fn note_pin(&self, info: &DeviceInfo) {
        if !info.family.passes_on {
            self.agreed.note(&info.key, self.pins.text_of(&info.key));
        }
    }

    pub(super) fn find(&self, device: &str) -> Result<Arc<DeviceEntry>, ToolError> {
        let text = device.trim().to_lowercase();
        let id = DeviceId::parse(&text).filter(|id| self.devices.contains_key(id));
        let id = id.or_else(|| self.names.get(&text).cloned());
        let entry = id.and_then(|id| self.devices.get(&id)).cloned();
        entry.ok_or_else(|| identity::unknown_device(device, self.devices.values()))
    }

    /// The device that an id or a given name already belongs to.
    fn holder(&self, name: &str) -> Option<DeviceId> {
        let name = name.to_lowercase();
        let by_id = DeviceId::parse(&name).filter(|id| self.devices.contains_key(id));
        by_id.or_else(|| self.names.get(&name).cloned())
    }

    fn is_taken(&self, id: &DeviceId) -> bool {
        let is_known = self.devices.contains_key(id) || self.names.contains_key(id.as_str());
        is_known || self.forgetting.rests(id) || id.as_str() == OWN_ID
    }

    /// The entry of this connection; `None` for one that was replaced.
    fn current(&self, device: &Arc<dyn Device>, key: &DeviceKey) -> Option<Arc<DeviceEntry>> {
        let entry = self.by_key.get(key).and_then(|id| self.devices.get(id))?;
        match &entry.presence {
            Presence::Here(here) if std::ptr::addr_eq(Arc::as_ptr(here), Arc::as_ptr(device)) => Some(entry.clone()),
            _ => None,
        }
    }

    /// The review must be one of the agreement as it is now.
    fn admit(
        &mut self,
        review: &Review,
        info: &Arc<DeviceInfo>,
        prepared: &Arc<PreparedToolset>,
        withdrawn: &Withdrawn,
    ) -> Admitted {
        let tools = &prepared.toolset;
        if self.pins.settle(&info.key, review) {
            self.note_pin(info);
            if let Some((path, text)) = self.pins.to_file() {
                drop(self.store.file(path, text));
            }
        }
        let (pinned, held) = (self.pins.is_pinned(&info.key), review.held.clone());
        let info = held.as_ref().map_or_else(|| info.clone(), |held| held.masked(info));
        let is_held = |tool: &str| held.as_ref().is_some_and(|held| held.holds(tool));
        let is_out = |tool: &str| is_held(tool) || withdrawn.contains_key(tool);
        let (offer, notes) = self.offers.admit(&info.key, prepared, is_out);
        if let Some(text) = notes.is_new.then(|| offer::to_text(tools)).flatten() {
            self.store.write(Write::Toolset { digest: tools.digest().hex(), tools: text });
        }
        Admitted { info, offer, pinned, held, warnings: notes.warnings }
    }

    /// What may have changed about a device's tools: against what it had, or for a pinned one that is
    /// new here, against what was agreed. A device without tools has lost nothing for good.
    fn toolset_change(
        &self,
        id: &DeviceId,
        known: Option<&DeviceEntry>,
        info: &DeviceInfo,
        tools: &Arc<Toolset>,
    ) -> Option<ToolsetChange> {
        let before = match known {
            Some(entry) if !entry.toolset().is_empty() => entry.toolset().clone(),
            _ => Arc::new(self.pins.agreed(&info.key).as_deref().map(pins::agreed_tools)?),
        };
        let was_held = known.and_then(|entry| entry.held.clone());
        (!tools.is_empty()).then(|| ToolsetChange {
            id: id.clone(),
            before,
            after: tools.clone(),
            was_held,
            held: None,
        })
    }

    fn keep_awaited(&mut self, entry: DeviceEntry) -> (DeviceView, Commit) {
        let commit = self.store.write_awaited(Write::Device(row(&entry)));
        let view = entry.view();
        self.insert(entry);
        (view, commit)
    }

    fn keep(&mut self, entry: DeviceEntry) {
        self.store.write(Write::Device(row(&entry)));
        self.insert(entry);
    }

    /// `told` names what the last event about the device's tools called held back: the lock may have
    /// been edited since.
    fn restore(&mut self, row: DeviceRow, prepared: &Arc<PreparedToolset>, told: &[String]) {
        // A device that was here when the last gateway ended has had no chance to leave: its grace
        // begins now.
        let since = if row.away { row.since } else { now() };
        let gone = Duration::from_millis(u64::try_from(now() - since).unwrap_or(0));
        let until = Instant::now() + self.grace.saturating_sub(gone);
        let info = Arc::new(DeviceInfo {
            key: row.key.clone(),
            suggested_id: row.id.to_string(),
            family: row.family,
            admission: row.admission,
            name: row.kind,
            version: row.version,
            status: Status::Ready,
            instructions: row.instructions,
            labels: Vec::new(),
            attributes: row.attributes.into_iter().collect(),
        });
        let withdrawn = prepared.withdrawn.clone();
        let agreed = self.pins.agreed(&info.key);
        let review = Review::of(agreed.clone(), agreed, &info, &prepared.toolset);
        let Admitted { info, offer, pinned, held, .. } = self.admit(&review, &info, prepared, &withdrawn);
        if let Some(name) = &row.name {
            Arc::make_mut(&mut self.names).insert(name.to_lowercase(), row.id.clone());
        }
        self.by_key.insert(row.key, row.id.clone());
        let entry = DeviceEntry {
            id: row.id.clone(),
            name: row.name.map(Arc::from),
            labels: row.labels.into(),
            info,
            offer,
            pinned,
            held,
            withdrawn,
            presence: Presence::Away(until),
            since,
            // A gateway that was killed had no chance to write when it left.
            left_at: if row.away { row.left_at } else { self.forgetting.running() },
            traffic: Arc::default(),
        };
        let (id, held) = (row.id, entry.held.clone());
        self.insert_restored(entry);
        if held.as_ref().is_some_and(|held| held.names() != told) {
            let tools = prepared.toolset.clone();
            let toolset_change =
                ToolsetChange { id: id.clone(), before: tools.clone(), after: tools, was_held: None, held };
            toolset_change.notice().into_iter().for_each(|notice| self.add_event(&id, notice));
        }
    }
}

fn row(entry: &DeviceEntry) -> DeviceRow {
    let view = entry.view();
    DeviceRow {
        key: view.key,
        id: view.id,
        name: view.name,
        labels: labels::given(&entry.labels, &entry.info),
        family: view.family,
        admission: view.admission,
        kind: view.kind,
        version: view.version,
        instructions: view.instructions,
        attributes: view.attributes,
        toolset: entry.toolset().digest().hex(),
        since: entry.since,
        away: matches!(entry.presence, Presence::Away(_)),
        left_at: entry.left_at,
    }
}
