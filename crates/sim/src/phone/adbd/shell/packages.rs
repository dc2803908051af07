//! Which apps there are: `pm` and `cmd package`.

use super::apps::{Intent, MAIN, VIEW, apk_folder};
use super::dumpsys::address;
use super::{Io, Shell};
use crate::phone::act::StockApp;
use crate::phone::machine::{KEYBOARD, LAUNCHER, LAUNCHER_ACTIVITY, SYSTEM_UI};
use crate::phone::virtual_app::is_granted_by_users;
use crate::phone::windows::full_activity;

const LAUNCHER_CATEGORY: &str = "android.intent.category.LAUNCHER";

impl Shell {
    pub(super) fn pm(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        match args {
            ["list", "packages", rest @ ..] => self.list_packages(rest, io),
            ["list", "features"] => {
                [
                    "android.hardware.touchscreen",
                    "android.hardware.touchscreen.multitouch",
                    "android.hardware.wifi",
                    "android.software.input_methods",
                ]
                .iter()
                .for_each(|name| io.line(format!("feature:{name}")));
                0
            }
            ["list", "users"] => {
                io.line("Users:\n\tUserInfo{0:Owner:c13} running");
                0
            }
            ["list", ..] => 0,
            ["path", .., package] if self.virtual_app(package).is_some() => {
                self.virtual_app(package)
                    .into_iter()
                    .for_each(|virtual_app| io.line(format!("package:{}", virtual_app.path())));
                0
            }
            ["path", rest @ ..] => match rest.last().and_then(|package| StockApp::find(package)) {
                Some(app) => {
                    io.line(format!(
                        "package:{}/{}.apk",
                        apk_folder(app),
                        if app.entry().system { app.entry().label } else { "base" }
                    ));
                    0
                }
                None => 1,
            },
            ["clear", rest @ ..] => match rest.last().and_then(|package| StockApp::find(package)) {
                Some(app) => {
                    self.handset.with(|machine| machine.clear_data(app));
                    io.line("Success");
                    0
                }
                // An app without a screen keeps no data here but its permissions.
                None => match rest.last().and_then(|package| self.virtual_app(package)) {
                    Some(virtual_app) => {
                        self.handset.with(|machine| machine.take_permissions(&virtual_app.package));
                        io.line("Success");
                        0
                    }
                    None => {
                        io.line("Failed");
                        1
                    }
                },
            },
            ["query-activities" | "query-receivers" | "query-services", rest @ ..]
                if self.query_virtual_apps(args[0], rest, io) =>
            {
                0
            }
            ["query-receivers" | "query-services", ..] => {
                io.line(format!("No {} found", args[0].trim_start_matches("query-")));
                0
            }
            ["query-activities" | "resolve-activity", rest @ ..] => {
                self.resolve(args[0] == "resolve-activity", rest, io)
            }
            [what @ ("grant" | "revoke"), rest @ ..] => self.permit(what, rest, io),
            [
                "enable" | "disable" | "disable-user" | "hide" | "unhide" | "suspend" | "unsuspend" | "trim-caches",
                ..,
            ] => 0,
            ["uninstall", .., package] if self.virtual_app(package).is_some() => {
                self.handset.uninstall(package);
                io.line("Success");
                0
            }
            ["uninstall", ..] => {
                io.line("Failure [DELETE_FAILED_INTERNAL_ERROR]");
                1
            }
            ["dump", package] => self.dumpsys(&["package", package], io),
            [command, ..] => {
                io.error(format!("Unknown command: {command}"));
                255
            }
            [] => {
                io.error("Package manager (package) commands:\n  help\n  path PACKAGE\n  list packages [-f] [-d] [-e] [-s] [-3] [-U] [FILTER]");
                255
            }
        }
    }

    /// `pm grant PACKAGE PERMISSION` and `pm revoke`: silent where it is done, an exception otherwise.
    fn permit(&self, what: &str, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let [.., package, permission] = args else { return 1 };
        let asked_for = match StockApp::find(package) {
            Some(app) => Some(app.permissions().iter().map(|name| (*name).to_owned()).collect()),
            None => self.virtual_app(package).map(|virtual_app| virtual_app.permissions.clone()),
        };
        let thrown = match asked_for {
            None => Some(format!("java.lang.IllegalArgumentException: Unknown package: {package}")),
            Some(names) if !names.iter().any(|name| name == permission) => Some(format!(
                "java.lang.SecurityException: Package {package} has not requested permission {permission}"
            )),
            Some(_) if !is_granted_by_users(permission) => Some(format!(
                "java.lang.SecurityException: Permission {permission} requested by {package} is not a changeable permission type"
            )),
            Some(_) => None,
        };
        if let Some(thrown) = thrown {
            io.error(format!("\nException occurred while executing '{what}':\n{thrown}"));
            return 255;
        }
        let pair = ((*package).to_owned(), (*permission).to_owned());
        self.handset.with(|machine| match what {
            "grant" => machine.granted.insert(pair),
            _ => machine.granted.remove(&pair),
        });
        0
    }

    fn list_packages(&self, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let has = |flag: &str| args.contains(&flag);
        let mut plain = args.iter().enumerate().filter(|(at, arg)| {
            !arg.starts_with('-') && !matches!(at.checked_sub(1).map(|before| args[before]), Some("--user" | "--uid"))
        });
        let filter = plain.next().map_or("", |(_, arg)| *arg);
        if has("-d") {
            return 0;
        }
        let own = StockApp::ALL.map(|app| (app.entry().package, Some(app), 10_100 + app as u32));
        let system = [
            ("android", 1000),
            (SYSTEM_UI, 10_060),
            (LAUNCHER, 10_061),
            (KEYBOARD, 10_062),
            ("com.android.shell", 2000),
        ];
        let all = own.into_iter().chain(system.into_iter().map(|(name, uid)| (name, None, uid)));
        for (name, app, uid) in all.filter(|(name, ..)| name.contains(filter)) {
            let third_party = app.is_some_and(|app| !app.entry().system);
            if (has("-3") && !third_party) || (has("-s") && third_party) {
                continue;
            }
            let mut line = "package:".to_owned();
            if has("-f") {
                let folder = app.map_or_else(|| format!("/system/priv-app/{name}"), apk_folder);
                line.push_str(&format!("{folder}/base.apk="));
            }
            line.push_str(name);
            if has("--show-versioncode") {
                line.push_str(" versionCode:1");
            }
            if has("-U") {
                line.push_str(&format!(" uid:{uid}"));
            }
            io.line(line);
        }
        for (index, virtual_app) in self.handset.virtual_apps().iter().enumerate().filter(|_| !has("-s")) {
            if !virtual_app.package.contains(filter) {
                continue;
            }
            let path = if has("-f") { format!("{}=", virtual_app.path()) } else { String::new() };
            let version = if has("--show-versioncode") {
                format!(" versionCode:{}", virtual_app.version_code)
            } else {
                String::new()
            };
            let uid = if has("-U") { format!(" uid:{}", 10_200 + index) } else { String::new() };
            io.line(format!("package:{path}{}{version}{uid}", virtual_app.package));
        }
        0
    }

    /// `cmd package query-activities` and `resolve-activity`.
    fn resolve(&self, one: bool, args: &[&str], io: &mut Io<'_, '_>) -> u8 {
        let intent = Intent::read(args);
        let brief = args.contains(&"--brief");
        let found: Vec<(&str, &str)> = match (intent.action, intent.category) {
            (Some(MAIN), Some("android.intent.category.HOME")) => vec![(LAUNCHER, LAUNCHER_ACTIVITY)],
            (Some(MAIN) | None, Some(LAUNCHER_CATEGORY) | None) => StockApp::ALL
                .iter()
                .map(|app| app.entry())
                .filter(|entry| intent.package.is_none_or(|package| package == entry.package))
                .map(|entry| (entry.package, entry.activity))
                .collect(),
            (Some(VIEW), _) if intent.data.is_some_and(|url| url.starts_with("http")) => {
                vec![(StockApp::Browser.entry().package, StockApp::Browser.entry().activity)]
            }
            _ => Vec::new(),
        };
        if found.is_empty() {
            io.line(if one { "No activity found" } else { "No activities found" });
            return 0;
        }
        if args.contains(&"--components") {
            found.iter().for_each(|(package, activity)| io.line(format!("{package}/{activity}")));
            return 0;
        }
        let indent = if one { "" } else { "  " };
        if !one {
            io.line(format!("{} activities found:", found.len()));
        }
        for (index, (package, activity)) in found.iter().enumerate().take(if one { 1 } else { usize::MAX }) {
            if !one {
                io.line(format!("  Activity #{index}:"));
            }
            io.line(format!(
                "{indent}{indent}priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=true"
            ));
            match brief {
                true => io.line(format!("{indent}{indent}{package}/{activity}")),
                false => {
                    io.line(format!("{indent}{indent}ActivityInfo:"));
                    io.line(format!(
                        "{indent}{indent}  name={}\n{indent}{indent}  packageName={package}",
                        full_activity(package, activity)
                    ));
                    io.line(format!("{indent}{indent}  enabled=true exported=true directBootAware=false\n{indent}{indent}  taskAffinity={package} targetActivity=null persistableMode=PERSIST_ROOT_ONLY"));
                    io.line(format!("{indent}{indent}  ApplicationInfo:\n{indent}{indent}    packageName={package}\n{indent}{indent}    processName={package} {}", address(package)));
                }
            }
        }
        0
    }
}
