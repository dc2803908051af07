//! The phone tools, written once on the [`Phone`] primitives.
//!
//! [`Operator`] runs them on one phone: it reads the arguments, runs the tool, and for acting tools waits
//! for the screen and shows it where the caller asks. Every tool is a row of the [`table`]; what it does
//! is in a file for each kind.

mod apps;
mod args;
mod device;
mod element;
mod files;
mod gesture;
mod get_element;
mod get_screen;
pub mod list;
mod manage;
mod notifications;
mod read;
pub mod reference;
pub mod row;
mod scroll_to;
mod steps;
mod system;
pub mod table;
mod text;
mod wait;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sinew_tool::{Args, Caller, Content, ErrorKind, NestedCalls, Outcome, ToolAccess, ToolError};
use tokio::time::Instant;

use crate::control::PhoneShell;
use crate::phone::{Phone, PhoneError, Screen};
use crate::screen::refs::Refs;
use crate::screen::{ScreenView, diff};
use crate::tree::identify::identify;
use crate::tree::{Tree, UiNodeId};
use crate::turn::Turn;
use args::{boolean, integer, invalid, word};
use row::ToolRow;

pub use list::{Profile, tools};
pub use reference::reference_tools;

/// What is remembered of a phone between calls.
#[derive(Default)]
pub struct Memory(Mutex<MemoryState>);

#[derive(Default)]
struct MemoryState {
    refs: Refs,
    shown: LastViews,
    screen: Option<(Instant, Screen)>,
}

impl Memory {
    pub(crate) fn describe(&self, view: &ScreenView, budget: Option<usize>) -> String {
        view.to_text(&mut self.lock().refs, budget)
    }

    /// The node that a ref or an id stands for.
    fn id_of(&self, name: &str) -> Option<UiNodeId> {
        UiNodeId::parse(name).or_else(|| self.lock().refs.find(name).map(|known| known.id))
    }

    /// The arguments with a selector in place of a ref or an id, where one tells the element from all others.
    pub(crate) fn with_selector(&self, tree: &Tree, args: &Args) -> Option<Args> {
        let name = args.get("element_id")?.as_str()?;
        let selector = identify(tree, tree.find(self.id_of(name)?)?)?;
        let mut args = args.clone();
        args.remove("element_id");
        args.insert("selector".to_owned(), selector.to_json());
        Some(args)
    }

    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The view that each caller was last shown, the latest last.
#[derive(Default)]
struct LastViews(Vec<(String, ScreenView)>);

/// 32: more callers than one phone can serve; the one that looked longest ago is forgotten.
const MAX_CALLERS: usize = 32;

impl LastViews {
    fn knows(&self, caller: &str) -> bool {
        self.0.iter().any(|(name, _)| name == caller)
    }

    fn remove(&mut self, caller: &str) -> Option<ScreenView> {
        let at = self.0.iter().position(|(name, _)| name == caller)?;
        Some(self.0.remove(at).1)
    }

    fn insert(&mut self, caller: &str, view: ScreenView) {
        self.remove(caller);
        if self.0.len() >= MAX_CALLERS {
            self.0.remove(0);
        }
        self.0.push((caller.to_owned(), view));
    }
}

/// Runs tools on one phone for one caller.
#[derive(Clone)]
pub struct Operator<'a> {
    pub phone: &'a dyn Phone,
    pub memory: &'a Memory,
    /// A diff is relative to what this caller saw last.
    pub caller: &'a str,
    pub profile: Profile,
    /// The folder that apps are installed from.
    pub apks: Option<&'a Path>,
    /// When the caller stops waiting.
    pub deadline: Instant,
    /// For steps, which are calls of their own.
    pub calls: &'a dyn NestedCalls,
    pub turn: &'a Turn,
    /// Takes reports while a tool runs, and may send files along with the call.
    pub client: &'a dyn Caller,
}

/// How long a screen may keep changing before it is shown as it is.
const SETTLE: Duration = Duration::from_secs(3);

/// What acting tools take beside their own arguments.
struct ActionOptions {
    settle: bool,
    show: ReturnMode,
    budget: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReturnMode {
    Nothing,
    Diff,
    Screen,
}

impl ActionOptions {
    fn read(args: &Args) -> Result<ActionOptions, ToolError> {
        let show = match word(args, "return", &["none", "diff", "screen"])? {
            Some("diff") => ReturnMode::Diff,
            Some("screen") => ReturnMode::Screen,
            _ => ReturnMode::Nothing,
        };
        let settle = boolean(args, "settle")?.unwrap_or(show != ReturnMode::Nothing);
        Ok(ActionOptions { settle, show, budget: budget(args)? })
    }
}

/// The most bytes of text the caller wants.
fn budget(args: &Args) -> Result<Option<usize>, ToolError> {
    // 200: below that not even a note of what was left out is of use.
    let bytes = integer(args, "max_bytes", i64::MAX, i64::MIN..=i64::MAX)?;
    if bytes < 200 {
        return Err(invalid("max_bytes", format!("Parameter 'max_bytes' must be >= 200, got: {bytes}")));
    }
    Ok(usize::try_from(bytes).ok().filter(|_| bytes != i64::MAX))
}

impl Operator<'_> {
    pub async fn call(&self, tool: &str, args: &Args) -> Result<Outcome, ToolError> {
        let is_allowed = |row: &&ToolRow| row.profile <= self.profile;
        let row = table::find(tool)
            .filter(is_allowed)
            .ok_or_else(|| ToolError::new(ErrorKind::UnknownTool, format!("a phone has no tool `{tool}`")))?;
        row.check_names(args)?;
        if !row.acts() {
            return (row.run)(self, args).await;
        }
        let options = ActionOptions::read(args)?;
        // A diff is against what the caller was last shown; one who saw nothing yet gets it against
        // the screen before the action.
        if options.show == ReturnMode::Diff && !self.memory.lock().shown.knows(self.caller) {
            let view = ScreenView::of(&self.tree().await?);
            self.memory.lock().shown.insert(self.caller, view);
        }
        let mut outcome = (row.run)(self, args).await?;
        if let Some(text) = self.after_action(&options).await {
            outcome.content.push(Content::Text(text));
        }
        Ok(outcome)
    }

    fn shell(&self) -> Result<&dyn PhoneShell, PhoneError> {
        self.phone.shell().ok_or_else(|| PhoneError::unsupported("running commands", "connect the phone through adb"))
    }

    async fn tree(&self) -> Result<Tree, PhoneError> {
        self.phone.tree().await
    }

    /// A tree with something in it.
    async fn live_tree(&self) -> Result<Tree, PhoneError> {
        let tree = self.tree().await?;
        match tree.is_empty() {
            true => Err(PhoneError::Denied(NO_WINDOW.to_owned())),
            false => Ok(tree),
        }
    }

    /// Whether this caller may read the screen: all text of it in answers and errors of tools that do something else is
    /// shown to nobody else.
    fn may_show(&self) -> bool {
        ["get_screen", "find_elements"].iter().any(|tool| self.calls.access(tool) == ToolAccess::Free)
    }

    /// Waits and shows, as asked. The action is done, so a failure here becomes part of the answer and not an error.
    async fn after_action(&self, options: &ActionOptions) -> Option<String> {
        if !options.settle && options.show == ReturnMode::Nothing {
            return None;
        }
        let (tree, still) =
            match if options.settle { self.settled().await } else { self.tree().await.map(|tree| (tree, true)) } {
                Ok(seen) => seen,
                Err(error) => return Some(format!("done, but the screen cannot be read: {error}")),
            };
        if options.show != ReturnMode::Nothing && !self.may_show() {
            return Some("done; the screen is not shown to a caller who may not call get_screen".to_owned());
        }
        let text = match options.show {
            ReturnMode::Nothing => return (!still).then(|| "the screen is still moving".to_owned()),
            ReturnMode::Diff => self.show_diff(&tree, options.budget),
            ReturnMode::Screen => self.show(&tree, options.budget),
        };
        Some(if still { text } else { format!("{text}\n(the screen is still moving)") })
    }

    /// The tree when it has stopped changing, or as it is after a while, and which of the two.
    async fn settled(&self) -> Result<(Tree, bool), PhoneError> {
        let mut tree = self.tree().await?;
        // A backend that can only read a still screen has waited already.
        if !self.phone.capabilities().busy_tree {
            return Ok((tree, true));
        }
        let deadline = Instant::now() + SETTLE;
        while Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(150)).await;
            let next = self.tree().await?;
            if next == tree {
                return Ok((tree, true));
            }
            tree = next;
        }
        Ok((tree, false))
    }

    /// The screen as text, remembered as what the caller knows.
    fn show(&self, tree: &Tree, budget: Option<usize>) -> String {
        let view = ScreenView::of(tree);
        let mut memory = self.memory.lock();
        let text = view.to_text(&mut memory.refs, budget);
        memory.shown.insert(self.caller, view);
        text
    }

    fn show_diff(&self, tree: &Tree, budget: Option<usize>) -> String {
        let view = ScreenView::of(tree);
        let mut memory = self.memory.lock();
        let before = memory.shown.remove(self.caller).unwrap_or_default();
        let text = diff::to_text(&before, &view, &mut memory.refs, budget);
        memory.shown.insert(self.caller, view);
        text
    }

    /// The screen's size, asked anew every ten seconds: foldables and rotation change it.
    async fn screen(&self) -> Result<Screen, PhoneError> {
        let known = self.memory.lock().screen;
        match known {
            Some((at, screen)) if at.elapsed() < Duration::from_secs(10) => Ok(screen),
            _ => self.screen_now().await,
        }
    }

    async fn screen_now(&self) -> Result<Screen, PhoneError> {
        let screen = self.phone.screen().await?;
        self.memory.lock().screen = Some((Instant::now(), screen));
        Ok(screen)
    }

    /// Refuses points outside the screen and names the argument.
    async fn on_screen(&self, points: &[(&str, f32, &str, f32)]) -> Result<(), ToolError> {
        let outside = |screen: Screen| {
            points.iter().find_map(|(x_name, x, y_name, y)| {
                let beyond = |name: &str, at: f32, size: u32| {
                    let message =
                        format!("{name} must be on the screen (0 to {}), got: {at:?}", size.saturating_sub(1));
                    (at >= size as f32).then(|| invalid(name, message))
                };
                beyond(x_name, *x, screen.width).or_else(|| beyond(y_name, *y, screen.height))
            })
        };
        if outside(self.screen().await?).is_none() {
            return Ok(());
        }
        // The screen may have turned since it was measured.
        outside(self.screen_now().await?).map_or(Ok(()), Err)
    }
}

const NO_WINDOW: &str = "No active window available. Ensure an app is in the foreground.";
