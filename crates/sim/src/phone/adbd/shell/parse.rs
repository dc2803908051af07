//! Reads a command line as the phone's shell does: quotes, pipes, lists, groups, redirections.
//!
//! Loops, functions and globs are not spoken here; no adb program that was looked at needs them.

use super::words::{Token, tokens, unexpected};

/// A word, still to be expanded.
pub type Word = Vec<Piece>;

#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(String),
    Variable(String),
    /// `$(…)`
    Output(List),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Redirect {
    /// To a file; 1 or 2, and whether at its end.
    File {
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
pub enum Body {
    Simple { assigned: Vec<(String, Word)>, words: Vec<Word> },
    Group(List),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    pub body: Body,
    pub redirects: Vec<Redirect>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    Always,
    IfWell,
    IfNot,
}

/// Commands joined by pipes; `negated` by a `!` before them.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    pub join: Join,
    pub negated: bool,
    pub commands: Vec<Command>,
}

pub type List = Vec<Pipeline>;

/// Groups and substitutions inside one another; deeper is refused.
pub const DEEPEST: usize = 16;

/// Reads a whole line, or tells what mksh would complain about.
pub fn parse(text: &str) -> Result<List, String> {
    let mut parser = Parser { tokens: tokens(text, 0)?, at: 0 };
    let list = parser.list(None, 0)?;
    match parser.peek() {
        None => Ok(list),
        Some(token) => Err(unexpected(token)),
    }
}

/// The list inside a substitution.
pub fn nested(text: &str, depth: usize) -> Result<List, String> {
    let mut parser = Parser { tokens: tokens(text, depth + 1)?, at: 0 };
    parser.list(None, depth + 1)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next_is(&mut self, sign: &str) -> bool {
        let hit = matches!(self.peek(), Some(Token::Sign(found)) if *found == sign);
        self.at += usize::from(hit);
        hit
    }

    fn list(&mut self, end: Option<&str>, depth: usize) -> Result<List, String> {
        let mut list = List::new();
        let mut join = Join::Always;
        loop {
            while self.next_is("\n") || (list.is_empty() && self.next_is(";")) {}
            match self.peek() {
                None if join != Join::Always => return Err("syntax error: unexpected EOF".to_owned()),
                None if end.is_none() => return Ok(list),
                None => return Err("syntax error: unexpected EOF".to_owned()),
                Some(Token::Sign(sign)) if Some(*sign) == end => {
                    self.at += 1;
                    return Ok(list);
                }
                Some(Token::Word(word)) if end == Some("}") && is_plain(word, "}") => {
                    self.at += 1;
                    return Ok(list);
                }
                Some(_) => {}
            }
            let mut pipeline = self.pipeline(depth)?;
            pipeline.join = join;
            list.push(pipeline);
            join = match self.peek() {
                Some(Token::Sign("&&")) => Join::IfWell,
                Some(Token::Sign("||")) => Join::IfNot,
                // What is sent to the background is simply done first.
                Some(Token::Sign(";" | "&" | "\n")) => Join::Always,
                Some(Token::Sign(sign)) if Some(*sign) == end => Join::Always,
                Some(token) => return Err(unexpected(token)),
                None => Join::Always,
            };
            let ended = matches!(self.peek(), Some(Token::Sign(sign)) if Some(*sign) == end);
            self.at += usize::from(!ended);
        }
    }

    fn pipeline(&mut self, depth: usize) -> Result<Pipeline, String> {
        let negated = matches!(self.peek(), Some(Token::Word(word)) if is_plain(word, "!"));
        self.at += usize::from(negated);
        let mut commands = vec![self.command(depth)?];
        while self.next_is("|") {
            commands.push(self.command(depth)?);
        }
        Ok(Pipeline { join: Join::Always, negated, commands })
    }

    fn command(&mut self, depth: usize) -> Result<Command, String> {
        if depth > DEEPEST {
            return Err("syntax error: nested too deeply".to_owned());
        }
        let braced = matches!(self.peek(), Some(Token::Word(word)) if is_plain(word, "{"));
        let body = if self.next_is("(") {
            Some(Body::Group(self.list(Some(")"), depth + 1)?))
        } else if braced {
            self.at += 1;
            Some(Body::Group(self.list(Some("}"), depth + 1)?))
        } else {
            None
        };
        let mut words = Vec::new();
        let mut redirects = Vec::new();
        loop {
            match self.peek().cloned() {
                Some(Token::Word(word)) if body.is_none() => words.push(word),
                Some(Token::Sign("2>&1")) => redirects.push(Redirect::Join { from: 2, to: 1 }),
                Some(Token::Sign("1>&2" | ">&2")) => redirects.push(Redirect::Join { from: 1, to: 2 }),
                Some(Token::Sign(sign @ (">" | ">>" | "1>" | "1>>" | "2>" | "2>>" | "<"))) => {
                    self.at += 1;
                    let Some(Token::Word(to)) = self.peek().cloned() else {
                        return Err(self.peek().map_or("syntax error: unexpected EOF".to_owned(), unexpected));
                    };
                    redirects.push(match sign {
                        "<" => Redirect::Input(to),
                        _ => Redirect::File {
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
            return Ok(Command { body, redirects });
        }
        if words.is_empty() && redirects.is_empty() {
            return Err(self.peek().map_or("syntax error: unexpected EOF".to_owned(), unexpected));
        }
        let mut assigned = Vec::new();
        while let Some((name, value)) = words.first().and_then(assignment) {
            assigned.push((name, value));
            words.remove(0);
        }
        Ok(Command { body: Body::Simple { assigned, words }, redirects })
    }
}

fn is_plain(word: &Word, text: &str) -> bool {
    matches!(word.as_slice(), [Piece::Text(own)] if own == text)
}

/// `NAME=value` before a command.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let Some(Piece::Text(first)) = word.first() else { return None };
    let (name, value) = first.split_once('=')?;
    let named = name.starts_with(|ch: char| ch.is_ascii_alphabetic() || ch == '_')
        && name.chars().all(|ch| ch.is_ascii_alphanumeric() || ch == '_');
    named.then(|| {
        let mut rest = vec![Piece::Text(value.to_owned())];
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
                    Body::Group(list) => format!("({} inside)", list.len()),
                    Body::Simple { words, .. } => words.iter().map(flat).collect::<Vec<_>>().join(" "),
                })
                .collect();
            out.push_str(&commands.join(" | "));
        }
        out
    }

    fn flat(word: &Word) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Variable(name) => format!("${name}"),
            Piece::Output(list) => format!("$({})", list.len()),
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
            ("kill $(pidof x) `y`", "<kill> <$(1)> <$(1)>"),
            ("echo ''", "<echo> <>"),
            ("echo X$?", "<echo> <X$?>"),
            ("# nothing", ""),
            ("a # b", "<a>"),
            ("CLASSPATH=/x app_process / M", "<app_process> </> <M>"),
            ("rm -f '/a' >/dev/null 2>&1; ls", "<rm> <-f> </a> ; <ls>"),
            ("", ""),
        ] {
            assert_eq!(shown(text), expect, "{text}");
        }
    }

    #[test]
    fn what_is_no_line_is_refused_without_a_panic() {
        for text in ["'", "\"", "a |", "| a", "a && ", "(", ")", "a > ", "$(", "${", "`", "a ;; b", "{ a", "&& a"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"(".repeat(5000)).is_err());
        assert!(parse(&"$(".repeat(5000)).is_err());
    }
}
