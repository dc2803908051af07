//! `sinew spec render`: the canonical document of a specification, tool list or device.

use sinew_spec::ToolSpecification;
use sinew_spec::print::{render_document, render_html_document};
use sinew_tool::ErrorKind;

use super::args::SpecRenderArgs;
use super::put;
use super::source::SpecSource;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::clean;

pub async fn run(args: SpecRenderArgs) -> Result<(), CliError> {
    let source = match (&args.device, &args.file) {
        (Some(device), _) => SpecSource::device(device, &args.reach).await?,
        (None, file) => SpecSource::read(file.as_deref().unwrap_or(std::path::Path::new("-")))?,
    };
    let mut source = source.readable()?;
    if args.device.is_some() {
        source.document.tools.iter_mut().for_each(complete);
    }
    let title = source.document.title.clone().unwrap_or_else(|| {
        let owner = args.device.clone().or_else(|| {
            let stem = source.file.as_ref()?.file_stem()?;
            Some(stem.to_string_lossy().into_owned())
        });
        format!("{} - MCP Tool Specification", owner.unwrap_or_else(|| "Tools".to_owned()))
    });
    let render = if args.html { render_html_document } else { render_document };
    let rendered = render(&title, &source.document);
    if rendered.lost.is_empty() {
        return put(&rendered.text, args.out.as_deref());
    }
    let lost: Vec<String> = rendered.lost.iter().map(|(line, word)| format!("line {line}: {}", clean(word))).collect();
    let message = format!("the canonical form would lose words of {}:\n{}", source.path, lost.join("\n"));
    Err(CliError::new(CliErrorKind::ChecksFailed, message))
}

/// A live tool has no text for these sections: what is true behind every gateway is printed, and placeholders
/// for what only the tool's author knows.
pub fn complete(tool: &mut ToolSpecification) {
    let fill = |section: &mut String, text: String| {
        if section.is_empty() {
            *section = text;
        }
    };
    if tool.output.is_none() {
        let text = "MCP content: text, and pictures where the tool makes some. {{What the answer holds.}}";
        fill(&mut tool.output_notes, text.to_owned());
    }
    let kinds = [ErrorKind::InvalidArguments, ErrorKind::ActionFailed, ErrorKind::DeviceAway, ErrorKind::Timeout];
    let rows = kinds.map(|kind| format!("- `{}`: {}", kind.row().error_type, kind.row().meaning));
    fill(&mut tool.errors, format!("{}\n- `{{{{ErrorType}}}}`: {{{{what else can go wrong}}}}", rows.join("\n")));
    let text = "- **Idempotent**: {{Yes, No or Partially}}\n- **Explanation**: {{what a repeated call does}}";
    fill(&mut tool.idempotency, text.to_owned());
    let text = "- **Input validation**: the gateway checks the arguments against the schema before it sends them.\n\
                - **Permissions**: {{what the tool may touch, and nothing more}}\n\
                - **Data handling**: {{what is sensitive, and where it may appear}}";
    fill(&mut tool.security, text.to_owned());
}
