//! JSON for people: a value on one line where it fits, else one member or item on each.

use serde_json::Value;
use sinew_tool::text::columns;

/// The value in lines of at most `width` columns, as far as its texts allow.
pub fn lay_out(value: &Value, width: usize) -> String {
    lay_out_beside(value, width, 0)
}

/// The same for a value whose first line has so many columns less.
fn lay_out_beside(value: &Value, width: usize, taken: usize) -> String {
    let line = value.to_string();
    if columns(&line) + taken <= width {
        return line;
    }
    let inner = width.saturating_sub(2);
    let (open, parts, close) = match value {
        Value::Object(members) => {
            let part = |(name, value): (&String, &Value)| {
                let name = format!("{}: ", Value::from(name.as_str()));
                let value = lay_out_beside(value, inner, columns(&name) + COMMA);
                name + &value
            };
            ('{', members.iter().map(part).collect::<Vec<_>>(), '}')
        }
        Value::Array(items) => ('[', items.iter().map(|item| lay_out_beside(item, inner, COMMA)).collect(), ']'),
        _ => return line,
    };
    let parts = parts.join(",\n").replace('\n', "\n  ");
    format!("{open}\n  {parts}\n{close}")
}

/// The comma after a part.
const COMMA: usize = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_fits_a_line_stays_on_it() {
        let steps = json!({"steps": [{"tool": "open_app", "app": "Notes"}, {"tool": "press_home"}], "report": "html"});
        assert_eq!(lay_out(&steps, 200), steps.to_string());
        let narrow = lay_out(&steps, 44);
        assert!(narrow.lines().all(|line| columns(line) <= 44), "{narrow}");
        assert_eq!(narrow.lines().nth(2), Some(r#"    {"tool":"open_app","app":"Notes"},"#), "{narrow}");
        assert_eq!(serde_json::from_str::<Value>(&narrow).ok(), Some(steps));
    }
}
