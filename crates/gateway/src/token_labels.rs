//! The labels of tokens: the name of a caller in the audit and in the policy, so that no two callers share one.

use sinew_policy::Glob;
use sinew_tool::text::clean_line;
use sinew_tool::{ErrorKind, ToolError, json};

use crate::tokens::OWN;

/// A label is read in one line of a table.
const MAX_LABEL: usize = 64;

/// The names of callers that have no token of their own, and how such names begin.
const RESERVED: [&str; 2] = [OWN, "anyone"];
const RESERVED_BEGINNINGS: [&str; 2] = ["endpoint ", "broker client "];

/// What happens to a new token with the label of a valid one. Rules are about labels, so whoever renews a token by hand
/// must not get another label unawares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfTaken {
    Refuse,
    /// The new token gets the label with a number.
    Number,
    /// The new token gets the label, and the old one is revoked.
    Replace,
}

/// A label as it was asked for, if a client or administrator may be called that.
pub(crate) fn check(wanted: &str) -> Result<String, ToolError> {
    let label = clean_line(wanted.trim(), MAX_LABEL);
    if !label.is_empty() && !is_free(&label) {
        let issue = "must not contain `:`, nor be the name of a caller without a token, such as `gateway`";
        return Err(ToolError::new(ErrorKind::InvalidArguments, format!("the label `{label}` {issue}"))
            .with_details(json!({"parameter_name": "label", "issue": issue})));
    }
    Ok(label)
}

/// The label, with a number where a valid token is called that.
pub(crate) fn number<'a>(label: String, taken: impl Iterator<Item = &'a str> + Clone) -> String {
    if label.is_empty() {
        return label;
    }
    let is_taken = |label: &str| taken.clone().any(|other| is_same(other, label));
    let numbered = (2u32..).map(|number| {
        let number = format!(" {number}");
        clean_line(&label, MAX_LABEL - number.len()) + &number
    });
    std::iter::once(label.clone()).chain(numbered).find(|label| !is_taken(label)).unwrap_or_default()
}

pub(crate) fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// Whether a client or administrator may be called that.
fn is_free(label: &str) -> bool {
    let lower = label.to_lowercase();
    !lower.contains(':')
        && !RESERVED.contains(&lower.as_str())
        && !RESERVED_BEGINNINGS.iter().any(|begin| lower.starts_with(begin))
}

/// Whether a caller can have a name like this: one with a token, or one of those that have none of their own.
pub(crate) fn may_be_caller(name: &Glob, tokens: &[String]) -> bool {
    let begins = |beginning: &&str| name.to_string().to_lowercase().starts_with(*beginning);
    RESERVED.iter().copied().chain(tokens.iter().map(String::as_str)).any(|token| name.matches_any_case(token))
        || RESERVED_BEGINNINGS.iter().any(begins)
}

/// A label that can be used, from the name that a client gives itself.
pub fn label_of_client(name: &str) -> String {
    let label = name.replace(':', "-");
    if is_free(&label) { label } else { format!("client {label}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tokens_share_a_label_and_none_has_the_name_of_another_caller() {
        let choose = |wanted: &str| check(wanted).map(|label| number(label, ["claude", "Claude 2", "x"].into_iter()));
        assert_eq!(choose(" desk ").unwrap(), "desk");
        assert_eq!(choose("Claude").unwrap(), "Claude 3");
        assert_eq!(choose("").unwrap(), "");
        for reserved in ["gateway", "Gateway", "relay:board-1", "person:ada", "anyone", "endpoint example.org", "a:b"] {
            let error = choose(reserved).unwrap_err().message;
            assert!(error.contains("must not contain `:`"), "{error}");
            assert!(is_free(&label_of_client(reserved)), "{reserved}");
        }
        let long = "x".repeat(64);
        let second = number(long.clone(), [long.as_str()].into_iter());
        assert!(second.chars().count() <= MAX_LABEL && second.ends_with(" 2"), "{second}");
    }
}
