//! What people see: text that fits the terminal, tables, colours, and a sign of life while something takes long.
//!
//! Everything for people goes through [`print`] or [`say`], which break lines at the terminal's width. Data and
//! documents go through [`print_exact`] and [`print_json`].

mod hidden;
mod json;
mod table;
mod wrap;

use std::borrow::Cow;
use std::future::Future;
use std::io::{IsTerminal, Write};
use std::sync::LazyLock;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
/// Text of foreign origin, safe for a terminal.
pub use sinew_tool::text::clean_all as clean;
/// The JSON text of arguments, with everything in it visible.
pub use sinew_tool::text::show_hidden;

use crate::args::{Cli, OutputFormat};
use crate::error::CliError;
pub use hidden::hidden_line;
pub use table::Table;
use wrap::{visible, wrap_line};

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
        let color = !cli.no_color && is_colored(&std::io::stdout());
        Printer { output: cli.format(), color, width: *OUT_WIDTH }
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

    /// Breaks text between words at the terminal's width. Lines after the first are indented.
    pub fn wrap(&self, text: &str, indent: usize) -> String {
        let Some(width) = self.width.filter(|_| !text.is_empty()) else { return text.to_owned() };
        let wrapped = text.lines().map(|line| wrap_line(&format!("{:indent$}{line}", ""), width));
        wrapped.collect::<Vec<_>>().join("\n").split_off(indent)
    }

    /// A line with a name and a value, as on the pages about one thing.
    pub fn fact(&self, name: &str, value: &str) -> String {
        format!("{} {}\n", self.paint(TextStyle::Dim, &format!("{name:<FACT$}")), self.wrap(value, FACT + 1))
    }

    /// JSON in the lines of a page, indented, with everything in it visible.
    pub fn json_lines(&self, value: &Value, indent: usize) -> Vec<String> {
        let width = self.width.unwrap_or(MAX_JSON_LINE).saturating_sub(indent);
        show_hidden(&json::lay_out(value, width)).lines().map(|line| format!("{:indent$}{line}", "")).collect()
    }

    /// The text of a tool, as it is; in a terminal, JSON that is too wide for it is broken between its members.
    pub fn answer(&self, text: &str) -> String {
        let is_too_wide = |width: usize| text.lines().any(|line| visible(line) > width);
        let value = || serde_json::from_str::<Value>(text).ok().filter(|value| value.is_object() || value.is_array());
        match self.width.filter(|width| is_too_wide(*width)).and_then(|_| value()) {
            Some(value) => self.json_lines(&value, 0).join("\n"),
            None => clean(text),
        }
    }

    /// How many lines of the terminal a text takes; longer lines than it is wide take several.
    pub fn rows(&self, text: &str) -> usize {
        let rows = |line: &str| self.width.map_or(1, |width| visible(line).div_ceil(width).max(1));
        text.lines().map(rows).sum()
    }

    /// A command as people type it, broken before an option where it is too long for the terminal.
    pub fn command(&self, command: &str) -> String {
        let room = self.width.unwrap_or(usize::MAX);
        let mut lines = vec![String::from("  ")];
        for (index, part) in command.split(" --").enumerate() {
            let part = if index == 0 { part.to_owned() } else { format!(" --{part}") };
            let line = lines.last().map_or(0, |line| visible(line));
            // The backslash takes two more.
            match lines.last_mut() {
                Some(last) if index == 0 || line + visible(&part) + 2 <= room => last.push_str(&part),
                _ => lines.push(format!("   {part}")),
            }
        }
        lines.join(" \\\n") + "\n"
    }

    /// Says that a program is up: a line of JSON for whoever started it, or a page for people.
    pub fn announce(&self, value: &Value, page: impl FnOnce() -> String) {
        match self.is_json() {
            true => print_exact(&format!("{value}\n")),
            false => print(&page()),
        }
    }

    pub fn failure(&self, failure: &CliError) {
        if failure.message.is_empty() {
            return;
        }
        if self.is_json() {
            print_exact(&format!("{:#}\n", failure.to_object()));
            return;
        }
        let printer = Printer { color: self.color && is_colored(&std::io::stderr()), width: *ERR_WIDTH, ..*self };
        // The message may quote a device.
        let message = clean(&failure.message);
        say(&format!("{} {}", printer.paint(TextStyle::Bad, "error:"), printer.wrap(&message, 7)));
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
                        write_err(CLEAR_LINE);
                    }
                    return done;
                }
                Err(_) => {
                    seconds += 1;
                    write_err(&format!("{CLEAR_LINE}{what} … {seconds} s"));
                }
            }
        }
    }
}

/// Goes back to the start of the line and clears it.
const CLEAR_LINE: &str = "\r\x1b[K";

/// Narrower terminals are taken for this wide.
const MIN_TERMINAL: usize = 40;

/// JSON is easier to read in lines than as one long line, also where nobody says how wide the page is.
const MAX_JSON_LINE: usize = 100;

/// Characters for the names of facts.
const FACT: usize = 14;

/// The width of standard output, where it is a terminal or a program such as `watch` says it in `COLUMNS`.
static OUT_WIDTH: LazyLock<Option<usize>> = LazyLock::new(|| width(terminal_size::terminal_size_of(std::io::stdout())));

static ERR_WIDTH: LazyLock<Option<usize>> = LazyLock::new(|| width(terminal_size::terminal_size_of(std::io::stderr())));

fn width(terminal: Option<(terminal_size::Width, terminal_size::Height)>) -> Option<usize> {
    let exported = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = terminal.map(|(width, _)| usize::from(width.0)).or_else(exported);
    width.map(|width: usize| width.max(MIN_TERMINAL))
}

/// A word of a command as a POSIX shell reads it, in quotes where it needs them.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:=@%+,".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', "'\\''"))),
    }
}

/// Whether colours are wanted and understood.
pub fn is_colored(stream: &impl IsTerminal) -> bool {
    let is_wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stream.is_terminal() && is_wanted && !is_dumb
}

/// Prints text for people to standard output.
pub fn print(text: &str) {
    print_exact(&fitted(text, *OUT_WIDTH));
}

/// Prints data, documents and commands to standard output as they are. A reader that went away (`| head`) is no failure.
pub fn print_exact(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints a line for people to standard error.
pub fn say(line: &str) {
    ask(&format!("{line}\n"));
}

/// Prints a line for people to standard error, in place of what [`Printer::waiting`] shows there.
pub fn interject(line: &str) {
    if std::io::stderr().is_terminal() {
        write_err(CLEAR_LINE);
    }
    say(line);
}

/// Prints to standard error what an answer is expected to, on the same line.
pub fn ask(question: &str) {
    write_err(&fitted(question, *ERR_WIDTH));
}

fn write_err(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

fn fitted(text: &str, width: Option<usize>) -> Cow<'_, str> {
    match width {
        // The last part is empty where the text ends with a line break.
        Some(width) => text.split('\n').map(|line| wrap_line(line, width)).collect::<Vec<_>>().join("\n").into(),
        None => Cow::Borrowed(text),
    }
}

pub fn print_json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|error| format!("cannot be shown: {error}"));
    print_exact(&format!("{text}\n"));
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

    #[test]
    fn text_breaks_between_words() {
        let printer = Printer { width: Some(20), ..Printer::plain() };
        assert_eq!(printer.wrap("one two three four five six", 4), "one two three\n    four five six");
        assert_eq!(printer.wrap("averyveryveryverylongword x", 4), "averyveryveryverylongword\n    x");
        assert_eq!(Printer::plain().wrap("one two three four five six", 4), "one two three four five six");
    }

    #[test]
    fn a_long_command_is_broken_before_its_options() {
        let command = "claude mcp add sinew -- sinew stdio --state /a/directory/of/mine";
        assert_eq!(Printer::plain().command(command), format!("  {command}\n"));
        let broken = "  claude mcp add sinew -- sinew stdio \\\n    --state /a/directory/of/mine\n";
        assert_eq!(Printer::narrow(60).command(command), broken);
    }

    #[test]
    fn a_wide_json_answer_is_broken_only_in_a_terminal() {
        let answer = r#"{"temperature": 21.5, "humidity": 40, "relays": [true, false]}"#;
        let narrow = Printer::narrow(40).answer(answer);
        assert!(narrow.lines().count() > 1 && narrow.lines().all(|line| line.len() <= 40), "{narrow}");
        assert_eq!(Printer::plain().answer(answer), answer);
        assert_eq!(Printer::narrow(80).answer(answer), answer);
        assert_eq!(Printer::narrow(10).answer("a text that is not JSON"), "a text that is not JSON");
    }

    #[test]
    fn what_a_device_says_cannot_steer_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\u{202e}c\0\n"), "abc\u{fffd}\n");
    }
}
