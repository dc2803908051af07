//! The words of "MCP over MQTT": topics, user properties and notifications, for both sides of it.
//!
//! A server has an id, which is its MQTT client id, and a name of one or more levels; a client has an id. Requests and
//! answers of both directions share one topic, which is why nobody wants to hear there what it said itself.

use sinew_mqtt::client::{MqttMessage, Subscription};
use sinew_tool::lenient;
use sinew_tool::{DeviceKey, Value, json};

/// A tag of who speaks, on CONNECT and PUBLISH.
const COMPONENT: &str = "MCP-COMPONENT-TYPE";
/// Who speaks, on PUBLISH: the only place where a server learns the id of a client.
pub(super) const SENDER: &str = "MCP-MQTT-CLIENT-ID";
const META: &str = "MCP-META";
/// A broker's word for what a server is to be called.
pub(super) const GIVEN_NAME: &str = "MCP-SERVER-NAME";
pub(super) const DISCONNECTED: &str = r#"{"jsonrpc":"2.0","method":"notifications/disconnected"}"#;
/// Longer ids and names make topics that small servers cut.
const LONGEST: usize = 96;

/// One of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum McpRole {
    Client,
    Server,
}

impl McpRole {
    fn word(self) -> &'static str {
        match self {
            McpRole::Client => "mcp-client",
            McpRole::Server => "mcp-server",
        }
    }

    pub(super) fn introduction(self) -> [(String, String); 2] {
        let meta = json!({"implementation": {"name": "sinew", "version": env!("CARGO_PKG_VERSION")}});
        [(COMPONENT.to_owned(), self.word().to_owned()), (META.to_owned(), meta.to_string())]
    }

    /// A message of the one who has this id.
    pub(super) fn message(self, id: &str, topic: String, text: impl Into<String>) -> MqttMessage {
        let properties = vec![(COMPONENT.to_owned(), self.word().to_owned()), (SENDER.to_owned(), id.to_owned())];
        MqttMessage { topic, payload: text.into().into_bytes(), retain: false, properties }
    }
}

/// One instance of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct McpServer {
    pub(super) id: String,
    pub(super) name: String,
}

impl McpServer {
    /// Finds the server in the topic of its presence.
    pub(super) fn of_presence(topic: &str) -> Option<McpServer> {
        let (id, name) = topic.strip_prefix("$mcp-server/presence/")?.split_once('/')?;
        (is_id(id) && is_name(name)).then(|| McpServer { id: id.to_owned(), name: name.to_owned() })
    }

    /// The key of the device that is this server alone.
    pub(super) fn key(&self) -> DeviceKey {
        DeviceKey(format!("provider:mqtt:{}/{}", self.id, self.name))
    }

    /// The key of the device that is whichever server has this name. No id is empty, so it is no other server's key.
    pub(super) fn name_key(&self) -> DeviceKey {
        DeviceKey(format!("provider:mqtt:/{}", self.name))
    }

    pub(super) fn presence(&self) -> String {
        format!("$mcp-server/presence/{}/{}", self.id, self.name)
    }

    pub(super) fn capability(&self) -> String {
        format!("$mcp-server/capability/{}/{}", self.id, self.name)
    }

    pub(super) fn control(&self) -> String {
        format!("$mcp-server/{}/{}", self.id, self.name)
    }

    pub(super) fn rpc(&self, client: &str) -> String {
        format!("$mcp-rpc/{client}/{}/{}", self.id, self.name)
    }

    /// The client that speaks under an rpc topic of this server.
    pub(super) fn rpc_client<'a>(&self, topic: &'a str) -> Option<&'a str> {
        let (client, rest) = topic.strip_prefix("$mcp-rpc/")?.split_once('/')?;
        (rest.strip_prefix(self.id.as_str())?.strip_prefix('/')? == self.name).then_some(client)
    }
}

pub(super) fn client_presence(client: &str) -> String {
    format!("$mcp-client/presence/{client}")
}

pub(super) fn client_capability(client: &str) -> String {
    format!("$mcp-client/capability/{client}")
}

pub(super) fn subscription(filter: String, no_local: bool) -> Subscription {
    Subscription { filter, no_local, ..Subscription::default() }
}

/// Whether a text can be the id of a server or of a client.
pub(super) fn is_id(text: &str) -> bool {
    is_part(text) && !text.contains('/') && !matches!(text, "presence" | "capability")
}

/// Whether a text can be the name of a server.
pub(crate) fn is_name(text: &str) -> bool {
    is_part(text) && text.split('/').all(|level| !level.is_empty())
}

fn is_part(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len()) && !text.contains(['+', '#']) && !text.contains(char::is_control)
}

/// What a server keeps under its presence while it is there.
pub(super) fn online(name: &str, description: &str) -> String {
    let params = json!({"server_name": name, "description": description, "meta": {}});
    json!({"jsonrpc": "2.0", "method": "notifications/server/online", "params": params}).to_string()
}

/// The description in what a server keeps there; the outer `None` where it is no such word.
pub(super) fn read_online(payload: &[u8]) -> Option<Option<String>> {
    let said: Value = lenient::read(payload).ok()?;
    if said.get("method")?.as_str()? != "notifications/server/online" {
        return None;
    }
    let description = said.get("params").and_then(|params| params.get("description")).and_then(Value::as_str);
    Some(description.filter(|text| !text.is_empty()).map(|text| text.chars().take(1000).collect()))
}

/// The method of a message, where it is a notification or a request.
pub(super) fn method(text: &str) -> Option<String> {
    let message: Value = lenient::read(text.as_bytes()).ok()?;
    message.get("method")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn topics_name_server_and_client() {
        let server = McpServer::of_presence("$mcp-server/presence/s1/home/lamp").expect("a server");
        assert_eq!(server, McpServer { id: "s1".to_owned(), name: "home/lamp".to_owned() });
        assert_eq!(server.presence(), "$mcp-server/presence/s1/home/lamp");
        assert_eq!(server.control(), "$mcp-server/s1/home/lamp");
        assert_eq!(server.rpc("c1"), "$mcp-rpc/c1/s1/home/lamp");
        assert_eq!(server.rpc_client("$mcp-rpc/c1/s1/home/lamp"), Some("c1"));
        for other in ["$mcp-rpc/c1/s1/home", "$mcp-rpc/c1/s2/home/lamp", "$mcp-rpc/c1", "x"] {
            assert_eq!(server.rpc_client(other), None, "{other}");
        }
        for wrong in
            ["$mcp-server/presence/s1", "$mcp-server/presence/s1/", "$mcp-server/presence//a", "$mcp-server/s1/a"]
        {
            assert_eq!(McpServer::of_presence(wrong), None, "{wrong}");
        }
        assert!(is_name("ESP32 Demo Server") && !is_id("presence") && !is_id("a/b"));
    }

    #[test]
    fn presence_is_read_with_and_without_a_description() {
        assert_eq!(read_online(online("a/b", "A lamp").as_bytes()), Some(Some("A lamp".to_owned())));
        assert_eq!(read_online(br#"{"jsonrpc":"2.0","method":"notifications/server/online"}"#), Some(None));
        for wrong in [&b""[..], b"{}", b"online", b"{\"method\":5}"] {
            assert_eq!(read_online(wrong), None);
        }
    }

    proptest! {
        #[test]
        fn whatever_topic_comes_it_is_taken_apart_or_left_alone(topic in ".{0,60}", rest in "[a-z/+#$ -]{0,20}") {
            for topic in [topic, format!("$mcp-server/presence/{rest}"), format!("$mcp-rpc/{rest}")] {
                if let Some(server) = McpServer::of_presence(&topic) {
                    prop_assert_eq!(server.presence(), topic);
                } else {
                    let server = McpServer { id: "a".to_owned(), name: "b".to_owned() };
                    let _ = server.rpc_client(&topic);
                }
            }
        }
    }
}
