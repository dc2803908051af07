//! Checks host names and web origins in the configuration: those that no request can carry are refused.

use std::net::{IpAddr, Ipv6Addr};

/// A name or address, with a port or without. Clients leave out the usual port of http and https, so a host with it
/// never matches.
pub(crate) fn check_hosts(hosts: &Vec<String>) -> Result<(), String> {
    for host in hosts {
        let Some((name, port)) = split(host, Brackets::Optional) else {
            return Err(format!(
                "has `{host}`, which is not a host name; expected HOST or HOST:PORT, without a scheme or a path"
            ));
        };
        if let Some(port @ (80 | 443)) = port {
            return Err(format!("has `{host}`, but clients do not send the usual port {port}; write `{name}`"));
        }
    }
    Ok(())
}

/// A scheme, a host and a port where it is not the scheme's own.
pub fn check_origins(origins: &Vec<String>) -> Result<(), String> {
    for origin in origins {
        let text = origin.strip_suffix('/').unwrap_or(origin);
        // Browser extensions have schemes of their own.
        let is_scheme = |scheme: &str| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        };
        let parts = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme));
        let Some((scheme, (name, port))) =
            parts.and_then(|(scheme, host)| Some((scheme, split(host, Brackets::Required)?)))
        else {
            return Err(format!(
                "has `{origin}`, which is not a web origin; expected https://HOST or https://HOST:PORT, without a path"
            ));
        };
        let usual = [("http", 80), ("https", 443)].into_iter().find(|(usual, _)| scheme.eq_ignore_ascii_case(usual));
        if port.is_some() && port == usual.map(|(_, port)| port) {
            let short = format!("{scheme}://{name}");
            return Err(format!("has `{origin}`, which no browser sends; it leaves out the usual port: `{short}`"));
        }
    }
    Ok(())
}

/// `http://` or `https://` with a host, and perhaps the path of a proxy.
pub(crate) fn check_public_url(url: &Option<String>) -> Result<(), String> {
    let Some(url) = url else { return Ok(()) };
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte));
    if split(host, Brackets::Required).is_some() && is_plain {
        return Ok(());
    }
    Err(format!("is `{url}`; expected https://HOST, perhaps with a port and a path, and nothing behind it"))
}

/// Whether an IPv6 address must stand in brackets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Brackets {
    Optional,
    Required,
}

/// The host, as it was written, and the port. `None` for what no client sends: addresses and ports are compared as text,
/// so they must be written in the one form that clients use.
fn split(text: &str, brackets: Brackets) -> Option<(&str, Option<u16>)> {
    let is_address = |text: &str| text.parse::<Ipv6Addr>().is_ok_and(|ip| ip.to_string().eq_ignore_ascii_case(text));
    if brackets == Brackets::Optional && is_address(text) {
        return Some((text, None));
    }
    let (host, rest) = match text.strip_prefix('[') {
        Some(inner) => {
            let (address, rest) = inner.split_once(']')?;
            (is_address(address).then(|| &text[..address.len() + 2])?, rest)
        }
        None => {
            let end = text.find(':').unwrap_or(text.len());
            (Some(&text[..end]).filter(|host| is_host(host))?, &text[end..])
        }
    };
    if rest.is_empty() {
        return Some((host, None));
    }
    let digits = rest.strip_prefix(':')?;
    let port: u16 = digits.parse().ok()?;
    (port != 0 && port.to_string() == digits).then_some((host, Some(port)))
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
    // What ends in a number is meant as an address, and `192.168.1.500` is none.
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    text.parse::<IpAddr>().is_ok()
        || (name.len() <= 253 && name.split('.').all(is_label) && !name.rsplit('.').next().is_some_and(is_number))
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
            "a:443",
            "A:80",
            "[::1]:443",
            "a:0443",
            "a:+7300",
            "a:",
            "::1:7300:",
            "[0:0:0:0:0:0:0:1]",
            "[::1]x",
            "192.168.1.500",
            "192.168.1",
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
            "http://[::1]:5173",
            "https://10.0.0.25",
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
            "https://a:0443",
            "https://[::1]:443",
            "http://::1",
            "http://a:",
            "https://u@a",
            "https://10.0.0.256",
        ] {
            assert!(check_origins(&vec![wrong.to_owned()]).is_err(), "{wrong:?}");
        }
    }
}
