//! The agent as a [`Phone`]: the primitives it has. The others are the shell's.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::error::{AgentError, AgentRefusal};
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
const SELECTING: &str = "selecting text";
const WATCHING: &str = "taking small screenshots";
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
        let handle = self.handle_of(node, SETTING)?;
        let answer = self.screen_call("set_text", json!({"handle": handle, "text": text}), Duration::ZERO).await;
        answer.map(drop).map_err(|error| error.of_acting(SETTING))
    }

    async fn mark(&self, node: &UiNode, start: usize, end: usize) -> Result<(), PhoneError> {
        self.need("select", SELECTING)?;
        let handle = self.handle_of(node, SELECTING)?;
        let text = node.text.as_deref().unwrap_or_default();
        let params = json!({"handle": handle, "start": tree::to_units(text, start), "end": tree::to_units(text, end)});
        let answer = self.screen_call("select", params, Duration::ZERO).await;
        answer.map(drop).map_err(|error| error.of_acting(SELECTING))
    }

    fn handle_of(&self, node: &UiNode, what: &'static str) -> Result<u64, PhoneError> {
        let handle = node.handle.ok_or_else(|| PhoneError::unsupported(what, "the agent did not read the field"))?;
        tree::from_handle(self.run(), handle).ok_or_else(|| {
            PhoneError::NoElement("the field was seen by an earlier agent; read the screen again".to_owned())
        })
    }

    async fn watch(&self, max_side: u32, quality: u8) -> Result<Vec<u8>, PhoneError> {
        self.need("picture", WATCHING)?;
        let answer = self.picture(max_side, quality).await.map_err(|error| match error {
            // Another program reads the screen; the shell can still capture it.
            AgentError::Refused { kind: AgentRefusal::Busy, message } => PhoneError::unsupported(WATCHING, message),
            error => error.of_reading(WATCHING),
        })?;
        // Only a JPEG file is passed on to viewers.
        let jpeg = answer.as_str().and_then(|text| STANDARD.decode(text).ok());
        let jpeg = jpeg.filter(|bytes| bytes.starts_with(&[0xff, 0xd8, 0xff]));
        jpeg.ok_or_else(|| PhoneError::unsupported(WATCHING, "the agent answered `picture` without a JPEG"))
    }

    /// Adds to what the focused field holds, where its cursor is. What a keyboard has is left to the shell, which types it
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
        let own = field.content().to_owned();
        let length = own.chars().count();
        let (start, end) = field.selection.unwrap_or((length, length));
        let whole: String = own.chars().take(start).chain(text.chars()).chain(own.chars().skip(end)).collect();
        self.fill(field, &whole).await?;
        let caret = start + text.chars().count();
        // A field puts the caret behind its whole text; where it cannot be put back, the text is still right.
        if end < length
            && let Err(error) = self.mark(&UiNode { text: Some(whole), ..field.clone() }, caret, caret).await
        {
            tracing::debug!(%error, "the caret stays behind the text");
        }
        Ok(())
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

    fn select<'a>(&'a self, node: &'a UiNode, start: usize, end: usize) -> Work<'a, ()> {
        Box::pin(self.mark(node, start, end))
    }

    fn small_screenshot(&self, max_side: u32, quality: u8) -> Work<'_, Vec<u8>> {
        Box::pin(self.watch(max_side, quality))
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
