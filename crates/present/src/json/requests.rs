//! Requests as JSON.

use super::parts::{Estimate, estimate, finite};
use serde::Serialize;
use systoll_judge::{Figure, Quantiles, RequestCall, RequestCost, Requests};
use systoll_model::Recording;

#[derive(Serialize)]
pub(super) struct WireRequests<'a> {
    windows: u64,
    receives: u64,
    unseen: u64,
    tls: u64,
    http2: u64,
    moves: bool,
    kinds: Vec<WireKind<'a>>,
}

#[derive(Serialize)]
struct WireKind<'a> {
    protocol: &'static str,
    name: &'a str,
    requests: Estimate,
    looked_at: u64,
    cut: u64,
    at_least: bool,
    overlapped: u64,
    calls: Option<WireFigure>,
    calls_of: WireQuantiles,
    needless: Option<WireFigure>,
    toll_ns: Option<f64>,
    waited_ns: Option<f64>,
    took_ns: WireQuantiles,
    by_call: Vec<WireRequestCall>,
}

#[derive(Serialize)]
struct WireFigure {
    mean: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

#[derive(Serialize)]
struct WireQuantiles {
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
}

#[derive(Serialize)]
struct WireRequestCall {
    syscall: String,
    calls: Option<f64>,
    needless: Option<f64>,
}

/// Converts what requests cost to its JSON form.
pub(super) fn wire_requests<'a>(rec: &'a Recording, requests: &Requests) -> WireRequests<'a> {
    WireRequests {
        windows: requests.windows,
        receives: requests.receives,
        unseen: requests.unseen,
        tls: requests.tls,
        http2: requests.http2,
        moves: requests.moves,
        kinds: requests.costs.iter().filter_map(|cost| kind(rec, cost)).collect(),
    }
}

fn kind<'a>(rec: &'a Recording, cost: &RequestCost) -> Option<WireKind<'a>> {
    let kind = rec.request_kinds.get(cost.kind.0 as usize)?;
    Some(WireKind {
        protocol: kind.protocol.name(),
        name: &kind.name,
        requests: estimate(cost.requests),
        looked_at: cost.looked_at,
        cut: cost.cut,
        at_least: cost.at_least,
        overlapped: cost.overlapped,
        calls: cost.calls.map(figure),
        calls_of: quantiles(cost.calls_of),
        needless: cost.needless.map(figure),
        toll_ns: cost.toll_ns.and_then(finite),
        waited_ns: cost.waited_ns.and_then(finite),
        took_ns: quantiles(cost.took_ns),
        by_call: cost.by_call.iter().map(call).collect(),
    })
}

fn figure(figure: Figure) -> WireFigure {
    WireFigure { mean: finite(figure.mean), low: figure.low.and_then(finite), high: figure.high.and_then(finite) }
}

fn quantiles(of: Quantiles) -> WireQuantiles {
    WireQuantiles { p50: of.p50.and_then(finite), p95: of.p95.and_then(finite), p99: of.p99.and_then(finite) }
}

fn call(call: &RequestCall) -> WireRequestCall {
    WireRequestCall { syscall: call.syscall.to_string(), calls: finite(call.calls), needless: finite(call.needless) }
}
