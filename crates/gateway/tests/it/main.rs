//! The gateway with devices that exist only here.

mod calls;
mod coming_and_going;
mod events;
mod fake;
mod folding;
mod killed;
mod memory;
mod tokens;
mod watching;
