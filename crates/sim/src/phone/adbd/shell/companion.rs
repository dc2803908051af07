//! The companion on a virtual phone: where its app is installed, it calls activities of installed apps and
//! keeps their answers until they are read.

use std::sync::Arc;

use serde_json::{Value, json};

use super::apps::Intent;
use super::{Io, Shell};
use crate::phone::android::Android;
use crate::phone::virtual_app::{
    AppComponent, COMPANION, IntentReaction, ReceivedIntent, VirtualApp, VirtualComponentKind,
};

impl Shell {
    /// Takes a call where the companion is installed and meant; `false` where not.
    pub(super) fn companion_start(&self, intent: &Intent<'_>, io: &mut Io<'_, '_>) -> bool {
        let is_meant =
            intent.component == Some("sinew.companion/.CallActivity") && self.virtual_app(COMPANION).is_some();
        if !is_meant {
            return false;
        }
        io.line(format!("Starting: Intent {{ flg=0x18000000 cmp={COMPANION}/.CallActivity (has extras) }}"));
        let extra = |name: &str| intent.extras.get(name).cloned().unwrap_or_default();
        let request = ReceivedIntent {
            action: extra("action"),
            extras: ["tool_name", "parameters"].map(|name| (name.to_owned(), extra(name))).into(),
        };
        let answer = match self.called(&extra("component"), &extra("package"), &request.action).as_deref() {
            Ok([(virtual_app, index)]) => match (virtual_app.parts[*index].react)(&request) {
                IntentReaction::Answer { code, text, .. } => Some(json!({"code": code, "result": text})),
                // The caller of an activity that dies is told that it was canceled.
                IntentReaction::Crash => Some(json!({"code": 0, "result": null})),
                IntentReaction::Refuse => {
                    Some(fault("denied", "the activity is not exported or asks for a permission"))
                }
                IntentReaction::Hang => None,
            },
            Ok([]) | Err(()) => Some(fault("not_found", "no activity takes the call")),
            Ok(_) => Some(fault("ambiguous", "several apps take the action; name the component")),
        };
        if let Some(answer) = answer {
            self.handset.put_answer(extra("token"), answer.to_string());
        }
        true
    }

    /// The activities that a call reaches, each as an app and the place of its part.
    fn called(&self, component: &str, package: &str, action: &str) -> Result<Vec<(Arc<VirtualApp>, usize)>, ()> {
        let virtual_apps = self.handset.virtual_apps();
        if let Some((package, class)) = component.split_once('/') {
            let virtual_app = virtual_apps.into_iter().find(|virtual_app| virtual_app.package == package).ok_or(())?;
            let is_meant = |part: &AppComponent| {
                part.kind == VirtualComponentKind::Activity && virtual_app.full(&part.class) == virtual_app.full(class)
            };
            let index = virtual_app.parts.iter().position(is_meant).ok_or(())?;
            return Ok(vec![(virtual_app, index)]);
        }
        let takes = |part: &AppComponent| {
            part.kind == VirtualComponentKind::Activity && part.actions.iter().any(|own| own == action)
        };
        let of = |virtual_app: Arc<VirtualApp>| {
            let found: Vec<usize> =
                (0..virtual_app.parts.len()).filter(|index| takes(&virtual_app.parts[*index])).collect();
            found.into_iter().map(move |index| (virtual_app.clone(), index))
        };
        let meant = virtual_apps.into_iter().filter(|virtual_app| package.is_empty() || virtual_app.package == package);
        Ok(meant.flat_map(of).collect())
    }

    /// `content read` of the companion's provider; `None` where it is not that.
    pub(super) async fn companion_read(&self, args: &[&str], io: &mut Io<'_, '_>) -> Option<u8> {
        let at = args.iter().position(|arg| *arg == "--uri")?;
        let path = args.get(at + 1)?.strip_prefix("content://sinew.companion/")?;
        if args.first() != Some(&"read") || self.virtual_app(COMPANION).is_none() {
            return None;
        }
        match path.strip_prefix("call/") {
            Some(token) => {
                let answer = self.handset.answer(token).await;
                io.bytes(answer.as_bytes());
            }
            None => io.bytes(br#"{"companion":"sinew-companion","version":"0.1.0","protocol":1}"#),
        }
        Some(0)
    }

    /// `content call` of an installed app's provider; `None` where no app has it.
    pub(super) fn provider_call(&self, args: &[&str], io: &mut Io<'_, '_>) -> Option<u8> {
        let value = |name: &str| args.iter().position(|arg| *arg == name).and_then(|at| args.get(at + 1)).copied();
        let authority = value("--uri")?.strip_prefix("content://")?;
        let virtual_apps = self.handset.virtual_apps();
        let provider = virtual_apps.iter().find_map(|virtual_app| virtual_app.providers.get(authority))?;
        if args.first() != Some(&"call") {
            return None;
        }
        match provider(value("--method").unwrap_or_default(), &Value::Null) {
            Ok(Value::Object(bundle)) => {
                let members: Vec<String> =
                    bundle.iter().map(|(key, value)| format!("{key}={}", self.printed(value))).collect();
                io.line(format!("Result: Bundle[{{{}}}]", members.join(", ")));
                Some(0)
            }
            Ok(_) => {
                io.line("Result: null");
                Some(0)
            }
            Err((kind, message)) => {
                let class = if kind == "denied" { "SecurityException" } else { "IllegalStateException" };
                io.error(format!("Error while accessing provider:{authority}\njava.lang.{class}: {message}"));
                Some(if self.android() < Android::V11 { 0 } else { 1 })
            }
        }
    }

    /// A bundle's value as Android prints it: nothing is quoted, and arrays have become readable at some time.
    fn printed(&self, value: &Value) -> String {
        match value {
            Value::String(text) => text.clone(),
            Value::Object(typed) => match typed.get("strings").and_then(Value::as_array) {
                Some(_) if self.android() < Android::V11 => "[Ljava.lang.String;@1f".to_owned(),
                Some(items) => {
                    let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                    format!("[{}]", items.join(", "))
                }
                None => typed.values().map(|value| self.printed(value)).collect(),
            },
            other => other.to_string(),
        }
    }
}

fn fault(kind: &str, message: &str) -> Value {
    json!({"error": {"type": kind, "message": message}})
}
