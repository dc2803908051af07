//! Source manifests: XML text, with the escapes that the packager removes.

use std::sync::Arc;

use super::AndroidManifest;
use super::element::{MAX_DEPTH, XmlAttribute, XmlElement, XmlValue};
use super::{ApkError, MAX_MANIFEST};

const ANDROID: &str = "http://schemas.android.com/apk/res/android";
/// As many as the largest manifest could have in binary form.
const MAX_NODES: u32 = 200_000;

/// The usual target API level. The build sets it; most source manifests do not have it.
const DEFAULT_TARGET: u32 = 35;

/// Reads a source manifest.
pub fn parse_manifest(text: &str) -> Result<AndroidManifest, ApkError> {
    let root = parse(text)?;
    let mut manifest = AndroidManifest::from_element(&root)?;
    if !root.children_named("uses-sdk").any(|sdk| sdk.android("targetSdkVersion").is_some()) {
        manifest.target_sdk = DEFAULT_TARGET;
    }
    Ok(manifest)
}

/// Reads source XML as the phone would see it after packaging.
pub fn parse(text: &str) -> Result<XmlElement, ApkError> {
    if text.len() > MAX_MANIFEST {
        let length = text.len();
        return Err(ApkError::Refused(format!("the manifest has {length} bytes; at most {MAX_MANIFEST} are read")));
    }
    let options = roxmltree::ParsingOptions { nodes_limit: MAX_NODES, ..roxmltree::ParsingOptions::default() };
    let document = roxmltree::Document::parse_with_options(text, options)
        .map_err(|error| ApkError::NotAnApk(format!("the manifest is not XML: {error}")))?;
    let lines = LineStarts::new(text);
    read(document.root_element(), &lines, 0)
}

fn read(node: roxmltree::Node<'_, '_>, lines: &LineStarts, depth: usize) -> Result<XmlElement, ApkError> {
    if depth >= MAX_DEPTH {
        return Err(ApkError::Refused(format!("its elements nest deeper than {MAX_DEPTH}")));
    }
    let attributes = node.attributes().map(|one| XmlAttribute {
        name: one.name().into(),
        android: one.namespace() == Some(ANDROID),
        value: value(one.value()),
    });
    let children = node.children().filter(roxmltree::Node::is_element).map(|child| read(child, lines, depth + 1));
    Ok(XmlElement {
        name: node.tag_name().name().into(),
        attributes: attributes.collect(),
        children: children.collect::<Result<_, _>>()?,
        line: lines.of(node.range().start),
    })
}

fn value(text: &str) -> XmlValue {
    match text.strip_prefix('@').filter(|name| !name.is_empty() && !name.contains(char::is_whitespace)) {
        Some(name) => XmlValue::Named(name.trim_start_matches('+').into()),
        None => XmlValue::Text(unescape(text)),
    }
}

/// Unescapes an attribute like aapt and aapt2: `\n` becomes a line break, and other backslashes are removed.
fn unescape(text: &str) -> Arc<str> {
    if !text.contains('\\') {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match rest.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('u') => {
                let digits: String = rest.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                plain.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain.into()
}

/// Positions of the line breaks.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn new(text: &str) -> LineStarts {
        LineStarts(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    fn of(&self, offset: usize) -> u32 {
        self.0.partition_point(|end| *end < offset) as u32 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_manifest_is_read_as_the_phone_would_see_it() {
        let text = "<manifest xmlns:a='http://schemas.android.com/apk/res/android' package='x.y'>\n\n\
                    <application a:label='@string/name' label='plain' a:value='one\\n\\\"two\\\" \\u00e9 &lt;'/></manifest>";
        let root = parse(text).unwrap();
        let application = &root.children[0];
        assert_eq!((application.line, root.plain("package")), (3, Some(&XmlValue::Text("x.y".into()))));
        assert_eq!(application.android("label"), Some(&XmlValue::Named("string/name".into())));
        assert_eq!(application.plain("label"), Some(&XmlValue::Text("plain".into())));
        assert_eq!(application.android("value"), Some(&XmlValue::Text("one\n\"two\" é <".into())));
    }

    #[test]
    fn invalid_xml_and_deep_nesting_are_refused() {
        assert!(matches!(parse("not XML"), Err(ApkError::NotAnApk(_))));
        assert!(parse("<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>").is_err());
        let deep = "<a>".repeat(100) + &"</a>".repeat(100);
        assert!(matches!(parse(&deep), Err(ApkError::Refused(_))));
        let deeper = "<a>".repeat(300_000);
        assert!(parse(&deeper).is_err());
        assert!(matches!(parse(&" ".repeat(MAX_MANIFEST + 1)), Err(ApkError::Refused(_))));
    }
}
