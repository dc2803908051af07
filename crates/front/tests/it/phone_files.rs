//! Files of phones: apps that are uploaded, and what is in the shared storage as resources.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sinew_phones::{PhoneDevice, Profile};
use sinew_sim::phone::{LockScreen, PhoneClock, PhoneSetup, VirtualPhone, shopping};
use sinew_tool::DeviceEvent;
use sinew_tool::settings::Setting;

use crate::client::{Client, Reply};
use crate::lines;
use crate::server::TestServer;

/// A phone with the tools of a profile, at a gateway that allows everything.
fn join(server: &TestServer, profile: Profile) -> VirtualPhone {
    let mut policy = sinew_policy::PolicySettings::default();
    policy.read(json!({"danger": "allow"})).unwrap();
    let allow = sinew_gateway::AccessSettings { policy, ..sinew_gateway::AccessSettings::default() };
    server.gateway.set_access(allow).unwrap();
    let setup = PhoneSetup { lock: LockScreen::None, ..PhoneSetup::default() };
    let phone = VirtualPhone::new(setup, PhoneClock::Real);
    server.gateway.apply(DeviceEvent::Joined(Arc::new(PhoneDevice::new(phone.clone(), profile))));
    phone
}

async fn installs(client: &Client) -> Vec<Value> {
    let mut records = client.get("/api/v1/audit").await.json()["records"].as_array().unwrap().clone();
    records.retain(|record| record["tool"] == "install_app");
    records
}

fn apk(size: usize) -> Vec<u8> {
    [b"PK\x03\x04".as_slice(), &vec![7; size - 4]].concat()
}

const APPS: &str = "/api/v1/phones/virtual-phone/apps";

async fn upload(client: &Client, query: &str, body: Vec<u8>) -> Reply {
    client.send("POST", &format!("{APPS}{query}"), &[("content-type", "application/octet-stream")], body).await
}

#[tokio::test]
async fn an_app_is_uploaded_whole_or_in_splits_as_one_call_of_install_app() {
    let server = TestServer::new().await;
    let client = server.client();
    let phone = join(&server, Profile::Tester);
    let apk = shopping().apk;
    let two = [&apk[..], &apk[..]].concat();
    let sizes = format!("?sizes={},{}", apk.len(), apk.len());
    for (nth, (query, body)) in [("", apk.clone()), (sizes.as_str(), two)].into_iter().enumerate() {
        phone.handset.uninstall("dev.sinew.shopping");
        let size = body.len();
        let reply = upload(&client, query, body).await;
        assert_eq!(reply.status, 200, "{:?}", reply.body);
        let told = reply.json().to_string();
        assert!(told.contains(&format!("Installed the uploaded app ({size} bytes)")), "{told}");
        let installed: Vec<String> = phone.handset.virtual_apps().iter().map(|app| app.package.clone()).collect();
        assert_eq!(installed, ["dev.sinew.shopping"], "{query}");
        let records = installs(&client).await;
        assert_eq!((records.len(), &records[0]["outcome"]), (nth + 1, &json!("ok")), "{records:?}");
        assert!(records[0]["args"].to_string().contains(&format!("upload of {size} bytes")), "{records:?}");
    }
    assert_eq!((phone.handset.opened_sessions(), phone.handset.open_sessions()), (1, 0));
}

#[tokio::test]
async fn what_is_no_app_is_refused_and_only_testers_upload() {
    let server = TestServer::new().await;
    let client = server.client();
    let phone = join(&server, Profile::Full);
    assert_eq!(upload(&client, "", apk(100)).await.status, 404, "only testers install");

    server.gateway.apply(DeviceEvent::Joined(Arc::new(PhoneDevice::new(phone.clone(), Profile::Tester))));
    let text = upload(&client, "", b"#!/bin/sh\nreboot\n".to_vec()).await.json();
    let message = text["error"]["error_message"].as_str().unwrap_or_default();
    assert!(message.contains("is not an APK"), "{text}");
    let many = format!("?sizes={}", ["1"; 101].join(","));
    for wrong in ["?sizes=1,2", "?sizes=x", "?sizes=", "?sizes=18446744073709551615,5", "?sizes=-4", &many] {
        let reply = upload(&client, wrong, b"not an apk".to_vec()).await;
        assert_eq!(reply.status, 400, "{wrong}: {:?}", reply.body);
    }
    // A zip file that is no app: the phone says so.
    let refused = upload(&client, "", apk(70_000)).await;
    assert_eq!(refused.status, 502, "{:?}", refused.body);
    let refused = upload(&client, "?sizes=40000,30000", [apk(40_000), apk(30_000)].concat()).await;
    assert_eq!(refused.status, 502, "{:?}", refused.body);
    let records = installs(&client).await;
    assert!(records.len() >= 4 && records[0]["args"].to_string().contains("upload of 70000 bytes"), "{records:?}");
    assert!(phone.handset.virtual_apps().is_empty() && phone.handset.open_sessions() == 0);
}

#[tokio::test]
async fn an_uploader_who_leaves_in_the_middle_leaves_nothing_and_a_record_that_says_so() {
    let server = TestServer::new().await;
    let client = server.client();
    let phone = join(&server, Profile::Tester);
    let apk = shopping().apk;
    let half = apk.len() / 2;
    let path = format!("{APPS}?sizes={half},{}", apk.len() - half);
    let begun = phone.handset.next_command();
    client.send_part("POST", &path, apk.len(), &apk[..half + 10], begun).await;
    for _ in 0..500 {
        if phone.handset.opened_sessions() == 1
            && phone.handset.open_sessions() == 0
            && installs(&client).await.len() == 1
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((phone.handset.opened_sessions(), phone.handset.open_sessions()), (1, 0));
    let records = installs(&client).await;
    assert!(records.len() == 1 && records[0]["outcome"] != "ok", "{records:?}");
    assert!(phone.handset.virtual_apps().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_installation_that_reports_progress_may_take_longer_than_a_silent_call() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shop.apk"), shopping().apk).unwrap();
    let server = TestServer::new().await;
    let phone = join(&server, Profile::Tester);
    let device = PhoneDevice::new(phone.clone(), Profile::Tester).with_apks(Some(folder.path().to_owned()));
    server.gateway.apply(DeviceEvent::Joined(Arc::new(device)));
    // Three minutes for the phone to check it.
    phone.handset.set_latency(Duration::from_secs(180));
    let mut pipe = lines::pipe(&server);
    lines::say(&mut pipe.writer, &lines::initialize()).await;
    lines::hear(&mut pipe.reader).await;
    let mut answers = Vec::new();
    for (id, meta) in [(1, json!({"progressToken": "t"})), (2, json!({}))] {
        let params = json!({"name": "install_app", "arguments": {"file": "shop.apk"}, "_meta": meta});
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        lines::say(&mut pipe.writer, &request.to_string()).await;
        let mut reports = Vec::new();
        let answer = loop {
            let message = lines::hear(&mut pipe.reader).await;
            if message["id"] == id {
                break message["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
            }
            reports.extend(message["params"]["message"].as_str().map(str::to_owned));
        };
        answers.push((answer, reports));
    }
    let [(installed, reports), (silent, none)] = &answers[..] else { panic!("{answers:?}") };
    assert!(installed.starts_with("Installed 'shop.apk'"), "{installed}");
    assert!(reports.iter().any(|report| report == "the phone has been installing it for 175 s"), "{reports:?}");
    assert!(silent.contains("no answer within 30 s") && none.is_empty(), "{silent} {none:?}");
}

async fn read(client: &Client, uri: &str) -> Value {
    client.modern("resources/read", json!({"uri": uri})).await.message()
}

#[tokio::test]
async fn files_and_folders_of_a_phone_are_resources_and_each_read_is_a_call() {
    let server = TestServer::new().await;
    let client = server.client();
    let phone = join(&server, Profile::Tester);
    let templates = client.modern("resources/templates/list", json!({})).await.message();
    let templates = templates["result"]["resourceTemplates"].to_string();
    assert!(templates.contains("device://{device}/files/{+path}"), "{templates}");

    let write = async |arguments: Value| {
        let params = json!({"name": "write_file", "arguments": arguments});
        let written = client.modern("tools/call", params).await.message();
        assert_ne!(written["result"]["isError"], true, "{written}");
    };
    write(json!({"path": "Download/it's 100 %.txt", "text": "Grüße"})).await;
    write(json!({"path": "Download/events", "base64": "/wD+"})).await;
    let of = |answer: &Value| answer["result"]["contents"][0].clone();
    let uri = "device://virtual-phone/files/Download/it%27s%20100%20%25.txt";
    let text = of(&read(&client, uri).await);
    assert_eq!((&text["text"], &text["uri"], &text["mimeType"]), (&json!("Grüße"), &json!(uri), &json!("text/plain")));
    let bytes = of(&read(&client, "device://virtual-phone/files/Download/events").await);
    assert_eq!(bytes["blob"], "/wD+", "a file may be called as other resources are: {bytes}");
    for (folder, name) in [("", "Download"), ("Download/", "events"), ("/sdcard/Download/", "events")] {
        let listed = of(&read(&client, &format!("device://virtual-phone/files/{folder}")).await);
        let listed: Value = serde_json::from_str(listed["text"].as_str().unwrap()).unwrap();
        let entries = listed["entries"].as_array().unwrap();
        assert!(entries.iter().any(|entry| entry["name"] == name), "{folder}: {listed}");
    }
    for (wrong, says) in [
        ("device://virtual-phone/files/Download/none", "'Download/none' cannot be read"),
        ("device://virtual-phone/files/../data/x", "has '..'"),
        ("device://virtual-phone/files/%2e%2e/data/x", "has '..'"),
        ("device://virtual-phone/files//system/bin/sh", "outside"),
        ("device://virtual-phone/files//data/local/tmp/sinew-agent.jar", "Sinew's own"),
        ("device://nobody/files/Download/events", "nobody"),
    ] {
        let refused = read(&client, wrong).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(says), "{wrong}: {refused}");
    }
    let records = client.get("/api/v1/audit").await.json()["records"].as_array().unwrap().clone();
    let reads = records.iter().filter(|record| record["tool"] == "read_file").count();
    assert!(reads >= 2 + 5, "{reads} reads in {records:?}");
    drop(phone);
}

#[tokio::test]
async fn a_phone_without_file_tools_has_no_file_resources() {
    let server = TestServer::new().await;
    let client = server.client();
    join(&server, Profile::Full);
    let templates = client.modern("resources/templates/list", json!({})).await.message();
    assert!(!templates.to_string().contains("/files/"), "{templates}");
    let refused = read(&client, "device://virtual-phone/files/Download/readme.txt").await;
    assert!(refused["error"].is_object(), "{refused}");
}
