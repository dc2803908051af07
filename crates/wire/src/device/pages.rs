//! The tool list in pages that fit an MQTT message. The cursor is the name of the next page's first tool.

use alloc::format;
use alloc::string::String;
use core::fmt::{self, Display};

use super::board::BoardDialect;
use super::spec::{ToolSpec, list};
use super::write::{Quoted, length};

/// The budget of one page: brokers on the boards' side take messages of 8,192 bytes.
pub const PAGE_BYTES: usize = 8000;

/// Room for the cursor and the closing of the page, as the firmware reckons it.
const MARGIN: usize = 30;

const OPENING: &str = "{\"tools\":[";

/// One page of the list, as a `tools/list` result.
pub(super) struct ToolPage<'a, Tools> {
    tools: Tools,
    first: usize,
    count: usize,
    user_tools: bool,
    next: Option<&'a str>,
}

/// Which tools are on the page that a cursor names, or the error that the cursor gets.
pub(super) fn page<'a, Tools: Iterator<Item = &'a ToolSpec> + Clone>(
    tools: Tools,
    cursor: &str,
    user_tools: bool,
    dialect: BoardDialect,
) -> Result<ToolPage<'a, Tools>, String> {
    let first = match cursor {
        "" => Some(0),
        cursor => tools.clone().position(|tool| tool.name == cursor),
    };
    let mut page = ToolPage { tools, first: first.unwrap_or(usize::MAX), count: 0, user_tools, next: None };
    let mut bytes = OPENING.len();
    for tool in page.rest() {
        let is_first = page.count == 0;
        let entry = length(tool);
        // The firmware writes a comma behind every tool, and takes the last one back.
        let commas = if is_first { 1 } else { 2 };
        let fits = bytes + entry + commas + MARGIN <= PAGE_BYTES;
        // A tool bigger than a page gets one of its own; the firmware never comes past it.
        let alone = is_first && dialect == BoardDialect::Standard;
        if !fits && !alone {
            page.next = Some(&tool.name);
            break;
        }
        bytes += entry + usize::from(!is_first);
        page.count += 1;
    }
    if dialect == BoardDialect::Firmware && page.count == 0 {
        return Err(format!("Failed to add tool {} because of payload size limit", page.next.unwrap_or_default()));
    }
    match first {
        Some(_) => Ok(page),
        None => Err(format!("Unknown cursor: {cursor}")),
    }
}

impl<'a, Tools: Iterator<Item = &'a ToolSpec> + Clone> ToolPage<'a, Tools> {
    /// The listed tools from the first of this page on.
    fn rest(&self) -> impl Iterator<Item = &'a ToolSpec> + use<'a, Tools> {
        let user_tools = self.user_tools;
        self.tools.clone().skip(self.first).filter(move |tool| user_tools || !tool.users_only)
    }
}

impl<'a, Tools: Iterator<Item = &'a ToolSpec> + Clone> Display for ToolPage<'a, Tools> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(OPENING)?;
        list(f, self.rest().take(self.count), |f, tool| tool.fmt(f))?;
        match self.next {
            Some(next) => write!(f, "],\"nextCursor\":{}}}", Quoted(next)),
            None => f.write_str("]}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;
    use serde_json::Value;

    fn walk(tools: &[ToolSpec], user_tools: bool, dialect: BoardDialect) -> Result<Vec<Vec<String>>, String> {
        let (mut pages, mut cursor) = (Vec::new(), String::new());
        loop {
            let text = page(tools.iter(), &cursor, user_tools, dialect)?.to_string();
            assert!(text.len() <= PAGE_BYTES || dialect == BoardDialect::Standard);
            let page: Value = serde_json::from_str(&text).unwrap();
            let names = page["tools"].as_array().unwrap().iter();
            pages.push(names.map(|tool| tool["name"].as_str().unwrap().to_string()).collect());
            match page.get("nextCursor") {
                Some(next) => cursor = next.as_str().unwrap().to_string(),
                None => return Ok(pages),
            }
        }
    }

    fn tools(sizes: &[usize]) -> Vec<ToolSpec> {
        let spec = |(index, size): (usize, &usize)| ToolSpec::new(format!("t{index}"), "x".repeat(*size));
        sizes.iter().enumerate().map(spec).collect()
    }

    #[test]
    fn a_page_ends_where_that_of_the_firmware_does_to_the_byte() {
        let empty = length(&tools(&[0])[0]);
        // Opening, both entries, a comma after each, and 30 bytes that the firmware keeps free.
        let fits = 8000 - 10 - (empty + 1000) - 2 - 30 - empty;
        let pages = |second| walk(&tools(&[1000, second]), false, BoardDialect::Firmware).unwrap().len();
        assert_eq!((pages(fits), pages(fits + 1)), (1, 2));
    }

    #[test]
    fn many_tools_fill_several_pages_and_none_is_lost() {
        let tools = tools(&[1000; 20]);
        for dialect in [BoardDialect::Standard, BoardDialect::Firmware] {
            let pages = walk(&tools, false, dialect).unwrap();
            assert_eq!(pages.len(), 3);
            assert_eq!(pages.concat(), tools.iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_tool_bigger_than_a_page_stops_the_firmware_only() {
        let tools = tools(&[10, 9000, 10]);
        assert_eq!(walk(&tools, false, BoardDialect::Standard).unwrap().concat().len(), 3);
        let stuck = walk(&tools, false, BoardDialect::Firmware).unwrap_err();
        assert_eq!(stuck, "Failed to add tool t1 because of payload size limit");
    }

    #[test]
    fn user_tools_are_listed_on_request() {
        let tools = [ToolSpec::new("a", ""), ToolSpec::new("b", "").for_users()];
        assert_eq!(walk(&tools, false, BoardDialect::Standard).unwrap().concat(), ["a"]);
        assert_eq!(walk(&tools, true, BoardDialect::Standard).unwrap().concat(), ["a", "b"]);
    }

    #[test]
    fn an_unknown_cursor_is_an_error() {
        let tools = tools(&[10]);
        let refusal = |dialect| page(tools.iter(), "x", false, dialect).err();
        assert_eq!(refusal(BoardDialect::Standard).as_deref(), Some("Unknown cursor: x"));
        assert_eq!(
            refusal(BoardDialect::Firmware).as_deref(),
            Some("Failed to add tool  because of payload size limit")
        );
    }

    #[test]
    fn a_board_without_tools_has_an_empty_list() {
        let page = page([].iter(), "", false, BoardDialect::Standard).unwrap();
        assert_eq!(page.to_string(), "{\"tools\":[]}");
    }
}
