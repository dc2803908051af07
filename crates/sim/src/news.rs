//! What happens to a virtual board, for whoever wants to show it.

use std::fmt;
use std::sync::Arc;

use sinew_runner::ConnectionNews;

/// What happens to a virtual board. As text it is a sentence.
#[derive(Debug)]
pub enum BoardNews<'a> {
    /// The gateway does not know the board and shows this code to an administrator.
    Waiting {
        code: &'a str,
    },
    Approved,
    Connection(&'a ConnectionNews<'a>),
}

impl fmt::Display for BoardNews<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BoardNews::Waiting { code } => {
                write!(f, "waiting for approval; approve it with `sinew boards approve {code}`")
            }
            BoardNews::Approved => f.write_str("approved"),
            BoardNews::Connection(news) => news.fmt(f),
        }
    }
}

type Listener = dyn Fn(&str, &BoardNews<'_>) + Send + Sync;

/// Hears of boards by their hardware id; by default nobody does.
#[derive(Clone, Default)]
pub struct BoardReport(Option<Arc<Listener>>);

impl BoardReport {
    pub fn to(listener: impl Fn(&str, &BoardNews<'_>) + Send + Sync + 'static) -> BoardReport {
        BoardReport(Some(Arc::new(listener)))
    }

    pub(crate) fn send(&self, board: &str, news: &BoardNews<'_>) {
        if let Some(listener) = &self.0 {
            listener(board, news);
        }
    }
}

impl fmt::Debug for BoardReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "BoardReport(heard)" } else { "BoardReport(unheard)" })
    }
}
