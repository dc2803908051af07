//! Reading a secret from the terminal.

use std::io;

use super::{ask, say};

/// A line that is typed and not shown.
pub fn hidden_line(question: &str) -> io::Result<String> {
    ask(question);
    let mut line = String::new();
    let read = {
        let _silence = Silence::begin();
        io::stdin().read_line(&mut line)
    };
    // The line break that was typed is not shown either.
    say("");
    read?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// While it is there, the terminal does not show what is typed.
#[cfg(unix)]
struct Silence(Option<rustix::termios::Termios>);

#[cfg(unix)]
impl Silence {
    fn begin() -> Silence {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut silent) = before.clone() {
            silent.local_modes.remove(LocalModes::ECHO);
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &silent);
        }
        Silence(before)
    }
}

#[cfg(unix)]
impl Drop for Silence {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, before);
        }
    }
}

#[cfg(not(unix))]
struct Silence;

#[cfg(not(unix))]
impl Silence {
    fn begin() -> Silence {
        Silence
    }
}
