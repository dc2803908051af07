//! The tool list in pages that fit an MQTT message. The cursor is the name of the next page's first tool.

use alloc::format;
use alloc::string::{String, ToString};

use super::board::Dialect;
use super::spec::ToolSpec;

/// The budget of one page: brokers on the boards' side take messages of 8,192 bytes.
pub const PAGE_BYTES: usize = 8000;

/// Room for the cursor and the closing of the page, as the firmware reckons it.
const MARGIN: usize = 30;

/// One page as the JSON of a `tools/list` result, or the error that the cursor gets.
pub(super) fn page<'a>(
    tools: impl Iterator<Item = &'a ToolSpec>,
    cursor: &str,
    user_tools: bool,
    dialect: Dialect,
) -> Result<String, String> {
    let mut page = String::from("{\"tools\":[");
    let empty = page.len();
    let mut next = None;
    let mut found = cursor.is_empty();
    for tool in tools {
        found = found || tool.name == cursor;
        if !found || (tool.users_only && !user_tools) {
            continue;
        }
        let entry = tool.to_json().to_string();
        let is_first = page.len() == empty;
        // The firmware writes a comma behind every tool, and takes the last one back.
        let commas = if is_first { 1 } else { 2 };
        let fits = page.len() + entry.len() + commas + MARGIN <= PAGE_BYTES;
        // A tool bigger than a page gets one of its own; the firmware never comes past it.
        let alone = is_first && dialect == Dialect::Standard;
        if !fits && !alone {
            next = Some(tool.name.as_str());
            break;
        }
        if !is_first {
            page.push(',');
        }
        page.push_str(&entry);
    }
    if dialect == Dialect::Firmware && page.len() == empty {
        return Err(format!("Failed to add tool {} because of payload size limit", next.unwrap_or_default()));
    }
    if !found {
        return Err(format!("Unknown cursor: {cursor}"));
    }
    page.push(']');
    if let Some(next) = next {
        page.push_str(",\"nextCursor\":");
        page.push_str(&serde_json::Value::from(next).to_string());
    }
    page.push('}');
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use serde_json::Value;

    fn walk(tools: &[ToolSpec], user_tools: bool, dialect: Dialect) -> Result<Vec<Vec<String>>, String> {
        let (mut pages, mut cursor) = (Vec::new(), String::new());
        loop {
            let text = page(tools.iter(), &cursor, user_tools, dialect)?;
            assert!(text.len() <= PAGE_BYTES || dialect == Dialect::Standard);
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
    fn many_tools_fill_several_pages_and_none_is_lost() {
        let tools = tools(&[1000; 20]);
        for dialect in [Dialect::Standard, Dialect::Firmware] {
            let pages = walk(&tools, false, dialect).unwrap();
            assert_eq!(pages.len(), 3);
            assert_eq!(pages.concat(), tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_tool_bigger_than_a_page_stops_the_firmware_only() {
        let tools = tools(&[10, 9000, 10]);
        assert_eq!(walk(&tools, false, Dialect::Standard).unwrap().concat().len(), 3);
        let stuck = walk(&tools, false, Dialect::Firmware).unwrap_err();
        assert_eq!(stuck, "Failed to add tool t1 because of payload size limit");
    }

    #[test]
    fn user_tools_are_listed_on_request() {
        let tools = [ToolSpec::new("a", ""), ToolSpec::new("b", "").for_users()];
        assert_eq!(walk(&tools, false, Dialect::Standard).unwrap().concat(), ["a"]);
        assert_eq!(walk(&tools, true, Dialect::Standard).unwrap().concat(), ["a", "b"]);
    }

    #[test]
    fn an_unknown_cursor_is_an_error() {
        let tools = tools(&[10]);
        assert_eq!(page(tools.iter(), "x", false, Dialect::Standard), Err("Unknown cursor: x".to_string()));
        let firmware = page(tools.iter(), "x", false, Dialect::Firmware);
        assert_eq!(firmware, Err("Failed to add tool  because of payload size limit".to_string()));
    }

    #[test]
    fn a_board_without_tools_has_an_empty_list() {
        assert_eq!(page([].iter(), "", false, Dialect::Standard), Ok("{\"tools\":[]}".to_string()));
    }
}
