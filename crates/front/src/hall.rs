//! What all MCP connections share, whichever door they came through.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{Implementation, RequestStateCodec, ServerCapabilities, ServerConfig};
use sinew_gateway::{Gateway, Principal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::budget::Budget;
use crate::extras::Extras;
use crate::listing::{Form, Listing};
use crate::{Front, Settings};

pub(crate) struct Hall {
    pub gateway: Gateway,
    pub settings: Settings,
    /// Signs what clients carry between the rounds of an unfinished call. The key lives as long as
    /// the process; after a restart the client begins again.
    pub sealer: RequestStateCodec,
    /// Cancelled first when the gateway stops: subscriptions end in order, calls still run.
    pub drain: CancellationToken,
    /// The calls that run, until their answers are out.
    pub calls: TaskTracker,
    /// Everything that was spawned for a connection.
    pub tasks: TaskTracker,
    /// Memory for requests that are being handled.
    pub bodies: Budget,
    /// Memory for answers that wait for clients to read them.
    pub answers: Budget,
    pub extras: Option<Arc<dyn Extras>>,
    info: ServerConfig,
    listings: Mutex<Vec<Arc<Listing>>>,
}

impl Hall {
    pub(crate) fn new(front: Front) -> Result<Arc<Hall>, std::io::Error> {
        let mut key = [0u8; 32];
        rustls::crypto::ring::default_provider()
            .secure_random
            .fill(&mut key)
            .map_err(|_| std::io::Error::other("the system gives no random numbers"))?;
        let sealer = RequestStateCodec::try_new(key).map_err(std::io::Error::other)?;
        let Front { gateway, settings } = front;
        let extras = crate::extras::of(&settings);
        let (bodies, answers) = (Budget::new(settings.limits.bodies), Budget::new(settings.limits.answers));
        Ok(Arc::new(Hall {
            gateway,
            settings,
            sealer,
            drain: CancellationToken::new(),
            calls: TaskTracker::new(),
            tasks: TaskTracker::new(),
            bodies,
            answers,
            info: info(extras.as_deref()),
            extras,
            listings: Default::default(),
        }))
    }

    /// Who we are, without the instructions: those are told only to clients that begin.
    pub(crate) fn info(&self) -> ServerConfig {
        self.info.clone()
    }

    /// The caller's tools, put into MCP's words once per list.
    pub(crate) fn listing(&self, who: &Principal, form: Form) -> Arc<Listing> {
        let list = self.gateway.list(who, form.shape);
        let mut kept = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |one: &&Arc<Listing>| Arc::ptr_eq(&one.list, &list) && one.schemas == form.schemas;
        if let Some(listing) = kept.iter().find(is_it) {
            return listing.clone();
        }
        let listing = Arc::new(Listing::new(list, form.schemas));
        // Each form, with and without the tools meant for people.
        if kept.len() == 2 * Form::ALL.len() {
            kept.remove(0);
        }
        kept.push(listing.clone());
        listing
    }
}

fn info(extras: Option<&dyn Extras>) -> ServerConfig {
    let mut capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_tool_list_changed()
        .enable_resources()
        .enable_resources_list_changed()
        .enable_resources_subscribe()
        .build();
    capabilities.logging = Some(Default::default());
    if let Some(extras) = extras {
        extras.declare(&mut capabilities);
    }
    let ourselves = Implementation::new("sinew", env!("CARGO_PKG_VERSION")).with_title("Sinew");
    ServerConfig::new(capabilities).with_server_info(ourselves)
}
