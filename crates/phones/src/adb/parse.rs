//! Reading what Android's commands print, in the forms of many versions and vendors.

use jiff::civil::DateTime;
use jiff::tz::Offset;

use crate::logs::{LogLine, LogcatLevel};
use crate::phone::{Foreground, InstalledApp, Screen};

/// From `wm size`, `wm density`, `dumpsys input`, `dumpsys power` and `dumpsys window`, one after
/// another. `None` where no size is told.
pub fn screen(text: &str) -> Option<Screen> {
    let after = |start: &str| {
        let mut values = text.lines().filter_map(move |line| line.trim().strip_prefix(start)).map(str::trim);
        values.next()
    };
    // An override is what input and dumps use.
    let size = after("Override size:").or_else(|| after("Physical size:"))?;
    let (width, height) = size.split_once('x')?;
    let (width, height) = (width.trim().parse::<u32>().ok()?, height.trim().parse::<u32>().ok()?);
    let density = after("Override density:").or_else(|| after("Physical density:"));
    let rotation = rotation(text).unwrap_or(0);
    // Sizes are those of the natural orientation.
    let (width, height) = if rotation % 2 == 1 { (height, width) } else { (width, height) };
    let wakefulness = after("mWakefulness=");
    let signs = ["mShowingLockscreen=true", "mDreamingLockscreen=true", "isStatusBarKeyguard=true"];
    let locked = signs.iter().any(|sign| text.contains(sign)) || text.lines().any(|line| line.trim() == "showing=true");
    Some(Screen {
        width,
        height,
        density_dpi: density.and_then(|density| density.parse().ok()).unwrap_or_default(),
        rotation,
        awake: wakefulness.is_none_or(|state| matches!(state, "Awake" | "Dreaming")),
        locked,
    })
}

/// `SurfaceOrientation: 1`, or a viewport's `orientation=1`, an active one first: foldables list both.
fn rotation(text: &str) -> Option<u8> {
    let digit = |text: &str| text.trim_start().chars().next()?.to_digit(4).map(|digit| digit as u8);
    let surface = text.lines().find_map(|line| digit(line.split_once("SurfaceOrientation:")?.1));
    let viewport = |active: bool| {
        let lines = text.lines().filter(move |line| !active || line.contains("isActive=[1]"));
        lines.filter_map(|line| digit(line.split_once("orientation=")?.1)).next()
    };
    surface.or_else(|| viewport(true)).or_else(|| viewport(false))
}

/// From the focus lines of `dumpsys window` and the resumed lines of `dumpsys activity activities`.
pub fn foreground(text: &str) -> Foreground {
    let mut windows: Vec<String> = Vec::new();
    let mut apps: Vec<(String, String)> = Vec::new();
    let mut resumed: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        if let Some((_, value)) = line.split_once("mCurrentFocus=") {
            windows.extend(window_title(value));
        } else if let Some((_, value)) = line.split_once("mFocusedApp=") {
            apps.extend(component(value));
        } else if line.contains("ResumedActivity") || line.contains("mFocusedActivity") {
            resumed.extend(component(line));
        }
    }
    let focused: Vec<(String, String)> = windows.iter().filter_map(|title| component(title)).collect();
    // With several displays there are several of each; the one that is both is in front.
    let both = apps.iter().find(|app| focused.iter().any(|window| same(app, window)));
    let chosen = both.or(resumed.first()).or(apps.first()).or(focused.first()).cloned();
    let covered = |title: &&String| match (&chosen, component(title)) {
        (Some(chosen), Some(window)) => !same(chosen, &window),
        (_, None) => true,
        (None, Some(_)) => false,
    };
    let window = match both {
        Some(_) => None,
        None => windows.iter().rev().find(covered).cloned(),
    };
    let (package, activity) = chosen.unzip();
    Foreground { package, activity, window }
}

/// `Window{<hex> [u<user>] <title>[ extra=…]}`.
fn window_title(value: &str) -> Option<String> {
    let inner = value.split_once("Window{")?.1;
    let inner = inner.rsplit_once('}').map_or(inner, |(inner, _)| inner);
    let mut words = inner.split_whitespace().skip(1).peekable();
    let is_user = |word: &&str| {
        word.strip_prefix('u')
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    words.next_if(is_user);
    let title: Vec<&str> = words.filter(|word| !word.contains('=')).collect();
    let title = title.join(" ");
    let title = title.trim_end_matches('}').to_owned();
    (!title.is_empty()).then_some(title)
}

/// The first `package/class` in a text.
fn component(text: &str) -> Option<(String, String)> {
    let word = text.split([' ', '{', '}', '=']).find(|word| word.contains('/'))?;
    let (package, class) = word.split_once('/')?;
    let plain = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._$-".contains(&byte))
    };
    (plain(package) && plain(class)).then(|| (package.to_owned(), class.to_owned()))
}

fn same(a: &(String, String), b: &(String, String)) -> bool {
    let full = |(package, class): &(String, String)| match class.strip_prefix('.') {
        Some(rest) => format!("{package}.{rest}"),
        None => class.clone(),
    };
    a.0 == b.0 && full(a) == full(b)
}

/// `+0200`, as `date +%z` prints it.
pub fn offset(text: &str) -> Option<Offset> {
    let text = text.trim();
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i32 = digits.parse().ok()?;
    Offset::from_seconds(sign * (number / 100 * 3600 + number % 100 * 60)).ok()
}

/// A line of `logcat -v threadtime -v year`: `2024-02-11 16:30:00.123  812  830 D Tag     : message`.
/// `None` for separators and what is no such line.
pub fn log_line(line: &str) -> Option<LogLine> {
    let (date, rest) = line.split_once(' ')?;
    let (time, rest) = rest.trim_start().split_once(' ')?;
    let time: DateTime = format!("{date}T{time}").parse().ok()?;
    let (pid, rest) = rest.trim_start().split_once(' ')?;
    let (_thread, rest) = rest.trim_start().split_once(' ')?;
    let rest = rest.trim_start();
    let level = rest.chars().next().and_then(LogcatLevel::from_letter)?;
    let rest = rest.get(1..)?.strip_prefix(' ')?;
    // A tag may hold colons; its end is the first that a space follows, or the line's last.
    let end = rest.find(": ").or_else(|| rest.strip_suffix(':').map(str::len))?;
    Some(LogLine {
        time,
        pid: pid.parse().ok()?,
        level,
        tag: rest[..end].trim().to_owned(),
        message: rest.get(end + 2..).unwrap_or_default().to_owned(),
    })
}

/// The process ids of an app in `ps -A -o PID,NAME`: `pkg` itself and `pkg:remote`.
pub fn pids(text: &str, package: &str) -> Vec<u32> {
    let belongs = |name: &str| name.strip_prefix(package).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
    let line = |line: &str| {
        let (pid, name) = line.trim().split_once(char::is_whitespace)?;
        belongs(name.trim()).then(|| pid.parse().ok()).flatten()
    };
    text.lines().filter_map(line).collect()
}

/// From `cmd package query-activities --brief` and `pm list packages -3`, one after another.
pub fn apps(text: &str) -> Vec<InstalledApp> {
    let third_party: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("package:")).collect();
    let mut apps: Vec<InstalledApp> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with("package:") && !line.contains(' ')) {
        let Some((package, activity)) = component(line) else { continue };
        if apps.iter().all(|app| app.package != package) {
            let system = !third_party.contains(&package.as_str());
            apps.push(InstalledApp { package, label: None, activity: Some(activity), system });
        }
    }
    apps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(text: &str) -> (String, String, String) {
        let Foreground { package, activity, window } = foreground(text);
        (package.unwrap_or_default(), activity.unwrap_or_default(), window.unwrap_or_default())
    }

    fn check(text: &str, package: &str, activity: &str, window: &str) {
        assert_eq!(front(text), (package.to_owned(), activity.to_owned(), window.to_owned()), "{text}");
    }

    #[test]
    fn the_app_in_front_is_found_in_the_lines_of_many_versions() {
        check(
            "mCurrentFocus=Window{e74bb23 u0 a.b/a.b.Main}\n mFocusedApp=AppWindowToken{c7 token=Token{a6 ActivityRecord{35 u0 a.b/.Main t2719}}}",
            "a.b",
            ".Main",
            "",
        );
        check(
            "  mFocusedApp=ActivityRecord{d9 u10 a.b/.Main} t57}\n mCurrentFocus=Window{1 u10 a.b/a.b.Main}",
            "a.b",
            ".Main",
            "",
        );
        check("topResumedActivity=ActivityRecord{35 u0 a.b/.Main t9}", "a.b", ".Main", "");
        check("  ResumedActivity: ActivityRecord{35 u0 a.b/.Main t9}", "a.b", ".Main", "");
        check("mCurrentFocus=null\nmFocusedApp=null", "", "", "");
    }

    #[test]
    fn a_window_over_the_app_is_told() {
        check(
            "mCurrentFocus=Window{8dda u0 NotificationShade}\n topResumedActivity=ActivityRecord{35 u0 a.b/.Main t9}",
            "a.b",
            ".Main",
            "NotificationShade",
        );
        check(
            "mCurrentFocus=Window{com.android.systemui:6d67f78 u0 Some Title type=2024 }\nmFocusedApp=ActivityRecord{1 u0 a.b/.M t1}",
            "a.b",
            ".M",
            "Some Title",
        );
        check("mCurrentFocus=Window{8 u0 Application Not Responding: a.b}", "", "", "Application Not Responding: a.b");
    }

    #[test]
    fn of_several_displays_the_one_in_front_is_chosen() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/fixtures/android/dumpsys/focus_lines.txt");
        let Ok(text) = std::fs::read_to_string(path) else { return };
        let blocks: Vec<(String, String, String)> = text.split("## ").skip(1).map(front).collect();
        let expected = [
            ("com.google.android.tvlauncher", ".MainActivity", ""),
            ("tunein.player", "tunein.ui.leanback.ui.activities.TvHomeActivity", "com.sony.dtv.sonysystemservice"),
            ("eu.niko.smart.universal", "crc648a3abc16689e594e.MainActivity", ""),
            ("com.example.android", ".activity.main.MainActivity", ""),
            ("com.android.settings", "com.android.settings.SubSettings", ""),
            ("", "", ""),
            ("", "", "NotificationShade"),
            (
                "com.lookout.enterprise",
                "com.lookout.enterprise.ui.android.activity.StartActivity",
                "com.lookout.enterprise",
            ),
            ("", "", ""),
        ];
        let expected: Vec<_> = expected.iter().map(|(a, b, c)| (a.to_string(), b.to_string(), c.to_string())).collect();
        assert_eq!(blocks, expected);
    }

    #[test]
    fn the_screen_is_measured_in_its_current_rotation() {
        let text = "Physical size: 1080x2400\nOverride size: 720x1600\nPhysical density: 420\nOverride density: 360\n  SurfaceOrientation: 1\n  mWakefulness=Awake\n";
        let screen = screen(text).unwrap();
        assert_eq!((screen.width, screen.height, screen.density_dpi, screen.rotation), (1600, 720, 360, 1));
        assert!(screen.awake && !screen.locked);
        let asleep = super::screen("Physical size: 10x20\nmWakefulness=Dozing\n    mDreamingLockscreen=true").unwrap();
        assert!(!asleep.awake && asleep.locked);
        assert!(super::screen("Physical size: 10x20\n      showing=true").unwrap().locked);
        assert_eq!(super::screen("Error: no such display"), None);
    }

    #[test]
    fn an_active_viewport_tells_the_rotation() {
        let fold = "Viewport INTERNAL: displayId=0, orientation=0, isActive=[0]\nViewport INTERNAL: displayId=1, orientation=3, isActive=[1]";
        assert_eq!(rotation(fold), Some(3));
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/fixtures/android/dumpsys/input__scrcpyfork.txt");
        if let Ok(text) = std::fs::read_to_string(path) {
            assert_eq!(rotation(&text), Some(0));
        }
    }

    #[test]
    fn log_lines_are_taken_apart() {
        let line =
            log_line("2024-02-11 16:30:00.123   812   830 D MCP:ServerService: Server started: port 8080").unwrap();
        assert_eq!(line.to_string(), "02-11 16:30:00.123 D/MCP:ServerService: Server started: port 8080");
        assert_eq!(line.pid, 812);
        let padded = log_line("2024-02-11 16:30:00.123   812   830 I Zygote  : ").unwrap();
        assert_eq!((padded.tag.as_str(), padded.message.as_str()), ("Zygote", ""));
        for wrong in [
            "--------- beginning of main",
            "",
            "x",
            "2024-02-11 16:30:00.123 812",
            "2024-02-11 16:30:00.123 1 2 Q a: b",
        ] {
            assert_eq!(log_line(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn offsets_processes_and_apps_are_read() {
        assert_eq!(offset("+0200\n").map(Offset::seconds), Some(7200));
        assert_eq!(offset("-0330").map(Offset::seconds), Some(-12_600));
        assert_eq!(offset("CEST"), None);
        assert_eq!(pids("  PID NAME\n    1 init\n  900 a.b\n  901 a.b:remote\n  902 a.bc\n", "a.b"), [900, 901]);
        let text = "2 activities found:\n  priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=true\n  a.b/.Main\n  priority=0 isDefault=true\n  c.d/c.d.Home\npackage:c.d\n";
        let apps = apps(text);
        assert_eq!(
            apps.iter().map(|app| (app.package.as_str(), app.system)).collect::<Vec<_>>(),
            [("a.b", true), ("c.d", false)]
        );
    }
}
