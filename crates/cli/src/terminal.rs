//! What people see: tables, colours, and a sign of life while something takes long.

use std::borrow::Cow;
use std::future::Future;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde::Serialize;
/// Text of foreign origin, safe for a terminal.
pub use sinew_tool::text::clean_all as clean;

use crate::args::{Cli, OutputFormat};
use crate::error::CliError;

/// How this run shows things.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    pub output: OutputFormat,
    pub color: bool,
    width: Option<usize>,
}

/// Colours by meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextStyle {
    Bold,
    Dim,
    Good,
    Warn,
    Bad,
    Accent,
}

impl Printer {
    pub fn new(cli: &Cli) -> Printer {
        let terminal = std::io::stdout().is_terminal();
        let wanted = !cli.no_color && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        // Set by programs that know the width although the output is not a terminal, such as `watch` and tests.
        let exported = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let size = terminal.then(terminal_size::terminal_size).flatten();
        let width =
            size.map(|(width, _)| usize::from(width.0)).or(exported).map(|width: usize| width.max(MIN_TERMINAL));
        Printer { output: cli.format(), color: terminal && wanted && !dumb, width }
    }

    #[cfg(test)]
    pub fn plain() -> Printer {
        Printer { output: OutputFormat::Table, color: false, width: None }
    }

    #[cfg(test)]
    pub fn narrow(width: usize) -> Printer {
        Printer { width: Some(width), ..Printer::plain() }
    }

    pub fn is_json(&self) -> bool {
        self.output == OutputFormat::Json
    }

    pub fn paint<'a>(&self, ink: TextStyle, text: &'a str) -> Cow<'a, str> {
        if !self.color {
            return Cow::Borrowed(text);
        }
        let code = match ink {
            TextStyle::Bold => "1",
            TextStyle::Dim => "2",
            TextStyle::Good => "32",
            TextStyle::Warn => "33",
            TextStyle::Bad => "31",
            TextStyle::Accent => "36",
        };
        Cow::Owned(format!("\x1b[{code}m{text}\x1b[0m"))
    }

    /// The table, fitted to the terminal: empty columns are left out, and the widest columns but the first are cut.
    /// Without a terminal nothing is cut.
    pub fn table(&self, table: &Table) -> String {
        let has_text =
            |column: usize| table.rows.iter().any(|row| row.get(column).is_some_and(|cell| !cell.1.is_empty()));
        let columns: Vec<usize> = (0..table.heads.len()).filter(|column| *column == 0 || has_text(*column)).collect();
        let heads: Vec<StyledText> =
            table.heads.iter().map(|head| (Some(TextStyle::Dim), (*head).to_owned())).collect();
        let rows: Vec<Vec<&StyledText>> = std::iter::once(&heads)
            .chain(&table.rows)
            .map(|row| columns.iter().filter_map(|column| row.get(*column)).collect())
            .collect();
        let length = |cell: &&StyledText| cell.1.chars().count();
        let natural = (0..columns.len()).map(|column| rows.iter().filter_map(|row| row.get(column)).map(length).max());
        let mut widths: Vec<usize> = natural.map(Option::unwrap_or_default).collect();
        if let Some(terminal) = self.width {
            fit(&mut widths, terminal);
        }
        let mut text = String::new();
        for row in rows {
            for (index, ((style, cell), width)) in row.into_iter().zip(&widths).enumerate() {
                let cell = cut(cell, *width);
                let gap = width - cell.chars().count();
                text.push_str(&style.map_or(Cow::Borrowed(&*cell), |style| self.paint(style, &cell)));
                if index + 1 < widths.len() {
                    text.extend(std::iter::repeat_n(' ', gap + GAP));
                }
            }
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
        text
    }

    /// Breaks text between words at the terminal's width. Lines after the first are indented.
    pub fn wrap(&self, text: &str, indent: usize) -> String {
        let Some(width) = self.width else { return text.to_owned() };
        let mut lines = Vec::new();
        for line in text.lines() {
            let (mut current, mut room) = (String::new(), width.saturating_sub(indent));
            for word in line.split(' ') {
                let needed = current.chars().count() + usize::from(!current.is_empty()) + word.chars().count();
                if needed > room && !current.is_empty() {
                    lines.push(std::mem::take(&mut current));
                    room = width.saturating_sub(indent);
                }
                if !current.is_empty() {
                    current.push(' ');
                }
                current.push_str(word);
            }
            lines.push(current);
        }
        lines.join(&format!("\n{:indent$}", ""))
    }

    /// A line with a name and a value, as on the pages about one thing.
    pub fn fact(&self, name: &str, value: &str) -> String {
        format!("{} {}\n", self.paint(TextStyle::Dim, &format!("{name:<FACT$}")), self.wrap(value, FACT + 1))
    }

    /// A command as people type it, broken before an option where it is too long for the terminal.
    pub fn command(&self, command: &str) -> String {
        let room = self.width.unwrap_or(usize::MAX);
        match command.split_once(" --state ") {
            Some((start, state)) if command.chars().count() + 2 > room => {
                format!("  {start} \\\n    --state {state}\n")
            }
            _ => format!("  {command}\n"),
        }
    }

    pub fn failure(&self, failure: &CliError) {
        if failure.message.is_empty() {
            return;
        }
        if self.is_json() {
            print(&format!("{:#}\n", failure.to_object()));
            return;
        }
        let color = self.color && std::io::stderr().is_terminal();
        let printer = Printer { color, ..*self };
        // The message may quote a device.
        let message = clean(&failure.message);
        eprintln!("{} {}", printer.paint(TextStyle::Bad, "error:"), printer.wrap(&message, 7));
    }

    /// Awaits, and says on a terminal's standard error what for and how long once it takes more than a second.
    pub async fn waiting<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        if !std::io::stderr().is_terminal() || self.is_json() {
            return work.await;
        }
        let mut work = std::pin::pin!(work);
        let mut seconds = 0;
        loop {
            match tokio::time::timeout(Duration::from_secs(1), &mut work).await {
                Ok(done) => {
                    if seconds > 0 {
                        eprint!("\r\x1b[K");
                    }
                    return done;
                }
                Err(_) => {
                    seconds += 1;
                    eprint!("\r\x1b[K{what} … {seconds} s");
                    let _ = std::io::stderr().flush();
                }
            }
        }
    }
}

/// A cell of a table, and how it is shown.
type StyledText = (Option<TextStyle>, String);

/// Spaces between columns.
const GAP: usize = 2;

/// Narrower terminals are taken for this wide.
const MIN_TERMINAL: usize = 40;

/// Characters for the names of facts.
const FACT: usize = 14;

/// A column is not cut to less than this.
const MIN_WIDTH: usize = 8;

/// Rows of cells under heads.
pub struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<StyledText>>,
}

impl Table {
    pub fn new(heads: impl Into<Vec<&'static str>>) -> Table {
        Table { heads: heads.into(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = (Option<TextStyle>, String)>) {
        self.rows.push(cells.into_iter().map(|(ink, cell)| (ink, one_line(&cell))).collect());
    }
}

/// Prints to standard output; a reader that went away (`| head`) is no failure.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

pub fn print_json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|error| format!("cannot be shown: {error}"));
    print(&format!("{text}\n"));
}

/// Takes characters from the widest columns until all of them fit. The first names the thing and stays whole.
fn fit(widths: &mut [usize], terminal: usize) {
    loop {
        let total: usize = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let widest = widths.iter_mut().skip(1).filter(|width| **width > MIN_WIDTH).max_by_key(|width| **width);
        match widest {
            Some(width) if total > terminal => *width -= 1,
            _ => return,
        }
    }
}

fn one_line(text: &str) -> String {
    clean(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if text.chars().count() <= width {
        return Cow::Borrowed(text);
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    Cow::Owned(short)
}

/// `1.2 MB` and the like.
pub fn bytes(count: usize) -> String {
    match count {
        0..1_000 => format!("{count} bytes"),
        1_000..1_000_000 => format!("{:.1} KB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(cell: &str) -> (Option<TextStyle>, String) {
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
    fn a_table_fits_the_terminal_and_its_first_column_stays_whole() {
        let mut table = Table::new(["A", "EMPTY", "B", "C"]);
        table.row([plain("a-long-identifier"), plain(""), plain("a long description"), plain("another long text")]);
        let printer = Printer { width: Some(40), ..Printer::plain() };
        let text = printer.table(&table);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.contains("a-long-identifier") && text.contains('…') && !text.contains("EMPTY"), "{text}");
        assert!(Printer::plain().table(&table).contains("another long text"));
    }

    #[test]
    fn text_breaks_between_words() {
        let printer = Printer { width: Some(20), ..Printer::plain() };
        assert_eq!(printer.wrap("one two three four five six", 4), "one two three\n    four five six");
        assert_eq!(printer.wrap("averyveryveryverylongword x", 4), "averyveryveryverylongword\n    x");
        assert_eq!(Printer::plain().wrap("one two three four five six", 4), "one two three four five six");
    }

    #[test]
    fn colour_goes_around_the_cell_and_not_into_the_width() {
        let mut table = Table::new(["A", "B"]);
        table.row([(Some(TextStyle::Good), "x".to_owned()), plain("y")]);
        let printer = Printer { color: true, ..Printer::plain() };
        assert!(printer.table(&table).ends_with("\x1b[32mx\x1b[0m  y\n"));
    }

    #[test]
    fn what_a_device_says_cannot_steer_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\u{202e}c\0\n"), "abc\u{fffd}\n");
    }
}
