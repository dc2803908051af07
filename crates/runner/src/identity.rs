//! The identity of a board when it connects.

use sha2::{Digest, Sha256};

#[derive(Clone, Debug)]
pub struct Identity {
    /// A MAC address in lower case; the gateway knows the board by it.
    pub hardware_id: String,
    /// A UUID that lasts, as firmware keeps one.
    pub client_id: String,
    pub token: Option<String>,
}

impl Identity {
    /// The client id is made of the hardware id, so that it lasts without being stored.
    pub fn new(hardware_id: impl Into<String>) -> Identity {
        let hardware_id = hardware_id.into();
        let hash = Sha256::digest(&hardware_id);
        let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let client_id = format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..]);
        Identity { hardware_id, client_id, token: None }
    }

    pub fn with_token(self, token: impl Into<String>) -> Identity {
        Identity { token: Some(token.into()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_ids_are_well_formed_and_lasting() {
        let id = |hardware_id: &str| Identity::new(hardware_id).client_id;
        let parts: Vec<usize> = id("aa").split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(id("aa"), id("aa"));
        assert_ne!(id("aa"), id("ab"));
    }
}
