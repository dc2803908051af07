//! The serial ports of this machine, as sysfs describes them.

use std::path::{Path, PathBuf};

/// A port with a device behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerialPort {
    pub path: PathBuf,
    /// What its USB device says of itself; `None` for a port that is not on USB.
    pub usb: Option<UsbIdentity>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsbIdentity {
    /// `303a:1001`: maker and product.
    pub product_id: String,
    /// Its own serial number, where it has one.
    pub serial_number: String,
    pub product: String,
}

/// Where Linux describes its devices, and where it has them.
#[derive(Clone, Debug)]
pub struct PortTree {
    pub sysfs: PathBuf,
    pub dev: PathBuf,
}

impl Default for PortTree {
    fn default() -> PortTree {
        PortTree { sysfs: "/sys".into(), dev: "/dev".into() }
    }
}

/// How far above a port its USB device is; hubs are further up.
const MAX_LEVELS: usize = 6;
/// Attributes in sysfs are short lines.
const MAX_ATTRIBUTE_BYTES: usize = 256;

impl UsbIdentity {
    /// Whether this is what the configuration names: a serial number, or `VENDOR:PRODUCT`.
    pub fn is(&self, wanted: &str) -> bool {
        let is_number = !self.serial_number.is_empty() && self.serial_number.eq_ignore_ascii_case(wanted);
        is_number || self.product_id.eq_ignore_ascii_case(wanted)
    }
}

impl PortTree {
    /// The ports that have a device, by name.
    pub fn list(&self) -> Vec<SerialPort> {
        let Ok(entries) = std::fs::read_dir(self.sysfs.join("class/tty")) else { return Vec::new() };
        let mut ports: Vec<SerialPort> = entries.flatten().filter_map(|entry| self.describe(&entry.path())).collect();
        ports.sort_by(|one, other| one.path.cmp(&other.path));
        ports
    }

    /// What is known of one port.
    pub(crate) fn find(&self, port: &Path) -> Option<SerialPort> {
        // Stable names such as those in `/dev/serial/by-id` are links.
        let port = port.canonicalize().unwrap_or_else(|_| port.to_owned());
        self.describe(&self.sysfs.join("class/tty").join(port.file_name()?))
    }

    /// Consoles and pseudo terminals have no device; built-in ports that are not wired have one without a driver.
    fn describe(&self, entry: &Path) -> Option<SerialPort> {
        let device = entry.join("device").canonicalize().ok()?;
        if !device.join("driver").exists() {
            return None;
        }
        Some(SerialPort { path: self.dev.join(entry.file_name()?), usb: usb_of(&device) })
    }
}

fn usb_of(device: &Path) -> Option<UsbIdentity> {
    device.ancestors().take(MAX_LEVELS).find(|level| level.join("idVendor").exists()).map(|level| {
        let attribute = |name: &str| {
            let text = std::fs::read_to_string(level.join(name)).unwrap_or_default();
            let visible = text.trim().chars().filter(|each| !each.is_control());
            visible.take(MAX_ATTRIBUTE_BYTES / 4).collect::<String>()
        };
        UsbIdentity {
            product_id: format!("{}:{}", attribute("idVendor"), attribute("idProduct")),
            serial_number: attribute("serial"),
            product: attribute("product"),
        }
    })
}
