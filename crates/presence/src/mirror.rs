//! The entries of all devices, as far as this node knows them. A million of them must fit.

use std::collections::BTreeMap;

use crate::records::{DeviceHash, Owner, Revision};

/// One entry. A tree of these is smaller than a hash table, which is half empty after it grew.
#[derive(Clone, Debug)]
pub(crate) struct Mirrored<B> {
    pub(crate) revision: Revision,
    pub(crate) held: Option<(OwnerIndex, B)>,
}

/// A place in [`Owners`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OwnerIndex(u32);

/// Everybody who ever wrote an entry, so that entries need not repeat it.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    all: Vec<(Owner, bool)>,
    places: BTreeMap<Owner, OwnerIndex>,
}

impl Owners {
    pub(crate) fn place(&mut self, owner: &Owner) -> OwnerIndex {
        if let Some(place) = self.places.get(owner) {
            return *place;
        }
        // More owners than this have no place in memory either.
        let place = OwnerIndex(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        self.all.push((owner.clone(), false));
        self.places.insert(owner.clone(), place);
        place
    }

    pub(crate) fn owner(&self, place: OwnerIndex) -> &Owner {
        &self.all[place.0 as usize].0
    }

    pub(crate) fn is_alive(&self, place: OwnerIndex) -> bool {
        self.all[place.0 as usize].1
    }

    /// Returns whether that is a change.
    pub(crate) fn set_alive(&mut self, place: OwnerIndex, is_alive: bool) -> bool {
        std::mem::replace(&mut self.all[place.0 as usize].1, is_alive) != is_alive
    }
}

pub(crate) type Mirror<B> = BTreeMap<DeviceHash, Mirrored<B>>;
