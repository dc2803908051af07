//! Routines: tools that are made of other tools' calls.
//!
//! A routine is a Markdown file: a tool specification with one more section, **Steps**, a list in YAML. [`Routine::read`]
//! checks a file, `folder` follows a directory of them, `device` offers them as the tools of one device, and `runs` has
//! what is under way. Every step is an ordinary call of whoever called the routine; this crate knows no gateway and no
//! device.

#![warn(unreachable_pub)]

mod circles;
mod clock;
mod device;
mod fitting;
mod folder;
mod host;
mod questions;
mod recording;
mod routine;
mod runs;
mod template;
mod yaml;

pub use clock::RunClock;
pub use device::{DEVICE, check_routine_name, is_routine_name};
pub use fitting::misfits;
pub use folder::{EffectOf, run};
pub use recording::{RecordedCall, record};
pub use routine::{DEVICE_PARAMETER, LIMITS, Routine, RoutineProblem};
pub use template::new_from_template;
