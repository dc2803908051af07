//! `sinew phones`: which phones are there, what keeps one from being used, and how one on the network comes.

use serde_json::{Map, Value, json};
use sinew_api::{self as api, DeviceSummary};
use sinew_compose::state;
use sinew_phones::PhoneError;
use sinew_phones::adb::remembered::with_port;
use sinew_phones::adb::{self, AdbError, Remembered, Server, track};
use sinew_tool::ToolError;

use super::companion;
use super::devices::ink_of;
use crate::args::{Phones, PhonesVerb, Reach, State};
use crate::client::Target;
use crate::failure::{Failure, Kind};
use crate::show::{Ink, Show, Table, clean, print, print_json};

pub async fn run(args: Phones, show: Show) -> Result<(), Failure> {
    let answer = match &args.verb {
        None => return all(&args.reach, show).await,
        Some(PhonesVerb::Apps { reach }) => return apps(reach, show).await,
        Some(PhonesVerb::Connect { address, state }) => connect(address, &remembered(state)?).await,
        Some(PhonesVerb::Disconnect { address, state }) => disconnect(address, &remembered(state)?).await,
        Some(PhonesVerb::InstallCompanion(args)) => return companion::install(args, &server().await?, show).await,
        Some(PhonesVerb::Pair { address, code }) => server().await?.pair(address, code).await.map_err(failure),
    };
    let answer = answer?;
    if show.json() {
        print_json(&json!({"adb": answer}));
    } else {
        print(&format!("{}\n", clean(answer.trim())));
    }
    Ok(())
}

/// What a gateway on this state directory connects again.
fn remembered(state: &State) -> Result<Remembered, Failure> {
    Ok(Remembered::in_state(&state::directory(state.state.as_deref())?))
}

async fn connect(address: &str, remembered: &Remembered) -> Result<String, Failure> {
    let address = with_port(address);
    let answer = server().await?.connect_phone(&address).await.map_err(failure)?;
    remembered.add(&address).map_err(|error| unkept(&address, &error))?;
    Ok(answer)
}

/// Forgets the phone before it is disconnected, so that a running gateway does not connect it in between.
async fn disconnect(address: &str, remembered: &Remembered) -> Result<String, Failure> {
    let address = with_port(address);
    let was_remembered = remembered.remove(&address).map_err(|error| unkept(&address, &error))?;
    match server().await?.disconnect_phone(&address).await {
        Ok(answer) => Ok(answer),
        // One that is away is not in adb's list; that it is not connected again is what was asked for.
        Err(AdbError::Refused(_)) if was_remembered => Ok(format!("{address} is not connected again")),
        Err(error) => Err(failure(error)),
    }
}

fn unkept(address: &str, error: &std::io::Error) -> Failure {
    Failure::new(Kind::Io, format!("cannot write down {address} in the state directory: {error}"))
}

/// The gateway's phones; where no gateway runs, what adb sees.
async fn all(reach: &Reach, show: Show) -> Result<(), Failure> {
    let (phones, from) = match Target::find(reach) {
        Ok(target) => {
            let answer: api::Devices = target.connect().await?.get("/api/v1/devices").await?;
            let phones = answer.devices.into_iter().filter(|device| device.family == "phone");
            (phones.collect::<Vec<_>>(), "gateway")
        }
        Err(none) if none.error_type == "NoGateway" && reach.url.is_none() => {
            let entries = adb::list(&server().await?).await.map_err(failure)?;
            (entries.iter().map(seen).collect(), "adb")
        }
        Err(failure) => return Err(failure),
    };
    if show.json() {
        print_json(&json!({"from": from, "phones": phones}));
        return Ok(());
    }
    if phones.is_empty() {
        print(
            "No phone is there. Plug one in with USB debugging on, connect one with `sinew phones connect IP:PORT`, \
             or start a virtual one with `sinew sim phone`.\n",
        );
        return Ok(());
    }
    let mut table = Table::new(["PHONE", "NAME", "KIND", "ANDROID", "STATE", "SERIAL"]);
    for phone in &phones {
        table.row([
            (Some(Ink::Bold), phone.id.clone()),
            (None, phone.name.clone().unwrap_or_default()),
            (None, phone.kind.clone()),
            (None, phone.version.clone()),
            (Some(ink_of(&phone.state)), phone.state.clone()),
            (None, phone.attribute("serial").to_owned()),
        ]);
    }
    print(&show.table(&table));
    for phone in &phones {
        if let Some(remedy) = phone.remedy.as_deref().filter(|_| phone.state != "away") {
            print(&format!("{}: {}\n", clean(&phone.id), clean(remedy)));
        }
    }
    if from == "adb" {
        print("No gateway runs; this is what adb sees. `sinew serve` offers the phones' tools.\n");
    }
    Ok(())
}

/// The apps that the gateway found on its phones.
async fn apps(reach: &Reach, show: Show) -> Result<(), Failure> {
    let api::Devices { devices } = Target::find(reach)?.connect().await?.get("/api/v1/devices").await?;
    let apps: Vec<&DeviceSummary> = devices.iter().filter(|device| device.family == "app").collect();
    let phone_of = |serial: &str| {
        let is_meant = |device: &&DeviceSummary| device.family == "phone" && device.attribute("serial") == serial;
        devices.iter().find(is_meant).map_or(serial, |phone| phone.id.as_str()).to_owned()
    };
    if show.json() {
        print_json(&json!({"apps": apps}));
        return Ok(());
    }
    if apps.is_empty() {
        print("No app on the phones offers tools. docs/apps.md says how an app can.\n");
        return Ok(());
    }
    let mut table = Table::new(["APP", "PACKAGE", "VERSION", "PHONE", "STATE", "TOOLS", "FORMS"]);
    for app in &apps {
        table.row([
            (Some(Ink::Bold), app.id.clone()),
            (None, app.attribute("package").to_owned()),
            (None, app.version.clone()),
            (None, phone_of(app.attribute("phone"))),
            (Some(ink_of(&app.state)), app.state.clone()),
            (None, app.tools.to_string()),
            (None, app.attribute_list("forms").join(" ")),
        ]);
    }
    print(&show.table(&table));
    for app in &apps {
        for finding in app.attribute_list("findings") {
            print(&format!("{}: {}\n", clean(&app.id), clean(finding)));
        }
    }
    Ok(())
}

/// A line of adb's list in the words of the gateway; the serial stands for the id that a gateway would give.
fn seen(entry: &track::Entry) -> DeviceSummary {
    let trouble = track::remedy(&entry.state);
    let state = match (&trouble, entry.state.as_str()) {
        (Some((state, _)), _) => state,
        (None, "device") => "ready",
        (None, passing) => passing,
    };
    DeviceSummary {
        id: entry.serial.clone(),
        family: "phone".to_owned(),
        kind: entry.model.replace('_', " "),
        state: state.to_owned(),
        attributes: Map::from_iter([("serial".to_owned(), Value::from(entry.serial.as_str()))]),
        remedy: trouble.map(|(_, remedy)| remedy.to_owned()),
        ..DeviceSummary::default()
    }
}

async fn server() -> Result<Server, Failure> {
    let server = Server::from_env().map_err(failure)?;
    server.ensure().await.map_err(failure)?;
    Ok(server)
}

fn failure(error: AdbError) -> Failure {
    ToolError::from(PhoneError::from(error)).into()
}
