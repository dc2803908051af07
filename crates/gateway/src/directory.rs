//! The state directory: it holds tokens and the audit, so only its owner may read it.

use std::path::Path;

use crate::private_files::create_private_folder;
use crate::settings::OpenError;

/// Creates the directory, or makes an existing one private.
pub(crate) fn make_private(dir: &Path) -> Result<(), OpenError> {
    create_private_folder(dir).map_err(|source| OpenError::Io {
        what: "create the state directory",
        path: dir.to_owned(),
        source,
    })?;
    #[cfg(unix)]
    remove_access_of_others(dir)?;
    Ok(())
}

/// A directory that others share, such as `/tmp`, must not become ours: it is refused.
#[cfg(unix)]
fn remove_access_of_others(dir: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |source| OpenError::Io { what: "protect the state directory", path: dir.to_owned(), source };
    let mode = std::fs::metadata(dir).map_err(failed)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let is_shared = mode & 0o1000 != 0;
    if is_shared || !is_ours(dir).map_err(failed)? {
        return Err(OpenError::Shared { dir: dir.to_owned() });
    }
    std::fs::set_permissions(dir, PermissionsExt::from_mode(0o700)).map_err(failed)?;
    tracing::info!(directory = %dir.display(), "the state directory could be read by others and was made private");
    Ok(())
}

/// What else a state directory may begin with; files of the gateway begin with its name.
#[cfg(unix)]
const OURS: &[&str] = &["token", "demo", "android", "sinew.toml", "sinew.lock"];

/// Whether the directory is empty or holds files of a gateway.
#[cfg(unix)]
fn is_ours(dir: &Path) -> std::io::Result<bool> {
    let mut is_empty = true;
    for file in std::fs::read_dir(dir)? {
        let name = file?.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("gateway.") || OURS.contains(&&*name) {
            return Ok(true);
        }
        is_empty = false;
    }
    Ok(is_empty)
}
