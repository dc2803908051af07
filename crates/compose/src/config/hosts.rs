//! The name under which boards reach this machine.

use std::net::IpAddr;

/// A host alone: addresses made from it add scheme, port and brackets themselves.
pub(super) fn check_advertised(host: &Option<String>) -> Result<(), String> {
    match host {
        Some(host) if !sinew_front::is_host(host) => Err(format!(
            "is `{host}`, which is not a host; expected a name or an IP address alone, without scheme, port or brackets"
        )),
        Some(host) if host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified() || ip.is_multicast()) => Err(format!(
            "is `{host}`, at which no board reaches anything; expected the name or address of this machine"
        )),
        _ => Ok(()),
    }
}
