//! Apps that somebody installed: an APK on the phone's disk, and how its parts answer when they are called.
//! They have no screen; the apps with screens are in [`super::apps`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// One installed app.
#[derive(Clone, Default)]
pub struct VirtualApp {
    pub package: String,
    pub version_code: u64,
    pub version_name: String,
    /// The permissions that it asks for.
    pub permissions: Vec<String>,
    /// The base APK, byte for byte as adb serves it.
    pub apk: Vec<u8>,
    pub parts: Vec<AppComponent>,
    /// Its content providers by authority.
    pub providers: BTreeMap<String, ProviderHandler>,
    /// Its AppFunctions; a phone has the command where any app has some.
    pub functions: Option<AppFunctions>,
    /// What tells this installation from others of the package; the phone sets it, and the times.
    pub installation: String,
    /// When it was installed and when it was updated, in milliseconds since 1970.
    pub installed: i64,
    pub updated: i64,
}

/// The permissions, after `android.permission.`, that a user grants or refuses; Android grants others at installation.
const GRANTED_BY_USERS: [&str; 30] = [
    "ACCESS_BACKGROUND_LOCATION",
    "ACCESS_COARSE_LOCATION",
    "ACCESS_FINE_LOCATION",
    "ACTIVITY_RECOGNITION",
    "ANSWER_PHONE_CALLS",
    "BLUETOOTH_CONNECT",
    "BLUETOOTH_SCAN",
    "BODY_SENSORS",
    "CALL_PHONE",
    "CAMERA",
    "GET_ACCOUNTS",
    "NEARBY_WIFI_DEVICES",
    "POST_NOTIFICATIONS",
    "READ_CALENDAR",
    "READ_CALL_LOG",
    "READ_CONTACTS",
    "READ_EXTERNAL_STORAGE",
    "READ_MEDIA_AUDIO",
    "READ_MEDIA_IMAGES",
    "READ_MEDIA_VIDEO",
    "READ_PHONE_NUMBERS",
    "READ_PHONE_STATE",
    "READ_SMS",
    "RECEIVE_SMS",
    "RECORD_AUDIO",
    "SEND_SMS",
    "WRITE_CALENDAR",
    "WRITE_CALL_LOG",
    "WRITE_CONTACTS",
    "WRITE_EXTERNAL_STORAGE",
];

/// Whether a user grants a permission.
pub(super) fn is_granted_by_users(permission: &str) -> bool {
    permission.strip_prefix("android.permission.").is_some_and(|name| GRANTED_BY_USERS.contains(&name))
}

/// A part that intents reach.
#[derive(Clone)]
pub struct AppComponent {
    pub kind: VirtualComponentKind,
    /// As the manifest names it: `.Tools` or a full class name.
    pub class: String,
    pub actions: Vec<String>,
    pub react: IntentHandler,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VirtualComponentKind {
    Activity,
    Receiver,
    AdbdService,
}

/// How a part answers an intent.
pub type IntentHandler = Arc<dyn Fn(&ReceivedIntent) -> IntentReaction + Send + Sync>;

/// How a provider answers `call`: a method and the extras as the agent writes bundles; a bundle or null, or
/// the type and the text of an error of the agent's; of the type `hang` it never answers.
pub type ProviderHandler = Arc<dyn Fn(&str, &Value) -> Result<Value, (String, String)> + Send + Sync>;

/// An intent as it arrives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedIntent {
    pub action: String,
    pub extras: BTreeMap<String, String>,
}

/// What a part does about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntentReaction {
    /// A result code, a text, and for broadcasts further extras as Android prints them.
    Answer {
        code: i32,
        text: Option<String>,
        extras: Option<String>,
    },
    Hang,
    /// The process dies.
    Crash,
    /// Android does not let the caller through.
    Refuse,
}

impl IntentReaction {
    /// RESULT_OK with a text.
    pub fn ok(text: impl Into<String>) -> IntentReaction {
        IntentReaction::Answer { code: -1, text: Some(text.into()), extras: None }
    }
}

/// The AppFunctions of an app.
#[derive(Clone)]
pub struct AppFunctions {
    /// The app's entries of `list-app-functions`.
    pub listing: Value,
    /// What the command prints for a function and its parameters, and whether that is a success.
    pub execute: FunctionHandler,
}

/// Function id and parameters in, printed text and exit code out.
pub type FunctionHandler = Arc<dyn Fn(&str, &str) -> (String, u8) + Send + Sync>;

impl VirtualApp {
    /// Where its files are. Android 11 and later choose a name at random for each installation, so that every one moves
    /// the app, also of the same version.
    pub fn folder(&self) -> String {
        format!("/data/app/~~{}==/{}-dmlydHVhbA==", self.installation, self.package)
    }

    /// The app as the `number`th installation on a phone. The content counts too, as numbers begin again with the phone.
    pub(super) fn installed(self, number: u64, now: i64) -> VirtualApp {
        let installation = format!("{:08x}{number}", crc32(&self.apk));
        VirtualApp { installation, installed: now, updated: now, ..self }
    }

    /// The app in place of another version of it.
    pub(super) fn in_place_of(self, before: &VirtualApp) -> VirtualApp {
        VirtualApp { installed: before.installed, ..self }
    }

    pub fn path(&self) -> String {
        format!("{}/base.apk", self.folder())
    }

    /// The part of a class, however the class is written.
    pub fn part(&self, class: &str) -> Option<&AppComponent> {
        self.parts.iter().find(|part| self.full(&part.class) == self.full(class))
    }

    /// The whole name of a class.
    pub fn full(&self, class: &str) -> String {
        match class.strip_prefix('.') {
            Some(rest) => format!("{}.{rest}", self.package),
            None => class.to_owned(),
        }
    }
}

impl fmt::Debug for VirtualApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guest({} {})", self.package, self.version_code)
    }
}

/// An APK of a compiled manifest and so many bytes that mean nothing. Nothing in it is compressed or signed.
pub fn pack(manifest: &[u8], ballast: usize) -> Vec<u8> {
    let entries = [("AndroidManifest.xml", manifest), ("assets/ballast.bin", &vec![0; ballast])];
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    let entries = &entries[..if ballast == 0 { 1 } else { 2 }];
    for (name, data) in entries {
        // Version 1.0, stored, midnight of the first day that a zip archive knows.
        let mut common = vec![10, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        common.extend(crc32(data).to_le_bytes());
        common.extend([data.len() as u32, data.len() as u32].into_iter().flat_map(u32::to_le_bytes));
        common.extend([name.len() as u16, 0].into_iter().flat_map(u16::to_le_bytes));
        let offset = file.len() as u32;
        file.extend([b"PK\x03\x04".as_slice(), &common, name.as_bytes(), data].concat());
        let rest = [0; 10].into_iter().chain(offset.to_le_bytes());
        directory.extend([b"PK\x01\x02\x0a\0".as_slice(), &common].concat());
        directory.extend(rest.chain(name.bytes()));
    }
    let (start, length, count) = (file.len() as u32, directory.len() as u32, entries.len() as u16);
    file.extend(directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend([count, count].into_iter().flat_map(u16::to_le_bytes));
    file.extend([length, start].into_iter().flat_map(u32::to_le_bytes));
    file.extend([0, 0]);
    file
}

/// A small app that offers nothing, as most apps do.
pub fn plain(package: &str, ballast: usize) -> VirtualApp {
    let apk = pack(include_bytes!("manifests/plain.axml"), ballast);
    let version_name = "1.0".to_owned();
    VirtualApp { package: package.to_owned(), version_code: 1, version_name, apk, ..VirtualApp::default() }
}

/// The package of Sinew's companion.
pub const COMPANION: &str = "sinew.companion";

/// Sinew's companion. The phone itself does what the companion's code does.
pub fn companion() -> VirtualApp {
    plain(COMPANION, 0)
}

fn crc32(data: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    };
    !data.iter().fold(!0, step)
}
