//! Cuts a command line into words and signs, as the phone's shell does.

use super::parse::{DEEPEST, Word, WordPiece, nested};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ShellToken {
    Word(Word),
    /// An operator, or a redirection with its number before it.
    Sign(&'static str),
}

pub(super) fn unexpected(token: &ShellToken) -> String {
    let what = match token {
        ShellToken::Sign("\n") => "newline",
        ShellToken::Sign(sign) => sign,
        ShellToken::Word(_) => "word",
    };
    format!("syntax error: unexpected '{what}'")
}

/// Longer signs before those they begin with.
const SIGNS: [&str; 15] = ["2>&1", "1>&2", "2>>", "1>>", "&&", "||", ">>", "2>", "1>", ">&2", ";", "|", "&", "(", ")"];

pub(super) fn tokens(text: &str, depth: usize) -> Result<Vec<ShellToken>, String> {
    if depth > DEEPEST {
        return Err("syntax error: nested too deeply".to_owned());
    }
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(ch) = rest.chars().next() {
        if ch == '\n' {
            tokens.push(ShellToken::Sign("\n"));
            rest = &rest[1..];
        } else if ch.is_whitespace() {
            rest = &rest[ch.len_utf8()..];
        } else if ch == '#' {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(ShellToken::Sign(sign));
            rest = &rest[sign.len()..];
        } else if let Some(sign) = [">", "<"].iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(ShellToken::Sign(sign));
            rest = &rest[1..];
        } else {
            let (word, after) = word(rest, depth)?;
            tokens.push(ShellToken::Word(word));
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
            word.push(WordPiece::Text(std::mem::take(plain)));
        }
    };
    while let Some(ch) = rest.chars().next() {
        let after = &rest[ch.len_utf8()..];
        match ch {
            '\'' if !quoted => {
                let end = after.find('\'').ok_or("no closing quote")?;
                plain.push_str(&after[..end]);
                // An empty pair of quotes is a word too.
                word.push(WordPiece::Text(std::mem::take(&mut plain)));
                rest = &after[end + 1..];
            }
            '"' => {
                quoted = !quoted;
                word.push(WordPiece::Text(std::mem::take(&mut plain)));
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
                let (piece, after) = dollar(after, depth, quoted)?;
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
                word.push(WordPiece::Output { list: nested(&after[..end], depth + 1)?, quoted });
                rest = &after[end + 1..];
            }
            _ if quoted => {
                plain.push(ch);
                rest = after;
            }
            _ if ch.is_whitespace() || ";|&()<>".contains(ch) => break,
            '*' | '?' | '[' => {
                flush(&mut plain, &mut word);
                word.push(WordPiece::Pattern(ch));
                rest = after;
            }
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
fn dollar(text: &str, depth: usize, quoted: bool) -> Result<(Option<WordPiece>, &str), String> {
    let variable = |name: &str| Some(WordPiece::Variable { name: name.to_owned(), quoted });
    if let Some(inside) = text.strip_prefix('(') {
        let mut level = 1;
        for (at, ch) in inside.char_indices() {
            level += match ch {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            if level == 0 {
                let (inside, after) = (&inside[..at], &inside[at + 1..]);
                let sum = inside.strip_prefix('(').and_then(|inside| inside.strip_suffix(')'));
                let piece = match sum {
                    Some(sum) => WordPiece::Arithmetic(sum.to_owned()),
                    None => WordPiece::Output { list: nested(inside, depth + 1)?, quoted },
                };
                return Ok((Some(piece), after));
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
