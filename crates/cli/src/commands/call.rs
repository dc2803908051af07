//! `sinew call`: one call, its answer shown or saved.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sinew_api::{self as api, CallResult};
use sinew_tool::spelling::nearest;
use sinew_tool::{Content, ErrorKind, ToolError};

use super::tools;
use crate::args::CallArgs;
use crate::client::{GatewayClient, GatewayTarget, encode};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, TextStyle, bytes, clean, print, print_json};

pub async fn run(args: CallArgs, printer: Printer) -> Result<(), CliError> {
    let mut client = GatewayTarget::find(&args.reach)?.connect().await?;
    let arguments = match &args.args {
        Some(text) => whole(text)?,
        None if args.arguments.is_empty() => Map::new(),
        None => match args.device.trim().strip_prefix("label:") {
            Some(label) => match schema_of_label(&mut client, label, &args.tool).await? {
                Some(schema) => typed(&args.arguments, &schema)?,
                // The gateway says what is wrong with the label.
                None => Map::new(),
            },
            None => typed(&args.arguments, &schema(&mut client, &args.device, &args.tool).await?)?,
        },
    };
    let confirmed = args.yes || confirm(&mut client, &args, &arguments).await?;
    let request = api::CallRequest {
        device: Some(args.device.clone()),
        tool: args.tool.clone(),
        arguments,
        timeout_ms: args.timeout.map(|timeout| timeout.as_millis() as u64),
        confirmed,
    };
    let waiting = format!("waiting for {}", args.device);
    let answered = printer.waiting(&waiting, client.post("/api/v1/call", &request)).await;
    let unknown_tool = ErrorKind::UnknownTool.row().error_type;
    let mut answer: CallResult = match answered {
        // Here is said what the device has instead.
        Err(failure) if failure.error_type == unknown_tool && !args.device.trim().starts_with("label:") => {
            return Err(schema(&mut client, &args.device, &args.tool).await.err().unwrap_or(failure));
        }
        answered => answered?,
    };
    let stem = format!("{}-{}", plain(&args.device), plain(&args.tool));
    let shown = items(&mut answer, args.save.as_deref(), &stem)?;
    if printer.is_json() {
        print_json(&answer);
        return Ok(());
    }
    for item in shown {
        match item {
            ContentLine::Text(text) => print(&format!("{}\n", clean(&text))),
            ContentLine::Other(what) => print(&format!("{}\n", printer.paint(TextStyle::Dim, &clean(&what)))),
        }
    }
    Ok(())
}

/// Asks on the terminal where the policy wants a person to agree. Only administrators can agree to their own calls; for
/// others the gateway asks somebody else.
async fn confirm(
    client: &mut GatewayClient,
    args: &CallArgs,
    arguments: &Map<String, Value>,
) -> Result<bool, CliError> {
    if args.device.trim().starts_with("label:") || !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    let request = api::Explain {
        token: None,
        device: args.device.clone(),
        tool: args.tool.clone(),
        arguments: arguments.clone(),
    };
    // What is wrong with the call is better said by the call itself.
    let Ok(explained) = client.post::<api::Explained>("/api/v1/policy/explain", &request).await else {
        return Ok(false);
    };
    if explained.verdict != "ask" {
        return Ok(false);
    }
    let arguments = Value::Object(arguments.clone());
    eprint!(
        "{} on {} with {arguments} needs your approval ({}). Make the call? [y/N] ",
        clean(&args.tool),
        clean(&args.device),
        clean(&explained.reason)
    );
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(|error| CliError::new(CliErrorKind::Io, format!("cannot read the answer: {error}")))?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(true),
        _ => Err(CliError::new(CliErrorKind::Usage, "the call was not made")),
    }
}

enum ContentLine {
    Text(String),
    Other(String),
}

/// What to show of each content item. With a path to save to, binary data moves from the answer into files.
fn items(answer: &mut CallResult, save: Option<&Path>, stem: &str) -> Result<Vec<ContentLine>, CliError> {
    let (mut shown, mut saved) = (Vec::new(), 0);
    let target = save.map(SavePath::new);
    for item in &mut answer.content {
        let Some(content) = Content::from_json(item) else {
            let kind = item.get("type").and_then(Value::as_str).unwrap_or_default();
            shown.push(ContentLine::Other(format!("content of an unknown type: {kind}")));
            continue;
        };
        match (&content, content.bytes()) {
            (Content::Text(text), _) => shown.push(ContentLine::Text(text.clone())),
            (_, Some(data)) => {
                let mime = mime_type(&content);
                let size = match &content {
                    Content::Image { size: Some((width, height)), .. } => format!(", {width} × {height}"),
                    _ => String::new(),
                };
                let mut line = format!("{mime}{size}, {}", bytes(data.len()));
                if let Some(target) = &target {
                    saved += 1;
                    let path = target.save(stem, extension(mime), saved, &data)?;
                    line.push_str(&format!(", saved to {}", path.display()));
                    strip(item, &path);
                } else {
                    line.push_str("; --save FILE saves it");
                }
                shown.push(ContentLine::Other(line));
            }
            (Content::Link(link), _) => shown.push(ContentLine::Other(link.uri.clone())),
            _ => shown.push(ContentLine::Other(item.to_string())),
        }
    }
    if shown.is_empty() {
        shown.extend(answer.structured.iter().map(|structured| ContentLine::Text(format!("{structured:#}"))));
    }
    Ok(shown)
}

fn mime_type(content: &Content) -> &str {
    match content {
        Content::Image { mime_type, .. } | Content::Audio { mime_type, .. } => mime_type,
        Content::Resource { mime_type: Some(mime_type), .. } => mime_type,
        _ => "application/octet-stream",
    }
}

/// Puts the path where the data was.
fn strip(item: &mut Value, path: &Path) {
    let holder = if item.get("resource").is_some() { &mut item["resource"] } else { item };
    if let Some(holder) = holder.as_object_mut() {
        holder.remove("data");
        holder.remove("blob");
        holder.insert("saved".to_owned(), json!(path.display().to_string()));
    }
}

/// Where binary content is written.
enum SavePath<'a> {
    /// A file that the caller named; it is replaced. Further content of the same answer gets numbers.
    File(&'a Path),
    /// A folder, in which nothing is replaced.
    Folder(&'a Path),
}

impl<'a> SavePath<'a> {
    /// A name with an ending is a file, unless there is a folder of that name.
    fn new(path: &'a Path) -> SavePath<'a> {
        let is_folder =
            path.is_dir() || path.extension().is_none() || path.as_os_str().to_string_lossy().ends_with('/');
        if is_folder { SavePath::Folder(path) } else { SavePath::File(path) }
    }

    fn save(&self, stem: &str, extension: &str, number: usize, data: &[u8]) -> Result<PathBuf, CliError> {
        let failed =
            |path: &Path, error| CliError::new(CliErrorKind::Io, format!("cannot write {}: {error}", path.display()));
        let folder = match self {
            SavePath::File(path) => path.parent().unwrap_or(Path::new("")),
            SavePath::Folder(folder) => folder,
        };
        if !folder.as_os_str().is_empty() {
            fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        }
        if let SavePath::File(path) = self {
            let path = if number == 1 { path.to_path_buf() } else { numbered(path, number) };
            return fs::write(&path, data).map(|()| path.clone()).map_err(|error| failed(&path, error));
        }
        for number in 1.. {
            let path = folder.join(format!("{stem}-{number}.{extension}"));
            match fs::OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    std::io::Write::write_all(&mut file, data).map_err(|error| failed(&path, error))?;
                    return Ok(path);
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path, error)),
            }
        }
        Err(CliError::new(CliErrorKind::Io, format!("no free name in {}", folder.display())))
    }
}

/// `shot.png`, `shot-2.png`, …
fn numbered(path: &Path, number: usize) -> PathBuf {
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!("{}-{number}.{}", part(path.file_stem()), part(path.extension())))
}

fn extension(mime: &str) -> &'static str {
    match mime {
        "image/jpeg" => "jpg",
        "image/png" => "png",
        "image/webp" => "webp",
        "image/gif" => "gif",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "text/html" => "html",
        "text/plain" => "txt",
        "application/json" => "json",
        _ => "bin",
    }
}

/// A name in plain characters; names come from devices and users, and only these reach the file system.
fn plain(text: &str) -> String {
    text.chars()
        .map(|character| if character.is_ascii_alphanumeric() || character == '-' { character } else { '_' })
        .collect()
}

fn whole(text: &str) -> Result<Map<String, Value>, CliError> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(usage("--args must be one JSON object, for example --args '{\"volume\": 40}'".to_owned())),
        Err(error) => Err(usage(format!("--args is not JSON: {error}"))),
    }
}

/// The schema of a tool that any device with the label has.
async fn schema_of_label(client: &mut GatewayClient, label: &str, tool: &str) -> Result<Option<Value>, CliError> {
    let label = label.to_ascii_lowercase();
    let answer: api::Devices = client.get("/api/v1/devices").await?;
    for device in answer.devices.iter().filter(|device| device.labels.contains(&label)) {
        if let Ok(schema) = schema(client, &device.id, tool).await {
            return Ok(Some(schema));
        }
    }
    Ok(None)
}

async fn schema(client: &mut GatewayClient, device: &str, tool: &str) -> Result<Value, CliError> {
    let tools = tools::of_device(client, device).await?;
    // The device's own name and the public one differ in characters that the public one cannot have.
    if let Some(entry) = tools.iter().find(|entry| plain(&entry.name) == plain(tool)) {
        return Ok(entry.input_schema.clone());
    }
    // A public name may also carry a suffix.
    let public: api::Tools = client.get("/api/v1/tools?shape=folded").await?;
    if let Some(entry) = public.tools.into_iter().find(|entry| entry.name == tool) {
        return Ok(entry.input_schema);
    }
    // Only administrators may see what is held back.
    let changes = client.get::<api::Changes>(&format!("/api/v1/devices/{}/changes", encode(device))).await;
    let is_held = changes.is_ok_and(|changes| changes.quarantined.iter().any(|held| held.tool == tool));
    let names: Vec<_> = tools.iter().map(|entry| entry.name.as_str()).collect();
    let message = match is_held {
        true => format!(
            "`{tool}` of {device} is held back, because it changed against what was agreed; `sinew devices changes \
             {device}` shows how, `sinew devices accept {device} DIGEST` accepts it"
        ),
        false if names.is_empty() => {
            format!("{device} offers no tools now; `sinew devices show {device}` says why, and what to do")
        }
        false => {
            let hint = match nearest(tool, names.iter().copied()) {
                Some(name) => format!("; did you mean `{name}`?"),
                None if FOR_PEOPLE.contains(&tool) => {
                    "; firmware has it for people only: set `user-tools = true` under [gateway] to use it".to_owned()
                }
                None => String::new(),
            };
            format!("{device} has no tool `{tool}`{hint} (it has {})", names.join(", "))
        }
    };
    Err(ToolError::new(ErrorKind::UnknownTool, message).into())
}

/// What the firmware of boards lists only where tools for people are wanted.
const FOR_PEOPLE: [&str; 7] = [
    "self.get_system_info",
    "self.reboot",
    "self.upgrade_firmware",
    "self.screen.get_info",
    "self.screen.snapshot",
    "self.screen.preview_image",
    "self.assets.set_download_url",
];

/// `key=value` pairs, each value read as the schema types it.
pub fn typed(pairs: &[String], schema: &Value) -> Result<Map<String, Value>, CliError> {
    let mut arguments = Map::new();
    for pair in pairs {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| usage(format!("`{pair}` is not key=value; the tool takes {}", takes(schema))))?;
        if let Some(message) = unknown(key, schema) {
            return Err(usage(message));
        }
        let value = read(value, &schema["properties"][key]).ok_or_else(|| {
            let expected =
                tools::arguments(&json!({"required": [key], "properties": {key: schema["properties"][key]}}));
            usage(format!("`{value}` does not fit the argument {expected}"))
        })?;
        if arguments.insert(key.to_owned(), value).is_some() {
            return Err(usage(format!("the argument `{key}` is given twice")));
        }
    }
    Ok(arguments)
}

/// What is wrong with an argument that the tool does not describe. A tool that takes anything says so, or
/// says nothing at all; --args sends what it is given.
fn unknown(key: &str, schema: &Value) -> Option<String> {
    let known = schema.get("properties")?.as_object()?;
    let is_open = schema.get("additionalProperties").is_some_and(|rest| *rest != json!(false))
        || ["patternProperties", "$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"]
            .iter()
            .any(|word| schema.get(*word).is_some());
    if known.contains_key(key) || is_open {
        return None;
    }
    let meant = nearest(key, known.keys().map(String::as_str));
    let meant = meant.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
    Some(format!("the tool has no argument `{key}`{meant} (it takes {})", takes(schema)))
}

fn takes(schema: &Value) -> String {
    let arguments = tools::arguments(schema);
    if arguments.is_empty() { "no arguments".to_owned() } else { arguments }
}

/// A value as its property's type reads it; where no type is said, JSON if it is JSON, else text.
fn read(value: &str, property: &Value) -> Option<Value> {
    let json = || serde_json::from_str::<Value>(value).ok();
    let as_type = |word: &str| match word {
        "string" => Some(json!(value)),
        "integer" => json().filter(|value| value.is_i64() || value.is_u64()),
        "number" => json().filter(Value::is_number),
        "boolean" => match value {
            "true" | "yes" | "on" => Some(json!(true)),
            "false" | "no" | "off" => Some(json!(false)),
            _ => None,
        },
        "array" => json().filter(Value::is_array),
        "object" => json().filter(Value::is_object),
        "null" => (value == "null").then_some(Value::Null),
        _ => None,
    };
    match property.get("type") {
        Some(Value::String(word)) => as_type(word),
        // The narrower types first, as everything is text.
        Some(Value::Array(words)) => ["null", "boolean", "integer", "number", "array", "object", "string"]
            .into_iter()
            .filter(|word| words.iter().any(|wanted| wanted == word))
            .find_map(as_type),
        _ => Some(json().unwrap_or_else(|| json!(value))),
    }
}

fn usage(message: String) -> CliError {
    CliError::new(CliErrorKind::Usage, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[&str]) -> Result<Value, String> {
        let schema = json!({"properties": {
            "volume": {"type": "integer", "minimum": 0, "maximum": 100},
            "on": {"type": "boolean"},
            "text": {"type": "string"},
            "either": {"type": ["string", "integer"]},
            "list": {"type": "array"},
        }});
        let pairs: Vec<_> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        typed(&pairs, &schema).map(Value::Object).map_err(|failure| failure.message)
    }

    #[test]
    fn values_are_typed_by_the_schema() {
        assert_eq!(
            pairs(&["volume=40", "on=off", "text=4=0", "either=40", "list=[1,2]"]),
            Ok(json!({"volume": 40, "on": false, "text": "4=0", "either": 40, "list": [1, 2]}))
        );
        assert_eq!(pairs(&["either=forty", "text="]), Ok(json!({"either": "forty", "text": ""})));
    }

    #[test]
    fn an_argument_that_the_tool_does_not_know_is_named_with_the_one_that_was_meant() {
        let message = pairs(&["volum=40"]).unwrap_err();
        assert!(message.contains("no argument `volum`; did you mean `volume`?"), "{message}");
        let message = pairs(&["brightness=40"]).unwrap_err();
        assert!(message.contains("it takes volume?: integer 0–100"), "{message}");
        let given = ["other=x=y".to_owned()];
        for open in [json!({"type": "object"}), json!({"properties": {}, "additionalProperties": {"type": "string"}})] {
            assert_eq!(typed(&given, &open).map(Value::Object), Ok(json!({"other": "x=y"})), "{open}");
        }
        assert!(typed(&given, &json!({"properties": {}})).unwrap_err().message.contains("no arguments"));
    }

    #[test]
    fn a_value_that_does_not_fit_is_named_with_the_expectation() {
        assert_eq!(pairs(&["volume=loud"]), Err("`loud` does not fit the argument volume: integer 0–100".to_owned()));
        assert!(pairs(&["volume=1.5"]).is_err());
        assert!(pairs(&["volume"]).is_err());
        assert_eq!(pairs(&["on=on", "on=on"]), Err("the argument `on` is given twice".to_owned()));
    }

    #[test]
    fn binary_content_moves_into_files_that_are_never_written_over() {
        let folder = std::env::temp_dir().join(format!("sinew-call-{}", std::process::id()));
        let image = Content::image(b"abc", "image/png", Some((2, 1))).to_json();
        let mut answer = CallResult { content: vec![image.clone(), image], structured: None, more: Default::default() };
        items(&mut answer, Some(&folder), "b-photo").expect("saved");
        assert_eq!(fs::read(folder.join("b-photo-1.png")).expect("written"), b"abc");
        assert_eq!(fs::read(folder.join("b-photo-2.png")).expect("written"), b"abc");
        assert!(answer.content[1].get("data").is_none());
        assert!(answer.content[1]["saved"].as_str().unwrap_or_default().ends_with("b-photo-2.png"));
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_name_with_an_ending_is_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let image = Content::image(b"abc", "image/png", None).to_json();
        let mut answer = CallResult { content: vec![image.clone(), image], structured: None, more: Default::default() };
        let path = folder.path().join("new/shot.png");
        for _ in 0..2 {
            items(&mut answer.clone(), Some(&path), "b-photo").expect("saved");
        }
        items(&mut answer, Some(&path), "b-photo").expect("saved");
        assert_eq!(fs::read(&path).expect("a file"), b"abc");
        assert_eq!(fs::read_dir(folder.path().join("new")).expect("a folder").count(), 2, "shot.png and shot-2.png");
    }

    #[test]
    fn names_cannot_leave_the_folder() {
        assert_eq!(plain("../../etc/passwd"), "______etc_passwd");
        assert_eq!(plain("self.camera.take_photo"), "self_camera_take_photo");
    }
}
