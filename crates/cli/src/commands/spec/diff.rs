//! `sinew spec diff`: what a change means for callers, and whether its version says so.

use std::fmt::Write;

use serde_json::json;
use sinew_spec::compare::{self, Comparison, Impact};
use sinew_tool::Version;

use super::args::{Allow, DiffFormat, SpecDiffArgs};
use super::source::SpecText;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, TextStyle, clean, print, print_exact, print_json};

pub async fn run(args: SpecDiffArgs, printer: Printer) -> Result<(), CliError> {
    let old = SpecText::named(&args.old, &args.reach).await?;
    let new = SpecText::named(&args.new, &args.reach).await?;
    let texts = old.comparable_with(&new).zip(new.comparable_with(&old));
    let lists = texts.and_then(|(old, new)| compare::diff_lists(old, new));
    let comparison = match lists {
        Some(comparison) => comparison,
        None => {
            let (old, new) = (old.parse().readable()?, new.parse().readable()?);
            if old.document.has_no_tools() && new.document.has_no_tools() {
                let message = format!(
                    "there is no tool in {} and none in {}, so there is nothing to compare; `sinew spec lint` says what \
                     could not be read",
                    old.path, new.path
                );
                return Err(CliError::new(CliErrorKind::Usage, message));
            }
            compare::diff_documents(&old.document, &new.document)
        }
    };
    let package = match (&args.old_version, &args.new_version) {
        (Some(old), Some(new)) => Some(PackageVersion::check(&comparison, version(old)?, version(new)?)),
        _ => None,
    };
    let format = args.format.unwrap_or(if printer.is_json() { DiffFormat::Json } else { DiffFormat::Text });
    match format {
        DiffFormat::Json => {
            let mut value = comparison.to_json();
            if let Some(package) = &package {
                value["package"] = json!({
                    "old": package.old.to_string(),
                    "declared": package.declared.to_string(),
                    "required": package.required.to_string(),
                    "enough": package.enough,
                });
            }
            print_json(&value);
        }
        DiffFormat::Markdown => {
            let note =
                package.as_ref().filter(|package| !package.enough).map(|package| format!("\n{}\n", package.says()));
            print_exact(&format!("{}{}", comparison.to_markdown(), note.unwrap_or_default()));
        }
        DiffFormat::Text => print(&people(&comparison, package.as_ref(), printer)),
    }
    let allowed = |impact: Impact| match args.allow {
        None => !impact.may_break(),
        Some(Allow::Undecided) => impact <= Impact::Undecided,
        Some(Allow::Breaking) => true,
    };
    // The package's version announces all its changes.
    let announced = package.is_some_and(|package| package.enough);
    let fails = !announced && comparison.unannounced().any(|change| !allowed(change.impact));
    if fails { Err(CliError::already_reported(CliErrorKind::ChecksFailed)) } else { Ok(()) }
}

/// The version of all the tools together.
struct PackageVersion {
    old: Version,
    declared: Version,
    required: Version,
    enough: bool,
}

impl PackageVersion {
    fn check(comparison: &Comparison, old: Version, declared: Version) -> PackageVersion {
        let required = comparison.bump.next(&old);
        let enough = comparison.check_declared(&old, &declared).is_ok();
        PackageVersion { old, declared, required, enough }
    }

    fn says(&self) -> String {
        format!("The package declares {}; after {} its changes need {}.", self.declared, self.old, self.required)
    }
}

fn version(text: &str) -> Result<Version, CliError> {
    let wrong = || CliError::new(CliErrorKind::Usage, format!("`{text}` is not a semantic version; write it as 1.2.3"));
    Version::parse(text.trim_start_matches('v')).map_err(|_| wrong())
}

fn people(comparison: &Comparison, package: Option<&PackageVersion>, printer: Printer) -> String {
    let left_out = comparison.left_out().map(|says| format!("{}\n", printer.paint(TextStyle::Dim, &says)));
    let left_out = left_out.unwrap_or_default();
    if comparison.changes.is_empty() {
        return format!("No changes.\n{left_out}");
    }
    let mut page = changes(&comparison.changes, printer);
    let _ = writeln!(page, "\nRequired bump: {}", printer.paint(TextStyle::Bold, comparison.bump.word()));
    for check in &comparison.versions {
        let (ink, verdict) = if check.enough {
            (TextStyle::Good, "is enough".to_owned())
        } else {
            (TextStyle::Bad, format!("is too small; after {} its changes need {}", check.old, check.required))
        };
        let _ =
            writeln!(page, "{}: {}", clean(&check.tool), printer.paint(ink, &format!("{} {verdict}", check.declared)));
    }
    if let Some(package) = package {
        let says =
            if package.enough { format!("The package's {} is enough.", package.declared) } else { package.says() };
        let _ =
            writeln!(page, "{}", printer.paint(if package.enough { TextStyle::Good } else { TextStyle::Bad }, &says));
    } else if comparison.changes.iter().any(|change| matches!(change.kind, "tool-removed" | "tool-renamed")) {
        let says = "A tool that is gone has no version of its own to grow; the package's is checked with --old-version \
                    and --new-version.";
        let _ = writeln!(page, "{}", printer.paint(TextStyle::Dim, says));
    } else if comparison.versions.is_empty() && comparison.changes.iter().any(|change| change.impact.may_break()) {
        let says = "No version is stated, so nothing announces these changes; write `- **Version**: 2.0.0` under the \
                    tool's heading, or pass --old-version and --new-version.";
        let _ = writeln!(page, "{}", printer.paint(TextStyle::Dim, says));
    }
    page + &left_out
}

/// Changes, a line each under the tool's name.
pub fn changes(changes: &[compare::Change], printer: Printer) -> String {
    let mut page = String::new();
    let mut tool = None;
    for change in changes {
        if tool != Some(&change.tool) {
            tool = Some(&change.tool);
            let name = if change.tool.is_empty() { compare::ALL_TOOLS } else { &change.tool };
            let _ = writeln!(page, "{}", printer.paint(TextStyle::Bold, &clean(name)));
        }
        let ink = match change.impact {
            Impact::Breaking => TextStyle::Bad,
            Impact::Undecided => TextStyle::Warn,
            Impact::Additive => TextStyle::Good,
            Impact::Cosmetic => TextStyle::Dim,
        };
        let word = format!("{:<9}", change.impact.word());
        let path = if change.path.is_empty() { String::new() } else { format!("{}: ", clean(&change.path)) };
        let _ = writeln!(page, "  {}  {path}{}", printer.paint(ink, &word), clean(&change.message));
    }
    page
}
