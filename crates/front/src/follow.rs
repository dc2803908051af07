//! Telling clients what changed, in both eras.

use std::sync::{Arc, PoisonError};

use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionContext, SubscriptionSink};
use sinew_gateway::{Principal, Shape, Update};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::extras::ExtraChange;
use crate::hall::Hall;
use crate::mcp::Session;
use crate::resources;

/// A change in the client's words.
#[derive(Clone, Debug, PartialEq)]
enum News {
    Tools,
    Prompts,
    Resources,
    Updated(String),
}

/// Keeps a client of an older revision informed until its connection ends.
pub(crate) fn peer(
    hall: &Arc<Hall>,
    peer: Peer<RoleServer>,
    who: &Principal,
    shape: Shape,
    session: Arc<Session>,
    end: CancellationToken,
) {
    let mut watch = Watcher::new(hall, who, shape);
    let drain = hall.drain.clone();
    hall.tasks.spawn(async move {
        loop {
            let news = tokio::select! {
                () = end.cancelled() => return,
                () = drain.cancelled() => return,
                change = watch.next() => {
                    let uris = session.uris.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    watch.news(change, uris.iter())
                }
            };
            for one in news {
                let told = tokio::select! {
                    () = end.cancelled() => return,
                    told = tell_peer(&peer, one) => told,
                };
                if told.is_err() {
                    return;
                }
            }
        }
    });
}

/// Serves `subscriptions/listen` until the client leaves or the gateway stops.
pub(crate) async fn listen(hall: &Arc<Hall>, cx: SubscriptionContext, who: &Principal, shape: Shape) {
    let mut watch = Watcher::new(hall, who, shape);
    let uris = cx.accepted().resource_subscriptions.clone().unwrap_or_default();
    loop {
        let news = tokio::select! {
            () = cx.cancelled() => return,
            () = hall.drain.cancelled() => return,
            change = watch.next() => watch.news(change, uris.iter()),
        };
        for one in news {
            if wanted(&cx, &one) && tell_sink(cx.sink(), one).await.is_err() {
                return;
            }
        }
    }
}

/// The gateway's changes and, where there are any, those of the extras.
struct Watcher {
    hall: Arc<Hall>,
    gateway: sinew_gateway::Watch,
    extras: Option<broadcast::Receiver<ExtraChange>>,
}

enum Seen {
    Gateway(Update),
    Extra(ExtraChange),
}

impl Watcher {
    fn new(hall: &Arc<Hall>, who: &Principal, shape: Shape) -> Watcher {
        let extras = hall.extras.as_ref().map(|extras| extras.changes());
        Watcher { hall: hall.clone(), gateway: hall.gateway.watch_as(who, shape), extras }
    }

    async fn next(&mut self) -> Seen {
        let extra = async {
            match &mut self.extras {
                Some(changes) => changes.recv().await.unwrap_or(ExtraChange::Tools),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            change = self.gateway.next() => Seen::Gateway(change),
            change = extra => Seen::Extra(change),
        }
    }

    /// What a change means to a client that also follows `uris`.
    fn news<'a>(&self, seen: Seen, uris: impl Iterator<Item = &'a String>) -> Vec<News> {
        match seen {
            Seen::Extra(ExtraChange::Tools) => vec![News::Tools],
            Seen::Extra(ExtraChange::Prompts) => vec![News::Prompts],
            Seen::Gateway(Update::Tools) => vec![News::Tools],
            Seen::Gateway(Update::Devices { changed, is_list }) => {
                let devices = uris.filter(|uri| {
                    resources::about(&self.hall, uri)
                        .is_some_and(|about| !about.events && changed.contains(&about.device.id))
                });
                is_list.then_some(News::Resources).into_iter().chain(devices.cloned().map(News::Updated)).collect()
            }
            Seen::Gateway(Update::Event { device }) => uris
                .filter(|uri| {
                    resources::about(&self.hall, uri).is_some_and(|about| about.events && about.device.id == device)
                })
                .cloned()
                .map(News::Updated)
                .collect(),
        }
    }
}

fn wanted(cx: &SubscriptionContext, news: &News) -> bool {
    let accepted = cx.accepted();
    match news {
        News::Tools => accepted.tools_list_changed == Some(true),
        News::Prompts => accepted.prompts_list_changed == Some(true),
        News::Resources => accepted.resources_list_changed == Some(true),
        News::Updated(_) => true,
    }
}

async fn tell_sink(sink: &SubscriptionSink, news: News) -> Result<(), rmcp::service::SubscriptionSendError> {
    match news {
        News::Tools => sink.notify_tool_list_changed().await,
        News::Prompts => sink.notify_prompt_list_changed().await,
        News::Resources => sink.notify_resource_list_changed().await,
        News::Updated(uri) => sink.notify_resource_updated(uri).await,
    }
}

async fn tell_peer(peer: &Peer<RoleServer>, news: News) -> Result<(), rmcp::ServiceError> {
    match news {
        News::Tools => peer.notify_tool_list_changed().await,
        News::Prompts => peer.notify_prompt_list_changed().await,
        News::Resources => peer.notify_resource_list_changed().await,
        News::Updated(uri) => peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await,
    }
}
