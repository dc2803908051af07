//! A talking companion: speaker, screen, camera, battery, with the common tools of real firmware.

use std::time::Duration;

use sinew_tool::{Value, json};

use crate::board::{BoardMachine, MachineState};
use crate::ota::NETWORK;
use crate::picture::{CameraScene, HEIGHT, WIDTH};

/// A full battery lasts eight hours, and charges four times as fast as it drains.
const BATTERY_LIFE: Duration = Duration::from_secs(8 * 3600);
/// Below this the charger is plugged in, so that a demonstration never ends in darkness.
const BATTERY_LOW: u64 = 15;

#[derive(Debug)]
pub(crate) struct TalkingBoard {
    state: MachineState,
    name: String,
    hardware_id: String,
    volume: i64,
    brightness: i64,
    dark: bool,
    photos: u32,
}

impl TalkingBoard {
    pub(crate) fn new(name: &str, hardware_id: &str) -> TalkingBoard {
        TalkingBoard {
            state: MachineState::default(),
            name: name.to_owned(),
            hardware_id: hardware_id.to_owned(),
            volume: 70,
            brightness: 75,
            dark: false,
            photos: 0,
        }
    }

    pub(crate) fn status(&self) -> Value {
        let (level, charging) = self.battery();
        json!({
            "audio_speaker": {"volume": self.volume},
            "screen": {"brightness": self.brightness, "theme": self.theme()},
            "battery": {"level": level, "charging": charging},
            "network": {"type": "wifi", "ssid": NETWORK, "signal": "strong"},
            "chip": {"temperature": 38},
        })
    }

    pub(crate) fn set_volume(&mut self, volume: i64) {
        let before = std::mem::replace(&mut self.volume, volume);
        self.tell_change("audio_speaker.volume", json!(before), json!(volume));
    }

    pub(crate) fn set_brightness(&mut self, brightness: i64) {
        let before = std::mem::replace(&mut self.brightness, brightness);
        self.tell_change("screen.brightness", json!(before), json!(brightness));
    }

    pub(crate) fn set_theme(&mut self, theme: &str) -> Result<(), String> {
        let dark = match theme {
            "dark" => true,
            "light" => false,
            _ => return Err(format!("theme must be light or dark, not {theme}")),
        };
        let before = self.theme();
        self.dark = dark;
        self.tell_change("screen.theme", json!(before), json!(self.theme()));
        Ok(())
    }

    /// What the camera sees now.
    pub(crate) fn take_photo(&mut self, question: &str) -> CameraScene {
        self.photos += 1;
        CameraScene {
            lines: vec![
                self.name.clone(),
                self.hardware_id.clone(),
                format!("theme {}  brightness {}", self.theme(), self.brightness),
                format!("photo {}", self.photos),
                question.chars().take(36).collect(),
            ],
            dark: self.dark,
            brightness: u8::try_from(self.brightness).unwrap_or(100),
            counter: self.photos,
        }
    }

    /// What is on the screen now.
    pub(crate) fn screen(&self) -> CameraScene {
        CameraScene {
            lines: vec![self.name.clone(), format!("volume {}", self.volume)],
            dark: self.dark,
            brightness: 100,
            counter: 0,
        }
    }

    pub(crate) fn system_info(&self) -> Value {
        json!({
            "version": 2,
            "mac_address": self.hardware_id,
            "chip_model_name": "virtual",
            "flash_size": 16 << 20,
            "minimum_free_heap_size": 81920,
            "uptime_seconds": self.state.now.as_secs(),
            "board": {"type": "virtual-companion", "name": self.name},
        })
    }

    pub(crate) fn screen_info(&self) -> Value {
        json!({"width": WIDTH, "height": HEIGHT, "monochrome": false})
    }

    pub(crate) fn reboot(&mut self) {
        self.state.restart = true;
    }

    fn theme(&self) -> &'static str {
        if self.dark { "dark" } else { "light" }
    }

    /// Level in percent and whether it charges: a slow saw, down to the low mark and up again.
    fn battery(&self) -> (u64, bool) {
        let percent = BATTERY_LIFE.as_secs() / 100;
        let down = (100 - BATTERY_LOW) * percent;
        let up = down / 4;
        let at = self.state.now.as_secs() % (down + up);
        if at < down { (100 - at / percent, false) } else { (BATTERY_LOW + (at - down) * 4 / percent, true) }
    }

    fn tell_change(&mut self, part: &str, before: Value, after: Value) {
        if before != after {
            let params = json!({"newState": after, "oldState": before, "part": part});
            self.state.tell("notifications/state_changed", params);
        }
    }
}

impl BoardMachine for TalkingBoard {
    fn handle_time(&mut self, _: Duration) {}

    /// Nothing happens by itself; the battery is looked at when somebody asks.
    fn next_due(&self) -> Option<Duration> {
        None
    }

    fn state(&mut self) -> &mut MachineState {
        &mut self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn companion() -> TalkingBoard {
        TalkingBoard::new("virtual-companion", "aa:bb:cc:dd:ee:01")
    }

    #[test]
    fn what_is_set_is_what_the_status_says_and_the_change_is_told_once() {
        let mut companion = companion();
        companion.set_volume(30);
        companion.set_volume(30);
        companion.set_theme("dark").expect("a theme");
        let status = companion.status();
        assert_eq!((&status["audio_speaker"]["volume"], &status["screen"]["theme"]), (&json!(30), &json!("dark")));
        let told: Vec<Value> = companion.state.take_notices().into_iter().map(|news| news.params).collect();
        assert_eq!(
            told,
            [
                json!({"newState": 30, "oldState": 70, "part": "audio_speaker.volume"}),
                json!({"newState": "dark", "oldState": "light", "part": "screen.theme"}),
            ]
        );
    }

    #[test]
    fn an_unknown_theme_changes_nothing() {
        let mut companion = companion();
        assert!(companion.set_theme("pink").is_err());
        assert!(companion.state.take_notices().is_empty());
    }

    #[test]
    fn the_battery_drains_slowly_and_never_dies() {
        let mut companion = companion();
        let mut levels = Vec::new();
        for hour in 0..48 {
            companion.state.now = Duration::from_secs(hour * 3600);
            levels.push(companion.battery());
        }
        assert_eq!(levels[0], (100, false));
        assert!(levels[1].0 < 100 && levels[1].0 > 80);
        assert!(levels.iter().all(|(level, _)| (BATTERY_LOW..=100).contains(level)));
        assert!(levels.iter().any(|(_, charging)| *charging));
    }

    #[test]
    fn every_photo_is_another() {
        let mut companion = companion();
        let [first, second] = [companion.take_photo("what is there?"), companion.take_photo("and now?")];
        assert_ne!(first.to_jpeg().expect("drawn"), second.to_jpeg().expect("drawn"));
    }
}
