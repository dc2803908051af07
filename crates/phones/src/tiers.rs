//! Two backends of one phone as one: the upper answers what it can, the lower the rest.

use crate::control::PhoneShell;
use crate::logs::{LogQuery, Logs};
use crate::phone::{Capabilities, Foreground, Image, InstalledApp, Phone, PhoneError, PhoneIdentity, Screen, Work};
use crate::touch::{Key, Stroke};
use crate::tree::{Tree, UiNode};

/// Asks `upper` first. Where it says [`PhoneError::Unsupported`], which means that nothing was done,
/// `lower` is asked; where it cannot do it either, both say why.
pub struct Tiered<U, L> {
    pub upper: U,
    pub lower: L,
}

macro_rules! first {
    ($self:ident, $primitive:ident($($argument:ident),*)) => {
        Box::pin(async move {
            match $self.upper.$primitive($($argument),*).await {
                Err(PhoneError::Unsupported { remedy, .. }) => {
                    $self.lower.$primitive($($argument),*).await.map_err(|error| with_reason(error, &remedy))
                }
                answer => answer,
            }
        })
    };
}

/// The lower tier's refusal, with the upper tier's reason where that is another one.
fn with_reason(error: PhoneError, reason: &str) -> PhoneError {
    match error {
        PhoneError::Unsupported { what, remedy } if !remedy.contains(reason) => {
            PhoneError::unsupported(what, format!("{remedy}: {reason}"))
        }
        error => error,
    }
}

impl<U: Phone, L: Phone> Phone for Tiered<U, L> {
    fn about(&self) -> PhoneIdentity {
        self.lower.about()
    }

    fn capabilities(&self) -> Capabilities {
        let (upper, lower) = (self.upper.capabilities(), self.lower.capabilities());
        Capabilities {
            tiers: upper.tiers.into_iter().chain(lower.tiers).collect(),
            multi_touch: upper.multi_touch || lower.multi_touch,
            unicode: upper.unicode || lower.unicode,
            clipboard: upper.clipboard || lower.clipboard,
            busy_tree: upper.busy_tree || lower.busy_tree,
            agent: upper.agent.or(lower.agent),
        }
    }

    fn shell(&self) -> Option<&dyn PhoneShell> {
        self.upper.shell().or_else(|| self.lower.shell())
    }

    fn tree(&self) -> Work<'_, Tree> {
        first!(self, tree())
    }

    fn screenshot(&self) -> Work<'_, Image> {
        first!(self, screenshot())
    }

    fn small_screenshot(&self, max_side: u32, quality: u8) -> Work<'_, Vec<u8>> {
        first!(self, small_screenshot(max_side, quality))
    }

    fn touch<'a>(&'a self, strokes: &'a [Stroke]) -> Work<'a, ()> {
        first!(self, touch(strokes))
    }

    fn key(&self, key: Key) -> Work<'_, ()> {
        first!(self, key(key))
    }

    fn set_text<'a>(&'a self, node: &'a UiNode, text: &'a str) -> Work<'a, ()> {
        first!(self, set_text(node, text))
    }

    fn select<'a>(&'a self, node: &'a UiNode, start: usize, end: usize) -> Work<'a, ()> {
        first!(self, select(node, start, end))
    }

    fn type_text<'a>(&'a self, text: &'a str) -> Work<'a, ()> {
        first!(self, type_text(text))
    }

    fn clipboard(&self) -> Work<'_, Option<String>> {
        first!(self, clipboard())
    }

    fn set_clipboard<'a>(&'a self, text: &'a str) -> Work<'a, ()> {
        first!(self, set_clipboard(text))
    }

    fn foreground(&self) -> Work<'_, Foreground> {
        first!(self, foreground())
    }

    fn screen(&self) -> Work<'_, Screen> {
        first!(self, screen())
    }

    fn logs<'a>(&'a self, query: &'a LogQuery) -> Work<'a, Logs> {
        first!(self, logs(query))
    }

    fn apps(&self) -> Work<'_, Vec<InstalledApp>> {
        first!(self, apps())
    }

    fn open_app<'a>(&'a self, package: &'a str) -> Work<'a, ()> {
        first!(self, open_app(package))
    }

    fn close_app<'a>(&'a self, package: &'a str) -> Work<'a, ()> {
        first!(self, close_app(package))
    }

    fn open_url<'a>(&'a self, url: &'a str) -> Work<'a, ()> {
        first!(self, open_url(url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Knows the clipboard and nothing else.
    #[derive(Default)]
    struct ClipboardTier(Mutex<Option<String>>);

    impl Phone for ClipboardTier {
        fn about(&self) -> PhoneIdentity {
            PhoneIdentity { serial: "upper".to_owned(), ..PhoneIdentity::default() }
        }

        fn capabilities(&self) -> Capabilities {
            Capabilities { tiers: vec!["agent".into()], clipboard: true, ..Capabilities::default() }
        }

        fn clipboard(&self) -> Work<'_, Option<String>> {
            Box::pin(async { Ok(self.0.lock().unwrap().clone()) })
        }
    }

    /// Knows the screen, and refuses the clipboard with a remedy.
    struct ShellTier;

    impl Phone for ShellTier {
        fn about(&self) -> PhoneIdentity {
            PhoneIdentity { serial: "lower".to_owned(), ..PhoneIdentity::default() }
        }

        fn capabilities(&self) -> Capabilities {
            Capabilities { tiers: vec!["shell".into()], ..Capabilities::default() }
        }

        fn screen(&self) -> Work<'_, Screen> {
            Box::pin(async { Ok(Screen { width: 5, ..Screen::default() }) })
        }

        fn set_clipboard<'a>(&'a self, _: &'a str) -> Work<'a, ()> {
            Box::pin(async { Err(PhoneError::unsupported("the clipboard", "start the agent")) })
        }
    }

    #[tokio::test]
    async fn the_upper_tier_answers_first_and_the_lower_the_rest() {
        let phone = Tiered { upper: ClipboardTier::default(), lower: ShellTier };
        assert_eq!(phone.clipboard().await, Ok(None));
        assert_eq!(phone.screen().await.map(|screen| screen.width), Ok(5));
        assert_eq!(phone.about().serial, "lower");
        assert_eq!(phone.capabilities().tiers, ["agent", "shell"]);
    }

    #[tokio::test]
    async fn what_no_tier_can_do_names_the_lower_tiers_remedy() {
        let phone = Tiered { upper: ClipboardTier::default(), lower: ShellTier };
        let error = phone.set_clipboard("x").await.unwrap_err();
        assert!(error.to_string().contains("start the agent"), "{error}");
    }
}
