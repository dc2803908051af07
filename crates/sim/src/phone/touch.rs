//! Fingers on the glass: taps, long presses, drags, pinches.
//!
//! There is no fling: what is dragged stops where the finger leaves it, so the same touches always
//! lead to the same screen.

use super::act::{Panel, TextField, TouchAction};
use super::art::ZOOM;
use super::geometry::PixelRect;
use super::machine::{Overlay, PhoneMachine};
use super::setup::LockScreen;
use super::view::View;
use super::windows::WindowKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchPhase {
    Down,
    Move,
    Up,
    Cancel,
}

/// One finger at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pointer {
    pub finger: u32,
    pub phase: TouchPhase,
    pub x: f32,
    pub y: f32,
}

/// Android's own measures: a long press, a double tap, and how far a finger may tremble (8 dp).
pub(super) const LONG_PRESS: u64 = 500;
const DOUBLE_TAP: u64 = 300;
const SLOP: f32 = 8.0;

#[derive(Debug, Default)]
pub(super) struct Touch {
    fingers: Vec<Finger>,
    press: Option<Press>,
    last_tap: Option<(u64, f32, f32)>,
}

#[derive(Clone, Copy, Debug)]
struct Finger {
    id: u32,
    x: f32,
    y: f32,
}

/// What the first finger came down on.
#[derive(Clone, Debug)]
struct Press {
    from: (f32, f32),
    since: u64,
    kind: WindowKind,
    rect: PixelRect,
    tap: Option<TouchAction>,
    hold: Option<TouchAction>,
    field: Option<TextField>,
    scroll: Option<(&'static str, i32)>,
    zooms: Option<PixelRect>,
    mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Could still become anything.
    Open,
    Scroll,
    Pan,
    Pinch,
    Slide,
    /// A swipe whose meaning is decided when it ends.
    Swipe,
    /// Has had its effect, or will have none.
    Spent,
}

impl PhoneMachine {
    /// One finger goes down, moves or leaves, now.
    pub fn pointer(&mut self, pointer: Pointer) {
        if !self.awake {
            return;
        }
        let known = self.touch.fingers.iter().position(|finger| finger.id == pointer.finger);
        match (pointer.phase, known) {
            (TouchPhase::Down, None) => self.finger_down(pointer),
            (TouchPhase::Move, Some(index)) => self.finger_moves(index, pointer),
            (TouchPhase::Up, Some(index)) => {
                self.finger_moves(index, pointer);
                self.touch.fingers.remove(index);
                if self.touch.fingers.is_empty() {
                    self.last_finger_up(pointer);
                }
            }
            (TouchPhase::Cancel, _) => {
                self.touch.fingers.clear();
                self.touch.press = None;
            }
            _ => {}
        }
    }

    /// Whether a finger is on the glass.
    pub fn is_touched(&self) -> bool {
        !self.touch.fingers.is_empty()
    }

    /// A finger that has rested long enough is a long press, without waiting for it to leave.
    pub(super) fn handle_time(&mut self) {
        let now = self.now;
        let Some(press) = self.touch.press.as_mut() else { return };
        let ripe = press.mode == Mode::Open && now >= press.since + LONG_PRESS && self.touch.fingers.len() == 1;
        if !ripe || (press.hold.is_none() && press.field.is_none()) {
            return;
        }
        press.mode = Mode::Spent;
        let press = press.clone();
        if let Some(field) = press.field {
            self.focus_at(field, press.from);
            self.select_word();
        } else if let Some(hold) = press.hold {
            self.act(hold, press.from, press.rect);
        }
    }

    fn finger_down(&mut self, pointer: Pointer) {
        let place = (pointer.x, pointer.y);
        self.touch.fingers.push(Finger { id: pointer.finger, x: pointer.x, y: pointer.y });
        if self.touch.fingers.len() == 1 {
            self.touch.press = self.press_at(place);
        } else if let Some(press) = &mut self.touch.press
            && press.mode != Mode::Spent
        {
            press.mode = if press.zooms.is_some() { Mode::Pinch } else { Mode::Spent };
        }
    }

    fn press_at(&self, from: (f32, f32)) -> Option<Press> {
        let windows = self.windows();
        let window = windows.iter().rev().find(|window| window.root.rect.contains(from.0, from.1))?;
        let path = window.root.hit(from.0, from.1);
        let nearest = |fits: fn(&View) -> bool| path.iter().rev().find(|view| fits(view)).copied();
        let target = nearest(|view| view.tap.is_some() || view.field.is_some());
        let held = nearest(|view| view.hold.is_some());
        Some(Press {
            from,
            since: self.now,
            kind: window.kind,
            rect: target.or(held).map_or(window.root.rect, |view| view.rect),
            tap: target.filter(|view| !view.state.disabled).and_then(|view| view.tap.clone()),
            hold: held.and_then(|view| view.hold.clone()),
            field: target.and_then(|view| view.field),
            scroll: nearest(|view| view.scroll.is_some())
                .and_then(|view| view.scroll)
                .map(|scroll| (scroll.slot, scroll.extent)),
            zooms: nearest(|view| view.zooms).map(|view| view.rect),
            mode: Mode::Open,
        })
    }

    fn finger_moves(&mut self, index: usize, pointer: Pointer) {
        let before = self.touch.fingers.clone();
        if let Some(finger) = self.touch.fingers.get_mut(index) {
            (finger.x, finger.y) = (pointer.x, pointer.y);
        }
        let after = self.touch.fingers.clone();
        let slop = SLOP * self.scale();
        let Some(press) = self.touch.press.as_mut() else { return };
        let (dx, dy) = (pointer.x - press.from.0, pointer.y - press.from.1);
        if press.mode == Mode::Open && dx.hypot(dy) > slop {
            press.mode = match press {
                Press { tap: Some(TouchAction::Slide(..)), .. } => Mode::Slide,
                Press { kind: WindowKind::StatusBar | WindowKind::Shade, .. } => Mode::Swipe,
                Press { zooms: Some(_), .. } => Mode::Pan,
                Press { scroll: Some((_, extent)), .. } if dy.abs() > dx.abs() && *extent > 0 => Mode::Scroll,
                Press { kind: WindowKind::StockApp, .. } => Mode::Swipe,
                _ => Mode::Spent,
            };
            // What led to the decision was not yet a movement of the content.
            if press.mode == Mode::Scroll || press.mode == Mode::Pan {
                press.from = (pointer.x, pointer.y);
                self.drag((dx, dy));
                return;
            }
        }
        let step = (pointer.x - before[index].x, pointer.y - before[index].y);
        match press.mode {
            Mode::Scroll | Mode::Pan => self.drag(step),
            Mode::Pinch => self.pinch(&before, &after),
            Mode::Slide => {
                let (act, rect) = (press.tap.clone(), press.rect);
                if let Some(act) = act {
                    self.act(act, (pointer.x, pointer.y), rect);
                }
            }
            Mode::Open | Mode::Swipe | Mode::Spent => {}
        }
    }

    fn drag(&mut self, (dx, dy): (f32, f32)) {
        let Some(press) = &self.touch.press else { return };
        match (press.mode, press.scroll, press.zooms) {
            (Mode::Scroll, Some((slot, extent)), _) => {
                let offset = (self.offset(slot) as f32 - dy).round() as i32;
                self.scroll.insert(slot, offset.clamp(0, extent));
            }
            (Mode::Pan, _, Some(rect)) => {
                let (cx, cy) = rect.centre();
                self.camera = self.camera.moved(rect, (cx, cy), (cx + dx, cy + dy), 1.0);
            }
            _ => {}
        }
    }

    fn pinch(&mut self, before: &[Finger], after: &[Finger]) {
        let Some(rect) = self.touch.press.as_ref().and_then(|press| press.zooms) else { return };
        let measure = |fingers: &[Finger]| {
            let [a, b, ..] = fingers else { return None };
            let middle = ((a.x + b.x) / 2.0, (a.y + b.y) / 2.0);
            Some(((a.x - b.x).hypot(a.y - b.y), middle))
        };
        // Fingers closer than 10 px give no meaningful ratio.
        if let (Some((old, from)), Some((new, to))) = (measure(before), measure(after))
            && old >= 10.0
            && new >= 10.0
        {
            self.camera = self.camera.moved(rect, from, to, new / old);
        }
    }

    fn last_finger_up(&mut self, pointer: Pointer) {
        let Some(press) = self.touch.press.take() else { return };
        let place = (pointer.x, pointer.y);
        match press.mode {
            Mode::Open => self.tap(press, place),
            Mode::Swipe => self.swiped(&press, place),
            _ => {}
        }
    }

    fn tap(&mut self, press: Press, place: (f32, f32)) {
        let double = self.touch.last_tap.take().is_some_and(|(at, x, y)| {
            self.now <= at + DOUBLE_TAP && (x - place.0).hypot(y - place.1) < SLOP * 5.0 * self.scale()
        });
        if !double {
            self.touch.last_tap = Some((self.now, place.0, place.1));
        }
        if let Some(field) = press.field {
            self.focus_at(field, place);
            if double {
                self.select_word();
            }
        } else if let Some(rect) = press.zooms
            && double
        {
            let factor = if self.camera.zoom < 2.0 { 2.0 } else { ZOOM.0 / self.camera.zoom };
            self.camera = self.camera.moved(rect, place, place, factor);
        } else if let Some(act) = press.tap
            && press.rect.contains(place.0, place.1)
        {
            self.act(act, place, press.rect);
        }
    }

    /// Swipes that open, close or unlock something.
    fn swiped(&mut self, press: &Press, place: (f32, f32)) {
        let (dx, dy) = (place.0 - press.from.0, place.1 - press.from.1);
        // A tenth of the screen: less is an accident.
        let enough = self.size().1 as f32 / 10.0;
        let (up, down) = (-dy > enough && -dy > dx.abs(), dy > enough && dy > dx.abs());
        let sideways = dx.abs() > self.size().0 as f32 / 4.0 && dx.abs() > dy.abs();
        match (press.kind, self.place) {
            (WindowKind::Shade, _) if sideways && matches!(press.hold, Some(TouchAction::DismissNotice(_))) => {
                if let Some(dismiss) = press.hold.clone() {
                    self.act(dismiss, place, press.rect);
                }
            }
            (WindowKind::Shade, _) if self.locked && up && self.setup.lock == LockScreen::Swipe => {
                self.dismiss_lock();
            }
            (WindowKind::Shade, _) if self.locked => {}
            (WindowKind::Shade, _) if up => self.panel = None,
            (WindowKind::Shade, _) if down => self.panel = Some(Panel::QuickSettings),
            (WindowKind::StatusBar, _) if down => self.show_panel(Some(Panel::Notifications)),
            (WindowKind::StockApp, Overlay::Home) if up => self.place = Overlay::Drawer,
            (WindowKind::StockApp, Overlay::Home) if down => self.show_panel(Some(Panel::Notifications)),
            (WindowKind::StockApp, Overlay::Drawer) if down => self.place = Overlay::Home,
            _ => {}
        }
    }
}
