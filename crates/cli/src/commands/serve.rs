//! `sinew serve`: a gateway until it is stopped.

use sinew_compose::{GatewayConfig, GatewayServer, Overrides, reload};

use crate::args::ServeArgs;
use crate::error::CliError;
use crate::start_page::StartPage;
use crate::stop::StopSignal;
use crate::terminal::Printer;

pub async fn run(args: ServeArgs, printer: Printer) -> Result<(), CliError> {
    let flags = Overrides::from(&args.listen);
    let settings = match &args.listen.state.config {
        Some(path) => GatewayConfig::settings(path, &flags)?,
        None => GatewayConfig::default().with(&flags)?,
    };
    let follows_phones = settings.phones.is_some();
    let mut stop = StopSignal::new()?;
    let mut server = GatewayServer::open_taking_over(settings).await?;
    let config = args.listen.state.config;
    if let Some(path) = &config {
        tracing::info!(path = %path.display(), "configuration loaded");
    }
    let (gateway, families) = (server.gateway.clone(), server.families.clone());
    server.spawn_client(|stop| reload::follow(config, gateway, families, stop));
    let title = format!("Sinew {} is running.", env!("CARGO_PKG_VERSION"));
    let page = StartPage { follows_phones, ..StartPage::new(title, &server, &server.directory) };
    page.print(printer, args.verbose);
    Ok(server.run(async || stop.wait().await).await?)
}
