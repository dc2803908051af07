//! A board of one's own, outside this repository, as `docs/sdk.md` describes it.

use std::path::Path;
use std::process::Command;

use crate::gateway::{Process, TestGateway, run};

/// The first code block of a language on the page.
fn snippet(language: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sdk.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let (_, code) = page.split_once(&format!("```{language}\n")).expect("a snippet");
    code.split("```").next().expect("its end").to_owned()
}

#[test]
fn a_project_outside_the_repository_builds_and_its_board_is_called() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository");
    let folder = tempfile::tempdir().expect("a folder");
    let project = folder.path().join("my-board");
    std::fs::create_dir_all(project.join("src")).expect("made");
    let manifest = snippet("toml");
    assert!(manifest.contains("../sinew/"), "{manifest}");
    let manifest = manifest.replace("../sinew/", &format!("{}/", root.display()));
    std::fs::write(project.join("Cargo.toml"), manifest).expect("written");
    std::fs::write(project.join("src/main.rs"), snippet("rust,no_run")).expect("written");
    // With the versions that are already on this machine.
    std::fs::copy(root.join("Cargo.lock"), project.join("Cargo.lock")).expect("copied");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside-board");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--offline", "--quiet"]).current_dir(&project).env("CARGO_TARGET_DIR", &target);
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0");
    run(&mut cargo).ok();

    let gateway = TestGateway::serve();
    let token =
        gateway.json(&["token", "new", "--device", "02:00:00:5e:11:0a"])["token"].as_str().expect("a token").to_owned();
    let mut board = Command::new(target.join("debug/my-board"));
    let mut board = Process::start(board.arg(gateway.devices_url()).env("BOARD_TOKEN", token));
    board.until("connected to");
    let device = gateway.wait_for("02:00:00:5e:11:0a", "ready");
    let id = device["id"].as_str().expect("an id");
    gateway.run(&["call", id, "self.lamp.switch", "on=true", "--yes"]).ok();
    assert_eq!(gateway.run(&["call", id, "self.lamp.get"]).ok().out.trim(), "true");

    let mut stranger = Command::new(target.join("debug/my-board"));
    let refused = run(stranger.arg(gateway.devices_url()).env("BOARD_TOKEN", "wrong"));
    assert!(refused.code != 0 && refused.err.contains("refused the board"), "{refused:?}");
}
