//! Fingers and keys.

use std::time::Duration;

/// Where a finger is at a moment after the gesture began, in pixels of the current rotation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f32,
    pub y: f32,
    pub at: Duration,
}

/// One finger's way: down at the first point, up at the last, at even pace between two points.
#[derive(Clone, Debug, PartialEq)]
pub struct Stroke {
    pub points: Vec<Point>,
}

impl Stroke {
    /// A straight way that begins at `start` and takes `duration`.
    pub fn line(from: (f32, f32), to: (f32, f32), start: Duration, duration: Duration) -> Stroke {
        let point = |(x, y), at| Point { x, y, at };
        Stroke { points: vec![point(from, start), point(to, start + duration)] }
    }

    /// A finger that stays where it is.
    pub fn hold(x: f32, y: f32, start: Duration, duration: Duration) -> Stroke {
        Stroke::line((x, y), (x, y), start, duration)
    }

    pub fn start(&self) -> Duration {
        self.points.first().map_or(Duration::ZERO, |point| point.at)
    }

    pub fn end(&self) -> Duration {
        self.points.last().map_or(Duration::ZERO, |point| point.at)
    }

    pub fn is_still(&self) -> bool {
        self.points.windows(2).all(|pair| (pair[0].x, pair[0].y) == (pair[1].x, pair[1].y))
    }
}

macro_rules! keys {
    ($($key:ident $name:literal $code:literal;)*) => {
        /// A key, or a global action that Android offers like one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Key { $($key,)* Notifications, QuickSettings }

        impl Key {
            /// Every key that has a name and an Android key code.
            pub const NAMED: &[Key] = &[$(Key::$key),*];

            /// The name in `press_key`; `None` for the panels, which are no keys to Android.
            pub fn name(self) -> Option<&'static str> {
                match self { $(Key::$key => Some($name),)* Key::Notifications | Key::QuickSettings => None }
            }

            /// Android's `KeyEvent` code.
            pub fn code(self) -> Option<u16> {
                match self { $(Key::$key => Some($code),)* Key::Notifications | Key::QuickSettings => None }
            }
        }
    };
}

keys! {
    Enter "ENTER" 66;
    Back "BACK" 4;
    Del "DEL" 67;
    Home "HOME" 3;
    Tab "TAB" 61;
    Space "SPACE" 62;
    Recents "RECENTS" 187;
    Escape "ESCAPE" 111;
    ForwardDel "FORWARD_DEL" 112;
    Up "UP" 19;
    Down "DOWN" 20;
    Left "LEFT" 21;
    Right "RIGHT" 22;
    Center "CENTER" 23;
    MoveHome "MOVE_HOME" 122;
    MoveEnd "MOVE_END" 123;
    PageUp "PAGE_UP" 92;
    PageDown "PAGE_DOWN" 93;
    Menu "MENU" 82;
    Search "SEARCH" 84;
    VolumeUp "VOLUME_UP" 24;
    VolumeDown "VOLUME_DOWN" 25;
    WakeUp "WAKEUP" 224;
    Sleep "SLEEP" 223;
    Cut "CUT" 277;
    Copy "COPY" 278;
    Paste "PASTE" 279;
}

impl Key {
    /// Case does not matter.
    pub fn find(name: &str) -> Option<Key> {
        Key::NAMED.iter().copied().find(|key| key.name().is_some_and(|own| own.eq_ignore_ascii_case(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_name_in_any_case() {
        assert_eq!(Key::find("enter"), Some(Key::Enter));
        assert_eq!(Key::find("VOLUME_UP").and_then(Key::code), Some(24));
        assert_eq!(Key::find("KABOOM"), None);
        assert_eq!(Key::find(""), None);
    }

    #[test]
    fn a_line_lasts_from_its_start_for_its_duration() {
        let line = Stroke::line((0.0, 0.0), (10.0, 0.0), Duration::from_millis(150), Duration::from_millis(50));
        assert_eq!((line.start(), line.end()), (Duration::from_millis(150), Duration::from_millis(200)));
        assert!(!line.is_still());
        assert!(Stroke::hold(1.0, 2.0, Duration::ZERO, Duration::from_secs(1)).is_still());
    }
}
