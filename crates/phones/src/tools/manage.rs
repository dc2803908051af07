//! Managing apps: details, permissions, data, removal, intents.

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sinew_tool::{Args, Attachment, Outcome, ToolError};
use tokio::io::AsyncWriteExt;

use super::Operator;
use super::apps::{is_package, package};
use super::args::{filled_text, invalid, text, word};
use crate::control::apps::{self, AppChange, IntentExtra, IntentReceiver, IntentRequest};
use crate::control::install::{self, ApkSet};
use crate::phone::PhoneError;

/// What of an upload is on its way to the phone.
const UPLOAD_BUFFER: usize = 256 << 10;
/// An intent of a program has a handful.
const MAX_EXTRAS: usize = 64;
/// One text of an intent; the whole command must stay below what adb carries.
const MAX_TEXT: usize = 8 << 10;

pub(super) async fn details(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let package = package(on, args).await?;
    let details = apps::details(on.shell()?, &package).await?;
    let permissions: Vec<Value> =
        details.permissions.iter().map(|(name, is_granted)| json!({"name": name, "granted": is_granted})).collect();
    Ok(Outcome::json(json!({
        "package": package,
        "versionName": details.version_name,
        "versionCode": details.version_code,
        "firstInstalled": details.first_installed,
        "lastUpdated": details.last_updated,
        "system": details.system,
        "permissions": permissions,
    })))
}

/// Installs from the folder that the configuration names: a model never names a path of the host.
pub(super) async fn install(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let name = filled_text(args, "file")?;
    if let Some(upload) = on.client.attachment() {
        let size = install_upload(on, &*upload).await?;
        return Ok(Outcome::text(format!("Installed the uploaded app ({size} bytes)")));
    }
    let folder = on.apks.ok_or_else(|| {
        PhoneError::unsupported(
            "installing apps",
            "name a folder with APKs as `apks` under `[phones]` in the configuration",
        )
    })?;
    let path = in_folder(folder, &name)?;
    let size = install::install(on.shell()?, ApkSet::open(&path).await?, on.client).await?;
    Ok(Outcome::text(format!("Installed '{name}' ({size} bytes)")))
}

/// Installs what the caller sends, as it arrives.
async fn install_upload(on: &Operator<'_>, upload: &dyn Attachment) -> Result<u64, ToolError> {
    let (mut sink, source) = tokio::io::duplex(UPLOAD_BUFFER);
    let apks = ApkSet::stream(upload.sizes(), Box::new(source))?;
    let receive = async {
        while let Some(piece) = upload.next().await? {
            // Whoever installs says why it does not want more.
            if sink.write_all(&piece).await.is_err() {
                break;
            }
        }
        drop(sink);
        std::future::pending::<Result<Infallible, ToolError>>().await
    };
    tokio::select! {
        installed = install::install(on.shell()?, apks, on.client) => Ok(installed?),
        failed = receive => failed.map(|never| match never {}),
    }
}

/// The file or folder of that name; a link that leads out of the folder is none of it.
fn in_folder(folder: &Path, name: &str) -> Result<PathBuf, ToolError> {
    let is_plain = !name.starts_with('.') && !name.contains(['/', '\\', '\0', ':']);
    let inside = || {
        let (folder, path) = (folder.canonicalize().ok()?, folder.join(name).canonicalize().ok()?);
        (path.parent() == Some(&folder)).then_some(path)
    };
    is_plain.then(inside).flatten().ok_or_else(|| {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .map(|entries| entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
            .unwrap_or_default();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        // 20: enough to choose from.
        names.truncate(20);
        invalid("file", format!("No APK or folder of splits is called '{name}'; there are: {}", names.join(", ")))
    })
}

pub(super) async fn uninstall(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let package = package(on, args).await?;
    apps::change(on.shell()?, &package, AppChange::Uninstall).await?;
    Ok(Outcome::text(format!("Uninstalled '{package}'")))
}

pub(super) async fn clear(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let package = package(on, args).await?;
    apps::change(on.shell()?, &package, AppChange::ClearData).await?;
    Ok(Outcome::text(format!("Cleared the data of '{package}'")))
}

pub(super) async fn grant(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let permission = permission(args)?;
    let package = package(on, args).await?;
    apps::change(on.shell()?, &package, AppChange::Grant(&permission)).await?;
    Ok(Outcome::text(format!("Granted {permission} to '{package}'")))
}

pub(super) async fn revoke(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let permission = permission(args)?;
    let package = package(on, args).await?;
    apps::change(on.shell()?, &package, AppChange::Revoke(&permission)).await?;
    Ok(Outcome::text(format!("Revoked {permission} from '{package}'")))
}

/// `CAMERA` stands for `android.permission.CAMERA`.
fn permission(args: &Args) -> Result<String, ToolError> {
    let given = filled_text(args, "permission")?;
    let full = if given.contains('.') { given.clone() } else { format!("android.permission.{given}") };
    match is_package(&full) {
        true => Ok(full),
        false => {
            let message = format!(
                "Parameter 'permission' must be a name such as CAMERA or android.permission.CAMERA, got: '{given}'"
            );
            Err(invalid("permission", message))
        }
    }
}

pub(super) async fn send_intent(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let intent = intent(args)?;
    let answer = apps::send(on.shell()?, &intent).await?;
    Ok(Outcome::text(format!("Intent sent: {answer}")))
}

fn intent(args: &Args) -> Result<IntentRequest, ToolError> {
    let receiver = match word(args, "receiver", &["activity", "broadcast", "service"])? {
        Some("broadcast") => IntentReceiver::Broadcast,
        Some("service") => IntentReceiver::Service,
        _ => IntentReceiver::Activity,
    };
    let bounded = |name: &str| -> Result<Option<String>, ToolError> {
        let given = text(args, name)?.filter(|text| !text.is_empty());
        match given {
            Some(text) if text.len() > MAX_TEXT => {
                Err(invalid(name, format!("Parameter '{name}' must have at most {MAX_TEXT} bytes, has {}", text.len())))
            }
            given => Ok(given),
        }
    };
    let intent = IntentRequest {
        receiver,
        action: bounded("action")?,
        data: bounded("data")?,
        component: bounded("component")?,
        package: bounded("package")?,
        extras: extras(args)?,
    };
    if let Some(component) = &intent.component
        && !component.split_once('/').is_some_and(|(package, class)| is_package(package) && !class.is_empty())
    {
        let message = format!("Parameter 'component' must be package/class, got: '{component}'");
        return Err(invalid("component", message));
    }
    match intent.action.is_none() && intent.data.is_none() && intent.component.is_none() {
        true => Err(invalid("action", "Parameter 'action' must be given, or 'data' or 'component'")),
        false => Ok(intent),
    }
}

fn extras(args: &Args) -> Result<Vec<(String, IntentExtra)>, ToolError> {
    let extras = match args.get("extras") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(extras)) => extras,
        Some(_) => return Err(invalid("extras", "Parameter 'extras' must be an object")),
    };
    if extras.len() > MAX_EXTRAS {
        let message = format!("Parameter 'extras' must have at most {MAX_EXTRAS} members, has {}", extras.len());
        return Err(invalid("extras", message));
    }
    let typed = |(name, value): (&String, &Value)| {
        let extra = match value {
            Value::String(text) if text.len() <= MAX_TEXT => Some(IntentExtra::Text(text.clone())),
            Value::Bool(truth) => Some(IntentExtra::Boolean(*truth)),
            Value::Number(number) => {
                number.as_i64().map(IntentExtra::Integer).or_else(|| number.as_f64().map(IntentExtra::Number))
            }
            _ => None,
        };
        let wrong = || {
            let message = format!("extras.{name} must be a number, true, false or a text of at most {MAX_TEXT} bytes");
            invalid("extras", message)
        };
        extra.map(|extra| (name.clone(), extra)).ok_or_else(wrong)
    };
    extras.iter().map(typed).collect()
}
