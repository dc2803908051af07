//! The virtual phone as a [`Phone`]: every primitive, with no wire between.

use jiff::tz::Offset;
use sinew_phones::{
    Capabilities, Foreground, Image, InstalledApp, Key, LogLine, LogQuery, Logs, Phone, PhoneError, PhoneIdentity,
    PhoneShell, Screen as Display, Stroke, Tree, UiNode, Work,
};

use super::act::{Panel, StockApp, TextField};
use super::handset::{Denial, Handset, PhoneClock};
use super::keys::Modifiers;
use super::machine::{LAUNCHER, PhoneMachine};
use super::setup::PhoneSetup;

/// A virtual phone, driven directly.
#[derive(Clone)]
pub struct VirtualPhone {
    pub handset: Handset,
}

impl VirtualPhone {
    pub fn new(setup: PhoneSetup, clock: PhoneClock) -> VirtualPhone {
        VirtualPhone { handset: Handset::new(setup, clock) }
    }

    /// Takes the time of a command, refuses what is denied, and does the rest at once.
    fn quick<'a, T: Send + 'a>(
        &'a self,
        needs: Option<Denial>,
        work: impl FnOnce(&mut PhoneMachine) -> Result<T, PhoneError> + Send + 'a,
    ) -> Work<'a, T> {
        Box::pin(async move {
            self.handset.take_time().await?;
            self.allow(needs)?;
            if matches!(needs, Some(Denial::Tree | Denial::Input)) {
                self.require_awake()?;
            }
            self.handset.with(work)
        })
    }

    /// Refuses what a dark display would swallow.
    fn require_awake(&self) -> Result<(), PhoneError> {
        self.handset.with(|machine| match machine.is_awake() {
            true => Ok(()),
            false => Err(PhoneError::Denied(format!(
                "the display of phone {} is off, so it shows nothing and accepts no input; wake it with press_key WAKEUP",
                machine.setup.serial
            ))),
        })
    }

    fn allow(&self, needs: Option<Denial>) -> Result<(), PhoneError> {
        let Some(what) = needs.filter(|what| self.handset.is_denied(*what)) else { return Ok(()) };
        Err(PhoneError::Denied(
            match what {
                Denial::Tree => "the phone does not let its screen be read; enable the accessibility service in Settings > Accessibility",
                Denial::Capture => "the phone does not allow screen capture; grant the permission on the phone",
                Denial::Input => "the phone does not allow input to be injected; enable \"USB debugging (Security settings)\" on it",
            }
            .to_owned(),
        ))
    }
}

impl Phone for VirtualPhone {
    fn about(&self) -> PhoneIdentity {
        self.handset.with(|machine| PhoneIdentity {
            serial: machine.setup.serial.clone(),
            serial_number: machine.setup.serial.clone(),
            manufacturer: "Sinew".to_owned(),
            model: machine.setup.model.clone(),
            android: machine.setup.android.release().to_owned(),
            sdk: machine.setup.android.sdk(),
            ..PhoneIdentity::default()
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            tiers: vec!["virtual".into()],
            multi_touch: true,
            unicode: true,
            clipboard: true,
            busy_tree: true,
            agent: None,
        }
    }

    fn shell(&self) -> Option<&dyn PhoneShell> {
        Some(self)
    }

    fn tree(&self) -> Work<'_, Tree> {
        self.quick(Some(Denial::Tree), |machine| Ok(machine.tree()))
    }

    fn screenshot(&self) -> Work<'_, Image> {
        self.quick(Some(Denial::Capture), |machine| {
            if machine.is_secure() {
                let (package, _) = machine.resumed();
                let message =
                    format!("{package} forbids pictures of its screen (FLAG_SECURE); leave it first, or read the tree");
                return Err(PhoneError::Denied(message));
            }
            let canvas = machine.paint();
            let (width, height) = (canvas.width as u32, canvas.height as u32);
            Ok(Image::Rgba { width, height, pixels: canvas.bytes().to_vec() })
        })
    }

    fn touch<'a>(&'a self, strokes: &'a [Stroke]) -> Work<'a, ()> {
        Box::pin(async move {
            self.handset.take_time().await?;
            self.allow(Some(Denial::Input))?;
            self.require_awake()?;
            self.handset.play(strokes).await
        })
    }

    fn key(&self, key: Key) -> Work<'_, ()> {
        Box::pin(async move {
            self.handset.take_time().await?;
            self.allow(Some(Denial::Input))?;
            if !matches!(key, Key::WakeUp | Key::Sleep) {
                self.require_awake()?;
            }
            self.handset.with(|machine| match (key, key.code()) {
                (Key::Notifications, _) => machine.show_panel(Some(Panel::Notifications)),
                (Key::QuickSettings, _) => machine.show_panel(Some(Panel::QuickSettings)),
                (_, Some(code)) => machine.key(u32::from(code), Modifiers::default()),
                (_, None) => {}
            });
            Ok(())
        })
    }

    fn set_text<'a>(&'a self, node: &'a UiNode, text: &'a str) -> Work<'a, ()> {
        self.quick(Some(Denial::Input), move |machine| {
            let field = TextField::ALL.into_iter().find(|field| node.handle == Some(*field as u64));
            match field {
                None => Err(PhoneError::Failed("the element is no text field; choose an editable one".to_owned())),
                Some(field) if machine.set_text(field, text) => Ok(()),
                Some(_) => Err(PhoneError::NoElement(
                    "the field is not on the screen any more; read the screen again".to_owned(),
                )),
            }
        })
    }

    fn select<'a>(&'a self, node: &'a UiNode, start: usize, end: usize) -> Work<'a, ()> {
        self.quick(Some(Denial::Input), move |machine| {
            let field = TextField::ALL.into_iter().find(|field| node.handle == Some(*field as u64));
            match field.is_some_and(|field| machine.select(field, start, end)) {
                true => Ok(()),
                false => Err(PhoneError::NoElement(
                    "the field is not on the screen any more, or shorter; read the screen again".to_owned(),
                )),
            }
        })
    }

    fn type_text<'a>(&'a self, text: &'a str) -> Work<'a, ()> {
        self.quick(Some(Denial::Input), move |machine| match machine.type_text(text) {
            true => Ok(()),
            false => Err(PhoneError::NoElement("no text field has the focus; tap one first".to_owned())),
        })
    }

    fn clipboard(&self) -> Work<'_, Option<String>> {
        self.quick(None, |machine| Ok(machine.clipboard().map(str::to_owned)))
    }

    fn set_clipboard<'a>(&'a self, text: &'a str) -> Work<'a, ()> {
        self.quick(None, move |machine| {
            machine.set_clipboard(text);
            Ok(())
        })
    }

    fn foreground(&self) -> Work<'_, Foreground> {
        self.quick(None, |machine| {
            let (package, activity) = machine.resumed();
            let title = machine.focused_window().map(|window| window.title);
            Ok(Foreground {
                package: Some(package.to_owned()),
                activity: Some(activity.to_owned()),
                window: title.filter(|title| !title.contains('/')),
            })
        })
    }

    fn screen(&self) -> Work<'_, Display> {
        self.quick(None, |machine| {
            let (width, height) = machine.size();
            Ok(Display {
                width: width as u32,
                height: height as u32,
                density_dpi: machine.density() as u32,
                rotation: machine.rotation(),
                awake: machine.is_awake(),
                locked: machine.is_locked(),
            })
        })
    }

    fn logs<'a>(&'a self, query: &'a LogQuery) -> Work<'a, Logs> {
        self.quick(None, move |machine| {
            let wanted =
                query.package.as_deref().map(|package| StockApp::find(package).and_then(|app| machine.pid(app)));
            let fits = |pid: u32| wanted.is_none_or(|wanted| wanted == Some(pid));
            let lines: Vec<LogLine> = machine
                .log
                .entries()
                .filter(|entry| fits(entry.pid) && !entry.is_event())
                .map(|entry| entry.to_line())
                .collect();
            Ok(query.pick(lines, Offset::UTC))
        })
    }

    fn apps(&self) -> Work<'_, Vec<InstalledApp>> {
        self.quick(None, |_| {
            Ok(StockApp::ALL
                .iter()
                .map(|app| {
                    let entry = app.entry();
                    InstalledApp {
                        package: entry.package.to_owned(),
                        label: Some(entry.label.to_owned()),
                        activity: Some(entry.activity.to_owned()),
                        system: entry.system,
                    }
                })
                .collect())
        })
    }

    fn open_app<'a>(&'a self, package: &'a str) -> Work<'a, ()> {
        self.quick(Some(Denial::Input), move |machine| {
            match StockApp::find(package) {
                Some(app) => drop(machine.launch(app)),
                None if package == LAUNCHER => machine.key(super::keys::code::HOME, Modifiers::default()),
                None => return Err(no_app(package)),
            }
            Ok(())
        })
    }

    fn close_app<'a>(&'a self, package: &'a str) -> Work<'a, ()> {
        self.quick(Some(Denial::Input), move |machine| match StockApp::find(package) {
            Some(app) => {
                machine.stop(app);
                Ok(())
            }
            None => Err(no_app(package)),
        })
    }

    fn open_url<'a>(&'a self, url: &'a str) -> Work<'a, ()> {
        self.quick(Some(Denial::Input), move |machine| match machine.open_url(url) {
            true => Ok(()),
            false => {
                let scheme = url.split(':').next().unwrap_or_default();
                Err(PhoneError::Failed(format!("no app on the phone opens `{scheme}:` links; http and https work")))
            }
        })
    }
}

fn no_app(package: &str) -> PhoneError {
    PhoneError::Failed(format!("the phone has no app `{package}`; list the apps for those it has"))
}
