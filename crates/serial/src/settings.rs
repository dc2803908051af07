//! `[[serial]]` in the configuration.

use std::path::PathBuf;

use sinew_tool::{DeviceId, DeviceKey, check_labels};

sinew_tool::settings! {
    /// A board on a serial line.
    pub struct SerialConfig {
        /// The port: `/dev/ttyUSB0`. Names change when boards are plugged in again; `usb` does not.
        pub path: Option<PathBuf> = None;
        /// The board's USB serial number, or maker and product as `303a:1001`; `sinew serial` shows both.
        pub usb: Option<String> = None, check check_usb;
        /// Bits per second.
        pub speed: u32 = 115_200, within 300..=4_000_000;
        /// Name of the device: letters a-z, digits and hyphens. By default it is made from the port or the USB serial number.
        pub id: Option<String> = None, check check_id;
        /// Labels of the device, see `docs/labels.md`.
        pub labels: Vec<String> = Vec::new(), check |labels| check_labels(labels);
    }
}

/// A serial line, ready to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerialPlan {
    pub place: SerialPlace,
    pub speed: u32,
    /// The name that the configuration gives.
    pub id: Option<String>,
    pub labels: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SerialPlace {
    Path(PathBuf),
    Usb(String),
}

impl std::fmt::Display for SerialPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SerialPlace::Path(path) => write!(f, "{}", path.display()),
            SerialPlace::Usb(usb) => write!(f, "USB {usb}"),
        }
    }
}

impl SerialPlan {
    /// The board's identity: the name that it was given, else what its plug says, else its port.
    pub(crate) fn key(&self, serial_number: Option<&str>) -> DeviceKey {
        let known_by = match (&self.id, serial_number, &self.place) {
            (Some(id), _, _) => id.clone(),
            (None, Some(number), _) => format!("usb:{number}"),
            (None, None, SerialPlace::Usb(usb)) => format!("usb:{usb}"),
            (None, None, SerialPlace::Path(path)) => path.display().to_string(),
        };
        DeviceKey(format!("serial:{known_by}"))
    }

    pub(crate) fn suggested_id(&self) -> String {
        let found = match (&self.id, &self.place) {
            (Some(id), _) => return id.clone(),
            (None, SerialPlace::Usb(usb)) => DeviceId::slug(&format!("serial-{usb}")),
            (None, SerialPlace::Path(path)) => DeviceId::slug(&path.file_name().unwrap_or_default().to_string_lossy()),
        };
        if found.is_empty() { "serial".to_owned() } else { found }
    }
}

fn check_id(id: &Option<String>) -> Result<(), String> {
    match id {
        Some(id) if DeviceId::parse(id).is_none() => {
            let most = DeviceId::MAX_LENGTH;
            Err(format!("`{id}` is not valid: an id has 1 to {most} letters a-z, digits and hyphens"))
        }
        _ => Ok(()),
    }
}

fn check_usb(usb: &Option<String>) -> Result<(), String> {
    match usb {
        Some(usb) if usb.trim().is_empty() || usb.len() > 64 => {
            Err("must be a USB serial number, or maker and product as `303a:1001`".to_owned())
        }
        _ => Ok(()),
    }
}

/// The plans of all lines, or the number of the wrong one and what is wrong with it.
pub fn plan(lines: &[SerialConfig]) -> Result<Vec<SerialPlan>, (usize, String)> {
    let mut plans: Vec<SerialPlan> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let wrong = |why: &str| Err((index, why.to_owned()));
        let place = match (&line.path, &line.usb) {
            (Some(path), None) => SerialPlace::Path(path.clone()),
            (None, Some(usb)) => SerialPlace::Usb(usb.trim().to_owned()),
            (Some(_), Some(_)) => return wrong("`path` and `usb` are two ways to name a port; keep one"),
            (None, None) => return wrong("a serial line needs a `path` or a `usb`; `sinew serial` lists the ports"),
        };
        if plans.iter().any(|other| other.place == place || (line.id.is_some() && other.id == line.id)) {
            return wrong("the same port or `id` is named twice; keep one of them");
        }
        plans.push(SerialPlan { place, speed: line.speed, id: line.id.clone(), labels: line.labels.clone() });
    }
    Ok(plans)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(path: &str) -> SerialConfig {
        SerialConfig { path: Some(path.into()), ..SerialConfig::default() }
    }

    #[test]
    fn a_board_is_known_by_its_name_then_its_plug_then_its_port() {
        let plan_of = |config: SerialConfig| plan(&[config]).expect("valid").remove(0);
        let named = plan_of(SerialConfig { id: Some("kiln".to_owned()), ..on("/dev/ttyUSB0") });
        assert_eq!((named.key(Some("A1")).0.as_str(), named.suggested_id().as_str()), ("serial:kiln", "kiln"));
        let plain = plan_of(on("/dev/ttyUSB0"));
        assert_eq!(plain.key(Some("A1")).0, "serial:usb:A1");
        assert_eq!((plain.key(None).0.as_str(), plain.suggested_id().as_str()), ("serial:/dev/ttyUSB0", "ttyusb0"));
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        let usb = Some("A1".to_owned());
        let id = Some("a".to_owned());
        for (lines, number, part) in [
            (vec![SerialConfig::default()], 0, "sinew serial"),
            (vec![SerialConfig { usb, ..on("/dev/a") }], 0, "keep one"),
            (vec![on("/dev/a"), on("/dev/a")], 1, "twice"),
            (vec![SerialConfig { id: id.clone(), ..on("/dev/a") }, SerialConfig { id, ..on("/dev/b") }], 1, "twice"),
        ] {
            let (index, why) = plan(&lines).expect_err(part);
            assert!(index == number && why.contains(part), "{why}");
        }
    }
}
