//! Voice assistants at a real gateway: what they see, what they may do, and what is recorded of it.

use std::time::Duration;

use sinew_compose::config::{GatewayConfig, MqttAddress};
use sinew_compose::{GatewayServer, Overrides};
use sinew_gateway::{ApprovalDecision, AuditRecord, Label, Principal, Role};
use sinew_sim::board::{BoardConfig, BoardKind};
use sinew_sim::speech::{Heard, Microphone};
use sinew_sim::voice::{VirtualVoiceServer, VoiceEvent, VoiceHandle, VoiceOrder, tone};
use sinew_tool::{Value, json};
use tokio::sync::{broadcast, mpsc};

const TALKER: &str = "aa:bb:cc:dd:ee:01";
const OTHER: &str = "aa:bb:cc:dd:ee:03";

async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.unwrap_or_else(|_| panic!("{what} takes too long"))
}

/// A gateway with two boards, one of which talks to a virtual voice server.
struct House {
    server: GatewayServer,
    voice: VoiceHandle,
    events: broadcast::Receiver<(String, VoiceEvent)>,
    microphone: Microphone,
    heard: mpsc::UnboundedReceiver<Heard>,
    _state: tempfile::TempDir,
}

impl House {
    /// `more` is added to the configuration; `{voice}` in it is the voice server's address.
    async fn open(more: &str) -> House {
        let voice_server = VirtualVoiceServer::open("127.0.0.1:0".parse().expect("valid"), None).await.expect("open");
        let voice = voice_server.handle();
        let free = "127.0.0.1:0".parse().expect("an address");
        let text = more.replace("{voice}", &voice.url());
        let mut config = GatewayConfig::parse(&text).expect("valid");
        (config.listen, config.devices, config.mqtt) = (free, free, MqttAddress::At(free));
        config.phones.enabled = false;
        config.check().expect("valid");
        let state = tempfile::tempdir().expect("a folder");
        let flags = Overrides { state: Some(state.path().to_owned()), ..Overrides::default() };
        let mut server = GatewayServer::open(config.with(&flags).expect("settings")).await.expect("a gateway");
        server.spawn_device(|shutdown| voice_server.run(shutdown));
        let (microphone, heard) = Microphone::new();
        let token = Some(server.addresses.token.clone());
        let mqtt = server.addresses.mqtt_url.clone().expect("MQTT");
        let talker = BoardConfig {
            token: token.clone(),
            microphone: Some(microphone.clone()),
            ..BoardConfig::new(&mqtt, TALKER, BoardKind::Talking)
        };
        let other = BoardConfig { token, ..BoardConfig::new(&mqtt, OTHER, BoardKind::Relay) };
        for board in [talker, other] {
            server.spawn_device(|shutdown| async {
                sinew_sim::board::run(board, shutdown).await.map_err(std::io::Error::other)
            });
        }
        let mut watch = server.gateway.watch();
        soon("joining", async {
            while server.gateway.devices().iter().filter(|device| device.is_ready()).count() < 2 {
                watch.next().await;
            }
        })
        .await;
        let events = voice.events();
        House { server, voice, events, microphone, heard, _state: state }
    }

    /// The names of the tools that the assistant sees.
    async fn tools(&mut self) -> Vec<String> {
        let VoiceEvent::Ready(tools) = self.event(|event| matches!(event, VoiceEvent::Ready(_))).await else {
            panic!()
        };
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }

    async fn event(&mut self, wanted: impl Fn(&VoiceEvent) -> bool) -> VoiceEvent {
        loop {
            let (_, event) = soon("the voice server", self.events.recv()).await.expect("it runs");
            if wanted(&event) {
                return event;
            }
        }
    }

    /// Says something, and gives what the assistant answers.
    async fn say(&mut self, text: &str) -> String {
        self.voice.hear(TALKER, text);
        self.microphone.speak(tone());
        loop {
            if let Heard::Text(text) = soon("an answer", self.heard.recv()).await.expect("the board lives")
                && text["state"] == "sentence_start"
            {
                return text["text"].as_str().expect("text").to_owned();
            }
        }
    }

    /// Has the voice server call a tool by name, and gives the payload of the answer.
    async fn call(&mut self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        let payload = json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": params});
        let text = json!({"type": "mcp", "payload": payload}).to_string();
        assert!(self.voice.order(TALKER, VoiceOrder::Text(text)));
        let is_answer = |event: &VoiceEvent| matches!(event, VoiceEvent::Text(text) if text["payload"]["id"] == "call");
        match self.event(is_answer).await {
            VoiceEvent::Text(text) => text["payload"].clone(),
            _ => Value::Null,
        }
    }

    /// Waits until the board shows this state of its relay. Nothing is said to it meanwhile.
    async fn relay_state(&self, wanted: &str) {
        let mut watch = self.server.gateway.watch();
        let is_shown = || {
            let board = self.server.gateway.find_device("board-ddee01").expect("known");
            board.attributes.get("relay").and_then(Value::as_str).is_some_and(|state| state.starts_with(wanted))
        };
        soon(wanted, async {
            while !is_shown() {
                watch.next().await;
            }
        })
        .await;
    }

    async fn audit(&self) -> Vec<AuditRecord> {
        self.server.gateway.audit(100).await.expect("readable")
    }

    async fn close(self) {
        soon("closing", self.server.close(std::future::pending())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_to_one_board_works_on_another_and_is_recorded_as_the_relay() {
    let mut house = House::open("[relay]\nurl = '{voice}'\nshare = 'all'").await;
    house.server.gateway.rename("board-ddee03", "kitchen").expect("renamed");
    let answer = house.say("turn on the kitchen relay").await;
    assert!(answer.contains("\"on\":true"), "{answer}");
    let tools = house.tools().await;
    assert!(
        tools.iter().any(|tool| tool == "self.audio_speaker.set_volume"),
        "its own, under their own names: {tools:?}"
    );
    assert!(tools.iter().any(|tool| tool.starts_with("board-ddee03__")), "{tools:?}");
    assert!(!tools.iter().any(|tool| tool.contains("reboot") || tool.contains("upgrade")), "{tools:?}");
    let records = house.audit().await;
    let record = records.first().expect("a record");
    assert_eq!((record.principal.as_str(), record.door.as_str()), ("relay:board-ddee01", "relay"));
    assert_eq!((record.device.as_deref(), record.outcome.as_str()), (Some("board-ddee03"), "ok"));
    // A command to the board itself is recorded too.
    let system = json!({"type": "system", "command": "reboot"}).to_string();
    house.voice.order(TALKER, VoiceOrder::Text(system));
    soon("the command", async {
        while !matches!(house.heard.recv().await, Some(Heard::Text(text)) if text["type"] == "system") {}
    })
    .await;
    let records = house.audit().await;
    let record = records.first().expect("a record");
    assert_eq!((record.name.as_str(), record.principal.as_str()), ("system reboot", "relay:board-ddee01"));
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_share_an_assistant_sees_and_calls_the_tools_of_its_own_board_only() {
    let mut house = House::open("[relay]\nurl = '{voice}'").await;
    assert!(house.say("set the volume to 21").await.contains("Done"));
    let tools = house.tools().await;
    assert!(tools.iter().all(|tool| tool.starts_with("self.")), "{tools:?}");
    for name in ["board-ddee03__self_set_relay", "self.reboot", "list_devices"] {
        let answer = house.call(name, json!({"channel": 1, "on": true})).await;
        assert!(answer["error"]["message"].as_str().expect("refused").contains("unknown tool"), "{name}: {answer}");
        let records = house.audit().await;
        let record = records.first().expect("a record");
        assert_eq!((record.name.as_str(), record.outcome.as_str()), (name, "ToolNotFound"));
    }
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_policy_holds_for_assistants_and_nobody_waits_for_an_approval_in_silence() {
    let policy = "[relay]\nurl = '{voice}'\nshare = ['label:light']\n\
                  [[policy.rules]]\nid = 'voice'\nwho = ['relay:board-ddee01']\non = ['device:board-ddee03']\ndo = 'ask'\n";
    let mut house = House::open(policy).await;
    let label = Label::parse("light").expect("a label");
    house.server.gateway.label("board-ddee03", &[label], &[]).expect("labelled");
    let answer = house.say("turn on the relay").await;
    assert!(answer.contains("approval of a person") && answer.contains("nothing was done"), "{answer}");
    let waiting = house.server.gateway.approval_requests();
    assert_eq!(waiting.iter().map(|request| request.principal.as_str()).collect::<Vec<_>>(), ["relay:board-ddee01"]);
    // The assistant cannot approve it; a person can, and then the same words work.
    let relay = Principal::relay("board-ddee01");
    assert!(house.server.gateway.decide_approval(&relay, "test", &waiting[0].id, ApprovalDecision::Once).is_err());
    let admin = Principal::new("admin", Role::Admin);
    house.server.gateway.decide_approval(&admin, "test", &waiting[0].id, ApprovalDecision::Once).expect("approved");
    assert!(house.say("turn on the relay").await.contains("\"on\":true"));
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_boards_that_are_named_are_relayed() {
    let mut house = House::open("[relay]\nurl = '{voice}'\nboards = ['label:talk']").await;
    house.microphone.speak(tone());
    let hello = async {
        loop {
            if let Some(Heard::Text(text)) = house.heard.recv().await
                && text["type"] == "hello"
            {
                return text["session_id"].clone();
            }
        }
    };
    assert_ne!(soon("a hello", hello).await, "virtual-voice");
    soon("a goodbye", async {
        while !matches!(house.heard.recv().await, Some(Heard::Text(text)) if text["type"] == "goodbye") {}
    })
    .await;
    house.server.gateway.label("board-ddee01", &[Label::parse("talk").expect("a label")], &[]).expect("labelled");
    assert!(house.say("set the volume to 22").await.contains("Done"));
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_board_that_is_renamed_or_labelled_is_relayed_at_once_or_not_any_more() {
    let house = House::open("[relay]\nurl = '{voice}'\nboards = ['kitchen', 'label:talk']").await;
    let gateway = &house.server.gateway;
    let talk = [Label::parse("talk").expect("a label")];
    house.relay_state("off").await;
    gateway.rename("board-ddee01", "Kitchen").expect("renamed");
    house.relay_state("idle").await;
    gateway.rename("board-ddee01", "hall").expect("renamed");
    house.relay_state("off").await;
    gateway.label("board-ddee01", &talk, &[]).expect("labelled");
    house.relay_state("idle").await;
    gateway.label("board-ddee01", &[], &talk).expect("labelled");
    house.relay_state("off").await;
    house.close().await;
}
