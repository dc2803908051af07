//! One file a command. Each reads its arguments, asks the gateway, and shows the answer.

pub mod app;
pub mod approvals;
pub mod audit;
mod backup;
mod bench;
mod boards;
mod call;
mod cluster;
mod companion;
mod config;
mod connect;
pub mod console;
pub mod demo;
mod demo_desk;
mod device_page;
mod devices;
mod doctor;
mod endpoint;
mod events;
mod fleet;
mod health;
pub mod journal;
mod leases;
mod manual;
pub mod people;
mod phone_files;
mod phones;
mod pins;
pub mod policy;
pub mod routine;
mod serial;
mod serve;
mod servers;
pub mod sign_ins;
mod sim;
mod sim_numbers;
pub mod spec;
mod status;
mod stdio;
mod story;
mod token;
mod tool_page;
mod tools;

use serde::Serialize;

use crate::args::{CliCommand, OutputFormat, command_tree};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::Printer;

pub async fn run(command: CliCommand, printer: Printer) -> Result<(), CliError> {
    if printer.output == OutputFormat::Csv && !matches!(command, CliCommand::Audit(_)) {
        let message = "`--output csv` is only for `sinew audit`; use `--output json`";
        return Err(CliError::new(CliErrorKind::Usage, message));
    }
    match command {
        CliCommand::Demo(args) => demo::run(args, printer).await,
        CliCommand::Serve(args) => serve::run(args, printer).await,
        CliCommand::Stdio(args) => stdio::run(args).await,
        CliCommand::Connect(args) => connect::run(&args, printer).await,
        CliCommand::Status(args) => status::run(args, printer).await,
        CliCommand::Health(args) => health::run(args, printer).await,
        CliCommand::Endpoint(args) => endpoint::run(args, printer).await,
        CliCommand::Devices(args) => devices::run(args, printer).await,
        CliCommand::Boards(args) => boards::run(args, printer).await,
        CliCommand::Cluster(args) => cluster::run(args, printer).await,
        CliCommand::Servers(args) => servers::run(args, printer).await,
        CliCommand::Serial => serial::run(printer),
        CliCommand::Phones(args) => phones::run(args, printer).await,
        CliCommand::Tools(args) => tools::run(args, printer).await,
        CliCommand::Call(args) => call::run(args, printer).await,
        CliCommand::Events(args) => events::run(args, printer).await,
        CliCommand::Token(args) => token::run(args, printer).await,
        CliCommand::Console(args) => console::run(args, printer).await,
        CliCommand::People(args) => people::run(args, printer).await,
        CliCommand::SignIns(args) => sign_ins::run(args, printer).await,
        CliCommand::Approvals(args) => approvals::run(args, printer).await,
        CliCommand::Audit(args) => audit::run(args, printer).await,
        CliCommand::Journal(args) => journal::run(args, printer).await,
        CliCommand::Routine(args) => routine::run(args, printer).await,
        CliCommand::Policy(args) => policy::run(args, printer).await,
        CliCommand::Spec(args) => spec::run(args, printer).await,
        CliCommand::App(args) => app::run(args, printer).await,
        CliCommand::Sim(args) => sim::run(args, printer).await,
        CliCommand::Doctor(args) => doctor::run(args, printer).await,
        CliCommand::Backup(args) => backup::run(&args, printer).await,
        CliCommand::Restore(args) => backup::restore(&args, printer).await,
        CliCommand::Config(args) => config::run(args, printer).await,
        CliCommand::Bench(args) => bench::run(args, printer).await,
        CliCommand::BenchPeer(args) => bench::peer(args).await,
        CliCommand::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut command_tree(), "sinew", &mut script);
            crate::terminal::print_exact(&String::from_utf8_lossy(&script));
            Ok(())
        }
        CliCommand::Manual(args) => manual::run(&args, printer),
    }
}

/// `3 min ago`, from milliseconds of Unix time.
fn ago(at: i64) -> String {
    let seconds = (jiff::Timestamp::now().as_millisecond() - at).max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// How long it is until then.
fn until(at: i64) -> String {
    let seconds = (at - jiff::Timestamp::now().as_millisecond()).max(0) / 1000;
    match seconds {
        0..60 => format!("in {seconds} s"),
        60..3600 => format!("in {} min", seconds / 60),
        _ => format!("in {} h", seconds / 3600),
    }
}

/// A request that says nothing more than its path does.
#[derive(Serialize)]
struct EmptyRequest {}
