//! The decisions: registry, names, routing, policy, limits, audit, events.
