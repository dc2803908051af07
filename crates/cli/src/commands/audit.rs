//! `sinew audit`: what was called, decided and changed, and whether the records are as they were written.

use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};
use sinew_api::{Audit, AuditCheck, AuditEntry};

use crate::args::{OutputFormat, ReachArgs};
use crate::client::{GatewayClient, GatewayTarget, encode};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, Table, TextStyle, clean, print, print_exact, print_json, say, show_hidden};

/// How often `--follow` looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The gateway's largest page.
const PAGE: usize = 10_000;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AuditArgs {
    #[command(subcommand)]
    command: Option<AuditCommand>,
    /// Only records since then: a time such as 30m, 12h or 7d before now, or a date such as 2026-11-16 or 2026-11-16T08:00
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<i64>,
    /// Only records of a device, by id or name
    #[arg(long, value_name = "ID")]
    device: Option<String>,
    /// Only records of a caller, by the name of the token
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Only records with this outcome: ok, or the type of an error
    #[arg(long)]
    outcome: Option<String>,
    /// Only records of this kind: call, decision, change or device
    #[arg(long)]
    kind: Option<String>,
    /// Only a run of a routine: its own record and those of its steps
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Show at most this many, the newest
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// Also show records as they come, until interrupted
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    reach: ReachArgs,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Check that no record was changed, removed or put in another place
    Verify {
        #[command(flatten)]
        reach: ReachArgs,
    },
}

pub async fn run(args: AuditArgs, printer: Printer) -> Result<(), CliError> {
    if let Some(AuditCommand::Verify { reach }) = &args.command {
        return verify(reach, printer).await;
    }
    let mut client = GatewayTarget::find(&args.reach)?.connect().await?;
    let records = newest(&mut client, &args).await?;
    let mut last = records.last().map_or(0, |record| record.id);
    show(&records, &args, printer, true);
    if !args.follow {
        if records.len() == args.limit {
            say(&format!("These are the newest {}; --limit N shows more.", args.limit));
        }
        return Ok(());
    }
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let records = page(&mut client, &args, &format!("&after={last}&limit={PAGE}")).await?;
        last = records.last().map_or(last, |record| record.id);
        show(&records, &args, printer, false);
    }
}

/// The newest records, oldest first.
async fn newest(client: &mut GatewayClient, args: &AuditArgs) -> Result<Vec<AuditEntry>, CliError> {
    let mut records: Vec<AuditEntry> = Vec::new();
    while records.len() < args.limit {
        let before = records.first().map(|record| format!("&before={}", record.id)).unwrap_or_default();
        let limit = (args.limit - records.len()).min(PAGE);
        let mut older = page(client, args, &format!("{before}&limit={limit}")).await?;
        let is_last = older.len() < limit;
        older.append(&mut records);
        records = older;
        if is_last {
            break;
        }
    }
    Ok(records)
}

/// One page, oldest first.
async fn page(client: &mut GatewayClient, args: &AuditArgs, more: &str) -> Result<Vec<AuditEntry>, CliError> {
    let since = args.since.map(|since| since.to_string());
    let filters = [
        ("device", &args.device),
        ("principal", &args.who),
        ("outcome", &args.outcome),
        ("kind", &args.kind),
        ("run", &args.run),
        ("since", &since),
    ];
    let filters = filters.into_iter().filter_map(|(key, value)| Some(format!("&{key}={}", encode(value.as_ref()?))));
    let path = format!("/api/v1/audit?{}{more}", filters.collect::<String>());
    let Audit { mut records } = client.get(&path.replacen("?&", "?", 1)).await?;
    records.reverse();
    Ok(records)
}

fn show(records: &[AuditEntry], args: &AuditArgs, printer: Printer, is_first: bool) {
    match printer.output {
        OutputFormat::Json if args.follow => records.iter().for_each(print_json_line),
        OutputFormat::Json => print_json(&Audit { records: records.to_vec() }),
        OutputFormat::Csv => {
            if is_first {
                print_exact(
                    "id,time,kind,who,endpoint,device,tool,name,arguments,outcome,ms,bytes,caller,decided,run\r\n",
                );
            }
            records.iter().for_each(|record| print_exact(&csv_line(record)));
        }
        OutputFormat::Table if args.follow => records.iter().for_each(|record| print(&line(record, printer))),
        OutputFormat::Table if records.is_empty() => print("No record fits.\n"),
        OutputFormat::Table => print(&printer.table(&table(records))),
    }
}

fn print_json_line(record: &AuditEntry) {
    print_exact(&serde_json::to_string(record).map(|line| line + "\n").unwrap_or_default());
}

fn table(records: &[AuditEntry]) -> Table {
    let mut table = Table::new(["ID", "TIME", "KIND", "WHO", "DEVICE", "WHAT", "ARGUMENTS", "OUTCOME", "MS"])
        .cut(&["WHAT", "ARGUMENTS"]);
    for record in records {
        let style = if record.outcome == "ok" { TextStyle::Good } else { TextStyle::Bad };
        table.row([
            (None, record.id.to_string()),
            (Some(TextStyle::Dim), time(record.at)),
            (None, if record.kind == "call" { String::new() } else { record.kind.clone() }),
            (None, record.principal.clone()),
            (None, record.device.clone().unwrap_or_default()),
            (Some(TextStyle::Bold), what(record)),
            (None, show_hidden(&record.args)),
            (Some(style), record.outcome.clone()),
            (Some(TextStyle::Dim), milliseconds(record)),
        ]);
    }
    table
}

fn line(record: &AuditEntry, printer: Printer) -> String {
    let style = if record.outcome == "ok" { TextStyle::Good } else { TextStyle::Bad };
    let device = record.device.as_deref().unwrap_or("-");
    format!(
        "{}  {}  {}  {}  {}  {}\n",
        printer.paint(TextStyle::Dim, &time(record.at)),
        clean(&record.principal),
        clean(device),
        printer.paint(TextStyle::Bold, &clean(&what(record))),
        show_hidden(&record.args),
        printer.paint(style, &clean(&record.outcome)),
    )
}

/// The device's own name for the tool, or what was done.
fn what(record: &AuditEntry) -> String {
    match record.kind.as_str() {
        "decision" => format!("{} {}", record.name, record.tool.as_deref().unwrap_or_default()),
        _ => record.tool.clone().unwrap_or_else(|| record.name.clone()),
    }
}

fn milliseconds(record: &AuditEntry) -> String {
    match record.duration_us {
        0 => String::new(),
        micros => format!("{:.1}", micros as f64 / 1000.0),
    }
}

fn time(at: i64) -> String {
    let Ok(at) = jiff::Timestamp::from_millisecond(at) else { return at.to_string() };
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%m-%d %H:%M:%S").to_string()
}

fn csv_line(record: &AuditEntry) -> String {
    let at = jiff::Timestamp::from_millisecond(record.at).map_or_else(|_| record.at.to_string(), |at| at.to_string());
    let fields = [
        record.id.to_string(),
        at,
        record.kind.clone(),
        record.principal.clone(),
        record.door.clone(),
        record.device.clone().unwrap_or_default(),
        record.tool.clone().unwrap_or_default(),
        record.name.clone(),
        show_hidden(&record.args),
        record.outcome.clone(),
        milliseconds(record),
        record.bytes.to_string(),
        record.caller.clone().unwrap_or_default(),
        record.decided.clone().unwrap_or_default(),
        record.run.clone().unwrap_or_default(),
    ];
    fields.map(|field| csv_field(&field)).join(",") + "\r\n"
}

/// In quotes where needed, and so that no spreadsheet takes it for a formula.
fn csv_field(text: &str) -> String {
    let text = clean(text);
    let is_formula = text.starts_with(['=', '+', '-', '@']);
    let quoted = text.replace('"', "\"\"");
    match (is_formula, text.contains(['"', ',', '\n', '\r'])) {
        (true, _) => format!("\"'{quoted}\""),
        (false, true) => format!("\"{quoted}\""),
        (false, false) => text,
    }
}

/// Through the gateway while it runs, and from its state directory otherwise.
async fn verify(reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let check = match GatewayTarget::find(reach) {
        Ok(target) => target.connect().await?.get("/api/v1/audit/verify").await?,
        Err(error) if error.is(CliErrorKind::NoGateway) => verify_state(&reach.state.directory()?)?,
        Err(error) => return Err(error),
    };
    if printer.is_json() {
        print_json(&check);
    } else {
        print(&report(&check, printer));
    }
    match check.ok {
        true => Ok(()),
        false => Err(CliError::already_reported(CliErrorKind::ChecksFailed)),
    }
}

fn verify_state(directory: &Path) -> Result<AuditCheck, CliError> {
    // The demo has a directory of its own below.
    let directories = [directory.to_owned(), sinew_compose::state::demo(directory)];
    let Some(directory) = directories.iter().find(|directory| directory.join("gateway.db").exists()) else {
        let message =
            format!("there is no audit in {}; name another state directory with --state", directory.display());
        return Err(CliError::new(CliErrorKind::Config, message));
    };
    let report = sinew_gateway::verify_audit(directory)
        .map_err(|error| CliError::new(CliErrorKind::Config, error.to_string()))?;
    Ok(sinew_front::audit_check(report))
}

fn report(check: &AuditCheck, printer: Printer) -> String {
    let mut text = String::new();
    for problem in &check.problems {
        text.push_str(&format!("{}  {}\n", printer.paint(TextStyle::Bad, &problem.fault), clean(&problem.message)));
    }
    let hidden = check.problems_in_all.saturating_sub(check.problems.len() as u64);
    if hidden > 0 {
        text.push_str(&format!("and {hidden} more\n"));
    }
    let verdict = match check.ok {
        true => printer.paint(TextStyle::Good, "The audit is whole.").into_owned(),
        false => printer.paint(TextStyle::Bad, "The audit is not as it was written.").into_owned(),
    };
    let sealed = check.sealed_until.map_or("none of them sealed yet".to_owned(), |id| format!("sealed up to {id}"));
    text.push_str(&format!("{verdict} {} records checked, up to {}; {sealed}.\n", check.records, check.checked_until));
    if let Some(id) = check.removed_until {
        text.push_str(&format!("Records up to {id} were removed to keep the number below `max-audit`.\n"));
    }
    if check.emptied > 0 {
        text.push_str(&format!("{} records no longer have their arguments.\n", check.emptied));
    }
    if check.unchained > 0 {
        text.push_str(&format!("{} records of version 0.1.0 cannot be checked.\n", check.unchained));
    }
    text
}

/// Milliseconds of Unix time.
fn since(text: &str) -> Result<i64, String> {
    let now = jiff::Zoned::now();
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3_600),
        "d" => Some(86_400),
        _ => None,
    };
    if let (Some(seconds), Ok(number)) = (seconds, digits.parse::<i64>())
        && number >= 0
    {
        return Ok(now.timestamp().as_millisecond().saturating_sub(number.saturating_mul(seconds * 1000)));
    }
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Ok(at.as_millisecond());
    }
    let local = text.parse::<jiff::civil::DateTime>().and_then(|at| at.to_zoned(now.time_zone().clone()));
    local.map(|at| at.timestamp().as_millisecond()).map_err(|_| {
        format!("`{text}` is not a time; expected for example 30m, 12h, 7d, 2026-11-16 or 2026-11-16T08:00")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_csv_file_stay_apart_and_are_no_formulas() {
        for (text, field) in [
            ("plain", "plain"),
            (r#"{"a":1,"b":2}"#, r#""{""a"":1,""b"":2}""#),
            ("=HYPERLINK(1)", "\"'=HYPERLINK(1)\""),
            ("-1+1", "\"'-1+1\""),
            ("a\nb", "\"a\nb\""),
        ] {
            assert_eq!(csv_field(text), field);
        }
    }

    #[test]
    fn times_are_read_before_now_and_as_dates() {
        let now = jiff::Timestamp::now().as_millisecond();
        let ago = now - since("2h").unwrap();
        assert!((7_200_000..7_260_000).contains(&ago), "{ago}");
        assert_eq!(since("1970-01-02T00:00:00Z"), Ok(86_400_000));
        assert!(since("2026-11-16").is_ok() && since("2026-11-16T08:00").is_ok());
        for wrong in ["", "soon", "5", "-2h", "2y", "2026-13-01", "99999999999999999999h"] {
            assert!(since(wrong).unwrap_err().contains("12h"), "{wrong:?}");
        }
    }
}
