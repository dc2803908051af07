//! One thing to say about an app. The rules are listed in [`crate::lint::RULES`].

use crate::apk::Component;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Could be better.
    Advice,
    /// A caller may stumble.
    Warning,
    /// Something is not offered, or cannot work.
    Error,
}

impl Severity {
    pub fn word(self) -> &'static str {
        match self {
            Severity::Advice => "advice",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub rule: &'static str,
    pub severity: Severity,
    pub message: String,
    /// The class it is about.
    pub component: Option<String>,
    pub tool: Option<String>,
    /// In the manifest's source, counted from 1.
    pub line: Option<u32>,
}

impl Finding {
    pub fn new(rule: &'static str, severity: Severity, message: impl Into<String>) -> Finding {
        Finding { rule, severity, message: message.into(), component: None, tool: None, line: None }
    }

    pub fn error(rule: &'static str, message: impl Into<String>) -> Finding {
        Finding::new(rule, Severity::Error, message)
    }

    pub fn warning(rule: &'static str, message: impl Into<String>) -> Finding {
        Finding::new(rule, Severity::Warning, message)
    }

    pub fn advice(rule: &'static str, message: impl Into<String>) -> Finding {
        Finding::new(rule, Severity::Advice, message)
    }

    pub fn at(mut self, component: &Component) -> Finding {
        self.component = Some(component.name.clone());
        self.line = self.line.or(Some(component.line));
        self
    }

    pub fn on_line(mut self, line: u32) -> Finding {
        self.line = Some(line);
        self
    }

    pub fn of_tool(mut self, name: &str) -> Finding {
        self.tool = Some(name.to_owned());
        self
    }
}

/// The beginning of a foreign text, for a message.
pub fn clip(text: &str) -> String {
    let mut clipped: String = text.chars().take(80).map(|one| if one.is_control() { ' ' } else { one }).collect();
    if text.chars().nth(80).is_some() {
        clipped.push('…');
    }
    clipped
}
