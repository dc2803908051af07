//! A clock that never rests, and a stopwatch.

use super::super::act::TouchAction;
use super::super::art::Art;
use super::super::machine::PhoneMachine;
use super::super::view::{Align, View, column, label, row, space, spring, view};
use super::parts::{button, toolbar};

#[derive(Debug, Default)]
pub(crate) struct Stopwatch {
    /// Milliseconds gathered before the last start.
    gathered: u64,
    since: Option<u64>,
}

impl Stopwatch {
    pub(crate) fn toggle(&mut self, now: u64) {
        match self.since.take() {
            Some(since) => self.gathered += now - since,
            None => self.since = Some(now),
        }
    }

    pub(crate) fn reset(&mut self) {
        *self = Stopwatch::default();
    }

    fn total(&self, now: u64) -> u64 {
        self.gathered + self.since.map_or(0, |since| now - since)
    }
}

pub(super) fn screen(machine: &PhoneMachine) -> View {
    let theme = machine.theme();
    let wall = machine.wall();
    let of_day = machine.epoch().rem_euclid(86_400_000) as u64;
    let time = format!("{:02}:{:02}:{:02}", wall.hour(), wall.minute(), wall.second());
    let total = machine.stopwatch.total(machine.now);
    let watch = format!("{:02}:{:02}.{:02}", total / 60_000, total / 1000 % 60, total / 10 % 100);
    let running = machine.stopwatch.since.is_some();
    let tall = machine.size().1 > machine.size().0;
    let face = view("View")
        .id("analog_clock")
        .says(format!("Clock, {time}"))
        .height(if tall { 270.0 } else { 120.0 })
        .wide()
        .color(theme.text)
        .art(Art::ClockFace(of_day));
    column([
        toolbar(
            machine,
            "Clock",
            false,
            vec![
                view("ProgressBar")
                    .id("progress")
                    .says("Synchronising")
                    .width(44.0)
                    .height(44.0)
                    .pad(8.0, 8.0)
                    .color(theme.dim)
                    .art(Art::Spinner(machine.now))
                    .across(Align::Centre),
            ],
        ),
        space(if tall { 30.0 } else { 0.0 }),
        face,
        label(time)
            .id("digital_clock")
            .size(if tall { 44.0 } else { 26.0 })
            .color(theme.text)
            .wide()
            .align(Align::Centre)
            .pad(0.0, if tall { 24.0 } else { 2.0 }),
        column([
            label("Stopwatch").id("stopwatch_title").size(14.0).color(theme.dim),
            label(watch).id("stopwatch_time").size(34.0).color(theme.text),
            space(10.0),
            row([
                button(machine, if running { "Stop" } else { "Start" }, TouchAction::Stopwatch).id("stopwatch_start"),
                button(machine, "Reset", TouchAction::StopwatchReset).id("stopwatch_reset").disabled(total == 0),
            ])
            .gap(12.0),
        ])
        .pad(24.0, 18.0)
        .back(theme.surface)
        .corner(24.0),
        spring(),
    ])
    .pad(20.0, 0.0)
    .back(theme.back)
    .fill()
}
