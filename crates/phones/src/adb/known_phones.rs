//! Phones are known by their own serial number and not by the address at which adb reaches them, so that a name, a pin
//! and the names of apps survive another port, another network or a cable.
//!
//! Kept in a file of the state directory: under which key the gateway knows a serial number, and at which addresses the
//! phone was seen. A phone that the gateway knew by its address before keeps that key.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sinew_tool::DeviceKey;

/// Numbers that manufacturers and emulators give to many phones.
const SHARED_NUMBERS: [&str; 3] = ["unknown", "0123456789ABCDEF", "1234567890ABCDEF"];

/// More phones than one gateway serves; the file of a stranger is not read further.
const MAX_PHONES: usize = 1024;
/// The addresses that are kept for one phone; the oldest is forgotten.
const MAX_ADDRESSES: usize = 16;
const MAX_BYTES: u64 = 1 << 20;

/// What the gateway remembers of devices, as far as phones need it.
pub trait DeviceRecords: fmt::Debug + Send + Sync {
    fn is_known(&self, key: &DeviceKey) -> bool;

    fn is_pinned(&self, key: &DeviceKey) -> bool;
}

/// The phones seen so far.
#[derive(Debug, Default)]
pub struct KnownPhones {
    file: Option<PathBuf>,
    by_number: BTreeMap<String, KnownPhone>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct KnownPhone {
    /// Its device key without the family.
    known_as: String,
    addresses: Vec<String>,
}

/// Who a phone is that adb reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recognition {
    /// Its device key without the family.
    As(String),
    /// It claims the serial number of this pinned phone at an address where no person connected it.
    Unconfirmed(String),
}

/// The device key of a phone.
pub fn device_key(known_as: &str) -> DeviceKey {
    DeviceKey(format!("phone:{known_as}"))
}

impl KnownPhones {
    /// Those of a state directory. A file that is missing or damaged counts as empty.
    pub fn in_state(state: &Path) -> KnownPhones {
        let file = state.join("known-phones.json");
        let is_ours = std::fs::metadata(&file).is_ok_and(|about| about.len() <= MAX_BYTES);
        let text = if is_ours { std::fs::read_to_string(&file).unwrap_or_default() } else { String::new() };
        let stored: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
        let phone = |(number, value): (String, Value)| {
            let known_as = value["known_as"].as_str().filter(|text| !text.is_empty())?.to_owned();
            let addresses = value["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
            let addresses = addresses.iter().filter_map(Value::as_str).take(MAX_ADDRESSES).map(str::to_owned).collect();
            Some((number, KnownPhone { known_as, addresses }))
        };
        KnownPhones { file: Some(file), by_number: stored.into_iter().filter_map(phone).take(MAX_PHONES).collect() }
    }

    /// The key of the phone that was last seen at an address.
    pub fn at(&self, address: &str) -> Option<&str> {
        let mut phones = self.by_number.values();
        phones.find(|phone| phone.addresses.iter().any(|own| own == address)).map(|phone| phone.known_as.as_str())
    }

    /// Who a phone is that reports a serial number at an address. `is_confirmed`: a person connected this address.
    pub fn recognise(
        &self,
        number: &str,
        address: &str,
        is_confirmed: bool,
        records: Option<&dyn DeviceRecords>,
    ) -> Recognition {
        if !is_own_number(number, address) {
            return Recognition::As(address.to_owned());
        }
        let is_known = |known_as: &str| records.is_some_and(|records| records.is_known(&device_key(known_as)));
        let known = self.by_number.get(number);
        let known_as = match known {
            Some(known) => &known.known_as,
            // Before numbers counted, the gateway knew it by its address.
            None if is_known(address) && !is_known(number) && !self.is_taken(address) => address,
            None => number,
        };
        let is_pinned = records.is_some_and(|records| records.is_pinned(&device_key(known_as)));
        let was_there = known.is_some_and(|known| known.addresses.iter().any(|own| own == address));
        match is_pinned && is_unproven(address) && known_as != address && !was_there && !is_confirmed {
            true => Recognition::Unconfirmed(known_as.to_owned()),
            false => Recognition::As(known_as.to_owned()),
        }
    }

    /// Keeps where a phone was seen.
    pub fn remember(&mut self, number: &str, known_as: &str, address: &str) {
        if !is_own_number(number, address) {
            return;
        }
        let before = self.by_number.get(number).cloned();
        if before.is_none() && self.by_number.len() >= MAX_PHONES {
            return;
        }
        let mut phone =
            before.clone().unwrap_or_else(|| KnownPhone { known_as: known_as.to_owned(), ..KnownPhone::default() });
        if !phone.addresses.iter().any(|own| own == address) {
            phone.addresses.push(address.to_owned());
            let surplus = phone.addresses.len().saturating_sub(MAX_ADDRESSES);
            phone.addresses.drain(..surplus);
        }
        if before.as_ref() == Some(&phone) {
            return;
        }
        // An address is that of the phone that was seen there last.
        for other in self.by_number.values_mut() {
            other.addresses.retain(|own| own != address);
        }
        self.by_number.insert(number.to_owned(), phone);
        if let Err(error) = self.write() {
            tracing::warn!(%error, "cannot keep the addresses of phones");
        }
    }

    fn is_taken(&self, known_as: &str) -> bool {
        self.by_number.values().any(|phone| phone.known_as == known_as)
    }

    /// Atomically, so that nobody reads half of it.
    fn write(&self) -> std::io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let phone = |phone: &KnownPhone| json!({"known_as": phone.known_as, "addresses": phone.addresses});
        let stored: Map<String, Value> =
            self.by_number.iter().map(|(number, known)| (number.clone(), phone(known))).collect();
        let beside = file.with_extension(format!("{}.new", std::process::id()));
        std::fs::write(&beside, Value::Object(stored).to_string())?;
        std::fs::rename(&beside, file)
    }
}

/// Whether no other phone has the number. Emulators of one version report the same.
fn is_own_number(number: &str, address: &str) -> bool {
    !number.is_empty() && !SHARED_NUMBERS.contains(&number) && !address.starts_with("emulator-")
}

/// Whether anybody on the network could answer at an address. A cable is a person's work, and adb itself connects only to
/// services of phones that were paired.
fn is_unproven(address: &str) -> bool {
    address.contains(':') && !address.contains("._adb-tls")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Records(&'static [&'static str], &'static [&'static str]);

    impl DeviceRecords for Records {
        fn is_known(&self, key: &DeviceKey) -> bool {
            self.0.contains(&key.0.as_str()) || self.is_pinned(key)
        }

        fn is_pinned(&self, key: &DeviceKey) -> bool {
            self.1.contains(&key.0.as_str())
        }
    }

    fn known_as(text: &str) -> Recognition {
        Recognition::As(text.to_owned())
    }

    #[test]
    fn a_phone_is_known_by_its_number_at_every_address() {
        let mut phones = KnownPhones::default();
        assert_eq!(phones.recognise("R58", "10.0.0.2:5555", false, None), known_as("R58"));
        phones.remember("R58", "R58", "10.0.0.2:5555");
        assert_eq!(phones.recognise("R58", "R58", false, None), known_as("R58"));
        assert_eq!(phones.at("10.0.0.2:5555"), Some("R58"));
        phones.remember("X1", "X1", "10.0.0.2:5555");
        assert_eq!(phones.at("10.0.0.2:5555"), Some("X1"), "the last one that was seen there");
    }

    #[test]
    fn a_phone_that_was_known_by_its_address_keeps_its_key() {
        let records = Records(&["phone:10.0.0.2:5555"], &[]);
        let mut phones = KnownPhones::default();
        assert_eq!(phones.recognise("R58", "10.0.0.2:5555", false, Some(&records)), known_as("10.0.0.2:5555"));
        phones.remember("R58", "10.0.0.2:5555", "10.0.0.2:5555");
        assert_eq!(phones.recognise("R58", "10.0.0.9:41000", false, Some(&records)), known_as("10.0.0.2:5555"));
        // Another phone at the old address does not get the key of the first.
        assert_eq!(phones.recognise("X1", "10.0.0.2:5555", false, Some(&records)), known_as("X1"));
    }

    #[test]
    fn a_new_network_address_of_a_pinned_phone_waits_for_a_person() {
        let records = Records(&[], &["phone:R58"]);
        let mut phones = KnownPhones::default();
        let seen = |phones: &KnownPhones, address: &str, is_confirmed| {
            phones.recognise("R58", address, is_confirmed, Some(&records))
        };
        assert_eq!(seen(&phones, "10.0.0.2:5555", false), Recognition::Unconfirmed("R58".to_owned()));
        assert_eq!(seen(&phones, "[fe80::1]:5555", false), Recognition::Unconfirmed("R58".to_owned()));
        for proven in ["R58", "adb-R58-aBcDeF._adb-tls-connect._tcp"] {
            assert_eq!(seen(&phones, proven, false), known_as("R58"), "{proven}");
        }
        assert_eq!(seen(&phones, "10.0.0.2:5555", true), known_as("R58"));
        phones.remember("R58", "R58", "10.0.0.2:5555");
        assert_eq!(seen(&phones, "10.0.0.2:5555", false), known_as("R58"), "confirmed once");
        assert_eq!(seen(&phones, "10.0.0.2:5556", false), Recognition::Unconfirmed("R58".to_owned()));
    }

    #[test]
    fn a_number_that_many_phones_have_says_nothing() {
        let phones = KnownPhones::default();
        for (number, address) in [("", "a:1"), ("unknown", "a:1"), ("EMULATOR36X1", "emulator-5554")] {
            assert_eq!(phones.recognise(number, address, false, None), known_as(address));
        }
    }

    #[test]
    fn what_was_seen_is_kept_in_the_file_and_a_damaged_file_is_empty() {
        let state = tempfile::tempdir().unwrap();
        let mut phones = KnownPhones::in_state(state.path());
        for nth in 0..40 {
            phones.remember("R58", "R58", &format!("10.0.0.2:{nth}"));
        }
        let again = KnownPhones::in_state(state.path());
        assert_eq!((again.at("10.0.0.2:39"), again.at("10.0.0.2:1")), (Some("R58"), None));
        for damaged in ["", "[]", "{\"R58\": 5}", "{\"R58\": {\"known_as\": \"\"}}", "\0"] {
            std::fs::write(state.path().join("known-phones.json"), damaged).unwrap();
            assert!(KnownPhones::in_state(state.path()).by_number.is_empty(), "{damaged}");
        }
    }
}
