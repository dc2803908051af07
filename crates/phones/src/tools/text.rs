//! Text, keys and the clipboard.

use std::time::Duration;

use serde_json::json;
use sinew_tool::{Args, ErrorKind, Outcome, ToolError};
use tokio::time::Instant;

use super::args::{boolean, integer, invalid, required_text, text};
use super::element::Target;
use super::{Operator, budget};
use crate::phone::PhoneError;
use crate::touch::{Key, Stroke};
use crate::tree::{UiNode, UiNodeId};

pub(super) async fn set(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let target = Target::required(args)?;
    let text = required_text(args, "text")?;
    let Field { node, name, .. } = field(on, Some(target)).await?;
    on.phone.set_text(&node, &text).await?;
    Ok(Outcome::text(format!("Text set on element '{name}'")))
}

pub(super) async fn input(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let text = required_text(args, "text")?;
    let target = Target::read(args)?;
    if boolean(args, "append")?.unwrap_or(false) {
        if let Some(target) = target {
            let Field { node, name, .. } = field(on, Some(target)).await?;
            require_readable(&node, &name)?;
            let whole = node.content().to_owned() + &text;
            on.phone.set_text(&node, &whole).await?;
        } else {
            on.phone.type_text(&text).await?;
        }
    } else {
        let node = field(on, target).await?.node;
        on.phone.set_text(&node, &text).await?;
    }
    // The reference counts UTF-16 units, as Java does.
    Ok(Outcome::text(format!("Text input completed ({} characters)", text.encode_utf16().count())))
}

/// Inserts before the character number `at`, or where the cursor is, in place of what is selected there.
pub(super) async fn insert(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let text = required_text(args, "text")?;
    let target = Target::read(args)?;
    let has_place = args.get("at").is_some_and(|at| !at.is_null());
    let count = text.chars().count();
    let done = Outcome::text(format!("Inserted {count} characters"));
    if target.is_none() && !has_place {
        on.phone.type_text(&text).await?;
        return Ok(done);
    }
    let Field { node, name, .. } = field(on, target).await?;
    require_readable(&node, &name)?;
    let own = node.content().to_owned();
    let (start, end) = match (has_place, node.selection) {
        (true, _) => {
            let at = place(args, "at", &own)?;
            (at, at)
        }
        (false, Some(selection)) => selection,
        (false, None) => {
            let message = "Parameter 'at' must be given for a named field whose cursor the phone does not report; without a field the cursor counts";
            return Err(invalid("at", message));
        }
    };
    let whole: String = own.chars().take(start).chain(text.chars()).chain(own.chars().skip(end)).collect();
    on.phone.set_text(&node, &whole).await?;
    // Behind what was inserted, as after typing, where the phone can be told.
    let after = UiNode { text: Some(whole), ..node };
    let _ = on.phone.select(&after, start + count, start + count).await;
    Ok(done)
}

/// Of a password only its length is known: writing what is read would replace it with dots.
fn require_readable(node: &UiNode, name: &str) -> Result<(), PhoneError> {
    match node.password {
        true => Err(PhoneError::Failed(format!(
            "the content of '{name}' cannot be read, so nothing can be added to it; set the whole text"
        ))),
        false => Ok(()),
    }
}

/// Selects a part of a field, or puts the cursor somewhere.
pub(super) async fn select(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let Field { node, name, .. } = field(on, Target::read(args)?).await?;
    if node.password {
        return Err(PhoneError::Failed(format!(
            "the content of '{name}' cannot be read, so no part of it can be selected"
        ))
        .into());
    }
    let own = node.content().to_owned();
    let length = own.chars().count();
    let given = |name: &str| args.get(name).is_some_and(|value| !value.is_null());
    let start = if given("start") { place(args, "start", &own)? } else { 0 };
    let end = if given("end") { place(args, "end", &own)? } else { length };
    if start > end {
        return Err(invalid("start", format!("Parameter 'start' must be at most 'end' ({end}), got: {start}")));
    }
    on.phone.select(&node, start, end).await?;
    Ok(Outcome::text(format!("Selected characters {start} to {end} of '{name}'")))
}

/// Inserts the clipboard at the cursor, in place of what is selected; with a text, that goes through the clipboard.
pub(super) async fn paste(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let text = text(args, "text")?;
    let field = field(on, Target::read(args)?).await?;
    if let Some(text) = &text {
        on.phone.set_clipboard(text).await?;
    }
    if !field.node.focused {
        focus(on, &field).await?;
    }
    on.phone.key(Key::Paste).await?;
    Ok(Outcome::text(format!("Pasted into '{}'", field.name)))
}

/// A field gets the focus a moment after it was touched.
const FOCUS: Duration = Duration::from_secs(3);

/// Touches a field and waits until it has the focus: a key goes to whatever has it.
async fn focus(on: &Operator<'_>, field: &Field) -> Result<(), ToolError> {
    let (x, y) = field.node.bounds.center();
    let tap = Stroke::hold(x as f32, y as f32, Duration::ZERO, Duration::from_millis(50));
    on.phone.touch(&[tap]).await?;
    let deadline = Instant::now() + FOCUS;
    loop {
        let tree = on.tree().await?;
        if tree.find(field.id).is_some_and(|index| tree.node(index).focused) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(PhoneError::Failed(format!(
                "nothing was pasted: '{}' was touched, but did not get the focus within {} s",
                field.name,
                FOCUS.as_secs()
            ))
            .into());
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
}

fn place(args: &Args, name: &str, text: &str) -> Result<usize, ToolError> {
    let at = integer(args, name, 0, 0..=i64::from(u32::MAX))?.unsigned_abs() as usize;
    let length = text.chars().count();
    match at <= length {
        true => Ok(at),
        false => Err(invalid(name, format!("Parameter '{name}' must be between 0 and {length}, got: {at}"))),
    }
}

pub(super) async fn clear(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let node = field(on, Target::read(args)?).await?.node;
    on.phone.set_text(&node, "").await?;
    Ok(Outcome::text("Text cleared successfully"))
}

struct Field {
    node: UiNode,
    /// What messages call it.
    name: String,
    id: UiNodeId,
}

/// The field meant: the one named, or the focused one.
async fn field(on: &Operator<'_>, target: Option<Target>) -> Result<Field, ToolError> {
    let tree = on.live_tree().await?;
    let Some(target) = target else {
        let focused = (0..tree.len()).find(|index| tree.node(*index).focused && tree.node(*index).editable);
        let index = focused.ok_or_else(|| {
            let message = "No focused editable element found. Focus an input field first or provide element_id.";
            ToolError::new(ErrorKind::ElementNotFound, message)
        })?;
        let id = tree.id(index);
        return Ok(Field { node: tree.node(index).clone(), name: id.to_string(), id });
    };
    let index = on.find(&tree, &target)?;
    let name = target.shown(&tree, index);
    let node = tree.node(index);
    let failed = |why: &str| Err(PhoneError::Failed(format!("Node '{name}' {why}")).into());
    match () {
        () if !node.editable => failed("is not editable"),
        () if !node.enabled => failed("is disabled"),
        () => {
            let node = UiNode { bounds: tree.visible_bounds(index), ..node.clone() };
            Ok(Field { node, name, id: tree.id(index) })
        }
    }
}

pub(super) async fn press(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let name = required_text(args, "key")?;
    let key = Key::find(&name).ok_or_else(|| {
        let names: Vec<&str> = Key::NAMED.iter().filter_map(|key| key.name()).collect();
        invalid("key", format!("Invalid key: '{name}'. Allowed values: {}", names.join(", ")))
    })?;
    on.phone.key(key).await?;
    Ok(Outcome::text(format!("Key '{}' pressed successfully", key.name().unwrap_or_default())))
}

pub(super) async fn clipboard(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let budget = budget(args)?;
    let text = on.phone.clipboard().await?;
    let mut answer = json!({"text": text});
    if let (Some(text), Some(budget)) = (text, budget)
        && answer.to_string().len() > budget
    {
        // Half of it, because a character may take more bytes in JSON; 40: the envelope and the count.
        let kept = text.floor_char_boundary((budget - 40) / 2);
        answer = json!({"text": text[..kept], "omitted": text.len() - kept});
    }
    Ok(Outcome::json(answer))
}

pub(super) async fn set_clipboard(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let text = required_text(args, "text")?;
    on.phone.set_clipboard(&text).await?;
    Ok(Outcome::text(format!("Clipboard set successfully ({} characters)", text.encode_utf16().count())))
}
