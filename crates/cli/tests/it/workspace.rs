//! Rules of the architecture as tests: which crate may depend on which, and which crates may use a library.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which of our crates a crate uses.
const USES: &[(&str, &[&str])] = &[
    ("tool", &[]),
    ("api", &[]),
    ("schema", &[]),
    ("mqtt", &[]),
    ("wire", &["tool"]),
    ("spec", &["schema", "tool"]),
    ("policy", &["tool"]),
    ("gateway", &["tool", "spec", "schema", "policy", "steps"]),
    ("steps", &["tool"]),
    ("phones", &["tool", "steps"]),
    ("apps", &["tool", "phones"]),
    ("boards", &["tool", "wire", "mqtt"]),
    ("fetch", &[]),
    ("serial", &["boards", "tool"]),
    ("servers", &["fetch", "tool", "wire"]),
    ("routines", &["schema", "spec", "steps", "tool"]),
    ("things", &["boards", "fetch", "mqtt", "policy", "schema", "tool"]),
    ("signin", &["fetch", "gateway", "policy", "tool"]),
    ("front", &["tool", "api", "gateway", "policy", "signin"]),
    ("console", &["tool", "api", "gateway", "front", "policy", "signin"]),
    ("runner", &["wire", "mqtt"]),
    ("presence", &["tool"]),
    ("cluster", &["gateway", "policy", "presence", "tool"]),
    ("sim", &["tool", "wire", "mqtt", "phones", "apps", "presence", "runner"]),
    (
        "compose",
        &[
            "tool", "api", "spec", "gateway", "boards", "phones", "apps", "console", "front", "policy", "routines",
            "serial", "servers", "signin", "things", "fetch", "steps", "cluster",
        ],
    ),
    (
        "bench",
        &[
            "tool", "api", "wire", "policy", "gateway", "boards", "mqtt", "serial", "phones", "apps", "front", "sim",
            "routines",
        ],
    ),
    (
        "cli",
        &[
            "tool", "api", "spec", "gateway", "boards", "phones", "apps", "front", "serial", "sim", "compose", "bench",
            "policy", "routines", "steps",
        ],
    ),
];

/// Which crates may use a library, so that replacing it changes few of them.
const KEEPERS: &[(&str, &[&str])] = &[
    ("rmcp", &["front"]),
    ("axum", &["front", "console"]),
    ("maud", &["console"]),
    ("argon2", &["console"]),
    ("rcgen", &["front"]),
    ("ring", &["signin"]),
    // The benchmark calls boards without a gateway, as the measure of what the gateway adds.
    // The virtual voice server is a WebSocket server.
    ("tokio-tungstenite", &["boards", "runner", "front", "bench", "sim"]),
    ("mqtt-protocol-core", &["mqtt"]),
    ("async-nats", &["cluster"]),
    ("rustix", &["serial", "servers", "cli"]),
    ("rusqlite", &["gateway"]),
    // The command line changes configurations of AI clients, and the families read routines.
    ("saphyr-parser", &["routines", "cli"]),
    ("jsonc-parser", &["cli"]),
    ("toml_edit", &["cli"]),
    ("miniz_oxide", &["apps"]),
    ("roxmltree", &["apps"]),
    // Only for tests, as a second opinion.
    ("jsonschema", &[]),
    ("regex-syntax", &["schema"]),
    ("schemars", &["api"]),
    ("clap", &["cli"]),
    ("toml", &["compose"]),
];

/// Crates of the lowest layer have no sockets, no clock, no runtime, no randomness.
const LOWEST_LAYER: &[&str] = &["tool", "schema", "policy", "api", "wire", "spec", "steps", "presence"];
const NOT_IN_THE_LOWEST_LAYER: &[&str] = &["tokio", "hyper", "axum", "tracing", "getrandom", "rand", "jiff", "http"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The name of each crate and its dependencies; its tests may use more.
fn manifests() -> BTreeMap<String, BTreeSet<String>> {
    let folders = std::fs::read_dir(root().join("crates")).expect("there are crates");
    let read = |folder: PathBuf| {
        let text = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let manifest: toml::Table = text.parse().expect("a manifest is TOML");
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        let names = dependencies.into_iter().flat_map(|table| table.keys().cloned()).collect();
        (folder.file_name().expect("a name").to_string_lossy().into_owned(), names)
    };
    folders.map(|folder| read(folder.expect("a folder").path())).collect()
}

#[test]
fn crates_use_what_the_architecture_says_and_nothing_else() {
    for (name, dependencies) in manifests() {
        let (_, allowed) =
            USES.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("crate {name} is not in the table"));
        let used: BTreeSet<&str> =
            dependencies.iter().filter_map(|dependency| dependency.strip_prefix("sinew-")).collect();
        assert_eq!(used, allowed.iter().copied().collect(), "what {name} uses, and what the table says it uses");
    }
}

#[test]
fn every_library_is_used_only_by_the_crates_that_may() {
    for (name, dependencies) in manifests() {
        for (party, keepers) in KEEPERS {
            assert!(!dependencies.contains(*party) || keepers.contains(&name.as_str()), "{name} must not use {party}");
        }
    }
}

#[test]
fn the_lowest_layer_has_no_sockets_no_clock_and_no_chance() {
    let manifests = manifests();
    for name in LOWEST_LAYER {
        for party in NOT_IN_THE_LOWEST_LAYER {
            assert!(!manifests[*name].contains(*party), "{name} must not use {party}");
        }
    }
}

#[test]
fn every_source_file_begins_with_what_is_in_it() {
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a text");
                assert!(text.starts_with("//!"), "{} does not begin with `//!` and what is in it", path.display());
            }
        }
    }
}
