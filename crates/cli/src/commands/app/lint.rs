//! `sinew app lint`: what keeps an app's tools from being found, called or understood.

use serde_json::{Value, json};
use sinew_apps::lint::lint;
use sinew_apps::offer::{Finding, Severity, Words};

use super::args::Lint;
use super::{Seen, file, read, shown};
use crate::failure::{Failure, Kind};
use crate::show::{Show, print, print_json};

pub async fn run(args: Lint, show: Show) -> Result<(), Failure> {
    let words = Words::default();
    let mut judged: Vec<(String, Vec<Finding>)> = Vec::new();
    let mut offering = 0;
    for path in &args.files {
        let file = file(path)?;
        let Seen { manifest, offer, code } = read(&file, &words, true).await?;
        offering += usize::from(!offer.tools.is_empty() || !offer.asks.is_empty());
        let findings = lint(&manifest, &offer, &words, code.as_deref());
        judged.push((file.display().to_string(), findings));
    }
    let least = if args.strict { Severity::Warning } else { Severity::Error };
    let fails = judged.iter().flat_map(|(_, findings)| findings).any(|finding| finding.severity >= least);
    match show.json() {
        true => print_json(&to_json(&judged)),
        false => print(&people(&judged, offering, show)),
    }
    if fails { Err(Failure::told(Kind::Unwell)) } else { Ok(()) }
}

fn to_json(judged: &[(String, Vec<Finding>)]) -> Value {
    let finding = |finding: &Finding| {
        let mut value = json!({"rule": finding.rule, "severity": finding.severity.word(), "message": finding.message});
        let extras = [
            ("line", finding.line.map(Value::from)),
            ("component", finding.component.clone().map(Value::from)),
            ("tool", finding.tool.clone().map(Value::from)),
        ];
        for (key, extra) in extras {
            if let Some(extra) = extra {
                value[key] = extra;
            }
        }
        value
    };
    let file = |(path, findings): &(String, Vec<Finding>)| json!({"path": path, "findings": findings.iter().map(finding).collect::<Vec<Value>>()});
    json!({"files": judged.iter().map(file).collect::<Vec<Value>>()})
}

fn people(judged: &[(String, Vec<Finding>)], offering: usize, show: Show) -> String {
    let mut page = String::new();
    for (path, findings) in judged {
        for finding in findings {
            page.push_str(&shown(finding, path, show));
            page.push('\n');
        }
    }
    let count = |severity: Severity| {
        judged.iter().flat_map(|(_, findings)| findings).filter(|finding| finding.severity == severity).count()
    };
    let plural = |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
    page.push_str(&format!(
        "{}, {}, {} advice in {}, {offering} of them with tools\n",
        plural(count(Severity::Error), "error"),
        plural(count(Severity::Warning), "warning"),
        count(Severity::Advice),
        plural(judged.len(), "file"),
    ));
    page
}
