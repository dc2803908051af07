//! The first line of an agent: its version and capabilities.

use serde_json::Value;
use sinew_tool::lenient;

/// The protocol version of this gateway; raised with every incompatible change.
pub(super) const PROTOCOL: u64 = 1;

/// An agent's version and capabilities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentHello {
    pub version: String,
    /// Android's API level.
    pub api: u32,
    /// The methods that it has on this phone.
    pub capabilities: Vec<String>,
}

impl AgentHello {
    /// `None` for a line that is not a hello; an error for an agent that cannot be used.
    pub fn parse(line: &[u8]) -> Option<Result<AgentHello, String>> {
        let value: Value = lenient::read(line).ok()?;
        if value["hello"] != "sinew-agent" {
            return None;
        }
        let short = |value: &Value| value.as_str().map(|text| text.chars().take(40).collect::<String>());
        let version = short(&value["version"]).unwrap_or_else(|| "unknown".to_owned());
        if value["protocol"] != PROTOCOL {
            return Some(Err(format!(
                "agent {version} speaks protocol {}, this Sinew speaks {PROTOCOL}; build the agent from the same sources with android/build",
                value["protocol"]
            )));
        }
        let api = value["api"].as_u64().and_then(|api| u32::try_from(api).ok()).unwrap_or_default();
        // 64: there are eleven methods today.
        let capabilities = value["capabilities"].as_array().map(Vec::as_slice).unwrap_or_default();
        let capabilities = capabilities.iter().filter_map(short).take(64).collect();
        Some(Ok(AgentHello { version, api, capabilities }))
    }

    pub fn can(&self, method: &str) -> bool {
        self.capabilities.iter().any(|own| own == method)
    }
}
