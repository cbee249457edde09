//! Everything but `tools/call`, answered by rmcp without sessions: one message in, one answer out.
#![expect(deprecated, reason = "logging is deprecated by the newer revision only; 2025-11-25 clients set its level")]

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::Response;
use holdfast_core::code::Code;
use holdfast_core::limits;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use rmcp::model::{
    CacheScope, CustomRequest, CustomResult, DiscoverResult, ErrorCode, GetPromptRequestParams, GetPromptResponse,
    Implementation, InitializeRequestParams, InitializeResult, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestParams,
    SubscriptionFilter,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::bootstrap;
use super::envelope::RpcId;
use super::lasting;
use super::reply::{self, RpcError};
use super::revision::WITH_SESSIONS;
use super::revoked::Revoked;
use super::tools::ToolSet;
use crate::{AppState, Principal};

/// What a client is told before it has asked anything.
const INSTRUCTIONS: &str = "Tools of a developer's own machine, reached through Holdfast.\n\
Start with session_bootstrap, or server_info to see what you may do and whether the machine is connected.\n\
A call goes on while the machine's network is away, and its answer arrives once; do not repeat a call that is still running.\n\
status or error in_progress means that the call goes on: read_result waits for its result, cancel_result stops it.\n\
error.retryable = true means that the same call may be sent again: nothing was done, or what was done changed nothing; \
outcome_unknown means that it may have run: look before you repeat it.";

/// rmcp behind the front.
pub(super) struct Rest {
    service: StreamableHttpService<Handler, NeverSessionManager>,
    handler: Handler,
}

#[derive(Clone)]
struct Handler {
    state: Arc<AppState>,
    tools: Arc<ToolSet>,
    changes: watch::Receiver<()>,
}

impl Rest {
    pub fn new(state: &Arc<AppState>, tools: &Arc<ToolSet>, changes: watch::Receiver<()>) -> Rest {
        let handler = Handler { state: Arc::clone(state), tools: Arc::clone(tools), changes };
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_sse_keep_alive(Some(limits::SSE_COMMENT))
            .with_cancellation_token(state.stop.clone())
            .with_max_request_body_bytes(limits::MCP_SMALL_BODY_MAX)
            // Host and Origin were checked for every path of the relay.
            .disable_allowed_hosts();
        let own = handler.clone();
        let service = StreamableHttpService::new(move || Ok(own.clone()), Arc::default(), config);
        Rest { service, handler }
    }

    /// Watches the grant of a caller.
    pub fn revoked(&self, principal: &Arc<Principal>) -> Revoked {
        self.handler.revoked(principal)
    }

    /// The answer to one request. `revision`: what its session agreed on.
    pub async fn answer(
        &self,
        principal: &Arc<Principal>,
        id: &RpcId,
        revision: Option<&'static str>,
        mut parts: Parts,
        body: Bytes,
    ) -> Response {
        let headers = &mut parts.headers;
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.remove("mcp-session-id");
        headers.remove(header::AUTHORIZATION);
        if let Some(revision) = revision {
            headers.insert("mcp-protocol-version", HeaderValue::from_static(revision));
        }
        parts.extensions.insert(Arc::clone(principal));
        let response = self.service.handle(http::Request::from_parts(parts, Full::new(body))).await;
        polish(response.map(Body::new), id).await
    }

    /// The answer to `initialize`, and the revision that was agreed on if it succeeded.
    pub async fn initialize(
        &self,
        principal: &Arc<Principal>,
        id: &RpcId,
        parts: Parts,
        body: Bytes,
    ) -> (Response, Option<&'static str>) {
        #[derive(Deserialize)]
        struct Out {
            result: Agreed,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Agreed {
            protocol_version: String,
        }
        let (parts, body) = self.answer(principal, id, None, parts, body).await.into_parts();
        let body = collect(body).await;
        let agreed = serde_json::from_slice::<Out>(&body).ok().map(|out| out.result.protocol_version);
        let revision = agreed.and_then(|agreed| WITH_SESSIONS.into_iter().find(|known| *known == agreed));
        (Response::from_parts(parts, Body::from(body)), revision)
    }
}

async fn collect(body: Body) -> Bytes {
    // These bodies are in memory already.
    body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default()
}

/// Gives rmcp's answers our headers, and its errors our code; its plain-text errors become JSON-RPC.
async fn polish(response: Response, id: &RpcId) -> Response {
    let (parts, body) = response.into_parts();
    match parts.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes) {
        Some(b"text/event-stream") => reply::event_stream(body),
        Some(b"application/json") => {
            let body = collect(body).await;
            match failure(&body) {
                None => reply::json(parts.status, body),
                Some(mut error) => {
                    error.status = parts.status;
                    error.respond(Some(id))
                }
            }
        }
        _ if parts.status.is_success() => reply::accepted(),
        _ => {
            let error = match parts.status.is_server_error() {
                true => RpcError::internal("the relay failed to answer"),
                false => RpcError::invalid_request("the request is malformed").malformed(),
            };
            error.respond(Some(id))
        }
    }
}

/// An error message of rmcp, as ours.
fn failure(body: &[u8]) -> Option<RpcError> {
    #[derive(Deserialize)]
    struct Out<'a> {
        #[serde(default, borrow)]
        error: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Failure {
        code: i32,
        message: String,
        #[serde(default)]
        data: Option<Value>,
    }
    let error = serde_json::from_slice::<Out<'_>>(body).ok()?.error?;
    let error: Failure = serde_json::from_str(error.get()).ok()?;
    let stable = match ErrorCode(error.code) {
        ErrorCode::METHOD_NOT_FOUND | ErrorCode::RESOURCE_NOT_FOUND => Code::NotFound,
        ErrorCode::INTERNAL_ERROR => Code::InternalError,
        _ => Code::InvalidRequest,
    };
    let data = match error.data {
        Some(Value::Object(data)) => data,
        _ => Map::new(),
    };
    Some(RpcError { code: error.code, stable, message: error.message.into(), data, status: StatusCode::OK })
}

impl Handler {
    fn revoked(&self, principal: &Arc<Principal>) -> Revoked {
        let auth = self.state.auth.clone();
        Revoked { auth, principal: Arc::clone(principal), changes: self.changes.clone() }
    }

    /// The static text, and what the device adds to it.
    async fn instructions(&self, context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
        let own = bootstrap::instructions(&self.state, &self.tools, &principal(context)?).await;
        Ok(own.map_or_else(
            || INSTRUCTIONS.into(),
            |own| format!("{INSTRUCTIONS}\n--- LOCAL SESSION INSTRUCTIONS ---\n{own}"),
        ))
    }
}

fn principal(context: &RequestContext<RoleServer>) -> Result<Arc<Principal>, ErrorData> {
    let parts = context.extensions.get::<Parts>();
    let principal = parts.and_then(|parts| parts.extensions.get::<Arc<Principal>>());
    principal.cloned().ok_or_else(|| ErrorData::internal_error("the request has no caller", None))
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        // Prompts and resources are lists without entries: clients ask for them whatever a server says.
        let capabilities = ServerCapabilities::builder()
            .enable_prompts()
            .enable_resources()
            .enable_logging()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let identity = &self.state.identity;
        let server = Implementation::new(&*identity.server, &*identity.version).with_title("Holdfast");
        let mut info = ServerConfig::new(capabilities).with_server_info(server).with_instructions(INSTRUCTIONS);
        info.protocol_version = ProtocolVersion::V_2025_11_25;
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        const SPOKEN: [ProtocolVersion; 3] =
            [ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];
        Cow::Borrowed(&SPOKEN)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        if is_self_contained(&context) {
            return Err(no_method());
        }
        context.peer.set_peer_info(request.clone());
        Ok(self.negotiate_initialize(&request)?.with_instructions(self.instructions(&context).await?))
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let mut info = self.get_info();
        // Only a self-contained request can be answered with a task.
        info.capabilities.extensions.get_or_insert_default().insert(lasting::TASKS.into(), JsonObject::new());
        let mut result = DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), info);
        result.instructions = Some(self.instructions(&context).await?);
        Ok(result)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|page| page.cursor.is_some()) {
            return Err(ErrorData::invalid_params("there is only one page", None));
        }
        let principal = principal(&context)?;
        let device = self.state.devices.known(&principal.device).map(|room| room.catalogue()).unwrap_or_default();
        let tools = self.tools.listed(principal.role, &device).map(|tool| tool.definition.clone()).collect();
        // What is listed depends on the caller, and a listener is told of changes.
        Ok(ListToolsResult::with_all_items(tools).with_ttl_ms(0).with_cache_scope(CacheScope::Private))
    }

    async fn set_level(&self, _: SetLevelRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        // Nothing is logged to clients; asking a session for less or more of it is no error.
        if is_self_contained(&context) { Err(no_method()) } else { Ok(()) }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::default().with_ttl_ms(0).with_cache_scope(CacheScope::Private))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::default().with_ttl_ms(0).with_cache_scope(CacheScope::Private))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::default().with_ttl_ms(0).with_cache_scope(CacheScope::Private))
    }

    async fn get_prompt(
        &self,
        _: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Err(ErrorData::invalid_params("unknown prompt", None))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Err(ErrorData::resource_not_found("resource not found", Some(serde_json::json!({"uri": request.uri}))))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let wanted = requested.tools_list_changed == Some(true);
        Some(if wanted {
            SubscriptionFilter::builder().tools_list_changed().build()
        } else {
            SubscriptionFilter::new()
        })
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let principal = principal(subscription.request_context())?;
        let mut revoked = self.revoked(&principal);
        let mut changes = self.state.devices.room(&principal.device).catalogue_changes();
        let tells = subscription.accepted().tools_list_changed == Some(true);
        loop {
            tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                () = self.state.stop.cancelled() => return Ok(()),
                () = revoked.next() => return Ok(()),
                changed = changes.changed(), if tells => {
                    if changed.is_err() || subscription.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // rmcp hands over what its typed requests do not accept: a method of ours with senseless parameters, or no method of ours.
        let ours = match request.method.as_str() {
            "server/discover"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "subscriptions/listen" => true,
            "initialize" | "logging/setLevel" => !is_self_contained(&context),
            _ => false,
        };
        match ours {
            true => Err(ErrorData::invalid_params("params do not fit this method", None)),
            false => Err(no_method()),
        }
    }
}

/// Whether the request stands for itself; `initialize` and what belongs to sessions do not exist there.
fn is_self_contained(context: &RequestContext<RoleServer>) -> bool {
    context.meta.protocol_version().is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

fn no_method() -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "method not found", None)
}
