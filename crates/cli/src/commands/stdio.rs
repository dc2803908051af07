//! `sinew stdio`: MCP on standard input and output.
//!
//! The client is served by the gateway that runs. If none does, one is opened in this process, with its listeners,
//! so that the next client and the command line find it.

use crate::args::StdioArgs;
use crate::error::CliError;
use crate::relay::{self, Connector};
use crate::stop::StopSignal;

pub async fn run(args: StdioArgs) -> Result<(), CliError> {
    let mut stop = StopSignal::new()?;
    let mut connector = Connector::new(&args);
    let served = tokio::select! {
        served = relay::run(&mut connector, args.client.as_deref()) => served,
        () = stop.wait() => Ok(()),
    };
    tokio::select! {
        () = connector.close() => {}
        () = stop.wait() => {}
    }
    served
}
