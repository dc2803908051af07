//! Sets of characters.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Code points from and to, both inclusive. Surrogates may be in there; no text has them.
pub(crate) type Range = (u32, u32);

const LAST: u32 = 0x10_FFFF;

const DIGITS: &[Range] = &[(0x30, 0x39)];
const WORD: &[Range] = &[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];
const SPACE: &[Range] = &[
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
];
const LINE_ENDS: &[Range] = &[(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)];

#[derive(Clone, Debug)]
pub(crate) struct Class {
    is_negated: bool,
    /// Sorted, apart from each other.
    ranges: Box<[Range]>,
    /// Properties of Unicode, and whether they must be absent; shared, because they are large.
    tables: Box<[(Arc<[Range]>, bool)]>,
}

impl Class {
    pub(crate) fn one(character: u32) -> Class {
        Builder::default().range(character, character).build(false)
    }

    /// `.`
    pub(crate) fn dot() -> Class {
        Builder::default().ranges(LINE_ENDS, false).build(true)
    }

    pub(crate) fn has(&self, character: char) -> bool {
        let code = character as u32;
        let is_listed = contains(&self.ranges, code)
            || self.tables.iter().any(|(table, is_absent)| contains(table, code) != *is_absent);
        is_listed != self.is_negated
    }

    /// The searches that one look takes.
    pub(crate) fn weight(&self) -> u64 {
        1 + self.tables.len() as u64
    }
}

fn contains(ranges: &[Range], code: u32) -> bool {
    let place = ranges.partition_point(|(_, to)| *to < code);
    ranges.get(place).is_some_and(|(from, _)| *from <= code)
}

pub(crate) fn is_word(character: char) -> bool {
    contains(WORD, character as u32)
}

/// A class in the making.
#[derive(Default)]
pub(crate) struct Builder {
    ranges: Vec<Range>,
    tables: Vec<(Arc<[Range]>, bool)>,
}

impl Builder {
    pub(crate) fn range(mut self, from: u32, to: u32) -> Builder {
        self.ranges.push((from, to));
        self
    }

    /// `\d`, `\w`, `\s`, and in capitals all others.
    pub(crate) fn escape(self, letter: char) -> Builder {
        let ranges = match letter.to_ascii_lowercase() {
            'd' => DIGITS,
            'w' => WORD,
            _ => SPACE,
        };
        self.ranges(ranges, letter.is_ascii_uppercase())
    }

    pub(crate) fn table(mut self, table: Arc<[Range]>, is_absent: bool) -> Builder {
        self.tables.push((table, is_absent));
        self
    }

    fn ranges(mut self, ranges: &[Range], is_absent: bool) -> Builder {
        if !is_absent {
            self.ranges.extend_from_slice(ranges);
            return self;
        }
        let mut next = 0;
        for (from, to) in ranges {
            if next < *from {
                self.ranges.push((next, from - 1));
            }
            next = to + 1;
        }
        self.range(next, LAST)
    }

    pub(crate) fn build(mut self, is_negated: bool) -> Class {
        self.ranges.sort_unstable();
        let mut merged: Vec<Range> = Vec::with_capacity(self.ranges.len());
        for (from, to) in self.ranges {
            match merged.last_mut() {
                Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        Class { is_negated, ranges: merged.into(), tables: self.tables.into() }
    }
}

/// Properties kept ready. There are a few hundred; names that nobody uses twice are not worth more.
const MAX_KNOWN: usize = 64;

/// The characters with a property: `L`, `Letter`, `Script=Greek`.
pub(crate) fn property(name: &str) -> Option<Arc<[Range]>> {
    static KNOWN: LazyLock<Mutex<HashMap<String, Arc<[Range]>>>> = LazyLock::new(Mutex::default);
    // Also keeps the name from being anything but a name in the pattern below.
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'=');
    if name.is_empty() || name.len() > 64 || !is_name {
        return None;
    }
    if let Some(table) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
        return Some(table.clone());
    }
    let parsed = regex_syntax::parse(&format!(r"\p{{{name}}}")).ok()?;
    let table: Arc<[Range]> = match parsed.kind() {
        regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => {
            class.iter().map(|range| (range.start() as u32, range.end() as u32)).collect()
        }
        _ => return None,
    };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() < MAX_KNOWN {
        known.insert(name.to_owned(), table.clone());
    }
    Some(table)
}
