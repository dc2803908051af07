//! The benchmark runs and prints every figure; what the figures are is not a matter of tests.

use crate::gateway::{run, sinew};

#[test]
fn a_quick_benchmark_prints_every_figure() {
    let state = tempfile::tempdir().expect("a folder");
    let figures = run(sinew(state.path()).args(["bench", "--quick", "--output", "json"])).ok().json();
    for key in [
        "ready_ms",
        "idle_mb",
        "calls_per_second",
        "rmcp_per_second",
        "axum_per_second",
        "of_rmcp",
        "of_axum",
        "direct_p50_us",
        "added_p50_us",
        "added_p99_us",
        "board_kib",
        "list_bytes",
        "decision_us",
        "with_rules",
        "call_cpu_us",
        "chaining_us",
        "access_percent",
        "scan_delay_ms",
        "console_page_ms",
        "console_first_load_kb",
        "consoles_percent",
        "verify_s",
        "phone_tap_us",
        "phone_screen_ms",
        "phone_screen_bytes",
        "phone_find_ms",
        "phone_jpeg_ms",
        "phone_encode_ms",
        "phones_parallel",
        "phone_reference_bytes",
        "phone_list_bytes",
        "phone_compact_bytes",
        "servers_cpu_percent",
        "server_kib",
        "http_added_us",
        "line_added_us",
        "thing_added_us",
        "hostile_rate_share",
        "hostile_p99_times",
        "hostile_mb",
    ] {
        assert!(figures["figures"][key]["value"].is_number(), "{key} is missing in {figures:#}");
    }
    assert_eq!(figures["figures"]["hostile_failures"]["value"], 0.0, "{figures:#}");
    assert!(figures["profile"].as_str().is_some_and(|profile| !profile.is_empty()), "{figures:#}");
    let adb = figures["skipped"].to_string().contains("adb is not there");
    for key in ["apps_cold_ms", "apps_warm_ms", "apps_again_ms"] {
        assert!(adb || figures["figures"][key]["value"].is_number(), "{key} is missing in {figures:#}");
    }
    let compared = figures["figures"]["of_turbo"]["value"].is_number();
    assert!(compared || figures["skipped"].to_string().contains("libjpeg-turbo"), "{figures:#}");
}

#[test]
fn one_stage_is_measured_alone() {
    let state = tempfile::tempdir().expect("a folder");
    let only = ["bench", "--quick", "--only", "open-consoles", "--only", "console-load", "--output", "json"];
    let figures = run(sinew(state.path()).args(only)).ok().json();
    let keys: Vec<&String> = figures["figures"].as_object().expect("figures").keys().collect();
    assert_eq!(keys, ["console_first_load_kb", "consoles_percent"], "in the usual order");
}

#[test]
fn an_unknown_stage_is_refused_with_those_there_are() {
    let state = tempfile::tempdir().expect("a folder");
    let refused = run(sinew(state.path()).args(["bench", "--only", "weight"]));
    assert_eq!(refused.code, 2);
    let help = run(sinew(state.path()).args(["bench", "--help"])).ok();
    for name in sinew_bench::Stage::USUAL.map(sinew_bench::Stage::name) {
        assert!(refused.err.contains(name) && help.out.contains(name), "{name}: {}", refused.err);
    }
}

#[test]
fn a_small_crowd_behind_a_broker_is_measured() {
    let state = tempfile::tempdir().expect("a folder");
    let arguments = ["bench", "--quick", "--crowd=200", "--output", "json"];
    let figures = run(sinew(state.path()).args(arguments)).ok().json();
    for key in ["crowd_board_kib", "crowd_join_per_second", "crowd_calls_per_second", "crowd_calls_p99_ms"] {
        assert!(figures["figures"][key]["value"].is_number(), "{key} is missing in {figures:#}");
    }
}

#[test]
fn a_small_fleet_is_measured_in_every_respect() {
    let state = tempfile::tempdir().expect("a folder");
    let arguments = ["bench", "--quick", "--fleet=30", "--output", "json"];
    let figures = run(sinew(state.path()).args(arguments)).ok().json();
    for key in [
        "fleet_join_per_second",
        "fleet_board_kib",
        "fleet_call_p50_ms",
        "fleet_call_p99_ms",
        "fleet_gone_s",
        "fleet_back_s",
        "mqtt_calls_per_second",
        "mqtt_calls_p99_ms",
    ] {
        assert!(figures["figures"][key]["value"].is_number(), "{key} is missing in {figures:#}");
    }
    for (key, value) in [("fleet_listed", 30.0), ("fleet_call_failures", 0.0), ("fleet_others_failures", 0.0)] {
        assert_eq!(figures["figures"][key]["value"], value, "{key} in {figures:#}");
    }
}

#[test]
fn chaos_loses_no_call_and_leaves_nothing_behind() {
    let state = tempfile::tempdir().expect("a folder");
    let report =
        run(sinew(state.path()).args(["bench", "--chaos", "8", "--seed", "7", "--output", "json"])).ok().json();
    let figure = |key: &str| report["figures"][key]["value"].as_f64().unwrap_or_else(|| panic!("{key} in {report:#}"));
    assert_eq!(figure("chaos_violations"), 0.0, "{report:#}");
    assert!(figure("chaos_succeeded") >= 1.0, "{report:#}");
    let kinds = ["gateway_kills", "broker_kills", "board_kills", "full_stores", "floods"];
    let has_adb = !report["skipped"].to_string().contains("phones in chaos");
    for kind in kinds.into_iter().chain(has_adb.then_some("adb_kills")) {
        assert!(figure(&format!("chaos_{kind}")) >= 1.0, "{kind} in {report:#}");
    }
}
