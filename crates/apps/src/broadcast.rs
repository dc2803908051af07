//! Ordered broadcasts to one receiver through `am broadcast`, which prints the receiver's result.

use sinew_phones::PhoneError;
use sinew_phones::adb::command::ShellCommand;
use sinew_phones::adb::shell::CommandOutput;

/// The result that a receiver set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BroadcastResult {
    /// 0 if the receiver set none.
    pub code: i64,
    pub data: Option<String>,
}

/// An explicit broadcast with string extras. It also reaches an app that was stopped, and does not wait for the
/// phone's background work.
pub(crate) fn command(action: &str, component: &str, extras: &[(&str, &str)]) -> ShellCommand {
    let head = ShellCommand::new("am broadcast --include-stopped-packages --receiver-foreground -a").arg(action);
    let head = head.literal("-n").arg(component);
    extras.iter().fold(head, |command, (key, value)| command.literal("--es").arg(key).arg(value))
}

/// Reads `Broadcast completed: result=-1, data="…", extras: Bundle[…]`. The data is printed without escaping, so it
/// ends at the last quote that can end it.
pub(crate) fn parse(output: &CommandOutput) -> Result<BroadcastResult, PhoneError> {
    let text = String::from_utf8_lossy(&output.stdout);
    let Some((_, rest)) = text.split_once("Broadcast completed: result=") else {
        return Err(refusal(&output.text()));
    };
    let end = rest.find(|character: char| !character.is_ascii_digit() && character != '-').unwrap_or(rest.len());
    let (code, rest) = rest.split_at(end);
    let code = code.parse().unwrap_or_default();
    let Some(data) = rest.strip_prefix(", data=\"") else { return Ok(BroadcastResult { code, data: None }) };
    let data = data.strip_suffix('\n').unwrap_or(data);
    let data = data.strip_suffix('\r').unwrap_or(data);
    let end = match data.strip_suffix('"') {
        Some(whole) => whole.len(),
        None => data.rfind("\", extras: Bundle[").ok_or_else(|| {
            PhoneError::Failed("the phone's answer to the broadcast ends in the middle of the data".to_owned())
        })?,
    };
    Ok(BroadcastResult { code, data: Some(data[..end].to_owned()) })
}

fn refusal(text: &str) -> PhoneError {
    let line = text.lines().map(str::trim).find(|line| line.contains("Exception") || line.starts_with("Error"));
    let line: String = line.unwrap_or("no known error message was printed").chars().take(300).collect();
    match line.contains("SecurityException") || line.contains("Permission Denial") {
        true => PhoneError::Denied(format!(
            "adb has no permission to send this broadcast ({line}); the app must export its receiver without a permission"
        )),
        false => PhoneError::Failed(format!("`am broadcast` failed: {line}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Result<BroadcastResult, PhoneError> {
        parse(&CommandOutput { stdout: text.as_bytes().to_vec(), ..CommandOutput::default() })
    }

    fn data(text: &str) -> Option<String> {
        let head = "Broadcasting: Intent { act=x flg=0x400000 cmp=a/.B (has extras) }\n";
        answer(&format!("{head}Broadcast completed: result={text}\n")).unwrap().data
    }

    #[test]
    fn data_is_read_back_exactly() {
        assert_eq!(data("-1, data=\"plain\"").as_deref(), Some("plain"));
        assert_eq!(data("-1, data=\"\"").as_deref(), Some(""));
        assert_eq!(data("-1, data=\"{\"a\": \"b, data=\\\"\"}\"").as_deref(), Some("{\"a\": \"b, data=\\\"\"}"));
        assert_eq!(data("-1, data=\"two\nlines\n\"").as_deref(), Some("two\nlines\n"));
        assert_eq!(data("-1, data=\"x\", extras: Bundle[{a=b}]").as_deref(), Some("x"));
        assert_eq!(
            data("-1, data=\"a\", extras: Bundle[\", extras: Bundle[{a=b}]").as_deref(),
            Some("a\", extras: Bundle[")
        );
        assert_eq!(data("0"), None);
        assert_eq!(data("-1, extras: Bundle[{a=b}]"), None);
    }

    #[test]
    fn a_refusal_is_distinguished_from_a_failure() {
        let denied = answer("Broadcasting: Intent { }\njava.lang.SecurityException: Permission Denial: not allowed\n");
        assert!(matches!(denied, Err(PhoneError::Denied(_))), "{denied:?}");
        assert!(matches!(answer(""), Err(PhoneError::Failed(_))));
        assert!(matches!(answer("Broadcast completed: result=-1, data=\"half"), Err(PhoneError::Failed(_))));
    }

    #[test]
    fn extras_are_quoted_whatever_they_hold() {
        let line = command("A", "a/.B", &[("tool", "x"), ("params", "{\"a\":\"it's\"}")]);
        assert_eq!(
            line.line(),
            "am broadcast --include-stopped-packages --receiver-foreground -a 'A' -n 'a/.B' --es 'tool' 'x' --es 'params' '{\"a\":\"it'\\''s\"}'"
        );
    }
}
