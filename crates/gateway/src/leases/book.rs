//! Who has which device, and who waits for it. The time is an argument, so nothing here needs a clock.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use sinew_tool::DeviceId;
use tokio::time::Instant;

use crate::principal::Principal;

/// Callers that wait for one device, and are told their place.
const MAX_QUEUE: usize = 16;
/// A caller that did not ask again for so long has left the queue.
const KEEPS_PLACE: Duration = Duration::from_secs(30);
/// How long a free device is kept for the first of the queue.
const KEPT_FREE: Duration = Duration::from_secs(5);
/// Places of one token in a queue, for its runs.
const MAX_PLACES: usize = 4;
/// Devices that one token can have reserved at once: a test farm's worth.
const MAX_LEASES: usize = 64;
/// Holders whose lease was broken and who were not told yet. Beyond it the oldest is not told.
const MAX_BROKEN: usize = 256;
/// Whoever did not ask for so long after the break is not told any more.
const TOLD_WITHIN: Duration = Duration::from_secs(600);

/// Calls end, so a use needs no end of its own; a day is longer than any.
const LONGEST_USE: Duration = Duration::from_secs(86_400);

/// Somebody who reserves devices: a token, and a run of it where several share the token.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    pub who: Arc<Principal>,
    pub run: Option<Arc<str>>,
}

/// Somebody who uses a device.
#[derive(Clone, Copy)]
pub(crate) struct DeviceUser<'a> {
    pub who: &'a Principal,
    /// The lease that the call names.
    pub lease: Option<&'a str>,
}

/// How long a lease lasts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseTime {
    /// It ends after so long without use.
    pub unused: Duration,
    /// It ends after so long in any case.
    pub total: Duration,
}

/// Why somebody has a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It was reserved.
    Reserved { purpose: String },
    /// It is being used, by calls that change something.
    Used,
}

#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub id: Arc<str>,
    pub holder: Holder,
    pub reason: Reason,
    pub ends: Instant,
    /// When it ends however it is used.
    pub latest: Instant,
    /// Calls under way.
    uses: usize,
    unused: Duration,
}

/// Why a device cannot be had or used now.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// Somebody else has it. The place is that of the one who asks; `None` where the queue is full.
    Taken { lease: Lease, place: Option<usize> },
    /// Nobody has it, and somebody else is next.
    Kept { place: Option<usize>, until: Instant },
    /// A person broke the lease of the one who asks. Told once.
    Broken { device: DeviceId, by: Arc<str> },
    /// The one who asks has too many leases.
    TooMany { most: usize },
}

#[derive(Default)]
pub(crate) struct LeaseBook {
    devices: HashMap<DeviceId, DeviceLease>,
    broken: VecDeque<BrokenLease>,
    changes: u64,
}

/// What is shown of a device: its lease, whether it was reserved, its last end, and how many wait.
type ShownLease = (Option<(Arc<str>, bool, Instant)>, usize);

struct DeviceLease {
    lease: Option<Lease>,
    /// Since when nobody has it.
    free: Instant,
    queue: VecDeque<Place>,
}

struct Place {
    holder: Holder,
    asked: Instant,
}

struct BrokenLease {
    device: DeviceId,
    lease: Lease,
    by: Arc<str>,
    at: Instant,
}

impl Holder {
    /// Whether a call is this holder's. Those who share a token and distinguish their runs must name the lease.
    fn is(&self, user: DeviceUser<'_>, id: &str) -> bool {
        self.who.id == user.who.id && (self.run.is_none() || user.lease == Some(id))
    }

    pub(super) fn same(&self, other: &Holder) -> bool {
        self.who.id == other.who.id && self.run == other.run
    }
}

impl Lease {
    fn is_over(&self, now: Instant) -> bool {
        self.latest <= now || (self.uses == 0 && self.ends <= now)
    }

    fn touch(&mut self, now: Instant) {
        self.ends = (now + self.unused).min(self.latest);
    }
}

impl LeaseBook {
    /// Counts when somebody got a device, gave it back, lost it, or began to wait for it. The end of a lease is no change:
    /// it is known before.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    fn shown(&self, device: &DeviceId) -> ShownLease {
        let Some(state) = self.devices.get(device) else { return (None, 0) };
        let lease = |lease: &Lease| (lease.id.clone(), lease.reason != Reason::Used, lease.latest);
        (state.lease.as_ref().map(lease), state.queue.len())
    }

    /// Does what may change a device's lease.
    fn watched<T>(&mut self, device: &DeviceId, work: impl FnOnce(&mut LeaseBook) -> T) -> T {
        let before = self.shown(device);
        let done = work(self);
        if self.shown(device) != before {
            self.changes += 1;
        }
        done
    }

    /// Whether nobody has or waits for anything, so that no call needs to ask.
    pub(super) fn is_empty(&self) -> bool {
        self.devices.is_empty() && self.broken.is_empty()
    }

    /// Reserves a device, or prolongs the reservation that the holder has: while others wait for it, only up to its bound.
    pub(super) fn reserve(
        &mut self,
        device: &DeviceId,
        holder: &Holder,
        purpose: &str,
        time: LeaseTime,
        new_id: impl FnOnce() -> Arc<str>,
        now: Instant,
    ) -> Result<Lease, Refusal> {
        self.watched(device, |book| book.take(device, holder, purpose, time, new_id, now))
    }

    fn take(
        &mut self,
        device: &DeviceId,
        holder: &Holder,
        purpose: &str,
        time: LeaseTime,
        new_id: impl FnOnce() -> Arc<str>,
        now: Instant,
    ) -> Result<Lease, Refusal> {
        self.settle_all(now);
        let is_reserved = |state: &DeviceLease| {
            let lease = state.lease.as_ref().filter(|lease| lease.reason != Reason::Used);
            lease.is_some_and(|lease| lease.holder.who.id == holder.who.id)
        };
        let has = self.devices.iter().filter(|(other, state)| *other != device && is_reserved(state)).count();
        if has >= MAX_LEASES {
            return Err(Refusal::TooMany { most: MAX_LEASES });
        }
        let state = self.state(device, now);
        state.check_turn(now, |place| place.holder.same(holder), holder)?;
        let latest = now + time.total;
        let mut lease = match state.lease.take() {
            // What the token used it now has, for longer.
            Some(lease) if lease.holder.who.id == holder.who.id && lease.reason == Reason::Used => {
                Lease { holder: holder.clone(), latest, ..lease }
            }
            Some(lease) if lease.holder.same(holder) => {
                let latest = if state.queue.is_empty() { latest.max(lease.latest) } else { lease.latest };
                Lease { latest, ..lease }
            }
            Some(lease) => {
                let place = state.enqueue(holder, now);
                state.lease = Some(lease.clone());
                return Err(Refusal::Taken { lease, place });
            }
            None => {
                let (id, holder, reason) = (new_id(), holder.clone(), Reason::Used);
                Lease { id, holder, reason, ends: now, uses: 0, unused: time.unused, latest }
            }
        };
        lease.reason = Reason::Reserved { purpose: purpose.to_owned() };
        lease.unused = time.unused.max(lease.unused);
        lease.touch(now);
        state.queue.retain(|place| !place.holder.same(holder));
        state.lease = Some(lease.clone());
        Ok(lease)
    }

    /// Whether the holder has reserved the device already.
    pub(super) fn has(&self, device: &DeviceId, holder: &Holder, now: Instant) -> bool {
        let lease = self.devices.get(device).and_then(|state| state.lease.as_ref());
        lease.is_some_and(|lease| lease.holder.same(holder) && lease.reason != Reason::Used && !lease.is_over(now))
    }

    /// Begins a call that changes something. With `keep`, a device that nobody has is the caller's for so long after
    /// the call. Gives the id of the lease that [`LeaseBook::end_use`] needs.
    pub(super) fn begin_use(
        &mut self,
        device: &DeviceId,
        user: DeviceUser<'_>,
        keep: Option<Duration>,
        new_id: impl FnOnce() -> Arc<str>,
        now: Instant,
    ) -> Result<Option<Arc<str>>, Refusal> {
        self.watched(device, |book| book.enter(device, user, keep, new_id, now))
    }

    fn enter(
        &mut self,
        device: &DeviceId,
        user: DeviceUser<'_>,
        keep: Option<Duration>,
        new_id: impl FnOnce() -> Arc<str>,
        now: Instant,
    ) -> Result<Option<Arc<str>>, Refusal> {
        self.tell_broken(|device_of, lease| device_of == device && lease.holder.is(user, &lease.id), now)?;
        self.settle(device, now);
        if keep.is_none() && !self.devices.contains_key(device) {
            return Ok(None);
        }
        let holder = Holder { who: Arc::new(user.who.clone()), run: None };
        let state = self.state(device, now);
        if let Some(lease) = &mut state.lease {
            if lease.holder.is(user, &lease.id) {
                lease.uses += 1;
                lease.touch(now);
                return Ok(Some(lease.id.clone()));
            }
            let lease = lease.clone();
            return Err(Refusal::Taken { lease, place: state.enqueue(&holder, now) });
        }
        state.check_turn(now, |place| place.holder.who.id == user.who.id, &holder)?;
        state.queue.retain(|place| place.holder.who.id != user.who.id);
        let Some(unused) = keep else { return Ok(None) };
        let id = new_id();
        let (ends, reason, latest) = (now + unused, Reason::Used, now + LONGEST_USE);
        state.lease = Some(Lease { id: id.clone(), holder, reason, ends, uses: 1, unused, latest });
        Ok(Some(id))
    }

    /// Ends a call that [`LeaseBook::begin_use`] began.
    pub(super) fn end_use(&mut self, device: &DeviceId, id: &str, now: Instant) {
        let lease = self.devices.get_mut(device).and_then(|state| state.lease.as_mut());
        if let Some(lease) = lease.filter(|lease| *lease.id == *id) {
            lease.uses = lease.uses.saturating_sub(1);
            lease.touch(now);
        }
    }

    /// Gives a device back. `false` where the caller does not have it, which is no fault.
    pub(super) fn release(&mut self, device: &DeviceId, user: DeviceUser<'_>, now: Instant) -> bool {
        self.settle(device, now);
        let Some(state) = self.devices.get_mut(device) else { return false };
        state.queue.retain(|place| place.holder.who.id != user.who.id || place.holder.run.is_some());
        let is_his = |lease: &mut Lease| lease.holder.is(user, &lease.id);
        self.changes += 1;
        if state.lease.take_if(is_his).is_none() {
            return false;
        }
        state.free = now;
        true
    }

    /// Gives up a place in the queue.
    pub(super) fn leave_queue(&mut self, device: &DeviceId, holder: &Holder) {
        if let Some(state) = self.devices.get_mut(device) {
            state.queue.retain(|place| !place.holder.same(holder));
            self.changes += 1;
        }
    }

    /// Takes a device away from whoever has it. It is then with whoever took it, for as long as after a use.
    pub(super) fn break_lease(
        &mut self,
        device: &DeviceId,
        by: &Principal,
        keep: Duration,
        id: Arc<str>,
        now: Instant,
    ) -> Option<Lease> {
        self.settle(device, now);
        let state = self.devices.get_mut(device)?;
        let (holder, reason) = (Holder { who: Arc::new(by.clone()), run: None }, Reason::Used);
        let taken = Lease { id, holder, reason, ends: now + keep, uses: 0, unused: keep, latest: now + LONGEST_USE };
        let lease = state.lease.replace(taken);
        let Some(lease) = lease else {
            state.lease = None;
            return None;
        };
        self.changes += 1;
        let (device, by) = (device.clone(), by.name.as_str().into());
        self.broken.push_back(BrokenLease { device, lease: lease.clone(), by, at: now });
        let more = self.broken.len().saturating_sub(MAX_BROKEN);
        self.broken.drain(..more);
        Some(lease)
    }

    /// Ends all leases of a token.
    pub(super) fn drop_holder(&mut self, principal: &str, now: Instant) {
        self.changes += 1;
        for state in self.devices.values_mut() {
            state.queue.retain(|place| place.holder.who.id != principal);
            if state.lease.take_if(|lease| lease.holder.who.id == principal).is_some() {
                state.free = now;
            }
        }
        self.broken.retain(|broken| broken.lease.holder.who.id != principal);
    }

    /// The lease of a device, and how many wait for it.
    pub(super) fn count(&self, now: Instant) -> usize {
        self.devices.values().filter_map(|state| state.lease.as_ref()).filter(|lease| !lease.is_over(now)).count()
    }

    pub(super) fn lease(&self, device: &DeviceId, now: Instant) -> Option<(&Lease, usize)> {
        let state = self.devices.get(device)?;
        let lease = state.lease.as_ref().filter(|lease| !lease.is_over(now))?;
        Some((lease, state.queue.iter().filter(|place| place.is_waiting(now)).count()))
    }

    /// The device that a caller has under this lease.
    pub(super) fn device_of(&self, principal: &str, id: &str, now: Instant) -> Option<&DeviceId> {
        let is_it = |lease: &Lease| *lease.id == *id && lease.holder.who.id == principal && !lease.is_over(now);
        self.devices.iter().find(|(_, state)| state.lease.as_ref().is_some_and(is_it)).map(|(device, _)| device)
    }

    /// Tells whoever asks once that its lease was broken.
    pub(super) fn tell_broken(
        &mut self,
        is_it: impl Fn(&DeviceId, &Lease) -> bool,
        now: Instant,
    ) -> Result<(), Refusal> {
        self.broken.retain(|broken| now < broken.at + TOLD_WITHIN);
        let place = self.broken.iter().position(|broken| is_it(&broken.device, &broken.lease));
        match place.and_then(|place| self.broken.remove(place)) {
            Some(broken) => Err(Refusal::Broken { device: broken.device, by: broken.by }),
            None => Ok(()),
        }
    }

    fn state(&mut self, device: &DeviceId, now: Instant) -> &mut DeviceLease {
        let free = now.checked_sub(KEPT_FREE).unwrap_or(now);
        let new = || DeviceLease { lease: None, free, queue: VecDeque::new() };
        self.devices.entry(device.clone()).or_insert_with(new)
    }

    /// Ends what is over for one device.
    fn settle(&mut self, device: &DeviceId, now: Instant) {
        if self.devices.get_mut(device).is_some_and(|state| !state.settle(now)) {
            self.devices.remove(device);
        }
    }

    fn settle_all(&mut self, now: Instant) {
        self.devices.retain(|_, state| state.settle(now));
    }
}

impl Place {
    fn is_waiting(&self, now: Instant) -> bool {
        now < self.asked + KEEPS_PLACE
    }
}

impl DeviceLease {
    /// Ends what is over. Whether anybody still has or waits for the device.
    fn settle(&mut self, now: Instant) -> bool {
        if let Some(lease) = self.lease.take_if(|lease| lease.is_over(now)) {
            self.free = lease.ends.min(lease.latest);
        }
        self.queue.retain(|place| place.is_waiting(now));
        self.lease.is_some() || !self.queue.is_empty()
    }

    /// Refuses a device that nobody has to those who are not next.
    fn check_turn(&mut self, now: Instant, is_own: impl Fn(&Place) -> bool, holder: &Holder) -> Result<(), Refusal> {
        let until = self.free + KEPT_FREE;
        let next = self.queue.front();
        if self.lease.is_some() || until <= now || next.is_none_or(is_own) {
            return Ok(());
        }
        let place = self.enqueue(holder, now);
        Err(Refusal::Kept { place, until })
    }

    /// The place of somebody who asks, from 1.
    fn enqueue(&mut self, holder: &Holder, now: Instant) -> Option<usize> {
        if let Some(place) = self.queue.iter().position(|place| place.holder.same(holder)) {
            self.queue[place].asked = now;
            return Some(place + 1);
        }
        let own = self.queue.iter().filter(|place| place.holder.who.id == holder.who.id).count();
        if self.queue.len() >= MAX_QUEUE || own >= MAX_PLACES {
            return None;
        }
        self.queue.push_back(Place { holder: holder.clone(), asked: now });
        Some(self.queue.len())
    }
}
