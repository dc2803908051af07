//! Events, in the store of this gateway.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use sinew_tool::{BoxFuture, DeviceId, ErrorKind, Notice, ToolError};
use tokio::sync::broadcast;

use super::{Cursor, EventRow, PendingEvent, Store};
use crate::registry::now;
use crate::shared::EventLog;
use crate::view::EventPage;

/// Events of one device that may wait for the store; a flood beyond it is counted, not kept.
const MAX_WAITING_EVENTS: u32 = 256;
/// The longest body of an event that is kept.
const MAX_EVENT_BODY: usize = 16 << 10;

pub(crate) struct LocalEvents {
    store: Arc<Store>,
    signals: broadcast::Sender<DeviceId>,
    counts: Mutex<EventCounts>,
    /// Events that were dropped since the gateway started.
    dropped: AtomicU64,
}

struct EventCounts {
    /// The number of the last event.
    seq: u64,
    devices: HashMap<DeviceId, DeviceCount>,
}

#[derive(Default)]
struct DeviceCount {
    /// The number of the device's last event.
    nth: u64,
    waiting: Arc<AtomicU32>,
}

impl LocalEvents {
    /// Continues after the event with the number `seq`; `nths` has the number of each device's last event.
    pub(crate) fn new(
        store: Arc<Store>,
        signals: broadcast::Sender<DeviceId>,
        seq: u64,
        nths: HashMap<String, u64>,
    ) -> LocalEvents {
        let count = |(id, nth): (String, u64)| Some((DeviceId::parse(&id)?, DeviceCount { nth, ..Default::default() }));
        let devices = nths.into_iter().filter_map(count).collect();
        LocalEvents { store, signals, counts: Mutex::new(EventCounts { seq, devices }), dropped: AtomicU64::new(0) }
    }

    fn counts(&self) -> MutexGuard<'_, EventCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cursor(&self, text: &str) -> Result<Cursor, ToolError> {
        let cursor = text.parse::<Cursor>().ok().filter(|cursor| cursor.seq <= self.counts().seq);
        cursor.ok_or_else(|| {
            let message =
                "the cursor was not given out by this gateway; start without one, and continue with `next` of each answer";
            ToolError::new(ErrorKind::BadCursor, message)
        })
    }
}

impl EventLog for LocalEvents {
    fn add(&self, device: &DeviceId, notice: Notice) {
        let body = serde_json::to_string(&notice.body).unwrap_or_default();
        let body = match body.len() {
            0..=MAX_EVENT_BODY => body,
            length => json!({"too_large": length}).to_string(),
        };
        // The store gets the events in the order of their numbers.
        let mut counts = self.counts();
        counts.seq += 1;
        let seq = counts.seq;
        let count = counts.devices.entry(device.clone()).or_default();
        count.nth += 1;
        // The numbers are used up whether or not the event is kept: a reader sees the gap.
        let Some(pending) = PendingEvent::enter(&count.waiting, MAX_WAITING_EVENTS) else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let (nth, at, device) = (count.nth, now(), device.clone());
        if !self.store.event(EventRow { seq, nth, at, device, topic: notice.topic, body, _pending: pending }) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn skip(&self, device: &DeviceId, number: u64) {
        self.dropped.fetch_add(number, Ordering::Relaxed);
        let mut counts = self.counts();
        counts.seq += number;
        counts.devices.entry(device.clone()).or_default().nth += number;
    }

    fn forget(&self, device: &DeviceId) {
        self.counts().devices.remove(device);
        self.store.forget_events(device.clone());
    }

    fn page(
        &self,
        device: Option<DeviceId>,
        since: Option<String>,
        limit: usize,
    ) -> BoxFuture<'_, Result<EventPage, ToolError>> {
        Box::pin(async move {
            let since = since.map(|text| self.cursor(&text)).transpose()?;
            self.store.events(device, since, limit).await
        })
    }

    fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn subscribe(&self) -> broadcast::Receiver<DeviceId> {
        self.signals.subscribe()
    }
}
