//! Apps and links.

use serde_json::{Value, json};
use sinew_tool::{Args, Outcome, ToolError};

use super::args::{filled_text, invalid, text};
use super::{Operator, budget};
use crate::phone::{InstalledApp, PhoneError, Screen};

pub(super) async fn list(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let part = text(args, "query")?.unwrap_or_default().to_lowercase();
    let budget = budget(args)?;
    let mut apps = on.phone.apps().await?;
    apps.retain(|app| {
        app.package.to_lowercase().contains(&part)
            || app.label.as_deref().is_some_and(|label| label.to_lowercase().contains(&part))
    });
    // What a person put there comes first.
    apps.sort_by(|a, b| (a.system, &a.package).cmp(&(b.system, &b.package)));
    // 40: the envelope and the count of what was left out.
    let (mut spent, total) = (40, apps.len());
    let apps: Vec<Value> = apps
        .iter()
        .map(entry)
        .take_while(|entry| {
            spent += entry.to_string().len() + 1;
            budget.is_none_or(|budget| spent <= budget)
        })
        .collect();
    let omitted = total - apps.len();
    let mut answer = json!({"apps": apps});
    if omitted > 0 {
        answer["omitted"] = json!(omitted);
    }
    Ok(Outcome::json(answer))
}

fn entry(app: &InstalledApp) -> Value {
    let mut entry = json!({"package": app.package});
    if let Some(label) = &app.label {
        entry["label"] = json!(label);
    }
    if app.system {
        entry["system"] = json!(true);
    }
    entry
}

pub(super) async fn open(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let package = package(on, args).await?;
    require_unlocked_screen(on).await?;
    on.phone.open_app(&package).await?;
    Ok(Outcome::text(format!("Opened '{package}'")))
}

pub(super) async fn close(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let package = package(on, args).await?;
    on.phone.close_app(&package).await?;
    Ok(Outcome::text(format!("Closed '{package}'")))
}

/// Refuses to start something behind a lock screen or while the display is off.
async fn require_unlocked_screen(on: &Operator<'_>) -> Result<(), PhoneError> {
    match on.screen_now().await? {
        Screen { awake: false, .. } => Err(PhoneError::Denied(
            "the phone's display is off, so what is opened would not be seen; wake it with press_key WAKEUP".to_owned(),
        )),
        Screen { locked: true, .. } => Err(PhoneError::Denied(
            "the phone is locked, so what is opened would stay behind its lock screen; unlock it first (swipe up, or as get_screen shows)"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// The app meant, by its package or by what its icon says.
pub(super) async fn package(on: &Operator<'_>, args: &Args) -> Result<String, ToolError> {
    let app = filled_text(args, "app")?;
    if is_package(&app) {
        return Ok(app);
    }
    let apps = on.phone.apps().await?;
    let named =
        |app: &&InstalledApp, name: &str| app.label.as_deref().is_some_and(|label| label.eq_ignore_ascii_case(name));
    let found = apps.iter().find(|candidate| named(candidate, &app));
    let last = |candidate: &&InstalledApp| {
        candidate.package.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case(&app))
    };
    let found = found.or_else(|| apps.iter().find(last));
    if let Some(found) = found {
        return Ok(found.package.clone());
    }
    // Plain adb does not list the names of icons, so a part of the package is enough where it fits one app only.
    let part: String = app.to_lowercase().split_whitespace().collect();
    let alike: Vec<&str> = apps.iter().map(|app| app.package.as_str()).filter(|name| name.contains(&part)).collect();
    match alike[..] {
        [package] if !part.is_empty() => Ok(package.to_owned()),
        [] | [_] => Err(invalid(
            "app",
            format!("No app on the phone is called '{app}'; list_apps shows them with their packages"),
        )),
        _ => {
            let alike = alike.iter().take(5).copied().collect::<Vec<_>>().join(", ");
            Err(invalid("app", format!("Several apps might be called '{app}': {alike}; name one by its package")))
        }
    }
}

/// Java's rule: two names or more, joined by dots.
pub(super) fn is_package(text: &str) -> bool {
    let name = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    text.len() <= 255 && text.contains('.') && text.split('.').all(name)
}

/// Schemes that reach into the phone instead of pointing somewhere.
const REFUSED: [&str; 6] = ["intent", "file", "content", "javascript", "data", "android-app"];

pub(super) async fn open_url(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let url = filled_text(args, "url")?;
    let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase()).unwrap_or_default();
    let plain = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if !plain {
        return Err(invalid("url", format!("Parameter 'url' must begin with a scheme such as https:, got: '{url}'")));
    }
    if REFUSED.contains(&scheme.as_str()) {
        return Err(invalid(
            "url",
            format!("Links of the scheme '{scheme}:' are not opened: they reach into apps and files"),
        ));
    }
    if url.chars().any(|character| character.is_control() || character == ' ') || url.len() > 8192 {
        return Err(invalid("url", "Parameter 'url' must be one link without spaces, of at most 8192 bytes"));
    }
    require_unlocked_screen(on).await?;
    on.phone.open_url(&url).await?;
    Ok(Outcome::text(format!("Opened '{url}'")))
}

#[cfg(test)]
mod tests {
    use super::is_package;

    #[test]
    fn a_package_is_names_joined_by_dots() {
        assert!(is_package("com.android.calculator2"));
        for wrong in ["calculator", "", ".", "com..x", "com.x;reboot", "com.x y", "com.1x", "com.$(id)"] {
            assert!(!is_package(wrong), "{wrong}");
        }
    }
}
