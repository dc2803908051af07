//! Options that many commands share: which gateway they talk to, and where a gateway listens.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use sinew_compose::config::{GatewayConfig, MqttAddress};
use sinew_compose::{Overrides, state};

use super::values::address;
use crate::error::CliError;

/// Where a gateway keeps its state.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Connection")]
pub struct StateArgs {
    /// State directory of the gateway [default: $XDG_STATE_HOME/sinew or ~/.local/state/sinew]
    #[arg(long, value_name = "DIR", env = "SINEW_STATE", hide_env_values = true)]
    pub state: Option<PathBuf>,

    /// Configuration file; options override it
    #[arg(long, value_name = "FILE", env = "SINEW_CONFIG", hide_env_values = true)]
    pub config: Option<PathBuf>,
}

impl StateArgs {
    /// The configuration file, or the defaults without one.
    pub fn load_config(&self) -> Result<GatewayConfig, CliError> {
        Ok(self.config.as_deref().map(GatewayConfig::load).transpose()?.unwrap_or_default())
    }

    /// The state directory: that of the option, else that of the configuration file, else the default. A file that is
    /// named is read in any case: one with a mistake is refused, and not ignored beside the option.
    pub fn directory(&self) -> Result<PathBuf, CliError> {
        let configured = self.load_config()?.state;
        Ok(state::directory(self.state.as_deref().or(configured.as_deref()))?)
    }
}

/// How a client command reaches the gateway.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Connection")]
pub struct ReachArgs {
    /// Address of the gateway [default: the gateway that runs on the state directory]
    #[arg(long, value_name = "URL", env = "SINEW_URL", hide_env_values = true)]
    pub url: Option<String>,

    /// Token used to authenticate [default: the gateway's own, from the state directory]
    #[arg(long, value_name = "TOKEN", env = "SINEW_TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// SHA-256 fingerprint of the key of the certificate to trust at an https address
    #[arg(long, value_name = "HEX", env = "SINEW_FINGERPRINT", hide_env_values = true)]
    pub fingerprint: Option<String>,

    /// Certificate authorities to trust at an https address instead of the system's, PEM
    #[arg(long, value_name = "FILE", env = "SINEW_CA", hide_env_values = true, conflicts_with = "fingerprint")]
    pub ca: Option<PathBuf>,

    #[command(flatten)]
    pub state: StateArgs,
}

/// Where a gateway listens, and how it is protected.
#[derive(Args, Debug, Clone, Default)]
pub struct ListenArgs {
    /// Address for clients: MCP, REST and this command line [default: 127.0.0.1:7300]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub listen: Option<SocketAddr>,

    /// Address for boards [default: 127.0.0.1:7301]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub devices: Option<SocketAddr>,

    /// Address for boards over MQTT, or `off` [default: 127.0.0.1:7302]
    #[arg(long, value_name = "ADDR")]
    pub mqtt: Option<MqttAddress>,

    /// Host name or IP address at which boards reach this machine [default: guessed]
    #[arg(long, value_name = "HOST")]
    pub advertise: Option<String>,

    /// The gateway's own token [default: created on the first start, kept in the state directory]
    #[arg(long, value_name = "TOKEN", env = "SINEW_TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// Serve clients over HTTPS; the gateway creates a certificate unless you give one
    #[arg(long)]
    pub tls: bool,

    /// Certificate chain to serve, PEM; implies --tls
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Serve boards over TLS (wss, mqtts) with the same certificate
    #[arg(long)]
    pub devices_tls: bool,

    /// Allow listening on the network without TLS: anyone there can read the tokens
    #[arg(long)]
    pub insecure_lan: bool,

    #[command(flatten)]
    pub state: StateArgs,
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

impl From<&ListenArgs> for Overrides {
    fn from(args: &ListenArgs) -> Overrides {
        Overrides {
            listen: args.listen,
            devices: args.devices,
            mqtt: args.mqtt,
            advertise: args.advertise.clone(),
            state: args.state.state.clone(),
            token: args.token.clone(),
            tls: args.tls,
            // Kept for later starts, which may be in another folder.
            certificate: args.tls_cert.as_deref().map(absolute).zip(args.tls_key.as_deref().map(absolute)),
            devices_tls: args.devices_tls,
            insecure_lan: args.insecure_lan,
        }
    }
}
