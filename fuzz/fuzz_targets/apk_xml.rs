//! Arbitrary bytes as binary XML, and arbitrary text as a source manifest, checked by every rule.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_apps::apk::{AndroidManifest, parse_binary_xml, source_xml};
use sinew_apps::lint::lint;
use sinew_apps::offer::{ProtocolNames, offers};

fuzz_target!(|input: &[u8]| {
    if let Ok(root) = parse_binary_xml(input) {
        check(AndroidManifest::from_element(&root).ok());
    }
    if let Ok(source) = std::str::from_utf8(input) {
        check(source_xml::parse_manifest(source).ok());
        let quoted = source.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
        check(source_xml::parse_manifest(&advertising(&quoted)).ok());
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

fn check(manifest: Option<AndroidManifest>) {
    let Some(manifest) = manifest else { return };
    let words = ProtocolNames::default();
    let offer = offers(&manifest, &words);
    let findings = lint(&manifest, &offer, &words, Some(&[]));
    assert!(findings.iter().all(|finding| !finding.message.is_empty()), "{findings:?}");
}
