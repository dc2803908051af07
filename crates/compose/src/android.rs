//! Whether phones get an agent, and where the companion app is looked for.

use std::path::{Path, PathBuf};

use sinew_phones::AgentSource;
use sinew_phones::agent::COMPANION_FILE;
use sinew_tool::settings::{Deserializer, Error, Setting, Visitor};
use sinew_tool::{Value, json};

/// Whether phones get an agent: the one that is part of the program, or that of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentSetting {
    Switch(bool),
    Folder(PathBuf),
}

impl AgentSetting {
    pub fn source(&self) -> AgentSource {
        match self {
            AgentSetting::Switch(false) => AgentSource::Off,
            AgentSetting::Switch(true) => AgentSource::Embedded,
            AgentSetting::Folder(folder) => AgentSource::Folder(folder.clone()),
        }
    }
}

impl Setting for AgentSetting {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        *self = from.deserialize_any(SwitchOrFolder)?;
        Ok(())
    }

    fn schema() -> Value {
        json!({"type": ["boolean", "string"]})
    }

    fn to_value(&self) -> Value {
        match self {
            AgentSetting::Switch(on) => json!(on),
            AgentSetting::Folder(folder) => json!(folder),
        }
    }

    fn settle_in(&mut self, folder: &Path) {
        if let AgentSetting::Folder(files) = self {
            files.settle_in(folder);
        }
    }
}

struct SwitchOrFolder;

impl Visitor<'_> for SwitchOrFolder {
    type Value = AgentSetting;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("true, false, or the folder that android/build filled")
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<AgentSetting, E> {
        Ok(AgentSetting::Switch(on))
    }

    fn visit_str<E: Error>(self, folder: &str) -> Result<AgentSetting, E> {
        match folder.trim() {
            "" => Err(E::custom("an empty folder; name it, or say true or false")),
            _ => Ok(AgentSetting::Folder(folder.into())),
        }
    }
}

/// The companion app: of the folder given, or beside the program, where cargo and `android/build` both work on one
/// folder, or in the state directory. Never of the current folder: what lies there is not ours to install.
pub fn companion(folder: Option<&Path>, state: &Path) -> Result<PathBuf, String> {
    let program = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
    let beside = program.iter().flat_map(|folder| [folder.join("android"), folder.join("../android")]);
    let folders: Vec<PathBuf> = match folder {
        Some(folder) => vec![folder.to_owned()],
        None => beside.chain([state.join("android")]).collect(),
    };
    let found = folders.iter().map(|folder| folder.join(COMPANION_FILE)).find(|file| file.is_file());
    found.ok_or_else(|| {
        let looked: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        format!("no {COMPANION_FILE} in {}; build it with android/build", looked.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_companion_that_is_not_found_says_where_it_was_looked_for_and_how_to_build_it() {
        let state = std::env::temp_dir().join(format!("sinew-android-{}", std::process::id()));
        let folder = state.join("android");
        let missing = companion(Some(&folder), &state).expect_err("nothing is there");
        assert!(missing.contains("android/build") && missing.contains("sinew-android-"), "{missing}");
        std::fs::create_dir_all(&folder).expect("made");
        std::fs::write(folder.join(COMPANION_FILE), "x").expect("written");
        assert_eq!(companion(None, &state), Ok(folder.join(COMPANION_FILE)));
        std::fs::remove_dir_all(state).expect("removed");
    }

    #[test]
    fn the_agent_is_inside_unless_the_configuration_says_otherwise() {
        assert_eq!(AgentSetting::Switch(true).source(), AgentSource::Embedded);
        assert_eq!(AgentSetting::Switch(false).source(), AgentSource::Off);
        assert_eq!(AgentSetting::Folder("built".into()).source(), AgentSource::Folder("built".into()));
    }
}
