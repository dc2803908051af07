//! Arbitrary bytes as a specification, a tool list or a manifest: read, judged, mended, printed and
//! compared. What is printed is read back as the same tools.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_tool::finding::report::{self, Style};
use sinew_spec::judge::{self, Config};
use sinew_spec::{Document, Format, compare, print};

fuzz_target!(|input: &[u8]| {
    let document = Document::from_bytes(input);
    let findings = judge::lint(&document, &Config::default());
    for style in [Style::People { color: false }, Style::Json, Style::Sarif, Style::Github, Style::Junit] {
        report::render(style, &judge::LINTER, &[document.report("fuzzed.md", &findings)]);
    }
    judge::fix(&document.text, &Config::default());
    print::render_html("fuzzed", &document.intro, &document.tools);
    let tools = document.to_tools();
    compare::diff(&tools, &tools[..tools.len() / 2]);
    if document.format == Format::Markdown {
        let printed = print::render_markdown("fuzzed", "", &document.tools);
        assert_eq!(Document::parse(&printed).tools, document.tools, "{printed}");
    }
});
