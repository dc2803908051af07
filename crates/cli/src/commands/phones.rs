//! `sinew phones`: which phones are there, what keeps one from being used, and how one on the network comes.

use serde_json::{Value, json};
use sinew_phones::PhoneError;
use sinew_phones::adb::{self, AdbError, Server, track};
use sinew_tool::ToolError;

use super::devices::ink_of;
use super::{companion, list, text};
use crate::args::{Phones, PhonesVerb, Reach};
use crate::client::Target;
use crate::failure::Failure;
use crate::show::{Ink, Show, Table, clean, print, print_json};

pub async fn run(args: Phones, show: Show) -> Result<(), Failure> {
    let answer = match &args.verb {
        None => return all(&args.reach, show).await,
        Some(PhonesVerb::Apps { reach }) => return apps(reach, show).await,
        Some(PhonesVerb::Connect { address }) => server().await?.connect_phone(address).await,
        Some(PhonesVerb::InstallCompanion(args)) => return companion::install(args, &server().await?, show).await,
        Some(PhonesVerb::Pair { address, code }) => server().await?.pair(address, code).await,
    };
    let answer = answer.map_err(failure)?;
    if show.json() {
        print_json(&json!({"adb": answer}));
    } else {
        print(&format!("{}\n", clean(answer.trim())));
    }
    Ok(())
}

/// The gateway's phones; where no gateway runs, what adb sees.
async fn all(reach: &Reach, show: Show) -> Result<(), Failure> {
    let (phones, from) = match Target::find(reach) {
        Ok(target) => {
            let answer = target.connect().await?.get("/api/v1/devices").await?;
            let phones = list(&answer, "devices").iter().filter(|device| text(device, "family") == "phone");
            (phones.cloned().collect::<Vec<_>>(), "gateway")
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
        let state = text(phone, "state");
        table.row([
            (Some(Ink::Bold), text(phone, "id").to_owned()),
            (None, text(phone, "name").to_owned()),
            (None, text(phone, "kind").to_owned()),
            (None, text(phone, "version").to_owned()),
            (Some(ink_of(state)), state.to_owned()),
            (None, text(&phone["attributes"], "serial").to_owned()),
        ]);
    }
    print(&show.table(&table));
    for phone in &phones {
        let (state, remedy) = (text(phone, "state"), text(phone, "remedy"));
        if !remedy.is_empty() && state != "away" {
            print(&format!("{}: {}\n", clean(text(phone, "id")), clean(remedy)));
        }
    }
    if from == "adb" {
        print("No gateway runs; this is what adb sees. `sinew serve` offers the phones' tools.\n");
    }
    Ok(())
}

/// The apps that the gateway found on its phones.
async fn apps(reach: &Reach, show: Show) -> Result<(), Failure> {
    let answer = Target::find(reach)?.connect().await?.get("/api/v1/devices").await?;
    let apps: Vec<&Value> = list(&answer, "devices").iter().filter(|device| text(device, "family") == "app").collect();
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
        let (state, attributes) = (text(app, "state"), &app["attributes"]);
        let forms: Vec<&str> = list(attributes, "forms").iter().filter_map(Value::as_str).collect();
        table.row([
            (Some(Ink::Bold), text(app, "id").to_owned()),
            (None, text(attributes, "package").to_owned()),
            (None, text(app, "version").to_owned()),
            (None, text(attributes, "phone").to_owned()),
            (Some(ink_of(state)), state.to_owned()),
            (None, app.get("tools").map(Value::to_string).unwrap_or_default()),
            (None, forms.join(" ")),
        ]);
    }
    print(&show.table(&table));
    for app in &apps {
        for finding in list(&app["attributes"], "findings").iter().filter_map(Value::as_str) {
            print(&format!("{}: {}\n", clean(text(app, "id")), clean(finding)));
        }
    }
    Ok(())
}

/// A line of adb's list in the words of the gateway; the serial stands for the id that a gateway would give.
fn seen(entry: &track::Entry) -> Value {
    let trouble = track::remedy(&entry.state);
    let state = match (&trouble, entry.state.as_str()) {
        (Some((state, _)), _) => state,
        (None, "device") => "ready",
        (None, passing) => passing,
    };
    let mut phone = json!({
        "id": entry.serial,
        "kind": entry.model.replace('_', " "),
        "state": state,
        "attributes": {"serial": entry.serial},
    });
    if let Some((_, remedy)) = trouble {
        phone["remedy"] = json!(remedy);
    }
    phone
}

async fn server() -> Result<Server, Failure> {
    let server = Server::from_env().map_err(failure)?;
    server.ensure().await.map_err(failure)?;
    Ok(server)
}

fn failure(error: AdbError) -> Failure {
    ToolError::from(PhoneError::from(error)).into()
}
