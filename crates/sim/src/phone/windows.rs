//! The windows on the screen, from back to front.

use super::act::AppScreen;
use super::android::Android;
use super::apps;
use super::geometry::PixelRect;
use super::layout;
use super::machine::{KEYBOARD, Overlay, PhoneMachine, SYSTEM_UI};
use super::system;
use super::view::{View, column, stack, view};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    StockApp,
    Dialog,
    Keyboard,
    StatusBar,
    NavigationBar,
    Shade,
}

/// One window, laid out.
pub struct PhoneWindow {
    pub kind: WindowKind,
    pub package: &'static str,
    /// As `dumpsys window` names it.
    pub title: String,
    pub root: View,
    pub secure: bool,
}

impl PhoneMachine {
    /// The heights of the status bar, the navigation bar and the keyboard, in pixels.
    pub fn insets(&self) -> (i32, i32, i32) {
        let (_, height) = self.size();
        let dp = |value: f32| (value * self.scale()).round() as i32;
        let keyboard = if self.keyboard.is_some() { dp(256.0).min(height / 2) } else { 0 };
        (dp(24.0), dp(48.0), keyboard)
    }

    /// All windows, the front-most last. None while the phone sleeps.
    pub fn windows(&self) -> Vec<PhoneWindow> {
        if !self.awake {
            return Vec::new();
        }
        let (width, height) = self.size();
        let full = PixelRect::new(0, 0, width, height);
        let (status, nav, keyboard) = self.insets();
        let mut windows = Vec::new();
        if self.locked {
            windows.push(self.window(WindowKind::Shade, SYSTEM_UI, self.shade_title(), system::keyguard(self), full));
            let bar = PixelRect::new(0, 0, width, status);
            windows.push(self.window(WindowKind::StatusBar, SYSTEM_UI, "StatusBar", system::status_bar(self), bar));
            return windows;
        }
        windows.push(self.app_window(full, PixelRect::new(0, status, width, height - nav - keyboard)));
        if let Some(dialog) = self.dialog {
            let (package, activity) = self.resumed();
            let title = format!("{package}/{}", full_activity(package, activity));
            windows.push(self.window(WindowKind::Dialog, package, title, system::dialog(self, dialog), full));
        }
        if let Some(state) = self.keyboard {
            let area = PixelRect::new(0, height - nav - keyboard, width, height - nav);
            windows.push(self.window(
                WindowKind::Keyboard,
                KEYBOARD,
                "InputMethod",
                system::keyboard(self, state),
                area,
            ));
        }
        let bar = PixelRect::new(0, 0, width, status);
        windows.push(self.window(WindowKind::StatusBar, SYSTEM_UI, "StatusBar", system::status_bar(self), bar));
        let bar = PixelRect::new(0, height - nav, width, height);
        let title = "NavigationBar0";
        windows.push(self.window(WindowKind::NavigationBar, SYSTEM_UI, title, system::navigation_bar(self), bar));
        if let Some(panel) = self.panel {
            let root = system::shade(self, panel);
            windows.push(self.window(WindowKind::Shade, SYSTEM_UI, self.shade_title(), root, full));
        }
        windows
    }

    /// The shade and the lock screen share a window, which had another name before Android 11.
    pub fn shade_title(&self) -> &'static str {
        if self.setup.android < Android::V11 { "StatusBar" } else { "NotificationShade" }
    }

    fn window(
        &self,
        kind: WindowKind,
        package: &'static str,
        title: impl Into<String>,
        mut root: View,
        area: PixelRect,
    ) -> PhoneWindow {
        layout::place(&mut root, area, self.scale());
        PhoneWindow { kind, package, title: title.into(), root, secure: false }
    }

    fn app_window(&self, full: PixelRect, area: PixelRect) -> PhoneWindow {
        let (package, activity) = self.resumed();
        let secure = self.screen().is_some_and(AppScreen::is_secure);
        let title = format!("{package}/{}", full_activity(package, activity));
        let Some(screen) = self.screen() else {
            let root = match self.place {
                Overlay::Recents => system::recents(self),
                _ => system::launcher(self, self.place == Overlay::Drawer),
            };
            return self.window(WindowKind::StockApp, package, title, root, full);
        };
        let mut content = stack([apps::screen(self, screen, area)]).id("android:id/content").fill();
        layout::place(&mut content, area, self.scale());
        let bar = |id, top, bottom| View { rect: PixelRect::new(0, top, full.right, bottom), ..view("View").id(id) };
        let body = View { rect: full, ..column([content]) };
        let root = View {
            rect: full,
            ..stack([
                body,
                bar("android:id/navigationBarBackground", area.bottom, full.bottom),
                bar("android:id/statusBarBackground", 0, area.top),
            ])
        };
        PhoneWindow { kind: WindowKind::StockApp, package, title, root: root.back(self.theme().back), secure }
    }

    /// The window that has the focus, to Android.
    pub fn focused_window(&self) -> Option<PhoneWindow> {
        self.windows()
            .into_iter()
            .rfind(|window| matches!(window.kind, WindowKind::StockApp | WindowKind::Dialog | WindowKind::Shade))
    }
}

/// `.Calculator` as `com.android.calculator2.Calculator`.
pub(super) fn full_activity(package: &str, activity: &str) -> String {
    if activity.starts_with('.') { format!("{package}{activity}") } else { activity.to_owned() }
}
