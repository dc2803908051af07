//! `sinew spec add`: the blank form of one more tool, at the end of a document.

use std::path::Path;

use sinew_spec::print::tool_from_template;

use super::lint::replace;
use super::new::checked_name;
use super::source::SpecSource;
use super::unwritable;
use crate::error::{CliError, CliErrorKind};

pub fn run(name: &str, file: &Path) -> Result<(), CliError> {
    checked_name(name)?;
    let source = SpecSource::read(file)?.readable()?;
    let refuse = |what: &str| Err(CliError::new(CliErrorKind::Usage, format!("{}: {what}", file.display())));
    let Some(text) = source.text.as_deref().filter(|_| source.document.format == sinew_spec::Format::Markdown) else {
        return refuse("only a Markdown specification can have a tool added");
    };
    if source.document.tools.iter().any(|tool| tool.name == name) {
        return refuse(&format!("there is a tool `{name}` already"));
    }
    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let added = format!("{}\n\n---\n\n{}", text.trim_end(), tool_from_template(name));
    let added = if ending == "\n" { added } else { added.replace("\r\n", "\n").replace('\n', ending) };
    replace(file, &added).map_err(|error| unwritable(file, &error))
}
