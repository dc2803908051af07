//! Waiting for something to appear, or for the screen to come to rest.

use std::time::Duration;

use serde_json::json;
use sinew_tool::{Args, Outcome, ToolError};
use tokio::time::{Instant, timeout_at};

use super::Operator;
use super::args::timeout;
use super::element::selector;
use crate::phone::PhoneError;
use crate::tree::{Tree, json};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) async fn element(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let mut selector = selector(args)?;
    selector.exact = false;
    let limit = timeout(args, 5000)?;
    let clock = Countdown::new(limit);
    let mut attempts = 0;
    while !clock.is_over() {
        attempts += 1;
        if let Some(tree) = clock.look(on).await?
            && let Some(index) = selector.find(&tree).next()
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
    let (by, value) = (selector.by.word(), &selector.value);
    let message = format!("Element not found within {limit}ms (by={by}, value='{value}', attempts={attempts})");
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
        match timeout_at(self.deadline, on.tree()).await {
            // Between two windows there is none.
            Ok(Ok(tree)) => Ok(Some(tree).filter(|tree| !tree.is_empty())),
            Ok(Err(error @ (PhoneError::Denied(_) | PhoneError::Gone(_)))) => Err(error),
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }
}
