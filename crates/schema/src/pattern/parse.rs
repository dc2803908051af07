//! From the text of a pattern to its parts.

use super::Unusable;
use super::class::{self, Builder, Class};

/// Groups within groups; each is a frame on the stack.
const MAX_GROUPS: usize = 64;
/// Counts above this are as good as none: no automaton of that size is made.
const MAX_COUNT: u32 = 100_000;

/// A pattern in parts.
#[derive(Debug)]
pub(crate) struct ParsedPattern {
    pub ast: Ast,
    pub classes: Vec<Class>,
}

#[derive(Debug)]
pub(crate) enum Ast {
    /// A place in [`ParsedPattern::classes`]: repetitions share them.
    Class(u32),
    Start,
    End,
    /// `\b`, or `\B` where it must not be one.
    WordBoundary {
        is_absent: bool,
    },
    Sequence(Vec<Ast>),
    Choice(Vec<Ast>),
    Repeat {
        part: Box<Ast>,
        min: u32,
        max: Option<u32>,
    },
    Look {
        part: Box<Ast>,
        is_behind: bool,
        is_absent: bool,
    },
}

impl Ast {
    /// The states of the automaton, without making it.
    pub(crate) fn states(&self) -> usize {
        let sum = |parts: &[Ast]| parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.states() + 2));
        match self {
            Ast::Class(_) | Ast::Start | Ast::End | Ast::WordBoundary { .. } => 1,
            Ast::Sequence(parts) => parts.iter().fold(1_usize, |sum, part| sum.saturating_add(part.states())),
            Ast::Choice(parts) => sum(parts),
            Ast::Repeat { part, min, max } => {
                let copies = max.unwrap_or(min.saturating_add(1)).max(1) as usize;
                (part.states().saturating_add(2)).saturating_mul(copies)
            }
            Ast::Look { part, .. } => part.states().saturating_add(2),
        }
        // Far above every limit, and far from overflow in the sums above.
        .min(usize::MAX / 4)
    }
}

pub(crate) fn parse(source: &str) -> Result<ParsedPattern, Unusable> {
    let mut parser = Parser { rest: source, groups: 0, classes: Vec::new() };
    let ast = parser.choice()?;
    match parser.peek() {
        None => Ok(ParsedPattern { ast, classes: parser.classes }),
        Some(_) => Err(invalid("a `)` closes nothing")),
    }
}

fn property(builder: Builder, name: &str, is_absent: bool) -> Result<Builder, Unusable> {
    let table = class::property(name).ok_or_else(|| invalid("a property of Unicode is not known"))?;
    Ok(builder.table(table, is_absent))
}

fn invalid(what: impl Into<String>) -> Unusable {
    Unusable::Invalid(what.into())
}

struct Parser<'a> {
    rest: &'a str,
    groups: usize,
    classes: Vec<Class>,
}

/// An escape, in a class or outside.
enum Escape {
    Code(u32),
    Letter(char),
    Property { name: String, is_absent: bool },
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn keep(&mut self, class: Class) -> Ast {
        self.classes.push(class);
        Ast::Class(self.classes.len() as u32 - 1)
    }

    fn choice(&mut self) -> Result<Ast, Unusable> {
        let mut choices = vec![self.sequence()?];
        while self.take("|") {
            choices.push(self.sequence()?);
        }
        if choices.len() > 1 {
            return Ok(Ast::Choice(choices));
        }
        Ok(choices.swap_remove(0))
    }

    fn sequence(&mut self) -> Result<Ast, Unusable> {
        let mut parts = Vec::new();
        while self.peek().is_some_and(|next| next != '|' && next != ')') {
            let part = self.atom()?;
            parts.push(self.repeated(part)?);
        }
        Ok(Ast::Sequence(parts))
    }

    fn repeated(&mut self, part: Ast) -> Result<Ast, Unusable> {
        let Some((min, max)) = self.quantifier()? else { return Ok(part) };
        // Whether a repetition is greedy makes no difference to whether it matches.
        self.take("?");
        if self.rest.starts_with(['*', '+', '?']) || self.counts().is_some() {
            return Err(invalid("a repetition repeats nothing"));
        }
        Ok(Ast::Repeat { part: Box::new(part), min, max })
    }

    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>)>, Unusable> {
        let counts = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            _ => {
                let Some((length, min, max)) = self.counts() else { return Ok(None) };
                self.rest = &self.rest[length..];
                if max.is_some_and(|max| max < min) {
                    return Err(invalid("a repetition ends before it starts"));
                }
                return Ok(Some((min, max)));
            }
        };
        self.next();
        Ok(Some(counts))
    }

    /// `{2}`, `{2,}` or `{2,3}`, with its length; anything else in braces is text.
    fn counts(&self) -> Option<(usize, u32, Option<u32>)> {
        let inner = self.rest.strip_prefix('{')?;
        let inner = &inner[..inner.find('}')?];
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse().map_or(MAX_COUNT, |count: u32| count.min(MAX_COUNT)))
        };
        let (min, max) = match inner.split_once(',') {
            None => (number(inner)?, Some(number(inner)?)),
            Some((min, "")) => (number(min)?, None),
            Some((min, max)) => (number(min)?, Some(number(max)?)),
        };
        Some((inner.len() + 2, min, max))
    }

    fn atom(&mut self) -> Result<Ast, Unusable> {
        if self.counts().is_some() {
            return Err(invalid("a repetition repeats nothing"));
        }
        match self.next() {
            Some('^') => Ok(Ast::Start),
            Some('$') => Ok(Ast::End),
            Some('.') => Ok(self.keep(Class::dot())),
            Some('(') => self.group(),
            Some('[') => {
                let class = self.class()?;
                Ok(self.keep(class))
            }
            Some('\\') => self.escaped_atom(),
            Some('*' | '+' | '?') | None => Err(invalid("a repetition repeats nothing")),
            Some(other) => Ok(self.keep(Class::one(other as u32))),
        }
    }

    fn group(&mut self) -> Result<Ast, Unusable> {
        self.groups += 1;
        if self.groups > MAX_GROUPS {
            return Err(Unusable::Unsupported("its groups nest too deep"));
        }
        let look = |is_behind, is_absent| Some((is_behind, is_absent));
        let mut around = None;
        if self.take("?") {
            around = match () {
                () if self.take(":") => None,
                () if self.take("=") => look(false, false),
                () if self.take("!") => look(false, true),
                () if self.take("<=") => look(true, false),
                () if self.take("<!") => look(true, true),
                () if self.take("<") || self.take("P<") => {
                    let end = self.rest.find('>').ok_or_else(|| invalid("a group's name has no end"))?;
                    self.rest = &self.rest[end + 1..];
                    None
                }
                () => return Err(Unusable::Unsupported("flags and special groups are not part of ECMA-262")),
            };
        }
        let part = self.choice()?;
        if !self.take(")") {
            return Err(invalid("a `(` is not closed"));
        }
        self.groups -= 1;
        Ok(match around {
            Some((is_behind, is_absent)) => Ast::Look { part: Box::new(part), is_behind, is_absent },
            None => part,
        })
    }

    fn escaped_atom(&mut self) -> Result<Ast, Unusable> {
        match self.peek() {
            Some('b') => self.boundary(false),
            Some('B') => self.boundary(true),
            Some('A') => self.anchor(Ast::Start),
            Some('z' | 'Z') => self.anchor(Ast::End),
            Some('1'..='9') => Err(Unusable::Unsupported("it refers back to a group")),
            Some('k') => Err(Unusable::Unsupported("it refers back to a group")),
            _ => {
                let builder = Builder::default();
                let class = match self.escape()? {
                    Escape::Code(code) => Class::one(code),
                    Escape::Letter(letter) => builder.escape(letter).build(false),
                    Escape::Property { name, is_absent } => property(builder, &name, is_absent)?.build(false),
                };
                Ok(self.keep(class))
            }
        }
    }

    fn boundary(&mut self, is_absent: bool) -> Result<Ast, Unusable> {
        self.anchor(Ast::WordBoundary { is_absent })
    }

    fn anchor(&mut self, ast: Ast) -> Result<Ast, Unusable> {
        self.next();
        Ok(ast)
    }

    /// What stands behind a backslash.
    fn escape(&mut self) -> Result<Escape, Unusable> {
        let code = match self.next() {
            None => return Err(invalid("it ends in a backslash")),
            Some(letter @ ('d' | 'D' | 'w' | 'W' | 's' | 'S')) => return Ok(Escape::Letter(letter)),
            Some(letter @ ('p' | 'P')) => {
                let end = self.rest.strip_prefix('{').and_then(|rest| rest.find('}'));
                let end = end.ok_or_else(|| invalid("a property of Unicode has no name"))?;
                let name = self.rest[1..=end].to_owned();
                self.rest = &self.rest[end + 2..];
                return Ok(Escape::Property { name, is_absent: letter == 'P' });
            }
            Some('t') => 0x09,
            Some('n') => 0x0A,
            Some('v') => 0x0B,
            Some('f') => 0x0C,
            Some('r') => 0x0D,
            Some('0') => 0,
            Some('c') => match self.next() {
                Some(letter) if letter.is_ascii_alphabetic() => letter as u32 % 32,
                _ => return Err(invalid("a control character has no letter")),
            },
            Some('x') => self.hex(2)?,
            Some('u') => self.unicode()?,
            Some(letter) if letter.is_alphanumeric() => {
                return Err(Unusable::Unsupported("it has an escape that is not part of ECMA-262"));
            }
            Some(other) => other as u32,
        };
        Ok(Escape::Code(code))
    }

    fn hex(&mut self, digits: usize) -> Result<u32, Unusable> {
        let text = self.rest.get(..digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let text = text.ok_or_else(|| invalid("an escape lacks its hexadecimal digits"))?;
        self.rest = &self.rest[digits..];
        u32::from_str_radix(text, 16).map_err(|_| invalid("an escape is not a number"))
    }

    /// `\u{1F600}`, `\u0041`, or a pair of surrogates.
    fn unicode(&mut self) -> Result<u32, Unusable> {
        if self.take("{") {
            let end = self.rest.find('}').filter(|end| (1..=8).contains(end));
            let code = self.hex(end.ok_or_else(|| invalid("an escape lacks its hexadecimal digits"))?)?;
            self.take("}");
            return if code <= 0x10_FFFF { Ok(code) } else { Err(invalid("an escape is beyond Unicode")) };
        }
        let first = self.hex(4)?;
        if (0xD800..0xDC00).contains(&first) && self.rest.starts_with("\\u") {
            let before = self.rest;
            self.take("\\u");
            match self.hex(4) {
                Ok(second) if (0xDC00..0xE000).contains(&second) => {
                    return Ok(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00));
                }
                _ => self.rest = before,
            }
        }
        Ok(first)
    }

    fn class(&mut self) -> Result<Class, Unusable> {
        let is_negated = self.take("^");
        let mut builder = Builder::default();
        loop {
            if self.take("]") {
                return Ok(builder.build(is_negated));
            }
            let Some(from) = self.member(&mut builder)? else { continue };
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
            if !is_range {
                builder = builder.range(from, from);
                continue;
            }
            self.take("-");
            match self.member(&mut builder)? {
                Some(to) if to < from => return Err(invalid("a range ends before it starts")),
                Some(to) => builder = builder.range(from, to),
                // `[a-\d]`: the dash is a dash.
                None => builder = builder.range(from, from).range('-' as u32, '-' as u32),
            }
        }
    }

    /// One character of a class; `None` where it was a set, which is in the builder then.
    fn member(&mut self, builder: &mut Builder) -> Result<Option<u32>, Unusable> {
        match self.next() {
            None => Err(invalid("a `[` is not closed")),
            Some('\\') if self.take("b") => Ok(Some(0x08)),
            Some('\\') => {
                let escape = self.escape()?;
                let so_far = std::mem::take(builder);
                let (so_far, code) = match escape {
                    Escape::Code(code) => (so_far, Some(code)),
                    Escape::Letter(letter) => (so_far.escape(letter), None),
                    Escape::Property { name, is_absent } => (property(so_far, &name, is_absent)?, None),
                };
                *builder = so_far;
                Ok(code)
            }
            Some(other) => Ok(Some(other as u32)),
        }
    }
}
