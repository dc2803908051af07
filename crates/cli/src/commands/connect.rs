//! `sinew connect`: how AI clients are connected to the gateway.

use sinew_api::{CreatedToken, IfTaken, NewToken, TokenRole};
use sinew_compose::state;

use crate::args::{ConnectArgs, ReachArgs};
use crate::client::GatewayTarget;
use crate::client_setup::ClientSetup;
use crate::error::CliError;
use crate::terminal::{Printer, print, print_exact, print_json};

pub async fn run(args: &ConnectArgs, printer: Printer) -> Result<(), CliError> {
    let reach = &args.reach;
    let base = reach.state.directory()?;
    let running = state::find_running(&base);
    let (url, remote_url) = match (GatewayTarget::named(reach)?, &running) {
        (Some(target), _) => {
            let url = target.url.to_string().trim_end_matches('/').to_owned();
            (url.clone(), Some(url))
        }
        (None, Some(running)) => (running.addresses.url.clone(), running.addresses.remote_urls().into_iter().next()),
        (None, None) => ("http://127.0.0.1:7300".to_owned(), None),
    };
    let mut setup = ClientSetup {
        url,
        remote_url,
        token: reach.token.clone(),
        state: (state::directory(None).ok().as_ref() != Some(&base)).then(|| base.display().to_string()),
        fingerprint: running.as_ref().and_then(|running| running.addresses.fingerprint.clone()),
    };
    let own_section = args.client.as_ref().and_then(|client| setup.of_client(client, printer));
    if let (Some(client), None) = (&args.client, &own_section) {
        setup.token = Some(new_token(client, reach).await?);
    }
    if printer.is_json() {
        print_json(&setup.to_json());
        return Ok(());
    }
    let page = match (own_section, &args.client) {
        (Some(section), _) => section,
        (None, Some(_)) => setup.with_token(printer),
        (None, None) => setup.to_text(printer),
    };
    print_exact(page.trim_start_matches('\n'));
    print(&match running {
        Some(running) => format!("\nClients use {}.\n", running.describe()),
        None => "\nNo gateway runs now. The first client starts one; `sinew serve` starts one that stays.\n".to_owned(),
    });
    Ok(())
}

async fn new_token(client: &str, reach: &ReachArgs) -> Result<String, CliError> {
    let request = NewToken {
        role: TokenRole::Client,
        label: client.to_owned(),
        device: None,
        expires_in_s: None,
        if_taken: IfTaken::Refuse,
    };
    let made: CreatedToken = GatewayTarget::find(reach)?.connect().await?.post("/api/v1/tokens", &request).await?;
    Ok(made.token)
}
