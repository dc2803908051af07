//! What people agree on about a device's tools. The tools are compared with it outside the registry's lock.

use std::sync::Arc;

use sinew_spec::lock::{Follow, LockedOwner};
use sinew_tool::text::clean_line;
use sinew_tool::{DeviceInfo, ErrorKind, ToolError};

use crate::pins::{self, Review};
use crate::snapshot::{DeviceEntry, Presence};

/// What people say about a device's tools.
#[derive(Clone, Copy)]
pub(crate) enum Agreement<'a> {
    Pin(Follow),
    Unpin,
    /// One tool that is held back, or everything; the digest names what was shown.
    Accept {
        digest: &'a str,
        tool: Option<&'a str>,
    },
}

/// An agreement, and the device that it is about as it was compared.
pub(super) struct Agreed {
    pub entry: Arc<DeviceEntry>,
    /// What the device says at the moment, and not what was agreed.
    pub info: Arc<DeviceInfo>,
    pub review: Review,
}

impl Agreed {
    /// `agreed` is what was agreed on about the device until now.
    pub(super) fn new(
        entry: Arc<DeviceEntry>,
        agreed: Option<Arc<LockedOwner>>,
        agreement: Agreement<'_>,
    ) -> Result<Agreed, ToolError> {
        let tools = entry.toolset();
        let next = match agreement {
            Agreement::Pin(_) if tools.is_empty() => {
                let message = format!("{} has no tools to agree on; wait until it is ready", entry.title());
                return Err(ToolError::new(ErrorKind::InvalidArguments, message));
            }
            Agreement::Pin(follow) => Some(Arc::new(pins::pin(agreed.as_deref(), &entry.info, tools, follow))),
            Agreement::Unpin => None,
            Agreement::Accept { digest, tool } => {
                let mut next = agreed.as_deref().cloned().unwrap_or_default();
                accept(&mut next, &entry, digest, tool)?;
                Some(Arc::new(next))
            }
        };
        Ok(Agreed::on(entry, agreed, next))
    }

    /// Compares a device with what is agreed on next about it.
    pub(super) fn on(
        entry: Arc<DeviceEntry>,
        agreed: Option<Arc<LockedOwner>>,
        next: Option<Arc<LockedOwner>>,
    ) -> Agreed {
        let info = match &entry.presence {
            Presence::Here(device) => device.info(),
            Presence::Away(_) => entry.info.clone(),
        };
        let review = Review::of(agreed, next, &info, entry.toolset());
        Agreed { entry, info, review }
    }
}

fn accept(owner: &mut LockedOwner, entry: &DeviceEntry, digest: &str, tool: Option<&str>) -> Result<(), ToolError> {
    let wrong = |message: String| Err(ToolError::new(ErrorKind::InvalidArguments, message));
    let (title, id) = (entry.title(), &entry.id);
    let Some(held) = entry.held.clone() else {
        return wrong(format!("nothing of {title} is held back or gone"));
    };
    if held.digest != digest.trim().to_ascii_lowercase() {
        return wrong(format!(
            "the digest does not name what is held back of {title} now; look at it again with `sinew devices changes {id}`"
        ));
    }
    let is_meant = |name: &str| tool.is_none_or(|tool| tool == name);
    let tools: Vec<_> = held.tools.iter().filter_map(|held| entry.toolset().find(&held.tool)).collect();
    let tools: Vec<_> = tools.into_iter().filter(|tool| is_meant(&tool.name)).collect();
    let gone: Vec<_> = held.gone.iter().filter(|name| is_meant(name)).collect();
    if let Some(tool) = tool.filter(|_| tools.is_empty() && gone.is_empty()) {
        return wrong(format!("`{}` of {title} is neither held back nor gone", clean_line(tool, 64)));
    }
    tools.into_iter().for_each(|tool| pins::accept(owner, tool));
    gone.into_iter().for_each(|tool| drop(owner.tools.remove(tool)));
    if let Some(text) = held.new_text().filter(|_| tool.is_none()) {
        pins::agree_on_text(owner, text);
    }
    Ok(())
}
