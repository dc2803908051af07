//! `sinew config`, and the environment that stands in for flags.

use crate::gateway::{run, sinew};

#[test]
fn a_file_is_checked_as_serve_would_read_it_and_nothing_is_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sinew.toml");
    let check = |text: &str| {
        std::fs::write(&file, text).expect("written");
        let state = folder.path().join("state");
        let brought = run(sinew(&state).args(["config", "check"]).arg(&file));
        assert!(!state.exists(), "nothing is made");
        brought
    };
    assert!(check("call-timeout = 5\n[clients]\npage-size = 50\n").ok().out.contains("is valid"));
    let wrong = check("[gateway]\ngrase = 1\n");
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.err.contains("sinew.toml:2: unknown key `grase`; did you mean `grace`?"), "{wrong:?}");
    let secret = check("[[brokers]]\nurl = 'mqtt://b'\nusername = 'u'\npassword-file = 'missing'\n");
    assert_eq!(secret.code, 2, "{secret:?}");
    assert!(secret.err.contains("sinew.toml:4: ") && secret.err.contains("missing"), "{secret:?}");
    let gone = run(sinew(folder.path()).args(["config", "check", "/nonexistent/sinew.toml"]));
    assert_eq!(gone.code, 2, "{gone:?}");
}

#[test]
fn the_schema_knows_every_table_and_marks_old_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let schema = run(sinew(folder.path()).args(["config", "schema"])).ok().json();
    let settings = &schema["properties"];
    assert_eq!(settings["gateway"]["properties"]["call-timeout"]["maximum"], 86_400);
    assert_eq!(settings["boards"]["properties"]["bootstrap"]["enum"][0], "mqtt");
    assert_eq!(settings["call-timeout"]["deprecated"], true);
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn an_empty_variable_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["SINEW_STATE", "SINEW_URL", "SINEW_TOKEN", "SINEW_FINGERPRINT"] {
        let brought = run(sinew(folder.path()).env(name, "").arg("devices"));
        assert_eq!(brought.code, 2, "{brought:?}");
        assert!(brought.err.contains(&format!("the environment variable {name} is empty")), "{brought:?}");
        let json = run(sinew(folder.path()).env(name, "").args(["devices", "--output", "json"])).json();
        assert!(json["error_message"].to_string().contains(name), "{json:#}");
    }
}
