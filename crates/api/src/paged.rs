//! Answers that come in pages.

use crate::{Devices, Effects, TokenList};

/// One page of a longer answer.
pub trait Paged {
    /// `after` of the next page; `None` on the last one.
    fn take_next(&mut self) -> Option<String>;
    /// Adds the page that comes next.
    fn append(&mut self, page: Self);
}

macro_rules! paged {
    ($($answer:ident by $items:ident),*) => {$(
        impl Paged for $answer {
            fn take_next(&mut self) -> Option<String> {
                self.next.take()
            }

            fn append(&mut self, mut page: Self) {
                self.$items.append(&mut page.$items);
                self.next = page.next;
            }
        }
    )*};
}

paged!(Devices by devices, Effects by tools, TokenList by tokens);
