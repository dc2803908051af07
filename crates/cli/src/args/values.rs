//! How values on the command line are read.

use std::net::SocketAddr;
use std::time::Duration;

use sinew_compose::config::parse_address;
use sinew_sim::faults::Faults;
use sinew_sim::phone::{Android, LockScreen};

pub fn address(text: &str) -> Result<SocketAddr, String> {
    parse_address(text)
}

/// A token without a name could not be told from the others.
pub fn name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a name is needed, for example the program or the person it is for".to_owned()),
        name if name.chars().count() > 64 || name.contains(char::is_control) => {
            Err("a name is one line of at most 64 characters".to_owned())
        }
        name => Ok(name.to_owned()),
    }
}

pub fn luck(text: &str) -> Result<Faults, String> {
    match text.trim() {
        "" => Err("expected at least one chance, for example lost=0.05".to_owned()),
        text => text.parse(),
    }
}

/// `500ms`, `10s`, `2m`, `1h`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let number: f64 = digits.parse().map_err(|_| "expected a time such as 500ms, 10s, 2m or 1h".to_owned())?;
    let seconds = match &text[digits.len()..] {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        unit => return Err(format!("`{unit}` is not a unit of time; use ms, s, m or h")),
    };
    // More than a day is most likely a typing error.
    if !(seconds > 0.0 && seconds <= 86_400.0) {
        return Err("expected a time between 1ms and 24 hours".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// How long a token is valid.
pub fn validity(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a time such as 12h or 30d, of at most 3650d".to_owned();
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let unit = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let seconds = number.checked_mul(unit).filter(|seconds| (1..=3650 * 86_400).contains(seconds)).ok_or_else(wrong)?;
    Ok(Duration::from_secs(seconds))
}

pub fn android(text: &str) -> Result<Android, String> {
    Android::parse(text).ok_or_else(|| "expected 9, 11, 13 or 15".to_owned())
}

pub fn lock(text: &str) -> Result<LockScreen, String> {
    let is_pin = |pin: &str| (4..=16).contains(&pin.len()) && pin.bytes().all(|byte| byte.is_ascii_digit());
    match (text, text.strip_prefix("pin=")) {
        ("none", _) => Ok(LockScreen::None),
        ("swipe", _) => Ok(LockScreen::Swipe),
        (_, Some(pin)) if is_pin(pin) => Ok(LockScreen::Pin(pin.to_owned())),
        _ => Err("expected none, swipe, or pin= and 4 to 16 digits".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(validity("30d"), Ok(Duration::from_secs(30 * 86_400)));
        for wrong in ["", "30", "0d", "d", "-1d", "1w", "99999999999999999999d", "4000d"] {
            assert!(validity(wrong).is_err(), "{wrong}");
        }
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
        for wrong in ["", "s", "-1s", "0", "1d", "25h", "inf", "NaN", "1e99", "五s"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_lock_of_a_virtual_phone_is_none_a_swipe_or_a_pin() {
        assert_eq!(lock("none"), Ok(LockScreen::None));
        assert_eq!(lock("pin=1234"), Ok(LockScreen::Pin("1234".to_owned())));
        for wrong in ["", "pin", "pin=", "pin=12", "pin=12a4", "fingerprint"] {
            assert!(lock(wrong).is_err(), "{wrong:?}");
        }
    }
}
