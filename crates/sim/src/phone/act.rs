//! The phone's vocabulary: its apps, their screens, its text fields, and everything a touch can do.

use super::canvas::Color;

/// The apps with an icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum App {
    Calculator,
    Notes,
    Contacts,
    Gallery,
    Clock,
    Browser,
    Vault,
    Settings,
}

/// What the phone knows of an app without starting it.
pub struct Entry {
    pub package: &'static str,
    /// The class that the icon starts, as `am` prints it.
    pub activity: &'static str,
    pub label: &'static str,
    pub icon: char,
    pub color: Color,
    pub system: bool,
}

impl App {
    pub const ALL: [App; 8] =
        [App::Calculator, App::Notes, App::Contacts, App::Gallery, App::Clock, App::Browser, App::Vault, App::Settings];

    pub fn entry(self) -> Entry {
        let (package, activity, label, icon, color, system) = match self {
            App::Calculator => ("com.android.calculator2", ".Calculator", "Calculator", '÷', 0x00796b, true),
            App::Notes => ("dev.sinew.notes", ".NotesActivity", "Notes", '📝', 0xef8e00, false),
            App::Contacts => ("com.android.contacts", ".activities.PeopleActivity", "Contacts", '👤', 0x1565c0, true),
            App::Gallery => ("com.android.gallery3d", ".app.GalleryActivity", "Gallery", '🌄', 0xad1457, true),
            App::Clock => ("com.android.deskclock", ".DeskClock", "Clock", '⏰', 0x4527a0, true),
            App::Browser => ("com.android.browser", ".BrowserActivity", "Browser", '🌐', 0x2e7d32, true),
            App::Vault => ("dev.sinew.vault", ".VaultActivity", "Vault", '🔒', 0x37474f, false),
            App::Settings => ("com.android.settings", ".Settings", "Settings", '🔧', 0x607d8b, true),
        };
        Entry { package, activity, label, icon, color: Color::hex(color), system }
    }

    pub fn find(package: &str) -> Option<App> {
        App::ALL.into_iter().find(|app| app.entry().package == package)
    }

    /// The screen that the icon opens.
    pub fn first_screen(self) -> Screen {
        match self {
            App::Calculator => Screen::Calculator,
            App::Notes => Screen::Notes,
            App::Contacts => Screen::Contacts,
            App::Gallery => Screen::Gallery,
            App::Clock => Screen::Clock,
            App::Browser => Screen::Browser,
            App::Vault => Screen::Vault,
            App::Settings => Screen::Settings,
        }
    }
}

/// A screen of an app: an activity, to Android.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    Calculator,
    Notes,
    /// The note with this number.
    Note(u32),
    Contacts,
    Contact(usize),
    Gallery,
    Picture(usize),
    Clock,
    Browser,
    Vault,
    Settings,
    SettingsPage(usize),
}

impl Screen {
    pub fn app(self) -> App {
        match self {
            Screen::Calculator => App::Calculator,
            Screen::Notes | Screen::Note(_) => App::Notes,
            Screen::Contacts | Screen::Contact(_) => App::Contacts,
            Screen::Gallery | Screen::Picture(_) => App::Gallery,
            Screen::Clock => App::Clock,
            Screen::Browser => App::Browser,
            Screen::Vault => App::Vault,
            Screen::Settings | Screen::SettingsPage(_) => App::Settings,
        }
    }

    pub fn activity(self) -> &'static str {
        match self {
            Screen::Note(_) => ".EditActivity",
            Screen::Contact(_) => ".activities.ContactDetailActivity",
            Screen::Picture(_) => ".app.PhotoActivity",
            Screen::SettingsPage(_) => ".SubSettings",
            first => first.app().entry().activity,
        }
    }

    /// Screens that are never at rest.
    pub fn is_animated(self) -> bool {
        self == Screen::Clock
    }

    /// Screens with `FLAG_SECURE`: no picture of them can be taken.
    pub fn is_secure(self) -> bool {
        self == Screen::Vault
    }
}

/// A text field. The number comes back as the handle of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u64)]
pub enum Field {
    NoteTitle = 1,
    NoteBody = 2,
    Search = 3,
    Passphrase = 4,
    Address = 5,
}

impl Field {
    pub const ALL: [Field; 5] = [Field::NoteTitle, Field::NoteBody, Field::Search, Field::Passphrase, Field::Address];

    pub fn is_multi_line(self) -> bool {
        self == Field::NoteBody
    }
}

/// What a touch does.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    Launch(App),
    Open(Screen),
    Back,
    Home,
    Recents,
    CloseTask(App),
    CloseTasks,
    /// Turns a setting on or off.
    Toggle(&'static str),
    /// Sets a setting from where on the view the finger is, up to this much.
    Slide(&'static str, u32),
    /// A key of the calculator.
    Calculate(char),
    NewNote,
    Ask(Dialog),
    Confirm,
    Dismiss,
    CopyNote(u32),
    ClearSearch,
    ZoomIn,
    ZoomOut,
    Stopwatch,
    StopwatchReset,
    Reveal,
    BuildNumber,
    OpenNotice(u32),
    DismissNotice(u32),
    ClearNotices,
    Panel(Panel),
    ClosePanel,
    PinDigit(char),
    PinDelete,
    Type(char),
    ImeShift,
    ImeSymbols,
    ImeDelete,
    ImeEnter,
    ImeHide,
    Nothing,
}

/// What slides down from the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Panel {
    Notifications,
    QuickSettings,
}

/// A question that must be answered before anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialog {
    DeleteNote(u32),
    DeleteContact(usize),
}
