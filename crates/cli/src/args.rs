//! The command line as clap reads it. `docs/cli.md` is printed from here.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use sinew_compose::Overrides;
use sinew_compose::config::MqttAddress;
use sinew_sim::faults::Faults;
use sinew_sim::phone::{Android, LockScreen};

/// One MCP endpoint for boards and phones: tools of many devices behind one gateway.
///
/// Start with `sinew demo`: a gateway with virtual boards and a virtual phone, nothing to set up.
#[derive(Parser, Debug)]
#[command(name = "sinew", version, disable_help_subcommand = true, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    pub command: CliCommand,

    /// Tables for people, JSON for scripts
    #[arg(long, global = true, value_enum, default_value_t = OutputFormat::Table, help_heading = "Output")]
    pub output: OutputFormat,

    /// Never colour the output (also: NO_COLOR)
    #[arg(long, global = true, help_heading = "Output")]
    pub no_color: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    Table,
    Json,
}

#[derive(Subcommand, Debug)]
pub enum CliCommand {
    /// Start a gateway with virtual boards and a virtual phone, and print how to use it
    Demo(DemoArgs),
    /// Start a gateway
    Serve(ServeArgs),
    /// Speak MCP on standard input and output, for clients that start their servers
    Stdio(StdioArgs),
    /// Offer the tools at a broker of MCP endpoints, which the gateway dials
    Endpoint(EndpointArgs),
    /// List the devices, rename one, or agree on its tools
    Devices(DevicesArgs),
    /// List the boards that wait to be let in, or let one in
    Boards(BoardsArgs),
    /// List the phones with their states, or connect one over the network
    Phones(PhonesArgs),
    /// List the tools, of all devices or of one
    Tools(ToolsArgs),
    /// Call a tool on a device
    Call(CallArgs),
    /// Show what devices said without being asked
    Events(EventsArgs),
    /// Make, list and revoke tokens
    Token(TokenArgs),
    /// Tool specifications: check, print, compare and lock them
    Spec(crate::commands::spec::args::SpecArgs),
    /// Apps that offer tools: inspect, check and create them
    App(crate::commands::app::args::AppArgs),
    /// Virtual devices
    Sim(SimArgs),
    /// Check ports, token, certificate, adb and state directory, and say how to mend them
    Doctor(DoctorArgs),
    /// Check a configuration file, or print the schema of its settings
    Config(ConfigArgs),
    /// Measure speed and size on this machine
    Bench(BenchArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// A yardstick server that `bench` starts
    #[command(hide = true)]
    BenchPeer(BenchPeerArgs),
}

/// Where a gateway keeps its things.
#[derive(Args, Debug, Clone, Default)]
pub struct StateArgs {
    /// State directory [default: $XDG_STATE_HOME/sinew or ~/.local/state/sinew]
    #[arg(long, value_name = "DIR", env = "SINEW_STATE", hide_env_values = true)]
    pub state: Option<PathBuf>,
}

/// How a client command reaches the gateway.
#[derive(Args, Debug, Clone, Default)]
pub struct ReachArgs {
    /// The gateway's address [default: the one that runs on the state directory]
    #[arg(long, value_name = "URL", env = "SINEW_URL", hide_env_values = true)]
    pub url: Option<String>,

    /// The token to show [default: the gateway's own, from the state directory]
    #[arg(long, value_name = "TOKEN", env = "SINEW_TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// SHA-256 fingerprint of the certificate to trust at an https address
    #[arg(long, value_name = "HEX", env = "SINEW_FINGERPRINT", hide_env_values = true)]
    pub fingerprint: Option<String>,

    #[command(flatten)]
    pub state: StateArgs,
}

/// Where a gateway listens, and how it is protected.
#[derive(Args, Debug, Clone, Default)]
pub struct ListenArgs {
    /// Address of the clients' door: MCP, REST and this command line [default: 127.0.0.1:7300]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub listen: Option<SocketAddr>,

    /// Address of the boards' door [default: 127.0.0.1:7301]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub devices: Option<SocketAddr>,

    /// Address of the boards' MQTT door, or `off` [default: 127.0.0.1:7302]
    #[arg(long, value_name = "ADDR")]
    pub mqtt: Option<MqttAddress>,

    /// Name or address under which boards reach this machine [default: guessed from the doors and the network]
    #[arg(long, value_name = "HOST")]
    pub advertise: Option<String>,

    #[command(flatten)]
    pub state: StateArgs,

    /// The gateway's own token [default: made on first start and kept in the state directory]
    #[arg(long, value_name = "TOKEN", env = "SINEW_TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// Serve the clients' door over HTTPS, with a certificate of its own unless one is given
    #[arg(long)]
    pub tls: bool,

    /// Certificate chain to serve, PEM; implies --tls
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Serve the boards' doors over TLS (wss, mqtts) with the same certificate
    #[arg(long)]
    pub devices_tls: bool,

    /// Allow listening beyond loopback without TLS: tokens then travel in the clear
    #[arg(long)]
    pub insecure_lan: bool,
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
            certificate: args.tls_cert.clone().zip(args.tls_key.clone()),
            devices_tls: args.devices_tls,
            insecure_lan: args.insecure_lan,
        }
    }
}

#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Tell a story instead: a note is written, a list scrolled and a picture pinched on the virtual phone. It opens
    /// no doors and keeps nothing
    #[arg(long, conflicts_with_all = ["listen", "devices", "mqtt", "advertise", "tls", "tls_cert", "tls_key",
          "devices_tls", "insecure_lan"])]
    pub story: bool,

    #[command(flatten)]
    pub listen: ListenArgs,
}

#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Configuration file; flags override it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    #[command(flatten)]
    pub listen: ListenArgs,
}

#[derive(Args, Debug)]
pub struct StdioArgs {
    /// Start the virtual devices too, when no gateway runs and one is started here
    #[arg(long)]
    pub demo: bool,

    /// Offer every device's tools under names of their own (<device>__<tool>)
    #[arg(long)]
    pub unfolded: bool,

    /// Name of the client; its token and its calls in the audit have this name. Without it, the client's own name is used
    #[arg(long, value_name = "NAME", value_parser = named)]
    pub client: Option<String>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
pub struct EndpointArgs {
    /// Address of the broker, for example wss://HOST/mcp/?token=TOKEN
    #[arg(value_name = "URL", env = "MCP_ENDPOINT", hide_env_values = true)]
    pub broker: String,

    /// Offer every device's tools under names of their own (<device>__<tool>)
    #[arg(long)]
    pub unfolded: bool,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DevicesArgs {
    #[command(subcommand)]
    pub command: Option<DevicesCommand>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Subcommand, Debug)]
pub enum DevicesCommand {
    /// Give a device a speaking name; its id stays valid
    Rename {
        /// Id or present name of the device
        device: String,
        /// The new name
        name: String,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Forget a device that is away: its name, its pin and its tools
    Forget(DeviceArgs),
    /// Give a device labels; a call to `label:NAME` goes to all devices with that label
    Label(LabelsArgs),
    /// Remove labels from a device
    Unlabel(LabelsArgs),
    /// Agree on a device's tools as they are; from then on they change in the open, or are held back
    Pin(DeviceArgs),
    /// Let a device change its tools as it likes again
    Unpin(DeviceArgs),
    /// Show how a device's tools changed, and what is held back
    Changes(DeviceArgs),
    /// Take what is held back or gone of a device's tools as it is now
    Accept {
        #[command(flatten)]
        device: DeviceArgs,
        /// Only this tool
        #[arg(long)]
        tool: Option<String>,
    },
}

#[derive(Args, Debug)]
pub struct LabelsArgs {
    /// Id or name of the device
    pub device: String,

    /// Labels: letters a-z, digits and hyphens
    #[arg(required = true)]
    pub labels: Vec<String>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
pub struct DeviceArgs {
    /// Id or name of the device
    pub device: String,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BoardsArgs {
    #[command(subcommand)]
    pub command: Option<BoardsCommand>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Subcommand, Debug)]
pub enum BoardsCommand {
    /// Let the board in that shows this code
    Approve {
        /// Six digits, as the board shows them and `sinew boards` lists them
        code: String,
        #[command(flatten)]
        reach: ReachArgs,
    },
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct PhonesArgs {
    #[command(subcommand)]
    pub command: Option<PhonesCommand>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Subcommand, Debug)]
pub enum PhonesCommand {
    /// List the apps on the phones that offer tools, and what is wrong with those that do not work
    Apps {
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Connect a phone on the network, through this machine's adb server; a gateway connects it again where it is lost
    Connect {
        /// The phone's address, as it shows under Wireless debugging
        #[arg(value_name = "IP:PORT")]
        address: String,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Disconnect a phone on the network, and do not connect it again
    Disconnect {
        /// The phone's address, as `sinew phones` shows it under SERIAL
        #[arg(value_name = "IP:PORT")]
        address: String,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Install the companion app on a phone, for tools of apps that answer as activities do; asks first
    InstallCompanion(InstallCompanionArgs),
    /// Pair with a phone (Android 11 and later), through this machine's adb server
    Pair {
        /// The address that the phone shows under "Pair device with pairing code"
        #[arg(value_name = "IP:PORT")]
        address: String,
        /// The six digits it shows there
        code: String,
    },
}

#[derive(Args, Debug)]
pub struct InstallCompanionArgs {
    /// The phone, by its id or name in the gateway, or by its serial
    pub device: String,

    /// Do not ask
    #[arg(long)]
    pub yes: bool,

    /// The folder that android/build filled, where it is neither beside `sinew` nor in the state directory
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
pub struct ToolsArgs {
    /// Only the tools of this device, by id or name
    pub device: Option<String>,

    /// The form in which every device's tools have names of their own
    #[arg(long, conflicts_with = "device")]
    pub unfolded: bool,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
pub struct CallArgs {
    /// Id or name of the device, or label:NAME for all devices with a label
    pub device: String,

    /// Name of the tool
    pub tool: String,

    /// Arguments as key=value, typed by the tool's schema
    #[arg(value_name = "KEY=VALUE", conflicts_with = "json")]
    pub arguments: Vec<String>,

    /// All arguments as one JSON object
    #[arg(long, value_name = "OBJECT")]
    pub json: Option<String>,

    /// How long the call may take, for example 500ms, 10s, 2m or 1h [default: the gateway's]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,

    /// Save images, audio and other binary content to files in this folder
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
pub struct EventsArgs {
    /// Only events of this device, by id or name
    pub device: Option<String>,

    /// Go on showing events as they come, until interrupted
    #[arg(long, short)]
    pub follow: bool,

    /// Show at most this many past events
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
pub struct TokenArgs {
    #[command(subcommand)]
    pub command: TokenCommand,
}

#[derive(Subcommand, Debug)]
pub enum TokenCommand {
    /// Make a token; it is shown once
    New {
        #[command(flatten)]
        role: TokenRoleArgs,
        /// How long the token is valid, for example 12h or 30d [default: without an end]
        #[arg(long, value_name = "TIME", value_parser = validity)]
        expires: Option<Duration>,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// List the tokens, without their secrets
    List {
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Revoke a token
    Revoke {
        /// Id of the token, as `token list` shows it
        id: String,
        #[command(flatten)]
        reach: ReachArgs,
    },
}

/// A token without a name could not be told from the others.
fn named(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a name is needed, for example the program or the person it is for".to_owned()),
        name => Ok(name.to_owned()),
    }
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub struct TokenRoleArgs {
    /// For a board or a tool provider: opens only the boards' door, and only for the device with this id or hardware id (MAC)
    #[arg(long, value_name = "ID")]
    pub device: Option<String>,

    /// For a client: list devices and call tools
    #[arg(long, value_name = "NAME", value_parser = named)]
    pub client: Option<String>,

    /// For an administrator: everything a client may, and names and tokens
    #[arg(long, value_name = "NAME", value_parser = named)]
    pub admin: Option<String>,
}

#[derive(Args, Debug)]
pub struct SimArgs {
    #[command(subcommand)]
    pub command: SimCommand,
}

#[derive(Subcommand, Debug)]
pub enum SimCommand {
    /// Connect virtual boards to a gateway
    Board(SimBoardArgs),
    /// Start virtual phones that the real adb connects to
    Phone(SimPhoneArgs),
    /// Serve the fixture device of the official MCP conformance suite, on loopback and without a token
    // It asks for no token, so only builds for tests have it.
    #[cfg(debug_assertions)]
    #[command(hide = true)]
    Conformance {
        /// Address to listen on; loopback only
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7390", value_parser = address)]
        listen: SocketAddr,
    },
}

#[derive(Args, Debug)]
pub struct SimBoardArgs {
    /// How many boards
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,

    /// What kind of board
    #[arg(long, value_enum, default_value_t = BoardKind::Companion)]
    pub kind: BoardKind,

    /// Address of a boards' door: ws://, wss://, mqtt:// or mqtts:// [default: ws of the running gateway]
    #[arg(long, value_name = "URL", conflicts_with = "ota")]
    pub connect: Option<String>,

    /// Address of a broker between the boards and the gateway: mqtt:// or mqtts://
    #[arg(long, value_name = "URL", conflicts_with_all = ["connect", "ota"])]
    pub broker: Option<String>,

    /// User name for the broker; the token is the password
    #[arg(long, value_name = "NAME", requires = "broker")]
    pub username: Option<String>,

    /// Let all boards share one connection to the broker, and one machine: for large numbers
    #[arg(long, requires = "broker")]
    pub crowd: bool,

    /// Let the boards ask at this address where they belong, as firmware does; they wait for approval
    #[arg(long, value_name = "URL")]
    pub ota: Option<String>,

    /// Bad luck for each message, as chances between 0 and 1, repeatable by its seed; for example
    /// lost=0.01,late=0.05,garbled=0.01,doubled=0.02,disconnect=0.005,seed=7
    #[arg(long, value_name = "LIST", value_parser = luck)]
    pub luck: Option<Faults>,

    /// The first board's number; it makes the hardware address
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub first: u32,

    /// Dial from this address of the machine: with many thousands of boards one has too few ports
    #[arg(long, value_name = "IP")]
    pub source: Option<std::net::IpAddr>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BoardKind {
    /// A talking board with volume, screen and camera
    Companion,
    /// A sensor and relay board
    Relay,
}

#[derive(Args, Debug)]
pub struct SimPhoneArgs {
    /// Where the first phone waits for adb; further ones on every second port after it. Port 0 takes free ones
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7355", value_parser = address)]
    pub adb: SocketAddr,

    /// The version of Android whose formats it speaks: 9, 11, 13 or 15
    #[arg(long, value_name = "VERSION", default_value = "15", value_parser = android)]
    pub android: Android,

    /// How many phones
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub count: u16,

    /// What guards a phone that sleeps: none, swipe or pin=DIGITS
    #[arg(long, value_name = "LOCK", default_value = "swipe", value_parser = lock)]
    pub lock: LockScreen,

    /// Milliseconds that every command takes at least
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub latency: u64,

    /// Run Sinew's agent where it is started there, on a JVM; DIR is the folder that android/build filled
    #[arg(long, value_name = "DIR")]
    pub agent: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Also check the settings of this configuration file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub command: ConfigCommand,
}

#[derive(Subcommand, Debug)]
pub enum ConfigCommand {
    /// Check a file as `serve` would read it, without starting anything; exits with 2 where something is wrong
    Check {
        /// The configuration file
        file: PathBuf,
    },
    /// Print the JSON Schema of the configuration file, for editors
    Schema,
}

#[derive(Args, Debug)]
pub struct BenchArgs {
    /// A short run: the same figures, less exact
    #[arg(long)]
    pub quick: bool,

    /// Rounds of each speed measurement; the best of each is reported, all are in the JSON
    #[arg(long, value_name = "N")]
    pub rounds: Option<u32>,

    /// Seconds for each measurement of a round
    #[arg(long, value_name = "N")]
    pub seconds: Option<f64>,

    /// Connected boards for the memory figure
    #[arg(long, value_name = "N")]
    pub boards: Option<u32>,

    /// Measure a fleet of this many boards, and boards on MQTT, instead of everything else [default: 15000]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "15000",
          conflicts_with_all = ["boards", "rounds"])]
    pub fleet: Option<u32>,

    /// Measure this many boards behind one connection to a Mosquitto, instead of everything else [default: 100000]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "100000",
          conflicts_with_all = ["boards", "rounds", "fleet"])]
    pub crowd: Option<u32>,
}

#[derive(Args, Debug)]
pub struct BenchPeerArgs {
    #[arg(value_enum)]
    pub kind: PeerKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PeerKind {
    Rmcp,
    Axum,
}

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an IP address and a port, for example 127.0.0.1:7300 or [::1]:7300".to_owned())
}

fn luck(text: &str) -> Result<Faults, String> {
    match text.trim() {
        "" => Err("expected at least one chance, for example lost=0.05".to_owned()),
        text => text.parse(),
    }
}

/// `500ms`, `10s`, `2m`, `1h`; a bare number is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let number: f64 = digits.parse().map_err(|_| "expected a time such as 500ms, 10s, 2m or 1h".to_owned())?;
    let seconds = match &text[digits.len()..] {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        unit => return Err(format!("`{unit}` is not a unit of time; use ms, s, m or h")),
    };
    // A day: longer budgets are a slip of the finger.
    if !(seconds > 0.0 && seconds <= 86_400.0) {
        return Err("expected a time between 1ms and 24 hours".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// How long a token is valid.
fn validity(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a time such as 12h or 30d, of at most 3650d".to_owned();
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let unit = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let seconds = number.checked_mul(unit).filter(|seconds| (1..=3650 * 86_400).contains(seconds)).ok_or_else(wrong)?;
    Ok(Duration::from_secs(seconds))
}

fn android(text: &str) -> Result<Android, String> {
    Android::parse(text).ok_or_else(|| "expected 9, 11, 13 or 15".to_owned())
}

fn lock(text: &str) -> Result<LockScreen, String> {
    let is_pin = |pin: &str| (4..=16).contains(&pin.len()) && pin.bytes().all(|byte| byte.is_ascii_digit());
    match (text, text.strip_prefix("pin=")) {
        ("none", _) => Ok(LockScreen::None),
        ("swipe", _) => Ok(LockScreen::Swipe),
        (_, Some(pin)) if is_pin(pin) => Ok(LockScreen::Pin(pin.to_owned())),
        _ => Err("expected none, swipe, or pin= and 4 to 16 digits".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_have_units() {
        assert_eq!(validity("30d"), Ok(Duration::from_secs(30 * 86_400)));
        for wrong in ["", "30", "0d", "d", "-1d", "1w", "99999999999999999999d", "4000d"] {
            assert!(validity(wrong).is_err(), "{wrong}");
        }
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
        for wrong in ["", "s", "-1s", "0", "1d", "25h", "inf", "NaN", "1e99", "五s"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn flags_that_would_do_nothing_are_refused() {
        for wrong in [
            &["sim", "board", "--count", "0"][..],
            &["sim", "board", "--luck", ""],
            &["demo", "--story", "--listen", "127.0.0.1:0"],
            &["demo", "--story", "--tls"],
            &["serve", "--listen", "localhost:7300"],
        ] {
            assert!(Cli::try_parse_from([&["sinew"], wrong].concat()).is_err(), "{wrong:?}");
        }
        assert!(Cli::try_parse_from(["sinew", "demo", "--story"]).is_ok());
        assert!(Cli::try_parse_from(["sinew", "sim", "board", "--luck", "lost=0.1"]).is_ok());
    }

    #[test]
    fn a_lock_is_nothing_a_swipe_or_a_pin() {
        assert_eq!(lock("none"), Ok(LockScreen::None));
        assert_eq!(lock("pin=1234"), Ok(LockScreen::Pin("1234".to_owned())));
        for wrong in ["", "pin", "pin=", "pin=12", "pin=12a4", "fingerprint"] {
            assert!(lock(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_new_token_has_exactly_one_role() {
        assert!(Cli::try_parse_from(["sinew", "token", "new"]).is_err());
        assert!(Cli::try_parse_from(["sinew", "token", "new", "--client", "a", "--admin", "b"]).is_err());
        assert!(Cli::try_parse_from(["sinew", "token", "new", "--device", "board-1"]).is_ok());
    }
}
