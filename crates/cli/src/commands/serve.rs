//! `sinew serve`: a gateway until it is stopped.

use sinew_compose::{GatewayConfig, GatewayServer, Overrides};

use crate::args::ServeArgs;
use crate::error::CliError;
use crate::start_page::{self, StartPage};
use crate::stop::StopSignal;
use crate::terminal::{Printer, print};

pub async fn run(args: ServeArgs, printer: Printer) -> Result<(), CliError> {
    let flags = Overrides::from(&args.listen);
    let settings = match &args.config {
        Some(path) => GatewayConfig::settings(path, &flags)?,
        None => GatewayConfig::default().with(&flags)?,
    };
    let mut stop = StopSignal::new()?;
    let server = GatewayServer::open(settings).await?;
    let page = StartPage {
        title: format!("Sinew {} is running.", env!("CARGO_PKG_VERSION")),
        addresses: server.addresses.clone(),
        token: None,
        directory: server.directory.display().to_string(),
        remote_hosts: server.remote_hosts.clone(),
        remote_boards_url: server.remote_boards_url.clone(),
        unencrypted: server.unencrypted.clone(),
        devices: Vec::new(),
        program: start_page::program(),
        state_flag: None,
    };
    // One line, so that whoever started us can read it and go on.
    print(&if printer.is_json() { format!("{}\n", page.to_json()) } else { page.to_text(printer) });
    Ok(server.run(async || stop.wait().await).await?)
}
