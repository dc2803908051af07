//! Type cells: the names people write for a JSON type, as JSON Schema and back.

use serde_json::{Map, Value, json};

/// How a type cell was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeReading {
    pub schema: Value,
    /// Whether it uses the standard's names.
    pub standard: bool,
    /// What the cell says beside the type: `1-10` of `integer (1-10)`.
    pub remarks: Vec<String>,
}

/// Types nest in cells (`array[array[string]]`), never deeper than this in practice.
const MAX_DEPTH: usize = 12;

/// Reads a type cell; `None` if it is not a known type.
pub fn read(cell: &str) -> Option<TypeReading> {
    if let Some(schema) = listed_choices(cell) {
        return Some(TypeReading { schema, standard: false, remarks: Vec::new() });
    }
    let text = cell.replace('`', " ");
    let mut reading = TypeReading { schema: Value::Null, standard: true, remarks: Vec::new() };
    reading.schema = read_type(text.trim(), 0, &mut reading)?;
    Some(reading)
}

/// Whether words begin a list of values: "one of fast, slow", "enum: fast, slow".
pub(crate) fn lists_choices(words: &str) -> bool {
    listed(words).is_some()
}

fn listed(words: &str) -> Option<&str> {
    let words = words.trim_start_matches(['`', ' ']);
    let lower = words.to_ascii_lowercase();
    let lead = ["one of:", "one of ", "enum:", "enum of ", "either "].iter().find(|lead| lower.starts_with(**lead))?;
    Some(&words[lead.len()..])
}

/// The schema of such a list, if all of it are values.
fn listed_choices(cell: &str) -> Option<Value> {
    let values: Vec<&str> = listed(cell)?
        .split([',', '|', '/'])
        .flat_map(|part| part.split(" or "))
        .map(|part| part.trim_matches(['`', '"', '\'', ' ']))
        .filter(|part| !part.is_empty())
        .collect();
    let is_value = |value: &&str| {
        !value.is_empty() && !value.contains(char::is_whitespace) && plain(&value.to_lowercase()).is_none()
    };
    if values.len() < 2 || !values.iter().all(is_value) {
        return None;
    }
    let whole: Option<Vec<i64>> = values.iter().map(|value| value.parse().ok()).collect();
    Some(match whole {
        Some(numbers) => json!({"type": "integer", "enum": numbers}),
        None => json!({"type": "string", "enum": values}),
    })
}

/// The standard's names for a cell, if they say all that the cell says: a remark in parentheses,
/// the length of a tuple, the format of a date and the values of a dictionary have no such names.
pub fn standard_words(cell: &str, reading: &TypeReading) -> Option<String> {
    let words = write(&reading.schema);
    let keeps_all = !cell.contains('(') && !cell.to_lowercase().contains("tuple");
    (keeps_all && read(&words).is_some_and(|again| again.schema == reading.schema)).then_some(words)
}

/// The known type whose name is most similar to an unknown one.
pub fn nearest(word: &str) -> Option<&'static str> {
    const NAMES: &[&str] = &[
        "string", "integer", "number", "boolean", "null", "object", "array", "enum", "date", "datetime", "uri", "uuid",
        "any",
    ];
    sinew_tool::spelling::nearest(word.trim(), NAMES.iter().copied())
}

fn read_type(text: &str, depth: usize, reading: &mut TypeReading) -> Option<Value> {
    let text = text.trim();
    if depth > MAX_DEPTH || text.is_empty() || text.len() > 2000 {
        return None;
    }
    let parts = split_union(text);
    if parts.len() > 1 {
        let schemas = parts.iter().map(|part| read_type(part, depth + 1, reading)).collect::<Option<Vec<_>>>()?;
        return Some(union(schemas));
    }
    // A value in quotes stands for itself, unless it is the name of a type.
    for quote in ['"', '\''] {
        let inner = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
        if let Some(inner) = inner.filter(|inner| !inner.is_empty() && !inner.contains(quote)) {
            reading.standard = false;
            let of_type = plain(&inner.to_lowercase()).map(|(schema, _)| schema);
            return Some(of_type.unwrap_or_else(|| json!({"type": "string", "enum": [inner]})));
        }
    }
    if let Some(inner) = text.strip_suffix('?') {
        reading.standard = false;
        return Some(union(vec![read_type(inner, depth + 1, reading)?, json!({"type": "null"})]));
    }
    if let Some(inner) = text.strip_prefix("[]") {
        reading.standard = false;
        return Some(json!({"type": "array", "items": read_type(inner, depth + 1, reading)?}));
    }
    if let Some(inner) = text.strip_suffix("[]") {
        reading.standard = false;
        return Some(json!({"type": "array", "items": read_type(inner, depth + 1, reading)?}));
    }
    let lower = text.to_lowercase();
    for prefix in ["array of ", "list of "] {
        if lower.starts_with(prefix) {
            reading.standard = false;
            let (of, known) = (&text[prefix.len()..], reading.remarks.len());
            let Some(items) = read_type(of, depth + 1, reading) else {
                reading.remarks.truncate(known);
                reading.remarks.push(format!("of {}", of.trim()));
                return Some(json!({"type": "array"}));
            };
            return Some(json!({"type": "array", "items": items}));
        }
    }
    if let Some((head, inner)) = bracketed(text) {
        return generic(&head.trim().to_lowercase(), inner, depth, reading);
    }
    // A remark in parentheses, as in `string (ISO 8601)`.
    if let Some(open) = text.find('(').filter(|open| *open > 0 && text.ends_with(')')) {
        reading.standard = false;
        reading.remarks.push(text[open + 1..text.len() - 1].trim().to_owned());
        return read_type(&text[..open], depth + 1, reading);
    }
    let (schema, canonical) = plain(&lower)?;
    reading.standard &= canonical;
    Some(schema)
}

fn plain(word: &str) -> Option<(Value, bool)> {
    let of = |name: &str, standard: bool| Some((json!({ "type": name }), standard));
    let string = |format: &str| Some((json!({"type": "string", "format": format}), false));
    match word {
        "string" => of("string", true),
        "str" | "text" | "path" | "file" | "filepath" | "pathlike" | "bytes" | "base64" | "char" | "strings" => {
            of("string", false)
        }
        "datetime" | "timestamp" | "date-time" => string("date-time"),
        "date" => string("date"),
        "url" | "uri" => string("uri"),
        "uuid" | "uuid4" | "guid" => string("uuid"),
        "email" => string("email"),
        "iso date" => string("date"),
        "binary" | "blob" => of("string", false),
        "enum" | "literal" => of("string", false),
        "integer" => of("integer", true),
        "int" | "long" | "uint" | "int32" | "int64" | "uint32" | "uint64" | "integers" | "i8" | "i16" | "i32"
        | "i64" | "u8" | "u16" | "u32" | "u64" | "usize" | "isize" | "unsigned int" | "bigint" => of("integer", false),
        "positive integer" => Some((json!({"type": "integer", "minimum": 1}), false)),
        "non-negative integer" | "nonnegative integer" => Some((json!({"type": "integer", "minimum": 0}), false)),
        "number" | "float" => of("number", true),
        "double" | "decimal" | "numeric" | "real" | "numbers" | "floats" | "f32" | "f64" | "float32" | "float64"
        | "double precision" => of("number", false),
        "boolean" => of("boolean", true),
        "bool" => of("boolean", false),
        "object" => of("object", true),
        "dict" | "dictionary" | "map" | "mapping" | "json" | "hash" | "record" | "objects" | "json object" => {
            of("object", false)
        }
        "array" => of("array", true),
        "list" | "tuple" | "set" | "sequence" | "iterable" => of("array", false),
        "null" => of("null", true),
        "none" | "nil" | "void" | "nonetype" => of("null", false),
        "any" => Some((json!({}), true)),
        "*" | "mixed" | "unknown" | "value" => Some((json!({}), false)),
        _ => None,
    }
}

fn generic(head: &str, inner: &str, depth: usize, reading: &mut TypeReading) -> Option<Value> {
    match head {
        "array" | "list" | "sequence" | "set" | "iterable" | "frozenset" | "vec" | "vector" => {
            reading.standard &= head == "array";
            Some(json!({"type": "array", "items": read_type(inner, depth + 1, reading)?}))
        }
        "tuple" => {
            reading.standard = false;
            let parts = split_top(inner, ',');
            let items = parts.iter().filter(|part| part.trim() != "...");
            let items = items.map(|part| read_type(part, depth + 1, reading)).collect::<Option<Vec<_>>>()?;
            Some(json!({"type": "array", "items": union(items)}))
        }
        "dict" | "map" | "mapping" | "object" | "record" | "hashmap" => {
            reading.standard &= head == "object";
            let parts = split_top(inner, ',');
            let value = parts.get(1).or(parts.first())?;
            Some(json!({"type": "object", "additionalProperties": read_type(value, depth + 1, reading)?}))
        }
        "optional" => {
            reading.standard = false;
            Some(union(vec![read_type(inner, depth + 1, reading)?, json!({"type": "null"})]))
        }
        "union" => {
            reading.standard = false;
            let parts = split_top(inner, ',');
            let parts = parts.iter().map(|part| read_type(part, depth + 1, reading)).collect::<Option<Vec<_>>>()?;
            Some(union(parts))
        }
        "enum" | "literal" => {
            reading.standard &= head == "enum";
            let separator = if split_top(inner, ',').len() > 1 { ',' } else { '|' };
            let choices: Vec<Value> = split_top(inner, separator).iter().map(|part| choice(part)).collect();
            let mut schema = Map::new();
            if choices.iter().all(Value::is_string) {
                schema.insert("type".to_owned(), json!("string"));
            }
            schema.insert("enum".to_owned(), Value::Array(choices));
            Some(Value::Object(schema))
        }
        _ => None,
    }
}

fn choice(text: &str) -> Value {
    let text = text.trim();
    let unquoted = text.trim_matches(|c| matches!(c, '\'' | '"' | '“' | '”'));
    serde_json::from_str(text).unwrap_or_else(|_| json!(unquoted))
}

/// Several schemas as one; plain types become a list of types.
fn union(mut schemas: Vec<Value>) -> Value {
    schemas.dedup();
    let only_type = |schema: &Value| {
        let map = schema.as_object().filter(|map| map.len() == 1)?;
        map.get("type").and_then(Value::as_str).map(str::to_owned)
    };
    if schemas.len() == 1 {
        return schemas.remove(0);
    }
    // Values in quotes are the choices of one enum.
    let choices = |schema: &Value| {
        let listed = schema
            .get("enum")
            .and_then(Value::as_array)
            .filter(|_| schema.get("type").is_some_and(|kind| kind == "string"));
        listed.cloned()
    };
    if let Some(listed) = schemas.iter().map(choices).collect::<Option<Vec<_>>>() {
        return json!({"type": "string", "enum": listed.concat()});
    }
    match schemas.iter().map(only_type).collect::<Option<Vec<_>>>() {
        Some(types) => json!({ "type": types }),
        None => json!({ "anyOf": schemas }),
    }
}

fn bracketed(text: &str) -> Option<(&str, &str)> {
    let open = text.find(['[', '<'])?;
    let close = if text.as_bytes()[open] == b'[' { ']' } else { '>' };
    Some((&text[..open], text[open + 1..].strip_suffix(close)?))
}

/// Splits at `|`, `/` and the word `or`, outside brackets and quotes.
fn split_union(text: &str) -> Vec<&str> {
    let parts = split_top(text, '|');
    let parts: Vec<&str> = if parts.len() > 1 { parts } else { split_top(text, '/') };
    parts.into_iter().flat_map(|part| split_or(part)).collect()
}

fn split_or(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(" or ") {
        if at >= start && balanced(&text[start..at]) {
            parts.push(&text[start..at]);
            start = at + 4;
        }
    }
    parts.push(&text[start..]);
    parts
}

fn balanced(text: &str) -> bool {
    text.matches(['[', '<', '(']).count() == text.matches([']', '>', ')']).count()
        && text.matches('"').count().is_multiple_of(2)
}

fn split_top(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth, mut quoted) = (0, 0usize, None);
    for (at, character) in text.char_indices() {
        match character {
            '"' | '\'' if quoted == Some(character) => quoted = None,
            '"' | '\'' if quoted.is_none() => quoted = Some(character),
            _ if quoted.is_some() => {}
            '[' | '<' | '(' | '{' => depth += 1,
            ']' | '>' | ')' | '}' => depth = depth.saturating_sub(1),
            _ if character == separator && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + character.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The standard's names for a schema: `array[string]`, `enum["a", "b"]`, `string | null`.
pub fn write(schema: &Value) -> String {
    write_at(schema, 0)
}

fn write_at(schema: &Value, depth: usize) -> String {
    if depth > MAX_DEPTH {
        return "any".to_owned();
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        return format!("enum[{}]", choices.join(", "));
    }
    if let Some(only) = schema.get("const") {
        return format!("enum[{only}]");
    }
    match schema.get("type") {
        Some(Value::String(name)) if name == "array" => match schema.get("items").filter(|items| items.is_object()) {
            Some(items) => format!("array[{}]", write_at(items, depth + 1)),
            None => "array".to_owned(),
        },
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | "),
        _ => {
            let branches = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
            match branches {
                Some(branches) if (1..=8).contains(&branches.len()) => {
                    let mut words: Vec<String> = branches.iter().map(|branch| write_at(branch, depth + 1)).collect();
                    words.dedup();
                    words.join(" | ")
                }
                _ if schema.get("properties").is_some() => "object".to_owned(),
                _ => "any".to_owned(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_of_real_documents_are_understood() {
        for (cell, schema, standard) in [
            ("string", json!({"type": "string"}), true),
            ("`str`", json!({"type": "string"}), false),
            ("int", json!({"type": "integer"}), false),
            ("float", json!({"type": "number"}), true),
            ("list[str]", json!({"type": "array", "items": {"type": "string"}}), false),
            (
                "array[array[string]]",
                json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
                true,
            ),
            ("enum[\"a\",\"b\"]", json!({"type": "string", "enum": ["a", "b"]}), true),
            ("str | None", json!({"type": ["string", "null"]}), false),
            ("`int` or `None`", json!({"type": ["integer", "null"]}), false),
            (
                "array[enum[\"x\", \"y\"]]",
                json!({"type": "array", "items": {"type": "string", "enum": ["x", "y"]}}),
                true,
            ),
            ("dict[str, int]", json!({"type": "object", "additionalProperties": {"type": "integer"}}), false),
            ("tuple[float,float]", json!({"type": "array", "items": {"type": "number"}}), false),
            ("array of strings", json!({"type": "array", "items": {"type": "string"}}), false),
            ("any", json!({}), true),
            ("string (ISO 8601)", json!({"type": "string"}), false),
            ("Optional[int]", json!({"type": ["integer", "null"]}), false),
            ("\"string\"", json!({"type": "string"}), false),
            ("int?", json!({"type": ["integer", "null"]}), false),
            ("[]string", json!({"type": "array", "items": {"type": "string"}}), false),
            ("Vec<u8>", json!({"type": "array", "items": {"type": "integer"}}), false),
            ("`\"a\" | \"b\"`", json!({"type": "string", "enum": ["a", "b"]}), false),
            ("'fast' or 'slow'", json!({"type": "string", "enum": ["fast", "slow"]}), false),
            ("one of `fast`, `slow`, or `off`", json!({"type": "string", "enum": ["fast", "slow", "off"]}), false),
            ("enum: fast, slow", json!({"type": "string", "enum": ["fast", "slow"]}), false),
            ("One of: 1, 2", json!({"type": "integer", "enum": [1, 2]}), false),
            ("either \"a\" or \"b\"", json!({"type": "string", "enum": ["a", "b"]}), false),
        ] {
            let reading = read(cell).map(|reading| (reading.schema, reading.standard));
            assert_eq!(reading, Some((schema, standard)), "{cell}");
        }
    }

    #[test]
    fn what_stands_beside_a_type_is_kept() {
        for (cell, remarks) in [
            ("integer (1-10)", &["1-10"][..]),
            ("`string` (max 10)", &["max 10"]),
            ("array[string (max 5)]", &["max 5"]),
            ("string (max 5) | null", &["max 5"]),
            ("list of rooms (sorted)", &["of rooms (sorted)"]),
            ("enum[\"a (b)\", \"c\"]", &[]),
            ("string", &[]),
        ] {
            assert_eq!(read(cell).unwrap().remarks, remarks, "{cell}");
        }
    }

    #[test]
    fn unknown_types_are_none() {
        for cell in ["", "[DataType]", "...", "—", "whatever you like", "array[", "foo[bar]"] {
            assert_eq!(read(cell), None, "{cell}");
        }
        assert_eq!(read(&"array[".repeat(5000)), None);
        assert_eq!(read(&format!("{}string{}", "array[".repeat(50), "]".repeat(50))), None);
    }

    #[test]
    fn written_types_are_read_back() {
        for schema in [
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": ["string", "null"]}),
            json!({"type": "string", "enum": ["a", "b|c"]}),
            json!({"enum": [1, 2]}),
            json!({}),
        ] {
            let reading = read(&write(&schema)).map(|reading| reading.schema);
            assert_eq!(reading, Some(schema.clone()), "{}", write(&schema));
        }
    }
}
