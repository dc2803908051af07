//! What all MCP connections share, whichever door they came through.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{Implementation, JsonObject, RequestStateCodec, ServerCapabilities, ServerConfig, Tool};
use serde_json::Value;
use sinew_gateway::{Gateway, Principal, Shape, ToolList};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::budget::Budget;
use crate::extras::Extras;
use crate::{Front, Settings, translate};

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

/// A tool list in MCP's words.
pub(crate) struct Listing {
    list: Arc<ToolList>,
    pub tools: Vec<Tool>,
    /// Some tool has arguments that also travel as headers.
    pub annotated: bool,
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
    pub(crate) fn listing(&self, who: &Principal, shape: Shape) -> Arc<Listing> {
        let list = self.gateway.list(who, shape);
        let mut kept = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listing) = kept.iter().find(|listing| Arc::ptr_eq(&listing.list, &list)) {
            return listing.clone();
        }
        let tools: Vec<Tool> = list.tools.iter().map(translate::to_tool).collect();
        let annotated = tools.iter().any(|tool| annotated(&tool.input_schema));
        let listing = Arc::new(Listing { list, tools, annotated });
        // Folded and unfolded, with and without the tools meant for people.
        if kept.len() == 4 {
            kept.remove(0);
        }
        kept.push(listing.clone());
        listing
    }
}

/// Whether an argument also travels as a header. The gateway lets such a wish of a device through only
/// where clients accept it.
fn annotated(schema: &JsonObject) -> bool {
    schema.get("properties").and_then(Value::as_object).is_some_and(|properties| {
        properties.values().filter_map(Value::as_object).any(|one| one.contains_key("x-mcp-header") || annotated(one))
    })
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
