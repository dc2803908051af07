//! Arbitrary templates, values and answers of gadgets. A value never leaves its place.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use sinew_things::answer;
use sinew_things::template::{BodyTemplate, TextPlace, TextTemplate};

fuzz_target!(|input: (&str, &str, &[u8])| {
    let (template, value, bytes) = input;
    let _ = answer::read(bytes, None);
    let _ = answer::read(bytes, Some(template));
    let args = json!({"x": value}).as_object().cloned().unwrap_or_default();
    if let Ok(body) = BodyTemplate::parse(template)
        && let Ok(filled) = body.fill(&args)
        && matches!(body, BodyTemplate::Json(_))
    {
        assert!(serde_json::from_str::<Value>(&filled).is_ok(), "{filled}");
    }
    let fixed = BodyTemplate::parse(r#"{"a":"${x}","b":[${x}]}"#).expect("valid").fill(&args);
    if let Ok(filled) = fixed {
        assert_eq!(serde_json::from_str::<Value>(&filled).expect("JSON"), json!({"a": value, "b": [value]}));
    }
    for place in [
        TextPlace::Topic,
        TextPlace::Url,
        TextPlace::Header,
        TextPlace::Text,
        TextPlace::JsonText,
        TextPlace::Form,
        TextPlace::Markup,
    ] {
        if let Ok(template) = TextTemplate::parse(template) {
            let _ = template.fill(&args, place);
        }
    }
    let embedded = BodyTemplate::parse(r#"SET {"a":"${x}"}"#).expect("valid").fill(&args);
    if let Ok(filled) = embedded {
        assert_eq!(serde_json::from_str::<Value>(&filled[4..]).expect("JSON"), json!({"a": value}));
    }
    if let Ok(topic) = TextTemplate::parse("a/${x}/b").expect("valid").fill(&args, TextPlace::Topic) {
        assert_eq!(topic.split('/').count(), 3);
    }
    if let Ok(url) = TextTemplate::parse("/a/${x}?q=${x}").expect("valid").fill(&args, TextPlace::Url) {
        assert_eq!(url.matches(['/', '?', '&', '#', ' ']).count(), 3);
    }
});
