//! Reading notifications, and acting on them as a person does: in the shade.

use std::time::Duration;

use serde_json::{Value, json};
use sinew_tool::{Args, Outcome, ToolError};
use tokio::time::Instant;

use super::args::{filled_text, invalid, text, word};
use super::element::missing;
use super::{Operator, budget};
use crate::adb::command::ShellCommand;
use crate::control::notifications::{self, Notification};
use crate::control::with_cleanup;
use crate::phone::PhoneError;
use crate::touch::{Key, Stroke};
use crate::tree::Tree;

/// How long the shade may take to open, a card to expand.
const PATIENCE: Duration = Duration::from_secs(4);

pub(super) async fn list(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let app = text(args, "app")?.unwrap_or_default().to_lowercase();
    let budget = budget(args)?.unwrap_or(16 << 10);
    let mut all = notifications::list(on.shell()?).await?;
    all.retain(|one| one.package.to_lowercase().contains(&app));
    // 60: the envelope and the count of what was left out.
    let (mut spent, total) = (60, all.len());
    let shown: Vec<Value> = all
        .iter()
        .map(entry)
        .take_while(|entry| {
            spent += entry.to_string().len() + 1;
            spent <= budget
        })
        .collect();
    let omitted = total - shown.len();
    let mut answer = json!({"notifications": shown});
    if omitted > 0 {
        answer["omitted"] = json!(omitted);
    }
    Ok(Outcome::json(answer))
}

fn entry(one: &Notification) -> Value {
    let mut entry = json!({"key": one.key, "package": one.package});
    // The long text says what the short one says.
    let text = one.big_text.as_ref().or(one.text.as_ref());
    for (name, text) in [("title", one.title.as_ref()), ("text", text)] {
        if let Some(text) = text {
            entry[name] = json!(text);
        }
    }
    if !one.actions.is_empty() {
        entry["actions"] = json!(one.actions);
    }
    if one.ongoing {
        entry["ongoing"] = json!(true);
    }
    entry
}

pub(super) async fn act(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let wanted = filled_text(args, "notification")?;
    let what = word(args, "do", &["open", "dismiss", "act", "reply"])?
        .ok_or_else(|| invalid("do", "Missing required parameter 'do': open, dismiss, act or reply"))?;
    let one = find(&notifications::list(on.shell()?).await?, &wanted)?;
    let action = match what {
        "act" | "reply" => Some(chosen_action(&one, args, what)?),
        _ => None,
    };
    let reply = if what == "reply" { Some(filled_text(args, "text")?) } else { None };
    if what == "dismiss" && one.ongoing {
        let message = format!("'{wanted}' stays until {} removes it; it cannot be dismissed", one.package);
        return Err(PhoneError::Failed(message).into());
    }
    // Opening leads out of the shade by itself; collapsing it once more changes nothing.
    let collapse = ShellCommand::new("cmd statusbar collapse");
    with_cleanup(on.shell()?, &ShellCommand::new(":"), &collapse, |_| async {
        on.phone.key(Key::Notifications).await?;
        Ok(on_card(on, &one, what, action.as_deref(), reply.as_deref()).await)
    })
    .await??;
    let name = one.title.as_deref().unwrap_or(&one.package);
    Ok(Outcome::text(match (what, action) {
        ("open", _) => format!("Opened the notification '{name}'"),
        ("dismiss", _) => format!("Dismissed the notification '{name}'"),
        ("reply", _) => format!("Replied to the notification '{name}'"),
        (_, action) => format!("Pressed '{}' on the notification '{name}'", action.unwrap_or_default()),
    }))
}

/// By its key, or by a part of title or text that fits one only.
fn find(all: &[Notification], wanted: &str) -> Result<Notification, ToolError> {
    if let Some(one) = all.iter().find(|one| one.key == wanted) {
        return Ok(one.clone());
    }
    let part = wanted.to_lowercase();
    let says = |text: &Option<String>| text.as_ref().is_some_and(|text| text.to_lowercase().contains(&part));
    let fits = |one: &&Notification| [&one.title, &one.text, &one.big_text].into_iter().any(says);
    let fitting: Vec<&Notification> = all.iter().filter(fits).collect();
    match fitting[..] {
        [one] => Ok(one.clone()),
        [] => Err(missing(format!("No notification says '{wanted}'; list_notifications shows those there are"))),
        _ => {
            Err(invalid("notification", format!("{} notifications say '{wanted}'; name one by its key", fitting.len())))
        }
    }
}

fn chosen_action(one: &Notification, args: &Args, what: &str) -> Result<String, ToolError> {
    let given = text(args, "action")?;
    let known = match &given {
        Some(given) => one.actions.iter().find(|own| own.eq_ignore_ascii_case(given)),
        None if what == "act" && one.actions.len() == 1 => one.actions.first(),
        None if what == "reply" => one.actions.iter().find(|own| own.to_lowercase().contains("repl")),
        None => None,
    };
    known.cloned().ok_or_else(|| match one.actions.is_empty() {
        true => invalid("action", "The notification has no actions; it can be opened or dismissed"),
        false if what == "reply" && given.is_none() => invalid(
            "action",
            format!(
                "No action of the notification is called a reply; name the one that takes a text: {}",
                one.actions.join(", ")
            ),
        ),
        false => invalid("action", format!("Parameter 'action' must be one of: {}", one.actions.join(", "))),
    })
}

async fn on_card(
    on: &Operator<'_>,
    one: &Notification,
    what: &str,
    action: Option<&str>,
    reply: Option<&str>,
) -> Result<(), ToolError> {
    let (tree, card) = wait_for(on, one, |tree| cards(tree, one).first().copied()).await?;
    let alike = cards(&tree, one).len();
    if alike > 1 {
        let message = format!(
            "The shade shows {alike} notifications with this title and text, and not which of them is of {}; dismiss the other ones first, or act in the app",
            one.package
        );
        return Err(invalid("notification", message));
    }
    match (what, action) {
        ("open", _) => tap(on, &tree, card).await,
        ("dismiss", _) => dismiss(on, &tree, card, one).await,
        (_, action) => {
            let action = action.unwrap_or_default();
            let (tree, button) = match button(&tree, card, action) {
                Some(button) => (tree, button),
                None => expand(on, &tree, card, one, action).await?,
            };
            tap(on, &tree, button).await?;
            match reply {
                Some(text) => send_reply(on, one, text).await,
                None => Ok(()),
            }
        }
    }
}

/// A card that is too small shows its actions when it is expanded.
async fn expand(
    on: &Operator<'_>,
    tree: &Tree,
    card_at: usize,
    one: &Notification,
    action: &str,
) -> Result<(Tree, usize), ToolError> {
    let inside = card_at..tree.position(card_at).end;
    let expander = inside.into_iter().find(|index| has_id(tree, *index, "expand_button"));
    if let Some(expander) = expander {
        tap(on, tree, expander).await?;
    }
    wait_for(on, one, |tree| cards(tree, one).iter().find_map(|card| button(tree, *card, action))).await
}

async fn send_reply(on: &Operator<'_>, one: &Notification, text: &str) -> Result<(), ToolError> {
    let is_field = |tree: &Tree, index: usize| tree.node(index).editable && tree.node(index).visible;
    let field_in = |tree: &Tree| (0..tree.len()).find(|index| is_field(tree, *index) && in_shade(tree, *index));
    let (tree, field) = wait_for(on, one, field_in).await?;
    on.phone.set_text(tree.node(field), text).await?;
    let send_in = |tree: &Tree| {
        (0..tree.len()).find(|index| {
            let says_send =
                |text: &Option<String>| text.as_deref().is_some_and(|text| text.eq_ignore_ascii_case("send"));
            let node = tree.node(*index);
            let is_send = has_id(tree, *index, "remote_input_send")
                || (node.clickable && (says_send(&node.description) || says_send(&node.text)));
            is_send && in_shade(tree, *index)
        })
    };
    let (tree, send) = wait_for(on, one, send_in).await?;
    tap(on, &tree, send).await
}

async fn dismiss(on: &Operator<'_>, tree: &Tree, card: usize, one: &Notification) -> Result<(), ToolError> {
    let bounds = tree.visible_bounds(card);
    let width = bounds.right as f32 - bounds.left as f32;
    let y = bounds.center().1 as f32;
    let from = (bounds.left as f32 + width * 0.3, y);
    let swipe = Stroke::line(from, (bounds.right as f32 - 1.0, y), Duration::ZERO, Duration::from_millis(150));
    on.phone.touch(&[swipe]).await?;
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if !notifications::list(on.shell()?).await?.iter().any(|other| other.key == one.key) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Err(PhoneError::Failed("the notification is still there after it was swiped away".to_owned()).into())
}

async fn tap(on: &Operator<'_>, tree: &Tree, index: usize) -> Result<(), ToolError> {
    let (x, y) = tree.visible_bounds(index).center();
    let hold = Stroke::hold(x as f32, y as f32, Duration::ZERO, Duration::from_millis(50));
    Ok(on.phone.touch(&[hold]).await?)
}

/// The cards in the shade that may be that of a notification: what can be pressed around its title, or around its text
/// where the title is not shown. Several where others look the same: any app can post the title of another one.
fn cards(tree: &Tree, one: &Notification) -> Vec<usize> {
    let shows = |index: usize, text: &Option<String>| {
        let own = tree.node(index).text.as_deref().filter(|_| !tree.visible_bounds(index).is_empty());
        text.is_some() && own.map(str::trim) == text.as_deref().map(str::trim) && in_shade(tree, index)
    };
    let is_card = |index: &usize| tree.node(*index).clickable || has_id(tree, *index, "expandableNotificationRow");
    let around = |text: &Option<String>| {
        let shown = (0..tree.len()).filter(|index| shows(*index, text));
        let mut cards: Vec<usize> = shown.filter_map(|index| tree.ancestors(index).find(is_card)).collect();
        cards.dedup();
        cards
    };
    let titled = around(&one.title);
    // What a card says while it is closed, or open.
    let texts = [&one.text, &one.big_text];
    if titled.is_empty() {
        return texts.into_iter().map(around).find(|cards| !cards.is_empty()).unwrap_or_default();
    }
    let has_text =
        |card: &usize| (*card..tree.position(*card).end).any(|index| texts.into_iter().any(|text| shows(index, text)));
    let both: Vec<usize> = titled.iter().copied().filter(has_text).collect();
    if both.is_empty() { titled } else { both }
}

/// Whether a node is in a window of the system's: the app below may show the same texts, and fields of its own.
fn in_shade(tree: &Tree, index: usize) -> bool {
    let root = tree.ancestors(index).last().unwrap_or(index);
    tree.node(root).package.contains("systemui")
}

fn button(tree: &Tree, card: usize, action: &str) -> Option<usize> {
    let says = |text: &Option<String>| text.as_deref().is_some_and(|text| text.eq_ignore_ascii_case(action));
    let fits = |index: &usize| {
        let node = tree.node(*index);
        node.clickable && (says(&node.text) || says(&node.description))
    };
    (card + 1..tree.position(card).end).find(fits)
}

fn has_id(tree: &Tree, index: usize, name: &str) -> bool {
    tree.node(index).resource_id.as_deref().and_then(|id| id.rsplit('/').next()) == Some(name)
}

async fn wait_for(
    on: &Operator<'_>,
    one: &Notification,
    seek: impl Fn(&Tree) -> Option<usize>,
) -> Result<(Tree, usize), ToolError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let tree = on.tree().await?;
        if let Some(index) = seek(&tree) {
            return Ok((tree, index));
        }
        if Instant::now() >= deadline {
            return Err(missing(format!(
                "The shade does not show what is needed of this notification of {}; the phone may be locked or group its notifications. Look with open_notifications and get_screen.",
                one.package
            )));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
