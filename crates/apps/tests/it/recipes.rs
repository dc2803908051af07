//! APKs built in the test from our own manifests, with the packager that app authors use.
#![allow(dead_code, clippy::panic, clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

/// The packager compiles against it; Debian's `android-framework-res`.
const FRAMEWORK: &str = "/usr/share/android-framework-res/framework-res.apk";

/// What an APK is built from.
pub struct Recipe {
    manifest: String,
    /// Path below `res/`, and content.
    resources: Vec<(String, String)>,
    /// Path in the archive, and content.
    files: Vec<(String, Vec<u8>)>,
    signed: bool,
}

impl Recipe {
    pub fn new(manifest: impl Into<String>) -> Recipe {
        Recipe { manifest: manifest.into(), resources: Vec::new(), files: Vec::new(), signed: false }
    }

    /// An app `com.example.app` with these components inside `<application>`.
    pub fn of_components(components: &str) -> Recipe {
        Recipe::new(format!(
            r#"<?xml version="1.0" encoding="utf-8"?>
<manifest xmlns:android="http://schemas.android.com/apk/res/android" package="com.example.app"
    android:versionCode="7" android:versionName="1.2.3">
    <uses-sdk android:minSdkVersion="24" android:targetSdkVersion="29" />
    <application android:hasCode="false">
{components}
    </application>
</manifest>
"#
        ))
    }

    pub fn resource(mut self, path: &str, content: &str) -> Recipe {
        self.resources.push((path.to_owned(), content.to_owned()));
        self
    }

    /// A file as it is, below `assets/`.
    pub fn asset(mut self, name: &str, content: Vec<u8>) -> Recipe {
        self.files.push((format!("assets/{name}"), content));
        self
    }

    pub fn signed(mut self) -> Recipe {
        self.signed = true;
        self
    }

    pub fn build(&self) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let put = |path: &Path, content: &[u8]| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        };
        put(&at("AndroidManifest.xml"), self.manifest.as_bytes());
        for (path, content) in &self.resources {
            put(&at("res").join(path), content.as_bytes());
        }
        for (path, content) in &self.files {
            put(&at("files").join(path), content);
        }
        let mut aapt = Command::new("aapt");
        // Assets named *.bin are noise: compressing them only takes time.
        aapt.args(["package", "-f", "-0", "bin", "-I", FRAMEWORK, "-M"]).arg(at("AndroidManifest.xml"));
        aapt.arg("-F").arg(at("bare.apk"));
        if !self.resources.is_empty() {
            aapt.arg("-S").arg(at("res"));
        }
        if !self.files.is_empty() {
            aapt.arg(at("files"));
        }
        run(&mut aapt);
        run(Command::new("zipalign").args(["-f", "4"]).arg(at("bare.apk")).arg(at("aligned.apk")));
        if !self.signed {
            return std::fs::read(at("aligned.apk")).unwrap();
        }
        let key = at("key.jks");
        run(Command::new("keytool")
            .args(["-genkeypair", "-storepass", "android", "-alias", "k", "-dname", "CN=test"])
            .args(["-keyalg", "RSA", "-keysize", "2048", "-validity", "10000", "-keystore"])
            .arg(&key));
        run(Command::new("apksigner")
            .args(["sign", "--ks-pass", "pass:android", "--ks"])
            .arg(&key)
            .arg("--out")
            .arg(at("signed.apk"))
            .arg(at("aligned.apk")));
        std::fs::read(at("signed.apk")).unwrap()
    }
}

/// The other packager, of a manifest alone.
pub fn build_with_aapt2(manifest: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (source, apk) = (folder.path().join("AndroidManifest.xml"), folder.path().join("a.apk"));
    std::fs::write(&source, manifest).unwrap();
    run(Command::new("aapt2").args(["link", "-I", FRAMEWORK, "-o"]).arg(&apk).arg("--manifest").arg(&source));
    std::fs::read(&apk).unwrap()
}

pub fn run(command: &mut Command) -> String {
    let program = command.get_program().to_string_lossy().into_owned();
    let output =
        command.output().unwrap_or_else(|error| panic!("{program} does not start ({error}); run scripts/install"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{program} failed: {said}");
    said
}
