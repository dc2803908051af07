//! `sinew bench`: measures, and shows the figures with their targets.

use serde_json::json;
use sinew_bench::{Bench, Options, PROFILE, Peer, Report, Target};

use crate::args::{self, BenchPeerArgs, PeerKind};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, Table, TextStyle, print, print_exact, print_json};

pub async fn run(args: args::BenchArgs, printer: Printer) -> Result<(), CliError> {
    let args::BenchArgs { quick, only, rounds, seconds, boards, fleet, crowd, chaos, seed, soak, plot } = args;
    let options = Options { quick, only, rounds, seconds, boards, fleet, crowd, chaos, seed, soak, plot };
    let mut bench = Bench::new(options)?;
    for stage in bench.stages() {
        printer.waiting(stage.label(), bench.measure(stage)).await?;
    }
    let report = bench.finish();
    if printer.is_json() {
        print_json(&report.to_json());
    } else {
        print(&to_text(&report, printer));
    }
    match report.violations.as_slice() {
        [] => Ok(()),
        violations => {
            let message = format!("{} things happened that must not:\n{}", violations.len(), violations.join("\n"));
            Err(CliError::new(CliErrorKind::ChecksFailed, message))
        }
    }
}

pub async fn peer(args: BenchPeerArgs) -> Result<(), CliError> {
    let peer = match args.kind {
        PeerKind::Rmcp => Peer::Rmcp,
        PeerKind::Axum => Peer::Axum,
    };
    let announce =
        |address| print_exact(&format!("{}\n", json!({"url": format!("http://{address}"), "profile": PROFILE})));
    Ok(peer.serve(announce).await?)
}

fn to_text(report: &Report, printer: Printer) -> String {
    let mut table = Table::new(["MEASURED", "RESULT", "TARGET", ""]);
    for figure in &report.figures {
        let target = figure.target.map(|target| match target {
            Target::AtLeast(least) => format!("≥ {}", number(least)),
            Target::AtMost(most) => format!("≤ {}", number(most)),
        });
        let (ink, verdict) = match figure.met() {
            Some(true) => (Some(TextStyle::Good), "met"),
            Some(false) => (Some(TextStyle::Warn), "missed"),
            None => (None, ""),
        };
        table.row([
            (None, figure.label.clone()),
            (Some(TextStyle::Bold), format!("{} {}", number(figure.value), figure.unit)),
            (None, target.unwrap_or_default()),
            (ink, verdict.to_owned()),
        ]);
    }
    let skipped: String = report.skipped.iter().map(|why| format!("not measured: {why}\n")).collect();
    let hint = if PROFILE == "dist" { "" } else { "; published figures are of `cargo build --profile dist`" };
    printer.table(&table) + &skipped + &format!("profile: {PROFILE}{hint}\n")
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
    use sinew_bench::Figure;

    #[test]
    fn figures_are_shown_with_their_targets() {
        let figure = |label: &str, value, unit, target| Figure {
            key: "key",
            label: label.to_owned(),
            value,
            unit,
            target: Some(target),
            samples: Vec::new(),
        };
        let report = Report {
            figures: vec![
                figure("speed", 12_345.6, "calls/s", Target::AtLeast(12_000.0)),
                figure("size", 9.5, "KiB", Target::AtMost(8.0)),
            ],
            skipped: vec!["weight, because there is no balance".to_owned()],
            violations: Vec::new(),
        };
        let text = to_text(&report, Printer::plain());
        assert!(text.contains("12346 calls/s  ≥ 12000  met"), "{text}");
        assert!(text.contains("9.50 KiB       ≤ 8.00   missed"), "{text}");
        assert!(text.contains("not measured: weight, because there is no balance\n"), "{text}");
        assert!(text.lines().last().is_some_and(|line| line.starts_with("profile: ")), "{text}");
    }
}
