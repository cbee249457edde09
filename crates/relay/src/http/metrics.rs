//! Counts of this relay, for `/metrics`: the same that `server_info` tells of one device, over all of them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, header};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::error::ApiError;
use crate::devices::CountersView;
use crate::operations::OperationCounts;
use crate::state::AppState;

/// Answers by class, since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    by_class: [AtomicU64; 6],
}

impl Counters {
    /// Counts one answer.
    pub(crate) fn answered(&self, status: StatusCode) {
        if let Some(count) = self.by_class.get(usize::from(status.as_u16() / 100)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Answers by outcome: successful, the client's error, ours.
    pub(crate) fn by_outcome(&self) -> [(u64, &'static str); 3] {
        let count = |class: usize| self.by_class.get(class).map_or(0, |count| count.load(Ordering::Relaxed));
        [(count(2) + count(3), "successful"), (count(4), "client_error"), (count(5), "server_error")]
    }
}

/// One reading of everything.
#[derive(Debug)]
struct Reading {
    answers: [(u64, &'static str); 3],
    totals: CountersView,
    devices: usize,
    ready: usize,
    active: usize,
    queued: usize,
    detached: usize,
    uncommitted: usize,
    request_keys: usize,
    oldest: Duration,
    operations: OperationCounts,
    workers_live: usize,
    refusing: usize,
    held: usize,
    unsent: usize,
    behind: u64,
}

impl Reading {
    fn take(state: &AppState) -> Reading {
        let mut reading = Reading {
            answers: state.counters.by_outcome(),
            totals: state.devices.counters(),
            devices: 0,
            ready: 0,
            active: 0,
            queued: 0,
            detached: 0,
            uncommitted: 0,
            request_keys: 0,
            oldest: Duration::ZERO,
            operations: state.operations.counts(),
            workers_live: 0,
            refusing: state.operations.refusing(),
            held: 0,
            unsent: 0,
            behind: 0,
        };
        for worker in state.operations.workers() {
            reading.workers_live += usize::from(worker.live);
            reading.held += worker.held;
            reading.unsent += worker.queued;
            reading.behind = reading.behind.saturating_add(worker.behind);
        }
        for room in state.devices.rooms() {
            let status = room.status();
            let pending = &status.link.pending;
            reading.devices += 1;
            reading.ready += usize::from(status.link.ready);
            reading.active += pending.active;
            reading.queued += pending.queued;
            reading.detached += pending.detached;
            reading.uncommitted += pending.uncommitted;
            reading.request_keys += pending.keyed;
            reading.oldest = reading.oldest.max(status.oldest.unwrap_or_default());
        }
        reading
    }
}

impl Collector for Reading {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut gauge = |name: &str, help: &str, value: f64| {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        gauge("devices", "Devices seen or called since the start", self.devices as f64)?;
        gauge("devices_ready", "Devices whose link is ready", self.ready as f64)?;
        gauge("calls_pending", "Calls held", self.active as f64)?;
        gauge("calls_pending_queued", "Calls waiting to be sent", self.queued as f64)?;
        gauge("calls_pending_detached", "Calls sent whose link is down", self.detached as f64)?;
        gauge("calls_pending_uncommitted", "Calls ended and not yet handed over", self.uncommitted as f64)?;
        gauge("calls_pending_request_keys", "Calls with an idempotency key", self.request_keys as f64)?;
        gauge("calls_pending_oldest_seconds", "Age of the oldest call", self.oldest.as_secs_f64())?;
        gauge("workers_live", "Workers connected and recovered", self.workers_live as f64)?;
        gauge("operations_living", "Operations that have not ended", self.held as f64)?;
        gauge("operations_living_queued", "Of them never sent", self.unsent as f64)?;
        let help = "Devices whose operations the store refuses to keep";
        gauge("operations_refusing_devices", help, self.refusing as f64)?;
        gauge("operation_output_behind_bytes", "Output at workers that is not committed here", self.behind as f64)?;
        let mut counter = |name: &str, help: &str, value: u64| {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)
        };
        for (value, class) in self.answers {
            counter(&format!("http_answers_{class}"), "HTTP answers of that class", value)?;
        }
        // By its serialised names, so that a new counter shows here by itself.
        for totals in [serde_json::to_value(self.totals), serde_json::to_value(self.operations)] {
            let Ok(serde_json::Value::Object(totals)) = totals else { continue };
            for (name, value) in totals {
                counter(&name, "Count over all devices since the start", value.as_u64().unwrap_or_default())?;
            }
        }
        Ok(())
    }
}

/// `GET /metrics` in the OpenMetrics text format.
pub(super) async fn metrics(State(state): State<Arc<AppState>>) -> Result<Response, ApiError> {
    let mut registry = Registry::with_prefix("holdfast");
    registry.register_collector(Box::new(Reading::take(&state)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).map_err(|_| {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "the counts cannot be written")
    })?;
    Ok(([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response())
}
