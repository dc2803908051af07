//! The benchmark runs and prints every figure; what the figures are is not a matter of tests.

use crate::house::{run, sinew};

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
    ] {
        assert!(figures["figures"][key]["value"].is_number(), "{key} is missing in {figures:#}");
    }
}
