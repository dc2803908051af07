//! A cluster of gateways in virtual time: the code that decides which node holds which device, among everything that goes
//! wrong between them.
//!
//! - `world`: nodes, devices and calls, event by event
//! - `trouble`: nodes that die, stop or lose the network, slow watchers, a store that loses everything
//! - `store`: a model of the store
//! - `checks`: what must hold, whatever happens

mod checks;
mod events;
mod node;
mod store;
mod trouble;
mod world;

use std::time::Duration;

use sinew_presence::Timing;

#[derive(Clone, Debug)]
pub struct FleetOptions {
    pub devices: u32,
    pub nodes: u16,
    pub seed: u64,
    /// Virtual time with trouble. Time to join comes before it, and time to recover after it.
    pub trouble: Duration,
    pub timing: Timing,
}

impl Default for FleetOptions {
    fn default() -> FleetOptions {
        FleetOptions {
            devices: 20_000,
            nodes: 10,
            seed: 1,
            trouble: Duration::from_secs(300),
            timing: Timing::default(),
        }
    }
}

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetReport {
    pub virtual_time: Duration,
    /// Records written to the store.
    pub writes: u64,
    pub changes_seen: u64,
    pub claims: u64,
    pub moves: u64,
    pub nodes_killed: u64,
    pub nodes_paused: u64,
    pub partitions: u64,
    pub slow_watchers: u64,
    pub stale_reads: u64,
    pub stores_lost: u64,
    pub calls: u64,
    pub calls_done: u64,
    /// Refused before anything was sent.
    pub calls_refused: u64,
    /// Routed a second time.
    pub calls_rerouted: u64,
    /// Without an answer; each may have happened.
    pub calls_unknown: u64,
    pub events: u64,
    /// Made room for newer ones while the store was away.
    pub events_dropped: u64,
    /// The longest that a node which could reach the store took to notice a dead one.
    pub slowest_notice: Duration,
    /// The longest from the connection of a device to its claim, at a node that could reach the store.
    pub slowest_claim: Duration,
    /// What should never happen. Empty in a good run; only the first are kept.
    pub violations: Vec<String>,
}

/// Runs a fleet to its end. The same options give the same report.
pub fn run(options: FleetOptions) -> FleetReport {
    world::World::new(options).run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_among_all_kinds_of_trouble_keeps_its_promises() {
        for seed in [1, 2] {
            let trouble = Duration::from_secs(150);
            let report = run(FleetOptions { seed, trouble, ..FleetOptions::default() });
            assert_eq!(report.violations, Vec::<String>::new(), "seed {seed}");
            assert!(report.nodes_killed > 0 && report.partitions > 0 && report.stores_lost == 1, "{report:?}");
            assert!(report.calls_done > report.calls / 2 && report.calls_rerouted > 0, "{report:?}");
        }
    }

    /// Few devices, so that many sequences of failures are tried. Two nodes publish all events between them.
    #[test]
    fn small_fleets_keep_their_promises_under_many_seeds() {
        for seed in 1..=9 {
            let nodes = 2 + (seed % 3) as u16;
            let report = run(FleetOptions { seed, nodes, devices: 300, ..FleetOptions::default() });
            assert_eq!(report.violations, Vec::<String>::new(), "seed {seed}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_fleet() {
        let small = FleetOptions { devices: 500, nodes: 4, ..FleetOptions::default() };
        assert_eq!(run(small.clone()), run(small.clone()));
        assert_ne!(run(small.clone()), run(FleetOptions { seed: 2, ..small }));
    }

    #[test]
    fn nodes_that_act_too_long_after_their_last_renewal_are_caught() {
        let timing = Timing { act_for: Duration::from_secs(120), ..Timing::default() };
        let careless = FleetOptions { devices: 2_000, nodes: 6, timing, ..FleetOptions::default() };
        let acted_twice = |seed| {
            let report = run(FleetOptions { seed, ..careless.clone() });
            report.violations.iter().any(|violation| violation.contains("acted on device"))
        };
        assert!((1..20).any(acted_twice));
    }
}
