//! The command line of `sinew app`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::commands::spec::args::LintFormat;

#[derive(Args, Debug)]
pub struct AppArgs {
    #[command(subcommand)]
    pub command: AppCommand,
}

#[derive(Subcommand, Debug)]
pub enum AppCommand {
    /// Show which tools an app offers, and why others are not offered
    Inspect {
        /// An APK, an AndroidManifest.xml, or the folder of an app's source
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Check an app that offers tools against the rules
    Lint(LintArgs),
    /// List the rules
    Rules,
    /// Explain a rule, with a bad and a good example
    Explain {
        /// Id of the rule, as a finding names it
        rule: String,
    },
    /// Generate an app that offers specified tools
    Scaffold(ScaffoldArgs),
}

#[derive(Args, Debug)]
pub struct LintArgs {
    /// APKs, source manifests (AndroidManifest.xml), and folders of apps' source
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Exit with 1 for warnings too
    #[arg(long)]
    pub strict: bool,

    /// Format of the report
    #[arg(long, value_enum)]
    pub format: Option<LintFormat>,
}

#[derive(Args, Debug)]
pub struct ScaffoldArgs {
    /// A tool specification, tool list or manifest; - for standard input
    #[arg(value_name = "SPEC")]
    pub spec: PathBuf,

    /// How the app offers the tools
    #[arg(long, value_enum)]
    pub form: ScaffoldForm,

    /// Package of the app
    #[arg(long, value_name = "PACKAGE", default_value = "com.example.app")]
    pub package: String,

    /// Write the files into this folder, which must not have any of them yet [default: print them]
    #[arg(short = 'o', long = "out", value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScaffoldForm {
    /// An activity with its tools in the meta-data (mMCP)
    #[value(alias = "intent")]
    Activity,
    /// A content provider for each tool
    Provider,
}
