//! The gateway as an MCP server, for revisions with and without sessions.
//!
//! One [`Mcp`] serves one connection of a client that starts with `initialize`, or one request of a client that does
//! not. Longer parts are in `call`, `resources` and `notify`.

// Logging and `resources/subscribe` are deprecated in MCP, but older clients need them.
#![allow(deprecated)]

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, DiscoverResult, ErrorData, Extensions, GetPromptRequestParams, GetPromptResponse, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, LoggingLevel, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use sinew_gateway::{Principal, Role};
use sinew_tool::LogLevel;
use sinew_tool::text::clean_line;
use tokio_util::sync::CancellationToken;

use crate::conformance::ConformanceFixture;
use crate::inspect::MessageError;
use crate::listing::{self, ListForm};
use crate::revision::Revision;
use crate::state::FrontState;
use crate::subscribed_uris::SubscribedUris;
use crate::{call, file_resources, notify, resources, translate};

/// How long a client may cache a list unless it is notified of a change.
pub(crate) const FRESH_MS: u64 = 5_000;

pub(crate) struct Mcp {
    pub front: Arc<FrontState>,
    pub form: ListForm,
    /// The name of the endpoint in the audit.
    pub endpoint: &'static str,
    /// The caller, when the connection says so and not each request.
    who: Option<Arc<Principal>>,
    pub session: Arc<ClientSession>,
}

/// What a client of an older revision has set for all its requests.
pub(crate) struct ClientSession {
    level: AtomicU8,
    /// The resources it has subscribed to.
    pub uris: Mutex<SubscribedUris>,
    /// Cancelled when the connection ends.
    end: CancellationToken,
}

impl ClientSession {
    pub(crate) fn level(&self) -> LogLevel {
        let levels = [LogLevel::Debug, LogLevel::Info, LogLevel::Notice, LogLevel::Warning, LogLevel::Error];
        let high = [LogLevel::Critical, LogLevel::Alert, LogLevel::Emergency];
        let index = usize::from(self.level.load(Ordering::Relaxed));
        levels.iter().chain(&high).nth(index).copied().unwrap_or(LogLevel::Info)
    }
}

impl Mcp {
    pub(crate) fn new(
        front: Arc<FrontState>,
        form: ListForm,
        endpoint: &'static str,
        who: Option<Arc<Principal>>,
    ) -> Mcp {
        let level = AtomicU8::new(LogLevel::Info as u8);
        let session = ClientSession { level, uris: Mutex::default(), end: CancellationToken::new() };
        Mcp { front, form, endpoint, who, session: Arc::new(session) }
    }

    /// The caller: HTTP gives it with each request, other connections once.
    pub(crate) fn who(&self, extensions: &Extensions) -> Result<Arc<Principal>, ErrorData> {
        let parts = extensions.get::<http::request::Parts>();
        let from_request = parts.and_then(|parts| parts.extensions.get::<Arc<Principal>>());
        let who = from_request.or(self.who.as_ref());
        let who = who.ok_or_else(|| ErrorData::internal_error("the request has no caller", None))?;
        Ok(as_model(who))
    }

    fn info_with_instructions(&self, who: &Principal) -> ServerConfig {
        let mut info = self.front.info();
        let instructions = self.front.gateway.seen_by(who).instructions();
        info.instructions = Some(instructions).filter(|text| !text.is_empty());
        info
    }

    fn log_client(&self, who: &Principal, client: Option<&Implementation>, revision: &str) {
        let (program, version) = client.map_or(("", ""), |client| (client.name.as_str(), client.version.as_str()));
        let (program, version) = (clean_line(program, 64), clean_line(version, 32));
        tracing::info!(client = who.name, program, version, via = self.endpoint, revision, "client connected");
    }

    fn uris(&self) -> std::sync::MutexGuard<'_, SubscribedUris> {
        self.session.uris.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        self.session.end.cancel();
    }
}

/// Every MCP caller counts as a model, whatever its token, so that tools for people stay hidden.
pub(crate) fn as_model(who: &Arc<Principal>) -> Arc<Principal> {
    match who.role {
        Role::Admin => Arc::new(Principal { role: Role::Client, ..Principal::clone(who) }),
        _ => who.clone(),
    }
}

/// Whether a request belongs to a revision without a handshake (2026-07-28 or later).
pub(crate) fn is_modern(cx: &RequestContext<RoleServer>) -> bool {
    cx.protocol_version().is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// How long an answer may be cached, and by whom. Older revisions have no such fields.
fn cache_hints(cx: &RequestContext<RoleServer>, fresh_ms: u64) -> (Option<u64>, Option<CacheScope>) {
    match is_modern(cx) {
        true => (Some(fresh_ms), Some(CacheScope::Private)),
        false => (None, None),
    }
}

fn unknown_method(method: &str) -> ErrorData {
    translate::to_protocol_error(&MessageError::unknown_method(method).to_error())
}

impl ServerHandler for Mcp {
    fn get_info(&self) -> ServerConfig {
        self.front.info()
    }

    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let version = self.negotiate_initialize(&request)?.protocol_version;
        let who = self.who(&cx.extensions)?;
        let mut info = self.info_with_instructions(&who);
        if !Revision::parse(version.as_str()).has_titles() {
            info.server_info.title = None;
        }
        self.log_client(&who, Some(&request.client_info), version.as_str());
        // From here on the client speaks the version that was agreed on, not the one it asked for.
        request.protocol_version = version.clone();
        cx.peer.set_peer_info(request);
        Ok(info.with_protocol_version(version))
    }

    async fn discover(&self, cx: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let who = self.who(&cx.extensions)?;
        // Clients without a session ask this first.
        let revision = cx.protocol_version();
        self.log_client(&who, cx.client_info().as_ref(), revision.as_ref().map_or("", |revision| revision.as_str()));
        let versions = self.supported_protocol_versions().into_owned();
        let result = DiscoverResult::from_server_info(versions, self.info_with_instructions(&who));
        Ok(result.with_ttl_ms(FRESH_MS).with_cache_scope(CacheScope::Private))
    }

    async fn on_initialized(&self, cx: NotificationContext<RoleServer>) {
        if let Ok(who) = self.who(&cx.extensions) {
            let end = self.session.end.clone();
            notify::peer(&self.front, cx.peer, &who, self.form.shape, self.session.clone(), end);
        }
    }

    /// Only used to compare arguments with headers, so tools without such arguments are not needed.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.front.tool_with_headers(self.who.as_deref()?, self.form, name)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let who = self.who(&cx.extensions)?;
        let listing = self.front.listing(&who, self.form).await;
        let page = resources::page(
            "tools",
            &listing.tools,
            |tool| tool.name.as_ref(),
            request,
            self.front.settings.page_size,
        )?;
        let mut result = ListToolsResult::with_all_items(page.items.to_vec());
        let revision = Revision::of(&cx);
        result.tools.iter_mut().for_each(|tool| revision.trim(tool));
        if !revision.has_header_arguments() && self.front.has_header_arguments(&who, self.form) {
            result.tools.iter_mut().for_each(listing::remove_header_marks);
        }
        result.next_cursor = page.next;
        (result.ttl_ms, result.cache_scope) = cache_hints(&cx, FRESH_MS);
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(result) = self.front.fixture.as_ref().and_then(|fixture| fixture.call_tool(&request.name)) {
            return Ok(result.into());
        }
        let _running = self.front.calls.token();
        Box::pin(call::call(self, request, cx)).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut result = resources::list(&self.front, &*self.who(&cx.extensions)?, request).await?;
        (result.ttl_ms, result.cache_scope) = cache_hints(&cx, FRESH_MS);
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let who = self.who(&cx.extensions)?;
        let (mut result, fresh_ms) = resources::read(&self.front, &who, self.endpoint, &request.uri).await?;
        (result.ttl_ms, result.cache_scope) = cache_hints(&cx, fresh_ms);
        Ok(result.into())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            // Without a caller nothing may be learned from what is accepted.
            if let Some(seen) = self.who.as_ref().map(|who| self.front.gateway.seen_by(&as_model(who))) {
                uris.retain(|uri| resources::is_known(&self.front, &seen, uri));
            }
        }
        Some(accepted)
    }

    async fn listen(&self, cx: SubscriptionContext) -> Result<(), ErrorData> {
        let who = self.who(&cx.request_context().extensions)?;
        notify::listen(&self.front, cx, &who, self.form.shape).await;
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let seen = self.front.gateway.seen_by(&*self.who(&cx.extensions)?);
        if !resources::is_known(&self.front, &seen, &request.uri) {
            return Err(resources::unknown(&request.uri));
        }
        // Each device has two resources, so this is generous.
        if self.uris().len() >= 2 * 10_000 {
            return Err(ErrorData::invalid_params("too many subscriptions; unsubscribe from some first", None));
        }
        self.uris().insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.uris().remove(&request.uri);
        Ok(())
    }

    async fn set_level(&self, request: SetLevelRequestParams, cx: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        if is_modern(&cx) {
            return Err(unknown_method("logging/setLevel"));
        }
        let level: LoggingLevel = request.level;
        self.session.level.store(translate::from_level(level) as u8, Ordering::Relaxed);
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let fixture = self.front.fixture.as_ref().ok_or_else(|| unknown_method("prompts/list"))?;
        let mut result = ListPromptsResult::with_all_items(fixture.prompts());
        (result.ttl_ms, result.cache_scope) = cache_hints(&cx, FRESH_MS);
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let fixture = self.front.fixture.as_ref().ok_or_else(|| unknown_method("prompts/get"))?;
        fixture.prompt(request)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let who = self.who(&cx.extensions)?;
        let mut templates = self.front.fixture.as_ref().map(ConformanceFixture::templates).unwrap_or_default();
        templates.extend(file_resources::template(&self.front, &as_model(&who)));
        let mut result = ListResourceTemplatesResult::with_all_items(templates);
        (result.ttl_ms, result.cache_scope) = cache_hints(&cx, FRESH_MS);
        Ok(result)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let fixture = self.front.fixture.as_ref().ok_or_else(|| unknown_method("completion/complete"))?;
        Ok(fixture.complete(&request))
    }

    /// rmcp calls this for unknown methods, and also for known ones whose parameters do not fit.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        cx: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let needed = match request.method.as_str() {
            "tools/call" => "a string `name`, and `arguments` as an object",
            "tools/list" | "resources/list" => "nothing, or a string `cursor`",
            "resources/read" => "a string `uri`",
            "resources/subscribe" | "resources/unsubscribe" if !is_modern(&cx) => "a string `uri`",
            "logging/setLevel" if !is_modern(&cx) => "a `level` from `debug` to `emergency`",
            "subscriptions/listen" if is_modern(&cx) => "an object `notifications`",
            method => {
                return Err(unknown_method(method));
            }
        };
        Err(ErrorData::invalid_params(format!("the parameters of `{}` must have {needed}", request.method), None))
    }
}
