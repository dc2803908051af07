//! Whether a rule is about a device and a tool, and whose word that is.
//!
//! A device chooses its id, its kind and everything about its tools. So where nobody approved it, none of that brings it
//! into a rule that allows, unless the rule names the device: by a label, by the name that a person gave it, or by its
//! whole id.

use crate::selector::{AnyOf, DeviceFacts, DeviceSelector, ToolFacts, ToolSelector};

/// How a selector matches a device. The better is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeviceMatch {
    /// By what the device says of itself.
    OwnWord,
    /// As one of many: all devices, or those of a family.
    Group,
    /// A person meant this device.
    Named,
}

/// How a selector matches a tool. The better is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ToolMatch {
    /// By what the device says of it: its name, its hints, its audience.
    OwnWord,
    /// All tools, or those of an effect.
    Group,
}

/// A rule that is about a device and a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selected {
    /// Whether the rule may allow anything here. What it asks about or denies counts always.
    pub(crate) may_allow: bool,
}

/// `None` where the selectors match nothing here.
pub(crate) fn select(
    (on, tools): (&AnyOf<DeviceSelector>, &AnyOf<ToolSelector>),
    device: &DeviceFacts<'_>,
    tool: &ToolFacts<'_>,
) -> Option<Selected> {
    let device_match = on.best(DeviceMatch::Group, |selector| selector.match_of(device))?;
    let tool_match = tools.best(ToolMatch::Group, |selector| selector.match_of(tool))?;
    let is_word_of_a_person = match device_match {
        DeviceMatch::OwnWord => false,
        DeviceMatch::Group => tool_match == ToolMatch::Group,
        DeviceMatch::Named => true,
    };
    Some(Selected { may_allow: device.approved || is_word_of_a_person })
}
