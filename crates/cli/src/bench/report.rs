//! The figures of a run, with their targets.

use serde_json::{Value, json};

use crate::show::{Ink, Show, Table};

/// One measured number.
pub struct Figure {
    key: &'static str,
    label: String,
    value: f64,
    unit: &'static str,
    target: Option<Target>,
    /// The single measurements behind the value.
    samples: Vec<f64>,
}

#[derive(Clone, Copy)]
enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Figure {
    pub fn plain(key: &'static str, label: &str, value: f64, unit: &'static str) -> Figure {
        Figure { key, label: label.to_owned(), value, unit, target: None, samples: Vec::new() }
    }

    pub fn at_least(key: &'static str, label: &str, value: f64, unit: &'static str, least: f64) -> Figure {
        Figure { target: Some(Target::AtLeast(least)), ..Figure::plain(key, label, value, unit) }
    }

    pub fn at_most(key: &'static str, label: &str, value: f64, unit: &'static str, most: f64) -> Figure {
        Figure { target: Some(Target::AtMost(most)), ..Figure::plain(key, label, value, unit) }
    }

    pub fn with(mut self, samples: Vec<f64>) -> Figure {
        self.samples = samples;
        self
    }

    fn met(&self) -> Option<bool> {
        self.target.map(|target| match target {
            Target::AtLeast(least) => self.value >= least,
            Target::AtMost(most) => self.value <= most,
        })
    }
}

#[derive(Default)]
pub struct Report {
    figures: Vec<Figure>,
    /// What was not measured, and why.
    skipped: Vec<String>,
}

impl Report {
    pub fn push(&mut self, figure: Figure) {
        self.figures.push(figure);
    }

    pub fn skip(&mut self, why: impl Into<String>) {
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
        json!({"version": env!("CARGO_PKG_VERSION"), "figures": figures, "skipped": self.skipped})
    }

    pub fn to_text(&self, show: Show) -> String {
        let mut table = Table::new(["MEASURED", "RESULT", "TARGET", ""]);
        for figure in &self.figures {
            let target = figure.target.map(|target| match target {
                Target::AtLeast(least) => format!("≥ {}", number(least)),
                Target::AtMost(most) => format!("≤ {}", number(most)),
            });
            let (ink, verdict) = match figure.met() {
                Some(true) => (Some(Ink::Good), "met"),
                Some(false) => (Some(Ink::Warn), "missed"),
                None => (None, ""),
            };
            table.row([
                (None, figure.label.clone()),
                (Some(Ink::Bold), format!("{} {}", number(figure.value), figure.unit)),
                (None, target.unwrap_or_default()),
                (ink, verdict.to_owned()),
            ]);
        }
        let skipped: String = self.skipped.iter().map(|why| format!("not measured: {why}\n")).collect();
        show.table(&table) + &skipped
    }
}

/// Three digits that mean something.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
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
        report.skip("weight, because there is no balance");
        let text = report.to_text(Show::plain());
        assert!(text.contains("12346 calls/s  ≥ 12000  met"), "{text}");
        assert!(text.contains("9.50 KiB       ≤ 8.00   missed"), "{text}");
        assert!(text.ends_with("not measured: weight, because there is no balance\n"), "{text}");
        let json = report.to_json();
        assert_eq!(json["figures"]["b"]["met"], false);
        assert_eq!(json["figures"]["c"]["met"], Value::Null);
    }
}
