//! Findings about apps, and where in the manifest they are.

use sinew_tool::finding::{Finding, Place, Rule, Severity};

use crate::apk::Component;

/// A finding that is an error here, whatever the default severity of its rule.
pub fn error(rule: &'static Rule, message: impl Into<String>) -> Finding {
    Finding::new(rule, message).with_severity(Severity::Error)
}

pub fn warning(rule: &'static Rule, message: impl Into<String>) -> Finding {
    Finding::new(rule, message).with_severity(Severity::Warning)
}

pub fn advice(rule: &'static Rule, message: impl Into<String>) -> Finding {
    Finding::new(rule, message).with_severity(Severity::Advice)
}

/// Where in an app's manifest a finding is.
pub trait ComponentFinding {
    /// In this component, on its line unless another line is known.
    fn in_component(self, component: &Component) -> Self;

    /// On this line of the manifest's source, counted from 1.
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
