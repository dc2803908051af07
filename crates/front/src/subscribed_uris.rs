//! The resources that a client is subscribed to, found by their device: an event of a device costs the same however many
//! there are.

use std::collections::{BTreeMap, BTreeSet};

use sinew_gateway::DeviceView;

use crate::resources;

#[derive(Default)]
pub(crate) struct SubscribedUris {
    all: BTreeSet<String>,
    /// By what may be the id or the name of a device, in lower case.
    by_device: BTreeMap<String, BTreeSet<String>>,
}

impl SubscribedUris {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn insert(&mut self, uri: String) {
        for device in resources::devices_in(&uri) {
            self.by_device.entry(device).or_default().insert(uri.clone());
        }
        self.all.insert(uri);
    }

    pub(crate) fn remove(&mut self, uri: &str) {
        for device in resources::devices_in(uri) {
            if let Some(uris) = self.by_device.get_mut(&device) {
                uris.remove(uri);
                if uris.is_empty() {
                    self.by_device.remove(&device);
                }
            }
        }
        self.all.remove(uri);
    }

    /// The URIs that may be of this device; whether they are, [`resources::find`] says.
    pub(crate) fn of(&self, device: &DeviceView) -> BTreeSet<&String> {
        let words = [Some(device.id.as_str().to_owned()), device.name.as_ref().map(|name| name.to_lowercase())];
        words.iter().flatten().filter_map(|word| self.by_device.get(word)).flatten().collect()
    }
}

impl FromIterator<String> for SubscribedUris {
    fn from_iter<T: IntoIterator<Item = String>>(uris: T) -> SubscribedUris {
        let mut subscribed = SubscribedUris::default();
        uris.into_iter().for_each(|uri| subscribed.insert(uri));
        subscribed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_uri_leaves_nothing_behind() {
        let uris = ["device://Lamp", "device://lamp/events", "device://a/b/events", "test://other", "device://"];
        let mut subscribed: SubscribedUris = uris.iter().map(|uri| (*uri).to_owned()).collect();
        assert_eq!((subscribed.len(), subscribed.by_device["lamp"].len()), (5, 2));
        assert!(subscribed.by_device.contains_key("a/b"), "a name may have a slash");
        for uri in uris {
            subscribed.remove(uri);
        }
        assert!(subscribed.is_empty() && subscribed.by_device.is_empty());
    }
}
