//! Tables, definition lists and headings written in HTML, cell by cell.

use sinew_tool::finding::Span;

use super::table::{Cell, Row};

/// The rows of the tables in a block of HTML.
pub(super) fn rows(text: &str, block: Span) -> Vec<Row> {
    read(text, block, HtmlForm::Table)
}

/// The definition lists in a block of HTML, a row for each term: the term and what explains it.
pub(super) fn definitions(text: &str, block: Span) -> Vec<Row> {
    read(text, block, HtmlForm::Definitions)
}

/// The items of lists in a block of HTML, a row of one cell each.
pub(super) fn items(text: &str, block: Span) -> Vec<Row> {
    read(text, block, HtmlForm::Items)
}

/// The words of headings and of summaries of `<details>` in a block of HTML, with their places.
pub(super) fn headings(text: &str, block: Span) -> Vec<(String, Span)> {
    let rows = read(text, block, HtmlForm::Headings).into_iter();
    rows.flat_map(|row| row.cells).map(|cell| (cell.text, cell.span)).collect()
}

fn read(text: &str, block: Span, form: HtmlForm) -> Vec<Row> {
    let html = block.of(text);
    let mut reader = Reader { form, base: block.start, rows: Vec::new(), cell: None };
    let mut at = 0;
    while let Some(open) = html[at..].find('<').map(|found| at + found) {
        reader.words(&html[at..open]);
        let Some(end) = html[open..].find('>').map(|found| open + found + 1) else { break };
        reader.tag(&html[open + 1..end - 1], open, end);
        at = end;
    }
    reader.close_at(html.len());
    let mut rows = reader.rows;
    rows.retain(|row| !row.cells.is_empty());
    for row in &mut rows {
        for cell in &mut row.cells {
            cell.text = cell.text.split_whitespace().collect::<Vec<_>>().join(" ");
        }
    }
    rows
}

/// The words of a block of HTML without its tags.
pub(crate) fn untagged(html: &str) -> String {
    let mut words = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        words.push_str(before);
        words.push(' ');
        rest = tag.split_once('>').map_or("", |(_, after)| after);
    }
    words.push_str(rest);
    unescape(&words)
}

#[derive(Clone, Copy)]
enum HtmlForm {
    Table,
    Definitions,
    Items,
    Headings,
}

struct Reader {
    form: HtmlForm,
    base: usize,
    rows: Vec<Row>,
    /// The cell that is open: where it begins, and its words so far.
    cell: Option<(usize, String)>,
}

impl Reader {
    fn words(&mut self, words: &str) {
        if let Some((_, text)) = &mut self.cell {
            text.push_str(&unescape(words));
        }
    }

    fn tag(&mut self, tag: &str, open: usize, end: usize) {
        let name = tag.split(|c: char| c.is_whitespace()).next().unwrap_or_default().trim_end_matches('/');
        match (self.form, name.to_lowercase().as_str()) {
            (HtmlForm::Table, "tr") => self.open_row(open),
            (HtmlForm::Table, "td" | "th") | (HtmlForm::Definitions, "dd") => self.open_cell(open, end),
            (HtmlForm::Definitions, "dt")
            | (HtmlForm::Items, "li")
            | (HtmlForm::Headings, "summary" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6") => {
                self.open_row(open);
                self.open_cell(open, end);
            }
            (HtmlForm::Table, "/td" | "/th" | "/tr" | "/table" | "table") => self.close_at(open),
            (HtmlForm::Definitions, "/dt" | "/dd" | "/dl" | "dl") => self.close_at(open),
            (HtmlForm::Items, "/li" | "/ul" | "/ol" | "ul" | "ol") => self.close_at(open),
            (HtmlForm::Headings, "/summary" | "/h1" | "/h2" | "/h3" | "/h4" | "/h5" | "/h6") => self.close_at(open),
            (_, "code" | "/code") => self.words("`"),
            _ => self.words(" "),
        }
    }

    fn open_row(&mut self, open: usize) {
        self.close_at(open);
        let at = self.base + open;
        self.rows.push(Row { span: Span::new(at, at), cells: Vec::new() });
    }

    fn open_cell(&mut self, open: usize, end: usize) {
        self.close_at(open);
        self.cell = Some((end, String::new()));
    }

    fn close_at(&mut self, at: usize) {
        let Some((start, text)) = self.cell.take() else { return };
        let Some(row) = self.rows.last_mut() else { return };
        let span = Span::new(self.base + start, self.base + at);
        row.span.end = span.end;
        row.cells.push(Cell { span, text });
    }
}

fn unescape(text: &str) -> String {
    let mut text = text.to_owned();
    for (name, character) in
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&")]
    {
        text = text.replace(name, character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_with_their_places() {
        let text = "x\n<table border=1>\n<TR><th>Name</th><th>Type\n<tr><td><code>path</code></td><td>a &lt; b</td></tr>\n</table>";
        let found = rows(text, Span::new(2, text.len()));
        let cells: Vec<Vec<&str>> =
            found.iter().map(|row| row.cells.iter().map(|cell| cell.text.as_str()).collect()).collect();
        assert_eq!(cells, [vec!["Name", "Type"], vec!["`path`", "a < b"]]);
        assert_eq!(found[1].cells[0].span.of(text), "<code>path</code>");
        assert!(rows("<p>no table <td", Span::new(0, 15)).is_empty());
        assert_eq!(untagged("<b>a</b>&amp;<i").trim(), "a &");
    }
}
