//! Examples on the help pages, and the command line they are part of.

use std::ffi::OsString;

use clap::{Command, CommandFactory, FromArgMatches};

use super::Cli;

/// The examples of each command, by its path. A test parses all of them.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("", &["sinew demo", "sinew devices", "sinew call board-ddee01 self.get_device_status"]),
    ("demo", &["sinew demo"]),
    ("serve", &["sinew serve", "sinew serve --config sinew.toml"]),
    ("stdio", &["sinew stdio", "sinew stdio --url https://gateway.local:7300 --token TOKEN --ca gateway.pem"]),
    ("connect", &["sinew connect", "sinew connect cursor --print", "sinew connect cursor"]),
    ("endpoint", &["sinew endpoint 'wss://broker.example/mcp/?token=TOKEN'"]),
    ("status", &["sinew status"]),
    ("health", &["sinew health", "sinew health --url http://127.0.0.1:7300"]),
    ("devices", &["sinew devices", "sinew devices show board-ddee01"]),
    ("devices show", &["sinew devices show board-ddee01"]),
    ("devices rename", &["sinew devices rename board-ddee01 lamp"]),
    ("devices forget", &["sinew devices forget board-ddee01"]),
    ("devices label", &["sinew devices label board-ddee01 kitchen"]),
    ("devices unlabel", &["sinew devices unlabel board-ddee01 kitchen"]),
    ("devices reserve", &["sinew devices reserve virtual-phone --for 30m --purpose 'login test'"]),
    ("devices release", &["sinew devices release virtual-phone", "sinew devices release virtual-phone --break"]),
    ("devices pin", &["sinew devices pin board-ddee01"]),
    ("devices unpin", &["sinew devices unpin board-ddee01"]),
    ("devices changes", &["sinew devices changes board-ddee01"]),
    ("devices accept", &["sinew devices accept board-ddee01 3f09a1c2d4e5f60718293a4b5c6d7e8f"]),
    ("console", &["sinew console", "sinew console --print"]),
    ("people", &["sinew people", "sinew people add ada --role approver"]),
    ("people add", &["sinew people add ada --role approver"]),
    ("people remove", &["sinew people remove ada"]),
    ("sign-ins", &["sinew sign-ins", "sinew sign-ins end SIGN_IN_ID"]),
    ("sign-ins end", &["sinew sign-ins end SIGN_IN_ID"]),
    ("approvals", &["sinew approvals", "sinew approvals approve 3f09a1"]),
    ("approvals show", &["sinew approvals show 3f09a1"]),
    ("approvals approve", &["sinew approvals approve 3f09a1", "sinew approvals approve 3f09a1 --for 10m --as ada"]),
    ("approvals deny", &["sinew approvals deny 3f09a1"]),
    ("approvals grants", &["sinew approvals grants"]),
    ("approvals revoke", &["sinew approvals revoke 3f09a1"]),
    ("audit", &["sinew audit --since 1h", "sinew audit --device front-door --follow"]),
    ("backup", &["sinew backup sinew-2026-11-18.tar"]),
    ("restore", &["sinew restore sinew-2026-11-18.tar", "sinew restore sinew-2026-11-18.tar --state /var/lib/sinew"]),
    ("audit verify", &["sinew audit verify"]),
    ("journal", &["sinew journal --device front-door"]),
    ("routine", &["sinew routine new good_night", "sinew routine run good_night"]),
    ("routine new", &["sinew routine new good_night"]),
    (
        "routine record",
        &["sinew routine record write_note", "sinew routine record write_note --device virtual-phone --replay"],
    ),
    ("routine test", &["sinew routine test routines --on label:ci --junit out.xml"]),
    ("routine show", &["sinew routine show routines/good_night.md"]),
    ("routine lint", &["sinew routine lint routines/good_night.md"]),
    ("routine run", &["sinew routine run good_night", "sinew routine run write_note title=Shopping"]),
    ("routine explain", &["sinew routine explain routines/good_night.md --as tablet"]),
    ("policy", &["sinew policy review"]),
    ("policy explain", &["sinew policy explain --as tablet front-door self.unlock"]),
    ("policy test", &["sinew policy test expectations.toml"]),
    ("policy review", &["sinew policy review", "sinew policy review --write sinew.toml"]),
    ("boards", &["sinew boards"]),
    ("boards approve", &["sinew boards approve 123456", "sinew boards approve kiln"]),
    ("servers", &["sinew servers", "sinew servers add http://192.168.1.7/mcp"]),
    ("servers add", &["sinew servers add http://192.168.1.7/mcp --name kiln --label studio"]),
    ("servers list", &["sinew servers list"]),
    ("servers remove", &["sinew servers remove kiln"]),
    ("phones", &["sinew phones", "sinew phones connect 192.168.1.20:5555"]),
    ("phones apps", &["sinew phones apps"]),
    ("phones connect", &["sinew phones connect 192.168.1.20:5555"]),
    ("phones disconnect", &["sinew phones disconnect 192.168.1.20:5555"]),
    ("phones install", &["sinew phones install pixel-8 shop-2.1.apk"]),
    ("phones install-companion", &["sinew phones install-companion pixel-8"]),
    ("phones pair", &["sinew phones pair 192.168.1.20:37123 123456"]),
    ("phones pull", &["sinew phones pull pixel-8 Download/report.pdf"]),
    ("phones push", &["sinew phones push pixel-8 report.pdf Download/report.pdf"]),
    ("phones record", &["sinew phones record pixel-8 screen.mp4 --seconds 30"]),
    ("tools", &["sinew tools", "sinew tools board-ddee01"]),
    ("tools show", &["sinew tools show self.audio_speaker.set_volume"]),
    (
        "call",
        &[
            "sinew call board-ddee01 self.audio_speaker.set_volume volume=40",
            "sinew call board-ddee01 self.camera.take_photo question='What is this?' --save photo.jpg",
        ],
    ),
    ("events", &["sinew events --follow"]),
    ("token", &["sinew token new --client laptop", "sinew token list"]),
    ("token new", &["sinew token new --client laptop --expires 30d", "sinew token new --client laptop --replace"]),
    ("token list", &["sinew token list"]),
    ("token revoke", &["sinew token revoke TOKEN_ID"]),
    ("cluster", &["sinew cluster"]),
    ("serial", &["sinew serial"]),
    ("spec", &["sinew spec lint SPEC.md"]),
    ("spec lint", &["sinew spec lint SPEC.md", "sinew spec lint . --format sarif"]),
    ("spec rules", &["sinew spec rules"]),
    ("spec explain", &["sinew spec explain unfilled"]),
    ("spec render", &["sinew spec render SPEC.md"]),
    ("spec new", &["sinew spec new set_alarm -o SPEC.md"]),
    ("spec add", &["sinew spec add stop_alarm SPEC.md"]),
    ("spec from", &["sinew spec from http://127.0.0.1:8080/mcp -o SPEC.md"]),
    ("spec diff", &["sinew spec diff old.md new.md", "sinew spec diff SPEC.md device:board-ddee01"]),
    ("spec lock", &["sinew spec lock .", "sinew spec lock . --check"]),
    ("app", &["sinew app inspect app.apk"]),
    ("app rules", &["sinew app rules"]),
    ("app inspect", &["sinew app inspect app.apk"]),
    ("app lint", &["sinew app lint app.apk"]),
    ("app explain", &["sinew app explain RULE"]),
    ("app scaffold", &["sinew app scaffold SPEC.md --form provider -o my-app"]),
    ("sim", &["sinew sim board --count 3", "sinew sim phone"]),
    ("sim board", &["sinew sim board --count 3"]),
    ("sim http-board", &["sinew sim http-board --style zephyr"]),
    ("sim voice", &["sinew sim voice --token secret"]),
    ("sim say", &["sinew sim say board-ddee01 turn on the relay"]),
    ("sim phone", &["sinew sim phone --android 13"]),
    ("sim fleet", &["sinew sim fleet --devices 100000 --nodes 20"]),
    ("doctor", &["sinew doctor", "sinew doctor --config sinew.toml"]),
    ("config", &["sinew config check sinew.toml"]),
    ("config check", &["sinew config check sinew.toml"]),
    ("config schema", &["sinew config schema > sinew.schema.json"]),
    ("bench", &["sinew bench --quick", "sinew bench --only console-pages --only open-consoles"]),
    ("completions", &["sinew completions bash > ~/.local/share/bash-completion/completions/sinew"]),
    ("manual", &["sinew manual ~/.local/share/man/man1"]),
];

/// An example comes before the reference: most readers need nothing else.
const TEMPLATE: &str = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// The whole command line, with its examples.
pub fn command_tree() -> Command {
    with_examples(Cli::command(), "")
}

/// Reads the words of a command line.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = command_tree();
    let mut matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

fn with_examples(command: Command, path: &str) -> Command {
    let examples = EXAMPLES.iter().find(|(known, _)| *known == path).map(|(_, examples)| *examples);
    let command = match examples {
        None => command,
        Some(examples) => {
            let heading = if examples.len() == 1 { "Example:" } else { "Examples:" };
            let lines: String = examples.iter().map(|example| format!("\n  {example}")).collect();
            command.before_help(format!("{heading}{lines}")).help_template(TEMPLATE)
        }
    };
    command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        with_examples(inner, path.trim_start())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of an example as a shell reads them, without redirections.
    fn words(example: &str) -> Vec<OsString> {
        let command = example.split(" > ").next().unwrap_or_default();
        let quoted = command.split('\'').enumerate();
        let mut words: Vec<String> = Vec::new();
        let mut joins = false;
        for (index, part) in quoted {
            if index % 2 == 1 {
                match words.last_mut().filter(|_| joins) {
                    Some(last) => last.push_str(part),
                    None => words.push(part.to_owned()),
                }
                continue;
            }
            words.extend(part.split_whitespace().map(str::to_owned));
            joins = !part.ends_with(' ');
        }
        words.into_iter().map(OsString::from).collect()
    }

    #[test]
    fn every_example_is_a_valid_command_line() {
        for (path, examples) in EXAMPLES {
            assert!(!examples.is_empty(), "`{path}` has no example");
            for example in *examples {
                let read = parse(words(example));
                assert!(read.is_ok(), "{example}: {}", read.unwrap_err());
                assert!(example.starts_with(format!("sinew {path}").trim_end()), "{example}");
            }
        }
    }

    #[test]
    fn every_command_line_of_the_guides_is_valid() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut count = 0;
        for page in ["README.md", "docs/operations.md", "docs/clients.md", "docs/console.md", "docs/leases.md"] {
            let text = std::fs::read_to_string(root.join(page)).unwrap();
            let blocks = text.split("```sh\n").skip(1).filter_map(|block| block.split("```").next());
            for line in blocks.flat_map(str::lines) {
                let line = line.trim().strip_prefix("sudo ").unwrap_or(line.trim());
                let command = line.split(" #").next().unwrap_or_default().trim();
                if !command.starts_with("sinew ") || command.contains('…') {
                    continue;
                }
                let read = parse(words(command));
                assert!(read.is_ok(), "{page}: {line}: {}", read.unwrap_err());
                count += 1;
            }
        }
        assert!(count > 30, "{count} command lines were found");
    }

    #[test]
    fn every_help_page_has_an_example_and_the_connection_comes_last() {
        fn check(command: &mut Command, path: &str) {
            let help = command.render_long_help().to_string();
            if !path.split(' ').any(|word| word == "help") {
                let position = help.find("Example").unwrap_or_else(|| panic!("no example: {path}\n{help}"));
                assert!(Some(position) < help.find("Usage:"), "{path}\n{help}");
            }
            if let Some(connection) = help.find("\nConnection:") {
                assert!(!help[connection + 2..].contains("\n\n\n") && help[connection..].contains("--state"), "{help}");
                for heading in ["\nOptions:", "\nArguments:", "\nCommands:"] {
                    assert!(help.find(heading).is_none_or(|position| position < connection), "{path}\n{help}");
                }
            }
            for inner in command.get_subcommands_mut().filter(|inner| !inner.is_hide_set()) {
                let path = format!("{path} {}", inner.get_name());
                check(inner, path.trim_start());
            }
        }
        let mut root = command_tree();
        root.build();
        check(&mut root, "");
    }
}
