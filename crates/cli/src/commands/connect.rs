//! `sinew connect`: how AI clients are connected to the gateway.

use crate::args::ConnectArgs;
use crate::client::GatewayTarget;
use crate::client_setup::ClientSetup;
use crate::error::CliError;
use crate::terminal::{Printer, print, print_json};
use sinew_compose::state;

pub fn run(args: &ConnectArgs, printer: Printer) -> Result<(), CliError> {
    let reach = &args.reach;
    let base = reach.state.directory()?;
    let running = state::find_running(&base);
    let url = match GatewayTarget::named(reach)? {
        Some(target) => target.url.to_string().trim_end_matches('/').to_owned(),
        None => running.as_ref().map_or("http://127.0.0.1:7300".to_owned(), |running| running.addresses.url.clone()),
    };
    let setup = ClientSetup {
        url,
        token: reach.token.clone(),
        state: (state::directory(None).ok().as_ref() != Some(&base)).then(|| base.display().to_string()),
        fingerprint: running.as_ref().and_then(|running| running.addresses.fingerprint.clone()),
    };
    if printer.is_json() {
        print_json(&setup.to_json());
        return Ok(());
    }
    print(setup.to_text(printer).trim_start_matches('\n'));
    print(&match running {
        Some(running) => format!("\nClients use {}.\n", running.describe()),
        None => "\nNo gateway runs now. The first client starts one; `sinew serve` starts one that stays.\n".to_owned(),
    });
    Ok(())
}
