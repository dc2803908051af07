//! Routines that people make of calls. Whoever composes the gateway knows their files.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use http::Response;
use sinew_api::{DraftRoutine, NewRoutine, RoutineDraft, SavedRoutine};
use sinew_tool::{BoxFuture, ErrorKind, ToolError, json};

use crate::api::{Authenticated, Change, answer, body};
use crate::state::FrontState;

/// The files of the gateway's routines.
pub trait RoutineFiles: Send + Sync {
    /// The text of a routine that does the same as calls in the journal.
    fn draft(&self, wanted: DraftRoutine) -> BoxFuture<'_, Result<RoutineDraft, ToolError>>;
    /// Writes a new file.
    fn save(&self, routine: NewRoutine) -> BoxFuture<'_, Result<SavedRoutine, ToolError>>;
}

fn files(front: &FrontState) -> Result<&dyn RoutineFiles, ToolError> {
    front.routines.as_deref().ok_or_else(|| ToolError::new(ErrorKind::Unsupported, "this gateway has no routines"))
}

pub(crate) async fn draft(State(front): State<Arc<FrontState>>, request: Request) -> Response<Body> {
    let drafted = async {
        let wanted = body(&front, request).await?;
        files(&front)?.draft(wanted).await
    };
    answer(drafted.await)
}

pub(crate) async fn save(
    State(front): State<Arc<FrontState>>,
    Authenticated(who): Authenticated,
    request: Request,
) -> Response<Body> {
    let saved = async {
        let routine: NewRoutine = body(&front, request).await?;
        let details = json!({"name": routine.name});
        let saved = files(&front)?.save(routine).await;
        Change { what: "save_routine", device: None, details }.record(&front, &who, || saved)
    };
    answer(saved.await)
}
