//! `sinew app` as an app's author uses it.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::gateway::{CommandOutput, run, sinew};

struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().expect("a folder"))
    }

    fn app(&self, arguments: &[&str]) -> CommandOutput {
        run(sinew(self.0.path()).current_dir(self.0.path()).arg("app").args(arguments))
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).expect("written");
    }
}

fn specification() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools/gestures.md");
    path.to_string_lossy().into_owned()
}

#[test]
fn a_scaffold_is_written_once_and_keeps_the_rules() {
    let desk = Desk::new();
    for form in ["activity", "provider"] {
        let arguments = ["scaffold", &specification(), "--form", form, "--package", "com.example.hands", "-o", form];
        desk.app(&arguments).ok();
        assert!(desk.app(&arguments).ok().err.contains("is up to date"));
        let manifest = format!("{form}/AndroidManifest.xml");
        desk.app(&["lint", &manifest, "--strict"]).ok();
        let other = ["scaffold", &specification(), "--form", form, "--package", "com.example.feet", "-o", form];
        let refused = desk.app(&other);
        assert!(refused.code == 2 && refused.err.contains(&format!("diff -ru {form} {form}.new")), "{refused:?}");
    }
    let inspected = desk.app(&["--output", "json", "inspect", "activity/AndroidManifest.xml"]).ok().json();
    let keys: Vec<&String> = inspected.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["package", "version", "instructions", "tools", "findings"]);
    assert_eq!(inspected["package"], "com.example.hands");
    let pinch = &inspected["tools"][0];
    assert_eq!((&pinch["name"], &pinch["form"]), (&json!("pinch"), &json!("activity")));
    assert_eq!(pinch["component"], "com.example.hands.ToolActivity");
    assert_eq!(pinch["schema"]["type"], "object");
    let asked = desk.app(&["--output", "json", "inspect", "provider/AndroidManifest.xml"]).ok().out;
    assert!(asked.contains("com.example.hands.mcp.pinch") && asked.contains("\"severity\": \"advice\""), "{asked}");
}

/// A provider that is not exported, on line 3.
const BAD_MANIFEST: &str = "<manifest xmlns:android=\"http://schemas.android.com/apk/res/android\" package=\"com.example.app\">\n<application>\n\
         <provider android:name=\".McpToolProvider\" android:authorities=\"com.example.app.mcp\">\n\
         <intent-filter><action android:name=\"android.intent.action.VIEW\"/>\
         <data android:mimeType=\"application/vnd.mcp.tool\"/></intent-filter></provider>\n</application></manifest>\n";

#[test]
fn findings_fail_a_build_and_say_where() {
    let desk = Desk::new();
    desk.put("AndroidManifest.xml", BAD_MANIFEST);
    let judged = desk.app(&["lint", "AndroidManifest.xml"]);
    assert_eq!(judged.code, 1);
    assert!(judged.out.contains("error[not-exported]") && judged.out.contains("AndroidManifest.xml:3"), "{judged:?}");
    assert!(desk.app(&["rules"]).ok().out.contains("not-exported"));
    assert!(desk.app(&["explain", "not-exported"]).ok().out.contains("android:exported=\"true\""));
    assert_eq!(desk.app(&["explain", "no-such-rule"]).code, 2);
}

#[test]
fn lint_reports_in_every_format_and_a_missing_file_hides_nothing() {
    let desk = Desk::new();
    desk.put("AndroidManifest.xml", BAD_MANIFEST);
    let formats = [
        ("sarif", "\"ruleId\": \"not-exported\""),
        ("github", "::error file=AndroidManifest.xml,line=3"),
        ("junit", "<failure"),
        ("json", "\"rule\": \"not-exported\""),
    ];
    for (format, sign) in formats {
        let checked = desk.app(&["lint", "AndroidManifest.xml", "--format", format]);
        assert_eq!(checked.code, 1, "{checked:?}");
        assert!(checked.out.contains(sign), "{format}: {checked:?}");
    }
    let partly = desk.app(&["lint", "AndroidManifest.xml", "missing.apk"]);
    assert_eq!(partly.code, 2, "{partly:?}");
    assert!(partly.out.contains("error[not-exported]") && partly.err.contains("missing.apk"), "{partly:?}");
}

#[test]
fn what_is_no_app_is_refused_in_words() {
    let desk = Desk::new();
    desk.put("note.txt", "no manifest");
    desk.put("broken.apk", "PK but nothing else");
    desk.put("other.xml", "<resources/>");
    for (file, reason) in [
        ("note.txt", "neither an APK"),
        ("broken.apk", "no zip end record"),
        ("other.xml", "<resources>"),
        ("gone.apk", "cannot read"),
        (".", "no AndroidManifest.xml is in"),
    ] {
        let refused = desk.app(&["inspect", file]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains(reason), "{file}: {refused:?}");
    }
    desk.put("AndroidManifest.xml", "<resources/>");
    let found = desk.app(&["lint", "."]);
    assert!(found.err.contains("AndroidManifest.xml") && found.err.contains("<resources>"), "{found:?}");
    let unknown = desk.app(&["explain", "nosuch"]);
    let first = sinew_apps::rules::RULES[0].id;
    assert!(unknown.code == 2 && unknown.err.contains(first), "{unknown:?}");
    let spec = specification();
    assert_eq!(desk.app(&["scaffold", &spec, "--form", "intent", "--package", "app"]).code, 2);
}
