//! Starting: the page, the ports, the owner of the state directory.

use serde_json::Value;

use crate::gateway::{PORTS, Process, TestGateway, run, sinew};

#[test]
fn the_demo_prints_everything_a_newcomer_needs() {
    let state = tempfile::tempdir().expect("a folder");
    let mut demo = Process::start(sinew(state.path()).arg("demo").args(PORTS));
    let page = demo.until("Ctrl-C");
    let own = std::fs::read_to_string(state.path().join("demo/token")).expect("a token");
    assert!(!page.contains(own.trim()), "the gateway's own token is nobody's to read");
    for part in [
        "/mcp",
        "snw_",
        "board-ddee01",
        "board-ddee03 +1",
        "kiln",
        "virtual-phone",
        " call virtual-phone get_screen ",
        "set_volume",
        "claude mcp add sinew -- ",
        " connect",
        " call board-ddee01 ",
    ] {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
    assert!(!page.contains('\x1b'), "no colour where the output is no terminal");
}

#[test]
fn the_sample_calls_of_the_page_work_as_they_stand() {
    let state = tempfile::tempdir().expect("a folder");
    let mut demo = Process::start(sinew(state.path()).args(["demo", "--verbose"]).args(PORTS));
    let page = demo.until("Ctrl-C");
    for part in ["\"mcpServers\"", "\"stdio\"", "Bearer snw_", "claude_desktop_config.json", "take_photo"] {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
    let calls: Vec<&str> = page.lines().map(str::trim).filter(|line| line.contains(" call ")).collect();
    assert_eq!(calls.len(), 5, "{page}");
    for call in calls {
        let output = std::process::Command::new("sh")
            .args(["-c", call])
            .current_dir(state.path())
            .env("SINEW_STATE", "/nonexistent")
            .output()
            .expect("a shell");
        assert!(output.status.success(), "{call}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_second_gateway_on_the_same_state_says_who_has_it() {
    let gateway = TestGateway::serve();
    let second = run(sinew(gateway.state.path()).arg("serve").args(PORTS));
    assert_eq!(second.code, 75, "{second:?}");
    assert!(second.err.contains(&gateway.process.child.id().to_string()), "{}", second.err);
    assert!(second.err.contains(gateway.url()), "{}", second.err);
}

#[test]
fn a_taken_port_is_named_with_its_holder_and_the_remedy() {
    let gateway = TestGateway::serve();
    let state = tempfile::tempdir().expect("a folder");
    let address = gateway.url().trim_start_matches("http://");
    let second = run(sinew(state.path()).args(["serve", "--devices", "127.0.0.1:0", "--listen", address]));
    assert_eq!(second.code, 69, "{second:?}");
    assert!(second.err.contains(address) && second.err.contains("--listen"), "{}", second.err);
    // Nothing is left behind that would keep the next start away.
    let third = TestGateway::open("serve", state, &[]);
    assert_eq!(third.json(&["devices"])["devices"], Value::Array(Vec::new()));
}

#[test]
fn impossible_addresses_are_refused_with_an_example() {
    let state = tempfile::tempdir().expect("a folder");
    let nameless = run(sinew(state.path()).args(["serve", "--listen", "somewhere:19320"]));
    assert_eq!(nameless.code, 2, "{nameless:?}");
    assert!(nameless.err.contains("127.0.0.1:7300"), "{}", nameless.err);
    let same = "127.0.0.1:19320";
    let twins = run(sinew(state.path()).args(["serve", "--listen", same, "--devices", same]));
    assert_eq!(twins.code, 78, "{twins:?}");
    assert!(twins.err.contains("--listen and --devices are both"), "{}", twins.err);
}

#[test]
fn listening_beyond_loopback_without_tls_is_refused_with_the_ways_out() {
    let state = tempfile::tempdir().expect("a folder");
    let refused = run(sinew(state.path()).args(["serve", "--listen", "0.0.0.0:0", "--devices", "127.0.0.1:0"]));
    assert_eq!(refused.code, 78, "{refused:?}");
    assert!(refused.err.contains("--tls") && refused.err.contains("--insecure-lan"), "{}", refused.err);
}

#[test]
fn a_listener_without_tls_is_warned_of_and_shown_as_others_reach_it() {
    let state = tempfile::tempdir().expect("a folder");
    let listeners = ["--listen", "0.0.0.0:0", "--devices", "0.0.0.0:0", "--mqtt", "off", "--insecure-lan"];
    let mut gateway = Process::start(sinew(state.path()).args(["serve", "--advertise", "192.0.2.7"]).args(listeners));
    let page = gateway.until("Ctrl-C");
    assert!(page.contains("tokens of clients and boards are not encrypted"), "{page}");
    assert!(page.contains("http://192.0.2.7:") && page.contains("ws://192.0.2.7:"), "{page}");
}

#[test]
fn over_tls_the_client_commands_trust_the_gateways_own_certificate() {
    let gateway = TestGateway::open("demo", tempfile::tempdir().expect("a folder"), &["--tls", "--devices-tls"]);
    assert!(gateway.url().starts_with("https://") && gateway.devices_url().starts_with("wss://"));
    assert_eq!(gateway.json(&["devices"])["devices"].as_array().map(Vec::len), Some(10));
    // From elsewhere the fingerprint is needed, and a wrong one is refused.
    let away = tempfile::tempdir().expect("a folder");
    let token = gateway.own_token();
    let ask = |fingerprint: &[&str]| {
        run(sinew(away.path()).args(["devices", "--url", gateway.url(), "--token", &token]).args(fingerprint))
    };
    let unknown = ask(&[]);
    assert!(unknown.code == 69 && unknown.err.contains("--fingerprint"), "{unknown:?}");
    let certificate = gateway.state.path().join("demo/tls-cert.pem");
    let trusted = run(sinew(away.path())
        .args(["devices", "--url", gateway.url(), "--token", &token])
        .env("SSL_CERT_FILE", certificate));
    assert_eq!(trusted.code, 0, "an authority of the system vouches for it: {trusted:?}");
    let wrong = ask(&["--fingerprint", &"00".repeat(32)]);
    assert_eq!(wrong.code, 69);
    assert!(wrong.err.contains("does not have the fingerprint"), "{}", wrong.err);
    // The scheme is not guessed, neither here nor from elsewhere.
    let plain = gateway.url().replace("https://", "http://");
    let here = gateway.run(&["devices", "--url", &plain]);
    assert_eq!(here.code, 2, "{here:?}");
    assert!(here.err.contains(gateway.url()), "{}", here.err);
    let there = run(sinew(away.path()).args(["devices", "--url", &plain, "--token", &token]));
    assert_eq!(there.code, 69, "{there:?}");
    assert!(there.err.contains("use https://"), "{}", there.err);
    let fingerprint = gateway.page["fingerprint"].as_str().expect("a fingerprint");
    assert_eq!(ask(&["--fingerprint", fingerprint]).code, 0);
}

#[test]
fn a_configuration_file_is_read_and_a_wrong_key_is_named() {
    let state = tempfile::tempdir().expect("a folder");
    let file = state.path().join("sinew.toml");
    let serve = || {
        let mut command = sinew(state.path());
        command.args(["serve", "--config"]).arg(&file);
        command
    };
    std::fs::write(&file, "lissten = '127.0.0.1:0'").expect("written");
    let wrong = run(&mut serve());
    assert_eq!(wrong.code, 78, "{wrong:?}");
    assert!(wrong.err.contains("did you mean `listen`"), "{}", wrong.err);
    std::fs::write(&file, "listen = '127.0.0.1:0'\ndevices = '127.0.0.1:0'\nmqtt = '127.0.0.1:0'\ncall-timeout = 5")
        .expect("written");
    let mut right = Process::start(serve().args(["--output", "json"]));
    assert!(right.line().contains("\"url\""));
}

#[cfg(unix)]
#[test]
fn a_gateway_that_is_asked_to_stop_ends_in_order() {
    let mut gateway = TestGateway::demo();
    let pid = gateway.process.child.id().to_string();
    let sent = std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("kill exists");
    assert!(sent.success());
    let ended = gateway.process.child.wait().expect("it ends");
    assert_eq!(ended.code(), Some(0));
    assert_eq!(gateway.run(&["devices"]).code, 69, "nobody is there any more");
}

/// What people see in a terminal of 80 columns.
#[test]
fn no_page_is_wider_than_eighty_columns() {
    let gateway = TestGateway::demo();
    for words in [
        &["devices"][..],
        &["devices", "show", "board-ddee01"],
        &["tools"],
        &["tools", "virtual-phone"],
        &["tools", "show", "self.audio_speaker.set_volume"],
        &["phones", "apps"],
        &["status"],
        &["token", "list"],
    ] {
        let shown = run(sinew(gateway.state.path()).args(words).env("COLUMNS", "80")).ok();
        for line in shown.out.lines() {
            assert!(line.chars().count() <= 80, "{words:?} has a line of {}: {line}", line.chars().count());
        }
    }
}

#[test]
fn one_thing_is_shown_on_a_page_of_its_own() {
    let gateway = TestGateway::demo();
    let tool = gateway.run(&["tools", "show", "self_audio_speaker_set_volume"]).ok().out;
    assert!(tool.contains("integer 0–100") && tool.contains("sinew call board-ddee01"), "{tool}");
    let device = gateway.run(&["devices", "show", "board-ddee01"]).ok().out;
    assert!(device.contains("aa:bb:cc:dd:ee:01") && device.contains("self.audio_speaker.set_volume"), "{device}");
    let unknown = gateway.run(&["devices", "show", "board-ddee0"]);
    assert!(unknown.code == 66 && unknown.err.contains("did you mean `board-ddee0"), "{unknown:?}");
    let status = gateway.json(&["status"]);
    assert_eq!((&status["ready"], &status["devices_ready"]), (&Value::Bool(true), &Value::from(10)), "{status}");
    let list = gateway.run(&["devices"]).ok().out;
    assert!(list.contains("`sinew demo`") && list.contains(gateway.url()), "it says which gateway: {list}");
    let old = gateway.run(&["call", "board-ddee01", "self.audio_speaker.set_volume", "--json", "{\"volume\": 44}"]);
    assert!(old.code == 0 && old.err.contains("--args"), "{old:?}");
    assert!(gateway.run(&["devices", "--json"]).ok().json()["devices"].is_array());
}

#[test]
fn a_configuration_file_names_the_gateway_for_every_command() {
    let state = tempfile::tempdir().expect("a folder");
    let file = state.path().join("sinew.toml");
    std::fs::write(&file, "listen = 'localhost:0'\ndevices = '127.0.0.1:0'\nmqtt = 'off'\nstate = 'here'")
        .expect("written");
    let command = || {
        let mut command = sinew(state.path());
        command.env_remove("SINEW_STATE").env("SINEW_CONFIG", &file);
        command
    };
    let mut gateway = Process::start(command().args(["serve", "--json"]));
    assert!(gateway.line().contains("/here"));
    assert!(run(command().args(["devices"])).ok().out.contains("`sinew serve`"));
    assert!(run(command().args(["doctor"])).out.contains("`sinew serve`"));
}
