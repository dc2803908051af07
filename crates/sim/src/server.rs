//! A virtual MCP server on a broker ("MCP over MQTT"): a lamp that learns a second tool when it is asked to grow.

use std::time::Duration;

use serde_json::Value;
use sinew_mqtt::client::MqttMessage;
use sinew_runner::RunError;
use sinew_wire::device::{Board, Property, Reply, ToolSpec};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::link::{BrokerLink, KEEPALIVE, LinkConfig};

/// One server and where it belongs.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// `mqtt://HOST:PORT`.
    pub url: String,
    pub server_id: String,
    /// For example `home/lamp`.
    pub server_name: String,
    pub description: String,
}

/// Lives as one server until `shutdown` or until the connection ends.
pub async fn run(config: ServerConfig, shutdown: CancellationToken) -> Result<(), RunError> {
    let ServerConfig { url, server_id: id, server_name: name, description } = &config;
    let tag = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let properties = vec![tag("MCP-COMPONENT-TYPE", "mcp-server"), tag("MCP-MQTT-CLIENT-ID", id)];
    let message = |topic: String, text: String, retain| MqttMessage {
        topic,
        payload: text.into_bytes(),
        retain,
        properties: properties.clone(),
    };
    let presence = format!("$mcp-server/presence/{id}/{name}");
    let gone = message(presence.clone(), String::new(), true);
    let introduction = [tag("MCP-COMPONENT-TYPE", "mcp-server"), tag("MCP-META", "{}")];
    let introduction = LinkConfig { url, client_id: id, login: None, will: Some(&gone), properties: &introduction };
    let mut link = BrokerLink::open(introduction).await?;
    let control = format!("$mcp-server/{id}/{name}");
    link.subscribe(&[&control], false).await?;
    let params = serde_json::json!({"server_name": name, "description": description});
    let online = serde_json::json!({"jsonrpc": "2.0", "method": "notifications/server/online", "params": params});
    link.publish(&message(presence, online.to_string(), true)).await?;
    let mut lamp = lamp(name);
    let every = Duration::from_secs(u64::from(KEEPALIVE) / 2);
    let mut ping_at = Instant::now() + every;
    loop {
        tokio::select! {
            heard = link.next() => {
                let heard = heard?;
                let Ok(request) = serde_json::from_slice::<Value>(&heard.payload) else { continue };
                let mut rpc = heard.topic.clone();
                if heard.topic == control {
                    let client = heard.properties.iter().find(|(key, _)| key == "MCP-MQTT-CLIENT-ID");
                    let Some((_, client)) = client.filter(|_| request["method"] == "initialize") else { continue };
                    rpc = format!("$mcp-rpc/{client}/{id}/{name}");
                    link.subscribe(&[&rpc], true).await?;
                }
                let has_grown = request["params"]["name"] == "grow" && lamp.add(dim(), |_| Ok(Reply::from(true)));
                if let Some(answer) = lamp.handle_rpc(request) {
                    link.publish(&message(rpc, answer, false)).await?;
                }
                if has_grown {
                    let news = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned();
                    link.publish(&message(format!("$mcp-server/capability/{id}/{name}"), news, false)).await?;
                }
            }
            () = sleep_until(ping_at) => {
                ping_at = Instant::now() + every;
                link.ping().await?;
            }
            () = shutdown.cancelled() => {
                link.publish(&gone).await?;
                return link.close().await;
            }
        }
    }
}

fn lamp(name: &str) -> Board {
    let switch = ToolSpec::new("switch", "Switch the lamp on or off").with(Property::boolean("on"));
    Board::new(name, "1.0.0")
        .tool(switch, |arguments| Ok(Reply::from(arguments.boolean("on")?)))
        .tool(ToolSpec::new("grow", "Learn to dim"), |_| Ok(Reply::from(true)))
}

fn dim() -> ToolSpec {
    ToolSpec::new("dim", "Dim the lamp")
}
