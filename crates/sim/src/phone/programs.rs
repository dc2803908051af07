//! Programs on a phone that run on when the shell that started them has ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

/// The running programs: their command lines by number.
#[derive(Clone, Default)]
pub(super) struct Programs(Arc<watch::Sender<BTreeMap<u64, String>>>);

impl Programs {
    pub(super) fn start(&self, line: String) -> RunningProgram {
        let mut number = 0;
        self.0.send_modify(|running| {
            number = running.last_key_value().map_or(1, |(last, _)| last + 1);
            running.insert(number, line);
        });
        RunningProgram { number, programs: self.clone() }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.0.borrow().values().cloned().collect()
    }

    /// Interrupts the programs whose command line is meant; `false` where there is none.
    pub(super) fn interrupt(&self, is_meant: impl Fn(&str) -> bool) -> bool {
        let mut found = false;
        self.0.send_modify(|running| {
            let before = running.len();
            running.retain(|_, line| !is_meant(line));
            found = running.len() < before;
        });
        found
    }
}

/// A program as itself; it has ended when this is dropped.
pub(super) struct RunningProgram {
    number: u64,
    programs: Programs,
}

impl RunningProgram {
    /// Ends when the program is interrupted.
    pub(super) async fn interrupted(&self) {
        let mut running = self.programs.0.subscribe();
        // The sender lives as long as this program.
        let _ = running.wait_for(|running| !running.contains_key(&self.number)).await;
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        self.programs.0.send_modify(|running| drop(running.remove(&self.number)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_is_interrupted_by_its_command_line_while_it_runs() {
        let programs = Programs::default();
        let (one, two) = (programs.start("one a".to_owned()), programs.start("two a".to_owned()));
        assert!(programs.interrupt(|line| line.starts_with("two")));
        two.interrupted().await;
        assert!(!programs.interrupt(|line| line.starts_with("two")), "it is no longer there");
        drop(one);
        assert!(!programs.interrupt(|line| line.starts_with("one")));
    }
}
