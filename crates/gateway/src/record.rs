//! The audit record of one call: opened when the call starts, closed exactly once, whatever happens.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use sha2::{Digest as _, Sha256};
use sinew_tool::outcome::ResourceBody;
use sinew_tool::text::{clean_line, cut};
use sinew_tool::{Args, Content, ErrorKind, Outcome, ToolError, Value};

use crate::principal::Principal;
use crate::registry::now;
use crate::shared::{AuditLog, AuditRow};
use crate::snapshot::Holder;

/// The arguments that are kept of a call; enough to see what was asked, and no place for files.
const MAX_ARGS: usize = 1 << 10;

pub(crate) struct CallRecord {
    audit: Arc<dyn AuditLog>,
    started: Instant,
    /// `None` once the record is closed.
    row: Option<AuditRow>,
}

impl CallRecord {
    pub(crate) fn open(
        audit: Arc<dyn AuditLog>,
        who: &Principal,
        door: &'static str,
        name: &str,
        args: &Args,
    ) -> CallRecord {
        let mut tee = Tee { hash: Sha256::new(), head: Vec::new() };
        // Neither half of the tee fails.
        let _ = serde_json::to_writer(&mut tee, args);
        let head = String::from_utf8_lossy(&tee.head);
        let row = AuditRow {
            at: now(),
            principal: who.name.clone(),
            door,
            device: None,
            tool: None,
            name: clean_line(name, 128),
            args_digest: tee.hash.finalize().into(),
            args: cut(&head, MAX_ARGS).to_owned(),
            outcome: ErrorKind::Cancelled.row().error_type,
            duration_us: 0,
            bytes: 0,
            is_sent: false,
        };
        CallRecord { audit, started: Instant::now(), row: Some(row) }
    }

    /// Notes the device and tool of the call.
    pub(crate) fn aim(&mut self, holder: Holder<'_>) {
        if let Some(row) = &mut self.row {
            row.device = Some(holder.entry.id.clone());
            row.tool = Some(holder.offered.tool.name.clone());
        }
    }

    /// Notes that the call is sent to the device from here on.
    pub(crate) fn note_sent(&mut self) {
        if let Some(row) = &mut self.row {
            row.is_sent = true;
        }
    }

    /// Closes the record and waits until it is committed: only then may the answer leave.
    pub(crate) async fn close(mut self, result: Result<Outcome, ToolError>) -> Result<Outcome, ToolError> {
        let Some(mut row) = self.row.take() else { return result };
        row.duration_us = self.elapsed();
        match &result {
            Ok(outcome) => {
                row.outcome = "ok";
                row.bytes = i64::try_from(weigh(outcome)).unwrap_or(i64::MAX);
            }
            Err(error) => row.outcome = error.kind.row().error_type,
        }
        match self.audit.record(row).await {
            Ok(()) => result,
            // A call that cannot be recorded is not reported as done.
            Err(error) => result.and(Err(error)),
        }
    }

    fn elapsed(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        let duration_us = self.elapsed();
        if let Some(row) = self.row.take() {
            self.audit.record_unawaited(AuditRow { duration_us, ..row });
        }
    }
}

/// The size of an answer in bytes, near enough for limits and statistics.
pub(crate) fn weigh(outcome: &Outcome) -> usize {
    let content = outcome.content.iter().map(|item| match item {
        Content::Text(text) => text.len(),
        Content::Image { data, .. } | Content::Audio { data, .. } => data.len(),
        Content::Resource { uri, body: ResourceBody::Text(body) | ResourceBody::Blob(body), .. } => {
            uri.len() + body.len()
        }
        Content::Link { uri, name, .. } => uri.len() + name.len(),
    });
    let structured = outcome.structured.as_ref().map_or(0, weigh_value);
    content.sum::<usize>() + structured + outcome.meta.values().map(weigh_value).sum::<usize>()
}

pub(crate) fn weigh_value(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| weigh_value(item) + 1).sum::<usize>(),
        Value::Object(members) => {
            2 + members.iter().map(|(key, value)| key.len() + 4 + weigh_value(value)).sum::<usize>()
        }
        _ => 5,
    }
}

/// Hashes everything and keeps the beginning.
struct Tee {
    hash: Sha256,
    head: Vec<u8>,
}

impl Write for Tee {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hash.update(bytes);
        // A few bytes more than are kept, so that the cut falls between characters.
        let room = (MAX_ARGS + 4).saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
