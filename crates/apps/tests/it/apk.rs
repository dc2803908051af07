//! Reading APKs that the packager built: manifests, references, signers, and as few bytes as possible.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::recipes::{Recipe, run};
use sinew_apps::apk::{ApkError, ComponentKind, ReadAt, read_manifest};
use sinew_apps::offer::{self, AppOffer, OfferKind, ProtocolNames};
use sinew_tool::finding::Severity;
use sinew_tool::{BoxFuture, json};

/// Counts what is read of an APK.
struct Counted {
    bytes: Vec<u8>,
    read: AtomicU64,
    reads: AtomicUsize,
}

impl Counted {
    fn new(bytes: Vec<u8>) -> Counted {
        Counted { bytes, read: AtomicU64::new(0), reads: AtomicUsize::new(0) }
    }
}

impl ReadAt for Counted {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, length: usize) -> BoxFuture<'_, Result<Vec<u8>, ApkError>> {
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes.read_at(offset, length)
    }
}

async fn offered(recipe: Recipe) -> AppOffer {
    offer::read(&recipe.build(), &ProtocolNames::default()).await.unwrap().1
}

const PDF_ACTIVITY: &str = r#"
<activity android:name=".ToolAdvertiserActivity" android:exported="true">
    <intent-filter>
        <action android:name="com.example.mMCP.ACTION_TOOL_ADVERTISE" />
        <category android:name="android.intent.category.DEFAULT" />
    </intent-filter>
    <meta-data
        android:name="mMCP_manifest"
        android:value='{
          "instructions": "This app provides PDF processing capabilities",
          "tools": [
            {
              "name": "pdf_tool",
              "description": "Process PDF files to extract text and images...",
              "parameters": {
                "type": "object",
                "required": ["path", "operation"],
                "properties": {
                  "path": {
                    "type": "string",
                    "description": "Path to the PDF file"
                  },
                  "operation": {
                    "type": "string",
                    "enum": ["extract_text", "extract_images"],
                    "description": "Operation to perform on the PDF"
                  }
                }
              }
            }
          ]
        }' />
</activity>"#;

#[tokio::test]
async fn the_manifest_of_the_mmcp_specification_is_read_from_an_apk() {
    let found = offered(Recipe::of_components(PDF_ACTIVITY)).await;
    assert_eq!(
        (found.package.as_str(), found.version_name.as_str(), found.version_code),
        ("com.example.app", "1.2.3", 7)
    );
    assert_eq!(found.instructions.as_deref(), Some("This app provides PDF processing capabilities"));
    let [tool] = found.tools.as_slice() else { panic!("one tool: {found:?}") };
    assert_eq!((tool.tool.name.as_str(), tool.kind), ("pdf_tool", OfferKind::Activity));
    assert_eq!(tool.component, "com.example.app.ToolAdvertiserActivity");
    assert_eq!(tool.action.as_deref(), Some("com.example.mMCP.ACTION_TOOL_CALL"));
    assert_eq!(tool.tool.required(), ["path", "operation"]);
    assert_eq!(tool.tool.input_schema["properties"]["operation"]["enum"], json!(["extract_text", "extract_images"]));
    assert_eq!(found.findings, []);
}

#[tokio::test]
async fn tools_behind_a_reference_are_found_in_the_resources() {
    let strings = r#"<resources><string name="other">x</string>
        <string name="tools">{\"instructions\": \"Notes – 日本\", \"tools\": [{\"name\": \"add_note\"}]}</string></resources>"#;
    let german = r#"<resources><string name="tools">{}</string></resources>"#;
    let activity = PDF_ACTIVITY.split("android:value=").next().unwrap().to_owned()
        + "android:value=\"@string/tools\" /></activity>";
    let recipe = Recipe::of_components(&activity)
        .resource("values/strings.xml", strings)
        .resource("values-de/strings.xml", german);
    let found = offered(recipe).await;
    assert_eq!(found.findings, []);
    assert_eq!(found.instructions.as_deref(), Some("Notes – 日本"));
    assert_eq!(found.tools[0].tool.name, "add_note");
}

#[tokio::test]
async fn json_that_the_packager_damaged_is_repaired_or_reported() {
    let activity = |json: &str| {
        let value = json.replace('\'', "&apos;");
        PDF_ACTIVITY.split("android:value=").next().unwrap().to_owned() + "android:value='" + &value + "' /></activity>"
    };
    let breaks =
        offered(Recipe::of_components(&activity(r#"{"tools": [{"name": "a", "description": "one\ntwo"}]}"#))).await;
    assert_eq!(breaks.tools[0].tool.description, "one\ntwo");
    assert_eq!((breaks.findings[0].rule.id, breaks.findings[0].severity), ("json-escapes", Severity::Warning));

    let quotes =
        offered(Recipe::of_components(&activity(r#"{"tools": [{"name": "a", "description": "say \"hi\" now"}]}"#)))
            .await;
    assert_eq!(quotes.tools[0].tool.description, "say \"hi\" now");
    assert_eq!(quotes.findings[0].rule.id, "json-escapes");

    let right =
        offered(Recipe::of_components(&activity(r#"{"tools": [{"name": "a", "description": "say \\\"hi\\\"\\n"}]}"#)))
            .await;
    assert_eq!(right.tools[0].tool.description, "say \"hi\"\n");
    assert_eq!(right.findings, []);

    let lost = offered(Recipe::of_components(&activity(
        r#"{"tools": [{"name": "a", "description": "he said \"yes\", then left"}]}"#,
    )))
    .await;
    assert_eq!((lost.tools.len(), lost.findings[0].rule.id), (0, "json-broken"));
    assert!(lost.findings[0].message.contains("near `"), "{}", lost.findings[0].message);

    let strings = r#"<resources><string name="tools">{"tools": [{"name": "a"}]}</string></resources>"#;
    let reference = PDF_ACTIVITY.split("android:value=").next().unwrap().to_owned()
        + "android:value=\"@string/tools\" /></activity>";
    let bare = offered(Recipe::of_components(&reference).resource("values/strings.xml", strings)).await;
    assert_eq!((bare.tools.len(), bare.findings[0].rule.id), (0, "json-quotes"));
}

#[tokio::test]
async fn references_in_a_circle_end_and_an_alias_is_followed() {
    let strings = r#"<resources><string name="a">@string/b</string><string name="b">@string/a</string>
        <string name="tools">@string/real</string><string name="real">{\"tools\": [{\"name\": \"found\"}]}</string></resources>"#;
    let activity = |name: &str| {
        PDF_ACTIVITY.split("android:value=").next().unwrap().to_owned()
            + &format!("android:value=\"@string/{name}\" /></activity>")
    };
    let circle = offered(Recipe::of_components(&activity("a")).resource("values/strings.xml", strings)).await;
    assert_eq!((circle.tools.len(), circle.findings[0].rule.id), (0, "manifest-missing"));
    let alias = offered(Recipe::of_components(&activity("tools")).resource("values/strings.xml", strings)).await;
    assert_eq!(alias.tools[0].tool.name, "found");
}

#[tokio::test]
async fn components_have_what_the_manifest_declares() {
    let recipe = Recipe::of_components(
        r#"<provider android:name="McpToolProvider" android:authorities="com.example.app.one;com.example.app.two"
               android:exported="true" android:readPermission="com.example.READ">
             <intent-filter><action android:name="android.intent.action.VIEW" />
               <data android:mimeType="application/vnd.mcp.tool" /></intent-filter>
           </provider>
           <provider android:name="other.Hidden" android:authorities="@string/authority" />
           <service android:name=".Off" android:enabled="false" />
           <receiver android:name=".Heard"><intent-filter><action android:name="a.B" /></intent-filter></receiver>"#,
    )
    .resource("values/strings.xml", r#"<resources><string name="authority">com.example.hidden</string></resources>"#);
    let manifest = read_manifest(&recipe.build(), &|_| true).await.unwrap();
    let [tool, hidden, off, heard] = manifest.components.as_slice() else { panic!("{manifest:?}") };
    assert_eq!((tool.kind, tool.name.as_str()), (ComponentKind::Provider, "com.example.app.McpToolProvider"));
    assert_eq!(tool.authorities, ["com.example.app.one", "com.example.app.two"]);
    assert_eq!(tool.permission.as_deref(), Some("com.example.READ"));
    assert_eq!(tool.filters[0].mime_types, ["application/vnd.mcp.tool"]);
    assert_eq!(tool.short_name(&manifest.package), "com.example.app/.McpToolProvider");
    assert_eq!(hidden.name, "other.Hidden");
    assert_eq!(hidden.authorities, ["com.example.hidden"]);
    assert!(!manifest.is_exported(hidden) && manifest.is_exported(tool) && manifest.is_exported(heard));
    assert!(!off.enabled && !manifest.is_exported(off));
    assert_eq!((manifest.min_sdk, manifest.target_sdk), (24, 29));
}

#[tokio::test]
async fn capabilities_of_a_service_are_read_from_an_xml_file() {
    let capabilities = r#"<mobile-mcp-capabilities version="1.0">
        <capability id="set_alarm" description="Sets an alarm" version="1.0">
            <input><param name="hour" type="int" required="true" description="0 to 23"/><param name="label" type="string" required="false"/></input>
            <output><param name="id" type="string"/></output>
        </capability>
        <capability description="nameless" />
    </mobile-mcp-capabilities>"#;
    let service = r#"<service android:name=".Alarms" android:exported="true">
        <intent-filter><action android:name="mobile.mcp.SERVICE" /></intent-filter>
        <meta-data android:name="mobile.mcp.tool.description" android:value="Alarms" />
        <meta-data android:name="mobile.mcp.tool.capabilities" android:resource="@xml/capabilities" />
    </service>"#;
    let found = offered(Recipe::of_components(service).resource("xml/capabilities.xml", capabilities)).await;
    assert_eq!(found.instructions.as_deref(), Some("Alarms"));
    let [alarm] = found.tools.as_slice() else { panic!("{found:?}") };
    assert_eq!((alarm.tool.name.as_str(), alarm.kind), ("set_alarm", OfferKind::Service));
    assert_eq!(alarm.tool.required(), ["hour"]);
    assert_eq!(alarm.tool.input_schema["properties"]["hour"], json!({"type": "integer", "description": "0 to 23"}));
    assert_eq!(found.findings[0].rule.id, "tool-shape");
}

#[tokio::test]
async fn the_signer_is_named_as_apksigner_names_it() {
    let bytes = Recipe::of_components(PDF_ACTIVITY).signed().build();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let said = run(std::process::Command::new("apksigner").args(["verify", "--print-certs"]).arg(file.path()));
    let manifest = read_manifest(&bytes, &|_| false).await.unwrap();
    let digest = manifest.certificate_sha256.unwrap();
    assert_eq!(digest.len(), 64);
    assert!(said.contains(&digest), "{digest} in {said}");
    // Without the signing block, the old signature names the same.
    let block = bytes.windows(16).rposition(|window| window == b"APK Sig Block 42").unwrap();
    let mut without = bytes.clone();
    without[block] = b'x';
    let manifest = read_manifest(&without, &|_| false).await.unwrap();
    assert_eq!(manifest.certificate_sha256, Some(digest));
}

#[tokio::test]
async fn few_bytes_of_a_large_apk_are_read() {
    let mut noise = 1u64;
    let mut asset = || {
        (0..(1 << 20) / 8)
            .flat_map(|_| {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (noise ^ noise >> 29).to_le_bytes()
            })
            .collect::<Vec<u8>>()
    };
    let mut strings = String::from("<resources>");
    for index in 0..5_000 {
        strings.push_str(&format!("<string name=\"s{index}\">text number {index} of many</string>"));
    }
    strings.push_str("<string name=\"tools\">{\\\"tools\\\": [{\\\"name\\\": \\\"far\\\"}]}</string></resources>");
    let activity = PDF_ACTIVITY.split("android:value=").next().unwrap().to_owned()
        + "android:value=\"@string/tools\" /></activity>";
    let mut recipe = Recipe::of_components(&activity).resource("values/strings.xml", &strings);
    for index in 0..25 {
        recipe = recipe.asset(&format!("part{index}.bin"), asset());
    }
    let source = Counted::new(recipe.build());
    assert!(source.len() > 25_000_000);
    let (_, found) = offer::read(&source, &ProtocolNames::default()).await.unwrap();
    assert_eq!(found.tools[0].tool.name, "far");
    let read = source.read.load(Ordering::Relaxed);
    assert!(read * 100 < source.len() * 3, "{read} of {} bytes", source.len());
    assert!(source.reads.load(Ordering::Relaxed) < 20);
}
