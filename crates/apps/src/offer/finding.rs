//! Findings about apps: how they name the place they are about.

use sinew_tool::finding::{Finding, Place, Rule, Severity};

use crate::apk::Component;

/// Something that is not offered, or cannot work, whatever the rule is as a rule.
pub fn error(rule: &'static Rule, message: impl Into<String>) -> Finding {
    Finding::new(rule, message).with_severity(Severity::Error)
}

pub fn warning(rule: &'static Rule, message: impl Into<String>) -> Finding {
    Finding::new(rule, message).with_severity(Severity::Warning)
}

pub fn advice(rule: &'static Rule, message: impl Into<String>) -> Finding {
    Finding::new(rule, message).with_severity(Severity::Advice)
}

/// What a finding about an app is about.
pub trait ComponentFinding {
    /// A component, and the line where it stands unless another one is known.
    fn in_component(self, component: &Component) -> Self;

    /// A line of the manifest's source, counted from 1.
    fn on_line(self, line: u32) -> Self;
}

impl ComponentFinding for Finding {
    fn in_component(self, component: &Component) -> Finding {
        let place = if self.place == Place::Whole { Place::Line(component.line as usize) } else { self.place };
        self.of_component(component.name.clone()).at(place)
    }

    fn on_line(self, line: u32) -> Finding {
        self.at(Place::Line(line as usize))
    }
}
