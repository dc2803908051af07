//! `sed` and `awk`, as far as scripts for phones use them: addresses with `s`, `p`, `d` and `q`; patterns with `print`.

use regex_lite::{Regex, RegexBuilder};

/// What a program made of a text, or what it complains about.
pub(super) type EditResult = Result<String, String>;

/// A pattern must not take more memory than this to compile.
const MOST_PATTERN: usize = 1 << 20;

pub(super) fn regex(pattern: &str, any_case: bool) -> Result<Regex, String> {
    let built = RegexBuilder::new(pattern).case_insensitive(any_case).size_limit(MOST_PATTERN).build();
    built.map_err(|_| format!("bad regex '{pattern}'"))
}

/// Basic patterns escape what extended ones do not.
fn extended(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(ch) = chars.next() {
        match ch {
            '\\' => match chars.next() {
                Some(next) if "(){}+?|".contains(next) => out.push(next),
                Some(next) => out.extend(['\\', next]),
                None => out.push('\\'),
            },
            '(' | ')' | '{' | '}' | '+' | '?' | '|' => out.extend(['\\', ch]),
            _ => out.push(ch),
        }
    }
    out
}

enum SedAddress {
    Line(usize),
    Last,
    Fits(Regex),
}

enum SedEdit {
    Print,
    Delete,
    Quit,
    Replace { from: Regex, to: String, all: bool, print: bool },
}

struct SedStep {
    from: Option<SedAddress>,
    to: Option<SedAddress>,
    edit: SedEdit,
}

pub(super) fn sed(script: &str, text: &str, quiet: bool, is_extended: bool) -> EditResult {
    let mut steps = Vec::new();
    let mut reader = SedScript { rest: script, is_extended };
    while let Some(step) = reader.step()? {
        steps.push((step, false));
    }
    let count = text.lines().count();
    let mut out = String::new();
    for (nth, line) in text.lines().enumerate() {
        let mut line = line.to_owned();
        let (mut kept, mut quits) = (!quiet, false);
        for (step, inside) in &mut steps {
            if !step.applies(nth + 1, count, &line, inside) {
                continue;
            }
            match &step.edit {
                SedEdit::Print => out.extend([line.as_str(), "\n"]),
                SedEdit::Delete => {
                    kept = false;
                    break;
                }
                SedEdit::Quit => quits = true,
                SedEdit::Replace { from, to, all, print } => {
                    let is_hit = from.is_match(&line);
                    let limit = if *all { 0 } else { 1 };
                    line = from.replacen(&line, limit, to.as_str()).into_owned();
                    if is_hit && *print {
                        out.extend([line.as_str(), "\n"]);
                    }
                }
            }
        }
        if kept {
            out.extend([line.as_str(), "\n"]);
        }
        if quits {
            break;
        }
    }
    Ok(out)
}

impl SedStep {
    fn applies(&self, nth: usize, count: usize, line: &str, inside: &mut bool) -> bool {
        let is_at = |address: &SedAddress| match address {
            SedAddress::Line(wanted) => *wanted == nth,
            SedAddress::Last => nth == count,
            SedAddress::Fits(regex) => regex.is_match(line),
        };
        match (&self.from, &self.to) {
            (None, _) => true,
            (Some(from), None) => is_at(from),
            (Some(_), Some(to)) if *inside => {
                *inside = !is_at(to);
                true
            }
            (Some(from), Some(to)) => {
                let starts = is_at(from);
                *inside = starts && !matches!(to, SedAddress::Line(last) if *last <= nth);
                starts
            }
        }
    }
}

struct SedScript<'a> {
    rest: &'a str,
    is_extended: bool,
}

impl SedScript<'_> {
    fn step(&mut self) -> Result<Option<SedStep>, String> {
        self.rest = self.rest.trim_start_matches([';', '\n', ' ']);
        if self.rest.is_empty() {
            return Ok(None);
        }
        let from = self.address()?;
        let to = match self.rest.strip_prefix(',') {
            Some(rest) => {
                self.rest = rest;
                self.address()?
            }
            None => None,
        };
        self.rest = self.rest.trim_start();
        let edit = match self.next() {
            Some('p') => SedEdit::Print,
            Some('d') => SedEdit::Delete,
            Some('q') => SedEdit::Quit,
            Some('s') => self.replace()?,
            _ => return Err("bad pattern".to_owned()),
        };
        Ok(Some(SedStep { from, to, edit }))
    }

    fn next(&mut self) -> Option<char> {
        let ch = self.rest.chars().next()?;
        self.rest = &self.rest[ch.len_utf8()..];
        Some(ch)
    }

    fn address(&mut self) -> Result<Option<SedAddress>, String> {
        self.rest = self.rest.trim_start();
        let digits = self.rest.len() - self.rest.trim_start_matches(|ch: char| ch.is_ascii_digit()).len();
        if digits > 0 {
            let (number, rest) = self.rest.split_at(digits);
            self.rest = rest;
            return Ok(Some(SedAddress::Line(number.parse().unwrap_or(usize::MAX))));
        }
        match self.rest.chars().next() {
            Some('$') => {
                self.next();
                Ok(Some(SedAddress::Last))
            }
            Some('/') => {
                self.next();
                let pattern = self.until('/')?;
                Ok(Some(SedAddress::Fits(self.pattern(&pattern, false)?)))
            }
            _ => Ok(None),
        }
    }

    /// Up to the next mark that is not escaped.
    fn until(&mut self, mark: char) -> Result<String, String> {
        let mut out = String::new();
        while let Some(ch) = self.next() {
            match ch {
                _ if ch == mark => return Ok(out),
                '\\' => match self.next() {
                    Some(next) if next == mark => out.push(mark),
                    Some('n') => out.push('\n'),
                    Some(next) => out.extend(['\\', next]),
                    None => break,
                },
                _ => out.push(ch),
            }
        }
        Err(format!("unfinished '{mark}'"))
    }

    fn pattern(&self, pattern: &str, any_case: bool) -> Result<Regex, String> {
        regex(&if self.is_extended { pattern.to_owned() } else { extended(pattern) }, any_case)
    }

    fn replace(&mut self) -> Result<SedEdit, String> {
        let mark = self.next().ok_or("bad pattern")?;
        let (from, to) = (self.until(mark)?, self.until(mark)?);
        let end = self.rest.find(|ch: char| !ch.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
        let (flags, rest) = self.rest.split_at(end);
        self.rest = rest;
        let from = self.pattern(&from, flags.contains(['i', 'I']))?;
        Ok(SedEdit::Replace { from, to: template(&to), all: flags.contains('g'), print: flags.contains('p') })
    }
}

/// `\1` and `&` in the words of the regex library.
fn template(to: &str) -> String {
    let mut out = String::new();
    let mut chars = to.chars();
    while let Some(ch) = chars.next() {
        match ch {
            '$' => out.push_str("$$"),
            '&' => out.push_str("${0}"),
            '\\' => match chars.next() {
                Some(digit) if digit.is_ascii_digit() => out.extend(["${", digit.encode_utf8(&mut [0; 4]), "}"]),
                Some(next) => out.push(next),
                None => out.push('\\'),
            },
            _ => out.push(ch),
        }
    }
    out
}

pub(super) fn awk(program: &str, text: &str, separator: Option<&str>) -> EditResult {
    let (pattern, action) = match program.split_once('{') {
        Some((pattern, action)) => (pattern.trim(), action.trim_end().strip_suffix('}').ok_or("missing }")?),
        None => (program.trim(), "print"),
    };
    let pattern = AwkPattern::read(pattern)?;
    let mut out = String::new();
    for (nth, line) in text.lines().enumerate() {
        let fields: Vec<&str> = match separator {
            Some(separator) if separator != " " => line.split(separator).collect(),
            _ => line.split_whitespace().collect(),
        };
        let row = AwkRow { line, fields, number: nth + 1 };
        if !pattern.fits(&row) {
            continue;
        }
        for statement in action.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
            let shown = statement.strip_prefix("print").ok_or_else(|| format!("'{statement}' is not known here"))?;
            let parts: Vec<String> = split_outside(shown, ',').iter().map(|part| row.joined(part)).collect();
            out.push_str(&if shown.trim().is_empty() { line.to_owned() } else { parts.join(" ") });
            out.push('\n');
        }
    }
    Ok(out)
}

enum AwkPattern {
    Always,
    Fits(String, Regex),
    Equals(String, String),
}

impl AwkPattern {
    fn read(text: &str) -> Result<AwkPattern, String> {
        let slashed = |text: &str| {
            let inside = text.trim().strip_prefix('/').and_then(|text| text.strip_suffix('/'));
            inside.ok_or_else(|| format!("'{text}' is not known here")).and_then(|inside| regex(inside, false))
        };
        if text.is_empty() {
            return Ok(AwkPattern::Always);
        }
        if let Some((left, right)) = text.split_once("==") {
            return Ok(AwkPattern::Equals(left.trim().to_owned(), right.trim().to_owned()));
        }
        match text.split_once('~') {
            Some((left, right)) => Ok(AwkPattern::Fits(left.trim().to_owned(), slashed(right)?)),
            None => Ok(AwkPattern::Fits("$0".to_owned(), slashed(text)?)),
        }
    }

    fn fits(&self, row: &AwkRow<'_>) -> bool {
        match self {
            AwkPattern::Always => true,
            AwkPattern::Fits(what, regex) => regex.is_match(&row.joined(what)),
            AwkPattern::Equals(left, right) => row.joined(left) == row.joined(right),
        }
    }
}

struct AwkRow<'a> {
    line: &'a str,
    fields: Vec<&'a str>,
    number: usize,
}

impl AwkRow<'_> {
    /// Values beside each other are one text.
    fn joined(&self, text: &str) -> String {
        split_outside(text, ' ').into_iter().map(|value| self.value(value.trim())).collect()
    }

    fn value(&self, text: &str) -> String {
        if let Some(inside) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            return inside.replace("\\t", "\t").replace("\\n", "\n");
        }
        match text.strip_prefix('$') {
            Some("0") => self.line.to_owned(),
            Some(which) => {
                let which = if which == "NF" { self.fields.len() } else { which.parse().unwrap_or(0) };
                which.checked_sub(1).and_then(|at| self.fields.get(at)).copied().unwrap_or_default().to_owned()
            }
            None => match text {
                "NR" => self.number.to_string(),
                "NF" => self.fields.len().to_string(),
                other => other.to_owned(),
            },
        }
    }
}

/// Parts of a text between marks that stand outside of quotes.
fn split_outside(text: &str, mark: char) -> Vec<&str> {
    let mut quoted = false;
    text.split(|ch: char| {
        quoted ^= ch == '"';
        ch == mark && !quoted
    })
    .filter(|part| !part.trim().is_empty())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sed_edits_lines() {
        let text = "one 1\ntwo 22\nthree 333\n";
        let run = |script: &str, quiet| sed(script, text, quiet, false);
        for (script, quiet, expect) in [
            ("s/o/0/", false, "0ne 1\ntw0 22\nthree 333\n"),
            ("s/[a-z]* \\([0-9]*\\)/\\1=&/", false, "1=one 1\n22=two 22\n333=three 333\n"),
            ("2p", true, "two 22\n"),
            ("/two/,$p", true, "two 22\nthree 333\n"),
            ("/two/d;s/3/x/g", false, "one 1\nthree xxx\n"),
            ("2q", false, "one 1\ntwo 22\n"),
            ("s|e |-$|p", true, "on-$1\nthre-$333\n"),
        ] {
            assert_eq!(run(script, quiet).as_deref(), Ok(expect), "{script}");
        }
        for script in ["s/a", "z", "/a", "s", "s/(/x/"] {
            let _ = run(script, false);
        }
        assert!(run("s/a", false).is_err() && run("y", false).is_err());
    }

    #[test]
    fn awk_prints_fields() {
        let text = "a 1 x\nb 2 y\n";
        let run = |program: &str| awk(program, text, None);
        for (program, expect) in [
            ("{print $1}", "a\nb\n"),
            ("{print $NF, $1}", "x a\ny b\n"),
            ("/b/ {print NR \": \" $2}", "2: 2\n"),
            ("$2==1", "a 1 x\n"),
            ("NR==2 {print}", "b 2 y\n"),
            ("$3 ~ /y/ { print $9 }", "\n"),
        ] {
            assert_eq!(run(program).as_deref(), Ok(expect), "{program}");
        }
        assert_eq!(awk("{print $2}", "k=v\n", Some("=")).as_deref(), Ok("v\n"));
        assert!(run("{system(\"x\")}").is_err() && run("{print $1").is_err());
    }
}
