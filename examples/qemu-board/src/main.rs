//! A board on an emulated RISC-V microcontroller: the SDK, a network stack and a WebSocket in 400 KiB of memory; or the
//! SDK alone, as lines on the serial port.
//!
//! - `machine`: clock, serial port, heap, settings
//! - `network`: a TCP connection
//! - `link`: text over a WebSocket
//! - `board`: the tools, shared with `examples/esp32-hello`

#![no_std]
#![no_main]

extern crate alloc;

#[path = "../../esp32-hello/src/board.rs"]
mod board;
mod link;
mod machine;
mod network;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sinew_wire::device::{Board, Property, Reply, ToolSpec};

use link::{Link, Refusal};
use machine::{Serial, milliseconds, say};
use network::{Closed, Network};

/// Between two tries to reach the gateway.
const PAUSE_MILLISECONDS: u64 = 250;
/// The gateway's requests are a few hundred bytes; what is longer is dropped.
const LONGEST_LINE: usize = 16 * 1024;

#[riscv_rt::entry]
fn main() -> ! {
    machine::start_heap();
    let set_light = |on| say!("light {}", if on { "on" } else { "off" });
    let mut board = with_memory_tools(board::board("qemu-board", set_light, || milliseconds() / 1000));
    // The port of the gateway and the token, a line each; or `serial`.
    let mut settings = machine::settings().lines();
    let first = settings.next().unwrap_or_default();
    if first == "serial" {
        serve_serial(&mut board);
    }
    let port = first.parse().ok();
    let token = settings.next().unwrap_or_default();
    let (Some(port), Some(mut network)) = (port, Network::open()) else {
        say!("the settings name no port, or the machine has no network card");
        machine::power_off()
    };
    let [a, b, c, d, e, f] = network.mac_address();
    let id = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");

    loop {
        match Link::open(&mut network, port, &id, token) {
            Ok(link) => {
                say!("connected");
                let Err(Closed) = serve(&mut board, link);
                say!("disconnected");
            }
            Err(Refusal::Status(status)) => say!("refused with status {status}"),
            Err(Refusal::Unreachable) => {}
        }
        let until = milliseconds() + PAUSE_MILLISECONDS;
        while milliseconds() < until {
            network.poll();
        }
    }
}

fn serve(board: &mut Board, mut link: Link<'_>) -> Result<core::convert::Infallible, Closed> {
    link.send(&board.hello())?;
    loop {
        let Some(text) = link.receive()? else { continue };
        if let Some(answer) = board.handle_text(&text) {
            link.send(&answer)?;
        }
    }
}

/// Messages as lines on the serial port, between what the board says there.
fn serve_serial(board: &mut Board) -> ! {
    say!("rst:0x1 (POWERON),boot:0xc");
    let mut line = Vec::new();
    loop {
        match Serial.read() {
            None => {}
            Some(b'\n') => {
                let text = String::from_utf8(core::mem::take(&mut line)).unwrap_or_default();
                if let Some(answer) = board.handle_text(&text) {
                    say!("{answer}");
                }
            }
            Some(_) if line.len() >= LONGEST_LINE => line.clear(),
            Some(byte) => line.push(byte),
        }
    }
}

/// A tool whose answer is as large as asked for, to see where the memory ends.
fn with_memory_tools(board: Board) -> Board {
    let spec = ToolSpec::new("self.read_text", "Answer with a text of so many bytes.")
        .with(Property::integer("bytes", 1..=1_000_000).describe("how long the text is"));
    board.tool(spec, |arguments| {
        let bytes = arguments.integer("bytes")? as usize;
        let mut text = String::new();
        text.try_reserve_exact(bytes).map_err(|_| format!("there is no memory for {bytes} bytes; ask for less"))?;
        (0..bytes).for_each(|index| text.push(char::from(b'a' + (index % 26) as u8)));
        Ok(Reply::Text(text))
    })
}
