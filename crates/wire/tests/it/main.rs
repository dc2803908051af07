//! Both ends of the protocol against each other, and against recorded traffic.

mod page;
mod pair;
mod transcript;
