//! Carries steps out, one after another, within their limits.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use sinew_tool::{Args, BoxFuture, ErrorKind, LOOK, Outcome, ToolError};

use crate::condition::{Condition, compare};
use crate::grammar::{Limits, Step, StepKind, Steps};
use crate::report::{Observation, RunReport, StepRecord};
use crate::template;

/// The time of a run.
pub trait StepClock: Send + Sync {
    fn pause(&self, time: Duration) -> BoxFuture<'_, ()>;

    /// Since the run began.
    fn elapsed(&self) -> Duration;
}

/// Makes the calls of steps, and knows the time.
pub trait StepHost: Send + Sync {
    fn call<'a>(
        &'a self,
        device: Option<&'a str>,
        tool: &'a str,
        arguments: &'a Args,
    ) -> BoxFuture<'a, Result<Outcome, ToolError>>;

    fn clock(&self) -> &dyn StepClock;

    /// Whether the run may go on; asked before every step and every look.
    fn check(&self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Counts a step that is about to be carried out. A run that is a part of another counts with it.
    fn take_step(&self) -> Result<(), ToolError> {
        Ok(())
    }

    /// The answers that the run keeps have so many bytes from here on. Many runs together may have less room than each.
    fn hold(&self, _bytes: usize) -> Result<(), ToolError> {
        Ok(())
    }

    /// A step was carried out, or failed.
    fn stepped(&self, _step: &StepRecord) {}

    /// Whether the report has what each step answered. Many steps may answer much.
    fn keeps_answers(&self) -> bool {
        true
    }

    /// What there is to see after a step, for a report. `None` where nobody asked for one, or there is nothing.
    fn observe<'a>(&'a self, _device: Option<&'a str>) -> BoxFuture<'a, Option<Observation>> {
        Box::pin(std::future::ready(None))
    }
}

/// Answers that later steps may refer to, in bytes: a thousand screens.
const MAX_KEPT: usize = 16 << 20;

/// Between two looks while a condition does not hold yet.
const PAUSE: Duration = Duration::from_millis(250);

/// Runs steps to their end, their `return`, or the first failure. `scope` holds the values of the known names.
pub async fn run(steps: &Steps, host: &dyn StepHost, scope: Map<String, Value>, limits: &Limits) -> RunReport {
    let (screens, report) = (HashMap::new(), RunReport::default());
    let mut runner = Runner { host, limits, scope, kept: 0, executed: 0, screens, report };
    match runner.list(&steps.list, "").await {
        Ok(returned) => runner.report.returned = returned,
        Err(failed) => runner.report.failure = Some(failed),
    }
    runner.report.took = host.clock().elapsed();
    runner.report
}

struct Runner<'a> {
    host: &'a dyn StepHost,
    limits: &'a Limits,
    scope: Map<String, Value>,
    /// About the bytes of the answers in `scope`.
    kept: usize,
    executed: usize,
    /// The screen of each device after the last step on it.
    screens: HashMap<Option<String>, String>,
    report: RunReport,
}

impl Runner<'_> {
    /// The value of a `return`, where one was met.
    fn list<'b>(&'b mut self, steps: &'b [Step], at: &'b str) -> BoxFuture<'b, Result<Option<Value>, ToolError>> {
        Box::pin(async move {
            for (nth, step) in steps.iter().enumerate() {
                let at = if at.is_empty() { format!("{}", nth + 1) } else { format!("{at}.{}", nth + 1) };
                if let Some(returned) = self.step(step, &at).await? {
                    return Ok(Some(returned));
                }
            }
            Ok(None)
        })
    }

    async fn step(&mut self, step: &Step, at: &str) -> Result<Option<Value>, ToolError> {
        self.executed += 1;
        let within_limits = self.check_limits(self.host.clock().elapsed());
        let device = self.device_of(step);
        if matches!(step.kind, StepKind::If { .. } | StepKind::Each { .. }) {
            return self.branch(step, at, within_limits, device).await;
        }
        // What a step left is what the next one meets.
        let before = match self.screens.remove(&device) {
            None if within_limits.is_ok() => self.host.observe(device.as_deref()).await.map(|seen| seen.screen),
            known => known,
        };
        let started = self.host.clock().elapsed();
        let done = match within_limits {
            Ok(()) => self.carry_out(step, at).await,
            Err(error) => Err(error),
        };
        let took = self.host.clock().elapsed().saturating_sub(started);
        let after = self.host.observe(device.as_deref()).await;
        if let Some(seen) = &after {
            self.screens.insert(device, seen.screen.clone());
        }
        let (outcome, result) = match done {
            Ok((outcome, returned)) => (Ok(outcome), Ok(returned)),
            Err(error) => (Err(error.clone()), Err(error)),
        };
        let (kind, what) = named(&step.kind);
        self.record(StepRecord { at: at.to_owned(), kind, what, started, took, outcome, before, after });
        result
    }

    /// The device whose screen a step meets. What is wrong with it, the step says.
    fn device_of(&self, step: &Step) -> Option<String> {
        let device = match &step.kind {
            StepKind::Call { device, .. } => device.as_ref(),
            StepKind::Expect { condition, .. } | StepKind::If { condition, .. } => {
                condition.screens().into_iter().flatten().next()
            }
            _ => None,
        };
        self.device(device).ok().flatten()
    }

    /// A step with steps inside, which tell what they did themselves. What fails before them is this step's failure: its
    /// condition, its list, or a limit.
    async fn branch(
        &mut self,
        step: &Step,
        at: &str,
        within_limits: Result<(), ToolError>,
        device: Option<String>,
    ) -> Result<Option<Value>, ToolError> {
        let started = self.host.clock().elapsed();
        let done = match within_limits {
            Ok(()) => self.carry_out(step, at).await.map(|(_, returned)| returned),
            Err(error) => Err(error),
        };
        if let (Err(error), None) = (&done, self.report.failed_step()) {
            let took = self.host.clock().elapsed().saturating_sub(started);
            let before = self.screens.get(&device).cloned();
            let after = self.host.observe(device.as_deref()).await;
            let (kind, what) = named(&step.kind);
            let outcome = Err(error.clone());
            self.record(StepRecord { at: at.to_owned(), kind, what, started, took, outcome, before, after });
        }
        done
    }

    fn record(&mut self, record: StepRecord) {
        self.host.stepped(&record);
        let record = if self.host.keeps_answers() { record } else { record.without_answer() };
        self.report.steps.push(record);
    }

    fn check_limits(&self, now: Duration) -> Result<(), ToolError> {
        self.host.check()?;
        self.host.take_step()?;
        let Limits { executed, time, .. } = *self.limits;
        match () {
            () if self.executed > executed => Err(too_many_steps(executed)),
            () if now >= time => {
                Err(ToolError::new(ErrorKind::Timeout, format!("the steps took longer than {} s", time.as_secs())))
            }
            () => Ok(()),
        }
    }

    async fn carry_out(&mut self, step: &Step, at: &str) -> Result<(Outcome, Option<Value>), ToolError> {
        let nothing = |text: String| Ok((Outcome::text(text), None));
        match &step.kind {
            StepKind::Call { device, tool, arguments, save } => {
                let arguments = self.fill(&Value::Object(arguments.clone()))?;
                let arguments = arguments.as_object().cloned().unwrap_or_default();
                let device = self.device(device.as_ref())?;
                let outcome = self.host.call(device.as_deref(), tool, &arguments).await?;
                if let Some(name) = save {
                    let value = outcome.structured.clone().unwrap_or_else(|| json!({"text": outcome.joined_text()}));
                    self.keep(name, value)?;
                }
                Ok((outcome, None))
            }
            StepKind::Expect { condition, within } => {
                self.expect(condition, *within).await?;
                nothing("as expected".to_owned())
            }
            StepKind::Wait { time } => {
                let left = self.limits.time.saturating_sub(self.host.clock().elapsed());
                if *time > left {
                    return Err(too_long_a_wait(*time, left));
                }
                self.host.clock().pause(*time).await;
                self.host.check()?;
                nothing(format!("waited {} ms", time.as_millis()))
            }
            StepKind::Return { value } => {
                let value = self.fill(value)?;
                Ok((Outcome::json(value.clone()), Some(value)))
            }
            StepKind::If { condition, then, otherwise } => {
                let (branch, steps) = match self.holds(condition).await? {
                    Ok(()) => ("then", then),
                    Err(_) => ("else", otherwise),
                };
                let returned = self.list(steps, &format!("{at}.{branch}")).await?;
                Ok((Outcome::default(), returned))
            }
            StepKind::Each { items, name, steps } => self.each(items, name, steps, at).await,
        }
    }

    async fn each(
        &mut self,
        items: &Value,
        name: &str,
        steps: &[Step],
        at: &str,
    ) -> Result<(Outcome, Option<Value>), ToolError> {
        let items = self.fill(items)?;
        let most = self.limits.items;
        let Some(items) = items.as_array().filter(|items| items.len() <= most) else {
            return Err(wrong(format!("`each` needs a list of at most {most} items")));
        };
        let before = self.scope.get(name).cloned();
        for (nth, item) in items.iter().enumerate() {
            self.scope.insert(name.to_owned(), item.clone());
            if let Some(returned) = self.list(steps, &format!("{at}[{}]", nth + 1)).await? {
                return Ok((Outcome::default(), Some(returned)));
            }
        }
        match before {
            Some(value) => drop(self.scope.insert(name.to_owned(), value)),
            None => drop(self.scope.remove(name)),
        }
        Ok((Outcome::default(), None))
    }

    async fn expect(&mut self, condition: &Condition, within: Duration) -> Result<(), ToolError> {
        let deadline = (self.host.clock().elapsed() + within).min(self.limits.time);
        loop {
            let Err(why) = self.holds(condition).await? else { return Ok(()) };
            if self.host.clock().elapsed() >= deadline {
                return Err(ToolError::new(ErrorKind::ActionFailed, format!("not as expected: {why}")));
            }
            self.host.clock().pause(PAUSE).await;
            self.host.check()?;
        }
    }

    /// Whether a condition holds, and why not.
    fn holds<'b>(&'b self, condition: &'b Condition) -> BoxFuture<'b, Result<Result<(), String>, ToolError>> {
        Box::pin(async move {
            match condition {
                Condition::Compare { value, comparison, with } => {
                    compare(value, *comparison, with, &self.scope).map_err(wrong)
                }
                Condition::Screen { device, selector, is_there } => {
                    let device = self.device(device.as_ref())?;
                    self.sees(device.as_deref(), selector, *is_there).await
                }
                Condition::All(parts) => {
                    for part in parts {
                        if let Err(why) = self.holds(part).await? {
                            return Ok(Err(why));
                        }
                    }
                    Ok(Ok(()))
                }
                Condition::Any(parts) => {
                    let mut reasons = Vec::new();
                    for part in parts {
                        match self.holds(part).await? {
                            Ok(()) => return Ok(Ok(())),
                            Err(why) => reasons.push(why),
                        }
                    }
                    Ok(Err(reasons.join(", ")))
                }
                Condition::Not(inner) => Ok(match self.holds(inner).await? {
                    Ok(()) => Err("what should not be so is so".to_owned()),
                    Err(_) => Ok(()),
                }),
            }
        })
    }

    async fn sees(
        &self,
        device: Option<&str>,
        selector: &Value,
        is_there: bool,
    ) -> Result<Result<(), String>, ToolError> {
        let selector = self.fill(selector)?;
        // 1000: whether anything is found, not what.
        let arguments = json!({"selector": selector, "max_bytes": 1000});
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let outcome = self.host.call(device, LOOK, &arguments).await?;
        let answer = outcome.structured.unwrap_or_default();
        // A label has many screens, and all of them must be so.
        let Some(devices) = answer["devices"].as_array() else {
            return Ok(is_on_screen(&answer, &selector, is_there));
        };
        Ok(devices.iter().try_for_each(|line| {
            let seen = match line["ok"] == true {
                true => is_on_screen(&line["result"], &selector, is_there),
                false => Err(line["error"]["message"].as_str().unwrap_or("it gave no answer").to_owned()),
            };
            seen.map_err(|why| format!("{}: {why}", line["id"].as_str().unwrap_or_default()))
        }))
    }

    /// The device that is meant. One that is named and turns out to be no text is not the same as none.
    fn device(&self, written: Option<&Value>) -> Result<Option<String>, ToolError> {
        match written.map(|device| self.fill(device)).transpose()? {
            None => Ok(None),
            Some(Value::String(device)) => Ok(Some(device)),
            Some(other) => Err(wrong(format!("`device` must be the name of a device, and is {other}"))),
        }
    }

    /// Keeps an answer for later steps.
    fn keep(&mut self, name: &str, value: Value) -> Result<(), ToolError> {
        let before = self.scope.get(name).map_or(0, template::weigh);
        self.kept = (self.kept + template::weigh(&value)).saturating_sub(before);
        if self.kept > MAX_KEPT {
            let message = format!("the answers that are kept with `as` have more than {} MiB", MAX_KEPT >> 20);
            return Err(ToolError::new(ErrorKind::TooLarge, message));
        }
        self.host.hold(self.kept)?;
        self.scope.insert(name.to_owned(), value);
        Ok(())
    }

    fn fill(&self, value: &Value) -> Result<Value, ToolError> {
        template::fill(value, &self.scope).map_err(wrong)
    }
}

/// Whether a look found what should be there, or did not find what should be gone; else what is so instead.
fn is_on_screen(answer: &Value, selector: &Value, is_there: bool) -> Result<(), String> {
    let found =
        answer["elements"].as_array().is_some_and(|all| !all.is_empty()) || answer["omitted"].as_u64() > Some(0);
    match (found, is_there) {
        (true, true) | (false, false) => Ok(()),
        // A look that finds nothing says what is there instead.
        (false, true) => match answer["instead"].as_str() {
            Some(instead) => Err(format!("no element is {selector}. {instead}")),
            None => Err(format!("no element is {selector}")),
        },
        (true, false) => Err(format!("an element is still {selector}")),
    }
}

/// The kind of a step, and what a report calls it.
fn named(kind: &StepKind) -> (&'static str, String) {
    let what = match kind {
        StepKind::Call { tool, .. } => tool.clone(),
        kind => kind.word().to_owned(),
    };
    (kind.word(), what)
}

/// The failure of a `wait` that would outlast the run. It fails before it waits: nothing comes after it.
fn too_long_a_wait(time: Duration, left: Duration) -> ToolError {
    let message = format!(
        "a wait of {} ms is longer than the {} ms that are left for the steps; it failed at once",
        time.as_millis(),
        left.as_millis()
    );
    ToolError::new(ErrorKind::Timeout, message)
}

/// The failure of a run that has carried out as many steps as it may.
pub fn too_many_steps(limit: usize) -> ToolError {
    ToolError::new(ErrorKind::TooLarge, format!("more than {limit} steps were carried out"))
}

fn wrong(message: String) -> ToolError {
    ToolError::new(ErrorKind::InvalidArguments, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::Mutex;
    use std::task::{Context, Poll, Waker};

    const LIMITS: Limits = Limits { written: 50, executed: 60, items: 20, time: Duration::from_secs(60) };

    /// Counts, adds and fails; its clock goes only when somebody waits.
    #[derive(Default)]
    struct Desk {
        calls: Mutex<Vec<String>>,
        now: Mutex<Duration>,
        appears_after: usize,
        observes: bool,
    }

    impl StepHost for Desk {
        fn call<'a>(
            &'a self,
            device: Option<&'a str>,
            tool: &'a str,
            arguments: &'a Args,
        ) -> BoxFuture<'a, Result<Outcome, ToolError>> {
            let mut calls = self.calls.lock().unwrap();
            calls.push(format!(
                "{}{tool} {}",
                device.map(|name| format!("{name}:")).unwrap_or_default(),
                json!(arguments)
            ));
            let answer = match tool {
                "list" => Ok(Outcome::json(json!({"names": ["a", "b", "c"]}))),
                "find_elements" if device == Some("label:ci") => {
                    let line = |id: &str, text: &str| {
                        let found = [&json!("everywhere"), &json!(text)].contains(&&arguments["selector"]["text"]);
                        let elements = if found { json!([{"text": text}]) } else { json!([]) };
                        json!({"id": id, "ok": true, "result": {"elements": elements}})
                    };
                    Ok(Outcome::json(json!({"devices": [line("p1", "on one"), line("p2", "nobody's")]})))
                }
                "find_elements" if calls.len() > self.appears_after => Ok(Outcome::json(json!({"elements": [{}]}))),
                "find_elements" => Ok(Outcome::json(json!({"elements": []}))),
                "much" => Ok(Outcome::json(json!({"text": "x".repeat(1 << 20)}))),
                "fail" => Err(ToolError::new(ErrorKind::ActionFailed, "it broke")),
                _ => Ok(Outcome::text("done")),
            };
            Box::pin(std::future::ready(answer))
        }

        fn clock(&self) -> &dyn StepClock {
            self
        }

        fn observe<'a>(&'a self, device: Option<&'a str>) -> BoxFuture<'a, Option<Observation>> {
            let calls = self.calls.lock().unwrap().len();
            let seen = || Observation { screen: format!("{} after {calls}", device.unwrap_or("own")), picture: None };
            Box::pin(std::future::ready(self.observes.then(seen)))
        }
    }

    impl StepClock for Desk {
        fn pause(&self, time: Duration) -> BoxFuture<'_, ()> {
            *self.now.lock().unwrap() += time;
            Box::pin(std::future::ready(()))
        }

        fn elapsed(&self) -> Duration {
            *self.now.lock().unwrap()
        }
    }

    fn play(desk: &Desk, steps: Value) -> RunReport {
        let steps = Steps::parse(&steps, [], &LIMITS).unwrap();
        match pin!(run(&steps, desk, Map::new(), &LIMITS)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(report) => report,
            Poll::Pending => panic!("nothing waits here"),
        }
    }

    #[test]
    fn answers_are_used_by_later_steps_and_returned() {
        let desk = Desk::default();
        let report = play(
            &desk,
            json!([
                {"call": "list", "as": "found", "device": "lamp"},
                {"each": "${found.names}", "as": "name", "do": [
                    {"if": {"value": "${name}", "is": "b"}, "then": [{"call": "skip"}], "else": [{"call": "use", "arguments": {"it": "${name}!"}}]},
                ]},
                {"return": {"first": "${found.names.0}"}},
                {"call": "never"},
            ]),
        );
        assert_eq!(report.failure, None);
        assert_eq!(report.returned, Some(json!({"first": "a"})));
        let calls = desk.calls.lock().unwrap().clone();
        assert_eq!(calls, ["lamp:list {}", "use {\"it\":\"a!\"}", "skip {}", "use {\"it\":\"c!\"}"]);
        let at: Vec<&str> = report.steps.iter().map(|step| step.at.as_str()).collect();
        assert_eq!(at, ["1", "2[1].1.else.1", "2[2].1.then.1", "2[3].1.else.1", "3"]);
    }

    #[test]
    fn answers_that_are_kept_are_bounded_and_the_same_name_keeps_one() {
        let named = |name: &dyn Fn(usize) -> String| -> Value {
            (0..20).map(|nth| json!({"call": "much", "as": name(nth)})).collect()
        };
        let report = play(&Desk::default(), named(&|nth| format!("a{nth}")));
        let failure = report.failure.expect("too much");
        assert!(failure.kind == ErrorKind::TooLarge && failure.message.contains("16 MiB"), "{failure:?}");
        assert_eq!(play(&Desk::default(), named(&|_| "a".to_owned())).failure, None);
    }

    #[test]
    fn every_step_has_the_screen_that_it_met_and_the_one_that_it_left() {
        let desk = Desk { observes: true, ..Desk::default() };
        let steps = json!([{"call": "a"}, {"call": "b", "device": "lamp"}, {"if": {"value": 1, "is": 1}, "then": [{"call": "c"}]}]);
        let report = play(&desk, steps);
        let seen = |step: &StepRecord| (step.before.clone().unwrap(), step.after.clone().unwrap().screen);
        let seen: Vec<(String, String)> = report.steps.iter().map(seen).collect();
        let expected =
            [("own after 0", "own after 1"), ("lamp after 1", "lamp after 2"), ("own after 1", "own after 3")];
        assert_eq!(seen, expected.map(|(before, after)| (before.to_owned(), after.to_owned())));
        assert!(play(&Desk::default(), json!([{"call": "a"}])).steps[0].before.is_none(), "nobody asked for a report");
    }

    #[test]
    fn the_first_failure_ends_the_run_and_says_where() {
        let desk = Desk::default();
        let report = play(&desk, json!([{"call": "a"}, {"call": "fail"}, {"call": "b"}]));
        assert_eq!(report.failure.as_ref().map(|error| error.message.as_str()), Some("it broke"));
        assert_eq!(report.steps.len(), 2);
        assert_eq!(report.failed_step().map(|step| step.at.as_str()), Some("2"));
    }

    #[test]
    fn an_expectation_is_waited_for_within_its_time() {
        let desk = Desk { appears_after: 3, ..Desk::default() };
        let report = play(&desk, json!([{"expect": {"screen": {"text": "Saved"}}, "within": 2000}]));
        assert_eq!(report.failure, None);
        assert_eq!(desk.elapsed(), Duration::from_millis(750));
        let never = Desk { appears_after: 99, ..Desk::default() };
        let report = play(&never, json!([{"expect": {"screen": {"text": "Saved"}}, "within": 1000}]));
        assert!(report.failure.unwrap().message.contains("no element is"));
        let report = play(
            &never,
            json!([{"expect": {"all": [{"screen": {"text": "x"}, "is": "gone"}, {"not": {"value": 2, "above": 3}}]}}]),
        );
        assert_eq!(report.failure, None);
    }

    #[test]
    fn a_condition_on_the_screens_of_a_label_holds_for_all_of_them() {
        let desk = Desk::default();
        let look = |selector: &str, is: &str| {
            let screen = json!({"screen": {"text": selector}, "is": is, "device": "label:ci"});
            play(&desk, json!([{"expect": screen, "within": 0}])).failure.map(|failure| failure.message)
        };
        assert_eq!(look("everywhere", "visible"), None);
        assert_eq!(look("nowhere", "gone"), None);
        let partly = look("on one", "visible").expect("not on the second");
        assert!(partly.contains("p2: no element is"), "{partly}");
        assert!(look("on one", "gone").expect("on the first").contains("p1: an element is still"));
    }

    #[test]
    fn loops_end_by_count_and_time() {
        let desk = Desk::default();
        let inner = json!([{"each": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "do": [{"expect": {"value": 1, "is": 1}}]}]);
        let report = play(&desk, json!([{"each": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "as": "outer", "do": inner}]));
        assert_eq!(report.failure.unwrap().kind, ErrorKind::TooLarge);
        let report = play(&desk, json!([{"each": [1, 2, 3], "do": [{"wait": 30_000}]}]));
        assert_eq!(report.failure.unwrap().kind, ErrorKind::Timeout);
    }

    #[test]
    fn a_wait_that_outlasts_the_run_fails_itself_and_at_once() {
        let desk = Desk::default();
        let report = play(&desk, json!([{"wait": 50_000}, {"wait": 20_000}, {"call": "a"}]));
        let failure = report.failure.clone().expect("20 s do not fit into 10 s");
        assert_eq!(failure.kind, ErrorKind::Timeout);
        assert!(failure.message.contains("20000 ms") && failure.message.contains("10000 ms"), "{failure}");
        assert_eq!(report.failed_step().map(|step| (step.at.as_str(), step.kind)), Some(("2", "wait")));
        assert_eq!(desk.elapsed(), Duration::from_secs(50), "it did not wait for what is left");
    }

    #[test]
    fn a_condition_or_a_list_that_fails_is_the_failure_of_its_step() {
        let failed = |step: Value| {
            let report = play(&Desk { observes: true, ..Desk::default() }, json!([{"call": "list", "as": "s"}, step]));
            let step = report.failed_step().expect("a failed step");
            assert_eq!(report.steps.iter().filter(|step| step.outcome.is_err()).count(), 1);
            (step.at.clone(), step.what.clone(), step.after.is_some())
        };
        let nope = json!({"value": "${s.nope}", "above": 1});
        let inner = json!({"if": nope, "then": [{"wait": 1}]});
        assert_eq!(failed(inner.clone()), ("2".to_owned(), "if".to_owned(), true));
        for list in ["${s.nope}", "${s}"] {
            let each = json!({"each": list, "as": "x", "do": [{"wait": 1}]});
            assert_eq!(failed(each), ("2".to_owned(), "each".to_owned(), true));
        }
        let nested = json!({"each": [1], "as": "x", "do": [inner]});
        assert_eq!(failed(nested), ("2[1].1".to_owned(), "if".to_owned(), true));
        let deep = json!({"if": {"value": 1, "is": 1}, "then": [{"call": "fail"}]});
        assert_eq!(failed(deep), ("2.then.1".to_owned(), "fail".to_owned(), true));
    }
}
