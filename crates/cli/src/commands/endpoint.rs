//! `sinew endpoint`: the gateway's tools at a broker of MCP endpoints, for as long as this runs.
//!
//! Like `stdio`, this is a pump to the gateway that runs, and only where none does is one opened here.

use serde_json::json;
use sinew_compose::config::shape;
use sinew_front::dialout::{self, Address};
use tokio_util::sync::CancellationToken;

use super::stdio::{Place, find_or_open, stream_path};
use crate::args::Endpoint;
use crate::client::Target;
use crate::clients;
use crate::failure::{Failure, Kind};
use crate::show::{Show, print};
use crate::stop::StopSignal;

pub async fn run(args: Endpoint, show: Show) -> Result<(), Failure> {
    let address: Address = args.broker.parse().map_err(|problem: String| Failure::new(Kind::Usage, problem))?;
    match find_or_open(&args.reach, false).await? {
        Place::Running(target) => {
            let mut stop = StopSignal::new()?;
            let path = stream_path(args.unfolded);
            // Tried once beforehand: a refused token is a failure, not something to try again for ever.
            let client = format!("endpoint {address}");
            drop(clients::open(&target, &client, path).await?);
            announce(&address, &target.url.to_string(), show);
            let shutdown = CancellationToken::new();
            // Found anew for every connection: a gateway that was restarted may be elsewhere.
            let open = || async {
                let stream = async { clients::open(&Target::find(&args.reach)?, &client, path).await };
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
            ran.map_err(|error| Failure::new(Kind::Io, error.to_string()))
        }
        Place::Here(mut house, mut stop) => {
            announce(&address, &house.doors.url, show);
            let front = house.front.clone();
            house.spawn_client(|shutdown| dialout::serve(front, address, shape(args.unfolded), shutdown));
            Ok(house.run(async || stop.wait().await).await?)
        }
    }
}

fn announce(address: &Address, gateway: &str, show: Show) {
    let gateway = gateway.trim_end_matches('/');
    print(&if show.json() {
        format!("{}\n", json!({"broker": address.to_string(), "gateway": gateway}))
    } else {
        format!("The tools of the gateway at {gateway} are offered at {address}; Ctrl-C ends it.\n")
    });
}
