//! Points and rectangles in screen pixels.

/// A rectangle; right and bottom are exclusive, as in Android's `Rect`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PixelRect {
    pub left: i32,
    pub top: i32,
    pub right: i32,
    pub bottom: i32,
}

impl PixelRect {
    pub const fn new(left: i32, top: i32, right: i32, bottom: i32) -> PixelRect {
        PixelRect { left, top, right, bottom }
    }

    pub fn width(self) -> i32 {
        self.right - self.left
    }

    pub fn height(self) -> i32 {
        self.bottom - self.top
    }

    pub fn is_empty(self) -> bool {
        self.right <= self.left || self.bottom <= self.top
    }

    pub fn contains(self, x: f32, y: f32) -> bool {
        x >= self.left as f32 && x < self.right as f32 && y >= self.top as f32 && y < self.bottom as f32
    }

    /// The common part; empty where there is none.
    pub fn intersect(self, other: PixelRect) -> PixelRect {
        PixelRect {
            left: self.left.max(other.left),
            top: self.top.max(other.top),
            right: self.right.min(other.right),
            bottom: self.bottom.min(other.bottom),
        }
    }

    pub fn centre(self) -> (f32, f32) {
        ((self.left + self.right) as f32 / 2.0, (self.top + self.bottom) as f32 / 2.0)
    }
}
