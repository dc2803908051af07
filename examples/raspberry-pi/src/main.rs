//! A Linux computer as a board: temperature, load, uptime and memory, and a word when it gets hot.

use std::error::Error;
use std::fs::read_to_string;
use std::time::Duration;

use serde_json::json;
use sinew_runner::device::{Board, Reply, ToolSpec};
use sinew_runner::{CancellationToken, Dialer, Firmware, Identity, Trust};

type Reading = fn() -> Result<Reply, String>;

const TOOLS: [(&str, &str, Reading); 4] = [
    ("self.get_temperature", "Temperature of the processor, in degrees Celsius.", || Ok(celsius()?.to_string().into())),
    ("self.get_load", "Average load over 1, 5 and 15 minutes.", || words("/proc/loadavg", 3)),
    ("self.get_uptime", "Seconds since the computer was started.", || words("/proc/uptime", 1)),
    ("self.get_memory", "Memory in all, free, and available to programs.", || words("/proc/meminfo", 9)),
];

fn celsius() -> Result<f64, String> {
    let text = read("/sys/class/thermal/thermal_zone0/temp")?;
    text.trim().parse::<f64>().map(|milli| milli / 1000.0).map_err(|error| error.to_string())
}

fn words(path: &str, count: usize) -> Result<Reply, String> {
    Ok(read(path)?.split_whitespace().take(count).collect::<Vec<_>>().join(" ").into())
}

fn read(path: &str) -> Result<String, String> {
    read_to_string(path).map_err(|error| format!("this computer has no {path}: {error}"))
}

/// The board, and what it looks after by itself.
struct Pi {
    board: Board,
    next_look: Duration,
    was_hot: bool,
}

impl Firmware for Pi {
    fn hello(&mut self) -> String {
        self.board.hello()
    }

    fn handle_text(&mut self, _: Duration, text: &str) -> Vec<String> {
        self.board.handle_text(text).into_iter().collect()
    }

    fn handle_time(&mut self, now: Duration) -> Vec<String> {
        if now < self.next_look {
            return Vec::new();
        }
        self.next_look = now + Duration::from_secs(10);
        // A Raspberry Pi slows down from 80 degrees on.
        let hot = celsius().ok().filter(|celsius| *celsius > 75.0);
        let news = hot.filter(|_| !self.was_hot).map(|celsius| json!({"celsius": celsius}));
        self.was_hot = hot.is_some();
        news.map(|params| self.board.notify("notifications/overheating", params)).into_iter().collect()
    }

    fn next_due(&self) -> Option<Duration> {
        Some(self.next_look)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("name the boards' door: ws://GATEWAY:7301/xiaozhi/v1/")?;
    let trust = std::env::var("GATEWAY_CERT").map_or(Ok(Trust::System), |file| std::fs::read(file).map(Trust::Pem))?;
    let card = || read("/sys/class/net/eth0/address").or_else(|_| read("/sys/class/net/wlan0/address"));
    let mac = std::env::var("BOARD_ID").or_else(|_| card())?;
    let identity = Identity { token: std::env::var("BOARD_TOKEN").ok(), ..Identity::new(mac.trim()) };
    let board = TOOLS.iter().fold(Board::new("raspberry-pi", "1.0.0"), |board, (name, about, reading)| {
        board.tool(ToolSpec::new(*name, *about), |_| reading())
    });
    let pi = Pi { board, next_look: Duration::ZERO, was_hot: false };
    Ok(Dialer::new(&url, &trust)?.run(pi, identity, CancellationToken::new()).await?)
}
