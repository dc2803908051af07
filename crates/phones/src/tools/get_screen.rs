//! `get_screen`: the screen as text, with a picture where wanted.

use sinew_tool::{Args, Content, Outcome, ToolError};

use super::args::word;
use super::read::{finish, to_jpeg};
use super::{Operator, budget};
use crate::image::Mark;
use crate::screen::{ItemKind, ScreenView};

/// The longest side of a picture that comes beside the text: small print stays readable, and models
/// scale larger ones down themselves.
const DEFAULT_SIDE: u32 = 768;

pub(super) async fn get_screen(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let budget = budget(args)?;
    let picture = word(args, "screenshot", &["none", "plain", "annotated"])?.unwrap_or("none");
    if picture == "none" {
        return Ok(Outcome::text(on.show(&on.tree().await?, budget)));
    }
    let mut finish = finish(args)?;
    if !args.contains_key("max_side") {
        finish.max_side = Some(DEFAULT_SIDE);
    }
    let (tree, image) = tokio::join!(on.tree(), on.phone.screenshot());
    // One of the two is better than none: secure screens are read and not pictured, moving ones the other way round.
    let (text, tree) = match tree {
        Ok(tree) => (on.show(&tree, budget), Some(tree)),
        Err(error) if image.is_err() => return Err(error.into()),
        Err(error) => (format!("only the picture, because the tree cannot be read: {error}"), None),
    };
    let image = match image {
        Ok(image) => image,
        Err(error) => return Ok(Outcome::text(format!("{text}\n(no picture: {error})"))),
    };
    if picture == "annotated" {
        finish.marks = tree.map(|tree| marks(on, &ScreenView::of(&tree))).unwrap_or_default();
    }
    let image: Content = to_jpeg(image, finish).await?;
    Ok(Outcome::text(text).with(image))
}

/// A box for everything that can be acted on, numbered like its ref.
fn marks(on: &Operator<'_>, view: &ScreenView) -> Vec<Mark> {
    let mut memory = on.memory.lock();
    let acting =
        view.items.iter().filter(|item| !matches!(item.kind, ItemKind::Text | ItemKind::Scroll | ItemKind::Keyboard));
    acting.map(|item| Mark { bounds: item.bounds, number: memory.refs.number(item) }).collect()
}
