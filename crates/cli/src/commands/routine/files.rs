//! The files of routines, and where they are.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use sinew_api::GatewayStatus;
use sinew_routines::{Routine, check_routine_name};

use crate::args::ReachArgs;
use crate::client::GatewayTarget;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::clean;

/// Where files go when no gateway runs on this machine.
const DEFAULT_FOLDER: &str = "routines";

/// Whether a word of the command line is a file, and not the name of a routine.
pub(super) fn is_file(name: &str) -> bool {
    name.ends_with(".md")
}

/// The folder that the gateway of this machine reads; `None` where none runs, or only elsewhere.
pub(super) async fn read_folder(reach: &ReachArgs) -> Result<Option<PathBuf>, CliError> {
    let target = match GatewayTarget::find(reach) {
        Ok(target) if target.own_token_of.is_some() => target,
        Ok(_) => return Ok(None),
        Err(error) if error.is(CliErrorKind::NoGateway) => return Ok(None),
        Err(error) => return Err(error),
    };
    let status: GatewayStatus = target.connect().await?.get("/api/v1/status").await?;
    Ok(status.routines.map(PathBuf::from))
}

/// Where a new file goes: where it is wanted, else where the gateway reads it, else a folder here.
pub(super) async fn new_folder(wanted: Option<PathBuf>, reach: &ReachArgs) -> Result<PathBuf, CliError> {
    match wanted {
        Some(folder) => Ok(folder),
        None => Ok(read_folder(reach).await?.unwrap_or_else(|| PathBuf::from(DEFAULT_FOLDER))),
    }
}

/// Where a file must be so that the gateway has it as a tool.
pub(super) async fn where_it_is_read(path: &Path, reach: &ReachArgs) -> Result<String, CliError> {
    let Some(folder) = read_folder(reach).await? else {
        let usual = "A gateway reads routines from the folder `routines` beside its sinew.toml, or, without that file, in \
                     its state directory.\n";
        return Ok(usual.to_owned());
    };
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    Ok(match path.parent().is_some_and(|parent| real(parent) == real(&folder)) {
        true => "The gateway that runs reads it there.\n".to_owned(),
        false => format!("The gateway that runs reads routines from {}: move it there.\n", folder.display()),
    })
}

/// The file that is meant: the one that is named, or the gateway's of this name.
pub(super) async fn find(name: &str, reach: &ReachArgs) -> Result<PathBuf, CliError> {
    if is_file(name) {
        return Ok(PathBuf::from(name));
    }
    check_name(name)?;
    let Some(folder) = read_folder(reach).await? else {
        let message =
            format!("no gateway on this machine says where the routine `{name}` is; name its file: {name}.md");
        return Err(CliError::new(CliErrorKind::NoGateway, message));
    };
    let path = folder.join(format!("{name}.md"));
    match path.is_file() {
        true => Ok(path),
        false => {
            let message = format!("the gateway has no routine `{name}`: there is no {}", path.display());
            Err(CliError::new(CliErrorKind::Usage, message))
        }
    }
}

pub(super) fn load(path: &Path) -> Result<Routine, CliError> {
    Routine::load(path)
        .map_err(|problem| CliError::new(CliErrorKind::ChecksFailed, format!("{}: {problem}", path.display())))
}

fn check_name(name: &str) -> Result<(), CliError> {
    check_routine_name(name).map_err(|why| CliError::new(CliErrorKind::Usage, clean(&why)))
}

/// The path of a new routine's file; the error says why there can be none of this name. The folder is made.
pub(super) fn new_path(folder: &Path, name: &str) -> Result<PathBuf, CliError> {
    check_name(name)?;
    let path = folder.join(format!("{name}.md"));
    std::fs::create_dir_all(folder)
        .map_err(|error| CliError::new(CliErrorKind::Io, format!("{}: {error}", folder.display())))?;
    // A link that leads nowhere is there too.
    if path.symlink_metadata().is_ok() { Err(already_there(&path)) } else { Ok(path) }
}

/// Writes a file that must not be there yet.
pub(super) fn write_new(path: &Path, text: &str) -> Result<(), CliError> {
    match File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(already_there(path)),
        Err(error) => Err(CliError::new(CliErrorKind::Io, format!("{}: {error}", path.display()))),
    }
}

fn already_there(path: &Path) -> CliError {
    CliError::new(CliErrorKind::Usage, format!("{} is there already; choose another name", path.display()))
}
