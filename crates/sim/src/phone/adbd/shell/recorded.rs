//! The shell against what Android's own shell commands answer to mistakes. `android/test` records the answers from
//! Android 14's classes.

use super::Shell;
use crate::phone::{Android, Handset, PhoneClock, PhoneSetup};

const RECORDED: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../android/recorded/shell-commands-14.txt"));

#[tokio::test]
async fn mistakes_are_answered_as_androids_own_commands_answer_them() {
    let answers: Vec<&str> = RECORDED.split("$ ").filter(|block| !block.is_empty()).collect();
    assert!(answers.len() >= 15, "{RECORDED}");
    for android in [Android::V13, Android::V15] {
        for block in &answers {
            let mut lines = block.lines();
            let (line, exit, said) = (lines.next().unwrap(), lines.next().unwrap(), lines.next().unwrap());
            let setup = PhoneSetup { android, ..PhoneSetup::default() };
            let (out, err, code) = Shell::new(Handset::new(setup, PhoneClock::Virtual)).run(line).await;
            let text = String::from_utf8_lossy(&out).into_owned() + &String::from_utf8_lossy(&err);
            let is_frame = |line: &&str| line.is_empty() || line.starts_with("Exception occurred");
            let first = text.lines().map(str::trim).find(|line| !is_frame(line)).unwrap_or_default();
            assert_eq!((format!("exit {code}").as_str(), first), (exit, said), "{android}: {line}");
        }
    }
}
