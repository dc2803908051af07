//! `sinew spec new`: the blank form.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use sinew_spec::print::new_from_template;

use super::{put, unwritable};
use crate::error::{CliError, CliErrorKind};

/// Refuses names that MCP does not allow.
pub fn checked_name(name: &str) -> Result<(), CliError> {
    let fits = (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    if fits {
        return Ok(());
    }
    let message = format!("`{name}` is not a valid tool name; use 1 to 128 letters, digits, `_`, `-` and `.`");
    Err(CliError::new(CliErrorKind::Usage, message))
}

pub fn run(name: &str, out: Option<&Path>) -> Result<(), CliError> {
    checked_name(name)?;
    let text = new_from_template(name);
    let Some(path) = out else { return put(&text, None) };
    let opened = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = opened.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let message = format!(
                "{} exists already and is left as it is; add the tool to it with `sinew spec add {name} {}`",
                path.display(),
                path.display()
            );
            CliError::new(CliErrorKind::Usage, message)
        }
        _ => unwritable(path, &error),
    })?;
    file.write_all(text.as_bytes()).map_err(|error| unwritable(path, &error))
}
