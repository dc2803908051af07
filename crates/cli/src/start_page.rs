//! What `demo` and `serve` print once they listen. It fits 24 lines of 80 characters; `--verbose` prints the rest.

use std::path::Path;

use serde_json::{Value, json};
use sinew_compose::GatewayServer;
use sinew_compose::state::{self, GatewayAddresses};
use sinew_gateway::Gateway;
use sinew_policy::Verdict;

use crate::client_setup::ClientSetup;
use crate::terminal::{Printer, Table, TextStyle, clean, print_exact};

/// The content of a start page.
pub struct StartPage {
    pub title: String,
    pub addresses: GatewayAddresses,
    /// A client's token, if one was made for the page.
    pub token: Option<String>,
    pub directory: String,
    /// The listener for boards as other machines reach it.
    pub remote_boards_url: Option<String>,
    /// Whose tokens travel over the network without encryption.
    pub unencrypted: Vec<&'static str>,
    pub devices: Vec<ListedDevice>,
    /// Known devices that are not connected, by the names people use.
    pub away: Vec<String>,
    /// Whether phones that adb sees are connected by themselves.
    pub follows_phones: bool,
    /// How to call this program from a shell.
    pub program: String,
    /// What happens when a model calls a dangerous tool.
    pub access: String,
    /// The state directory that client commands must name; none for the default one.
    pub state: Option<String>,
}

pub struct ListedDevice {
    pub id: String,
    pub kind: String,
    pub tools: Vec<String>,
}

impl StartPage {
    /// `base` is the state directory as client commands name it.
    pub fn new(title: String, server: &GatewayServer, base: &Path) -> StartPage {
        StartPage {
            title,
            addresses: server.addresses.clone(),
            token: None,
            directory: server.directory.display().to_string(),
            remote_boards_url: server.remote_boards_url.clone(),
            unencrypted: server.unencrypted.clone(),
            devices: Vec::new(),
            away: away(&server.gateway),
            follows_phones: false,
            program: program(),
            access: access(&server.gateway),
            state: (Some(base) != state::directory(None).ok().as_deref()).then(|| base.display().to_string()),
        }
    }

    pub fn print(&self, printer: Printer, is_verbose: bool) {
        // One line of JSON, so that whoever started us can read it and go on. The page has commands to be copied.
        print_exact(&match printer.is_json() {
            true => format!("{}\n", self.to_json()),
            false => self.to_text(printer, is_verbose),
        });
    }

    fn to_json(&self) -> Value {
        let mut page = json!({
            "url": self.addresses.url,
            "mcp": format!("{}/mcp", self.addresses.url),
            "devices_url": self.addresses.devices_url,
            "mqtt_url": self.addresses.mqtt_url,
            "ota_url": self.addresses.ota_url,
            "fingerprint": self.addresses.fingerprint,
            "mcp_elsewhere": self.remote_urls(),
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

    fn to_text(&self, printer: Printer, is_verbose: bool) -> String {
        let mut text = format!("{}\n", printer.paint(TextStyle::Bold, &self.title));
        text.push_str(&self.facts(printer, is_verbose));
        text.push('\n');
        if self.devices.is_empty() {
            text.push_str(&format!("{}\n", printer.wrap(&self.nothing_yet(), 0)));
            text.push_str(&printer.command(&self.command("sim board")));
        } else {
            text.push_str(&self.table(printer));
        }
        let commands = self.commands(is_verbose);
        text.push_str(&section(printer, "Try it in another terminal", &commands));
        let clients = self.setup();
        let all = self.command("connect");
        text.push_str(&section(
            printer,
            "Connect an AI client",
            &[clients.claude_code(&self.program), format!("{all}   # Claude Desktop, Cursor, VS Code, ...")],
        ));
        if is_verbose {
            text.push_str(&clients.to_text(printer));
        }
        text.push_str(&printer.paint(TextStyle::Dim, &format!("{} Ctrl-C stops it.\n", self.access)));
        text
    }

    /// Why the page has no device, and which ones come by themselves.
    fn nothing_yet(&self) -> String {
        let known = match self.away.as_slice() {
            [] => "No device is connected yet.".to_owned(),
            away => {
                let (shown, more) = away.split_at(away.len().min(MOST_AWAY));
                let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
                let count = if away.len() == 1 {
                    "1 known device is".to_owned()
                } else {
                    format!("{} known devices are", away.len())
                };
                format!("{count} not connected yet: {}{more}.", shown.join(", "))
            }
        };
        let phones = if self.follows_phones { " Phones that adb sees come by themselves." } else { "" };
        format!("{known}{phones} To connect a virtual board:")
    }

    fn facts(&self, printer: Printer, is_verbose: bool) -> String {
        let addresses = &self.addresses;
        let mut text = printer.fact("MCP endpoint", &format!("{}/mcp", addresses.url));
        // One other address is enough to connect; a machine may have many.
        let most = if is_verbose { usize::MAX } else { 1 };
        text.extend(self.remote_urls().iter().take(most).map(|url| printer.fact("", url)));
        match &self.token {
            Some(token) => text.push_str(&printer.fact("Client token", token)),
            None => text.push_str(
                &printer.fact("Client token", &format!("create one: {}", self.command("token new --client NAME"))),
            ),
        }
        text.push_str(&printer.fact("Boards", &addresses.devices_url));
        let more = self.remote_boards_url.iter().chain(addresses.mqtt_url.iter().filter(|_| is_verbose));
        text.extend(more.map(|url| printer.fact("", url)));
        // The page of the demo has no line to spare for an address that no real board reaches.
        let is_shown = is_verbose || self.remote_boards_url.is_some() || self.devices.is_empty();
        if let Some(url) = addresses.ota_url.as_ref().filter(|_| is_shown) {
            let who = match &self.remote_boards_url {
                Some(_) => "OTA address of boards",
                None => "OTA address, on this machine only; --devices opens it to others",
            };
            text.push_str(&printer.fact("Board setup", &format!("{url} ({who})")));
        }
        // Programs on this machine know it; only others are given it.
        let is_shown = is_verbose || !self.remote_urls().is_empty();
        if let Some(fingerprint) = addresses.fingerprint.as_ref().filter(|_| is_shown) {
            // Without colons it fits a line.
            text.push_str(&printer.fact("Fingerprint", &fingerprint.replace(':', "").to_lowercase()));
        }
        // The usual one is where everybody expects it; the page has no line to spare.
        if is_verbose || self.state.is_some() {
            text.push_str(&printer.fact("State", &self.directory));
        }
        if !self.unencrypted.is_empty() {
            let whose = self.unencrypted.join(" and ");
            let warning = format!(
                "--insecure-lan: the tokens of {whose} are not encrypted; everybody on the network can read and use them"
            );
            text.push_str(&printer.fact("Warning", &printer.paint(TextStyle::Warn, &warning)));
        }
        text
    }

    fn remote_urls(&self) -> Vec<String> {
        self.addresses.remote_urls().iter().map(|url| format!("{url}/mcp")).collect()
    }

    fn table(&self, printer: Printer) -> String {
        let mut table = Table::new(["DEVICE", "KIND", "TOOLS"]).cut(&["TOOLS"]);
        for (place, device) in self.devices.iter().enumerate() {
            let is_same = |other: &&ListedDevice| other.kind == device.kind && other.tools == device.tools;
            if self.devices[..place].iter().any(|other| is_same(&other)) {
                continue;
            }
            // Equal devices share a line: the page has none to spare.
            let id = match self.devices[place + 1..].iter().filter(is_same).count() {
                0 => device.id.clone(),
                more => format!("{} +{more}", device.id),
            };
            let tools = format!("{}: {}", device.tools.len(), device.tools.join(", "));
            let cells = [device.kind.clone(), tools].map(|cell| (None, cell));
            table.row([(Some(TextStyle::Good), id)].into_iter().chain(cells));
        }
        printer.table(&table)
    }

    /// A command of this program for this gateway.
    fn command(&self, words: &str) -> String {
        let state = self.state.as_ref().map(|state| format!(" --state {state}")).unwrap_or_default();
        format!("{} {words}{state}", self.program)
    }

    /// Calls that work as printed: the first device with the tool is taken.
    fn commands(&self, is_verbose: bool) -> Vec<String> {
        let examples = [
            ("set_volume", " volume=40", false),
            ("get_screen", " screenshot=annotated --save screen.jpg", false),
            ("get_device_status", "", true),
            ("take_photo", " question='What do you see?' --save photo.jpg", true),
            ("open_app", " app=Notes return=screen", true),
        ];
        let call = |end: &str, arguments: &str| {
            self.devices.iter().find_map(|device| {
                let tool = device.tools.iter().find(|tool| tool.ends_with(end))?;
                Some(self.command(&format!("call {} {}{arguments}", device.id, clean(tool))))
            })
        };
        let mut commands: Vec<String> = examples
            .into_iter()
            .filter(|(_, _, is_extra)| is_verbose || !is_extra)
            .filter_map(|(end, arguments, _)| call(end, arguments))
            .collect();
        if commands.is_empty() || is_verbose {
            let usual: &[&str] = if is_verbose { &["devices", "tools", "events --follow"] } else { &["devices"] };
            commands.extend(usual.iter().map(|words| self.command(words)));
        }
        commands
    }

    fn setup(&self) -> ClientSetup {
        ClientSetup {
            url: self.addresses.url.clone(),
            remote_url: self.addresses.remote_urls().into_iter().next(),
            token: self.token.clone(),
            state: self.state.clone(),
            fingerprint: self.addresses.fingerprint.clone(),
        }
    }
}

/// Names of away devices that the page has room for.
const MOST_AWAY: usize = 6;

fn away(gateway: &Gateway) -> Vec<String> {
    let devices = gateway.devices().into_iter().filter(|device| device.state == "away");
    devices.map(|device| clean(&device.name.unwrap_or_else(|| device.id.to_string()))).collect()
}

fn section(printer: Printer, title: &str, commands: &[String]) -> String {
    let lines: String = commands.iter().map(|command| printer.command(command)).collect();
    format!("\n{}\n{lines}", printer.paint(TextStyle::Bold, title))
}

/// How this program is called from a shell: by its name if the shell finds it, else by its path.
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

/// What the policy says about dangerous tools, for newcomers.
fn access(gateway: &Gateway) -> String {
    match gateway.danger_default() {
        Verdict::Allow => "Dangerous tools are allowed without asking.".to_owned(),
        Verdict::Ask => "Dangerous tools wait until you agree (sinew approvals).".to_owned(),
        Verdict::Deny => "Dangerous tools are denied.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sinew_compose::state::StartedBy;

    fn page() -> StartPage {
        let device = |id: &str, kind: &str, tools: &[&str]| ListedDevice {
            id: id.to_owned(),
            kind: kind.to_owned(),
            tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        };
        let board = ["self.get_device_status", "self.audio_speaker.set_volume", "self.camera.take_photo"];
        StartPage {
            title: "Sinew 0.1.0 is running, with 4 virtual boards and a virtual phone.".to_owned(),
            addresses: GatewayAddresses {
                remote_hosts: Vec::new(),
                url: "http://127.0.0.1:7300".to_owned(),
                devices_url: "ws://127.0.0.1:7301/xiaozhi/v1/".to_owned(),
                mqtt_url: Some("mqtt://127.0.0.1:7302".to_owned()),
                ota_url: Some("http://127.0.0.1:7301/xiaozhi/ota/".to_owned()),
                fingerprint: None,
                token: "snw_secret".to_owned(),
                started_by: StartedBy::Demo,
                version: "0.1.0".to_owned(),
                routines: None,
            },
            token: Some("snw_client_0123456789_0123456789_0123456789".to_owned()),
            directory: "/home/somebody/.local/state/sinew/demo".to_owned(),
            access: "Dangerous tools wait until you agree (sinew approvals).".to_owned(),
            remote_boards_url: None,
            unencrypted: Vec::new(),
            devices: vec![
                device("board-ddee01", "companion", &board),
                device("board-ddee02", "companion", &board),
                device("board-ddee03", "relay", &["self.relay.set", "self.read_sensors"]),
                device("board-ddee04", "relay", &["self.relay.set", "self.read_sensors"]),
                device("desk-lamp", "desk-lamp", &["get", "turn"]),
                device("kiln", "kiln", &["set_target", "temperature"]),
                device("plant", "plant", &["get_light", "water"]),
                device("routines", "Routines", &["good_night"]),
                device("shopping", "Shopping", &["add_item"]),
                device("virtual-phone", "Virtual Phone", &["capture_screenshot", "get_screen", "open_app"]),
            ],
            away: Vec::new(),
            follows_phones: true,
            program: "sinew".to_owned(),
            state: None,
        }
    }

    /// The page as a newcomer sees it in a terminal of 80 columns and 24 lines, with the line of the command.
    #[test]
    fn the_page_of_the_demo_fits_a_small_terminal() {
        let text = page().to_text(Printer::narrow(80), false);
        assert!(text.lines().count() < 24, "{} lines\n{text}", text.lines().count());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for part in [
            "http://127.0.0.1:7300/mcp",
            "snw_client_",
            "ws://127.0.0.1:7301/xiaozhi/v1/",
            "board-ddee01",
            "sinew call board-ddee01 self.audio_speaker.set_volume volume=40",
            "claude mcp add sinew -- sinew stdio",
            "sinew connect",
            "Ctrl-C",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn a_page_with_tls_fits_too_here_and_on_the_network() {
        let mut page = page();
        page.addresses.fingerprint = Some("AB:".repeat(31) + "AB");
        let text = page.to_text(Printer::narrow(80), false);
        assert!(text.lines().count() < 24, "{} lines\n{text}", text.lines().count());
        page.addresses.remote_hosts = ["192.168.1.5", "fd00::1", "vm", "vm.local"].map(str::to_owned).to_vec();
        page.remote_boards_url = Some("ws://192.168.1.5:7301/xiaozhi/v1/".to_owned());
        page.addresses.ota_url = Some("http://192.168.1.5:7301/xiaozhi/ota/".to_owned());
        page.unencrypted = vec!["boards"];
        page.devices = Vec::new();
        let text = page.to_text(Printer::narrow(80), false);
        assert!(text.lines().count() < 24, "{} lines\n{text}", text.lines().count());
        assert!(text.contains("http://192.168.1.5:7300/mcp") && text.contains("abababab"), "{text}");
    }

    #[test]
    fn a_page_without_devices_says_which_are_known_and_away() {
        let empty = StartPage { devices: Vec::new(), ..page() };
        let text = |away: &[&str]| {
            let away = away.iter().map(|name| (*name).to_owned()).collect();
            StartPage { away, ..StartPage { devices: Vec::new(), ..page() } }.to_text(Printer::narrow(80), false)
        };
        assert!(empty.to_text(Printer::narrow(80), false).contains("No device is connected yet. Phones"));
        assert!(text(&["kitchen"]).contains("1 known device is not connected yet: kitchen."));
        let many = text(&["a", "b", "c", "d", "e", "f", "g", "h"]);
        assert!(many.contains("8 known devices are not connected yet: a, b, c, d, e, f and 2 more."), "{many}");
        assert!(many.contains("http://127.0.0.1:7301/xiaozhi/ota/") && many.lines().count() < 24, "{many}");
    }

    #[test]
    fn the_long_page_has_every_address_and_every_client() {
        let mut page = page();
        page.addresses.remote_hosts = vec!["192.168.1.5".to_owned(), "fd00::1".to_owned()];
        page.remote_boards_url = Some("ws://192.168.1.5:7301/xiaozhi/v1/".to_owned());
        page.unencrypted = vec!["boards"];
        page.addresses.fingerprint = Some("AB:CD".to_owned());
        let text = page.to_text(Printer::plain(), true);
        for part in [
            "http://192.168.1.5:7300/mcp",
            "http://[fd00::1]:7300/mcp",
            "ws://192.168.1.5:7301/xiaozhi/v1/",
            "the tokens of boards are not encrypted",
            "mqtt://127.0.0.1:7302",
            "http://127.0.0.1:7301/xiaozhi/ota/",
            "Fingerprint    abcd",
            "\"mcpServers\"",
            "claude_desktop_config.json",
            "~/.cursor/mcp.json",
            "Bearer snw_client",
            "sinew stdio --url http://192.168.1.5:7300 --token snw_client_0123456789_0123456789_0123456789 --fingerprint abcd",
        ] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }

    #[test]
    fn the_gateways_own_token_is_not_printed() {
        for page in
            [page(), StartPage { token: None, ..page() }, StartPage { token: None, devices: Vec::new(), ..page() }]
        {
            assert!(!page.to_text(Printer::plain(), true).contains("snw_secret"));
            assert!(!page.to_json().to_string().contains("snw_secret"));
        }
    }

    #[test]
    fn an_unusual_state_directory_is_part_of_every_command() {
        let page = StartPage { state: Some("/elsewhere".to_owned()), ..page() };
        let text = page.to_text(Printer::plain(), true);
        assert!(text.contains("sinew devices --state /elsewhere"), "{text}");
        assert!(text.contains("sinew stdio --state /elsewhere") && text.contains("\"--state\""), "{text}");
    }
}
