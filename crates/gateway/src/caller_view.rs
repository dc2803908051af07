//! The gateway as one caller sees it.

use std::sync::Arc;

use sinew_tool::{Picture, ToolError};

use crate::access::{Lens, LensKey};
use crate::device_filter::DeviceFilter;
use crate::fleet_counts::FleetCounts;
use crate::gateway::Gateway;
use crate::held::{OWN_TOPICS, TOOLS_CHANGED, WARNING};
use crate::identity::unknown_device;
use crate::instructions::instructions;
use crate::page_of::{PageOf, in_background};
use crate::seen_events;
use crate::snapshot::{DeviceEntry, Holder, Snapshot};
use crate::view::{DeviceView, EventPage, StoredEvent};

/// Devices, events and texts without those that the policy hides from the caller. What is hidden is answered like what
/// does not exist.
pub struct CallerView {
    gateway: Gateway,
    lens: Lens,
}

impl CallerView {
    pub(crate) fn new(gateway: Gateway, lens: Lens) -> CallerView {
        CallerView { gateway, lens }
    }

    /// A page of the known devices, by id; also those that are away. `after` is the `next` of the page before.
    pub async fn devices(
        self,
        wanted: DeviceFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<PageOf<DeviceView>, ToolError> {
        let after = after.unwrap_or_default().to_owned();
        in_background(move || {
            let snapshot = self.gateway.snapshot();
            wanted.find(&snapshot, &self.lens, &after, limit).map(|entry| self.view(entry))
        })
        .await
    }

    /// How many devices are in which state.
    pub fn counts(&self) -> Arc<FleetCounts> {
        self.gateway.counted_fleets().get(&self.gateway.snapshot(), self)
    }

    pub(crate) fn key(&self) -> LensKey {
        self.lens.key()
    }

    pub(crate) fn count(&self, snapshot: &Snapshot) -> FleetCounts {
        let (mut counts, now) = (FleetCounts::default(), tokio::time::Instant::now());
        for entry in self.seen(snapshot) {
            let states = counts.families.entry(entry.info.family.name.to_string()).or_default();
            *states.entry(entry.state().0).or_default() += 1;
            counts.tools += if entry.is_listed(now) { self.count_tools(entry) } else { 0 };
        }
        counts
    }

    pub fn find_device(&self, text: &str) -> Option<DeviceView> {
        self.device(text).ok()
    }

    /// A device by id or given name; where there is none, the error names those that come near.
    pub fn device(&self, text: &str) -> Result<DeviceView, ToolError> {
        self.entry(text).map(|entry| self.view(&entry))
    }

    pub fn pictures(&self, device: &str) -> Vec<Picture> {
        self.entry(device).map(|entry| self.gateway.pictures(entry.id.as_str())).unwrap_or_default()
    }

    /// Events after a cursor, oldest first.
    pub async fn events(
        &self,
        device: Option<&str>,
        since: Option<&str>,
        limit: usize,
    ) -> Result<EventPage, ToolError> {
        let entry = device.map(|text| self.entry(text)).transpose()?;
        let device = entry.as_ref().map(|entry| entry.id.as_str());
        if self.lens.knows_all() {
            return self.gateway.events(device, since, limit).await;
        }
        let snapshot = self.gateway.snapshot();
        let is_seen = |event: &StoredEvent| {
            ![TOOLS_CHANGED, WARNING].contains(&event.topic.as_str())
                && snapshot.entry(&event.device).is_some_and(|entry| self.lens.sees_device(entry))
        };
        let mut page = seen_events::page(&self.gateway, device, since, limit, is_seen).await?;
        // How many tools a device has, with those that are hidden.
        let own = page.events.iter_mut().filter(|event| event.topic.starts_with(OWN_TOPICS));
        own.filter_map(|event| event.body.as_object_mut()).for_each(|body| drop(body.shift_remove("tools")));
        Ok(page)
    }

    /// What a model should know before it calls anything.
    pub fn instructions(&self) -> String {
        let snapshot = self.gateway.snapshot();
        let seen: Vec<&Arc<DeviceEntry>> = self.seen(&snapshot).collect();
        instructions(&seen)
    }

    fn seen<'a>(&'a self, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a Arc<DeviceEntry>> {
        snapshot.devices.iter().filter(|entry| self.lens.sees_device(entry))
    }

    fn entry(&self, text: &str) -> Result<Arc<DeviceEntry>, ToolError> {
        let snapshot = self.gateway.snapshot();
        let found = snapshot.entry(text).filter(|entry| self.lens.sees_device(entry)).cloned();
        found.ok_or_else(|| unknown_device(text, self.seen(&snapshot)))
    }

    /// Without what would name tools that the caller does not see.
    pub(crate) fn view(&self, entry: &Arc<DeviceEntry>) -> DeviceView {
        let mut view = entry.view();
        view.lease = self.gateway.lease(&entry.id);
        let tools = self.count_tools(entry).min(view.tools);
        if !self.lens.is_admin() {
            // Of files that only whoever runs the gateway can change.
            view.attributes.remove("problems");
            // Another model's words.
            view.lease.iter_mut().for_each(|lease| lease.purpose = None);
        }
        if self.lens.knows_all() {
            return DeviceView { tools, ..view };
        }
        let remedy = view.remedy.filter(|_| entry.held.is_none() && entry.withdrawn.is_empty());
        let withdrawn = Default::default();
        DeviceView { tools, remedy, quarantined: 0, withdrawn, warnings: Vec::new(), ..view }
    }

    fn count_tools(&self, entry: &Arc<DeviceEntry>) -> usize {
        let tools = &entry.offer.tools;
        if self.lens.hides_nothing() {
            return tools.len();
        }
        tools.iter().filter(|offered| self.lens.sees(Holder { entry, offered })).count()
    }
}
