//! Servers as devices: virtual boards with the manners of real stacks, real programs, and servers that misbehave.

#![allow(clippy::panic)]

mod closing;
mod finding;
mod hostile;
mod manners;
mod modern;
mod once;
mod programs;
mod support;
