//! Where a call stands in a distributed trace.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The place of a call in its caller's trace: a `traceparent` of the W3C's Trace Context, as the caller wrote it. It is
/// passed on unchanged, because Sinew adds no span of its own to anybody's trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceParent(Arc<str>);

impl TraceParent {
    /// The name of the header, and of the member of `_meta`.
    pub const KEY: &'static str = "traceparent";

    /// `None` where the text is not a `traceparent` of version 00, the only one there is.
    pub fn parse(text: &str) -> Option<TraceParent> {
        let mut parts = text.split('-');
        let mut part = |length: usize| {
            let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            parts.next().filter(|part| part.len() == length && part.bytes().all(is_hex))
        };
        let is_known = part(2)? == "00";
        let is_set = |id: &str| id.bytes().any(|byte| byte != b'0');
        let has_ids = is_set(part(32)?) && is_set(part(16)?);
        part(2)?;
        (is_known && has_ids && parts.next().is_none()).then(|| TraceParent(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of the whole trace.
    pub fn trace_id(&self) -> &str {
        self.0.split('-').nth(1).unwrap_or_default()
    }
}

impl TryFrom<String> for TraceParent {
    type Error = &'static str;

    fn try_from(text: String) -> Result<TraceParent, &'static str> {
        TraceParent::parse(&text).ok_or("it is not a `traceparent`")
    }
}

impl From<TraceParent> for String {
    fn from(parent: TraceParent) -> String {
        parent.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_recommendation_allows_is_a_trace_parent() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let parent = TraceParent::parse(text).expect("a parent");
        assert_eq!((parent.as_str(), parent.trace_id()), (text, "0af7651916cd43dd8448eb211c80319c"));
        for wrong in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-02",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-0af7651916cd43dd8448eb211c80319\n-b7ad6b7169203331-01",
            " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceParent::parse(wrong), None, "{wrong:?}");
        }
        assert!(serde_json::from_str::<TraceParent>("\"nonsense\"").is_err());
        assert_eq!(serde_json::to_string(&parent).expect("JSON"), format!("\"{text}\""));
    }
}
