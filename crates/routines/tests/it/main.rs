//! Routines from their files to their answers, without a gateway.

mod files;
mod reading;
mod running;
