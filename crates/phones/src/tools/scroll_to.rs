//! Scrolling until something is in view.

use std::collections::HashSet;
use std::time::Duration;

use sinew_tool::{Args, Outcome, ToolError};
use tokio::time::Instant;

use super::Operator;
use super::element::{Target, is_visible};
use crate::phone::PhoneError;
use crate::screen::ScreenView;
use crate::screen::label::ItemLabel;
use crate::touch::{Point, Stroke};
use crate::tree::{Rect, Tree, UiNodeId};

/// How often a container known to hold the element is scrolled.
const MAX_SCROLLS: usize = 5;

/// The part of the call's time that a search leaves for its answer.
const RESERVE: u32 = 4;

/// Strokes that go back through what was seen already, between two looks.
const BLIND: usize = 6;

pub(super) async fn scroll_to(on: &Operator<'_>, args: &Args) -> Result<Outcome, ToolError> {
    let target = Target::required(args)?;
    let tree = on.live_tree().await?;
    match on.seek(&tree, &target) {
        Some(index) if is_visible(&tree, index) => {
            Ok(Outcome::text(format!("Element '{}' is already visible", target.shown(&tree, index))))
        }
        Some(index) => bring_in(on, &target, tree, index).await,
        // Seen earlier, or described: it may be further up or down.
        None if on.may_be_elsewhere(&target) => Search::new(on, &target, tree).run().await,
        None => on.find(&tree, &target).map(|_| Outcome::default()),
    }
}

impl Operator<'_> {
    fn may_be_elsewhere(&self, target: &Target) -> bool {
        let Target::Named(name) = target else { return true };
        self.id_of(name).is_some_and(|id| self.memory.lock().refs.of(id).is_some())
    }
}

/// Scrolls the container of an element that is in the tree but out of sight.
async fn bring_in(on: &Operator<'_>, target: &Target, mut tree: Tree, index: usize) -> Result<Outcome, ToolError> {
    let name = target.shown(&tree, index);
    let mut index = index;
    for scrolls in 1..=MAX_SCROLLS {
        let container = tree.ancestors(index).find(|ancestor| tree.node(*ancestor).scrollable);
        let container = container.ok_or_else(|| {
            ToolError::from(PhoneError::Failed(format!("No scrollable container found for element '{name}'")))
        })?;
        let area = tree.visible_bounds(container);
        on.phone.touch(&[drag(on, area, way_to(area, tree.node(index).bounds))]).await?;
        tree = on.settled().await?.0;
        index = match on.seek(&tree, target) {
            Some(index) => index,
            None => return Search::new(on, target, tree).run().await,
        };
        if is_visible(&tree, index) {
            return Ok(Outcome::text(format!("Scrolled to element '{name}' ({scrolls} scroll(s))")));
        }
    }
    Err(PhoneError::Failed(format!("Element '{name}' not visible after {MAX_SCROLLS} scroll attempts")).into())
}

/// Where to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScrollDirection {
    Up,
    Down,
    Left,
    Right,
}

fn way_to(area: Rect, bounds: Rect) -> ScrollDirection {
    match () {
        () if bounds.top >= area.bottom => ScrollDirection::Down,
        () if bounds.bottom <= area.top && bounds.top < area.top => ScrollDirection::Up,
        () if bounds.left >= area.right => ScrollDirection::Right,
        () if bounds.right <= area.left && bounds.left < area.left => ScrollDirection::Left,
        () => ScrollDirection::Down,
    }
}

/// The search of the largest list on the screen: down to its end, back to its beginning, and from there down to where
/// it stood. Nothing is looked at twice, and the list ends up where it was.
struct Search<'a> {
    on: &'a Operator<'a>,
    target: &'a Target,
    tree: Tree,
    /// What was in the list at first.
    start: HashSet<UiNodeId>,
    scrolls: usize,
    until: Instant,
}

/// How one part of a search ended.
enum SearchEnd {
    Element(usize),
    /// The list does not go on in this direction.
    End,
    /// The rows of the start are in view again.
    Start,
    TimeUp,
}

impl<'a> Search<'a> {
    fn new(on: &'a Operator<'a>, target: &'a Target, tree: Tree) -> Search<'a> {
        let now = Instant::now();
        let until = on.deadline - on.deadline.saturating_duration_since(now) / RESERVE;
        let start = rows(&tree).into_iter().map(|(id, _)| id).collect();
        Search { on, target, tree, start, scrolls: 0, until }
    }

    async fn run(mut self) -> Result<Outcome, ToolError> {
        let mut found = self.read(ScrollDirection::Down, false).await?;
        let down = self.scrolls;
        if let SearchEnd::End = found {
            found = self.go_back(down).await?;
        }
        if let SearchEnd::End = found
            && !self.sees_start()
        {
            found = self.read(ScrollDirection::Down, true).await?;
        }
        let (scrolls, name) = (self.scrolls, target_text(self.target));
        match found {
            SearchEnd::Element(index) => {
                let name = self.target.shown(&self.tree, index);
                Ok(Outcome::text(format!("Scrolled to element '{name}' ({scrolls} scroll(s))")))
            }
            SearchEnd::TimeUp => Err(PhoneError::Failed(format!(
                "Element {name} not found within the time of this call: the list was scrolled {scrolls} time(s) and stays where it is now{}; call again to go on from there, or look with get_screen",
                self.place()
            ))
            .into()),
            SearchEnd::End | SearchEnd::Start => Err(PhoneError::Failed(format!(
                "Element {name} is not in this list: it was searched to both ends in {scrolls} scroll(s) and is back where it was"
            ))
            .into()),
        }
    }

    /// Scrolls and looks until there is nothing more that way.
    async fn read(&mut self, direction: ScrollDirection, stops_at_start: bool) -> Result<SearchEnd, ToolError> {
        loop {
            if Instant::now() >= self.until {
                return Ok(SearchEnd::TimeUp);
            }
            let moved = self.scroll(direction, 1).await?;
            if let Some(index) = self.visible_target() {
                return Ok(SearchEnd::Element(index));
            }
            if !moved {
                return Ok(SearchEnd::End);
            }
            if stops_at_start && self.sees_start() {
                return Ok(SearchEnd::Start);
            }
        }
    }

    /// Goes up to the beginning of the list. What lies between was seen on the way down, so it is looked at only now
    /// and then.
    async fn go_back(&mut self, down: usize) -> Result<SearchEnd, ToolError> {
        let mut left = down;
        loop {
            if Instant::now() >= self.until {
                return Ok(SearchEnd::TimeUp);
            }
            let strokes = left.clamp(1, BLIND);
            left = left.saturating_sub(strokes);
            let moved = self.scroll(ScrollDirection::Up, strokes).await?;
            if let Some(index) = self.visible_target() {
                return Ok(SearchEnd::Element(index));
            }
            if !moved {
                return Ok(SearchEnd::End);
            }
        }
    }

    /// Whether anything in the list moved.
    async fn scroll(&mut self, direction: ScrollDirection, times: usize) -> Result<bool, ToolError> {
        let list = main_list(&self.tree).ok_or_else(|| {
            PhoneError::Failed(format!("No scrollable container found for element {}", target_text(self.target)))
        })?;
        let area = self.tree.visible_bounds(list);
        if area.is_empty() {
            return Err(PhoneError::Failed("there is no area on the screen to scroll in".to_owned()).into());
        }
        if times == 1 {
            self.on.phone.touch(&[drag(self.on, area, direction)]).await?;
        } else {
            let strokes: Vec<Stroke> = (0..times).map(|nth| flick(area, direction, nth)).collect();
            self.on.phone.touch(&strokes).await?;
        }
        self.scrolls += times;
        let before = rows(&self.tree);
        self.tree = self.on.settled().await?.0;
        Ok(rows(&self.tree) != before)
    }

    /// Where the list stands: what it shows first and last.
    fn place(&self) -> String {
        let view = ScreenView::of(&self.tree);
        let rows: HashSet<UiNodeId> = rows(&self.tree).into_iter().map(|(id, _)| id).collect();
        let labels = view.items.iter().filter(|item| rows.contains(&item.id) && !item.label.is_empty());
        let labels: Vec<&ItemLabel> = labels.map(|item| &item.label).collect();
        match labels[..] {
            [first, .., last] if self.on.may_show() => format!(", from {first} to {last}"),
            _ => String::new(),
        }
    }

    fn visible_target(&self) -> Option<usize> {
        self.on.seek(&self.tree, self.target).filter(|index| is_visible(&self.tree, *index))
    }

    fn sees_start(&self) -> bool {
        rows(&self.tree).iter().any(|(id, _)| self.start.contains(id))
    }
}

fn target_text(target: &Target) -> String {
    match target {
        Target::Named(name) => format!("'{name}'"),
        Target::Described(selector) | Target::Selected(selector) => format!("with {selector}"),
    }
}

/// The scrollable node that takes the most room.
fn main_list(tree: &Tree) -> Option<usize> {
    let visible = tree.all_visible_bounds();
    let area = |index: &usize| {
        let bounds = visible[*index];
        (i64::from(bounds.right) - i64::from(bounds.left)) * (i64::from(bounds.bottom) - i64::from(bounds.top))
    };
    let lists = (0..tree.len()).filter(|index| tree.node(*index).scrollable && !visible[*index].is_empty());
    // Of two that fill the same room the inner one scrolls; it comes later, and `max_by_key` keeps it.
    lists.max_by_key(area)
}

/// What is in the main list, and where: a clock or an advertisement beside it changes without any scrolling.
fn rows(tree: &Tree) -> Vec<(UiNodeId, Rect)> {
    let inside = main_list(tree).map_or(0..0, |list| list + 1..tree.position(list).end);
    inside.map(|index| (tree.id(index), tree.node(index).bounds)).collect()
}

/// From well inside one edge nearly to the other: as far as a finger can move the content without losing sight of what
/// was at the edge.
fn ends(area: Rect, direction: ScrollDirection) -> ((f32, f32), (f32, f32)) {
    let (x, y) = area.center();
    let at = |from: i32, to: i32, share: f32| from as f32 + (to as f32 - from as f32) * share;
    let (near, far) = (0.9, 0.05);
    let vertical = |share: f32| (x as f32, at(area.top, area.bottom, share));
    let horizontal = |share: f32| (at(area.left, area.right, share), y as f32);
    match direction {
        ScrollDirection::Down => (vertical(near), vertical(far)),
        ScrollDirection::Up => (vertical(1.0 - near), vertical(1.0 - far)),
        ScrollDirection::Right => (horizontal(near), horizontal(far)),
        ScrollDirection::Left => (horizontal(1.0 - near), horizontal(1.0 - far)),
    }
}

/// Moves the content exactly as far as the finger goes. A finger that rests before it is lifted does not throw; where
/// only straight lines can be played, the line is slow.
fn drag(on: &Operator<'_>, area: Rect, direction: ScrollDirection) -> Stroke {
    let (from, to) = ends(area, direction);
    let point = |(x, y): (f32, f32), milliseconds| Point { x, y, at: Duration::from_millis(milliseconds) };
    match on.phone.capabilities().multi_touch {
        true => Stroke { points: vec![point(from, 0), point(to, 200), point(to, 260)] },
        false => Stroke { points: vec![point(from, 0), point(to, 600)] },
    }
}

/// The nth of several quick strokes; the content may fly on.
fn flick(area: Rect, direction: ScrollDirection, nth: usize) -> Stroke {
    let (from, to) = ends(area, direction);
    Stroke::line(from, to, Duration::from_millis(nth as u64 * 130), Duration::from_millis(110))
}
