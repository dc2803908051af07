//! What all MCP connections share, whichever endpoint they use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{Implementation, RequestStateCodec, RequestStateError, ServerCapabilities, ServerConfig, Tool};
use serde_json::json;
use sinew_gateway::{Gateway, Principal, PublicTool, ToolList};
use sinew_signin::SignIn;
use sinew_tool::{Digest, header_arguments};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::conformance::ConformanceFixture;
use crate::listing::{KnownSchemas, ListForm, McpToolList, Schemas};
use crate::memory::ClientBudgets;
use crate::{ClusterView, ConsolePages, Front, FrontSettings, RoutineFiles, ServerList};

pub(crate) struct FrontState {
    pub gateway: Gateway,
    pub settings: FrontSettings,
    pub servers: Option<Arc<dyn ServerList>>,
    pub routines: Option<Arc<dyn RoutineFiles>>,
    pub console: Option<Arc<dyn ConsolePages>>,
    pub sign_in: Option<Arc<SignIn>>,
    pub cluster: Option<Arc<dyn ClusterView>>,
    /// Cancelled first when the gateway stops: subscriptions end, calls still run.
    pub drain: CancellationToken,
    /// Cancelled when the time of the calls that still run is up: they are told so.
    pub stop: CancellationToken,
    /// Running calls, until their answers are sent.
    pub calls: TaskTracker,
    /// Every task that was spawned for a connection.
    pub tasks: TaskTracker,
    /// Memory for requests that are being handled.
    pub bodies: ClientBudgets,
    /// Memory for answers that clients have not read yet.
    pub answers: ClientBudgets,
    pub fixture: Option<ConformanceFixture>,
    info: ServerConfig,
    listings: Mutex<Vec<Arc<KeptListing>>>,
    schemas: Arc<KnownSchemas>,
    pub recordings: Recordings,
}

/// Recordings that have a name, so that they can be ended.
#[derive(Default)]
pub(crate) struct Recordings(Mutex<HashMap<String, CancellationToken>>);

/// Administrators begin recordings; those that were forgotten end by themselves.
const MAX_RECORDINGS: usize = 100;

impl Recordings {
    /// What ends a new recording. One of the same name ends now.
    pub(crate) fn begin(&self, name: Option<String>) -> CancellationToken {
        let ended = CancellationToken::new();
        let Some(name) = name else { return ended };
        let mut recordings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recordings.len() >= MAX_RECORDINGS {
            recordings.clear();
        }
        if let Some(before) = recordings.insert(name, ended.clone()) {
            before.cancel();
        }
        ended
    }

    pub(crate) fn end(&self, name: &str) {
        if let Some(ended) = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name) {
            ended.cancel();
        }
    }
}

/// A list of a caller, in the form of MCP once somebody asks for that.
struct KeptListing {
    list: Arc<ToolList>,
    schemas: Schemas,
    has_header_arguments: bool,
    made: OnceCell<Arc<McpToolList>>,
}

impl KeptListing {
    /// Whether the gateway still has this list. With thousands of devices a list takes megabytes, and each device that
    /// comes or goes makes a new one.
    fn is_current(&self) -> bool {
        let kept_here = 1 + usize::from(self.made.initialized());
        Arc::strong_count(&self.list) > kept_here
    }
}

/// Every form, for models and for people, with a policy that shows eight kinds of callers different tools.
const MAX_LISTINGS: usize = 2 * ListForm::ALL.len() * 8;

impl FrontState {
    pub(crate) fn new(front: Front) -> Result<Arc<FrontState>, std::io::Error> {
        let Front { gateway, settings, servers, routines, console, sign_in, cluster } = front;
        let fixture = settings.conformance.then(ConformanceFixture::new);
        let limits = &settings.limits;
        let bodies = ClientBudgets::new(limits.bodies, limits.bodies_each);
        let answers = ClientBudgets::new(limits.answers, limits.answers_each);
        Ok(Arc::new(FrontState {
            gateway,
            settings,
            servers,
            routines,
            console,
            sign_in,
            cluster,
            drain: CancellationToken::new(),
            stop: CancellationToken::new(),
            calls: TaskTracker::new(),
            tasks: TaskTracker::new(),
            bodies,
            answers,
            info: info(fixture.as_ref()),
            fixture,
            listings: Default::default(),
            schemas: Default::default(),
            recordings: Default::default(),
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

    /// The caller's tools as MCP lists them, made once per list, of schemas that are rewritten once for all lists. They
    /// are rewritten elsewhere, so that other requests are answered meanwhile.
    pub(crate) async fn listing(&self, who: &Principal, form: ListForm) -> Arc<McpToolList> {
        let kept = self.kept_listing(who, form);
        let make = || {
            let (list, known) = (kept.list.clone(), self.schemas.clone());
            move || Arc::new(McpToolList::new(list, form.schemas, &known))
        };
        let made = kept.made.get_or_init(|| async {
            // It fails only while the program stops.
            tokio::task::spawn_blocking(make()).await.unwrap_or_else(|_| make()())
        });
        made.await.clone()
    }

    /// Whether a tool of the caller has arguments that are also sent as headers.
    pub(crate) fn has_header_arguments(&self, who: &Principal, form: ListForm) -> bool {
        self.kept_listing(who, form).has_header_arguments
    }

    /// A tool of the caller that has arguments which are also sent as headers.
    pub(crate) fn tool_with_headers(&self, who: &Principal, form: ListForm, name: &str) -> Option<Tool> {
        let kept = self.kept_listing(who, form);
        let public = kept.list.tools.iter().filter(|_| kept.has_header_arguments).find(|tool| tool.name == name)?;
        let alone = ToolList { tools: vec![public.clone()], digest: kept.list.digest };
        McpToolList::new(Arc::new(alone), form.schemas, &self.schemas).tools.pop()
    }

    fn kept_listing(&self, who: &Principal, form: ListForm) -> Arc<KeptListing> {
        let list = self.gateway.list(who, form.shape);
        let mut kept = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        let is_wanted = |one: &&Arc<KeptListing>| Arc::ptr_eq(&one.list, &list) && one.schemas == form.schemas;
        if let Some(listing) = kept.iter().find(is_wanted) {
            return listing.clone();
        }
        let has_header = |tool: &PublicTool| tool.tool.input_schema.as_object().is_some_and(header_arguments::has_any);
        let has_header_arguments = list.tools.iter().any(has_header);
        let listing =
            Arc::new(KeptListing { list, schemas: form.schemas, has_header_arguments, made: OnceCell::new() });
        kept.retain(|listing| listing.is_current());
        if kept.len() == MAX_LISTINGS {
            kept.remove(0);
        }
        kept.push(listing.clone());
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
    use sinew_tool::{
        Admission, BoxFuture, Call, Device, DeviceEvent, DeviceInfo, DeviceKey, Family, FamilyName, Outcome, Reach,
        Status, TextTrust, ToolError, Toolset,
    };

    use super::*;

    #[tokio::test]
    async fn a_list_is_made_once_for_all_callers_until_the_tools_change() {
        let gateway = Gateway::open(sinew_gateway::Settings::default()).expect("a gateway");
        let front = FrontState::new(Front::new(gateway, FrontSettings::default())).expect("a state");
        let [ada, bob] = ["ada", "bob"].map(|name| Principal::new(name, Role::Client));
        let first = front.listing(&ada, Shape::Folded.into()).await;
        assert!(Arc::ptr_eq(&first, &front.listing(&ada, Shape::Folded.into()).await));
        assert!(Arc::ptr_eq(&first, &front.listing(&bob, Shape::Folded.into()).await));
        assert!(!Arc::ptr_eq(&first, &front.listing(&ada, Shape::Unfolded.into()).await));
        assert_eq!(json!(first.tools[0].input_schema)["type"], "object");
    }

    #[tokio::test]
    async fn a_list_that_the_gateway_replaced_is_not_kept() {
        let gateway = Gateway::open(sinew_gateway::Settings::default()).expect("a gateway");
        let front = FrontState::new(Front::new(gateway.clone(), FrontSettings::default())).expect("a state");
        let ada = Principal::new("ada", Role::Client);
        let mut lists = Vec::new();
        for number in 0..3 {
            gateway.apply(DeviceEvent::Joined(Lamp::new(number)));
            lists.push(Arc::downgrade(&front.listing(&ada, Shape::Unfolded.into()).await));
        }
        let kept: Vec<bool> = lists.iter().map(|list| list.upgrade().is_some()).collect();
        assert_eq!(kept, [false, false, true]);
    }

    /// A device with one tool, which nobody calls.
    struct Lamp(Arc<DeviceInfo>);

    impl Lamp {
        fn new(number: usize) -> Arc<Lamp> {
            Arc::new(Lamp(Arc::new(DeviceInfo {
                key: DeviceKey(format!("board:lamp-{number}")),
                suggested_id: format!("lamp-{number}"),
                family: Family::new(FamilyName::of("board"), TextTrust::Attributed, Reach::OneLink),
                admission: Admission::OwnToken,
                name: "lamp".to_owned(),
                version: "1.0".to_owned(),
                status: Status::Ready,
                instructions: None,
                labels: Vec::new(),
                attributes: Default::default(),
            })))
        }
    }

    impl Device for Lamp {
        fn info(&self) -> Arc<DeviceInfo> {
            self.0.clone()
        }

        fn tools(&self) -> Arc<Toolset> {
            Arc::new(Toolset::new([sinew_tool::Tool::new("light", "Lights.", json!({"type": "object"}))]))
        }

        fn call(&self, _: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
            Box::pin(async { Ok(Outcome::default()) })
        }
    }
}
