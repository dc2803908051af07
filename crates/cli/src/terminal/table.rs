//! Tables that fit the terminal.

use std::borrow::Cow;

use sinew_tool::text::columns;

use super::wrap::wrap_line;
use super::{Printer, TextStyle, clean};

/// A cell of a table, and how it is shown.
type StyledText = (Option<TextStyle>, String);

/// Spaces between columns.
const GAP: usize = 2;

/// A column of text is not made narrower than this; it moves below its row instead.
const MIN_TEXT: usize = 16;

/// Columns below their row are indented by this.
const BELOW: usize = 4;

/// Rows of cells under heads.
pub struct Table {
    heads: Vec<&'static str>,
    fits: Vec<ColumnFit>,
    spare: Vec<&'static str>,
    rows: Vec<Vec<StyledText>>,
}

/// What happens to a column where the terminal is too narrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnFit {
    /// Never cut: people type what is in it.
    Whole,
    Cut,
    Wrap,
}

impl Table {
    pub fn new(heads: impl Into<Vec<&'static str>>) -> Table {
        let heads = heads.into();
        Table { fits: vec![ColumnFit::Whole; heads.len()], heads, spare: Vec::new(), rows: Vec::new() }
    }

    /// Names columns that are left out, one after the other, where there is no room: another page shows them.
    pub fn spare(self, heads: &[&'static str]) -> Table {
        Table { spare: heads.to_vec(), ..self }
    }

    /// Names columns of text whose end may be missing, because another page shows all of it.
    pub fn cut(self, heads: &[&str]) -> Table {
        self.with(heads, ColumnFit::Cut)
    }

    /// Names columns of text that continue in further lines.
    pub fn wrap(self, heads: &[&str]) -> Table {
        self.with(heads, ColumnFit::Wrap)
    }

    fn with(mut self, heads: &[&str], fit: ColumnFit) -> Table {
        for (head, own) in self.heads.iter().zip(&mut self.fits) {
            if heads.contains(head) {
                *own = fit;
            }
        }
        self
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = StyledText>) {
        self.rows.push(cells.into_iter().map(|(style, cell)| (style, one_line(&cell))).collect());
    }

    /// The columns with text; the first names the thing and is always there.
    fn columns(&self) -> Vec<usize> {
        let has_text =
            |column: usize| self.rows.iter().any(|row| row.get(column).is_some_and(|cell| !cell.1.is_empty()));
        (0..self.heads.len()).filter(|column| *column == 0 || has_text(*column)).collect()
    }

    fn natural_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| columns(&cell.1));
        cells.chain([columns(self.heads[column])]).max().unwrap_or_default()
    }
}

/// The columns of a row's line with their widths, and the columns below it.
struct Layout {
    columns: Vec<(usize, usize)>,
    below: Vec<usize>,
}

impl Layout {
    fn new(table: &Table, terminal: Option<usize>) -> Layout {
        let columns = table.columns().into_iter().map(|column| (column, table.natural_width(column))).collect();
        let mut layout = Layout { columns, below: Vec::new() };
        let Some(terminal) = terminal else { return layout };
        let is_text = |column: usize| table.fits[column] != ColumnFit::Whole;
        layout.shrink(is_text, terminal);
        for spare in &table.spare {
            if layout.width() > terminal {
                layout.columns.retain(|(column, _)| table.heads[*column] != *spare);
            }
        }
        if layout.width() > terminal {
            layout.below = layout.columns.iter().map(|(column, _)| *column).filter(|column| is_text(*column)).collect();
            layout.columns.retain(|(column, _)| !is_text(*column));
        }
        while layout.width() > terminal && layout.columns.len() > 1 {
            layout.below.extend(layout.columns.pop().map(|(column, _)| column));
        }
        layout.below.sort_unstable();
        layout
    }

    fn width(&self) -> usize {
        self.columns.iter().map(|(_, width)| width + GAP).sum::<usize>().saturating_sub(GAP)
    }

    /// Takes characters from the widest of these columns until all columns fit.
    fn shrink(&mut self, may_shrink: impl Fn(usize) -> bool, terminal: usize) {
        while self.width() > terminal {
            let candidates = self.columns.iter_mut().filter(|(column, width)| may_shrink(*column) && *width > MIN_TEXT);
            match candidates.max_by_key(|(_, width)| *width) {
                Some((_, width)) => *width -= 1,
                None => return,
            }
        }
    }
}

impl Printer {
    /// The table, fitted to the terminal. Empty columns are left out. Without a terminal nothing is cut or moved.
    pub fn table(&self, table: &Table) -> String {
        let layout = Layout::new(table, self.width);
        let heads: Vec<StyledText> =
            table.heads.iter().map(|head| (Some(TextStyle::Dim), (*head).to_owned())).collect();
        std::iter::once(&heads).chain(&table.rows).map(|row| self.row(table, &layout, row)).collect()
    }

    fn row(&self, table: &Table, layout: &Layout, row: &[StyledText]) -> String {
        let empty = (None, String::new());
        let cell = |column: usize| row.get(column).unwrap_or(&empty);
        let cells: Vec<Vec<Cow<'_, str>>> = layout
            .columns
            .iter()
            .map(|(column, width)| match table.fits[*column] {
                ColumnFit::Wrap => {
                    wrap_line(&cell(*column).1, *width).lines().map(|line| line.to_owned().into()).collect()
                }
                _ => vec![cut(&cell(*column).1, *width)],
            })
            .collect();
        let mut text = String::new();
        for line in 0..cells.iter().map(Vec::len).max().unwrap_or_default() {
            for ((column, width), cells) in layout.columns.iter().zip(&cells) {
                let part = cells.get(line).map_or("", |part| part);
                text.push_str(&self.styled(cell(*column).0, part));
                text.extend(std::iter::repeat_n(' ', (width + GAP).saturating_sub(columns(part))));
            }
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
        text + &self.below(table, layout, &cell)
    }

    /// The columns that have no room in the line: names with their heads, then what may be cut on one line, the rest on
    /// lines of its own.
    fn below<'a>(&self, table: &Table, layout: &Layout, cell: &dyn Fn(usize) -> &'a StyledText) -> String {
        let room = self.width.unwrap_or(usize::MAX).saturating_sub(BELOW);
        let below = |fit: ColumnFit| {
            let columns = layout.below.iter().filter(move |column| table.fits[**column] == fit);
            columns.filter(|column| !cell(**column).1.is_empty()).map(|column| (*column, cell(*column)))
        };
        let mut lines: Vec<(Option<TextStyle>, String)> = Vec::new();
        // The row of the heads needs no names of its own.
        for (column, (style, text)) in below(ColumnFit::Whole).filter(|(column, cell)| cell.1 != table.heads[*column]) {
            let named = format!("{}: {text}", table.heads[column].to_lowercase());
            match lines.last_mut().filter(|(_, line)| columns(line) + GAP + columns(&named) <= room) {
                Some((_, line)) => line.push_str(&format!("{:GAP$}{named}", "")),
                None => lines.push((*style, named)),
            }
        }
        let texts: Vec<&str> = below(ColumnFit::Cut).map(|(_, cell)| cell.1.as_str()).collect();
        if !texts.is_empty() {
            let style = below(ColumnFit::Cut).next().and_then(|(_, cell)| cell.0);
            lines.push((style, cut(&texts.join("  "), room).into_owned()));
        }
        for (_, (style, text)) in below(ColumnFit::Wrap) {
            lines.extend(wrap_line(text, room).lines().map(|line| (*style, line.to_owned())));
        }
        lines.iter().map(|(style, line)| format!("{:BELOW$}{}\n", "", self.styled(*style, line))).collect()
    }

    fn styled<'a>(&self, style: Option<TextStyle>, text: &'a str) -> Cow<'a, str> {
        style.filter(|_| !text.is_empty()).map_or(Cow::Borrowed(text), |style| self.paint(style, text))
    }
}

fn one_line(text: &str) -> String {
    clean(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if columns(text) <= width {
        return Cow::Borrowed(text);
    }
    let mut room = width.saturating_sub(1);
    let fits = |letter: &char| {
        let taken = columns(letter.encode_utf8(&mut [0; 4]));
        let is_in = taken <= room;
        room = if is_in { room - taken } else { 0 };
        is_in
    };
    Cow::Owned(text.chars().take_while(fits).chain(['…']).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(cell: &str) -> StyledText {
        (None, cell.to_owned())
    }

    #[test]
    fn columns_are_aligned_and_lines_end_clean() {
        let mut table = Table::new(["DEVICE", "TOOLS"]);
        table.row([plain("board-1"), plain("4")]);
        table.row([plain("b"), plain("")]);
        assert_eq!(Printer::plain().table(&table), "DEVICE   TOOLS\nboard-1  4\nb\n");
    }

    #[test]
    fn what_people_type_is_never_cut() {
        let mut table = Table::new(["A", "EMPTY", "B", "C"]);
        table.row([plain("a-long-identifier"), plain(""), plain("a long name of it"), plain("another long name")]);
        assert_eq!(
            Printer::narrow(40).table(&table),
            "A                  B\na-long-identifier  a long name of it\n    c: another long name\n"
        );
        assert!(Printer::plain().table(&table).contains("a long name of it  another long name"));
        let mut wide = Table::new(["A", "B", "C"]);
        wide.row([plain(&"a".repeat(50)), plain("name"), plain("room")]);
        assert_eq!(Printer::narrow(40).table(&wide), format!("A\n{}\n    b: name  c: room\n", "a".repeat(50)));
    }

    #[test]
    fn spare_columns_are_left_out_before_anything_moves() {
        let mut table = Table::new(["ID", "KIND", "NAME", "VERSION"]).spare(&["VERSION", "KIND"]);
        table.row([plain("board-1"), plain("a kind of board"), plain("kitchen"), plain("1.2.3-rc.4")]);
        let heads = |width| Printer::narrow(width).table(&table).lines().next().map(str::to_owned);
        assert_eq!(heads(80).as_deref(), Some("ID       KIND             NAME     VERSION"));
        assert_eq!(heads(44).as_deref(), Some("ID       KIND             NAME"));
        assert_eq!(heads(20).as_deref(), Some("ID       NAME"));
    }

    #[test]
    fn text_is_cut_or_continued_before_anything_else_is() {
        let mut table = Table::new(["TIME", "WHAT", "OUTCOME"]).cut(&["WHAT"]);
        table.row([plain("11-16 12:00"), plain("self.audio_speaker.set_volume"), plain("InvalidArgument")]);
        assert_eq!(
            Printer::narrow(48).table(&table),
            "TIME         WHAT                OUTCOME\n11-16 12:00  self.audio_speake…  InvalidArgument\n"
        );
        let mut table = Table::new(["TOOL", "WHY"]).wrap(&["WHY"]);
        table.row([plain("set_volume"), plain("a rule allows it for everybody")]);
        assert_eq!(
            Printer::narrow(30).table(&table),
            "TOOL        WHY\nset_volume  a rule allows it\n            for everybody\n"
        );
    }

    #[test]
    fn text_without_room_moves_below_its_row() {
        let mut table =
            Table::new(["TIME", "WHO", "WHAT", "ARGUMENTS", "WHY"]).cut(&["WHAT", "ARGUMENTS"]).wrap(&["WHY"]);
        let why = "the tool is dangerous and nobody allowed it";
        table.row([
            plain("11-16 12:00:00"),
            plain("claude"),
            plain("self.lamp.switch"),
            plain(r#"{"on":true}"#),
            plain(why),
        ]);
        assert_eq!(
            Printer::narrow(40).table(&table),
            "TIME            WHO\n    WHAT  ARGUMENTS\n    WHY\n11-16 12:00:00  claude\n    self.lamp.switch  {\"on\":true}\n    \
             the tool is dangerous and nobody\n    allowed it\n"
        );
    }

    #[test]
    fn colour_goes_around_the_cell_and_not_into_the_width() {
        let mut table = Table::new(["A", "B"]);
        table.row([(Some(TextStyle::Good), "x".to_owned()), plain("y")]);
        let printer = Printer { color: true, ..Printer::plain() };
        assert!(printer.table(&table).ends_with("\x1b[32mx\x1b[0m  y\n"));
    }
}
