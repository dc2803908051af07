//! The figures of a run, with their targets.

use serde_json::{Value, json};

/// The Cargo profile of this build. Published figures are those of `dist`.
pub const PROFILE: &str = env!("SINEW_PROFILE");

/// One measured number.
pub struct Figure {
    pub key: &'static str,
    pub label: String,
    pub value: f64,
    pub unit: &'static str,
    pub target: Option<Target>,
    /// The single measurements behind the value.
    pub samples: Vec<f64>,
}

/// What a figure should be.
#[derive(Clone, Copy)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Figure {
    pub(crate) fn plain(key: &'static str, label: &str, value: f64, unit: &'static str) -> Figure {
        Figure { key, label: label.to_owned(), value, unit, target: None, samples: Vec::new() }
    }

    pub(crate) fn at_least(key: &'static str, label: &str, value: f64, unit: &'static str, least: f64) -> Figure {
        Figure { target: Some(Target::AtLeast(least)), ..Figure::plain(key, label, value, unit) }
    }

    pub(crate) fn at_most(key: &'static str, label: &str, value: f64, unit: &'static str, most: f64) -> Figure {
        Figure { target: Some(Target::AtMost(most)), ..Figure::plain(key, label, value, unit) }
    }

    pub(crate) fn with(mut self, samples: Vec<f64>) -> Figure {
        self.samples = samples;
        self
    }

    /// Whether the target is met, where there is one.
    pub fn met(&self) -> Option<bool> {
        self.target.map(|target| match target {
            Target::AtLeast(least) => self.value >= least,
            Target::AtMost(most) => self.value <= most,
        })
    }
}

/// The figures of a run.
#[derive(Default)]
pub struct Report {
    pub figures: Vec<Figure>,
    /// What was not measured, and why.
    pub skipped: Vec<String>,
    /// What must not have happened.
    pub violations: Vec<String>,
}

impl Report {
    pub(crate) fn push(&mut self, figure: Figure) {
        self.figures.push(figure);
    }

    pub(crate) fn skip(&mut self, why: impl Into<String>) {
        self.skipped.push(why.into());
    }

    pub fn to_json(&self) -> Value {
        let figures = self.figures.iter().map(|figure| {
            let target = figure.target.map(|target| match target {
                Target::AtLeast(least) => json!({"at_least": least}),
                Target::AtMost(most) => json!({"at_most": most}),
            });
            let entry = json!({
                "label": figure.label, "value": figure.value, "unit": figure.unit,
                "target": target, "met": figure.met(), "samples": figure.samples,
            });
            (figure.key.to_owned(), entry)
        });
        let figures: serde_json::Map<_, _> = figures.collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"), "profile": PROFILE, "figures": figures, "skipped": self.skipped,
            "violations": self.violations,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_say_whether_they_meet_their_target() {
        let mut report = Report::default();
        report.push(Figure::at_least("a", "speed", 12_345.6, "calls/s", 12_000.0));
        report.push(Figure::at_most("b", "size", 9.5, "KiB", 8.0).with(vec![9.5]));
        report.push(Figure::plain("c", "share", 0.456, ""));
        let json = report.to_json();
        assert_eq!(json["figures"]["a"]["met"], true);
        assert_eq!(json["figures"]["b"]["met"], false);
        assert_eq!(json["figures"]["c"]["met"], Value::Null);
    }
}
