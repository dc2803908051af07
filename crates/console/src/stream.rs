//! What changes, for pages that are open: one stream for each, which says what kind of thing changed and not how. The
//! pages ask again for what they show, so a slow reader misses nothing.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode};
use sinew_front::ConsoleHost;
use sinew_gateway::{Gateway, Update};
use sinew_tool::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::ConsoleState;
use crate::guard::problem;
use crate::sessions::Session;

/// Changes that come this close together are one: ten thousand boards that connect at once are a few.
const COALESCE_TIME: Duration = Duration::from_millis(300);
/// Pages that are open at once, of all people.
const MAX_STREAMS: usize = 64;
/// Proxies close connections on which nothing comes for a minute.
const PING: Duration = Duration::from_secs(15);

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Kinds of things that change.
const KINDS: [&str; 8] = ["devices", "tools", "events", "approvals", "leases", "calls", "boards", "servers"];

/// Everything up to some change: how many there were, and the number of the last of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ChangeCounts {
    all: u64,
    last: [u64; KINDS.len()],
}

impl ChangeCounts {
    fn add(&mut self, kinds: &BTreeSet<&'static str>) {
        self.all += 1;
        for (kind, last) in KINDS.iter().zip(&mut self.last) {
            if kinds.contains(kind) {
                *last = self.all;
            }
        }
    }

    fn since(&self, seen: u64) -> Vec<&'static str> {
        KINDS.iter().zip(self.last).filter(|(_, last)| *last > seen).map(|(kind, _)| *kind).collect()
    }
}

/// Watches the gateway for all streams together, as long as there is one.
pub(crate) struct Changes {
    gateway: Gateway,
    servers: Option<watch::Receiver<()>>,
    /// Distinguishes the numbers of this run from those of earlier ones.
    run: u64,
    counts: Arc<watch::Sender<ChangeCounts>>,
    watching: Mutex<Weak<Watching>>,
    places: Arc<Semaphore>,
}

static RUNS: AtomicU64 = AtomicU64::new(0);

/// Ends the watch when the last stream drops it.
struct Watching(tokio::task::AbortHandle);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Changes {
    pub(crate) fn new(host: &ConsoleHost) -> Changes {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let run = u64::try_from(now.as_micros()).unwrap_or_default() + RUNS.fetch_add(1, Ordering::Relaxed);
        Changes {
            gateway: host.gateway.clone(),
            servers: host.server_changes(),
            run,
            counts: Arc::new(watch::Sender::new(ChangeCounts::default())),
            watching: Mutex::default(),
            places: Arc::new(Semaphore::new(MAX_STREAMS)),
        }
    }

    fn watch(&self) -> Arc<Watching> {
        let mut kept = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watching) = kept.upgrade() {
            return watching;
        }
        // Nobody watched for a while, so everything may have changed.
        self.counts.send_modify(|counts| counts.add(&KINDS.into_iter().collect()));
        let task = tokio::spawn(count_changes(self.gateway.clone(), self.servers.clone(), self.counts.clone()));
        let watching = Arc::new(Watching(task.abort_handle()));
        *kept = Arc::downgrade(&watching);
        watching
    }
}

async fn count_changes(
    gateway: Gateway,
    mut servers: Option<watch::Receiver<()>>,
    counts: Arc<watch::Sender<ChangeCounts>>,
) {
    let (mut updates, mut approvals, mut calls) = (gateway.watch(), gateway.approval_changes(), gateway.ended_calls());
    let (mut leases, mut boards) = (gateway.lease_changes(), gateway.board_changes());
    loop {
        let mut kinds = BTreeSet::new();
        let due = tokio::time::sleep(Duration::MAX);
        tokio::pin!(due);
        loop {
            let was_empty = kinds.is_empty();
            tokio::select! {
                update = updates.next() => kinds.extend([match update {
                    Update::Tools => "tools",
                    Update::Devices { .. } => "devices",
                    Update::Event { .. } => "events",
                }]),
                changed = approvals.changed() => match changed {
                    Ok(()) => drop(kinds.insert("approvals")),
                    Err(_) => return,
                },
                changed = leases.changed(), if !kinds.contains("leases") => match changed {
                    Ok(()) => drop(kinds.insert("leases")),
                    Err(_) => return,
                },
                changed = calls.changed(), if !kinds.contains("calls") => match changed {
                    Ok(()) => drop(kinds.insert("calls")),
                    Err(_) => return,
                },
                changed = boards.changed(), if !kinds.contains("boards") => match changed {
                    Ok(()) => drop(kinds.insert("boards")),
                    Err(_) => return,
                },
                () = list_change(servers.as_mut()), if !kinds.contains("servers") => drop(kinds.insert("servers")),
                () = &mut due => break,
            }
            if was_empty {
                due.as_mut().reset(tokio::time::Instant::now() + COALESCE_TIME);
            }
        }
        counts.send_modify(|counts| counts.add(&kinds));
    }
}

/// Where there is no list, it never changes.
async fn list_change(list: Option<&mut watch::Receiver<()>>) {
    let is_over = match list {
        Some(list) => list.changed().await.is_err(),
        None => true,
    };
    if is_over {
        std::future::pending::<()>().await;
    }
}

pub(crate) async fn open(
    State(state): State<Arc<ConsoleState>>,
    Extension(session): Extension<Arc<Session>>,
    request: Request,
) -> Response<Body> {
    let Ok(place) = state.changes.places.clone().try_acquire_owned() else {
        let message = format!("{MAX_STREAMS} pages are open already; close some");
        return problem(StatusCode::SERVICE_UNAVAILABLE, "busy", &message);
    };
    let last = request.headers().get(LAST_EVENT).and_then(|id| id.to_str().ok());
    let changes = changes(&state, &session, place, last);
    let mut response = Sse::new(changes).keep_alive(KeepAlive::new().interval(PING)).into_response();
    response.headers_mut().insert(BUFFERING, HeaderValue::from_static("no"));
    response
}

/// The changes after the last one that the page has, which says `reset` where that is not known.
fn changes(
    state: &Arc<ConsoleState>,
    session: &Arc<Session>,
    place: OwnedSemaphorePermit,
    last: Option<&str>,
) -> impl Stream<Item = Result<Event, Infallible>> + use<> {
    let watching = state.changes.watch();
    let counts = state.changes.counts.subscribe();
    let run = state.changes.run;
    let seen = last.and_then(|id| id.split_once('-')).filter(|(of, _)| *of == run.to_string());
    let seen = seen.and_then(|(_, number)| number.parse::<u64>().ok()).filter(|number| *number <= counts.borrow().all);
    let (stopping, ended) = (state.host.stopping.clone(), session.ended.clone());
    let reader = (counts, seen, (place, watching));
    stream::unfold(reader, move |(mut counts, seen, held)| {
        let (stopping, ended) = (stopping.clone(), ended.clone());
        async move {
            let next = async {
                match seen {
                    // A page that is new or came back too late reads everything.
                    None => Some(("reset", Vec::new(), *counts.borrow_and_update())),
                    Some(seen) => {
                        let now = *counts.wait_for(|counts| counts.all > seen).await.ok()?;
                        Some(("change", now.since(seen), now))
                    }
                }
            };
            let (name, kinds, now) = tokio::select! {
                next = next => next?,
                () = stopping.cancelled() => return None,
                () = ended.cancelled() => return None,
            };
            let data = json!({"kinds": kinds}).to_string();
            let event = Event::default().event(name).id(format!("{run}-{}", now.all)).data(data);
            Some((Ok(event), (counts, Some(now.all), held)))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_learns_the_kinds_of_all_changes_it_missed() {
        let mut counts = ChangeCounts::default();
        counts.add(&["devices"].into());
        counts.add(&["calls", "events"].into());
        assert_eq!(counts.since(0), ["devices", "events", "calls"]);
        assert_eq!(counts.since(1), ["events", "calls"]);
        assert!(counts.since(2).is_empty());
    }
}
