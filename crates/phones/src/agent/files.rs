//! The files that `android/build` makes, and where they are looked for.

use std::path::{Path, PathBuf};

pub const AGENT_FILE: &str = "agent.jar";
pub const COMPANION_FILE: &str = "companion.apk";

/// A folder that `android/build` has filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFiles {
    pub agent: PathBuf,
    pub companion: PathBuf,
}

impl AgentFiles {
    /// The files of a folder; `None` where the agent is not in it.
    pub fn at(folder: &Path) -> Option<AgentFiles> {
        let files = AgentFiles { agent: folder.join(AGENT_FILE), companion: folder.join(COMPANION_FILE) };
        files.agent.is_file().then_some(files)
    }

    /// The first folder that has them.
    pub fn find<'a>(folders: impl IntoIterator<Item = &'a PathBuf> + Clone) -> Result<AgentFiles, String> {
        folders.clone().into_iter().find_map(|folder| AgentFiles::at(folder)).ok_or_else(|| {
            let looked: Vec<String> = folders.into_iter().map(|folder| folder.display().to_string()).collect();
            format!("no {AGENT_FILE} in {}; build it with android/build", looked.join(", "))
        })
    }
}

/// Whether phones get an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentSource {
    /// Switched off: shell commands alone.
    Off,
    Files(AgentFiles),
    /// Wanted, but not found; why, and what to do.
    Missing(String),
}
