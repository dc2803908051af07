//! `sinew spec rules`: the rules and their severities here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sinew_compose::config::{GatewayConfig, SpecConfig};
use sinew_spec::lint::{self, RULES};
use sinew_tool::finding::Severity;

use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, Table, TextStyle, print, print_json};

/// The name of a repository's configuration file.
const FILE: &str = "sinew.toml";

pub fn run(printer: Printer) -> Result<(), CliError> {
    let config = FileRules::new(None).of("MCP_TOOL_SPECIFICATION.md")?;
    let level = |rule| config.severity(rule).map_or("off", Severity::word);
    if printer.is_json() {
        let rules: Vec<Value> = RULES
            .iter()
            .map(|rule| json!({"rule": rule.id, "severity": level(rule), "fixable": rule.fixable, "title": rule.title}))
            .collect();
        print_json(&json!({ "rules": rules }));
        return Ok(());
    }
    let mut table = Table::new(["RULE", "SEVERITY", "--FIX", "REQUIREMENT"]).wrap(&["REQUIREMENT"]);
    for rule in RULES {
        let ink = match level(rule) {
            "error" => Some(TextStyle::Bad),
            "warning" => Some(TextStyle::Warn),
            _ => Some(TextStyle::Dim),
        };
        let fixable = if rule.fixable { "yes" } else { "" };
        table.row([
            (Some(TextStyle::Bold), rule.id.to_owned()),
            (ink, level(rule).to_owned()),
            (None, fixable.to_owned()),
            (None, rule.title.to_owned()),
        ]);
    }
    print(&printer.table(&table));
    Ok(())
}

/// The rules for each file: as the named configuration sets them, else as the nearest `sinew.toml` in the file's
/// folder or above it does.
pub struct FileRules {
    named: Option<PathBuf>,
    /// What was read, by file.
    read: HashMap<PathBuf, SpecConfig>,
}

impl FileRules {
    pub fn new(file: Option<&Path>) -> FileRules {
        FileRules { named: file.map(Path::to_owned), read: HashMap::new() }
    }

    pub fn of(&mut self, path: &str) -> Result<lint::LintConfig, CliError> {
        let Some(file) = self.named.clone().or_else(|| nearest(Path::new(path))) else {
            return Ok(lint::LintConfig::default());
        };
        if !self.read.contains_key(&file) {
            let spec = GatewayConfig::load(&file)?.spec.unwrap_or_default();
            self.read.insert(file.clone(), spec);
        }
        let (file_path, whole) =
            (std::path::absolute(&file).unwrap_or_default(), std::path::absolute(path).unwrap_or_default());
        let inside = file_path.parent().and_then(|home| whole.strip_prefix(home).ok()).unwrap_or(&whole);
        let inside = inside.to_string_lossy().replace('\\', "/");
        let rules = self.read[&file].rules_for(&inside);
        rules.map_err(|what| CliError::new(CliErrorKind::Config, format!("{}: {what}", file.display())))
    }
}

/// The configuration in a file's folder or the nearest above it.
fn nearest(path: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(path).ok()?;
    let found = whole.ancestors().skip(1).map(|folder| folder.join(FILE)).find(|file| file.is_file())?;
    // Shown relative to this folder where possible.
    let here = std::env::current_dir().ok();
    let short = here.and_then(|here| found.strip_prefix(here).ok().map(Path::to_owned));
    Some(short.unwrap_or(found))
}
