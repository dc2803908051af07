//! Many virtual boards behind a broker that share one connection and one machine: enough to try how a gateway bears
//! their number. Each is there, lists its tools and answers calls under topics of its own.

use std::collections::HashSet;
use std::time::Duration;

use sinew_mqtt::client::MqttMessage;
use sinew_runner::RunError;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::board::{BoardConfig, VirtualBoard, hardware_id};
use crate::link::{BrokerLink, KEEPALIVE, LinkConfig};

const HERE: &str = r#"{"online":true}"#;
const GONE: &str = r#"{"online":false}"#;

/// Lives as `count` boards from number `first` on, until `shutdown` or until the connection ends. One connection has
/// one will, so nobody says of these boards that they are gone when it breaks.
pub async fn run(first: u32, count: u32, config: BoardConfig, shutdown: CancellationToken) -> Result<(), RunError> {
    let login = config.username.as_deref().map(|username| (username, config.token.as_deref().unwrap_or_default()));
    let client_id = format!("crowd-{first}");
    let introduction = LinkConfig { url: &config.url, client_id: &client_id, login, will: None, properties: &[] };
    let mut link = BrokerLink::open(introduction).await?;
    // Others of a crowd answer for their own boards.
    let ids: HashSet<String> = (first..first.saturating_add(count)).map(hardware_id).collect();
    link.subscribe(&["sinew/boards/+/down"], false).await?;
    let presence = |id: &str, text: &str| MqttMessage {
        topic: format!("sinew/boards/{id}/presence"),
        payload: text.as_bytes().to_vec(),
        retain: true,
        ..MqttMessage::default()
    };
    for id in &ids {
        link.publish(&presence(id, HERE)).await?;
    }
    let mut board = VirtualBoard::new(config.kind, "crowd");
    let every = Duration::from_secs(u64::from(KEEPALIVE) / 2);
    let mut ping_at = Instant::now() + every;
    loop {
        tokio::select! {
            heard = link.next() => {
                let MqttMessage { topic, payload, .. } = heard?;
                let text = String::from_utf8_lossy(&payload).into_owned();
                let id = topic.strip_prefix("sinew/boards/").and_then(|rest| rest.strip_suffix("/down"));
                let Some(id) = id.filter(|id| ids.contains(*id)) else { continue };
                for text in board.handle_text(Duration::ZERO, &text) {
                    let topic = format!("sinew/boards/{id}/up");
                    link.publish(&MqttMessage { topic, payload: text.into_bytes(), ..MqttMessage::default() }).await?;
                }
            }
            () = sleep_until(ping_at) => {
                ping_at = Instant::now() + every;
                link.ping().await?;
            }
            () = shutdown.cancelled() => {
                for id in &ids {
                    link.publish(&presence(id, GONE)).await?;
                }
                return link.close().await;
            }
        }
    }
}
