//! Family 2: Android phones.
