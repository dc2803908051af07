//! The phone's vocabulary: its apps, their screens, its text fields, and everything a touch can do.

use super::canvas::Rgba;

/// The apps with an icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StockApp {
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
pub struct AppEntry {
    pub package: &'static str,
    /// The class that the icon starts, as `am` prints it.
    pub activity: &'static str,
    pub label: &'static str,
    pub icon: char,
    pub color: Rgba,
    pub system: bool,
}

impl StockApp {
    pub const ALL: [StockApp; 8] = [
        StockApp::Calculator,
        StockApp::Notes,
        StockApp::Contacts,
        StockApp::Gallery,
        StockApp::Clock,
        StockApp::Browser,
        StockApp::Vault,
        StockApp::Settings,
    ];

    pub fn entry(self) -> AppEntry {
        let (package, activity, label, icon, color, system) = match self {
            StockApp::Calculator => ("com.android.calculator2", ".Calculator", "Calculator", '÷', 0x00796b, true),
            StockApp::Notes => ("dev.sinew.notes", ".NotesActivity", "Notes", '📝', 0xef8e00, false),
            StockApp::Contacts => {
                ("com.android.contacts", ".activities.PeopleActivity", "Contacts", '👤', 0x1565c0, true)
            }
            StockApp::Gallery => ("com.android.gallery3d", ".app.GalleryActivity", "Gallery", '🌄', 0xad1457, true),
            StockApp::Clock => ("com.android.deskclock", ".DeskClock", "Clock", '⏰', 0x4527a0, true),
            StockApp::Browser => ("com.android.browser", ".BrowserActivity", "Browser", '🌐', 0x2e7d32, true),
            StockApp::Vault => ("dev.sinew.vault", ".VaultActivity", "Vault", '🔒', 0x37474f, false),
            StockApp::Settings => ("com.android.settings", ".Settings", "Settings", '🔧', 0x607d8b, true),
        };
        AppEntry { package, activity, label, icon, color: Rgba::hex(color), system }
    }

    pub fn find(package: &str) -> Option<StockApp> {
        StockApp::ALL.into_iter().find(|app| app.entry().package == package)
    }

    /// The permissions that it asks for and a user grants.
    pub fn permissions(self) -> &'static [&'static str] {
        match self {
            StockApp::Notes => &["android.permission.POST_NOTIFICATIONS", "android.permission.RECORD_AUDIO"],
            StockApp::Contacts => &["android.permission.READ_CONTACTS", "android.permission.WRITE_CONTACTS"],
            StockApp::Gallery => &["android.permission.CAMERA", "android.permission.READ_MEDIA_IMAGES"],
            StockApp::Clock => &["android.permission.POST_NOTIFICATIONS"],
            StockApp::Browser => &["android.permission.ACCESS_FINE_LOCATION"],
            StockApp::Calculator | StockApp::Vault | StockApp::Settings => &[],
        }
    }

    /// The screen that the icon opens.
    pub fn first_screen(self) -> AppScreen {
        match self {
            StockApp::Calculator => AppScreen::Calculator,
            StockApp::Notes => AppScreen::Notes,
            StockApp::Contacts => AppScreen::Contacts,
            StockApp::Gallery => AppScreen::Gallery,
            StockApp::Clock => AppScreen::Clock,
            StockApp::Browser => AppScreen::Browser,
            StockApp::Vault => AppScreen::Vault,
            StockApp::Settings => AppScreen::Settings,
        }
    }
}

/// A screen of an app: an activity, to Android.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppScreen {
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

impl AppScreen {
    pub fn app(self) -> StockApp {
        match self {
            AppScreen::Calculator => StockApp::Calculator,
            AppScreen::Notes | AppScreen::Note(_) => StockApp::Notes,
            AppScreen::Contacts | AppScreen::Contact(_) => StockApp::Contacts,
            AppScreen::Gallery | AppScreen::Picture(_) => StockApp::Gallery,
            AppScreen::Clock => StockApp::Clock,
            AppScreen::Browser => StockApp::Browser,
            AppScreen::Vault => StockApp::Vault,
            AppScreen::Settings | AppScreen::SettingsPage(_) => StockApp::Settings,
        }
    }

    pub fn activity(self) -> &'static str {
        match self {
            AppScreen::Note(_) => ".EditActivity",
            AppScreen::Contact(_) => ".activities.ContactDetailActivity",
            AppScreen::Picture(_) => ".app.PhotoActivity",
            AppScreen::SettingsPage(_) => ".SubSettings",
            first => first.app().entry().activity,
        }
    }

    /// Screens that are never at rest.
    pub fn is_animated(self) -> bool {
        self == AppScreen::Clock
    }

    /// Screens with `FLAG_SECURE`: no picture of them can be taken.
    pub fn is_secure(self) -> bool {
        self == AppScreen::Vault
    }
}

/// A text field. The number comes back as the handle of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u64)]
pub enum TextField {
    NoteTitle = 1,
    NoteBody = 2,
    Search = 3,
    Passphrase = 4,
    Address = 5,
    Reply = 6,
}

impl TextField {
    pub const ALL: [TextField; 6] = [
        TextField::NoteTitle,
        TextField::NoteBody,
        TextField::Search,
        TextField::Passphrase,
        TextField::Address,
        TextField::Reply,
    ];

    pub fn is_multi_line(self) -> bool {
        self == TextField::NoteBody
    }
}

/// What a touch does.
#[derive(Clone, Debug, PartialEq)]
pub enum TouchAction {
    Launch(StockApp),
    Open(AppScreen),
    Back,
    Home,
    Recents,
    CloseTask(StockApp),
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
    /// The button with this number of a notification.
    NoticeAction(u32, usize),
    SendReply(u32),
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
