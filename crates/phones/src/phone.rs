//! What a phone must be able to do: the primitives that every phone tool is written on.
//!
//! Each primitive has an answer of its own when a backend lacks it: [`PhoneError::Unsupported`] with
//! the remedy. So a backend implements what it can, and [`crate::Tiered`] puts one over another.
//! The types of their arguments and results are in [`crate::tree`], [`crate::touch`], [`crate::logs`].

use std::borrow::Cow;

use sinew_tool::{BoxFuture, ErrorKind, ToolError};

use crate::control::PhoneShell;
use crate::logs::{LogQuery, Logs};
use crate::touch::{Key, Stroke};
use crate::tree::{Tree, UiNode};

/// A running primitive. Dropping it cancels it; the phone may still finish what it has started.
pub type Work<'a, T> = BoxFuture<'a, Result<T, PhoneError>>;

/// One phone, through one backend. Every primitive has its own time limit, so callers add none.
pub trait Phone: Send + Sync {
    /// Known since the phone was found; does not ask the phone.
    fn about(&self) -> PhoneIdentity;

    fn capabilities(&self) -> Capabilities;

    /// The phone's shell and files, for what needs no screen: see [`crate::control`].
    fn shell(&self) -> Option<&dyn PhoneShell> {
        None
    }

    /// What is on the screen now, all windows the backend can see, front-most first.
    fn tree(&self) -> Work<'_, Tree> {
        unsupported("reading the screen's tree")
    }

    /// The screen as it is, unscaled, in the current rotation. A secure screen is `Denied`.
    fn screenshot(&self) -> Work<'_, Image> {
        unsupported("taking a screenshot")
    }

    /// A JPEG file of the screen, made small on the phone: its longest side has at most `max_side` pixels.
    fn small_screenshot(&self, _max_side: u32, _quality: u8) -> Work<'_, Vec<u8>> {
        unsupported("taking small screenshots")
    }

    /// Plays the strokes together, each one finger, and answers when the last finger is up. More than
    /// one at the same time needs [`Capabilities::multi_touch`].
    fn touch<'a>(&'a self, _strokes: &'a [Stroke]) -> Work<'a, ()> {
        unsupported("touching the screen")
    }

    fn key(&self, _key: Key) -> Work<'_, ()> {
        unsupported("pressing a key")
    }

    /// Makes `text` the whole content of an editable node, focusing it where need be.
    fn set_text<'a>(&'a self, _node: &'a UiNode, _text: &'a str) -> Work<'a, ()> {
        unsupported("setting a field's text")
    }

    /// Selects characters of an editable node, focusing it where need be; with equal ends it moves the cursor there.
    fn select<'a>(&'a self, _node: &'a UiNode, _start: usize, _end: usize) -> Work<'a, ()> {
        unsupported("selecting text")
    }

    /// Types at the cursor of the focused field, as a keyboard would. Lines are separated by `\n`.
    fn type_text<'a>(&'a self, _text: &'a str) -> Work<'a, ()> {
        unsupported("typing")
    }

    /// `None` where the clipboard is empty.
    fn clipboard(&self) -> Work<'_, Option<String>> {
        unsupported("reading the clipboard")
    }

    fn set_clipboard<'a>(&'a self, _text: &'a str) -> Work<'a, ()> {
        unsupported("setting the clipboard")
    }

    fn foreground(&self) -> Work<'_, Foreground> {
        unsupported("naming the current app")
    }

    fn screen(&self) -> Work<'_, Screen> {
        unsupported("reading the screen's size")
    }

    /// The last lines that fit the query, oldest first.
    fn logs<'a>(&'a self, _query: &'a LogQuery) -> Work<'a, Logs> {
        unsupported("reading the log")
    }

    /// The apps that can be opened.
    fn apps(&self) -> Work<'_, Vec<InstalledApp>> {
        unsupported("listing apps")
    }

    /// Starts an app by its package, or brings it to the front.
    fn open_app<'a>(&'a self, _package: &'a str) -> Work<'a, ()> {
        unsupported("opening an app")
    }

    fn close_app<'a>(&'a self, _package: &'a str) -> Work<'a, ()> {
        unsupported("closing an app")
    }

    /// Opens a link with whatever app the phone has for it.
    fn open_url<'a>(&'a self, _url: &'a str) -> Work<'a, ()> {
        unsupported("opening a link")
    }
}

fn unsupported<'a, T: Send + 'a>(what: &'static str) -> Work<'a, T> {
    Box::pin(std::future::ready(Err(PhoneError::unsupported(what, "use a backend that offers it"))))
}

/// Identifies a phone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhoneIdentity {
    /// How adb addresses it: its serial number over USB, an address or a service name on the network.
    pub serial: String,
    /// Its own serial number (`ro.serialno`); empty where unknown.
    pub serial_number: String,
    /// What the gateway knows it by, whatever its address; empty where that is `serial`.
    pub known_as: String,
    pub manufacturer: String,
    pub model: String,
    /// Android's version, for example `15`.
    pub android: String,
    /// Android's API level; 0 where unknown.
    pub sdk: u32,
}

impl PhoneIdentity {
    /// What the gateway knows the phone by, which stays the same at another address.
    pub fn stable_id(&self) -> &str {
        if self.known_as.is_empty() { &self.serial } else { &self.known_as }
    }
}

/// What a backend can do beyond the plain primitives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The tiers it is made of, best first: `shell`, `agent`, `virtual`.
    pub tiers: Vec<Cow<'static, str>>,
    /// Several fingers at the same time.
    pub multi_touch: bool,
    /// Any text, not only what a US keyboard types.
    pub unicode: bool,
    pub clipboard: bool,
    /// A tree also while the screen moves.
    pub busy_tree: bool,
    /// The state of the agent on the phone: its version, or why there is none. `None` where the backend
    /// knows of no agent.
    pub agent: Option<String>,
}

/// A picture of the screen.
#[derive(Clone, PartialEq, Eq)]
pub enum Image {
    /// A PNG file, as the phone encoded it.
    Png(Vec<u8>),
    /// `width * height * 4` bytes, rows from the top, red green blue alpha.
    Rgba { width: u32, height: u32, pixels: Vec<u8> },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// In pixels and in the current rotation, the space of all coordinates.
    pub width: u32,
    pub height: u32,
    pub density_dpi: u32,
    /// Quarter turns from the natural orientation, 0 to 3.
    pub rotation: u8,
    /// Whether the display is on.
    pub awake: bool,
    /// Whether the lock screen covers everything.
    pub locked: bool,
}

/// The app in front.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Foreground {
    /// The app in front; `None` where there is none.
    pub package: Option<String>,
    /// As the phone names it: `.Calculator` or a full class name.
    pub activity: Option<String>,
    /// The focused window's title where that is no activity of the app: `NotificationShade`.
    pub window: Option<String>,
}

/// An app that can be opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstalledApp {
    pub package: String,
    /// What its icon says, where the backend can read it.
    pub label: Option<String>,
    /// What opening it starts.
    pub activity: Option<String>,
    /// Whether it came with the phone.
    pub system: bool,
}

/// Why a primitive failed. Messages name the thing, the expectation and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PhoneError {
    /// The phone does not allow it: locked, unauthorized, secure window, injection forbidden.
    #[error("{0}")]
    Denied(String),
    /// The node meant is not on the screen any more.
    #[error("{0}")]
    NoElement(String),
    /// The phone tried and failed, or what it said makes no sense.
    #[error("{0}")]
    Failed(String),
    /// There is more of it than is taken.
    #[error("{0}")]
    TooLarge(String),
    #[error("{0}")]
    Timeout(String),
    /// No tier of this backend can do it.
    #[error("{what} is not possible on this phone as it is connected; {remedy}")]
    Unsupported { what: Cow<'static, str>, remedy: Cow<'static, str> },
    /// The argument makes no sense to this phone.
    #[error("{0}")]
    Invalid(String),
    /// The phone went away while it was asked.
    #[error("{0}")]
    Gone(String),
}

impl PhoneError {
    pub fn unsupported(what: impl Into<Cow<'static, str>>, remedy: impl Into<Cow<'static, str>>) -> PhoneError {
        PhoneError::Unsupported { what: what.into(), remedy: remedy.into() }
    }
}

/// The only place where a phone's error becomes a caller's. A missing tier is reported as a missing permission
/// (-32001): a person must set up the phone first.
impl From<PhoneError> for ToolError {
    fn from(error: PhoneError) -> ToolError {
        let kind = match &error {
            PhoneError::Denied(_) | PhoneError::Unsupported { .. } => ErrorKind::PermissionDenied,
            PhoneError::NoElement(_) => ErrorKind::ElementNotFound,
            PhoneError::Failed(_) | PhoneError::TooLarge(_) => ErrorKind::ActionFailed,
            PhoneError::Timeout(_) => ErrorKind::Timeout,
            PhoneError::Invalid(_) => ErrorKind::InvalidArguments,
            PhoneError::Gone(_) => ErrorKind::DeviceLost,
        };
        ToolError::new(kind, error.to_string())
    }
}
