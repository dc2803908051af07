//! The entry point: everything a family, an endpoint or the command line can ask of the gateway.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use serde_json::json;

use sinew_policy::{PolicyProblem, Severity};
use sinew_spec::lock::Follow;
use sinew_tool::text::clean_line;
use sinew_tool::{Announce, DeviceEvent, DeviceId, DeviceKey, Digest, ErrorKind, Picture, Presences, ToolError, Value};
use tokio::sync::{broadcast, watch};

use crate::access::{Access, AccessSettings, CallApprovals, Lens};
use crate::approvals::ApprovalQueue;
use crate::backup;
use crate::call_counts::{CallCounts, CallFailure, MinuteOfCalls};
use crate::caller_view::CallerView;
use crate::directory;
use crate::fleet_counts::CountedFleets;
use crate::identity::unknown_device;
use crate::journal::{Journal, JournalEntry, Recording};
use crate::labels::Label;
use crate::leases::{FarLeases, Leases};
use crate::live_view::LiveViews;
use crate::pins::Pins;
use crate::principal::{Principal, Role};
use crate::record::{Note, Recorder};
use crate::registry::{Agreement, Registry};
use crate::settings::{MAX_DEVICE_EVENTS, OpenError, Settings};
use crate::shared::{GivenMarks, NameClaim, OwnIds, OwnMarks, OwnPins, RecordKind, Shared};
use crate::snapshot::{Holder, Presence, Snapshot};
use crate::state_check::lost_board_key;
use crate::state_guard::StateGuard;
use crate::store::{self, AuditKey, AuditSeal, LocalEvents, LocalTokens, Store};
use crate::tokens::{self, LocalBoardKey, LocalRequestKey, Tokens};
use crate::totals::Totals;
use crate::validation::Validation;
use crate::view::{AuditFilter, AuditRecord, AuditReport, DeviceChanges, DeviceView, EventPage, Shape, ToolList};
use crate::watch::Watch;

/// Events that wait for a slow reader; beyond it the reader learns that any device may have sent something.
const WAITING_EVENTS: usize = 256;

/// Seals that wait for whoever passes them on.
const WAITING_SEALS: usize = 64;

/// The file of the key for digests of arguments and for seals.
const AUDIT_KEY: &str = "audit-key";
/// The file of the key for the credentials of boards.
pub(crate) const BOOTSTRAP_KEY: &str = "bootstrap-key";
/// The file of the gateway's own token.
pub(crate) const OWN_TOKEN: &str = "token";
/// The file of what people always allow.
const GRANTS: &str = "grants.json";
/// Files with a secret in the state directory.
pub(crate) const SECRETS: [&str; 3] = [OWN_TOKEN, BOOTSTRAP_KEY, AUDIT_KEY];

/// Calls of one answer at most, which is some megabytes.
const MAX_CALLS: usize = 10_000;

/// Decides who may call which tool of which device, and records it. Cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    registry: Arc<Registry>,
    validation: Validation,
    tokens: Tokens,
    access: Access,
    approvals: ApprovalQueue,
    leases: Leases,
    live_views: LiveViews,
    shared: Shared,
    recorder: Recorder,
    journal: Arc<Journal>,
    seals: broadcast::Sender<AuditSeal>,
    budgets: ArcSwap<BTreeMap<String, Duration>>,
    /// Why the changed configuration is not in force.
    config_problem: ArcSwapOption<String>,
    routines: OnceLock<PathBuf>,
    approval_page: ArcSwapOption<String>,
    counted_fleets: CountedFleets,
    /// What stands between the families and the registry.
    announced_through: OnceLock<Announce>,
    far_leases: OnceLock<Arc<dyn FarLeases>>,
    store: Arc<Store>,
    /// Devices that are announced at a broker and have not joined, by the broker's address.
    presences: Mutex<BTreeMap<String, Presences>>,
    /// Released last, when the store is on disk.
    lock: Mutex<Option<StateGuard>>,
}

impl Gateway {
    /// Opens the state and continues where the last gateway stopped.
    pub fn open(settings: Settings) -> Result<Gateway, OpenError> {
        Gateway::open_shared(settings, |local| local)
    }

    /// Like [`Gateway::open`], for a gateway that shares names, tokens, events, the audit or the keys of request state
    /// with others. `share` gets the local form of each and gives back what this gateway uses.
    pub fn open_shared(settings: Settings, share: impl FnOnce(Shared) -> Shared) -> Result<Gateway, OpenError> {
        let dir = settings.state_dir.as_deref();
        let lock = match dir {
            Some(dir) => {
                directory::make_private(dir)?;
                let lock = StateGuard::take(dir, settings.url.as_deref())?;
                backup::tidy(dir)?;
                Some(lock)
            }
            None => None,
        };
        // Before anything is made: with a policy that cannot be used nothing is opened.
        let problems = settings.access.check().into_iter().filter(|problem| problem.severity == Severity::Error);
        let problems: Vec<PolicyProblem> = problems.collect();
        if !problems.is_empty() {
            return Err(OpenError::Policy(problems));
        }
        let own = tokens::own(settings.token.as_deref(), dir)?;
        if let Some(loss) = dir.and_then(lost_board_key) {
            tracing::warn!("{loss}");
        }
        let events = broadcast::Sender::new(WAITING_EVENTS);
        let pins = settings.lock.clone().or_else(|| dir.map(|dir| dir.join("sinew.lock")));
        let mut pins = Pins::open(pins)?;
        let made_strict = pins.make_strict();
        let file = dir.map(|dir| dir.join("gateway.db"));
        dir.map_or(Ok(()), check_audit_key)?;
        let key = AuditKey::new(&tokens::secret(dir, AUDIT_KEY)?);
        let grants = CallApprovals::open(dir.map(|dir| dir.join(GRANTS)), key.clone())?;
        let access = Access::new(settings.access.clone(), grants).map_err(OpenError::Policy)?;
        let seals = broadcast::Sender::new(WAITING_SEALS);
        let (store, mut loaded) =
            Store::open(file.as_deref(), &settings, events.clone(), key.clone(), seals.clone(), &|device| {
                pins.is_pinned(device)
            })?;
        let store = Arc::new(store);
        let shared = share(Shared {
            names: store.clone(),
            ids: Arc::new(OwnIds),
            tokens: Arc::new(LocalTokens::new(store.clone(), std::mem::take(&mut loaded.tokens))),
            marks: Arc::new(OwnMarks),
            pins: Arc::new(OwnPins),
            events: Arc::new(LocalEvents::new(store.clone(), events, loaded.seq, std::mem::take(&mut loaded.nths))),
            audit: store.clone(),
            request_keys: Arc::new(LocalRequestKey::open(dir)?),
            board_keys: Arc::new(LocalBoardKey::open(dir)?),
        });
        let approvals = ApprovalQueue::new(shared.board_keys.clone(), &settings);
        let recorder = Recorder { audit: shared.audit.clone(), key, counts: Arc::new(CallCounts::new()) };
        let registry = Arc::new(Registry::new(loaded, store.clone(), pins, &settings, &shared, recorder.clone()));
        report_health(&store, &registry);
        if made_strict > 0 {
            registry.report_strict_pins(made_strict)?;
        }
        let tokens = Tokens::new(own, shared.tokens.clone(), registry.clone());
        let (settings_budgets, journal) = (settings.budgets.clone(), Journal::new(settings.journal.clone()));
        Ok(Gateway {
            inner: Arc::new(Inner {
                settings,
                registry,
                validation: Validation::new(),
                tokens,
                access,
                approvals,
                leases: Leases::new(),
                live_views: LiveViews::default(),
                budgets: ArcSwap::from_pointee(settings_budgets),
                config_problem: ArcSwapOption::empty(),
                routines: OnceLock::new(),
                approval_page: ArcSwapOption::empty(),
                counted_fleets: CountedFleets::default(),
                announced_through: OnceLock::new(),
                far_leases: OnceLock::new(),
                shared,
                recorder,
                journal,
                seals,
                store,
                presences: Mutex::default(),
                lock: Mutex::new(lock),
            }),
        })
    }

    /// Devices that are announced at a broker and have not joined, by the broker's address.
    pub fn presences(&self) -> BTreeMap<String, Presences> {
        self.inner.presences.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_presences(&self, broker: &str, presences: Presences) {
        let mut all = self.inner.presences.lock().unwrap_or_else(PoisonError::into_inner);
        match presences == Presences::default() {
            true => all.remove(broker),
            false => all.insert(broker.to_owned(), presences),
        };
    }

    /// Where families push their events.
    pub fn announce(&self) -> Announce {
        let gateway = self.clone();
        Arc::new(move |event| match gateway.inner.announced_through.get() {
            Some(announce) => announce(event),
            None => gateway.apply(event),
        })
    }

    /// Lets a cluster see what families announce. It applies the events itself, in an order that fits the devices of other
    /// gateways. Only the first counts.
    pub fn announce_through(&self, announce: Announce) {
        let _ = self.inner.announced_through.set(announce);
    }

    /// Lets a cluster reserve devices where they are. Only the first counts.
    pub fn reserve_through(&self, leases: Arc<dyn FarLeases>) {
        let _ = self.inner.far_leases.set(leases);
    }

    pub(crate) fn far_leases(&self) -> Option<&Arc<dyn FarLeases>> {
        self.inner.far_leases.get()
    }

    /// The only writer. Never blocks. An event of an earlier connection changes nothing; what the device sent then is
    /// kept.
    pub fn apply(&self, event: DeviceEvent) {
        self.inner.registry.apply(event);
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.inner.registry.snapshot()
    }

    /// The tools a caller sees. Device tokens see none.
    pub fn list(&self, who: &Principal, shape: Shape) -> Arc<ToolList> {
        if let Role::Device(_) = who.role {
            return Arc::new(ToolList { tools: Vec::new(), digest: Digest::of(&Value::Null) });
        }
        self.snapshot().list(&self.lens(who), shape, self.inner.settings.spec_tools)
    }

    /// Devices, events and texts as this caller sees them.
    pub fn seen_by(&self, who: &Principal) -> CallerView {
        CallerView::new(self.clone(), self.lens(who))
    }

    /// All known devices, by id; also those that are away.
    pub fn devices(&self) -> Vec<DeviceView> {
        self.snapshot().devices()
    }

    /// A device by id or given name.
    pub fn find_device(&self, text: &str) -> Option<DeviceView> {
        self.snapshot().find_device(text)
    }

    /// A device by the key that its family gave it.
    pub fn find_device_by_key(&self, key: &DeviceKey) -> Option<DeviceView> {
        let id = self.inner.registry.id_of(key)?;
        self.snapshot().find_device(id.as_str())
    }

    /// The id of a device by the key that its family gave it.
    pub fn device_id(&self, key: &DeviceKey) -> Option<DeviceId> {
        self.inner.registry.id_of(key)
    }

    /// A device by id or given name; where there is none, the error names some that exist.
    pub fn device(&self, text: &str) -> Result<DeviceView, ToolError> {
        let snapshot = self.snapshot();
        snapshot.find_device(text).ok_or_else(|| unknown_device(text, snapshot.devices.iter()))
    }

    /// The most recent pictures of a device; none while it is away.
    pub fn pictures(&self, device: &str) -> Vec<Picture> {
        match self.snapshot().entry(device).map(|entry| &entry.presence) {
            Some(Presence::Here(device)) => device.pictures(),
            Some(Presence::Away(_)) | None => Vec::new(),
        }
    }

    /// Gives a device a name; an empty one removes it.
    pub fn rename(&self, device: &str, name: &str) -> Result<DeviceView, ToolError> {
        self.inner.registry.rename(device, name)
    }

    /// What people gave the devices that this gateway knows; without those that nobody gave anything.
    pub fn given_marks(&self) -> Vec<(DeviceKey, GivenMarks)> {
        self.inner.registry.given_marks()
    }

    /// Takes over what another gateway of the cluster says that people gave a device; `false` where the device is unknown
    /// here. A name that another device has here is left out.
    pub fn set_marks(&self, device: &DeviceKey, marks: GivenMarks) -> Result<bool, ToolError> {
        self.inner.registry.set_marks(device, marks)
    }

    /// The ids that this gateway gave devices.
    pub fn id_claims(&self) -> Vec<(DeviceId, DeviceKey)> {
        let snapshot = self.inner.registry.snapshot();
        snapshot.devices.iter().map(|entry| (entry.id.clone(), entry.info.key.clone())).collect()
    }

    /// The keys from which the tokens of approved boards are made; the first is of this gateway.
    pub fn board_keys(&self) -> Vec<String> {
        self.inner.shared.board_keys.keys()
    }

    /// What is agreed on about pinned devices: for each the text of a lock that has it alone.
    pub fn agreed_pins(&self) -> Vec<(DeviceKey, String)> {
        self.inner.registry.agreed_pins()
    }

    /// Takes over what another gateway of the cluster says is agreed on about a device, also of one that is unknown here.
    pub fn set_pin(&self, device: &DeviceKey, agreed: Option<&str>) -> Result<(), ToolError> {
        self.inner.registry.set_pin(device, agreed)
    }

    /// All public names that this gateway gave.
    pub fn name_claims(&self) -> Vec<NameClaim> {
        self.inner.registry.name_claims()
    }

    /// The version of the policy in force: equal policies have the same.
    pub fn policy_version(&self) -> Arc<str> {
        self.inner.access.in_force().version().clone()
    }

    /// Forgets a device that is away: its name, its pin and its tools. Its id and its public names are free for others
    /// only after a time. Its tokens stay; with one of them it can come back as a new device.
    pub fn forget(&self, device: &str) -> Result<DeviceView, ToolError> {
        self.inner.registry.forget(device)
    }

    /// Adds labels to a device and removes others.
    pub fn label(&self, device: &str, add: &[Label], remove: &[Label]) -> Result<DeviceView, ToolError> {
        self.inner.registry.label(device, add, remove)
    }

    /// Agrees on the tools a device has now: differences are held back from then on, unless its version announces them and
    /// `follow` covers them. Of a device that is pinned already, only `follow` changes.
    pub fn pin(&self, device: &str, follow: Follow) -> Result<DeviceView, ToolError> {
        self.inner.registry.agree(device, Agreement::Pin(follow))
    }

    /// Lets a device change its tools again as it likes; what was held back is offered.
    pub fn unpin(&self, device: &str) -> Result<DeviceView, ToolError> {
        self.inner.registry.agree(device, Agreement::Unpin)
    }

    /// Accepts what is held back or gone of a pinned device: one tool, or everything. The digest is the one that
    /// [`Gateway::changes`] showed; where something else is there by now, nothing is accepted.
    pub fn accept(&self, device: &str, digest: &str, tool: Option<&str>) -> Result<DeviceView, ToolError> {
        self.inner.registry.agree(device, Agreement::Accept { digest, tool })
    }

    /// What differs from the agreement about a device, with the device's new text: for people, never for models.
    pub fn changes(&self, device: &str) -> Result<DeviceChanges, ToolError> {
        let snapshot = self.snapshot();
        let entry = snapshot.entry(device).ok_or_else(|| unknown_device(device, snapshot.devices.iter()))?;
        let follow = self.inner.registry.follow(&entry.info.key).map(|follow| follow.word().to_owned());
        let mut changes =
            DeviceChanges { id: entry.id.to_string(), pinned: entry.pinned, follow, ..DeviceChanges::default() };
        if let Some(held) = &entry.held {
            changes.digest = Some(held.digest.clone());
            changes.held = held.view();
            changes.text = held.text_changes();
            changes.text_form = held.text_form();
            changes.gone = held.gone.iter().map(|name| clean_line(name, 128)).collect();
        }
        Ok(changes)
    }

    /// Events after a cursor, oldest first; from the oldest kept without one. At most 1,000 at once.
    pub async fn events(
        &self,
        device: Option<&str>,
        since: Option<&str>,
        limit: usize,
    ) -> Result<EventPage, ToolError> {
        let device = match device {
            Some(text) => {
                let snapshot = self.snapshot();
                let entry = snapshot.entry(text).ok_or_else(|| unknown_device(text, snapshot.devices.iter()))?;
                Some(entry.id.clone())
            }
            None => None,
        };
        let limit = limit.min(MAX_DEVICE_EVENTS);
        self.inner.shared.events.page(device, since.map(str::to_owned), limit).await
    }

    /// Puts another policy in force. Where it has errors, the old one stays.
    pub fn set_access(&self, settings: AccessSettings) -> Result<(), Vec<PolicyProblem>> {
        let before = self.inner.access.in_force().version().clone();
        self.inner.access.replace(settings)?;
        let after = self.inner.access.in_force().version().clone();
        self.inner.recorder.note(Note {
            kind: RecordKind::Change,
            who: None,
            door: "",
            device: None,
            tool: None,
            what: "load_policy",
            details: json!({"before": before, "after": after}),
            outcome: "ok",
        });
        self.inner.registry.notify_all();
        Ok(())
    }

    /// Says that a changed configuration cannot be used, or with `None` that it can.
    pub fn set_config_problem(&self, problem: Option<String>) {
        self.inner.config_problem.store(problem.map(Arc::new));
    }

    /// Why the changed configuration is not in force; `None` where it is.
    pub fn config_problem(&self) -> Option<String> {
        self.inner.config_problem.load().as_deref().cloned()
    }

    /// Says where routines are read from.
    pub fn set_routines_folder(&self, folder: PathBuf) {
        let _ = self.inner.routines.set(folder);
    }

    /// Where routines are read from.
    pub fn routines_folder(&self) -> Option<&Path> {
        self.inner.routines.get().map(PathBuf::as_path)
    }

    /// Seconds that calls may take from now on, by `DEVICE/TOOL` patterns.
    pub fn set_budgets(&self, budgets: BTreeMap<String, Duration>) {
        self.inner.budgets.store(Arc::new(budgets));
    }

    pub(crate) fn budgets(&self) -> Arc<BTreeMap<String, Duration>> {
        self.inner.budgets.load_full()
    }

    /// Counts the calls that ended and are recorded.
    pub fn ended_calls(&self) -> watch::Receiver<u64> {
        self.inner.recorder.counts.subscribe()
    }

    /// The calls of the last hour, oldest minute first.
    pub fn minutes_of_calls(&self) -> Vec<MinuteOfCalls> {
        self.inner.recorder.counts.minutes()
    }

    /// What happened since the gateway started, in numbers.
    pub fn totals(&self) -> Totals {
        let Inner { recorder, store, access, shared, registry, .. } = &*self.inner;
        Totals {
            calls: recorder.counts.totals(),
            commits: store.health.commits(),
            decisions: access.decisions(),
            dropped_events: shared.events.dropped(),
            joins: registry.joins(),
        }
    }

    /// The newest calls that failed since the gateway started, newest first.
    pub fn call_failures(&self) -> Vec<CallFailure> {
        self.inner.recorder.counts.failures()
    }

    /// Says where the page about an approval is: its address ends before the id.
    pub fn set_approval_page(&self, address: String) {
        self.inner.approval_page.store(Some(Arc::new(address)));
    }

    /// The address of the page about an approval, without its id.
    pub fn approval_page(&self) -> Option<Arc<String>> {
        self.inner.approval_page.load_full()
    }

    /// Changes of the folded list as people see it, and of everything else.
    pub fn watch(&self) -> Watch {
        self.watch_as(&Principal::new("watch", Role::Admin), Shape::Folded)
    }

    /// Like [`Gateway::watch`], where [`Update::Tools`](crate::Update::Tools) speaks of exactly the
    /// list this caller sees.
    pub fn watch_as(&self, who: &Principal, shape: Shape) -> Watch {
        let versions = self.inner.registry.subscribe();
        Watch::new(self.clone(), who.clone(), shape, versions, self.inner.shared.events.subscribe())
    }

    /// The keys that seal what clients carry between the rounds of a call: the first seals, all open.
    pub fn request_keys(&self) -> Vec<[u8; 32]> {
        self.inner.shared.request_keys.keys()
    }

    pub fn tokens(&self) -> &Tokens {
        &self.inner.tokens
    }

    /// Records what an administrator changed, or tried to.
    pub fn record_change(
        &self,
        who: &Principal,
        what: &'static str,
        device: Option<DeviceId>,
        details: Value,
        failure: Option<ErrorKind>,
    ) {
        self.inner.recorder.note(Note {
            kind: RecordKind::Change,
            who: Some(who),
            door: "api",
            device,
            tool: None,
            what,
            details,
            outcome: failure.map_or("ok", |kind| kind.row().error_type),
        });
    }

    /// Whether the audit is as it was written. Reads all of it; commits go on meanwhile.
    pub async fn verify_audit(&self) -> Result<AuditReport, ToolError> {
        self.inner.store.verify().await
    }

    /// The seals of the audit from now on, each once the records it covers are on the disk.
    pub fn seals(&self) -> broadcast::Receiver<AuditSeal> {
        self.inner.seals.subscribe()
    }

    /// The id of the newest call in the journal, or 0.
    pub fn last_journal_id(&self) -> u64 {
        self.inner.journal.last_id()
    }

    /// Keeps the journal on for as long as the recording lives.
    pub fn record_journal(&self) -> Recording {
        self.inner.journal.record()
    }

    /// Whether calls are kept with their answers now.
    pub fn has_journal(&self) -> bool {
        self.inner.journal.is_on()
    }

    /// Recent calls with their answers, oldest first: the newest after the entry `after`, of one device or of all.
    pub fn find_journal(
        &self,
        after: u64,
        device: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Arc<JournalEntry>>, ToolError> {
        let device = device.map(|text| self.device(text)).transpose()?.map(|device| device.id);
        Ok(self.inner.journal.find(after, device.as_ref(), limit))
    }

    pub(crate) fn journal(&self) -> &Arc<Journal> {
        &self.inner.journal
    }

    /// The newest seal of the audit.
    pub async fn last_seal(&self) -> Result<Option<AuditSeal>, ToolError> {
        self.inner.store.last_seal().await
    }

    /// The newest calls, newest first; at most 10,000.
    pub async fn audit(&self, limit: usize) -> Result<Vec<AuditRecord>, ToolError> {
        let kind = Some(RecordKind::Call.word().to_owned());
        self.find_records(AuditFilter { kind, ..AuditFilter::default() }, limit).await
    }

    /// The newest records that fit, newest first; at most 10,000.
    pub async fn find_records(&self, filter: AuditFilter, limit: usize) -> Result<Vec<AuditRecord>, ToolError> {
        self.inner.shared.audit.find(filter, limit.min(MAX_CALLS)).await
    }

    /// Why calls cannot be recorded and are refused, while that is so.
    pub fn store_problem(&self) -> Option<String> {
        self.inner.store.health.problem()
    }

    /// Writes the address into the lock file, once it is known.
    pub fn set_url(&self, url: &str) {
        if let Some(lock) = self.lock().as_mut()
            && let Err(error) = lock.write_owner(Some(url))
        {
            tracing::warn!(%error, "the address could not be written into the lock file");
        }
    }

    /// Puts everything on disk and releases the state directory. Calls after this fail.
    pub async fn close(&self) {
        self.inner.registry.save_running();
        self.inner.store.close().await;
        drop(self.lock().take());
    }

    /// Answers the calls that wait for a person, because the gateway stops. Calls under way go on.
    pub fn end_waiting(&self) {
        self.inner.access.approvals.close();
    }

    /// Where everything is kept, if it is.
    pub(crate) fn state_dir(&self) -> Option<PathBuf> {
        self.inner.settings.state_dir.clone()
    }

    /// Waits until everything so far is on the disk.
    pub(crate) async fn settled(&self) -> Result<(), ToolError> {
        self.inner.store.settled().await
    }

    pub(crate) fn approvals(&self) -> &ApprovalQueue {
        &self.inner.approvals
    }

    pub(crate) fn validation(&self) -> &Validation {
        &self.inner.validation
    }

    /// Stops offering a tool whose checks cost too much.
    pub(crate) fn withdraw(&self, holder: Holder<'_>, why: &str) {
        let (entry, tool) = (holder.entry, &holder.offered.tool.name);
        self.inner.registry.withdraw(&entry.id, &entry.traffic, tool, why);
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.inner.recorder
    }

    pub(crate) fn is_known_device(&self, key: &DeviceKey) -> bool {
        self.inner.registry.is_known(key)
    }

    pub(crate) fn leases(&self) -> &Leases {
        &self.inner.leases
    }

    pub(crate) fn live_views(&self) -> &LiveViews {
        &self.inner.live_views
    }

    pub(crate) fn counted_fleets(&self) -> &CountedFleets {
        &self.inner.counted_fleets
    }

    pub(crate) fn access(&self) -> &Access {
        &self.inner.access
    }

    pub(crate) fn lens(&self, who: &Principal) -> Lens {
        self.inner.access.lens(self.snapshot(), who, who.role == Role::Admin)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<StateGuard>> {
        self.inner.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the audit in a state directory is as it was written. Only while no gateway uses the directory.
pub fn verify_audit(dir: &Path) -> Result<AuditReport, OpenError> {
    let _lock = StateGuard::take(dir, None)?;
    verify_key_and_audit(dir)
}

/// The same, for whoever holds the directory.
pub(crate) fn verify_key_and_audit(dir: &Path) -> Result<AuditReport, OpenError> {
    let path = dir.join(AUDIT_KEY);
    if !path.exists() {
        return Err(OpenError::NoAuditKey { path });
    }
    store::verify_closed(dir, AuditKey::new(&tokens::secret(Some(dir), AUDIT_KEY)?))
}

/// Another key would prove nothing of the records so far, so it is not made without a word.
pub(crate) fn check_audit_key(dir: &Path) -> Result<(), OpenError> {
    let path = dir.join(AUDIT_KEY);
    match path.exists() || !store::needs_key(dir) {
        true => Ok(()),
        false => Err(OpenError::NoAuditKey { path }),
    }
}

/// Makes events of what happens to the store. The registry may hold its lock while it waits for the store, so the
/// store's own thread must not wait for the registry.
fn report_health(store: &Store, registry: &Arc<Registry>) {
    let registry = Arc::downgrade(registry);
    store.health.listen(move |problem| {
        let (registry, problem) = (registry.clone(), problem.map(str::to_owned));
        let report = move || {
            if let Some(registry) = registry.upgrade() {
                registry.report_store(problem.as_deref());
            }
        };
        let _ = std::thread::Builder::new().name("sinew-health".to_owned()).spawn(report);
    });
}
