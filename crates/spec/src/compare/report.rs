//! A comparison as JSON for programs, and as Markdown for a pull request.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Change, Comparison};
use crate::read::prose::one_line;

/// The heading of changes that are about no tool alone.
pub const ALL_TOOLS: &str = "All tools";

impl Comparison {
    pub fn to_json(&self) -> Value {
        let changes: Vec<Value> = self.changes.iter().map(Change::to_json).collect();
        let versions = self.versions.iter().map(|check| {
            json!({
                "tool": check.tool,
                "bump": check.bump.word(),
                "old": check.old.to_string(),
                "declared": check.declared.to_string(),
                "required": check.required.to_string(),
                "enough": check.enough,
            })
        });
        let mut value = json!({"bump": self.bump.word(), "changes": changes, "versions": versions.collect::<Vec<_>>()});
        if !self.not_compared.is_empty() {
            value["notCompared"] = json!(self.not_compared);
        }
        value
    }

    pub fn to_markdown(&self) -> String {
        let left_out = match self.left_out() {
            Some(says) => format!("\n{says}\n"),
            None => String::new(),
        };
        if self.changes.is_empty() {
            return format!("No changes.\n{left_out}");
        }
        let mut page = format!("Required bump: **{}**\n", self.bump.word());
        let cell = |text: &str| one_line(text).replace('|', "\\|").replace('<', "&lt;");
        let mut tool = None;
        for change in &self.changes {
            if tool != Some(&change.tool) {
                tool = Some(&change.tool);
                let name = if change.tool.is_empty() { ALL_TOOLS.to_owned() } else { crate::print::code(&change.tool) };
                let _ = write!(page, "\n### {name}\n\n| Impact | Where | Change |\n| :--- | :--- | :--- |\n");
            }
            let path = crate::print::code(&change.path).replace('|', "\\|");
            let _ = writeln!(page, "| {} | {path} | {} |", change.impact.word(), cell(&change.message));
        }
        for check in self.too_small() {
            let _ = write!(
                page,
                "\n{} declares {}; after {} its changes need {}.\n",
                crate::print::code(&check.tool),
                check.declared,
                check.old,
                check.required
            );
        }
        page + &left_out
    }

    /// A sentence about what was not compared.
    pub fn left_out(&self) -> Option<String> {
        let what = self.not_compared.join(", ");
        (!what.is_empty()).then(|| format!("Not compared, because only one side states it: {what}."))
    }
}

impl Change {
    pub fn to_json(&self) -> Value {
        json!({
            "tool": self.tool,
            "path": self.path,
            "kind": self.kind,
            "impact": self.impact.word(),
            "message": self.message,
        })
    }
}
