//! A phone of paper: shows what it is told to show, and keeps a record of what is done to it.
#![allow(dead_code, clippy::panic, clippy::unwrap_used)]

pub mod calls;
pub mod tracked;
pub mod virtual_adb;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sinew_phones::{
    Capabilities, Foreground, Image, InstalledApp, Key, LogLine, LogQuery, LogcatLevel, Logs, Phone, PhoneDevice,
    PhoneError, PhoneIdentity, Profile, Rect, Screen, Stroke, Tree, UiNode, Work,
};

pub use calls::{call, failure, id_of, json_of, run_steps, text, text_for};

#[derive(Default)]
pub struct Paper {
    pub state: Mutex<State>,
    /// How many acting primitives run now, and the most that ever did.
    pub acting: AtomicUsize,
    pub most: AtomicUsize,
}

#[derive(Default)]
pub struct State {
    /// The screens in turn; a touch or a key goes to the next, the last one stays.
    pub screens: Vec<Tree>,
    /// Makes the screen after the last one, from the number of touches so far: a list that has no end.
    pub endless: Option<fn(usize) -> Tree>,
    pub touches: Vec<Vec<Stroke>>,
    pub keys: Vec<Key>,
    pub texts: Vec<(Option<String>, String)>,
    pub opened: Vec<String>,
    pub clipboard: Option<String>,
    pub foreground: Foreground,
    pub logs: Vec<LogLine>,
    pub tree_error: Option<PhoneError>,
    /// How long it takes to read the screen.
    pub slow_tree: Option<Duration>,
    pub capture_error: Option<PhoneError>,
    pub input_error: Option<PhoneError>,
    pub log_error: Option<PhoneError>,
    /// Of the current app and the screen's size.
    pub info_error: Option<PhoneError>,
    pub asleep: bool,
    pub locked: bool,
}

impl Paper {
    pub fn showing(screens: Vec<Tree>) -> PhoneDevice<Paper> {
        Paper::offering(Profile::Full, screens)
    }

    pub fn for_testers(screens: Vec<Tree>) -> PhoneDevice<Paper> {
        Paper::offering(Profile::Tester, screens)
    }

    fn offering(profile: Profile, screens: Vec<Tree>) -> PhoneDevice<Paper> {
        let paper = Paper::default();
        paper.state.lock().unwrap().screens = screens;
        PhoneDevice::new(paper, profile)
    }

    fn act<'a>(&'a self, work: impl FnOnce(&mut State) + Send + 'a) -> Work<'a, ()> {
        Box::pin(async move {
            let now = self.acting.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            tokio::task::yield_now().await;
            let mut state = self.state.lock().unwrap();
            self.acting.fetch_sub(1, Ordering::SeqCst);
            if let Some(error) = &state.input_error {
                return Err(error.clone());
            }
            work(&mut state);
            if let Some(screen) = state.endless {
                state.screens = vec![screen(state.touches.len())];
            } else if state.screens.len() > 1 {
                state.screens.remove(0);
            }
            Ok(())
        })
    }

    fn answer<T: Send + 'static>(&self, read: impl FnOnce(&State) -> Result<T, PhoneError>) -> Work<'_, T> {
        let answer = read(&self.state.lock().unwrap());
        Box::pin(std::future::ready(answer))
    }
}

impl Phone for Paper {
    fn about(&self) -> PhoneIdentity {
        PhoneIdentity {
            serial: "paper".to_owned(),
            manufacturer: "Sinew".to_owned(),
            model: "Paper_1".to_owned(),
            android: "15".to_owned(),
            sdk: 35,
            ..PhoneIdentity::default()
        }
    }

    fn capabilities(&self) -> Capabilities {
        let tiers = vec!["paper".into()];
        Capabilities { tiers, multi_touch: true, unicode: true, clipboard: true, busy_tree: true, agent: None }
    }

    fn tree(&self) -> Work<'_, Tree> {
        Box::pin(async {
            let pause = self.state.lock().unwrap().slow_tree;
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
            let state = self.state.lock().unwrap();
            match &state.tree_error {
                Some(error) => Err(error.clone()),
                None => Ok(state.screens.first().cloned().unwrap_or_default()),
            }
        })
    }

    fn screenshot(&self) -> Work<'_, Image> {
        self.answer(|state| match &state.capture_error {
            Some(error) => Err(error.clone()),
            None => Ok(Image::Rgba { width: 1080, height: 2400, pixels: vec![200; 1080 * 2400 * 4] }),
        })
    }

    fn touch<'a>(&'a self, strokes: &'a [Stroke]) -> Work<'a, ()> {
        self.act(|state| state.touches.push(strokes.to_vec()))
    }

    fn key(&self, key: Key) -> Work<'_, ()> {
        self.act(move |state| state.keys.push(key))
    }

    fn set_text<'a>(&'a self, node: &'a UiNode, text: &'a str) -> Work<'a, ()> {
        self.act(|state| state.texts.push((node.resource_id.clone(), text.to_owned())))
    }

    fn type_text<'a>(&'a self, text: &'a str) -> Work<'a, ()> {
        self.act(|state| state.texts.push((None, text.to_owned())))
    }

    fn clipboard(&self) -> Work<'_, Option<String>> {
        self.answer(|state| Ok(state.clipboard.clone()))
    }

    fn set_clipboard<'a>(&'a self, text: &'a str) -> Work<'a, ()> {
        self.act(|state| state.clipboard = Some(text.to_owned()))
    }

    fn foreground(&self) -> Work<'_, Foreground> {
        self.answer(|state| state.info_error.clone().map_or_else(|| Ok(state.foreground.clone()), Err))
    }

    fn screen(&self) -> Work<'_, Screen> {
        self.answer(|state| {
            let (awake, locked) = (!state.asleep, state.locked);
            let screen = Screen { width: 1080, height: 2400, density_dpi: 420, rotation: 0, awake, locked };
            state.info_error.clone().map_or(Ok(screen), Err)
        })
    }

    fn logs<'a>(&'a self, query: &'a LogQuery) -> Work<'a, Logs> {
        self.answer(|state| match &state.log_error {
            Some(error) => Err(error.clone()),
            None => Ok(query.pick(state.logs.clone(), jiff::tz::Offset::UTC)),
        })
    }

    fn apps(&self) -> Work<'_, Vec<InstalledApp>> {
        let app = |package: &str, label: &str, system| InstalledApp {
            package: package.to_owned(),
            label: Some(label.to_owned()),
            activity: None,
            system,
        };
        self.answer(move |_| {
            let bare = InstalledApp { label: None, ..app("com.android.calculator2", "", true) };
            let rest = [app("com.android.settings", "Settings", true), app("org.sinew.notes", "Notes", false)];
            Ok(rest.into_iter().chain([bare, app("com.android.settings.intelligence", "", true)]).collect())
        })
    }

    fn open_app<'a>(&'a self, package: &'a str) -> Work<'a, ()> {
        self.act(|state| state.opened.push(package.to_owned()))
    }

    fn close_app<'a>(&'a self, package: &'a str) -> Work<'a, ()> {
        self.act(move |state| state.opened.retain(|open| open != package))
    }

    fn open_url<'a>(&'a self, url: &'a str) -> Work<'a, ()> {
        self.act(|state| state.opened.push(url.to_owned()))
    }
}

pub fn log(second: i8, level: LogcatLevel, tag: &str, message: &str) -> LogLine {
    LogLine {
        time: jiff::civil::date(2024, 2, 11).at(16, 30, second, 123_000_000),
        pid: 1,
        level,
        tag: tag.to_owned(),
        message: message.to_owned(),
    }
}

pub fn node(class: &str, text: &str, bounds: [i32; 4]) -> UiNode {
    let [left, top, right, bottom] = bounds;
    UiNode {
        text: (!text.is_empty()).then(|| text.to_owned()),
        package: "org.sinew.paper".to_owned(),
        ..UiNode::new(class, Rect::new(left, top, right, bottom))
    }
}

/// A form: a title, a field, a button, a row with a label, a disabled button, a list of rows.
pub fn form() -> Tree {
    let mut tree = Tree::builder(0);
    tree.open(node("android.widget.FrameLayout", "", [0, 0, 1080, 2400]));
    tree.leaf(node("android.widget.TextView", "Calculator", [100, 50, 500, 120]));
    tree.leaf(UiNode {
        editable: true,
        focused: true,
        clickable: true,
        resource_id: Some("org.sinew.paper:id/name".to_owned()),
        hint: Some("Name".to_owned()),
        ..node("android.widget.EditText", "Ada", [0, 200, 1080, 300])
    });
    tree.leaf(UiNode {
        clickable: true,
        long_clickable: true,
        resource_id: Some("org.sinew.paper:id/submit".to_owned()),
        ..node("android.widget.Button", "Submit", [0, 400, 1080, 500])
    });
    tree.open(UiNode { clickable: true, ..node("android.widget.LinearLayout", "", [0, 600, 1080, 700]) });
    tree.leaf(node("android.widget.TextView", "Wi-Fi", [0, 600, 500, 700]));
    tree.close();
    tree.leaf(UiNode {
        clickable: true,
        enabled: false,
        ..node("android.widget.Button", "Later", [0, 800, 1080, 900])
    });
    tree.finish()
}

/// Five rows of a long list, from `first` on.
pub fn list(first: usize) -> Tree {
    let mut tree = Tree::builder(0);
    tree.open(node("android.widget.FrameLayout", "", [0, 0, 1080, 2400]));
    tree.open(UiNode {
        scrollable: true,
        ..node("androidx.recyclerview.widget.RecyclerView", "", [0, 200, 1080, 2200])
    });
    for position in 0..5 {
        let top = 200 + position as i32 * 400;
        let row = node("android.widget.TextView", &format!("Row {}", first + position), [0, top, 1080, top + 400]);
        tree.leaf(UiNode { clickable: true, ..row });
    }
    tree.finish()
}
