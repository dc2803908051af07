//! Outgoing HTTP for device families and sign-in: one [`HttpClient`] for one address, with bounded answers.
//!
//! It speaks HTTP/1.1, over TLS where the address says so. It never follows a redirect by itself and never asks for a
//! compressed answer; one that comes compressed all the same is refused, so that no answer grows while it is read.
//! Time limits are the caller's: dropping a future ends what it does.

#![warn(unreachable_pub)]

mod client;
mod tls;
mod url;

pub use client::{Answer, FetchError, HttpClient};
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
pub use url::{AllowedHosts, HttpUrl};
