//! What is known about the browser behind a request: its address, the origin it asked for, and its cookies.

use std::net::IpAddr;

use axum::extract::Request;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use sinew_front::PeerAddress;
use subtle::ConstantTimeEq;

use crate::ConsoleState;
use crate::sessions::Session;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// A header of our own. A page of another origin cannot send it without asking us first, and we never agree.
pub(crate) const OWN_HEADER: HeaderName = HeaderName::from_static("x-sinew");

/// Every entry must be an IP address.
#[expect(clippy::ptr_arg, reason = "a setting is checked as it is declared")]
pub(crate) fn check_addresses(addresses: &Vec<String>) -> Result<(), String> {
    match addresses.iter().find(|text| text.parse::<IpAddr>().is_err()) {
        Some(wrong) => Err(format!("has `{wrong}`, which is not an IP address, for example `127.0.0.1`")),
        None => Ok(()),
    }
}

/// The browser behind a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Browser {
    pub(crate) address: Option<IpAddr>,
    /// `https` or `http`.
    scheme: &'static str,
    /// Host and port as the browser has them.
    authority: String,
}

impl Browser {
    pub(crate) fn of(state: &ConsoleState, request: &Request) -> Browser {
        // A listener for both families sees IPv4 addresses as IPv6.
        let address = request.extensions().get::<PeerAddress>().map(|peer| peer.0.to_canonical());
        let proxies = state.settings.trusted_proxy.iter().filter_map(|text| text.parse().ok());
        let is_proxy = address.is_some_and(|address| proxies.into_iter().any(|proxy: IpAddr| proxy == address));
        Browser::new(request.headers(), address, is_proxy, state.host.is_tls)
    }

    fn new(headers: &HeaderMap, address: Option<IpAddr>, is_proxy: bool, is_tls: bool) -> Browser {
        // What is last was added by the proxy; what came before it may be the browser's own.
        let of_proxy = |name: &HeaderName| headers.get_all(name).iter().next_back()?.to_str().ok();
        let forwarded = |name: &HeaderName| of_proxy(name).filter(|_| is_proxy);
        let last = |list: &str| list.rsplit(',').next().unwrap_or_default().trim().to_owned();
        let is_secure = match forwarded(&FORWARDED_PROTO) {
            Some(scheme) => last(scheme).eq_ignore_ascii_case("https"),
            None => is_tls,
        };
        let host = forwarded(&FORWARDED_HOST).map(last).or_else(|| text(headers, &header::HOST).map(str::to_owned));
        let address = forwarded(&FORWARDED_FOR).and_then(|list| last(list).parse().ok()).or(address);
        let scheme = if is_secure { "https" } else { "http" };
        Browser { address, scheme, authority: host.unwrap_or_default().to_ascii_lowercase() }
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.scheme == "https"
    }

    /// Cookies ignore ports, so the name has the port: two gateways on one host do not sign each other out.
    fn cookie_name(&self) -> String {
        let port = self.authority.rsplit_once(':').map(|(_, port)| port).filter(|port| port.parse::<u16>().is_ok());
        match self.is_secure() {
            true => format!("__Secure-sinew-{}", port.unwrap_or("443")),
            false => format!("sinew-{}", port.unwrap_or("80")),
        }
    }

    /// Without a path, the cookie is sent to the folder of the page that set it: the console's, also where a proxy puts it
    /// below another.
    pub(crate) fn set_cookie(&self, secret: &str) -> HeaderValue {
        let secure = if self.is_secure() { "; Secure" } else { "" };
        let age = if secret.is_empty() { "; Max-Age=0" } else { "" };
        let cookie = format!("{}={secret}; HttpOnly; SameSite=Strict{secure}{age}", self.cookie_name());
        HeaderValue::from_str(&cookie).unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    /// What the cookies of the request say; there may be several of one name, from several folders.
    pub(crate) fn cookies<'a>(&self, headers: &'a HeaderMap) -> Vec<&'a str> {
        let name = self.cookie_name();
        let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).take(4).collect()
    }

    /// Whether the page that sends the request is our own. Pages on other ports of the host are not, although the
    /// browser sends our cookie with their requests.
    pub(crate) fn is_own_page(&self, headers: &HeaderMap) -> bool {
        let site = text(headers, &FETCH_SITE);
        let is_other_site = site.is_some_and(|site| site != "same-origin");
        match text(headers, &header::ORIGIN) {
            Some(origin) => !is_other_site && origin == format!("{}://{}", self.scheme, self.authority),
            None => site == Some("same-origin") && !headers.contains_key(header::ORIGIN),
        }
    }

    /// Whether the browser says that another page sends the request. Addresses that somebody types have no page.
    pub(crate) fn is_other_page(&self, headers: &HeaderMap) -> bool {
        text(headers, &FETCH_SITE).is_some_and(|site| !matches!(site, "same-origin" | "none"))
            || (headers.contains_key(header::ORIGIN) && !self.is_own_page(headers))
    }

    /// What to do about a request that seems to come from another page.
    pub(crate) fn foreign_page(&self) -> String {
        format!(
            "the request does not come from a page of {}://{}; open the console there. Behind a reverse proxy, name its \
             address in `console.trusted-proxy`",
            self.scheme, self.authority
        )
    }
}

impl Session {
    /// Whether a form is one of this session's pages.
    pub(crate) fn sent(&self, form_token: &str) -> bool {
        self.form_token.as_bytes().ct_eq(form_token.as_bytes()).into()
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
        };
        pairs.iter().map(pair).collect()
    }

    fn browser(pairs: &[(&'static str, &str)], is_proxy: bool, is_tls: bool) -> Browser {
        Browser::new(&headers(pairs), Some([127, 0, 0, 1].into()), is_proxy, is_tls)
    }

    #[test]
    fn only_our_own_pages_change_something() {
        let own = browser(&[("host", "127.0.0.1:7300")], false, false);
        let is_own = |pairs: &[(&'static str, &str)]| own.is_own_page(&headers(pairs));
        assert!(is_own(&[("origin", "http://127.0.0.1:7300")]));
        assert!(is_own(&[("origin", "http://127.0.0.1:7300"), ("sec-fetch-site", "same-origin")]));
        assert!(is_own(&[("sec-fetch-site", "same-origin")]));
        for foreign in [
            &[][..],
            &[("origin", "http://127.0.0.1:7301")],
            &[("origin", "http://localhost:7300")],
            &[("origin", "https://127.0.0.1:7300")],
            &[("origin", "null")],
            &[("origin", "")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "none")],
            &[("origin", "null"), ("sec-fetch-site", "same-origin")],
            &[("origin", "http://127.0.0.1:7300"), ("sec-fetch-site", "cross-site")],
        ] {
            assert!(!is_own(foreign), "{foreign:?}");
        }
    }

    #[test]
    fn other_pages_are_told_apart_from_typed_addresses() {
        let own = browser(&[("host", "127.0.0.1:7300")], false, false);
        let is_other = |pairs: &[(&'static str, &str)]| own.is_other_page(&headers(pairs));
        for fine in [
            &[][..],
            &[("sec-fetch-site", "none")],
            &[("sec-fetch-site", "same-origin")],
            &[("origin", "http://127.0.0.1:7300")],
        ] {
            assert!(!is_other(fine), "{fine:?}");
        }
        for other in [
            &[("sec-fetch-site", "same-site")][..],
            &[("sec-fetch-site", "cross-site")],
            &[("origin", "http://127.0.0.1:7301")],
            &[("origin", "null"), ("sec-fetch-site", "same-origin")],
        ] {
            assert!(is_other(other), "{other:?}");
        }
    }

    #[test]
    fn only_a_known_proxy_says_who_asks() {
        let pairs = [
            ("host", "10.0.0.1:7300"),
            ("x-forwarded-host", "home.example"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-for", "6.6.6.6, 192.0.2.7"),
        ];
        let through = browser(&pairs, true, false);
        assert_eq!((through.address, through.is_secure()), (Some([192, 0, 2, 7].into()), true));
        assert!(through.is_own_page(&headers(&[("origin", "https://home.example")])));
        assert_eq!(through.cookie_name(), "__Secure-sinew-443");
        let mut several = headers(&pairs);
        several.append(FORWARDED_FOR, HeaderValue::from_static("192.0.2.8"));
        let appended = Browser::new(&several, Some([127, 0, 0, 1].into()), true, false);
        assert_eq!(appended.address, Some([192, 0, 2, 8].into()), "the proxy's line is the last");
        let forged = browser(&pairs, false, false);
        assert_eq!((forged.address, forged.is_secure()), (Some([127, 0, 0, 1].into()), false));
        assert!(!forged.is_own_page(&headers(&[("origin", "https://home.example")])));
    }

    #[test]
    fn a_cookie_belongs_to_one_port() {
        let own = browser(&[("host", "localhost:7300")], false, false);
        let sent = headers(&[("cookie", "a=b; sinew-7301=other; sinew-7300=one; sinew-7300=two; x")]);
        assert_eq!(own.cookies(&sent), ["one", "two"]);
        assert_eq!(own.set_cookie("x"), "sinew-7300=x; HttpOnly; SameSite=Strict");
        let secure = browser(&[("host", "[::1]:7300")], false, true);
        assert_eq!(secure.set_cookie(""), "__Secure-sinew-7300=; HttpOnly; SameSite=Strict; Secure; Max-Age=0");
        assert_eq!(browser(&[("host", "[::1]")], false, false).cookie_name(), "sinew-80");
    }

    #[test]
    fn proxies_are_named_by_address() {
        assert!(check_addresses(&vec!["127.0.0.1".to_owned(), "::1".to_owned()]).is_ok());
        assert!(check_addresses(&vec!["proxy.example".to_owned()]).is_err());
    }
}
