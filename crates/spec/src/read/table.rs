//! Tables: cells with escaped pipes and code spans, and what the columns of a header mean.

use super::blocks::BlockKind;
use super::places::{self, Required};
use super::{html_table, prose};
use sinew_tool::finding::Span;

/// What a column says about a parameter or field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Name,
    Type,
    Required,
    /// The same question, asked the other way round.
    Optional,
    Default,
    Description,
    Example,
    Other,
}

#[derive(Clone, Debug)]
pub struct Cell {
    pub span: Span,
    /// Trimmed, with `\|` read as `|`.
    pub text: String,
}

impl Cell {
    /// The text, unless the cell is empty or a dash.
    pub fn said(&self) -> Option<&str> {
        let text = prose::uncode(&self.text).unwrap_or(&self.text).trim();
        let nothing = matches!(text, "" | "-" | "--" | "---" | "–" | "—" | "N/A" | "n/a" | "..." | "…");
        (!nothing).then_some(self.text.as_str())
    }
}

/// A row with its cells.
#[derive(Clone, Debug)]
pub struct Row {
    pub span: Span,
    pub cells: Vec<Cell>,
}

/// A table in Markdown or HTML.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub header: Row,
    pub rows: Vec<Row>,
}

impl Table {
    /// The table that a block is; `None` for other blocks.
    pub(crate) fn of(text: &str, kind: &BlockKind, block: Span) -> Option<Table> {
        let mut rows: Vec<Row> = match kind {
            BlockKind::Table(lines) => {
                let row = |line: &Span| Row { span: *line, cells: cells(text, *line) };
                lines.iter().enumerate().filter(|(index, _)| *index != 1).map(|(_, line)| row(line)).collect()
            }
            BlockKind::Html => html_table::rows(text, block),
            _ => return None,
        };
        if rows.is_empty() {
            return None;
        }
        let header = rows.remove(0);
        Some(Table { header, rows })
    }

    /// Whether a title says that the table is about parameters, not about anything that has a name.
    pub(crate) fn names_parameters(&self) -> bool {
        self.header.cells.iter().any(|cell| {
            let title = prose::unmark(&cell.text).to_lowercase();
            let first = title.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            matches!(first, "parameter" | "parameters" | "param" | "argument" | "arg" | "input" | "option" | "field")
        })
    }

    /// The meaning of the columns of a table that describes parameters or fields.
    pub(crate) fn columns(&self) -> Option<Vec<Column>> {
        columns(&self.header.cells, &self.rows)
    }
}

/// The cells of a row. A pipe ends a cell unless a backslash stands before it, also within code.
fn cells(text: &str, row: Span) -> Vec<Cell> {
    let line = row.of(text);
    let mut cells = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (at, character) in line.char_indices() {
        match character {
            '\\' => escaped = !escaped,
            '|' if !escaped => {
                cells.push(cell(line, row.start, start, at));
                start = at + 1;
            }
            _ => escaped = false,
        }
        if character == '|' {
            escaped = false;
        }
    }
    cells.push(cell(line, row.start, start, line.len()));
    // The outer pipes give an empty cell at each end.
    if line.trim_start().starts_with('|') && !cells.is_empty() {
        cells.remove(0);
    }
    if line.trim_end().ends_with('|') && cells.last().is_some_and(|last| last.text.is_empty()) {
        cells.pop();
    }
    cells
}

fn cell(line: &str, base: usize, start: usize, end: usize) -> Cell {
    let raw = &line[start..end];
    let body = raw.trim();
    let at = base + start + (raw.len() - raw.trim_start().len());
    Cell { span: Span::new(at, at + body.len()), text: body.replace("\\|", "|") }
}

/// A text as a cell: one line, pipes escaped.
pub fn escape(text: &str) -> String {
    // A backslash right before a pipe would escape our escape.
    prose::one_line(text).replace("\\|", "\\ |").replace('|', "\\|")
}

/// The meaning of a table's columns, if it describes parameters or fields: it must name things and give a type or a
/// description. Titles decide; columns with other titles are recognised by their cells.
fn columns(header: &[Cell], rows: &[Row]) -> Option<Vec<Column>> {
    let mut columns: Vec<Column> = header.iter().map(|cell| column(&cell.text)).collect();
    let all = |index: usize, fits: fn(&str) -> bool| {
        !rows.is_empty()
            && rows.iter().all(|row| row.cells.get(index).is_some_and(|cell| fits(&prose::unmark(&cell.text))))
    };
    let is_named = columns.contains(&Column::Name);
    let others = |columns: &[Column], fits: fn(&str) -> bool| -> Vec<usize> {
        (0..columns.len()).filter(|index| columns[*index] == Column::Other && all(*index, fits)).collect()
    };
    if !is_named {
        // `path` may be a name or a type.
        let names = others(&columns, is_name);
        let sure = names.iter().find(|index| columns.contains(&Column::Type) || !all(**index, is_type));
        if let Some(index) = sure.or(names.first()) {
            columns[*index] = Column::Name;
        }
    }
    for (meaning, fits) in [(Column::Type, is_type as fn(&str) -> bool), (Column::Required, is_choice)] {
        let is_told = columns.contains(&meaning) || meaning == Column::Required && columns.contains(&Column::Optional);
        if !is_told && let Some(index) = others(&columns, fits).first() {
            columns[*index] = meaning;
        }
    }
    let has = |columns: &[Column], column: Column| columns.contains(&column);
    // Whatever its title, the wordiest other column of a table of names and types is the description.
    if has(&columns, Column::Name) && has(&columns, Column::Type) && !has(&columns, Column::Description) {
        let free = |index: &usize| columns[*index] == Column::Other && !is_detail(&header[*index].text);
        let words = |index: &usize| -> usize {
            rows.iter().filter_map(|row| row.cells.get(*index)).map(|cell| cell.text.split_whitespace().count()).sum()
        };
        if let Some(index) = (0..columns.len()).filter(free).max_by_key(words) {
            columns[index] = Column::Description;
        }
    }
    let describes = has(&columns, Column::Type) || is_named && has(&columns, Column::Description);
    (has(&columns, Column::Name) && describes).then_some(columns)
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Values in quotes may be types; a column of them holds examples.
fn is_type(text: &str) -> bool {
    !text.starts_with(['"', '\'']) && super::types::read(text).is_some()
}

/// Whether a cell answers whether something is required.
fn is_choice(text: &str) -> bool {
    text.split_whitespace().count() == 1 && matches!(places::answer(text).0, Required::Yes | Required::No)
}

/// A column beside the description that is never one itself.
fn is_detail(title: &str) -> bool {
    matches!(
        prose::unmark(title).to_lowercase().as_str(),
        "unit" | "units" | "range" | "format" | "since" | "version" | "values" | "allowed values" | "limits"
    )
}

/// What a title says, also with a remark: `Required (Y/N)`, `Type / Format`.
fn column(title: &str) -> Column {
    let title = prose::unmark(title).to_lowercase();
    match known_column(title.trim()) {
        Column::Other => known_column(title.split(['(', '/', '[', ':', ',']).next().unwrap_or_default().trim()),
        known => known,
    }
}

fn known_column(title: &str) -> Column {
    match title {
        "parameter name" | "parameter" | "param" | "name" | "field name" | "field" | "argument" | "argument name"
        | "key" | "property" | "input" | "output" | "arg" | "option" | "attribute" | "variable" | "return field"
        | "property name" | "input name" | "parameters" => Column::Name,
        "type" | "data type" | "datatype" | "kind" | "value type" | "json type" => Column::Type,
        "required" | "required?" | "mandatory" | "needed" | "req" | "req." | "is required" | "must" | "obligatory"
        | "compulsory" => Column::Required,
        "optional" | "optional?" | "is optional" | "opt" | "opt." | "may be omitted" | "omittable" | "not required" => {
            Column::Optional
        }
        "default" | "default value" | "defaults" | "defaults to" => Column::Default,
        "description" | "meaning" | "notes" | "details" | "purpose" | "explanation" | "what it is" | "comment"
        | "comments" | "about" | "summary" | "what" | "remarks" | "info" | "information" => Column::Description,
        "example value" | "example" | "examples" | "example values" | "sample" | "sample value" => Column::Example,
        _ => Column::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(row: &str) -> Vec<String> {
        cells(row, Span::new(0, row.len())).into_iter().map(|cell| cell.text).collect()
    }

    #[test]
    fn escaped_pipes_do_not_end_a_cell() {
        assert_eq!(texts("| `a` | `str \\| None` | No |"), ["`a`", "`str | None`", "No"]);
        assert_eq!(texts("a | b"), ["a", "b"]);
        assert_eq!(texts("| a | |"), ["a", ""]);
        assert_eq!(texts("|"), [] as [&str; 0]);
        assert_eq!(texts("| 日本 | עברית |"), ["日本", "עברית"]);
    }

    #[test]
    fn a_column_of_units_is_not_the_description() {
        let header = |row: &str| columns(&cells(row, Span::new(0, row.len())), &[]);
        use Column::{Description, Name, Other, Required, Type};
        assert_eq!(
            header("| Name | Kind | Must | What | Unit |"),
            Some(vec![Name, Type, Required, Description, Other])
        );
        assert_eq!(header("| Name | Type | Unit |"), Some(vec![Name, Type, Other]));
        assert_eq!(header("| Name | Type | Bedeutung |"), Some(vec![Name, Type, Description]));
    }

    #[test]
    fn columns_with_other_titles_are_recognised_by_their_cells() {
        use Column::*;
        let table = |header: &str, row: &str| {
            columns(
                &cells(header, Span::new(0, header.len())),
                &[Row { span: Span::default(), cells: cells(row, Span::new(0, row.len())) }],
            )
        };
        for (header, row, expected) in [
            ("| Flag | Format | Explanation |", "| `path` | string | The file |", Some(vec![Name, Type, Description])),
            (
                "| Parameter | Shape | Description | Y/N |",
                "| `path` | `array[string]` | The files | ✅ |",
                Some(vec![Name, Type, Description, Required]),
            ),
            (
                "| No. | Argument | Type / Format | Required (Y/N) | What happens | Since |",
                "| 1 | `path` | string | yes | Reads it | 1.2 |",
                Some(vec![Other, Name, Type, Required, Description, Other]),
            ),
            ("| Typ | Feld | Bedeutung |", "| string | `pfad` | Die Datei |", Some(vec![Type, Name, Description])),
            ("| Phase | Action |", "| one | `read the file` |", None),
            ("| Property | Value |", "| author | Ann Lee |", None),
        ] {
            assert_eq!(table(header, row), expected, "{header}");
        }
    }

    #[test]
    fn cells_know_their_place() {
        let row = "| `a` | bc |";
        for cell in cells(row, Span::new(0, row.len())) {
            assert_eq!(cell.span.of(row), cell.text);
        }
    }

    #[test]
    fn headers_are_understood_or_left_alone() {
        use Column::*;
        let header = |row: &str| columns(&cells(row, Span::new(0, row.len())), &[]);
        assert_eq!(
            header("| Parameter Name | Type | Required | Description | Example Value |"),
            Some(vec![Name, Type, Required, Description, Example])
        );
        assert_eq!(
            header("| Name | Type | Required | Default | Description |"),
            Some(vec![Name, Type, Required, Default, Description])
        );
        assert_eq!(header("| Property | Value |"), None);
        assert_eq!(header("| Phase | Action |"), None);
    }

    #[test]
    fn a_cell_may_be_empty() {
        let said = |text: &str| Cell { span: Span::default(), text: text.to_owned() }.said().map(str::to_owned);
        assert_eq!(said("`...`"), None);
        assert_eq!(said("—"), None);
        assert_eq!(said("`5`"), Some("`5`".to_owned()));
    }
}
