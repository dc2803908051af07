//! How a device was admitted, and how families ask whether one may be.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::device::DeviceKey;

/// Names of brokers and people are stored and shown whole, so longer ones are refused.
const MAX_NAME: usize = 256;

/// How a device was admitted. Decisions compare this, never text that people see.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Admission {
    /// The gateway's own token, which admits any device for first trials.
    OwnToken,
    /// A token that was made for this device.
    DeviceToken(TokenId),
    /// The broker that passes its messages on, by address.
    Broker(#[serde(deserialize_with = "bounded")] Arc<str>),
    /// It is attached to this machine, or to the adb server that the gateway uses.
    Local,
    /// Somebody approved it, by name.
    Person(#[serde(deserialize_with = "bounded")] Arc<str>),
    /// The configuration names it.
    Configured,
}

impl Admission {
    /// For tables and lists.
    pub fn word(&self) -> &'static str {
        match self {
            Admission::OwnToken => "gateway token",
            Admission::DeviceToken(_) => "device token",
            Admission::Broker(_) => "broker",
            Admission::Local => "local",
            Admission::Person(_) => "person",
            Admission::Configured => "configuration",
        }
    }
}

fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    let text = Arc::<str>::deserialize(deserializer)?;
    match text.len() {
        0..=MAX_NAME => Ok(text),
        length => Err(serde::de::Error::custom(format!("a name of {length} bytes; at most {MAX_NAME} are allowed"))),
    }
}

/// The id of a token in lists: 1 to 64 visible ASCII characters. It is not secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct TokenId(Arc<str>);

impl TokenId {
    /// Token ids are short random texts; this only bounds what is read back.
    pub const MAX_LENGTH: usize = 64;

    pub fn parse(text: &str) -> Option<TokenId> {
        let fits = (1..=TokenId::MAX_LENGTH).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| TokenId(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for TokenId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TokenId, D::Error> {
        let text = String::deserialize(deserializer)?;
        TokenId::parse(&text)
            .ok_or_else(|| serde::de::Error::custom("the id of a token must be 1 to 64 visible ASCII characters"))
    }
}

/// Decides which devices may connect. Asked once per connection, before any MCP.
pub trait Admit: Send + Sync {
    /// Whether a token admits the device with this key; `None` refuses it.
    fn admit(&self, token: Option<&str>, key: &DeviceKey) -> Option<Admission>;

    /// Whether what a device was admitted by is still valid. Asked again once the device can be found by whoever revokes
    /// a token, so that a revocation in between is not missed.
    fn is_valid(&self, _admission: &Admission) -> bool {
        true
    }

    /// Whose token this is, for a device that brings a token and nothing else; `None` refuses it.
    fn find_bearer(&self, _token: &str) -> Option<Bearer> {
        None
    }

    /// Whether a device with this key was connected before.
    fn is_known(&self, _key: &DeviceKey) -> bool {
        false
    }

    /// How many devices are announced at a broker and have not joined, to be shown to people.
    fn report_presences(&self, _broker: &str, _presences: Presences) {}
}

/// Devices that are announced at a broker and have not joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Presences {
    /// Not asked for their tools yet.
    pub waiting: usize,
    /// Asked, and without an answer.
    pub silent: usize,
}

/// The network that counts as one sender: an IPv4 address, or the /64 of an IPv6 address, whose owner has all of it.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) & !u128::from(u64::MAX)).into()),
        v4 => v4,
    }
}

impl<F: Fn(Option<&str>, &DeviceKey) -> Option<Admission> + Send + Sync> Admit for F {
    fn admit(&self, token: Option<&str>, key: &DeviceKey) -> Option<Admission> {
        self(token, key)
    }
}

/// Whom a token was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bearer {
    /// The one device with this key.
    Device { token: TokenId, key: DeviceKey },
    /// Any device, for first trials: the gateway's own token.
    Any,
}

impl Bearer {
    /// Whether the token admits the device with this key.
    pub fn is_for(&self, key: &DeviceKey) -> bool {
        match self {
            Bearer::Device { key: bound, .. } => bound == key,
            Bearer::Any => true,
        }
    }

    pub fn admission(&self) -> Admission {
        match self {
            Bearer::Device { token, .. } => Admission::DeviceToken(token.clone()),
            Bearer::Any => Admission::OwnToken,
        }
    }
}

/// Decides about devices that ask for their settings, and remembers which were approved.
pub trait Enrol: Send + Sync {
    fn enrol(&self, applicant: &Applicant) -> Enrolment;
}

impl<F: Fn(&Applicant) -> Enrolment + Send + Sync> Enrol for F {
    fn enrol(&self, applicant: &Applicant) -> Enrolment {
        self(applicant)
    }
}

/// A device that asks to be approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applicant {
    pub hardware_id: String,
    /// What only the device itself knows. A MAC address can be seen by everybody nearby.
    pub secret: String,
    /// What the device says it is; empty where it does not.
    pub kind: String,
    pub version: String,
    pub address: IpAddr,
}

/// The answer to an applicant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enrolment {
    /// The token of this device alone.
    Approved { token: String },
    /// The code that a person must enter to approve it.
    Pending { code: String },
    /// Too many devices wait already.
    Full,
    /// It calls itself by the id, name or key of another device.
    Taken,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_admission_comes_back_from_json_as_it_was() {
        let token = TokenId::parse("0a1b2c3d").unwrap();
        let all = [
            (Admission::OwnToken, json!("own_token")),
            (Admission::DeviceToken(token), json!({"device_token": "0a1b2c3d"})),
            (Admission::Broker("mqtt://b:1883".into()), json!({"broker": "mqtt://b:1883"})),
            (Admission::Local, json!("local")),
            (Admission::Person("Ada".into()), json!({"person": "Ada"})),
            (Admission::Configured, json!("configured")),
        ];
        for (admission, form) in all {
            assert_eq!(json!(admission), form);
            assert_eq!(serde_json::from_value::<Admission>(form).unwrap(), admission);
        }
    }

    #[test]
    fn long_names_and_odd_ids_are_refused() {
        for wrong in [
            json!({"broker": "x".repeat(MAX_NAME + 1)}),
            json!({"person": "x".repeat(MAX_NAME + 1)}),
            json!({"device_token": ""}),
            json!({"device_token": "a b"}),
            json!({"device_token": "x".repeat(65)}),
            json!("gateway token"),
        ] {
            assert!(serde_json::from_value::<Admission>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
