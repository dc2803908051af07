//! Arbitrary bytes as binary XML, and arbitrary text as a source manifest, judged to the last rule.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_apps::apk::{Manifest, parse_binary_xml, text};
use sinew_apps::lint::lint;
use sinew_apps::offer::{Words, offers};

fuzz_target!(|input: &[u8]| {
    if let Ok(root) = parse_binary_xml(input) {
        judge(Manifest::from_element(&root).ok());
    }
    if let Ok(source) = std::str::from_utf8(input) {
        judge(text::parse_manifest(source).ok());
        let quoted = source.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
        judge(text::parse_manifest(&advertising(&quoted)).ok());
    }
});

fn advertising(value: &str) -> String {
    format!(
        r#"<manifest xmlns:android="http://schemas.android.com/apk/res/android" package="a.b"><application>
        <activity android:name=".T" android:exported="true"><intent-filter>
        <action android:name="com.example.mMCP.ACTION_TOOL_ADVERTISE"/></intent-filter>
        <meta-data android:name="mMCP_manifest" android:value="{value}"/></activity></application></manifest>"#
    )
}

fn judge(manifest: Option<Manifest>) {
    let Some(manifest) = manifest else { return };
    let words = Words::default();
    let offer = offers(&manifest, &words);
    let findings = lint(&manifest, &offer, &words, Some(&[]));
    assert!(findings.iter().all(|finding| !finding.message.is_empty()), "{findings:?}");
}
