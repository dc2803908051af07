//! Settings: each declared once, in the crate that uses it, with its default, its range and its explanation.
//!
//! [`settings!`](crate::settings!) makes the struct. The configuration file is read through [`Setting::read`], and its
//! reference page and JSON Schema are printed from [`Setting::fields`], so that a new setting is one line of code.

mod read;
mod types;

use std::path::Path;

use serde_json::{Map, Value, json};

pub use read::{FieldSlot, Key, SettingsTable, read_table};
pub use types::parse_address;
// For the macros, and for settings with a form of their own.
#[doc(hidden)]
pub use serde::Deserializer;
#[doc(hidden)]
pub use serde::de::{Error, MapAccess, SeqAccess, Visitor};

/// Something that can stand in the configuration file.
pub trait Setting: Sized {
    /// Takes over what the file says; what it does not mention stays.
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error>;

    /// JSON Schema of the values that are accepted.
    fn schema() -> Value;

    /// The value as the file would have it; null where it is not set.
    fn to_value(&self) -> Value;

    /// What a table holds; nothing for a plain value.
    fn fields() -> Vec<Field> {
        Vec::new()
    }

    /// Makes relative paths relative to this folder.
    fn settle_in(&mut self, _folder: &Path) {}
}

/// One setting as it is declared.
#[derive(Clone, Debug)]
pub struct Field {
    pub name: String,
    /// What it is for, in whole sentences.
    pub about: String,
    pub default: Value,
    pub schema: Value,
    /// The settings of a table, or of each table of a list.
    pub inside: Vec<Field>,
}

impl Field {
    pub fn new<T: Setting>(name: &str, about: &[&str], default: &T, limits: Value) -> Field {
        let about = about.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        let mut schema = T::schema();
        if let (Value::Object(schema), Value::Object(limits)) = (&mut schema, limits) {
            schema.extend(limits);
            schema.insert("description".to_owned(), json!(about));
        }
        Field { name: name.replace('_', "-"), about, default: default.to_value(), schema, inside: T::fields() }
    }
}

/// The JSON Schema of a table of settings.
pub fn table_schema(fields: &[Field]) -> Value {
    let property = |field: &Field| {
        let mut schema = field.schema.clone();
        if !field.default.is_null() && field.inside.is_empty() {
            schema["default"] = field.default.clone();
        }
        (field.name.clone(), schema)
    };
    let properties: Map<String, Value> = fields.iter().map(property).collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

/// A value that has a size, so that a range can be given for it.
pub trait Measure {
    fn measure(&self) -> f64;
}

/// What a declared range says about a value.
pub fn check_range(value: &impl Measure, low: u64, high: u64) -> Result<(), String> {
    if (low as f64..=high as f64).contains(&value.measure()) {
        return Ok(());
    }
    Err(format!("must be between {low} and {high}"))
}

/// A field's name without the `r#` that a Rust keyword needs.
pub const fn field_name(written: &str) -> &str {
    match written.as_bytes() {
        [b'r', b'#', ..] => written.split_at(2).1,
        _ => written,
    }
}

/// Declares a struct of settings.
///
/// ```
/// use std::time::Duration;
/// sinew_tool::settings! {
///     /// How a bell rings.
///     pub struct Bell {
///         /// Seconds it rings.
///         pub time: Duration = Duration::from_secs(3), within 1..=60;
///         /// The melody, by its name.
///         pub melody: String = "gong".to_owned(), check |name| match name.is_empty() {
///             true => Err("needs a name".to_owned()),
///             false => Ok(()),
///         };
///     }
/// }
/// assert_eq!(Bell::default().time, Duration::from_secs(3));
/// ```
///
/// After the struct, `internal { … }` declares fields that no file can set.
#[macro_export]
macro_rules! settings {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $(
                $(#[doc = $about:literal])+
                $field_visibility:vis $field:ident: $type:ty = $default:expr
                $(, within $low:literal ..= $high:literal)?
                $(, check $check:expr)?;
            )*
        }
        $(internal {
            $($(#[$inner_attribute:meta])* $inner_visibility:vis $inner:ident: $inner_type:ty = $inner_default:expr;)*
        })?
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq)]
        $visibility struct $name {
            $($(#[doc = $about])+ $field_visibility $field: $type,)*
            $($($(#[$inner_attribute])* $inner_visibility $inner: $inner_type,)*)?
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* $($($inner: $inner_default,)*)? }
            }
        }

        impl $crate::settings::SettingsTable for $name {
            const NAMES: &'static [&'static str] = &[$($crate::settings::field_name(stringify!($field))),*];

            fn read_field<'de, A: $crate::settings::MapAccess<'de>>(
                &mut self,
                name: &str,
                map: &mut A,
            ) -> Result<(), A::Error> {
                $(if name == $crate::settings::field_name(stringify!($field)) {
                    #[allow(unused_mut)]
                    let mut check: fn(&$type) -> Result<(), String> = |_| Ok(());
                    $(check = |value| $crate::settings::check_range(value, $low, $high);)?
                    $(check = $check;)?
                    return map.next_value_seed($crate::settings::FieldSlot::new(&mut self.$field, name, check));
                })*
                Ok(())
            }
        }

        impl $crate::settings::Setting for $name {
            fn read<'de, D: $crate::settings::Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
                $crate::settings::read_table(self, from)
            }

            fn schema() -> $crate::Value {
                $crate::settings::table_schema(&Self::fields())
            }

            fn to_value(&self) -> $crate::Value {
                let mut table = $crate::Value::Object(Default::default());
                $(table[$crate::settings::field_name(stringify!($field)).replace('_', "-")] = $crate::settings::Setting::to_value(&self.$field);)*
                table
            }

            fn fields() -> Vec<$crate::settings::Field> {
                #[allow(unused)]
                let usual = $name::default();
                vec![$({
                    #[allow(unused_mut)]
                    let mut limits = $crate::json!({});
                    $(limits = $crate::json!({"minimum": $low as u64, "maximum": $high as u64});)?
                    $crate::settings::Field::new($crate::settings::field_name(stringify!($field)), &[$($about),+], &usual.$field, limits)
                }),*]
            }

            fn settle_in(&mut self, folder: &std::path::Path) {
                $($crate::settings::Setting::settle_in(&mut self.$field, folder);)*
            }
        }
    };
}
