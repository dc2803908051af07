//! Android phones as devices.
//!
//! A [`Phone`] is some dozen primitives: read the tree, take a picture, touch, press a key. Every
//! tool is written once on top of them.

#![warn(unreachable_pub)]

pub mod access;
pub mod adb;
pub mod agent;
pub mod control;
pub mod device;
pub mod image;
mod live;
pub mod logs;
pub mod phone;
pub mod screen;
pub mod tiers;
pub mod tools;
pub mod touch;
pub mod tree;
pub mod turn;

pub use access::{AdbAccess, Extension, PhoneAccess};
pub use agent::{Agent, AgentError, AgentSource, Companion, Standby};
pub use control::PhoneShell;
pub use device::{LimitedPhone, PhoneDevice};
pub use logs::{LogLine, LogQuery, LogTime, LogcatLevel, Logs};
pub use phone::{Capabilities, Foreground, Image, InstalledApp, Phone, PhoneError, PhoneIdentity, Screen, Work};
pub use tiers::Tiered;
pub use tools::{Profile, reference_tools, tools};
pub use touch::{Key, Point, Stroke};
pub use tree::{Rect, Tree, TreeBuilder, UiNode, ValueRange};
