//! What `demo` and `serve` print once they listen. It fits 24 lines of 80 characters: what is less important is left out
//! until it does. `--verbose` prints everything.

use std::path::Path;

use serde_json::{Value, json};
use sinew_compose::GatewayServer;
use sinew_compose::state::{self, GatewayAddresses};
use sinew_gateway::Gateway;
use sinew_policy::Verdict;

use crate::client_setup::ClientSetup;
use crate::terminal::{Printer, Table, TextStyle, clean, print_exact, shell_word};

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
    /// How to call this program from this shell.
    pub program: String,
    /// How a client calls it from any folder.
    pub installed: String,
    /// What happens when a model calls a dangerous tool.
    pub access: String,
    /// The state directory that client commands must name; none for the default one.
    pub state: Option<String>,
    /// Where the virtual voice server is, if not at the usual address.
    pub voice: Option<String>,
}

/// Lines of a page, with one left for the command that was typed.
const LINES: usize = 23;

/// How much of the page is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// With the number of rows that the table of devices may have, and how many of the less important lines are left out.
    Short { rows: usize, cuts: u8 },
    /// `--verbose`.
    All,
}

/// What a short page leaves out, in this order.
const CUT_STATE: u8 = 1;
const CUT_SECOND_CALL: u8 = 2;
const CUT_SETUP: u8 = 3;
const CUT_CLAUDE_CODE: u8 = 4;
const CUT_HERE: u8 = 5;

/// Rows of devices and cuts, tried in this order until the page fits.
const STAGES: [(usize, u8); 10] = [
    (usize::MAX, 0),
    (usize::MAX, CUT_STATE),
    (6, CUT_STATE),
    (6, CUT_SECOND_CALL),
    (4, CUT_SECOND_CALL),
    (4, CUT_SETUP),
    (4, CUT_CLAUDE_CODE),
    (4, CUT_HERE),
    (2, CUT_HERE),
    (1, CUT_HERE),
];

impl Detail {
    fn is_all(self) -> bool {
        self == Detail::All
    }

    fn has(self, cut: u8) -> bool {
        matches!(self, Detail::Short { cuts, .. } if cuts >= cut)
    }

    fn rows(self) -> usize {
        match self {
            Detail::Short { rows, .. } => rows,
            Detail::All => usize::MAX,
        }
    }
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
            program: program(Caller::Shell),
            installed: program(Caller::Client),
            access: access(&server.gateway),
            state: (Some(base) != state::directory(None).ok().as_deref()).then(|| base.display().to_string()),
            voice: None,
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
        if is_verbose {
            return self.to_lines(printer, Detail::All);
        }
        let mut last = String::new();
        for (rows, cuts) in STAGES {
            last = self.to_lines(printer, Detail::Short { rows, cuts });
            if printer.rows(&last) <= LINES {
                break;
            }
        }
        last
    }

    fn to_lines(&self, printer: Printer, detail: Detail) -> String {
        let mut text = format!("{}\n", printer.paint(TextStyle::Bold, &self.title));
        text.push_str(&self.facts(printer, detail));
        text.push('\n');
        if self.devices.is_empty() {
            let is_short = detail.has(CUT_CLAUDE_CODE);
            text.push_str(&format!("{}\n", printer.wrap(&self.nothing_yet(is_short), 0)));
            if !is_short {
                text.push_str(&printer.command(&self.command("sim board")));
            }
        } else {
            text.push_str(&self.table(printer, detail.rows()));
        }
        text.push_str(&section(printer, "Try it in another terminal", &self.commands(detail)));
        let clients = self.setup();
        let claude_code = Some(clients.claude_code(&self.installed)).filter(|_| !detail.has(CUT_CLAUDE_CODE));
        let whom = if detail.has(CUT_SECOND_CALL) { "" } else { "   # Claude Desktop, Cursor, VS Code, ..." };
        let all = format!("{}{whom}", self.command("connect"));
        let commands: Vec<String> = claude_code.into_iter().chain([all]).collect();
        text.push_str(&section(printer, "Connect an AI client", &commands));
        if detail.is_all() {
            text.push_str(&clients.to_text(printer));
        }
        text.push_str(&printer.paint(TextStyle::Dim, &format!("{} Ctrl-C stops it.", self.access)));
        text.push('\n');
        text
    }

    /// Why the page has no device, and which ones come by themselves.
    fn nothing_yet(&self, is_short: bool) -> String {
        let known = match self.away.as_slice() {
            [] => "No device is connected yet.".to_owned(),
            away => {
                // One name in any case, and no more than fit beside the rest of the page.
                let mut room = AWAY_ROOM;
                let fits = |name: &&String| {
                    room = room.saturating_sub(name.chars().count() + 2);
                    room > 0
                };
                let count = away.iter().take(MOST_AWAY).take_while(fits).count().max(1);
                let (shown, more) = away.split_at(count);
                let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
                let count = if away.len() == 1 {
                    "1 known device is".to_owned()
                } else {
                    format!("{} known devices are", away.len())
                };
                format!("{count} not connected yet: {}{more}.", shown.join(", "))
            }
        };
        if is_short {
            return known;
        }
        let phones = if self.follows_phones { " Phones that adb sees come by themselves." } else { "" };
        format!("{known}{phones} To connect a virtual board:")
    }

    fn facts(&self, printer: Printer, detail: Detail) -> String {
        let addresses = &self.addresses;
        // Where others reach the gateway, so do programs here.
        let is_cut = |others: bool| others && detail.has(CUT_HERE);
        let here = [format!("{}/mcp", addresses.url)].into_iter().filter(|_| !is_cut(!self.remote_urls().is_empty()));
        // One other address is enough to connect; a machine may have many.
        let most = if detail.is_all() { usize::MAX } else { 1 };
        let urls = here.chain(self.remote_urls().into_iter().take(most));
        let mut text: String =
            urls.zip(once_named("MCP endpoint")).map(|(url, name)| printer.fact(name, &url)).collect();
        match &self.token {
            Some(token) => text.push_str(&printer.fact("Client token", token)),
            None => text.push_str(
                &printer.fact("Client token", &format!("create one: {}", self.command("token new --client NAME"))),
            ),
        }
        let here = Some(&addresses.devices_url).filter(|_| !is_cut(self.remote_boards_url.is_some()));
        let mqtt = addresses.mqtt_url.iter().filter(|_| detail.is_all());
        let urls = here.into_iter().chain(&self.remote_boards_url).chain(mqtt);
        text.extend(urls.zip(once_named("Boards")).map(|(url, name)| printer.fact(name, url)));
        // The page of the demo has no line to spare for an address that no real board reaches.
        let is_shown =
            detail.is_all() || (self.remote_boards_url.is_some() || self.devices.is_empty()) && !detail.has(CUT_SETUP);
        if let Some(url) = addresses.ota_url.as_ref().filter(|_| is_shown) {
            let who = match &self.remote_boards_url {
                Some(_) => "OTA address of boards",
                None => "OTA address, on this machine only; --devices opens it to others",
            };
            text.push_str(&printer.fact("Board setup", &format!("{url} ({who})")));
        }
        if let Some(fingerprint) = &addresses.fingerprint {
            // Without colons it fits a line.
            text.push_str(&printer.fact("Fingerprint", &fingerprint.replace(':', "").to_lowercase()));
        }
        // The usual one is where everybody expects it; the commands have any other too.
        if detail.is_all() || self.state.is_some() && !detail.has(CUT_STATE) {
            text.push_str(&printer.fact("State", &self.directory));
        }
        if let Some(address) = &self.voice {
            text.push_str(&printer.fact("Voice server", &format!("{address} (sinew sim say --voice {address} ...)")));
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

    /// The devices, as many as there is room for.
    fn table(&self, printer: Printer, rows: usize) -> String {
        let mut table = Table::new(["DEVICE", "KIND", "TOOLS"]).cut(&["TOOLS"]);
        let mut shown = 0;
        let mut left_out = 0;
        for (place, device) in self.devices.iter().enumerate() {
            let is_same = |other: &&ListedDevice| other.kind == device.kind && other.tools == device.tools;
            if self.devices[..place].iter().any(|other| is_same(&other)) {
                continue;
            }
            // Equal devices share a line: the page has none to spare.
            let more = self.devices[place + 1..].iter().filter(is_same).count();
            if shown == rows {
                left_out += 1 + more;
                continue;
            }
            shown += 1;
            let id = match more {
                0 => device.id.clone(),
                more => format!("{} +{more}", device.id),
            };
            let tools = format!("{}: {}", device.tools.len(), device.tools.join(", "));
            let cells = [device.kind.clone(), tools].map(|cell| (None, cell));
            table.row([(Some(TextStyle::Good), id)].into_iter().chain(cells));
        }
        let mut text = printer.table(&table);
        if left_out > 0 {
            let how = if rows > 1 { format!(": {}", self.command("devices")) } else { String::new() };
            text.push_str(&format!("and {left_out} more{how}\n"));
        }
        text
    }

    /// A command of this program for this gateway.
    fn command(&self, words: &str) -> String {
        let state = self.state.as_ref().map(|state| format!(" --state {}", shell_word(state))).unwrap_or_default();
        format!("{} {words}{state}", shell_word(&self.program))
    }

    /// Calls that work as printed: the first device with the tool is taken.
    fn commands(&self, detail: Detail) -> Vec<String> {
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
            .filter(|(_, _, is_extra)| detail.is_all() || !is_extra)
            .filter_map(|(end, arguments, _)| call(end, arguments))
            .take(if detail.has(CUT_SECOND_CALL) { 1 } else { usize::MAX })
            .collect();
        if commands.is_empty() || detail.is_all() {
            let usual: &[&str] = if detail.is_all() { &["devices", "tools", "events --follow"] } else { &["devices"] };
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
/// Characters of these names.
const AWAY_ROOM: usize = 120;

fn away(gateway: &Gateway) -> Vec<String> {
    let devices = gateway.devices().into_iter().filter(|device| device.state == "away");
    devices.map(|device| clean(&device.name.unwrap_or_else(|| device.id.to_string()))).collect()
}

fn section(printer: Printer, title: &str, commands: &[String]) -> String {
    let lines: String = commands.iter().map(|command| printer.command(command)).collect();
    format!("\n{}\n{lines}", printer.paint(TextStyle::Bold, title))
}

/// The name for the first of several facts, and none for the others.
fn once_named(name: &'static str) -> impl Iterator<Item = &'static str> {
    std::iter::once(name).chain(std::iter::repeat(""))
}

/// Who starts this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// A person in this folder.
    Shell,
    /// A program in any folder.
    Client,
}

/// How this program is called: by its name if the shell finds it, else by its path.
fn program(caller: Caller) -> String {
    let Ok(path) = std::env::current_exe() else { return "sinew".to_owned() };
    let folders = std::env::var_os("PATH").unwrap_or_default();
    // A relative folder in PATH is another one elsewhere.
    let folders = std::env::split_paths(&folders).filter(|folder| folder.is_absolute() || caller == Caller::Shell);
    let by_name = folders.map(|folder| folder.join("sinew")).find(|file| file.is_file());
    if by_name.and_then(|found| found.canonicalize().ok()) == path.canonicalize().ok() {
        return "sinew".to_owned();
    }
    let here = std::env::current_dir().ok().filter(|_| caller == Caller::Shell);
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
            installed: "sinew".to_owned(),
            state: None,
            voice: None,
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

    /// Every combination of what makes the page longer, with short and long names.
    #[test]
    fn every_page_fits_a_small_terminal() {
        let long = "/home/somebody/projects/a-rather-long-name/of-a-folder/target/release/sinew";
        for choice in 0u32..256 {
            let has = |bit: u32| choice & (1 << bit) != 0;
            let mut page = page();
            if has(0) {
                page.addresses.fingerprint = Some("AB:".repeat(31) + "AB");
            }
            if has(1) {
                page.addresses.remote_hosts = ["192.168.1.5", "fd00::1", "vm", "vm.local"].map(str::to_owned).to_vec();
                page.remote_boards_url = Some("ws://192.168.1.5:7301/xiaozhi/v1/".to_owned());
                page.addresses.ota_url = Some("http://192.168.1.5:7301/xiaozhi/ota/".to_owned());
            }
            if has(2) {
                page.unencrypted = vec!["clients", "boards"];
            }
            if has(3) {
                page.state = Some("/home/somebody/.local/state/another-gateway".to_owned());
                page.directory = "/home/somebody/.local/state/another-gateway/demo".to_owned();
            }
            if has(4) {
                page.devices = Vec::new();
                page.away = (0..40).map(|number| format!("a-board-with-a-long-name-{number}")).collect();
            }
            if has(5) {
                (page.program, page.installed) = ("target/release/sinew".to_owned(), long.to_owned());
            }
            if has(6) {
                page.token = None;
            }
            if has(7) {
                page.voice = Some("127.0.0.1:43210".to_owned());
            }
            let text = page.to_text(Printer::narrow(80), false);
            let rows = Printer::narrow(80).rows(&text);
            assert!(rows < 24, "{choice:b}: {rows} lines\n{text}");
            assert!(text.contains(":7300/mcp") && text.contains("connect"), "{choice:b}\n{text}");
            assert_eq!(text.contains("abababab"), has(0), "{choice:b}\n{text}");
            assert_eq!(text.contains("--insecure-lan"), has(2), "{choice:b}\n{text}");
            assert!(has(4) || text.contains("board-ddee01"), "{choice:b}\n{text}");
        }
    }

    #[test]
    fn devices_without_room_are_counted() {
        let table = page().table(Printer::narrow(80), 2);
        assert!(table.contains("board-ddee03 +1") && table.contains("and 6 more: sinew devices"), "{table}");
        assert!(!table.contains("kiln"), "{table}");
    }

    #[test]
    fn what_a_shell_would_split_is_in_quotes() {
        let page = StartPage {
            program: "my builds/sinew".to_owned(),
            installed: "/home/me/my builds/sinew".to_owned(),
            state: Some("/tmp/a b".to_owned()),
            ..page()
        };
        let text = page.to_text(Printer::plain(), false);
        assert!(text.contains("'my builds/sinew' connect --state '/tmp/a b'"), "{text}");
        assert!(text.contains("claude mcp add sinew -- '/home/me/my builds/sinew' stdio --state '/tmp/a b'"), "{text}");
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
