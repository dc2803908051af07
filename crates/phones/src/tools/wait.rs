//! Waiting for something to appear, or for the screen to come to rest.

use std::time::Duration;

use serde_json::json;
use sinew_tool::{Args, Outcome, ToolError};
use tokio::time::{Instant, timeout_at};

use super::Operator;
use super::apps::package;
use super::args::{invalid, text, timeout, word};
use super::element::{Target, is_visible, selector};
use crate::phone::PhoneError;
use crate::screen::is_on;
use crate::tree::select::Matching;
use crate::tree::{Tree, json};

/// Reading a screen through the shell takes a second or two.
const FIRST_LOOK: Duration = Duration::from_secs(3);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) async fn element(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let mut selector = selector(args)?;
    // The reference has no exact search here.
    if args.contains_key("by") {
        selector.conditions.iter_mut().for_each(|condition| condition.matching = Matching::Part);
    }
    let limit = timeout(args, 5000)?;
    let clock = Countdown::new(limit);
    let (mut attempts, mut hint) = (0, None);
    while attempts == 0 || !clock.is_over() {
        attempts += 1;
        let looked = if attempts == 1 { clock.look_first(on).await } else { clock.look(on).await };
        let looked = looked?;
        hint = looked.as_ref().and_then(|tree| on.other_name(tree, &selector)).or(hint);
        if let Some(tree) = looked
            && let Some(index) = selector.find(&tree).first().copied()
        {
            let node = tree.node(index);
            return Ok(Outcome::json(json!({
                "found": true,
                "elapsedMs": clock.elapsed(),
                "attempts": attempts,
                "element": {
                    "id": tree.id(index).to_string(),
                    "text": node.text,
                    "contentDescription": node.description,
                    "resourceId": node.resource_id,
                    "className": node.class,
                    "bounds": json::bounds(node.bounds),
                    "clickable": node.clickable,
                    "enabled": node.enabled,
                },
            })));
        }
        clock.pause().await;
    }
    let sought = match (&selector.conditions[..], &selector.relation) {
        ([only], None) => format!("by={}, value='{}'", only.by.word(), only.value),
        _ => selector.to_string(),
    };
    let hint = hint.map(|hint| format!(". {hint}")).unwrap_or_default();
    let message = format!("Element not found within {limit}ms ({sought}, attempts={attempts}){hint}");
    Err(PhoneError::Timeout(message).into())
}

pub(super) async fn idle(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let limit = timeout(args, 3000)?;
    let clock = Countdown::new(limit);
    // A backend that reads only a screen at rest has seen it rest when it answers.
    let wanted = if on.phone.capabilities().busy_tree { 2 } else { 0 };
    let mut before: Option<Tree> = None;
    let mut equal = 0;
    while !clock.is_over() {
        match clock.look(on).await? {
            Some(tree) => {
                equal = if before.as_ref() == Some(&tree) { equal + 1 } else { 0 };
                before = Some(tree);
                if equal >= wanted {
                    return Ok(Outcome::json(json!({"message": "UI is idle", "elapsedMs": clock.elapsed()})));
                }
            }
            None => (equal, before) = (0, None),
        }
        clock.pause().await;
    }
    Err(PhoneError::Timeout(format!("UI did not become idle within {limit}ms")).into())
}

/// What an element should be for the wait to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Visible,
    Gone,
    On,
    Off,
    Enabled,
    Disabled,
    Focused,
    Selected,
}

const STATES: [(&str, Wanted); 8] = [
    ("visible", Wanted::Visible),
    ("gone", Wanted::Gone),
    ("on", Wanted::On),
    ("off", Wanted::Off),
    ("enabled", Wanted::Enabled),
    ("disabled", Wanted::Disabled),
    ("focused", Wanted::Focused),
    ("selected", Wanted::Selected),
];

impl Wanted {
    fn holds(self, tree: &Tree, index: usize) -> bool {
        let node = tree.node(index);
        match self {
            Wanted::Visible => true,
            Wanted::Gone => false,
            Wanted::On => is_on(tree, index) == Some(true),
            Wanted::Off => is_on(tree, index) == Some(false),
            Wanted::Enabled => node.enabled,
            Wanted::Disabled => !node.enabled,
            Wanted::Focused => node.focused,
            Wanted::Selected => node.selected,
        }
    }
}

/// `wait_until`: something is gone, says something or is in a state, or an app is in front.
pub(super) async fn until(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let limit = timeout(args, 5000)?;
    let goal = Goal::read(on, args).await?;
    let clock = Countdown::new(limit);
    let mut is_first = true;
    let mut last = "nothing was seen".to_owned();
    while is_first || !clock.is_over() {
        match goal.missing(on, &clock, is_first).await? {
            None => return Ok(Outcome::json(json!({"met": true, "elapsedMs": clock.elapsed()}))),
            Some(seen) => last = seen,
        }
        is_first = false;
        clock.pause().await;
    }
    Err(PhoneError::Timeout(format!("Not so within {limit}ms: {last}")).into())
}

/// What `wait_until` waits for.
struct Goal {
    /// The package that should be in front.
    app: Option<String>,
    target: Option<Target>,
    state: Wanted,
    /// What the element should say, in small letters.
    says: Option<String>,
}

impl Goal {
    async fn read(on: &Operator<'_>, args: &Args) -> Result<Goal, ToolError> {
        let app = match text(args, "app")? {
            Some(_) => Some(package(on, args).await?),
            None => None,
        };
        let target = Target::read(args)?;
        if app.is_none() && target.is_none() {
            return Err(invalid(
                "selector",
                "Parameter 'selector' must be given, or 'element_id', 'by' and 'value', or 'app'",
            ));
        }
        // What was never shown cannot be gone.
        if let Some(target @ Target::Named(name)) = &target
            && on.id_of(name).is_none()
        {
            on.find(&on.live_tree().await?, target)?;
        }
        let words = STATES.map(|(name, _)| name);
        let state = word(args, "state", &words)?.unwrap_or("visible");
        let state = STATES.iter().find(|(name, _)| *name == state).map_or(Wanted::Visible, |(_, wanted)| *wanted);
        Ok(Goal { app, target, state, says: text(args, "text")?.map(|says| says.to_lowercase()) })
    }

    /// `None` where everything is so; otherwise what is there instead.
    async fn missing(
        &self,
        on: &Operator<'_>,
        clock: &Countdown,
        is_first: bool,
    ) -> Result<Option<String>, PhoneError> {
        if let Some(app) = &self.app {
            let front = on.phone.foreground().await?.package;
            if front.as_ref() != Some(app) {
                return Ok(Some(format!("{} is in front", front.as_deref().unwrap_or("no app"))));
            }
        }
        let Some(target) = &self.target else { return Ok(None) };
        let looked = if is_first { clock.look_first(on).await } else { clock.look(on).await };
        let Some(tree) = looked? else {
            return Ok(Some("the screen cannot be read while it moves".to_owned()));
        };
        let found = on.seek(&tree, target).filter(|index| is_visible(&tree, *index));
        let Some(index) = found else {
            return Ok((self.state != Wanted::Gone).then(|| "the element is not on the screen".to_owned()));
        };
        if !self.state.holds(&tree, index) {
            return Ok(Some("the element is there, but not in that state".to_owned()));
        }
        let texts = texts(&tree, index);
        Ok(match &self.says {
            Some(part) if !texts.iter().any(|text| text.to_lowercase().contains(part)) => Some(match on.may_show() {
                true => format!("the element says '{}'", texts.join(", ").chars().take(100).collect::<String>()),
                false => "the element says something else".to_owned(),
            }),
            _ => None,
        })
    }
}

/// What an element and the things in it say.
fn texts(tree: &Tree, index: usize) -> Vec<&str> {
    let nodes = (index..tree.position(index).end).map(|inner| tree.node(inner));
    nodes.flat_map(|node| [node.text.as_deref(), node.description.as_deref()]).flatten().collect()
}

struct Countdown {
    start: Instant,
    deadline: Instant,
}

impl Countdown {
    fn new(milliseconds: u64) -> Countdown {
        let start = Instant::now();
        Countdown { start, deadline: start + Duration::from_millis(milliseconds) }
    }

    fn elapsed(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    async fn pause(&self) {
        tokio::time::sleep_until(self.deadline.min(Instant::now() + PAUSE)).await;
    }

    /// A tree within the time left. `None` for what may pass: a screen that moves, an app that starts.
    /// What a person must fix ends the waiting.
    async fn look(&self, on: &Operator<'_>) -> Result<Option<Tree>, PhoneError> {
        self.look_until(self.deadline, on).await
    }

    /// However short the time is, what is there already is seen.
    async fn look_first(&self, on: &Operator<'_>) -> Result<Option<Tree>, PhoneError> {
        self.look_until(self.deadline.max(self.start + FIRST_LOOK), on).await
    }

    async fn look_until(&self, end: Instant, on: &Operator<'_>) -> Result<Option<Tree>, PhoneError> {
        match timeout_at(end, on.tree()).await {
            // Between two windows there is none.
            Ok(Ok(tree)) => Ok(Some(tree).filter(|tree| !tree.is_empty())),
            Ok(Err(error @ (PhoneError::Denied(_) | PhoneError::Gone(_)))) => Err(error),
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }
}
