//! Comparing: what a change means for callers, and which version it needs.
//!
//! Inputs may widen and outputs may narrow; everything else breaks somebody. `schema` walks two JSON
//! Schemas together, `plain` and `rewrite` bring those that mean the same to the same form,
//! `keywords`, `members` and `combined` know what each keyword allows, `texts` compares what documents
//! say beyond their schemas, `unread` tells what could not be compared, `carried` what only one of two formats can state, `lists` reads of two lists only what differs; this file compares tools, names, hints and versions. A change that a keyword reports
//! is taken back where `inclusion` proves that the schemas accept the same values all the same (`proofs`); what
//! neither decides is undecided, which needs the same version as a breaking change.

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
mod rewrite;
mod schema;
mod texts;
mod unread;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::fmt::Write as _;

use serde_json::{Value, json};
use sinew_tool::text::clip;
use sinew_tool::{Audience, Digest, Tool, Version};

use crate::cores::on_all_cores;
use crate::model::{SchemaRole, ToolSpecification};
use crate::read::prose::one_line;
use crate::read::{Document, Format};
use carried::Carried;
use keywords::equal;
pub use lists::diff_lists;
use schema::deltas;

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

    pub fn to_json(&self) -> Value {
        let changes: Vec<Value> = self.changes.iter().map(Change::to_json).collect();
        let versions = self.versions.iter().map(|check| {
            json!({
                "tool": check.tool,
                "bump": check.bump.word(),
                "old": check.old.to_string(),
                "declared": check.declared.to_string(),
                "required": check.required.to_string(),
                "enough": check.enough,
            })
        });
        let mut value = json!({"bump": self.bump.word(), "changes": changes, "versions": versions.collect::<Vec<_>>()});
        if !self.not_compared.is_empty() {
            value["notCompared"] = json!(self.not_compared);
        }
        value
    }

    pub fn to_markdown(&self) -> String {
        let left_out = match self.left_out() {
            Some(says) => format!("\n{says}\n"),
            None => String::new(),
        };
        if self.changes.is_empty() {
            return format!("No changes.\n{left_out}");
        }
        let mut page = format!("Required bump: **{}**\n", self.bump.word());
        let cell = |text: &str| one_line(text).replace('|', "\\|").replace('<', "&lt;");
        let mut tool = None;
        for change in &self.changes {
            if tool != Some(&change.tool) {
                tool = Some(&change.tool);
                let name = if change.tool.is_empty() { ALL_TOOLS.to_owned() } else { crate::print::code(&change.tool) };
                let _ = write!(page, "\n### {name}\n\n| Impact | Where | Change |\n| :--- | :--- | :--- |\n");
            }
            let path = crate::print::code(&change.path).replace('|', "\\|");
            let _ = writeln!(page, "| {} | {path} | {} |", change.impact.word(), cell(&change.message));
        }
        for check in self.too_small() {
            let _ = write!(
                page,
                "\n{} declares {}; after {} its changes need {}.\n",
                crate::print::code(&check.tool),
                check.declared,
                check.old,
                check.required
            );
        }
        page + &left_out
    }

    /// A sentence about what was not compared.
    pub fn left_out(&self) -> Option<String> {
        let what = self.not_compared.join(", ");
        (!what.is_empty()).then(|| format!("Not compared, because only one side can state it: {what}."))
    }
}

/// The heading of changes that are about no tool alone.
pub const ALL_TOOLS: &str = "All tools";

impl Change {
    pub fn to_json(&self) -> Value {
        json!({
            "tool": self.tool,
            "path": self.path,
            "kind": self.kind,
            "impact": self.impact.word(),
            "message": self.message,
        })
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

    fn diff(&self, new: &Subject<'_>) -> Vec<Change> {
        let mut changes = diff_tool(&self.tool, &new.tool);
        if let (Some(old), Some(new)) = (&self.spec, &new.spec) {
            changes.extend(texts::diff(old, new));
            changes.extend(unread::parts(old, new));
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
    // Models read the instructions of a manifest; what stands before the tools of a document is for people.
    let instructions = |document: &Document| match document.format {
        Format::Manifest => one_line(&document.intro),
        Format::Markdown | Format::ToolsList => String::new(),
    };
    if instructions(old) != instructions(new) {
        let message = "the instructions changed";
        comparison.changes.push(change("", "/instructions", "instructions-changed", Impact::Cosmetic, message));
    }
    comparison.changes.extend(unread::tools(old, new));
    comparison.sort();
    comparison
}

/// Everything that changed between two sets of tools.
pub fn diff(old: &[Tool], new: &[Tool]) -> Comparison {
    diff_loaded(old, new, |tool| &tool.name, Subject::of_tool)
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
    // Of two tools with one name the first counts, as for callers.
    let (before, after): (BTreeMap<&str, T>, BTreeMap<&str, T>) = (old.rev().collect(), new.rev().collect());
    let kept: Vec<(&str, T, T)> =
        before.iter().filter_map(|(name, one)| Some((*name, *one, *after.get(name)?))).collect();
    let compared = on_all_cores(&kept, |(name, one, two)| {
        let Some((one, two)) = load_pair(*one, *two)? else { return Ok((Vec::new(), None)) };
        let changes = one.diff(&two);
        let bump = Bump::of(changes.iter().map(|change| change.impact).max());
        let version = || VersionCheck::new(name, bump, one.tool.version.clone(), two.tool.version.clone());
        Ok((changes, (bump != Bump::None && two.states_version()).then(version)))
    });
    let mut comparison =
        Comparison { bump: Bump::None, changes: Vec::new(), versions: Vec::new(), not_compared: Vec::new() };
    for pair in compared {
        let (changes, version) = pair?;
        comparison.changes.extend(changes);
        comparison.versions.extend(version);
    }
    let missing = |one: &BTreeMap<&'a str, T>, other: &BTreeMap<&'a str, T>| {
        let gone = one.iter().filter(|(name, _)| !other.contains_key(*name));
        gone.map(|(name, one)| Ok((*name, load(*one)?.tool))).collect::<Result<ToolsByName<'a>, E>>()
    };
    let (went, came) = (missing(&before, &after)?, missing(&after, &before)?);
    comparison.changes.extend(arrivals(&went, &came));
    comparison.sort();
    Ok(comparison)
}

type ToolsByName<'a> = BTreeMap<&'a str, Cow<'a, Tool>>;

/// Tools that only one side has.
fn arrivals(went: &ToolsByName<'_>, came: &ToolsByName<'_>) -> Vec<Change> {
    let renamed = renamed_tools(went, came);
    let new_names: HashSet<&str> = renamed.values().copied().collect();
    let gone = went.keys().map(|name| match renamed.get(name) {
        Some(to) => {
            let message = format!("the tool was removed; it may have been renamed to `{}`", clip(to));
            change(name, "/name", "tool-renamed", Impact::Breaking, message)
        }
        None => change(name, "", "tool-removed", Impact::Breaking, "the tool was removed"),
    });
    let added = came.keys().filter(|name| !new_names.contains(*name));
    gone.chain(added.map(|name| change(name, "", "tool-added", Impact::Additive, "a new tool"))).collect()
}

fn change(
    tool: &str,
    path: impl Into<String>,
    kind: &'static str,
    impact: Impact,
    message: impl Into<String>,
) -> Change {
    Change { tool: tool.to_owned(), path: path.into(), kind, impact, message: message.into() }
}

/// Removed tools with the name of the added one that each may have become.
fn renamed_tools<'a>(went: &'a ToolsByName<'_>, came: &'a ToolsByName<'_>) -> HashMap<&'a str, &'a str> {
    let mut renamed = HashMap::new();
    if went.is_empty() || came.is_empty() {
        return renamed;
    }
    // Exactly the same description and arguments.
    let face = |tool: &Tool| (tool.input_digest(), one_line(&tool.description));
    let mut faces: HashMap<(Digest, String), Vec<&str>> = HashMap::new();
    for (name, tool) in came {
        faces.entry(face(tool)).or_default().push(name);
    }
    let mut taken: HashSet<&str> = HashSet::new();
    for (name, tool) in went {
        // With several equal new tools, the match is unknown.
        if let Some([only]) = faces.get(&face(tool)).map(Vec::as_slice)
            && taken.insert(only)
        {
            renamed.insert(*name, *only);
        }
    }
    let left: Vec<_> = went.iter().filter(|(name, _)| !renamed.contains_key(*name)).collect();
    let free: Vec<_> = came.iter().filter(|(name, _)| !taken.contains(*name)).collect();
    // Beyond this many, tools were replaced, not renamed.
    if left.len() * free.len() <= 400 {
        for (name, old) in left {
            let mut alike = free.iter().filter(|(to, new)| !taken.contains(*to) && looks_renamed(old, new));
            if let (Some((to, _)), None) = (alike.next(), alike.next()) {
                taken.insert(*to);
                renamed.insert(*name, **to);
            }
        }
    }
    renamed
}

/// Whether two tools are one under two names: the same arguments with another description, or the reverse.
/// A tool without arguments cannot be recognised by them.
fn looks_renamed(old: &Tool, new: &Tool) -> bool {
    let names = |tool: &Tool| -> BTreeSet<String> {
        tool.properties().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    let (one, two) = (names(old), names(new));
    let same_arguments = one.len() >= 2 && one == two;
    let same_words =
        old.description.split_whitespace().count() >= 4 && one_line(&old.description) == one_line(&new.description);
    same_arguments || same_words
}

/// What changed about one tool.
pub fn diff_tool(old: &Tool, new: &Tool) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut report = |path: &str, kind: &'static str, impact: Impact, message: String| {
        changes.push(change(&old.name, path, kind, impact, message));
    };
    if one_line(&old.description) != one_line(&new.description) {
        let message = format!("the description changed to \"{}\"", clip(&one_line(&new.description)));
        report("/description", "description-changed", Impact::Cosmetic, message);
    }
    if old.title != new.title {
        report("/title", "title-changed", Impact::Cosmetic, "the title changed".to_owned());
    }
    for (path, kind, impact, message) in hint_changes(old, new) {
        report(path, kind, impact, message);
    }
    match (old.audience, new.audience) {
        (Audience::Everyone, Audience::User) => {
            report(
                "/annotations/audience",
                "audience-narrowed",
                Impact::Breaking,
                "models no longer see the tool".to_owned(),
            );
        }
        (Audience::User, Audience::Everyone) => {
            report("/annotations/audience", "audience-widened", Impact::Additive, "models see the tool now".to_owned());
        }
        _ => {}
    }
    if !equal(&old.input_schema, &new.input_schema) {
        for delta in deltas(&old.input_schema, &new.input_schema, SchemaRole::Input) {
            report(&format!("/inputSchema{}", delta.pointer), delta.kind, delta.impact, delta.message);
        }
    }
    match (&old.output_schema, &new.output_schema) {
        (Some(old), Some(new)) if !equal(old, new) => {
            for delta in deltas(old, new, SchemaRole::Output) {
                report(&format!("/outputSchema{}", delta.pointer), delta.kind, delta.impact, delta.message);
            }
        }
        (Some(_), None) => {
            let message = "the result is no longer described".to_owned();
            report("/outputSchema", "output-removed", Impact::Breaking, message);
        }
        (None, Some(_)) => {
            report("/outputSchema", "output-added", Impact::Additive, "the result is described now".to_owned())
        }
        _ => {}
    }
    changes
}

/// Hints are promises about effects: becoming more dangerous breaks callers that rely on them. Unstated
/// hints mean what the protocol says: not read-only, destructive, not idempotent, open world.
fn hint_changes(old: &Tool, new: &Tool) -> Vec<(&'static str, &'static str, Impact, String)> {
    let (one, two) = (old.hints, new.hints);
    let reads = |hint: Option<bool>| hint.unwrap_or(false);
    let mut found = Vec::new();
    let mut report = |path, kind, before: bool, after: bool, stated: bool, worse: &str, better: &str| {
        let (impact, message) = match (before, after) {
            (false, true) => (Impact::Breaking, worse),
            (true, false) => (Impact::Additive, better),
            _ if stated => (Impact::Cosmetic, "the hint is stated differently, with the same meaning"),
            _ => return,
        };
        found.push((path, kind, impact, message.to_owned()));
    };
    report(
        "/annotations/readOnlyHint",
        "read-only-changed",
        !reads(one.read_only),
        !reads(two.read_only),
        one.read_only != two.read_only,
        "the tool no longer only reads",
        "the tool only reads now",
    );
    // A read-only tool is not destructive, whatever its other hints say.
    let destroys = |read_only: Option<bool>, hint: Option<bool>| !reads(read_only) && hint.unwrap_or(true);
    let (before, after) = (destroys(one.read_only, one.destructive), destroys(two.read_only, two.destructive));
    if reads(one.read_only) == reads(two.read_only) || one.destructive != two.destructive {
        report(
            "/annotations/destructiveHint",
            "destructive-changed",
            before,
            after,
            one.destructive != two.destructive,
            "the tool may be destructive now",
            "the tool is not destructive any more",
        );
    }
    report(
        "/annotations/idempotentHint",
        "idempotent-changed",
        !reads(one.idempotent),
        !reads(two.idempotent),
        one.idempotent != two.idempotent,
        "a second call is no longer harmless",
        "a second call is harmless now",
    );
    report(
        "/annotations/openWorldHint",
        "open-world-changed",
        one.open_world.unwrap_or(true),
        two.open_world.unwrap_or(true),
        one.open_world != two.open_world,
        "the tool may use systems outside now",
        "the tool uses no systems outside now",
    );
    found
}
