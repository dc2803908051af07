//! Checks host names and web origins in the configuration: those that no request can carry are refused.

use std::net::IpAddr;

/// A name or address, with a port or without.
#[expect(clippy::ptr_arg, reason = "a setting is checked as it is declared")]
pub(crate) fn check_hosts(hosts: &Vec<String>) -> Result<(), String> {
    hosts.iter().find(|host| !is_host_and_port(host)).map_or(Ok(()), |host| {
        Err(format!("has `{host}`, which is not a host name; expected HOST or HOST:PORT, without a scheme or a path"))
    })
}

/// A scheme, a host and a port where it is not the scheme's own.
pub fn check_origins(origins: &Vec<String>) -> Result<(), String> {
    let is_origin = |origin: &&String| {
        // Browser extensions have schemes of their own.
        let scheme_and_host = origin.strip_suffix('/').unwrap_or(origin).split_once("://");
        scheme_and_host.is_some_and(|(scheme, host)| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
                && is_host_and_port(host)
        })
    };
    for origin in origins {
        if !is_origin(&origin) {
            return Err(format!(
                "has `{origin}`, which is not a web origin; expected https://HOST or https://HOST:PORT, without a path"
            ));
        }
        if let Some(short) = without_default_port(origin) {
            return Err(format!("has `{origin}`, which no browser sends; it leaves out the usual port: `{short}`"));
        }
    }
    Ok(())
}

/// The origin as browsers write it, where it names the port that its scheme has anyway.
fn without_default_port(origin: &str) -> Option<&str> {
    let lower = origin.to_ascii_lowercase();
    let port = [("http://", ":80"), ("https://", ":443")].into_iter().find(|(scheme, _)| lower.starts_with(scheme))?.1;
    origin.strip_suffix('/').unwrap_or(origin).strip_suffix(port)
}

fn is_host_and_port(text: &str) -> bool {
    if text.parse::<IpAddr>().is_ok() {
        return true;
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let fits = address.map_or_else(|| is_host(host), |address| address.parse::<std::net::Ipv6Addr>().is_ok());
    // `[::1]` without a port splits inside its brackets.
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    bare.is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok())
        || fits && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port != 0))
}

/// A name or address as it stands in a URL, without a port or brackets.
pub fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let name = text.strip_suffix('.').unwrap_or(text);
    text.parse::<IpAddr>().is_ok() || (name.len() <= 253 && name.split('.').all(is_label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_hosts_are_refused() {
        for right in
            ["sinew.example", "sinew.example:7300", "192.168.1.5", "[::1]", "::1", "[fd00::1]:7300", "a_b", "x."]
        {
            assert_eq!(check_hosts(&vec![right.to_owned()]), Ok(()), "{right}");
        }
        for wrong in [
            "",
            " ",
            "a b",
            "http://a",
            "a/b",
            "a:b",
            "a:0",
            "a:70000",
            "[a]",
            "[::1",
            "*.example",
            "a..b",
            "user@a",
            "-a",
        ] {
            assert!(check_hosts(&vec!["fine".to_owned(), wrong.to_owned()]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn invalid_origins_are_refused() {
        for right in [
            "https://app.example",
            "http://localhost:5173",
            "https://app.example/",
            "http://a:443",
            "chrome-extension://abc",
        ] {
            assert_eq!(check_origins(&vec![right.to_owned()]), Ok(()), "{right}");
        }
        for wrong in [
            "",
            "app.example",
            "https://",
            "https://a/b",
            "https://a b",
            "null",
            "*",
            "https://a?b",
            "://a",
            "https://a:443",
            "HTTP://a:80/",
            "https://*.a",
        ] {
            assert!(check_origins(&vec![wrong.to_owned()]).is_err(), "{wrong:?}");
        }
    }
}
