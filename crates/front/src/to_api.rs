//! Turns the gateway's types into those of `/api/v1`.

use serde_json::Value;
use sinew_api::{
    AuditCheck, AuditEntry, AuditProblem, CallResult, Changes, Covers, DeviceLease, DeviceSummary, EventRecord, Events,
    Explained, ExplainedRule, Grant, JournalCall, ListedTool, MarkedTool, QuarantinedTool, Token, ToolChange,
    WaitingBoard, WaitingCall,
};
use sinew_gateway::{
    ApprovalGrant, ApprovalRequest, AuditRecord, AuditReport, CallExplanation, DeviceChanges, DeviceView, EventPage,
    GrantReach, HeldChange, HeldForm, HeldToolView, JournalEntry, LeaseView, PendingBoard, PublicTool, TokenView,
    ToolEffect,
};
use sinew_policy::EffectSource;
use sinew_tool::text::cut;
use sinew_tool::{Effect, Outcome};

/// Arguments in a list of calls that wait, in bytes.
const MAX_LISTED_ARGS: usize = 2_000;

pub(crate) fn device(view: DeviceView) -> DeviceSummary {
    DeviceSummary {
        id: view.id.as_str().to_owned(),
        name: view.name,
        labels: view.labels.iter().map(|label| label.to_string()).collect(),
        key: view.key.0,
        family: view.family.name.to_string(),
        admitted_by: Some(view.admission.word().to_string()),
        kind: view.kind,
        version: view.version,
        state: view.state,
        tools: view.tools,
        pinned: view.pinned,
        quarantined: view.quarantined,
        withdrawn: view.withdrawn,
        since: view.since,
        attributes: view.attributes.into_iter().collect(),
        remedy: view.remedy,
        instructions: view.instructions,
        warnings: view.warnings,
        lease: view.lease.map(lease),
        more: Default::default(),
    }
}

pub(crate) fn lease(view: LeaseView) -> DeviceLease {
    let LeaseView { device: _, holder, purpose, until, waiting } = view;
    DeviceLease { holder, purpose, until, waiting }
}

pub(crate) fn changes(changes: DeviceChanges) -> Changes {
    let DeviceChanges { id, pinned, follow, digest, held, text, text_form, gone } = changes;
    let quarantined = held.into_iter().map(|HeldToolView { tool, why, changes, form }| QuarantinedTool {
        changes: changes.into_iter().map(|change| tool_change(&tool, change)).collect(),
        form: held_form(form),
        tool,
        why,
        more: Default::default(),
    });
    let quarantined = quarantined.collect();
    let text = text.into_iter().map(|change| tool_change("", change)).collect();
    let text_form = text_form.map(held_form);
    Changes { id, pinned, follow, digest, quarantined, text, text_form, gone, more: Default::default() }
}

fn held_form(HeldForm { agreed, now }: HeldForm) -> sinew_api::HeldForm {
    sinew_api::HeldForm { agreed, now }
}

fn tool_change(tool: &str, change: HeldChange) -> ToolChange {
    let HeldChange { path, kind, impact, message } = change;
    ToolChange { tool: tool.to_owned(), path, impact, kind, message, more: Default::default() }
}

pub(crate) fn board(waiting: PendingBoard) -> WaitingBoard {
    WaitingBoard {
        code: waiting.code,
        hardware_id: waiting.hardware_id,
        kind: waiting.kind,
        version: waiting.version,
        address: waiting.address.to_string(),
        since: waiting.since,
        until: waiting.until,
        more: Default::default(),
    }
}

/// A tool of a list; in lists of one device also with its name on that device.
pub(crate) fn tool(public: &PublicTool, simplified: &[String], with_own_name: bool) -> ListedTool {
    let mut more = match public.tool.to_json() {
        Value::Object(listed) => listed,
        _ => Default::default(),
    };
    for typed in ["name", "description", "inputSchema"] {
        more.shift_remove(typed);
    }
    ListedTool {
        name: public.name.clone(),
        description: public.tool.description.clone(),
        input_schema: (*public.tool.input_schema).clone(),
        own_name: with_own_name.then(|| public.own_name.clone()),
        simplified: simplified.to_vec(),
        more,
    }
}

pub(crate) fn result(outcome: Outcome) -> CallResult {
    let content = outcome.content.iter().map(|item| item.to_json()).collect();
    CallResult { content, structured: outcome.structured, more: Default::default() }
}

pub(crate) fn events(page: EventPage) -> Events {
    let event = |event: sinew_gateway::StoredEvent| {
        let sinew_gateway::StoredEvent { seq, at, device, topic, body, .. } = event;
        EventRecord { seq, at, device, topic, body }
    };
    Events { events: page.events.into_iter().map(event).collect(), next: page.next, dropped: page.dropped }
}

pub(crate) fn token(view: TokenView) -> Token {
    Token {
        id: view.id,
        role: view.role.to_owned(),
        label: view.label,
        device: view.device,
        created: view.created,
        expires: view.expires,
        last_use: view.last_use,
        more: Default::default(),
    }
}

pub(crate) fn record(record: AuditRecord) -> AuditEntry {
    AuditEntry {
        id: record.id,
        kind: record.kind,
        at: record.at,
        principal: record.principal,
        caller: record.caller,
        door: record.door,
        device: record.device,
        tool: record.tool,
        name: record.name,
        args_digest: record.args_digest,
        args: record.args,
        decided: record.decided,
        run: record.run,
        outcome: record.outcome,
        duration_us: record.duration_us,
        bytes: record.bytes,
        more: Default::default(),
    }
}

pub(crate) fn journal_call(entry: &JournalEntry) -> JournalCall {
    JournalCall {
        id: entry.id,
        at: entry.at,
        principal: entry.principal.clone(),
        door: entry.door.to_owned(),
        device: entry.device.to_string(),
        tool: entry.tool.clone(),
        nested: entry.is_nested,
        arguments: entry.args.clone(),
        result: entry.result.as_ref().ok().map(|outcome| result(outcome.clone())),
        error: entry.result.as_ref().err().map(|error| error.to_object()),
        duration_us: u64::try_from(entry.duration.as_micros()).unwrap_or(u64::MAX),
        screen_before: entry.screens.before.clone(),
        screen_after: entry.screens.after.clone(),
        landmark: entry.screens.landmark.clone(),
        lasting_arguments: entry.screens.lasting_args.clone(),
        more: Default::default(),
    }
}

/// The report of a verification, as the API gives it.
pub fn audit_check(report: AuditReport) -> AuditCheck {
    let problem = |problem: sinew_gateway::AuditProblem| AuditProblem {
        fault: problem.fault.word().to_owned(),
        record: problem.record,
        message: problem.message,
        more: Default::default(),
    };
    AuditCheck {
        ok: report.problems_in_all == 0,
        records: report.records,
        unchained: report.unchained,
        emptied: report.emptied,
        seals: report.seals,
        sealed_until: report.sealed_until,
        checked_until: report.checked_until,
        removed_until: report.removed_until,
        problems: report.problems.into_iter().map(problem).collect(),
        problems_in_all: report.problems_in_all,
        more: Default::default(),
    }
}

pub(crate) fn waiting_call(request: ApprovalRequest) -> WaitingCall {
    WaitingCall {
        id: request.id,
        principal: request.principal,
        device: request.device,
        tool: request.tool,
        args: request.args,
        args_cut: false,
        effect: request.effect.map_or("unmarked", effect_word).to_owned(),
        keep_s: request.keep.as_secs(),
        reason: request.reason,
        at: request.at,
        more: Default::default(),
    }
}

pub(crate) fn grant(grant: ApprovalGrant) -> Grant {
    let ApprovalGrant { id, principal, device, tool, args, reach, reason, by, by_person: _, at, ends } = grant;
    let covers = match reach {
        GrantReach::Once => Covers::Once,
        GrantReach::AnyArguments => Covers::AnyArguments,
        GrantReach::SameArguments => Covers::SameArguments,
    };
    Grant { id, principal, device, tool, covers, args, reason, by, at, ends, more: Default::default() }
}

/// A call in a list, whose arguments must not hide the other calls.
pub(crate) fn short_waiting_call(request: ApprovalRequest) -> WaitingCall {
    let call = waiting_call(request);
    let args = cut(&call.args, MAX_LISTED_ARGS).to_owned();
    WaitingCall { args_cut: args.len() < call.args.len(), args, ..call }
}

pub(crate) fn marked_tool(tool: ToolEffect) -> MarkedTool {
    let source = |source: EffectSource| match source {
        EffectSource::Configuration => "the configuration",
        EffectSource::Agreement => "the pinned version",
        EffectSource::Family => "Sinew",
        EffectSource::Firmware => "the table of firmware tools",
        EffectSource::Hints => "the device",
    };
    MarkedTool {
        device: tool.device,
        tool: tool.tool,
        effect: tool.effect.map_or("unmarked", |(effect, _)| effect_word(effect)).to_owned(),
        source: tool.effect.map(|(_, by)| source(by).to_owned()),
        proposal: effect_word(tool.proposal).to_owned(),
    }
}

fn effect_word(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "read",
        Effect::Change => "change",
        Effect::Danger => "danger",
    }
}

pub(crate) fn explained(explanation: CallExplanation, may_confirm: bool) -> Explained {
    let CallExplanation { effect, is_listed, decision } = explanation;
    let rule = |rule: sinew_policy::RuleReport| ExplainedRule {
        result: rule.result.text(),
        verdict: rule.verdict.map(|verdict| verdict.word().to_owned()),
        id: rule.id,
    };
    Explained {
        verdict: decision.verdict.word().to_owned(),
        reason: decision.reason.text(),
        may_confirm,
        listed: is_listed,
        rules: decision.rules.into_iter().map(rule).collect(),
        default: format!("{}, by {}", decision.fallback.0.word(), decision.fallback.1.text()),
        effect: marked_tool(effect),
        more: Default::default(),
    }
}
