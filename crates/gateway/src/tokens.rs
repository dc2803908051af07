//! Tokens: who may come in through which door.

use serde::Serialize;
use sinew_tool::{ErrorKind, ToolError};

use crate::principal::{Principal, Role};

/// The token book. Only hashes are kept; a token is shown once, when it is made.
pub struct Tokens {
    own: String,
}

/// A token as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenView {
    pub id: String,
    /// `client`, `admin` or `device`.
    pub role: &'static str,
    pub label: String,
    /// The device a device token is for.
    pub device: Option<String>,
    /// Milliseconds of Unix time.
    pub created: i64,
}

/// What the device door does with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceAdmission {
    /// The token was made for this device.
    Device,
    /// The gateway's own token, which admits any device for first trials.
    GatewayToken,
    Refused,
}

impl Tokens {
    pub(crate) fn new(own: String) -> Tokens {
        Tokens { own }
    }

    /// Who a token of the client doors belongs to. Device tokens open none of them.
    pub fn check(&self, token: &str) -> Option<Principal> {
        (token == self.own).then(|| Principal::new("gateway", Role::Admin))
    }

    pub fn check_device(&self, token: Option<&str>, _hardware_id: &str) -> DeviceAdmission {
        if token == Some(&self.own) { DeviceAdmission::GatewayToken } else { DeviceAdmission::Refused }
    }

    /// Makes a token; the text is shown this once.
    pub fn create(&self, _role: Role, _label: &str) -> Result<(TokenView, String), ToolError> {
        Err(ToolError::new(ErrorKind::Unsupported, "not built yet"))
    }

    pub fn list(&self) -> Vec<TokenView> {
        Vec::new()
    }

    pub fn revoke(&self, id: &str) -> Result<TokenView, ToolError> {
        Err(ToolError::new(ErrorKind::InvalidArguments, format!("no token has the id `{id}`")))
    }

    /// The gateway's own token.
    pub fn own(&self) -> String {
        self.own.clone()
    }
}
