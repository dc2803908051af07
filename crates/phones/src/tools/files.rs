//! Files in the phone's shared storage.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sinew_tool::outcome::ResourceBody;
use sinew_tool::{Args, Content, Outcome, ToolError};

use super::args::{filled_text, invalid, text};
use super::{Operator, budget};
use crate::control::files;
use crate::phone::PhoneError;

/// A file that goes through a model; `sinew phones pull` and `push` move larger ones.
const MAX_READ: usize = 4 << 20;
const MAX_WRITTEN: usize = 1 << 20;

pub(super) async fn list(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let budget = budget(args)?.unwrap_or(16 << 10);
    let path = files::resolve(on.shell()?, &text(args, "path")?.unwrap_or_else(|| "/sdcard".to_owned())).await?;
    let entries = files::list(on.shell()?, &path).await?;
    // 80: the envelope.
    let (mut spent, total) = (80 + path.as_str().len(), entries.len());
    let shown = entries.iter().map(|entry| {
        let modified = jiff::Timestamp::from_second(entry.modified as i64).unwrap_or_default().to_string();
        json!({"name": entry.name, "kind": entry.kind(), "size": entry.size, "modified": modified})
    });
    let shown: Vec<Value> = shown
        .take_while(|entry| {
            spent += entry.to_string().len() + 1;
            spent <= budget
        })
        .collect();
    let mut answer = json!({"path": path.as_str(), "entries": shown});
    if shown_less(&answer, total) > 0 {
        answer["omitted"] = json!(shown_less(&answer, total));
    }
    Ok(Outcome::json(answer))
}

fn shown_less(answer: &Value, total: usize) -> usize {
    total - answer["entries"].as_array().map_or(0, Vec::len)
}

pub(super) async fn read(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let given = filled_text(args, "path")?;
    let path = files::resolve(on.shell()?, &given).await?;
    let bytes = files::read(on.shell()?, &path, MAX_READ).await.map_err(|error| match error {
        PhoneError::TooLarge(why) => {
            PhoneError::TooLarge(format!("{why}; `sinew phones pull` copies it to a computer"))
        }
        PhoneError::Failed(why) => PhoneError::Invalid(format!("'{given}' cannot be read: {why}")),
        error => error,
    })?;
    let (mime_type, body) = match String::from_utf8(bytes) {
        Ok(text) => ("text/plain", ResourceBody::Text(text)),
        Err(error) => (kind_of(path.as_str()), ResourceBody::Blob(STANDARD.encode(error.as_bytes()))),
    };
    let uri = format!("file://{}", encoded(path.as_str()));
    let content = Content::Resource { uri, mime_type: Some(mime_type.to_owned()), body };
    Ok(Outcome { content: vec![content], ..Outcome::default() })
}

pub(super) async fn write(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let given = filled_text(args, "path")?;
    let bytes = match (text(args, "text")?, text(args, "base64")?) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(data)) => {
            STANDARD.decode(data.trim()).map_err(|_| invalid("base64", "Parameter 'base64' must be base64"))?
        }
        _ => return Err(invalid("text", "Parameter 'text' or 'base64' must be given, and not both")),
    };
    if bytes.len() > MAX_WRITTEN {
        let message = format!(
            "Parameter 'text' must have at most {MAX_WRITTEN} bytes, has {}; `sinew phones push` copies larger files",
            bytes.len()
        );
        return Err(invalid("text", message));
    }
    let path = files::resolve(on.shell()?, &given).await?;
    files::write(on.shell()?, &path, &bytes).await?;
    Ok(Outcome::text(format!("Wrote {} bytes to '{}'", bytes.len(), path.as_str())))
}

/// By its name; the phone does not say more.
fn kind_of(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "jpg" | "jpeg" => "image/jpeg",
        "png" => "image/png",
        "mp4" => "video/mp4",
        "pdf" => "application/pdf",
        _ => "application/octet-stream",
    }
}

fn encoded(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
