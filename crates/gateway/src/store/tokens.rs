//! Tokens, in the store of this gateway.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use sinew_tool::ToolError;

use super::{Store, Write};
use crate::shared::{TokenListener, TokenRow, TokenStore};

pub(crate) struct LocalTokens {
    store: Arc<Store>,
    /// Held while the rows are changed and the listener is called, so that it gets the changes in order.
    rows: Mutex<Vec<TokenRow>>,
    listener: OnceLock<TokenListener>,
}

impl LocalTokens {
    pub(crate) fn new(store: Arc<Store>, rows: Vec<TokenRow>) -> LocalTokens {
        LocalTokens { store, rows: Mutex::new(rows), listener: OnceLock::new() }
    }

    fn rows(&self) -> MutexGuard<'_, Vec<TokenRow>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self, rows: &[TokenRow]) {
        if let Some(listener) = self.listener.get() {
            listener(rows.to_vec());
        }
    }
}

impl TokenStore for LocalTokens {
    fn add(&self, token: TokenRow) -> Result<(), ToolError> {
        let mut rows = self.rows();
        self.store.write_awaited(Write::Token(token.clone())).wait()?;
        rows.push(token);
        self.notify(&rows);
        Ok(())
    }

    fn revoke(&self, id: &str) -> Result<(), ToolError> {
        let mut rows = self.rows();
        // It stops working first, whether or not the disk can be written.
        rows.retain(|row| row.id != id);
        self.notify(&rows);
        self.store.write_awaited(Write::Revoke(id.to_owned())).wait()
    }

    fn note_use(&self, id: &str, at: i64) {
        self.store.write(Write::TokenUsed { id: id.to_owned(), at });
    }

    fn listen(&self, listener: TokenListener) {
        let rows = self.rows();
        let _ = self.listener.set(listener);
        self.notify(&rows);
    }
}
