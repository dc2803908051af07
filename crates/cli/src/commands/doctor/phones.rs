//! What phones need: adb, the agent, the companion.

use sinew_compose::android::AgentSetting;
use sinew_phones::agent::{AGENT_FILE, CompanionError};

use super::super::companion;
use super::DoctorCheck;

/// The adb that is on the PATH.
pub(super) async fn adb() -> DoctorCheck {
    const NAME: &str = "adb";
    match tokio::process::Command::new("adb").arg("version").output().await {
        Ok(output) if output.status.success() => {
            DoctorCheck::ok(NAME, adb_version(&String::from_utf8_lossy(&output.stdout)))
        }
        _ => DoctorCheck::note(NAME, "not found; only phones need it", "install it, for example with: apt install adb"),
    }
}

/// adb prints the version of its protocol first, the same for years, and its own in the second line.
fn adb_version(text: &str) -> String {
    let mut lines = text.lines();
    let protocol = lines.next().unwrap_or_default();
    match lines.next().and_then(|line| line.trim().strip_prefix("Version ")) {
        Some(version) => format!("{version} ({protocol})"),
        None => protocol.to_owned(),
    }
}

/// The part that runs on phones.
pub(super) fn agent(setting: &AgentSetting) -> DoctorCheck {
    const NAME: &str = "agent";
    match setting {
        AgentSetting::Switch(true) => {
            DoctorCheck::ok(NAME, "inside this program; phones get it when it is needed".to_owned())
        }
        AgentSetting::Switch(false) => DoctorCheck::ok(NAME, "switched off in the configuration".to_owned()),
        AgentSetting::Folder(folder) => {
            let file = folder.join(AGENT_FILE);
            match file.is_file() {
                true => DoctorCheck::ok(NAME, format!("{}; phones get it when it is needed", file.display())),
                false => DoctorCheck::note(
                    NAME,
                    format!("{} is missing: phones have no multi-touch and no clipboard", file.display()),
                    "build it with android/build, or set `agent = true` under [phones] for the one inside this program",
                ),
            }
        }
    }
}

/// The companion app on the phones that adb has ready.
pub(super) async fn companions() -> Vec<DoctorCheck> {
    const NAME: &str = "companion";
    let check = |(serial, about): (String, Result<String, CompanionError>)| match about {
        Ok(version) => DoctorCheck::ok(NAME, format!("version {version} on {serial}")),
        Err(CompanionError::Absent(_)) => DoctorCheck::note(
            NAME,
            format!("not on {serial}; only tools of apps that answer as activities do need it"),
            format!("sinew phones install-companion {serial}"),
        ),
        Err(error) => DoctorCheck::note(
            NAME,
            format!("on {serial}: {error}"),
            format!("adb -s {serial} shell pm path sinew.companion shows whether it is there"),
        ),
    };
    companion::survey().await.into_iter().map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::super::CheckState;
    use super::*;

    #[test]
    fn the_version_of_adb_is_in_its_second_line() {
        let of = |text: &str| adb_version(text);
        let protocol = "Android Debug Bridge version 1.0.41";
        for (second, version) in
            [("Version 29.0.6-debian", "29.0.6-debian"), ("Version 36.0.0-13206524\r", "36.0.0-13206524")]
        {
            let text = format!("{protocol}\n{second}\nInstalled as /usr/bin/adb\n");
            assert_eq!(of(&text), format!("{version} ({protocol})"));
        }
        assert_eq!(of("Android Debug Bridge version 1.0.39\nRevision 1"), "Android Debug Bridge version 1.0.39");
        assert_eq!(of(""), "");
    }

    #[test]
    fn the_agent_is_inside_unless_the_configuration_says_otherwise() {
        let inside = agent(&AgentSetting::Switch(true));
        assert!(inside.result == CheckState::Ok && inside.message.starts_with("inside this program"));
        assert!(agent(&AgentSetting::Switch(false)).message.contains("switched off"));
        let folder = tempfile::tempdir().expect("a folder");
        let in_folder = || agent(&AgentSetting::Folder(folder.path().to_owned()));
        let missing = in_folder();
        assert!(missing.result == CheckState::Note && missing.message.contains("no multi-touch"));
        assert!(missing.remedy.is_some_and(|remedy| remedy.contains("agent = true")));
        std::fs::write(folder.path().join(AGENT_FILE), "a jar").expect("written");
        assert_eq!(in_folder().result, CheckState::Ok);
    }
}
