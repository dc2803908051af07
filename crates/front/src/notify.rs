//! Notifies clients of changes, in revisions with and without sessions.

use std::sync::{Arc, PoisonError};

use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionContext, SubscriptionSink};
use sinew_gateway::{Principal, Shape, Update};
use sinew_tool::DeviceId;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::conformance::FixtureChange;
use crate::mcp::ClientSession;
use crate::resources::{self, DeviceResource};
use crate::state::FrontState;
use crate::subscribed_uris::SubscribedUris;

/// A change as a client gets it.
#[derive(Clone, Debug, PartialEq)]
enum ClientNotice {
    Tools,
    Prompts,
    Resources,
    Updated(String),
}

/// Notifies a client of an older revision until its connection ends.
pub(crate) fn peer(
    front: &Arc<FrontState>,
    peer: Peer<RoleServer>,
    who: &Principal,
    shape: Shape,
    session: Arc<ClientSession>,
    end: CancellationToken,
) {
    let mut watcher = ChangeWatcher::new(front, who, shape);
    let drain = front.drain.clone();
    front.tasks.spawn(async move {
        loop {
            let notices = tokio::select! {
                () = end.cancelled() => return,
                () = drain.cancelled() => return,
                change = watcher.next() => {
                    let uris = session.uris.lock().unwrap_or_else(PoisonError::into_inner);
                    watcher.notices(change, &uris)
                }
            };
            for notice in notices {
                let sent = tokio::select! {
                    () = end.cancelled() => return,
                    sent = notify_peer(&peer, notice) => sent,
                };
                if sent.is_err() {
                    return;
                }
            }
        }
    });
}

/// Serves `subscriptions/listen` until the client leaves or the gateway stops.
pub(crate) async fn listen(front: &Arc<FrontState>, cx: SubscriptionContext, who: &Principal, shape: Shape) {
    let mut watcher = ChangeWatcher::new(front, who, shape);
    let uris: SubscribedUris = cx.accepted().resource_subscriptions.iter().flatten().cloned().collect();
    loop {
        let notices = tokio::select! {
            () = cx.cancelled() => return,
            () = front.drain.cancelled() => return,
            change = watcher.next() => watcher.notices(change, &uris),
        };
        for notice in notices {
            if is_wanted(&cx, &notice) && notify_sink(cx.sink(), notice).await.is_err() {
                return;
            }
        }
    }
}

/// The changes of the gateway and of the conformance fixture, if there is one.
struct ChangeWatcher {
    front: Arc<FrontState>,
    who: Principal,
    gateway: sinew_gateway::Watch,
    fixture: Option<broadcast::Receiver<FixtureChange>>,
}

enum WatchedChange {
    Gateway(Update),
    Fixture(FixtureChange),
}

impl ChangeWatcher {
    fn new(front: &Arc<FrontState>, who: &Principal, shape: Shape) -> ChangeWatcher {
        let fixture = front.fixture.as_ref().map(|fixture| fixture.changes());
        ChangeWatcher { front: front.clone(), who: who.clone(), gateway: front.gateway.watch_as(who, shape), fixture }
    }

    async fn next(&mut self) -> WatchedChange {
        let fixture = async {
            match &mut self.fixture {
                Some(changes) => changes.recv().await.unwrap_or(FixtureChange::Tools),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            change = self.gateway.next() => WatchedChange::Gateway(change),
            change = fixture => WatchedChange::Fixture(change),
        }
    }

    /// The notices of a change for a client that is subscribed to `uris`.
    fn notices(&self, change: WatchedChange, uris: &SubscribedUris) -> Vec<ClientNotice> {
        match change {
            WatchedChange::Fixture(FixtureChange::Tools) => vec![ClientNotice::Tools],
            WatchedChange::Fixture(FixtureChange::Prompts) => vec![ClientNotice::Prompts],
            WatchedChange::Gateway(Update::Tools) => vec![ClientNotice::Tools],
            WatchedChange::Gateway(Update::Devices { changed, is_list }) => {
                let mut notices = Vec::from_iter(is_list.then_some(ClientNotice::Resources));
                notices.extend(self.updated(&changed, uris, |resource| !resource.events));
                notices
            }
            WatchedChange::Gateway(Update::Event { device }) => {
                self.updated(&[device], uris, |resource| resource.events)
            }
        }
    }

    fn updated(
        &self,
        devices: &[DeviceId],
        uris: &SubscribedUris,
        is_updated: impl Fn(&DeviceResource) -> bool,
    ) -> Vec<ClientNotice> {
        if uris.is_empty() {
            return Vec::new();
        }
        let seen = self.front.gateway.seen_by(&self.who);
        let mut notices = Vec::new();
        for device in devices.iter().filter_map(|device| seen.find_device(device.as_str())) {
            let is_its = |uri: &&String| {
                resources::find(&seen, uri)
                    .is_some_and(|resource| resource.device.id == device.id && is_updated(&resource))
            };
            notices.extend(uris.of(&device).into_iter().filter(is_its).cloned().map(ClientNotice::Updated));
        }
        notices
    }
}

fn is_wanted(cx: &SubscriptionContext, notice: &ClientNotice) -> bool {
    let accepted = cx.accepted();
    match notice {
        ClientNotice::Tools => accepted.tools_list_changed == Some(true),
        ClientNotice::Prompts => accepted.prompts_list_changed == Some(true),
        ClientNotice::Resources => accepted.resources_list_changed == Some(true),
        ClientNotice::Updated(_) => true,
    }
}

async fn notify_sink(
    sink: &SubscriptionSink,
    notice: ClientNotice,
) -> Result<(), rmcp::service::SubscriptionSendError> {
    match notice {
        ClientNotice::Tools => sink.notify_tool_list_changed().await,
        ClientNotice::Prompts => sink.notify_prompt_list_changed().await,
        ClientNotice::Resources => sink.notify_resource_list_changed().await,
        ClientNotice::Updated(uri) => sink.notify_resource_updated(uri).await,
    }
}

async fn notify_peer(peer: &Peer<RoleServer>, notice: ClientNotice) -> Result<(), rmcp::ServiceError> {
    match notice {
        ClientNotice::Tools => peer.notify_tool_list_changed().await,
        ClientNotice::Prompts => peer.notify_prompt_list_changed().await,
        ClientNotice::Resources => peer.notify_resource_list_changed().await,
        ClientNotice::Updated(uri) => peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await,
    }
}
