//! A virtual phone that several drivers share: the machine behind a mutex, its clock, and the faults it can be given.

mod installs;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sinew_phones::{PhoneError, Stroke};
use tokio::sync::{Mutex as Turn, watch};

use super::adbd::files::Files;
use super::agent::AgentStandIn;
use super::machine::PhoneMachine;
use super::programs::Programs;
use super::setup::PhoneSetup;
use super::touch::{Pointer, TouchPhase};
use super::virtual_app::VirtualApp;
use installs::InstallSessions;

/// Where the phone's time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhoneClock {
    /// It goes by itself; gestures take their time.
    Real,
    /// It stands still unless stepped; gestures step it and take no time.
    Virtual,
}

/// What a phone can be told to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    Tree,
    Capture,
    Input,
}

/// One virtual phone, shared by everyone who drives it.
#[derive(Clone)]
pub struct Handset {
    shared: Arc<HandsetInner>,
}

struct HandsetInner {
    machine: Mutex<PhoneMachine>,
    clock: PhoneClock,
    started: Instant,
    denied: Mutex<Vec<Denial>>,
    latency: Mutex<Duration>,
    plugged: watch::Sender<bool>,
    /// How many commands have begun.
    begun: watch::Sender<u64>,
    /// How often a command was about to begin, had a piece of a file in its hands, or had done its work and was about to
    /// answer.
    moments: watch::Sender<u64>,
    /// Commands stand still at every moment beyond this one.
    halt: watch::Sender<Option<u64>>,
    /// Gestures run one at a time.
    hands: Turn<()>,
    files: Mutex<Files>,
    virtual_apps: Mutex<BTreeMap<String, Arc<VirtualApp>>>,
    /// How many apps were installed so far.
    installations: AtomicU64,
    /// What activities answered to the companion, by the token of the call.
    answers: watch::Sender<BTreeMap<String, String>>,
    agent: Mutex<Option<AgentStandIn>>,
    sessions: Mutex<InstallSessions>,
    /// Whether Android is too busy to open install sessions.
    installer_busy: watch::Sender<bool>,
    /// Whether videos go on beyond their time.
    endless_videos: watch::Sender<bool>,
    programs: Programs,
    /// How often the agent was killed.
    kills: watch::Sender<u64>,
    /// Whether the agent holds the one way to read the screen that Android has.
    tree_held: AtomicBool,
}

/// How often a moving finger is felt, 60 times a second.
const FRAME: Duration = Duration::from_millis(16);
/// The longest gesture; the longest tool stroke is 60 s, two in a row are 120 s.
const LONGEST: Duration = Duration::from_secs(120);

impl Handset {
    pub fn new(setup: PhoneSetup, clock: PhoneClock) -> Handset {
        let shared = HandsetInner {
            machine: Mutex::new(PhoneMachine::new(setup)),
            clock,
            started: Instant::now(),
            denied: Mutex::default(),
            latency: Mutex::default(),
            plugged: watch::Sender::new(true),
            begun: watch::Sender::new(0),
            moments: watch::Sender::new(0),
            halt: watch::Sender::default(),
            hands: Turn::new(()),
            files: Mutex::default(),
            virtual_apps: Mutex::default(),
            installations: AtomicU64::default(),
            answers: watch::Sender::default(),
            agent: Mutex::default(),
            sessions: Mutex::default(),
            installer_busy: watch::Sender::new(false),
            endless_videos: watch::Sender::new(false),
            programs: Programs::default(),
            kills: watch::Sender::new(0),
            tree_held: AtomicBool::new(false),
        };
        Handset { shared: Arc::new(shared) }
    }

    /// Looks at the phone or changes it, at the present moment.
    pub fn with<T>(&self, look: impl FnOnce(&mut PhoneMachine) -> T) -> T {
        let mut machine = unpoisoned(&self.shared.machine);
        if self.shared.clock == PhoneClock::Real {
            machine.set_now(self.shared.started.elapsed().as_millis() as u64);
        }
        look(&mut machine)
    }

    /// Switches the phone off and on again.
    pub fn restart(&self) {
        self.with(|machine| {
            let (setup, now) = (machine.setup.clone(), machine.now());
            *machine = PhoneMachine::new(setup);
            machine.set_now(now);
        });
    }

    /// Steps a virtual clock.
    pub fn advance(&self, by: Duration) {
        if self.shared.clock == PhoneClock::Virtual {
            self.with(|machine| machine.set_now(machine.now() + by.as_millis() as u64));
        }
    }

    /// Lets time pass: steps a virtual clock, waits for a real one.
    pub async fn pass(&self, time: Duration) {
        match self.shared.clock {
            PhoneClock::Virtual => self.advance(time),
            PhoneClock::Real => tokio::time::sleep(time).await,
        }
    }

    /// Refuses something from now on, or allows it again.
    pub fn deny(&self, what: Denial, denied: bool) {
        let mut list = unpoisoned(&self.shared.denied);
        list.retain(|held| *held != what);
        if denied {
            list.push(what);
        }
    }

    pub fn is_denied(&self, what: Denial) -> bool {
        unpoisoned(&self.shared.denied).contains(&what)
    }

    /// Every command takes at least so long.
    pub fn set_latency(&self, latency: Duration) {
        *unpoisoned(&self.shared.latency) = latency;
    }

    /// Pulls the cable, also in the middle of a command.
    pub fn unplug(&self) {
        self.shared.plugged.send_replace(false);
    }

    pub fn plug_in(&self) {
        self.shared.plugged.send_replace(true);
    }

    pub fn is_plugged_in(&self) -> bool {
        *self.shared.plugged.borrow()
    }

    /// Ends when the cable is pulled.
    pub async fn unplugged(&self) {
        let mut plugged = self.shared.plugged.subscribe();
        // The sender lives as long as the phone.
        let _ = plugged.wait_for(|plugged| !plugged).await;
    }

    /// Ends when the next command begins, which may still take its time then.
    pub fn next_command(&self) -> impl Future<Output = ()> + use<> {
        let mut begun = self.shared.begun.subscribe();
        async move { drop(begun.changed().await) }
    }

    /// The time a command takes; an error where the cable was pulled meanwhile.
    pub async fn take_time(&self) -> Result<(), PhoneError> {
        self.shared.begun.send_modify(|count| *count += 1);
        let latency = *unpoisoned(&self.shared.latency);
        let time = async {
            self.pass_moment().await;
            if !latency.is_zero() {
                tokio::time::sleep(latency).await;
            }
        };
        tokio::select! {
            biased;
            () = self.unplugged() => Err(gone()),
            () = time => Ok(()),
        }
    }

    /// A command is about to begin or to answer: it stands still here where it was told to.
    pub(super) async fn pass_moment(&self) {
        let mut halt = self.shared.halt.subscribe();
        let mut moment = 0;
        self.shared.moments.send_modify(|passed| {
            *passed += 1;
            moment = *passed;
        });
        // The sender lives as long as the phone.
        let _ = halt.wait_for(|halt| halt.is_none_or(|last| moment <= last)).await;
    }

    /// Lets commands pass so many moments from now on, one before they begin, one with each piece of a file and one before
    /// they answer, and stand still at the next; ends when one does.
    pub fn halt_after(&self, moments: u64) -> impl Future<Output = ()> + use<> {
        let last = *self.shared.moments.borrow() + moments;
        self.shared.halt.send_replace(Some(last));
        let mut passed = self.shared.moments.subscribe();
        async move { drop(passed.wait_for(|passed| *passed > last).await) }
    }

    /// Ends [`Handset::halt_after`].
    pub fn go_on(&self) {
        self.shared.halt.send_replace(None);
    }

    /// What answers when the agent is started; `None`: the phone runs no Java.
    pub fn set_agent(&self, end: Option<AgentStandIn>) {
        *unpoisoned(&self.shared.agent) = end;
    }

    pub(super) fn agent(&self) -> Option<AgentStandIn> {
        unpoisoned(&self.shared.agent).clone()
    }

    /// Ends the agent as Android ends programs when memory is short.
    pub fn kill_agent(&self) {
        self.shared.kills.send_modify(|kills| *kills += 1);
    }

    /// Ends when the agent is killed.
    pub(super) fn agent_killed(&self) -> impl Future<Output = ()> + use<> {
        let mut kills = self.shared.kills.subscribe();
        async move { drop(kills.changed().await) }
    }

    pub(super) fn hold_tree(&self, held: bool) {
        self.shared.tree_held.store(held, Ordering::Relaxed);
    }

    pub(super) fn is_tree_held(&self) -> bool {
        self.shared.tree_held.load(Ordering::Relaxed)
    }

    pub(super) fn files(&self) -> MutexGuard<'_, Files> {
        unpoisoned(&self.shared.files)
    }

    /// The command lines of what runs on when its shell has ended: recorders.
    pub fn running_programs(&self) -> Vec<String> {
        self.shared.programs.lines()
    }

    pub(super) fn programs(&self) -> &Programs {
        &self.shared.programs
    }

    /// Lets videos go on beyond their time, or end.
    pub fn set_endless_videos(&self, endless: bool) {
        self.shared.endless_videos.send_replace(endless);
    }

    /// Ends when a video that had its time does.
    pub(super) async fn recorder_stops(&self) {
        let mut endless = self.shared.endless_videos.subscribe();
        // The sender lives as long as the phone.
        let _ = endless.wait_for(|endless| !endless).await;
    }

    /// The paths of all files.
    pub fn paths(&self) -> Vec<String> {
        self.files().paths()
    }

    /// Installs an app, or another version in its place.
    pub fn install(&self, virtual_app: VirtualApp) {
        let number = self.shared.installations.fetch_add(1, Ordering::Relaxed);
        let now = self.with(|machine| machine.epoch());
        let mut virtual_apps = unpoisoned(&self.shared.virtual_apps);
        let before = virtual_apps.remove(&virtual_app.package);
        let virtual_app = virtual_app.installed(number, now);
        let virtual_app = Arc::new(match &before {
            Some(before) => virtual_app.in_place_of(before),
            None => virtual_app,
        });
        virtual_apps.insert(virtual_app.package.clone(), virtual_app.clone());
        drop(virtual_apps);
        let mut files = self.files();
        if let Some(before) = before {
            files.forget(&before.path());
        }
        files.place(&virtual_app.path(), virtual_app.apk.clone(), (now / 1000) as u32);
    }

    pub fn uninstall(&self, package: &str) {
        let removed = unpoisoned(&self.shared.virtual_apps).remove(package);
        if let Some(virtual_app) = removed {
            self.files().forget(&virtual_app.path());
            self.with(|machine| machine.take_permissions(package));
        }
    }

    /// The installed apps, in the order of their names.
    pub fn virtual_apps(&self) -> Vec<Arc<VirtualApp>> {
        unpoisoned(&self.shared.virtual_apps).values().cloned().collect()
    }

    pub(super) fn put_answer(&self, token: String, answer: String) {
        self.shared.answers.send_modify(|answers| drop(answers.insert(token, answer)));
    }

    /// Waits for the answer to a call.
    pub(super) async fn answer(&self, token: &str) -> String {
        let mut answers = self.shared.answers.subscribe();
        let came =
            answers.wait_for(|answers| answers.contains_key(token)).await.map(|answers| answers.get(token).cloned());
        // The sender lives as long as the phone.
        came.ok().flatten().unwrap_or_default()
    }

    /// Plays strokes, all fingers together, and answers when the last one is up.
    pub async fn play(&self, strokes: &[Stroke]) -> Result<(), PhoneError> {
        self.play_pointers(events(strokes)?).await
    }

    /// Plays what single fingers do, in order of time.
    pub(super) async fn play_pointers(&self, events: Vec<(Duration, Pointer)>) -> Result<(), PhoneError> {
        let _turn = self.shared.hands.lock().await;
        let lifted = FingerGuard { handset: self, armed: true };
        let (start, from) = (tokio::time::Instant::now(), self.with(|machine| machine.now()));
        for (at, pointer) in events {
            match self.shared.clock {
                PhoneClock::Virtual => self.with(|machine| machine.set_now(from + at.as_millis() as u64)),
                PhoneClock::Real => tokio::time::sleep_until(start + at).await,
            }
            if !self.is_plugged_in() {
                return Err(gone());
            }
            self.with(|machine| machine.pointer(pointer));
        }
        lifted.disarm();
        Ok(())
    }
}

/// Takes the fingers off when a gesture is given up half-way.
struct FingerGuard<'a> {
    handset: &'a Handset,
    armed: bool,
}

impl FingerGuard<'_> {
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for FingerGuard<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.handset
                .with(|machine| machine.pointer(Pointer { finger: 0, phase: TouchPhase::Cancel, x: 0.0, y: 0.0 }));
        }
    }
}

pub(super) fn gone() -> PhoneError {
    PhoneError::Gone("the phone was unplugged; plug it in again and look what was done".to_owned())
}

fn unpoisoned<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The touch events of strokes, in order of time.
fn events(strokes: &[Stroke]) -> Result<Vec<(Duration, Pointer)>, PhoneError> {
    let mut events = Vec::new();
    for (finger, stroke) in strokes.iter().enumerate() {
        let whole = stroke.points.iter().all(|point| point.x.is_finite() && point.y.is_finite());
        let ordered = stroke.points.windows(2).all(|pair| pair[0].at <= pair[1].at);
        if stroke.points.is_empty() || !whole || !ordered || stroke.end() > LONGEST {
            let message = "a stroke needs points with finite coordinates and growing times, within 120 s";
            return Err(PhoneError::Invalid(message.to_owned()));
        }
        let finger = finger as u32;
        let mut at = stroke.start();
        let mut phase = TouchPhase::Down;
        while at < stroke.end() {
            let (x, y) = position(stroke, at);
            events.push((at, Pointer { finger, phase, x, y }));
            phase = TouchPhase::Move;
            at += FRAME;
        }
        if phase == TouchPhase::Down {
            let (x, y) = position(stroke, at);
            events.push((at, Pointer { finger, phase, x, y }));
        }
        let (x, y) = position(stroke, stroke.end());
        events.push((stroke.end(), Pointer { finger, phase: TouchPhase::Up, x, y }));
    }
    // Two fingers that end together both move before the first one leaves.
    events.sort_by_key(|(at, pointer)| (*at, pointer.phase == TouchPhase::Up));
    Ok(events)
}

fn position(stroke: &Stroke, at: Duration) -> (f32, f32) {
    let mut place = stroke.points.first().map_or((0.0, 0.0), |point| (point.x, point.y));
    for pair in stroke.points.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        if at >= from.at {
            let span = (to.at - from.at).as_secs_f32();
            let part = if span > 0.0 { ((at - from.at).as_secs_f32() / span).min(1.0) } else { 1.0 };
            place = (from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part);
        }
    }
    place
}
