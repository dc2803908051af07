//! The command line as clap reads it. `docs/cli.md` is printed from here.

mod connection;
mod devices;
mod examples;
mod sim;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use sinew_compose::config::shape;
use sinew_front::{ListForm, Schemas};

pub use connection::{ListenArgs, ReachArgs, StateArgs};
pub use devices::*;
pub use examples::{command_tree, parse};
pub use sim::*;
pub(crate) use values::duration;

/// One MCP endpoint for boards, phones and apps: the tools of many devices behind one gateway.
#[derive(Parser, Debug)]
#[command(name = "sinew", version, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    pub command: CliCommand,

    /// Print one JSON document instead of text; short for --output json
    #[arg(long, global = true)]
    pub json: bool,

    /// Format of the output: tables for people, JSON for scripts
    #[arg(long, global = true, value_enum, default_value_t = OutputFormat::Table)]
    pub output: OutputFormat,

    /// Print without colour; NO_COLOR does the same
    #[arg(long, global = true)]
    pub no_color: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    Table,
    Json,
    /// Only for `sinew audit`
    Csv,
}

impl Cli {
    pub fn format(&self) -> OutputFormat {
        if self.json { OutputFormat::Json } else { self.output }
    }
}

#[derive(Subcommand, Debug)]
pub enum CliCommand {
    /// Start a gateway with virtual boards and a virtual phone
    Demo(DemoArgs),
    /// Start a gateway
    Serve(ServeArgs),
    /// Serve MCP on standard input and output, for clients that start their servers
    Stdio(StdioArgs),
    /// Connect an AI client to the gateway: write its configuration, or print it
    Connect(ConnectArgs),
    /// Offer the tools at a broker of MCP endpoints
    Endpoint(EndpointArgs),
    /// Show the gateway and what is connected to it
    Status(StatusArgs),
    /// Exit with 0 if the gateway can make calls, for containers and scripts
    Health(StatusArgs),
    /// List devices; show, rename, label, pin or forget one
    Devices(DevicesArgs),
    /// List boards that wait for approval, or approve one
    Boards(BoardsArgs),
    /// List MCP servers that the gateway calls, or add and remove one
    Servers(ServersArgs),
    /// Show the gateways of the cluster and their devices
    Cluster(ClusterArgs),
    /// List the serial ports of this machine
    Serial,
    /// List phones, or connect one over the network
    Phones(PhonesArgs),
    /// List tools, or show one
    Tools(ToolsArgs),
    /// Call a tool on a device
    Call(CallArgs),
    /// Show events sent by devices
    Events(EventsArgs),
    /// Create, list and revoke tokens
    Token(TokenArgs),
    /// Open the console in a browser, signed in
    Console(crate::commands::console::ConsoleArgs),
    /// Add, list and remove people who sign in to the console
    People(crate::commands::people::PeopleArgs),
    /// List clients that people let in by signing in, and sign them out
    SignIns(crate::commands::sign_ins::SignInsArgs),
    /// List, approve and deny calls that wait for a person
    Approvals(crate::commands::approvals::ApprovalsArgs),
    /// Show what was called, decided and changed
    Audit(crate::commands::audit::AuditArgs),
    /// Show recent calls with their answers
    Journal(crate::commands::journal::JournalArgs),
    /// Write, check and run routines: tools made of other tools' calls
    Routine(crate::commands::routine::RoutineArgs),
    /// Explain, test and review who may call which tools
    Policy(crate::commands::policy::PolicyArgs),
    /// Check, print, compare and lock tool specifications
    Spec(crate::commands::spec::args::SpecArgs),
    /// Inspect, check and generate apps that offer tools
    App(crate::commands::app::args::AppArgs),
    /// Start virtual devices
    Sim(SimArgs),
    /// Find problems with the setup, and print how to fix them
    Doctor(DoctorArgs),
    /// Write everything that the gateway remembers into one file
    Backup(BackupArgs),
    /// Put a backup in the place of the state directory
    Restore(RestoreArgs),
    /// Check a configuration file, or print the schema of its settings
    Config(ConfigArgs),
    /// Measure speed and memory on this machine
    Bench(BenchArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Write the manual pages, one for each command
    Manual(ManualArgs),
    /// Serve as a comparison for `bench`
    #[command(hide = true)]
    BenchPeer(BenchPeerArgs),
}

impl CliCommand {
    /// The configuration of a command that runs a gateway, or may run one.
    pub fn state(&self) -> Option<&StateArgs> {
        match self {
            CliCommand::Demo(args) => Some(&args.listen.state),
            CliCommand::Serve(args) => Some(&args.listen.state),
            CliCommand::Stdio(args) => Some(&args.reach.state),
            CliCommand::Endpoint(args) => Some(&args.reach.state),
            _ => None,
        }
    }
}

#[derive(Args, Debug)]
pub struct ClusterArgs {
    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Play a scene on the virtual phone instead: write a note, scroll a list, pinch a map. Opens no listener and
    /// keeps nothing
    #[arg(long, conflicts_with_all = ["listen", "devices", "mqtt", "advertise", "tls", "tls_cert", "tls_key",
          "devices_tls", "insecure_lan"])]
    pub story: bool,

    /// Print all client configurations too
    #[arg(long, short)]
    pub verbose: bool,

    #[command(flatten)]
    pub listen: ListenArgs,
}

#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Print all client configurations too
    #[arg(long, short)]
    pub verbose: bool,

    #[command(flatten)]
    pub listen: ListenArgs,
}

#[derive(Args, Debug)]
pub struct StdioArgs {
    /// Start virtual devices too, if no gateway runs and one is started here
    #[arg(long)]
    pub demo: bool,

    /// Offer every device's tools under names of their own (<device>__<tool>)
    #[arg(long)]
    pub unfolded: bool,

    /// Form of the schemas: as every AI client accepts them, or as the devices wrote them
    #[arg(long, value_enum, value_name = "FORM", default_value_t = SchemaForm::Portable)]
    pub schemas: SchemaForm,

    /// Name of the client, for its token and its calls in the audit [default: the name it gives itself]
    #[arg(long, value_name = "NAME", value_parser = values::name)]
    pub client: Option<String>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaForm {
    Portable,
    Exact,
}

impl StdioArgs {
    pub fn list_form(&self) -> ListForm {
        let schemas = match self.schemas {
            SchemaForm::Portable => Schemas::Portable,
            SchemaForm::Exact => Schemas::Exact,
        };
        ListForm { schemas, ..shape(self.unfolded).into() }
    }
}

#[derive(Args, Debug)]
pub struct ConnectArgs {
    /// Client to set up: claude-desktop, claude-code, vscode, cursor, windsurf, zed, gemini-cli, codex or goose
    #[arg(value_name = "CLIENT")]
    pub name: Option<String>,

    /// Print what would change, and change nothing
    #[arg(long)]
    pub print: bool,

    /// Remove the entry for Sinew from the client's file, and revoke its token
    #[arg(long, requires = "name", conflicts_with_all = ["http", "list"])]
    pub remove: bool,

    /// List the clients, their files, and which of them have an entry for Sinew
    #[arg(long, conflicts_with_all = ["name", "print", "client"])]
    pub list: bool,

    /// Let the client speak HTTP to the gateway, with a token in its file, instead of starting `sinew stdio`
    #[arg(long, requires = "name")]
    pub http: bool,

    /// Replace an entry `sinew` that somebody else wrote
    #[arg(long, requires = "name")]
    pub force: bool,

    /// Configuration file to change, for example that of a project [default: the client's own, for all projects]
    #[arg(long, value_name = "FILE", requires = "name")]
    pub file: Option<PathBuf>,

    /// Name of the client, for its token and rules about it [default: the name of CLIENT]. Without CLIENT: print what
    /// one client needs; for a name that is not one of the above, a token for HTTP is created
    #[arg(long, value_name = "NAME", value_parser = values::name)]
    pub client: Option<String>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
pub struct StatusArgs {
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
pub struct DoctorArgs {
    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
pub struct BackupArgs {
    /// File to write; it must not exist yet
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// File that `sinew backup` wrote
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Also restore a backup whose audit is not as it was written
    #[arg(long)]
    pub any_audit: bool,

    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Args, Debug)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub command: ConfigCommand,
}

#[derive(Subcommand, Debug)]
pub enum ConfigCommand {
    /// Check a file as `serve` would read it, without starting anything; exits with 2 if something is wrong
    Check {
        /// The configuration file
        #[arg(env = "SINEW_CONFIG", hide_env_values = true)]
        file: PathBuf,

        /// State directory whose tokens and devices the rules are compared with [default: that of the file]
        #[arg(long, value_name = "DIR", env = "SINEW_STATE", hide_env_values = true)]
        state: Option<PathBuf>,
    },
    /// Print the JSON Schema of the configuration file, for editors
    Schema,
}

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub struct ManualArgs {
    /// Folder for the pages; it is created if it is missing
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command_tree().debug_assert();
    }

    #[test]
    fn options_without_effect_are_refused() {
        for wrong in [
            &["sim", "board", "--count", "0"][..],
            &["sim", "board", "--luck", ""],
            &["demo", "--story", "--listen", "127.0.0.1:0"],
            &["demo", "--story", "--tls"],
            &["serve", "--listen", "nowhere.example:7300"],
            &["devices", "--ca", "ca.pem", "--fingerprint", "00"],
        ] {
            assert!(Cli::try_parse_from([&["sinew"], wrong].concat()).is_err(), "{wrong:?}");
        }
        assert!(Cli::try_parse_from(["sinew", "demo", "--story"]).is_ok());
        assert!(Cli::try_parse_from(["sinew", "serve", "--listen", "localhost:7300"]).is_ok());
        assert!(Cli::try_parse_from(["sinew", "sim", "board", "--luck", "lost=0.1"]).is_ok());
    }

    /// The image begins the program, so that the command of the compose file is the rest of its command line.
    #[test]
    fn the_compose_file_of_the_example_starts_gateways() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |file: &str| std::fs::read_to_string(root.join(file)).expect("a file");
        assert!(read("packaging/Dockerfile").contains("\nENTRYPOINT [\"/sinew\"]\n"));
        let compose = read("examples/cluster/compose.yaml");
        let commands: Vec<Vec<String>> = compose
            .lines()
            .filter_map(|line| line.trim().strip_prefix("command: "))
            .map(|command| serde_json::from_str(command).expect("a list"))
            .collect();
        let [nats, gateway] = &commands[..] else { panic!("two commands were expected: {commands:?}") };
        assert_eq!(nats[0], "-js");
        let parsed = Cli::try_parse_from(["sinew"].into_iter().chain(gateway.iter().map(String::as_str)));
        assert!(matches!(parsed.map(|cli| cli.command), Ok(CliCommand::Serve(_))), "{gateway:?}");
    }

    #[test]
    fn a_new_token_has_exactly_one_role() {
        assert!(Cli::try_parse_from(["sinew", "token", "new"]).is_err());
        assert!(Cli::try_parse_from(["sinew", "token", "new", "--client", "a", "--admin", "b"]).is_err());
        assert!(Cli::try_parse_from(["sinew", "token", "new", "--device", "board-1"]).is_ok());
    }
}
