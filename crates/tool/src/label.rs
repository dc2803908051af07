//! Which texts can be labels of devices.

/// Labels are shown in tables beside device ids.
pub const MAX_LABEL_LENGTH: usize = 32;
/// Enough for rooms, owners and purposes; more would be a database.
pub const MAX_LABELS: usize = 16;

/// Whether a text is a label: lower-case letters, digits and hyphens, beginning with a letter or digit.
pub fn is_label(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_LABEL_LENGTH).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(is_plain)
}

/// Checks the labels that a configuration gives a device; the error continues the sentence "`labels` …".
pub fn check_labels(labels: &[String]) -> Result<(), String> {
    if labels.len() > MAX_LABELS {
        return Err(format!("are {}, and a device can have at most {MAX_LABELS}", labels.len()));
    }
    match labels.iter().find(|label| !is_label(label)) {
        Some(wrong) => Err(format!(
            "has `{}`, which is not valid: a label has 1 to {MAX_LABEL_LENGTH} letters a-z, digits and hyphens",
            crate::text::clip(wrong)
        )),
        None => Ok(()),
    }
}
