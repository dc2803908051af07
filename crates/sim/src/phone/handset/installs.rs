//! Install sessions of a virtual phone, and the Android that opens them.

use std::collections::BTreeMap;

use super::{Handset, unpoisoned};

/// Install sessions.
#[derive(Default)]
pub(super) struct InstallSessions {
    opened: u32,
    /// Those that are open, with the APKs that were written to them.
    open: BTreeMap<u32, Vec<Vec<u8>>>,
}

impl Handset {
    /// Lets Android be too busy to open install sessions, or open those that wait.
    pub fn set_installer_busy(&self, busy: bool) {
        self.shared.installer_busy.send_replace(busy);
    }

    /// The number of a new install session; `None` where too many are open. It is opened also where nobody waits for it
    /// any more, as Android does.
    pub(in crate::phone) async fn open_session(&self, most: usize) -> Option<u32> {
        let handset = self.clone();
        let opening = tokio::spawn(async move {
            let mut busy = handset.shared.installer_busy.subscribe();
            let _ = busy.wait_for(|busy| !busy).await;
            let mut sessions = unpoisoned(&handset.shared.sessions);
            (sessions.open.len() < most).then(|| {
                sessions.opened += 1;
                let number = 1_000_000 + sessions.opened;
                sessions.open.insert(number, Vec::new());
                number
            })
        });
        opening.await.ok().flatten()
    }

    /// `false` where there is no such session.
    pub(in crate::phone) fn write_session(&self, number: &str, apk: Vec<u8>) -> bool {
        let mut sessions = unpoisoned(&self.shared.sessions);
        let session = number.parse().ok().and_then(|number: u32| sessions.open.get_mut(&number));
        session.map(|session| session.push(apk)).is_some()
    }

    pub(in crate::phone) fn take_session(&self, number: &str) -> Option<Vec<Vec<u8>>> {
        unpoisoned(&self.shared.sessions).open.remove(&number.parse().ok()?)
    }

    /// How many install sessions are open.
    pub fn open_sessions(&self) -> usize {
        unpoisoned(&self.shared.sessions).open.len()
    }

    /// How many install sessions were ever opened.
    pub fn opened_sessions(&self) -> u32 {
        unpoisoned(&self.shared.sessions).opened
    }
}
