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
        let width = terminal.then(terminal_size::terminal_size).flatten().map(|(width, _)| usize::from(width.0));
        Printer { output: cli.output, color: terminal && wanted && !dumb, width }
    }

    #[cfg(test)]
    pub fn plain() -> Printer {
        Printer { output: OutputFormat::Table, color: false, width: None }
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

    /// The table with its last column cut to the terminal; uncut where the output is not one.
    pub fn table(&self, table: &Table) -> String {
        let columns = table.heads.len();
        let mut widths: Vec<usize> = table.heads.iter().map(|head| head.chars().count()).collect();
        for row in &table.rows {
            for (width, (_, cell)) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        if let Some(terminal) = self.width {
            let before: usize = widths[..columns - 1].iter().map(|width| width + 2).sum();
            widths[columns - 1] = widths[columns - 1].min(terminal.saturating_sub(before).max(16));
        }
        let mut text = String::new();
        let heads: Vec<_> = table.heads.iter().map(|head| (Some(TextStyle::Dim), (*head).to_owned())).collect();
        for row in std::iter::once(&heads).chain(&table.rows) {
            for (index, ((ink, cell), width)) in row.iter().zip(&widths).enumerate() {
                let cell = cut(cell, *width);
                let gap = width - cell.chars().count();
                text.push_str(&ink.map_or(Cow::Borrowed(&*cell), |ink| self.paint(ink, &cell)));
                if index + 1 < columns {
                    text.extend(std::iter::repeat_n(' ', gap + 2));
                }
            }
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
        text
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
        eprintln!("{} {}", printer.paint(TextStyle::Bad, "error:"), clean(&failure.message));
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

/// Rows of cells under heads; a cell may have a colour.
pub struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<(Option<TextStyle>, String)>>,
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
    fn the_last_column_is_cut_to_the_terminal() {
        let mut table = Table::new(["A", "B"]);
        table.row([plain("x"), plain("a long description that does not fit")]);
        let printer = Printer { width: Some(20), ..Printer::plain() };
        assert_eq!(printer.table(&table), "A  B\nx  a long descripti…\n");
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
