//! Virtual boards and phones, and bad luck.
