//! A gateway in memory with the conformance device behind it, open to the suite:
//! `cargo run -p sinew-front --features conformance --example conformance -- 7310`

use std::error::Error;

use sinew_front::{Front, Settings};
use sinew_gateway::Gateway;
use sinew_tool::DeviceEvent;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let port: u16 = std::env::args().nth(1).unwrap_or_else(|| "7310".to_owned()).parse()?;
    let gateway = Gateway::open(sinew_gateway::Settings::default())?;
    gateway.apply(DeviceEvent::Joined(sinew_sim::conformance::device()));
    let settings = Settings { open: true, conformance: true, ..Settings::default() };
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    sinew_front::http::run(listener, Front { gateway, settings }, None, shutdown).await?;
    Ok(())
}
