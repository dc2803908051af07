//! A calculator that calculates.

use super::super::act::TouchAction;
use super::super::machine::PhoneMachine;
use super::super::view::{Align, View, column, label, row, space};

#[derive(Debug, Default)]
pub(crate) struct Calculator {
    formula: String,
    /// Shown instead of the live result after `=` could not be answered.
    trouble: Option<&'static str>,
    /// The next digit begins a new formula.
    answered: bool,
}

/// What fits into the display.
const LONGEST: usize = 60;

impl Calculator {
    /// One key: a digit, an operator, `(`, `)`, `.`, `=`, `⌫` or `C`.
    pub(crate) fn press(&mut self, key: char) {
        self.trouble = None;
        let key = match key {
            '*' => '×',
            '/' => '÷',
            '-' => '−',
            other => other,
        };
        match key {
            'C' => *self = Calculator::default(),
            '⌫' => drop(self.formula.pop()),
            '=' => match self.value() {
                Ok(value) => {
                    self.formula = value;
                    self.answered = true;
                    return;
                }
                Err(trouble) if !self.formula.is_empty() => self.trouble = Some(trouble),
                Err(_) => {}
            },
            '0'..='9' | '.' | '(' if self.answered => self.formula = key.to_string(),
            '0'..='9' | '.' | '(' | ')' | '%' | '+' | '−' | '×' | '÷' | '^'
                if self.formula.chars().count() < LONGEST =>
            {
                self.formula.push(key);
            }
            _ => return,
        }
        self.answered = false;
    }

    /// What stands below the formula: the answer so far, or what is wrong.
    pub(crate) fn preview(&self) -> String {
        if let Some(trouble) = self.trouble {
            return trouble.to_owned();
        }
        let plain = self.answered || !self.formula.chars().any(|ch| "+−×÷%^".contains(ch));
        if plain { String::new() } else { self.value().unwrap_or_default() }
    }

    fn value(&self) -> Result<String, &'static str> {
        let chars: Vec<char> = self.formula.chars().collect();
        let mut reader = FormulaReader { chars: &chars, at: 0, depth: 0 };
        let value = reader.sum()?;
        if reader.at < chars.len() {
            return Err("Bad expression");
        }
        if !value.is_finite() {
            return Err("Can't divide by 0");
        }
        // Ten digits are what the display shows; they hide the last bits of binary fractions.
        let rounded = format!("{value:.10}");
        let text = rounded.trim_end_matches('0').trim_end_matches('.').replace('-', "−");
        Ok(if text == "−0" { "0".to_owned() } else { text })
    }
}

/// Reads a formula; operators bind as in school.
struct FormulaReader<'a> {
    chars: &'a [char],
    at: usize,
    depth: usize,
}

impl FormulaReader<'_> {
    fn next_is(&mut self, ch: char) -> bool {
        let hit = self.chars.get(self.at) == Some(&ch);
        self.at += usize::from(hit);
        hit
    }

    fn sum(&mut self) -> Result<f64, &'static str> {
        let mut value = self.product()?;
        loop {
            if self.next_is('+') {
                value += self.product()?;
            } else if self.next_is('−') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, &'static str> {
        let mut value = self.factor()?;
        loop {
            if self.next_is('×') {
                value *= self.factor()?;
            } else if self.next_is('÷') {
                value /= self.factor()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn factor(&mut self) -> Result<f64, &'static str> {
        self.depth += 1;
        // As deep as the longest formula of opening brackets and signs can go.
        if self.depth > LONGEST {
            return Err("Bad expression");
        }
        let mut value = if self.next_is('−') { -self.factor()? } else { self.atom()? };
        while self.next_is('%') {
            value /= 100.0;
        }
        let value = if self.next_is('^') { value.powf(self.factor()?) } else { value };
        self.depth -= 1;
        Ok(value)
    }

    fn atom(&mut self) -> Result<f64, &'static str> {
        if self.next_is('(') {
            let value = self.sum()?;
            // A bracket left open at the end is closed, as the real one does.
            return if self.next_is(')') || self.at == self.chars.len() { Ok(value) } else { Err("Bad expression") };
        }
        let start = self.at;
        while self.chars.get(self.at).is_some_and(|ch| ch.is_ascii_digit() || *ch == '.') {
            self.at += 1;
        }
        let digits: String = self.chars[start..self.at].iter().collect();
        digits.parse().map_err(|_| "Bad expression")
    }
}

const KEYS: [[(&str, &str, &str); 4]; 5] = [
    [("C", "clr", "clear"), ("( )", "parens", "parentheses"), ("%", "op_pct", "percent"), ("÷", "op_div", "divide")],
    [("7", "digit_7", ""), ("8", "digit_8", ""), ("9", "digit_9", ""), ("×", "op_mul", "multiply")],
    [("4", "digit_4", ""), ("5", "digit_5", ""), ("6", "digit_6", ""), ("−", "op_sub", "minus")],
    [("1", "digit_1", ""), ("2", "digit_2", ""), ("3", "digit_3", ""), ("+", "op_add", "plus")],
    [("0", "digit_0", ""), (".", "dec_point", "point"), ("⌫", "del", "delete"), ("=", "eq", "equals")],
];

pub(super) fn screen(machine: &PhoneMachine) -> View {
    let theme = machine.theme();
    let calculator = &machine.calculator;
    let open = calculator.formula.matches('(').count() > calculator.formula.matches(')').count();
    let wanted = calculator.formula.ends_with(|ch: char| ch.is_ascii_digit() || ch == ')');
    let bracket = if open && wanted { ')' } else { '(' };
    let key = |(text, id, says): (&str, &'static str, &str)| {
        let ch = if id == "parens" { bracket } else { text.chars().next().unwrap_or(' ') };
        let (back, ink) = match id {
            "eq" => (theme.accent, theme.on_accent),
            id if id.starts_with("digit") || id == "dec_point" => (theme.surface, theme.text),
            _ => (theme.tint, theme.text),
        };
        label(text)
            .class("Button")
            .id(id)
            .says(says)
            .size(27.0)
            .color(ink)
            .align(Align::Centre)
            .fill()
            .back(back)
            .corner(38.0)
            .on_tap(TouchAction::Calculate(ch))
    };
    let pad =
        column(KEYS.map(|line| row(line.map(key)).gap(10.0).fill())).gap(10.0).id("pad_numeric").class("GridLayout");
    let display = |text: String, id, size, color| label(text).id(id).size(size).color(color).align(Align::End).wide();
    let tall = machine.size().1 > machine.size().0;
    column([
        column([
            display(calculator.formula.clone(), "formula", if tall { 46.0 } else { 30.0 }, theme.text),
            space(8.0),
            display(calculator.preview(), "result", if tall { 30.0 } else { 20.0 }, theme.dim),
        ])
        .id("display")
        .pad(24.0, 18.0)
        .pack(Align::End)
        .height(if tall { 240.0 } else { 96.0 }),
        pad.fill().pad(14.0, 14.0),
    ])
    .id("main_calculator")
    .back(theme.back)
    .fill()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(keys: &str) -> String {
        let mut calculator = Calculator::default();
        keys.chars().for_each(|key| calculator.press(key));
        calculator.trouble.map_or(calculator.formula.clone(), str::to_owned)
    }

    #[test]
    fn it_calculates() {
        for (keys, expect) in [
            ("2+3*4=", "14"),
            ("(2+3)*4=", "20"),
            ("0.1+0.2=", "0.3"),
            ("7/2=", "3.5"),
            ("3-5=", "−2"),
            ("50%*8=", "4"),
            ("2^10=", "1024"),
            ("(1+2=", "3"),
            ("12C7=", "7"),
            ("12⌫=", "1"),
            ("1/0=", "Can't divide by 0"),
            ("1+=", "Bad expression"),
            ("=", ""),
            ("2+3=4", "4"),
            ("2+3=+4=", "9"),
        ] {
            assert_eq!(answer(keys), expect, "{keys}");
        }
    }

    #[test]
    fn a_result_is_foretold_while_typing() {
        let mut calculator = Calculator::default();
        "12+30".chars().for_each(|key| calculator.press(key));
        assert_eq!((calculator.formula.as_str(), calculator.preview().as_str()), ("12+30", "42"));
    }

    #[test]
    fn no_formula_is_too_much() {
        assert_eq!(answer(&"(".repeat(500)), "(".repeat(60));
        assert_eq!(answer(&format!("{}=", "(".repeat(500))), "Bad expression");
    }
}
