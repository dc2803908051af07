//! What a file may say, what is refused, and where the refusal points.

use sinew_apps::offer::ProtocolNames;
use sinew_phones::Profile;

use super::*;
use crate::android::AgentSetting;

fn parse(text: &str) -> Result<GatewayConfig, ConfigProblem> {
    let config = GatewayConfig::parse(text)?;
    config.check()?;
    Ok(config)
}

/// What is said about a file, with its line.
fn refusal(text: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sinew.toml");
    std::fs::write(&path, text).expect("written");
    let flags = Overrides { state: Some(folder.path().join("state")), ..Overrides::default() };
    let error = GatewayConfig::settings(&path, &flags).expect_err(text);
    assert_eq!(error.kind, ComposeErrorKind::Config);
    error.message.strip_prefix(&folder.path().display().to_string()).expect("the file comes first").to_owned()
}

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(parse(""), Ok(GatewayConfig::default()));
}

#[test]
fn every_kind_of_mistake_names_its_line() {
    for (text, line, part) in [
        ("tls = true\nlisten = 7300", 2, "expected a string"),
        ("listen = 'localhost'", 1, "is not an address"),
        ("\n\nlisten = [", 3, ""),
        ("tls = true\ntls = false", 2, "duplicate"),
        ("\nlisen = 1", 2, "unknown key `lisen`; did you mean `listen`?"),
        ("tls_cert = 'x'", 1, "did you mean `tls-cert`?"),
        ("[gateway]\ngrase = 1", 2, "did you mean `grace`?"),
        ("[gateway]\ncolour = 1", 2, "the keys are call-timeout, progress-call-timeout"),
        ("[gateway]\ncall-timeout = 0", 2, "must be between 1 and 86400"),
        ("[gateway]\nmax-devices = 0", 2, "must be between 1"),
        ("[gateway]\nmax-devices = 1.5", 2, "whole number"),
        ("[gateway]\nmax-devices = -1", 2, "whole number"),
        ("max-devices = 0", 1, "must be between 1"),
        ("[gateway]\ncall-timeout = 700", 2, "max-call-timeout"),
        ("call-timeout = 700", 1, "max-call-timeout"),
        ("call-timeout = 5\n\n[gateway]\ncall-timeout = 6", 1, "`gateway.call-timeout`"),
        ("state = ''", 1, "empty"),
        ("[boards]\nadvertise = 'http://me'", 2, "is not a host"),
        ("[boards]\nadvertise = 'me:7301'", 2, "is not a host"),
        ("[boards]\nadvertise = '[fd00::1]'", 2, "is not a host"),
        ("advertise = 'my board'", 1, "is not a host"),
        ("advertise = '0.0.0.0'", 1, "no board reaches"),
        ("advertise = '192.168.1.500'", 1, "is not a host"),
        ("state = '~/sinew'", 1, "whole path"),
        ("[boards]\nbootstrap = 'pigeon'", 2, "is not one of `mqtt`, `websocket`, `both`"),
        ("[boards.limits]\nhandshakes = 0", 2, "must be between 1"),
        ("[boards]\nvision = { url = 'x' }", 2, ""),
        ("[clients]\nallowed-hosts = ['a', 'http://b']", 2, "`http://b`"),
        ("[clients]\nallowed-hosts = ['*']", 2, "`*`"),
        ("[clients]\nallowed-hosts = ['a.example:443']", 2, "write `a.example`"),
        ("[clients]\nallowed-origins = ['*']", 2, "`*`"),
        ("[clients]\nallowed-origins = ['https://a.example:443']", 2, "`https://a.example`"),
        ("[boards]\nvision = { url = 'http://127.0.0.1:1/v1', model = ' ' }", 2, "name the model"),
        ("[log]\nlevel = 'debgu'", 2, "`debgu`"),
        ("[log]\nformat = 'xml'", 2, "is not one of `text`, `json`"),
        ("[log]\nfile = 'x'", 2, "the keys are level, format"),
        ("log = 'debug'", 1, "table"),
        ("loop = 1", 1, "the keys are"),
        ("[clients]\nallowed-origins = ['b']", 2, "`b`"),
        ("[clients.limits]\nbody = 5", 2, "must be between 1024"),
        ("[oauth]", 1, "needs `public-url`"),
        ("[clients]\npublic-url = 'http://a.example'\n[oauth]", 2, "over TLS only"),
        ("[clients]\npublic-url = 'https://a.example'\n[oauth]\nkeys = 'https://b/'", 4, "is about another issuer"),
        ("[clients]\npublic-url = 'https://a.example'\n[oauth]\nissuer = 'http://b/'", 4, "expected https://"),
        ("[clients]\npublic-url = 'https://a.example'\n[oauth]\nissuer = 'https://b'", 4, "admits nobody"),
        ("[clients]\npublic-url = 'https://a.example'\n[console]\nenabled = false\n[oauth]", 5, "needs the console"),
        ("tls-cert = 'cert.pem'", 1, "needs `tls-key`"),
        ("\ntls-key = 'key.pem'", 2, "needs `tls-cert`"),
        ("\ntls-cert = 'none.pem'\ntls-key = 'none.pem'", 2, "none.pem"),
        ("listen = '0.0.0.0:7300'", 1, "`insecure-lan = true`"),
        ("devices = '127.0.0.1:7300'", 1, "`listen` and `devices` are both"),
        ("listen = '127.0.0.1:9'\ndevices = '127.0.0.1:9'", 2, "both 127.0.0.1:9"),
        ("[[endpoints]]\nurl = 'ws://a'\n\n[[endpoints]]\nurl = 'https://b'", 5, "ws://"),
        ("[[endpoints]]\nurl = 'ws://a'\n\n[[endpoints]]\nunfolded = true", 4, "needs a `url`"),
        ("[[brokers]]\nurl = 'mqtt://a'\n\n[[brokers]]\nurl = 'mqtt://a:1883'", 4, "twice"),
        ("[[brokers]]\nurl = 'mqtt://a'\nusername = 'u'\npassword-file = 'none'", 4, "none"),
        ("[[servers]]\nurl = 'http://a'\n\n[[servers]]\nname = 'b'", 4, "needs a `url` or a `command`"),
        ("[[servers]]\nurl = 'ftp://a'", 2, "http://HOST:PORT/PATH"),
        ("[[servers]]\nname = 'My Server'\nurl = 'http://a'", 2, "letters a-z"),
        ("[[servers]]\nurl = 'http://a'\n\n[[servers]]\nurl = 'http://a/b'", 4, "another `name`"),
        ("[[servers]]\nurl = 'http://a'\npoll = 0", 3, "between 1"),
        ("[phones]\nagent = 5", 2, "android/build"),
        ("[phones.apps]\ninterval = 0", 2, "must be between 1"),
        ("[spec.rules]\nnonsense = 'off'", 1, "nonsense"),
        ("[budgets]\nprinter = 5", 1, "DEVICE/TOOL"),
        ("[budgets]\n'a/b' = 0", 1, "between 1"),
    ] {
        let said = refusal(text);
        assert!(said.starts_with(&format!("/sinew.toml:{line}: ")), "line {line} of {text:?}: {said}");
        assert!(said.contains(part), "{part:?} of {text:?}: {said}");
    }
}

#[test]
fn keys_of_older_versions_mean_the_same_in_their_tables() {
    for (key, table) in MOVED {
        let key = key.replace('_', "-");
        let value = match key.as_str() {
            "call-timeout" | "grace" | "max-devices" => "7",
            "user-tools" | "spec-tools" => "true",
            "allowed-hosts" => "['a.example']",
            "allowed-origins" => "['https://a.example']",
            "bootstrap" => "'both'",
            "vision" => "{ url = 'http://127.0.0.1:1/v1/chat/completions', model = 'llava' }",
            _ => "'somewhere'",
        };
        let old = parse(&format!("{key} = {value}")).expect(&key);
        let new = parse(&format!("[{table}]\n{key} = {value}")).expect(&key);
        assert_eq!(old, new, "{key}");
        assert_ne!(old, GatewayConfig::default(), "{key}");
    }
}

#[test]
fn the_defaults_are_within_their_own_ranges_and_can_be_written_down() {
    let mut table = GatewayConfig::default().to_value();
    strip_nulls(&mut table);
    let text = toml::to_string(&table).expect("a table");
    assert_eq!(parse(&text), Ok(GatewayConfig::default()), "{text}");
}

fn strip_nulls(value: &mut sinew_tool::Value) {
    if let Some(table) = value.as_object_mut() {
        table.retain(|_, value| !value.is_null());
        table.values_mut().for_each(strip_nulls);
    }
}

#[test]
fn every_setting_is_explained() {
    fn look(fields: &[sinew_tool::settings::Field]) {
        for field in fields {
            assert!(field.about.ends_with(['.', '`']) && field.about.len() > 8, "{}: {:?}", field.name, field.about);
            look(&field.inside);
        }
    }
    look(&GatewayConfig::fields());
}

#[test]
fn files_are_relative_to_the_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sinew.toml");
    let text = "state = 'here'\n[gateway]\nlock = 'tools.lock'\n[phones]\nagent = 'built'\n[[brokers]]\nurl = 'mqtt://b'\nca = 'ca.pem'";
    std::fs::write(&path, text).expect("written");
    let config = GatewayConfig::load(&path).expect("valid");
    assert_eq!(config.state, Some(folder.path().join("here")));
    assert_eq!(config.gateway.lock, Some(folder.path().join("tools.lock")));
    assert_eq!(config.phones.agent, AgentSetting::Folder(folder.path().join("built")));
    assert_eq!(config.brokers[0].ca, Some(folder.path().join("ca.pem")));
}

#[test]
fn listening_beyond_loopback_needs_tls_or_the_word() {
    let join = |edit: fn(&mut Overrides)| {
        let mut flags = Overrides { listen: "0.0.0.0:7300".parse().ok(), ..Overrides::default() };
        flags.state = Some("/tmp/sinew-none".into());
        edit(&mut flags);
        GatewayConfig::default().with(&flags)
    };
    let refused = join(|_| ()).expect_err("must be refused");
    assert_eq!(refused.kind, ComposeErrorKind::Config);
    assert!(refused.message.contains("--tls") && refused.message.contains("--insecure-lan"));
    assert!(join(|flags| flags.tls = true).is_ok());
    assert!(join(|flags| flags.insecure_lan = true).is_ok());
    let boards = join(|flags| {
        flags.tls = true;
        flags.devices = "0.0.0.0:7301".parse().ok();
    });
    assert!(boards.expect_err("must be refused").message.contains("--devices-tls"));
}

#[test]
fn endpoints_are_addresses_of_brokers_and_their_tokens_stay_hidden() {
    let file = "[[endpoints]]\nurl = 'wss://b/?token=secret'\n[[endpoints]]\nurl = 'ws://c'\nunfolded = true";
    let addresses = parse(file).expect("valid").addresses().expect("addresses");
    assert_eq!(format!("{addresses:?}"), "[(wss://b, Folded), (ws://c, Unfolded)]");
    let refused = parse("endpoints = [{ url = 'https://b/?token=secret' }]").expect_err("no WebSocket");
    assert!(refused.message.contains("ws://") && !refused.message.contains("secret"), "{refused:?}");
}

#[test]
fn phones_are_followed_unless_told_otherwise() {
    let profile = |text: &str| parse(text).map(|config| config.phones.offer(Path::new("/nonexistent")));
    let profile = |text: &str| profile(text).map(|offer| offer.map(|offer| offer.profile));
    assert_eq!(profile(""), Ok(Some(Profile::Full)));
    assert_eq!(profile("[phones]\nprofile = 'compact'"), Ok(Some(Profile::Compact)));
    assert_eq!(profile("phones = { enabled = false }"), Ok(None));
    let agent = |text: &str| parse(text).map(|config| config.phones.agent);
    assert_eq!(agent("[phones]\nagent = false"), Ok(AgentSetting::Switch(false)));
    assert_eq!(agent("[phones]\nagent = 'built'"), Ok(AgentSetting::Folder("built".into())));
    assert!(agent("[phones]\nagent = 5").is_err_and(|why| why.message.contains("android/build")));
    let apps = |text: &str| {
        let settings = parse(text).map(|config| config.phones.apps.settings(Path::new("/nonexistent")));
        settings.map(|settings| settings.map(|apps| (apps.interval.as_secs(), apps.names.advertise)))
    };
    assert_eq!(apps(""), Ok(Some((15, ProtocolNames::default().advertise))));
    assert_eq!(apps("[phones.apps]\nadvertise = 'x'\ninterval = 3"), Ok(Some((3, "x".to_owned()))));
    assert_eq!(apps("[phones.apps]\nenabled = false"), Ok(None));
    assert!(apps("[phones.apps]\ninterval = 0").is_err_and(|why| why.message.contains("interval")));
    let refused = profile("[phones]\nprofil = 'compact'").expect_err("misspelt");
    assert_eq!(refused.message, "unknown key `profil`; did you mean `profile`?");
}

#[test]
fn a_flag_wins_over_the_file() {
    let config = parse("listen = '127.0.0.1:1'\ndevices = '127.0.0.1:2'").expect("valid");
    let mut flags = Overrides { listen: "127.0.0.1:9".parse().ok(), ..Overrides::default() };
    flags.state = Some("/tmp/sinew-none".into());
    let settings = config.with(&flags).expect("valid");
    assert_eq!((settings.listen.port(), settings.devices.port()), (9, 2));
}
