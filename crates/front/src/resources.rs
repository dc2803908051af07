//! Devices as MCP resources, and lists in pages.
//!
//! `device://<id>` describes a device, `device://<id>/events` has its latest events, and `device://<id>/photo` or
//! `…/screen` is the last picture it sent. Files are in [`crate::file_resources`]. The name of a device works in place of its id.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    ErrorData, ListResourcesResult, PaginatedRequestParams, ReadResourceResult, Resource, ResourceContents,
};
use serde_json::{Value, json};
use sinew_gateway::{CallerView, DeviceFilter, DeviceView, MAX_DEVICE_EVENTS, Principal, Shape};
use sinew_tool::{Digest, ErrorKind, Picture, ToolError};

use crate::file_resources::FileUri;
use crate::mcp::FRESH_MS;
use crate::state::FrontState;
use crate::translate;

const SCHEME: &str = "device://";
const JSON: &str = "application/json";
/// The newest events in one resource; `get_device_events` goes back further.
const EVENTS: usize = 100;

/// A resource of a device.
pub(crate) struct DeviceResource {
    pub device: DeviceView,
    pub events: bool,
    pub picture: Option<Picture>,
}

/// The resource with this URI.
pub(crate) fn find(seen: &CallerView, uri: &str) -> Option<DeviceResource> {
    let rest = uri.strip_prefix(SCHEME)?;
    if let Some(name) = rest.strip_suffix("/events") {
        return Some(DeviceResource { device: seen.find_device(name)?, events: true, picture: None });
    }
    if let Some((name, last)) = rest.rsplit_once('/')
        && let Some(device) = seen.find_device(name)
        && let Some(picture) = seen.pictures(name).into_iter().find(|picture| picture.name == last)
    {
        return Some(DeviceResource { device, events: false, picture: Some(picture) });
    }
    Some(DeviceResource { device: seen.find_device(rest)?, events: false, picture: None })
}

/// What may be the device in a URI, in lower case: the parts that [`find`] looks for.
pub(crate) fn devices_in(uri: &str) -> impl Iterator<Item = String> {
    let rest = uri.strip_prefix(SCHEME);
    let before = rest.and_then(|rest| rest.rsplit_once('/')).map(|(before, _)| before);
    rest.into_iter().chain(before).map(|device| device.trim().to_lowercase())
}

pub(crate) fn is_known(front: &FrontState, seen: &CallerView, uri: &str) -> bool {
    find(seen, uri).is_some() || front.fixture.as_ref().is_some_and(|fixture| fixture.read(uri).is_some())
}

pub(crate) fn unknown(uri: &str) -> ErrorData {
    let message = format!("no resource `{}`; `resources/list` lists them all", sinew_tool::text::clip(uri));
    let mut error = translate::to_protocol_error(&ToolError::new(ErrorKind::UnknownResource, message));
    if let Some(Value::Object(object)) = &mut error.data {
        object.insert("uri".to_owned(), json!(uri));
    }
    error
}

pub(crate) async fn list(
    front: &FrontState,
    who: &Principal,
    request: Option<PaginatedRequestParams>,
) -> Result<ListResourcesResult, ErrorData> {
    let everything = front.gateway.seen_by(who).devices(DeviceFilter::default(), None, usize::MAX).await;
    let devices = everything.map_err(|error| translate::to_protocol_error(&error))?.items;
    let seen = front.gateway.seen_by(who);
    let mut all: Vec<Resource> = devices.iter().flat_map(describe).collect();
    all.extend(devices.iter().flat_map(|device| pictures(&seen, device)));
    all.extend(front.fixture.iter().flat_map(|fixture| fixture.resources()));
    all.sort_by(|one, other| one.uri.cmp(&other.uri));
    let page = page("resources", &all, |resource| &resource.uri, request, front.settings.page_size)?;
    let mut result = ListResourcesResult::with_all_items(page.items.to_vec());
    result.next_cursor = page.next;
    Ok(result)
}

/// The contents of a resource, and for how many milliseconds they may be cached.
pub(crate) async fn read(
    front: &FrontState,
    who: &Principal,
    door: &'static str,
    uri: &str,
) -> Result<(ReadResourceResult, u64), ErrorData> {
    if let Some(result) = front.fixture.as_ref().and_then(|fixture| fixture.read(uri)) {
        return Ok((result, FRESH_MS));
    }
    if let Some(file) = FileUri::parse(uri) {
        return Ok((file.read(front, who, door, uri).await?, 0));
    }
    let seen = front.gateway.seen_by(who);
    let resource = find(&seen, uri).ok_or_else(|| unknown(uri))?;
    if let Some(picture) = resource.picture {
        let contents = ResourceContents::blob(STANDARD.encode(&picture.bytes), uri).with_mime_type(picture.mime_type);
        return Ok((ReadResourceResult::new(vec![contents]), 0));
    }
    let value = match resource.events {
        true => {
            let page = seen.events(Some(resource.device.id.as_str()), None, MAX_DEVICE_EVENTS).await;
            let mut page = page.map_err(|error| translate::to_protocol_error(&error))?;
            page.events.drain(..page.events.len().saturating_sub(EVENTS));
            json!(page)
        }
        false => {
            let mut value = resource.device.to_json();
            let list = front.gateway.list(who, Shape::Unfolded);
            let own = list.tools.iter().filter(|tool| tool.device.as_ref() == Some(&resource.device.id));
            value["tools"] = own.map(|tool| tool.own_name.as_str()).collect();
            value
        }
    };
    let contents = ResourceContents::text(value.to_string(), uri).with_mime_type(JSON);
    // These may change at any time.
    Ok((ReadResourceResult::new(vec![contents]), 0))
}

fn describe(device: &DeviceView) -> [Resource; 2] {
    let name = device.name.as_deref().unwrap_or(device.id.as_str());
    let description = Resource::new(format!("{SCHEME}{}", device.id), name)
        .with_description(format!("{} ({})", device.kind, device.family.name))
        .with_mime_type(JSON);
    let events = Resource::new(format!("{SCHEME}{}/events", device.id), format!("{name} events"))
        .with_description(format!("Latest events from {name}"))
        .with_mime_type(JSON);
    [description, events]
}

fn pictures(seen: &CallerView, device: &DeviceView) -> Vec<Resource> {
    let name = device.name.as_deref().unwrap_or(device.id.as_str());
    let describe = |picture: Picture| {
        Resource::new(format!("{SCHEME}{}/{}", device.id, picture.name), format!("{name} {}", picture.name))
            .with_description(format!("The last {} of {name}", picture.name))
            .with_mime_type(picture.mime_type)
    };
    seen.pictures(device.id.as_str()).into_iter().map(describe).collect()
}

/// One page of a sorted list.
pub(crate) struct ListPage<'a, T> {
    pub items: &'a [T],
    pub next: Option<String>,
}

/// The page of `list` that `request` asks for. A cursor names the last item of the page before, so it stays valid while
/// devices come and go. Its checksum rejects invented cursors and those of other lists.
pub(crate) fn page<'a, T>(
    list: &str,
    all: &'a [T],
    name: impl Fn(&T) -> &str,
    request: Option<PaginatedRequestParams>,
    size: usize,
) -> Result<ListPage<'a, T>, ErrorData> {
    let cursor = request.and_then(|request| request.cursor).filter(|cursor| !cursor.is_empty());
    let start = match &cursor {
        None => 0,
        Some(cursor) => {
            let last = cursor.split_once(':').map(|(_, last)| last).filter(|last| last.len() <= 512);
            let last = last.filter(|last| cursor_after(list, last) == *cursor).ok_or_else(|| bad_cursor(cursor))?;
            all.partition_point(|item| name(item) <= last)
        }
    };
    let end = all.len().min(start + size.max(1));
    let items = &all[start..end];
    let next = items.last().filter(|_| end < all.len()).map(|last| cursor_after(list, name(last)));
    Ok(ListPage { items, next })
}

fn cursor_after(list: &str, last: &str) -> String {
    format!("{}:{last}", Digest::of(&json!([list, last])).short(8))
}

fn bad_cursor(cursor: &str) -> ErrorData {
    let shown: String = cursor.chars().take(40).collect();
    let message = format!("the cursor `{shown}` was not given out by this list; begin again without one");
    translate::to_protocol_error(&ToolError::new(ErrorKind::BadCursor, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(all: &[&str], cursor: Option<&str>) -> Result<(Vec<String>, Option<String>), i32> {
        let request = PaginatedRequestParams::default().with_cursor(cursor.map(str::to_owned));
        let page = page("names", all, |name| name, Some(request), 2).map_err(|error| error.code.0)?;
        Ok((page.items.iter().map(|name| (*name).to_owned()).collect(), page.next))
    }

    #[test]
    fn pages_continue_when_the_list_changes_between_them() {
        let (first, next) = get(&["a", "b", "c"], None).expect("a page");
        assert_eq!(first, ["a", "b"]);
        let (rest, end) = get(&["a", "ab", "c", "d"], next.as_deref()).expect("a page");
        assert_eq!((rest, end), (vec!["c".to_owned(), "d".to_owned()], None));
    }

    #[test]
    fn a_foreign_cursor_is_refused_and_an_empty_one_starts_at_the_beginning() {
        let elsewhere = cursor_after("others", "a");
        for cursor in ["zzz", "after:pz", "12345678:a", ":", elsewhere.as_str()] {
            assert_eq!(get(&["a", "b", "c"], Some(cursor)), Err(-32602), "{cursor}");
        }
        assert_eq!(get(&["a"], Some("")).map(|page| page.0), Ok(vec!["a".to_owned()]));
    }
}
