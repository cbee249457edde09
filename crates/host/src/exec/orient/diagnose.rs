//! diagnose_runtime: what the executor and the engines around it are doing. Names no argument, path or output.

use holdfast_core::code::ToolError;
use holdfast_core::limits;
use serde_json::{Value, json};

use crate::exec::call::Call;
use crate::exec::env::Env;
use crate::exec::files::Nothing;

/// Groups of the link and the engines come from the hook and stand beside ours; ours win.
pub(in crate::exec) fn diagnose_runtime(env: &Env, call: &Call) -> Result<Value, ToolError> {
    let Nothing {} = call.arguments()?;
    let mut all = match (env.diagnose)() {
        Value::Object(groups) => groups,
        _ => serde_json::Map::new(),
    };
    let own = json!({
        "name": "holdfast",
        "version": env!("CARGO_PKG_VERSION"),
        "runtime": {
            "platform": std::env::consts::OS,
            "architecture": std::env::consts::ARCH,
            "uptime_ms": env.started.elapsed().as_millis() as u64,
        },
        "policy": call.policy,
        "calls": {
            "running": (env.running)(),
            "maximum": limits::DAEMON_CALLS_MAX,
            "reserved_for_control": limits::CONTROL_RESERVE,
        },
        "processes": env.trees.counts(),
        "sessions": env.sessions.counts(),
        "results": env.results.counts(),
        "execution_guardrails": {
            "process_groups": "enforced",
            "deadlines": "enforced",
            "output_bounds": "enforced",
            "cpu": "not-enforced",
            "memory": "not-enforced",
            "network": "not-enforced",
        },
        "limits": {
            "timeout_seconds_default": limits::EXEC_TIMEOUT_DEFAULT.as_secs(),
            "timeout_seconds_max": limits::EXEC_TIMEOUT_MAX.as_secs(),
            "output_kept_bytes_per_stream": limits::OUTPUT_KEPT,
            "session_output_bytes_per_stream": limits::PROC_OUTPUT,
            "file_bytes_max": limits::FILE_BYTES_MAX,
            "result_bytes_max": limits::RESULT_MAX,
        },
    });
    if let Value::Object(own) = own {
        all.extend(own);
    }
    Ok(Value::Object(all))
}
