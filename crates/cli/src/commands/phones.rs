//! `sinew phones`: which phones are there, what keeps one from being used, and how one on the network comes.

use serde_json::{Map, Value, json};
use sinew_api::{self as api, DeviceSummary};
use sinew_phones::PhoneError;
use sinew_phones::adb::network_phones::with_port;
use sinew_phones::adb::{self, AdbError, AdbServer, NetworkPhones, track};
use sinew_tool::ToolError;

use super::devices::{phone_of, style_of};
use super::{companion, phone_files};
use crate::args::{PhonesArgs, PhonesCommand, ReachArgs, StateArgs};
use crate::client::GatewayTarget;
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, Table, TextStyle, clean, print, print_json};

pub async fn run(args: PhonesArgs, printer: Printer) -> Result<(), CliError> {
    let answer = match &args.command {
        None => return all(&args.reach, printer).await,
        Some(PhonesCommand::Apps { reach }) => return apps(reach, printer).await,
        Some(PhonesCommand::Connect { address, state }) => connect(address, &remembered(state)?).await,
        Some(PhonesCommand::Disconnect { address, state }) => disconnect(address, &remembered(state)?).await,
        Some(PhonesCommand::Install { phone, file }) => {
            return phone_files::install(phone, file, &server().await?, printer).await;
        }
        Some(PhonesCommand::Pull { phone, path, to }) => {
            return phone_files::pull(phone, path, to.as_deref(), &server().await?, printer).await;
        }
        Some(PhonesCommand::Push { phone, file, path }) => {
            return phone_files::push(phone, file, path, &server().await?, printer).await;
        }
        Some(PhonesCommand::Record { phone, to, seconds }) => {
            return phone_files::record(phone, to, *seconds, &server().await?, printer).await;
        }
        Some(PhonesCommand::InstallCompanion(args)) => {
            return companion::install(args, &server().await?, printer).await;
        }
        Some(PhonesCommand::Pair { address, code }) => server().await?.pair(address, code).await.map_err(failure),
    };
    let answer = answer?;
    if printer.is_json() {
        print_json(&json!({"adb": answer}));
    } else {
        print(&format!("{}\n", clean(answer.trim())));
    }
    Ok(())
}

/// What a gateway on this state directory connects again.
fn remembered(state: &StateArgs) -> Result<NetworkPhones, CliError> {
    Ok(NetworkPhones::in_state(&state.directory()?))
}

async fn connect(address: &str, remembered: &NetworkPhones) -> Result<String, CliError> {
    let address = with_port(address);
    let answer = server().await?.connect_phone(&address).await.map_err(failure)?;
    remembered.add(&address).map_err(|error| unkept(&address, &error))?;
    Ok(answer)
}

/// Forgets the phone before it is disconnected, so that a running gateway does not connect it in between.
async fn disconnect(address: &str, remembered: &NetworkPhones) -> Result<String, CliError> {
    let address = with_port(address);
    let was_remembered = remembered.remove(&address).map_err(|error| unkept(&address, &error))?;
    match server().await?.disconnect_phone(&address).await {
        Ok(answer) => Ok(answer),
        // One that is away is not in adb's list; that it is not connected again is what was asked for.
        Err(AdbError::Refused(_)) if was_remembered => Ok(format!("{address} is not connected again")),
        Err(error) => Err(failure(error)),
    }
}

fn unkept(address: &str, error: &std::io::Error) -> CliError {
    CliError::new(CliErrorKind::Io, format!("cannot write down {address} in the state directory: {error}"))
}

/// The gateway's phones; where no gateway runs, what adb sees.
async fn all(reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let (phones, from) = match GatewayTarget::find(reach) {
        Ok(target) => {
            let answer: api::Devices = target.connect().await?.get_all("/api/v1/devices?family=phone").await?;
            (answer.devices, "gateway")
        }
        Err(none) if none.error_type == "NoGateway" && reach.url.is_none() => {
            let entries = adb::list(&server().await?).await.map_err(failure)?;
            (entries.iter().map(seen).collect(), "adb")
        }
        Err(failure) => return Err(failure),
    };
    if printer.is_json() {
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
    let mut table = Table::new(["PHONE", "NAME", "KIND", "ANDROID", "STATE", "SERIAL"]).spare(&["ANDROID", "KIND"]);
    for phone in &phones {
        table.row([
            (Some(TextStyle::Bold), phone.id.clone()),
            (None, phone.name.clone().unwrap_or_default()),
            (None, phone.kind.clone()),
            (None, phone.version.clone()),
            (Some(style_of(&phone.state)), phone.state.clone()),
            (None, phone.attribute("serial").to_owned()),
        ]);
    }
    print(&printer.table(&table));
    for phone in &phones {
        if let Some(remedy) = phone.remedy.as_deref() {
            print(&format!("{}\n", printer.wrap(&format!("{}: {}", clean(&phone.id), clean(remedy)), 2)));
        }
    }
    if from == "adb" {
        print("No gateway runs; this is what adb sees. `sinew serve` offers the phones' tools.\n");
    }
    Ok(())
}

/// The apps that the gateway found on its phones.
async fn apps(reach: &ReachArgs, printer: Printer) -> Result<(), CliError> {
    let mut client = GatewayTarget::find(reach)?.connect().await?;
    let apps = client.get_all::<api::Devices>("/api/v1/devices?family=app").await?.devices;
    if printer.is_json() {
        print_json(&json!({"apps": apps}));
        return Ok(());
    }
    if apps.is_empty() {
        print("No app on the phones offers tools. docs/apps.md says how an app can.\n");
        return Ok(());
    }
    let phones = client.get_all::<api::Devices>("/api/v1/devices?family=phone").await?.devices;
    let mut table =
        Table::new(["APP", "PACKAGE", "VERSION", "PHONE", "STATE", "TOOLS", "FORMS"]).spare(&["FORMS", "VERSION"]);
    for app in &apps {
        table.row([
            (Some(TextStyle::Bold), app.id.clone()),
            (None, app.attribute("package").to_owned()),
            (None, app.version.clone()),
            (None, phone_of(app, &phones)),
            (Some(style_of(&app.state)), app.state.clone()),
            (None, app.tools.to_string()),
            (None, app.attribute_list("forms").join(" ")),
        ]);
    }
    print(&printer.table(&table));
    for app in &apps {
        for finding in app.attribute_list("findings") {
            print(&format!("{}: {}\n", clean(&app.id), clean(finding)));
        }
    }
    Ok(())
}

/// A line of adb's list in the words of the gateway; the serial stands for the id that a gateway would give.
fn seen(entry: &track::AdbEntry) -> DeviceSummary {
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

async fn server() -> Result<AdbServer, CliError> {
    let server = AdbServer::from_env().map_err(failure)?;
    server.ensure().await.map_err(failure)?;
    Ok(server)
}

fn failure(error: AdbError) -> CliError {
    ToolError::from(PhoneError::from(error)).into()
}
