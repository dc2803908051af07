//! The address of an HTTP service, and which machines may be behind it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::Uri;
use tokio::sync::Semaphore;

/// Lookups at the same time. Each holds a thread, also while a name server is silent, and threads do other work too.
static LOOKUPS: Semaphore = Semaphore::const_new(64);

/// Addresses of one host that are tried.
const MAX_ADDRESSES: usize = 16;

/// An `http` or `https` address without user name and fragment.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HttpUrl {
    is_encrypted: bool,
    host: String,
    port: u16,
    /// With the query.
    path: String,
}

/// Which addresses a host name may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedHosts {
    /// Any: somebody wrote the address into the configuration.
    Any,
    /// Not this machine and nothing link-local: the address came from the network.
    OtherMachines,
    /// The public internet only: the address came from a stranger.
    Internet,
}

impl AllowedHosts {
    pub fn allows(self, address: IpAddr) -> bool {
        match self {
            AllowedHosts::Any => true,
            AllowedHosts::OtherMachines => !is_inward(address.to_canonical()),
            AllowedHosts::Internet => is_public(address.to_canonical()),
        }
    }

    /// What a host is whose addresses are all refused.
    fn refused(self) -> &'static str {
        match self {
            AllowedHosts::Any => "has no address",
            AllowedHosts::OtherMachines => "is this machine or link-local, which is not allowed here",
            AllowedHosts::Internet => "is not on the public internet, which is not allowed here",
        }
    }
}

/// Whether anybody may have this address on the internet. What is not known to be so is not.
fn is_public(address: IpAddr) -> bool {
    if is_inward(address) {
        return false;
    }
    match address {
        IpAddr::V4(v4) => {
            let is_special = match v4.octets() {
                // Carriers, protocols, benchmarks, and what is reserved.
                [100, 64..=127, ..] | [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [240..=255, ..] => true,
                _ => v4.is_private() || v4.is_documentation(),
            };
            !is_special
        }
        IpAddr::V6(v6) => match (embedded(v6), v6.segments()) {
            (Some(v4), _) => is_public(v4.into()),
            // Documentation, and Teredo with the other protocols of 2001::/23.
            (None, [0x2001, 0xdb8 | 0..=0x1ff, ..] | [0x3fff, 0..=0xfff, ..]) => false,
            (None, [first, ..]) => first & 0xe000 == 0x2000,
        },
    }
}

fn is_inward(address: IpAddr) -> bool {
    let is_special = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast() || v4.octets()[0] == 0,
        // What stands for an IPv4 address by other means leads where that does.
        IpAddr::V6(v6) => v6.is_unicast_link_local() || embedded(v6).is_some_and(|v4| is_inward(v4.into())),
    };
    let is_never_elsewhere = is_special || address.is_loopback() || address.is_unspecified() || address.is_multicast();
    is_never_elsewhere || is_of_this_machine(address)
}

/// The IPv4 address in an address of a translator (64:ff9b::/96), of 6to4 (2002::/16), or of the old compatible form.
fn embedded(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let of = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match v6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(of(high, low)),
        [0x2002, high, low, ..] => Some(of(high, low)),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => Some(of(high, low)),
        _ => None,
    }
}

/// Whether one of the machine's own interfaces has this address.
fn is_of_this_machine(address: IpAddr) -> bool {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    interfaces.iter().any(|interface| interface.ip().to_canonical() == address)
}

impl HttpUrl {
    pub fn parse(text: &str) -> Result<HttpUrl, String> {
        const FORM: &str = "write http://HOST:PORT/PATH, or https:// for TLS";
        let wrong = |why: &str| format!("`{}` {why}; {FORM}", without_secrets(text));
        if text.contains('#') {
            return Err(wrong("has a fragment (`#`), which servers never see"));
        }
        let uri: Uri = text.parse().map_err(|_| wrong("is not a valid address"))?;
        let is_encrypted = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong("does not begin with http:// or https://")),
        };
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(wrong("holds a user name; send credentials as a header instead"));
        }
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
        if host.is_empty() {
            return Err(wrong("names no host"));
        }
        let port = uri.port_u16().unwrap_or(if is_encrypted { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(HttpUrl { is_encrypted, host, port, path })
    }

    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    /// The address as it was written, in its shortest form.
    pub fn whole(&self) -> String {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.path)
    }

    /// The same service at another path.
    pub fn with_path(&self, path: &str) -> HttpUrl {
        HttpUrl { path: path.to_owned(), ..self.clone() }
    }

    /// Where a redirect leads, if it stays with the same service.
    pub fn redirected(&self, location: &str) -> Option<HttpUrl> {
        if location.starts_with('/') && !location.starts_with("//") {
            return HttpUrl::parse(&self.with_path(location).whole()).ok();
        }
        let target = HttpUrl::parse(location).ok()?;
        let place = |url: &HttpUrl| (url.is_encrypted, url.host.clone(), url.port);
        (place(&target) == place(self)).then_some(target)
    }

    /// The value of `Host`; the usual port is left out, because small servers compare it as text.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.is_encrypted { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }

    /// All addresses of the host.
    pub async fn lookup(&self) -> std::io::Result<Vec<SocketAddr>> {
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, self.port)]);
        }
        let place = (self.host.clone(), self.port);
        // In a task of its own: who waits may give up, but the lookup holds its thread to its end.
        let looking = tokio::spawn(async move {
            let _turn = LOOKUPS.acquire().await;
            Ok(tokio::net::lookup_host(place).await?.take(MAX_ADDRESSES).collect())
        });
        looking.await.map_err(std::io::Error::other)?
    }

    pub(crate) async fn addresses(&self, allowed: AllowedHosts) -> Result<Vec<SocketAddr>, String> {
        let found = self.lookup().await;
        let mut addresses = found.map_err(|error| format!("the host `{}` is not known: {error}", self.host))?;
        addresses.retain(|address| allowed.allows(address.ip()));
        if addresses.is_empty() {
            return Err(format!("the host `{}` {}", self.host, allowed.refused()));
        }
        Ok(addresses)
    }
}

impl fmt::Display for HttpUrl {
    /// For people: without the query, which often holds a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_secrets(&self.whole()))
    }
}

impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An address as it is shown: a password may stand in it before the host, or a token in its query.
fn without_secrets(text: &str) -> String {
    let (text, query) = text.split_once('?').map_or((text, ""), |(text, _)| (text, "?…"));
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://…@{rest}{query}"),
        _ => format!("{text}{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_in_its_shortest_form() {
        for (written, shown) in [
            ("http://Board.local/mcp", "http://board.local/mcp"),
            ("http://board:80", "http://board/"),
            ("https://b:8443/a?b=c", "https://b:8443/a?b=c"),
            ("http://[FE80::1]:81/x", "http://[fe80::1]:81/x"),
            ("http://b?x=1", "http://b/?x=1"),
        ] {
            assert_eq!(HttpUrl::parse(written).map(|url| url.whole()).as_deref(), Ok(shown));
        }
    }

    #[test]
    fn an_address_is_shown_without_its_query() {
        let url = HttpUrl::parse("http://b/mcp?token=secret").expect("valid");
        assert_eq!(format!("{url} {url:?}"), "http://b/mcp?… http://b/mcp?…");
    }

    #[test]
    fn a_mistake_is_named_without_the_password_in_it() {
        for wrong in [
            "",
            "board",
            "ftp://b/",
            "http://",
            "http://me:secret@b/",
            "ftp://b/?t=secret",
            "http://b/#x",
            "http://a b/",
        ] {
            let problem = HttpUrl::parse(wrong).expect_err(wrong);
            assert!(problem.contains("http://HOST") && !problem.contains("secret"), "{problem}");
        }
    }

    #[test]
    fn only_redirects_to_the_same_service_lead_anywhere() {
        let url = HttpUrl::parse("http://board:8000/mcp").expect("valid");
        let to = |location: &str| url.redirected(location).map(|url| url.to_string());
        assert_eq!(to("/mcp/").as_deref(), Some("http://board:8000/mcp/"));
        assert_eq!(to("http://BOARD:8000/x").as_deref(), Some("http://board:8000/x"));
        for other in ["http://board/mcp", "https://board:8000/", "//evil/", "http://evil:8000/", "mcp", ""] {
            assert_eq!(to(other), None, "{other}");
        }
    }

    #[test]
    fn what_the_network_names_is_never_this_machine() {
        for inward in [
            "127.0.0.1",
            "127.8.8.8",
            "169.254.1.1",
            "0.0.0.0",
            "::1",
            "fe80::1",
            "::",
            "::ffff:127.0.0.1",
            "224.0.0.1",
            "0.1.2.3",
            "ff02::fb",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "::127.0.0.1",
        ] {
            let address: IpAddr = inward.parse().expect("an address");
            assert!(!AllowedHosts::OtherMachines.allows(address) && AllowedHosts::Any.allows(address), "{inward}");
        }
        for interface in if_addrs::get_if_addrs().expect("interfaces") {
            assert!(!AllowedHosts::OtherMachines.allows(interface.ip()), "{interface:?}");
        }
        assert!(AllowedHosts::OtherMachines.allows(IpAddr::from([192, 0, 2, 5])));
    }

    #[test]
    fn what_a_stranger_names_is_on_the_internet() {
        let is_allowed = |text: &str| AllowedHosts::Internet.allows(text.parse().expect("an address"));
        for inward in [
            "127.0.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "192.0.0.1",
            "198.18.0.1",
            "192.0.2.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:a00:1::",
            "2002:c0a8:101::1",
            "2001:0:7f00:1::",
            "2001:db8::1",
            "::10.0.0.1",
            "4000::1",
        ] {
            assert!(!is_allowed(inward), "{inward}");
        }
        for public in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "64:ff9b::1.1.1.1"] {
            assert!(is_allowed(public), "{public}");
        }
    }
}
