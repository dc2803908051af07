//! Devices and labels that `[relay]` names: boards follow when they change, and a name that no device has is reported.

use std::io;
use std::time::Duration;

use sinew_boards::Boards;
use sinew_gateway::{DeviceView, Gateway, Update, Watch};
use sinew_tool::DeviceId;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::relay::{RelayConfig, is_selected};

/// New devices connect soon after a start. Before that, an unknown name means nothing.
const SETTLE_TIME: Duration = Duration::from_secs(60);

/// A device or label that the configuration names.
pub(crate) struct ListedName {
    /// `boards` or `share`.
    key: &'static str,
    name: String,
    /// A device that has this name or label.
    holder: Option<DeviceId>,
}

/// Follows the names of devices until `shutdown`. Changes count from now on, before the first board connects.
pub(crate) fn follow(
    listed: Vec<ListedName>,
    gateway: Gateway,
    boards: Boards,
    shutdown: CancellationToken,
) -> impl Future<Output = io::Result<()>> {
    let watch = gateway.watch();
    follow_changes(watch, listed, gateway, boards, shutdown)
}

async fn follow_changes(
    mut watch: Watch,
    mut listed: Vec<ListedName>,
    gateway: Gateway,
    boards: Boards,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let mut settling = std::pin::pin!(sleep(SETTLE_TIME));
    let mut is_settled = false;
    loop {
        tokio::select! {
            update = watch.next() => {
                let Update::Devices { changed, .. } = update else { continue };
                for device in changed.iter().filter_map(|id| gateway.find_device(id.as_str())) {
                    boards.check_relayed(&device.key);
                }
                for name in listed.iter_mut().filter(|_| is_settled) {
                    name.warn_if(|name| name.is_lost(&changed, &gateway));
                }
            }
            () = &mut settling, if !is_settled => {
                is_settled = true;
                for name in &mut listed {
                    name.warn_if(|name| name.is_unknown(&gateway));
                }
            }
            () = shutdown.cancelled() => return Ok(()),
        }
    }
}

impl ListedName {
    pub(crate) fn of(config: &RelayConfig) -> Vec<ListedName> {
        let listed = config.listed_names().into_iter();
        listed.map(|(key, name)| ListedName { key, name: name.to_owned(), holder: None }).collect()
    }

    fn is_held_by(&self, device: &DeviceView) -> bool {
        is_selected(device, &self.name)
    }

    /// Looks for a device that has this name; true if there is none.
    fn is_unknown(&mut self, gateway: &Gateway) -> bool {
        let devices = gateway.devices();
        self.holder = devices.iter().find(|device| self.is_held_by(device)).map(|device| device.id.clone());
        self.holder.is_none()
    }

    /// Whether the last device that had this name lost it. Looks at all devices only if the one that it knew changed.
    fn is_lost(&mut self, changed: &[DeviceId], gateway: &Gateway) -> bool {
        match &self.holder {
            Some(holder) if changed.contains(holder) => self.is_unknown(gateway),
            Some(_) => false,
            None => {
                let mut devices = changed.iter().filter_map(|id| gateway.find_device(id.as_str()));
                self.holder = devices.find(|device| self.is_held_by(device)).map(|device| device.id);
                false
            }
        }
    }

    fn warn_if(&mut self, is_wrong: impl FnOnce(&mut ListedName) -> bool) {
        if is_wrong(self) {
            let ListedName { key, name, .. } = self;
            tracing::warn!("`{key}` of [relay] names `{name}`, which no known device has; `sinew devices` lists them");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sinew_gateway::{Label, Settings};
    use sinew_tool::{Admission, DeviceInfo, DeviceKey, Family, FamilyName, Reach, StandIn, Status, TextTrust};

    use super::*;
    use crate::config::GatewayConfig;

    fn known_device(gateway: &Gateway) -> StandIn {
        let info = DeviceInfo {
            key: DeviceKey("lamp:1".to_owned()),
            suggested_id: "lamp".to_owned(),
            family: Family::new(FamilyName::of("lamp"), TextTrust::Quoted, Reach::OneLink),
            admission: Admission::Local,
            name: "Lamp".to_owned(),
            version: "1".to_owned(),
            status: Status::Ready,
            instructions: None,
            labels: Vec::new(),
            attributes: Default::default(),
        };
        let mut device = StandIn::new(info, Arc::new(gateway.clone()), gateway.announce());
        device.show("switch it on");
        device
    }

    #[tokio::test]
    async fn a_name_is_unknown_until_a_device_has_it_and_reported_again_when_the_last_one_loses_it() {
        let gateway = Gateway::open(Settings::default()).expect("a gateway");
        let config = "[relay]\nboards = ['kitchen', 'label:light', 'lamp']\nshare = ['label:ligth']";
        let mut listed = ListedName::of(&GatewayConfig::parse(config).expect("valid").relay);
        let _device = known_device(&gateway);
        let unknown = |listed: &mut [ListedName]| -> Vec<String> {
            listed.iter_mut().filter_map(|name| name.is_unknown(&gateway).then(|| name.name.clone())).collect()
        };
        assert_eq!(unknown(&mut listed), ["kitchen", "label:light", "label:ligth"], "an id is known");

        let id = gateway.find_device("lamp").expect("known").id;
        let light = Label::parse("light").expect("a label");
        gateway.rename("lamp", "Kitchen").expect("renamed");
        gateway.label("lamp", std::slice::from_ref(&light), &[]).expect("labelled");
        let changed = [id];
        let lost = |listed: &mut [ListedName]| -> Vec<String> {
            listed.iter_mut().filter_map(|name| name.is_lost(&changed, &gateway).then(|| name.name.clone())).collect()
        };
        assert!(lost(&mut listed).is_empty(), "two names have found their device");
        assert_eq!(unknown(&mut listed), ["label:ligth"]);

        gateway.rename("lamp", "hall").expect("renamed");
        gateway.label("lamp", &[], &[light]).expect("labelled");
        assert_eq!(lost(&mut listed), ["kitchen", "label:light"]);
        assert!(lost(&mut listed).is_empty(), "reported once");
    }
}
