//! `sinew backup` and `sinew restore`, with a gateway that runs and without.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::gateway::{CommandOutput, TestGateway, run, sinew};

fn on(state: &Path, arguments: &[&str]) -> CommandOutput {
    run(sinew(state).args(arguments))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// Restores a file on a directory, starts a gateway there and gives it.
fn restored(file: &Path) -> TestGateway {
    let state = TempDir::new().expect("a folder");
    on(state.path(), &["restore", text(file)]).ok();
    TestGateway::open("serve", state, &[])
}

#[test]
fn a_backup_of_a_running_gateway_brings_everything_back_elsewhere() {
    let mut gateway = TestGateway::serve();
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("sinew.tar");
    let token = gateway.run(&["token", "new", "--client", "tablet"]).ok().out.trim().to_owned();
    gateway.run(&["boards"]).ok();
    let out = gateway.run(&["backup", text(&file)]).ok().out;
    assert!(out.contains("sinew.tar has the backup of"), "{out}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    }
    assert!(!gateway.state.path().join("backup.new").exists());
    // Made after the backup.
    let later = gateway.run(&["token", "new", "--client", "later"]).ok().out.trim().to_owned();
    let again = gateway.run(&["backup", text(&file)]);
    assert!(again.code == 2 && again.err.contains("exists already"), "{}", again.err);
    let nowhere = gateway.run(&["backup", text(&folder.path().join("none/sinew.tar"))]);
    let says_why = nowhere.err.contains("was not written") && !nowhere.err.contains("cannot be read");
    assert!(nowhere.code != 0 && says_why, "{}", nowhere.err);
    assert_eq!(gateway.http("POST", "/api/v1/backup", Some(&token), "").0, 403, "only for administrators");
    let refused = gateway.run(&["restore", text(&file)]);
    assert!(refused.code == 75 && refused.err.contains("in use"), "{}", refused.err);

    let other = restored(&file);
    assert_eq!(other.own_token(), gateway.own_token());
    assert_eq!(other.http("GET", "/api/v1/devices", Some(&token), "").0, 200);
    assert_eq!(other.http("GET", "/api/v1/devices", Some(&later), "").0, 401);
    other.run(&["audit", "verify"]).ok();

    // The same directory, stopped: the files that were there are kept.
    gateway.process.kill();
    let _ = gateway.process.child.wait();
    let state = gateway.state.path();
    let done = on(state, &["restore", text(&file), "--json"]).ok().json();
    let aside = Path::new(done["aside"].as_str().expect("a folder")).to_owned();
    assert!(aside.join("gateway.db").exists() && state.join("gateway.db").exists());
    assert!(!state.join("restore.swap").exists() && !state.join("restore.new").exists());
    let second = folder.path().join("second.tar");
    let out = on(state, &["backup", text(&second), "--json"]).ok().json();
    assert!(out["files"].as_u64().is_some_and(|files| files >= 4), "{out}");
    let third = restored(&second);
    assert_eq!(third.http("GET", "/api/v1/devices", Some(&token), "").0, 200);
}

#[test]
fn what_is_not_a_whole_backup_changes_nothing() {
    let mut gateway = TestGateway::serve();
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("sinew.tar");
    gateway.run(&["backup", text(&file)]).ok();
    gateway.process.kill();
    let _ = gateway.process.child.wait();
    let state = gateway.state.path();
    let whole = fs::read(&file).expect("a file");
    let list = |name: &str| -> Vec<String> {
        let names = fs::read_dir(name).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let before = list(text(state));
    let database = fs::read(state.join("gateway.db")).expect("a database");
    let changed = |change: fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        bytes
    };
    for (bytes, why) in [
        (changed(|bytes| bytes.truncate(bytes.len() - 600)), "its end is missing"),
        (changed(|bytes| bytes.extend([0; 512])), "something was added"),
        (changed(|bytes| bytes[4_000] ^= 1), "damaged"),
        (b"hello".to_vec(), "not a backup of Sinew"),
        (Vec::new(), "not a backup of Sinew"),
    ] {
        let wrong = folder.path().join("wrong.tar");
        fs::write(&wrong, bytes).expect("written");
        let refused = on(state, &["restore", text(&wrong)]);
        assert!(refused.code == 74 && refused.err.contains(why), "{why}: {}", refused.err);
        assert_eq!(list(text(state)), before);
        assert_eq!(fs::read(state.join("gateway.db")).expect("a database"), database);
    }
    let refused = on(state, &["restore", text(&folder.path().join("nothing.tar"))]);
    assert_eq!(refused.code, 74, "{}", refused.err);
    // A gateway does not start between two states.
    fs::create_dir(state.join("restore.swap")).expect("a folder");
    let refused = on(state, &["serve", "--listen", "127.0.0.1:0", "--devices", "127.0.0.1:0", "--mqtt", "off"]);
    assert!(refused.err.contains("a restore on") && refused.err.contains("was interrupted"), "{}", refused.err);
    let done = on(state, &["restore", text(&file), "--json"]).ok().json();
    assert_ne!(done["aside"], Value::Null);
    assert!(!state.join("restore.swap").exists());
    let nowhere = TempDir::new().expect("a folder");
    let refused = on(nowhere.path(), &["backup", text(&folder.path().join("none.tar"))]);
    assert!(refused.code == 69 && !folder.path().join("none.tar").exists(), "{}", refused.err);
}
