//! The name under which boards reach this machine.

/// A host alone: addresses made from it add scheme, port and brackets themselves.
pub(super) fn check_advertised(host: &Option<String>) -> Result<(), String> {
    match host {
        Some(host) if !sinew_front::is_host(host) => Err(format!(
            "is `{host}`, which is not a host; expected a name or an IP address alone, without scheme, port or brackets"
        )),
        _ => Ok(()),
    }
}
