//! Which text of a tool stands under its public name.
//!
//! Several devices may have a tool of the same name with the same input schema and describe it differently. The public
//! name belongs to the first description; devices with another one get a name of their own until no known device has the
//! first any more, or until a person pins one of them. So nobody rewrites what a model reads about another's tool.

use std::collections::HashMap;
use std::sync::Arc;

use sinew_tool::Digest;

use super::writer::RegistryWriter;
use crate::offer::{Offer, Offered};
use crate::snapshot::DeviceEntry;

/// How many known devices have each description of a tool, by the tool's public name.
#[derive(Default)]
pub(super) struct Faces {
    holders: HashMap<Arc<str>, Vec<FaceHolders>>,
}

/// The devices with one description; in the order in which descriptions became known.
struct FaceHolders {
    face: Digest,
    known: usize,
    pinned: usize,
}

impl Faces {
    fn add(&mut self, entry: &DeviceEntry) {
        for offered in &entry.offer.tools {
            let faces = self.holders.entry(offered.public.clone()).or_default();
            let place = faces.iter().position(|holders| holders.face == offered.face).unwrap_or_else(|| {
                faces.push(FaceHolders { face: offered.face, known: 0, pinned: 0 });
                faces.len() - 1
            });
            faces[place].known += 1;
            faces[place].pinned += usize::from(entry.pinned);
        }
    }

    fn remove(&mut self, entry: &DeviceEntry) {
        for offered in &entry.offer.tools {
            let Some(faces) = self.holders.get_mut(&offered.public) else { continue };
            for holders in faces.iter_mut().filter(|holders| holders.face == offered.face) {
                holders.known = holders.known.saturating_sub(1);
                holders.pinned = holders.pinned.saturating_sub(usize::from(entry.pinned));
            }
            faces.retain(|holders| holders.known > 0);
            if faces.is_empty() {
                self.holders.remove(&offered.public);
            }
        }
    }

    /// The description that the public name of a tool stands for from here on; `None` where nobody has the tool.
    fn choose(&self, public: &str, present: Option<Digest>) -> Option<Digest> {
        let faces = self.holders.get(public)?;
        let pinned = faces.iter().find(|holders| holders.pinned > 0);
        let kept = faces.iter().find(|holders| Some(holders.face) == present);
        match (kept, pinned) {
            (Some(kept), Some(_)) if kept.pinned > 0 => Some(kept.face),
            (_, Some(pinned)) => Some(pinned.face),
            (Some(kept), None) => Some(kept.face),
            (None, None) => faces.first().map(|holders| holders.face),
        }
    }
}

impl RegistryWriter {
    /// Puts an entry in the place of the one the device had.
    pub(super) fn insert(&mut self, entry: DeviceEntry) {
        let entry = Arc::new(entry);
        let before = self.devices.insert(entry.id.clone(), entry.clone());
        let is_same =
            |before: &Arc<DeviceEntry>| Arc::ptr_eq(&before.offer, &entry.offer) && before.pinned == entry.pinned;
        if before.as_ref().is_some_and(is_same) {
            return;
        }
        // Added first, so that a description that stays keeps its place.
        self.faces.add(&entry);
        if let Some(before) = &before {
            self.faces.remove(before);
        }
        self.settle(before.iter().chain([&entry]).map(|entry| entry.offer.clone()).collect());
    }

    /// Removes the entry of a device that is forgotten.
    pub(super) fn remove(&mut self, entry: &Arc<DeviceEntry>) {
        if self.devices.remove(&entry.id).is_some() {
            self.faces.remove(entry);
            self.settle(vec![entry.offer.clone()]);
        }
    }

    /// Like [`RegistryWriter::insert`] while the state is read: only when all devices are there it is known who has what.
    pub(super) fn insert_restored(&mut self, entry: DeviceEntry) {
        self.faces.add(&entry);
        self.devices.insert(entry.id.clone(), Arc::new(entry));
    }

    pub(super) fn settle_all(&mut self) {
        let mut offers: Vec<Arc<Offer>> = self.devices.values().map(|entry| entry.offer.clone()).collect();
        offers.sort_by_key(Arc::as_ptr);
        offers.dedup_by_key(|offer| Arc::as_ptr(offer));
        self.settle(offers);
    }

    /// Gives the public names of these tools to the description that they stand for now.
    fn settle(&mut self, offers: Vec<Arc<Offer>>) {
        let mut changes = Vec::new();
        for offered in offers.iter().flat_map(|offer| &offer.tools) {
            let present = self.offers.names.face(&offered.public);
            let next = self.faces.choose(&offered.public, present);
            if let Some(next) = next.filter(|next| Some(*next) != present) {
                self.offers.names.set_face(&offered.tool.name, offered.digest, next, &mut changes);
            }
        }
        self.offers.keep(changes);
    }

    /// The tools of a device that are listed under a name of their own, because others had the tool first.
    pub(super) fn set_apart(&self, offer: &Offer) -> Option<String> {
        let is_apart = |offered: &&Offered| !self.offers.names.is_primary(offered);
        let apart: Vec<&Offered> = offer.tools.iter().filter(is_apart).collect();
        let first = apart.first()?;
        let more = if apart.len() > 1 { format!(", and {} more tools", apart.len() - 1) } else { String::new() };
        Some(format!(
            "tool `{}` has the name and arguments of another device's tool and describes itself differently, so it is \
             listed as `{}`{more}; pin this device if its description is the right one",
            sinew_tool::text::clean_line(&first.tool.name, 64),
            crate::names::apart(first),
        ))
    }
}
