//! What all MCP connections share, whichever endpoint they use.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{Implementation, RequestStateCodec, RequestStateError, ServerCapabilities, ServerConfig};
use serde_json::json;
use sinew_gateway::{Gateway, Principal};
use sinew_tool::Digest;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::conformance::ConformanceFixture;
use crate::listing::{KnownSchemas, ListForm, McpToolList};
use crate::memory::MemoryBudget;
use crate::{Front, FrontSettings};

pub(crate) struct FrontState {
    pub gateway: Gateway,
    pub settings: FrontSettings,
    /// Cancelled first when the gateway stops: subscriptions end, calls still run.
    pub drain: CancellationToken,
    /// Running calls, until their answers are sent.
    pub calls: TaskTracker,
    /// Every task that was spawned for a connection.
    pub tasks: TaskTracker,
    /// Memory for requests that are being handled.
    pub bodies: MemoryBudget,
    /// Memory for answers that clients have not read yet.
    pub answers: MemoryBudget,
    pub fixture: Option<ConformanceFixture>,
    info: ServerConfig,
    listings: Mutex<Listings>,
}

#[derive(Default)]
struct Listings {
    lists: Vec<Arc<McpToolList>>,
    schemas: KnownSchemas,
}

/// Every form, for models and for people, with a policy that shows eight kinds of callers different tools.
const MAX_LISTINGS: usize = 2 * ListForm::ALL.len() * 8;

impl FrontState {
    pub(crate) fn new(front: Front) -> Result<Arc<FrontState>, std::io::Error> {
        let Front { gateway, settings } = front;
        let fixture = settings.conformance.then(ConformanceFixture::new);
        let (bodies, answers) = (MemoryBudget::new(settings.limits.bodies), MemoryBudget::new(settings.limits.answers));
        Ok(Arc::new(FrontState {
            gateway,
            settings,
            drain: CancellationToken::new(),
            calls: TaskTracker::new(),
            tasks: TaskTracker::new(),
            bodies,
            answers,
            info: info(fixture.as_ref()),
            fixture,
            listings: Default::default(),
        }))
    }

    /// Signs the state that clients carry between the rounds of an unfinished call. The keys may change while the
    /// gateway runs, and few calls have rounds, so it is made for each use.
    pub(crate) fn sealer(&self) -> Result<RequestStateCodec, RequestStateError> {
        let keys = self.gateway.request_keys();
        // The same key has the same id on every gateway.
        let id = |key: &[u8; 32]| Digest::of(&json!(key)).short(16);
        let active = keys.first().map(id).unwrap_or_default();
        RequestStateCodec::new_with_keyring(active, keys.into_iter().map(|key| (id(&key), key)))
    }

    /// The server information without the instructions, which only starting clients need.
    pub(crate) fn info(&self) -> ServerConfig {
        self.info.clone()
    }

    /// The caller's tools as MCP lists them, made once per list, of schemas that are rewritten once for all lists.
    pub(crate) fn listing(&self, who: &Principal, form: ListForm) -> Arc<McpToolList> {
        let list = self.gateway.list(who, form.shape);
        let mut kept = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        let is_wanted = |one: &&Arc<McpToolList>| Arc::ptr_eq(&one.list, &list) && one.schemas == form.schemas;
        if let Some(listing) = kept.lists.iter().find(is_wanted) {
            return listing.clone();
        }
        let listing = Arc::new(McpToolList::new(list, form.schemas, &mut kept.schemas));
        if kept.lists.len() == MAX_LISTINGS {
            kept.lists.remove(0);
        }
        kept.lists.push(listing.clone());
        listing
    }
}

fn info(fixture: Option<&ConformanceFixture>) -> ServerConfig {
    let mut capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_tool_list_changed()
        .enable_resources()
        .enable_resources_list_changed()
        .enable_resources_subscribe()
        .build();
    capabilities.logging = Some(Default::default());
    if let Some(fixture) = fixture {
        fixture.declare(&mut capabilities);
    }
    let implementation = Implementation::new("sinew", env!("CARGO_PKG_VERSION")).with_title("Sinew");
    ServerConfig::new(capabilities).with_server_info(implementation)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sinew_gateway::{Role, Shape};

    use super::*;

    #[tokio::test]
    async fn a_list_is_made_once_for_all_callers_until_the_tools_change() {
        let gateway = Gateway::open(sinew_gateway::Settings::default()).expect("a gateway");
        let front = FrontState::new(Front { gateway, settings: FrontSettings::default() }).expect("a state");
        let [ada, bob] = ["ada", "bob"].map(|name| Principal::new(name, Role::Client));
        let first = front.listing(&ada, Shape::Folded.into());
        assert!(Arc::ptr_eq(&first, &front.listing(&ada, Shape::Folded.into())));
        assert!(Arc::ptr_eq(&first, &front.listing(&bob, Shape::Folded.into())));
        assert!(!Arc::ptr_eq(&first, &front.listing(&ada, Shape::Unfolded.into())));
        assert_eq!(json!(first.tools[0].input_schema)["type"], "object");
    }
}
