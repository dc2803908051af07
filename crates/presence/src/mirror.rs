//! The entries of all devices, as far as this node knows them. A million of them must fit.

use std::collections::BTreeMap;

use crate::records::{DeviceHash, Owner, Revision, Term};

/// One entry. A tree of these is smaller than a hash table, which is half empty after it grew.
#[derive(Clone, Debug)]
pub(crate) struct Mirrored<B> {
    pub(crate) revision: Revision,
    pub(crate) held: Option<(OwnerIndex, B)>,
}

/// A place in [`Owners`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OwnerIndex(u32);

/// Everybody who ever wrote an entry, in each of its terms, so that entries need not repeat it.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    all: Vec<Place>,
    places: BTreeMap<(Owner, Term), OwnerIndex>,
}

#[derive(Debug)]
struct Place {
    owner: Owner,
    term: Term,
    is_alive: bool,
}

impl Owners {
    pub(crate) fn place(&mut self, owner: &Owner, term: Term) -> OwnerIndex {
        if let Some(place) = self.places.get(&(owner.clone(), term)) {
            return *place;
        }
        let is_alive = self.of(owner).next().is_some_and(|place| self.is_alive(place));
        // More owners than this have no place in memory either.
        let place = OwnerIndex(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        self.all.push(Place { owner: owner.clone(), term, is_alive });
        self.places.insert((owner.clone(), term), place);
        place
    }

    /// The places of all terms of an owner.
    fn of(&self, owner: &Owner) -> impl Iterator<Item = OwnerIndex> + use<'_> {
        let all = (owner.clone(), Term::default())..=(owner.clone(), Revision(u64::MAX));
        self.places.range(all).map(|(_, place)| *place)
    }

    pub(crate) fn owner(&self, place: OwnerIndex) -> &Owner {
        &self.all[place.0 as usize].owner
    }

    pub(crate) fn term(&self, place: OwnerIndex) -> Term {
        self.all[place.0 as usize].term
    }

    pub(crate) fn is_alive(&self, place: OwnerIndex) -> bool {
        self.all[place.0 as usize].is_alive
    }

    /// Returns the places for which that is a change.
    pub(crate) fn set_alive(&mut self, owner: &Owner, is_alive: bool) -> Vec<OwnerIndex> {
        self.place(owner, Term::default());
        let mut changed: Vec<OwnerIndex> = self.of(owner).collect();
        changed.retain(|place| std::mem::replace(&mut self.all[place.0 as usize].is_alive, is_alive) != is_alive);
        changed
    }
}

pub(crate) type Mirror<B> = BTreeMap<DeviceHash, Mirrored<B>>;
