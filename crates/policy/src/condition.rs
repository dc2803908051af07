//! Conditions on the arguments of a call. A closed set: nothing here is a language.

use std::cmp::Ordering;

use serde::Deserialize;
use serde_json::{Map, Number, Value, json};
use sinew_tool::settings::{Deserializer, Error, Setting};

use crate::pointer::check_pointer;
use crate::selector::Glob;

sinew_tool::settings! {
    /// A condition on one argument. All tests that are given must hold. A missing argument fails every test but
    /// `absent`.
    pub struct Condition {
        /// JSON pointer to the argument, for example `/celsius` or `/window/0`.
        pub arg: String = String::new();
        /// The value it must have. `24` and `24.0` are equal.
        pub is: Option<Literal> = None;
        /// The values it may have.
        pub r#in: Option<Vec<Literal>> = None;
        /// The smallest number it may be.
        pub min: Option<Literal> = None;
        /// The largest number it may be.
        pub max: Option<Literal> = None;
        /// A pattern that its text must match; `*` stands for any text.
        pub glob: Option<String> = None;
        /// It must be there.
        pub present: bool = false;
        /// It must not be there.
        pub absent: bool = false;
        /// The most characters of a text, or entries of a list.
        pub length_max: Option<usize> = None;
    }
}

/// A JSON value in the configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Literal(pub Value);

impl Setting for Literal {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        let value = Value::deserialize(from)?;
        if value.is_object() {
            return Err(D::Error::custom("expected a text, a number, a boolean or a list"));
        }
        self.0 = value;
        Ok(())
    }

    fn schema() -> Value {
        json!({})
    }

    fn to_value(&self) -> Value {
        self.0.clone()
    }
}

impl Condition {
    pub fn holds(&self, args: &Map<String, Value>) -> bool {
        let Some(value) = find(args, &self.arg) else { return self.absent && !self.has_test_of_value() };
        !self.absent
            && self.is.as_ref().is_none_or(|wanted| equal(value, &wanted.0))
            && self.r#in.as_ref().is_none_or(|choices| choices.iter().any(|choice| equal(value, &choice.0)))
            && self.min.as_ref().is_none_or(|min| compare(value, &min.0).is_some_and(Ordering::is_ge))
            && self.max.as_ref().is_none_or(|max| compare(value, &max.0).is_some_and(Ordering::is_le))
            && self.glob.as_ref().is_none_or(|glob| matches_glob(glob, value))
            && self.length_max.is_none_or(|max| length(value).is_some_and(|length| length <= max))
    }

    fn has_test_of_value(&self) -> bool {
        self.present
            || self.is.is_some()
            || self.r#in.is_some()
            || self.min.is_some()
            || self.max.is_some()
            || self.glob.is_some()
            || self.length_max.is_some()
    }

    /// What is wrong with it, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        check_pointer("arg", &self.arg)?;
        if self.absent && self.has_test_of_value() {
            return Err(format!("`absent` and another test of `{}` can never hold together", self.arg));
        }
        if !self.absent && !self.has_test_of_value() {
            let tests = "`is`, `in`, `min`, `max`, `glob`, `present`, `absent` or `length-max`";
            return Err(format!("the condition on `{}` tests nothing; add {tests}", self.arg));
        }
        for (name, limit) in [("min", &self.min), ("max", &self.max)] {
            if limit.as_ref().is_some_and(|limit| !limit.0.is_number()) {
                return Err(format!("`{name}` of `{}` must be a number", self.arg));
            }
        }
        if let (Some(min), Some(max)) = (&self.min, &self.max)
            && compare(&min.0, &max.0) == Some(Ordering::Greater)
        {
            return Err(format!("`min` of `{}` is more than its `max`, so the condition can never hold", self.arg));
        }
        if self.r#in.as_ref().is_some_and(Vec::is_empty) {
            return Err(format!("`in` of `{}` is empty, so the condition can never hold", self.arg));
        }
        self.glob.as_deref().map_or(Ok(()), |glob| glob.parse::<Glob>().map(drop))
    }
}

fn find<'a>(args: &'a Map<String, Value>, pointer: &str) -> Option<&'a Value> {
    let rest = pointer.strip_prefix('/')?;
    let (first, more) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let value = match first.contains('~') {
        true => args.get(&first.replace("~1", "/").replace("~0", "~")),
        false => args.get(first),
    };
    value?.pointer(more)
}

fn equal(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Number(_), Value::Number(_)) => compare(value, wanted) == Some(Ordering::Equal),
        (Value::Array(values), Value::Array(wanted)) => {
            values.len() == wanted.len() && values.iter().zip(wanted).all(|(value, wanted)| equal(value, wanted))
        }
        _ => value == wanted,
    }
}

/// Whole numbers compare exactly, all others as floating-point numbers.
fn compare(value: &Value, limit: &Value) -> Option<Ordering> {
    let (Value::Number(value), Value::Number(limit)) = (value, limit) else { return None };
    match (whole(value), whole(limit)) {
        (Some(value), Some(limit)) => Some(value.cmp(&limit)),
        _ => value.as_f64()?.partial_cmp(&limit.as_f64()?),
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn matches_glob(glob: &str, value: &Value) -> bool {
    value.as_str().is_some_and(|text| glob.parse::<Glob>().is_ok_and(|glob| glob.matches(text)))
}

fn length(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => Some(text.chars().count()),
        Value::Array(items) => Some(items.len()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(text: &str) -> Condition {
        let mut condition = Condition::default();
        condition.read(toml::Deserializer::parse(text).unwrap()).unwrap();
        condition.check().unwrap();
        condition
    }

    fn check(text: &str, args: Value, expected: bool) {
        let Value::Object(args) = args else { panic!("an object") };
        assert_eq!(condition(text).holds(&args), expected, "{text} {args:?}");
    }

    #[test]
    fn each_test_holds_for_what_it_says() {
        check("arg = '/c'\nmax = 24", json!({"c": 24}), true);
        check("arg = '/c'\nmax = 24", json!({"c": 24.0}), true);
        check("arg = '/c'\nmax = 24", json!({"c": 24.1}), false);
        check("arg = '/c'\nmin = 1\nmax = 24", json!({"c": 0}), false);
        check("arg = '/m'\nin = ['eco', 'comfort']", json!({"m": "eco"}), true);
        check("arg = '/m'\nin = ['eco', 'comfort']", json!({"m": "boost"}), false);
        check("arg = '/n'\nis = 5", json!({"n": 5.0}), true);
        check("arg = '/u'\nglob = 'https://*.example/*'", json!({"u": "https://a.example/x"}), true);
        check("arg = '/t'\nlength-max = 3", json!({"t": "äöü"}), true);
        check("arg = '/t'\nlength-max = 3", json!({"t": [1, 2, 3, 4]}), false);
        check("arg = '/a/0/b'\nis = true", json!({"a": [{"b": true}]}), true);
        check("arg = '/a~1b'\npresent = true", json!({"a/b": null}), true);
        check("arg = '/x'\nabsent = true", json!({}), true);
        check("arg = '/x'\nabsent = true", json!({"x": 1}), false);
        check("arg = '/n'\nmax = 9007199254740992", json!({"n": 9007199254740993_u64}), false);
    }

    #[test]
    fn a_missing_or_wrongly_typed_argument_fails_every_test() {
        for test in ["is = 1", "in = [1]", "min = 0", "max = 9", "glob = '*'", "present = true", "length-max = 9"] {
            check(&format!("arg = '/x'\n{test}"), json!({}), false);
        }
        for test in ["min = 0", "max = 9"] {
            check(&format!("arg = '/x'\n{test}"), json!({"x": "5"}), false);
        }
        check("arg = '/x'\nglob = '*'", json!({"x": 5}), false);
    }

    #[test]
    fn a_condition_that_cannot_hold_is_refused() {
        for wrong in [
            "arg = 'x'\nis = 1",
            "arg = '/x'",
            "arg = '/x'\nabsent = true\nis = 1",
            "arg = '/x'\nmin = 5\nmax = 4",
            "arg = '/x'\nmin = 'five'",
            "arg = '/x'\nin = []",
            "arg = '/x'\nglob = ''",
        ] {
            let mut condition = Condition::default();
            condition.read(toml::Deserializer::parse(wrong).unwrap()).unwrap();
            assert!(condition.check().is_err(), "{wrong}");
        }
    }
}
