//! Batches: several messages in one, as the revision 2025-03-26 allows.

use std::collections::HashSet;

use rmcp::model::RequestId;
use serde_json::value::RawValue;

use crate::memory::MemoryShare;

/// Messages in one batch.
const MAX_MESSAGES: usize = 256;

/// The messages of a batch; `None` if the text is not one. An empty or too long batch is an error, as JSON-RPC says.
pub(crate) fn split(text: &[u8]) -> Option<Result<Vec<&[u8]>, String>> {
    if text.trim_ascii_start().first() != Some(&b'[') {
        return None;
    }
    let messages: Vec<&RawValue> = serde_json::from_slice(text).ok()?;
    Some(match messages.len() {
        0 => Err("a batch must have at least one message".to_owned()),
        1..=MAX_MESSAGES => Ok(messages.into_iter().map(|message| message.get().as_bytes()).collect()),
        count => Err(format!("a batch may have {MAX_MESSAGES} messages, not {count}; send several batches")),
    })
}

/// The answers to the requests of one batch, which are sent together.
pub(crate) struct BatchAnswers {
    waiting: HashSet<RequestId>,
    answers: Vec<String>,
    /// The memory of the answers.
    share: MemoryShare,
}

impl BatchAnswers {
    pub(crate) fn new(share: MemoryShare) -> BatchAnswers {
        BatchAnswers { waiting: HashSet::new(), answers: Vec::new(), share }
    }

    pub(crate) fn expect(&mut self, id: RequestId) {
        self.waiting.insert(id);
    }

    /// Whether the request with this id belongs to the batch and is not answered yet.
    pub(crate) fn waits_for(&self, id: &RequestId) -> bool {
        self.waiting.contains(id)
    }

    /// An answer to no request, as to a message that could not be read.
    pub(crate) fn push(&mut self, answer: String) {
        self.share.grow(answer.len());
        self.answers.push(answer);
    }

    /// An answer whose memory is in `share`.
    pub(crate) fn answer(&mut self, id: &RequestId, answer: String, share: MemoryShare) {
        self.waiting.remove(id);
        self.share.absorb(share);
        self.answers.push(answer);
    }

    /// A cancelled request gets no answer.
    pub(crate) fn cancel(&mut self, id: &RequestId) {
        self.waiting.remove(id);
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The answers as one message, and its memory; `None` if the batch had only notifications.
    pub(crate) fn into_message(self) -> Option<(Vec<u8>, MemoryShare)> {
        (!self.answers.is_empty()).then(|| (format!("[{}]", self.answers.join(",")).into_bytes(), self.share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_split_into_its_messages() {
        assert_eq!(split(b"{}"), None);
        assert_eq!(split(b"[1,"), None);
        assert!(split(b" []").is_some_and(|batch| batch.is_err()));
        assert_eq!(split(br#" [{"id":1}, 5 ]"#), Some(Ok(vec![&br#"{"id":1}"#[..], b"5"])));
        let long = format!("[{}1]", "1,".repeat(MAX_MESSAGES));
        assert!(split(long.as_bytes()).is_some_and(|batch| batch.is_err()));
    }
}
