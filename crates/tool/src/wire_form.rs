//! The form in which gateways send calls, answers and devices to each other: JSON text of bounded length.
//!
//! What is written is read back exactly as it was. Text that is too long is neither written nor read, and JSON that
//! nests too deeply is refused by the reader.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::call::{Args, Call, Caller, NestedCalls};
use crate::device::{DeviceInfo, Picture};
use crate::error::ToolError;
use crate::outcome::Outcome;

/// A value that gateways send to each other.
pub trait WireForm: Serialize + DeserializeOwned {
    /// The longest text of such a value.
    const MAX_BYTES: usize;

    fn to_text(&self) -> Result<String, WireFormError> {
        let text = serde_json::to_string(self).map_err(|error| WireFormError::Json(error.to_string()))?;
        within::<Self>(text.len()).map(|()| text)
    }

    fn from_text(text: &str) -> Result<Self, WireFormError> {
        within::<Self>(text.len())?;
        serde_json::from_str(text).map_err(|error| WireFormError::Json(error.to_string()))
    }
}

fn within<T: WireForm>(length: usize) -> Result<(), WireFormError> {
    match length <= T::MAX_BYTES {
        true => Ok(()),
        false => Err(WireFormError::TooLong { length, max: T::MAX_BYTES }),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireFormError {
    #[error("the text has {length} bytes; at most {max} are allowed")]
    TooLong { length: usize, max: usize },
    #[error("the text does not have the expected form: {0}")]
    Json(String),
}

impl WireForm for CallForm {
    /// Arguments may hold a file of some megabytes.
    const MAX_BYTES: usize = 16 << 20;
}

impl WireForm for Outcome {
    /// More than a gateway passes on from a device by default (16 MiB), with room for escapes.
    const MAX_BYTES: usize = 24 << 20;
}

impl WireForm for Picture {
    /// As an outcome, which may have pictures too.
    const MAX_BYTES: usize = 24 << 20;
}

impl WireForm for DeviceInfo {
    /// Names, instructions and attributes of a device are bounded below this.
    const MAX_BYTES: usize = 256 << 10;
}

impl WireForm for ToolError {
    /// Message and details of an error are bounded below this: the details may have the report of a run, with room for
    /// escapes.
    const MAX_BYTES: usize = 24 << 20;
}

/// A call without the way back to its caller, which the receiver provides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallForm {
    pub tool: String,
    pub args: Args,
    pub budget: Duration,
    pub from: String,
}

impl CallForm {
    pub fn of(call: &Call) -> CallForm {
        CallForm { tool: call.tool.clone(), args: call.args.clone(), budget: call.budget, from: call.from.clone() }
    }

    pub fn into_call(self, caller: Arc<dyn Caller>, nested: Arc<dyn NestedCalls>) -> Call {
        let CallForm { tool, args, budget, from } = self;
        Call { tool, args, budget, from, caller, nested }
    }
}

/// Keeps a value that is `null` apart from one that is absent.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

pub(crate) mod base64 {
    use std::sync::Arc;

    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &Arc<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[u8]>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Arc::from).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;
    use crate::outcome::{ResourceBody, ResourceLink};
    use crate::{
        Admission, Content, DeviceKey, ErrorKind, Family, FamilyName, Reach, Silent, Status, TextTrust, TokenId,
    };

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::Array),
                vec((any::<String>(), inner), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    fn args() -> impl Strategy<Value = Args> {
        vec((any::<String>(), value()), 0..4).prop_map(Map::from_iter)
    }

    fn content() -> impl Strategy<Value = Content> {
        let text = any::<String>;
        prop_oneof![
            text().prop_map(Content::Text),
            (text(), text(), option::of(any::<(u32, u32)>())).prop_map(|(data, mime_type, size)| Content::Image {
                data,
                mime_type,
                size
            }),
            (text(), text()).prop_map(|(data, mime_type)| Content::Audio { data, mime_type }),
            (text(), option::of(text()), text(), any::<bool>()).prop_map(|(uri, mime_type, body, is_text)| {
                let body = if is_text { ResourceBody::Text(body) } else { ResourceBody::Blob(body) };
                Content::Resource { uri, mime_type, body }
            }),
            (text(), text(), option::of(text()), option::of(text()), option::of(any::<u64>())).prop_map(
                |(uri, name, title, mime_type, size)| {
                    let description = title.clone();
                    Content::link(ResourceLink { uri, name, title, description, mime_type, size })
                }
            ),
        ]
    }

    fn admission() -> impl Strategy<Value = Admission> {
        prop_oneof![
            Just(Admission::OwnToken),
            "[!-~]{1,64}".prop_map(|id| Admission::DeviceToken(TokenId::parse(&id).unwrap())),
            "\\PC{0,60}".prop_map(|name| Admission::Broker(name.into())),
            Just(Admission::Local),
            "\\PC{0,60}".prop_map(|name| Admission::Person(name.into())),
            Just(Admission::Configured),
        ]
    }

    fn info() -> impl Strategy<Value = DeviceInfo> {
        let family =
            ("[a-z][a-z0-9-]{0,23}", any::<bool>(), any::<bool>()).prop_map(|(name, quoted, several)| Family {
                name: FamilyName::parse(&name).unwrap(),
                prefers_ready: quoted,
                shows_others: several,
                passes_text_on: quoted || several,
                passes_on: quoted != several,
                stays_with_user: quoted && several,
                text_trust: if quoted { TextTrust::Quoted } else { TextTrust::Attributed },
                reach: if several { Reach::SeveralGateways } else { Reach::OneLink },
            });
        let status = option::of(any::<(String, String)>()).prop_map(|limited| match limited {
            Some((state, remedy)) => Status::Limited { state, remedy },
            None => Status::Ready,
        });
        let texts = (any::<String>(), any::<String>(), any::<String>(), any::<String>());
        (texts, family, admission(), status, option::of(any::<String>()), args()).prop_map(
            |((key, suggested_id, name, version), family, admission, status, instructions, attributes)| DeviceInfo {
                key: DeviceKey(key),
                suggested_id,
                family,
                admission,
                name,
                version,
                status,
                instructions,
                labels: Vec::new(),
                attributes: attributes.into_iter().collect(),
            },
        )
    }

    fn comes_back<T: WireForm + PartialEq + std::fmt::Debug>(value: &T) {
        assert_eq!(T::from_text(&value.to_text().unwrap()).as_ref(), Ok(value));
    }

    proptest! {
        #[test]
        fn calls_come_back_as_they_were(tool: String, args in args(), budget: Duration, from: String) {
            let form = CallForm { tool, args, budget, from };
            comes_back(&form);
            let call = form.clone().into_call(Arc::new(Silent), Arc::new(Silent));
            assert_eq!(CallForm::of(&call), form);
        }

        #[test]
        fn outcomes_come_back_as_they_were(
            content in vec(content(), 0..4), structured in option::of(value()), meta in args()
        ) {
            comes_back(&Outcome { content, structured, meta });
        }

        #[test]
        fn devices_come_back_as_they_were(info in info()) {
            comes_back(&info);
        }

        #[test]
        fn pictures_and_errors_come_back_as_they_were(
            name: String, mime: String, bytes: Vec<u8>, row in 0..crate::error::TABLE.len(), message: String, details in value(),
            source in option::of(value().prop_filter("a source is not null", |source| !source.is_null()))
        ) {
            comes_back(&Picture { name: name.into(), mime_type: mime.into(), bytes: bytes.into() });
            comes_back(&ToolError { kind: crate::error::TABLE[row].kind, message, details, source: source.map(Box::new) });
        }

        #[test]
        fn no_text_makes_a_reader_stumble(text: String, value in value()) {
            for text in [text, value.to_string()] {
                let _ = (CallForm::from_text(&text), Outcome::from_text(&text), Picture::from_text(&text));
                let _ = (DeviceInfo::from_text(&text), ToolError::from_text(&text));
            }
        }
    }

    #[test]
    fn what_is_too_long_is_neither_written_nor_read() {
        let long = ToolError::new(ErrorKind::Busy, "x".repeat(ToolError::MAX_BYTES));
        assert!(matches!(long.to_text(), Err(WireFormError::TooLong { max: ToolError::MAX_BYTES, .. })));
        let text = format!("{}{}", json!(ToolError::new(ErrorKind::Busy, "x")), " ".repeat(ToolError::MAX_BYTES));
        assert!(matches!(ToolError::from_text(&text), Err(WireFormError::TooLong { .. })));
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let deep = format!(r#"{{"content":[],"structured":{deep}}}"#);
        assert!(matches!(Outcome::from_text(&deep), Err(WireFormError::Json(_))));
    }
}
