//! The examples of `docs/examples`, each against a stand-in for its gadget.

use serde_json::{Value, json};
use sinew_boards::broker::Address;
use sinew_things::ThingConfig;
use sinew_tool::settings::Setting;

use crate::support::{Family, Mosquitto, call, gadget_on, http_gadget};

/// The thing of an example, with the addresses of stand-ins in place of those in it.
fn example(name: &str, addresses: &[(&str, &str)]) -> ThingConfig {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples");
    let mut text = std::fs::read_to_string(format!("{folder}/{name}.toml")).expect("an example");
    for (there, here) in addresses {
        assert!(text.contains(there), "{name} does not name {there}");
        text = text.replace(there, here);
    }
    let table: Value = toml::from_str(&text).expect("an example is TOML");
    let mut thing = ThingConfig::default();
    thing.read(table["things"][0].clone()).expect("valid");
    thing
}

#[tokio::test]
async fn a_plug_with_tasmota() {
    let broker = Mosquitto::open().await;
    let _plug = gadget_on(&broker, "cmnd/desk-plug/#", |topic, payload| {
        assert_eq!(topic, "cmnd/desk-plug/POWER");
        let result = format!("{{\"POWER\":\"{payload}\"}}");
        vec![("stat/desk-plug/RESULT".to_owned(), result), ("stat/desk-plug/POWER".to_owned(), payload.to_owned())]
    })
    .await;
    let mut family = Family::start(example("tasmota-plug", &[]), &[broker.address()]);
    let plug = family.joined().await;
    assert_eq!(plug.info().labels, ["office"]);
    assert_eq!(call(&plug, "power", json!({"state": "ON"})).await.expect("on").joined_text(), "ON");
}

#[tokio::test]
async fn a_lamp_behind_zigbee2mqtt() {
    let broker = Mosquitto::open().await;
    // It keeps the last state at the broker, as Zigbee2MQTT does where `retain` is set, and publishes whole states.
    let lamp = std::sync::Mutex::new(json!({"state": "OFF", "brightness": 0, "linkquality": 120}));
    let _lamp = gadget_on(&broker, "zigbee2mqtt/lamp/+", move |topic, payload| {
        let mut lamp = lamp.lock().expect("no panic");
        if topic.ends_with("/set") {
            let wanted: Value = serde_json::from_str(payload).expect("JSON");
            for (key, value) in wanted.as_object().expect("an object") {
                lamp[key] = value.clone();
            }
        }
        vec![("zigbee2mqtt/lamp".to_owned(), lamp.to_string())]
    })
    .await;
    let mut family = Family::start(example("zigbee2mqtt-lamp", &[]), &[broker.address()]);
    let lamp = family.joined().await;
    let set = call(&lamp, "set", json!({"state": "ON", "brightness": 100})).await.expect("on");
    assert_eq!(set.structured, Some(json!({"state": "ON", "brightness": 100, "linkquality": 120})));
    // What is not given is not sent, so it stays.
    let set = call(&lamp, "set", json!({"state": "OFF"})).await.expect("off");
    assert_eq!(set.structured.expect("a state")["brightness"], 100);
    assert_eq!(call(&lamp, "get", json!({})).await.expect("read").structured.expect("a state")["state"], "OFF");
}

#[tokio::test]
async fn a_shelly_relay() {
    let (url, _heard) = http_gadget(|request| match request.split(' ').nth(1) {
        Some("/relay/0?turn=on") => (200, json!({"ison": true, "has_timer": false, "source": "http"}).to_string()),
        _ => (404, "Not Found".to_owned()),
    })
    .await;
    let mut family = Family::start(example("shelly-relay", &[("http://192.168.1.40", &url)]), &[]);
    let heater = family.joined().await;
    assert_eq!(call(&heater, "turn", json!({"to": "on"})).await.expect("on").joined_text(), "true");
}

#[tokio::test]
async fn an_esphome_node() {
    let (url, mut heard) = http_gadget(|request| {
        let first = request.lines().next().unwrap_or_default();
        match first.trim_end_matches(" HTTP/1.1") {
            "GET /sensor/temperature" => {
                (200, json!({"id": "sensor-temperature", "state": "21.5 °C", "value": 21.5}).to_string())
            }
            "POST /cover/vent/open" => (200, String::new()),
            _ => (404, String::new()),
        }
    })
    .await;
    let mut family = Family::start(example("esphome-node", &[("http://greenhouse.local", &url)]), &[]);
    let node = family.joined().await;
    assert_eq!(call(&node, "temperature", json!({})).await.expect("read").joined_text(), "21.5");
    call(&node, "vent", json!({"to": "open"})).await.expect("opened");
    let requests: Vec<String> = std::iter::from_fn(|| heard.try_recv().ok()).collect();
    assert_eq!(requests.len(), 2, "{requests:?}");
}

#[test]
fn every_example_is_tried_and_makes_a_plan() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples");
    let broker = Address::new("mqtt://192.168.1.2:1883", None, None).expect("valid");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("a file").path().file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["esphome-node", "shelly-relay", "tasmota-plug", "zigbee2mqtt-lamp"]);
    for name in names {
        sinew_things::plan(&[example(&name, &[])], std::slice::from_ref(&broker)).expect("valid");
    }
}
