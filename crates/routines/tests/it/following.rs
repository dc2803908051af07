//! A folder of routines that is followed while its files change.

use std::collections::BTreeMap;

use sinew_tool::{DeviceEvent, Effect, json};

use crate::files::{GOOD_NIGHT, routine_file};
use crate::running::{Bench, write};

#[tokio::test(start_paused = true)]
async fn files_are_followed_and_a_mistake_keeps_the_last_good_form() {
    let mut bench = Bench::with(&[("a", "- return: 1")]).await;
    write(bench.folder.path(), "b", "- call: unlock");
    assert!(matches!(bench.events.recv().await, Some(DeviceEvent::Changed(_))));
    let tools: BTreeMap<String, Option<Effect>> =
        bench.device.tools().iter().map(|tool| (tool.name.clone(), tool.effect)).collect();
    assert_eq!((tools["a"], tools["b"]), (None, Some(Effect::Danger)));
    write(bench.folder.path(), "a", "- wat: 1 # a mistake");
    assert!(matches!(bench.events.recv().await, Some(DeviceEvent::Changed(_))));
    assert_eq!(bench.call("a", json!({})).await.unwrap().structured, Some(json!(1)));
    let problems = bench.device.info().attributes["problems"].clone();
    assert!(problems[0].as_str().is_some_and(|text| text.starts_with("a.md: line ")), "{problems}");
    std::fs::remove_file(bench.folder.path().join("a.md")).unwrap();
    std::fs::remove_file(bench.folder.path().join("b.md")).unwrap();
    // An empty directory still takes what a model proposes.
    while bench.device.tools().len() > 1 {
        assert!(matches!(bench.events.recv().await, Some(DeviceEvent::Changed(_))));
    }
    std::fs::remove_dir(bench.folder.path()).unwrap();
    assert!(matches!(bench.events.recv().await, Some(DeviceEvent::Left(..))));
}

#[tokio::test]
async fn routines_that_call_each_other_in_a_circle_are_not_offered() {
    let mut bench = Bench::with(&[
        ("one", "- wait: 1\n- call: two\n  device: routines"),
        ("two", "- call: three\n  device: routines"),
        ("three", "- call: one\n  device: routines"),
        ("outside", "- call: one\n  device: routines"),
    ])
    .await;
    let names = |bench: &Bench| -> Vec<String> { bench.device.tools().iter().map(|tool| tool.name.clone()).collect() };
    assert_eq!(names(&bench), ["outside", "get_run", "cancel_run", "save_routine"]);
    let problems = bench.device.info().attributes["problems"].clone();
    let about_one =
        problems.as_array().unwrap().iter().filter_map(|text| text.as_str()).find(|text| text.starts_with("one.md"));
    let line = routine_file("one", "- wait: 1").lines().position(|line| line == "- wait: 1").unwrap() + 2;
    assert_eq!(about_one, Some(&*format!("one.md: line {line}: it calls itself without end: two, three, one")));
    write(bench.folder.path(), "three", "- call: status");
    assert!(matches!(bench.events.recv().await, Some(DeviceEvent::Changed(_))));
    assert!(names(&bench).contains(&"one".to_owned()));
    // Whoever closes a circle is refused, and all keep their last good form.
    write(bench.folder.path(), "three", "- wait: 7\n- call: outside\n  device: routines");
    assert!(matches!(bench.events.recv().await, Some(DeviceEvent::Changed(_))));
    let all = ["one", "outside", "three", "two", "get_run", "cancel_run", "save_routine"];
    assert_eq!(names(&bench), all);
    let problems = bench.device.info().attributes["problems"].clone();
    assert_eq!(problems.as_array().map(Vec::len), Some(1), "{problems}");
    assert!(problems[0].as_str().is_some_and(|text| text.starts_with("three.md: line ")), "{problems}");
    bench.call("three", json!({})).await.unwrap();
    assert_eq!(bench.calls(), ["status {}"]);
    // Once the rest of the circle is gone, the new form counts.
    write(bench.folder.path(), "outside", "- return: 1");
    assert!(matches!(bench.events.recv().await, Some(DeviceEvent::Changed(_))));
    assert_eq!(bench.device.info().attributes.get("problems"), None);
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_link_to_a_file_is_a_routine_and_what_is_no_file_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    write(elsewhere.path(), "linked", "- return: 1");
    std::os::unix::fs::symlink(elsewhere.path().join("linked.md"), folder.path().join("linked.md")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("lost.md")).unwrap();
    // An editor's lock, which is no routine and no mistake.
    std::os::unix::fs::symlink("somebody", folder.path().join(".#linked.md")).unwrap();
    std::fs::create_dir(folder.path().join("inner.md")).unwrap();
    let mut bench = Bench::at(folder).await;
    assert_eq!(bench.call("linked", json!({})).await.unwrap().structured, Some(json!(1)));
    let problems = bench.device.info().attributes["problems"].clone();
    let problems: Vec<&str> = problems.as_array().unwrap().iter().filter_map(|text| text.as_str()).collect();
    assert!(
        matches!(problems[..], [inner, lost] if inner.contains("inner.md: it is not a file") && lost.contains("lost.md: cannot be read")),
        "{problems:?}"
    );
    write(elsewhere.path(), "linked", "- return: 22");
    assert!(matches!(bench.events.recv().await, Some(DeviceEvent::Changed(_))));
    assert_eq!(bench.call("linked", json!({})).await.unwrap().structured, Some(json!(22)));
}

#[tokio::test]
async fn a_proposed_file_is_checked_and_replaces_none() {
    let mut bench = Bench::with(&[]).await;
    let file = GOOD_NIGHT.replace("good_night", "better_night");
    let save = |name: &str, file: &str| bench.call("save_routine", json!({"name": name, "file": file}));
    for wrong in ["../better_night", "", "Better", "better_night.md"] {
        let refused = save(wrong, &file).await.unwrap_err();
        assert!(refused.message.contains("small letters"), "{wrong}: {refused:?}");
    }
    assert!(save("get_run", &file).await.unwrap_err().message.contains("choose another name"));
    assert!(save("other", &file).await.unwrap_err().message.contains("the file is no routine"));
    save("better_night", &file).await.unwrap();
    let again = save("better_night", &file).await.unwrap_err();
    assert!(again.message.contains("already"), "{again:?}");
    assert_eq!(std::fs::read_to_string(bench.folder.path().join("better_night.md")).unwrap(), file);
    assert!(matches!(bench.events.recv().await, Some(DeviceEvent::Changed(_))));
    assert!(bench.device.tools().iter().any(|tool| tool.name == "better_night"));
}
