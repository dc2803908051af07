//! Audit records: of a call, opened when it starts and closed exactly once, whatever happens; and of what people and
//! devices change.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use sinew_tool::outcome::ResourceBody;
use sinew_tool::text::{clean_line, cut};
use sinew_tool::{Args, Content, DeviceId, ErrorKind, FamilyName, Outcome, ToolError, TraceParent, Value};
use tracing::Span;
use tracing::field::Empty;

use crate::call_counts::{CallCounts, EndedCall};
use crate::journal::{Journal, JournalDraft, JournalEntry};
use crate::nested::MadeCalls;
use crate::principal::Principal;
use crate::redaction;
use crate::registry::now;
use crate::shared::{AuditLog, AuditRow, KeptArgs, RecordKind};
use crate::snapshot::Holder;
use crate::store::{AuditKey, hex};

/// The arguments that are kept of a call; enough to see what was asked, and no place for files.
const MAX_ARGS: usize = 1 << 10;

/// What is kept of the name of a rule and of what else decided.
const MAX_DECIDED: usize = 300;

/// Where records go, and the key for the digests in them.
#[derive(Clone)]
pub(crate) struct Recorder {
    pub(crate) audit: Arc<dyn AuditLog>,
    pub(crate) key: AuditKey,
    pub(crate) counts: Arc<CallCounts>,
}

/// Something other than a call.
pub(crate) struct Note<'a> {
    pub(crate) kind: RecordKind,
    /// `None` where the gateway itself acts.
    pub(crate) who: Option<&'a Principal>,
    pub(crate) door: &'static str,
    pub(crate) device: Option<DeviceId>,
    pub(crate) tool: Option<String>,
    /// What was done, in one word.
    pub(crate) what: &'static str,
    pub(crate) details: Value,
    pub(crate) outcome: &'static str,
}

impl Recorder {
    /// Records something that nobody waits for; in the order of everything else.
    pub(crate) fn note(&self, note: Note<'_>) {
        let text = note.details.to_string();
        let kept = if text.len() <= MAX_ARGS { KeptArgs::Whole } else { KeptArgs::Cut };
        self.audit.record_unawaited(AuditRow {
            kind: note.kind,
            at: now(),
            principal: note.who.map_or(String::new(), |who| who.name.clone()),
            caller: note.who.map(|who| who.id.clone()),
            decided: None,
            run: None,
            door: note.door,
            device: note.device,
            tool: note.tool,
            name: note.what.to_owned(),
            args_digest: self.key.digest(text.as_bytes()),
            args: cut(&text, MAX_ARGS).to_owned(),
            kept,
            outcome: note.outcome,
            duration_us: 0,
            bytes: 0,
            is_sent: false,
        });
    }
}

/// Counts the calls of this process.
static CALLS: AtomicU64 = AtomicU64::new(1);

pub(crate) struct CallRecord {
    /// The number of the call in the log.
    number: u64,
    /// The trace that it belongs to.
    trace_id: Option<Arc<str>>,
    span: Span,
    audit: Arc<dyn AuditLog>,
    counts: Arc<CallCounts>,
    started: Instant,
    /// Whether the call reached a tool. Of one that did not, nobody knows which arguments are secret.
    has_tool: bool,
    /// `None` until a device is found.
    family: Option<FamilyName>,
    /// `None` where the journal is off.
    pub(crate) for_journal: Option<JournalDraft>,
    /// The calls that this one makes, from when it is sent on.
    made: Option<Arc<MadeCalls>>,
    /// `None` once the record is closed.
    row: Option<AuditRow>,
}

impl CallRecord {
    pub(crate) fn open(recorder: Recorder, who: &Principal, door: &'static str, name: &str, args: &Args) -> CallRecord {
        let Recorder { audit, key, counts } = recorder;
        let mut tee = Tee { mac: key.start(), head: Vec::new() };
        // Neither half of the tee fails.
        let _ = serde_json::to_writer(&mut tee, args);
        let head = String::from_utf8_lossy(&tee.head);
        let kept = if head.len() <= MAX_ARGS { KeptArgs::Whole } else { KeptArgs::Cut };
        let row = AuditRow {
            kind: RecordKind::Call,
            at: now(),
            principal: who.name.clone(),
            caller: Some(who.id.clone()),
            decided: None,
            run: None,
            door,
            device: None,
            tool: None,
            name: clean_line(name, 128),
            args_digest: tee.mac.finalize().into_bytes().into(),
            args: cut(&head, MAX_ARGS).to_owned(),
            kept,
            outcome: ErrorKind::Cancelled.row().error_type,
            duration_us: 0,
            bytes: 0,
            is_sent: false,
        };
        CallRecord {
            number: CALLS.fetch_add(1, Ordering::Relaxed),
            trace_id: None,
            span: Span::none(),
            audit,
            counts,
            started: Instant::now(),
            has_tool: false,
            family: None,
            for_journal: None,
            made: None,
            row: Some(row),
        }
    }

    /// Begins the span of the call in the log. Device and tool are noted when they are found.
    pub(crate) fn trace(&mut self, parent: Option<&TraceParent>) -> Span {
        self.trace_id = parent.map(|parent| parent.trace_id().into());
        let (client, trace) = (self.row.as_ref().map(|row| row.principal.as_str()), self.trace_id.as_deref());
        self.span = tracing::info_span!("call", call = self.number, client, device = Empty, tool = Empty, trace);
        self.span.clone()
    }

    /// Notes the device of something that is not a call of a tool.
    pub(crate) fn aim_at(&mut self, device: &DeviceId) {
        self.span.record("device", device.as_str());
        if let Some(row) = &mut self.row {
            row.device = Some(device.clone());
        }
    }

    /// Notes the device and tool of the call.
    pub(crate) fn aim(&mut self, holder: Holder<'_>) {
        self.has_tool = true;
        self.family = Some(holder.entry.info.family.name.clone());
        self.span.record("device", holder.entry.id.as_str());
        self.span.record("tool", holder.offered.tool.name.as_str());
        if let Some(row) = &mut self.row {
            row.device = Some(holder.entry.id.clone());
            row.tool = Some(holder.offered.tool.name.clone());
        }
    }

    /// The digest of the arguments, in hex.
    pub(crate) fn args_digest(&self) -> String {
        self.row.as_ref().map_or(String::new(), |row| hex(&row.args_digest))
    }

    /// Notes what decided about the call.
    pub(crate) fn note_decision(&mut self, decided: &str) {
        if let Some(row) = &mut self.row {
            row.decided = Some(clean_line(decided, MAX_DECIDED));
        }
    }

    /// Keeps the arguments without their secrets.
    pub(crate) fn redact(&mut self, args: Args) {
        if let Some(row) = &mut self.row {
            let text = Value::Object(args).to_string();
            row.args = cut(&text, MAX_ARGS).to_owned();
            row.kept = KeptArgs::Redacted;
        }
    }

    /// Puts the call and its answer into the journal.
    pub(crate) fn keep_in(&mut self, journal: &Journal, result: &Result<Outcome, ToolError>) {
        let Some(JournalDraft { args, has_secret_answer, has_secret_args, is_nested, screens }) =
            self.for_journal.take()
        else {
            return;
        };
        let Some(AuditRow { at, principal, door, device: Some(device), tool: Some(tool), .. }) = &self.row else {
            return;
        };
        let entry = JournalEntry {
            id: 0,
            at: *at,
            principal: principal.clone(),
            door,
            device: device.clone(),
            tool: tool.clone(),
            is_nested,
            args,
            result: match result {
                Err(error) if has_secret_args => Err(ToolError::new(error.kind, redaction::REDACTED)),
                result => result.clone(),
            },
            duration: self.started.elapsed(),
            screens,
        };
        // What was sent may come back.
        journal.add(entry, has_secret_answer || has_secret_args);
    }

    /// Notes that the call is for a tool of the gateway itself.
    pub(crate) fn note_built_in(&mut self) {
        self.has_tool = true;
    }

    /// The row to write.
    fn take_row(&mut self) -> Option<AuditRow> {
        let mut row = self.row.take()?;
        row.duration_us = i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX);
        if let Some(run) = self.made.as_ref().and_then(|made| made.run()) {
            row.run = Some(run);
        }
        if !self.has_tool {
            row.args = redaction::names_only(&row.args);
            row.kept = KeptArgs::Redacted;
        }
        Some(row)
    }

    /// Notes the run that the call is a part of.
    pub(crate) fn note_run(&mut self, run: Option<&Arc<str>>) {
        if let Some(row) = &mut self.row {
            row.run = run.cloned();
        }
    }

    /// Notes that the call is sent to the device from here on, and what it calls in turn.
    pub(crate) fn note_sent(&mut self, made: &Arc<MadeCalls>) {
        self.made = Some(made.clone());
        if let Some(row) = &mut self.row {
            row.is_sent = true;
        }
    }

    /// Closes the record and waits until it is committed: only then may the answer leave.
    pub(crate) async fn close(mut self, result: Result<Outcome, ToolError>) -> Result<Outcome, ToolError> {
        let Some(mut row) = self.take_row() else { return result };
        match &result {
            Ok(outcome) => {
                row.outcome = "ok";
                row.bytes = i64::try_from(weigh(outcome)).unwrap_or(i64::MAX);
            }
            Err(error) => row.outcome = error.kind.row().error_type,
        }
        self.log(&row);
        let ended = EndedCall::of(&row, self.family.take());
        let recorded = self.audit.record(row).await;
        self.counts.note(ended);
        match recorded {
            Ok(()) => result,
            // A call that cannot be recorded is not reported as done.
            Err(error) => result.and(Err(error)),
        }
    }

    /// Who called what, and how it ended. The log counts calls and failures of its own, where there are many.
    fn log(&self, row: &AuditRow) {
        let AuditRow { principal: client, door: via, name, outcome, .. } = row;
        let (tool, device) = (row.tool.as_ref().unwrap_or(name), row.device.as_ref().map(DeviceId::as_str));
        let (call, ms, trace) = (self.number, row.duration_us / 1_000, self.trace_id.as_deref());
        match *outcome {
            "ok" => tracing::info!(client, via, tool, device, outcome, ms, call, trace, "tool called"),
            _ => tracing::info!(client, via, tool, device, outcome, ms, call, trace, "call failed"),
        }
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        if let Some(row) = self.take_row() {
            self.log(&row);
            let ended = EndedCall::of(&row, self.family.take());
            self.audit.record_unawaited(row);
            self.counts.note(ended);
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
        Content::Link(link) => {
            let texts = [&link.title, &link.description];
            link.uri.len() + link.name.len() + texts.into_iter().flatten().map(String::len).sum::<usize>()
        }
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
    mac: Hmac<Sha256>,
    head: Vec<u8>,
}

impl Write for Tee {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.mac.update(bytes);
        // A few bytes more than are kept, so that the cut falls between characters.
        let room = (MAX_ARGS + 4).saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
