//! Where the files that `android/build` makes are looked for: the agent and the companion app.

use std::path::{Path, PathBuf};

use sinew_phones::{AgentFiles, AgentSource};
use sinew_tool::settings::{Deserializer, Error, Setting, Visitor};
use sinew_tool::{Value, json};

/// Whether phones get an agent, and where its files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agent {
    Switch(bool),
    Folder(PathBuf),
}

impl Agent {
    pub fn source(&self, state: &Path) -> AgentSource {
        if *self == Agent::Switch(false) {
            return AgentSource::Off;
        }
        self.find(state).map_or_else(AgentSource::Missing, AgentSource::Files)
    }

    /// The files, also where the agent is switched off; or where they were looked for.
    pub fn find(&self, state: &Path) -> Result<AgentFiles, String> {
        match self {
            Agent::Folder(folder) => AgentFiles::find([folder]),
            Agent::Switch(_) => AgentFiles::find(&folders(state)),
        }
    }
}

impl Setting for Agent {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        *self = from.deserialize_any(SwitchOrFolder)?;
        Ok(())
    }

    fn schema() -> Value {
        json!({"type": ["boolean", "string"]})
    }

    fn to_value(&self) -> Value {
        match self {
            Agent::Switch(on) => json!(on),
            Agent::Folder(folder) => json!(folder),
        }
    }

    fn settle_in(&mut self, folder: &Path) {
        if let Agent::Folder(files) = self {
            files.settle_in(folder);
        }
    }
}

struct SwitchOrFolder;

impl Visitor<'_> for SwitchOrFolder {
    type Value = Agent;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("true, false, or the folder that android/build filled")
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<Agent, E> {
        Ok(Agent::Switch(on))
    }

    fn visit_str<E: Error>(self, folder: &str) -> Result<Agent, E> {
        match folder.trim() {
            "" => Err(E::custom("an empty folder; name it, or say true or false")),
            _ => Ok(Agent::Folder(folder.into())),
        }
    }
}

/// Beside the program, where cargo and `android/build` both work on one folder, and in the state
/// directory. Never the current folder: what lies there is not ours to run.
fn folders(state: &Path) -> Vec<PathBuf> {
    let program = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
    let beside = program.iter().flat_map(|folder| [folder.join("android"), folder.join("../android")]);
    beside.chain([state.join("android")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_found_says_where_it_was_looked_for_and_how_to_build_it() {
        let state = std::env::temp_dir().join(format!("sinew-android-{}", std::process::id()));
        let at = Agent::Folder(state.join("android"));
        let missing = at.find(&state).expect_err("nothing is there");
        assert!(missing.contains("android/build") && missing.contains("sinew-android-"), "{missing}");
        assert!(matches!(at.source(&state), AgentSource::Missing(_)));
        assert_eq!(Agent::Switch(false).source(&state), AgentSource::Off);
        std::fs::create_dir_all(state.join("android")).expect("made");
        std::fs::write(state.join("android/agent.jar"), "x").expect("written");
        assert!(matches!(at.source(&state), AgentSource::Files(files) if files.agent.ends_with("agent.jar")));
        assert!(folders(&state).contains(&state.join("android")));
        std::fs::remove_dir_all(state).expect("removed");
    }
}
