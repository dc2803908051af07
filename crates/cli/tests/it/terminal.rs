//! What a newcomer sees in a terminal of 80 columns and 24 lines, kept in `snapshots`. `UPDATE_DOCS=1` rewrites them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::gateway::{PORTS, Process, path_with_sinew, run, sinew};

pub const COLUMNS: usize = 80;
const LINES: usize = 24;
/// Of a cell that the terminal cuts, the snapshots have this many characters.
const CUT_CELL: usize = 12;

/// A command as in a terminal of that size, with `home` for its state and the program on its path.
pub fn in_terminal(home: &Path, words: &[&str]) -> Command {
    let mut command = sinew(home);
    command.env_remove("SINEW_STATE").env_remove("XDG_STATE_HOME").env_remove("SINEW_CONFIG");
    command.env("COLUMNS", COLUMNS.to_string()).env("PATH", path_with_sinew()).env("HOME", home).args(words);
    command
}

/// What a command prints for people, on both outputs.
fn screen(home: &Path, words: &[&str]) -> String {
    let output = run(&mut in_terminal(home, words));
    format!("{}{}", output.out, output.err)
}

/// The screen without what differs from run to run: numbers, secrets, the folder, and how columns are spaced for them.
fn plain(screen: &str, home: &Path) -> String {
    let screen = screen.replace(&home.display().to_string(), "~");
    // Where the line breaks depends on the length of the number.
    let screen = screen.split("(process\n").map(str::trim_start).collect::<Vec<_>>().join("(process ");
    let mut plain = String::new();
    let mut rest = screen.chars().peekable();
    while let Some(letter) = rest.next() {
        let is_digit = |letter: &char| letter.is_ascii_digit();
        if is_digit(&letter) {
            plain.push('#');
            while rest.next_if(is_digit).is_some() {}
        } else if letter != ' ' || !plain.ends_with("  ") {
            plain.push(letter);
            if plain.ends_with("snw_") {
                plain.push('#');
                while rest.next_if(|letter| letter.is_ascii_alphanumeric() || *letter == '…').is_some() {}
            }
        }
    }
    // How much of a cut cell is shown depends on the other columns.
    let shorten = |cell: &str| match cell.ends_with('…') {
        false => cell.to_owned(),
        true => cell.chars().take(CUT_CELL).chain(['…']).collect(),
    };
    let line = |line: &str| line.split("  ").map(shorten).collect::<Vec<_>>().join("  ");
    plain.lines().map(|text| line(text) + "\n").collect()
}

fn check(name: &str, screen: &str, home: &Path, problems: &mut Vec<String>) {
    // A token is copied in one piece.
    let too_wide = screen.lines().find(|line| line.chars().count() > COLUMNS && !line.contains("snw_"));
    problems.extend(too_wide.map(|line| format!("{name} is wider than the terminal: {line}")));
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/snapshots/{name}.txt"));
    let (kept, seen) = (std::fs::read_to_string(&file).unwrap_or_default(), plain(screen, home));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, seen).expect("written");
    } else if kept != seen {
        problems.push(format!("{name} is not as it was kept:\n{kept}\nbut:\n{seen}"));
    }
}

/// The page of the demo as the README shows it.
fn readme_sample() -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).expect("a README");
    let (_, rest) = readme.split_once("```text\n").expect("a sample");
    rest.split("```").next().unwrap_or_default().to_owned()
}

#[test]
fn the_first_screens_fit_a_small_terminal_and_their_snapshots_are_fresh() {
    let home = tempfile::tempdir().expect("a folder");
    let mut problems = Vec::new();
    let mut demo = Process::start(&mut in_terminal(home.path(), &[&["demo"], &PORTS[..]].concat()));
    let page = demo.until("Ctrl-C");
    if page.lines().count() >= LINES {
        problems.push(format!("the start page has {} lines", page.lines().count()));
    }
    check("demo", &page, home.path(), &mut problems);
    if plain(&readme_sample(), home.path()) != plain(&page, home.path()) {
        problems.push(format!("the README shows another page of the demo than this:\n{page}"));
    }
    for (name, words) in [
        ("devices", &["devices"][..]),
        ("device", &["devices", "show", "board-ddee01"]),
        ("tools", &["tools"]),
        ("tool", &["tools", "show", "self_audio_speaker_set_volume"]),
        ("status", &["status"]),
        ("unknown-command", &["devises"]),
        ("unknown-device", &["call", "board-ddee1", "self.get_device_status"]),
        ("unknown-tool", &["call", "board-ddee01", "self.get_devise_status"]),
        ("tool-for-people", &["call", "board-ddee01", "self.reboot"]),
        ("wrong-argument", &["call", "board-ddee01", "self.audio_speaker.set_volume", "volume=400"]),
        ("missing-argument", &["call", "board-ddee01", "self.audio_speaker.set_volume"]),
    ] {
        check(name, &screen(home.path(), words), home.path(), &mut problems);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}
