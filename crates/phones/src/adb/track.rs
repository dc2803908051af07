//! Tracks the adb server's list of phones and announces which connect and disconnect.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sinew_tool::{Announce, Device, DeviceEvent, LeaveReason};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::known_phones::{DeviceRecords, KnownPhones, Recognition, device_key};
use super::network_phones::NetworkPhones;
use super::phone::AdbPhone;
use super::server::{AdbError, AdbServer, read_block};
use crate::access::{AdbAccess, Extension};
use crate::agent::{AgentSource, Standby};
use crate::device::{LimitedPhone, PhoneDevice};
use crate::phone::{Phone, PhoneIdentity};
use crate::tiers::Tiered;
use crate::tools::Profile;

/// 3 s: a phone that is being connected is offline or unauthorized for a moment, and has not said its model yet. What
/// is announced then would name it for good.
const SETTLING: Duration = Duration::from_secs(3);

/// A line of the server's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdbEntry {
    pub serial: String,
    /// `device` where it can be used.
    pub state: String,
    pub model: String,
    /// Changes when a phone is plugged in again.
    pub transport_id: String,
}

/// Reads `host:track-devices-l`: a serial, a state that may hold spaces, and `key:value` pairs.
pub fn parse(text: &str) -> Vec<AdbEntry> {
    text.lines().filter_map(entry).collect()
}

fn entry(line: &str) -> Option<AdbEntry> {
    let (serial, rest) = line.trim().split_once(char::is_whitespace)?;
    const KEYS: [&str; 5] = ["usb:", "product:", "model:", "device:", "transport_id:"];
    let is_key = |word: &&str| KEYS.iter().any(|key| word.starts_with(key));
    let words: Vec<&str> = rest.split_whitespace().collect();
    let state: Vec<&str> = words.iter().copied().take_while(|word| !is_key(word)).collect();
    let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)).unwrap_or_default().to_owned();
    let entry = AdbEntry {
        serial: serial.to_owned(),
        state: state.join(" "),
        model: value("model:"),
        transport_id: value("transport_id:"),
    };
    (!entry.state.is_empty()).then_some(entry)
}

/// The phones that the server sees at this moment.
pub async fn list(server: &AdbServer) -> Result<Vec<AdbEntry>, AdbError> {
    Ok(parse(&server.query("host:devices-l").await?))
}

/// What a person can do about a phone that cannot be used; `None` for a state that passes by itself.
pub fn remedy(state: &str) -> Option<(&'static str, &'static str)> {
    Some(match state {
        "unauthorized" => ("unauthorized", "unlock the phone and allow USB debugging for this computer"),
        "offline" => ("offline", "unplug the phone and plug it in again; over the network, connect it anew"),
        "bootloader" | "recovery" | "sideload" | "rescue" => ("not booted", "let the phone start Android"),
        state if state.starts_with("no permissions") => (
            "no permissions",
            "give this user access to the USB device (udev rules, group plugdev), then run `adb kill-server`",
        ),
        _ => return None,
    })
}

/// How phones are offered to the gateway.
#[derive(Clone, Debug)]
pub struct PhoneOptions {
    pub profile: Profile,
    pub agent: AgentSource,
    /// The folder that apps are installed from.
    pub apks: Option<PathBuf>,
    /// Runs beside each phone.
    pub extension: Option<Arc<dyn Extension>>,
    /// The network phones that are connected again where the adb server has lost them.
    pub remembered: Option<NetworkPhones>,
    /// Where the serial numbers of phones are kept; without it they last as long as the tracker.
    pub state: Option<PathBuf>,
    /// Which phones the gateway knows and which of them are pinned.
    pub records: Option<Arc<dyn DeviceRecords>>,
}

impl PhoneOptions {
    /// With the commands that every Android has, and nothing else.
    pub fn shell(profile: Profile) -> PhoneOptions {
        PhoneOptions {
            profile,
            agent: AgentSource::Off,
            apks: None,
            extension: None,
            remembered: None,
            state: None,
            records: None,
        }
    }
}

/// Tracks phones until shutdown. Without a server it waits for one, and starts one where it can.
pub async fn run(server: AdbServer, offer: PhoneOptions, announce: Announce, shutdown: CancellationToken) {
    let mut tracker = Tracker {
        known: offer.state.as_deref().map(KnownPhones::in_state).unwrap_or_default(),
        server,
        offer,
        announce,
        phones: HashMap::new(),
        models: HashMap::new(),
        met: HashSet::new(),
        opening: JoinSet::new(),
        missing: HashMap::new(),
        extensions: JoinSet::new(),
    };
    // One second at first, half a minute when adb stays away.
    let mut pause = Duration::from_secs(1);
    loop {
        let outcome = tokio::select! {
            () = shutdown.cancelled() => break,
            outcome = tracker.follow() => outcome,
        };
        match outcome {
            Ok(()) => pause = Duration::from_secs(1),
            Err(error) => tracing::debug!(%error, "phones cannot be tracked at the moment"),
        }
        tracker.leave_all("the adb server ended");
        // A restarted server knows none of them, so all are connected at once.
        tracker.missing.clear();
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(Duration::from_secs(30)),
        }
    }
    tracker.opening.shutdown().await;
    tracker.leave_all("Sinew ends");
    while tracker.extensions.join_next().await.is_some() {}
}

struct Tracker {
    server: AdbServer,
    offer: PhoneOptions,
    announce: Announce,
    phones: HashMap<String, TrackedPhone>,
    known: KnownPhones,
    /// Models by serial: a phone that cannot be used later keeps its name.
    models: HashMap<String, String>,
    /// The phones that were ready, by their serials at adb.
    met: HashSet<String>,
    /// Phones whose identity is being read, that are waited for or connected again.
    opening: JoinSet<TrackEvent>,
    /// Remembered phones that the server does not list, by address.
    missing: HashMap<String, Reconnect>,
    /// The extensions of phones; each ends with its phone.
    extensions: JoinSet<()>,
}

enum TrackEvent {
    Opened(AdbEntry, Box<Result<AdbPhone, AdbError>>),
    /// The phone may still be in the same state.
    Settled(AdbEntry),
    /// The result is in the server's next list.
    Reconnected,
    /// A remembered phone was tried.
    Asked(String),
}

/// A phone that is being connected again: when next, after which pause.
struct Reconnect {
    next: Instant,
    pause: Duration,
    is_asked: bool,
}

/// Between two attempts to connect a remembered phone: short at first, for an adb server that was restarted, and a
/// minute for a phone that is switched off.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

struct TrackedPhone {
    entry: AdbEntry,
    /// `None` while its identity is being read or its state may still change.
    device: Option<Arc<dyn Device>>,
    /// What the gateway knows it by; empty until its identity was read.
    known_as: String,
    /// Whether it waits for a person to confirm its address.
    is_unconfirmed: bool,
    /// Whether it is shown by its address alone and the gateway did not know it before. It is not kept when it leaves: once
    /// it says who it is, it is another device.
    is_stranger: bool,
    /// Ends its extension.
    _extension: Option<DropGuard>,
}

impl TrackedPhone {
    fn new(entry: AdbEntry, device: Option<Arc<dyn Device>>) -> TrackedPhone {
        let known_as = String::new();
        TrackedPhone { entry, device, known_as, is_unconfirmed: false, is_stranger: false, _extension: None }
    }
}

impl Tracker {
    /// Until the server's stream ends.
    async fn follow(&mut self) -> Result<(), AdbError> {
        self.server.ensure().await?;
        let mut stream = self.server.open("host:track-devices-l").await?;
        // Reading a block cannot be resumed after a cancellation, so a separate task reads them.
        let (send, mut blocks) = tokio::sync::mpsc::channel(16);
        let mut reader = JoinSet::new();
        reader.spawn(async move {
            while let Ok(block) = read_block(&mut stream).await
                && send.send(block).await.is_ok()
            {}
        });
        // Some servers (29.0.6 is one) do not report that a network phone went offline, so the list is also polled.
        let mut ask = tokio::time::interval(Duration::from_secs(5));
        ask.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                block = blocks.recv() => match block {
                    Some(block) => self.see(parse(&block)),
                    None => return Ok(()),
                },
                _ = ask.tick() => {
                    let answer = list(&self.server).await;
                    // A waiting block is older than the answer and would undo it.
                    if let Ok(entries) = answer && blocks.is_empty() {
                        self.connect_missing(&entries);
                        self.reopen_confirmed();
                        self.see(entries);
                    }
                }
                Some(news) = self.opening.join_next() => match news {
                    Ok(TrackEvent::Opened(entry, phone)) => self.opened(entry, *phone),
                    Ok(TrackEvent::Settled(entry)) => self.settled(entry),
                    Ok(TrackEvent::Asked(address)) => self.asked(&address),
                    Ok(TrackEvent::Reconnected) | Err(_) => {}
                },
                Some(_) = self.extensions.join_next() => {}
            }
        }
    }

    /// Compares the list with what is known.
    fn see(&mut self, entries: Vec<AdbEntry>) {
        let gone: Vec<String> = self
            .phones
            .iter()
            .filter(|(serial, known)| !entries.iter().any(|entry| entry.serial == **serial && *entry == known.entry))
            .map(|(serial, _)| serial.clone())
            .collect();
        for serial in gone {
            let reason = match entries.iter().find(|entry| entry.serial == serial) {
                Some(entry) if entry.state == "device" => LeaveReason::Replaced,
                Some(entry) => LeaveReason::Broken(format!("the phone is {} now", entry.state)),
                None => LeaveReason::Broken("the phone was unplugged or disconnected".to_owned()),
            };
            self.leave(&serial, reason);
        }
        for entry in entries {
            if self.phones.contains_key(&entry.serial) {
                continue;
            }
            let mut tracked = TrackedPhone::new(entry.clone(), None);
            if entry.state == "device" {
                self.open(entry.clone());
            } else {
                let Some((state, remedy)) = remedy(&entry.state) else { continue };
                if state == "offline" && entry.serial.contains(':') && !self.is_connected_by_person(&entry.serial) {
                    self.reconnect(entry.serial.clone());
                }
                if self.about(&entry).model.is_empty() {
                    let entry = entry.clone();
                    self.opening.spawn(async move {
                        tokio::time::sleep(SETTLING).await;
                        TrackEvent::Settled(entry)
                    });
                } else {
                    self.limit(&mut tracked, state, remedy);
                }
            }
            self.phones.insert(entry.serial.clone(), tracked);
        }
    }

    /// Asks the server for the remembered phones that it does not list.
    fn connect_missing(&mut self, listed: &[AdbEntry]) {
        let Some(remembered) = &self.offer.remembered else { return };
        let addresses = remembered.addresses();
        let state = |address: &String| listed.iter().find(|entry| entry.serial == *address).map(|entry| &*entry.state);
        // The server keeps a network phone as offline forever once its connection broke.
        let is_listed = |address: &String| state(address).is_some_and(|state| state != "offline");
        self.missing.retain(|address, _| addresses.contains(address) && !is_listed(address));
        let now = Instant::now();
        for address in addresses.into_iter().filter(|address| !is_listed(address)) {
            let missing = self.missing.entry(address.clone());
            let missing = missing.or_insert(Reconnect { next: now, pause: FIRST_PAUSE, is_asked: false });
            if missing.is_asked || missing.next > now {
                continue;
            }
            missing.is_asked = true;
            let (server, remembered) = (self.server.clone(), remembered.clone());
            let is_offline = state(&address).is_some();
            self.opening.spawn(async move {
                if is_offline {
                    let _ = server.disconnect_phone(&address).await;
                }
                match server.connect_phone(&address).await {
                    Err(error) => tracing::debug!(phone = %address, %error, "a network phone is not reachable"),
                    // Connecting takes a while, and somebody disconnected it in between.
                    Ok(_) if !remembered.addresses().contains(&address) => {
                        let _ = server.disconnect_phone(&address).await;
                    }
                    Ok(_) => {}
                }
                TrackEvent::Asked(address)
            });
        }
    }

    fn asked(&mut self, address: &str) {
        if let Some(missing) = self.missing.get_mut(address) {
            missing.is_asked = false;
            missing.next = Instant::now() + missing.pause;
            missing.pause = (missing.pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn open(&mut self, entry: AdbEntry) {
        let server = self.server.clone();
        self.opening.spawn(async move {
            let phone = AdbPhone::open(&server, &entry.serial).await;
            TrackEvent::Opened(entry, Box::new(phone))
        });
    }

    /// Whether this is still the phone that is waited for: it may have left or reconnected.
    fn waits(&self, entry: &AdbEntry) -> bool {
        self.phones.get(&entry.serial).is_some_and(|known| known.entry == *entry && known.device.is_none())
    }

    fn settled(&mut self, entry: AdbEntry) {
        if self.waits(&entry)
            && let Some((state, remedy)) = remedy(&entry.state)
        {
            let mut tracked = TrackedPhone::new(entry, None);
            self.limit(&mut tracked, state, remedy);
            self.phones.insert(tracked.entry.serial.clone(), tracked);
        }
    }

    fn opened(&mut self, entry: AdbEntry, phone: Result<AdbPhone, AdbError>) {
        if !self.waits(&entry) {
            return;
        }
        let mut tracked = TrackedPhone::new(entry, None);
        match phone {
            Ok(phone) => self.admit(phone, &mut tracked),
            Err(error) => {
                let remedy = format!("its identity could not be read ({error}); unplug it and plug it in again");
                self.limit(&mut tracked, "silent", &remedy);
            }
        }
        self.phones.insert(tracked.entry.serial.clone(), tracked);
    }

    /// Offers a phone under what the gateway knows it by.
    fn admit(&mut self, mut phone: AdbPhone, tracked: &mut TrackedPhone) {
        let PhoneIdentity { serial, serial_number, model, .. } = phone.about();
        self.models.insert(serial.clone(), model);
        let (confirmed, records) = (self.is_connected_by_person(&serial), self.offer.records.as_deref());
        let known_as = match self.known.recognise(&serial_number, &serial, confirmed, records) {
            Recognition::As(known_as) => known_as,
            Recognition::Unconfirmed(known_as) => {
                tracing::warn!(address = %serial, phone = %known_as, "a new address claims the serial number of a pinned phone");
                let remedy = format!(
                    "it claims the serial number of the pinned phone {known_as} at an address where nobody connected it; if it is that phone, run `sinew phones connect {serial}`"
                );
                tracked.is_unconfirmed = true;
                self.limit(tracked, "unconfirmed", &remedy);
                return;
            }
        };
        let twin = self.phones.values().find(|other| other.entry.serial != serial && other.known_as == known_as);
        let known_as = match twin {
            None => {
                self.known.remember(&serial_number, &known_as, &serial);
                known_as
            }
            Some(twin) => {
                tracing::warn!(
                    phone = %known_as, addresses = %format!("{} {serial}", twin.entry.serial),
                    "two phones with one serial number are connected; they are offered as two devices"
                );
                format!("{known_as}@{serial}")
            }
        };
        phone.set_known_as(known_as.clone());
        tracked.known_as = known_as;
        self.met.insert(serial);
        let (device, extension) = self.ready(phone);
        (tracked.device, tracked._extension) = (Some(device), extension);
    }

    fn is_connected_by_person(&self, address: &str) -> bool {
        self.offer.remembered.as_ref().is_some_and(|kept| kept.addresses().iter().any(|own| own == address))
    }

    /// Phones whose address a person has confirmed since.
    fn reopen_confirmed(&mut self) {
        let waiting = self.phones.iter().filter(|(_, phone)| phone.is_unconfirmed).map(|(serial, _)| serial.clone());
        let confirmed: Vec<String> = waiting.filter(|serial| self.is_connected_by_person(serial)).collect();
        for serial in confirmed {
            self.leave(&serial, LeaveReason::Replaced);
        }
    }

    /// A phone with its agent on standby; the gateway is notified when the agent starts or ends. Its extension starts with it.
    fn ready(&mut self, phone: AdbPhone) -> (Arc<dyn Device>, Option<DropGuard>) {
        let agent = Standby::new(phone.transport().clone(), self.offer.agent.clone());
        let access = AdbAccess::new(phone.about(), phone.transport().clone(), agent.clone());
        let device = PhoneDevice::new(Tiered { upper: agent.clone(), lower: phone }, self.offer.profile);
        let device = Arc::new(device.with_apks(self.offer.apks.clone()));
        let (weak, announce) = (Arc::downgrade(&device), Arc::clone(&self.announce));
        agent.on_change(move || {
            if let Some(device) = weak.upgrade() {
                announce(DeviceEvent::Changed(device));
            }
        });
        let device = self.join(device);
        let extension = self.offer.extension.as_ref().map(|extension| {
            let stay = CancellationToken::new();
            self.extensions.spawn(extension.run(Arc::new(access), Arc::clone(&self.announce), stay.clone()));
            stay.drop_guard()
        });
        (device, extension)
    }

    /// The server keeps a network phone as offline forever once its connection broke.
    fn reconnect(&mut self, serial: String) {
        let server = self.server.clone();
        self.opening.spawn(async move {
            let mut pause = Duration::from_secs(2);
            for attempt in 0..6 {
                tokio::time::sleep(pause).await;
                pause *= 2;
                match server.query(&format!("host-serial:{serial}:get-state")).await {
                    Ok(state) if state != "offline" => break,
                    Ok(_) => drop(server.disconnect_phone(&serial).await),
                    // Somebody disconnected it. Later the list lacks it because of us.
                    Err(AdbError::Refused(why)) if attempt == 0 && why.contains("not found") => break,
                    Err(_) => {}
                }
                if server.connect_phone(&serial).await.is_ok() {
                    break;
                }
            }
            TrackEvent::Reconnected
        });
    }

    /// What the list and earlier connections say about a phone that cannot be asked.
    fn about(&self, entry: &AdbEntry) -> PhoneIdentity {
        let earlier = || self.models.get(&entry.serial).cloned().unwrap_or_default();
        let model = if entry.model.is_empty() { earlier() } else { entry.model.clone() };
        let known_as = self.known.at(&entry.serial).unwrap_or_default().to_owned();
        PhoneIdentity { serial: entry.serial.clone(), known_as, model, ..PhoneIdentity::default() }
    }

    /// Shows a phone that cannot be used, with what to do.
    fn limit(&self, tracked: &mut TrackedPhone, state: &str, remedy: &str) {
        let about = self.about(&tracked.entry);
        let records = self.offer.records.as_deref();
        let is_recorded = || records.is_some_and(|records| records.is_known(&device_key(&about.serial)));
        let is_known = self.met.contains(&about.serial) || is_recorded();
        tracked.is_stranger = about.known_as.is_empty() && !is_known;
        tracked.device = Some(self.join(Arc::new(LimitedPhone::new(&about, self.offer.profile, state, remedy))));
    }

    fn join(&self, device: Arc<dyn Device>) -> Arc<dyn Device> {
        (self.announce)(DeviceEvent::Joined(device.clone()));
        device
    }

    fn leave(&mut self, serial: &str, reason: LeaveReason) {
        if let Some(TrackedPhone { device: Some(device), is_stranger, .. }) = self.phones.remove(serial) {
            let reason = if is_stranger { LeaveReason::NeverConnected } else { reason };
            (self.announce)(DeviceEvent::Left(device, reason));
        }
    }

    fn leave_all(&mut self, why: &str) {
        let serials: Vec<String> = self.phones.keys().cloned().collect();
        for serial in serials {
            self.leave(&serial, LeaveReason::Broken(why.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_in_all_their_forms() {
        let text = "127.0.0.1:16001        device product:virtual model:Virtual_1 device:virt transport_id:3\n\
                    R58M123  unauthorized usb:1-4 transport_id:4\n\
                    0123  no permissions (missing udev rules? user is in the plugdev group); see [http://x/y:z] usb:1-2 transport_id:5\n\
                    plain\tdevice\n\nbroken\n";
        let entries = parse(text);
        assert_eq!(entries.len(), 4);
        assert_eq!(
            (entries[0].state.as_str(), entries[0].model.as_str(), entries[0].transport_id.as_str()),
            ("device", "Virtual_1", "3")
        );
        assert_eq!(remedy(&entries[1].state).map(|(state, _)| state), Some("unauthorized"));
        assert_eq!(remedy(&entries[2].state).map(|(state, _)| state), Some("no permissions"));
        assert_eq!(entries[3].state, "device");
    }

    #[test]
    fn states_that_pass_are_not_shown() {
        for state in ["authorizing", "connecting", "device", "host"] {
            assert_eq!(remedy(state), None, "{state}");
        }
    }
}
