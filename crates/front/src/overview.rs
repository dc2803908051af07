//! `/api/v1/overview`: what goes on, in a few numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use http::Response;
use sinew_api::{CallMinute, FailedCall, Overview};
use sinew_gateway::{CallFailure, MinuteOfCalls};

use crate::api::{Authenticated, answer};
use crate::state::FrontState;

pub(crate) async fn overview(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
) -> Response<Body> {
    let gateway = &front.gateway;
    let counts = gateway.seen_by(&who).counts();
    let mut states = BTreeMap::new();
    for (state, count) in counts.families.values().flatten() {
        *states.entry(state.clone()).or_default() += count;
    }
    let families = counts.families.iter().map(|(family, states)| (family.clone(), states.values().sum())).collect();
    answer(Ok(Overview {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        states,
        families,
        fleet: counts.families.clone(),
        tools: counts.tools,
        minutes: gateway.minutes_of_calls().into_iter().map(minute).collect(),
        failures: gateway.call_failures().into_iter().map(failure).collect(),
        waiting_calls: gateway.approval_requests().len(),
        waiting_boards: gateway.waiting().len(),
        store_problem: gateway.store_problem(),
        config_problem: gateway.config_problem(),
        more: Default::default(),
    }))
}

fn minute(minute: MinuteOfCalls) -> CallMinute {
    let MinuteOfCalls { calls, failures, total_us, slowest_us } = minute;
    CallMinute { calls, failures, mean_us: total_us / calls.max(1), slowest_us }
}

fn failure(failure: CallFailure) -> FailedCall {
    let CallFailure { at, principal, device, tool, outcome } = failure;
    FailedCall { at, principal, device, tool, outcome: outcome.to_owned(), more: Default::default() }
}
