//! One call, from the endpoint to the device and back. Nothing else reaches a device.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sinew_schema::{Exhausted, Meter};
use sinew_tool::text::clean;
use sinew_tool::{
    Args, Call, CallOrigin, Caller, Content, Device, Effect, ErrorKind, Outcome, ShownScreen, Silent, Status,
    StepSource, Tool, ToolError, TraceParent,
};
use tokio::time::Instant;
use tracing::Instrument;

use crate::access::{Agreement, CallSecrets, ProposedCall};
use crate::budgets;
use crate::device_error;
use crate::gateway::Gateway;
use crate::journal::{JournalDraft, Screens};
use crate::label_call::LabelCall;
use crate::leases::LeaseUser;
use crate::nested::{AsCaller, Deadline, MadeCalls, Nesting};
use crate::principal::{Principal, Role};
use crate::record::{CallRecord, weigh};
use crate::route::{self, RequestedTool, Target};
use crate::snapshot::{Holder, Presence, Snapshot};
use crate::source;
use crate::view::Shape;

/// How much longer than the budget the gateway waits. The device counts the same budget and knows whether
/// the call was sent at all, so its answer should come first; a quarter of a second is ample for it on a busy machine.
const SLACK: Duration = Duration::from_millis(250);
/// How long reading a screen for the journal may hold up a call: some screens move all the time and are never read.
const LONGEST_LOOK: Duration = Duration::from_secs(3);
const MAX_SCREEN: usize = 32 << 10;
/// Longer than any call; a clock can still count it.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// One call.
#[derive(Clone)]
pub struct Request {
    pub who: Principal,
    /// The tool's public name, as listed in `shape`.
    pub name: String,
    pub args: Args,
    pub shape: Shape,
    pub caller: Arc<dyn Caller>,
    /// How long the answer may take; the settings' budget when `None`.
    pub budget: Option<Duration>,
    /// The endpoint's name in the audit: `mcp`, `rest`, `stdio`, `api`.
    pub door: &'static str,
    /// The caller is an administrator who was asked about this call already.
    pub is_confirmed: bool,
    /// The id of the caller's lease of the device, for callers that share a token.
    pub lease: Option<Arc<str>>,
    /// The trace that the caller says the call belongs to.
    pub trace: Option<TraceParent>,
    /// The caller knows tools in their plain form. A tool that has one checks its arguments itself, in the words that such
    /// callers know.
    pub is_plain: bool,
}

impl Request {
    /// A call by folded public name, with the usual budget and a caller that only takes the answer.
    pub fn new(who: Principal, name: impl Into<String>, args: Args, door: &'static str) -> Request {
        Request {
            who,
            name: name.into(),
            args,
            shape: Shape::Folded,
            caller: Arc::new(Silent),
            budget: None,
            door,
            is_confirmed: false,
            lease: None,
            trace: None,
            is_plain: false,
        }
    }
}

impl Gateway {
    /// Calls a tool by its public name. Dropping the future cancels the call.
    pub async fn call(&self, request: Request) -> Result<Outcome, ToolError> {
        self.start(None, request, Nesting::default()).await
    }

    /// Calls a tool of a device that is given by id or given name, or of all devices with a label (`label:NAME`).
    /// `request.name` is the device's own name for the tool, or its folded public one.
    pub async fn call_on(&self, device: &str, request: Request) -> Result<Outcome, ToolError> {
        self.start(Some(device), request, Nesting::default()).await
    }

    /// Runs a call that another gateway of the cluster took and sent here, because the device is connected to this one.
    /// It is decided about and recorded here too; what a person approved there under the same policy is not asked again.
    pub async fn call_forwarded(
        &self,
        device: &str,
        request: Request,
        origin: &CallOrigin,
    ) -> Result<Outcome, ToolError> {
        let approved_under = origin.is_approved.then(|| origin.policy.as_str().into());
        let nesting = Nesting { approved_under, run: origin.run.as_deref().map(Arc::from), ..Nesting::default() };
        self.start(Some(device), request, nesting).await
    }

    /// Records a call that was refused before it could be made, and gives the reason back.
    pub async fn refuse(&self, request: &Request, error: ToolError) -> ToolError {
        let record =
            CallRecord::open(self.recorder().clone(), &request.who, request.door, &request.name, &request.args);
        record.close(Err(error)).await.err().unwrap_or_else(|| ToolError::new(ErrorKind::Internal, "a refused call"))
    }

    /// Records something that is done to a device without a tool. What cannot be recorded must not be done.
    pub async fn record(&self, who: &Principal, door: &'static str, device: &str, what: &str) -> Result<(), ToolError> {
        self.recorder().audit.check()?;
        let mut record = CallRecord::open(self.recorder().clone(), who, door, what, &Args::new());
        if let Some(entry) = self.snapshot().entry(device) {
            record.aim_at(&entry.id);
        }
        record.close(Ok(Outcome::default())).await.map(drop)
    }

    pub(crate) async fn start(
        &self,
        device: Option<&str>,
        request: Request,
        nesting: Nesting,
    ) -> Result<Outcome, ToolError> {
        match LabelCall::find(&self.snapshot(), device, &request, || self.lens(&request.who)) {
            None => self.call_one(device, request, nesting).await,
            // Boxed, because every other call would carry its size along.
            Some(label_call) => Box::pin(self.call_label(label_call, request, nesting)).await,
        }
    }

    pub(crate) async fn call_one(
        &self,
        device: Option<&str>,
        request: Request,
        nesting: Nesting,
    ) -> Result<Outcome, ToolError> {
        let mut record =
            CallRecord::open(self.recorder().clone(), &request.who, request.door, &request.name, &request.args);
        record.note_run(nesting.run.as_ref());
        let span = record.trace(request.trace.as_ref());
        let result = self.conduct(&mut record, device, request, nesting).instrument(span).await;
        record.keep_in(self.journal(), &result);
        record.close(result).await
    }

    /// Find, check, decide, queue, send.
    async fn conduct(
        &self,
        record: &mut CallRecord,
        device: Option<&str>,
        request: Request,
        nesting: Nesting,
    ) -> Result<Outcome, ToolError> {
        let Request { who, name, mut args, shape, caller, budget, door, is_confirmed, lease, trace, is_plain } =
            request;
        if let Role::Device(_) = who.role {
            let message = "a device token cannot call tools; use a client token";
            return Err(ToolError::new(ErrorKind::PermissionDenied, message));
        }
        // What cannot be recorded is not done.
        self.recorder().audit.check()?;
        let snapshot = self.snapshot();
        let lens = self.lens(&who);
        let selector =
            || snapshot.find_seen(&name, &lens).filter(|_| shape == Shape::Folded).map(|any| any.selector.clone());
        let leased = self.find_lease(&who, device, selector, &mut args)?;
        let requested = match (device, &leased) {
            (Some(_), Some((device, _))) => RequestedTool::On { device: device.as_str(), tool: &name },
            (Some(device), None) => RequestedTool::On { device, tool: &name },
            (None, _) => RequestedTool::Public { name: &name, shape },
        };
        let lease = leased.as_ref().map(|(_, lease)| lease.clone()).or(lease);
        let holder = match route::find(&snapshot, requested, &mut args, &lens, self.settings().spec_tools)? {
            Target::BuiltIn(built_in) => {
                record.note_built_in();
                if let Some(entry) = built_in.device(&args).and_then(|device| snapshot.entry(device)) {
                    record.aim_at(&entry.id);
                }
                let outcome = built_in.run(self, &who, args).await?;
                return Ok(source::mark_own(outcome));
            }
            Target::Device(holder) => holder,
        };
        record.aim(holder);
        let CallSecrets { shown, in_answer: has_secret_answer } = lens.secrets(holder, &args);
        let has_secret_args = shown.is_some();
        if self.journal().is_on() {
            let args = shown.clone().unwrap_or_else(|| args.clone());
            let (is_nested, screens) = (nesting.depth > 0, Screens::default());
            record.for_journal = Some(JournalDraft { args, has_secret_answer, has_secret_args, is_nested, screens });
        }
        if let Some(shown) = shown {
            record.redact(shown);
        }

        let budget = self.budget(holder, budget, caller.is_patient());
        let ends = Instant::now() + budget;
        let checked = tokio::time::timeout_at(ends, self.check(holder, args, is_plain)).await;
        let args = checked.map_err(|_| unchecked(holder, budget))??;
        // Nobody is asked about a call that could not be made.
        decide(holder)?;
        self.check_lease(
            &LeaseUser { who: &who, lens: &lens, lease: lease.as_deref(), is_outer: nesting.depth == 0 },
            holder,
        )?;
        let elsewhere = nesting.approved_under.as_deref();
        let agreement = Agreement { is_confirmed, elsewhere, calls: &nesting.agreed };
        let parts = self.parts_of(&lens, holder, &args, &nesting).await?;
        // A patient caller hears that the call still runs, and so waits for a person and for the device.
        let spent = if nesting.is_detached || caller.is_patient() { Duration::ZERO } else { budget };
        let (page, may_ask_client) = (self.approval_page(), nesting.depth == 0);
        let page = page.as_deref().map(String::as_str);
        let proposed = ProposedCall {
            who: &who,
            lens: &lens,
            holder,
            args: &args,
            parts: &parts,
            agreement,
            caller: &*caller,
            budget: spent,
            page,
            may_ask_client,
        };
        let permit = self.access().authorize(proposed, record).await?;
        // A person may have taken a while, and the device or the policy may be another by now.
        let (ends, snapshot) = match permit.has_waited {
            true => (Instant::now() + budget, self.snapshot()),
            false => (ends, snapshot.clone()),
        };
        let holder = if permit.has_waited { same_tool(&snapshot, holder)? } else { holder };
        let lens = if permit.has_waited { lens.still_permits(self.lens(&who), holder, &args)? } else { lens };
        let device = decide(holder)?;
        // Before its place in the queue, which others need.
        let _use = self
            .begin_use(
                &LeaseUser { who: &who, lens: &lens, lease: lease.as_deref(), is_outer: nesting.depth == 0 },
                holder,
                ends,
            )
            .await?;
        let limit = if holder.entry.info.family.passes_on { usize::MAX } else { self.settings().open_calls };
        let _place = match nesting.maker.as_ref() == Some(&holder.entry.id) {
            true => None,
            false => Some(holder.entry.traffic.enter(limit).ok_or_else(|| busy(holder, limit))?),
        };

        let only_reads = || lens.in_force().effect_of(holder).is_some_and(|(effect, _)| effect == Effect::Read);
        // What was typed may stand on the screen.
        let is_open = |draft: &JournalDraft| !has_secret_args && !draft.has_secret_answer && !only_reads();
        let keeps_screens = record.for_journal.as_ref().is_some_and(is_open);
        let before = if keeps_screens { screen_of(device, &args).await } else { None };
        let from = who.name.clone();
        let left = ends.saturating_duration_since(Instant::now());
        let tool = holder.offered.tool.name.clone();
        let makes_calls = holder.offered.tool.steps != StepSource::Nowhere;
        let latest = ends + self.settings().max_call_timeout;
        let deadline = Arc::new(Deadline::at(ends, budget, latest, caller.clone()));
        let made = Arc::new(MadeCalls::of(nesting.run.clone()));
        let nested = Arc::new(AsCaller {
            gateway: self.clone(),
            who,
            door,
            device: holder.entry.id.clone(),
            tool: tool.clone(),
            args: if makes_calls { Arc::new(args.clone()) } else { Arc::default() },
            steps: holder.offered.tool.steps.clone(),
            caller,
            deadline: deadline.clone(),
            nesting,
            is_confirmed,
            is_approved: permit.is_approved,
            lease,
            trace,
            asks_again: false,
            made: made.clone(),
        });
        let call = Call { tool, args, budget: left, from, caller: deadline.clone(), nested };
        record.note_sent(&made);
        let answer = async {
            let answer = send(device.as_ref(), call).await;
            let answer = answer.map_err(|error| passed_on(holder, error, &made, is_plain))?;
            self.check_result(holder, answer).await
        };
        let answer = deadline.limit(SLACK, answer).await;
        if let Some(draft) = record.for_journal.as_mut().filter(|_| keeps_screens) {
            draft.screens = Screens::between(before, screen_of(device, &Args::new()).await);
        }
        let outcome = answer.ok_or_else(|| match deadline.awaits_turn() {
            true => never_its_turn(holder, budget),
            false => too_slow(holder, budget),
        })??;
        Ok(source::mark(holder, made.have_quotes(), outcome))
    }

    /// How long a call may take: as long as the caller wants, else as the configuration says for this tool, else as such
    /// a caller waits.
    fn budget(&self, holder: Holder<'_>, wanted: Option<Duration>, is_patient: bool) -> Duration {
        let settings = self.settings();
        let entry = holder.entry;
        let names = [Some(entry.id.as_str()), entry.name.as_deref()];
        let names: Vec<&str> = names.into_iter().flatten().collect();
        let configured = budgets::find(&self.budgets(), &names, &holder.offered.tool.name);
        let usual = configured.unwrap_or(match is_patient {
            true => settings.progress_call_timeout.max(settings.call_timeout),
            false => settings.call_timeout,
        });
        wanted.unwrap_or(usual).min(settings.max_call_timeout.max(usual)).min(LONGEST)
    }

    /// Whether the arguments are what the tool asks for. An explicit `null` for an optional argument counts as absent
    /// where its schema does not allow it.
    pub(crate) async fn check(&self, holder: Holder<'_>, args: Args, is_plain: bool) -> Result<Args, ToolError> {
        let (mut args, mut verdict) = self.check_once(holder, Value::Object(args)).await?;
        if verdict.is_err() && drop_nulls(&holder.offered.tool, &mut args) {
            (args, verdict) = self.check_once(holder, args).await?;
        }
        if !(is_plain && holder.offered.tool.plain.is_some()) {
            verdict?;
        }
        match args {
            Value::Object(args) => Ok(args),
            _ => Ok(Args::new()),
        }
    }

    async fn check_once(&self, holder: Holder<'_>, args: Value) -> Result<(Value, Result<(), ToolError>), ToolError> {
        let (check, tool) = (holder.offered.input.clone(), holder.offered.tool.name.clone());
        let turn = &holder.entry.traffic.checks;
        let check = move |args: &Value, meter: &mut Meter| check.arguments(&tool, args, meter);
        let (args, verdict) = self.validation().check(turn, args, check).await;
        Ok((args, verdict.map_err(|_| too_much_to_check(holder))?))
    }

    /// The answer must not be too large, and must fit the tool's output schema.
    async fn check_result(&self, holder: Holder<'_>, mut outcome: Outcome) -> Result<Outcome, ToolError> {
        let (tool, title, max) = (&holder.offered.tool.name, holder.entry.title(), self.settings().max_result);
        let size = weigh(&outcome);
        if size > max {
            let message = format!(
                "the answer of `{tool}` on {title} has {size} bytes, more than the {max} that are passed on; ask for less"
            );
            return Err(ToolError::new(ErrorKind::TooLarge, message));
        }
        let Some(check) = &holder.offered.output else { return Ok(outcome) };
        let turn = &holder.entry.traffic.checks;
        if outcome.structured.is_none()
            && let [Content::Text(text)] = outcome.content.as_mut_slice()
        {
            // JSON in a text is accepted as the structured result.
            (*text, outcome.structured) = self.validation().read(turn, std::mem::take(text)).await;
        }
        let fault = match outcome.structured.take() {
            None => "it holds no JSON".to_owned(),
            Some(structured) => {
                let (check, tool) = (check.clone(), tool.clone());
                let check = move |answer: &Value, meter: &mut Meter| check.answer(&tool, answer, meter);
                let (structured, verdict) = self.validation().check(turn, structured, check).await;
                outcome.structured = Some(structured);
                match verdict {
                    Ok(Ok(())) => return Ok(outcome),
                    Ok(Err(fault)) => fault,
                    // Schema and answer are both the device's, so the tool is not offered any more.
                    Err(Exhausted) => {
                        let why = "checking its answer against its output schema takes more work than allowed";
                        self.withdraw(holder, why);
                        why.to_owned()
                    }
                }
            }
        };
        let message = format!(
            "the answer of `{tool}` on {title} does not fit its output schema ({fault}); the call may have had its effect"
        );
        Err(source::mark_error(holder, outcome.is_third_party(), ToolError::new(ErrorKind::BadAnswer, message)))
    }
}

/// Whether there were any.
pub(crate) fn drop_nulls(tool: &Tool, args: &mut Value) -> bool {
    let (Some(args), Some(properties)) = (args.as_object_mut(), tool.properties()) else { return false };
    let required = tool.required();
    let before = args.len();
    args.retain(|name, value| !value.is_null() || !properties.contains_key(name) || required.contains(&name.as_str()));
    args.len() < before
}

/// The tool that was approved, as the device offers it now.
fn same_tool<'s>(snapshot: &'s Snapshot, approved: Holder<'_>) -> Result<Holder<'s>, ToolError> {
    let found = snapshot.entry(approved.entry.id.as_str()).and_then(|entry| {
        let offered = entry.offer.find(&approved.offered.tool.name)?;
        let is_same = entry.info.key == approved.entry.info.key && offered.tool == approved.offered.tool;
        is_same.then_some(Holder { entry, offered })
    });
    found.ok_or_else(|| {
        let (tool, title) = (&approved.offered.tool.name, approved.entry.title());
        let message =
            format!("`{tool}` of {title} changed while the call waited for approval; nothing was sent. Call it again");
        ToolError::new(ErrorKind::DeviceAway, message)
    })
}

/// Whether the device can be asked now.
pub(crate) fn decide(holder: Holder<'_>) -> Result<&Arc<dyn Device>, ToolError> {
    let entry = holder.entry;
    match (&entry.presence, &entry.info.status) {
        (Presence::Here(device), Status::Ready) => Ok(device),
        (Presence::Here(_), Status::Limited { .. }) => {
            let (state, remedy) = entry.state();
            let message = format!("{} cannot be used ({state}): {}", entry.title(), remedy.unwrap_or_default());
            Err(ToolError::new(ErrorKind::PermissionDenied, message))
        }
        (Presence::Away(_), _) => Err(ToolError::new(
            ErrorKind::DeviceAway,
            format!(
                "{} is away and nothing was sent to it: {}; try again when list_devices shows it as ready",
                entry.title(),
                entry.state().1.unwrap_or_default()
            ),
        )),
    }
}

/// What the device shows, where it does and says so in time.
async fn screen_of(device: &Arc<dyn Device>, args: &Args) -> Option<ShownScreen> {
    let screen = tokio::time::timeout(LONGEST_LOOK, device.screen(args)).await;
    screen.ok().flatten().map(|screen| ShownScreen { text: clean(&screen.text, MAX_SCREEN), ..screen })
}

/// A panic in a driver becomes an error of this call, not the end of the gateway.
async fn send(device: &dyn Device, call: Call) -> Result<Outcome, ToolError> {
    let mut answer = Box::pin(async move { device.call(call).await });
    let answer = poll_fn(move |context| {
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context)));
        polled.map_or_else(|_| std::task::Poll::Ready(None), |poll| poll.map(Some))
    });
    answer.await.unwrap_or_else(|| {
        let message = "the driver of the device failed in the middle of the call; look at the device's state, and report this fault";
        Err(ToolError::new(ErrorKind::Internal, message))
    })
}

/// The error of a device, or that of the gateway which made it give up before it did anything.
fn passed_on(holder: Holder<'_>, error: ToolError, made: &MadeCalls, is_plain: bool) -> ToolError {
    let unapproved = made.unapproved().filter(|_| error.kind == ErrorKind::ApprovalNeeded);
    let mut error = unapproved.unwrap_or_else(|| {
        let error = device_error::clean_error(if is_plain { error } else { device_error::in_one_voice(error) });
        source::mark_error(holder, made.have_quotes(), error)
    });
    // The tool that was called is there; one that it called in turn is not.
    if made.any() && error.kind == ErrorKind::UnknownTool {
        error.kind = ErrorKind::ActionFailed;
    }
    error
}

fn busy(holder: Holder<'_>, limit: usize) -> ToolError {
    let message = format!("{} already has {limit} open calls; try again when some are answered", holder.entry.title());
    ToolError::new(ErrorKind::Busy, message)
}

fn too_much_to_check(holder: Holder<'_>) -> ToolError {
    let message = format!(
        "the arguments of `{}` take more work to check against the schema of {} than allowed, and nothing was sent; \
         send less, or nest it less deep",
        holder.offered.tool.name,
        holder.entry.title()
    );
    ToolError::new(ErrorKind::InvalidArguments, message)
}

fn unchecked(holder: Holder<'_>, budget: Duration) -> ToolError {
    let message = format!(
        "the arguments of `{}` on {} were not checked within {} s, and nothing was sent; try again",
        holder.offered.tool.name,
        holder.entry.title(),
        budget.as_secs_f64()
    );
    ToolError::new(ErrorKind::Busy, message)
}

fn never_its_turn(holder: Holder<'_>, budget: Duration) -> ToolError {
    let (tool, title) = (&holder.offered.tool.name, holder.entry.title());
    let message = format!(
        "{title} was busy with other calls for {} s, and `{tool}` was not sent; try again when they are answered",
        budget.as_secs_f64()
    );
    ToolError::new(ErrorKind::Busy, message)
}

fn too_slow(holder: Holder<'_>, budget: Duration) -> ToolError {
    let (tool, title) = (&holder.offered.tool.name, holder.entry.title());
    let message = format!(
        "`{tool}` on {title} gave no answer within {} s; it may still have had its effect, so check the device before you retry",
        budget.as_secs_f64()
    );
    ToolError::new(ErrorKind::Timeout, message)
}
