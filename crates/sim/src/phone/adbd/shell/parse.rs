//! Reads a command line as the phone's shell does: quotes, pipes, lists, groups, redirections, `if`, `for`, `while`.
//!
//! Functions and `case` are not supported; no adb program that was examined needs them.

use super::words::{ShellToken, tokens, unexpected};

/// A word, still to be expanded.
pub(super) type Word = Vec<WordPiece>;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum WordPiece {
    Text(String),
    /// `*`, `?` or `[` outside of quotes.
    Pattern(char),
    /// `$name`; what stands outside of quotes is split into words.
    Variable {
        name: String,
        quoted: bool,
    },
    /// `$(…)`
    Output {
        list: CommandList,
        quoted: bool,
    },
    /// `$((…))`
    Arithmetic(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Redirect {
    /// To a file; 1 or 2, and whether at its end.
    StoredFile {
        from: u8,
        append: bool,
        to: Word,
    },
    /// `2>&1` and `1>&2`.
    Join {
        from: u8,
        to: u8,
    },
    Input(Word),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum CommandBody {
    Simple {
        assigned: Vec<(String, Word)>,
        words: Vec<Word>,
    },
    Group(CommandList),
    /// Conditions with what is done where they hold, and what is done where none does.
    If {
        branches: Vec<(CommandList, CommandList)>,
        otherwise: CommandList,
    },
    /// `while`, or `until` where the condition must fail.
    While {
        condition: CommandList,
        until: bool,
        body: CommandList,
    },
    For {
        name: String,
        words: Vec<Word>,
        body: CommandList,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ParsedCommand {
    pub body: CommandBody,
    pub redirects: Vec<Redirect>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    Always,
    IfWell,
    IfNot,
}

/// Commands joined by pipes; `negated` by a `!` before them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pipeline {
    pub join: Join,
    pub negated: bool,
    pub commands: Vec<ParsedCommand>,
}

pub(super) type CommandList = Vec<Pipeline>;

/// Groups and substitutions inside one another; deeper is refused.
pub(super) const DEEPEST: usize = 16;

/// Reads a whole line, or tells what mksh would complain about.
pub(super) fn parse(text: &str) -> Result<CommandList, String> {
    nested(text, 0)
}

/// The list inside a substitution.
pub(super) fn nested(text: &str, depth: usize) -> Result<CommandList, String> {
    let mut parser = ShellParser { tokens: tokens(text, depth)?, at: 0 };
    let list = parser.list(&[], depth)?.0;
    match parser.peek() {
        None => Ok(list),
        Some(token) => Err(unexpected(token)),
    }
}

struct ShellParser {
    tokens: Vec<ShellToken>,
    at: usize,
}

impl ShellParser {
    fn peek(&self) -> Option<&ShellToken> {
        self.tokens.get(self.at)
    }

    fn next_is(&mut self, sign: &str) -> bool {
        let hit = matches!(self.peek(), Some(ShellToken::Sign(found)) if *found == sign);
        self.at += usize::from(hit);
        hit
    }

    /// Commands up to one of the signs or words that end them, and which one that was; to the end of the text where
    /// none is given.
    fn list(&mut self, ends: &[&'static str], depth: usize) -> Result<(CommandList, &'static str), String> {
        let mut list = CommandList::new();
        let mut join = Join::Always;
        loop {
            while self.next_is("\n") || (list.is_empty() && self.next_is(";")) {}
            if let Some(end) = self.end(ends) {
                return if join == Join::Always {
                    Ok((list, end))
                } else {
                    Err(format!("syntax error: unexpected '{end}'"))
                };
            }
            if self.peek().is_none() {
                let is_whole = ends.is_empty() && join == Join::Always;
                return if is_whole { Ok((list, "")) } else { Err("syntax error: unexpected EOF".to_owned()) };
            }
            let mut pipeline = self.pipeline(depth)?;
            pipeline.join = join;
            list.push(pipeline);
            join = match self.peek() {
                Some(ShellToken::Sign("&&")) => Join::IfWell,
                Some(ShellToken::Sign("||")) => Join::IfNot,
                // What is sent to the background is simply done first.
                Some(ShellToken::Sign(";" | "&" | "\n")) => Join::Always,
                Some(ShellToken::Sign(sign)) if ends.contains(sign) => {
                    join = Join::Always;
                    continue;
                }
                Some(token) => return Err(unexpected(token)),
                None => {
                    join = Join::Always;
                    continue;
                }
            };
            self.at += 1;
        }
    }

    /// The sign or word here that ends a list, taken.
    fn end(&mut self, ends: &[&'static str]) -> Option<&'static str> {
        let end = ends.iter().copied().find(|end| match self.peek() {
            Some(ShellToken::Sign(sign)) => sign == end,
            Some(ShellToken::Word(word)) => is_plain(word, end),
            None => false,
        })?;
        self.at += 1;
        Some(end)
    }

    fn pipeline(&mut self, depth: usize) -> Result<Pipeline, String> {
        let negated = matches!(self.peek(), Some(ShellToken::Word(word)) if is_plain(word, "!"));
        self.at += usize::from(negated);
        let mut commands = vec![self.command(depth)?];
        while self.next_is("|") {
            commands.push(self.command(depth)?);
        }
        Ok(Pipeline { join: Join::Always, negated, commands })
    }

    fn command(&mut self, depth: usize) -> Result<ParsedCommand, String> {
        if depth > DEEPEST {
            return Err("syntax error: nested too deeply".to_owned());
        }
        let body = match self.end(&["(", "{", "if", "while", "until", "for"]) {
            Some("(") => Some(CommandBody::Group(self.list(&[")"], depth + 1)?.0)),
            Some("{") => Some(CommandBody::Group(self.list(&["}"], depth + 1)?.0)),
            Some("if") => Some(self.conditional(depth + 1)?),
            Some("for") => Some(self.counted(depth + 1)?),
            Some(word) => {
                let condition = self.list(&["do"], depth + 1)?.0;
                let body = self.list(&["done"], depth + 1)?.0;
                Some(CommandBody::While { condition, until: word == "until", body })
            }
            None => None,
        };
        let mut words = Vec::new();
        let mut redirects = Vec::new();
        loop {
            match self.peek().cloned() {
                Some(ShellToken::Word(word)) if body.is_none() => words.push(word),
                Some(ShellToken::Sign("2>&1")) => redirects.push(Redirect::Join { from: 2, to: 1 }),
                Some(ShellToken::Sign("1>&2" | ">&2")) => redirects.push(Redirect::Join { from: 1, to: 2 }),
                Some(ShellToken::Sign(sign @ (">" | ">>" | "1>" | "1>>" | "2>" | "2>>" | "<"))) => {
                    self.at += 1;
                    let Some(ShellToken::Word(to)) = self.peek().cloned() else {
                        return Err(self.peek().map_or("syntax error: unexpected EOF".to_owned(), unexpected));
                    };
                    redirects.push(match sign {
                        "<" => Redirect::Input(to),
                        _ => Redirect::StoredFile {
                            from: if sign.starts_with('2') { 2 } else { 1 },
                            append: sign.ends_with(">>"),
                            to,
                        },
                    });
                }
                _ => break,
            }
            self.at += 1;
        }
        if let Some(body) = body {
            return Ok(ParsedCommand { body, redirects });
        }
        if words.is_empty() && redirects.is_empty() {
            return Err(self.peek().map_or("syntax error: unexpected EOF".to_owned(), unexpected));
        }
        let mut assigned = Vec::new();
        while let Some((name, value)) = words.first().and_then(assignment) {
            assigned.push((name, value));
            words.remove(0);
        }
        Ok(ParsedCommand { body: CommandBody::Simple { assigned, words }, redirects })
    }

    /// After `if`.
    fn conditional(&mut self, depth: usize) -> Result<CommandBody, String> {
        let mut branches = Vec::new();
        loop {
            let condition = self.list(&["then"], depth)?.0;
            let (body, end) = self.list(&["elif", "else", "fi"], depth)?;
            branches.push((condition, body));
            match end {
                "elif" => {}
                "else" => {
                    let otherwise = self.list(&["fi"], depth)?.0;
                    return Ok(CommandBody::If { branches, otherwise });
                }
                _ => return Ok(CommandBody::If { branches, otherwise: CommandList::new() }),
            }
        }
    }

    /// After `for`: a name, `in`, words, and the body.
    fn counted(&mut self, depth: usize) -> Result<CommandBody, String> {
        let name = match self.peek() {
            Some(ShellToken::Word(word)) => match word.as_slice() {
                [WordPiece::Text(name)] if is_name(name) => name.clone(),
                _ => return Err("syntax error: bad for loop variable".to_owned()),
            },
            other => return Err(other.map_or("syntax error: unexpected EOF".to_owned(), unexpected)),
        };
        self.at += 1;
        let mut words = Vec::new();
        if self.end(&["in"]).is_some() {
            while let Some(ShellToken::Word(word)) = self.peek() {
                words.push(word.clone());
                self.at += 1;
            }
        }
        while self.next_is(";") || self.next_is("\n") {}
        if self.end(&["do"]).is_none() {
            return Err(self.peek().map_or("syntax error: unexpected EOF".to_owned(), unexpected));
        }
        let body = self.list(&["done"], depth)?.0;
        Ok(CommandBody::For { name, words, body })
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|ch: char| ch.is_ascii_alphabetic() || ch == '_')
        && text.chars().all(|ch| ch.is_ascii_alphanumeric() || ch == '_')
}

fn is_plain(word: &Word, text: &str) -> bool {
    matches!(word.as_slice(), [WordPiece::Text(own)] if own == text)
}

/// `NAME=value` before a command.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let Some(WordPiece::Text(first)) = word.first() else { return None };
    let (name, value) = first.split_once('=')?;
    is_name(name).then(|| {
        let mut rest = vec![WordPiece::Text(value.to_owned())];
        rest.extend(word[1..].iter().cloned());
        (name.to_owned(), rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a line, with `|`, `;`, `&&` and `||` between them.
    fn shown(text: &str) -> String {
        let mut out = String::new();
        for pipeline in parse(text).unwrap() {
            if !out.is_empty() {
                out.push_str(match pipeline.join {
                    Join::Always => " ; ",
                    Join::IfWell => " && ",
                    Join::IfNot => " || ",
                });
            }
            let commands: Vec<String> = pipeline
                .commands
                .iter()
                .map(|command| match &command.body {
                    CommandBody::Group(list) => format!("({} inside)", list.len()),
                    CommandBody::Simple { words, .. } => words.iter().map(flat).collect::<Vec<_>>().join(" "),
                    CommandBody::If { branches, otherwise } => {
                        format!("(if {} else {})", branches.len(), otherwise.len())
                    }
                    CommandBody::While { until, body, .. } => format!("(while {until} {})", body.len()),
                    CommandBody::For { name, words, body } => format!("(for {name} {} {})", words.len(), body.len()),
                })
                .collect();
            out.push_str(&commands.join(" | "));
        }
        out
    }

    fn flat(word: &Word) -> String {
        let piece = |piece: &WordPiece| match piece {
            WordPiece::Text(text) => text.clone(),
            WordPiece::Pattern(sign) => sign.to_string(),
            WordPiece::Variable { name, .. } => format!("${name}"),
            WordPiece::Output { list, .. } => format!("$({})", list.len()),
            WordPiece::Arithmetic(text) => format!("$(({text}))"),
        };
        format!("<{}>", word.iter().map(piece).collect::<String>())
    }

    #[test]
    fn lines_are_read_as_a_shell_reads_them() {
        for (text, expect) in [
            ("input tap 1 2", "<input> <tap> <1> <2>"),
            ("input text 'a b'\\''c'", "<input> <text> <a b'c>"),
            ("echo \"a $HOME \\\"q\\\" \\n\"", "<echo> <a $HOME \"q\" \\n>"),
            ("a;b && c||d & e\nf", "<a> ; <b> && <c> || <d> ; <e> ; <f>"),
            ("dumpsys window | grep -E 'a|b'", "<dumpsys> <window> | <grep> <-E> <a|b>"),
            ("(a && b) && c", "(2 inside) && <c>"),
            ("(a; b) | c", "(2 inside) | <c>"),
            ("{ a; b; }", "(2 inside)"),
            ("a && b || { c; }", "<a> && <b> || (1 inside)"),
            ("(a && b)", "(2 inside)"),
            ("kill $(pidof x) `y`", "<kill> <$(1)> <$(1)>"),
            ("echo ''", "<echo> <>"),
            ("echo X$?", "<echo> <X$?>"),
            ("# nothing", ""),
            ("a # b", "<a>"),
            ("CLASSPATH=/x app_process / M", "<app_process> </> <M>"),
            ("rm -f '/a' >/dev/null 2>&1; ls", "<rm> <-f> </a> ; <ls>"),
            ("if a; then b; elif c; then d; else e; f; fi; g", "(if 2 else 2) ; <g>"),
            ("while a && b; do c; d; done | e", "(while false 2) | <e>"),
            ("until a\ndo b\ndone", "(while true 1)"),
            ("for f in a b *.txt; do echo $f; done", "(for f 3 1)"),
            ("echo if then $((1 + (2 * x)))", "<echo> <if> <then> <$((1 + (2 * x)))>"),
            ("", ""),
        ] {
            assert_eq!(shown(text), expect, "{text}");
        }
    }

    #[test]
    fn what_is_no_line_is_refused_without_a_panic() {
        for text in [
            "'",
            "\"",
            "a |",
            "| a",
            "a && ",
            "(",
            ")",
            "a > ",
            "$(",
            "${",
            "`",
            "a ;; b",
            "{ a",
            "&& a",
            "if a",
            "if a; then b",
            "for 1 in a; do b; done",
            "while a; done",
            "$((1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"(".repeat(5000)).is_err());
        assert!(parse(&"$(".repeat(5000)).is_err());
    }
}
