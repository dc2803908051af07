//! Reserving a device at the node that has it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sinew_gateway::{FarLeases, LeaseView, OwnLease, Principal, Reservation, Role};
use sinew_presence::{Owner, Route};
use sinew_tool::{BoxFuture, CallOrigin, DeviceId, DeviceKey, ErrorKind, ToolError};

use crate::core::Core;
use crate::messages::{LeaseAction, LeaseForm, LeaseGrant, LeaseWish, MessageBody, NodeMessage};
use crate::records::{hash_of, parse_hash};
use crate::remote::{Heard, away};
use crate::serve::{DOOR, answer, principal};

/// How long an answer may take beyond the time that the wish itself waits.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest that a wish of another node waits: longer than any that its own node lets through.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The longest lease that another node can ask for: a day, as for people.
const MAX_TIME: Duration = Duration::from_secs(86_400);

/// The leases of the other nodes, for the gateway of this one.
pub(crate) struct NodeLeases {
    pub(crate) core: Weak<Core>,
}

impl FarLeases for NodeLeases {
    fn is_far(&self, device: &DeviceKey) -> bool {
        let route = self.core.upgrade().map(|core| core.route(hash_of(device)).0);
        matches!(route, Some(Route::At(..)))
    }

    fn reserve<'a>(
        &'a self,
        who: &'a Principal,
        device: DeviceKey,
        wanted: Reservation,
    ) -> BoxFuture<'a, Result<OwnLease, ToolError>> {
        Box::pin(async move {
            let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            let what = LeaseAction::Reserve {
                time_ms: milliseconds(wanted.time),
                wait_ms: milliseconds(wanted.wait),
                purpose: wanted.purpose,
                run: wanted.run,
                by_person: wanted.by_person,
            };
            match self.ask(who, &device, what, wanted.wait).await? {
                LeaseGrant::Reserved { id, view, seconds, unused_seconds } => {
                    Ok(OwnLease { id, view: view_of(view)?, seconds, unused_seconds })
                }
                _ => Err(strange()),
            }
        })
    }

    fn release<'a>(
        &'a self,
        who: &'a Principal,
        device: DeviceKey,
        lease: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, ToolError>> {
        Box::pin(async move {
            let what = LeaseAction::Release { lease: lease.map(str::to_owned) };
            match self.ask(who, &device, what, Duration::ZERO).await? {
                LeaseGrant::Released(released) => Ok(released),
                _ => Err(strange()),
            }
        })
    }

    fn break_lease<'a>(&'a self, by: &'a Principal, device: DeviceKey) -> BoxFuture<'a, Result<LeaseView, ToolError>> {
        Box::pin(async move {
            match self.ask(by, &device, LeaseAction::Break, Duration::ZERO).await? {
                LeaseGrant::Broken(view) => view_of(view),
                _ => Err(strange()),
            }
        })
    }
}

impl NodeLeases {
    /// Asks the node that has a device now.
    async fn ask(
        &self,
        who: &Principal,
        device: &DeviceKey,
        what: LeaseAction,
        wait: Duration,
    ) -> Result<LeaseGrant, ToolError> {
        let core = self.core.upgrade().ok_or_else(|| away("this gateway is stopping"))?;
        let hash = hash_of(device);
        let (Route::At(run, _), _) = core.route(hash) else { return Err(away("it just moved; try again")) };
        if !core.nats.connected().borrow().is_now {
            return Err(away("this gateway cannot reach the cluster's NATS"));
        }
        let who = CallOrigin {
            name: who.name.clone(),
            id: who.id.clone(),
            is_admin: who.role == Role::Admin,
            kind: who.kind.word().to_owned(),
            door: DOOR.to_owned(),
            policy: String::new(),
            is_approved: false,
            run: None,
            lease: None,
            trace: None,
        };
        let mut open = core.open.begin(&core, &run);
        // Dropping it asks for nothing: a wish ends by itself.
        open.is_over = true;
        let nobody = core.settings.name.nobody(&core.me.node, &open.id);
        let body = MessageBody::Lease(Box::new(LeaseWish { device: hash.to_string(), who, what }));
        let message = NodeMessage { call: open.id.clone(), body };
        let unsent = |why: String| away(&format!("the wish could not be sent: {why}"));
        core.send(&run, &message, Some(&nobody)).await.map_err(unsent)?;
        let heard = async {
            loop {
                match open.heard.recv().await {
                    Some(Heard::Body(MessageBody::LeaseDone(done))) => return done,
                    Some(Heard::Body(_)) => {}
                    Some(Heard::Nobody | Heard::Stopped { .. }) | None => {
                        return Err(away("its node is gone; try again"));
                    }
                }
            }
        };
        let late = || Err(away(&format!("the node {} does not answer; a lease that it gave ends by itself", run.node)));
        tokio::time::timeout(wait + PATIENCE, heard).await.unwrap_or_else(|_| late())
    }
}

/// What another node wishes of a device of this one.
pub(crate) fn handle_wish(core: &Arc<Core>, from: Owner, id: String, wish: Box<LeaseWish>) {
    let core = core.clone();
    tokio::spawn(async move {
        let done = grant(&core, *wish).await;
        answer(&core, from, id, MessageBody::LeaseDone(done));
    });
}

async fn grant(core: &Arc<Core>, wish: LeaseWish) -> Result<LeaseGrant, ToolError> {
    let LeaseWish { device, who, what } = wish;
    let key = parse_hash(&device).filter(|_| !core.is_over()).and_then(|hash| core.local_key(hash));
    let device = key.and_then(|key| core.gateway.device_id(&key)).ok_or_else(|| away("it just moved; try again"))?;
    let unknown =
        || ToolError::new(ErrorKind::PermissionDenied, "another node sent a caller that this one does not know");
    let who = principal(&who).ok_or_else(unknown)?;
    match what {
        LeaseAction::Reserve { time_ms, wait_ms, purpose, run, by_person } => {
            let wanted = Reservation {
                device: device.to_string(),
                time: Duration::from_millis(time_ms).min(MAX_TIME),
                wait: Duration::from_millis(wait_ms).min(MAX_WAIT),
                purpose,
                run,
                by_person,
            };
            let OwnLease { id, view, seconds, unused_seconds } = core.gateway.reserve(&who, wanted).await?;
            Ok(LeaseGrant::Reserved { id, view: form_of(view), seconds, unused_seconds })
        }
        LeaseAction::Release { lease } => {
            let named = lease.map_or_else(|| device.to_string(), |lease| format!("lease:{lease}"));
            core.gateway.release(&who, &named).await.map(LeaseGrant::Released)
        }
        LeaseAction::Break => {
            let broken = core.gateway.break_lease(&who, device.as_str()).await?;
            Ok(LeaseGrant::Broken(form_of(broken)))
        }
    }
}

fn form_of(view: LeaseView) -> LeaseForm {
    let LeaseView { holder, purpose, until, waiting, .. } = view;
    LeaseForm { holder, purpose, until, waiting }
}

/// The caller puts the id that the device has there in its place.
fn view_of(form: LeaseForm) -> Result<LeaseView, ToolError> {
    let LeaseForm { holder, purpose, until, waiting } = form;
    let device = DeviceId::parse("device").ok_or_else(strange)?;
    Ok(LeaseView { device, holder, purpose, until, waiting })
}

fn strange() -> ToolError {
    away("its node answered something else; look at the versions of both nodes")
}
