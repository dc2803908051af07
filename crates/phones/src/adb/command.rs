//! Command lines for a phone's shell. Program text is ours and literal; every argument is quoted, so
//! nothing a caller says can become syntax.

use std::fmt::{Display, Write};

/// A line for the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellCommand {
    line: String,
    name: &'static str,
}

impl ShellCommand {
    /// `text` is shell syntax and therefore never anything but a literal.
    pub fn new(text: &'static str) -> ShellCommand {
        ShellCommand { line: text.to_owned(), name: text.split([' ', ';']).next().unwrap_or_default() }
    }

    pub fn arg(mut self, argument: impl Display) -> ShellCommand {
        let _ = write!(self.line, " {}", quote(&argument.to_string()));
        self
    }

    /// More of the line that is ours: an option.
    pub fn literal(mut self, text: &'static str) -> ShellCommand {
        let _ = write!(self.line, " {text}");
        self
    }

    pub fn args<T: Display>(self, arguments: impl IntoIterator<Item = T>) -> ShellCommand {
        arguments.into_iter().fold(self, ShellCommand::arg)
    }

    /// The next one whatever this one did.
    pub fn then(self, next: ShellCommand) -> ShellCommand {
        ShellCommand { line: format!("{}; {}", self.line, next.line), ..self }
    }

    /// The next one if this one succeeded.
    pub fn and(self, next: ShellCommand) -> ShellCommand {
        ShellCommand { line: format!("{} && {}", self.line, next.line), ..self }
    }

    /// This one after another that only prepares it.
    pub fn after(self, preparation: ShellCommand) -> ShellCommand {
        ShellCommand { line: format!("{}; {}", preparation.line, self.line), ..self }
    }

    /// The line inside other syntax of ours.
    pub fn within(&self, before: &'static str, after: &'static str) -> ShellCommand {
        ShellCommand { line: format!("{before} {}{after}", self.line), name: self.name }
    }

    pub fn line(&self) -> &str {
        &self.line
    }

    /// The program's name, for messages: arguments may hold what somebody typed.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// One word for the shell, whatever it holds. A NUL cannot be in any process's argument and is left out.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for character in text.chars().filter(|character| *character != '\0') {
        match character {
            '\'' => quoted.push_str("'\\''"),
            _ => quoted.push(character),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The words a shell makes of a line; `None` where anything but plain and quoted text is met.
    fn words(line: &str) -> Option<Vec<String>> {
        let mut words = Vec::new();
        let mut word: Option<String> = None;
        let mut characters = line.chars();
        while let Some(character) = characters.next() {
            match character {
                ' ' => words.extend(word.take()),
                '\'' => {
                    let word = word.get_or_insert_default();
                    loop {
                        match characters.next()? {
                            '\'' => break,
                            character => word.push(character),
                        }
                    }
                }
                '\\' => word.get_or_insert_default().push(characters.next()?),
                'a'..='z' => word.get_or_insert_default().push(character),
                _ => return None,
            }
        }
        words.extend(word);
        Some(words)
    }

    proptest! {
        #[test]
        fn whatever_an_argument_holds_it_stays_one_word(arguments in proptest::collection::vec(any::<String>(), 0..4)) {
            let line = ShellCommand::new("input").args(&arguments).line().to_owned();
            let mut expected = vec!["input".to_owned()];
            expected.extend(arguments.iter().map(|argument| argument.replace('\0', "")));
            prop_assert_eq!(words(&line), Some(expected));
        }
    }

    #[test]
    fn a_real_shell_agrees() {
        let nasty = "a'b\"c $(id) `id` ; & | > < \\ * ? ~ # ! % \n\t é 🦀 '' \\' -n --";
        let line = ShellCommand::new("printf %s").arg(nasty).line().to_owned();
        let Ok(output) = std::process::Command::new("sh").arg("-c").arg(line).output() else { return };
        assert_eq!(String::from_utf8_lossy(&output.stdout), nasty);
    }

    #[test]
    fn commands_join_and_name_themselves() {
        let command = ShellCommand::new("input tap").arg(5).and(ShellCommand::new("input tap").arg("x y"));
        assert_eq!(command.line(), "input tap '5' && input tap 'x y'");
        assert_eq!(command.name(), "input");
        let prepared = ShellCommand::new("screenrecord").arg("a").after(ShellCommand::new("trap").arg("b"));
        assert_eq!((prepared.name(), prepared.line()), ("screenrecord", "trap 'b'; screenrecord 'a'"));
    }
}
