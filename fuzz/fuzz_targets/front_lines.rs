//! Arbitrary bytes as the lines of a client on pipes. Every line that is no message is answered with one
//! line of JSON, and the end of the input ends the reading.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rmcp::model::{ErrorData, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use sinew_front::line_transport::LineTransport;
use sinew_front::memory::MemoryBudget;
use tokio::io::AsyncReadExt;

fuzz_target!(|input: &[u8]| {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else { return };
    runtime.block_on(async {
        let count = input.iter().filter(|byte| **byte == b'\n').count();
        let (writer, mut answers) = tokio::io::duplex((count + 1) * 4096);
        let [bodies, waiting] = [1 << 20; 2].map(MemoryBudget::new);
        let mut lines = LineTransport::new(std::io::Cursor::new(input.to_vec()), writer, 512, bodies, waiting);
        let mut messages = 0;
        while let Some(message) = lines.receive().await {
            match message {
                // Only so many requests may be open at once.
                JsonRpcMessage::Request(request) => {
                    let fault = ErrorData::internal_error("not served", None);
                    drop(lines.send(ServerJsonRpcMessage::error(fault, Some(request.id))).await);
                }
                _ => messages += 1,
            }
        }
        drop(lines);
        let mut text = String::new();
        answers.read_to_string(&mut text).await.expect("answers are text");
        for answer in text.lines() {
            let answer: Value = serde_json::from_str(answer).expect("an answer is JSON");
            assert!(answer["error"]["code"].is_i64());
        }
        assert!(messages + text.lines().count() <= count);
    });
});
