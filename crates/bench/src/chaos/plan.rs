//! What is disturbed when, drawn from the seed.

use std::time::Duration;

use sinew_sim::faults::{FaultDice, Faults};

/// One thing that is done to the gateway or to what is around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disturbance {
    /// The process is killed and started again.
    KillGateway,
    /// Connections to the broker break, and it forgets all presences.
    KillBroker,
    KillAdb,
    /// The connection of a board breaks, and the board is gone for so long.
    KillBoard {
        number: usize,
        away: Duration,
    },
    /// Nothing can be written to the store for so long.
    FillStore(Duration),
    /// More calls at once than one device takes.
    FloodQueue {
        number: usize,
    },
}

impl Disturbance {
    /// The key and the label under which each kind is counted.
    pub(super) const KINDS: [(&'static str, &'static str); KINDS as usize] = [
        ("chaos_gateway_kills", "kills of the gateway"),
        ("chaos_broker_kills", "kills of the broker"),
        ("chaos_adb_kills", "kills of the adb server"),
        ("chaos_board_kills", "kills of a board"),
        ("chaos_full_stores", "times that the store was full"),
        ("chaos_floods", "floods of one device"),
    ];

    /// Its place in [`Disturbance::KINDS`].
    pub(super) fn kind(self) -> usize {
        match self {
            Disturbance::KillGateway => 0,
            Disturbance::KillBroker => 1,
            Disturbance::KillAdb => 2,
            Disturbance::KillBoard { .. } => 3,
            Disturbance::FillStore(_) => 4,
            Disturbance::FloodQueue { .. } => 5,
        }
    }
}

/// A disturbance and the pause before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChaosStep {
    pub(super) pause: Duration,
    pub(super) disturbance: Disturbance,
}

/// The steps of a run, without end. All kinds come once before any comes twice.
pub(super) struct ChaosPlan {
    dice: FaultDice,
    boards: usize,
    /// Kinds that have not come in this round.
    kinds: Vec<u8>,
}

/// Kinds of disturbances, which are also the steps of a round.
pub(super) const KINDS: u8 = 6;
const PAUSE_MS: std::ops::Range<u64> = 100..700;
const AWAY_MS: std::ops::Range<u64> = 50..800;
/// Longer than the gateway takes to notice.
const FULL_MS: std::ops::Range<u64> = 200..900;

impl ChaosPlan {
    pub(super) fn new(seed: u64, boards: usize) -> ChaosPlan {
        ChaosPlan { dice: Faults { seed, ..Faults::default() }.dice("plan"), boards, kinds: Vec::new() }
    }

    fn time(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(range.start + self.dice.pick(range.end - range.start))
    }
}

impl Iterator for ChaosPlan {
    type Item = ChaosStep;

    fn next(&mut self) -> Option<ChaosStep> {
        if self.kinds.is_empty() {
            self.kinds = (0..KINDS).collect();
        }
        let kind = self.kinds.swap_remove(self.dice.pick(self.kinds.len() as u64) as usize);
        let pause = self.time(PAUSE_MS);
        let number = self.dice.pick(self.boards as u64) as usize;
        let disturbance = match kind {
            0 => Disturbance::KillGateway,
            1 => Disturbance::KillBroker,
            2 => Disturbance::KillAdb,
            3 => Disturbance::KillBoard { number, away: self.time(AWAY_MS) },
            4 => Disturbance::FillStore(self.time(FULL_MS)),
            _ => Disturbance::FloodQueue { number },
        };
        Some(ChaosStep { pause, disturbance })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_steps_and_another_seed_others() {
        let steps = |seed| ChaosPlan::new(seed, 7).take(60).collect::<Vec<_>>();
        assert_eq!(steps(1), steps(1));
        assert_ne!(steps(1), steps(2));
    }

    #[test]
    fn every_kind_comes_once_in_each_round() {
        for seed in 0..20 {
            let round: Vec<ChaosStep> = ChaosPlan::new(seed, 3).take(KINDS.into()).collect();
            let kinds: BTreeSet<usize> = round.iter().map(|step| step.disturbance.kind()).collect();
            assert_eq!(kinds, (0..usize::from(KINDS)).collect());
        }
    }
}
