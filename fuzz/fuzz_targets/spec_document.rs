//! Arbitrary bytes as a specification, a tool list or a manifest: read, checked, fixed, printed and
//! compared. What is printed is read back as the same tools.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_spec::lint::{self, LintConfig};
use sinew_spec::{Document, Format, compare, print};
use sinew_tool::finding::report::{self, ReportFormat};

fuzz_target!(|input: &[u8]| {
    let document = Document::from_bytes(input);
    let checked = lint::CheckedDocument::new("fuzzed.md".to_owned(), document.clone(), &LintConfig::default());
    for format in [
        ReportFormat::People { color: false },
        ReportFormat::Json,
        ReportFormat::Sarif,
        ReportFormat::Github,
        ReportFormat::Junit,
    ] {
        report::render(format, &lint::LINTER, &[checked.report()]);
    }
    lint::fix(&document.text, &LintConfig::default());
    print::render_html_document("fuzzed", &document);
    let tools = document.to_tools();
    compare::diff(&tools, &tools[..tools.len() / 2]);
    if document.format == Format::Markdown {
        let printed = print::render_markdown("fuzzed", "", &document.tools);
        assert_eq!(Document::parse(&printed).tools, document.tools, "{printed}");
    }
});
