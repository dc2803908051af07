//! Calls that are part of another call: those a device makes as its caller, and those to the members of a label.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use sinew_tool::text::clean_line;
use sinew_tool::{
    Answer, Args, Attachment, BoxFuture, CallOrigin, Caller, DeviceId, ErrorKind, LogLevel, NestedCalls, Outcome,
    PendingApproval, Picture, PlannedCall, Question, Silent, StepSource, ToolAccess, ToolError, TraceParent, Value,
};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::access::CallIdentity;
use crate::call::Request;
use crate::gateway::Gateway;
use crate::principal::{Principal, Role};
use crate::view::Shape;

/// Calls within calls; a routine of routines is fine, one that calls itself ends here.
pub(crate) const MAX_DEPTH: u8 = 4;

/// Where a call stands within others. The default is a call that came from outside.
#[derive(Clone, Default)]
pub(crate) struct Nesting {
    /// How many calls this one is within.
    pub depth: u8,
    /// The device whose call makes this one. It has a place there already.
    pub maker: Option<DeviceId>,
    pub agreed: Arc<AgreedCalls>,
    /// The run that it is a part of.
    pub run: Option<Arc<str>>,
    /// The outer call was answered, or will be before this one: a person may take longer than a client waits.
    pub is_detached: bool,
    /// Another gateway took the call, and a person approved it there under the policy of this version.
    pub approved_under: Option<Arc<str>>,
}

/// Calls that a person approved as parts of a larger one and that were not made yet, each under the policy of that
/// moment. A call that was shown twice can be made twice.
#[derive(Default)]
pub(crate) struct AgreedCalls(Mutex<Vec<AgreedCall>>);

#[derive(Clone, PartialEq)]
pub(crate) struct AgreedCall {
    pub(crate) policy: Arc<str>,
    pub(crate) call: CallIdentity,
}

impl AgreedCalls {
    pub(crate) fn add(&self, calls: impl IntoIterator<Item = AgreedCall>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(calls);
    }

    /// Uses the agreement to a call up. Whether there was one.
    pub(crate) fn spend(&self, call: &AgreedCall) -> bool {
        call.take_from(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn unused(&self) -> Vec<AgreedCall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl AgreedCall {
    /// Whether it was among these calls, where it now is once less.
    pub(crate) fn take_from(&self, calls: &mut Vec<AgreedCall>) -> bool {
        let place = calls.iter().position(|call| call == self);
        place.map(|place| calls.swap_remove(place)).is_some()
    }
}

/// When a call ends at the latest. Waiting for a person's agreement to its steps, and for its turn on the device, is not
/// its own time; and a device that reports progress to a caller that waits for it gets its time anew.
pub(crate) struct Deadline {
    began: Instant,
    ends: watch::Sender<Instant>,
    /// What each new sign of the device gives the call, and when it ends whatever the device says.
    budget: Duration,
    latest: Instant,
    caller: Arc<dyn Caller>,
    /// The device has not begun with the call.
    awaits_turn: AtomicBool,
}

impl Deadline {
    pub(crate) fn at(ends: Instant, budget: Duration, latest: Instant, caller: Arc<dyn Caller>) -> Deadline {
        let (began, ends) = (Instant::now(), watch::Sender::new(ends));
        Deadline { began, ends, budget, latest, caller, awaits_turn: AtomicBool::new(false) }
    }

    /// A time that nothing extends but [`Deadline::pause`].
    pub(crate) fn fixed(ends: Instant) -> Deadline {
        Deadline::at(ends, Duration::ZERO, ends, Arc::new(Silent))
    }

    fn start_again(&self) {
        let ends = (Instant::now() + self.budget).min(self.latest);
        self.ends.send_if_modified(|before| {
            let is_later = ends > *before;
            *before = ends.max(*before);
            is_later
        });
    }

    pub(crate) fn awaits_turn(&self) -> bool {
        self.awaits_turn.load(Ordering::Relaxed)
    }

    pub(crate) fn time_left(&self) -> Duration {
        self.ends.borrow().saturating_duration_since(Instant::now())
    }

    /// What the call took so far and may still take.
    pub(crate) fn whole_time(&self) -> Duration {
        self.ends.borrow().saturating_duration_since(self.began)
    }

    /// Waits for a person, at most for `time`, without using the time of the call up.
    pub(crate) async fn pause<T>(&self, time: Duration, asking: impl Future<Output = T>) -> T {
        let began = Instant::now();
        self.ends.send_modify(|ends| *ends += time);
        let answer = asking.await;
        self.ends.send_modify(|ends| *ends -= time.saturating_sub(began.elapsed()));
        answer
    }

    /// The result of some work; `None` where it takes longer, and by more than `slack`.
    pub(crate) async fn limit<T>(&self, slack: Duration, work: impl Future<Output = T>) -> Option<T> {
        let (mut work, mut changes) = (pin!(work), self.ends.subscribe());
        loop {
            let ends = *changes.borrow_and_update() + slack;
            tokio::select! {
                biased;
                result = &mut work => return Some(result),
                _ = changes.changed() => {}
                () = tokio::time::sleep_until(ends) => return None,
            }
        }
    }
}

/// What the device says to its caller also says that it works.
impl Caller for Deadline {
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if self.caller.is_patient() {
            self.start_again();
        }
        self.caller.progress(progress, total, message);
    }

    fn log(&self, level: LogLevel, data: Value) {
        self.caller.log(level, data);
    }

    fn ask(&self, questions: BTreeMap<String, Question>) -> BoxFuture<'_, Result<BTreeMap<String, Answer>, ToolError>> {
        self.caller.ask(questions)
    }

    fn turn_awaited(&self) {
        self.awaits_turn.store(true, Ordering::Relaxed);
        self.caller.turn_awaited();
    }

    fn turn_came(&self) {
        self.awaits_turn.store(false, Ordering::Relaxed);
        self.start_again();
        self.caller.turn_came();
    }

    fn waits_for_approval(&self, pending: &PendingApproval) {
        self.caller.waits_for_approval(pending);
    }

    fn repeats_calls(&self) -> bool {
        self.caller.repeats_calls()
    }

    fn parked(&self, run: &str) {
        self.caller.parked(run);
    }

    fn continues(&self) -> Option<String> {
        self.caller.continues()
    }

    fn is_patient(&self) -> bool {
        self.caller.is_patient()
    }

    fn is_urgent(&self) -> bool {
        self.caller.is_urgent()
    }

    fn attachment(&self) -> Option<Arc<dyn Attachment>> {
        self.caller.attachment()
    }

    fn explain_photo(&self, question: &str, photo: &Picture) -> Option<BoxFuture<'_, Result<String, ToolError>>> {
        self.caller.explain_photo(question, photo)
    }
}

/// Lets a device call other tools with its caller's rights and within its caller's time.
#[derive(Clone)]
pub(crate) struct AsCaller {
    pub gateway: Gateway,
    pub who: Principal,
    pub door: &'static str,
    /// The device and the tool that make the calls.
    pub device: DeviceId,
    pub tool: String,
    /// What the tool was called with, and the steps that it has.
    pub args: Arc<Args>,
    pub steps: StepSource,
    pub caller: Arc<dyn Caller>,
    pub deadline: Arc<Deadline>,
    pub nesting: Nesting,
    /// The caller is an administrator who was asked about this call, and so about the tool's own steps, and about those
    /// on the same device, which are its arguments.
    pub is_confirmed: bool,
    /// A person was asked about this call, and agreed.
    pub is_approved: bool,
    /// The caller's lease of a device.
    pub lease: Option<Arc<str>>,
    /// The trace that the call belongs to.
    pub trace: Option<TraceParent>,
    /// Whoever makes the calls asks again and again whether a person agreed.
    pub asks_again: bool,
    pub made: Arc<MadeCalls>,
}

/// What became of the calls that a device made as its caller.
#[derive(Default)]
pub(crate) struct MadeCalls {
    any: AtomicBool,
    /// The run that they and their call are parts of.
    run: OnceLock<Arc<str>>,
    has_quotes: AtomicBool,
    /// Why none was made yet.
    unapproved: Mutex<Option<ToolError>>,
}

impl MadeCalls {
    /// Of a call that is perhaps a part of a run itself.
    pub(crate) fn of(run: Option<Arc<str>>) -> MadeCalls {
        MadeCalls { run: run.map(OnceLock::from).unwrap_or_default(), ..MadeCalls::default() }
    }

    pub(crate) fn run(&self) -> Option<Arc<str>> {
        self.run.get().cloned()
    }

    /// Whether an answer had text that anybody may have written.
    pub(crate) fn have_quotes(&self) -> bool {
        self.has_quotes.load(Ordering::Relaxed)
    }

    /// Whether the device made a call.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// The error with which the gateway asks for a person's approval, where the device made no call without it.
    pub(crate) fn unapproved(&self) -> Option<ToolError> {
        let none = !self.any();
        self.unapproved.lock().unwrap_or_else(PoisonError::into_inner).take().filter(|_| none)
    }
}

impl AsCaller {
    /// A run can outlast the right to begin it.
    fn check_token(&self) -> Result<(), ToolError> {
        match self.gateway.tokens().is_valid(&self.who) {
            true => Ok(()),
            false => Err(ToolError::new(ErrorKind::PermissionDenied, "the token of the caller was revoked meanwhile")),
        }
    }

    /// Who asks when a call has a question; `None` where it cannot be asked, because the caller may repeat the whole.
    fn asker(&self, device: Option<&str>, tool: &str) -> Option<String> {
        let place = device.map(|device| format!(" of {device}")).unwrap_or_default();
        self.nesting.is_detached.then(|| clean_line(&format!("`{tool}`{place}"), 200))
    }

    /// Whether the caller has confirmed a call to this device already.
    pub(crate) fn confirms(&self, device: Option<&str>) -> bool {
        let is_own_step = matches!(self.steps, StepSource::Tool(_));
        self.is_confirmed && (is_own_step || device == Some(self.device.as_str()))
    }
}

impl NestedCalls for AsCaller {
    fn principal(&self) -> &str {
        &self.who.id
    }

    fn device(&self) -> &str {
        self.device.as_str()
    }

    fn is_part(&self) -> bool {
        self.nesting.maker.is_some()
    }

    fn steps(&self) -> StepSource {
        self.steps.clone()
    }

    fn access(&self, tool: &str) -> ToolAccess {
        self.gateway.access_to(&self.who, self.device.as_str(), tool)
    }

    fn call<'a>(
        &'a self,
        device: Option<&'a str>,
        tool: &'a str,
        args: Args,
    ) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        let request = Request {
            who: self.who.clone(),
            name: tool.to_owned(),
            args,
            shape: Shape::Folded,
            caller: Arc::new(PartCaller { whole: self.caller.clone(), asker: self.asker(device, tool) }),
            budget: Some(self.deadline.time_left()),
            door: self.door,
            is_confirmed: self.confirms(device),
            lease: self.lease.clone(),
            trace: self.trace.clone(),
            is_plain: false,
        };
        Box::pin(async move {
            self.check_token()?;
            if self.nesting.depth >= MAX_DEPTH {
                let message = format!(
                    "`{}` was not called: calls are nested {MAX_DEPTH} deep already; does a routine call itself?",
                    request.name
                );
                return Err(ToolError::new(ErrorKind::Unsupported, message));
            }
            let (depth, maker, run) = (self.nesting.depth + 1, Some(self.device.clone()), self.made.run());
            let nesting = Nesting { depth, maker, run, approved_under: None, ..self.nesting.clone() };
            self.made.any.store(true, Ordering::Relaxed);
            let answer = self.gateway.start(device, request, nesting).await;
            let has_quotes = answer.as_ref().map_or_else(ToolError::is_third_party, Outcome::is_third_party);
            self.made.has_quotes.fetch_or(has_quotes, Ordering::Relaxed);
            answer
        })
    }

    fn agree<'a>(&'a self, calls: &'a [PlannedCall]) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            self.check_token()?;
            let agreed = self.gateway.agree(self, calls).await;
            let unapproved = agreed.as_ref().err().filter(|error| error.kind == ErrorKind::ApprovalNeeded);
            *self.made.unapproved.lock().unwrap_or_else(PoisonError::into_inner) = unapproved.cloned();
            agreed
        })
    }

    fn join_run(&self, id: &str) -> String {
        self.made.run.get_or_init(|| id.into()).to_string()
    }

    fn origin(&self) -> Option<CallOrigin> {
        Some(CallOrigin {
            name: self.who.name.clone(),
            id: self.who.id.clone(),
            is_admin: self.who.role == Role::Admin,
            kind: self.who.kind.word().to_owned(),
            door: self.door.to_owned(),
            policy: self.gateway.access().in_force().version().to_string(),
            is_approved: self.is_approved,
            run: self.made.run().as_deref().map(str::to_owned),
            lease: self.lease.as_deref().map(str::to_owned),
            trace: self.trace.clone(),
        })
    }

    fn within(&self, time: Duration, caller: Arc<dyn Caller>) -> Arc<dyn NestedCalls> {
        let nesting = Nesting { is_detached: true, ..self.nesting.clone() };
        let deadline = Arc::new(Deadline::fixed(Instant::now() + time));
        Arc::new(AsCaller { deadline, nesting, caller, asks_again: true, ..self.clone() })
    }
}

/// The caller of a nested call: gets its log. The outer call reports progress.
pub(crate) struct PartCaller {
    pub whole: Arc<dyn Caller>,
    /// Who asks, where a question can be passed on.
    pub asker: Option<String>,
}

impl Caller for PartCaller {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}

    fn is_patient(&self) -> bool {
        self.whole.is_patient()
    }

    fn log(&self, level: LogLevel, data: Value) {
        self.whole.log(level, data);
    }

    fn waits_for_approval(&self, pending: &PendingApproval) {
        self.whole.waits_for_approval(pending);
    }

    fn ask(&self, questions: BTreeMap<String, Question>) -> BoxFuture<'_, Result<BTreeMap<String, Answer>, ToolError>> {
        let Some(asker) = &self.asker else {
            let message =
                "the device has a question, which a call within another call cannot carry; call the device by itself";
            return Box::pin(std::future::ready(Err(ToolError::new(ErrorKind::InputRequired, message))));
        };
        let questions = questions.into_iter().map(|(key, question)| (key, from_asker(asker, question)));
        self.whole.ask(questions.collect())
    }
}

/// The caller knows the whole call alone, so the question says who asks.
fn from_asker(asker: &str, question: Question) -> Question {
    match question {
        Question::Form { message, schema } => Question::Form { message: format!("{asker} asks: {message}"), schema },
        Question::Page { message, url } => Question::Page { message: format!("{asker} asks: {message}"), url },
        other @ (Question::Completion { .. } | Question::Roots) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_a_person_takes_is_not_the_time_of_the_steps() {
        let second = Duration::from_secs(1);
        for (own, is_in_time) in [(9, true), (11, false)] {
            let deadline = Deadline::fixed(Instant::now() + second * 10);
            let work = async {
                deadline.pause(second * 30, tokio::time::sleep(second * 20)).await;
                tokio::time::sleep(second * own).await;
            };
            assert_eq!(deadline.limit(Duration::ZERO, work).await.is_some(), is_in_time, "{own} s");
        }
    }

    struct Patient;

    impl Caller for Patient {
        fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}

        fn log(&self, _: LogLevel, _: Value) {}

        fn ask(
            &self,
            questions: BTreeMap<String, Question>,
        ) -> BoxFuture<'_, Result<BTreeMap<String, Answer>, ToolError>> {
            Silent.ask(questions)
        }

        fn is_patient(&self) -> bool {
            true
        }
    }

    /// How many seconds a device may work with 10 s to begin with and 30 s more at most, if it does something every 8 s.
    async fn seconds_with(caller: Arc<dyn Caller>, sign: fn(&Deadline)) -> u64 {
        let (second, started) = (Duration::from_secs(1), Instant::now());
        let (ends, latest) = (started + second * 10, started + second * 40);
        let deadline = Deadline::at(ends, second * 10, latest, caller);
        let work = async {
            loop {
                tokio::time::sleep(second * 8).await;
                sign(&deadline);
            }
        };
        let ended: Option<()> = deadline.limit(Duration::ZERO, work).await;
        assert!(ended.is_none());
        started.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn reports_prolong_a_call_for_patient_callers_and_its_turn_for_all() {
        let report = |deadline: &Deadline| deadline.progress(1.0, None, None);
        assert_eq!(seconds_with(Arc::new(Silent), report).await, 10);
        assert_eq!(seconds_with(Arc::new(Patient), report).await, 40);
        assert_eq!(seconds_with(Arc::new(Silent), Deadline::turn_came).await, 40);
        assert_eq!(seconds_with(Arc::new(Patient), |_| {}).await, 10);
    }
}
