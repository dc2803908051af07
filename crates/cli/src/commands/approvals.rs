//! `sinew approvals`: calls that wait for a person.

use std::io::{BufRead as _, IsTerminal as _, Read as _};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::Value;
use sinew_api::{ApprovalVerdict, Approvals, Covers, Decide, Grant, Grants, PersonLogin, WaitingCall};

use super::{ago, until};
use crate::args::{ReachArgs, duration};
use crate::client::{GatewayClient, GatewayTarget, encode};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, Table, TextStyle, clean, hidden_line, print, print_json, show_hidden};

/// How often `--watch` looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ApprovalsArgs {
    #[command(subcommand)]
    command: Option<ApprovalsCommand>,
    /// Show calls as they come, until interrupted
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    reach: ReachArgs,
}

#[derive(Debug, Subcommand)]
enum ApprovalsCommand {
    /// Show a call that waits, with all its arguments
    Show {
        /// Id of the call, as `sinew approvals` shows it
        id: String,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Approve a call, once
    Approve {
        /// Id of the call, as `sinew approvals` shows it
        id: String,
        /// Also approve this caller's calls of the tool on the device for a time such as 10m, with any arguments
        #[arg(long = "for", value_name = "TIME", value_parser = duration)]
        time: Option<Duration>,
        /// Also approve them until it is revoked; of tools that can do harm, with the same arguments only
        #[arg(long, conflicts_with = "time")]
        always: bool,
        #[command(flatten)]
        decider: DeciderArgs,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Deny a call
    Deny {
        /// Id of the call, as `sinew approvals` shows it
        id: String,
        #[command(flatten)]
        decider: DeciderArgs,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// List approvals that can still be used
    Grants {
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Revoke an approval
    Revoke {
        /// Id of the approval, as `sinew approvals grants` shows it
        id: String,
        #[command(flatten)]
        reach: ReachArgs,
    },
}

#[derive(Debug, Args)]
struct DeciderArgs {
    /// Decide as this person, whose passphrase is read from the terminal or from standard input
    #[arg(long = "as", value_name = "NAME")]
    person: Option<String>,
}

impl DeciderArgs {
    fn login(&self) -> Result<Option<PersonLogin>, CliError> {
        let login = |name: &String| Ok(PersonLogin { name: name.clone(), passphrase: read_passphrase(name)? });
        self.person.as_ref().map(login).transpose()
    }
}

pub async fn run(args: ApprovalsArgs, printer: Printer) -> Result<(), CliError> {
    match args.command {
        Some(ApprovalsCommand::Show { id, reach }) => show(&id, &reach, printer).await,
        Some(ApprovalsCommand::Approve { id, time, always, decider, reach }) => {
            let (decision, for_s) = (ApprovalVerdict::Approve, time.map(|time| time.as_secs().max(1)));
            decide(&id, &Decide { decision, for_s, always, person: decider.login()? }, &reach, printer).await
        }
        Some(ApprovalsCommand::Deny { id, decider, reach }) => {
            let (decision, person) = (ApprovalVerdict::Deny, decider.login()?);
            decide(&id, &Decide { decision, for_s: None, always: false, person }, &reach, printer).await
        }
        Some(ApprovalsCommand::Grants { reach }) => grants(&reach, printer).await,
        Some(ApprovalsCommand::Revoke { id, reach }) => revoke(&id, &reach, printer).await,
        None => {
            let mut client = GatewayTarget::find(&args.reach)?.connect().await?;
            if args.watch { watch(&mut client, printer).await } else { list(&mut client, printer).await }
        }
    }
}

async fn list(client: &mut GatewayClient, printer: Printer) -> Result<(), CliError> {
    let answer: Approvals = client.get("/api/v1/approvals").await?;
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    if answer.approvals.is_empty() {
        print("No call waits for approval.\n");
        return Ok(());
    }
    let mut table = Table::new(["CALL", "CALLER", "DEVICE", "TOOL", "ARGUMENTS", "WAITS", "WHY"])
        .cut(&["ARGUMENTS"])
        .wrap(&["WHY"]);
    for call in &answer.approvals {
        table.row([
            (Some(TextStyle::Bold), call.id.clone()),
            (None, call.principal.clone()),
            (None, call.device.clone()),
            (None, call.tool.clone()),
            (None, short_args(call)),
            (None, ago(call.at)),
            (Some(TextStyle::Dim), call.reason.clone()),
        ]);
    }
    print(&printer.table(&table));
    if answer.approvals.iter().any(|call| call.args_cut) {
        print("\nSome arguments are cut: `sinew approvals show CALL` shows all of them.\n");
    }
    print("\nApprove one with `sinew approvals approve CALL`, or deny it with `sinew approvals deny CALL`.\n");
    Ok(())
}

/// The beginning of the arguments, which says so where it is not all.
fn short_args(call: &WaitingCall) -> String {
    let args = show_hidden(&call.args);
    if call.args_cut { format!("(cut) {args}...") } else { args }
}

async fn show(id: &str, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let path = format!("/api/v1/approvals/{}", encode(id));
    let call: WaitingCall = GatewayTarget::find(reach)?.connect().await?.get(&path).await?;
    if printer.is_json() {
        print_json(&call);
        return Ok(());
    }
    let mut page = printer.fact("Call", &clean(&call.id));
    page.push_str(&printer.fact("Caller", &clean(&call.principal)));
    page.push_str(&printer.fact("Device", &clean(&call.device)));
    page.push_str(&printer.fact("Tool", &clean(&call.tool)));
    page.push_str(&printer.fact("Effect", &clean(&call.effect)));
    page.push_str(&printer.fact("Waits", &ago(call.at)));
    page.push_str(&printer.fact("Why", &clean(&call.reason)));
    if call.keep_s > 0 {
        let covers = format!("also later calls of the tool for {} s, with any arguments", call.keep_s);
        page.push_str(&printer.fact("Approval", &covers));
    }
    page.push_str("Arguments\n");
    match serde_json::from_str(&call.args) {
        Ok(args) => page.push_str(&arguments(args, printer)),
        Err(_) => call.args.lines().for_each(|line| page.push_str(&format!("  {}\n", show_hidden(line)))),
    }
    print(&page);
    Ok(())
}

/// Texts of several lines, such as a file that a model proposes, are shown as they are and below the others.
fn arguments(mut args: Value, printer: Printer) -> String {
    let mut texts = Vec::new();
    for (name, value) in args.as_object_mut().into_iter().flatten() {
        if let Some(text) = value.as_str().filter(|text| text.contains('\n')) {
            let lines: String = text.lines().map(|line| format!("  | {}\n", show_hidden(line))).collect();
            texts.push(format!("{}\n{lines}", clean(name)));
            *value = Value::String(format!("{} lines, below", text.lines().count()));
        }
    }
    let others: String = printer.json_lines(&args, 2).iter().map(|line| format!("{line}\n")).collect();
    others + &texts.concat()
}

/// Prints each call once.
async fn watch(client: &mut GatewayClient, printer: Printer) -> Result<(), CliError> {
    let mut shown: Vec<String> = Vec::new();
    loop {
        let answer: Approvals = client.get("/api/v1/approvals").await?;
        for call in answer.approvals.iter().filter(|call| !shown.contains(&call.id)) {
            if printer.is_json() { print_json(call) } else { print(&line(call)) }
        }
        shown = answer.approvals.into_iter().map(|call| call.id).collect();
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn line(call: &WaitingCall) -> String {
    let (id, principal, device) = (clean(&call.id), clean(&call.principal), clean(&call.device));
    let (tool, args, reason) = (clean(&call.tool), clean(&short_args(call)), clean(&call.reason));
    format!(
        "{id}  {principal} calls {tool} on {device} with {args}\n        {reason}; `sinew approvals approve {id}`\n"
    )
}

async fn decide(id: &str, request: &Decide, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let path = format!("/api/v1/approvals/{}", encode(id));
    let call: WaitingCall = GatewayTarget::find(reach)?.connect().await?.post(&path, request).await?;
    if printer.is_json() {
        print_json(&call);
        return Ok(());
    }
    let what = match (request.decision, request.for_s) {
        (ApprovalVerdict::Approve, _) if request.always => {
            let covers = if matches!(call.effect.as_str(), "read" | "change") { "any" } else { "these" };
            format!("Always approved, with {covers} arguments (`sinew approvals revoke {id}` ends it)")
        }
        (ApprovalVerdict::Deny, _) => "Denied".to_owned(),
        (ApprovalVerdict::Approve, None) if call.keep_s > 0 => {
            format!("Approved for {} s, with any arguments, as the policy says", call.keep_s)
        }
        (ApprovalVerdict::Approve, None) => "Approved once".to_owned(),
        (ApprovalVerdict::Approve, Some(seconds)) => format!("Approved for {seconds} s, with any arguments"),
    };
    print(&format!("{what}: {} on {} for {}.\n", clean(&call.tool), clean(&call.device), clean(&call.principal)));
    Ok(())
}

async fn grants(reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let answer: Grants = GatewayTarget::find(reach)?.connect().await?.get("/api/v1/grants").await?;
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    if answer.grants.is_empty() {
        print("Nothing is approved in advance.\n");
        return Ok(());
    }
    let mut table = Table::new(["APPROVAL", "CALLER", "DEVICE", "TOOL", "COVERS", "BY", "ENDS"]).cut(&["COVERS"]);
    for grant in &answer.grants {
        table.row([
            (Some(TextStyle::Bold), grant.id.clone()),
            (None, grant.principal.clone()),
            (None, grant.device.clone()),
            (None, grant.tool.clone()),
            (None, covers(grant)),
            (None, grant.by.clone()),
            (None, grant.ends.map_or("never".to_owned(), until)),
        ]);
    }
    print(&printer.table(&table));
    print("\nRevoke one with `sinew approvals revoke APPROVAL`.\n");
    Ok(())
}

fn covers(grant: &Grant) -> String {
    let args = show_hidden(grant.args.as_deref().unwrap_or_default());
    match grant.covers {
        Covers::Once => format!("once: {args}"),
        Covers::AnyArguments => "any arguments".to_owned(),
        Covers::SameArguments => args,
    }
}

async fn revoke(id: &str, reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let path = format!("/api/v1/grants/{}", encode(id));
    let grant: Grant = GatewayTarget::find(reach)?.connect().await?.delete(&path).await?;
    if printer.is_json() {
        print_json(&grant);
        return Ok(());
    }
    let (tool, device, principal) = (clean(&grant.tool), clean(&grant.device), clean(&grant.principal));
    print(&format!("Revoked: {tool} on {device} for {principal} asks again.\n"));
    Ok(())
}

/// 4 KiB: more than any passphrase that the gateway takes.
const MAX_INPUT: u64 = 4 << 10;

/// Reads one line, and does not show it where a terminal is.
fn read_passphrase(name: &str) -> Result<String, CliError> {
    let failed = |error: std::io::Error| {
        CliError::new(CliErrorKind::Usage, format!("cannot read the passphrase of {}: {error}", clean(name)))
    };
    if std::io::stdin().is_terminal() {
        return hidden_line(&format!("Passphrase of {}: ", clean(name))).map_err(failed);
    }
    let mut line = String::new();
    std::io::stdin().lock().take(MAX_INPUT).read_line(&mut line).map_err(failed)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
