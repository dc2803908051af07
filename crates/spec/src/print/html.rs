//! The same document as one HTML page: no script, nothing loaded from elsewhere, and nothing in the
//! source may become markup of its own.

use std::fmt::Write as _;

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag};
use serde_json::Value;
use sinew_tool::finding::report::escape_markup as escape;

use crate::model::{Section, ToolSpecification};
use crate::read::blocks::{self, BlockKind};
use crate::read::table::Table;
use crate::read::{labels, prose};

/// A complete page.
pub(super) fn render_html(title: &str, intro: &str, tools: &[ToolSpecification], further: &str) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{0}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{0}</h1>\n",
        escape(title)
    );
    page.push_str(&markdown(intro));
    page.push_str("</header>\n<nav aria-label=\"Tools\">\n<ul>\n");
    for (index, tool) in tools.iter().enumerate() {
        let _ = writeln!(page, "<li><a href=\"#tool-{index}\"><code>{}</code></a></li>", escape(&tool.name));
    }
    page.push_str("</ul>\n</nav>\n<main>\n");
    for (index, tool) in tools.iter().enumerate() {
        render_tool(&mut page, index, tool);
    }
    if !further.is_empty() {
        let _ = writeln!(page, "<section>\n<h2>{}</h2>\n{}</section>", labels::FURTHER, markdown(further));
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn render_tool(page: &mut String, index: usize, tool: &ToolSpecification) {
    let _ = writeln!(page, "<section id=\"tool-{index}\">\n<h2><code>{}</code></h2>", escape(&tool.name));
    let mut facts = Vec::new();
    facts.extend(tool.title.as_deref().map(escape));
    facts.extend(tool.version.as_deref().map(|version| format!("version {}", escape(version))));
    let hints = [
        (tool.hints.read_only, "only reads", "changes things"),
        (tool.hints.destructive, "may destroy", "destroys nothing"),
        (tool.hints.idempotent, "idempotent", "not idempotent"),
        (tool.hints.open_world, "reaches outside", "stays inside"),
    ];
    facts.extend(hints.iter().filter_map(|(hint, yes, no)| hint.map(|hint| if hint { *yes } else { *no }.to_owned())));
    if !facts.is_empty() {
        let _ = writeln!(page, "<p class=\"facts\">{}</p>", facts.join(" · "));
    }
    for section in Section::ALL {
        if section == Section::Name {
            continue;
        }
        let _ = writeln!(page, "<h3>{}</h3>", escape(section.title()));
        let body = super::section_body(tool, section);
        match section {
            Section::Input => described(page, &body, &tool.input),
            Section::Output => match &tool.output {
                Some(schema) => described(page, &body, schema),
                None => page.push_str(&markdown(&body)),
            },
            _ => page.push_str(&markdown(&body)),
        }
    }
    for (title, text) in &tool.extra {
        let _ = writeln!(page, "<h3>{}</h3>", escape(title));
        page.push_str(&markdown(text));
    }
    page.push_str("</section>\n");
}

/// The table first; the schema is folded.
fn described(page: &mut String, body: &str, schema: &Value) {
    let block = super::schema_block(schema);
    let (before, after) = body.split_once(block.as_str()).unwrap_or((body, ""));
    page.push_str(&markdown(before));
    let json = serde_json::to_string_pretty(schema).unwrap_or_default();
    let _ =
        writeln!(page, "<details><summary>JSON Schema</summary>\n<pre><code>{}</code></pre></details>", escape(&json));
    page.push_str(&markdown(after));
}

/// Prose as HTML: raw HTML in it becomes text, and only safe links are kept.
fn markdown(text: &str) -> String {
    let text = if text == prose::NOT_STATED { "*Not stated.*" } else { text };
    let text = widened(text);
    let events =
        Parser::new_ext(&text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_FOOTNOTES).map(
            |event| match event {
                Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(raw),
                Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                    Event::Start(Tag::Link { link_type, dest_url: safe(dest_url), title, id })
                }
                // Images would be loaded from elsewhere; only their text is kept.
                Event::Start(Tag::Image { link_type, title, id, .. }) => {
                    Event::Start(Tag::Link { link_type, dest_url: CowStr::Borrowed("#"), title, id })
                }
                Event::End(pulldown_cmark::TagEnd::Image) => Event::End(pulldown_cmark::TagEnd::Link),
                other => other,
            },
        );
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, events);
    html
}

/// A row with more cells than this more than its header keeps only those.
const MOST_ADDED: usize = 32;

/// Tables whose header has a cell for each of the longest row: a page would drop the others.
fn widened(text: &str) -> String {
    let mut wide = text.to_owned();
    for block in blocks::cut(text).0.iter().rev() {
        let (BlockKind::Table(lines), Some(table)) = (&block.kind, Table::of(text, &block.kind, block.span)) else {
            continue;
        };
        let longest = table.rows.iter().map(|row| row.cells.len()).max().unwrap_or_default();
        let added = longest.saturating_sub(table.header.cells.len());
        if added == 0 || added > MOST_ADDED {
            continue;
        }
        for (line, cell) in [(lines[1], " --- |"), (lines[0], "   |")] {
            let words = line.of(text).trim_end();
            let end = if words.ends_with('|') { "" } else { " |" };
            wide.insert_str(line.start + words.len(), &format!("{end}{}", cell.repeat(added)));
        }
    }
    wide
}

fn safe(url: CowStr<'_>) -> CowStr<'_> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("http" | "https" | "mailto") => url,
        // No scheme before the first slash: a relative address.
        Some(scheme) if !scheme.contains(['/', '#', '?']) => CowStr::Borrowed("#"),
        _ => url,
    }
}

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--soft:#8881}\
body{font:16px/1.55 system-ui,sans-serif;max-width:62rem;margin:0 auto;padding:1.5rem}\
h1{line-height:1.2}h2{border-top:1px solid var(--line);padding-top:1.5rem;margin-top:2.5rem}\
h3{margin-bottom:.3rem}nav ul{columns:16rem;padding-left:1.2rem}\
code,pre{font-family:ui-monospace,monospace;font-size:.92em}\
pre{background:var(--soft);padding:.8rem;overflow:auto;border-radius:.4rem}\
table{border-collapse:collapse;display:block;overflow-x:auto}\
th,td{border:1px solid var(--line);padding:.35rem .6rem;text-align:left;vertical-align:top}\
th{background:var(--soft)}.facts{opacity:.75}summary{cursor:pointer}";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use sinew_tool::Tool;

    #[test]
    fn nothing_in_a_description_becomes_markup() {
        let tool = Tool::new(
            "<script>x</script>",
            "<img src=x onerror=alert(1)> [a](javascript:alert(1)) ![b](http://tracker/x.png) <!-- c -->",
            json!({"type": "object", "properties": {"a": {"type": "string", "description": "</td><script>"}}}),
        );
        let page = render_html("<b>", "", &[ToolSpecification::from_tool(&tool)], "");
        for bad in ["<script", "<img", "javascript:", "src=\"http", "<b>", "tracker"] {
            assert!(!page.contains(bad), "{bad} in {page}");
        }
        assert!(page.contains("&lt;script&gt;"));
    }

    #[test]
    fn the_page_shows_table_and_schema() {
        let schema =
            json!({"type": "object", "properties": {"volume": {"type": "integer", "description": "How loud."}}});
        let page = render_html(
            "Audio",
            "Intro.",
            &[ToolSpecification::from_tool(&Tool::new("set_volume", "Sets it.", schema))],
            "Ask **Ann**.",
        );
        for part in
            ["Ask <strong>Ann</strong>.", "<table>", "How loud.", "<details>", "Intro.", "<code>set_volume</code>"]
        {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn the_text_of_a_footnote_is_kept() {
        let page = render_html("A", "See[^x].\n\n[^x]: The <b>manual</b>.", &[], "");
        assert!(page.contains("The &lt;b&gt;manual"), "{page}");
    }
}
