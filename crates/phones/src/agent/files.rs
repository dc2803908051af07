//! Where the agent comes from.

use std::borrow::Cow;
use std::path::PathBuf;

use super::error::AgentError;

pub const AGENT_FILE: &str = "agent.jar";
pub const COMPANION_FILE: &str = "companion.apk";

/// The agent as `android/build` makes it. `android/compare` checks that these are the bytes of its source.
const EMBEDDED: &[u8] = include_bytes!("../../built/agent.jar");

/// The built agent has some 30 KB; more than this is another file.
const MOST_BYTES: u64 = 8 << 20;

/// Whether phones get an agent, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentSource {
    /// Switched off: shell commands alone.
    Off,
    /// The one that is part of this program.
    Embedded,
    /// The `agent.jar` of a folder that `android/build` filled. It is read at every start, so a new one is used as
    /// soon as it is there.
    Folder(PathBuf),
}

impl AgentSource {
    pub(super) async fn jar(&self) -> Result<Cow<'static, [u8]>, AgentError> {
        let folder = match self {
            AgentSource::Off => return Err(AgentError::Absent(OFF.to_owned())),
            AgentSource::Embedded => return Ok(Cow::Borrowed(EMBEDDED)),
            AgentSource::Folder(folder) => folder,
        };
        let file = folder.join(AGENT_FILE);
        let unusable = |why: String| {
            AgentError::Absent(format!("{} cannot be used ({why}); build it with android/build", file.display()))
        };
        let size = tokio::fs::metadata(&file).await.map_err(|error| unusable(error.to_string()))?.len();
        if size > MOST_BYTES {
            return Err(unusable(format!("it has {size} bytes")));
        }
        tokio::fs::read(&file).await.map(Cow::Owned).map_err(|error| unusable(error.to_string()))
    }
}

const OFF: &str = "the agent is switched off; set `agent = true` under [phones] in the configuration";
