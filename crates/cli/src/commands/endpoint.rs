//! `sinew endpoint`: the gateway's tools at a broker of MCP endpoints, for as long as this runs.
//!
//! Like `stdio`, this is a pump to the gateway that runs, and only where none does is one opened here.

use serde_json::json;
use sinew_compose::config::shape;
use sinew_compose::state::StartedBy;
use sinew_front::dialout::{self, EndpointAddress};
use tokio_util::sync::CancellationToken;

use crate::args::EndpointArgs;
use crate::client::GatewayTarget;
use crate::client_tokens::{self, ClientName, NewTokens};
use crate::error::{CliError, CliErrorKind};
use crate::relay::{GatewayLocation, find_or_open, stream_path};
use crate::stop::StopSignal;
use crate::terminal::Printer;

pub async fn run(args: EndpointArgs, printer: Printer) -> Result<(), CliError> {
    let address: EndpointAddress =
        args.broker.parse().map_err(|problem: String| CliError::new(CliErrorKind::Usage, problem))?;
    match find_or_open(&args.reach, false, StartedBy::Serve).await? {
        GatewayLocation::Running(target, _) => {
            let mut stop = StopSignal::new()?;
            let path = stream_path(shape(args.unfolded).into());
            // Tried once beforehand: a refused token is a failure, not something to try again for ever.
            let client = ClientName::Own(format!("endpoint {address}"));
            drop(client_tokens::open(&target, &client, &path, NewTokens::IfNeeded).await?);
            announce(&address, &target.url.to_string(), printer);
            let shutdown = CancellationToken::new();
            // Found anew for every connection: a gateway that was restarted may be elsewhere.
            let open = || async {
                let stream = async {
                    client_tokens::open(&GatewayTarget::find(&args.reach)?, &client, &path, NewTokens::IfNone).await
                };
                stream.await.map_err(std::io::Error::other)
            };
            let mut running = std::pin::pin!(dialout::run(&address, open, shutdown.clone()));
            let ran = tokio::select! {
                ran = &mut running => ran,
                () = stop.wait() => {
                    shutdown.cancel();
                    running.await
                }
            };
            ran.map_err(|error| CliError::new(CliErrorKind::Io, error.to_string()))
        }
        GatewayLocation::Here(mut server) => {
            let mut stop = StopSignal::new()?;
            announce(&address, &server.addresses.url, printer);
            let front = server.front.clone();
            server.spawn_client(|shutdown| dialout::serve(front, address, shape(args.unfolded), shutdown));
            Ok(server.run(async || stop.wait().await).await?)
        }
    }
}

fn announce(address: &EndpointAddress, gateway: &str, printer: Printer) {
    let gateway = gateway.trim_end_matches('/');
    printer.announce(&json!({"broker": address.to_string(), "gateway": gateway}), || {
        format!("The tools of the gateway at {gateway} are offered at {address}; Ctrl-C ends it.\n")
    });
}
