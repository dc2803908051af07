//! `sinew status`: the gateway and what is connected to it, on one page.

use serde_json::json;
use sinew_api::{Devices, GatewayStatus, HealthStatus, Tools};

use super::boards;
use crate::args::StatusArgs;
use crate::client::GatewayTarget;
use crate::error::CliError;
use crate::terminal::{Printer, clean, print, print_json};

pub async fn run(args: StatusArgs, printer: Printer) -> Result<(), CliError> {
    let target = GatewayTarget::find(&args.reach)?;
    let mut client = target.connect().await?;
    let health: HealthStatus = client.get("/health").await?;
    let ready = client.readiness().await?;
    let devices = client.get_all::<Devices>("/api/v1/devices").await?.devices;
    let tools = client.get::<Tools>("/api/v1/tools?shape=folded").await?.tools.len();
    // Only administrators may see them.
    let status = client.get::<GatewayStatus>("/api/v1/status").await.ok();
    let waiting = status.as_ref().map_or(0, |status| status.waiting_boards);
    let store_problem = status.as_ref().and_then(|status| status.store_problem.clone());
    let config_problem = status.as_ref().and_then(|status| status.config_problem.clone());
    let routines = status.as_ref().and_then(|status| status.routines.clone());
    let brokers = status.map(|status| status.brokers).unwrap_or_default();
    let count = |family: &str| devices.iter().filter(|device| device.family == family).count();
    let ready_devices = devices.iter().filter(|device| device.is_ready()).count();
    if printer.is_json() {
        print_json(&json!({
            "gateway": target.url.to_string(), "version": health.version, "ready": ready.ready,
            "reasons": ready.reasons, "devices": devices.len(), "devices_ready": ready_devices, "tools": tools,
            "waiting_boards": waiting, "brokers": brokers, "store_problem": store_problem,
            "config_problem": config_problem, "routines": routines,
        }));
        return Ok(());
    }
    let reasons: Vec<String> = ready.reasons.iter().map(|reason| json!(reason).to_string()).collect();
    let state = if ready.ready { "ready".to_owned() } else { format!("not ready: {}", reasons.join(", ")) };
    let mut page = printer.fact("Gateway", &target.description);
    page.push_str(&printer.fact("Version", &health.version));
    page.push_str(&printer.fact("State", &state));
    let mut families: Vec<&str> = devices.iter().map(|device| device.family.as_str()).collect();
    families.sort_unstable();
    families.dedup();
    let families: Vec<String> = families.iter().map(|family| format!("{family}: {}", count(family))).collect();
    let families = if families.is_empty() { String::new() } else { format!(" ({})", families.join(", ")) };
    page.push_str(&printer.fact("Devices", &format!("{ready_devices} of {} ready{families}", devices.len())));
    page.push_str(&printer.fact("Tools", &tools.to_string()));
    if waiting > 0 {
        page.push_str(&printer.fact("Waiting boards", &format!("{waiting}; `sinew boards` lists them")));
    }
    if let Some(problem) = &store_problem {
        page.push_str(
            &printer.fact("Store", &format!("{}; calls are refused until it can be written", clean(problem))),
        );
    }
    if let Some(problem) = &config_problem {
        page.push_str(&printer.fact("Configuration", &format!("{}; the one before it is in force", clean(problem))));
    }
    if let Some(folder) = &routines {
        page.push_str(&printer.fact("Routines", &format!("read from {}", clean(folder))));
    }
    page.push_str(&boards::presences(&brokers));
    print(&page);
    Ok(())
}
