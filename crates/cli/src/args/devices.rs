//! The options of the commands about devices: devices, boards, phones, tools, calls, events and tokens.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::connection::{ReachArgs, StateArgs};
use super::values::{duration, name, validity};

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
    /// Show one device: state, address, tools and what to do if it does not work
    Show(DeviceArgs),
    /// Give a device a name; its id stays valid
    Rename {
        /// Id or current name of the device
        device: String,
        /// The new name; an empty one removes the current name
        name: String,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Forget a device that is away: its name, its pin and its tools
    Forget(DeviceArgs),
    /// Add labels to a device; a call to `label:NAME` goes to all devices with that label
    Label(LabelsArgs),
    /// Remove labels from a device
    Unlabel(LabelsArgs),
    /// Have a device to yourself for a while; others can only read it
    Reserve {
        #[command(flatten)]
        device: DeviceArgs,
        /// How long, for example 30m
        #[arg(long = "for", value_name = "TIME", default_value = "10m", value_parser = duration)]
        time: Duration,
        /// How long to wait while somebody else has it, up to 30s
        #[arg(long, value_name = "TIME", value_parser = duration)]
        wait: Option<Duration>,
        /// What for; shown to administrators
        #[arg(long, value_name = "TEXT", default_value = "")]
        purpose: String,
    },
    /// Give a reserved device back
    Release {
        #[command(flatten)]
        device: DeviceArgs,
        /// Take it away from whoever has it; they are told, and the audit has it
        #[arg(long = "break")]
        breaks: bool,
    },
    /// Pin a device's tools as they are now; differences are then held back
    Pin {
        #[command(flatten)]
        device: DeviceArgs,
        /// Let the device make the changes that its version announces
        #[arg(long, value_name = "LEVEL", value_parser = ["patch", "minor", "major"])]
        follow: Option<String>,
    },
    /// Unpin a device's tools, so that they may change freely
    Unpin(DeviceArgs),
    /// Show how a device's tools changed, and what is held back
    Changes(DeviceArgs),
    /// Accept the changes to a pinned device's tools
    Accept {
        #[command(flatten)]
        device: DeviceArgs,
        /// The digest that `sinew devices changes` showed
        digest: String,
        /// Accept only this tool
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
    /// Approve the board that shows this code, or a server that was found
    Approve {
        /// Six digits as the board shows them, or the name of a found server; `sinew boards` lists both
        code: String,
        #[command(flatten)]
        reach: ReachArgs,
    },
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ServersArgs {
    #[command(subcommand)]
    pub command: Option<ServersCommand>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Subcommand, Debug)]
pub enum ServersCommand {
    /// Add an MCP server by its URL; it stays after a restart
    Add(AddServerArgs),
    /// List the servers of the configuration and those that were added
    List {
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Remove a server that was added
    Remove {
        /// Name of the server
        name: String,
        #[command(flatten)]
        reach: ReachArgs,
    },
}

#[derive(Args, Debug)]
pub struct AddServerArgs {
    /// Address of the server: http://HOST:PORT/mcp
    #[arg(value_name = "URL")]
    pub server: String,

    /// Name of the device: letters a-z, digits and hyphens [default: made from the host]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// File whose first line is the token that is sent to the server
    #[arg(long, value_name = "FILE")]
    pub bearer_file: Option<PathBuf>,

    /// Header of each request; can be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub header: Vec<String>,

    /// Label of the device; can be given several times
    #[arg(long, value_name = "LABEL")]
    pub label: Vec<String>,

    /// Seconds between two looks at the tools [default: 30]
    #[arg(long, value_name = "SECONDS")]
    pub poll: Option<u64>,

    #[command(flatten)]
    pub reach: ReachArgs,
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
    /// List the apps on the phones that offer tools, with their problems
    Apps {
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// Connect a phone over the network with adb; the gateway reconnects it when it is lost
    Connect {
        /// Address of the phone, as it shows under Wireless debugging
        #[arg(value_name = "IP:PORT")]
        address: String,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Disconnect a phone on the network, and stop reconnecting it
    Disconnect {
        /// Address of the phone, as `sinew phones` shows it under SERIAL
        #[arg(value_name = "IP:PORT")]
        address: String,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Install an app on a phone: an APK, or a folder with the splits of one app
    Install {
        #[command(flatten)]
        phone: PhoneArgs,
        /// The APK, or the folder
        file: PathBuf,
    },
    /// Install the companion app on a phone, for tools of apps that answer with activities; asks first
    InstallCompanion(InstallCompanionArgs),
    /// Pair with a phone (Android 11 and later) with adb
    Pair {
        /// Address that the phone shows under "Pair device with pairing code"
        #[arg(value_name = "IP:PORT")]
        address: String,
        /// The six digits that it shows there
        code: String,
    },
    /// Copy a file from the shared storage of a phone
    Pull {
        #[command(flatten)]
        phone: PhoneArgs,
        /// Path on the phone, for example Download/report.pdf
        path: String,
        /// File or folder to write it to; an existing file is not replaced [default: its name, in the current folder]
        to: Option<PathBuf>,
    },
    /// Copy a file to the shared storage of a phone; one of that name is replaced
    Push {
        #[command(flatten)]
        phone: PhoneArgs,
        file: PathBuf,
        /// Path on the phone, for example Download/report.pdf
        path: String,
    },
    /// Record the screen of a phone to an MP4 file
    Record {
        #[command(flatten)]
        phone: PhoneArgs,
        /// Where to write it; an existing file is not replaced
        to: PathBuf,
        /// How long, 1 to 180 seconds
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=180))]
        seconds: u32,
    },
}

#[derive(Args, Debug)]
pub struct PhoneArgs {
    /// The phone: its id or name in the gateway, or its serial number
    pub device: String,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
pub struct InstallCompanionArgs {
    /// The phone: its id or name in the gateway, or its serial number
    pub device: String,

    /// Install without asking
    #[arg(long)]
    pub yes: bool,

    /// Folder that android/build wrote [default: beside `sinew`, or in the state directory]
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ToolsArgs {
    #[command(subcommand)]
    pub command: Option<ToolsCommand>,

    /// List only the tools of this device, by id or name
    pub device: Option<String>,

    /// List every device's tools under names of their own
    #[arg(long, conflicts_with = "device")]
    pub unfolded: bool,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Subcommand, Debug)]
pub enum ToolsCommand {
    /// Show one tool: its description, its arguments and an example call
    Show {
        /// Name of the tool, as clients or its device call it
        tool: String,
        /// Look only at the tools of this device, by id or name
        #[arg(long)]
        device: Option<String>,
        #[command(flatten)]
        reach: ReachArgs,
    },
}

#[derive(Args, Debug)]
pub struct CallArgs {
    /// Id or name of the device, or label:NAME for all devices with a label
    pub device: String,

    /// Name of the tool
    pub tool: String,

    /// Arguments as key=value, typed by the tool's schema
    #[arg(value_name = "KEY=VALUE", conflicts_with = "args")]
    pub arguments: Vec<String>,

    /// All arguments as one JSON object
    #[arg(long, value_name = "OBJECT")]
    pub args: Option<String>,

    /// How long the call may take, for example 500ms, 10s, 2m or 1h [default: set by the gateway]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,

    /// Save images, audio and other binary content: to this file, or to files in this folder
    #[arg(long, value_name = "PATH")]
    pub save: Option<PathBuf>,

    /// Agree to the call where the policy asks a person; it counts as long as nobody else could be asked
    #[arg(long)]
    pub yes: bool,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
pub struct EventsArgs {
    /// Show only the events of this device, by id or name
    pub device: Option<String>,

    /// Wait for further events until interrupted
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
    /// Create a token; it is shown only once
    New {
        #[command(flatten)]
        role: TokenRoleArgs,
        /// How long the token is valid, for example 12h or 30d [default: it does not expire]
        #[arg(long, value_name = "TIME", value_parser = validity)]
        expires: Option<Duration>,
        /// Revoke the token of a client or administrator that has this name now
        #[arg(long, conflicts_with = "device")]
        replace: bool,
        #[command(flatten)]
        reach: ReachArgs,
    },
    /// List tokens, without their secrets
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

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub struct TokenRoleArgs {
    /// For a board or tool provider: valid only for the device with this id or hardware address (MAC)
    #[arg(long, value_name = "ID")]
    pub device: Option<String>,

    /// For a client: may list devices and call tools
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub client: Option<String>,

    /// For an administrator: may also rename devices and manage tokens
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub admin: Option<String>,
}
