//! `[relay]` in the configuration: boards that keep their voice assistant, and what the assistant may use.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sinew_boards::VoiceRelay;
use sinew_boards::relay::{AssistantAccess, OtaAddress, VoiceAddress, VoiceServer};
use sinew_gateway::{DeviceView, Gateway, Label, Principal, PublicTool, Request, Shape};
use sinew_policy::suspected_effect;
use sinew_tool::settings::{Deserializer, Error, SeqAccess, Setting, Visitor};
use sinew_tool::{
    Args, Audience, BoxFuture, Caller, DeviceKey, Effect, ErrorKind, Outcome, Tool, ToolError, Value, json,
};

use crate::config::ConfigProblem;

/// The endpoint's name in the audit.
const DOOR: &str = "relay";
/// How long an assistant that asks for tools waits for a board that is about to join.
const JOIN_TIME: Duration = Duration::from_secs(5);

sinew_tool::settings! {
    /// Boards that keep their voice assistant: Sinew passes their conversations on to a voice server, see `docs/relay.md`.
    /// Without `ota` and `url` no board is relayed.
    pub struct RelayConfig {
        /// Address at which the boards would ask their voice service for settings, for example
        /// `https://api.tenclass.net/xiaozhi/ota/`. It says for each board where the voice server is.
        pub ota: Option<String> = None;
        /// Address of a voice server's WebSocket, for all boards: `wss://HOST/xiaozhi/v1/`. Instead of `ota`.
        pub url: Option<String> = None;
        /// Token for `url`, where the server wants one.
        pub token: Option<String> = None;
        /// A file whose first line is the token, or a credential of systemd with that name. Relative to the configuration file.
        pub token_file: Option<PathBuf> = None;
        /// Boards that are relayed, by id, name or `label:NAME`. By default all.
        pub boards: Vec<String> = Vec::new();
        /// What the assistant of a board may use: `own` for the board's own tools, `all`, or a list of devices by id, name or
        /// `label:NAME`. Of other devices never tools that are dangerous or for people only.
        pub share: SharedDevices = SharedDevices::Own;
        /// Pass new firmware that the voice service announces on to boards.
        pub firmware: bool = false;
    }
}

/// The devices that the assistant of a board may use besides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedDevices {
    Own,
    All,
    Some(Vec<String>),
}

impl Setting for SharedDevices {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        *self = from.deserialize_any(WordOrList)?;
        Ok(())
    }

    fn schema() -> Value {
        json!({"anyOf": [{"enum": ["own", "all"]}, {"type": "array", "items": {"type": "string"}}]})
    }

    fn to_value(&self) -> Value {
        match self {
            SharedDevices::Own => json!("own"),
            SharedDevices::All => json!("all"),
            SharedDevices::Some(devices) => json!(devices),
        }
    }
}

struct WordOrList;

impl<'de> Visitor<'de> for WordOrList {
    type Value = SharedDevices;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("`own`, `all`, or a list of devices")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<SharedDevices, E> {
        match word {
            "own" => Ok(SharedDevices::Own),
            "all" => Ok(SharedDevices::All),
            _ => Err(E::custom(format!("`{word}` is neither `own` nor `all`; write devices as a list: [\"{word}\"]"))),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<SharedDevices, A::Error> {
        let mut devices = Vec::new();
        while let Some(device) = items.next_element::<String>()? {
            devices.push(device);
        }
        Ok(SharedDevices::Some(devices))
    }
}

impl RelayConfig {
    /// The voice server; `None` where no board is relayed.
    pub fn server(&self, allows_plain: bool) -> Result<Option<VoiceServer>, ConfigProblem> {
        let wrong = |key: &str, why: String| ConfigProblem::at(format!("relay.{key}"), why);
        match (&self.ota, &self.url) {
            (Some(_), Some(_)) => {
                Err(wrong("url", "`ota` and `url` are two ways to find the voice server; keep one".to_owned()))
            }
            (Some(_), None) if self.token.is_some() => Err(wrong(
                "token",
                "`token` is for `url`; a voice service behind `ota` gives each board its own".to_owned(),
            )),
            (Some(ota), None) => {
                let address = OtaAddress::new(ota, allows_plain).map_err(|why| wrong("ota", why))?;
                Ok(Some(VoiceServer::Ota(address)))
            }
            (None, Some(url)) => {
                let address = VoiceAddress::new(url, self.token.as_deref(), allows_plain);
                Ok(Some(VoiceServer::At(address.map_err(|why| wrong("url", why))?)))
            }
            (None, None) if *self != RelayConfig::default() => {
                let why = "`relay` names no voice server; add `ota` or `url`".to_owned();
                Err(ConfigProblem::at("relay", why))
            }
            (None, None) => Ok(None),
        }
    }

    /// The devices and labels that are named, each with the key that names it.
    pub fn listed_names(&self) -> Vec<(&'static str, &str)> {
        let shared = match &self.share {
            SharedDevices::Some(names) => names.as_slice(),
            SharedDevices::Own | SharedDevices::All => &[],
        };
        let boards = self.boards.iter().map(|name| ("boards", name.as_str()));
        boards.chain(shared.iter().map(|name| ("share", name.as_str()))).collect()
    }

    /// The relay of a gateway; `None` where no board is relayed.
    pub fn relay(&self, server: Option<VoiceServer>, gateway: &Gateway) -> Option<VoiceRelay> {
        let access = GatewayAccess { gateway: gateway.clone(), boards: self.boards.clone(), share: self.share.clone() };
        Some(VoiceRelay { server: server?, access: Arc::new(access), passes_firmware: self.firmware })
    }
}

/// What voice servers may do at this gateway.
#[derive(Clone)]
struct GatewayAccess {
    gateway: Gateway,
    boards: Vec<String>,
    share: SharedDevices,
}

impl GatewayAccess {
    /// The tools that the assistant of a board may use, and the names it knows them by.
    fn shared_tools(&self, board: &DeviceView) -> Vec<SharedTool> {
        let who = Principal::relay(board.id.as_str());
        let list = self.gateway.list(&who, Shape::Unfolded);
        let mut tools: Vec<SharedTool> = Vec::new();
        for public in list.tools.iter().filter(|public| public.device.as_ref() == Some(&board.id)) {
            let tool = Tool { name: public.own_name.clone(), ..public.tool.clone() };
            tools.push(SharedTool { tool, device: board.id.to_string(), own_name: public.own_name.clone() });
        }
        let mut others = list.tools.iter().filter_map(|public| self.shared_tool(&who, board, public)).collect();
        tools.append(&mut others);
        tools
    }

    /// A tool of another device, where it is shared.
    fn shared_tool(&self, who: &Principal, board: &DeviceView, public: &PublicTool) -> Option<SharedTool> {
        let id = public.device.as_ref().filter(|id| **id != board.id)?;
        if self.share == SharedDevices::Own || public.tool.audience == Audience::User {
            return None;
        }
        let device = self.gateway.find_device(id.as_str())?;
        if let SharedDevices::Some(names) = &self.share
            && !names.iter().any(|name| is_selected(&device, name))
        {
            return None;
        }
        let effect = self.gateway.explain(who, id.as_str(), &public.own_name, &Args::new()).ok()?.effect;
        if effect.effect.map_or_else(|| suspected_effect(&public.tool), |(effect, _)| effect) == Effect::Danger {
            return None;
        }
        let title = device.name.as_ref().map_or(id.to_string(), |name| format!("{name} ({id})"));
        let description = format!("On {title}: {}", public.tool.description);
        let tool = Tool { description, ..public.tool.clone() };
        Some(SharedTool { tool, device: id.to_string(), own_name: public.own_name.clone() })
    }

    async fn call_shared(
        self,
        board: DeviceKey,
        name: String,
        args: Args,
        caller: Arc<dyn Caller>,
    ) -> Result<Outcome, ToolError> {
        let Some(board) = self.gateway.find_device_by_key(&board) else {
            return Err(ToolError::new(ErrorKind::DeviceAway, "the board is not known yet; try again"));
        };
        let request = Request { caller, ..Request::new(Principal::relay(board.id.as_str()), name, args, DOOR) };
        let found = self.shared_tools(&board).into_iter().find(|shared| shared.tool.name == request.name);
        match found {
            Some(shared) => self.gateway.call_on(&shared.device, Request { name: shared.own_name, ..request }).await,
            None => {
                let error = ToolError::new(ErrorKind::UnknownTool, format!("unknown tool `{}`", request.name));
                Err(self.gateway.refuse(&request, error).await)
            }
        }
    }

    /// Waits until the board has joined, for a moment.
    async fn joined(&self, board: &DeviceKey) -> Option<DeviceView> {
        let mut watch = self.gateway.watch();
        let ready = async {
            loop {
                if let Some(device) = self.gateway.find_device_by_key(board).filter(DeviceView::is_ready) {
                    return device;
                }
                watch.next().await;
            }
        };
        match tokio::time::timeout(JOIN_TIME, ready).await {
            Ok(device) => Some(device),
            Err(_) => self.gateway.find_device_by_key(board),
        }
    }
}

/// A tool under the name by which an assistant knows it.
struct SharedTool {
    tool: Tool,
    device: String,
    own_name: String,
}

impl AssistantAccess for GatewayAccess {
    fn is_relayed(&self, board: &DeviceKey) -> bool {
        let is_named = |device: DeviceView| self.boards.iter().any(|name| is_selected(&device, name));
        self.boards.is_empty() || self.gateway.find_device_by_key(board).is_some_and(is_named)
    }

    fn tools(&self, board: &DeviceKey) -> BoxFuture<'static, Vec<Tool>> {
        let (access, board) = (self.clone(), board.clone());
        Box::pin(async move {
            let Some(board) = access.joined(&board).await else { return Vec::new() };
            access.shared_tools(&board).into_iter().map(|shared| shared.tool).collect()
        })
    }

    fn call(
        &self,
        board: &DeviceKey,
        tool: String,
        args: Args,
        caller: Arc<dyn Caller>,
    ) -> BoxFuture<'static, Result<Outcome, ToolError>> {
        Box::pin(self.clone().call_shared(board.clone(), tool, args, caller))
    }

    fn record(&self, board: &DeviceKey, command: String) -> BoxFuture<'static, Result<(), ToolError>> {
        let (access, board) = (self.clone(), board.clone());
        Box::pin(async move {
            let Some(board) = access.gateway.find_device_by_key(&board) else { return Ok(()) };
            let who = Principal::relay(board.id.as_str());
            access.gateway.record(&who, DOOR, board.id.as_str(), &format!("system {command}")).await
        })
    }
}

/// Whether a device is meant by an id, a name or `label:NAME`.
pub(crate) fn is_selected(device: &DeviceView, name: &str) -> bool {
    is_meant(name, device.id.as_str(), device.name.as_deref(), device.labels.iter().map(Label::as_str))
}

/// The same for a device with this id, name and these labels.
pub fn is_meant<'a>(text: &str, id: &str, name: Option<&str>, mut labels: impl Iterator<Item = &'a str>) -> bool {
    match text.strip_prefix("label:") {
        Some(label) => labels.any(|own| own == label),
        None => id == text || name.is_some_and(|own| own.eq_ignore_ascii_case(text)),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{ConfigProblem, GatewayConfig};

    #[test]
    fn a_relay_needs_one_voice_server_that_can_be_reached_safely() {
        let check = |text: &str| {
            let config = GatewayConfig::parse(text)?;
            config.relay.server(config.insecure_lan)
        };
        for fine in [
            "",
            "[relay]\nurl = 'ws://127.0.0.1:8000/xiaozhi/v1/'\ntoken = 't'",
            "[relay]\nota = 'http://127.0.0.1:8003/xiaozhi/ota/'\nshare = 'all'\nboards = ['kitchen', 'label:talk']",
            "insecure-lan = true\n[relay]\nurl = 'ws://192.168.1.5:8000/'\nshare = ['label:light', 'board-ddee03']",
        ] {
            assert!(check(fine).is_ok(), "{fine}");
        }
        for (wrong, key) in [
            ("[relay]\nboards = ['kitchen']", "relay"),
            ("[relay]\nota = 'http://127.0.0.1/'\nurl = 'ws://127.0.0.1/'", "relay.url"),
            ("[relay]\nota = 'http://127.0.0.1/'\ntoken = 'secret'", "relay.token"),
            ("[relay]\nurl = 'ws://192.168.1.5:8000/'", "relay.url"),
            ("[relay]\nota = 'http://voice.example/'", "relay.ota"),
            ("[relay]\nurl = 'http://127.0.0.1/'", "relay.url"),
        ] {
            let problem = check(wrong).expect_err(wrong);
            assert_eq!(problem, ConfigProblem::at(key, problem.message.clone()), "{wrong}");
            assert!(!problem.message.contains("secret"));
        }
        assert!(check("[relay]\nurl = 'ws://127.0.0.1/'\nshare = 'kitchen'").is_err());
    }
}
