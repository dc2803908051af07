//! The shell against what Android's own shell commands answer to mistakes and questions for help. `android/test` compares
//! the recorded answers with the classes of Android 12 to 16.

use super::Shell;
use crate::phone::{Android, Handset, PhoneClock, PhoneSetup};

macro_rules! recorded {
    ($version:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../android/recorded/shell-commands-", $version, ".txt"))
    };
}

/// Each virtual phone with the Androids that it answers like.
const RECORDED: [(Android, &[&str]); 2] = [
    (Android::V13, &[recorded!("12"), recorded!("13"), recorded!("14")]),
    (Android::V15, &[recorded!("15"), recorded!("16")]),
];
/// Where Android 16 is unlike 15, and like 14 again.
const UNLIKE: &str = "am help\nexit 255";

#[tokio::test]
async fn mistakes_are_answered_as_androids_own_commands_answer_them() {
    let mut wrong = Vec::new();
    for (android, recorded) in RECORDED {
        for block in recorded.iter().flat_map(|file| file.split("$ ")).filter(|block| !block.is_empty()) {
            if android == Android::V15 && block.starts_with(UNLIKE) {
                continue;
            }
            let mut lines = block.lines();
            let (line, exit, said) = (lines.next().unwrap(), lines.next().unwrap(), lines.next().unwrap());
            let setup = PhoneSetup { android, ..PhoneSetup::default() };
            let (out, err, code) = Shell::new(Handset::new(setup, PhoneClock::Virtual)).run(line).await;
            let text = String::from_utf8_lossy(&out).into_owned() + &String::from_utf8_lossy(&err);
            let is_frame = |line: &&str| line.is_empty() || line.starts_with("Exception occurred");
            let first = text.lines().map(str::trim).find(|line| !is_frame(line)).unwrap_or_default();
            if (format!("exit {code}").as_str(), first) != (exit, said) {
                wrong.push(format!("{android}: {line}: exit {code}, {first} instead of {exit}, {said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_android_has_enough_answers() {
    for file in RECORDED.iter().flat_map(|(_, recorded)| recorded.iter()) {
        assert!(file.matches("$ ").count() >= 60);
    }
}
