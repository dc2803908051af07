//! Running an automaton over a text: all states at once, each step counted.

use super::class::is_word;
use super::program::{Program, State};
use crate::meter::{Exhausted, Meter};

/// Whether any part of the text matches.
pub(crate) fn is_match(program: &Program, text: &str, meter: &mut Meter) -> Result<bool, Exhausted> {
    let begins = if program.is_anchored { Begins::Here } else { Begins::Anywhere };
    run(program, 0, text, 0, begins, Ends::Anywhere, meter)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Begins {
    Here,
    Anywhere,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Anywhere,
    At(usize),
}

/// The states that are active at one place of the text.
struct Active {
    list: Vec<u32>,
    /// For each state the place at which it was last added, counted from one.
    added: Vec<u32>,
}

struct Simulation<'a, 'm> {
    program: &'a Program,
    text: &'a str,
    meter: &'m mut Meter,
    open: Vec<u32>,
}

fn run(
    program: &Program,
    first: u32,
    text: &str,
    from: usize,
    begins: Begins,
    ends: Ends,
    meter: &mut Meter,
) -> Result<bool, Exhausted> {
    meter.spend_length(program.states.len())?;
    let mut run = Simulation { program, text, meter, open: Vec::new() };
    let mut active = Active { list: Vec::new(), added: vec![0; program.states.len()] };
    let mut before: Vec<u32> = Vec::new();
    let (mut place, mut step) = (from, 0_u32);
    loop {
        step += 1;
        let character = text[place..].chars().next();
        std::mem::swap(&mut before, &mut active.list);
        active.list.clear();
        let mut is_found = false;
        // `before` are the states that consumed the character before this place.
        for state in &before {
            is_found |= run.add(&mut active, *state, place, step)?;
        }
        if begins == Begins::Anywhere || place == from {
            is_found |= run.add(&mut active, first, place, step)?;
        }
        let counts = match ends {
            Ends::Anywhere => true,
            Ends::At(end) => place == end,
        };
        if is_found && counts {
            return Ok(true);
        }
        let is_last = ends == Ends::At(place);
        let Some(character) = character.filter(|_| !is_last) else { return Ok(false) };
        run.advance(&mut active, character)?;
        if active.list.is_empty() && begins == Begins::Here {
            return Ok(false);
        }
        place += character.len_utf8();
    }
}

impl Simulation<'_, '_> {
    /// Adds a state and all that it leads to without a character; whether the match is among them.
    fn add(&mut self, active: &mut Active, state: u32, place: usize, step: u32) -> Result<bool, Exhausted> {
        let mut is_found = false;
        self.open.push(state);
        while let Some(state) = self.open.pop() {
            self.meter.spend(1)?;
            if std::mem::replace(&mut active.added[state as usize], step) == step {
                continue;
            }
            let is_passed = match self.program.states[state as usize] {
                State::Match => {
                    is_found = true;
                    false
                }
                State::Class(_) => {
                    active.list.push(state);
                    false
                }
                State::Jump(to) => {
                    self.open.push(to);
                    false
                }
                State::Split(one, two) => {
                    self.open.extend([two, one]);
                    false
                }
                State::Look { is_behind, is_absent, after } => {
                    if self.look(state + 1, place, is_behind)? != is_absent {
                        self.open.push(after);
                    }
                    false
                }
                State::Start => place == 0,
                State::End => place == self.text.len(),
                State::WordBoundary { is_absent } => self.is_boundary(place) != is_absent,
            };
            if is_passed {
                self.open.push(state + 1);
            }
        }
        Ok(is_found)
    }

    /// Keeps the states that the character leads to.
    fn advance(&mut self, active: &mut Active, character: char) -> Result<(), Exhausted> {
        let program = self.program;
        let mut kept = 0;
        for place in 0..active.list.len() {
            let state = active.list[place];
            let State::Class(class) = program.states[state as usize] else { continue };
            let class = &program.classes[class as usize];
            self.meter.spend(class.weight())?;
            if class.has(character) {
                active.list[kept] = state + 1;
                kept += 1;
            }
        }
        active.list.truncate(kept);
        Ok(())
    }

    fn look(&mut self, first: u32, place: usize, is_behind: bool) -> Result<bool, Exhausted> {
        let (from, begins, ends) = match is_behind {
            false => (place, Begins::Here, Ends::Anywhere),
            true => (0, Begins::Anywhere, Ends::At(place)),
        };
        run(self.program, first, self.text, from, begins, ends, self.meter)
    }

    fn is_boundary(&self, place: usize) -> bool {
        let before = self.text[..place].chars().next_back().is_some_and(is_word);
        let after = self.text[place..].chars().next().is_some_and(is_word);
        before != after
    }
}
