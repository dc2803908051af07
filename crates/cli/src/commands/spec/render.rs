//! `sinew spec render`: the canonical document of whatever describes tools.

use sinew_spec::print::{render_html, render_markdown};

use super::args::Render;
use super::put;
use super::source::Source;
use crate::failure::Failure;

pub async fn run(args: Render) -> Result<(), Failure> {
    let source = match (&args.device, &args.file) {
        (Some(device), _) => Source::device(device, &args.reach).await?,
        (None, file) => Source::read(file.as_deref().unwrap_or(std::path::Path::new("-")))?,
    };
    let source = source.readable()?;
    let title = source.document.title.clone().unwrap_or_else(|| {
        let owner = args.device.clone().or_else(|| {
            let stem = source.file.as_ref()?.file_stem()?;
            Some(stem.to_string_lossy().into_owned())
        });
        format!("{} - MCP Tool Specification", owner.unwrap_or_else(|| "Tools".to_owned()))
    });
    let render = if args.html { render_html } else { render_markdown };
    put(&render(&title, &source.document.intro, &source.document.tools), args.out.as_deref())
}
