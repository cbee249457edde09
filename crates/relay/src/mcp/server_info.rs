//! `server_info`, answered by the relay itself: the groups and paths of base version 1.2.10, and new counts beside them.

use std::sync::Arc;

use holdfast_core::limits;
use holdfast_core::policy::{Policy, Role};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::Mcp;
use super::reply::RpcError;
use crate::Principal;
use crate::devices::{Catalogue, DeviceStatus};

/// The result of the call.
pub(super) fn answer(mcp: &Mcp, principal: &Arc<Principal>) -> Result<Box<RawValue>, RpcError> {
    let room = mcp.state.devices.known(&principal.device);
    let catalogue = room.as_ref().map(|room| room.catalogue()).unwrap_or_default();
    let status = room.map(|room| room.status());
    let identity = &mcp.state.identity;
    let info = json!({
        "name": identity.server,
        "version": identity.version,
        "mcp_url": mcp.state.site.mcp_url(),
        "oauth": crate::oauth::metadata::server(mcp.state.site.origin()),
        "account": {
            "account_id": principal.account,
            "name": principal.account_name,
            "role": principal.role,
            "version": principal.account_version,
        },
        "device": principal.device,
        "authorization": authorization(mcp, principal, &catalogue),
        "authority_summary": summary(principal.role),
        "daemon": daemon(&catalogue, status.as_ref()),
        "worker": worker(mcp, status.as_ref()),
        "tools": effective(mcp, principal, &catalogue),
        "tools_scope": "tools this account may call on this device",
        "tool_delivery": delivery(mcp, principal, &catalogue),
    });
    to_raw_value(&info).map_err(|_| RpcError::internal("server_info could not be written"))
}

fn effective<'a>(mcp: &'a Mcp, principal: &Principal, device: &'a Catalogue) -> Vec<&'a str> {
    mcp.tools.listed(principal.role, device).map(|tool| &*tool.name).collect()
}

fn authorization(mcp: &Mcp, principal: &Principal, device: &Catalogue) -> Value {
    let account = Policy::of(principal.role.profile(), "default");
    let seen = !device.tools.is_empty();
    let both = seen.then(|| device.policy.intersect(&account));
    let tools = effective(mcp, principal, device);
    json!({
        "account_policy": account,
        "account_policy_scope": "what this account's role allows on any device",
        "daemon_policy_ceiling": seen.then_some(&device.policy),
        "effective_policy": both,
        "effective_tools": tools,
        "effective_tool_count": tools.len(),
        "account_role_is_owner": principal.role == Role::Owner,
        "effective_profile_is_full": both.as_ref().is_some_and(|policy| policy.profile == "full"),
        "interpretation": {
            "authoritative_permission_fields": ["authorization.effective_policy", "authorization.effective_tools"],
            "daemon_policy": "the ceiling set on the device; the account's role narrows it further",
            "host_filtering": "the MCP client may show fewer tools than these",
        },
        "summary": summary(principal.role),
    })
}

/// One sentence on what the role allows, before the device narrows it.
fn summary(role: Role) -> &'static str {
    match role {
        Role::Reviewer => "May read files of the workspace.",
        Role::Editor => "May read and change files of the workspace.",
        Role::Operator => "May change files and run any program as the device's user.",
        Role::Owner => "May do everything the device's user may do.",
    }
}

fn daemon(device: &Catalogue, status: Option<&DeviceStatus>) -> Value {
    let ready = status.is_some_and(|status| status.link.ready);
    let seen = !device.tools.is_empty();
    json!({
        "connected": ready,
        "count": usize::from(ready),
        "tool_count": device.tools.len(),
        "connected_at": status.and_then(|status| status.connected_at),
        "last_seen_at": status.and_then(|status| status.last_seen),
        "readiness_verified": ready,
        "readiness_timeout_ms": limits::READINESS_TIMEOUT.as_millis(),
        "liveness_timeout_ms": limits::SILENCE_DEAD.as_millis(),
        "policy": seen.then_some(&device.policy),
        "tools": device.tools,
        "policy_scope": "ceiling set on the device",
        "tools_scope": "tools the device advertises, last known while it is away",
    })
}

fn worker(mcp: &Mcp, status: Option<&DeviceStatus>) -> Value {
    let link = status.map(|status| status.link.clone()).unwrap_or_default();
    let pending = &link.pending;
    let (sessions, kept_bytes) = mcp.sessions.counts();
    json!({
        "pending_calls": {
            "active": pending.active,
            "detached": pending.detached,
            "request_keys": pending.keyed,
            "promoted": pending.promoted,
            "maximum": limits::DEVICE_CALLS_MAX,
            "oldest_ms": status.and_then(|status| status.oldest).map_or(0, |oldest| oldest.as_millis()),
            "by_tool": pending.by_tool,
            "queued": pending.queued,
            "sent": pending.sent,
            "uncommitted": pending.uncommitted,
        },
        "daemon_candidates": link.candidates,
        "daemon_probes": link.probing,
        "sockets_live": {
            "authenticated": link.candidates + link.probing + usize::from(link.ready),
            "ready": usize::from(link.ready),
            "probing": link.probing,
            "candidates": link.candidates,
        },
        "sessions": {"open": sessions, "kept_bytes": kept_bytes},
        "observability": observability(mcp),
    })
}

fn observability(mcp: &Mcp) -> Value {
    let totals = mcp.state.devices.counters();
    let answers = mcp.state.counters.by_outcome();
    json!({
        "uptime_ms": mcp.now().as_millis(),
        "requests": {
            "total": answers.iter().map(|(count, _)| count).sum::<u64>(),
            "successful": answers[0].0,
            "client_error": answers[1].0,
            "server_error": answers[2].0,
        },
        "calls": {
            "started": totals.calls_started,
            "completed": totals.calls_completed,
            "failed": totals.calls_failed,
            "cancelled": totals.calls_cancelled,
            "timed_out": totals.calls_timed_out,
            "unmatched_results": totals.unmatched_results,
            "expired": totals.calls_expired,
            "unknown": totals.calls_unknown,
            "detached": totals.calls_detached,
            "rebound": totals.calls_rebound,
            "undelivered_results": totals.undelivered_results,
        },
        "sockets": {
            "ready": totals.sockets_ready,
            "disconnected": totals.sockets_lost,
            "protocol_errors": totals.protocol_errors,
            "silent": totals.sockets_silent,
            "frame_gaps": totals.frame_gaps,
            "device_in_use": totals.device_in_use,
        },
    })
}

fn delivery(mcp: &Mcp, principal: &Principal, device: &Catalogue) -> Value {
    let effective = effective(mcp, principal, device).len();
    json!({
        "full_profile_scope": "profile full allows every tool of the device",
        "daemon_advertised_tool_count": device.tools.len(),
        "relay_advertised_tool_count": effective,
        "effective_account_tool_count": effective,
        "relay_advertised_scope": "tools/list of this account on this device",
        "host_exposed_tools_known_to_server": false,
        "host_may_expose_subset": true,
    })
}
