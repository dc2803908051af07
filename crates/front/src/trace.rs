//! The trace that a client says a call belongs to.

use http::HeaderMap;
use serde_json::Value;
use sinew_tool::TraceParent;

/// From `_meta`, or else from the header. What is not a `traceparent` counts as none.
pub(crate) fn parent(meta: Option<&Value>, headers: Option<&HeaderMap>) -> Option<TraceParent> {
    meta.and_then(Value::as_str).and_then(TraceParent::parse).or_else(|| of_headers(headers?))
}

pub(crate) fn of_headers(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all(TraceParent::KEY).iter();
    let parent = TraceParent::parse(values.next()?.to_str().ok()?)?;
    values.next().is_none().then_some(parent)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    const ONE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const OTHER: &str = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

    #[test]
    fn what_the_message_says_wins_over_the_header() {
        let mut headers = HeaderMap::new();
        headers.insert(TraceParent::KEY, HeaderValue::from_static(OTHER));
        let parent = |meta: &Value, headers: &HeaderMap| {
            parent(Some(meta), Some(headers)).map(|parent| parent.as_str().to_owned())
        };
        assert_eq!(parent(&json!(ONE), &headers).as_deref(), Some(ONE));
        for other in [json!(null), json!("nonsense"), json!(5)] {
            assert_eq!(parent(&other, &headers).as_deref(), Some(OTHER), "{other}");
        }
        assert_eq!(parent(&json!(null), &HeaderMap::new()), None);
        headers.append(TraceParent::KEY, HeaderValue::from_static(ONE));
        assert_eq!(parent(&json!(null), &headers), None, "two headers say nothing");
    }
}
