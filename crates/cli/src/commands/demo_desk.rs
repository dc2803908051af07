//! What stands on the desk of the demo beside boards and phone: one device of each other family, as the configuration
//! would name it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use sinew_compose::families::FamilyPlans;
use sinew_compose::{GatewayConfig, GatewayServer};
use sinew_sim::desk::{self, HttpLamp};
use sinew_sim::http_board::{HttpBoard, HttpBoardStyle};
use tokio_util::sync::CancellationToken;

use crate::error::{CliError, CliErrorKind};

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Starts the virtual devices, and connects them. Gives their keys.
pub async fn connect(server: &mut GatewayServer) -> Result<Vec<&'static str>, CliError> {
    let kiln = kiln(server).await?;
    let lamp = HttpLamp::open(ANY_PORT).await.map_err(failed)?;
    let mut config = format!(
        "[[servers]]\nname = 'kiln'\nurl = '{kiln}'\n\
         [[things]]\nname = 'desk-lamp'\n\
         [[things.tools]]\nname = 'turn'\ndescription = 'Turn the lamp on or off.'\neffect = 'change'\n\
         input = {{ properties = {{ to = {{ enum = ['on', 'off'], description = 'The state to turn to.' }} }}, required = ['to'] }}\n\
         http = {{ url = '{0}/relay/0?turn=${{to}}', pick = '/ison' }}\n\
         [[things.tools]]\nname = 'get'\ndescription = 'Say whether the lamp is lit.'\neffect = 'read'\n\
         http = {{ url = '{0}/relay/0', pick = '/ison' }}\n",
        lamp.url().map_err(failed)?
    );
    server.spawn_device(|shutdown| lamp.run(shutdown));
    let mut keys = vec!["server:kiln", "thing:desk-lamp"];
    if let Some(port) = plant(server)? {
        config.push_str(&format!("[[serial]]\npath = '{port}'\nid = 'plant'\n"));
        keys.push("serial:plant");
    }
    let config = GatewayConfig::load_text(Path::new("the demo"), &config)?;
    server.families.add(FamilyPlans::of(&config).map_err(sinew_compose::Error::from)?);
    Ok(keys)
}

fn failed(error: std::io::Error) -> CliError {
    CliError::new(CliErrorKind::Io, format!("a virtual device of the demo cannot be started: {error}"))
}

/// A board that is an MCP server over HTTP, and its address.
async fn kiln(server: &mut GatewayServer) -> Result<String, CliError> {
    let end = CancellationToken::new();
    let kiln = HttpBoard::open(HttpBoardStyle::Espressif, ANY_PORT, end.clone()).await.map_err(failed)?;
    server.spawn_device(|shutdown| async move {
        shutdown.cancelled().await;
        end.cancel();
        Ok(())
    });
    Ok(kiln.url())
}

/// A board on a serial line, and the path of its port.
#[cfg(unix)]
fn plant(server: &mut GatewayServer) -> Result<Option<String>, CliError> {
    let port = sinew_serial::PseudoPort::open().map_err(failed)?;
    let path = port.path().display().to_string();
    let mut board = desk::plant();
    server.spawn_device(|shutdown| port.run(move |text| board.handle_text(text), shutdown));
    Ok(Some(path))
}

#[cfg(not(unix))]
fn plant(_: &mut GatewayServer) -> Result<Option<String>, CliError> {
    Ok(None)
}
