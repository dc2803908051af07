//! The apps of one phone as devices: found when it comes, followed while it stays, gone with it.
//!
//! A phone does not tell adb when an app comes or goes, so its list of packages is asked for again and
//! again; only what is new in it is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sinew_phones::{Access, Extension, PhoneError};
use sinew_tool::{Announce, BoxFuture, Device, DeviceEvent, LeaveReason};
use tokio_util::sync::CancellationToken;

use crate::cache::Cache;
use crate::device::AppDevice;
use crate::function::{self, Skills};
use crate::offer::{Offer, PackageFunctions, Words, app_functions};
use crate::packages::{self, Installed};
use crate::scan::{self, Found};
use sinew_phones::adb::shell::{Limits, Output};

/// How the apps of phones are followed.
#[derive(Clone, Debug)]
pub struct Settings {
    pub words: Words,
    /// How often a phone is asked for its packages.
    pub interval: Duration,
    /// Where it is kept which packages offer nothing.
    pub cache: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { words: Words::default(), interval: Duration::from_secs(15), cache: None }
    }
}

/// Every so many looks, apps that failed are asked again, and the phone for its AppFunctions: both
/// change without a package changing. With the usual interval that is every five minutes.
const THOROUGH: u64 = 20;

/// The apps of a phone as devices, for as long as the phone is connected.
impl Extension for Settings {
    fn run(&self, phone: Arc<dyn Access>, announce: Announce, shutdown: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(follow(Follower::new(phone, self.clone(), announce), shutdown))
    }
}

async fn follow(mut follower: Follower, shutdown: CancellationToken) {
    loop {
        let looked = tokio::select! {
            () = shutdown.cancelled() => break,
            looked = follower.look() => looked,
        };
        if let Err(error) = looked {
            tracing::debug!(phone = %follower.access.about().serial, %error, "the apps of a phone were not listed");
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = tokio::time::sleep(follower.settings.interval) => {}
        }
    }
    follower.leave_all();
}

/// What is known of the apps of one phone.
pub struct Follower {
    access: Arc<dyn Access>,
    settings: Settings,
    announce: Announce,
    cache: Cache,
    listed: Vec<Installed>,
    apps: BTreeMap<String, App>,
    functions: BTreeMap<String, PackageFunctions>,
    skills: Option<Skills>,
    looks: u64,
    screen: Arc<tokio::sync::Mutex<()>>,
}

struct App {
    installed: Installed,
    /// As the APK says, before the app was asked.
    found: Found,
    failing: bool,
    device: Arc<AppDevice>,
}

impl Follower {
    pub fn new(access: Arc<dyn Access>, settings: Settings, announce: Announce) -> Follower {
        let cache = Cache::open(settings.cache.as_deref(), &access.about().serial, &settings.words);
        Follower {
            access,
            settings,
            announce,
            cache,
            listed: Vec::new(),
            apps: BTreeMap::new(),
            functions: BTreeMap::new(),
            skills: None,
            looks: 0,
            screen: Arc::default(),
        }
    }

    /// Looks once: announces what came, changed and went.
    pub async fn look(&mut self) -> Result<(), PhoneError> {
        let output = self.access.run(&packages::list_command(), Limits::seconds(30).megabytes(4)).await?;
        let listed = packages::parse(&String::from_utf8_lossy(&output.stdout));
        // A phone has packages; an empty list is a command that failed.
        if listed.is_empty() {
            return Err(PhoneError::Failed("the phone lists no packages".to_owned()));
        }
        let thorough = self.looks.is_multiple_of(THOROUGH);
        if listed == self.listed && !thorough {
            self.looks += 1;
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
                    let failed = thorough && app.failing;
                    let other = self.functions.get(&installed.package) != before.get(&installed.package);
                    if failed || other {
                        again.push((installed, app.found.clone()));
                    }
                }
                _ => fresh.push(installed),
            }
        }
        let read = scan::read(&self.access, fresh, &self.settings.words).await;
        let (some, none): (Vec<_>, Vec<_>) =
            read.into_iter().partition(|(installed, found)| self.is_worth_telling(installed, found));
        for (installed, found) in none {
            self.forget(&installed.package, "it offers nothing any more");
            if found.is_ok() {
                self.cache.insert(installed);
            }
        }
        again.extend(some);
        let (access, words) = (self.access.clone(), self.settings.words.clone());
        scan::ask(&access, again, &words, |(installed, found, offer)| self.tell(installed, found, offer)).await;
        self.cache.keep(&listed);
        self.listed = listed;
        self.looks += 1;
        Ok(())
    }

    /// The packages whose manifests can matter: those that somebody installed, and of the phone's own
    /// those that answer to one of the actions or have functions.
    async fn wanted(&self, listed: &[Installed]) -> Result<Vec<Installed>, PhoneError> {
        let words = &self.settings.words;
        let query = packages::query_command(&[&words.advertise], &[&words.discovery], &[&words.service]);
        let answer = patient(self.access.run(&query, Limits::seconds(30)).await)?;
        let answering: BTreeSet<String> = packages::parse_query(&answer);
        let matters = |one: &&Installed| {
            one.is_added() || answering.contains(&one.package) || self.functions.contains_key(&one.package)
        };
        let is_empty = |one: &&Installed| self.cache.holds(one) && !self.functions.contains_key(&one.package);
        Ok(listed.iter().filter(matters).filter(|one| !is_empty(one)).cloned().collect())
    }

    /// Android 16 lists functions itself; earlier ones have no such command, which is asked for once.
    async fn list_functions(&mut self) -> Result<(), PhoneError> {
        let skills = match self.skills {
            Some(skills) => skills,
            None => {
                let help = patient(self.access.run(&function::help_command(), Limits::seconds(15)).await)?;
                *self.skills.insert(Skills::parse(&help))
            }
        };
        if !skills.list {
            return Ok(());
        }
        let text = patient(self.access.run(&function::list_command(), Limits::seconds(30).megabytes(8)).await)?;
        match app_functions(&text) {
            Ok(found) => self.functions = found.into_iter().map(|one| (one.package.clone(), one)).collect(),
            Err(finding) => tracing::warn!(phone = %self.access.about().serial, "{}", finding.message),
        }
        Ok(())
    }

    /// Most packages offer nothing. One whose APK is refused or damaged is shown all the same.
    fn is_worth_telling(&self, installed: &Installed, found: &Found) -> bool {
        scan::is_something(found) || self.functions.contains_key(&installed.package)
    }

    fn tell(&mut self, installed: Installed, found: Found, mut offer: Offer) {
        if let Some(PackageFunctions { tools, findings, .. }) = self.functions.get(&installed.package) {
            tools.iter().cloned().for_each(|tool| offer.add(tool));
            offer.findings.extend(findings.iter().cloned());
        }
        let (skills, failing) = (self.skills.unwrap_or_default(), scan::is_failing(&offer));
        match self.apps.get_mut(&installed.package) {
            Some(app) => {
                if app.device.update(&installed, offer, skills) {
                    (self.announce)(DeviceEvent::Changed(app.device.clone()));
                }
                app.installed = installed;
                app.found = found;
                app.failing = failing;
            }
            None => {
                let device = AppDevice::new(self.access.clone(), self.screen.clone(), &installed, offer, skills);
                let device = Arc::new(device);
                (self.announce)(DeviceEvent::Joined(device.clone() as Arc<dyn Device>));
                self.apps.insert(installed.package.clone(), App { installed, found, failing, device });
            }
        }
    }

    fn forget_removed(&mut self, wanted: &[Installed]) {
        let stays = |package: &String| wanted.iter().any(|one| one.package == *package);
        let gone: Vec<String> = self.apps.keys().filter(|package| !stays(package)).cloned().collect();
        for package in gone {
            self.forget(&package, "the app was removed from the phone");
        }
    }

    /// Its tools go at once: nobody waits for an app to come back as for a phone.
    fn forget(&mut self, package: &str, why: &str) {
        if let Some(app) = self.apps.remove(package) {
            app.device.clear();
            (self.announce)(DeviceEvent::Changed(app.device.clone()));
            (self.announce)(DeviceEvent::Left(app.device, LeaveReason::Dismissed(why.to_owned())));
        }
    }

    fn leave_all(&mut self) {
        for app in std::mem::take(&mut self.apps).into_values() {
            let reason = LeaveReason::Broken("the phone went away".to_owned());
            (self.announce)(DeviceEvent::Left(app.device, reason));
        }
    }
}

/// What a command said that is not needed for everything else. One that hangs or says too much said nothing;
/// only a phone that is gone ends the look.
fn patient(output: Result<Output, PhoneError>) -> Result<String, PhoneError> {
    match output {
        Ok(output) => Ok(output.text()),
        Err(gone @ PhoneError::Gone(_)) => Err(gone),
        Err(_) => Ok(String::new()),
    }
}
