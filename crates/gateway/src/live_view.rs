//! Watching a device's screen: the first picture of a view is an ordinary call, which is decided about and recorded;
//! further ones are checked against the same decision and leave no record of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use sinew_tool::{Device, DeviceId, ErrorKind, LivePicture, LiveRequest, ToolAccess, ToolError};
use tokio::time::Instant;

use crate::call::{Request, decide};
use crate::gateway::Gateway;
use crate::principal::Principal;
use crate::route::{self, RequestedTool, Target};

/// Looking at a screen is this tool, whichever way the pictures take.
const TOOL: &str = "capture_screenshot";
/// A viewer who asks for nothing for this long has stopped.
const IDLE: Duration = Duration::from_secs(60);
/// A view that goes on is recorded again, and a person who must approve it is asked again.
const LONGEST: Duration = Duration::from_secs(600);
/// Views that are remembered; beyond them all are opened anew.
const MAX_VIEWS: usize = 1_000;
/// How much longer than a viewer's patience a capture may take.
const SLACK: Duration = Duration::from_secs(15);

/// The open views.
#[derive(Default)]
pub(crate) struct LiveViews(Mutex<HashMap<ViewKey, ViewSlot>>);

/// Who looks at which device.
type ViewKey = (String, DeviceId);

/// Locked while a view is opened, so that viewers who come together open one.
type ViewSlot = Arc<tokio::sync::Mutex<Option<OpenView>>>;

struct OpenView {
    opened: Instant,
    used: Instant,
    policy: Arc<str>,
    access: ToolAccess,
}

impl LiveViews {
    fn slot(&self, key: ViewKey) -> ViewSlot {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MAX_VIEWS && !slots.contains_key(&key) {
            slots.clear();
        }
        slots.entry(key).or_default().clone()
    }
}

impl OpenView {
    fn is_good(&self, policy: &Arc<str>, access: ToolAccess) -> bool {
        self.used.elapsed() < IDLE
            && self.opened.elapsed() < LONGEST
            && self.policy == *policy
            && self.access == access
            && access != ToolAccess::Unknown
    }
}

impl Gateway {
    /// The next picture of a device's screen that the viewer does not have; `None` where the screen did not change in
    /// time.
    pub async fn view_screen(
        &self,
        who: &Principal,
        device: &str,
        door: &'static str,
        wanted: &LiveRequest,
    ) -> Result<Option<LivePicture>, ToolError> {
        let (id, _) = self.watched(who, device)?;
        let slot = self.live_views().slot((who.id.clone(), id));
        let mut view = slot.lock().await;
        let policy = self.lens(who).in_force().version().clone();
        let access = self.access_to(who, device, TOOL);
        match view.as_mut().filter(|view| view.is_good(&policy, access)) {
            Some(view) => view.used = Instant::now(),
            None => {
                *view = None;
                let args = json!({"max_side": wanted.max_side, "quality": wanted.quality});
                let args = args.as_object().cloned().unwrap_or_default();
                self.call_on(device, Request::new(who.clone(), TOOL, args, door)).await?;
                let now = Instant::now();
                *view = Some(OpenView { opened: now, used: now, policy, access });
            }
        }
        drop(view);
        // A person may have taken a while.
        let (_, device) = self.watched(who, device)?;
        let picture = tokio::time::timeout(wanted.patience + SLACK, device.live_picture(wanted)).await;
        let picture = picture.map_err(|_| {
            ToolError::new(ErrorKind::Timeout, "the phone did not send a picture of its screen in time; try again")
        })??;
        match picture {
            Some(picture) if picture.bytes.len() > self.settings().max_result => {
                let message = format!("the picture has {} bytes; ask for a smaller one", picture.bytes.len());
                Err(ToolError::new(ErrorKind::TooLarge, message))
            }
            picture => Ok(picture),
        }
    }

    fn watched(&self, who: &Principal, device: &str) -> Result<(DeviceId, Arc<dyn Device>), ToolError> {
        let (snapshot, lens) = (self.snapshot(), self.lens(who));
        let requested = RequestedTool::On { device, tool: TOOL };
        match route::find(&snapshot, requested, &mut serde_json::Map::new(), &lens, false)? {
            Target::Device(holder) => Ok((holder.entry.id.clone(), decide(holder)?.clone())),
            Target::BuiltIn(_) => Err(ToolError::new(ErrorKind::UnknownTool, format!("no device has `{TOOL}`"))),
        }
    }
}
