//! Repeats work whose instructions are counted, for `scripts/instructions`: `instructions call 500`.
//!
//! Prints the profile that it was built with.

use std::process::ExitCode;

use sinew_bench::PROFILE;
use sinew_bench::instructions::Work;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let work = |name: &str| Work::ALL.into_iter().find(|work| work.name() == name);
    let wanted = match arguments.as_slice() {
        [name, count] => work(name).zip(count.parse().ok()),
        _ => None,
    };
    let Some((work, count)) = wanted else {
        eprintln!("usage: instructions {} COUNT", Work::ALL.map(Work::name).join("|"));
        return ExitCode::from(2);
    };
    println!("{PROFILE}");
    match work.repeat(count) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
