//! `sinew app`: for authors of apps that offer tools. One file a command.
//!
//! Exit code 0 means no problem, 1 that something was found, 2 that the arguments or a file could not be read.

pub mod args;
mod inspect;
mod lint;
mod scaffold;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::json;
use sinew_apps::apk::{self, AndroidManifest, ApkError, ApkFile};
use sinew_apps::lint::code_words;
use sinew_apps::offer::{self, AppOffer, ProtocolNames};
use sinew_apps::rules::{RULES, rule};
use sinew_tool::finding::{Finding, Rule, Severity};
use sinew_tool::spelling::nearest;

use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, Table, TextStyle, clean, print, print_json};
use args::{AppArgs, AppCommand};

pub async fn run(args: AppArgs, printer: Printer) -> Result<(), CliError> {
    let done = match args.command {
        AppCommand::Inspect { file } => inspect::run(&file, printer).await,
        AppCommand::Lint(args) => lint::run(args, printer).await,
        AppCommand::Rules => rules(printer),
        AppCommand::Explain { rule } => explain(&rule, printer),
        AppCommand::Scaffold(args) => scaffold::run(args, printer),
    };
    let kinds = [CliErrorKind::Usage, CliErrorKind::Config, CliErrorKind::Io].map(|kind| CliError::new(kind, "").exit);
    done.map_err(|failure| if kinds.contains(&failure.exit) { CliError { exit: 2, ..failure } } else { failure })
}

/// What was read of an app.
struct ParsedApp {
    manifest: AndroidManifest,
    offer: AppOffer,
    /// The source of a manifest; an APK has none.
    text: Option<String>,
    /// Those words of the protocols that its code holds; `None` where there is no code to look at.
    code: Option<Vec<&'static str>>,
}

/// The file that is meant: of a folder, the manifest where Android's tools keep it.
fn file(path: &Path) -> Result<PathBuf, CliError> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let places = ["", "src/main", "app/src/main"].map(|place| path.join(place).join("AndroidManifest.xml"));
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| {
        let message = format!("no AndroidManifest.xml is in {}, its src/main or its app/src/main", path.display());
        CliError::new(CliErrorKind::Usage, format!("{message}; name an APK or a manifest"))
    })
}

/// Reads an APK or a source manifest.
async fn read(path: &Path, names: &ProtocolNames, with_code: bool) -> Result<ParsedApp, CliError> {
    let unreadable =
        |error: std::io::Error| CliError::new(CliErrorKind::Usage, format!("cannot read {}: {error}", path.display()));
    let refused = |error: ApkError| CliError::new(CliErrorKind::Usage, format!("{}: {error}", path.display()));
    let mut start = Vec::new();
    File::open(path).and_then(|file| file.take(2).read_to_end(&mut start)).map_err(unreadable)?;
    if start == b"PK" {
        let source = ApkFile::open(path).map_err(unreadable)?;
        let (manifest, offer) = offer::read(&source, names).await.map_err(refused)?;
        let code = match with_code {
            true => apk::read_code(&source, &code_words()).await.map_err(refused)?,
            false => None,
        };
        return Ok(ParsedApp { manifest, offer, text: None, code });
    }
    // One byte more than allowed shows that the file is too large.
    let mut bytes = Vec::new();
    let most = apk::MAX_MANIFEST as u64 + 1;
    File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(unreadable)?;
    let text = String::from_utf8(bytes).ok();
    let text =
        text.filter(|text| text.trim_start_matches('\u{feff}').trim_start().starts_with('<')).ok_or_else(|| {
            let message = format!("{} is neither an APK nor an AndroidManifest.xml in UTF-8", path.display());
            CliError::new(CliErrorKind::Usage, message)
        })?;
    let manifest = apk::source_xml::parse_manifest(&text).map_err(refused)?;
    let offer = offer::offers(&manifest, names);
    Ok(ParsedApp { manifest, offer, text: Some(text), code: None })
}

fn rules(printer: Printer) -> Result<(), CliError> {
    if printer.is_json() {
        let rule = |rule: &&Rule| json!({"rule": rule.id, "severity": rule.severity.word(), "title": rule.title});
        print_json(&json!({ "rules": RULES.iter().map(rule).collect::<Vec<_>>() }));
        return Ok(());
    }
    let mut table = Table::new(["RULE", "SEVERITY", "REQUIREMENT"]).wrap(&["REQUIREMENT"]);
    for rule in RULES {
        table.row([
            (Some(TextStyle::Bold), rule.id.to_owned()),
            (Some(style(rule.severity)), rule.severity.word().to_owned()),
            (None, rule.title.to_owned()),
        ]);
    }
    print(&printer.table(&table));
    Ok(())
}

fn style(severity: Severity) -> TextStyle {
    match severity {
        Severity::Error => TextStyle::Bad,
        Severity::Warning => TextStyle::Warn,
        Severity::Advice => TextStyle::Accent,
    }
}

fn explain(id: &str, printer: Printer) -> Result<(), CliError> {
    let rule = rule(id).ok_or_else(|| {
        let ids = || RULES.iter().map(|rule| rule.id);
        let hint = match nearest(id, ids()) {
            Some(id) => format!("did you mean `{id}`?"),
            None => format!("there are {}", ids().collect::<Vec<_>>().join(", ")),
        };
        CliError::new(CliErrorKind::Usage, format!("there is no rule `{id}`; {hint}"))
    })?;
    if printer.is_json() {
        print_json(&json!({
            "rule": rule.id, "severity": rule.severity.word(), "title": rule.title, "why": rule.why,
            "bad": rule.bad, "good": rule.good,
        }));
    } else {
        print(&rule.explain());
    }
    Ok(())
}

/// A finding for people: what kind, what, where.
fn shown(finding: &Finding, path: &str, printer: Printer) -> String {
    let head = format!("{}[{}]", finding.severity.word(), finding.rule.id);
    let line = finding.place.line().map(|line| format!(":{line}")).unwrap_or_default();
    let arrow = printer.paint(TextStyle::Dim, "-->").into_owned();
    format!(
        "{}: {}\n {arrow} {}{line}\n",
        printer.paint(style(finding.severity), &head),
        clean(&finding.message),
        clean(path)
    )
}
