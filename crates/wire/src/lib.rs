//! The board protocol, both ends, without sockets or clock; the device half is the SDK for firmware.
