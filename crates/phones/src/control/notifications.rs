//! The notifications of a phone, from `dumpsys notification`.

use super::PhoneShell;
use crate::adb::command::ShellCommand;
use crate::adb::shell::CommandLimits;
use crate::phone::PhoneError;

/// A notification that is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notification {
    /// Android's own name for it.
    pub key: String,
    pub package: String,
    pub title: Option<String>,
    pub text: Option<String>,
    /// What an expanded card says in place of `text`.
    pub big_text: Option<String>,
    pub actions: Vec<String>,
    /// Whether it stays until its app removes it.
    pub ongoing: bool,
}

/// More than any phone shows.
const MAX_NOTIFICATIONS: usize = 200;
const MAX_ACTIONS: usize = 10;
/// A longer text is cut.
const MAX_TEXT: usize = 4 << 10;

const FLAG_ONGOING: u32 = 2;

pub async fn list(on: &dyn PhoneShell) -> Result<Vec<Notification>, PhoneError> {
    let command = ShellCommand::new("dumpsys notification --noredact");
    let output = on.run_command(&command, CommandLimits::seconds(15).megabytes(16)).await?;
    Ok(parse(&output.text()))
}

/// Reads what `dumpsys notification` printed. A record begins with a line `NotificationRecord(...)`; its extras and
/// actions follow, further in.
pub fn parse(text: &str) -> Vec<Notification> {
    let mut all: Vec<Notification> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(record) = line.trim_start().strip_prefix("NotificationRecord(") else { continue };
        let Some(mut notification) = header(record) else { continue };
        // A text may have line breaks, so a value goes on until the next member.
        while let Some(line) = lines.next_if(|line| !line.trim_start().starts_with("NotificationRecord(")) {
            let line = line.trim();
            if let Some(value) = line.strip_prefix("android.title=") {
                notification.title = value_of(value, &mut lines);
            } else if let Some(value) = line.strip_prefix("android.text=") {
                notification.text = value_of(value, &mut lines);
            } else if let Some(value) = line.strip_prefix("android.bigText=") {
                notification.big_text = value_of(value, &mut lines);
            } else if let Some(title) = action(line)
                && notification.actions.len() < MAX_ACTIONS
            {
                notification.actions.push(title);
            }
        }
        // The list is printed more than once by some versions.
        if all.len() < MAX_NOTIFICATIONS && !all.iter().any(|known| known.key == notification.key) {
            all.push(notification);
        }
    }
    all
}

fn header(record: &str) -> Option<Notification> {
    let member = |name: &str| record.split_once(name).map(|(_, rest)| rest);
    let package = member("pkg=")?.split(' ').next()?;
    let key = member("key=")?.split(": Notification(").next()?;
    let flags = member("flags=0x").and_then(|rest| u32::from_str_radix(rest.split([' ', ')']).next()?, 16).ok());
    let named = |text: &str| text.chars().take(300).collect::<String>();
    Some(Notification {
        key: named(key),
        package: named(package),
        ongoing: flags.unwrap_or_default() & FLAG_ONGOING != 0,
        ..Notification::default()
    })
}

/// `String (the text)`, `SpannableString (…)`, `null`.
fn value_of<'a>(first: &str, lines: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>) -> Option<String> {
    let (_, text) = first.split_once(" (")?;
    let mut whole = text.to_owned();
    while !whole.ends_with(')') && whole.len() < MAX_TEXT {
        let is_more = |line: &&str| !is_member(line.trim());
        let Some(line) = lines.next_if(is_more) else { break };
        whole.push('\n');
        whole.push_str(line);
    }
    let text = whole.strip_suffix(')').unwrap_or(&whole);
    Some(text[..text.floor_char_boundary(MAX_TEXT)].to_owned()).filter(|text| !text.is_empty())
}

fn is_member(line: &str) -> bool {
    line == "}" || line.starts_with("android.") || line.starts_with("NotificationRecord(")
}

/// `[0] "Reply" -> PendingIntent{…}`
fn action(line: &str) -> Option<String> {
    let (number, rest) = line.strip_prefix('[')?.split_once("] \"")?;
    number.parse::<u32>().ok()?;
    let (title, _) = rest.rsplit_once("\" -> ")?;
    Some(title.chars().take(100).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = r#"Current Notification Manager state:
  Notification List:
    NotificationRecord(0x0c1d2e3f: pkg=com.chat user=UserHandle{0} id=2 tag=null importance=4 key=0|com.chat|2|null|10102: Notification(channel=talk shortcut=null contentView=null vibrate=null sound=null defaults=0x0 flags=0x10 color=0x00000000 actions=2 vis=PRIVATE))
      uid=10102 userId=0
      actions={
          [0] "Reply" -> PendingIntent{1a2b: PendingIntentRecord{3c com.chat broadcastIntent}}
          [1] "Mark as "read"" -> PendingIntent{1a2c: x}
        }
      extras={
          android.title=String (Zoë (2))
          android.text=SpannableString (Dinner
at eight?)
          android.progress=Integer (0)
          android.bigText=String (Dinner
at eight (or nine)?)
      }
    NotificationRecord(0x01: pkg=com.music user=UserHandle{0} id=1 tag=null importance=2 key=0|com.music|1|null|10103: Notification(channel=play flags=0x2 color=0x0 vis=PUBLIC))
      extras={
          android.title=null
          android.text=String [length=5]
      }
"#;

    #[test]
    fn texts_actions_and_what_stays_are_read() {
        let all = parse(DUMP);
        assert_eq!(all.len(), 2);
        let first = &all[0];
        assert_eq!((first.key.as_str(), first.package.as_str()), ("0|com.chat|2|null|10102", "com.chat"));
        assert_eq!(first.title.as_deref(), Some("Zoë (2)"));
        assert_eq!(first.text.as_deref(), Some("Dinner\nat eight?"));
        assert_eq!(first.big_text.as_deref(), Some("Dinner\nat eight (or nine)?"));
        assert_eq!(first.actions, ["Reply", "Mark as \"read\""]);
        assert!(!first.ongoing && all[1].ongoing);
        assert_eq!((&all[1].title, &all[1].text), (&None, &None));
    }

    proptest::proptest! {
        #[test]
        fn whatever_an_app_writes_into_a_notification_is_bounded(text in ".{0,400}", repeat in 1usize..50) {
            let one = format!("NotificationRecord(0: pkg=a key=k{repeat}: Notification(flags=0x2))\n android.title=String ({text}\n");
            let all = parse(&one.repeat(repeat));
            proptest::prop_assert!(all.len() <= MAX_NOTIFICATIONS);
            let long = |text: &Option<String>| text.as_ref().is_some_and(|text| text.len() > MAX_TEXT);
            proptest::prop_assert!(!all.iter().any(|one| long(&one.title) || long(&one.text)));
        }
    }
}
