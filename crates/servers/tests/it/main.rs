//! Servers as devices: virtual boards with the manners of real stacks, real programs, and servers that misbehave.

#![allow(clippy::panic)]

mod hostile;
mod manners;
mod programs;
mod support;
