//! Arbitrary text as what Android prints about notifications, an app, the state of the phone and crashes. Apps write parts
//! of it, so whatever it says, what is read of it stays within bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_phones::control::{apps, notifications, status};

const TEXT: usize = 4 << 10;

fuzz_target!(|text: &str| {
    let all = notifications::parse(text);
    assert!(all.len() <= 200);
    for one in all {
        assert!(one.key.chars().count() <= 300 && one.package.chars().count() <= 300);
        let texts = [&one.title, &one.text, &one.big_text];
        assert!(texts.into_iter().flatten().all(|text| !text.is_empty() && text.len() <= TEXT));
        assert!(one.actions.len() <= 10 && one.actions.iter().all(|title| title.chars().count() <= 100));
    }
    // Most inputs name no app.
    let framed = format!("Package [a.b] (1):\n{text}");
    if let Some(details) = apps::parse_details(&framed, "a.b") {
        let said = [&details.version_name, &details.first_installed, &details.last_updated];
        assert!(said.into_iter().flatten().all(|text| text.chars().count() <= 100));
        assert!(details.permissions.len() <= 500);
        assert!(details.permissions.iter().all(|(name, _)| name.chars().count() <= 200));
    }
    let state = status::parse_status(text);
    assert!(state.battery_percent.is_none_or(|percent| percent <= 100));
    assert!(state.addresses.len() <= 20 && state.volumes.len() <= 4);
    let crashes = text.lines().flat_map(|line| {
        let event = |tag: &str| format!("2026-02-11 16:30:00.123  1  1 I {tag}: {line}");
        [line.to_owned(), event("am_crash"), event("am_anr")]
    });
    for crash in crashes.filter_map(|line| status::parse_crash(&line)) {
        assert!(crash.process.chars().count() <= 200 && crash.reason.chars().count() <= 500);
    }
});
