//! Random output of a phone or an app is read without a panic.

use proptest::prelude::*;

use crate::app_function::{self, AppFunctionSupport};
use crate::{broadcast, packages, phone_file};
use sinew_phones::adb::shell::CommandOutput;

/// Parts that the parsers look for, so that random output gets past the first check.
const PARTS: &[&str] = &[
    "sinew-file ",
    "3\n",
    "none\n",
    "99999999999999999999\n",
    "Broadcast completed: result=",
    "-1",
    ", data=\"",
    "\"",
    "\", extras: Bundle[",
    "}]",
    "package:/data/app/a=b/base.apk=a.b",
    " versionCode:",
    "=",
    "a.b/.C\n",
    "{\"androidAppfunctionsReturnValue\": [",
    "[",
    "]}",
    "{}",
    "Error executing app function: ",
    "(code ",
    "1001",
    ").",
    "Timed out",
    "é🦀",
    "\r\n",
];

proptest! {
    #[test]
    fn random_output_never_panics(parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..12), count in 0usize..5) {
        let text = parts.concat();
        let _ = packages::parse(&text);
        let _ = packages::parse_query(&text);
        let _ = AppFunctionSupport::parse(&text);
        let _ = app_function::parse(&text, None);
        prop_assert_eq!(phone_file::split(text.as_bytes(), count).len(), count);
        let _ = broadcast::parse(&CommandOutput { stdout: text.into_bytes(), ..CommandOutput::default() });
    }
}
