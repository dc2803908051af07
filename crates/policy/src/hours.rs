//! Times of the week in which a rule holds: `Mo-Fr 07:00-22:00, Sa 09:00-12:00`.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};
use sinew_tool::settings::{Deserializer, Error, Setting};

const DAYS: [&str; 7] = ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"];
const MINUTES_OF_A_DAY: u16 = 24 * 60;
/// A week with a pause on every day has fourteen.
const MAX_WINDOWS: usize = 64;

/// A time of the week in the policy's time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// 0 is Monday.
    pub weekday: u8,
    /// Minutes since midnight.
    pub minute: u16,
}

impl LocalTime {
    /// `Mo 07:30`.
    pub fn parse(text: &str) -> Option<LocalTime> {
        let (day, time) = text.trim().split_once(' ')?;
        let weekday = u8::try_from(find_day(day)?).ok()?;
        let minute = parse_time(time).filter(|minute| *minute < MINUTES_OF_A_DAY)?;
        Some(LocalTime { weekday, minute })
    }
}

/// A list of times of the week.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hours {
    text: String,
    windows: Vec<Window>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    days: [bool; 7],
    /// The minute it begins, and the first one after it. A window that ends before it begins ends on the next day.
    from: u16,
    to: u16,
}

impl Hours {
    pub fn contain(&self, time: LocalTime) -> bool {
        self.windows.iter().any(|window| window.contains(time))
    }
}

impl Window {
    fn contains(&self, time: LocalTime) -> bool {
        let today = usize::from(time.weekday % 7);
        let yesterday = (today + 6) % 7;
        if self.from < self.to {
            return self.days[today] && (self.from..self.to).contains(&time.minute);
        }
        (self.days[today] && time.minute >= self.from) || (self.days[yesterday] && time.minute < self.to)
    }
}

impl FromStr for Hours {
    type Err = String;

    fn from_str(text: &str) -> Result<Hours, String> {
        if text.trim().is_empty() {
            return Err("is empty; expected for example `Mo-Fr 07:00-22:00`".to_owned());
        }
        let windows = text.split(',').map(|part| parse_window(part.trim())).collect::<Result<Vec<_>, _>>()?;
        if windows.len() > MAX_WINDOWS {
            return Err(format!("has more than {MAX_WINDOWS} parts"));
        }
        Ok(Hours { text: text.trim().to_owned(), windows })
    }
}

fn parse_window(text: &str) -> Result<Window, String> {
    let wrong =
        || format!("`{text}` is not a time of the week; expected for example `Mo-Fr 07:00-22:00` or `22:00-06:00`");
    let (days, times) = match text.split_once(' ') {
        Some((days, times)) => (parse_days(days).ok_or_else(wrong)?, times.trim()),
        None => ([true; 7], text),
    };
    let (from, to) = times.split_once('-').ok_or_else(wrong)?;
    let (from, to) = (parse_time(from).ok_or_else(wrong)?, parse_time(to).ok_or_else(wrong)?);
    if from == to || from == MINUTES_OF_A_DAY {
        return Err(format!("`{text}` holds no time; for the whole day write `00:00-24:00`"));
    }
    Ok(Window { days, from, to })
}

fn parse_days(text: &str) -> Option<[bool; 7]> {
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (find_day(first)?, find_day(last)?),
        None => (find_day(text)?, find_day(text)?),
    };
    let mut days = [false; 7];
    let mut at = first;
    loop {
        days[at] = true;
        if at == last {
            return Some(days);
        }
        at = (at + 1) % 7;
    }
}

fn find_day(name: &str) -> Option<usize> {
    DAYS.iter().position(|day| day.eq_ignore_ascii_case(name))
}

fn parse_time(text: &str) -> Option<u16> {
    let (hour, minute) = text.trim().split_once(':')?;
    let number = |text: &str| {
        let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u16>().ok()).flatten()
    };
    let (hour, minute) = (number(hour)?, number(minute)?);
    let minutes = hour * 60 + minute;
    (minute < 60 && minutes <= MINUTES_OF_A_DAY).then_some(minutes)
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Setting for Hours {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        let mut text = String::new();
        text.read(from)?;
        *self = text.parse().map_err(D::Error::custom)?;
        Ok(())
    }

    fn schema() -> Value {
        json!({"type": "string", "examples": ["Mo-Fr 07:00-22:00"]})
    }

    fn to_value(&self) -> Value {
        json!(self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(weekday: u8, hour: u16, minute: u16) -> LocalTime {
        LocalTime { weekday, minute: hour * 60 + minute }
    }

    #[test]
    fn hours_hold_on_their_days_and_end_before_their_last_minute() {
        let hours: Hours = "Mo-Fr 07:00-22:00, Sa 09:00-12:00".parse().unwrap();
        assert!(hours.contain(at(0, 7, 0)));
        assert!(hours.contain(at(4, 21, 59)));
        assert!(!hours.contain(at(4, 22, 0)));
        assert!(!hours.contain(at(5, 8, 0)));
        assert!(hours.contain(at(5, 9, 0)));
        assert!(!hours.contain(at(6, 10, 0)));
    }

    #[test]
    fn a_night_belongs_to_the_day_it_begins_on() {
        let hours: Hours = "Fr 22:00-06:00".parse().unwrap();
        assert!(hours.contain(at(4, 23, 0)));
        assert!(hours.contain(at(5, 5, 59)));
        assert!(!hours.contain(at(4, 5, 0)));
        assert!(!hours.contain(at(5, 23, 0)));
        assert!("Sa-Mo 00:00-24:00".parse::<Hours>().unwrap().contain(at(6, 12, 0)));
        assert!("22:00-06:00".parse::<Hours>().unwrap().contain(at(2, 1, 0)));
    }

    #[test]
    fn what_is_no_time_of_the_week_is_refused() {
        for wrong in
            ["", "Mo", "Mo-Xx 07:00-08:00", "7:00-8:00", "07:60-08:00", "25:00-26:00", "07:00-07:00", "24:00-01:00"]
        {
            assert!(wrong.parse::<Hours>().is_err(), "{wrong}");
        }
    }
}
