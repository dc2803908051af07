//! The arguments of a call, checked against the properties of the tool.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value};

use super::board::BoardDialect;
use super::spec::{Property, PropertyKind, Text};

/// The arguments of a call: every property of the tool has a value of its type, inside its range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments {
    entries: Vec<(Text, Argument)>,
}

/// One argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    Boolean(bool),
    Integer(i64),
    Text(String),
}

impl Arguments {
    /// The value of a boolean property. An error says that the tool declares none of that name.
    pub fn boolean(&self, name: &str) -> Result<bool, String> {
        match self.find(name) {
            Some(Argument::Boolean(value)) => Ok(*value),
            _ => Err(undeclared("boolean", name)),
        }
    }

    /// The value of an integer property.
    pub fn integer(&self, name: &str) -> Result<i64, String> {
        match self.find(name) {
            Some(Argument::Integer(value)) => Ok(*value),
            _ => Err(undeclared("integer", name)),
        }
    }

    /// The value of a text property.
    pub fn text(&self, name: &str) -> Result<&str, String> {
        match self.find(name) {
            Some(Argument::Text(value)) => Ok(value),
            _ => Err(undeclared("text", name)),
        }
    }

    pub fn find(&self, name: &str) -> Option<&Argument> {
        self.entries.iter().find(|(key, _)| key == name).map(|(_, argument)| argument)
    }

    /// Checks as the firmware does, except that our own dialect also refuses a wrong type where there is
    /// a default, and a fraction where an integer is wanted: both hide mistakes of the caller.
    pub(super) fn read(
        properties: &[Property],
        given: &Map<String, Value>,
        dialect: BoardDialect,
    ) -> Result<Arguments, String> {
        let mut entries = Vec::with_capacity(properties.len());
        for property in properties {
            let value = given.get(property.name.as_ref()).filter(|value| !value.is_null());
            let argument = match (value, property.default()) {
                (Some(value), default) => match (property.read(value, dialect), default) {
                    (Some(argument), _) => argument,
                    (None, Some(default)) if dialect == BoardDialect::Firmware => default,
                    (None, _) => return Err(property.wrong(dialect)),
                },
                (None, Some(default)) => default,
                (None, None) => return Err(property.wrong(dialect)),
            };
            property.check_range(&argument)?;
            entries.push((property.name.clone(), argument));
        }
        Ok(Arguments { entries })
    }
}

fn undeclared(kind: &str, name: &str) -> String {
    format!("the tool declares no {kind} property `{name}`")
}

impl Property {
    fn default(&self) -> Option<Argument> {
        match &self.kind {
            PropertyKind::Boolean { default } => default.map(Argument::Boolean),
            PropertyKind::Integer { default, .. } => default.map(Argument::Integer),
            PropertyKind::Text { default } => default.as_deref().map(|text| Argument::Text(text.to_string())),
        }
    }

    fn read(&self, value: &Value, dialect: BoardDialect) -> Option<Argument> {
        match &self.kind {
            PropertyKind::Boolean { .. } => value.as_bool().map(Argument::Boolean),
            PropertyKind::Text { .. } => value.as_str().map(|text| Argument::Text(text.to_string())),
            PropertyKind::Integer { .. } => whole(value, dialect).map(Argument::Integer),
        }
    }

    fn wrong(&self, dialect: BoardDialect) -> String {
        let name = &self.name;
        if dialect == BoardDialect::Firmware {
            return format!("Missing valid argument: {name}");
        }
        let wanted = match &self.kind {
            PropertyKind::Boolean { .. } => "true or false".to_string(),
            PropertyKind::Text { .. } => "a string".to_string(),
            PropertyKind::Integer { minimum: Some(minimum), maximum: Some(maximum), .. } => {
                format!("an integer from {minimum} to {maximum}")
            }
            PropertyKind::Integer { .. } => "an integer".to_string(),
        };
        format!("Missing valid argument: {name} must be {wanted}")
    }

    fn check_range(&self, argument: &Argument) -> Result<(), String> {
        let (PropertyKind::Integer { minimum, maximum, .. }, Argument::Integer(value)) = (&self.kind, argument) else {
            return Ok(());
        };
        match (minimum, maximum) {
            (Some(minimum), _) if value < minimum => Err(format!("Value is below minimum allowed: {minimum}")),
            (_, Some(maximum)) if value > maximum => Err(format!("Value exceeds maximum allowed: {maximum}")),
            _ => Ok(()),
        }
    }
}

/// `3` and `3.0` are whole; the firmware cuts `3.7` to 3 and knows 32 bits only.
fn whole(value: &Value, dialect: BoardDialect) -> Option<i64> {
    match dialect {
        // A cast of a float saturates, as the firmware's own reader does.
        BoardDialect::Firmware => value.as_f64().map(|number| i64::from(number as i32)),
        BoardDialect::Standard => value.as_i64().or_else(|| {
            let number = value.as_f64()?;
            let rounded = number as i64;
            (rounded as f64 == number && rounded.unsigned_abs() < 1 << 53).then_some(rounded)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use serde_json::json;

    fn read(given: Value, dialect: BoardDialect) -> Result<Arguments, String> {
        let properties = [
            Property::integer("volume", 0..=100),
            Property::boolean_or("mute", false),
            Property::text_or("theme", "light"),
        ];
        Arguments::read(&properties, given.as_object().unwrap(), dialect)
    }

    #[test]
    fn defaults_fill_what_is_missing_and_extras_are_ignored() {
        for dialect in [BoardDialect::Standard, BoardDialect::Firmware] {
            let arguments = read(json!({"volume": 50, "mute": null, "other": []}), dialect).unwrap();
            assert_eq!(arguments.integer("volume"), Ok(50));
            assert_eq!(arguments.boolean("mute"), Ok(false));
            assert_eq!(arguments.text("theme"), Ok("light"));
            assert!(arguments.text("volume").is_err());
            assert!(arguments.boolean("other").is_err());
        }
    }

    #[test]
    fn what_is_required_must_be_there_with_its_type_and_in_range() {
        let problems = vec![
            (json!({}), "Missing valid argument: volume"),
            (json!({"volume": "50"}), "Missing valid argument: volume"),
            (json!({"volume": -1}), "Value is below minimum allowed: 0"),
            (json!({"volume": 101}), "Value exceeds maximum allowed: 100"),
        ];
        for (given, expected) in problems {
            assert_eq!(read(given.clone(), BoardDialect::Firmware), Err(expected.to_string()));
            assert!(read(given, BoardDialect::Standard).unwrap_err().starts_with(expected));
        }
    }

    #[test]
    fn a_wrong_type_beside_a_default_is_hidden_by_the_firmware_only() {
        let given = json!({"volume": 1, "mute": "yes"});
        assert_eq!(read(given.clone(), BoardDialect::Firmware).unwrap().boolean("mute"), Ok(false));
        assert_eq!(
            read(given, BoardDialect::Standard),
            Err("Missing valid argument: mute must be true or false".to_string())
        );
    }

    #[test]
    fn a_fraction_is_cut_by_the_firmware_only() {
        let volume =
            |value: Value, dialect| read(json!({"volume": value}), dialect).and_then(|it| it.integer("volume"));
        assert_eq!(volume(json!(3.7), BoardDialect::Firmware), Ok(3));
        assert!(volume(json!(3.7), BoardDialect::Standard).is_err());
        assert_eq!(volume(json!(3.0), BoardDialect::Standard), Ok(3));
        assert!(volume(json!(1e300), BoardDialect::Standard).is_err());
        assert_eq!(volume(json!(1e300), BoardDialect::Firmware), Err("Value exceeds maximum allowed: 100".to_string()));
    }
}
