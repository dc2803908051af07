//! A shopping list: an app without a screen that offers two tools through broadcasts. It is installed on every virtual phone of `sinew sim`
//! and `sinew demo`, so that there is an app whose tools can be tried.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::virtual_app::{AppComponent, IntentReaction, ReceivedIntent, VirtualApp, VirtualComponentKind, pack};

/// `manifests/shopping.xml`, as Android's packager compiles it.
const MANIFEST: &[u8] = include_bytes!("manifests/shopping.axml");

const DISCOVERY: &str = "com.example.ACTION_MMCP_DISCOVERY";
const INVOKE: &str = "com.example.ACTION_MMCP_INVOKE";

/// What it tells of its tools, as Android prints a bundle.
const TOLD: &str = r#"{tools=[add_to_shopping_list, read_shopping_list], add_to_shopping_list.description=Puts something on the shopping list of this phone, add_to_shopping_list.parameters={"item":"string"}, read_shopping_list.description=Reads the shopping list of this phone, read_shopping_list.parameters={}, instructions=A shopping list. Items are kept until the phone is switched off.}"#;

/// More items than anybody buys at once.
const MOST: usize = 100;

/// The app, with a list of its own.
pub fn shopping() -> VirtualApp {
    let list: Mutex<Vec<String>> = Mutex::default();
    let react = move |request: &ReceivedIntent| {
        if request.action == DISCOVERY {
            return IntentReaction::Answer { code: -1, text: None, extras: Some(TOLD.to_owned()) };
        }
        let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
        let extra = |name: &str| request.extras.get(name).map(String::as_str).unwrap_or_default();
        let parameters: Value = serde_json::from_str(extra("params")).unwrap_or_default();
        match (extra("tool"), parameters["item"].as_str()) {
            ("add_to_shopping_list", Some(item)) if list.len() < MOST => {
                list.push(item.to_owned());
                IntentReaction::ok(format!("{item} is on the list, which has {} now", list.len()))
            }
            ("add_to_shopping_list", _) => IntentReaction::ok("the list is full"),
            ("read_shopping_list", _) if list.is_empty() => IntentReaction::ok("the list is empty"),
            ("read_shopping_list", _) => IntentReaction::ok(list.join("\n")),
            (other, _) => IntentReaction::ok(format!("Unknown tool: {other}")),
        }
    };
    let actions = [DISCOVERY, INVOKE].map(str::to_owned).to_vec();
    let part = AppComponent {
        kind: VirtualComponentKind::Receiver,
        class: ".Tools".to_owned(),
        actions,
        react: Arc::new(react),
    };
    VirtualApp {
        package: "dev.sinew.shopping".to_owned(),
        version_code: 1,
        version_name: "1.0".to_owned(),
        apk: pack(MANIFEST, 0),
        parts: vec![part],
        ..VirtualApp::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phone::{PhoneClock, PhoneSetup, VirtualPhone};
    use sinew_apps::{AppWatcher, WatchSettings};
    use sinew_tool::{Call, Device, DeviceEvent, json};

    #[tokio::test]
    async fn the_shopping_list_is_found_and_kept_with_no_adb_between() {
        let phone = VirtualPhone::new(PhoneSetup::default(), PhoneClock::Virtual);
        phone.handset.install(shopping());
        let found: Arc<Mutex<Vec<Arc<dyn Device>>>> = Arc::default();
        let heard = found.clone();
        let announce = Arc::new(move |event| {
            if let DeviceEvent::Joined(device) = event {
                heard.lock().unwrap().push(device);
            }
        });
        AppWatcher::new(Arc::new(phone), WatchSettings::default(), announce).refresh().await.unwrap();
        let app = found.lock().unwrap().pop().unwrap();
        assert_eq!(app.info().suggested_id, "sinew-shopping");
        let call = async |tool: &str, args: Value| {
            let args = args.as_object().cloned().unwrap_or_default();
            app.call(Call::new(tool, args)).await.unwrap().joined_text()
        };
        assert_eq!(call("read_shopping_list", json!({})).await, "the list is empty");
        call("add_to_shopping_list", json!({"item": "it's \"milk\""})).await;
        call("add_to_shopping_list", json!({"item": "eggs"})).await;
        assert_eq!(call("read_shopping_list", json!({})).await, "it's \"milk\"\neggs");
    }
}
