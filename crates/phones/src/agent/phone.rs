//! The agent as a [`Phone`]: the primitives it has. The others are the shell's.

use std::time::Duration;

use serde_json::json;

use super::error::AgentError;
use super::link::Agent;
use super::tree;
use crate::adb::phone::MAX_TYPED;
use crate::phone::{Capabilities, Phone, PhoneError, PhoneIdentity, Work};
use crate::touch::{Key, Stroke};
use crate::tree::{Tree, UiNode};

/// How long the agent may walk through the screen before it answers what it has.
const TREE: Duration = Duration::from_secs(5);

const READING: &str = "reading the screen's tree";
const TOUCHING: &str = "touching the screen";
const PRESSING: &str = "pressing a key";
const SETTING: &str = "setting a field's text";
const TYPING: &str = "typing";
const COPYING: &str = "reading the clipboard";
const FILLING: &str = "setting the clipboard";

impl Agent {
    /// Refuses what the agent does not have on this phone.
    fn need(&self, method: &str, what: &'static str) -> Result<(), PhoneError> {
        match self.hello().can(method) {
            true => Ok(()),
            false => Err(PhoneError::unsupported(what, format!("the agent cannot `{method}` on this phone"))),
        }
    }

    async fn read_tree(&self) -> Result<Tree, PhoneError> {
        self.need("tree", READING)?;
        let params = json!({"budget_ms": TREE.as_millis() as u64});
        let answer = self.screen_call("tree", params, TREE).await.map_err(|error| error.of_reading(READING))?;
        tree::parse(&answer, self.run()).ok_or_else(|| {
            self.dismiss("it answered `tree` without nodes");
            AgentError::Gone("it answered `tree` without nodes".to_owned()).of_reading(READING)
        })
    }

    async fn play(&self, strokes: &[Stroke]) -> Result<(), PhoneError> {
        self.need("touch", TOUCHING)?;
        let point = |point: &crate::touch::Point| json!([point.x, point.y, point.at.as_millis() as u64]);
        let strokes_json: Vec<_> =
            strokes.iter().map(|stroke| stroke.points.iter().map(point).collect::<Vec<_>>()).collect();
        let length = strokes.iter().map(Stroke::end).max().unwrap_or_default();
        let answer = self.screen_call("touch", json!({"strokes": strokes_json}), length).await;
        answer.map(drop).map_err(|error| error.of_acting(TOUCHING))
    }

    async fn press(&self, key: Key) -> Result<(), PhoneError> {
        self.need("key", PRESSING)?;
        // Panels have no key; the shell opens them.
        let code = key.code().ok_or_else(|| PhoneError::unsupported(PRESSING, "the shell opens panels"))?;
        let answer = self.screen_call("key", json!({"code": code}), Duration::ZERO).await;
        answer.map(drop).map_err(|error| error.of_acting(PRESSING))
    }

    async fn fill(&self, node: &UiNode, text: &str) -> Result<(), PhoneError> {
        self.need("set_text", SETTING)?;
        let handle = node.handle.ok_or_else(|| PhoneError::unsupported(SETTING, "the agent did not read the field"))?;
        let handle = tree::from_handle(self.run(), handle).ok_or_else(|| {
            PhoneError::NoElement("the field was seen by an earlier agent; read the screen again".to_owned())
        })?;
        let answer = self.screen_call("set_text", json!({"handle": handle, "text": text}), Duration::ZERO).await;
        answer.map(drop).map_err(|error| error.of_acting(SETTING))
    }

    /// Adds to what the focused field holds. What a keyboard has is left to the shell, which types it
    /// where the cursor is.
    async fn add(&self, text: &str) -> Result<(), PhoneError> {
        self.need("set_text", TYPING)?;
        let on_keys = |character| matches!(character, ' '..='~' | '\n' | '\t');
        if text.len() <= MAX_TYPED && text.chars().all(on_keys) {
            return Err(PhoneError::unsupported(TYPING, "the shell types what is on a keyboard"));
        }
        let tree = self.read_tree().await?;
        let field = tree.nodes().iter().find(|node| node.focused && node.editable);
        let field =
            field.ok_or_else(|| PhoneError::NoElement("no text field has the focus; tap one first".to_owned()))?;
        if field.password && field.text.is_some() {
            let remedy = "its content cannot be read, so nothing can be added; set the whole text";
            return Err(PhoneError::unsupported("adding such characters to a password", remedy));
        }
        let whole = field.text.clone().unwrap_or_default() + text;
        self.fill(field, &whole).await
    }
}

impl Phone for Agent {
    /// The backend below knows the phone.
    fn about(&self) -> PhoneIdentity {
        PhoneIdentity::default()
    }

    fn capabilities(&self) -> Capabilities {
        let can = |method: &str| self.hello().can(method);
        Capabilities {
            tiers: vec!["agent".into()],
            multi_touch: can("touch"),
            unicode: can("set_text"),
            clipboard: can("clipboard_get") && can("clipboard_set"),
            busy_tree: can("tree"),
            agent: Some(self.hello().version.clone()),
        }
    }

    fn tree(&self) -> Work<'_, Tree> {
        Box::pin(self.read_tree())
    }

    fn touch<'a>(&'a self, strokes: &'a [Stroke]) -> Work<'a, ()> {
        Box::pin(self.play(strokes))
    }

    fn key(&self, key: Key) -> Work<'_, ()> {
        Box::pin(self.press(key))
    }

    fn set_text<'a>(&'a self, node: &'a UiNode, text: &'a str) -> Work<'a, ()> {
        Box::pin(self.fill(node, text))
    }

    fn type_text<'a>(&'a self, text: &'a str) -> Work<'a, ()> {
        Box::pin(self.add(text))
    }

    fn clipboard(&self) -> Work<'_, Option<String>> {
        Box::pin(async {
            self.need("clipboard_get", COPYING)?;
            let answer = self.screen_call("clipboard_get", json!({}), Duration::ZERO).await;
            let answer = answer.map_err(|error| error.of_reading(COPYING))?;
            Ok(answer["text"].as_str().map(str::to_owned))
        })
    }

    fn set_clipboard<'a>(&'a self, text: &'a str) -> Work<'a, ()> {
        Box::pin(async move {
            self.need("clipboard_set", FILLING)?;
            let answer = self.screen_call("clipboard_set", json!({"text": text}), Duration::ZERO).await;
            answer.map(drop).map_err(|error| error.of_acting(FILLING))
        })
    }
}
