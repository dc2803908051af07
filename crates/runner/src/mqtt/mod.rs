//! A board on MQTT: at a gateway's own door, as firmware does it, or at a broker between them.
//!
//! - `account`: what the board shows there, and its topics
//! - `link`: packets and bytes

mod account;
mod link;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sinew_mqtt::client::BrokerPacket;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use self::link::MqttLink;
use crate::address::GatewayAddress;
use crate::backoff::Backoff;
use crate::dial_queue::DialQueue;
use crate::error::RunError;
use crate::firmware::{Firmware, HangUp};
use crate::identity::Identity;
use crate::report::{ConnectionNews, Report};
use crate::trust::Trust;

pub use self::account::Account;

/// For TCP, TLS and CONNECT together; enough for a gateway that is busy with a thousand boards.
const DIAL_TIME: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub(crate) struct MqttDialer {
    pub(crate) address: GatewayAddress,
    account: Option<Box<Account>>,
    dial_queue: Arc<DialQueue>,
}

pub(crate) fn address(url: &str, trust: &Trust) -> Result<GatewayAddress, RunError> {
    GatewayAddress::parse(url, [("mqtt", 1883), ("mqtts", 8883)], trust)
}

impl MqttDialer {
    pub(crate) fn new(address: GatewayAddress, dial_queue: Arc<DialQueue>) -> MqttDialer {
        MqttDialer { address, account: None, dial_queue }
    }

    pub(crate) fn with_account(self, account: Account) -> Result<MqttDialer, RunError> {
        if !account.is_sound() {
            let why = "the board's id and topics must be without +, #, and a slash of the id's own".to_owned();
            return Err(RunError::Address(self.address.url, why));
        }
        Ok(MqttDialer { account: Some(Box::new(account)), ..self })
    }

    pub(crate) async fn run(
        &self,
        mut firmware: impl Firmware,
        identity: Identity,
        report: Report,
        shutdown: CancellationToken,
    ) -> Result<(), RunError> {
        let account = self.account.as_deref().cloned().unwrap_or_else(|| Account::direct(&identity));
        let power_on = Instant::now();
        let mut pause = Backoff::new();
        while !shutdown.is_cancelled() {
            // What a hello resets is reset. It is not said: over MQTT the tools are within reach without it.
            let _ = firmware.hello();
            let presence = presence(&firmware);
            let dialling = Box::pin(self.dial(&account, &presence));
            let (why, rest) = match shutdown.run_until_cancelled(dialling).await {
                None => break,
                Some(Ok(mut link)) => {
                    self.dial_queue.opened();
                    report.send(&ConnectionNews::Connected { url: &self.address.url });
                    pause.reset();
                    let mut connection =
                        MqttBoardConnection { firmware: &mut firmware, account: &account, link: &mut link, power_on };
                    connection.serve(&shutdown).await
                }
                Some(Err(error)) if error.is_final() => return Err(error),
                Some(Err(error)) => {
                    self.dial_queue.failed(&error);
                    (error, None)
                }
            };
            tracing::debug!(board = %identity.hardware_id, %why, "the board is without its gateway");
            let rest = rest.unwrap_or_else(|| pause.take());
            report.send(&ConnectionNews::Disconnected { why: &why, retry_in: rest });
            shutdown.run_until_cancelled(sleep(rest)).await;
        }
        Ok(())
    }

    async fn dial(&self, account: &Account, presence: &str) -> Result<MqttLink, RunError> {
        let _turn = self.dial_queue.turn().await;
        match timeout(DIAL_TIME, self.open(account, presence)).await {
            Ok(opened) => opened,
            Err(_) => Err(self.address.timed_out()),
        }
    }

    async fn open(&self, account: &Account, presence: &str) -> Result<MqttLink, RunError> {
        let refused =
            |status: Option<u16>, why: String| Err(RunError::Refused { url: self.address.url.clone(), status, why });
        let mut link = MqttLink::new(self.address.connect().await?);
        link.connect(account);
        link.flush().await?;
        let BrokerPacket::Connack(welcome) = link.read().await? else {
            return refused(None, "its first packet is not CONNACK".to_owned());
        };
        match welcome.code {
            0 => {}
            // Trying again would not help.
            code @ (4 | 5) => {
                return refused(Some(401), format!("MQTT return code {code}: wrong user name or password"));
            }
            code @ (1 | 2) => {
                return refused(Some(400), format!("MQTT return code {code}: wrong version or client id"));
            }
            code => return refused(None, format!("MQTT return code {code}: not now")),
        }
        if let Some(topic) = &account.subscribe {
            link.subscribe(topic);
            link.flush().await?;
            // A board is present once it is subscribed: earlier messages would be lost.
            loop {
                match link.read().await? {
                    BrokerPacket::Suback { codes, .. } if codes.iter().all(|code| *code < 0x80) => break,
                    BrokerPacket::Suback { .. } => {
                        return refused(Some(403), format!("it does not let the board subscribe to {topic}"));
                    }
                    _ => {}
                }
            }
        }
        if let Some(topic) = &account.presence {
            link.announce(topic, presence.as_bytes().to_vec());
            link.flush().await?;
        }
        Ok(link)
    }
}

/// What is retained while the board is there.
fn presence(firmware: &impl Firmware) -> String {
    let mut presence = json!({"online": true});
    if let Some(name) = firmware.name() {
        presence["name"] = json!(name);
    }
    presence.to_string()
}

/// One connection of one board.
struct MqttBoardConnection<'a, F> {
    firmware: &'a mut F,
    account: &'a Account,
    link: &'a mut MqttLink,
    power_on: Instant,
}

enum MqttConnectionEnd {
    SwitchedOff,
    HungUp(HangUp),
}

impl<F: Firmware> MqttBoardConnection<'_, F> {
    /// Serves until the connection ends; says why it did, and how long the board wants to connection away.
    async fn serve(&mut self, shutdown: &CancellationToken) -> (RunError, Option<Duration>) {
        match self.talk(shutdown).await {
            Ok(MqttConnectionEnd::SwitchedOff) => {
                self.link.close(self.account.presence.as_deref()).await;
                (RunError::Ended("the board was switched off".to_owned()), None)
            }
            Ok(MqttConnectionEnd::HungUp(HangUp { why, pause })) => (RunError::Ended(why.to_owned()), pause),
            Err(error) => (error, None),
        }
    }

    async fn talk(&mut self, shutdown: &CancellationToken) -> Result<MqttConnectionEnd, RunError> {
        // Without a keepalive nobody wants to know; a look every day costs nothing.
        let keepalive = match self.account.keepalive {
            0 => Duration::from_secs(86_400),
            seconds => Duration::from_secs(seconds.into()),
        };
        let mut last_heard = Instant::now();
        let mut ping_at = last_heard + keepalive / 2;
        loop {
            let now = Instant::now();
            // A board that is always due still runs at most a thousand times per second.
            let due = self.firmware.next_due().map(|due| (self.power_on + due).max(now + Duration::from_millis(1)));
            let due = due.map_or(ping_at, |due| due.min(ping_at));
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return Ok(MqttConnectionEnd::SwitchedOff),
                packet = self.link.read() => {
                    last_heard = Instant::now();
                    if let BrokerPacket::Publish(message) = packet? {
                        let text = String::from_utf8_lossy(&message.payload);
                        let answers = self.firmware.handle_text(self.power_on.elapsed(), &text);
                        self.say(answers);
                    }
                }
                () = sleep_until(due) => {}
            }
            let now = Instant::now();
            let news = self.firmware.handle_time(now - self.power_on);
            self.say(news);
            if self.account.keepalive > 0 && now >= last_heard + keepalive * 3 / 2 {
                let silence = keepalive.as_secs() * 3 / 2;
                return Err(RunError::Ended(format!("nothing was heard for {silence} s")));
            }
            if now >= ping_at {
                ping_at = now + keepalive / 2;
                self.link.ping();
            }
            self.link.flush().await?;
            if let Some(hang_up) = self.firmware.hang_up() {
                return Ok(MqttConnectionEnd::HungUp(hang_up));
            }
        }
    }

    fn say(&mut self, texts: Vec<String>) {
        for text in texts {
            let bytes = self.firmware.encode(text);
            self.link.publish(&self.account.publish, bytes);
        }
    }
}
