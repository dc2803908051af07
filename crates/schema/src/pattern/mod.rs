//! Regular expressions as JSON Schema has them (ECMA-262), run by a counted simulation.
//!
//! A pattern becomes a small automaton over characters. All its states advance together, so a pattern
//! without look-around takes at most `states × characters` steps; look-around multiplies that by the
//! characters once more. Each step is a unit of the meter. Nothing is ever tried again.

mod class;
mod parse;
mod program;
mod run;

use std::sync::OnceLock;

use crate::meter::{Exhausted, Meter};
use program::Program;

/// The states of one pattern. `^[\w.-]{1,255}$` has 510; a repetition of more is not a format but a bomb.
pub(crate) const MAX_STATES: usize = 4_096;

/// A pattern whose syntax was read. Its automaton is made when it is first used.
#[derive(Debug)]
pub(crate) struct Pattern {
    source: Box<str>,
    states: usize,
    program: OnceLock<Option<Program>>,
}

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It is not a regular expression.
    Invalid(String),
    /// It is one, but cannot be run within bounds.
    Unsupported(&'static str),
}

impl Pattern {
    /// Reads the syntax, in time proportional to the length.
    pub(crate) fn new(source: &str) -> Result<Pattern, Unusable> {
        let states = parse::parse(source)?.ast.states();
        if states > MAX_STATES {
            return Err(Unusable::Unsupported("its repetitions are too large"));
        }
        Ok(Pattern { source: source.into(), states, program: OnceLock::new() })
    }

    /// The properties of Unicode that a pattern names, without reading it: each is a table of some
    /// kilobytes that takes time to find.
    pub(crate) fn properties(source: &str) -> usize {
        source.matches("\\p{").count() + source.matches("\\P{").count()
    }

    pub(crate) fn states(&self) -> usize {
        self.states
    }

    /// Whether any part of the text matches.
    pub(crate) fn is_match(&self, text: &str, meter: &mut Meter) -> Result<bool, Exhausted> {
        if self.program.get().is_none() {
            meter.spend((self.states + self.source.len()) as u64)?;
        }
        let program = self.program.get_or_init(|| parse::parse(&self.source).ok().map(Program::new));
        match program {
            Some(program) => run::is_match(program, text, meter),
            None => Ok(true),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation ends a test")]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern).unwrap().is_match(text, &mut Meter::new(1_000_000)).unwrap()
    }

    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        for text in yes {
            assert!(matches(pattern, text), "/{pattern}/ matches {text:?}");
        }
        for text in no {
            assert!(!matches(pattern, text), "/{pattern}/ does not match {text:?}");
        }
    }

    #[test]
    fn the_syntax_of_ecma_262_is_understood() {
        check("", &["", "x"], &[]);
        check("b", &["abc", "b"], &["", "ac"]);
        check("^a|b$", &["ax", "xb"], &["xa", "bx"]);
        check("^(a|bc)*d{2,3}?$", &["dd", "abcddd"], &["d", "abdd", "dddd"]);
        check("^a{2,}$", &["aa", "aaaa"], &["a"]);
        check("^.$", &["x", "😀"], &["\n", "\u{2028}", "xy"]);
        check(r"^[\w.-]+@[a-z\d]+\.[^\s.]{2,}$", &["a.b-c@x1.org"], &["a@b.c", "a b@x.org", "a@b.c d"]);
        check(r"^[a\]\-b-]+$", &["a]-b"], &["c"]);
        check(r"\bfoo\b", &["a foo b", "foo"], &["afoo", "food"]);
        check(r"^\x41\u0042\u{43}\uD83D\uDE00\t$", &["ABC😀\t"], &["ABC"]);
        check(r"^\p{L}+\P{L}$", &["aß漢1"], &["aß漢x", "1"]);
        check(r"^[\p{Lu}\d]+$", &["Ä1"], &["ä"]);
        check("^(?:ab)?(?<name>c)$", &["abc", "c"], &["ab"]);
        check("^[^]$", &["\n"], &["", "ab"]);
        check("[]", &[], &["", "a"]);
        check("a{,2}|{|}", &["a{,2}", "{", "}"], &["a"]);
        check(r"^\d+$", &["12"], &["١٢"]);
        check("^(a*)*$", &["", "aaa"], &["b"]);
        check("^(|a)+b$", &["b", "aab"], &["a"]);
    }

    #[test]
    fn look_around_is_understood() {
        check(r"^(?=.*[A-Z])(?=.*\d).{4,}$", &["abC1", "1zzA"], &["abc1", "AB1", "ABCD"]);
        check("^(?!admin$)[a-z]+$", &["adminx", "bob"], &["admin", "Bob"]);
        check("(?<=€)[0-9]+", &["costs €5"], &["costs 5"]);
        check("(?<!a)b", &["b", "cb"], &["ab", "a"]);
        check("^(?:(?!ab).)*$", &["aacb"], &["xaby"]);
    }

    #[test]
    fn what_cannot_be_run_is_named_and_what_is_wrong_is_refused() {
        for pattern in [r"(a)\1", r"(?<x>a)\k<x>", "(?i)a", r"\Gx", "(a{1000}){1000}"] {
            assert!(matches!(Pattern::new(pattern), Err(Unusable::Unsupported(_))), "{pattern}");
        }
        for pattern in ["(", ")", "a)", "[a", "[b-a]", "*a", "a**", "a{2,1}", "\\", r"\p{Nonsense}", r"\u{110000}"] {
            assert!(matches!(Pattern::new(pattern), Err(Unusable::Invalid(_))), "{pattern}");
        }
        assert!(Pattern::new(&"(".repeat(10_000)).is_err());
    }

    #[test]
    fn patterns_built_to_run_for_ever_take_a_step_for_each_state_and_character() {
        let text = "a".repeat(2_000);
        for pattern in ["^(a+)+$b", "^(a|a)*b$", "(a*)*c", "^(([a-z])+.)+[A-Z]([a-z])+$"] {
            let pattern = Pattern::new(pattern).unwrap();
            let mut meter = Meter::new(u64::MAX);
            assert_eq!(pattern.is_match(&text, &mut meter), Ok(false));
            let bound = (pattern.states() as u64 + 8) * 4 * (text.len() as u64 + 1);
            assert!(meter.spent() <= bound, "{} > {bound}", meter.spent());
        }
    }

    #[test]
    fn the_meter_stops_a_pattern() {
        let pattern = Pattern::new("^(a+)+(?=b)$").unwrap();
        let mut meter = Meter::new(10_000);
        assert_eq!(pattern.is_match(&"a".repeat(100_000), &mut meter), Err(Exhausted));
        assert_eq!(meter.spent(), 10_000);
    }
}
