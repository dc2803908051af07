//! The description of a tool, no longer than every API accepts.

use serde_json::Value;

use super::{Simplification, sentences};

/// Characters of a listed description. OpenAI refuses the whole request for a longer one; Claude Code cuts at twice as
/// many. Descriptions inside a schema have no such limit.
pub const LONGEST_DESCRIPTION: usize = 1_024;
/// How many of them the rules of a schema may take; the others are for what the device says.
const MOST_FOR_RULES: usize = 640;
const ELSEWHERE: &str = "More rules: see the description of the input schema.";
const SHORTENED: &str = "… [shortened]";
/// Amazon Bedrock refuses the whole request for an empty description.
const NONE: &str = "No description.";

/// The description of a tool as it is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    pub text: String,
    /// Set where the text of the device did not fit.
    pub simplified: Option<Simplification>,
}

/// What the device says, or the title if it says nothing, and the rules that its schema cannot express. The rules are
/// kept; the device's text is shortened where both together are too long.
pub fn describe(text: &str, title: Option<&str>, notes: &[String]) -> Description {
    let given = [Some(text), title, Some(NONE)].into_iter().flatten();
    let text = given.map(str::trim_end).find(|text| !text.is_empty()).unwrap_or_default();
    let rules = notes.join(" ");
    let room = LONGEST_DESCRIPTION.saturating_sub(if rules.is_empty() { 0 } else { 1 + length(&rules) });
    // No text has more characters than bytes.
    let is_too_long = text.len() > room && length(text) > room;
    let own = if is_too_long { shortened(text, room) } else { text.to_owned() };
    let text = if rules.is_empty() { own } else { format!("{own}\n{rules}") };
    let what = || Simplification { path: "description".to_owned(), what: "more than 1,024 characters".to_owned() };
    Description { text, simplified: is_too_long.then(what) }
}

/// Keeps the sentences that a tool's description has room for, and puts the others into that of the schema.
pub(super) fn divide(notes: Vec<String>, schema: &mut Value) -> (Vec<String>, bool) {
    let all: usize = notes.iter().map(|note| length(note) + 1).sum();
    if all <= MOST_FOR_RULES {
        return (notes, false);
    }
    let mut room = MOST_FOR_RULES - length(ELSEWHERE) - 1;
    let mut kept = Vec::new();
    for note in notes {
        match room.checked_sub(length(&note) + 1) {
            Some(left) => {
                room = left;
                kept.push(note);
            }
            None => sentences::say(schema, &note),
        }
    }
    kept.push(ELSEWHERE.to_owned());
    (kept, true)
}

/// The beginning of a text, up to a word, with a mark.
fn shortened(text: &str, room: usize) -> String {
    let mut left = room.saturating_sub(length(SHORTENED));
    let fits = |character: &(usize, char)| {
        let rest = left.checked_sub(character.1.len_utf16());
        left = rest.unwrap_or_default();
        rest.is_some()
    };
    let end = text.char_indices().take_while(fits).last().map_or(0, |(at, character)| at + character.len_utf8());
    let words = text[..end].rfind(char::is_whitespace).filter(|at| *at > end / 2).unwrap_or(end);
    format!("{}{SHORTENED}", text[..words].trim_end())
}

/// As JavaScript counts, which is never less than what others do.
fn length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::portable::input;

    #[test]
    fn what_fits_is_kept_as_it_is() {
        let described = describe("Opens the door. \n", None, &["No other members.".to_owned()]);
        assert_eq!(described.text, "Opens the door.\nNo other members.");
        assert_eq!(described.simplified, None);
        assert_eq!(describe(&"x".repeat(1_024), None, &[]).text, "x".repeat(1_024));
    }

    #[test]
    fn a_description_is_never_empty() {
        assert_eq!(describe(" ", Some("Door opener"), &[]).text, "Door opener");
        assert_eq!(describe("", Some(""), &["Rule.".to_owned()]).text, "No description.\nRule.");
    }

    #[test]
    fn the_text_of_the_device_is_shortened_and_the_rules_stay() {
        let rules = ["Exactly one of these forms: `a`; `b`.".to_owned(), "No other members.".to_owned()];
        let described = describe(&"Many words. ".repeat(500), None, &rules);
        assert!(described.text.ends_with("… [shortened]\nExactly one of these forms: `a`; `b`. No other members."));
        assert!((1_000..=1_024).contains(&length(&described.text)), "{}", length(&described.text));
        let simplified = described.simplified.unwrap().to_string();
        assert_eq!(simplified, "description: more than 1,024 characters, for OpenAI, Claude Code (cuts at 2,048)");
    }

    #[test]
    fn rules_that_a_description_has_no_room_for_are_in_that_of_the_schema() {
        let names = |from: u32| (from..from + 60).map(|number| format!("name_{number}")).collect::<Vec<_>>();
        let schema = json!({
            "type": "object", "description": "All about it.", "minProperties": 2,
            "not": {"required": names(100)}, "propertyNames": {"enum": names(200)},
        });
        let portable = input(&schema);
        assert_eq!(portable.notes, ["At least 2 members.", ELSEWHERE]);
        let text = portable.schema["description"].as_str().unwrap();
        assert!(
            text.starts_with("All about it. Not: {\"required\":[\"name_100\"") && text.contains("name_259"),
            "{text}"
        );
        let is_reported = |part: &Simplification| part.to_string().starts_with("the root: more rules than 640");
        assert!(portable.simplified.iter().any(is_reported), "{:?}", portable.simplified);
    }

    proptest! {
        #[test]
        fn no_description_is_too_long_and_no_rule_is_lost(text in ".{0,1500}", rules in prop::collection::vec("[a-z ]{1,400}", 0..5)) {
            let mut schema = json!({});
            let (notes, _) = divide(rules.clone(), &mut schema);
            let described = describe(&text, None, &notes);
            prop_assert!(length(&described.text) <= LONGEST_DESCRIPTION, "{}", length(&described.text));
            let elsewhere = schema["description"].as_str().unwrap_or_default();
            for rule in &rules {
                let rule = rule.trim();
                prop_assert!(described.text.contains(rule) || elsewhere.contains(rule), "{rule}");
            }
        }
    }
}
