//! Routines: tools that are made of other tools' calls.
//!
//! A routine is a Markdown file: a tool specification with one more section, **Steps**, a list in YAML. [`Routine::read`]
//! checks a file, `folder` follows a directory of them, `device` offers them as the tools of one device, and `runs` has
//! what is under way. Every step is an ordinary call of whoever called the routine; this crate knows no gateway and no
//! device.

#![warn(unreachable_pub)]

mod device;
mod folder;
mod host;
mod recording;
mod routine;
mod runs;
mod template;
mod yaml;

pub use device::{DEVICE, is_routine_name};
pub use folder::{EffectOf, run};
pub use recording::{RecordedCall, record};
pub use routine::{LIMITS, Routine, RoutineProblem};
pub use template::new_from_template;
