//! The account of a board at an MQTT server, and its topics.

use std::fmt;

use crate::identity::Identity;

/// Seconds; what firmware takes where it is told nothing.
const KEEPALIVE: u16 = 240;
/// Behind a broker the gateway learns of a lost board by its will, so it should come soon.
const BROKER_KEEPALIVE: u16 = 30;

#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    pub client_id: String,
    pub username: String,
    /// Not shown where the user name is empty.
    pub password: String,
    /// Where the board speaks.
    pub publish: String,
    /// Where it listens. A gateway's own door pushes, and needs no subscription.
    pub subscribe: Option<String>,
    /// Where the board says that it is there, and its will that it is not; both are retained.
    pub presence: Option<String>,
    /// Seconds; 0 for none.
    pub keepalive: u16,
}

impl Account {
    /// At a gateway's own listener, as firmware does it: the token is the password.
    pub fn direct(identity: &Identity) -> Account {
        Account {
            client_id: identity.hardware_id.clone(),
            username: "board".to_owned(),
            password: identity.token.clone().unwrap_or_default(),
            publish: "device-server".to_owned(),
            subscribe: None,
            presence: None,
            keepalive: KEEPALIVE,
        }
    }

    /// At a broker that the gateway is a client of too, under the topics that the gateway looks at unless it is
    /// told others. Who may speak there is the broker's decision; the board's token is not shown to it.
    pub fn at_broker(identity: &Identity) -> Account {
        let id = &identity.hardware_id;
        let topic = |end: &str| format!("sinew/boards/{id}/{end}");
        Account {
            client_id: format!("sinew-board-{id}"),
            username: String::new(),
            password: String::new(),
            publish: topic("up"),
            subscribe: Some(topic("down")),
            presence: Some(topic("presence")),
            keepalive: BROKER_KEEPALIVE,
        }
    }

    pub fn with_login(self, username: impl Into<String>, password: impl Into<String>) -> Account {
        Account { username: username.into(), password: password.into(), ..self }
    }

    /// Whether its topics are topics of one board.
    pub(super) fn is_sound(&self) -> bool {
        let topics = [Some(&self.publish), self.subscribe.as_ref(), self.presence.as_ref()];
        let is_sound = |topic: &String| !topic.is_empty() && topic.len() < 512 && !topic.contains(['+', '#', '\0']);
        // An id with a slash in it would be found under no topic of the gateway's.
        topics.into_iter().flatten().all(is_sound) && !self.client_id.contains('/')
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}
