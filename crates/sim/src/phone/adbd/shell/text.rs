//! Commands that read text and write text.

use base64::Engine;
use regex_lite::{Regex, RegexBuilder};

use super::super::connection::Closed;
use super::{Io, LONGEST_LINE, Shell, stream};

impl Shell {
    pub(super) async fn filter(&mut self, name: &str, args: &[&str], io: &mut Io<'_, '_>) -> Result<u8, Closed> {
        if name == "xargs" {
            let words = String::from_utf8_lossy(&io.read_all().await).into_owned();
            let mut rest: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            rest.extend(words.split_whitespace().map(str::to_owned));
            return match rest.split_first() {
                Some((name, args)) => Box::pin(self.dispatch(name, args, io)).await,
                None => Ok(0),
            };
        }
        let Some(plan) = FilterOptions::read(name, args) else {
            io.error(format!("{name}: Unknown option (see \"{name} --help\")"));
            return Ok(1);
        };
        let mut input = Vec::new();
        let mut code = 0;
        if plan.files.is_empty() {
            if name == "cat" && io.stdin.is_none() {
                return self.echo_live(io).await;
            }
            input = io.read_all().await;
        }
        for file in &plan.files {
            let read = if *file == "-" { Ok(io.read_all().await) } else { self.read_file(file) };
            match read {
                Ok(data) => input.extend(data),
                Err(trouble) => {
                    io.error(format!("{name}: {file}: {trouble}"));
                    code = 1;
                }
            }
        }
        Ok(plan.run(name, &input, io).max(code))
    }

    /// `read [-r] NAME`: a line of what comes in. What comes after it in the same piece is lost, which nothing here sends.
    pub(super) async fn read_line(&mut self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let mut line = io.stdin.take().unwrap_or_default();
        while !line.contains(&b'\n')
            && line.len() < LONGEST_LINE
            && let Some(live) = &mut io.live
            && let Some(more) = live.read().await
        {
            line.extend(more);
        }
        let end = line.iter().position(|byte| *byte == b'\n');
        if let Some(name) = args.iter().find(|arg| !arg.starts_with('-')) {
            self.set_variable(name, &String::from_utf8_lossy(&line[..end.unwrap_or(line.len())]));
        }
        u8::from(end.is_none())
    }

    /// `cat` with a person at the other end: what comes in goes out at once.
    async fn echo_live(&mut self, io: &mut Io<'_, '_>) -> Result<u8, Closed> {
        while let Some(live) = &mut io.live {
            let Some(data) = live.read().await else { break };
            io.bytes(&data);
            io.flush().await?;
        }
        Ok(0)
    }
}

/// A filter's options, read.
#[derive(Default)]
struct FilterOptions<'a> {
    flags: String,
    count: Option<i64>,
    from_start: bool,
    bytes: bool,
    before: usize,
    after: usize,
    /// What separates the fields of `awk`.
    separator: Option<&'a str>,
    words: Vec<&'a str>,
    files: Vec<&'a str>,
}

impl<'a> FilterOptions<'a> {
    fn read(name: &str, args: &[&'a str]) -> Option<FilterOptions<'a>> {
        let mut plan = FilterOptions::default();
        let mut plain = Vec::new();
        let mut args = args.iter();
        let takes_words = match name {
            "grep" | "egrep" | "fgrep" => 1,
            "tr" => 2,
            "sed" | "awk" => 1,
            _ => 0,
        };
        while let Some(arg) = args.next() {
            let letters = arg.strip_prefix('-').filter(|rest| !rest.is_empty());
            let Some(letters) = letters.filter(|_| *arg != "-") else {
                plain.push(*arg);
                continue;
            };
            if letters.bytes().all(|byte| byte.is_ascii_digit()) && matches!(name, "head" | "tail") {
                plan.count = letters.parse().ok();
                continue;
            }
            for (at, letter) in letters.char_indices() {
                let valued = match name {
                    "grep" | "egrep" | "fgrep" => "mABCe",
                    "head" | "tail" => "nc",
                    "cut" => "dfc",
                    "sort" => "kt",
                    "sed" => "e",
                    "awk" => "Fv",
                    _ => "",
                };
                if !valued.contains(letter) {
                    plan.flags.push(letter);
                    continue;
                }
                let rest = &letters[at + letter.len_utf8()..];
                let value = if rest.is_empty() { args.next().copied()? } else { rest };
                match letter {
                    'e' | 'd' | 'f' | 't' | 'k' => plan.words.push(value),
                    'F' => plan.separator = Some(value),
                    'v' => {}
                    'A' => plan.after = value.parse().ok()?,
                    'B' => plan.before = value.parse().ok()?,
                    'C' => (plan.before, plan.after) = (value.parse().ok()?, value.parse().ok()?),
                    'c' if name == "cut" => plan.words.push(value),
                    _ => {
                        plan.bytes = letter == 'c';
                        plan.from_start = value.starts_with('+');
                        plan.count = value.trim_start_matches('+').parse().ok();
                    }
                }
                break;
            }
        }
        let missing = (takes_words as usize).saturating_sub(plan.words.len()).min(plain.len());
        let files = plain.split_off(missing);
        plan.words.extend(plain);
        plan.files = files;
        Some(plan)
    }

    fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    fn run(&self, name: &str, input: &[u8], io: &mut Io<'_, '_>) -> u8 {
        let text = || String::from_utf8_lossy(input);
        match name {
            "cat" => io.bytes(input),
            "head" | "tail" => self.part(name == "head", input, io),
            "wc" => {
                let count = match () {
                    () if self.has('l') => input.iter().filter(|byte| **byte == b'\n').count(),
                    () if self.has('c') => input.len(),
                    () => text().split_whitespace().count(),
                };
                io.line(count.to_string());
            }
            "sort" => {
                let text = text();
                let mut lines: Vec<&str> = text.lines().collect();
                lines.sort();
                if self.has('n') {
                    lines.sort_by_key(|line| line.trim().parse::<i64>().unwrap_or(0));
                }
                if self.has('u') {
                    lines.dedup();
                }
                if self.has('r') {
                    lines.reverse();
                }
                lines.iter().for_each(|line| io.line(line));
            }
            "uniq" => {
                let text = text();
                let mut lines: Vec<&str> = text.lines().collect();
                lines.dedup();
                lines.iter().for_each(|line| io.line(line));
            }
            "tr" => {
                let (from, to) = (self.words.first().copied().unwrap_or(""), self.words.get(1).copied().unwrap_or(""));
                let text = text();
                let kept = text.chars().filter_map(|ch| match from.chars().position(|own| own == ch) {
                    Some(_) if self.has('d') => None,
                    Some(at) => to.chars().nth(at).or(to.chars().last()).or(Some(ch)),
                    None => Some(ch),
                });
                io.bytes(kept.collect::<String>().as_bytes());
            }
            "cut" => {
                let mark = self.words.iter().find(|word| word.parse::<usize>().is_err()).copied().unwrap_or("\t");
                let field: usize = self.words.iter().find_map(|word| word.parse().ok()).unwrap_or(1);
                for line in text().lines() {
                    io.line(line.split(mark).nth(field.saturating_sub(1)).unwrap_or(line));
                }
            }
            "base64" => {
                let engine = base64::engine::general_purpose::STANDARD;
                if self.has('d') {
                    let packed: Vec<u8> = input.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
                    match engine.decode(packed) {
                        Ok(data) => io.bytes(&data),
                        Err(_) => return 1,
                    }
                } else {
                    engine.encode(input).as_bytes().chunks(76).for_each(|line| io.line(String::from_utf8_lossy(line)));
                }
            }
            "sed" | "awk" => {
                let script = self.words.join("\n");
                let edited = match name {
                    "sed" => stream::sed(&script, &text(), self.has('n'), self.has('E') || self.has('r')),
                    _ => stream::awk(&script, &text(), self.separator),
                };
                match edited {
                    Ok(text) => io.bytes(text.as_bytes()),
                    Err(trouble) => {
                        io.error(format!("{name}: {trouble}"));
                        return 1;
                    }
                }
            }
            // The digest of a virtual file is not checked by anyone.
            "md5sum" => io.line(format!("{:032x}  {}", input.len(), self.files.first().unwrap_or(&"-"))),
            _ => return self.grep(name, &text(), io),
        }
        0
    }

    fn part(&self, head: bool, input: &[u8], io: &mut Io<'_, '_>) {
        let count = self.count.unwrap_or(10).unsigned_abs() as usize;
        if self.bytes {
            let at = match (head, self.from_start) {
                (true, _) => count.min(input.len()),
                (false, true) => count.saturating_sub(1).min(input.len()),
                (false, false) => input.len().saturating_sub(count),
            };
            return io.bytes(if head { &input[..at] } else { &input[at..] });
        }
        let lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
        let at = match (head, self.from_start) {
            (true, _) => count.min(lines.len()),
            (false, true) => count.saturating_sub(1).min(lines.len()),
            (false, false) => lines.len().saturating_sub(count),
        };
        let wanted = if head { &lines[..at] } else { &lines[at..] };
        wanted.iter().for_each(|line| io.bytes(line));
    }

    fn grep(&self, name: &str, text: &str, io: &mut Io<'_, '_>) -> u8 {
        let extended = self.has('E') || name == "egrep";
        let fixed = self.has('F') || name == "fgrep";
        let patterns: Vec<String> = self
            .words
            .iter()
            .map(|pattern| match () {
                () if fixed => escaped(pattern),
                () if extended => (*pattern).to_owned(),
                () => from_basic(pattern),
            })
            .map(|pattern| match () {
                () if self.has('w') => format!("\\b(?:{pattern})\\b"),
                () if self.has('x') => format!("^(?:{pattern})$"),
                () => format!("(?:{pattern})"),
            })
            .collect();
        let built = RegexBuilder::new(&patterns.join("|")).case_insensitive(self.has('i')).build();
        let Ok(regex) = built else {
            io.error("grep: bad REGEX");
            return 2;
        };
        let lines: Vec<&str> = text.lines().collect();
        let most = self.count.map_or(usize::MAX, |count| count.max(0) as usize);
        let hits: Vec<usize> =
            (0..lines.len()).filter(|index| regex.is_match(lines[*index]) != self.has('v')).take(most).collect();
        if self.has('c') {
            io.line(hits.len().to_string());
        } else if !self.has('q') {
            self.print_hits(&lines, &hits, &regex, io);
        }
        u8::from(hits.is_empty())
    }

    fn print_hits(&self, lines: &[&str], hits: &[usize], regex: &Regex, io: &mut Io<'_, '_>) {
        let mut next = 0;
        for &hit in hits {
            if self.has('o') {
                regex.find_iter(lines[hit]).for_each(|found| io.line(found.as_str()));
                continue;
            }
            let from = hit.saturating_sub(self.before).max(next);
            let to = (hit + self.after + 1).min(lines.len());
            if (self.before > 0 || self.after > 0) && next > 0 && from > next {
                io.line("--");
            }
            for (index, line) in lines.iter().enumerate().take(to).skip(from) {
                match self.has('n') {
                    true => io.line(format!("{}:{line}", index + 1)),
                    false => io.line(line),
                }
            }
            next = to.max(next);
        }
    }
}

fn escaped(text: &str) -> String {
    regex_lite::escape(text)
}

/// A basic expression as an extended one: there, a backslash gives brackets and bars their meaning.
fn from_basic(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(ch) = chars.next() {
        match ch {
            '\\' => match chars.next() {
                Some(next @ ('|' | '(' | ')' | '{' | '}' | '+' | '?')) => out.push(next),
                Some(next) => out.extend(['\\', next]),
                None => out.push_str("\\\\"),
            },
            '|' | '(' | ')' | '{' | '}' | '+' | '?' => out.extend(['\\', ch]),
            other => out.push(other),
        }
    }
    out
}
