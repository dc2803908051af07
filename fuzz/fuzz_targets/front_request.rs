//! Arbitrary bytes as a message of a client. Whatever is said of them is a JSON-RPC error of bounded size.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinew_front::inspect;

fuzz_target!(|input: &[u8]| {
    for refusal in [Some(inspect::explain(input)), inspect::check_parameters(input)].into_iter().flatten() {
        let answer: serde_json::Value = serde_json::from_str(&refusal.to_text()).expect("an error is JSON");
        assert_eq!(answer["error"]["code"], refusal.code());
        assert_eq!(answer["error"]["data"]["status"], "failure");
        assert!(refusal.message.len() <= 2048, "{}", refusal.message.len());
    }
});
