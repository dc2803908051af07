//! The cluster that the gateway is a part of. Whoever composes the gateway knows it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use http::Response;
use sinew_api::ClusterState;
use sinew_tool::{ErrorKind, ToolError};

use crate::api::answer;
use crate::state::FrontState;

/// Shows the cluster as this gateway sees it.
pub trait ClusterView: Send + Sync {
    fn state(&self) -> ClusterState;
}

pub(crate) async fn cluster(State(front): State<Arc<FrontState>>) -> Response<Body> {
    answer(front.cluster.as_ref().map(|cluster| cluster.state()).ok_or_else(|| {
        let message =
            "this gateway is not part of a cluster; add `[cluster]` to its configuration, see docs/cluster.md";
        ToolError::new(ErrorKind::Unsupported, message)
    }))
}
