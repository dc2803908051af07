//! One page of a list that may be long: thousands of devices cost neither a client's memory nor a model's context.

use sinew_tool::{ErrorKind, ToolError};

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageOf<T> {
    pub items: Vec<T>,
    /// How many there are on all pages.
    pub total: usize,
    /// What the next page begins after; `None` on the last page.
    pub next: Option<String>,
}

impl<T> PageOf<T> {
    /// The first `limit` items, at least one, of those that come after the page before. `cursor` names an item.
    pub(crate) fn collect(
        all: impl Iterator<Item = T>,
        is_after: impl Fn(&T) -> bool,
        limit: usize,
        cursor: impl Fn(&T) -> String,
    ) -> PageOf<T> {
        let mut page = PageOf { items: Vec::new(), total: 0, next: None };
        for item in all {
            page.total += 1;
            if page.next.is_some() || !is_after(&item) {
                continue;
            }
            match page.items.last().filter(|_| page.items.len() >= limit) {
                Some(last) => page.next = Some(cursor(last)),
                None => page.items.push(item),
            }
        }
        page
    }

    pub fn map<U>(self, change: impl FnMut(T) -> U) -> PageOf<U> {
        PageOf { items: self.items.into_iter().map(change).collect(), total: self.total, next: self.next }
    }
}

/// Work that takes longer than calls should wait, such as looking at every device.
pub(crate) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ToolError::new(ErrorKind::Internal, format!("the work failed: {error}")))
}

/// Bytes of a search. Every word is looked for in every item.
const MAX_SEARCH: usize = 256;

/// The words of a search, in lower case.
pub(crate) fn search_words(search: Option<&str>) -> Result<Vec<String>, ToolError> {
    let search = search.unwrap_or_default();
    if search.len() > MAX_SEARCH {
        let message = format!("`search` is longer than {MAX_SEARCH} bytes; some of its words find the same");
        return Err(ToolError::new(ErrorKind::InvalidArguments, message));
    }
    Ok(search.split_whitespace().map(str::to_lowercase).collect())
}

/// A cursor that no page gave.
pub(crate) fn unknown_cursor() -> ToolError {
    ToolError::new(ErrorKind::BadCursor, "`after` must be the `next` of the last answer; begin again without it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_every_item_once_and_the_last_one_leads_nowhere() {
        let all = [1, 3, 5, 7, 9];
        for limit in 1..=6 {
            let (mut seen, mut after) = (Vec::new(), 0);
            loop {
                let page = PageOf::collect(all.into_iter(), |item| *item > after, limit, i32::to_string);
                assert!(page.items.len() <= limit && page.total == all.len());
                seen.extend(page.items);
                match page.next {
                    Some(next) => after = next.parse().expect("a number"),
                    None => break,
                }
            }
            assert_eq!(seen, all, "pages of {limit}");
        }
    }
}
