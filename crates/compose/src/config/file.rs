//! The text of a configuration file: parsing it, the keys of older versions, and where in it something is wrong.

use std::ops::Range;
use std::path::Path;

use sinew_policy::{ExpectationFile, PolicyProblem};
use sinew_tool::settings::{Field, MapAccess, Setting, SettingsTable, read_table};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{GatewayConfig, read_text};
use crate::error::{ComposeErrorKind, Error};

/// Keys that stood at the top of the file before they had tables, and the tables they are in now. They are still read.
pub const MOVED: &[(&str, &str)] = &[
    ("call_timeout", "gateway"),
    ("grace", "gateway"),
    ("max_devices", "gateway"),
    ("user_tools", "gateway"),
    ("spec_tools", "gateway"),
    ("lock", "gateway"),
    ("allowed_hosts", "clients"),
    ("allowed_origins", "clients"),
    ("advertise", "boards"),
    ("bootstrap", "boards"),
    ("vision", "boards"),
];

/// Something wrong in a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    place: ConfigPosition,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ConfigPosition {
    /// Keys, and numbers of tables in a list, joined by dots.
    Key(String),
    /// Bytes of the file.
    Bytes(Range<usize>),
}

impl ConfigProblem {
    pub fn at(key: impl Into<String>, message: impl Into<String>) -> ConfigProblem {
        ConfigProblem { place: ConfigPosition::Key(key.into()), message: message.into() }
    }

    fn of_toml(error: &toml::de::Error) -> ConfigProblem {
        ConfigProblem {
            place: ConfigPosition::Bytes(error.span().unwrap_or(0..0)),
            message: error.message().to_owned(),
        }
    }

    /// A value that cannot be used: also says of which key, and where its type is wrong what the key is for.
    fn of_value(error: &toml::de::Error, text: &str, fields: &[Field]) -> ConfigProblem {
        let mut problem = ConfigProblem::of_toml(error);
        let keys = error.span().and_then(|span| keys_at(text, span.start)).unwrap_or_default();
        let Some(last) = keys.last() else { return problem };
        if !problem.message.starts_with(&format!("`{last}` ")) {
            problem.message = format!("`{}`: {}", keys.join("."), problem.message);
        }
        if error.message().starts_with("invalid type") {
            problem.message += &purpose(fields, &keys).map(|about| format!(". {about}")).unwrap_or_default();
        }
        problem
    }

    /// The same with the file and the line, where the file has one for it.
    pub fn in_file(self, path: &Path, text: &str) -> Error {
        let start = match &self.place {
            ConfigPosition::Bytes(bytes) => Some(bytes.start),
            // A key that has moved may still stand at the top.
            ConfigPosition::Key(key) => find(text, key).or_else(|| find(text, key.rsplit('.').next()?)),
        };
        let line = start
            .map(|start| text.as_bytes()[..start.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1);
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        Error::new(ComposeErrorKind::Config, format!("{}{line}: {}", path.display(), self.message))
    }
}

impl From<ConfigProblem> for Error {
    fn from(problem: ConfigProblem) -> Error {
        Error::new(ComposeErrorKind::Config, problem.message)
    }
}

/// Reads what a policy is expected to say, for `sinew policy test`; an error says where in the file.
pub fn read_expectations(path: &Path) -> Result<ExpectationFile, Error> {
    let text = read_text(path)?;
    let mut expectations = ExpectationFile::default();
    let read = toml::Deserializer::parse(&text).and_then(|file| expectations.read(file));
    let fields = ExpectationFile::fields();
    read.map_err(|error| ConfigProblem::of_value(&error, &text, &fields).in_file(path, &text))?;
    if expectations.expect.is_empty() {
        let problem = "it has no `[[expect]]` table; each says `who`, `tool` and `verdict`";
        return Err(Error::new(ComposeErrorKind::Config, format!("{}: {problem}", path.display())));
    }
    let lacks = |problem: PolicyProblem| ConfigProblem::at(problem.key, problem.message).in_file(path, &text);
    expectations.check().map_err(lacks)?;
    Ok(expectations)
}

/// The file as older versions wrote it, and as this one does.
struct ConfigFile<'a>(&'a mut GatewayConfig);

impl SettingsTable for ConfigFile<'_> {
    const NAMES: &'static [&'static str] = &{
        let mut names = [""; GatewayConfig::NAMES.len() + MOVED.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = if at < GatewayConfig::NAMES.len() {
                GatewayConfig::NAMES[at]
            } else {
                MOVED[at - GatewayConfig::NAMES.len()].0
            };
            at += 1;
        }
        names
    };

    fn read_field<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match MOVED.iter().find(|(old, _)| *old == name) {
            Some((_, "gateway")) => self.0.gateway.read_field(name, map),
            Some((_, "clients")) => self.0.clients.read_field(name, map),
            Some(_) => self.0.boards.read_field(name, map),
            None => self.0.read_field(name, map),
        }
    }
}

impl GatewayConfig {
    pub fn parse(text: &str) -> Result<GatewayConfig, ConfigProblem> {
        let file = toml::Deserializer::parse(text).map_err(|error| ConfigProblem::of_toml(&error))?;
        let mut config = GatewayConfig::default();
        let fields = GatewayConfig::fields();
        read_table(&mut ConfigFile(&mut config), file)
            .map_err(|error| ConfigProblem::of_value(&error, text, &fields))?;
        for (old, table) in MOVED {
            let key = old.replace('_', "-");
            let moved = format!("{table}.{key}");
            if find(text, &key).is_some() && find(text, &moved).is_some() {
                return Err(ConfigProblem::at(&*key, format!("`{key}` and `{moved}` say the same; keep the second")));
            }
        }
        Ok(config)
    }
}

/// The keys that lead to the value at this byte, without numbers of tables in a list.
fn keys_at(text: &str, at: usize) -> Option<Vec<String>> {
    fn search(value: &Spanned<DeValue<'_>>, at: usize, keys: &mut Vec<String>) -> bool {
        let is_inside = match value.get_ref() {
            DeValue::Table(table) => search_table(table, at, keys),
            DeValue::Array(list) => list.iter().any(|item| search(item, at, keys)),
            _ => false,
        };
        is_inside || value.span().contains(&at)
    }
    fn search_table(table: &DeTable<'_>, at: usize, keys: &mut Vec<String>) -> bool {
        table.iter().any(|(name, value)| {
            keys.push(name.get_ref().to_string());
            let is_inside = search(value, at, keys);
            if !is_inside {
                keys.pop();
            }
            is_inside
        })
    }
    let mut keys = Vec::new();
    search_table(DeTable::parse(text).ok()?.get_ref(), at, &mut keys).then_some(keys)
}

/// What the setting at the end of these keys is for.
fn purpose(fields: &[Field], keys: &[String]) -> Option<String> {
    let (first, rest) = keys.split_first()?;
    let field = fields.iter().find(|field| field.name == *first)?;
    if rest.is_empty() { Some(field.about.clone()) } else { purpose(&field.inside, rest) }
}

/// Where a key stands.
fn find(text: &str, key: &str) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    let mut parts = key.split('.');
    let first = parts.next()?;
    let (found, mut value) = table.get_ref().iter().find(|(name, _)| name.get_ref() == first)?;
    let mut start = found.span().start;
    for part in parts {
        let next = match value.get_ref() {
            DeValue::Table(table) => {
                let (name, inside) = table.iter().find(|(name, _)| name.get_ref() == part)?;
                (name.span().start, inside)
            }
            DeValue::Array(list) => {
                let inside = list.get(part.parse::<usize>().ok()?)?;
                (inside.span().start, inside)
            }
            _ => return None,
        };
        (start, value) = next;
    }
    Some(start)
}
