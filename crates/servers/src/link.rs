//! The connection to a server: HTTP or the standard input and output of a process.

use sinew_fetch::{FetchError, HeaderMap};
use sinew_tool::text::{clean_line, log_line};
use sinew_tool::{ErrorKind, ToolError};

use crate::http_exchange::HttpExchange;
use crate::http_link::HttpLink;
use crate::message::ServerMessage;
use crate::process_link::{ProcessExchange, ProcessLink};

/// The longest message that is read: as much as a gateway passes on by default.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 << 20;

pub(crate) enum Link {
    Http(Box<HttpLink>),
    Process(ProcessLink),
}

/// The messages that follow something we sent, up to its answer.
pub(crate) enum Exchange {
    Http(Box<HttpExchange>),
    Process(ProcessExchange),
}

/// What is sent: the text, and what HTTP needs to know about it.
pub(crate) struct Outgoing {
    pub(crate) text: String,
    /// The id of a request; `None` for what gets no answer.
    pub(crate) id: Option<i64>,
    /// Headers that the revision 2026-07-28 wants.
    pub(crate) headers: HeaderMap,
    /// Whether it may be sent twice without harm.
    pub(crate) repeatable: bool,
}

/// Why a server gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkError {
    pub(crate) kind: LinkErrorKind,
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkErrorKind {
    /// Nothing was sent.
    Away,
    /// The request may have arrived.
    Lost,
    /// The server does not know our session any more, and did not handle the request.
    NewSession,
    /// The server has no time for us; nothing was done.
    Busy,
    /// The server refuses us, or sends us elsewhere; nothing was done.
    Denied,
    TooLarge,
    /// The answer cannot be understood.
    Bad,
}

impl LinkError {
    pub(crate) fn new(kind: LinkErrorKind, message: impl Into<String>) -> LinkError {
        LinkError { kind, message: message.into() }
    }

    pub(crate) fn into_tool_error(self, tool: &str) -> ToolError {
        let said = clean_line(&self.message, 500);
        let (kind, what) = match self.kind {
            LinkErrorKind::Away => (ErrorKind::DeviceAway, "nothing was sent, try again later"),
            LinkErrorKind::NewSession => (ErrorKind::DeviceAway, "nothing was done, try again later"),
            LinkErrorKind::Lost => {
                (ErrorKind::DeviceLost, "the call may have had its effect, look before trying again")
            }
            LinkErrorKind::Busy => (ErrorKind::Busy, "nothing was done, try again later"),
            LinkErrorKind::Denied => (ErrorKind::PermissionDenied, "nothing was done"),
            LinkErrorKind::TooLarge => (ErrorKind::TooLarge, "ask for less"),
            LinkErrorKind::Bad => (ErrorKind::BadAnswer, "look at its state before trying again"),
        };
        ToolError::new(kind, format!("`{tool}`: {said}; {what}"))
    }
}

impl From<FetchError> for LinkError {
    fn from(error: FetchError) -> LinkError {
        let kind = match error {
            FetchError::Unreachable(_) => LinkErrorKind::Away,
            FetchError::Lost(_) => LinkErrorKind::Lost,
            FetchError::TooLarge(_) => LinkErrorKind::TooLarge,
            FetchError::Compressed(_) => LinkErrorKind::Bad,
        };
        LinkError::new(kind, error.to_string())
    }
}

impl Link {
    pub(crate) async fn send(&self, outgoing: Outgoing) -> Result<Exchange, LinkError> {
        tracing::debug!("sent to a server: {}", log_line(&outgoing.text));
        match self {
            Link::Http(link) => Ok(Exchange::Http(Box::new(link.send(outgoing).await?))),
            Link::Process(link) => Ok(Exchange::Process(link.send(outgoing).await?)),
        }
    }

    /// A stream of what the server says unasked; `None` where there is none.
    pub(crate) async fn listen(&self) -> Result<Option<Exchange>, LinkError> {
        match self {
            Link::Http(link) => Ok(link.listen().await?.map(|exchange| Exchange::Http(Box::new(exchange)))),
            Link::Process(link) => Ok(Some(Exchange::Process(link.listen()))),
        }
    }

    /// Forgets the session, so that a new one can begin.
    pub(crate) fn reset(&self) {
        if let Link::Http(link) = self {
            link.reset();
        }
    }

    pub(crate) fn set_revision(&self, revision: &str) {
        if let Link::Http(link) = self {
            link.set_revision(revision);
        }
    }

    /// Gives back what an idle server need not hold.
    pub(crate) fn rest(&self) {
        if let Link::Http(link) = self {
            link.rest();
        }
    }

    pub(crate) fn is_http(&self) -> bool {
        matches!(self, Link::Http(_))
    }

    /// Ends our session, as far as the server can be told.
    pub(crate) async fn close(&self) {
        match self {
            Link::Http(link) => link.close().await,
            Link::Process(link) => link.close().await,
        }
    }
}

impl Exchange {
    /// The next message; `None` when there will be no more.
    pub(crate) async fn next(&mut self) -> Result<Option<ServerMessage>, LinkError> {
        match self {
            Exchange::Http(exchange) => exchange.next().await,
            Exchange::Process(exchange) => exchange.next().await,
        }
    }
}
