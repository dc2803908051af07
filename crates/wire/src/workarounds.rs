//! Workarounds for what real boards do differently from the protocol document, in one place.
//!
//! Seen in the firmware itself: errors without a code whose text is not escaped, so that a quote in it
//! breaks the JSON; pictures as a JSON text inside a JSON text, with a NUL after the base64; JSON in
//! binary frames of framing version 2. Seen in other stacks: ids echoed as text, `"true"` for `true`,
//! results without `content`. All of it is normalised here; the rest of the host knows only the document.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sinew_tool::text::{clean_line, clip};
use sinew_tool::{Content, ErrorKind, Outcome, ToolError};

use crate::raw::{is_word, items, pick, read, string};

/// A tool of firmware that never answers, because the board restarts.
pub(crate) const REBOOT: &str = "self.reboot";

/// An error as the board reports it.
#[derive(Debug, PartialEq)]
pub struct Fault {
    pub code: Option<i64>,
    pub message: String,
    pub data: Value,
}

/// A board's reason inside an error, cut for models.
fn reason(text: &str) -> String {
    if text.trim().is_empty() { "it gives no reason".to_owned() } else { clean_line(text.trim(), 2000) }
}

/// `true`, and also `"true"`, which some boards send.
pub(crate) fn is_true(value: &Value) -> bool {
    value.as_bool().unwrap_or_else(|| value == "true")
}

/// An id that was echoed as a number, a number with a zero fraction, or a string of digits.
pub(crate) fn read_id(raw: &str) -> Option<i64> {
    let digits = raw.trim().trim_matches('"');
    digits.parse().ok().or_else(|| {
        let (whole, fraction) = digits.split_once('.')?;
        fraction.bytes().all(|byte| byte == b'0').then(|| whole.parse().ok())?
    })
}

/// The JSON in a binary frame of framing version 2: a header of 16 bytes (version, type, reserved, time,
/// size, in network order), then the text. Everything else that is binary is sound.
pub fn binary_json(bytes: &[u8]) -> Option<&[u8]> {
    let (header, body) = bytes.split_at_checked(16)?;
    let size = u32::from_be_bytes(header[12..].try_into().ok()?);
    let is_json = header.starts_with(&[0, 2, 0, 1]) && usize::try_from(size) == Ok(body.len());
    is_json.then_some(body)
}

/// A raw value as a tree; null where it nests too deeply.
pub(crate) fn tree(raw: &RawValue) -> Value {
    read(raw.get()).unwrap_or_default()
}

// ---- errors ----

/// JSON-RPC: the request itself was not accepted.
const INVALID_REQUEST: i64 = -32600;

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Fault {
        Fault { code: None, message: message.into(), data: Value::Null }
    }

    /// Reads an `error` member of any shape.
    pub fn read(raw: &RawValue) -> Fault {
        let Ok([code, message, data]) = pick(raw.get(), ["code", "message", "data"]) else {
            return Fault::new(string(raw).unwrap_or_else(|| clip(raw.get())));
        };
        Fault {
            code: code.and_then(|code| read_id(code.get())),
            message: message.and_then(string).unwrap_or_else(|| clip(raw.get())),
            data: data.filter(|data| data.get().len() <= TREE_BYTES).map(tree).unwrap_or_default(),
        }
    }

    /// The board does not know a tool that it listed, so its list has changed.
    pub fn is_unknown_tool(&self) -> bool {
        self.message.starts_with("Unknown tool")
    }

    /// The board saw the id of the request before: on another connection, or in another copy of the same message. Espressif's
    /// engine remembers its last 64. The code is asked for too: a tool that fails with such words may have acted.
    pub fn is_seen_id(&self) -> bool {
        self.code == Some(INVALID_REQUEST) && self.message.to_ascii_lowercase().contains("duplicate request id")
    }

    /// The firmware has no codes, only these sentences.
    fn kind(&self) -> ErrorKind {
        const ABOUT_ARGUMENTS: [&str; 4] =
            ["Missing valid argument", "Value is below minimum", "Value exceeds maximum", "Invalid arguments"];
        if self.is_unknown_tool() {
            ErrorKind::ActionFailed
        } else if self.code == Some(-32602) || ABOUT_ARGUMENTS.iter().any(|start| self.message.starts_with(start)) {
            ErrorKind::InvalidArguments
        } else {
            ErrorKind::ActionFailed
        }
    }

    /// The error of a call; `noun` is what the device is called in it.
    pub fn into_error(self, tool: &str, noun: &str) -> ToolError {
        if let Some(standard) = ToolError::from_object(&self.data) {
            return standard;
        }
        let said = reason(&self.message);
        let message = match self.kind() {
            ErrorKind::InvalidArguments => format!("{noun} refuses the arguments of `{tool}`: {said}"),
            _ if self.is_unknown_tool() => format!(
                "{noun} no longer knows `{tool}` although it listed it ({said}); its tools are being listed again, look at the new list"
            ),
            _ => format!("{noun} could not do `{tool}`: {said}"),
        };
        let mut details = Map::new();
        if let Some(code) = self.code {
            details.insert("code".to_owned(), json!(code));
        }
        if !self.data.is_null() {
            details.insert("data".to_owned(), self.data.clone());
        }
        let details = if details.is_empty() { Value::Null } else { Value::Object(details) };
        ToolError::new(self.kind(), message).with_details(details)
    }
}

/// Reads an error answer that is not JSON because its text was not escaped:
/// `{"jsonrpc":"2.0","id":3,"error":{"message":"Unknown "x" tool"}}`, alone or in its envelope.
pub(crate) fn repair(text: &str) -> Option<(i64, Fault)> {
    let id = find_id(text)?;
    let error = text.split_once("\"error\"")?.1;
    let message = after_colon(error.split_once("\"message\"")?.1)?.strip_prefix('"')?;
    // The firmware writes the message last, so it ends at the quote before the closing braces.
    let message = message.trim_end_matches(['}', ' ', '\n', '\r', '\t']).strip_suffix('"')?;
    Some((id, Fault::new(message)))
}

/// The id of an answer that cannot be read as a whole. The firmware writes it near the beginning.
pub(crate) fn find_id(text: &str) -> Option<i64> {
    let mut end = text.len().min(512);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let head = &text[..end];
    // An id elsewhere, for example among the parameters of a notification, is not one of ours.
    let is_answer = head.contains("\"result\"") || head.contains("\"error\"");
    if !is_answer || head.contains("\"params\"") {
        return None;
    }
    let rest = after_colon(head.split_once("\"id\"")?.1)?;
    let digits = rest.split_once([',', '}']).map_or(rest, |(digits, _)| digits);
    read_id(digits)
}

fn after_colon(text: &str) -> Option<&str> {
    text.trim_start().strip_prefix(':').map(str::trim_start)
}

// ---- answers ----

/// Items of one answer; a board has one.
const ITEMS: usize = 64;
/// JSON in an answer is made into a tree up to this size; beyond, it stays text.
const TREE_BYTES: usize = 256 << 10;

/// Reads the `result` of a `tools/call` of any shape; `noun` is what the device is called in errors.
pub fn read_outcome(raw: &RawValue, tool: &str, noun: &str) -> Result<Outcome, ToolError> {
    let text = raw.get();
    let names = ["content", "isError", "structuredContent", "_meta"];
    let [content, is_error, structured, meta] = match pick(text, names) {
        Ok([None, None, None, _]) => return Ok(Outcome { structured: object_in(text), ..Outcome::text(text) }),
        Ok(members) => members,
        // Not an object, so it is text, a number, a boolean or an array.
        Err(_) => return Ok(bare_outcome(raw)),
    };
    let mut content = match content {
        None => Vec::new(),
        Some(content) => match items(content.get(), ITEMS) {
            Ok(items) => items.into_iter().map(|item| read_item(item, tool, noun)).collect::<Result<_, _>>()?,
            Err(_) => vec![read_item(content, tool, noun)?],
        },
    };
    let object = structured.and_then(|structured| object_in(structured.get()));
    // Most clients read the content alone, and only an object can be passed on beside it.
    if let Some(raw) = structured.filter(|raw| content.is_empty() || (object.is_none() && !is_said(raw, &content))) {
        content.push(Content::Text(raw.get().to_owned()));
    }
    let structured = object.or_else(|| match content.as_slice() {
        [Content::Text(text)] => object_in(text),
        _ => None,
    });
    let meta = match meta.and_then(|meta| object_in(meta.get())) {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    };
    let outcome = Outcome { content, structured, meta };
    let failed = is_error.is_some_and(|flag| flag.get() == "true" || is_word(flag, "true"));
    if failed { Err(failure(outcome, tool, noun)) } else { Ok(outcome) }
}

/// Whether a text of the content is the same JSON.
fn is_said(raw: &RawValue, content: &[Content]) -> bool {
    let value = (raw.get().len() <= TREE_BYTES).then(|| tree(raw));
    content.iter().any(|item| match item {
        Content::Text(text) if text.len() > TREE_BYTES => text.trim() == raw.get(),
        Content::Text(text) => read::<Value>(text).ok().is_some_and(|said| Some(said) == value),
        _ => false,
    })
}

fn bare_outcome(raw: &RawValue) -> Outcome {
    match string(raw) {
        Some(text) => Outcome { structured: object_in(&text), ..Outcome::text(text) },
        None if raw.get() == "null" => Outcome::default(),
        None => Outcome::text(raw.get()),
    }
}

/// A result with `isError`.
fn failure(outcome: Outcome, tool: &str, noun: &str) -> ToolError {
    if let Some(standard) = outcome.structured.as_ref().and_then(ToolError::from_object) {
        return standard;
    }
    let said = reason(&outcome.joined_text());
    let error = ToolError::new(ErrorKind::ActionFailed, format!("{noun} could not do `{tool}`: {said}"));
    error.with_details(outcome.structured.unwrap_or_default())
}

/// The JSON object in a text, looked for only where the text can be one.
fn object_in(text: &str) -> Option<Value> {
    let trimmed = text.trim();
    let candidate = trimmed.starts_with('{') && trimmed.ends_with('}') && trimmed.len() <= TREE_BYTES;
    candidate.then(|| read(trimmed).ok())?
}

fn read_item(item: &RawValue, tool: &str, noun: &str) -> Result<Content, ToolError> {
    let as_it_is = |raw: &RawValue| string(raw).unwrap_or_else(|| raw.get().to_owned());
    let names = ["type", "text", "image", "data", "mimeType", "width", "height"];
    let Ok([Some(kind), text, image, picture @ ..]) = pick(item.get(), names) else {
        return Ok(Content::Text(as_it_is(item)));
    };
    if is_word(kind, "text") {
        return Ok(Content::Text(text.map(as_it_is).unwrap_or_default()));
    }
    if is_word(kind, "image") {
        let picture = image.map_or_else(|| read_picture(picture), read_nested_picture);
        return picture.ok_or_else(|| {
            let message =
                format!("{noun} answered `{tool}`, but its picture is not base64 in `data`; fix its firmware");
            ToolError::new(ErrorKind::BadAnswer, message)
        });
    }
    // Unknown items are passed on as text.
    let known = object_in(item.get()).and_then(|item| Content::from_json(&item));
    Ok(known.unwrap_or_else(|| Content::Text(as_it_is(item))))
}

/// A picture as the firmware sends it: the whole item once more, as a text in `image`.
fn read_nested_picture(image: &RawValue) -> Option<Content> {
    let nested = string(image).unwrap_or_else(|| image.get().to_owned());
    // Its base64 counts the terminating NUL as part of the text.
    let nested = if nested.contains('\0') { nested.replace('\0', "") } else { nested };
    match pick(&nested, ["data", "mimeType", "width", "height"]) {
        Ok(picture) => read_picture(picture),
        Err(_) => to_picture(nested, None, None),
    }
}

fn read_picture([data, mime_type, width, height]: [Option<&RawValue>; 4]) -> Option<Content> {
    let pixels = |raw: Option<&RawValue>| raw.and_then(|raw| raw.get().parse().ok());
    to_picture(string(data?)?, mime_type.and_then(string), pixels(width).zip(pixels(height)))
}

fn to_picture(data: String, mime_type: Option<String>, size: Option<(u32, u32)>) -> Option<Content> {
    // JPEG is the only format the firmware sends.
    let mime_type = mime_type.unwrap_or_else(|| "image/jpeg".to_owned());
    if !data.is_empty() && data.bytes().all(is_base64) {
        return Some(Content::Image { data, mime_type, size });
    }
    let cleaned = data.replace(is_filler, "");
    (!cleaned.is_empty() && cleaned.bytes().all(is_base64)).then_some(Content::Image { data: cleaned, mime_type, size })
}

fn is_filler(character: char) -> bool {
    character == '\0' || character.is_ascii_whitespace()
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(result: Value) -> Result<Outcome, ToolError> {
        read_outcome(&serde_json::value::to_raw_value(&result).unwrap(), "t", "the board")
    }

    fn fault(error: Value) -> ToolError {
        Fault::read(&serde_json::value::to_raw_value(&error).unwrap()).into_error("t", "the board")
    }

    #[test]
    fn half_a_surrogate_pair_in_a_result_is_replaced() {
        let read = |text: &str| {
            read_outcome(&RawValue::from_string(text.to_owned()).unwrap(), "t", "the board").unwrap().joined_text()
        };
        assert_eq!(read(r#"{"content":[{"type":"text","text":"cut \ud83d"}]}"#), "cut \u{fffd}");
        assert_eq!(read(r#""cut \ude00""#), "cut \u{fffd}");
        let nested = r#"{"content":[{"type":"text","text":"{\"a\":\"\\ud83d\"}"}]}"#;
        let outcome = read_outcome(&RawValue::from_string(nested.to_owned()).unwrap(), "t", "the board").unwrap();
        assert_eq!(outcome.structured, Some(json!({"a": "\u{fffd}"})));
    }

    #[test]
    fn structured_content_is_given_as_text_too() {
        let read = |result: Value| outcome(result).map(|outcome| (outcome.joined_text(), outcome.structured)).unwrap();
        let object = json!({"a": 1});
        let both = (r#"{"a":1}"#.to_owned(), Some(object.clone()));
        assert_eq!(read(json!({"structuredContent": object})), both);
        assert_eq!(read(json!({"content": [], "structuredContent": object})), both);
        assert_eq!(read(json!({"content": [], "structuredContent": [1, 2]})), ("[1,2]".to_owned(), None));
        assert_eq!(read(json!({"structuredContent": "on"})), ("\"on\"".to_owned(), None));
        let said = json!([{"type": "text", "text": "[1, 2]"}]);
        assert_eq!(read(json!({"content": said, "structuredContent": [1, 2]})), ("[1, 2]".to_owned(), None));
        let told = json!([{"type": "text", "text": "two"}]);
        assert_eq!(read(json!({"content": told, "structuredContent": [1, 2]})), ("two\n[1,2]".to_owned(), None));
        assert_eq!(read(json!({"content": told, "structuredContent": object})), ("two".to_owned(), Some(object)));
    }

    #[test]
    fn unescaped_error_text_is_read_nevertheless() {
        let check = |text: &str, id: i64, message: &str| {
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
            assert_eq!(repair(text), Some((id, Fault::new(message))), "{text}");
        };
        check(r#"{"jsonrpc":"2.0","id":3,"error":{"message":"Unknown "x" tool"}}"#, 3, r#"Unknown "x" tool"#);
        check(
            r#"{"session_id":"","type":"mcp","payload":{"jsonrpc":"2.0","id":7,"error":{"message":"a "b""}}}"#,
            7,
            r#"a "b""#,
        );
        check("{\"id\": 1, \"error\" : {\"message\" : \"line\nbreak {x}\"} }\n", 1, "line\nbreak {x}");
    }

    #[test]
    fn what_is_no_broken_error_is_not_repaired() {
        for text in [
            "",
            "{",
            r#"{"id":3,"result":{"content":[{"te"#,
            r#"{"id":"x","error":{"message":"a"}}"#,
            r#"{"id":3,"error":{"message":"cut off"#,
            r#"{"id":3,"error":{"message""#,
            r#""error""id""message""#,
        ] {
            assert_eq!(repair(text), None, "{text}");
        }
    }

    #[test]
    fn the_id_of_a_broken_message_is_found_near_its_beginning() {
        assert_eq!(find_id(r#"{"session_id":"9","payload":{"jsonrpc":"2.0","id" : 12,"result":{"#), Some(12));
        assert_eq!(find_id(r#"{"error":{"id":12"#), Some(12));
        assert_eq!(find_id(r#"{"method":"x","params":{"id":12,"result":"#), None);
        assert_eq!(find_id(r#"{"result":5,"id":"#), None);
        assert_eq!(find_id(&"ä".repeat(400)), None);
    }

    #[test]
    fn ids_come_back_in_several_forms() {
        let ids = ["3", "3.0", "\"3\"", "-1", "3.5", "x", "{}", "99999999999999999999"].map(read_id);
        assert_eq!(ids, [Some(3), Some(3), Some(3), Some(-1), None, None, None, None]);
    }

    #[test]
    fn firmware_sentences_become_kinds() {
        let kind = |message: &str| fault(json!({ "message": message })).kind;
        assert_eq!(kind("Missing valid argument: volume"), ErrorKind::InvalidArguments);
        assert_eq!(kind("Value is below minimum allowed: 0"), ErrorKind::InvalidArguments);
        assert_eq!(kind("Value exceeds maximum allowed: 100"), ErrorKind::InvalidArguments);
        assert_eq!(kind("Unknown tool: self.x"), ErrorKind::ActionFailed);
        assert_eq!(kind("Failed to capture photo"), ErrorKind::ActionFailed);
        assert_eq!(fault(json!({"code": -32602, "message": "no"})).kind, ErrorKind::InvalidArguments);
    }

    #[test]
    fn an_error_of_any_shape_has_a_message() {
        for error in [json!("why"), json!({"message": "why"}), json!({"error": "why"}), json!(["why"])] {
            let error = fault(error);
            assert_eq!(error.kind, ErrorKind::ActionFailed);
            assert!(error.message.contains("why") && error.message.contains("`t`"), "{error}");
        }
        assert_eq!(fault(json!({"code": 5, "message": "m", "data": [1]})).details, json!({"code": 5, "data": [1]}));
        let standard = ToolError::new(ErrorKind::Timeout, "too slow");
        assert_eq!(fault(json!({"message": "m", "data": standard.to_object()})), standard);
    }

    #[test]
    fn a_double_encoded_picture_is_a_picture() {
        let inner = json!({"type": "image", "mimeType": "image/jpeg", "data": "/9j/"}).to_string();
        let expected = Content::Image { data: "/9j/".into(), mime_type: "image/jpeg".into(), size: None };
        for image in [
            json!({"type": "image", "image": inner}),
            json!({"type": "image", "image": inner.replace("/9j/", "/9j/\0")}),
            json!({"type": "image", "image": {"data": "/9j/"}}),
            json!({"type": "image", "image": "/9j/\n"}),
            json!({"type": "image", "data": "/9j/\0", "mimeType": "image/jpeg"}),
            json!({"type": "image", "data": "/9j/"}),
        ] {
            assert_eq!(
                outcome(json!({"content": [image]})).map(|it| it.content),
                Ok(vec![expected.clone()]),
                "{image}"
            );
        }
        let sized = outcome(json!({"content": [{"type": "image", "data": "AA==", "width": 3, "height": 2}]}));
        assert!(matches!(sized.unwrap().content[0], Content::Image { size: Some((3, 2)), .. }));
    }

    #[test]
    fn a_picture_that_is_none_is_a_bad_answer() {
        for image in
            [json!({"type": "image"}), json!({"type": "image", "image": "<svg>"}), json!({"type": "image", "data": 5})]
        {
            assert_eq!(outcome(json!({"content": [image]})).map_err(|error| error.kind), Err(ErrorKind::BadAnswer));
        }
    }

    #[test]
    fn only_an_object_in_the_text_becomes_structured() {
        let structured = |text: &str| outcome(json!({"content": [{"type": "text", "text": text}]})).unwrap().structured;
        assert_eq!(structured(r#" {"volume": 50} "#), Some(json!({"volume": 50})));
        for text in ["true", "5", "[1]", "{not json}", "", "{\"a\":1} and more"] {
            assert_eq!(structured(text), None, "{text}");
        }
    }

    #[test]
    fn results_of_other_shapes_are_outcomes_too() {
        assert_eq!(outcome(json!("done")), Ok(Outcome::text("done")));
        assert_eq!(outcome(json!(true)), Ok(Outcome::text("true")));
        assert_eq!(outcome(json!(null)), Ok(Outcome::default()));
        assert_eq!(outcome(json!({"a": 1})), Ok(Outcome::json(json!({"a": 1}))));
        assert_eq!(outcome(json!({"content": "done"})), Ok(Outcome::text("done")));
        assert_eq!(outcome(json!({"content": {"type": "text", "text": 5}})), Ok(Outcome::text("5")));
        let unknown = json!({"type": "hologram"});
        assert_eq!(outcome(json!({"content": [unknown]})).map(|it| it.joined_text()), Ok(unknown.to_string()));
        assert_eq!(outcome(json!({"content": [true, ["a"]]})).map(|it| it.joined_text()), Ok("true\n[\"a\"]".into()));
        let audio = json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"});
        assert!(matches!(outcome(json!({"content": [audio]})).unwrap().content[0], Content::Audio { .. }));
        let described = outcome(json!({"content": [], "structuredContent": {"a": 1}, "_meta": {"b": 2}})).unwrap();
        assert_eq!((described.structured, described.meta.len()), (Some(json!({"a": 1})), 1));
    }

    #[test]
    fn a_result_that_says_error_is_an_error() {
        let failed = outcome(json!({"content": [{"type": "text", "text": "lens cap"}], "isError": true})).unwrap_err();
        assert_eq!(failed.kind, ErrorKind::ActionFailed);
        assert!(failed.message.contains("lens cap"));
        assert!(outcome(json!({"isError": "true"})).is_err());
        assert!(outcome(json!({"content": [], "isError": false})).is_ok());
        let standard = ToolError::new(ErrorKind::PermissionDenied, "not now");
        let text = standard.to_object().to_string();
        assert_eq!(outcome(json!({"content": [{"type": "text", "text": text}], "isError": true})), Err(standard));
    }

    #[test]
    fn json_in_a_binary_frame_is_told_from_sound() {
        let frame = |head: [u8; 4], size: u32| [&head[..], &[0; 8], &size.to_be_bytes(), b"{}"].concat();
        assert_eq!(binary_json(&frame([0, 2, 0, 1], 2)), Some(&b"{}"[..]));
        assert_eq!(binary_json(&frame([0, 2, 0, 0], 2)), None);
        assert_eq!(binary_json(&frame([0, 2, 0, 1], 3)), None);
        assert_eq!(binary_json(b"opus"), None);
    }

    #[test]
    fn words_of_a_board_are_clipped_to_one_short_line() {
        assert_eq!(clip("a\nb\u{1b}"), "a b");
    }
}
