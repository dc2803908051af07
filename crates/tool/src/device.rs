//! A device: everything that the gateway knows about something with tools.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::admission::Admission;
use crate::attributes::Attributes;
use crate::call::{Args, Call};
use crate::error::{ErrorKind, ToolError};
use crate::family::Family;
use crate::live::{LivePicture, LiveRequest};
use crate::outcome::Outcome;
use crate::tool::Toolset;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A phone, an app on a phone, a board, or a device behind another gateway. One value stands for one connection:
/// a device that reconnects is announced again with a new value.
pub trait Device: Send + Sync {
    fn info(&self) -> Arc<DeviceInfo>;

    fn tools(&self) -> Arc<Toolset>;

    /// The most recent pictures it sent, at most one of each name.
    fn pictures(&self) -> Vec<Picture> {
        Vec::new()
    }

    /// What the device shows now, for people who look at what a call did and for who makes a routine of it; `None`
    /// where it shows nothing. `args` are the arguments of the call that acts on it next.
    fn screen<'a>(&'a self, args: &'a Args) -> BoxFuture<'a, Option<ShownScreen>> {
        let _ = args;
        Box::pin(std::future::ready(None))
    }

    /// Whether a call could be made at all, asked before a person is asked about it. Sends nothing.
    fn check_call<'a>(&'a self, tool: &'a str, args: &'a Args) -> BoxFuture<'a, Result<(), ToolError>> {
        let _ = (tool, args);
        Box::pin(std::future::ready(Ok(())))
    }

    /// The next picture of its screen that differs from the one the viewer has; `None` where it did not change in time.
    /// Viewers of one device share what is captured for one of them.
    fn live_picture<'a>(&'a self, wanted: &'a LiveRequest) -> BoxFuture<'a, Result<Option<LivePicture>, ToolError>> {
        let _ = wanted;
        let message = "this device has no screen to watch; phones that are connected to this gateway have one";
        Box::pin(std::future::ready(Err(ToolError::new(ErrorKind::Unsupported, message))))
    }

    /// Runs a tool. Dropping the future cancels the call: a call that is still queued is never sent, and a late
    /// answer is counted but not delivered. Calls that a device cannot run in parallel wait in the device's own queue.
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>>;
}

/// What a device shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShownScreen {
    /// In words.
    pub text: String,
    /// Selectors that each fit one thing on it, those that say most about the screen first.
    pub landmarks: Vec<Value>,
    /// The arguments with selectors in place of names that only hold now, where there were any.
    pub lasting_args: Option<Args>,
}

/// A picture of a device, which can be read as `device://<id>/<name>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// `photo` or `screen`.
    pub name: Cow<'static, str>,
    pub mime_type: Cow<'static, str>,
    #[serde(with = "crate::wire_form::base64")]
    pub bytes: Arc<[u8]>,
}

/// The identity a family gives a device, the same for every connection: `board:aa:bb:cc:dd:ee:01`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceKey(pub String);

impl fmt::Display for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The identity people and models use: `[a-z0-9-]{1,24}`, minted once by the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct DeviceId(Arc<str>);

impl DeviceId {
    /// Leaves space for the tool in a public name `<device>__<tool>`, which clients limit to 64 characters.
    pub const MAX_LENGTH: usize = 24;

    pub fn parse(text: &str) -> Option<DeviceId> {
        let fits = (1..=DeviceId::MAX_LENGTH).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        fits.then(|| DeviceId(text.into()))
    }

    /// The nearest id to a text: lower case, runs of anything else become one hyphen. Empty when
    /// nothing is left.
    pub fn slug(text: &str) -> String {
        let mut slug = String::new();
        for character in text.chars().map(|character| character.to_ascii_lowercase()) {
            if character.is_ascii_alphanumeric() {
                slug.push(character);
            } else if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
        }
        slug.truncate(DeviceId::MAX_LENGTH);
        slug.trim_end_matches('-').to_owned()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for DeviceId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DeviceId, D::Error> {
        let text = String::deserialize(deserializer)?;
        DeviceId::parse(&text).ok_or_else(|| serde::de::Error::custom("a device id must be [a-z0-9-]{1,24}"))
    }
}

/// What a device reports about itself. Untrusted, like everything from a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    pub key: DeviceKey,
    /// What the gateway should try first as the id, for example `board-ddee01`.
    pub suggested_id: String,
    pub family: Family,
    pub admission: Admission,
    /// What it calls itself, for example the firmware's board name.
    pub name: String,
    /// Firmware, app or system version.
    pub version: String,
    pub status: Status,
    /// What the device wants models to know about it.
    pub instructions: Option<String>,
    /// Labels that the configuration gives it. Never from the device itself: administrators decide by labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Further details for people: hardware id, transport, address. Only shown, never used for a decision.
    pub attributes: Attributes,
}

/// Whether a connected device can be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Ready,
    /// Connected, but not usable: `state` is a short text for tables (`no MCP`, `unauthorized`), `remedy` says
    /// what a user can do.
    Limited {
        state: String,
        remedy: String,
    },
}

/// What families report to the gateway. Every event names its connection, so that the end of an old connection
/// cannot end the new one.
#[derive(Clone)]
pub enum DeviceEvent {
    Joined(Arc<dyn Device>),
    /// `info` or `tools` answer differently now.
    Changed(Arc<dyn Device>),
    /// The device sent something on its own.
    Said(Arc<dyn Device>, Notice),
    /// This many further messages of the device were dropped, because it sent too many.
    Dropped(Arc<dyn Device>, u64),
    Left(Arc<dyn Device>, LeaveReason),
}

/// How a family reaches the gateway. Never blocks.
pub type Announce = Arc<dyn Fn(DeviceEvent) + Send + Sync>;

/// Something a device sent on its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// For a JSON-RPC notification its method; for another message its type.
    pub topic: String,
    pub body: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaveReason {
    /// The device closed the connection properly.
    Closed,
    /// The connection broke, with what is known of it.
    Broken(String),
    /// The same device connected again.
    Replaced,
    /// The gateway ended it, and why.
    Dismissed(String),
    /// It was never connected: the entry only showed what was wrong, and is not kept.
    NeverConnected,
}

impl fmt::Display for LeaveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeaveReason::Closed => f.write_str("closed"),
            LeaveReason::Broken(what) => write!(f, "connection broken: {what}"),
            LeaveReason::Replaced => f.write_str("replaced by a new connection of the same device"),
            LeaveReason::Dismissed(why) => write!(f, "dismissed: {why}"),
            LeaveReason::NeverConnected => f.write_str("never connected"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_and_plain() {
        assert!(DeviceId::parse("board-ddee01").is_some());
        for wrong in ["", "Board", "a_b", "a b", "ä", "aaaaaaaaaaaaaaaaaaaaaaaaa"] {
            assert_eq!(DeviceId::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_slug_is_an_id_or_empty() {
        assert_eq!(DeviceId::slug("Pixel 8 (Büro)"), "pixel-8-b-ro");
        assert_eq!(DeviceId::slug("__"), "");
        for text in ["aa:bb:cc", "a very long name that goes on and on", "--x--", "日本"] {
            let slug = DeviceId::slug(text);
            assert!(slug.is_empty() || DeviceId::parse(&slug).is_some(), "{text:?} gave {slug:?}");
        }
    }
}
