//! Connects a board to its gateway, over WebSocket or MQTT.

use std::net::IpAddr;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::dial_queue::DialQueue;
use crate::error::RunError;
use crate::firmware::Firmware;
use crate::identity::Identity;
#[cfg(feature = "mqtt")]
use crate::mqtt::{self, Account, MqttDialer};
use crate::report::{ConnectionNews, Report};
use crate::trust::Trust;
#[cfg(feature = "websocket")]
use crate::websocket::{self, WebSocketDialer};

/// How to reach one gateway. Clones dial in turns, so that many boards can run in one process.
#[derive(Clone)]
pub struct Dialer {
    kind: DialerKind,
    report: Report,
}

#[derive(Clone)]
enum DialerKind {
    #[cfg(feature = "websocket")]
    WebSocket(WebSocketDialer),
    #[cfg(feature = "mqtt")]
    Mqtt(MqttDialer),
}

impl Dialer {
    /// For an address such as `ws://192.168.1.5:7301/xiaozhi/v1/` or `mqtt://192.168.1.5:7302`; `wss://…` or
    /// `mqtts://…` where the gateway serves TLS. Through a broker: see `with_account`.
    pub fn new(url: &str, trust: &Trust) -> Result<Dialer, RunError> {
        let dial_queue = Arc::new(DialQueue::new());
        match url.split(':').next() {
            #[cfg(feature = "mqtt")]
            Some("mqtt" | "mqtts") => {
                Ok(Dialer::of(DialerKind::Mqtt(MqttDialer::new(mqtt::address(url, trust)?, dial_queue))))
            }
            #[cfg(feature = "websocket")]
            _ => {
                let address = websocket::address(url, trust)?;
                Ok(Dialer::of(DialerKind::WebSocket(WebSocketDialer::new(address, dial_queue))))
            }
            #[cfg(not(feature = "websocket"))]
            _ => Err(RunError::Address(url.to_owned(), "it must begin with mqtt:// or mqtts://".to_owned())),
        }
    }

    fn of(kind: DialerKind) -> Dialer {
        Dialer { kind, report: Report::default() }
    }

    /// Has `listener` hear when a board is connected and when it is not, for example to print it.
    pub fn with_report(mut self, listener: impl Fn(&ConnectionNews<'_>) + Send + Sync + 'static) -> Dialer {
        self.report = Report::to(listener);
        self
    }

    /// The MQTT account of the board, if it does not follow from its identity: at a broker, or with credentials from a
    /// bootstrap.
    #[cfg(feature = "mqtt")]
    pub fn with_account(self, account: Account) -> Result<Dialer, RunError> {
        match self.kind {
            DialerKind::Mqtt(mqtt) => Ok(Dialer { kind: DialerKind::Mqtt(mqtt.with_account(account)?), ..self }),
            #[cfg(feature = "websocket")]
            DialerKind::WebSocket(socket) => {
                Err(RunError::Address(socket.address.url, "an account is for mqtt:// and mqtts://".to_owned()))
            }
        }
    }

    /// Whether it dials over MQTT.
    pub fn is_mqtt(&self) -> bool {
        match &self.kind {
            #[cfg(feature = "websocket")]
            DialerKind::WebSocket(_) => false,
            #[cfg(feature = "mqtt")]
            DialerKind::Mqtt(_) => true,
        }
    }

    /// Dials from this address of the machine.
    pub fn from_source(mut self, source: IpAddr) -> Dialer {
        match &mut self.kind {
            #[cfg(feature = "websocket")]
            DialerKind::WebSocket(socket) => socket.address.source = Some(source),
            #[cfg(feature = "mqtt")]
            DialerKind::Mqtt(mqtt) => mqtt.address.source = Some(source),
        }
        self
    }

    /// Runs a board until `shutdown`. Returns early only if dialling again cannot help: an untrusted certificate, a
    /// refused token.
    pub async fn run(
        &self,
        firmware: impl Firmware,
        identity: Identity,
        shutdown: CancellationToken,
    ) -> Result<(), RunError> {
        match &self.kind {
            #[cfg(feature = "websocket")]
            DialerKind::WebSocket(socket) => socket.run(firmware, identity, self.report.clone(), shutdown).await,
            // Boxed, so that boards on WebSockets need not carry its size.
            #[cfg(feature = "mqtt")]
            DialerKind::Mqtt(mqtt) => Box::pin(mqtt.run(firmware, identity, self.report.clone(), shutdown)).await,
        }
    }
}

#[cfg(all(test, feature = "mqtt", feature = "websocket"))]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_for_mqtt_and_must_fit_into_topics() {
        let dialer = |url: &str| Dialer::new(url, &Trust::Fingerprint([0; 32]));
        let account = |id: &str| Account::at_broker(&Identity::new(id));
        assert!(dialer("mqtt://broker").expect("fine").with_account(account("02:00")).is_ok());
        assert!(dialer("mqtts://broker").expect("fine").with_account(account("a/b")).is_err());
        assert!(dialer("ws://gateway/").expect("fine").with_account(account("02:00")).is_err());
        assert!(dialer("mqtt://me@broker").is_err() && dialer("amqp://x").is_err());
    }
}
