//! A view: what is on the screen, how it looks, and what touching it does.
//!
//! Screens are built anew from the phone's state each time someone looks, as a tree of views; the
//! accessibility tree, the picture and the touch targets all come from that one tree, so they cannot
//! disagree. Measures are in dp until [`super::layout`] has placed everything.

use super::act::{TextField, TouchAction};
use super::art::Art;
use super::canvas::Rgba;
use super::geometry::PixelRect;

#[derive(Clone, Debug, Default)]
pub struct View {
    /// `TextView`, or a full class name where it is not of `android.widget`.
    pub class: &'static str,
    /// `title`, or a full name such as `android:id/button1`.
    pub id: &'static str,
    pub text: String,
    pub description: String,
    /// What services read as its text, where that is not what is painted.
    pub spoken: String,
    pub hint: &'static str,
    pub state: ViewState,
    pub tap: Option<TouchAction>,
    pub hold: Option<TouchAction>,
    pub field: Option<TextField>,
    pub scroll: Option<Scroll>,
    /// Two fingers zoom it and one finger pans it.
    pub zooms: bool,
    /// Hidden from the accessibility tree, as views with no meaning of their own are.
    pub decoration: bool,
    /// Hidden from services that are no accessibility tools, since Android 14.
    pub sensitive: bool,
    pub layout: Layout,
    pub look: ViewStyle,
    pub children: Vec<View>,
    /// In screen pixels, set by the layout.
    pub rect: PixelRect,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViewState {
    pub checkable: bool,
    pub checked: bool,
    pub disabled: bool,
    pub focused: bool,
    pub password: bool,
}

/// A vertical scroller. The offset lives in the phone under `slot`; the layout finds the extent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scroll {
    pub slot: &'static str,
    /// Pixels that have gone out at the top.
    pub offset: i32,
    /// The largest offset.
    pub extent: i32,
    /// For a long list of which only the visible rows were built: dp before them and in all.
    pub list: Option<(f32, f32)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Len {
    #[default]
    Wrap,
    /// All there is, or an equal share of what is left.
    Fill,
    Dp(f32),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    #[default]
    Start,
    Centre,
    End,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    #[default]
    Column,
    Row,
    Stack,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Layout {
    pub flow: Flow,
    pub width: Len,
    pub height: Len,
    /// Left, top, right, bottom.
    pub pad: [f32; 4],
    pub gap: f32,
    /// Where the children stand along the flow when there is room left.
    pub pack: Align,
    /// Where this view stands in its parent, across the flow.
    pub across: Align,
    /// And along it, in a stack.
    pub down: Align,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    Solid(Rgba),
    Gradient(Rgba, Rgba),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ViewStyle {
    pub fill: Option<Fill>,
    pub corner: f32,
    pub border: Option<Rgba>,
    pub color: Rgba,
    pub size: f32,
    pub bold: bool,
    pub align: Align,
    /// 0: as many as there are.
    pub max_lines: usize,
    pub art: Option<Art>,
}

impl Default for ViewStyle {
    fn default() -> ViewStyle {
        ViewStyle {
            fill: None,
            corner: 0.0,
            border: None,
            color: Rgba::BLACK,
            size: 16.0,
            bold: false,
            align: Align::Start,
            max_lines: 0,
            art: None,
        }
    }
}

pub(super) fn view(class: &'static str) -> View {
    View { class, ..View::default() }
}

pub(super) fn column(children: impl IntoIterator<Item = View>) -> View {
    View { children: children.into_iter().collect(), ..view("LinearLayout") }.wide()
}

pub(super) fn row(children: impl IntoIterator<Item = View>) -> View {
    let layout = Layout { flow: Flow::Row, ..Layout::default() };
    View { children: children.into_iter().collect(), layout, ..view("LinearLayout") }.wide()
}

pub(super) fn stack(children: impl IntoIterator<Item = View>) -> View {
    let layout = Layout { flow: Flow::Stack, ..Layout::default() };
    View { children: children.into_iter().collect(), layout, ..view("FrameLayout") }
}

pub(super) fn label(text: impl Into<String>) -> View {
    View { text: text.into(), ..view("TextView") }
}

/// A gap of so many dp, in either direction.
pub(super) fn space(dp: f32) -> View {
    View { decoration: true, ..view("Space") }.width(dp).height(dp)
}

/// Takes the room that is left.
pub(super) fn spring() -> View {
    View { decoration: true, ..view("Space") }.fill()
}

/// Everything below one another; what does not fit can be scrolled to.
pub(super) fn scroller(slot: &'static str, offset: i32, children: impl IntoIterator<Item = View>) -> View {
    let scroll = Scroll { slot, offset, extent: 0, list: None };
    View { class: "ScrollView", scroll: Some(scroll), ..column([column(children)]) }.fill()
}

/// A long list of rows of one height, of which only those in sight are built.
pub(super) fn list(
    slot: &'static str,
    (offset, reach): (i32, i32),
    scale: f32,
    (height, count): (f32, usize),
    build: impl Fn(usize) -> View,
) -> View {
    let first = ((offset as f32 / scale / height) as usize).min(count);
    let last = (((offset + reach) as f32 / scale / height).ceil() as usize).min(count);
    let rows: Vec<View> = (first..last).map(|index| build(index).height(height)).collect();
    let scroll = Scroll { slot, offset, extent: 0, list: Some((first as f32 * height, count as f32 * height)) };
    View { class: "androidx.recyclerview.widget.RecyclerView", scroll: Some(scroll), ..column(rows) }.fill()
}

impl View {
    pub fn class(mut self, class: &'static str) -> View {
        self.class = class;
        self
    }

    pub fn id(mut self, id: &'static str) -> View {
        self.id = id;
        self
    }

    pub fn says(mut self, description: impl Into<String>) -> View {
        self.description = description.into();
        self
    }

    pub fn spoken(mut self, text: impl Into<String>) -> View {
        self.spoken = text.into();
        self
    }

    pub fn on_tap(mut self, act: TouchAction) -> View {
        self.tap = Some(act);
        self
    }

    pub fn on_hold(mut self, act: TouchAction) -> View {
        self.hold = Some(act);
        self
    }

    pub fn decoration(mut self) -> View {
        self.decoration = true;
        self
    }

    pub fn width(mut self, dp: f32) -> View {
        self.layout.width = Len::Dp(dp);
        self
    }

    pub fn height(mut self, dp: f32) -> View {
        self.layout.height = Len::Dp(dp);
        self
    }

    /// As wide as the parent, or an equal share of a row.
    pub fn wide(mut self) -> View {
        self.layout.width = Len::Fill;
        self
    }

    pub fn tall(mut self) -> View {
        self.layout.height = Len::Fill;
        self
    }

    pub fn fill(self) -> View {
        self.wide().tall()
    }

    /// Only as wide as its content.
    pub fn tight(mut self) -> View {
        self.layout.width = Len::Wrap;
        self
    }

    pub fn pad(mut self, horizontal: f32, vertical: f32) -> View {
        self.layout.pad = [horizontal, vertical, horizontal, vertical];
        self
    }

    pub fn gap(mut self, dp: f32) -> View {
        self.layout.gap = dp;
        self
    }

    pub fn pack(mut self, align: Align) -> View {
        self.layout.pack = align;
        self
    }

    pub fn across(mut self, align: Align) -> View {
        self.layout.across = align;
        self
    }

    /// In the middle of its parent, both ways.
    pub fn centred(mut self) -> View {
        self.layout.across = Align::Centre;
        self.layout.down = Align::Centre;
        self
    }

    pub fn corner_of_stack(mut self, across: Align, down: Align) -> View {
        self.layout.across = across;
        self.layout.down = down;
        self
    }

    pub fn back(mut self, color: Rgba) -> View {
        self.look.fill = Some(Fill::Solid(color));
        self
    }

    pub fn gradient(mut self, top: Rgba, bottom: Rgba) -> View {
        self.look.fill = Some(Fill::Gradient(top, bottom));
        self
    }

    pub fn corner(mut self, dp: f32) -> View {
        self.look.corner = dp;
        self
    }

    pub fn border(mut self, color: Rgba) -> View {
        self.look.border = Some(color);
        self
    }

    pub fn color(mut self, color: Rgba) -> View {
        self.look.color = color;
        self
    }

    pub fn size(mut self, sp: f32) -> View {
        self.look.size = sp;
        self
    }

    pub fn bold(mut self) -> View {
        self.look.bold = true;
        self
    }

    pub fn align(mut self, align: Align) -> View {
        self.look.align = align;
        self
    }

    pub fn one_line(mut self) -> View {
        self.look.max_lines = 1;
        self
    }

    pub fn art(mut self, art: Art) -> View {
        self.look.art = Some(art);
        self
    }

    pub fn checked(mut self, checked: bool) -> View {
        self.state.checkable = true;
        self.state.checked = checked;
        self
    }

    /// Grey, and ignores touches.
    pub fn disabled(mut self, disabled: bool) -> View {
        self.state.disabled = disabled;
        if disabled {
            self.look.color = self.look.color.alpha(110);
            self.look.fill = self.look.fill.map(|fill| match fill {
                Fill::Solid(color) => Fill::Solid(color.alpha(90)),
                other => other,
            });
        }
        self
    }

    /// The class as Android names it.
    pub fn full_class(&self) -> String {
        match self.class {
            "View" | "ViewGroup" => format!("android.view.{}", self.class),
            "WebView" => "android.webkit.WebView".to_owned(),
            full if full.contains('.') => full.to_owned(),
            short => format!("android.widget.{short}"),
        }
    }

    /// The resource id as Android names it; empty where there is none.
    pub fn full_id(&self, package: &str) -> String {
        match self.id {
            "" => String::new(),
            full if full.contains(':') => full.to_owned(),
            short => format!("{package}:id/{short}"),
        }
    }

    /// What the view says to those who read it: dots for a password.
    pub fn spoken_text(&self) -> String {
        match () {
            () if self.state.password => "•".repeat(self.text.chars().count()),
            () if self.text.is_empty() => self.spoken.clone(),
            () => self.text.clone(),
        }
    }

    pub fn is_editable(&self) -> bool {
        self.field.is_some()
    }

    /// The views from this one down to the front-most that a touch at a point reaches, this one first.
    /// What does not want the touch lets it through to what lies behind.
    pub fn hit(&self, x: f32, y: f32) -> Vec<&View> {
        if !self.rect.contains(x, y) {
            return Vec::new();
        }
        let wants = |path: &Vec<&View>| path.iter().any(|view| view.wants_touch());
        let below = self.children.iter().rev().map(|child| child.hit(x, y)).find(wants);
        let mut path = vec![self];
        path.extend(below.unwrap_or_default());
        path
    }

    fn wants_touch(&self) -> bool {
        self.tap.is_some() || self.hold.is_some() || self.field.is_some() || self.scroll.is_some() || self.zooms
    }

    /// The first view, in reading order, that fits.
    pub fn find(&self, fits: &dyn Fn(&View) -> bool) -> Option<&View> {
        if fits(self) {
            return Some(self);
        }
        self.children.iter().find_map(|child| child.find(fits))
    }
}
