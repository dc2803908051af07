//! The result of a call.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Where a result's `_meta` says which device it comes from. The gateway sets it; what a device puts there is replaced.
pub const SOURCE_KEY: &str = "sinew/source";

/// The answer of a device that ran a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub content: Vec<Content>,
    /// The answer as JSON, where the tool gives one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::wire_form::present")]
    pub structured: Option<Value>,
    /// Further members for the result's `_meta`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
}

/// One item of an answer. Binary data stays in base64, as every endpoint sends it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    Text(String),
    Image {
        data: String,
        mime_type: String,
        size: Option<(u32, u32)>,
    },
    Audio {
        data: String,
        mime_type: String,
    },
    Resource {
        uri: String,
        mime_type: Option<String>,
        body: ResourceBody,
    },
    /// Boxed, because it is rare and larger than the others.
    Link(Box<ResourceLink>),
}

/// A resource that the client may read by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceLink {
    pub uri: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub mime_type: Option<String>,
    /// In bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceBody {
    Text(String),
    Blob(String),
}

/// Whether a source is that of text which anybody may have written.
pub(crate) fn is_third_party(source: Option<&Value>) -> bool {
    source.and_then(|source| source.get("third_party")) == Some(&Value::Bool(true))
}

impl Outcome {
    /// Whether the gateway marked it as holding text that anybody may have written, such as a screen or an app's answer.
    pub fn is_third_party(&self) -> bool {
        is_third_party(self.meta.get(SOURCE_KEY))
    }

    pub fn text(text: impl Into<String>) -> Outcome {
        Outcome { content: vec![Content::Text(text.into())], ..Outcome::default() }
    }

    /// JSON for programs, and the same as text for everyone else.
    pub fn json(value: Value) -> Outcome {
        Outcome { content: vec![Content::Text(value.to_string())], structured: Some(value), meta: Map::new() }
    }

    pub fn with(mut self, content: Content) -> Outcome {
        self.content.push(content);
        self
    }

    /// All text items, joined by newlines.
    pub fn joined_text(&self) -> String {
        let texts = self.content.iter().filter_map(|item| match item {
            Content::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl Content {
    pub fn image(bytes: &[u8], mime_type: impl Into<String>, size: Option<(u32, u32)>) -> Content {
        Content::Image { data: STANDARD.encode(bytes), mime_type: mime_type.into(), size }
    }

    pub fn link(link: ResourceLink) -> Content {
        Content::Link(Box::new(link))
    }

    /// The bytes of an image, audio item or blob; `None` for text and for data that is not base64.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Content::Image { data, .. } | Content::Audio { data, .. } => STANDARD.decode(data).ok(),
            Content::Resource { body: ResourceBody::Blob(data), .. } => STANDARD.decode(data).ok(),
            _ => None,
        }
    }

    /// The item in MCP's form. An image of known size also says its width and height, as the remote-control reference does.
    pub fn to_json(&self) -> Value {
        match self {
            Content::Text(text) => json!({"type": "text", "text": text}),
            Content::Image { data, mime_type, size } => {
                let mut item = json!({"type": "image", "data": data, "mimeType": mime_type});
                if let Some((width, height)) = size {
                    item["width"] = json!(width);
                    item["height"] = json!(height);
                }
                item
            }
            Content::Audio { data, mime_type } => json!({"type": "audio", "data": data, "mimeType": mime_type}),
            Content::Resource { uri, mime_type, body } => {
                let mut resource = json!({"uri": uri});
                if let Some(mime_type) = mime_type {
                    resource["mimeType"] = json!(mime_type);
                }
                match body {
                    ResourceBody::Text(text) => resource["text"] = json!(text),
                    ResourceBody::Blob(blob) => resource["blob"] = json!(blob),
                }
                json!({"type": "resource", "resource": resource})
            }
            Content::Link(resource) => {
                let mut link = json!({"type": "resource_link", "uri": resource.uri, "name": resource.name});
                let texts = [
                    ("title", &resource.title),
                    ("description", &resource.description),
                    ("mimeType", &resource.mime_type),
                ];
                for (key, text) in texts {
                    if let Some(text) = text {
                        link[key] = json!(text);
                    }
                }
                if let Some(size) = resource.size {
                    link["size"] = json!(size);
                }
                link
            }
        }
    }

    /// Reads an item in MCP's form; `None` where it is not one.
    pub fn from_json(item: &Value) -> Option<Content> {
        let text = |key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
        let size = |key: &str| item.get(key).and_then(Value::as_u64).and_then(|pixels| u32::try_from(pixels).ok());
        match item.get("type")?.as_str()? {
            "text" => Some(Content::Text(text("text")?)),
            "image" => Some(Content::Image {
                data: text("data")?,
                mime_type: text("mimeType")?,
                size: size("width").zip(size("height")),
            }),
            "audio" => Some(Content::Audio { data: text("data")?, mime_type: text("mimeType")? }),
            "resource" => {
                let resource = item.get("resource")?;
                let text = |key: &str| resource.get(key).and_then(Value::as_str).map(str::to_owned);
                let body = text("text").map(ResourceBody::Text).or_else(|| text("blob").map(ResourceBody::Blob))?;
                Some(Content::Resource { uri: text("uri")?, mime_type: text("mimeType"), body })
            }
            "resource_link" => Some(Content::link(ResourceLink {
                uri: text("uri")?,
                name: text("name")?,
                title: text("title"),
                description: text("description"),
                mime_type: text("mimeType"),
                size: item.get("size").and_then(Value::as_u64),
            })),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_content_survives_the_trip_through_json() {
        let items = [
            Content::Text("héllo".to_owned()),
            Content::image(&[0xff, 0xd8, 0xff], "image/jpeg", Some((1080, 2400))),
            Content::image(&[1], "image/png", None),
            Content::Audio { data: "AAAA".to_owned(), mime_type: "audio/wav".to_owned() },
            Content::Resource { uri: "a://b".to_owned(), mime_type: None, body: ResourceBody::Text("t".to_owned()) },
            Content::Resource {
                uri: "a://b".to_owned(),
                mime_type: Some("x/y".to_owned()),
                body: ResourceBody::Blob("AA==".to_owned()),
            },
            Content::link(ResourceLink {
                uri: "a://b".to_owned(),
                name: "b".to_owned(),
                title: Some("B".to_owned()),
                description: Some("About b.".to_owned()),
                size: Some(7),
                ..ResourceLink::default()
            }),
        ];
        for item in items {
            assert_eq!(Content::from_json(&item.to_json()), Some(item));
        }
    }

    #[test]
    fn what_is_not_content_is_none() {
        for item in [
            json!(null),
            json!({}),
            json!({"type": "text"}),
            json!({"type": "image", "data": 5}),
            json!({"type": "hologram"}),
        ] {
            assert_eq!(Content::from_json(&item), None);
        }
    }

    #[test]
    fn image_bytes_come_back() {
        assert_eq!(Content::image(&[1, 2, 3], "image/png", None).bytes(), Some(vec![1, 2, 3]));
        assert_eq!(Content::Text(String::new()).bytes(), None);
    }
}
