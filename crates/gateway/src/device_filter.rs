//! Which devices a list is asked for.

use std::sync::Arc;

use sinew_tool::{ErrorKind, Status, ToolError, json};

use crate::access::Lens;
use crate::labels::Label;
use crate::page_of::{PageOf, search_words};
use crate::snapshot::{DeviceEntry, Presence, Snapshot};

/// Which devices are asked for; all by default.
#[derive(Clone, Debug, Default)]
pub struct DeviceFilter {
    /// All must occur in its texts, in lower case.
    words: Vec<String>,
    state: Option<StateFilter>,
    family: Option<String>,
    label: Option<Label>,
    /// Ids or names, where not all are asked for.
    devices: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StateFilter {
    Ready,
    Away,
    /// It is connected and cannot be used.
    Other,
}

impl DeviceFilter {
    /// What `state` may be.
    pub(crate) const STATES: [&str; 3] = ["ready", "away", "other"];

    /// Reads the texts `search`, `state`, `family` and `label`.
    pub fn read<'a>(text: impl Fn(&str) -> Option<&'a str>) -> Result<DeviceFilter, ToolError> {
        let state = match text("state") {
            None => None,
            Some("ready") => Some(StateFilter::Ready),
            Some("away") => Some(StateFilter::Away),
            Some("other") => Some(StateFilter::Other),
            Some(_) => {
                let issue = "must be `ready`, `away` or `other`";
                return Err(ToolError::new(ErrorKind::InvalidArguments, format!("`state` {issue}"))
                    .with_details(json!({"parameter_name": "state", "issue": issue})));
            }
        };
        Ok(DeviceFilter {
            words: search_words(text("search"))?,
            state,
            family: text("family").map(str::to_owned),
            label: text("label").map(Label::parse).transpose()?,
            devices: Vec::new(),
        })
    }

    /// Only these, by id or name; those that do not exist are left out. None means all.
    #[must_use]
    pub fn among(self, devices: Vec<String>) -> DeviceFilter {
        DeviceFilter { devices, ..self }
    }

    /// The entries of a page, by id.
    pub(crate) fn find<'s>(
        &'s self,
        snapshot: &'s Snapshot,
        lens: &Lens,
        after: &str,
        limit: usize,
    ) -> PageOf<&'s Arc<DeviceEntry>> {
        let mut texts = String::new();
        let fitting = self.candidates(snapshot).filter(|entry| lens.sees_device(entry) && self.has(entry, &mut texts));
        PageOf::collect(fitting, |entry| entry.id.as_str() > after, limit, |entry| entry.id.to_string())
    }

    fn candidates<'s>(&'s self, snapshot: &'s Snapshot) -> Box<dyn Iterator<Item = &'s Arc<DeviceEntry>> + 's> {
        if self.devices.is_empty() {
            return Box::new(snapshot.devices.iter());
        }
        let mut named: Vec<_> = self.devices.iter().filter_map(|text| snapshot.entry(text)).collect();
        named.sort_by(|one, other| one.id.as_str().cmp(other.id.as_str()));
        named.dedup_by(|one, other| one.id == other.id);
        Box::new(named.into_iter())
    }

    /// `texts` is filled for one device after another, so that a search allocates little.
    fn has(&self, entry: &DeviceEntry, texts: &mut String) -> bool {
        self.state.is_none_or(|wanted| wanted == StateFilter::of(entry))
            && self.family.as_deref().is_none_or(|wanted| wanted == entry.info.family.name.as_str())
            && self.label.as_ref().is_none_or(|wanted| entry.labels.contains(wanted))
            && (self.words.is_empty() || self.has_words(entry, texts))
    }

    fn has_words(&self, entry: &DeviceEntry, texts: &mut String) -> bool {
        texts.clear();
        let mut add = |text: &str| {
            texts.extend(text.chars().flat_map(char::to_lowercase));
            // No word has one.
            texts.push('\n');
        };
        add(entry.id.as_str());
        add(entry.name.as_deref().unwrap_or_default());
        add(&entry.kind());
        add(&entry.info.key.0);
        entry.labels.iter().for_each(|label| add(label.as_str()));
        self.words.iter().all(|word| texts.contains(word))
    }
}

impl StateFilter {
    fn of(entry: &DeviceEntry) -> StateFilter {
        match (&entry.presence, &entry.info.status) {
            (Presence::Away(_), _) => StateFilter::Away,
            (Presence::Here(_), Status::Ready) => StateFilter::Ready,
            (Presence::Here(_), Status::Limited { .. }) => StateFilter::Other,
        }
    }
}
