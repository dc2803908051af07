//! A phone as a device of the gateway.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use sinew_tool::{
    Admission, Args, BoxFuture, Call, Device, DeviceId, DeviceInfo, ErrorKind, Family, FamilyName, LivePicture,
    LiveRequest, Outcome, Reach, ShownScreen, Status, TextTrust, ToolError, Toolset,
};

use crate::adb::known_phones::device_key;
use crate::live::LiveScreen;
use crate::phone::{Phone, PhoneIdentity};
use crate::screen::ScreenView;
use crate::tools::{self, Memory, Operator, Profile};
use crate::tree::identify::landmarks;
use crate::tree::select::Selector;
use crate::turn::Turn;

/// Enough that some are new on every screen.
const MAX_LANDMARKS: usize = 20;
/// The text of a screen that is kept beside a call, in bytes: ten times a usual one.
const MAX_SCREEN_TEXT: usize = 16 << 10;

/// A connected phone. Tools that act run one at a time; tools that only read do not wait for them.
pub struct PhoneDevice<P> {
    phone: P,
    info: DeviceInfo,
    profile: Profile,
    apks: Option<PathBuf>,
    tools: Arc<Toolset>,
    memory: Memory,
    live: LiveScreen,
    turn: Turn,
}

impl<P: Phone> PhoneDevice<P> {
    pub fn new(phone: P, profile: Profile) -> PhoneDevice<P> {
        let mut info = info(&phone.about(), Status::Ready);
        info.instructions = Some(tools::list::INSTRUCTIONS.to_owned());
        PhoneDevice {
            phone,
            info,
            profile,
            apks: None,
            tools: tools::tools(profile),
            memory: Memory::default(),
            live: LiveScreen::default(),
            turn: Turn::default(),
        }
    }

    /// The folder that apps are installed from.
    pub fn with_apks(mut self, apks: Option<PathBuf>) -> PhoneDevice<P> {
        self.apks = apks;
        self
    }

    pub fn phone(&self) -> &P {
        &self.phone
    }
}

impl<P: Phone> Device for PhoneDevice<P> {
    /// With the current backends: an agent may start or end at any time.
    fn info(&self) -> Arc<DeviceInfo> {
        let capabilities = self.phone.capabilities();
        let mut info = self.info.clone();
        info.attributes.insert("backend".to_owned(), json!(capabilities.tiers));
        if let Some(agent) = capabilities.agent {
            info.attributes.insert("agent".to_owned(), json!(agent));
        }
        Arc::new(info)
    }

    fn tools(&self) -> Arc<Toolset> {
        self.tools.clone()
    }

    /// With the same refs as the tools.
    fn screen<'a>(&'a self, args: &'a Args) -> BoxFuture<'a, Option<ShownScreen>> {
        Box::pin(async {
            let tree = self.phone.tree().await.ok()?;
            Some(ShownScreen {
                text: self.memory.describe(&ScreenView::of(&tree), Some(MAX_SCREEN_TEXT)),
                landmarks: landmarks(&tree, MAX_LANDMARKS).iter().map(Selector::to_json).collect(),
                lasting_args: self.memory.with_selector(&tree, args),
            })
        })
    }

    fn live_picture<'a>(&'a self, wanted: &'a LiveRequest) -> BoxFuture<'a, Result<Option<LivePicture>, ToolError>> {
        Box::pin(async move { Ok(self.live.next_picture(&self.phone, wanted).await?) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let _turn = match tools::table::find(&call.tool) {
                Some(row) if row.acts() && !row.runs_steps() => self.turn.take_for(&*call.caller).await,
                _ => None,
            };
            let deadline = tokio::time::Instant::now() + call.budget;
            let operator = Operator {
                phone: &self.phone,
                memory: &self.memory,
                caller: &call.from,
                profile: self.profile,
                apks: self.apks.as_deref(),
                deadline,
                calls: &*call.nested,
                turn: &self.turn,
                client: &*call.caller,
            };
            operator.call(&call.tool, &call.args).await
        })
    }
}

/// A phone that is connected but cannot be used until a person does something. It still offers its tools: lists stay
/// the same while a phone comes and goes, and a call is answered with what to do.
pub struct LimitedPhone {
    info: Arc<DeviceInfo>,
    tools: Arc<Toolset>,
    message: String,
}

impl LimitedPhone {
    pub fn new(about: &PhoneIdentity, profile: Profile, state: &str, remedy: &str) -> LimitedPhone {
        let status = Status::Limited { state: state.to_owned(), remedy: remedy.to_owned() };
        let message = format!("phone {} is {state}: {remedy}", about.serial);
        LimitedPhone { info: Arc::new(info(about, status)), tools: tools::tools(profile), message }
    }
}

impl Device for LimitedPhone {
    fn info(&self) -> Arc<DeviceInfo> {
        self.info.clone()
    }

    fn tools(&self) -> Arc<Toolset> {
        self.tools.clone()
    }

    fn call(&self, _: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        let error = ToolError::new(ErrorKind::PermissionDenied, self.message.clone());
        Box::pin(std::future::ready(Err(error)))
    }
}

/// Everyone who can reach the phone's adb server or network address can use it.
const FAMILY: Family = Family::new(FamilyName::of("phone"), TextTrust::Attributed, Reach::SeveralGateways)
    .prefer_ready()
    .show_others()
    .stay_with_user();

fn info(about: &PhoneIdentity, status: Status) -> DeviceInfo {
    let name = if about.model.is_empty() { about.serial.clone() } else { about.model.replace('_', " ") };
    let when_away = match about.serial.contains(':') {
        true => format!("switch it on; if it stays away: sinew phones connect {}", about.serial),
        false => "plug it in with USB debugging on, and unlock it".to_owned(),
    };
    let particulars = [
        ("when_away", &when_away),
        ("serial", &about.serial),
        ("serial_number", &about.serial_number),
        ("manufacturer", &about.manufacturer),
        ("android", &about.android),
    ];
    let attributes = particulars.into_iter().filter(|(_, value)| !value.is_empty());
    DeviceInfo {
        key: device_key(about.stable_id()),
        suggested_id: suggested_id(about),
        family: FAMILY,
        admission: Admission::Local,
        name,
        version: about.android.clone(),
        status,
        instructions: None,
        labels: Vec::new(),
        attributes: attributes.map(|(key, value)| (key.to_owned(), json!(value))).collect(),
    }
}

/// By its model; a phone without a known model is named by the end of its serial.
fn suggested_id(about: &PhoneIdentity) -> String {
    let model = DeviceId::slug(&about.model);
    if !model.is_empty() {
        return model;
    }
    // A phone that was found on the network has its serial before the name of the service.
    let serial = DeviceId::slug(about.serial.split("._adb").next().unwrap_or_default());
    DeviceId::slug(&format!("phone-{}", &serial[serial.len().saturating_sub(8)..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phone_without_a_model_is_called_a_phone() {
        let cases = [
            ("Pixel_8", "R58M123", "pixel-8"),
            ("", "R58M12345678", "phone-12345678"),
            ("", "192.168.1.20:5555", "phone-20-5555"),
            ("", "adb-R58M1234-aBcDeF._adb-tls-connect._tcp", "phone-4-abcdef"),
            ("", "", "phone"),
            ("", "éé", "phone"),
        ];
        for (model, serial, id) in cases {
            let about =
                PhoneIdentity { model: model.to_owned(), serial: serial.to_owned(), ..PhoneIdentity::default() };
            assert_eq!(suggested_id(&about), id, "{model} {serial}");
        }
    }
}
