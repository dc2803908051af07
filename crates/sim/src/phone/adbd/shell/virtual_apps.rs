//! Commands that reach installed apps: who answers an action, broadcasts, AppFunctions.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::apps::Intent;
use super::{Io, Shell};
use crate::phone::android::Android;
use crate::phone::virtual_app::{IntentReaction, ReceivedIntent, VirtualApp, VirtualComponentKind};

impl Shell {
    pub(super) fn virtual_app(&self, package: &str) -> Option<Arc<VirtualApp>> {
        self.handset.virtual_apps().into_iter().find(|virtual_app| virtual_app.package == package)
    }

    /// Answers a query for an action that installed apps know; `false` where none does.
    pub(super) fn query_virtual_apps(&self, what: &str, args: &[&str], io: &mut Io<'_, '_>) -> bool {
        let (kind, word) = match what {
            "query-activities" => (VirtualComponentKind::Activity, "Activity"),
            "query-receivers" => (VirtualComponentKind::Receiver, "Receiver"),
            _ => (VirtualComponentKind::AdbdService, "Service"),
        };
        let intent = Intent::read(args);
        let virtual_apps = self.handset.virtual_apps();
        let found: Vec<String> = virtual_apps
            .iter()
            .flat_map(|virtual_app| virtual_app.parts.iter().map(move |part| (virtual_app, part)))
            .filter(|(_, part)| part.kind == kind && part.actions.iter().any(|own| Some(own.as_str()) == intent.action))
            .map(|(virtual_app, part)| format!("{}/{}", virtual_app.package, part.class))
            .collect();
        if found.is_empty() {
            return false;
        }
        if args.contains(&"--components") {
            found.iter().for_each(|component| io.line(component));
            return true;
        }
        io.line(format!("{} {} found:", found.len(), what.trim_start_matches("query-")));
        for (index, component) in found.iter().enumerate() {
            io.line(format!("  {word} #{index}:"));
            io.line("    priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=true");
            io.line(format!("    {component}"));
        }
        true
    }

    /// Carries an explicit broadcast to its receiver; nobody on this phone listens to others.
    pub(super) async fn deliver(&self, intent: &Intent<'_>, io: &mut Io<'_, '_>) -> u8 {
        let named = intent.component.and_then(|component| component.split_once('/'));
        let virtual_app = named.and_then(|(package, _)| self.virtual_app(package));
        let part = virtual_app.as_ref().zip(named).and_then(|(virtual_app, (_, class))| virtual_app.part(class));
        let part = part.filter(|part| part.kind == VirtualComponentKind::Receiver);
        let request =
            ReceivedIntent { action: intent.action.unwrap_or_default().to_owned(), extras: intent.extras.clone() };
        let reaction = part.map(|part| (part.react)(&request));
        match reaction {
            Some(IntentReaction::Answer { code, text, extras }) => {
                let data = text.map(|text| format!(", data=\"{text}\"")).unwrap_or_default();
                let extras = extras.map(|extras| format!(", extras: Bundle[{extras}]")).unwrap_or_default();
                io.line(format!("Broadcast completed: result={code}{data}{extras}"));
                0
            }
            Some(IntentReaction::Hang) => {
                let _ = io.flush().await;
                std::future::pending().await
            }
            Some(IntentReaction::Refuse) => {
                io.error("java.lang.SecurityException: Permission Denial: broadcasting Intent from null (pid=4711, uid=2000)");
                if self.android() < Android::V11 { 0 } else { 255 }
            }
            // A receiver that dies leaves the result as it was before.
            Some(IntentReaction::Crash) | None => {
                io.line("Broadcast completed: result=0");
                0
            }
        }
    }

    pub(super) fn app_function(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let value = |name: &str| args.iter().position(|arg| *arg == name).and_then(|at| args.get(at + 1)).copied();
        let virtual_apps = self.handset.virtual_apps();
        match args.first().copied() {
            Some("list-app-functions") => {
                let listed = virtual_apps.iter().filter_map(|virtual_app| {
                    Some((virtual_app.package.clone(), virtual_app.functions.as_ref()?.listing.clone()))
                });
                let listed: Map<String, Value> = listed.collect();
                io.line(serde_json::to_string_pretty(&listed).unwrap_or_default());
                0
            }
            Some("execute-app-function") => {
                for option in ["--package", "--function", "--parameters"] {
                    if value(option).is_none() {
                        io.line(format!("Error: {option} must be specified."));
                        return 255;
                    }
                }
                let (package, function) = (value("--package").unwrap_or(""), value("--function").unwrap_or(""));
                let found = virtual_apps
                    .iter()
                    .find(|virtual_app| virtual_app.package == package)
                    .and_then(|virtual_app| virtual_app.functions.clone());
                let Some(functions) = found else {
                    io.line("Error executing app function: android.app.appfunctions.AppFunctionException: function not found (code 1003). See logcat for more details.");
                    return 255;
                };
                let (text, code) = (functions.execute)(function, value("--parameters").unwrap_or("{}"));
                io.line(text);
                code
            }
            Some("help") => {
                io.error("App function service commands:\n  help\n  list-app-functions [--user <USER_ID>]\n  execute-app-function --package <PACKAGE_NAME> --function <FUNCTION_ID> --parameters <PARAMETERS_JSON> [--user <USER_ID>] [--timeout-duration <SECONDS>]");
                0
            }
            other => {
                io.error(format!("Unknown command: {}", other.unwrap_or_default()));
                255
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phone::virtual_app::{AppComponent, AppFunctions};
    use crate::phone::{Handset, PhoneClock, PhoneSetup};
    use serde_json::json;

    fn virtual_app(version_code: u64) -> VirtualApp {
        let react = Arc::new(|request: &ReceivedIntent| match request.extras.get("tool").map(String::as_str) {
            Some("hidden") => IntentReaction::Refuse,
            Some("broken") => IntentReaction::Crash,
            tool => IntentReaction::ok(format!("{tool:?} \"{}\"", request.action)),
        });
        let part = AppComponent {
            kind: VirtualComponentKind::Receiver,
            class: ".Tools".to_owned(),
            actions: vec!["a.GO".to_owned()],
            react,
        };
        let execute = Arc::new(|function: &str, parameters: &str| (format!("{function} {parameters}"), 0));
        let functions = AppFunctions { listing: json!([{"x": 1}]), execute };
        VirtualApp {
            package: "com.guest".to_owned(),
            version_code,
            version_name: format!("{version_code}.1"),
            permissions: ["CAMERA", "INTERNET"].map(|name| format!("android.permission.{name}")).to_vec(),
            apk: b"0123456789".to_vec(),
            parts: vec![part],
            functions: Some(functions),
            ..VirtualApp::default()
        }
    }

    #[tokio::test]
    async fn an_installed_app_is_listed_read_called_updated_and_removed() {
        let handset = Handset::new(PhoneSetup::default(), PhoneClock::Virtual);
        let mut shell = Shell::new(handset.clone());
        let mut say = async |line: &str| {
            let (out, err, _) = shell.run(line).await;
            String::from_utf8_lossy(&[out, err].concat()).into_owned()
        };
        assert!(say("cmd app_function help").await.contains("Can't find service"));
        handset.install(virtual_app(7));
        let path = handset.virtual_apps()[0].path();
        let listed = say("pm list packages -f -3 --show-versioncode com.guest").await;
        assert_eq!(listed, format!("package:{path}=com.guest versionCode:7\n"));
        assert_eq!(say(&format!("tail -c 4 '{path}'; stat -c %s '{path}'")).await, "678910\n");
        assert!(say(&format!("rm '{path}'")).await.contains("Permission denied"));
        assert!(say("cmd package query-receivers --brief -a a.GO").await.contains("\n    com.guest/.Tools\n"));
        assert!(say("cmd package query-services --brief -a a.GO").await.contains("No services found"));
        let answer = say("am broadcast -a a.GO -n com.guest/com.guest.Tools --es tool x").await;
        assert!(answer.ends_with("Broadcast completed: result=-1, data=\"Some(\"x\") \"a.GO\"\"\n"), "{answer}");
        assert!(say("am broadcast -a a.GO -n com.guest/.Tools --es tool broken").await.ends_with("result=0\n"));
        assert!(say("am broadcast -a a.GO -n com.guest/.Tools --es tool hidden").await.contains("SecurityException"));
        assert!(say("cmd app_function list-app-functions").await.contains("com.guest"));
        let done =
            say("cmd app_function execute-app-function --package com.guest --function f#g --parameters '{}'").await;
        assert_eq!(done, "f#g {}\n");
        let facts = say("dumpsys package com.guest").await;
        assert!(facts.contains("Package [com.guest]") && facts.contains("versionName=7.1"), "{facts}");
        assert!(
            facts.contains("INTERNET: granted=true\n") && facts.contains("CAMERA: granted=false, flags"),
            "{facts}"
        );
        assert!(facts.contains(&format!("codePath={}", path.trim_end_matches("/base.apk"))), "{facts}");
        assert_eq!(say("pm grant com.guest android.permission.CAMERA").await, "");
        assert!(say("dumpsys package com.guest").await.contains("CAMERA: granted=true"));
        assert!(say("pm grant com.guest android.permission.READ_SMS").await.contains("has not requested"));
        assert!(say("pm grant com.guest android.permission.INTERNET").await.contains("not a changeable"));
        assert_eq!(say("pm clear com.guest").await, "Success\n");
        assert!(say("dumpsys package com.guest").await.contains("CAMERA: granted=false"));
        say("pm grant com.guest android.permission.CAMERA").await;
        handset.advance(std::time::Duration::from_secs(90));
        handset.install(virtual_app(8));
        let facts = say("dumpsys package com.guest").await;
        assert!(
            facts.contains("firstInstallTime=2026-02-11 16:30:00")
                && facts.contains("lastUpdateTime=2026-02-11 16:31:30"),
            "{facts}"
        );
        assert!(facts.contains("CAMERA: granted=true"), "an update keeps what was granted: {facts}");
        assert_eq!(say("pm revoke com.guest android.permission.CAMERA").await, "");
        assert!(say("dumpsys package com.guest").await.contains("CAMERA: granted=false"));
        let moved = handset.virtual_apps()[0].path();
        assert!(moved != path && say("pm path com.guest").await.contains(&moved));
        assert!(say(&format!("cat '{path}'")).await.contains("No such file"), "an update moves the app");
        handset.uninstall("com.guest");
        assert_eq!(say("pm list packages com.guest").await, "");
        assert!(say("dumpsys package com.guest").await.contains("Unable to find package: com.guest"));
        assert_eq!(say("pm clear com.guest").await, "Failed\n");
    }
}
