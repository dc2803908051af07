//! What two documents from different sources can both state. A document of eight sections says more than a
//! tool list, and a list of an app or of a board less than one of a server; what only one of them can say is no change.

use std::borrow::Cow;

use sinew_tool::{Audience, Hints};

use crate::model::ToolSpecification;
use crate::read::{Document, Format, ListDetail};

#[derive(Clone, Copy)]
pub(super) struct Carried {
    /// Notes, errors, security, examples, further sections, and members that are not sections.
    sections: bool,
    output: bool,
    hints: bool,
    title: bool,
    version: bool,
}

impl Carried {
    pub(super) fn by(old: &Document, new: &Document) -> Carried {
        if old.format == new.format && old.detail.is_comparable_with(new.detail) {
            return Carried { sections: true, output: true, hints: true, title: true, version: true };
        }
        let lists = [old, new].into_iter().filter(|document| document.format != Format::Markdown);
        let sides: Vec<&Document> = lists.collect();
        // What no tool of a list states, its source may have no member for.
        let carried = |states: fn(&ToolSpecification) -> bool| sides.iter().all(|side| side.tools.iter().any(states));
        let is_complete = sides.iter().all(|side| side.detail == ListDetail::Complete);
        Carried {
            sections: false,
            output: is_complete || carried(|spec| spec.output.is_some()),
            hints: carried(|spec| spec.hints != Hints::default() || spec.audience != Audience::default()),
            title: carried(|spec| spec.title.is_some()),
            version: carried(|spec| spec.version.is_some()),
        }
    }

    /// The specification without what the other side cannot state.
    pub(super) fn reduce<'a>(&self, spec: &'a ToolSpecification) -> Cow<'a, ToolSpecification> {
        if self.sections {
            return Cow::Borrowed(spec);
        }
        let mut spec = spec.clone();
        // The section on idempotency is a hint of the tool.
        spec.hints = if self.hints { spec.to_tool().hints } else { Hints::default() };
        if !self.hints {
            spec.audience = Audience::default();
        }
        spec.output = spec.output.filter(|_| self.output);
        spec.title = spec.title.filter(|_| self.title);
        spec.version = spec.version.filter(|_| self.version);
        // Notes in place of parameters that could not be read keep those from being compared.
        if spec.input_known {
            spec.input_notes.clear();
        }
        for text in [
            &mut spec.output_notes,
            &mut spec.errors,
            &mut spec.idempotency,
            &mut spec.examples_notes,
            &mut spec.security,
        ] {
            text.clear();
        }
        spec.extra.clear();
        spec.examples.clear();
        spec.places.examples.clear();
        spec.unknown.clear();
        Cow::Owned(spec)
    }

    /// What is stated and was not compared.
    pub(super) fn left_out(&self, old: &Document, new: &Document) -> Vec<&'static str> {
        if self.sections {
            return Vec::new();
        }
        type States = fn(&ToolSpecification) -> bool;
        let parts: [(bool, &'static str, States); 10] = [
            (self.version, "versions", |spec| spec.version.is_some()),
            (self.title, "titles", |spec| spec.title.is_some()),
            (self.output, "output schemas", |spec| spec.output.is_some()),
            (self.hints, "hints", |spec| spec.to_tool().hints != Hints::default()),
            (false, "notes on parameters and results", has_notes),
            (false, "error handling", |spec| !spec.errors.is_empty()),
            (false, "usage examples", has_own_examples),
            (false, "security considerations", |spec| !spec.security.is_empty()),
            (false, "further sections", |spec| spec.unknown.is_empty() && !spec.extra.is_empty()),
            (false, "other members", |spec| !spec.unknown.is_empty()),
        ];
        let is_stated = |states: States| old.tools.iter().chain(&new.tools).any(states);
        parts
            .into_iter()
            .filter(|(carried, _, states)| !carried && is_stated(*states))
            .map(|(_, name, _)| name)
            .collect()
    }
}

fn has_notes(spec: &ToolSpecification) -> bool {
    [&spec.input_notes, &spec.output_notes, &spec.examples_notes].iter().any(|notes| !notes.is_empty())
}

/// Whether there are examples that were not made from the schema.
fn has_own_examples(spec: &ToolSpecification) -> bool {
    !spec.places.examples.is_empty() && spec.examples != ToolSpecification::from_tool(&spec.to_tool()).examples
}
