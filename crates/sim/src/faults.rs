//! Faults, each with its chance: messages lost, late, garbled or doubled, and connections cut.
//!
//! The same seed gives the same faults, so a failure can be reproduced. The hello is spared: a board without one has no
//! connection at all, and would only dial again.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::chance::Chance;

/// How often each fault happens to a message, between 0 and 1. Together at most 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    pub seed: u64,
    pub lost: f64,
    pub late: f64,
    pub garbled: f64,
    pub doubled: f64,
    pub disconnect: f64,
    /// The board refuses a request id that is among the last 64 it saw, on whichever connection, as Espressif's engine does.
    pub strict_ids: bool,
    /// The board hears its wake word when it has connected over MQTT, though nobody speaks, and starts a conversation.
    pub wake: bool,
    /// The board sends the name of its network in another encoding than UTF-8, and with quotes in it when it asks for its
    /// settings, as firmware does.
    pub odd_bytes: bool,
}

/// What happens to one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFault {
    Fine,
    Lost,
    Late(Duration),
    Garbled,
    Doubled,
    Disconnect,
}

/// The dice of one board.
#[derive(Clone, Debug)]
pub struct FaultDice {
    faults: Faults,
    chance: Chance,
}

/// How late a late message is: later than a hasty caller waits, and sooner than a patient one gives up.
const LATE_MS: std::ops::Range<u64> = 20..400;

impl Faults {
    /// Boards of one seed have different dice, or all of them would fail at once.
    pub fn dice(&self, hardware_id: &str) -> FaultDice {
        let mixed = hardware_id.bytes().fold(self.seed ^ 0x9e37_79b9_7f4a_7c15, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        FaultDice { faults: *self, chance: Chance(mixed) }
    }

    fn chances(&self) -> [(&'static str, f64); 5] {
        [
            ("lost", self.lost),
            ("late", self.late),
            ("garbled", self.garbled),
            ("doubled", self.doubled),
            ("disconnect", self.disconnect),
        ]
    }
}

impl FaultDice {
    pub fn draw(&mut self) -> MessageFault {
        let faults = self.faults;
        // 53 bits, as many as a float between 0 and 1 can tell apart.
        let mut point = (self.chance.draw() >> 11) as f64 / (1u64 << 53) as f64;
        for (name, chance) in faults.chances() {
            if point < chance {
                return match name {
                    "lost" => MessageFault::Lost,
                    "late" => MessageFault::Late(Duration::from_millis(
                        self.pick(LATE_MS.end - LATE_MS.start) + LATE_MS.start,
                    )),
                    "garbled" => MessageFault::Garbled,
                    "doubled" => MessageFault::Doubled,
                    _ => MessageFault::Disconnect,
                };
            }
            point -= chance;
        }
        MessageFault::Fine
    }

    /// The text with its tail cut off, a letter changed, or something foreign in its middle.
    pub fn garble(&mut self, text: &str) -> String {
        let at = text.floor_char_boundary(self.pick(text.len() as u64 + 1) as usize);
        let (head, tail) = text.split_at(at);
        match self.pick(3) {
            0 => head.to_owned(),
            1 => format!("{head}\u{fffd}{}", tail.chars().skip(1).collect::<String>()),
            _ => format!("{head}\"}}]{tail}"),
        }
    }

    /// A number below `below`.
    pub fn pick(&mut self, below: u64) -> u64 {
        self.chance.below(below)
    }
}

impl FromStr for Faults {
    type Err = String;

    /// For example `lost=0.05,late=0.1,seed=7`; what is not named does not happen.
    fn from_str(text: &str) -> Result<Faults, String> {
        let mut faults = Faults::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let flag = match part {
                "strict-ids" => Some(&mut faults.strict_ids),
                "wake" => Some(&mut faults.wake),
                "odd-bytes" => Some(&mut faults.odd_bytes),
                _ => None,
            };
            if let Some(flag) = flag {
                *flag = true;
                continue;
            }
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` is not a fault; write it as name=chance, for example lost=0.05"))?;
            if name == "seed" {
                faults.seed = value.parse().map_err(|_| format!("seed={value}: a whole number is needed"))?;
                continue;
            }
            let chance = value.parse().ok().filter(|chance| (0.0..=1.0).contains(chance));
            let chance = chance.ok_or_else(|| format!("{name}={value}: a chance between 0 and 1 is needed"))?;
            match name {
                "lost" => faults.lost = chance,
                "late" => faults.late = chance,
                "garbled" => faults.garbled = chance,
                "doubled" => faults.doubled = chance,
                "disconnect" => faults.disconnect = chance,
                _ => {
                    return Err(format!(
                        "{name} is not a fault; there are lost, late, garbled, doubled, disconnect, strict-ids, wake and odd-bytes, and a seed"
                    ));
                }
            }
        }
        let sum: f64 = faults.chances().iter().map(|(_, chance)| chance).sum();
        if sum > 1.0 + 1e-9 {
            return Err(format!("the chances add up to {sum}; together they can be 1 at most"));
        }
        Ok(faults)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed={}", self.seed)?;
        self.chances()
            .iter()
            .filter(|(_, chance)| *chance > 0.0)
            .try_for_each(|(name, chance)| write!(f, ",{name}={chance}"))?;
        let flags = [(self.strict_ids, "strict-ids"), (self.wake, "wake"), (self.odd_bytes, "odd-bytes")];
        flags.iter().filter(|(is_set, _)| *is_set).try_for_each(|(_, name)| write!(f, ",{name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUGH: &str = "seed=7,lost=0.05,late=0.1,garbled=0.01,doubled=0.02,disconnect=0.01,strict-ids,wake,odd-bytes";

    #[test]
    fn faults_are_printed_as_they_are_parsed() {
        let faults: Faults = ROUGH.parse().expect("well written");
        let (strict_ids, wake, odd_bytes) = (true, true, true);
        let (lost, late, garbled, doubled, disconnect) = (0.05, 0.1, 0.01, 0.02, 0.01);
        assert_eq!(faults, Faults { seed: 7, lost, late, garbled, doubled, disconnect, strict_ids, wake, odd_bytes });
        assert_eq!(faults.to_string(), ROUGH);
        assert_eq!("".parse(), Ok(Faults::default()));
    }

    #[test]
    fn what_is_not_luck_is_named() {
        for (text, word) in
            [("lost", "lost"), ("lost=2", "between 0 and 1"), ("rain=0.1", "rain"), ("lost=0.9,late=0.9", "1.8")]
        {
            let error = text.parse::<Faults>().expect_err("not faults");
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn the_same_seed_brings_the_same_fate_and_each_board_its_own() {
        let faults: Faults = ROUGH.parse().expect("well written");
        let fates = |id: &str| {
            let mut dice = faults.dice(id);
            (0..200).map(|_| dice.draw()).collect::<Vec<_>>()
        };
        assert_eq!(fates("aa"), fates("aa"));
        assert_ne!(fates("aa"), fates("bb"));
    }

    #[test]
    fn fates_come_about_as_often_as_asked() {
        let mut dice = Faults { lost: 0.25, disconnect: 0.25, ..Faults::default() }.dice("aa");
        let fates: Vec<MessageFault> = (0..4000).map(|_| dice.draw()).collect();
        let count = |fate| fates.iter().filter(|drawn| **drawn == fate).count();
        for fate in [MessageFault::Lost, MessageFault::Disconnect] {
            assert!((800..1200).contains(&count(fate)), "{fate:?}: {}", count(fate));
        }
        assert_eq!(count(MessageFault::Garbled), 0);
    }

    #[test]
    fn garbling_survives_any_text() {
        let mut dice = Faults::default().dice("aa");
        for text in ["", "ä", "{\"a\":1}", "日本語"] {
            for _ in 0..50 {
                dice.garble(text);
            }
        }
    }
}
