//! A sensor and relay board: temperature and humidity that wander, four relays that act on them.

use std::f64::consts::TAU;
use std::time::Duration;

use sinew_tool::{Value, json};

use crate::board::{BoardMachine, MachineState};

pub(crate) const CHANNELS: usize = 4;
/// The heater hangs on channel 1 and the fan on channel 2; 3 and 4 switch lamps.
const HEATER: usize = 0;
const FAN: usize = 1;
/// The room follows its heater with this delay.
const INERTIA: f64 = 60.0;
/// Above this, and again below it, the board speaks up by itself.
const WARM: f64 = 26.0;
const HUMID: f64 = 60.0;
/// A sensor that is read every ten seconds misses no change of the weather.
const READ_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Relay {
    state: MachineState,
    relays: [bool; CHANNELS],
    /// When a pulse ends, per channel.
    pulses: [Option<Duration>; CHANNELS],
    /// Degrees that heater and fan have added so far.
    heat: f64,
    /// Two boards in one room do not read the same.
    phase: f64,
    led_blinks: u64,
    read_due: Duration,
    warm: bool,
    humid: bool,
}

impl Relay {
    pub(crate) fn new(hardware_id: &str) -> Relay {
        let sum: u32 = hardware_id.bytes().map(u32::from).sum();
        let mut relay = Relay {
            state: MachineState::default(),
            relays: [false; CHANNELS],
            pulses: [None; CHANNELS],
            heat: 0.0,
            phase: f64::from(sum % 64) / 64.0,
            led_blinks: 0,
            read_due: READ_EVERY,
            warm: false,
            humid: false,
        };
        (relay.warm, relay.humid) = (relay.temperature() > WARM, relay.humidity() > HUMID);
        relay
    }

    pub(crate) fn read_sensors(&self) -> Value {
        let rounded = |value: f64| (value * 10.0).round() / 10.0;
        json!({"temperature": rounded(self.temperature()), "humidity": rounded(self.humidity()), "unit": "C"})
    }

    pub(crate) fn relays(&self) -> Value {
        let relays = self.relays.iter().enumerate();
        json!({"relays": relays.map(|(index, on)| json!({"channel": index + 1, "on": on})).collect::<Vec<_>>()})
    }

    /// `channel` counts from 1, as the terminals are labelled.
    pub(crate) fn set_relay(&mut self, channel: i64, on: bool) -> Result<(), String> {
        let index = index(channel)?;
        self.pulses[index] = None;
        self.switch(index, on);
        Ok(())
    }

    pub(crate) fn pulse_relay(&mut self, channel: i64, duration: Duration) -> Result<(), String> {
        let index = index(channel)?;
        self.switch(index, true);
        self.pulses[index] = Some(self.state.now + duration);
        Ok(())
    }

    pub(crate) fn blink_led(&mut self, times: i64) -> Value {
        self.led_blinks += u64::try_from(times).unwrap_or(0);
        json!({"blinked": times, "total": self.led_blinks})
    }

    fn switch(&mut self, index: usize, on: bool) {
        if self.relays[index] != on {
            self.relays[index] = on;
            self.state.tell("notifications/relay_changed", json!({"channel": index + 1, "on": on}));
        }
    }

    fn temperature(&self) -> f64 {
        // A day lasts ten minutes here, or nobody would see it pass.
        21.5 + 2.5 * (TAU * (self.state.now.as_secs_f64() / 600.0 + self.phase)).sin() + self.heat
    }

    fn humidity(&self) -> f64 {
        let weather = (TAU * (self.state.now.as_secs_f64() / 840.0 + self.phase)).cos();
        (50.0 + 8.0 * weather - 1.5 * self.heat).clamp(0.0, 100.0)
    }

    /// The exact solution of the room's delay, so that many small steps and one large one agree.
    fn warm_up(&mut self, elapsed: Duration) {
        let target = if self.relays[HEATER] { 6.0 } else { 0.0 } - if self.relays[FAN] { 3.0 } else { 0.0 };
        self.heat = target + (self.heat - target) * (-elapsed.as_secs_f64() / INERTIA).exp();
    }

    fn watch_thresholds(&mut self) {
        let readings =
            [("temperature", self.temperature(), WARM, self.warm), ("humidity", self.humidity(), HUMID, self.humid)];
        let above = readings.map(|(sensor, value, threshold, was_above)| {
            let above = value > threshold;
            if above != was_above {
                let params = json!({
                    "sensor": sensor, "value": (value * 10.0).round() / 10.0, "threshold": threshold,
                    "direction": if above { "rising" } else { "falling" },
                });
                self.state.tell("notifications/threshold_crossed", params);
            }
            above
        });
        [self.warm, self.humid] = above;
    }
}

impl BoardMachine for Relay {
    fn handle_time(&mut self, now: Duration) {
        // Pulses end in their order, each at its own time, however late we are told.
        while let Some((end, index)) = self.next_pulse_end().filter(|(end, _)| *end <= now) {
            self.warm_up(end.saturating_sub(self.state.now));
            self.state.now = end.max(self.state.now);
            self.pulses[index] = None;
            self.switch(index, false);
        }
        self.warm_up(now.saturating_sub(self.state.now));
        self.state.now = now.max(self.state.now);
        if self.state.now >= self.read_due {
            self.read_due = self.state.now + READ_EVERY;
        }
        self.watch_thresholds();
    }

    fn next_due(&self) -> Option<Duration> {
        let pulse = self.next_pulse_end().map_or(self.read_due, |(end, _)| end);
        Some(pulse.min(self.read_due))
    }

    fn state(&mut self) -> &mut MachineState {
        &mut self.state
    }
}

impl Relay {
    fn next_pulse_end(&self) -> Option<(Duration, usize)> {
        let ends = self.pulses.iter().enumerate();
        ends.filter_map(|(index, end)| end.map(|end| (end, index))).min()
    }
}

fn index(channel: i64) -> Result<usize, String> {
    let index = usize::try_from(channel - 1).ok().filter(|index| *index < CHANNELS);
    index.ok_or_else(|| format!("channel must be 1 to {CHANNELS}, not {channel}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn topics(relay: &mut Relay) -> Vec<&'static str> {
        relay.state.take_notices().into_iter().map(|news| news.method).collect()
    }

    #[test]
    fn a_relay_stays_as_it_was_set_and_tells_the_change() {
        let mut relay = Relay::new("aa");
        relay.set_relay(3, true).expect("a channel");
        relay.set_relay(3, true).expect("a channel");
        assert_eq!(relay.relays()["relays"][2], json!({"channel": 3, "on": true}));
        assert_eq!(topics(&mut relay), ["notifications/relay_changed"]);
        for wrong in [0, 5, -1, i64::MAX] {
            assert!(relay.set_relay(wrong, true).is_err());
        }
    }

    #[test]
    fn a_pulse_ends_by_itself() {
        let mut relay = Relay::new("aa");
        relay.pulse_relay(4, 2 * SECOND).expect("a channel");
        assert_eq!(relay.next_due(), Some(2 * SECOND));
        relay.handle_time(SECOND);
        assert_eq!(relay.relays()["relays"][3]["on"], true);
        relay.handle_time(5 * SECOND);
        assert_eq!(relay.relays()["relays"][3]["on"], false);
        assert_eq!(topics(&mut relay), ["notifications/relay_changed"; 2]);
    }

    #[test]
    fn the_heater_warms_the_room_and_crossing_the_threshold_is_told() {
        let mut relay = Relay::new("aa");
        let before = relay.temperature();
        relay.set_relay(1, true).expect("a channel");
        let mut told = Vec::new();
        for second in 1..=1200 {
            relay.handle_time(SECOND * second);
            told.extend(topics(&mut relay));
        }
        assert!(relay.heat > 5.9 && (before - 21.5).abs() < 3.0);
        assert!(told.contains(&"notifications/threshold_crossed"));
    }

    #[test]
    fn many_small_steps_and_one_large_one_agree() {
        let (mut patient, mut hasty) = (Relay::new("aa"), Relay::new("aa"));
        for relay in [&mut patient, &mut hasty] {
            relay.set_relay(1, true).expect("a channel");
            relay.pulse_relay(2, 30 * SECOND).expect("a channel");
        }
        (1..=90).for_each(|second| patient.handle_time(SECOND * second));
        hasty.handle_time(90 * SECOND);
        assert_eq!(patient.read_sensors(), hasty.read_sensors());
        assert_eq!(patient.relays(), hasty.relays());
    }
}
