//! `sinew spec explain`: one rule with its reason, a bad and a good example.

use serde_json::json;
use sinew_spec::lint::{RULES, rule};
use sinew_tool::spelling::nearest;

use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, print, print_json};

pub fn run(id: &str, printer: Printer) -> Result<(), CliError> {
    let rule = rule(id).ok_or_else(|| {
        let meant = nearest(id, RULES.iter().map(|rule| rule.id));
        let hint = meant.map_or("`sinew spec rules` lists them".to_owned(), |id| format!("did you mean `{id}`?"));
        CliError::new(CliErrorKind::Usage, format!("there is no rule `{id}`; {hint}"))
    })?;
    if printer.is_json() {
        print_json(&json!({
            "rule": rule.id,
            "severity": rule.severity.word(),
            "fixable": rule.fixable,
            "title": rule.title,
            "why": rule.why,
            "bad": rule.bad,
            "good": rule.good,
        }));
    } else {
        print(&rule.explain());
    }
    Ok(())
}
