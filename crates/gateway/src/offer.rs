//! Admission: what a device offers, named and shared.
//!
//! Equal toolsets are one [`Offer`], however many devices bring them.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use serde_json::{Value, json};
use sinew_tool::{Audience, DeviceKey, Digest, Effect, Tool, Toolset};

use crate::names::{self, NameBook};
use crate::prepare::{PreparedTool, PreparedToolset, forget_the_dead};
use crate::settings::Settings;
use crate::shared::{NameChange, NameClaims};

/// Warnings kept of one toolset; the rest would say the same.
const MAX_WARNINGS: usize = 20;

/// Attempts to claim names that other gateways claim at the same time.
const MAX_CLAIMS: usize = 8;

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
    /// Whether models see it, and not only administrators.
    is_for_models: bool,
}

impl Deref for Offered {
    type Target = PreparedTool;

    fn deref(&self) -> &PreparedTool {
        &self.ready
    }
}

impl Offered {
    pub(crate) fn is_seen(&self, sees_user_tools: bool) -> bool {
        sees_user_tools || self.is_for_models
    }
}

impl Offer {
    /// A tool by the device's own name for it, or else by its public one.
    pub(crate) fn find(&self, name: &str) -> Option<&Offered> {
        let own = self.tools.iter().find(|offered| offered.tool.name == name);
        let public = || self.tools.iter().find(|offered| *offered.public == *name);
        own.or_else(public).or_else(|| self.tools.iter().find(|offered| *names::apart(offered) == *name))
    }
}

/// Which tools that are meant for users only are shown to models.
#[derive(Clone, Default)]
pub(crate) struct UserTools {
    is_shown: bool,
    /// Those that can do harm and are shown all the same.
    harmful: Vec<String>,
}

impl UserTools {
    pub(crate) fn new(settings: &Settings) -> UserTools {
        UserTools { is_shown: settings.user_tools, harmful: settings.harmful_user_tools.clone() }
    }

    fn shows(&self, tool: &Tool) -> bool {
        let is_harmful = tool.effect == Some(Effect::Danger) || tool.hints.destructive == Some(true);
        match tool.audience {
            Audience::Everyone => true,
            Audience::User => self.is_shown && (!is_harmful || self.harmful.contains(&tool.name)),
        }
    }
}

/// What admission brought, besides the offer itself.
#[derive(Default)]
pub(crate) struct OfferNotes {
    /// The toolset was not known before.
    pub is_new: bool,
    pub warnings: Vec<String>,
}

/// All offers alive, and the name book they are named from.
pub(crate) struct Offers {
    pub names: NameBook,
    claims: Arc<dyn NameClaims>,
    user_tools: UserTools,
    known: HashMap<Digest, Weak<Offer>>,
}

impl Offers {
    pub(crate) fn new(names: NameBook, claims: Arc<dyn NameClaims>, user_tools: UserTools) -> Offers {
        Offers { names, claims, user_tools, known: HashMap::new() }
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
        let mut notes = OfferNotes { is_new: true, warnings: prepared.warnings.clone() };
        let ready: Vec<_> = prepared.ready.iter().filter(|ready| !out.contains(&ready.tool.name.as_str())).collect();
        let (tools, long_names) = self.name(owner, &ready);
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

    /// Gives tools their public names, which are kept before anybody sees them. Also says how many names are computed.
    fn name(&mut self, owner: &DeviceKey, ready: &[&Arc<PreparedTool>]) -> (Vec<Offered>, usize) {
        for _ in 0..MAX_CLAIMS {
            let (tools, computed, changes) = self.look_up(owner, ready);
            if !self.keep(changes) {
                return (tools, computed);
            }
        }
        let (tools, computed, _) = self.look_up(owner, ready);
        (tools, computed)
    }

    fn look_up(&mut self, owner: &DeviceKey, ready: &[&Arc<PreparedTool>]) -> (Vec<Offered>, usize, Vec<NameChange>) {
        let (mut tools, mut computed, mut changes) = (Vec::with_capacity(ready.len()), 0, Vec::new());
        for ready in ready {
            let public = self.names.public(owner, &ready.tool.name, ready.digest, &mut changes);
            let word = self.names.word(owner, &ready.tool.name, &mut changes);
            computed += usize::from(public.is_computed || word.is_computed);
            let is_for_models = self.user_tools.shows(&ready.tool);
            tools.push(Offered { public: public.name, word: word.name, ready: (*ready).clone(), is_for_models });
        }
        (tools, computed, changes)
    }

    /// Keeps changes of the names. `true` where another gateway was first, so that names have to be looked up again.
    pub(crate) fn keep(&mut self, changes: Vec<NameChange>) -> bool {
        if changes.is_empty() {
            return false;
        }
        let claimed = self.claims.keep(changes).unwrap_or_else(|error| {
            tracing::warn!("the names of new tools could not be kept: {error}");
            Vec::new()
        });
        let is_late = !claimed.is_empty();
        claimed.into_iter().for_each(|claim| self.names.adopt(claim));
        is_late
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
