//! What `demo` and `serve` print once their doors are open.

use std::path::Path;

use serde_json::{Value, json};
use sinew_compose::state::GatewayAddresses;

use crate::terminal::{Printer, Table, TextStyle, clean};

/// All that a start page tells.
pub struct StartPage {
    pub title: String,
    pub addresses: GatewayAddresses,
    /// A client's token, where one was made for the page.
    pub token: Option<String>,
    pub directory: String,
    /// Names and addresses under which other machines reach the gateway.
    pub remote_hosts: Vec<String>,
    /// The boards' door as other machines reach it.
    pub remote_boards_url: Option<String>,
    /// Whose tokens travel over the network in the clear.
    pub unencrypted: Vec<&'static str>,
    pub devices: Vec<ListedDevice>,
    /// How to call this program from a shell.
    pub program: String,
    /// What a client command needs to find this gateway, empty for the default place.
    pub state_flag: Option<String>,
}

pub struct ListedDevice {
    pub id: String,
    pub kind: String,
    pub tools: Vec<String>,
}

impl StartPage {
    pub fn to_json(&self) -> Value {
        let mut page = json!({
            "url": self.addresses.url,
            "mcp": format!("{}/mcp", self.addresses.url),
            "devices_url": self.addresses.devices_url,
            "mqtt_url": self.addresses.mqtt_url,
            "ota_url": self.addresses.ota_url,
            "fingerprint": self.addresses.fingerprint,
            "mcp_elsewhere": self.urls_elsewhere(),
            "devices_elsewhere": self.remote_boards_url,
            "in_the_clear": self.unencrypted,
            "state": self.directory,
            "pid": std::process::id(),
        });
        if let Some(token) = &self.token {
            page["token"] = json!(token);
        }
        let devices =
            self.devices.iter().map(|device| json!({"id": device.id, "kind": device.kind, "tools": device.tools}));
        page["devices"] = devices.collect();
        page
    }

    pub fn to_text(&self, printer: Printer) -> String {
        let mut text = format!("\n{}\n\n", printer.paint(TextStyle::Bold, &self.title));
        let mut fact = |name: &str, value: &str| {
            text.push_str(&format!("{} {value}\n", printer.paint(TextStyle::Dim, &format!("{name:<14}"))))
        };
        fact("MCP endpoint", &printer.paint(TextStyle::Accent, &format!("{}/mcp", self.addresses.url)));
        for url in self.urls_elsewhere() {
            fact("", &url);
        }
        match &self.token {
            Some(token) => fact("Token", &format!("{token} (for a client)")),
            None => fact("Token", &format!("made for each client with `{} token new --client NAME`", self.program)),
        }
        fact("Boards' door", &self.addresses.devices_url);
        for url in self.remote_boards_url.iter().chain(&self.addresses.mqtt_url) {
            fact("", url);
        }
        if let Some(url) = &self.addresses.ota_url {
            fact("Boards' setup", &format!("{url} (the OTA address of a board of your own)"));
        }
        if let Some(fingerprint) = &self.addresses.fingerprint {
            fact("Certificate", &format!("SHA-256 {fingerprint}"));
        }
        fact("State", &self.directory);
        if !self.unencrypted.is_empty() {
            let whose = self.unencrypted.join(" and ");
            let warning = format!(
                "--insecure-lan: the tokens of {whose} travel in the clear; everybody on the network can read and use them"
            );
            fact("Warning", &printer.paint(TextStyle::Warn, &warning));
        }
        if !self.devices.is_empty() {
            text.push('\n');
            text.push_str(&self.table(printer));
            text.push_str(&self.tries(printer));
            text.push_str(&self.client_configurations(printer));
        }
        text.push_str(&printer.paint(TextStyle::Dim, "\nCtrl-C stops it.\n"));
        text
    }

    fn urls_elsewhere(&self) -> Vec<String> {
        let scheme = self.addresses.url.split(':').next().unwrap_or("http");
        let port = self.addresses.url.rsplit(':').next().unwrap_or_default();
        let url = |host: &String| match host.contains(':') {
            true => format!("{scheme}://[{host}]:{port}/mcp"),
            false => format!("{scheme}://{host}:{port}/mcp"),
        };
        self.remote_hosts.iter().map(url).collect()
    }

    fn table(&self, printer: Printer) -> String {
        let mut table = Table::new(["DEVICE", "KIND", "TOOLS"]);
        for device in &self.devices {
            let cells = [device.kind.clone(), summary(&device.tools)].map(|cell| (None, cell));
            table.row([(Some(TextStyle::Good), device.id.clone())].into_iter().chain(cells));
        }
        printer.table(&table)
    }

    /// Calls that work as they stand: the first device with the tool is taken.
    fn tries(&self, printer: Printer) -> String {
        let program = &self.program;
        let state = self.state_flag.as_ref().map(|state| format!(" --state {state}")).unwrap_or_default();
        let mut lines = vec![format!("{program} devices{state}")];
        for (end, rest) in [
            ("set_volume", " volume=40"),
            ("get_device_status", ""),
            ("take_photo", " question='What do you see?' --save ."),
            ("open_app", " app=Notes return=screen"),
            ("get_screen", " screenshot=annotated --save ."),
        ] {
            let found = self.devices.iter().find_map(|device| {
                let tool = device.tools.iter().find(|tool| tool.ends_with(end))?;
                Some(format!("{program} call {} {}{rest}{state}", device.id, clean(tool)))
            });
            lines.extend(found);
        }
        lines.push(format!("{program} events --follow{state}"));
        section(printer, "Try it in another terminal", &lines.join("\n"))
    }

    fn client_configurations(&self, printer: Printer) -> String {
        let mut args = vec!["stdio".to_owned()];
        args.extend(self.state_flag.iter().flat_map(|state| ["--state".to_owned(), state.clone()]));
        let command = std::env::current_exe().map(|path| path.display().to_string()).unwrap_or("sinew".to_owned());
        let desktop = json!({"mcpServers": {"sinew": {"command": command, "args": args}}});
        let http = json!({"mcpServers": {"sinew": {
            "type": "http",
            "url": format!("{}/mcp", self.addresses.url),
            "headers": {"Authorization": format!("Bearer {}", self.token.as_deref().unwrap_or("TOKEN"))},
        }}});
        section(
            printer,
            "Claude Desktop, and every client that starts its servers (claude_desktop_config.json)",
            &format!("{desktop:#}"),
        ) + &section(printer, "Clients that speak Streamable HTTP", &format!("{http:#}"))
    }
}

/// Their names; where they are more than fit on a line, the first ones and how many there are.
fn summary(tools: &[String]) -> String {
    const ROOM: usize = 64;
    let mut used = 0;
    let fit = tools.iter().take_while(|name| {
        used += name.len() + 2;
        used <= ROOM
    });
    match fit.count() {
        all if all == tools.len() => tools.join(", "),
        some => format!("{}: {}, …", tools.len(), tools[..some.max(1)].join(", ")),
    }
}

fn section(printer: Printer, title: &str, body: &str) -> String {
    let body: String = body.lines().map(|line| format!("  {line}\n")).collect();
    format!("\n{}\n\n{body}", printer.paint(TextStyle::Bold, title))
}

/// How this program is called from a shell: by its name where that finds it, else by its path.
pub fn program() -> String {
    let Ok(path) = std::env::current_exe() else { return "sinew".to_owned() };
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let by_name = std::env::split_paths(&folders).map(|folder| folder.join("sinew")).find(|file| file.is_file());
    if by_name.and_then(|found| found.canonicalize().ok()) == path.canonicalize().ok() {
        return "sinew".to_owned();
    }
    let here = std::env::current_dir().ok();
    let short = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    short.unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> StartPage {
        StartPage {
            title: "Sinew is running".to_owned(),
            addresses: GatewayAddresses {
                url: "https://127.0.0.1:7300".to_owned(),
                devices_url: "ws://127.0.0.1:7301/xiaozhi/v1/".to_owned(),
                mqtt_url: Some("mqtt://127.0.0.1:7302".to_owned()),
                ota_url: Some("http://192.168.1.5:7301/xiaozhi/ota/".to_owned()),
                fingerprint: Some("AB:CD".to_owned()),
                token: "snw_secret".to_owned(),
            },
            token: Some("snw_client".to_owned()),
            directory: "/state/demo".to_owned(),
            remote_hosts: vec!["192.168.1.5".to_owned(), "fd00::1".to_owned()],
            remote_boards_url: Some("ws://192.168.1.5:7301/xiaozhi/v1/".to_owned()),
            unencrypted: vec!["boards"],
            devices: vec![ListedDevice {
                id: "board-ddee01".to_owned(),
                kind: "companion".to_owned(),
                tools: vec!["self.audio_speaker.set_volume".to_owned()],
            }],
            program: "sinew".to_owned(),
            state_flag: None,
        }
    }

    #[test]
    fn the_page_tells_everything_a_newcomer_needs() {
        let text = page().to_text(Printer::plain());
        for part in [
            "https://127.0.0.1:7300/mcp",
            "https://192.168.1.5:7300/mcp",
            "https://[fd00::1]:7300/mcp",
            "snw_client",
            "ws://192.168.1.5:7301/xiaozhi/v1/",
            "the tokens of boards travel in the clear",
            "mqtt://127.0.0.1:7302",
            "http://192.168.1.5:7301/xiaozhi/ota/",
            "SHA-256 AB:CD",
            "board-ddee01",
            "sinew call board-ddee01 self.audio_speaker.set_volume volume=40",
            "\"mcpServers\"",
            "\"stdio\"",
            "Bearer snw_client",
            "Ctrl-C",
        ] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }

    #[test]
    fn the_gateways_own_token_is_not_printed() {
        for page in
            [page(), StartPage { token: None, ..page() }, StartPage { token: None, devices: Vec::new(), ..page() }]
        {
            assert!(!page.to_text(Printer::plain()).contains("snw_secret"));
            assert!(!page.to_json().to_string().contains("snw_secret"));
        }
    }

    #[test]
    fn an_unusual_state_directory_is_passed_on() {
        let page = StartPage { state_flag: Some("/elsewhere".to_owned()), ..page() };
        let text = page.to_text(Printer::plain());
        assert!(text.contains("sinew devices --state /elsewhere"));
        assert!(text.contains("\"--state\""));
    }
}
