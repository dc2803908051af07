//! A board on an ESP32-C3, with neither operating system nor standard library: its light and its age.
//!
//! The messages travel as lines over the serial port, so that the example holds the SDK and nothing
//! else. With a WebSocket of your network stack the loop is the same: text in, text out.

#![no_std]
#![no_main]

extern crate alloc;

mod board;

use alloc::vec::Vec;

use esp_backtrace as _;
use esp_hal::gpio::{Level, Output, OutputConfig};
use esp_hal::time::Instant;
use esp_hal::uart::{Config, Uart};

esp_bootloader_esp_idf::esp_app_desc!();

/// The gateway's requests are a few hundred bytes; what is longer is dropped.
const LONGEST: usize = 4096;

#[esp_hal::main]
fn main() -> ! {
    let chip = esp_hal::init(esp_hal::Config::default());
    esp_alloc::heap_allocator!(size: 64 * 1024);

    let mut light = Output::new(chip.GPIO8, Level::Low, OutputConfig::default());
    let set_light = move |on| light.set_level(Level::from(on));
    let seconds = || Instant::now().duration_since_epoch().as_secs();
    let mut board = board::board("esp32-hello", set_light, seconds);

    let serial = Uart::new(chip.UART0, Config::default()).expect("the usual speed is possible");
    let mut serial = serial.with_rx(chip.GPIO20).with_tx(chip.GPIO21);
    say(&mut serial, &board.hello());
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        if serial.read(&mut byte).is_err() {
            continue;
        }
        match byte[0] {
            b'\n' => {
                if let Some(answer) = core::str::from_utf8(&line).ok().and_then(|text| board.handle_text(text)) {
                    say(&mut serial, &answer);
                }
                line.clear();
            }
            byte if line.len() < LONGEST => line.push(byte),
            _ => {}
        }
    }
}

fn say(serial: &mut Uart<'_, esp_hal::Blocking>, text: &str) {
    for part in [text, "\n"] {
        let mut bytes = part.as_bytes();
        while let Ok(written) = serial.write(bytes)
            && written < bytes.len()
        {
            bytes = &bytes[written..];
        }
    }
}
