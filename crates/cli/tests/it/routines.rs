//! Routines through the real program: the demo's, one's own, and what goes wrong.

use serde_json::json;

use crate::gateway::{TestGateway, run, sinew};

#[test]
fn the_routines_of_the_demo_act_on_boards_and_the_phone() {
    let gateway = TestGateway::demo();
    let page = gateway.json(&["routine", "run", "good_night", "volume=7"]);
    assert_eq!(page["structuredContent"], json!({"volume": 7}), "{page}");
    let status = gateway.run(&["call", "board-ddee01", "self.get_device_status"]).ok().out;
    assert!(status.contains("\"volume\":7"), "{status}");
    let note = gateway.run(&["call", "virtual-phone", "get_screen"]).ok().out;
    assert!(note.contains("the volume is 7"), "{note}");
    // One record for each step and each routine.
    let audit = gateway.json(&["audit", "--limit", "40"]);
    let names: Vec<&str> =
        audit["records"].as_array().into_iter().flatten().filter_map(|record| record["name"].as_str()).collect();
    for name in ["good_night", "self.set_relay", "write_note", "set_text"] {
        assert!(names.contains(&name), "{name} is missing in {names:?}");
    }
    let found = gateway.json(&["routine", "run", "find_contact", "name=Mary Hopper"]);
    assert!(found["structuredContent"]["page"].as_str().is_some_and(|page| page.contains("Mary Hopper")), "{found}");
}

#[test]
fn a_routine_of_ones_own_is_written_checked_and_tried() {
    let gateway = TestGateway::demo();
    let folder = gateway.state.path().join("demo/routines");
    let folder = folder.display().to_string();
    gateway.run(&["routine", "new", "status", "--folder", &folder]).ok();
    let file = format!("{folder}/status.md");
    let again = gateway.run(&["routine", "new", "status", "--folder", &folder]);
    assert!(again.code != 0 && again.err.contains("is there already"), "{again:?}");
    let blank = gateway.run(&["routine", "lint", &file]);
    assert!(blank.code == 1 && blank.out.contains("to be filled in"), "{blank:?}");
    let text = std::fs::read_to_string(&file).expect("a file").replace("{{", "").replace("}}", "");
    std::fs::write(&file, text.replace("device: kitchen", "devise: kitchen")).expect("written");
    let wrong = gateway.run(&["routine", "lint", &file]);
    assert!(wrong.code == 1 && wrong.out.contains("has no `devise`") && wrong.out.contains("line "), "{wrong:?}");
    std::fs::write(&file, text.replace("device: kitchen", "device: board-ddee01")).expect("written");
    gateway.run(&["routine", "lint", &file]).ok();
    let explained = gateway.json(&["routine", "explain", &file]);
    assert_eq!(explained["calls"][0]["verdict"], "allow", "{explained}");
    let ends = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let answer = loop {
        let answer = gateway.run(&["routine", "run", "status", "--output", "json"]);
        if answer.code == 0 || std::time::Instant::now() > ends {
            break answer.ok();
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    };
    assert!(answer.json().to_string().contains("audio_speaker"), "{answer:?}");
}

#[test]
fn a_name_that_is_no_name_is_refused() {
    let state = tempfile::tempdir().expect("a folder");
    let refused = run(sinew(state.path()).args(["routine", "new", "../evil"]));
    assert!(refused.code == 2 && refused.err.contains("small letters"), "{refused:?}");
}
