//! Comparing: what a change means for callers, and which version it needs.
//!
//! Inputs may widen and outputs may narrow; everything else breaks somebody. `tool` compares one tool,
//! `arrivals` those that only one side has. `schema` walks two JSON Schemas together, `plain` and `rewrite` bring
//! those that mean the same to the same form, `keywords`, `members` and `combined` know what each keyword allows. A
//! change that a keyword reports is taken back where `inclusion` proves that the schemas accept the same values all
//! the same (`proofs`); what neither decides is undecided, which needs the same version as a breaking change.
//!
//! `texts` compares what documents say beyond their schemas, `wording` what schemas say to readers, `unread` tells what could not be compared, `carried`
//! what only one of two sources can state, and `lists` reads of two lists only what differs. `report` prints.

mod arrivals;
mod budget;
mod carried;
mod combined;
mod evaluated;
mod inclusion;
mod keywords;
mod lists;
mod members;
mod numbers;
mod plain;
mod proofs;
mod report;
mod rewrite;
mod schema;
mod texts;
mod tool;
mod unread;
mod wording;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;

use sinew_tool::{Tool, Version};

use crate::cores::on_all_cores;
use crate::model::ToolSpecification;
use crate::read::Document;
use arrivals::arrivals;
pub use budget::CompareWork;
use carried::Carried;
pub use lists::diff_lists;
pub use report::ALL_TOOLS;
pub use tool::{diff_tool, diff_tool_within};

/// What a change means for callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Impact {
    /// Nothing changes for callers.
    Cosmetic,
    /// Something more is possible.
    Additive,
    /// Only a costly proof could decide whether a caller may fail.
    Undecided,
    /// A call, or reading its result, may fail.
    Breaking,
}

impl Impact {
    pub fn word(self) -> &'static str {
        match self {
            Impact::Cosmetic => "cosmetic",
            Impact::Additive => "additive",
            Impact::Undecided => "undecided",
            Impact::Breaking => "breaking",
        }
    }

    /// Whether callers may fail, as far as is known.
    pub fn may_break(self) -> bool {
        self >= Impact::Undecided
    }
}

/// The part of a version that has to grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bump {
    None,
    Patch,
    Minor,
    Major,
}

impl Bump {
    pub fn word(self) -> &'static str {
        match self {
            Bump::None => "none",
            Bump::Patch => "patch",
            Bump::Minor => "minor",
            Bump::Major => "major",
        }
    }

    /// What the most severe of some changes needs.
    pub fn of(impact: Option<Impact>) -> Bump {
        match impact {
            None => Bump::None,
            Some(Impact::Cosmetic) => Bump::Patch,
            Some(Impact::Additive) => Bump::Minor,
            Some(Impact::Undecided | Impact::Breaking) => Bump::Major,
        }
    }

    /// The smallest version after `old` that allows the change. Before 1.0.0 the second number takes
    /// the place of the first.
    pub fn next(self, old: &Version) -> Version {
        match self {
            Bump::None => old.clone(),
            Bump::Major if old.major > 0 => Version::new(old.major + 1, 0, 0),
            Bump::Major => Version::new(0, old.minor + 1, 0),
            Bump::Minor if old.major > 0 => Version::new(old.major, old.minor + 1, 0),
            Bump::Minor | Bump::Patch => Version::new(old.major, old.minor, old.patch + 1),
        }
    }

    /// Whether a declared version is large enough. A pre-release of the needed version is.
    pub fn admits(self, old: &Version, declared: &Version) -> bool {
        let needed = self.next(old);
        let numbers = |version: &Version| (version.major, version.minor, version.patch);
        numbers(declared) >= numbers(&needed)
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Empty for a change of all tools together.
    pub tool: String,
    /// JSON pointer into the tool's `tools/list` entry.
    pub path: String,
    pub kind: &'static str,
    pub impact: Impact,
    pub message: String,
}

/// Whether a tool's declared version fits its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionCheck {
    pub tool: String,
    pub bump: Bump,
    pub old: Version,
    pub declared: Version,
    pub required: Version,
    pub enough: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub bump: Bump,
    /// By tool, the most severe first.
    pub changes: Vec<Change>,
    /// For the changed tools that existed before and state a version now.
    pub versions: Vec<VersionCheck>,
    /// What only one of two formats can state, and one of them does.
    pub not_compared: Vec<&'static str>,
}

impl VersionCheck {
    fn new(tool: &str, bump: Bump, old: Version, declared: Version) -> VersionCheck {
        let (required, enough) = (bump.next(&old), bump.admits(&old, &declared));
        VersionCheck { tool: tool.to_owned(), bump, old, declared, required, enough }
    }
}

impl Comparison {
    /// Sorts the changes, and states the version that all of them together need.
    fn sort(&mut self) {
        self.changes.sort_by(|one, two| {
            (&one.tool, two.impact, &one.path, one.kind).cmp(&(&two.tool, one.impact, &two.path, two.kind))
        });
        self.bump = Bump::of(self.changes.iter().map(|change| change.impact).max());
    }

    /// Changes that may break callers and that no version announces. A removed tool has no version
    /// of its own to announce it.
    pub fn unannounced(&self) -> impl Iterator<Item = &Change> {
        let enough = self.versions.iter().filter(|check| check.enough);
        let announced: HashSet<&str> = enough.map(|check| check.tool.as_str()).collect();
        self.changes.iter().filter(move |change| change.impact.may_break() && !announced.contains(change.tool.as_str()))
    }

    /// The tools whose declared version is too small.
    pub fn too_small(&self) -> impl Iterator<Item = &VersionCheck> {
        self.versions.iter().filter(|check| !check.enough)
    }

    /// Checks a version declared for all tools together (of a package, firmware or app). The error is
    /// the version that would be enough.
    pub fn check_declared(&self, old: &Version, declared: &Version) -> Result<(), Version> {
        if self.bump.admits(old, declared) { Ok(()) } else { Err(self.bump.next(old)) }
    }
}

/// A tool to compare, with the document it comes from where there is one.
struct Subject<'a> {
    tool: Cow<'a, Tool>,
    spec: Option<Cow<'a, ToolSpecification>>,
}

impl<'a> Subject<'a> {
    fn of_tool(tool: &'a Tool) -> Subject<'a> {
        Subject { tool: Cow::Borrowed(tool), spec: None }
    }

    fn of_spec(spec: Cow<'a, ToolSpecification>) -> Subject<'a> {
        Subject { tool: Cow::Owned(spec.to_tool()), spec: Some(spec) }
    }

    /// Whether somebody stated the version; otherwise 1.0.0 is only assumed.
    fn states_version(&self) -> bool {
        self.spec.as_ref().is_none_or(|spec| spec.semver().is_some())
    }

    fn diff(&self, new: &Subject<'_>, work: &mut CompareWork) -> Vec<Change> {
        let mut changes = diff_tool_within(&self.tool, &new.tool, work);
        if let (Some(old), Some(new)) = (&self.spec, &new.spec) {
            changes.extend(unread::parts(old, new));
            texts::diff(old, new, &mut changes);
        }
        changes
    }
}

/// Both versions of a tool; `None` where nothing can have changed.
type SubjectPair<'a> = Option<(Subject<'a>, Subject<'a>)>;

/// Everything that changed between two documents: their tools, and what only documents say.
pub fn diff_documents(old: &Document, new: &Document) -> Comparison {
    let carried = Carried::by(old, new);
    let subject = |spec| Subject::of_spec(carried.reduce(spec));
    let mut comparison = diff_loaded(&old.tools, &new.tools, |spec| &spec.name, subject);
    comparison.not_compared = carried.left_out(old, new);
    let not_read = unread::tools(old, new);
    // The text of a tool that was not read is text between the others.
    let around = texts::around(old, new).into_iter();
    comparison.changes.extend(around.filter(|change| not_read.is_empty() || change.kind != "text-changed"));
    comparison.changes.extend(not_read);
    comparison.sort();
    comparison
}

/// Everything that changed between two sets of tools.
pub fn diff(old: &[Tool], new: &[Tool]) -> Comparison {
    diff_loaded(old, new, |tool| &tool.name, Subject::of_tool)
}

/// The same for tools that somebody else writes, who could make it take long: all pairs share what may be spent, and
/// the rest is undecided.
pub fn diff_within(old: &[Tool], new: &[Tool], work: &mut CompareWork) -> Comparison {
    let named = |tools| by_name(<[Tool]>::iter(tools).map(|tool| (tool.name.as_str(), tool)));
    let (before, after) = (named(old), named(new));
    let kept = before.iter().filter_map(|(name, one)| Some((*name, *one, *after.get(name)?)));
    let changed = kept.filter(|(_, one, two)| one != two);
    let pairs = changed.map(|(name, one, two)| diff_pair(name, &Subject::of_tool(one), &Subject::of_tool(two), work));
    let pairs = pairs.collect();
    let Ok(comparison) = finish(pairs, &before, &after, |tool| Ok::<_, Infallible>(Subject::of_tool(tool)));
    comparison
}

fn diff_loaded<'a, T: Sync>(
    old: &'a [T],
    new: &'a [T],
    name: fn(&T) -> &str,
    subject: impl Fn(&'a T) -> Subject<'a> + Sync,
) -> Comparison {
    let load_pair = |one, two| Ok::<_, Infallible>(Some((subject(one), subject(two))));
    let named = |tool| (name(tool), tool);
    let Ok(comparison) = diff_all(old.iter().map(named), new.iter().map(named), load_pair, |tool| Ok(subject(tool)));
    comparison
}

/// Compares the tools of both sides by their names; `load_pair` and `load` make them ready when their turn comes.
fn diff_all<'a, T: Copy + Send + Sync, E: Send>(
    old: impl DoubleEndedIterator<Item = (&'a str, T)>,
    new: impl DoubleEndedIterator<Item = (&'a str, T)>,
    load_pair: impl Fn(T, T) -> Result<SubjectPair<'a>, E> + Sync,
    load: impl Fn(T) -> Result<Subject<'a>, E>,
) -> Result<Comparison, E> {
    let (before, after) = (by_name(old), by_name(new));
    let kept: Vec<(&str, T, T)> =
        before.iter().filter_map(|(name, one)| Some((*name, *one, *after.get(name)?))).collect();
    let compared = on_all_cores(&kept, |(name, one, two)| {
        let Some((one, two)) = load_pair(*one, *two)? else { return Ok(PairChanges::default()) };
        Ok(diff_pair(name, &one, &two, &mut CompareWork::of_a_pair()))
    });
    let pairs = compared.into_iter().collect::<Result<_, E>>()?;
    finish(pairs, &before, &after, load)
}

/// Of two tools with one name the first counts, as for callers.
fn by_name<'a, T>(tools: impl DoubleEndedIterator<Item = (&'a str, T)>) -> BTreeMap<&'a str, T> {
    tools.rev().collect()
}

/// What changed about a tool that both sides have.
#[derive(Default)]
struct PairChanges {
    changes: Vec<Change>,
    version: Option<VersionCheck>,
}

fn diff_pair(name: &str, one: &Subject<'_>, two: &Subject<'_>, work: &mut CompareWork) -> PairChanges {
    let changes = one.diff(two, work);
    let bump = Bump::of(changes.iter().map(|change| change.impact).max());
    let version = || VersionCheck::new(name, bump, one.tool.version.clone(), two.tool.version.clone());
    PairChanges { changes, version: (bump != Bump::None && two.states_version()).then(version) }
}

/// Adds the tools that only one side has.
fn finish<'a, T: Copy, E>(
    pairs: Vec<PairChanges>,
    before: &BTreeMap<&'a str, T>,
    after: &BTreeMap<&'a str, T>,
    load: impl Fn(T) -> Result<Subject<'a>, E>,
) -> Result<Comparison, E> {
    let mut comparison =
        Comparison { bump: Bump::None, changes: Vec::new(), versions: Vec::new(), not_compared: Vec::new() };
    for pair in pairs {
        comparison.changes.extend(pair.changes);
        comparison.versions.extend(pair.version);
    }
    let missing = |one: &BTreeMap<&'a str, T>, other: &BTreeMap<&'a str, T>| {
        let gone = one.iter().filter(|(name, _)| !other.contains_key(*name));
        gone.map(|(name, one)| Ok((*name, load(*one)?.tool))).collect::<Result<ToolsByName<'a>, E>>()
    };
    let (went, came) = (missing(before, after)?, missing(after, before)?);
    comparison.changes.extend(arrivals(&went, &came));
    comparison.sort();
    Ok(comparison)
}

type ToolsByName<'a> = BTreeMap<&'a str, Cow<'a, Tool>>;

fn change(
    tool: &str,
    path: impl Into<String>,
    kind: &'static str,
    impact: Impact,
    message: impl Into<String>,
) -> Change {
    Change { tool: tool.to_owned(), path: path.into(), kind, impact, message: message.into() }
}
