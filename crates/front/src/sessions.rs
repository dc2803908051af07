//! Sessions of clients that start with `initialize`: who owns them, and how many there may be.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use sinew_gateway::Principal;
use tokio::time::Instant;

use crate::FrontLimits;
use crate::revision::Revision;

/// Long enough for a desktop client that is left alone for a while: few clients start a new session by themselves.
const IDLE: Duration = Duration::from_secs(2 * 60 * 60);

pub(crate) struct Sessions {
    pub manager: Arc<LocalSessionManager>,
    table: Mutex<SessionTable>,
    all: usize,
    /// `None` when all clients are the same caller.
    each: Option<usize>,
}

#[derive(Default)]
struct SessionTable {
    open: HashMap<String, OpenSession>,
    /// The owners of sessions that are being opened.
    opening: Vec<String>,
}

struct OpenSession {
    owner: Arc<Principal>,
    /// Requests and streams that are open.
    busy: usize,
    /// The ids of unanswered requests.
    ids: HashSet<String>,
    revision: Revision,
    /// Since when nothing is open.
    idle_since: Instant,
}

/// Reserves room for a session that is being opened; freed when it is dropped.
pub(crate) struct SessionSlot<'a> {
    sessions: &'a Sessions,
    owner: Arc<Principal>,
}

/// A request or stream of a session, open until it is dropped.
pub(crate) struct SessionUse {
    sessions: Arc<Sessions>,
    session: String,
    id: Option<String>,
    revision: Revision,
}

impl SessionUse {
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SessionRefusal {
    /// The session belongs to another caller.
    Foreign,
    /// A request with this id is open.
    SameId,
}

impl Sessions {
    pub(crate) fn new(limits: &FrontLimits, is_anonymous: bool) -> Arc<Sessions> {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE);
        let each = (!is_anonymous).then_some(limits.sessions_each);
        Arc::new(Sessions { manager: Arc::new(manager), table: Mutex::default(), all: limits.sessions, each })
    }

    /// How many there are; some may have ended already.
    pub(crate) fn count(&self) -> usize {
        self.table().open.len()
    }

    fn table(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves room for a new session. When there is none, the session that was idle longest and has nothing open is
    /// closed: one of the same token when that has too many, else any.
    pub(crate) async fn open(&self, who: &Arc<Principal>) -> Result<SessionSlot<'_>, &'static str> {
        let (slot, closing) = {
            let alive = self.manager.sessions.read().await;
            let mut table = self.table();
            table.open.retain(|session, _| alive.contains_key(session.as_str()));
            let mut closing = Vec::new();
            if self.each.is_some_and(|each| table.count_of(who) >= each) {
                let own = table.idlest(|owner| owner.id == who.id);
                closing.push(own.ok_or(
                    "all sessions of this token are in use; end one with DELETE, or give each client a token of its own",
                )?);
            } else if table.open.len() + table.opening.len() >= self.all {
                closing.push(table.idlest(|_| true).ok_or("all sessions are in use; try again in some minutes")?);
            }
            closing.iter().for_each(|session| drop(table.open.remove(session)));
            table.opening.push(who.id.clone());
            (SessionSlot { sessions: self, owner: who.clone() }, closing)
        };
        self.close(closing).await;
        Ok(slot)
    }

    /// Records a request or stream of a session. `None` when there is no such session; rmcp then answers so.
    pub(crate) fn start_use(
        self: &Arc<Self>,
        session: &str,
        who: &Principal,
        id: Option<String>,
    ) -> Result<Option<SessionUse>, SessionRefusal> {
        let mut table = self.table();
        let Some(open) = table.open.get_mut(session) else { return Ok(None) };
        if open.owner.id != who.id {
            return Err(SessionRefusal::Foreign);
        }
        if let Some(id) = &id
            && !open.ids.insert(id.clone())
        {
            return Err(SessionRefusal::SameId);
        }
        open.busy += 1;
        let revision = open.revision;
        Ok(Some(SessionUse { sessions: self.clone(), session: session.to_owned(), id, revision }))
    }

    /// Whether the revision of a session allows batches.
    pub(crate) fn has_batches(&self, session: &str) -> bool {
        self.table().open.get(session).is_some_and(|open| open.revision.has_batches())
    }

    /// Ends the sessions of the callers for whom `is_gone` holds.
    pub(crate) async fn end(&self, is_gone: impl Fn(&Principal) -> bool) {
        let ended: Vec<String> = {
            let mut table = self.table();
            let ended: Vec<_> =
                table.open.iter().filter(|(_, open)| is_gone(&open.owner)).map(|it| it.0.clone()).collect();
            ended.iter().for_each(|session| drop(table.open.remove(session)));
            ended
        };
        self.close(ended).await;
    }

    async fn close(&self, sessions: Vec<String>) {
        for session in sessions {
            if let Err(error) = self.manager.close_session(&session.into()).await {
                tracing::debug!(%error, "a session could not be closed");
            }
        }
    }
}

impl SessionTable {
    fn count_of(&self, who: &Principal) -> usize {
        self.open.values().filter(|open| open.owner.id == who.id).count()
            + self.opening.iter().filter(|owner| **owner == who.id).count()
    }

    fn idlest(&self, fits: impl Fn(&Principal) -> bool) -> Option<String> {
        let idle = self.open.iter().filter(|(_, open)| open.busy == 0 && fits(&open.owner));
        idle.min_by_key(|(_, open)| open.idle_since).map(|(session, _)| session.clone())
    }
}

impl SessionSlot<'_> {
    /// The session was opened under this id.
    pub(crate) fn opened(self, session: &str, revision: Revision) {
        let (owner, idle_since) = (self.owner.clone(), Instant::now());
        let open = OpenSession { owner, busy: 0, ids: HashSet::new(), revision, idle_since };
        self.sessions.table().open.insert(session.to_owned(), open);
    }
}

impl Drop for SessionSlot<'_> {
    fn drop(&mut self) {
        let mut table = self.sessions.table();
        if let Some(index) = table.opening.iter().position(|owner| *owner == self.owner.id) {
            table.opening.swap_remove(index);
        }
    }
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        let mut table = self.sessions.table();
        let Some(open) = table.open.get_mut(&self.session) else { return };
        open.busy = open.busy.saturating_sub(1);
        open.idle_since = Instant::now();
        if let Some(id) = &self.id {
            open.ids.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use sinew_gateway::Role;

    use super::*;

    fn sessions(all: usize, each: usize) -> Arc<Sessions> {
        Sessions::new(&FrontLimits { sessions: all, sessions_each: each, ..FrontLimits::default() }, false)
    }

    async fn open(sessions: &Arc<Sessions>, who: &Arc<Principal>) -> Result<String, &'static str> {
        let slot = sessions.open(who).await?;
        let (session, _) = sessions.manager.create_session().await.map_err(|_| "no session")?;
        slot.opened(&session, Revision::June2025);
        Ok(session.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn the_session_that_was_idle_longest_is_closed_and_one_with_a_stream_is_not() {
        let (sessions, ada) = (sessions(3, 2), Arc::new(Principal::new("ada", Role::Client)));
        let first = open(&sessions, &ada).await.expect("room");
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = open(&sessions, &ada).await.expect("room");
        let stream = sessions.start_use(&first, &ada, None);
        let third = open(&sessions, &ada).await.expect("the second is closed");
        let is_there = |session: &str| sessions.start_use(session, &ada, None).is_ok_and(|used| used.is_some());
        assert_eq!((is_there(&first), is_there(&second), is_there(&third)), (true, false, true));
        let _other = sessions.start_use(&third, &ada, None);
        assert!(open(&sessions, &ada).await.is_err_and(|why| why.contains("this token")));
        drop(stream);
        open(&sessions, &ada).await.expect("the first is closed");
        let (bob, eve) = (Arc::new(Principal::new("bob", Role::Client)), Arc::new(Principal::new("eve", Role::Client)));
        open(&sessions, &bob).await.expect("room");
        open(&sessions, &eve).await.expect("an idle session is closed for a new token");
        assert_eq!(sessions.table().open.len(), 3);
    }

    #[tokio::test]
    async fn room_is_reserved_before_a_session_is_open() {
        let (sessions, ada) = (sessions(9, 2), Arc::new(Principal::new("ada", Role::Client)));
        let first = sessions.open(&ada).await.expect("room");
        let _second = sessions.open(&ada).await.expect("room");
        assert!(sessions.open(&ada).await.is_err());
        drop(first);
        assert!(sessions.open(&ada).await.is_ok(), "a failed opening frees its room");
    }

    #[tokio::test]
    async fn an_id_is_used_by_one_open_request_at_a_time() {
        let (sessions, ada) = (sessions(9, 9), Arc::new(Principal::new("ada", Role::Client)));
        let session = open(&sessions, &ada).await.expect("room");
        let start = |id: &str| sessions.start_use(&session, &ada, Some(id.to_owned()));
        let first = start("1");
        assert!(first.is_ok() && start("2").is_ok());
        assert_eq!(start("1").map(drop), Err(SessionRefusal::SameId));
        drop(first);
        assert!(start("1").is_ok());
        let stranger = Principal::new("eve", Role::Client);
        assert_eq!(sessions.start_use(&session, &stranger, None).map(drop), Err(SessionRefusal::Foreign));
    }
}
