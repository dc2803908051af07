//! App tools: what the apps on a phone offer.

pub mod offer;
