//! Admission: what a device offers, named and shared.
//!
//! Equal toolsets are one [`Offer`], however many devices bring them.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use serde_json::{Value, json};
use sinew_tool::{Audience, DeviceKey, Digest, Tool, Toolset};

use crate::names::{NameBook, NameChange};
use crate::prepare::{PreparedTool, PreparedToolset, forget_the_dead};

/// Warnings kept of one toolset; the rest would say the same.
const MAX_WARNINGS: usize = 20;

/// A toolset, ready to be listed and called.
pub(crate) struct Offer {
    /// All tools of the device, also those that are not offered.
    pub prepared: Arc<PreparedToolset>,
    /// Equal digests, equal offers.
    pub digest: Digest,
    pub tools: Vec<Offered>,
    /// What is wrong with the toolset, for people.
    pub warnings: Vec<String>,
}

/// A tool under its public names.
pub(crate) struct Offered {
    /// The name in the folded form.
    pub public: Arc<str>,
    /// The tool's part of the name in the unfolded form.
    pub word: Arc<str>,
    pub ready: Arc<PreparedTool>,
}

impl Deref for Offered {
    type Target = PreparedTool;

    fn deref(&self) -> &PreparedTool {
        &self.ready
    }
}

impl Offered {
    pub(crate) fn is_seen(&self, sees_user_tools: bool) -> bool {
        sees_user_tools || self.tool.audience == Audience::Everyone
    }
}

impl Offer {
    /// A tool by the device's own name for it, or else by its public one.
    pub(crate) fn find(&self, name: &str) -> Option<&Offered> {
        let own = self.tools.iter().find(|offered| offered.tool.name == name);
        own.or_else(|| self.find_public(name))
    }

    pub(crate) fn find_public(&self, name: &str) -> Option<&Offered> {
        self.tools.iter().find(|offered| *offered.public == *name)
    }
}

/// What admission brought, besides the offer itself.
#[derive(Default)]
pub(crate) struct OfferNotes {
    /// The toolset was not known before.
    pub is_new: bool,
    pub names: Vec<NameChange>,
    pub warnings: Vec<String>,
}

/// All offers alive, and the name book they are named from.
pub(crate) struct Offers {
    pub names: NameBook,
    known: HashMap<Digest, Weak<Offer>>,
}

impl Offers {
    pub(crate) fn new(names: NameBook) -> Offers {
        Offers { names, known: HashMap::new() }
    }

    /// Names the tools of a device, without those that are left out. New names count for the owner.
    pub(crate) fn admit(
        &mut self,
        owner: &DeviceKey,
        prepared: &Arc<PreparedToolset>,
        is_out: impl Fn(&str) -> bool,
    ) -> (Arc<Offer>, OfferNotes) {
        let out: Vec<&str> =
            prepared.ready.iter().map(|ready| ready.tool.name.as_str()).filter(|name| is_out(name)).collect();
        let digest = match out.as_slice() {
            [] => prepared.toolset.digest(),
            out => Digest::of(&json!([prepared.toolset.digest().hex(), out])),
        };
        if let Some(offer) = self.known.get(&digest).and_then(Weak::upgrade) {
            return (offer, OfferNotes::default());
        }
        let mut notes = OfferNotes { is_new: true, warnings: prepared.warnings.clone(), ..OfferNotes::default() };
        let mut tools = Vec::with_capacity(prepared.ready.len());
        let mut long_names = 0;
        for ready in prepared.ready.iter().filter(|ready| !out.contains(&ready.tool.name.as_str())) {
            let public = self.names.public(owner, &ready.tool.name, ready.digest, &mut notes.names);
            let word = self.names.word(owner, &ready.tool.name, &mut notes.names);
            long_names += usize::from(public.is_computed || word.is_computed);
            tools.push(Offered { public: public.name, word: word.name, ready: ready.clone() });
        }
        if long_names > 0 {
            let owned = self.names.owned_by(owner);
            let text = format!(
                "{long_names} tools have long public names: it has had {owned} different tools, which is its quota of \
                 names, or all names are in use; `sinew devices forget` gives the names of a device back"
            );
            notes.warnings.insert(0, text);
        }
        notes.warnings.truncate(MAX_WARNINGS);
        let warnings = notes.warnings.clone();
        let offer = Arc::new(Offer { prepared: prepared.clone(), digest, tools, warnings });
        forget_the_dead(&mut self.known);
        self.known.insert(digest, Arc::downgrade(&offer));
        (offer, notes)
    }

    /// Forgets an offer that no device has any more, so that whoever brings it next owns its names.
    pub(crate) fn forget(&mut self, offer: &Offer) {
        self.known.remove(&offer.digest);
    }
}

/// The toolset as the store keeps it; `None` where it is too large to be worth it.
pub(crate) fn to_text(toolset: &Toolset) -> Option<String> {
    let entries: Vec<Value> = toolset.iter().map(Tool::to_record).collect();
    serde_json::to_string(&entries).ok().filter(|text| text.len() <= 1 << 20)
}
