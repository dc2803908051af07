//! The phone itself: its state, its back stack, and what is on its screen.
//!
//! No clock and no socket: time comes in by [`PhoneMachine::set_now`]. Touch is in [`super::touch`], keys and
//! typing in [`super::keys`] and [`super::typing`], the windows in [`super::windows`], the bars, panels and the keyboard in [`super::system`], the apps in
//! [`super::apps`].

use std::collections::{BTreeMap, BTreeSet};

use sinew_phones::LogcatLevel;

use super::act::{AppScreen, Dialog, Panel, StockApp, TextField};
use super::apps::{self, Browser, Calculator, Contacts, Notes, Stopwatch};
use super::art::Camera;
use super::edit::TextCursor;
use super::log::{Log, LogEntry, wall_clock};
use super::setup::{LockScreen, PhoneSetup};
use super::system::{self, Keyboard, PhoneNotification};
use super::theme::{DAY, NIGHT, Theme};
use super::touch::Touch;

/// What lies over the apps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlay {
    Home,
    Drawer,
    Recents,
    Task,
}

/// A running app and its open screens, the front-most last.
#[derive(Clone, Debug)]
pub struct Task {
    pub app: StockApp,
    pub number: u32,
    pub screens: Vec<AppScreen>,
}

pub(super) const SYSTEM_UI: &str = "com.android.systemui";
pub(super) const LAUNCHER: &str = "com.android.launcher3";
pub(super) const LAUNCHER_ACTIVITY: &str = ".uioverrides.QuickstepLauncher";
pub(super) const KEYBOARD: &str = "com.android.inputmethod.latin";
pub(super) const SYSTEM_PID: u32 = 1203;

pub struct PhoneMachine {
    pub setup: PhoneSetup,
    /// Milliseconds since boot.
    pub(super) now: u64,
    pub(super) awake: bool,
    pub(super) locked: bool,
    pub(super) pin: String,
    /// Quarter turns in which the phone is held.
    pub(super) held: u8,
    pub(super) size_override: Option<(i32, i32)>,
    pub(super) density_override: Option<i32>,
    pub(super) tasks: Vec<Task>,
    pub(super) next_task: u32,
    pub(super) place: Overlay,
    pub(super) panel: Option<Panel>,
    pub(super) dialog: Option<Dialog>,
    pub(super) focus: Option<TextField>,
    pub(super) cursor: TextCursor,
    pub(super) keyboard: Option<Keyboard>,
    pub(super) clipboard: Option<String>,
    pub(super) toast: Option<(String, u64)>,
    pub(super) scroll: BTreeMap<&'static str, i32>,
    pub(super) touch: Touch,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) notices: Vec<PhoneNotification>,
    /// The notification that is being answered, and the answer so far.
    pub(super) replying: Option<u32>,
    pub(super) reply: String,
    pub(super) pids: BTreeMap<StockApp, u32>,
    next_pid: u32,
    pub log: Log,
    pub(super) calculator: Calculator,
    pub(super) notes: Notes,
    pub(super) contacts: Contacts,
    pub(super) camera: Camera,
    pub(super) stopwatch: Stopwatch,
    pub(super) browser: Browser,
    pub(super) passphrase: String,
    pub(super) revealed: bool,
    pub(super) build_taps: u32,
    /// Package and permission.
    pub(super) granted: BTreeSet<(String, String)>,
}

impl PhoneMachine {
    pub fn new(setup: PhoneSetup) -> PhoneMachine {
        let mut machine = PhoneMachine {
            setup,
            now: 0,
            awake: true,
            locked: false,
            pin: String::new(),
            held: 0,
            size_override: None,
            density_override: None,
            tasks: Vec::new(),
            next_task: 2,
            place: Overlay::Home,
            panel: None,
            dialog: None,
            focus: None,
            cursor: TextCursor::default(),
            keyboard: None,
            clipboard: None,
            toast: None,
            scroll: BTreeMap::new(),
            touch: Touch::default(),
            settings: apps::default_settings(),
            notices: system::first_notices(),
            replying: None,
            reply: String::new(),
            pids: BTreeMap::new(),
            next_pid: 2400,
            log: Log::default(),
            calculator: Calculator::default(),
            notes: Notes::default(),
            contacts: Contacts::default(),
            camera: Camera::default(),
            stopwatch: Stopwatch::default(),
            browser: Browser::default(),
            passphrase: String::new(),
            revealed: false,
            build_taps: 0,
            granted: BTreeSet::new(),
        };
        machine.say(SYSTEM_PID, LogcatLevel::Info, "SystemServer", "Entered the Android system server!");
        machine.say(SYSTEM_PID, LogcatLevel::Info, "ActivityManager", "System now ready");
        machine.say(SYSTEM_PID, LogcatLevel::Info, "BootReceiver", "boot completed, all quiet");
        machine
    }

    /// Time never goes back; a finger that rests long enough has its effect now.
    pub fn set_now(&mut self, now: u64) {
        self.now = self.now.max(now);
        if self.toast.as_ref().is_some_and(|(_, until)| *until <= self.now) {
            self.toast = None;
        }
        self.handle_time();
    }

    pub fn now(&self) -> u64 {
        self.now
    }

    /// Milliseconds since 1970.
    pub fn epoch(&self) -> i64 {
        self.setup.booted_at + self.now as i64
    }

    /// Pixels per dp.
    pub fn scale(&self) -> f32 {
        self.density() as f32 / 160.0
    }

    pub fn density(&self) -> i32 {
        self.density_override.unwrap_or(self.setup.density)
    }

    /// Quarter turns of the picture, 0 to 3.
    pub fn rotation(&self) -> u8 {
        if self.is_on("system/accelerometer_rotation") {
            return self.held;
        }
        self.settings.get("system/user_rotation").and_then(|turns| turns.parse().ok()).unwrap_or(0) % 4
    }

    /// Someone turns the phone; it follows where auto-rotate is on.
    pub fn turn(&mut self, quarters: u8) {
        self.held = quarters % 4;
    }

    /// Width and height in the current rotation.
    pub fn size(&self) -> (i32, i32) {
        let (width, height) = self.size_override.unwrap_or(self.setup.size);
        if self.rotation() % 2 == 1 { (height, width) } else { (width, height) }
    }

    pub fn is_awake(&self) -> bool {
        self.awake
    }

    /// Whether the display stays on, being powered over USB.
    pub fn stays_on(&self) -> bool {
        let sources = self.settings.get("global/stay_on_while_plugged_in").and_then(|sources| sources.parse().ok());
        // 2 is USB.
        sources.is_some_and(|sources: u32| sources & 2 != 0)
    }

    pub fn is_locked(&self) -> bool {
        self.locked
    }

    pub(super) fn theme(&self) -> Theme {
        if self.is_on("secure/ui_night_mode") { NIGHT } else { DAY }
    }

    pub(super) fn is_on(&self, key: &str) -> bool {
        let on = if key == "secure/ui_night_mode" { "2" } else { "1" };
        self.settings.get(key).is_some_and(|value| value == on)
    }

    /// Writes a line to the log.
    pub fn say(&mut self, pid: u32, level: LogcatLevel, tag: &str, message: impl Into<String>) {
        let entry = LogEntry { at: self.epoch(), pid, tid: pid, level, tag: tag.to_owned(), message: message.into() };
        self.log.push(entry);
    }

    pub(super) fn show_toast(&mut self, text: impl Into<String>) {
        // 2 s, a short toast.
        self.toast = Some((text.into(), self.now + 2000));
    }

    /// The screen in front; `None` on the launcher and its recents.
    pub fn screen(&self) -> Option<AppScreen> {
        match self.place {
            Overlay::Task => self.tasks.last().and_then(|task| task.screens.last()).copied(),
            Overlay::Home | Overlay::Drawer | Overlay::Recents => None,
        }
    }

    /// Package and activity of what is resumed, behind panels and lock.
    pub fn resumed(&self) -> (&'static str, &'static str) {
        match self.screen() {
            Some(screen) => (screen.app().entry().package, screen.activity()),
            None => (LAUNCHER, LAUNCHER_ACTIVITY),
        }
    }

    /// The number of the task in front; the launcher's is 1.
    pub fn task_number(&self) -> u32 {
        match (self.place, self.tasks.last()) {
            (Overlay::Task, Some(task)) => task.number,
            _ => 1,
        }
    }

    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    pub fn pid(&self, app: StockApp) -> Option<u32> {
        self.pids.get(&app).copied()
    }

    /// Whether what is in sight never comes to rest.
    pub fn is_animated(&self) -> bool {
        self.awake && !self.locked && self.panel.is_none() && self.screen().is_some_and(AppScreen::is_animated)
    }

    /// Whether what is in sight forbids pictures.
    pub fn is_secure(&self) -> bool {
        self.awake && !self.locked && self.screen().is_some_and(AppScreen::is_secure)
    }

    /// Brings an app to the front, starting it where need be. True when it was running already.
    pub fn launch(&mut self, app: StockApp) -> bool {
        self.leave_screen();
        self.panel = None;
        let running = self.tasks.iter().position(|task| task.app == app);
        let task = match running {
            Some(index) => self.tasks.remove(index),
            None => {
                self.begin(app);
                self.next_task += 1;
                Task { app, number: self.next_task - 1, screens: vec![app.first_screen()] }
            }
        };
        self.tasks.push(task);
        self.place = Overlay::Task;
        let entry = app.entry();
        let component = format!("{}/{}", entry.package, entry.activity);
        let start = format!(
            "START u0 {{act=android.intent.action.MAIN cat=[android.intent.category.LAUNCHER] flg=0x10200000 cmp={component}}} from uid 10112"
        );
        self.say(SYSTEM_PID, LogcatLevel::Info, "ActivityTaskManager", start);
        if running.is_none() {
            let shown = format!("Displayed {component} for user 0: +142ms");
            self.say(SYSTEM_PID, LogcatLevel::Info, "ActivityTaskManager", shown);
        }
        running.is_some()
    }

    fn begin(&mut self, app: StockApp) {
        self.next_pid += 13;
        let pid = self.next_pid;
        self.pids.insert(app, pid);
        let entry = app.entry();
        let message = format!("Start proc {pid}:{}/u0a{} for top-activity", entry.package, 100 + app as u32);
        self.say(SYSTEM_PID, LogcatLevel::Info, "ActivityManager", message);
        self.say(pid, LogcatLevel::Debug, entry.label, "onCreate");
    }

    /// Opens a screen on top of what its app shows.
    pub fn open(&mut self, screen: AppScreen) {
        if self.screen().map(AppScreen::app) != Some(screen.app()) {
            self.launch(screen.app());
        }
        self.leave_screen();
        if let Some(task) = self.tasks.last_mut().filter(|task| task.screens.last() != Some(&screen)) {
            task.screens.push(screen);
        }
        if matches!(screen, AppScreen::Picture(_)) {
            self.camera = Camera::default();
        }
        // A page begins at its top, whatever the last one of its kind was scrolled to.
        self.scroll.remove("page");
        self.scroll.remove("note");
        let pid = self.pid(screen.app()).unwrap_or(SYSTEM_PID);
        self.say(pid, LogcatLevel::Debug, screen.app().entry().label, format!("opened {}", screen.activity()));
    }

    /// Opens a link. False where no app knows its kind.
    pub fn open_url(&mut self, url: &str) -> bool {
        let known = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
        if known {
            self.launch(StockApp::Browser);
            self.browser.visit(url);
        }
        known
    }

    /// Ends an app as `am force-stop` does; what it had not saved is gone.
    pub fn stop(&mut self, app: StockApp) -> bool {
        let was_front = self.screen().map(AppScreen::app) == Some(app);
        self.tasks.retain(|task| task.app != app);
        if was_front {
            self.leave_screen();
            self.place = Overlay::Home;
        }
        if app == StockApp::Calculator {
            self.calculator = Calculator::default();
        }
        let Some(pid) = self.pids.remove(&app) else { return false };
        let message =
            format!("Force stopping {} appid=10{} user=0: from pid {pid}", app.entry().package, 100 + app as u32);
        self.say(SYSTEM_PID, LogcatLevel::Info, "ActivityManager", message);
        true
    }

    /// Puts a notification of an app into the shade.
    pub fn notify(&mut self, app: StockApp, title: &str, text: &str) {
        let number = self.notices.iter().map(|notice| notice.number).max().unwrap_or(0) + 1;
        let (title, text) = (title.to_owned(), text.to_owned());
        self.notices.push(PhoneNotification { number, app, title, text, actions: &[] });
    }

    /// Ends an app as a mistake in its code does.
    pub fn crash(&mut self, app: StockApp, exception: &str, message: &str) {
        let package = app.entry().package;
        let pid = self.pid(app).unwrap_or(SYSTEM_PID);
        let event = format!("[{pid},0,{package},551075398,{exception},{message},{}.kt,42,0]", app.entry().label);
        self.say(SYSTEM_PID, LogcatLevel::Info, LogEntry::CRASH, event);
        self.say(pid, LogcatLevel::Error, "AndroidRuntime", "FATAL EXCEPTION: main");
        self.say(pid, LogcatLevel::Error, "AndroidRuntime", format!("{exception}: {message}"));
        self.stop(app);
    }

    /// Lets Android notice that an app does not answer. It goes on, as after "Wait" in Android's dialog.
    pub fn hang(&mut self, app: StockApp, reason: &str) {
        let package = app.entry().package;
        let pid = self.pid(app).unwrap_or(SYSTEM_PID);
        self.say(SYSTEM_PID, LogcatLevel::Info, LogEntry::HANG, format!("[0,{pid},{package},551075398,{reason}]"));
        self.say(SYSTEM_PID, LogcatLevel::Error, "ActivityManager", format!("ANR in {package}"));
        self.say(SYSTEM_PID, LogcatLevel::Error, "ActivityManager", format!("Reason: {reason}"));
    }

    /// Ends an app and deletes its data, as `pm clear` does; its permissions go with it.
    pub fn clear_data(&mut self, app: StockApp) {
        self.stop(app);
        match app {
            StockApp::Notes => self.notes = Notes::default(),
            StockApp::Contacts => self.contacts = Contacts::default(),
            StockApp::Gallery => self.camera = Camera::default(),
            StockApp::Clock => self.stopwatch = Stopwatch::default(),
            StockApp::Browser => self.browser = Browser::default(),
            StockApp::Vault => (self.passphrase, self.revealed) = (String::new(), false),
            StockApp::Calculator | StockApp::Settings => {}
        }
        self.take_permissions(app.entry().package);
    }

    /// Takes all permissions back that a user granted to an app.
    pub(super) fn take_permissions(&mut self, package: &str) {
        self.granted.retain(|(name, _)| name != package);
    }

    /// Focus, keyboard and questions do not survive their screen.
    pub(super) fn leave_screen(&mut self) {
        self.focus = None;
        self.keyboard = None;
        self.dialog = None;
        self.revealed = false;
    }

    pub(super) fn go_home(&mut self) {
        if self.locked {
            return;
        }
        self.leave_screen();
        self.panel = None;
        self.place = Overlay::Home;
    }

    /// What the back button does: the front-most thing goes.
    pub(super) fn go_back(&mut self) {
        if self.locked {
            return;
        }
        if self.panel.is_some() {
            self.panel = None;
        } else if self.dialog.is_some() {
            self.dialog = None;
        } else if self.keyboard.is_some() {
            self.keyboard = None;
        } else if self.place == Overlay::Task {
            self.leave_screen();
            let empty = self.tasks.last_mut().is_none_or(|task| {
                task.screens.pop();
                task.screens.is_empty()
            });
            if empty {
                self.tasks.pop();
                self.place = Overlay::Home;
            }
        } else {
            self.place = Overlay::Home;
        }
    }

    pub(super) fn show_recents(&mut self) {
        if !self.locked {
            self.leave_screen();
            self.panel = None;
            self.place = Overlay::Recents;
        }
    }

    /// Whether the notifications or the quick settings cover the screen.
    pub fn is_panel_open(&self) -> bool {
        self.panel.is_some()
    }

    pub fn show_panel(&mut self, panel: Option<Panel>) {
        if self.awake && !self.locked {
            self.panel = panel;
        }
    }

    pub fn wake(&mut self) {
        if !std::mem::replace(&mut self.awake, true) {
            self.say(SYSTEM_PID, LogcatLevel::Info, "PowerManagerService", "Waking up from Asleep (uid=1000)");
        }
    }

    pub fn sleep(&mut self) {
        if std::mem::replace(&mut self.awake, false) {
            self.panel = None;
            self.keyboard = None;
            self.locked = self.setup.lock != LockScreen::None;
            self.pin.clear();
            self.say(
                SYSTEM_PID,
                LogcatLevel::Info,
                "PowerManagerService",
                "Going to sleep due to power_button (uid 1000)",
            );
        }
    }

    /// Unlocks a phone without a PIN. False where one is needed.
    pub fn dismiss_lock(&mut self) -> bool {
        if self.locked && matches!(self.setup.lock, LockScreen::Pin(_)) {
            return false;
        }
        self.locked = false;
        true
    }

    pub(super) fn offset(&self, slot: &'static str) -> i32 {
        self.scroll.get(slot).copied().unwrap_or(0)
    }

    /// The time on the wall.
    pub(super) fn wall(&self) -> jiff::civil::DateTime {
        wall_clock(self.epoch())
    }
}
