//! Tells the benchmark the name of the profile it is built with, which Cargo tells nobody but by the path of the output.

use std::path::Path;

fn main() {
    let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
    // target/PROFILE/build/PACKAGE/out
    let profile = Path::new(&folder).ancestors().nth(3).and_then(Path::file_name).unwrap_or_default();
    println!("cargo::rustc-env=SINEW_PROFILE={}", profile.display());
    println!("cargo::rerun-if-changed=build.rs");
}
