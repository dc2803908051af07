//! The options of the virtual devices and of the benchmark.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use sinew_bench::Stage;
use sinew_sim::faults::Faults;
use sinew_sim::http_board::HttpBoardStyle;
use sinew_sim::phone::{Android, LockScreen};

use super::connection::ReachArgs;
use super::values::{address, android, duration, lock, luck};

#[derive(Args, Debug)]
pub struct SimArgs {
    #[command(subcommand)]
    pub command: SimCommand,
}

#[derive(Subcommand, Debug)]
pub enum SimCommand {
    /// Connect virtual boards to a gateway
    Board(Box<SimBoardArgs>),
    /// Start a virtual board that is an MCP server over HTTP
    HttpBoard(SimHttpBoardArgs),
    /// Start virtual phones that the real adb connects to
    Phone(SimPhoneArgs),
    /// Start a virtual voice server for relayed boards
    Voice(SimVoiceArgs),
    /// Say something to a virtual board, and show the conversation with its voice server
    Say(SimSayArgs),
    /// Run a cluster of gateways with many devices in virtual time, and check what must hold
    Fleet(SimFleetArgs),
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
pub struct SimHttpBoardArgs {
    /// Whose manners the board has: espressif, zephyr, arduino or micropython
    #[arg(long, value_name = "STACK", default_value = "espressif")]
    pub style: HttpBoardStyle,

    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7310", value_parser = address)]
    pub listen: SocketAddr,
}

#[derive(Args, Debug)]
pub struct SimBoardArgs {
    /// How many boards to connect
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,

    /// Kind of board
    #[arg(long, value_enum, default_value_t = BoardKindArg::Companion)]
    pub kind: BoardKindArg,

    /// Address of a listener for boards: ws://, wss://, mqtt:// or mqtts:// [default: that of the running gateway]
    #[arg(long, value_name = "URL", conflicts_with = "ota")]
    pub connect: Option<String>,

    /// Address of an MQTT broker between the boards and the gateway: mqtt:// or mqtts://
    #[arg(long, value_name = "URL", conflicts_with_all = ["connect", "ota"])]
    pub broker: Option<String>,

    /// User name for the broker; the token is the password
    #[arg(long, value_name = "NAME", requires = "broker")]
    pub username: Option<String>,

    /// Share one connection to the broker among all boards, for large numbers
    #[arg(long, requires = "broker")]
    pub crowd: bool,

    /// Ask at this address for the settings, as firmware does; the boards then wait for approval
    #[arg(long, value_name = "URL")]
    pub ota: Option<String>,

    /// Faults for each message, as chances between 0 and 1: lost, late, garbled, doubled and disconnect, repeatable by
    /// their seed; for example lost=0.01,late=0.05,seed=7. Also habits of firmware: strict-ids (refuses
    /// a request id it has seen), wake (starts conversations) and odd-bytes (text that is not UTF-8)
    #[arg(long, value_name = "LIST", value_parser = luck)]
    pub luck: Option<Faults>,

    /// Number of the first board; its hardware address is made from it [default: the first that no other `sinew sim
    /// board` uses]
    #[arg(long, value_name = "N")]
    pub first: Option<u32>,

    /// Local IP address to connect from; one address has too few ports for many thousands of boards
    #[arg(long, value_name = "IP")]
    pub source: Option<std::net::IpAddr>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BoardKindArg {
    /// A talking board with volume, screen and camera
    Companion,
    /// A sensor and relay board
    Relay,
}

#[derive(Args, Debug)]
pub struct SimVoiceArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = VOICE_ADDRESS, value_parser = address)]
    pub listen: SocketAddr,

    /// Token that boards and relays must send
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
}

#[derive(Args, Debug)]
pub struct SimSayArgs {
    /// Board to speak to: its id, or its hardware address for a board that is spoken to by somebody else
    pub board: String,

    /// What to say, in one argument or in several
    #[arg(required = true)]
    pub text: Vec<String>,

    /// Address of the virtual voice server
    #[arg(long, value_name = "ADDR", default_value = VOICE_ADDRESS, value_parser = address)]
    pub voice: SocketAddr,
}

/// Where `sinew sim voice` and `sinew demo` have their voice server.
pub const VOICE_ADDRESS: &str = "127.0.0.1:7303";

#[derive(Args, Debug)]
pub struct SimPhoneArgs {
    /// Address at which the first phone waits for adb; the others use every second port after it (0: any free port)
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7355", value_parser = address)]
    pub adb: SocketAddr,

    /// Android version to imitate: 9, 11, 13 or 15
    #[arg(long, value_name = "VERSION", default_value = "15", value_parser = android)]
    pub android: Android,

    /// How many phones to start
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub count: u16,

    /// Screen lock: none, swipe or pin=DIGITS
    #[arg(long, value_name = "LOCK", default_value = "swipe", value_parser = lock)]
    pub lock: LockScreen,

    /// Minimum time of every command, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub latency: u64,

    /// Run Sinew's agent on a JVM when it is started on the phone; DIR is the folder that android/build wrote
    #[arg(long, value_name = "DIR")]
    pub agent: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct SimFleetArgs {
    /// Number of devices; a million take 8 GB of memory
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub devices: u32,

    /// Number of gateways
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub nodes: u16,

    /// Seed of the trouble; the same one gives the same report
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Virtual time with trouble, for example 5m
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    pub trouble: std::time::Duration,
}

/// The names of the stages, which the help and a refusal list.
fn stages() -> impl TypedValueParser<Value = Stage> {
    let names = PossibleValuesParser::new(Stage::USUAL.map(Stage::name));
    names.try_map(|name| Stage::named(&name).ok_or("there is no such stage"))
}

#[derive(Args, Debug)]
pub struct BenchArgs {
    /// Run briefly: the same figures, less exact
    #[arg(long)]
    pub quick: bool,

    /// Measure only this stage; may be repeated
    #[arg(long, value_name = "STAGE", value_parser = stages(),
          conflicts_with_all = ["fleet", "crowd", "chaos", "soak"])]
    pub only: Vec<Stage>,

    /// Rounds of each speed measurement; the best of each is reported, all are in the JSON
    #[arg(long, value_name = "N")]
    pub rounds: Option<u32>,

    /// Seconds for each measurement of a round
    #[arg(long, value_name = "N")]
    pub seconds: Option<f64>,

    /// Number of connected boards for the memory figure
    #[arg(long, value_name = "N")]
    pub boards: Option<u32>,

    /// Measure only this many boards at once, and boards on MQTT [default: 15000]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "15000",
          conflicts_with_all = ["boards", "rounds"])]
    pub fleet: Option<u32>,

    /// Measure only this many boards behind one connection to a Mosquitto broker [default: 100000]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "100000",
          conflicts_with_all = ["boards", "rounds", "fleet"])]
    pub crowd: Option<u32>,

    /// Kill, fill and garble everything for this many seconds while clients call, and check that no call is lost,
    /// unrecorded or made twice
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400),
          conflicts_with_all = ["quick", "boards", "rounds", "seconds", "fleet", "crowd"])]
    pub chaos: Option<u32>,

    /// Seed of the chaos; the same one gives the same disturbances
    #[arg(long, value_name = "N", default_value_t = 1, requires = "chaos")]
    pub seed: u64,

    /// Spread a million calls over this many minutes, and follow memory and latency [default: 60]
    #[arg(long, value_name = "MINUTES", num_args = 0..=1, require_equals = true, default_missing_value = "60",
          conflicts_with_all = ["quick", "boards", "rounds", "seconds", "fleet", "crowd", "chaos"])]
    pub soak: Option<f64>,

    /// Draw the soak into this SVG file
    #[arg(long, value_name = "FILE", requires = "soak")]
    pub plot: Option<std::path::PathBuf>,
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
