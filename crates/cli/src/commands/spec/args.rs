//! The command line of `sinew spec`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::args::ReachArgs;

#[derive(Args, Debug)]
pub struct SpecArgs {
    #[command(subcommand)]
    pub command: SpecCommand,
}

#[derive(Subcommand, Debug)]
pub enum SpecCommand {
    /// Check specifications, tool lists, manifests or a device
    Lint(SpecLintArgs),
    /// Explain a rule, with a bad and a good example
    Explain {
        /// Id of the rule, as `spec rules` shows it
        rule: String,
    },
    /// List the rules
    Rules,
    /// Print the canonical document
    Render(SpecRenderArgs),
    /// Print the blank form for a new tool
    New {
        /// Invocation name of the tool
        name: String,
        /// Write to this file, which must not exist yet
        #[arg(short = 'o', long = "out", value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Add the blank form of one more tool to a specification
    Add {
        /// Invocation name of the tool
        tool: String,
        /// The specification
        file: PathBuf,
    },
    /// Print the specification of the tools that a running MCP server offers
    From(SpecFromArgs),
    /// Compare two versions of specifications or tool lists
    #[command(after_help = DIFF_EXITS)]
    Diff(SpecDiffArgs),
    /// Record the tools of a repository as agreed, or check them against the record
    Lock(SpecLockArgs),
}

const DIFF_EXITS: &str = "\
Exit codes:
  0  nothing that may break callers, or the versions announce it
  1  a breaking or undecided change that no version announces
  2  the documents could not be compared";

#[derive(Args, Debug)]
pub struct SpecLintArgs {
    /// Files; a folder stands for every MCP_TOOL_SPECIFICATION.md below it, - for standard input
    #[arg(value_name = "PATH", required_unless_present = "device")]
    pub paths: Vec<PathBuf>,

    /// Fix what can be fixed safely, in the files themselves
    #[arg(long)]
    pub fix: bool,

    /// With --fix: change no file, print what would change as a diff
    #[arg(long, requires = "fix")]
    pub dry_run: bool,

    /// Report only what is not in this file, which `lint --format json` wrote
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,

    /// Print only findings that fail the command, and nothing where there are none
    #[arg(short, long)]
    pub quiet: bool,

    /// Print only findings of this severity or worse
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub min_severity: Option<Threshold>,

    /// File name of standard input, for reports and for the rules of its folder
    #[arg(long, value_name = "NAME")]
    pub stdin_name: Option<PathBuf>,

    /// Fail on warnings too
    #[arg(long)]
    pub strict: bool,

    /// How to show the findings [default: text]
    #[arg(long, value_enum)]
    pub format: Option<LintFormat>,

    /// Also check the tools of this device, by id or name; none of them is called
    #[arg(long)]
    pub device: Option<String>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
pub struct SpecFromArgs {
    /// Address of the server, as clients use it: http://127.0.0.1:8080/mcp
    pub url: String,

    /// Token used to authenticate
    #[arg(long, env = "SINEW_SERVER_TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// Fingerprint of the server's own certificate, for https
    #[arg(long)]
    pub fingerprint: Option<String>,

    /// Write to this file
    #[arg(short = 'o', long = "out", value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Threshold {
    Advice,
    Warning,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LintFormat {
    Text,
    Json,
    Sarif,
    Github,
    Junit,
}

#[derive(Args, Debug)]
pub struct SpecRenderArgs {
    /// A specification, tool list or manifest; - for standard input
    #[arg(value_name = "FILE", required_unless_present = "device", conflicts_with = "device")]
    pub file: Option<PathBuf>,

    /// The tools of this device, by id or name
    #[arg(long)]
    pub device: Option<String>,

    /// Print an HTML page instead of Markdown
    #[arg(long)]
    pub html: bool,

    /// Write to this file
    #[arg(short = 'o', long = "out", value_name = "FILE")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Args, Debug)]
pub struct SpecDiffArgs {
    /// Before: a file, - for standard input, or device:ID
    pub old: String,

    /// After: the same
    pub new: String,

    /// How to show the changes [default: text]
    #[arg(long, value_enum)]
    pub format: Option<DiffFormat>,

    /// Version of the package with the old tools; checked for all changes together
    #[arg(long, value_name = "VERSION", requires = "new_version")]
    pub old_version: Option<String>,

    /// Version of the package with the new tools
    #[arg(long, value_name = "VERSION", requires = "old_version")]
    pub new_version: Option<String>,

    /// Exit 0 even with changes of this class that no version announces
    #[arg(long, value_enum, value_name = "CLASS")]
    pub allow: Option<Allow>,

    #[command(flatten)]
    pub reach: ReachArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Allow {
    /// Changes whose effect only a costly proof could decide
    Undecided,
    /// Those, and changes that break callers
    Breaking,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    Text,
    Json,
    Markdown,
}

#[derive(Args, Debug)]
pub struct SpecLockArgs {
    /// Files; a folder stands for every MCP_TOOL_SPECIFICATION.md below it
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,

    /// Change nothing; fail if a tool changed in a way that is not allowed
    #[arg(long)]
    pub check: bool,

    /// The lock
    #[arg(long, value_name = "FILE", default_value = "sinew.lock")]
    pub file: PathBuf,

    /// Version of the package, for tools that have no version of their own
    #[arg(long, value_name = "VERSION", default_value = "", hide_default_value = true)]
    pub package_version: String,
}
