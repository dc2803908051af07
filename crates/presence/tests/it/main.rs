//! Nodes that share a store, step by step.

mod ownership;
mod small_cluster;
