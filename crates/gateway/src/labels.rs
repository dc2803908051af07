//! Labels, by which administrators group devices. A call to `label:kitchen` goes to all devices of the group.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use sinew_tool::text::clean_line;
use sinew_tool::{ErrorKind, ToolError};

/// Enough for rooms, owners and purposes; more would be a database.
const MAX_LABELS: usize = 16;

/// What stands before a label where a device could be named too. No id and no name of a device has a colon.
const PREFIX: &str = "label:";

/// A label: 1 to 32 lower-case letters, digits and hyphens, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Label(Arc<str>);

impl Label {
    /// Labels are shown in tables beside device ids.
    pub const MAX_LENGTH: usize = 32;

    /// Capital letters are read as small ones.
    pub fn parse(text: &str) -> Result<Label, ToolError> {
        let word = text.trim().to_ascii_lowercase();
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if (1..=Label::MAX_LENGTH).contains(&word.len()) && !word.starts_with('-') && word.bytes().all(is_plain) {
            return Ok(Label(word.into()));
        }
        let issue = format!(
            "must be 1 to {} letters a-z, digits and hyphens, beginning with a letter or digit",
            Label::MAX_LENGTH
        );
        let message = format!("the label `{}` is not valid: a label {issue}", clean_line(text, 64));
        Err(wrong(message, &issue))
    }

    /// The label that stands in place of a device; `None` where the text does not name one.
    pub(crate) fn selected(text: &str) -> Option<&str> {
        text.trim().strip_prefix(PREFIX)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Label, D::Error> {
        Label::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// The labels of a device after a change: sorted, each once.
pub(crate) fn changed(known: &[Label], add: &[Label], remove: &[Label]) -> Result<Arc<[Label]>, ToolError> {
    if let Some(missing) = remove.iter().find(|label| !known.contains(label)) {
        let has = match known {
            [] => "no labels".to_owned(),
            known => format!("the labels {}", known.iter().map(Label::as_str).collect::<Vec<_>>().join(", ")),
        };
        let issue = "the device does not have this label";
        return Err(wrong(format!("the label `{missing}` cannot be removed: the device has {has}"), issue));
    }
    let mut labels: Vec<Label> = known.iter().filter(|label| !remove.contains(label)).chain(add).cloned().collect();
    labels.sort();
    labels.dedup();
    if labels.len() > MAX_LABELS {
        let issue = format!("a device can have at most {MAX_LABELS} labels, and these would be {}", labels.len());
        return Err(wrong(format!("{issue}; remove some with `sinew devices unlabel`"), &issue));
    }
    Ok(labels.into())
}

fn wrong(message: String, issue: &str) -> ToolError {
    ToolError::new(ErrorKind::InvalidArguments, message)
        .with_details(json!({"parameter_name": "label", "issue": issue}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(text: &str) -> Label {
        Label::parse(text).unwrap()
    }

    #[test]
    fn labels_are_short_plain_words() {
        assert_eq!(label(" Kitchen ").as_str(), "kitchen");
        assert_eq!(label("2nd-floor").as_str(), "2nd-floor");
        let long = "x".repeat(33);
        for wrong in ["", " ", "-a", "a b", "a_b", "küche", "label:a", "a,b", "a\u{202e}", "🍳", &long] {
            let error = Label::parse(wrong).unwrap_err();
            assert!(error.kind == ErrorKind::InvalidArguments && error.message.contains("letters a-z"), "{wrong:?}");
        }
    }

    #[test]
    fn labels_are_sorted_each_once_and_few() {
        let labels = changed(&[label("b"), label("c")], &[label("a"), label("b")], &[label("c")]).unwrap();
        assert_eq!(labels.iter().map(Label::as_str).collect::<Vec<_>>(), ["a", "b"]);
        let many: Vec<Label> = (0..=MAX_LABELS).map(|number| label(&format!("l{number}"))).collect();
        assert!(changed(&[], &many[1..], &[]).is_ok());
        assert!(changed(&[], &many, &[]).unwrap_err().message.contains("17"));
        assert!(changed(&labels, &[], &[label("attic")]).unwrap_err().message.contains("the labels a, b"));
    }
}
