//! Sources of tools: files, standard input, and devices behind a gateway.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::json;
use sinew_api::Devices;
use sinew_spec::lint::{CheckedDocument, LintConfig};
use sinew_spec::{Document, ListDetail, read};

use crate::args::ReachArgs;
use crate::client::{GatewayClient, GatewayTarget, encode};
use crate::commands::tools::of_device;
use crate::error::{CliError, CliErrorKind};

/// The file name of specifications in a repository.
pub const FILE_NAME: &str = "MCP_TOOL_SPECIFICATION.md";
/// Folders with dependencies or build output.
const NOT_OURS: &[&str] = &["target", "node_modules", "vendor", "build", "dist"];
/// Deeper nesting means a folder that contains itself.
const MAX_DEPTH: usize = 64;

/// A document and its name in reports.
pub struct SpecSource {
    pub path: String,
    pub file: Option<PathBuf>,
    pub document: Document,
    /// The text as it was read, for `--fix`; `None` if it was refused.
    pub text: Option<String>,
}

/// A text that was not read yet.
pub struct SpecText {
    path: String,
    file: Option<PathBuf>,
    bytes: Vec<u8>,
    /// The size of a file that is larger than the limit.
    too_large: Option<u64>,
    detail: ListDetail,
}

impl SpecText {
    /// Reads a file, or standard input under the name it has in reports.
    fn read(path: &Path, stdin_name: Option<&Path>) -> Result<SpecText, CliError> {
        let unreadable = |error: std::io::Error| {
            CliError::new(CliErrorKind::Usage, format!("cannot read {}: {error}", path.display()))
        };
        // One byte more than the limit is enough to see that it is exceeded.
        let most = read::MAX_BYTES as u64 + 1;
        let mut bytes = Vec::new();
        let is_input = is_standard_input(path);
        let mut length = None;
        if is_input {
            std::io::stdin().take(most).read_to_end(&mut bytes).map_err(unreadable)?;
        } else {
            let file = File::open(path).map_err(unreadable)?;
            length = file.metadata().ok().map(|about| about.len());
            bytes.reserve_exact(length.map_or(0, |length| length.min(most) as usize + 1));
            file.take(most).read_to_end(&mut bytes).map_err(unreadable)?;
        }
        let file = (!is_input).then(|| path.to_owned());
        Ok(SpecText {
            path: SpecSource::name_of(path, stdin_name),
            file,
            bytes,
            too_large: length.filter(|length| *length >= most),
            detail: ListDetail::Unknown,
        })
    }

    /// The tools of a live device as a tool list.
    async fn device(device: &str, reach: &ReachArgs) -> Result<SpecText, CliError> {
        let mut client = GatewayTarget::find(reach)?.connect().await?;
        let mut tools = of_device(&mut client, device).await?;
        // What the gateway adds for AI clients is not the device's.
        tools.iter_mut().for_each(|tool| tool.simplified.clear());
        let bytes = format!("{:#}\n", json!({"tools": tools})).into_bytes();
        let detail = detail_of(&mut client, device).await?;
        Ok(SpecText { path: format!("device:{device}"), file: None, bytes, too_large: None, detail })
    }

    /// A file, standard input, or `device:ID`.
    pub async fn named(name: &str, reach: &ReachArgs) -> Result<SpecText, CliError> {
        match name.strip_prefix("device:") {
            Some(device) => SpecText::device(device, reach).await,
            None => SpecText::read(Path::new(name), None),
        }
    }

    /// The text, if the other can state all that it states.
    pub fn comparable_with(&self, other: &SpecText) -> Option<&str> {
        self.detail.is_comparable_with(other.detail).then(|| self.as_str()).flatten()
    }

    fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok().filter(|text| text.len() <= read::MAX_BYTES)
    }

    pub fn parse(self) -> SpecSource {
        let mut document = match self.too_large {
            Some(length) => read::too_large(length),
            None => Document::from_bytes(&self.bytes),
        };
        document.detail = self.detail;
        let is_whole = self.bytes.len() <= read::MAX_BYTES;
        let text = if is_whole { String::from_utf8(self.bytes).ok() } else { None };
        SpecSource { path: self.path, file: self.file, document, text }
    }
}

impl SpecSource {
    /// The name of a file in reports, or that of standard input.
    pub fn name_of(path: &Path, stdin_name: Option<&Path>) -> String {
        match (is_standard_input(path), stdin_name) {
            (true, None) => "standard input".to_owned(),
            (true, Some(name)) => name.to_string_lossy().into_owned(),
            (false, _) => path.to_string_lossy().into_owned(),
        }
    }

    pub fn check(self, config: &LintConfig) -> CheckedDocument {
        CheckedDocument::new(self.path, self.document, config)
    }

    pub fn read(path: &Path) -> Result<SpecSource, CliError> {
        SpecSource::read_as(path, None)
    }

    /// Reads a file, or standard input under the name it has in reports.
    pub fn read_as(path: &Path, stdin_name: Option<&Path>) -> Result<SpecSource, CliError> {
        SpecText::read(path, stdin_name).map(SpecText::parse)
    }

    /// The tools of a live device, read like a tool list.
    pub async fn device(device: &str, reach: &ReachArgs) -> Result<SpecSource, CliError> {
        SpecText::device(device, reach).await.map(SpecText::parse)
    }

    /// Refuses a document that could not be read: missing tools would look like changes.
    pub fn readable(self) -> Result<SpecSource, CliError> {
        let Some(problem) = self.document.unreadable() else { return Ok(self) };
        let start = self.document.lines.position(&self.document.text, problem.span.start);
        let message = format!("cannot read {}:{}:{}: {}", self.path, start.line, start.column, problem.message);
        Err(CliError::new(CliErrorKind::Usage, message))
    }
}

/// Boards and apps have protocols of their own, which say less of a tool than MCP.
async fn detail_of(client: &mut GatewayClient, device: &str) -> Result<ListDetail, CliError> {
    let found: Devices = client.get(&format!("/api/v1/devices?id={}", encode(device))).await?;
    Ok(match found.devices.first().map(|one| one.family.as_str()) {
        Some("board" | "serial" | "app") => ListDetail::Short,
        Some("server" | "phone" | "routine" | "thing" | "provider") => ListDetail::Complete,
        _ => ListDetail::Unknown,
    })
}

pub fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// The files below the paths, each once.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut found: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let before = found.len();
        walk(path, 0, &mut found).map_err(|error| {
            CliError::new(CliErrorKind::Usage, format!("cannot look into {}: {error}", path.display()))
        })?;
        if found.len() == before {
            let message = format!(
                "there is no {FILE_NAME} below {}; name files, or make one with `sinew spec new`",
                path.display()
            );
            return Err(CliError::new(CliErrorKind::Usage, message));
        }
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|path| seen.insert(path.clone()));
    Ok(found)
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        // Links are not followed: they may form a cycle.
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < MAX_DEPTH && !name.starts_with('.') && !NOT_OURS.contains(&name.as_str()) {
            walk(&entry.path(), depth + 1, found)?;
        } else if kind.is_file() && name.eq_ignore_ascii_case(FILE_NAME) {
            found.push(entry.path());
        }
    }
    Ok(())
}
