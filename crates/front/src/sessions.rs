//! Sessions of clients that begin with `initialize`: whose they are, and how many there may be.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use sinew_gateway::Principal;
use tokio::time::Instant;

use crate::Limits;

/// A desktop client may rest over lunch with only its event stream open, and few begin a new session by themselves;
/// what is abandoned for longer ends.
const IDLE: Duration = Duration::from_secs(2 * 60 * 60);

pub(crate) struct Sessions {
    pub manager: Arc<LocalSessionManager>,
    book: Mutex<Book>,
    all: usize,
    /// `None` where everyone is the same caller.
    each: Option<usize>,
}

#[derive(Default)]
struct Book {
    open: HashMap<String, Seat>,
    /// The owners of sessions that are being opened.
    opening: Vec<String>,
}

struct Seat {
    owner: Arc<Principal>,
    /// Requests and streams that are open.
    busy: usize,
    /// The ids of requests that are not answered yet.
    ids: HashSet<String>,
    /// Since when nothing is open.
    quiet_since: Instant,
}

/// A place for a session that is being opened; given up when it is dropped.
pub(crate) struct Opening<'a> {
    sessions: &'a Sessions,
    owner: Arc<Principal>,
}

/// A request or stream of a session, open until it is dropped.
pub(crate) struct Visit {
    sessions: Arc<Sessions>,
    session: String,
    id: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoVisit {
    /// Another caller began the session.
    Foreign,
    /// A request with this id is open.
    SameId,
}

impl Sessions {
    pub(crate) fn new(limits: &Limits, is_anonymous: bool) -> Arc<Sessions> {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE);
        let each = (!is_anonymous).then_some(limits.sessions_each);
        Arc::new(Sessions { manager: Arc::new(manager), book: Mutex::default(), all: limits.sessions, each })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a place for a new session. Where there is none, the session that was quiet longest and has nothing open
    /// makes room: one of the same token where that has too many, else any.
    pub(crate) async fn open(&self, who: &Arc<Principal>) -> Result<Opening<'_>, &'static str> {
        let (opening, leaving) = {
            let alive = self.manager.sessions.read().await;
            let mut book = self.book();
            book.open.retain(|session, _| alive.contains_key(session.as_str()));
            let mut leaving = Vec::new();
            if self.each.is_some_and(|each| book.count_of(who) >= each) {
                let own = book.quietest(|owner| owner.id == who.id);
                leaving.push(own.ok_or(
                    "all sessions of this token are in use; end one with DELETE, or give each client its own token",
                )?);
            } else if book.open.len() + book.opening.len() >= self.all {
                leaving.push(book.quietest(|_| true).ok_or("all sessions are in use; try again in some minutes")?);
            }
            leaving.iter().for_each(|session| drop(book.open.remove(session)));
            book.opening.push(who.id.clone());
            (Opening { sessions: self, owner: who.clone() }, leaving)
        };
        self.close(leaving).await;
        Ok(opening)
    }

    /// Notes a request or stream of a session. `None` where there is no such session, which rmcp says then.
    pub(crate) fn visit(
        self: &Arc<Self>,
        session: &str,
        who: &Principal,
        id: Option<String>,
    ) -> Result<Option<Visit>, NoVisit> {
        let mut book = self.book();
        let Some(seat) = book.open.get_mut(session) else { return Ok(None) };
        if seat.owner.id != who.id {
            return Err(NoVisit::Foreign);
        }
        if let Some(id) = &id
            && !seat.ids.insert(id.clone())
        {
            return Err(NoVisit::SameId);
        }
        seat.busy += 1;
        Ok(Some(Visit { sessions: self.clone(), session: session.to_owned(), id }))
    }

    /// Ends the sessions whose callers are `gone`.
    pub(crate) async fn end(&self, gone: impl Fn(&Principal) -> bool) {
        let ended: Vec<String> = {
            let mut book = self.book();
            let ended: Vec<_> = book.open.iter().filter(|(_, seat)| gone(&seat.owner)).map(|it| it.0.clone()).collect();
            ended.iter().for_each(|session| drop(book.open.remove(session)));
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

impl Book {
    fn count_of(&self, who: &Principal) -> usize {
        self.open.values().filter(|seat| seat.owner.id == who.id).count()
            + self.opening.iter().filter(|owner| **owner == who.id).count()
    }

    fn quietest(&self, fits: impl Fn(&Principal) -> bool) -> Option<String> {
        let quiet = self.open.iter().filter(|(_, seat)| seat.busy == 0 && fits(&seat.owner));
        quiet.min_by_key(|(_, seat)| seat.quiet_since).map(|(session, _)| session.clone())
    }
}

impl Opening<'_> {
    /// The session was opened under this id.
    pub(crate) fn opened(self, session: &str) {
        let seat = Seat { owner: self.owner.clone(), busy: 0, ids: HashSet::new(), quiet_since: Instant::now() };
        self.sessions.book().open.insert(session.to_owned(), seat);
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        let mut book = self.sessions.book();
        if let Some(place) = book.opening.iter().position(|owner| *owner == self.owner.id) {
            book.opening.swap_remove(place);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut book = self.sessions.book();
        let Some(seat) = book.open.get_mut(&self.session) else { return };
        seat.busy = seat.busy.saturating_sub(1);
        seat.quiet_since = Instant::now();
        if let Some(id) = &self.id {
            seat.ids.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use sinew_gateway::Role;

    use super::*;

    fn sessions(all: usize, each: usize) -> Arc<Sessions> {
        Sessions::new(&Limits { sessions: all, sessions_each: each, ..Limits::default() }, false)
    }

    async fn open(sessions: &Arc<Sessions>, who: &Arc<Principal>) -> Result<String, &'static str> {
        let opening = sessions.open(who).await?;
        let (session, _) = sessions.manager.create_session().await.map_err(|_| "no session")?;
        opening.opened(&session);
        Ok(session.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn the_session_that_was_quiet_longest_makes_room_and_one_with_a_stream_does_not() {
        let (sessions, ada) = (sessions(3, 2), Arc::new(Principal::new("ada", Role::Client)));
        let first = open(&sessions, &ada).await.expect("a place");
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = open(&sessions, &ada).await.expect("a place");
        let stream = sessions.visit(&first, &ada, None);
        let third = open(&sessions, &ada).await.expect("the second makes room");
        let is_there = |session: &str| sessions.visit(session, &ada, None).is_ok_and(|visit| visit.is_some());
        assert_eq!((is_there(&first), is_there(&second), is_there(&third)), (true, false, true));
        let _other = sessions.visit(&third, &ada, None);
        assert!(open(&sessions, &ada).await.is_err_and(|why| why.contains("this token")));
        drop(stream);
        open(&sessions, &ada).await.expect("the first makes room");
        let (bob, eve) = (Arc::new(Principal::new("bob", Role::Client)), Arc::new(Principal::new("eve", Role::Client)));
        open(&sessions, &bob).await.expect("a place");
        open(&sessions, &eve).await.expect("somebody quiet makes room for a new token");
        assert_eq!(sessions.book().open.len(), 3);
    }

    #[tokio::test]
    async fn places_are_taken_before_sessions_are_there() {
        let (sessions, ada) = (sessions(9, 2), Arc::new(Principal::new("ada", Role::Client)));
        let first = sessions.open(&ada).await.expect("a place");
        let _second = sessions.open(&ada).await.expect("a place");
        assert!(sessions.open(&ada).await.is_err());
        drop(first);
        assert!(sessions.open(&ada).await.is_ok(), "one that failed leaves its place");
    }

    #[tokio::test]
    async fn an_id_is_used_once_at_a_time() {
        let (sessions, ada) = (sessions(9, 9), Arc::new(Principal::new("ada", Role::Client)));
        let session = open(&sessions, &ada).await.expect("a place");
        let visit = |id: &str| sessions.visit(&session, &ada, Some(id.to_owned()));
        let first = visit("1");
        assert!(first.is_ok() && visit("2").is_ok());
        assert_eq!(visit("1").map(drop), Err(NoVisit::SameId));
        drop(first);
        assert!(visit("1").is_ok());
        let stranger = Principal::new("eve", Role::Client);
        assert_eq!(sessions.visit(&session, &stranger, None).map(drop), Err(NoVisit::Foreign));
    }
}
