//! `dumpsys`: the state of system services, in the format of each Android version.

use std::sync::Arc;

use super::screen::is_lock_secure;
use super::{Io, Shell};
use crate::phone::act::StockApp;
use crate::phone::android::Android;
use crate::phone::log::wall_clock;
use crate::phone::machine::{LAUNCHER, LAUNCHER_ACTIVITY, PhoneMachine};
use crate::phone::virtual_app::{VirtualApp, is_granted_by_users};
use crate::phone::windows::full_activity;

/// The display's physical id.
pub(super) const DISPLAY: &str = "4619827259835644672";

impl Shell {
    pub(super) fn dumpsys(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let args: Vec<&str> = args.iter().copied().filter(|arg| !matches!(*arg, "-t" | "10" | "--proto")).collect();
        let virtual_apps = self.handset.virtual_apps();
        self.handset.with(|machine| match args.as_slice() {
            ["-l"] => {
                io.line("Currently running services:");
                ["SurfaceFlinger", "activity", "battery", "clipboard", "display", "input", "input_method", "package", "power", "statusbar", "window"].iter().for_each(|name| io.line(format!("  {name}")));
            }
            ["window", rest @ ..] => window(machine, rest.first().copied().unwrap_or(""), io),
            ["activity", rest @ ..] => activity(machine, rest, io),
            ["input", ..] => input(machine, io),
            ["display", ..] => display(machine, io),
            ["power", ..] => power(machine, io),
            ["input_method", ..] => {
                let shown = machine.is_keyboard_shown();
                io.line("Current Input Method Manager state:");
                io.line(format!("  mCurMethodId=com.android.inputmethod.latin/.LatinIME\n  mShowRequested={shown} mShowExplicitlyRequested=false mShowForced=false mInputShown={shown}"));
                if machine.setup.android >= Android::V13 {
                    io.line(format!("  mImeWindowVis={}", if shown { 3 } else { 0 }));
                }
            }
            ["package", "providers"] => providers(io),
            ["package", name, ..] => {
                let wanted = |record: &&PackageRecord| record.name == *name;
                match packages(&virtual_apps).iter().find(wanted) {
                    Some(record) => package(machine, record, io),
                    None => io.line(format!("Dexopt state:\n  Unable to find package: {name}")),
                }
            }
            ["package"] => {
                providers(io);
                packages(&virtual_apps).iter().for_each(|record| package(machine, record, io));
            }
            ["battery", ..] => io.line("Current Battery Service state:\n  AC powered: false\n  USB powered: true\n  status: 2\n  health: 2\n  present: true\n  level: 87\n  scale: 100\n  voltage: 4213\n  temperature: 265\n  technology: Li-ion"),
            ["SurfaceFlinger", "--display-id", ..] => io.line(format!("Display {DISPLAY} (HWC display 0): port=0 pnpId=SIN displayName=\"Virtual\"")),
            ["SurfaceFlinger", ..] => io.line("Build configuration: [sf PRESENT_TIME_OFFSET=0]"),
            ["statusbar", ..] => io.line(format!("  mExpandedVisible={}", machine.panel.is_some())),
            ["notification", ..] => notifications(machine, args.contains(&"--noredact"), io),
            ["gfxinfo" | "meminfo" | "clipboard" | "telephony.registry" | "wifi" | "audio" | "alarm" | "cpuinfo" | "usagestats" | "deviceidle" | "appops", ..] => {}
            [] => io.line("DUMP OF SERVICE activity:"),
            [name, ..] => io.error(format!("Can't find service: {name}")),
        });
        0
    }
}

fn notifications(machine: &PhoneMachine, open: bool, io: &mut Io<'_, '_>) {
    io.line("Current Notification Manager state:\n  Notification List:");
    for notice in &machine.notices {
        let (package, key, number) = (notice.app.entry().package, notice.key(), notice.number);
        let address = address(&key);
        let count = notice.actions.len();
        io.line(format!("    NotificationRecord(0x{address}: pkg={package} user=UserHandle{{0}} id={number} tag=null importance=3 key={key}: Notification(channel=default shortcut=null contentView=null vibrate=null sound=null defaults=0x0 flags=0x10 color=0x00000000 actions={count} vis=PRIVATE))"));
        io.line(format!("      uid={} userId=0", 10_100 + notice.app as u32));
        if count > 0 {
            io.line("      actions={");
            for (nth, action) in notice.actions.iter().enumerate() {
                io.line(format!("          [{nth}] \"{action}\" -> PendingIntent{{{address}: PendingIntentRecord{{{address} {package} broadcastIntent}}}}"));
            }
            io.line("        }");
        }
        io.line("      extras={");
        for (name, text) in [("android.title", &notice.title), ("android.text", &notice.text)] {
            match open {
                true => io.line(format!("          {name}=String ({text})")),
                false => io.line(format!("          {name}=String [length={}]", text.encode_utf16().count())),
            }
        }
        io.line("      }");
    }
}

/// Android names its objects by their address; these stay the same while the thing does.
pub(crate) fn address(name: &str) -> String {
    let hash = name.bytes().fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{:07x}", hash & 0x0fff_ffff)
}

fn record(machine: &PhoneMachine, package: &str, activity: &str, task: u32) -> String {
    let name = address(&format!("{package}{activity}"));
    // Since Android 13 there is a stray brace before the task.
    let brace = if machine.setup.android >= Android::V13 { "}" } else { "" };
    format!("ActivityRecord{{{name} u0 {package}/{activity}{brace} t{task}}}")
}

fn focused_app(machine: &PhoneMachine) -> String {
    let (package, activity) = machine.resumed();
    let record = record(machine, package, activity, machine.task_number());
    match machine.setup.android {
        Android::V9 => format!("AppWindowToken{{{} token=Token{{{} {record}}}}}", address(package), address(activity)),
        _ => record,
    }
}

fn current_focus(machine: &PhoneMachine) -> String {
    match machine.focused_window() {
        Some(window) => format!("Window{{{} u0 {}}}", address(&window.title), window.title),
        None => "null".to_owned(),
    }
}

fn window(machine: &PhoneMachine, part: &str, io: &mut Io<'_, '_>) {
    let android = machine.setup.android;
    let all = part.is_empty() || part == "-a" || part == "a" || part == "all";
    let (width, height) = machine.size();
    let turns = machine.rotation();
    if all || part.starts_with('p') {
        policy(machine, io);
    }
    if all || part.starts_with('d') {
        io.line("WINDOW MANAGER DISPLAY CONTENTS (dumpsys window displays)");
        io.line("  Display: mDisplayId=0");
        let (natural_width, natural_height) = machine.setup.size;
        io.line(format!(
            "    init={natural_width}x{natural_height} {}dpi cur={width}x{height} app={width}x{height}",
            machine.density()
        ));
        match android {
            Android::V9 | Android::V11 => io.line(format!("    mRotation={turns} mAltOrientation=false")),
            _ => io.line(format!(
                "    mRotation={turns} mDeferredRotationPauseCount=0\n    mDisplayRotation rotation=ROTATION_{}",
                u32::from(turns) * 90
            )),
        }
        if android > Android::V9 {
            focus_lines(machine, io);
        }
    }
    if all || part.starts_with('w') || part == "visible" {
        io.line("WINDOW MANAGER WINDOWS (dumpsys window windows)");
        for (index, window) in machine.windows().iter().rev().enumerate() {
            let name = format!("Window{{{} u0 {}}}", address(&window.title), window.title);
            let rect = window.root.rect;
            io.line(format!("  Window #{index} {name}:"));
            io.line(format!("    mDisplayId=0 package={} appop=NONE", window.package));
            io.line(format!("    mFrame=[{},{}][{},{}] isOnScreen=true", rect.left, rect.top, rect.right, rect.bottom));
        }
        // Until Android 9 these stood here; then they moved to the displays.
        if android == Android::V9 {
            focus_lines(machine, io);
        }
    }
}

fn focus_lines(machine: &PhoneMachine, io: &mut Io<'_, '_>) {
    io.line(format!("  mCurrentFocus={}", current_focus(machine)));
    io.line(format!("  mFocusedApp={}", focused_app(machine)));
}

fn policy(machine: &PhoneMachine, io: &mut Io<'_, '_>) {
    let locked = machine.is_locked();
    let awake = machine.is_awake();
    io.line("WINDOW MANAGER POLICY STATE (dumpsys window policy)");
    io.line(format!("    mAwake={awake} mScreenOnEarly={awake} mScreenOnFully={awake}"));
    if machine.setup.android == Android::V9 {
        io.line(format!(
            "    mShowingLockscreen={locked} mShowingDream=false mDreamingLockscreen={} mDreamingSleepToken=null",
            locked && !awake
        ));
        io.line(format!("    isStatusBarKeyguard={locked}"));
    }
    io.line("    KeyguardServiceDelegate");
    io.line(format!("      showing={locked}\n      showingAndNotOccluded={locked}\n      inputRestricted={locked}\n      occluded=false\n      secure={}", is_lock_secure(machine)));
}

fn activity(machine: &PhoneMachine, args: &[&str], io: &mut Io<'_, '_>) {
    let (package, activity) = machine.resumed();
    let resumed = record(machine, package, activity, machine.task_number());
    match args.first().copied().unwrap_or("") {
        "top" => {
            io.line(format!("TASK {package} id={} userId=0", machine.task_number()));
            io.line(format!("  ACTIVITY {package}/{activity} {} pid={}", address(activity), pid_of(machine, package)));
        }
        "recents" => {
            io.line("ACTIVITY MANAGER RECENT TASKS (dumpsys activity recents)");
            for (index, task) in machine.tasks().iter().rev().enumerate() {
                let name = task.app.entry().package;
                let kind = if machine.setup.android < Android::V11 { "TaskRecord" } else { "Task" };
                io.line(format!(
                    "  * Recent #{index}: {kind}{{{} #{} A={name} U=0 StackId=1 sz={}}}",
                    address(name),
                    task.number,
                    task.screens.len()
                ));
            }
        }
        "processes" | "services" | "broadcasts" | "providers" | "intents" => {}
        _ => {
            io.line("ACTIVITY MANAGER ACTIVITIES (dumpsys activity activities)");
            io.line("Display #0 (activities from top to bottom):");
            for task in machine.tasks().iter().rev() {
                let name = task.app.entry().package;
                io.line(format!(
                    "  * Task{{{} #{} type=standard A=10{}:{name} U=0 visible=true}}",
                    address(name),
                    task.number,
                    100 + task.app as u32
                ));
                for (index, screen) in task.screens.iter().enumerate().rev() {
                    io.line(format!("    * Hist #{index}: {}", record(machine, name, screen.activity(), task.number)));
                }
            }
            io.line(format!("  * Task{{{} #1 type=home U=0}}", address(LAUNCHER)));
            io.line(format!("    * Hist #0: {}", record(machine, LAUNCHER, LAUNCHER_ACTIVITY, 1)));
            match machine.setup.android {
                Android::V9 => io.line(format!("  mResumedActivity: {resumed}")),
                Android::V11 => {
                    io.line(format!("    topResumedActivity={resumed}"));
                    io.line(format!("  mResumedActivity: {resumed}"));
                }
                Android::V13 | Android::V15 => {
                    io.line(format!("    topResumedActivity={resumed}"));
                    io.line(format!("  ResumedActivity: {resumed}"));
                }
            }
        }
    }
}

fn pid_of(machine: &PhoneMachine, package: &str) -> u32 {
    StockApp::find(package).and_then(|app| machine.pid(app)).unwrap_or(1904)
}

fn input(machine: &PhoneMachine, io: &mut Io<'_, '_>) {
    let turns = machine.rotation();
    let (width, height) = machine.setup.size;
    let (now_wide, now_high) = machine.size();
    io.line("INPUT MANAGER (dumpsys input)\n\nInput Reader State:\n  Device 2: virtual_touchscreen\n    Touch Input Mapper (mode - direct):");
    match machine.setup.android {
        Android::V9 => {
            io.line(format!("      Viewport: displayId=0, orientation={turns}, logicalFrame=[0, 0, {now_wide}, {now_high}], physicalFrame=[0, 0, {width}, {height}], deviceSize=[{width}, {height}]"));
            io.line(format!("      SurfaceWidth: {width}px\n      SurfaceHeight: {height}px\n      SurfaceLeft: 0\n      SurfaceTop: 0\n      SurfaceOrientation: {turns}"));
        }
        Android::V11 => {
            io.line(format!("      Viewport INTERNAL: displayId=0, uniqueId=local:{DISPLAY}, port=0, orientation={turns}, logicalFrame=[0, 0, {now_wide}, {now_high}], physicalFrame=[0, 0, {now_wide}, {now_high}], deviceSize=[{width}, {height}], isActive=[1]"));
            io.line(format!(
                "      SurfaceWidth: {width}px\n      SurfaceHeight: {height}px\n      SurfaceOrientation: {turns}"
            ));
        }
        Android::V13 | Android::V15 => {
            io.line(format!("      Viewport INTERNAL: displayId=0, uniqueId=local:{DISPLAY}, port=0, orientation={turns}, logicalFrame=[0, 0, {now_wide}, {now_high}], physicalFrame=[0, 0, {now_wide}, {now_high}], deviceSize=[{now_wide}, {now_high}], isActive=[1]"));
            io.line(format!("      InputDeviceOrientation: Rotation{}", u32::from(turns) * 90));
        }
    }
}

fn display(machine: &PhoneMachine, io: &mut Io<'_, '_>) {
    let turns = machine.rotation();
    let (width, height) = machine.size();
    let state = if machine.is_awake() { "ON" } else { "OFF" };
    io.line("DISPLAY MANAGER (dumpsys display)");
    io.line(format!("  mGlobalDisplayState={state}"));
    match machine.setup.android {
        Android::V9 => io.line(format!("  mDefaultViewport=DisplayViewport{{valid=true, displayId=0, uniqueId='', orientation={turns}, logicalFrame=Rect(0, 0 - {width}, {height}), physicalFrame=Rect(0, 0 - {width}, {height}), deviceWidth={width}, deviceHeight={height}}}")),
        _ => io.line(format!("  mViewports=[DisplayViewport{{type=INTERNAL, valid=true, isActive=true, displayId=0, uniqueId='local:{DISPLAY}', physicalPort=0, orientation={turns}, logicalFrame=Rect(0, 0 - {width}, {height}), physicalFrame=Rect(0, 0 - {width}, {height}), deviceWidth={width}, deviceHeight={height}}}]")),
    }
    io.line(format!("  Display Devices: size=1\n    DisplayDeviceInfo{{\"Built-in Screen\": uniqueId=\"local:{DISPLAY}\", {} x {}, modeId 1, density {}, state {state}}}", machine.setup.size.0, machine.setup.size.1, machine.setup.density));
    io.line(format!("    mCurrentOrientation={turns}"));
    io.line(format!("  Logical Displays: size=1\n    Display Id=0\n    Display State={state}"));
}

fn power(machine: &PhoneMachine, io: &mut Io<'_, '_>) {
    let awake = machine.is_awake();
    io.line("POWER MANAGER (dumpsys power)\n\nPower Manager State:");
    io.line(format!("  mWakefulness={}", if awake { "Awake" } else { "Asleep" }));
    let stays_on = machine.stays_on();
    io.line(format!("  mIsPowered=true\n  mStayOn={stays_on}\n  mHoldingWakeLockSuspendBlocker=false\n  mHoldingDisplaySuspendBlocker={awake}"));
    io.line(format!("Display Power: state={}", if awake { "ON" } else { "OFF" }));
}

fn providers(io: &mut Io<'_, '_>) {
    io.line("ContentProvider Authorities:");
    io.line(format!(
        "  [com.android.contacts]:\n    Provider{{{} com.android.contacts/.ContactsProvider}}",
        address("contacts")
    ));
    io.line(format!("  [settings]:\n    Provider{{{} com.android.settings/.SettingsProvider}}", address("settings")));
}

/// What Android knows about an app.
struct PackageRecord {
    name: String,
    /// What its icon starts.
    activity: Option<&'static str>,
    uid: u32,
    folder: String,
    version_code: u64,
    version_name: String,
    is_system: bool,
    permissions: Vec<String>,
    installed: i64,
    updated: i64,
}

/// The first moment of the apps that came with the phone.
const MADE: i64 = 1_770_825_600_000;

fn packages(virtual_apps: &[Arc<VirtualApp>]) -> Vec<PackageRecord> {
    let stock = |app: &StockApp| PackageRecord {
        name: app.entry().package.to_owned(),
        activity: Some(app.entry().activity),
        uid: 10_100 + *app as u32,
        folder: super::apps::apk_folder(*app),
        version_code: 1,
        version_name: "1.0".to_owned(),
        is_system: app.entry().system,
        permissions: app.permissions().iter().map(|name| (*name).to_owned()).collect(),
        installed: MADE,
        updated: MADE,
    };
    let installed = |(nth, app): (usize, &Arc<VirtualApp>)| PackageRecord {
        name: app.package.clone(),
        activity: None,
        uid: 10_200 + nth as u32,
        folder: app.folder(),
        version_code: app.version_code,
        version_name: app.version_name.clone(),
        is_system: false,
        permissions: app.permissions.clone(),
        installed: app.installed,
        updated: app.updated,
    };
    StockApp::ALL.iter().map(stock).chain(virtual_apps.iter().enumerate().map(installed)).collect()
}

fn package(machine: &PhoneMachine, record: &PackageRecord, io: &mut Io<'_, '_>) {
    let name = &record.name;
    if let Some(activity) = record.activity {
        io.line(format!("Activity Resolver Table:\n  Non-Data Actions:\n      android.intent.action.MAIN:\n        {} {name}/{activity} filter {}", address(name), address(activity)));
        io.line(
            "          Action: \"android.intent.action.MAIN\"\n          Category: \"android.intent.category.LAUNCHER\"",
        );
    }
    io.line(format!("Packages:\n  Package [{name}] ({}):", address(name)));
    let flags = if record.is_system { "[ SYSTEM HAS_CODE ALLOW_BACKUP ]" } else { "[ HAS_CODE ALLOW_BACKUP ]" };
    io.line(format!("    userId={}\n    codePath={}", record.uid, record.folder));
    let sdk = machine.setup.android.sdk();
    io.line(format!("    versionCode={} minSdk=26 targetSdk={sdk}", record.version_code));
    io.line(format!("    versionName={}", record.version_name));
    let time = |at: i64| wall_clock(at).strftime("%Y-%m-%d %H:%M:%S").to_string();
    let (installed, updated) = (time(record.installed), time(record.updated));
    io.line(format!(
        "    flags={flags}\n    pkgFlags={flags}\n    firstInstallTime={installed}\n    lastUpdateTime={updated}"
    ));
    io.line(format!(
        "    signatures=PackageSignatures{{{} version:2, signatures:[a1b2c3d4], past signatures:[]}}",
        address("signature")
    ));
    let (by_users, at_once): (Vec<_>, Vec<_>) = record.permissions.iter().partition(|name| is_granted_by_users(name));
    if !at_once.is_empty() {
        io.line("    install permissions:");
        at_once.iter().for_each(|permission| io.line(format!("      {permission}: granted=true")));
    }
    io.line("    User 0: installed=true hidden=false stopped=false\n      runtime permissions:");
    for permission in by_users {
        let is_granted = machine.granted.contains(&(name.clone(), permission.clone()));
        io.line(format!("        {permission}: granted={is_granted}, flags=[ ]"));
    }
    if let Some(activity) = record.activity {
        io.line(format!("    mainActivity={}", full_activity(name, activity)));
    }
}
