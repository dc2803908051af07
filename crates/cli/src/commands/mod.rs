//! One file a verb. Each reads its arguments, asks the gateway, and shows the answer.

pub mod app;
mod bench;
mod boards;
mod call;
mod companion;
mod config;
mod demo;
mod devices;
mod doctor;
mod endpoint;
mod events;
mod phones;
mod pins;
mod serve;
mod sim;
pub mod spec;
mod stdio;
mod story;
mod token;
mod tools;

use clap::CommandFactory;
use serde::Serialize;

use crate::args::{Cli, Verb};
use crate::failure::Failure;
use crate::show::Show;

pub async fn run(verb: Verb, show: Show) -> Result<(), Failure> {
    match verb {
        Verb::Demo(args) => demo::run(args, show).await,
        Verb::Serve(args) => serve::run(args, show).await,
        Verb::Stdio(args) => stdio::run(args).await,
        Verb::Endpoint(args) => endpoint::run(args, show).await,
        Verb::Devices(args) => devices::run(args, show).await,
        Verb::Boards(args) => boards::run(args, show).await,
        Verb::Phones(args) => phones::run(args, show).await,
        Verb::Tools(args) => tools::run(args, show).await,
        Verb::Call(args) => call::run(args, show).await,
        Verb::Events(args) => events::run(args, show).await,
        Verb::Token(args) => token::run(args, show).await,
        Verb::Spec(args) => spec::run(args, show).await,
        Verb::App(args) => app::run(args, show).await,
        Verb::Sim(args) => sim::run(args, show).await,
        Verb::Doctor(args) => doctor::run(args, show).await,
        Verb::Config(args) => config::run(args, show),
        Verb::Bench(args) => bench::run(args, show).await,
        Verb::BenchPeer(args) => bench::peer(args).await,
        Verb::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Cli::command(), "sinew", &mut script);
            crate::show::print(&String::from_utf8_lossy(&script));
            Ok(())
        }
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

/// A request that says nothing more than its path does.
#[derive(Serialize)]
struct Empty {}
