//! What kind of device something is, and what follows from it.
//!
//! Nothing outside a family's own crate has a list of families: whatever depends on the kind of a device is a field
//! of [`Family`].

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

/// A kind of device: `board`, `phone`, `app`, or any other that a crate brings.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Family {
    pub name: FamilyName,
    #[serde(rename = "words")]
    pub text_trust: TextTrust,
    pub reach: Reach,
    /// Whether a call that names no device may go to the only device that is ready while others of the family are away.
    /// Never for families whose devices differ in what a call would do, such as two locks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prefers_ready: bool,
    /// Whether tools that only read show text of others, such as screens and notifications.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shows_others: bool,
    /// Whether what its devices answer may be text of others, because they fetch or pass it on, as a server does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passes_text_on: bool,
    /// Whether its devices only pass calls on, so that they take as many as come.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passes_on: bool,
    /// Whether a device stays for a moment with the caller that used it, because it is used step by step and two callers
    /// would disturb each other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays_with_user: bool,
}

impl Family {
    pub const fn new(name: FamilyName, text_trust: TextTrust, reach: Reach) -> Family {
        Family {
            name,
            text_trust,
            reach,
            prefers_ready: false,
            shows_others: false,
            passes_text_on: false,
            passes_on: false,
            stays_with_user: false,
        }
    }

    pub const fn show_others(mut self) -> Family {
        self.shows_others = true;
        self
    }

    pub const fn pass_text_on(mut self) -> Family {
        self.passes_text_on = true;
        self
    }

    pub const fn pass_on(mut self) -> Family {
        self.passes_on = true;
        self
    }

    pub const fn stay_with_user(mut self) -> Family {
        self.stays_with_user = true;
        self
    }

    pub const fn prefer_ready(mut self) -> Family {
        self.prefers_ready = true;
        self
    }
}

/// How far the text that devices of a family send is trusted. It is never trusted as much as the user's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextTrust {
    /// The owner of the gateway chose the device: its text is shown to models under its name.
    Attributed,
    /// Anybody may have written it: its text is shown in short quotations that are marked as such.
    Quoted,
}

/// Whether another gateway could reach the same device at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// The device keeps one link, and this gateway has it.
    OneLink,
    /// Several gateways can reach it, for example through a broker or a network address.
    SeveralGateways,
}

/// The name of a family: a lower-case letter, then letters, digits and hyphens, at most 24 characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct FamilyName(Cow<'static, str>);

impl FamilyName {
    /// Family names are short words, chosen by programmers.
    pub const MAX_LENGTH: usize = 24;

    /// For constants of a family's crate.
    ///
    /// # Panics
    ///
    /// On a name that is not valid; in a constant this is a compile error.
    pub const fn of(name: &'static str) -> FamilyName {
        assert!(is_valid(name), "the name of a family must be [a-z][a-z0-9-]{{0,23}}");
        FamilyName(Cow::Borrowed(name))
    }

    pub fn parse(text: &str) -> Option<FamilyName> {
        is_valid(text).then(|| FamilyName(Cow::Owned(text.to_owned())))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const fn is_valid(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.is_empty() || bytes.len() > FamilyName::MAX_LENGTH || !bytes[0].is_ascii_lowercase() {
        return false;
    }
    let mut place = 1;
    while place < bytes.len() {
        if !matches!(bytes[place], b'a'..=b'z' | b'0'..=b'9' | b'-') {
            return false;
        }
        place += 1;
    }
    true
}

impl fmt::Display for FamilyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for FamilyName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FamilyName, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        FamilyName::parse(&text).ok_or_else(|| {
            serde::de::Error::custom("the name of a family must be a lower-case letter and up to 23 of a-z, 0-9 and -")
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_family_comes_back_from_json_as_it_was() {
        let kiln = Family::new(FamilyName::of("kiln"), TextTrust::Quoted, Reach::SeveralGateways);
        let text = json!(kiln).to_string();
        assert_eq!(text, r#"{"name":"kiln","words":"quoted","reach":"several_gateways"}"#);
        assert_eq!(serde_json::from_str::<Family>(&text).unwrap(), kiln);
    }

    #[test]
    fn the_name_of_a_family_is_one_short_word() {
        assert_eq!(FamilyName::parse("tool-server2").map(|name| name.to_string()), Some("tool-server2".to_owned()));
        for wrong in ["", "Board", "2nd", "-a", "a b", "a_b", "ä", &"a".repeat(25)] {
            assert_eq!(FamilyName::parse(wrong), None, "{wrong:?}");
            assert!(serde_json::from_value::<FamilyName>(json!(wrong)).is_err(), "{wrong:?}");
        }
    }
}
