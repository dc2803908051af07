//! Reads a command line as the phone's shell does: quotes, pipes, lists, groups, redirections.
//!
//! Loops, functions and globs are not spoken here; no adb program that was looked at needs them.

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
const DEEPEST: usize = 16;

/// Reads a whole line, or tells what mksh would complain about.
pub fn parse(text: &str) -> Result<List, String> {
    let mut parser = Parser { tokens: tokens(text, 0)?, at: 0 };
    let list = parser.list(None, 0)?;
    match parser.peek() {
        None => Ok(list),
        Some(token) => Err(unexpected(token)),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(Word),
    /// An operator, or a redirection with its number before it.
    Sign(&'static str),
}

fn unexpected(token: &Token) -> String {
    let what = match token {
        Token::Sign("\n") => "newline",
        Token::Sign(sign) => sign,
        Token::Word(_) => "word",
    };
    format!("syntax error: unexpected '{what}'")
}

/// Longer signs before those they begin with.
const SIGNS: [&str; 15] = ["2>&1", "1>&2", "2>>", "1>>", "&&", "||", ">>", "2>", "1>", ">&2", ";", "|", "&", "(", ")"];

fn tokens(text: &str, depth: usize) -> Result<Vec<Token>, String> {
    if depth > DEEPEST {
        return Err("syntax error: nested too deeply".to_owned());
    }
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(ch) = rest.chars().next() {
        if ch == '\n' {
            tokens.push(Token::Sign("\n"));
            rest = &rest[1..];
        } else if ch.is_whitespace() {
            rest = &rest[ch.len_utf8()..];
        } else if ch == '#' {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else if let Some(sign) = [">", "<"].iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(Token::Sign(sign));
            rest = &rest[1..];
        } else {
            let (word, after) = word(rest, depth)?;
            tokens.push(Token::Word(word));
            rest = after;
        }
    }
    Ok(tokens)
}

fn word(text: &str, depth: usize) -> Result<(Word, &str), String> {
    let mut word: Word = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    let mut quoted = false;
    let flush = |plain: &mut String, word: &mut Word| {
        if !plain.is_empty() {
            word.push(Piece::Text(std::mem::take(plain)));
        }
    };
    while let Some(ch) = rest.chars().next() {
        let after = &rest[ch.len_utf8()..];
        match ch {
            '\'' if !quoted => {
                let end = after.find('\'').ok_or("no closing quote")?;
                plain.push_str(&after[..end]);
                // An empty pair of quotes is a word too.
                word.push(Piece::Text(std::mem::take(&mut plain)));
                rest = &after[end + 1..];
            }
            '"' => {
                quoted = !quoted;
                word.push(Piece::Text(std::mem::take(&mut plain)));
                rest = after;
            }
            '\\' => {
                let next = after.chars().next();
                rest = &after[next.map_or(0, char::len_utf8)..];
                match next {
                    Some('\n') => {}
                    Some(next) if !quoted || "\"\\$`".contains(next) => plain.push(next),
                    Some(next) => plain.extend(['\\', next]),
                    None => plain.push('\\'),
                }
            }
            '$' => {
                let (piece, after) = dollar(after, depth)?;
                match piece {
                    Some(piece) => {
                        flush(&mut plain, &mut word);
                        word.push(piece);
                    }
                    None => plain.push('$'),
                }
                rest = after;
            }
            '`' => {
                let end = after.find('`').ok_or("no closing quote")?;
                flush(&mut plain, &mut word);
                word.push(Piece::Output(nested(&after[..end], depth)?));
                rest = &after[end + 1..];
            }
            _ if quoted => {
                plain.push(ch);
                rest = after;
            }
            _ if ch.is_whitespace() || ";|&()<>".contains(ch) => break,
            _ => {
                plain.push(ch);
                rest = after;
            }
        }
    }
    if quoted {
        return Err("no closing quote".to_owned());
    }
    flush(&mut plain, &mut word);
    Ok((word, rest))
}

/// What follows a dollar sign.
fn dollar(text: &str, depth: usize) -> Result<(Option<Piece>, &str), String> {
    let variable = |name: &str| Some(Piece::Variable(name.to_owned()));
    if let Some(inside) = text.strip_prefix('(') {
        let mut level = 1;
        for (at, ch) in inside.char_indices() {
            level += match ch {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            if level == 0 {
                return Ok((Some(Piece::Output(nested(&inside[..at], depth)?)), &inside[at + 1..]));
            }
        }
        return Err("syntax error: unmatched '('".to_owned());
    }
    if let Some(inside) = text.strip_prefix('{') {
        let end = inside.find('}').ok_or("syntax error: unmatched '{'")?;
        return Ok((variable(&inside[..end]), &inside[end + 1..]));
    }
    if let Some(special) = text.chars().next().filter(|ch| "?$#@*0".contains(*ch)) {
        return Ok((variable(&special.to_string()), &text[1..]));
    }
    let end = text.find(|ch: char| !ch.is_ascii_alphanumeric() && ch != '_').unwrap_or(text.len());
    match end {
        0 => Ok((None, text)),
        _ => Ok((variable(&text[..end]), &text[end..])),
    }
}

fn nested(text: &str, depth: usize) -> Result<List, String> {
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
