//! The tool list a client sees, as a view of the snapshot.
//!
//! Folded: tools with the same name and input schema are one public tool, whoever has them, with an
//! argument that selects the device. Unfolded: one tool per device and tool.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use sinew_tool::{Digest, Tool};

use crate::access::Lens;
use crate::builtin;
use crate::label_call;
use crate::names::{self, NameBook};
use crate::offer::{Offer, Offered};
use crate::prepare::ExactSchemas;
use crate::schema;
use crate::snapshot::{Holder, OfferGroup, Snapshot};
use crate::view::{PublicTool, ToolList};

/// The folded form; listed by snapshots while the same offers are listed in the same order.
pub(crate) struct Fold {
    offers: Vec<ListedOffer>,
    by_public: BTreeMap<Arc<str>, Vec<Variant>>,
    /// Of the name book: what the public names stand for.
    names: u64,
    /// Without and with the tools meant for people.
    lists: [OnceLock<Arc<ToolList>>; 2],
}

/// What devices offer that have the same tools.
struct ListedOffer {
    offer: Arc<Offer>,
    /// Whether any of the devices is listed, and whether any has a label.
    is_listed: bool,
    is_labelled: bool,
}

impl ListedOffer {
    fn of(group: &OfferGroup) -> ListedOffer {
        ListedOffer { offer: group.offer.clone(), is_listed: !group.listed.is_empty(), is_labelled: group.labelled }
    }

    fn is_of(&self, group: &OfferGroup) -> bool {
        Arc::ptr_eq(&self.offer, &group.offer)
            && self.is_listed != group.listed.is_empty()
            && self.is_labelled == group.labelled
    }
}

/// A tool of an offer; the devices that have it are the group's.
#[derive(Clone, Copy)]
pub(crate) struct Variant {
    pub group: usize,
    pub tool: usize,
}

impl Fold {
    pub(crate) fn new(groups: &[OfferGroup], names: &NameBook) -> Fold {
        let offers: Vec<ListedOffer> = groups.iter().map(ListedOffer::of).collect();
        let mut by_public: BTreeMap<Arc<str>, Vec<Variant>> = BTreeMap::new();
        for (group, listed) in offers.iter().enumerate() {
            for (tool, offered) in listed.offer.tools.iter().enumerate() {
                let public = if names.is_primary(offered) { offered.public.clone() } else { names::apart(offered) };
                by_public.entry(public).or_default().push(Variant { group, tool });
            }
        }
        Fold { offers, by_public, names: names.version, lists: Default::default() }
    }

    pub(crate) fn is_of(&self, groups: &[OfferGroup], names: &NameBook) -> bool {
        self.names == names.version
            && self.offers.len() == groups.len()
            && self.offers.iter().zip(groups).all(|(listed, group)| listed.is_of(group))
    }

    pub(crate) fn variants(&self, public: &str) -> &[Variant] {
        self.by_public.get(public).map_or(&[], Vec::as_slice)
    }

    /// Whether the tools for specifications are wanted is the same throughout a gateway's life.
    pub(crate) fn list(&self, sees_user_tools: bool, spec_tools: bool) -> Arc<ToolList> {
        let list = self.lists[usize::from(sees_user_tools)].get_or_init(|| {
            // All variants of a name have the same description.
            let first = |(public, variants): (&Arc<str>, &Vec<Variant>)| {
                let shown = variants.iter().find_map(|variant| {
                    let ListedOffer { offer, is_listed, .. } = &self.offers[variant.group];
                    Some(&offer.tools[variant.tool]).filter(|offered| *is_listed && offered.is_seen(sees_user_tools))
                })?;
                let is_labelled = variants.iter().any(|variant| self.offers[variant.group].is_labelled);
                Some(folded(public, shown, is_labelled))
            };
            Arc::new(finish(self.by_public.iter().filter_map(first).collect(), spec_tools))
        });
        list.clone()
    }

    /// The tools of devices that the caller sees.
    pub(crate) fn seen_list(&self, snapshot: &Snapshot, lens: &Lens, spec_tools: bool) -> ToolList {
        let seen = |public: &Arc<str>| {
            let (listed, _) = snapshot.holders(public, lens);
            let first = listed.first()?;
            Some(folded(public, first.offered, listed.iter().any(|holder| !holder.entry.labels.is_empty())))
        };
        finish(self.by_public.keys().filter_map(seen).collect(), spec_tools)
    }
}

fn finish(mut tools: Vec<PublicTool>, spec_tools: bool) -> ToolList {
    tools.extend(builtin::tools(spec_tools));
    tools.sort_by(|one, two| one.name.cmp(&two.name));
    let listed = |public: &PublicTool| {
        let ExactSchemas { input, output } = &public.exact;
        json!([public.tool.to_json(), input.as_deref(), output.as_deref()])
    };
    let digest = Digest::of(&tools.iter().map(listed).collect());
    ToolList { tools, digest }
}

fn folded(public: &str, offered: &Offered, is_labelled: bool) -> PublicTool {
    let mut output_schema = offered.tool.output_schema.clone();
    let mut exact = offered.exact.clone();
    if is_labelled {
        output_schema = output_schema.as_ref().map(label_call::output_schema);
        exact.output = exact.output.as_ref().map(label_call::output_schema);
    }
    let input_schema = Arc::new(schema::with_selector(&offered.tool.input_schema, &offered.selector));
    let written = exact.input.as_ref().unwrap_or(&offered.tool.input_schema);
    let exact_input = schema::exact_with_selector(written, &offered.selector);
    exact.input = (exact_input != *input_schema).then(|| Arc::new(exact_input));
    PublicTool {
        name: public.to_owned(),
        tool: Tool { name: public.to_owned(), input_schema, output_schema, ..offered.tool.clone() },
        exact,
        own_name: offered.tool.name.clone(),
        device: None,
        selector: Some(offered.selector.clone()),
    }
}

/// The unfolded form; made for those who ask for it.
pub(crate) struct Unfold {
    /// Places of the device in the snapshot and of the tool in its offer.
    by_public: HashMap<String, (u32, u32)>,
    /// Unfolded names of earlier versions, where they differ.
    by_earlier: HashMap<String, (u32, u32)>,
    lists: [OnceLock<Arc<ToolList>>; 2],
}

impl Unfold {
    pub(crate) fn new(snapshot: &Snapshot) -> Unfold {
        let (mut by_public, mut by_earlier) = (HashMap::new(), HashMap::new());
        for (device, entry) in snapshot.devices.iter().enumerate() {
            for (tool, offered) in entry.offer.tools.iter().enumerate() {
                let name = names::unfolded(&entry.id, &offered.word);
                let position = (device as u32, tool as u32);
                by_public.entry(name).or_insert(position);
                if let Some(earlier) = names::earlier_unfolded(&entry.id, &offered.word) {
                    by_earlier.entry(earlier).or_insert(position);
                }
            }
        }
        Unfold { by_public, by_earlier, lists: Default::default() }
    }

    pub(crate) fn find(&self, public: &str) -> Option<(usize, usize)> {
        let position = self.by_public.get(public).or_else(|| self.by_earlier.get(public));
        position.map(|(device, tool)| (*device as usize, *tool as usize))
    }

    pub(crate) fn list(&self, snapshot: &Snapshot, sees_user_tools: bool, spec_tools: bool) -> Arc<ToolList> {
        let list = self.lists[usize::from(sees_user_tools)].get_or_init(|| {
            let listed: HashMap<u32, String> = snapshot
                .groups
                .iter()
                .flat_map(|group| {
                    let digest = group.offer.digest.hex();
                    group.listed.iter().map(move |place| (*place, digest.clone()))
                })
                .collect();
            let mut tools: Vec<PublicTool> = builtin::tools(spec_tools);
            // The offer's digest stands for its tools: thousands of schemas need not be hashed again.
            let mut marks: Vec<Value> = Vec::new();
            let mut names: Vec<_> = self.by_public.iter().collect();
            names.sort_unstable();
            for (name, (device, tool)) in names {
                let entry = &snapshot.devices[*device as usize];
                let offered = &entry.offer.tools[*tool as usize];
                let Some(digest) = listed.get(device).filter(|_| offered.is_seen(sees_user_tools)) else { continue };
                marks.push(json!([name, digest]));
                tools.push(PublicTool {
                    name: name.clone(),
                    tool: Tool { name: name.clone(), ..offered.tool.clone() },
                    exact: offered.exact.clone(),
                    own_name: offered.tool.name.clone(),
                    device: Some(entry.id.clone()),
                    selector: None,
                });
            }
            tools.sort_by(|one, two| one.name.cmp(&two.name));
            Arc::new(ToolList { tools, digest: Digest::of(&Value::Array(marks)) })
        });
        list.clone()
    }

    /// Those of all tools that the caller sees.
    pub(crate) fn seen_list(&self, snapshot: &Snapshot, lens: &Lens, all: &ToolList) -> ToolList {
        let is_seen = |public: &&PublicTool| {
            let Some((device, tool)) = self.find(&public.name).filter(|_| public.device.is_some()) else { return true };
            let entry = &snapshot.devices[device];
            lens.sees(Holder { entry, offered: &entry.offer.tools[tool] })
        };
        let tools: Vec<PublicTool> = all.tools.iter().filter(is_seen).cloned().collect();
        let names = tools.iter().map(|public| json!(public.name)).collect();
        ToolList { digest: Digest::of(&json!([all.digest.hex(), Value::Array(names)])), tools }
    }
}
