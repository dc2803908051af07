//! The automaton of a pattern.

use super::class::Class;
use super::parse::{Ast, ParsedPattern};

#[derive(Debug)]
pub(crate) struct Program {
    pub states: Vec<State>,
    pub classes: Vec<Class>,
    /// Whether a match can only begin where the text does.
    pub is_anchored: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum State {
    /// Goes on to the next state if a character of the class comes.
    Class(u32),
    Start,
    End,
    WordBoundary {
        is_absent: bool,
    },
    /// Goes on to both.
    Split(u32, u32),
    Jump(u32),
    /// Goes on to `after` if what starts at the next state matches here.
    Look {
        is_behind: bool,
        is_absent: bool,
        after: u32,
    },
    Match,
}

impl Program {
    /// The pattern's size was checked before.
    pub(crate) fn new(ParsedPattern { ast, classes }: ParsedPattern) -> Program {
        let is_anchored = matches!(&ast, Ast::Sequence(parts) if matches!(parts.first(), Some(Ast::Start)));
        let mut program = Program { states: Vec::new(), classes, is_anchored };
        program.add(&ast);
        program.states.push(State::Match);
        program
    }

    fn place(&self) -> u32 {
        self.states.len() as u32
    }

    fn add(&mut self, ast: &Ast) {
        match ast {
            Ast::Class(class) => self.states.push(State::Class(*class)),
            Ast::Start => self.states.push(State::Start),
            Ast::End => self.states.push(State::End),
            Ast::WordBoundary { is_absent } => self.states.push(State::WordBoundary { is_absent: *is_absent }),
            Ast::Sequence(parts) => parts.iter().for_each(|part| self.add(part)),
            Ast::Choice(parts) => self.choice(parts),
            Ast::Repeat { part, min, max } => self.repeat(part, *min, *max),
            Ast::Look { part, is_behind, is_absent } => {
                let look = self.states.len();
                self.states.push(State::Match);
                self.add(part);
                self.states.push(State::Match);
                self.states[look] = State::Look { is_behind: *is_behind, is_absent: *is_absent, after: self.place() };
            }
        }
    }

    fn choice(&mut self, parts: &[Ast]) {
        let mut jumps = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            if number + 1 == parts.len() {
                self.add(part);
                continue;
            }
            let split = self.states.len();
            self.states.push(State::Match);
            self.add(part);
            jumps.push(self.states.len());
            self.states.push(State::Match);
            self.states[split] = State::Split(split as u32 + 1, self.place());
        }
        let end = self.place();
        jumps.into_iter().for_each(|jump| self.states[jump] = State::Jump(end));
    }

    fn repeat(&mut self, part: &Ast, min: u32, max: Option<u32>) {
        (0..min).for_each(|_| self.add(part));
        match max {
            None => {
                let split = self.states.len();
                self.states.push(State::Match);
                self.add(part);
                self.states.push(State::Jump(split as u32));
                self.states[split] = State::Split(split as u32 + 1, self.place());
            }
            Some(max) => {
                let mut splits = Vec::new();
                for _ in min..max {
                    splits.push(self.states.len());
                    self.states.push(State::Match);
                    self.add(part);
                }
                let end = self.place();
                splits.into_iter().for_each(|split| self.states[split] = State::Split(split as u32 + 1, end));
            }
        }
    }
}
