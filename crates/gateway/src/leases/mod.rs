//! Leases: a caller has a device to itself for a while. Others read meanwhile; their calls that change something wait a
//! little, and are then told who has it, for how long, and their place.
//!
//! Leases are in memory: after a restart every device is free. In a cluster the gateway that a device is connected to has
//! its leases (`far`).

mod book;
mod far;

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use sinew_tool::text::clean_line;
use sinew_tool::{Args, DeviceId, Effect, ErrorKind, ToolError};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::access::Lens;
use crate::gateway::Gateway;
use crate::identity::unknown_device;
use crate::labels::Label;
use crate::principal::Principal;
use crate::registry::now as unix_time;
use crate::snapshot::{DeviceEntry, Holder as ToolHolder};
use crate::tokens::Tokens;
use far::FarLeaseIds;
pub use far::FarLeases;

use book::{DeviceUser, Holder, Lease, LeaseBook, LeaseTime, Reason, Refusal};

/// In front of a lease's id, where a call names a device.
const PREFIX: &str = "lease:";
/// How long a call waits for a device that another caller just used.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a device stays with the caller that used it, in families whose devices are used step by step.
const KEPT_AFTER_USE: Duration = Duration::from_secs(10);
/// How soon a device is asked for again whose lease ended late.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// A lease of a client ends after so long without use.
const MAX_UNUSED: Duration = Duration::from_secs(60);
/// What a client that says nothing gets, in seconds.
pub(crate) const USUAL_SECONDS: u64 = 300;
/// The longest lease of a client, in seconds.
pub const MAX_CLIENT_SECONDS: u64 = 600;
/// The longest lease of a person, in seconds: a day.
pub const MAX_PERSON_SECONDS: u64 = 86_400;
/// The longest time that a request for a lease waits, in seconds.
pub const MAX_WAIT_SECONDS: u64 = 30;

/// A wish to have a device.
#[derive(Clone, Debug, Default)]
pub struct Reservation {
    /// The id or name of a device, or `label:NAME` for the first one that is free.
    pub device: String,
    pub time: Duration,
    /// How long to wait where another has it.
    pub wait: Duration,
    /// For people.
    pub purpose: String,
    /// Distinguishes those who share a token.
    pub run: Option<String>,
    /// A person has it for the whole time, also without using it.
    pub by_person: bool,
}

/// Who has a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseView {
    pub device: DeviceId,
    /// The name of the caller.
    pub holder: String,
    /// `None` where the device was not reserved and is just being used.
    pub purpose: Option<String>,
    /// When it ends, in milliseconds of Unix time. Use prolongs it.
    pub until: i64,
    /// How many wait for the device.
    pub waiting: usize,
}

/// A device that the caller has now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnLease {
    /// For the holder alone: calls name it as `lease:ID`.
    pub id: String,
    pub view: LeaseView,
    /// How long it lasts at most.
    pub seconds: u64,
    /// After so many seconds without use it ends; `None` where it lasts until its end.
    pub unused_seconds: Option<u64>,
}

pub(crate) struct Leases {
    book: Mutex<LeaseBook>,
    /// Of devices at other gateways.
    far: Mutex<FarLeaseIds>,
    /// Counts the ends of leases.
    freed: watch::Sender<u64>,
    /// The changes of the book, for those who show it.
    changes: watch::Sender<u64>,
}

/// The book, in the hands of one caller. Those who show it are told of changes when it is put down.
struct OpenBook<'a> {
    leases: &'a Leases,
    book: MutexGuard<'a, LeaseBook>,
}

impl Deref for OpenBook<'_> {
    type Target = LeaseBook;

    fn deref(&self) -> &LeaseBook {
        &self.book
    }
}

impl DerefMut for OpenBook<'_> {
    fn deref_mut(&mut self) -> &mut LeaseBook {
        &mut self.book
    }
}

impl Drop for OpenBook<'_> {
    fn drop(&mut self) {
        let now = self.book.changes();
        self.leases.changes.send_if_modified(|told| std::mem::replace(told, now) != now);
    }
}

/// A call that changes something, on a device that its caller has. Dropping it ends the use.
pub(crate) struct DeviceUse {
    gateway: Gateway,
    device: DeviceId,
    lease: Arc<str>,
}

/// A caller, and what it sees.
pub(crate) struct LeaseUser<'a> {
    pub who: &'a Principal,
    pub lens: &'a Lens,
    /// The lease that the call names.
    pub lease: Option<&'a str>,
    /// Whether the lease must be one that the caller has. Within another call it may have ended, or be of another device.
    pub is_outer: bool,
}

impl LeaseUser<'_> {
    fn in_book(&self) -> DeviceUser<'_> {
        DeviceUser { who: self.who, lease: self.lease }
    }
}

impl Drop for DeviceUse {
    fn drop(&mut self) {
        self.gateway.leases().book().end_use(&self.device, &self.lease, Instant::now());
    }
}

impl Leases {
    pub(crate) fn new() -> Leases {
        Leases {
            book: Mutex::default(),
            far: Mutex::default(),
            freed: watch::Sender::new(0),
            changes: watch::Sender::new(0),
        }
    }

    fn book(&self) -> OpenBook<'_> {
        OpenBook { leases: self, book: self.book.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    fn tell_freed(&self) {
        self.freed.send_modify(|count| *count += 1);
    }

    /// Tries again whenever a lease ends, until then if `patience` gives a refusal time.
    async fn wait_for<T>(
        &self,
        tokens: &Tokens,
        patience: impl Fn(&Refusal) -> Option<Instant>,
        mut attempt: impl FnMut(&mut LeaseBook) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut freed = self.freed.subscribe();
        loop {
            freed.borrow_and_update();
            let refusal = match attempt(&mut self.book()) {
                Ok(done) => return Ok(done),
                Err(refusal) => refusal,
            };
            let next = match &refusal {
                Refusal::Taken { lease, .. } if !tokens.is_valid(&lease.holder.who) => {
                    self.book().drop_holder(&lease.holder.who.id, Instant::now());
                    continue;
                }
                Refusal::Taken { lease, .. } => lease.ends,
                Refusal::Kept { until, .. } => *until,
                Refusal::Broken { .. } | Refusal::TooMany { .. } => return Err(refusal),
            };
            let now = Instant::now();
            let Some(ends) = patience(&refusal).filter(|ends| now < *ends) else { return Err(refusal) };
            // A lease that is in use lasts longer than it says.
            let next = next.max(now + LOOK_AGAIN).min(ends);
            tokio::select! {
                _ = freed.changed() => {}
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }
}

impl Gateway {
    /// Reserves a device for a caller, or prolongs what it has.
    pub async fn reserve(&self, who: &Principal, wanted: Reservation) -> Result<OwnLease, ToolError> {
        let devices = self.reservable(&self.lens(who), &wanted.device)?;
        let (far, here): (Vec<DeviceId>, Vec<DeviceId>) =
            devices.into_iter().partition(|id| self.far_key(id).is_some());
        if far.is_empty() {
            return self.reserve_here(who, here, wanted).await;
        }
        self.reserve_far(who, &here, &far, wanted).await
    }

    async fn reserve_here(
        &self,
        who: &Principal,
        devices: Vec<DeviceId>,
        wanted: Reservation,
    ) -> Result<OwnLease, ToolError> {
        let run = wanted.run.as_deref().map(|run| clean_line(run, 64)).filter(|run| !run.is_empty());
        let holder = Holder { who: Arc::new(who.clone()), run: run.map(Arc::from) };
        if let [device] = devices.as_slice() {
            let is_it = |other: &DeviceId, lease: &Lease| other == device && lease.holder.same(&holder);
            let told = self.leases().book().tell_broken(is_it, Instant::now());
            told.map_err(|refusal| refused(device.as_str(), refusal))?;
        }
        let purpose = clean_line(&wanted.purpose, 100);
        let unused = if wanted.by_person { wanted.time } else { wanted.time.min(MAX_UNUSED) };
        let time = LeaseTime { unused, total: wanted.time };
        let reserve = |book: &mut LeaseBook| {
            let now = Instant::now();
            // Whoever asks for a label again has one already.
            let own = devices.iter().find(|device| book.has(device, &holder, now));
            let mut refusals = Vec::new();
            for device in own.into_iter().chain(&devices) {
                match book.reserve(device, &holder, &purpose, time, new_id, now) {
                    Ok(lease) => {
                        devices.iter().for_each(|other| book.leave_queue(other, &holder));
                        return Ok((device.clone(), lease));
                    }
                    Err(refusal) => refusals.push(refusal),
                }
            }
            Err(soonest(refusals))
        };
        let ends = Instant::now() + wanted.wait;
        let taken = self.leases().wait_for(self.tokens(), |_| Some(ends), reserve).await;
        let (device, lease) = taken.map_err(|refusal| refused(&wanted.device, refusal))?;
        let total = lease.latest.saturating_duration_since(Instant::now());
        // Some of the last second is over already.
        let seconds = total.as_secs_f64().ceil() as u64;
        let unused_seconds = (unused < total).then_some(unused.as_secs());
        Ok(OwnLease { id: lease.id.to_string(), view: view(&device, &lease, 0), seconds, unused_seconds })
    }

    /// Gives back a device that is named by id, name or lease. `false` where the caller does not have it.
    pub async fn release(&self, who: &Principal, device: &str) -> Result<bool, ToolError> {
        let now = Instant::now();
        let lease = device.trim().strip_prefix(PREFIX);
        if let Some(released) = self.release_far(who, device, lease).await {
            return released;
        }
        let id = match lease {
            Some(lease) => self.leases().book().device_of(&who.id, lease, now).cloned(),
            None => Some(self.seen_by(who).device(device)?.id),
        };
        let Some(id) = id else { return Ok(false) };
        let user = DeviceUser { who, lease };
        let is_released = self.leases().book().release(&id, user, now);
        self.leases().tell_freed();
        Ok(is_released)
    }

    /// Takes a device away from whoever has it; it is then with whoever took it for some seconds. The holder is told with
    /// its next call.
    pub async fn break_lease(&self, by: &Principal, device: &str) -> Result<LeaseView, ToolError> {
        let id = self.device(device)?.id;
        if let Some((far, key)) = self.far_leases().zip(self.far_key(&id)) {
            return far.break_lease(by, key).await.map(|view| LeaseView { device: id, ..view });
        }
        let broken = self.leases().book().break_lease(&id, by, KEPT_AFTER_USE, new_id(), Instant::now());
        self.leases().tell_freed();
        broken.map(|lease| view(&id, &lease, 0)).ok_or_else(|| {
            let message = format!("nobody has {id} now, so there is no lease to break");
            ToolError::new(ErrorKind::ActionFailed, message)
        })
    }

    /// Ends the leases of a token that was revoked.
    pub fn end_leases(&self, principal: &str) {
        self.leases().book().drop_holder(principal, Instant::now());
        self.leases().tell_freed();
    }

    /// Changes whenever somebody gets a device, gives it back, loses it, or begins to wait for it. The end of a lease is
    /// in its view already.
    pub fn lease_changes(&self) -> watch::Receiver<u64> {
        self.leases().changes.subscribe()
    }

    /// Who has a device now.
    pub fn lease(&self, device: &DeviceId) -> Option<LeaseView> {
        let book = self.leases().book();
        let (lease, waiting) = book.lease(device, Instant::now())?;
        self.tokens().is_valid(&lease.holder.who).then(|| view(device, lease, waiting))
    }

    /// How many devices somebody has.
    pub fn lease_count(&self) -> usize {
        self.leases().book().count(Instant::now())
    }

    /// Refuses a call that changes something on a device that another caller reserved, before anybody is asked about it.
    pub(crate) fn check_lease(&self, user: &LeaseUser<'_>, tool: ToolHolder<'_>) -> Result<(), ToolError> {
        if !self.concerns_leases(user, tool) {
            return Ok(());
        }
        if let Some(lease) = user.lease.filter(|_| user.is_outer) {
            self.leased_device(user.who, lease)?;
        }
        let (device, now) = (&tool.entry.id, Instant::now());
        let mut book = self.leases().book();
        match book.begin_use(device, user.in_book(), None, new_id, now) {
            Ok(Some(lease)) => book.end_use(device, &lease, now),
            Err(Refusal::Taken { lease, .. }) if lease.reason == Reason::Used => {}
            Ok(None) | Err(Refusal::Kept { .. }) => {}
            Err(Refusal::Taken { lease, .. }) if !self.tokens().is_valid(&lease.holder.who) => {
                book.drop_holder(&lease.holder.who.id, now);
            }
            Err(refusal) => return Err(refused(&tool.entry.title(), refusal)),
        }
        Ok(())
    }

    /// Begins a call. Where it changes something, a device that somebody else just used is waited for.
    pub(crate) async fn begin_use(
        &self,
        user: &LeaseUser<'_>,
        tool: ToolHolder<'_>,
        ends: Instant,
    ) -> Result<Option<DeviceUse>, ToolError> {
        if !self.concerns_leases(user, tool) {
            return Ok(None);
        }
        let keep = tool.entry.info.family.stays_with_user.then_some(KEPT_AFTER_USE);
        let device = &tool.entry.id;
        let waits_until = (Instant::now() + PATIENCE).min(ends);
        let patience = |refusal: &Refusal| match refusal {
            Refusal::Taken { lease, .. } if lease.reason != Reason::Used => None,
            _ => Some(waits_until),
        };
        let begin = |book: &mut LeaseBook| book.begin_use(device, user.in_book(), keep, new_id, Instant::now());
        let lease = self.leases().wait_for(self.tokens(), patience, begin).await;
        let lease = lease.map_err(|refusal| refused(&tool.entry.title(), refusal))?;
        Ok(lease.map(|lease| DeviceUse { gateway: self.clone(), device: device.clone(), lease }))
    }

    /// Most calls are not: to a device of no such family, while nothing is reserved.
    fn concerns_leases(&self, user: &LeaseUser<'_>, tool: ToolHolder<'_>) -> bool {
        let is_asked = || user.lease.is_some() || !self.leases().book().is_empty();
        // The gateway that has a device checks its leases.
        (tool.entry.info.family.stays_with_user || is_asked())
            && changes(user.lens, tool)
            && !self.far_leases().is_some_and(|far| far.is_far(&tool.entry.info.key))
    }

    /// The device and the lease of a call that names its device as `lease:ID`. In `args` the device takes its place.
    pub(crate) fn find_lease(
        &self,
        who: &Principal,
        device: Option<&str>,
        selector: impl FnOnce() -> Option<String>,
        args: &mut Args,
    ) -> Result<Option<(DeviceId, Arc<str>)>, ToolError> {
        if let Some(device) = device {
            return device.trim().strip_prefix(PREFIX).map(|lease| self.leased_device(who, lease)).transpose();
        }
        let named = |value: &Value| value.as_str().and_then(|text| text.trim().strip_prefix(PREFIX)).map(str::to_owned);
        if !args.values().any(|value| named(value).is_some()) {
            return Ok(None);
        }
        let selected = selector().and_then(|selector| args.get_mut(&selector));
        let Some((place, lease)) = selected.and_then(|value| named(value).map(|lease| (value, lease))) else {
            return Ok(None);
        };
        let (device, lease) = self.leased_device(who, &lease)?;
        *place = Value::String(device.to_string());
        Ok(Some((device, lease)))
    }

    /// The device that the caller has under a lease.
    pub(crate) fn leased_device(&self, who: &Principal, lease: &str) -> Result<(DeviceId, Arc<str>), ToolError> {
        if let Some(device) = self.leases().far().device(&who.id, lease) {
            return Ok((device, lease.into()));
        }
        let (mut book, now) = (self.leases().book(), Instant::now());
        let is_it = |_: &DeviceId, broken: &Lease| *broken.id == *lease && broken.holder.who.id == who.id;
        book.tell_broken(is_it, now).map_err(|refusal| refused(lease, refusal))?;
        let device = book.device_of(&who.id, lease, now).cloned();
        device.map(|device| (device, lease.into())).ok_or_else(|| {
            let lease = clean_line(lease, 64);
            let message = format!("the lease `{lease}` is over, or is not yours; reserve the device again");
            ToolError::new(ErrorKind::Reserved, message)
        })
    }

    /// The devices that a text names and the caller may reserve: one, or those with a label, the ready ones first.
    fn reservable(&self, lens: &Lens, text: &str) -> Result<Vec<DeviceId>, ToolError> {
        let snapshot = self.snapshot();
        let seen = || snapshot.devices.iter().filter(|entry| lens.sees_device(entry));
        let mut entries: Vec<_> = match Label::selected(text) {
            Some(label) => {
                let label = Label::parse(label)?;
                seen().filter(|entry| entry.labels.contains(&label)).collect()
            }
            None => snapshot.entry(text).filter(|entry| lens.sees_device(entry)).into_iter().collect(),
        };
        if entries.is_empty() {
            return Err(unknown_device(text, seen()));
        }
        entries.retain(|entry| !entry.info.family.passes_on && can_change(lens, entry));
        if entries.is_empty() {
            let message = format!(
                "`{}` cannot be reserved: this caller has nothing there that changes a device, and reading needs no lease",
                clean_line(text, 128)
            );
            return Err(ToolError::new(ErrorKind::PermissionDenied, message));
        }
        entries.sort_by_key(|entry| !entry.is_ready());
        Ok(entries.into_iter().map(|entry| entry.id.clone()).collect())
    }
}

/// Whether the caller sees a tool of the device that does more than read.
fn can_change(lens: &Lens, entry: &Arc<DeviceEntry>) -> bool {
    entry.offer.tools.iter().any(|offered| {
        let holder = ToolHolder { entry, offered };
        lens.sees(holder) && changes(lens, holder)
    })
}

/// Whether a tool does more than read. One of unknown effect counts as one that does.
pub(crate) fn changes(lens: &Lens, holder: ToolHolder<'_>) -> bool {
    lens.in_force().effect_of(holder).is_none_or(|(effect, _)| effect != Effect::Read)
}

fn new_id() -> Arc<str> {
    // Random, because whoever knows it and the token has the lease.
    let mut bytes = [0; 8];
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

fn view(device: &DeviceId, lease: &Lease, waiting: usize) -> LeaseView {
    let purpose = match &lease.reason {
        Reason::Reserved { purpose } => Some(purpose.clone()),
        Reason::Used => None,
    };
    let until = unix_time() + left(lease.ends).as_millis() as i64;
    LeaseView { device: device.clone(), holder: lease.holder.who.name.clone(), purpose, until, waiting }
}

fn left(ends: Instant) -> Duration {
    ends.saturating_duration_since(Instant::now())
}

/// The refusal that says most about when a device can be had.
fn soonest(refusals: Vec<Refusal>) -> Refusal {
    let time = |refusal: &Refusal| match refusal {
        Refusal::Broken { .. } | Refusal::TooMany { .. } => None,
        Refusal::Kept { until, .. } => Some(*until),
        Refusal::Taken { lease, .. } => Some(lease.ends),
    };
    refusals.into_iter().min_by_key(time).unwrap_or(Refusal::TooMany { most: 0 })
}

fn refused(device: &str, refusal: Refusal) -> ToolError {
    let device = clean_line(device, 128);
    let queue = |place: Option<usize>| match place {
        Some(place) => format!("your place in the queue is {place}"),
        None => "the queue is full".to_owned(),
    };
    match refusal {
        Refusal::Taken { lease, place } => {
            let Lease { holder, reason, ends, .. } = lease;
            let seconds = left(ends).as_secs() + 1;
            let (does, queue) = (if reason == Reason::Used { "uses" } else { "has reserved" }, queue(place));
            let message = format!(
                "`{}` {does} {device} for up to {seconds} s more; {queue}. Nothing was sent. Reading works meanwhile; \
                 `reserve_device` with `wait` waits for it",
                holder.who.name
            );
            let until = unix_time() + left(ends).as_millis() as i64;
            let details = json!({"device": device, "holder": holder.who.name, "until": until, "place": place});
            ToolError::new(ErrorKind::Reserved, message).with_details(details)
        }
        Refusal::Kept { place, .. } => {
            let message = format!(
                "{device} just became free and somebody else is next; {}. Nothing was sent. Try again in some seconds",
                queue(place)
            );
            ToolError::new(ErrorKind::Reserved, message).with_details(json!({"device": device, "place": place}))
        }
        Refusal::Broken { device, by } => {
            let message = format!(
                "`{by}` took {device} from you. Nothing was sent. Look at its state, then reserve it again if you still \
                 need it"
            );
            ToolError::new(ErrorKind::Reserved, message)
                .with_details(json!({"device": device.as_str(), "broken_by": *by}))
        }
        Refusal::TooMany { most } => {
            let message = format!("{device} was not reserved: you have {most} devices already; release some");
            ToolError::new(ErrorKind::TooLarge, message)
        }
    }
}
