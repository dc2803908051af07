//! The agent's end on a virtual phone: what `app_process` starts, and what the agent is told of the phone.
//!
//! The agent itself runs on a JVM and asks for every primitive: a connection, a JSON object a line there, one
//! back. Its protocol with the gateway is its own and passes by here unread.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sinew_phones::image::{self, JpegOptions};
use sinew_phones::{Image, Tree, UiNode};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::act::TextField;
use super::handset::{Denial, Handset};
use super::keys::Modifiers;
use super::touch::{Pointer, TouchPhase};
use super::virtual_app::{VirtualApp, VirtualComponentKind};

/// What answers on a phone when the agent is started there. Without one the phone runs no Java.
#[derive(Clone)]
pub enum AgentStandIn {
    /// The agent itself: `java -cp JAR sinew.agent.HostMain`, with the `agent-host.jar` that `android/build` makes.
    /// The one program that a virtual phone ever starts.
    Java(PathBuf),
    /// A scripted one, for what a correct one never does.
    ScriptedAgent(ScriptedAgent),
}

/// A scripted agent.
#[derive(Clone)]
pub struct ScriptedAgent {
    /// Its first line.
    pub hello: String,
    /// What it writes when it is told something; `None`: it ends.
    pub react: ScriptedAnswer,
}

/// A line in, lines out.
pub(super) type ScriptedAnswer = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// A question is never longer than the agent's own lines.
const LONGEST: u64 = 16 << 20;

/// An error as the agent gives it: its type and its message.
type AgentFault = (String, String);

/// Answers the agent's questions until dropped.
pub(super) async fn answer_all(listener: TcpListener, handset: Handset) {
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((socket, _)) = accepted else { return };
                open.spawn(answer_one(socket, handset.clone()));
            }
            Some(_) = open.join_next() => {}
        }
    }
}

async fn answer_one(socket: TcpStream, handset: Handset) {
    let (reader, mut writer) = socket.into_split();
    let mut line = String::new();
    if BufReader::new(reader.take(LONGEST)).read_line(&mut line).await.is_err() {
        return;
    }
    let question: Value = serde_json::from_str(&line).unwrap_or_default();
    let answer = match answer(&handset, &question).await {
        Ok(result) => json!({"result": result}),
        Err((kind, message)) => json!({"error": {"type": kind, "message": message}}),
    };
    let _ = writer.write_all(format!("{answer}\n").as_bytes()).await;
}

async fn answer(handset: &Handset, question: &Value) -> Result<Value, AgentFault> {
    handset.take_time().await.map_err(|gone| fault("failed", gone.to_string()))?;
    let text = |name: &str| question[name].as_str().unwrap_or_default();
    match text("ask") {
        "about" => Ok(handset.with(|machine| {
            let android = machine.setup.android;
            json!({"api": android.sdk(), "release": android.release()})
        })),
        "tree" => {
            allow(handset, Denial::Tree)?;
            handset.hold_tree(true);
            Ok(nodes(&handset.with(|machine| machine.tree())))
        }
        "awake" => Ok(json!(handset.with(|machine| machine.is_awake()))),
        "rotation" => Ok(json!(handset.with(|machine| machine.rotation()))),
        "field" => {
            let handle = question["handle"].as_u64();
            let field = TextField::ALL.into_iter().find(|field| handle == Some(*field as u64));
            let Some(field) = field else { return Ok(json!(false)) };
            match question["text"].as_str() {
                None => Ok(json!(handset.with(|machine| machine.is_in_sight(field)))),
                Some(text) => {
                    allow(handset, Denial::Input)?;
                    Ok(json!(handset.with(|machine| machine.set_text(field, text))))
                }
            }
        }
        "select" => {
            allow(handset, Denial::Input)?;
            let number = |name: &str| question[name].as_u64().and_then(|number| usize::try_from(number).ok());
            let field = TextField::ALL.into_iter().find(|field| question["handle"].as_u64() == Some(*field as u64));
            let (Some(field), Some(start), Some(end)) = (field, number("start"), number("end")) else {
                return Ok(json!(false));
            };
            Ok(json!(handset.with(|machine| {
                let text = machine.field_text(field).to_owned();
                machine.select(field, to_characters(&text, start), to_characters(&text, end))
            })))
        }
        "picture" => {
            allow(handset, Denial::Capture)?;
            let options = JpegOptions {
                quality: question["quality"].as_u64().unwrap_or(80).clamp(1, 100) as u8,
                max_side: question["max_side"].as_u64().and_then(|side| u32::try_from(side).ok()),
                ..JpegOptions::default()
            };
            let painted = handset.with(|machine| (!machine.is_secure()).then(|| machine.paint()));
            let canvas = painted.ok_or_else(|| fault("denied", "the app in front forbids pictures (FLAG_SECURE)"))?;
            let (width, height) = (canvas.width as u32, canvas.height as u32);
            let jpeg = image::finish(Image::Rgba { width, height, pixels: canvas.bytes().to_vec() }, &options);
            let jpeg = jpeg.map_err(|error| fault("failed", error.to_string()))?;
            Ok(json!(STANDARD.encode(jpeg.bytes)))
        }
        "touch" => {
            allow(handset, Denial::Input)?;
            let played = handset.play_pointers(pointers(&question["events"])).await;
            played.map(|()| Value::Null).map_err(|gone| fault("failed", gone.to_string()))
        }
        "key" => {
            allow(handset, Denial::Input)?;
            let code = question["code"].as_u64().and_then(|code| u32::try_from(code).ok()).unwrap_or_default();
            let meta = question["meta"].as_u64().unwrap_or_default();
            // Android's masks of the shift and the control keys.
            let held = Modifiers { shift: meta & 0x1 != 0, ctrl: meta & 0x1000 != 0 };
            handset.with(|machine| machine.key(code, held));
            Ok(Value::Null)
        }
        "clipboard_get" => Ok(json!(handset.with(|machine| machine.clipboard().map(str::to_owned)))),
        "clipboard_set" => {
            handset.with(|machine| machine.set_clipboard(text("text")));
            Ok(Value::Null)
        }
        "provider_call" => {
            let authority = text("authority");
            let virtual_apps = handset.virtual_apps();
            let provider = virtual_apps.iter().find_map(|virtual_app| virtual_app.providers.get(authority));
            let provider = provider.ok_or_else(|| {
                fault("not_found", format!("no app offers the content provider '{authority}' to user 0"))
            })?;
            match provider(text("method"), &question["extras"]) {
                // An app that never answers.
                Err((kind, _)) if kind == "hang" => std::future::pending().await,
                answer => answer,
            }
        }
        "package_meta" => {
            let package = text("package");
            let virtual_app = handset.virtual_apps().into_iter().find(|virtual_app| virtual_app.package == package);
            let virtual_app =
                virtual_app.ok_or_else(|| fault("not_found", format!("user 0 has no package '{package}'")))?;
            Ok(components(&virtual_app))
        }
        other => Err(fault("unknown_method", format!("a virtual phone has no answer to '{other}'"))),
    }
}

/// Java counts in UTF-16.
fn to_characters(text: &str, units: usize) -> usize {
    let mut passed = 0;
    let is_before = move |character: &char| {
        passed += character.len_utf16();
        passed <= units
    };
    text.chars().take_while(is_before).count()
}

fn to_units(text: &str, characters: usize) -> usize {
    text.chars().take(characters).map(char::len_utf16).sum()
}

fn fault(kind: &str, message: impl Into<String>) -> AgentFault {
    (kind.to_owned(), message.into())
}

fn allow(handset: &Handset, what: Denial) -> Result<(), AgentFault> {
    match handset.is_denied(what) {
        true => Err(fault("denied", "this phone forbids it; allow it in its developer options")),
        false => Ok(()),
    }
}

/// A tree in the agent's own form: flat, with depths and flags.
fn nodes(tree: &Tree) -> Value {
    let nodes: Vec<Value> = (0..tree.len()).map(|index| node(tree.node(index), tree.position(index).depth)).collect();
    json!({"nodes": nodes})
}

fn node(node: &UiNode, depth: usize) -> Value {
    let flags = [
        node.checkable,
        node.checked,
        node.clickable,
        node.long_clickable,
        node.enabled,
        node.focusable,
        node.focused,
        node.scrollable,
        node.editable,
        node.password,
        node.selected,
        node.visible,
    ];
    let flags: u32 = flags.into_iter().enumerate().map(|(bit, set)| u32::from(set) << bit).sum();
    let bounds = [node.bounds.left, node.bounds.top, node.bounds.right, node.bounds.bottom];
    let mut value = Map::new();
    value.insert("depth".to_owned(), json!(depth));
    value.insert("class".to_owned(), json!(node.class));
    value.insert("package".to_owned(), json!(node.package));
    let optional =
        [("text", &node.text), ("description", &node.description), ("id", &node.resource_id), ("hint", &node.hint)];
    for (name, text) in optional.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
        value.insert(name.to_owned(), json!(text));
    }
    value.insert("bounds".to_owned(), json!(bounds));
    value.insert("flags".to_owned(), json!(flags));
    if let Some((start, end)) = node.selection {
        let text = node.text.as_deref().unwrap_or_default();
        value.insert("selection".to_owned(), json!([to_units(text, start), to_units(text, end)]));
    }
    if let Some(range) = node.range {
        value.insert("range".to_owned(), json!(range.numbers()));
    }
    if let Some(handle) = node.handle {
        value.insert("handle".to_owned(), json!(handle));
    }
    Value::Object(value)
}

/// The pointers of Android's touch events: `[ms, action, index, [[id, x, y], …]]`.
fn pointers(events: &Value) -> Vec<(Duration, Pointer)> {
    let mut pointers = Vec::new();
    for event in events.as_array().into_iter().flatten() {
        let at = Duration::from_millis(event[0].as_u64().unwrap_or_default());
        let fingers = event[3].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut add = |finger: &Value, phase: TouchPhase| {
            let number = |nth: usize| finger[nth].as_f64().unwrap_or_default() as f32;
            let finger = finger[0].as_u64().unwrap_or_default() as u32;
            pointers.push((at, Pointer { finger, phase, x: number(1), y: number(2) }));
        };
        let meant = event[2].as_u64().and_then(|index| fingers.get(index as usize));
        match (event[1].as_u64(), meant) {
            (Some(0 | 5), Some(finger)) => add(finger, TouchPhase::Down),
            (Some(1 | 6), Some(finger)) => add(finger, TouchPhase::Up),
            (Some(2), _) => fingers.iter().for_each(|finger| add(finger, TouchPhase::Move)),
            (_, Some(finger)) => add(finger, TouchPhase::Cancel),
            _ => {}
        }
    }
    pointers
}

/// The parts of an app as `package_meta` lists them. Their meta-data is in the APK alone.
fn components(virtual_app: &VirtualApp) -> Value {
    let full = |class: &str| match class.strip_prefix('.') {
        Some(rest) => format!("{}.{rest}", virtual_app.package),
        None => class.to_owned(),
    };
    let parts = virtual_app.parts.iter().map(|part| {
        let kind = match part.kind {
            VirtualComponentKind::Activity => "activity",
            VirtualComponentKind::Receiver => "receiver",
            VirtualComponentKind::AdbdService => "service",
        };
        json!({"kind": kind, "name": full(&part.class), "exported": true, "enabled": true, "permission": null})
    });
    let providers = virtual_app.providers.keys().map(|authority| {
        let name = format!("{}.Provider", virtual_app.package);
        json!({"kind": "provider", "name": name, "exported": true, "enabled": true, "permission": null, "authority": authority})
    });
    Value::Array(parts.chain(providers).collect())
}
