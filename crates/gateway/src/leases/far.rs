//! Leases of devices that are connected to other gateways of the cluster. Those gateways have them; this one remembers
//! which ids its callers got, because calls name a device as `lease:ID`.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use sinew_tool::{BoxFuture, DeviceId, DeviceKey, ToolError};
use tokio::time::Instant;

use super::{LeaseView, Leases, OwnLease, Reservation};
use crate::gateway::Gateway;
use crate::principal::Principal;

/// As many leases as a gateway could have given; beyond, the one that ends first is forgotten.
const MAX_IDS: usize = 10_000;

/// Reserves devices at the gateways that they are connected to.
pub trait FarLeases: Send + Sync {
    /// Whether the device is connected to another gateway.
    fn is_far(&self, device: &DeviceKey) -> bool;

    fn reserve<'a>(
        &'a self,
        who: &'a Principal,
        device: DeviceKey,
        wanted: Reservation,
    ) -> BoxFuture<'a, Result<OwnLease, ToolError>>;

    /// Gives a device back, under a certain lease or any of the caller's.
    fn release<'a>(
        &'a self,
        who: &'a Principal,
        device: DeviceKey,
        lease: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, ToolError>>;

    fn break_lease<'a>(&'a self, by: &'a Principal, device: DeviceKey) -> BoxFuture<'a, Result<LeaseView, ToolError>>;
}

/// The ids of such leases.
#[derive(Default)]
pub(super) struct FarLeaseIds {
    ids: HashMap<String, FarLease>,
}

struct FarLease {
    /// The id of the caller.
    who: String,
    device: DeviceId,
    ends: Instant,
}

impl FarLeaseIds {
    /// The device of a caller's lease.
    pub(super) fn device(&self, who: &str, lease: &str) -> Option<DeviceId> {
        let found = self.ids.get(lease).filter(|far| far.who == who && Instant::now() < far.ends)?;
        Some(found.device.clone())
    }

    fn add(&mut self, who: &Principal, lease: &OwnLease) {
        let now = Instant::now();
        self.ids.retain(|_, far| now < far.ends);
        if self.ids.len() >= MAX_IDS
            && let Some(first) = self.ids.iter().min_by_key(|(_, far)| far.ends).map(|(id, _)| id.clone())
        {
            self.ids.remove(&first);
        }
        let ends = now + Duration::from_secs(lease.seconds);
        let far = FarLease { who: who.id.clone(), device: lease.view.device.clone(), ends };
        self.ids.insert(lease.id.clone(), far);
    }
}

impl Leases {
    pub(super) fn far(&self) -> MutexGuard<'_, FarLeaseIds> {
        self.far.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// The key of a device that is connected to another gateway.
    pub(super) fn far_key(&self, id: &DeviceId) -> Option<DeviceKey> {
        let far = self.far_leases()?;
        let key = self.snapshot().entry(id.as_str())?.info.key.clone();
        far.is_far(&key).then_some(key)
    }

    /// Reserves one of several devices, of which some are far. Only a device that is named alone is waited for.
    pub(super) async fn reserve_far(
        &self,
        who: &Principal,
        here: &[DeviceId],
        far: &[DeviceId],
        wanted: Reservation,
    ) -> Result<OwnLease, ToolError> {
        let is_alone = here.len() + far.len() == 1;
        let wait = if is_alone { wanted.wait } else { Duration::ZERO };
        let wanted = Reservation { wait, ..wanted };
        let mut refusal = None;
        if !here.is_empty() {
            match self.reserve_here(who, here.to_vec(), wanted.clone()).await {
                Ok(lease) => return Ok(lease),
                Err(error) => refusal = Some(error),
            }
        }
        for id in far {
            // It may have come here meanwhile.
            let reserved = match self.far_leases().zip(self.far_key(id)) {
                Some((leases, key)) => leases.reserve(who, key, wanted.clone()).await,
                None => self.reserve_here(who, vec![id.clone()], wanted.clone()).await,
            };
            match reserved {
                Ok(lease) => {
                    let lease = OwnLease { view: LeaseView { device: id.clone(), ..lease.view }, ..lease };
                    self.leases().far().add(who, &lease);
                    return Ok(lease);
                }
                Err(error) => refusal = Some(error),
            }
        }
        Err(refusal.unwrap_or_else(|| crate::identity::unknown_device(&wanted.device, std::iter::empty())))
    }

    /// Gives back a device that is far; `None` where it is not.
    pub(super) async fn release_far(
        &self,
        who: &Principal,
        device: &str,
        lease: Option<&str>,
    ) -> Option<Result<bool, ToolError>> {
        let far = self.far_leases()?;
        let id = match lease {
            Some(lease) => self.leases().far().device(&who.id, lease)?,
            None => self.seen_by(who).device(device).ok()?.id,
        };
        let key = self.far_key(&id)?;
        if let Some(lease) = lease {
            self.leases().far().ids.remove(lease);
        }
        Some(far.release(who, key, lease).await)
    }

    /// Whether a lease is of this device, which is far.
    pub fn is_far_lease(&self, who: &str, lease: &str, device: &DeviceKey) -> bool {
        let id = self.leases().far().device(who, lease);
        id.is_some_and(|id| self.device_id(device).as_ref() == Some(&id))
    }
}
