//! `sinew spec rules`: the rules and how loudly they speak here.

use std::path::Path;

use serde_json::{Value, json};
use sinew_compose::config::Config;
use sinew_spec::judge::{self, RULES};
use sinew_tool::finding::Severity;

use super::args::RulesFile;
use crate::failure::{Failure, Kind};
use crate::show::{Ink, Show, Table, print, print_json};

/// The configuration a repository keeps beside its specifications.
const FILE: &str = "sinew.toml";

pub fn run(show: Show) -> Result<(), Failure> {
    let config = configured(&RulesFile { config: None })?;
    let level = |rule| config.severity(rule).map_or("off", Severity::word);
    if show.json() {
        let rules: Vec<Value> = RULES
            .iter()
            .map(|rule| json!({"rule": rule.id, "severity": level(rule), "fixable": rule.fixable, "title": rule.title}))
            .collect();
        print_json(&json!({ "rules": rules }));
        return Ok(());
    }
    let mut table = Table::new(["RULE", "SEVERITY", "--FIX", "REQUIREMENT"]);
    for rule in RULES {
        let ink = match level(rule) {
            "error" => Some(Ink::Bad),
            "warning" => Some(Ink::Warn),
            _ => Some(Ink::Dim),
        };
        let fixable = if rule.fixable { "yes" } else { "" };
        table.row([
            (Some(Ink::Bold), rule.id.to_owned()),
            (ink, level(rule).to_owned()),
            (None, fixable.to_owned()),
            (None, rule.title.to_owned()),
        ]);
    }
    print(&show.table(&table));
    Ok(())
}

/// The rules as the named configuration sets them, or the one in this folder, or as they are.
pub fn configured(file: &RulesFile) -> Result<judge::Config, Failure> {
    let path = match &file.config {
        Some(path) => path.as_path(),
        None if Path::new(FILE).is_file() => Path::new(FILE),
        None => return Ok(judge::Config::default()),
    };
    let spec = Config::load(path)?.spec.unwrap_or_default();
    spec.rules().map_err(|what| Failure::new(Kind::Config, format!("{}: {what}", path.display())))
}
