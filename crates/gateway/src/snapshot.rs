//! Devices and tools at one moment; immutable. Readers work from here and never wait for a writer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;
use sinew_tool::text::{clean, clean_line};
use sinew_tool::{Admission, Device, DeviceId, DeviceInfo, Status, ToolUse, Toolset};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::access::{Lens, LensKey};
use crate::fold::{Fold, Unfold, Variant};
use crate::held::HeldTools;
use crate::labels::{self, Label};
use crate::names::NameBook;
use crate::offer::{Offer, Offered};
use crate::prepare::Withdrawn;
use crate::view::{DeviceView, Shape, ToolList};

/// Kinds of rights whose lists are kept; more are made anew.
const MAX_SEEN_LISTS: usize = 64;

pub struct Snapshot {
    /// Counts the changes that led here.
    pub(crate) version: u64,
    /// Sorted by id.
    pub(crate) devices: Vec<Arc<DeviceEntry>>,
    /// Lower-case given names.
    names: Arc<HashMap<String, DeviceId>>,
    /// Devices by what they offer, in the order of each offer's first device.
    pub(crate) groups: Vec<OfferGroup>,
    pub(crate) fold: Arc<Fold>,
    unfold: OnceLock<Unfold>,
    /// For callers from whom something is hidden, by their rights.
    seen_lists: Mutex<HashMap<(LensKey, Shape), Arc<ToolList>>>,
    /// When the next grace ends, and with it the truth of this snapshot.
    pub(crate) ends: Option<Instant>,
}

/// The devices that offer the same; places in [`Snapshot::devices`].
pub(crate) struct OfferGroup {
    pub offer: Arc<Offer>,
    /// Present, or away and in grace: their tools are listed.
    pub listed: Vec<u32>,
    /// Away for longer.
    pub absent: Vec<u32>,
    /// Whether any of them has a label.
    pub labelled: bool,
}

/// One known device.
#[derive(Clone)]
pub(crate) struct DeviceEntry {
    pub id: DeviceId,
    /// The given name.
    pub name: Option<Arc<str>>,
    pub labels: Arc<[Label]>,
    pub info: Arc<DeviceInfo>,
    pub offer: Arc<Offer>,
    pub pinned: bool,
    pub held: Option<Arc<HeldTools>>,
    /// Tools that are not offered, because they cost too much.
    pub withdrawn: Arc<Withdrawn>,
    pub presence: Presence,
    /// Since when it is here or away, in milliseconds of Unix time.
    pub since: i64,
    /// When it left, in milliseconds of the gateway's running time.
    pub left_at: i64,
    pub traffic: Arc<Traffic>,
}

/// The attribute in which a family says what brings a device back.
const WHEN_AWAY: &str = "when_away";

#[derive(Clone)]
pub(crate) enum Presence {
    Here(Arc<dyn Device>),
    /// Away; its tools are listed until then.
    Away(Instant),
}

/// What is under way with a device.
pub(crate) struct Traffic {
    calls: AtomicU32,
    /// One larger check at a time; see `validation`.
    pub checks: Arc<Semaphore>,
}

/// A place in a device's queue; dropping it frees the place.
pub(crate) struct CallSlot(Arc<Traffic>);

impl Default for Traffic {
    fn default() -> Traffic {
        Traffic { calls: AtomicU32::default(), checks: Arc::new(Semaphore::new(1)) }
    }
}

impl Traffic {
    pub(crate) fn enter(self: &Arc<Traffic>, max: usize) -> Option<CallSlot> {
        let before = self.calls.fetch_add(1, Ordering::Relaxed);
        let place = CallSlot(self.clone());
        ((before as usize) < max).then_some(place)
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Snapshot {
    /// The next snapshot. The folded form is taken over from `before` while the same things are
    /// offered, so that the fiftieth equal board costs next to nothing.
    pub(crate) fn build(
        version: u64,
        devices: Vec<Arc<DeviceEntry>>,
        names: Arc<HashMap<String, DeviceId>>,
        public_names: &NameBook,
        before: Option<&Snapshot>,
    ) -> Snapshot {
        let now = Instant::now();
        let mut groups: Vec<OfferGroup> = Vec::new();
        let mut places: HashMap<*const Offer, usize> = HashMap::new();
        let mut ends: Option<Instant> = None;
        for (place, entry) in devices.iter().enumerate() {
            let group = *places.entry(Arc::as_ptr(&entry.offer)).or_insert_with(|| {
                groups.push(OfferGroup {
                    offer: entry.offer.clone(),
                    listed: Vec::new(),
                    absent: Vec::new(),
                    labelled: false,
                });
                groups.len() - 1
            });
            let is_listed = entry.is_listed(now);
            if let Presence::Away(until) = entry.presence
                && is_listed
            {
                ends = Some(ends.map_or(until, |ends| ends.min(until)));
            }
            groups[group].labelled |= !entry.labels.is_empty();
            let members = if is_listed { &mut groups[group].listed } else { &mut groups[group].absent };
            members.push(place as u32);
        }
        let fold = match before {
            Some(before) if before.fold.is_of(&groups, public_names) => before.fold.clone(),
            _ => Arc::new(Fold::new(&groups, public_names)),
        };
        Snapshot { version, devices, names, groups, fold, unfold: OnceLock::new(), seen_lists: Mutex::default(), ends }
    }

    /// Whether a grace has ended since.
    pub(crate) fn is_over(&self) -> bool {
        self.ends.is_some_and(|ends| Instant::now() >= ends)
    }

    /// A device by id or given name.
    pub(crate) fn entry(&self, text: &str) -> Option<&Arc<DeviceEntry>> {
        let text = text.trim().to_lowercase();
        let by_id = |id: &str| self.devices.binary_search_by(|entry| entry.id.as_str().cmp(id)).ok();
        let place = by_id(&text).or_else(|| by_id(self.names.get(&text)?.as_str()))?;
        self.devices.get(place)
    }

    /// The tool of a device that is listed under a public name.
    pub(crate) fn offered<'s>(&'s self, public: &str, entry: &DeviceEntry) -> Option<&'s Offered> {
        let is_its = |variant: &&Variant| Arc::ptr_eq(&self.groups[variant.group].offer, &entry.offer);
        let variant = self.fold.variants(public).iter().find(is_its)?;
        self.groups[variant.group].offer.tools.get(variant.tool)
    }

    /// All known devices, by id; also those that are away.
    pub fn devices(&self) -> Vec<DeviceView> {
        self.devices.iter().map(|entry| entry.view()).collect()
    }

    /// A device by id or given name.
    pub fn find_device(&self, text: &str) -> Option<DeviceView> {
        self.entry(text).map(|entry| entry.view())
    }

    /// The unfolded form, made when it is first asked for.
    pub(crate) fn unfold(&self) -> &Unfold {
        self.unfold.get_or_init(|| Unfold::new(self))
    }

    /// The devices that have a public tool and whether they are listed, by id.
    pub(crate) fn holders(&self, public: &str, lens: &Lens) -> (Vec<Holder<'_>>, Vec<Holder<'_>>) {
        let (mut listed, mut absent) = (Vec::new(), Vec::new());
        for variant in self.fold.variants(public) {
            let group = &self.groups[variant.group];
            let offered = &group.offer.tools[variant.tool];
            if offered.is_seen(lens.sees_user_tools()) {
                let holder = |place: &u32| Holder { entry: &self.devices[*place as usize], offered };
                let is_seen = |holder: &Holder<'_>| lens.sees(*holder);
                listed.extend(group.listed.iter().map(holder).filter(is_seen));
                absent.extend(group.absent.iter().map(holder).filter(is_seen));
            }
        }
        (listed, absent)
    }

    /// A tool by its public name, as one of the devices has it on which the caller sees it.
    pub(crate) fn find_seen(&self, public: &str, lens: &Lens) -> Option<&Offered> {
        self.fold.variants(public).iter().find_map(|variant| {
            let group = &self.groups[variant.group];
            let offered = &group.offer.tools[variant.tool];
            let sees = |place: &u32| lens.sees(Holder { entry: &self.devices[*place as usize], offered });
            group.listed.iter().chain(&group.absent).any(sees).then_some(offered)
        })
    }

    /// The tools that a use can mean, on every device that has them.
    pub(crate) fn used(&self, wanted: &ToolUse) -> Vec<Holder<'_>> {
        let Some(device) = wanted.device.as_deref() else {
            let by_public_name = |entry| Some(Holder { entry, offered: self.offered(&wanted.tool, entry)? });
            return self.devices.iter().filter_map(by_public_name).collect();
        };
        let is_labelled = |entry: &&Arc<DeviceEntry>, label| entry.labels.iter().any(|one| one.as_str() == label);
        let entries: Vec<&Arc<DeviceEntry>> = match Label::selected(device) {
            Some(label) => self.devices.iter().filter(|entry| is_labelled(entry, label)).collect(),
            None => self.entry(device).into_iter().collect(),
        };
        let mut holders = Vec::new();
        for entry in entries {
            holders.extend(entry.offer.find(&wanted.tool).map(|offered| Holder { entry, offered }));
        }
        holders
    }

    /// The tools that a caller sees. Callers from whom nothing is hidden share one list.
    pub(crate) fn list(&self, lens: &Lens, shape: Shape, spec_tools: bool) -> Arc<ToolList> {
        let make_all = || match shape {
            Shape::Folded => self.fold.list(lens.sees_user_tools(), spec_tools),
            Shape::Unfolded => self.unfold().list(self, lens.sees_user_tools(), spec_tools),
        };
        if lens.hides_nothing() {
            return make_all();
        }
        let key = (lens.key(), shape);
        if let Some(list) = self.seen_lists().get(&key) {
            return list.clone();
        }
        let list = Arc::new(match shape {
            Shape::Folded => self.fold.seen_list(self, lens, spec_tools),
            Shape::Unfolded => self.unfold().seen_list(self, lens, &make_all()),
        });
        let mut lists = self.seen_lists();
        if lists.len() >= MAX_SEEN_LISTS {
            lists.clear();
        }
        lists.insert(key, list.clone());
        list
    }

    fn seen_lists(&self) -> MutexGuard<'_, HashMap<(LensKey, Shape), Arc<ToolList>>> {
        self.seen_lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A device and the tool it was asked for.
#[derive(Clone, Copy)]
pub(crate) struct Holder<'s> {
    pub entry: &'s Arc<DeviceEntry>,
    pub offered: &'s Offered,
}

impl DeviceEntry {
    /// The word for tables, and what a person can do about it.
    pub(crate) fn state(&self) -> (String, Option<String>) {
        match (&self.presence, &self.info.status) {
            (Presence::Away(_), _) => {
                let hint = self.info.attributes.get(WHEN_AWAY).and_then(Value::as_str);
                let remedy = hint.map(|hint| clean_line(hint, 200));
                let mut remedy =
                    remedy.unwrap_or_else(|| "switch it on or wake it; it reconnects by itself".to_owned());
                if self.info.admission == Admission::Configured {
                    remedy += "; if it was taken out of the configuration, `sinew devices forget` removes it";
                }
                ("away".to_owned(), Some(remedy))
            }
            (Presence::Here(_), Status::Ready) => {
                let remedies: Vec<String> =
                    self.held.iter().filter_map(|held| held.remedy(&self.id)).chain(self.why_withdrawn()).collect();
                ("ready".to_owned(), (!remedies.is_empty()).then(|| remedies.join("; ")))
            }
            (Presence::Here(_), Status::Limited { state, remedy }) => {
                (clean_line(state, 32), Some(clean_line(remedy, 300)))
            }
        }
    }

    /// Why tools are not offered, in one sentence.
    fn why_withdrawn(&self) -> Option<String> {
        let (tool, why) = self.withdrawn.first_key_value()?;
        let more = match self.withdrawn.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more tools are not either"),
        };
        Some(format!("`{}` is not offered{more}: {why}; simplify its schemas", clean_line(tool, 64)))
    }

    /// Whether a person named, labelled or pinned it, so that it is not forgotten by itself.
    pub(crate) fn is_kept(&self) -> bool {
        self.name.is_some() || self.pinned || !labels::given(&self.labels, &self.info).is_empty()
    }

    /// Whether its tools are listed: it is here, or has not been away for longer than the grace time.
    pub(crate) fn is_listed(&self, now: Instant) -> bool {
        match self.presence {
            Presence::Here(_) => true,
            Presence::Away(until) => now < until,
        }
    }

    /// Whether a call can reach it.
    pub(crate) fn is_ready(&self) -> bool {
        matches!((&self.presence, &self.info.status), (Presence::Here(_), Status::Ready))
    }

    /// All tools as the device gave them, also those that are not offered.
    pub(crate) fn toolset(&self) -> &Arc<Toolset> {
        &self.offer.prepared.toolset
    }

    /// `board-ddee01`, or `board-ddee01 "kitchen"`.
    pub(crate) fn title(&self) -> String {
        match &self.name {
            Some(name) => format!("{} \"{name}\"", self.id),
            None => self.id.to_string(),
        }
    }

    /// What the device calls itself.
    pub(crate) fn kind(&self) -> String {
        let name = clean_line(&self.info.name, 64);
        if name.is_empty() { self.info.family.name.to_string() } else { name }
    }

    pub(crate) fn instructions(&self) -> Option<String> {
        let text = clean(self.info.instructions.as_deref()?.trim(), 1_000);
        (!text.is_empty()).then_some(text)
    }

    pub(crate) fn view(&self) -> DeviceView {
        let (state, remedy) = self.state();
        let tidy = |value: &Value| match value {
            Value::String(text) => Value::String(clean_line(text, 256)),
            // A list of sentences, as apps have findings.
            Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_string) => {
                items.iter().take(16).filter_map(Value::as_str).map(|text| clean_line(text, 256)).collect()
            }
            other if other.to_string().len() <= 256 => other.clone(),
            _ => Value::Null,
        };
        let attributes = self.info.attributes.iter().take(32);
        let attributes = attributes.map(|(key, value)| (clean_line(key, 64), tidy(value))).collect();
        DeviceView {
            id: self.id.clone(),
            name: self.name.as_deref().map(str::to_owned),
            labels: self.labels.to_vec(),
            key: self.info.key.clone(),
            family: self.info.family.clone(),
            kind: self.kind(),
            version: clean_line(&self.info.version, 64),
            state,
            remedy,
            tools: if self.is_listed(Instant::now()) { self.offer.tools.len() } else { 0 },
            pinned: self.pinned,
            quarantined: self.held.as_ref().map_or(0, |held| held.tools.len()),
            withdrawn: (*self.withdrawn).clone(),
            since: self.since,
            admission: self.info.admission.clone(),
            attributes,
            instructions: self.instructions(),
            warnings: self.offer.warnings.clone(),
            lease: None,
        }
    }
}
