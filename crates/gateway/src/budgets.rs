//! Time budgets by device and tool, as the configuration gives them: a printer is slower than a lamp.
//!
//! A pattern is `DEVICE/TOOL`. `DEVICE` is compared with the device's id and given name, `TOOL` with the device's own
//! name for the tool; `*` stands for any characters. If several patterns fit, the one with the most other characters
//! counts.

use std::collections::BTreeMap;
use std::time::Duration;

/// The most that a budget can be: a day.
const LONGEST: Duration = Duration::from_secs(86_400);

/// Checks the patterns; an error continues the sentence "`budgets` ...".
pub fn check_budgets(budgets: &BTreeMap<String, Duration>) -> Result<(), String> {
    for (pattern, budget) in budgets {
        let is_pattern = pattern.split_once('/').is_some_and(|(device, tool)| !device.is_empty() && !tool.is_empty());
        if !is_pattern {
            return Err(format!("has `{pattern}`; expected DEVICE/TOOL, for example `board-*/self.printer.*`"));
        }
        if !(Duration::from_secs(1)..=LONGEST).contains(budget) {
            return Err(format!("gives `{pattern}` a time that is not between 1 and {} seconds", LONGEST.as_secs()));
        }
    }
    Ok(())
}

/// The budget for a tool of a device that has these names.
pub(crate) fn find(budgets: &BTreeMap<String, Duration>, names: &[&str], tool: &str) -> Option<Duration> {
    let fits = |pattern: &str| {
        pattern
            .split_once('/')
            .is_some_and(|(device, own)| names.iter().any(|name| is_match(device, name)) && is_match(own, tool))
    };
    let fitting = budgets.iter().filter(|(pattern, _)| fits(pattern));
    let best = fitting.max_by_key(|(pattern, _)| pattern.bytes().filter(|byte| *byte != b'*').count());
    best.map(|(_, budget)| *budget)
}

/// Whether a pattern with `*` fits a text. The work is at most pattern times text.
fn is_match(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budgets(patterns: &[(&str, u64)]) -> BTreeMap<String, Duration> {
        patterns.iter().map(|(pattern, seconds)| ((*pattern).to_owned(), Duration::from_secs(*seconds))).collect()
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text) in
            [("*", ""), ("*", "a/b"), ("a*", "a"), ("a*c", "abc"), ("*b*", "abc"), ("a*b*c", "a-b-c"), ("a", "a")]
        {
            assert!(is_match(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a", "ab"), ("a*", "ba"), ("*a", "ab"), ("a*a", "a"), ("a*b*c", "acb")] {
            assert!(!is_match(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn the_most_exact_pattern_counts_and_a_device_is_found_by_both_names() {
        let budgets = budgets(&[("*/*", 60), ("board-*/self.print*", 300), ("kitchen/self.print", 120)]);
        let seconds = |names: &[&str], tool| find(&budgets, names, tool).map(|budget| budget.as_secs());
        assert_eq!(seconds(&["board-01"], "self.lamp"), Some(60));
        assert_eq!(seconds(&["board-01"], "self.print"), Some(300));
        assert_eq!(seconds(&["board-01", "kitchen"], "self.printer"), Some(300));
        assert_eq!(seconds(&["phone-1", "kitchen"], "self.print"), Some(120));
        assert_eq!(find(&BTreeMap::new(), &["a"], "b"), None);
    }

    #[test]
    fn a_pattern_without_a_tool_or_a_senseless_time_is_refused() {
        for (pattern, seconds) in [("board", 5), ("/tool", 5), ("board/", 5), ("a/b", 0), ("a/b", 90_000)] {
            assert!(check_budgets(&budgets(&[(pattern, seconds)])).is_err(), "{pattern} {seconds}");
        }
        assert_eq!(check_budgets(&budgets(&[("a/b", 1), ("a/b/c", 86_400)])), Ok(()));
    }
}
