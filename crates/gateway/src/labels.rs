//! Labels, by which administrators group devices. A call to `label:kitchen` goes to all devices of the group.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use sinew_tool::text::clean_line;
use sinew_tool::{DeviceInfo, ErrorKind, MAX_LABELS, ToolError, is_label};

/// What stands before a label where a device could be named too. No id and no name of a device has a colon.
const PREFIX: &str = "label:";

/// A label: 1 to 32 lower-case letters, digits and hyphens, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Label(Arc<str>);

impl Label {
    /// As the configuration has it.
    pub const MAX_LENGTH: usize = sinew_tool::MAX_LABEL_LENGTH;

    /// Capital letters are read as small ones.
    pub fn parse(text: &str) -> Result<Label, ToolError> {
        let word = text.trim().to_ascii_lowercase();
        if is_label(&word) {
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

/// The labels that the configuration gives a device.
pub(crate) fn configured(info: &DeviceInfo) -> Vec<Label> {
    info.labels.iter().filter_map(|label| Label::parse(label).ok()).collect()
}

/// Those of `labels` that an administrator gave, and not the configuration.
pub(crate) fn given(labels: &[Label], info: &DeviceInfo) -> Vec<Label> {
    let configured = configured(info);
    labels.iter().filter(|label| !configured.contains(label)).cloned().collect()
}

/// The labels of a device that connects: those that administrators gave it, and those of the configuration now.
pub(crate) fn joined(given: Vec<Label>, info: &DeviceInfo) -> Arc<[Label]> {
    let mut labels = given;
    labels.extend(configured(info));
    labels.sort();
    labels.dedup();
    labels.into()
}

/// The labels of a device after a change: sorted, each once.
pub(crate) fn changed(
    known: &[Label],
    add: &[Label],
    remove: &[Label],
    info: &DeviceInfo,
) -> Result<Arc<[Label]>, ToolError> {
    let configured = configured(info);
    if let Some(fixed) = remove.iter().find(|label| configured.contains(label)) {
        let issue = "the configuration gives this label";
        return Err(wrong(format!("the label `{fixed}` cannot be removed: {issue}; remove it there"), issue));
    }
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
    use sinew_tool::{Admission, DeviceKey, Family, FamilyName, Reach, Status, TextTrust};

    use super::*;

    fn label(text: &str) -> Label {
        Label::parse(text).unwrap()
    }

    fn info(labels: &[&str]) -> DeviceInfo {
        DeviceInfo {
            key: DeviceKey("thing:lamp".to_owned()),
            suggested_id: "lamp".to_owned(),
            family: Family::new(FamilyName::of("thing"), TextTrust::Attributed, Reach::OneLink),
            admission: Admission::Configured,
            name: String::new(),
            version: String::new(),
            status: Status::Ready,
            instructions: None,
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            attributes: Default::default(),
        }
    }

    #[test]
    fn labels_of_the_configuration_come_and_go_with_it_and_those_of_administrators_stay() {
        let before = info(&["kitchen", "Not valid"]);
        let labels = joined(vec![label("mine")], &before);
        assert_eq!(labels.iter().map(Label::as_str).collect::<Vec<_>>(), ["kitchen", "mine"]);
        let refused = changed(&labels, &[], &[label("kitchen")], &before).unwrap_err();
        assert!(refused.message.contains("configuration"), "{refused}");
        let after = joined(given(&labels, &before), &info(&["attic"]));
        assert_eq!(after.iter().map(Label::as_str).collect::<Vec<_>>(), ["attic", "mine"]);
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
        let labels = changed(&[label("b"), label("c")], &[label("a"), label("b")], &[label("c")], &info(&[])).unwrap();
        assert_eq!(labels.iter().map(Label::as_str).collect::<Vec<_>>(), ["a", "b"]);
        let many: Vec<Label> = (0..=MAX_LABELS).map(|number| label(&format!("l{number}"))).collect();
        assert!(changed(&[], &many[1..], &[], &info(&[])).is_ok());
        assert!(changed(&[], &many, &[], &info(&[])).unwrap_err().message.contains("17"));
        assert!(changed(&labels, &[], &[label("attic")], &info(&[])).unwrap_err().message.contains("the labels a, b"));
    }
}
