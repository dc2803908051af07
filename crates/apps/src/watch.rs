//! The apps of one phone as devices, from the moment the phone connects until it disconnects.
//!
//! A phone does not notify adb about installed or removed apps, so its list of packages is polled; only new and
//! updated packages are read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sinew_phones::{Extension, PhoneAccess, PhoneError};
use sinew_tool::{Announce, BoxFuture, Device, DeviceEvent, LeaveReason};
use tokio_util::sync::CancellationToken;

use crate::app_function::{self, AppFunctionSupport};
use crate::cache::PackageCache;
use crate::device::AppDevice;
use crate::offer::{AppOffer, PackageFunctions, ProtocolNames, app_functions};
use crate::packages::{self, InstalledPackage};
use crate::scan::{self, ScannedOffer};
use sinew_phones::adb::shell::{CommandLimits, CommandOutput};

/// How the apps of phones are watched.
#[derive(Clone, Debug)]
pub struct WatchSettings {
    pub names: ProtocolNames,
    /// Time between two queries for the phone's packages.
    pub interval: Duration,
    /// Folder of the files that list the packages without tools.
    pub cache: Option<PathBuf>,
}

impl Default for WatchSettings {
    fn default() -> WatchSettings {
        WatchSettings { names: ProtocolNames::default(), interval: Duration::from_secs(15), cache: None }
    }
}

/// Every so many refreshes, apps that failed are queried again, and the phone for its AppFunctions: both
/// change without a package changing. With the default interval that is every five minutes.
const RETRY_EVERY: u64 = 20;

impl Extension for WatchSettings {
    fn run(
        &self,
        phone: Arc<dyn PhoneAccess>,
        announce: Announce,
        shutdown: CancellationToken,
    ) -> BoxFuture<'static, ()> {
        Box::pin(watch(AppWatcher::new(phone, self.clone(), announce), shutdown))
    }
}

async fn watch(mut watcher: AppWatcher, shutdown: CancellationToken) {
    loop {
        let refreshed = tokio::select! {
            () = shutdown.cancelled() => break,
            refreshed = watcher.refresh() => refreshed,
        };
        if let Err(error) = refreshed {
            tracing::debug!(phone = %watcher.access.about().serial, %error, "cannot list the apps of the phone");
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = tokio::time::sleep(watcher.settings.interval) => {}
        }
    }
    watcher.leave_all();
}

/// The known apps of one phone.
pub struct AppWatcher {
    access: Arc<dyn PhoneAccess>,
    settings: WatchSettings,
    announce: Announce,
    cache: PackageCache,
    listed: Vec<InstalledPackage>,
    apps: BTreeMap<String, WatchedApp>,
    functions: BTreeMap<String, PackageFunctions>,
    support: Option<AppFunctionSupport>,
    refreshes: u64,
    screen: Arc<tokio::sync::Mutex<()>>,
}

struct WatchedApp {
    installed: InstalledPackage,
    /// What the APK declares, before the app was queried.
    found: ScannedOffer,
    failing: bool,
    device: Arc<AppDevice>,
}

impl AppWatcher {
    pub fn new(access: Arc<dyn PhoneAccess>, settings: WatchSettings, announce: Announce) -> AppWatcher {
        let cache = PackageCache::open(settings.cache.as_deref(), access.about().stable_id(), &settings.names);
        AppWatcher {
            access,
            settings,
            announce,
            cache,
            listed: Vec::new(),
            apps: BTreeMap::new(),
            functions: BTreeMap::new(),
            support: None,
            refreshes: 0,
            screen: Arc::default(),
        }
    }

    /// Reads the phone's apps once and announces what was added, changed and removed.
    pub async fn refresh(&mut self) -> Result<(), PhoneError> {
        let output = self.access.run(&packages::list_command(), CommandLimits::seconds(30).megabytes(4)).await?;
        let listed = packages::parse(&String::from_utf8_lossy(&output.stdout));
        // Every phone has packages, so an empty list means that the command failed.
        if listed.is_empty() {
            return Err(PhoneError::Failed("the phone lists no packages".to_owned()));
        }
        let retry = self.refreshes.is_multiple_of(RETRY_EVERY);
        if listed == self.listed && !retry {
            self.refreshes += 1;
            return Ok(());
        }
        let before = self.functions.clone();
        self.list_functions().await?;
        let wanted = self.wanted(&listed).await?;
        self.forget_removed(&wanted);
        let mut fresh = Vec::new();
        let mut again = Vec::new();
        for installed in wanted {
            match self.apps.get(&installed.package) {
                Some(app) if app.installed == installed => {
                    let failed = retry && app.failing;
                    let other = self.functions.get(&installed.package) != before.get(&installed.package);
                    if failed || other {
                        again.push((installed, app.found.clone()));
                    }
                }
                _ => fresh.push(installed),
            }
        }
        let read = scan::read(&self.access, fresh, &self.settings.names).await;
        let (some, none): (Vec<_>, Vec<_>) =
            read.into_iter().partition(|(installed, found)| self.is_worth_showing(installed, found));
        for (installed, found) in none {
            self.forget(&installed.package, "the app no longer offers tools");
            if found.is_ok() {
                self.cache.insert(installed);
            }
        }
        again.extend(some);
        let (access, names) = (self.access.clone(), self.settings.names.clone());
        scan::ask(&access, again, &names, |(installed, found, offer)| self.announce_app(installed, found, offer)).await;
        self.cache.keep(&listed);
        self.listed = listed;
        self.refreshes += 1;
        Ok(())
    }

    /// The packages whose manifests are worth reading: those that a user installed, and of the preinstalled ones
    /// those that respond to one of the actions or have functions.
    async fn wanted(&self, listed: &[InstalledPackage]) -> Result<Vec<InstalledPackage>, PhoneError> {
        let names = &self.settings.names;
        let query = packages::query_command(&[&names.advertise], &[&names.discovery], &[&names.service]);
        let answer = optional_output(self.access.run(&query, CommandLimits::seconds(30)).await)?;
        let answering: BTreeSet<String> = packages::parse_query(&answer);
        let matters = |one: &&InstalledPackage| {
            one.is_added() || answering.contains(&one.package) || self.functions.contains_key(&one.package)
        };
        let is_empty = |one: &&InstalledPackage| self.cache.holds(one) && !self.functions.contains_key(&one.package);
        Ok(listed.iter().filter(matters).filter(|one| !is_empty(one)).cloned().collect())
    }

    /// Android 16 lists functions itself; whether this phone's Android has the command is queried once.
    async fn list_functions(&mut self) -> Result<(), PhoneError> {
        let support = match self.support {
            Some(support) => support,
            None => {
                let help =
                    optional_output(self.access.run(&app_function::help_command(), CommandLimits::seconds(15)).await)?;
                *self.support.insert(AppFunctionSupport::parse(&help))
            }
        };
        if !support.list {
            return Ok(());
        }
        let text = optional_output(
            self.access.run(&app_function::list_command(), CommandLimits::seconds(30).megabytes(8)).await,
        )?;
        match app_functions(&text) {
            Ok(found) => self.functions = found.into_iter().map(|one| (one.package.clone(), one)).collect(),
            Err(finding) => tracing::warn!(phone = %self.access.about().serial, "{}", finding.message),
        }
        Ok(())
    }

    /// Most packages offer nothing. One whose APK is refused or damaged is shown nevertheless.
    fn is_worth_showing(&self, installed: &InstalledPackage, found: &ScannedOffer) -> bool {
        scan::is_something(found) || self.functions.contains_key(&installed.package)
    }

    fn announce_app(&mut self, installed: InstalledPackage, found: ScannedOffer, mut offer: AppOffer) {
        if let Some(PackageFunctions { tools, findings, .. }) = self.functions.get(&installed.package) {
            tools.iter().cloned().for_each(|tool| offer.add(tool));
            offer.findings.extend(findings.iter().cloned());
        }
        let (support, failing) = (self.support.unwrap_or_default(), scan::is_failing(&offer));
        match self.apps.get_mut(&installed.package) {
            Some(app) => {
                if app.device.update(&installed, offer, support) {
                    (self.announce)(DeviceEvent::Changed(app.device.clone()));
                }
                app.installed = installed;
                app.found = found;
                app.failing = failing;
            }
            None => {
                let device = AppDevice::new(self.access.clone(), self.screen.clone(), &installed, offer, support);
                let device = Arc::new(device);
                (self.announce)(DeviceEvent::Joined(device.clone() as Arc<dyn Device>));
                self.apps.insert(installed.package.clone(), WatchedApp { installed, found, failing, device });
            }
        }
    }

    fn forget_removed(&mut self, wanted: &[InstalledPackage]) {
        let stays = |package: &String| wanted.iter().any(|one| one.package == *package);
        let gone: Vec<String> = self.apps.keys().filter(|package| !stays(package)).cloned().collect();
        for package in gone {
            self.forget(&package, "the app was removed from the phone");
        }
    }

    /// Removes the tools at once: unlike a phone, an app is not expected to come back.
    fn forget(&mut self, package: &str, why: &str) {
        if let Some(app) = self.apps.remove(package) {
            app.device.clear();
            (self.announce)(DeviceEvent::Changed(app.device.clone()));
            (self.announce)(DeviceEvent::Left(app.device, LeaveReason::Dismissed(why.to_owned())));
        }
    }

    fn leave_all(&mut self) {
        for app in std::mem::take(&mut self.apps).into_values() {
            let reason = LeaveReason::Broken("the phone disconnected".to_owned());
            (self.announce)(DeviceEvent::Left(app.device, reason));
        }
    }
}

/// The output of a command whose result is optional: a failure counts as no output, unless the phone is gone.
fn optional_output(output: Result<CommandOutput, PhoneError>) -> Result<String, PhoneError> {
    match output {
        Ok(output) => Ok(output.text()),
        Err(gone @ PhoneError::Gone(_)) => Err(gone),
        Err(_) => Ok(String::new()),
    }
}
