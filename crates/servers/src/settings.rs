//! `[[servers]]` in the configuration.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sinew_fetch::header::AUTHORIZATION;
use sinew_fetch::{AllowedHosts, HeaderMap, HeaderName, HeaderValue, HttpUrl};
use sinew_tool::{Admission, DeviceId, DeviceKey, check_labels};

sinew_tool::settings! {
    /// An MCP server that Sinew calls.
    pub struct ServerConfig {
        /// Name of the device: letters a-z, digits and hyphens. By default it is made from the host or the program.
        pub name: Option<String> = None, check check_name;
        /// Address of a server over Streamable HTTP: `http://HOST:PORT/mcp`.
        pub url: Option<String> = None, check check_url;
        /// Program and arguments of a server on stdio, in place of `url`. It is started with the gateway.
        pub command: Vec<String> = Vec::new();
        /// Token that is sent as `Authorization: Bearer`.
        pub token: Option<String> = None;
        /// A file whose first line is the token, or a credential of systemd with that name. Relative to the
        /// configuration file.
        pub token_file: Option<PathBuf> = None;
        /// Further headers of each request.
        pub headers: BTreeMap<String, String> = BTreeMap::new(), check check_headers;
        /// Headers whose values are secret: files whose first line is the value, or credentials of systemd with that name.
        /// Relative to the configuration file.
        pub header_files: BTreeMap<String, PathBuf> = BTreeMap::new();
        /// Seconds between two looks at the tool list. Changes that a server reports itself are taken at once.
        pub poll: Duration = Duration::from_secs(30), within 1..=86_400;
        /// Calls at the same time. Many boards can do no more than one.
        pub parallel: usize = 1, within 1..=64;
        /// Labels of the device, see `docs/labels.md`.
        pub labels: Vec<String> = Vec::new(), check |labels| check_labels(labels);
    }
}

sinew_tool::settings! {
    /// How servers are found and added while the gateway runs.
    pub struct FindSettings {
        /// Whether `sinew boards` looks for servers on the network, by mDNS. They are used only after somebody approves them.
        pub mdns: bool = true;
        /// Where servers are asked for by mDNS.
        pub mdns_address: SocketAddr = SocketAddr::from(([224, 0, 0, 251], 5353));
        /// Whether servers that are found, or added with `sinew servers add`, may be on this machine or have a link-local
        /// address. Those in this file may.
        pub inward: bool = false;
    }
}

impl FindSettings {
    /// Which machines servers that are not in the configuration may be on.
    pub fn allowed(&self) -> AllowedHosts {
        if self.inward { AllowedHosts::Any } else { AllowedHosts::OtherMachines }
    }
}

/// A server, ready to be called.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerPlan {
    pub key: DeviceKey,
    pub suggested_id: String,
    pub place: ServerPlace,
    pub admission: Admission,
    pub poll: Duration,
    pub parallel: usize,
    pub labels: Vec<String>,
}

/// Where a server is.
#[derive(Clone, PartialEq)]
pub enum ServerPlace {
    Http { url: HttpUrl, headers: HeaderMap, allowed: AllowedHosts },
    Command(Vec<String>),
}

impl std::fmt::Debug for ServerPlace {
    /// Without headers, which hold tokens.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.describe())
    }
}

impl ServerPlace {
    /// For people; without secrets.
    pub fn describe(&self) -> String {
        match self {
            ServerPlace::Http { url, .. } => url.to_string(),
            ServerPlace::Command(command) => command.first().cloned().unwrap_or_default(),
        }
    }
}

fn check_name(name: &Option<String>) -> Result<(), String> {
    match name {
        Some(name) if DeviceId::parse(name).is_none() => Err(format!(
            "`{name}` is not valid: a name has 1 to {} letters a-z, digits and hyphens",
            DeviceId::MAX_LENGTH
        )),
        _ => Ok(()),
    }
}

fn check_url(url: &Option<String>) -> Result<(), String> {
    url.as_deref().map_or(Ok(()), |url| HttpUrl::parse(url).map(drop))
}

fn check_headers(headers: &BTreeMap<String, String>) -> Result<(), String> {
    to_headers(headers).map(drop)
}

fn to_headers(headers: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    const OURS: [&str; 6] =
        ["host", "content-length", "content-type", "accept", "mcp-session-id", "mcp-protocol-version"];
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let parsed =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("has `{name}`, which is not a header"))?;
        if OURS.contains(&parsed.as_str()) {
            return Err(format!("has `{name}`, which Sinew sets itself; remove it"));
        }
        map.insert(parsed, secret(value).ok_or_else(|| format!("has a value for `{name}` that is not plain text"))?);
    }
    Ok(map)
}

fn secret(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The plans of all servers, or the number of the wrong one and what is wrong with it.
pub fn plan(servers: &[ServerConfig]) -> Result<Vec<ServerPlan>, (usize, String)> {
    let mut plans: Vec<ServerPlan> = Vec::new();
    for (index, server) in servers.iter().enumerate() {
        let plan = server.plan().map_err(|why| (index, why))?;
        if plans.iter().any(|other| other.key == plan.key) {
            let id = &plan.suggested_id;
            let why = format!("two servers are called `{id}`; give one of them another `name`");
            return Err((index, why));
        }
        plans.push(plan);
    }
    Ok(plans)
}

impl ServerConfig {
    fn plan(&self) -> Result<ServerPlan, String> {
        let (place, found) = match (&self.url, self.command.as_slice()) {
            (Some(_), [_, ..]) => return Err("`url` and `command` are two ways to reach a server; keep one".to_owned()),
            (None, []) => return Err("a server needs a `url` or a `command`".to_owned()),
            (Some(url), []) => {
                let url = HttpUrl::parse(url)?;
                let name = url.host().trim_end_matches(".local").to_owned();
                (ServerPlace::Http { url, headers: self.all_headers()?, allowed: AllowedHosts::Any }, name)
            }
            (None, command @ [program, ..]) => {
                let files = self.token_file.is_some() || !self.header_files.is_empty();
                if self.token.is_some() || files || !self.headers.is_empty() {
                    let why = "`token` and `headers` are for servers with a `url`; give a program its secrets in its environment";
                    return Err(why.to_owned());
                }
                if program.trim().is_empty() {
                    return Err("`command` begins with an empty text; its first item is the program".to_owned());
                }
                let name = Path::new(program).file_stem().unwrap_or_default().to_string_lossy().into_owned();
                (ServerPlace::Command(command.to_vec()), name)
            }
        };
        let name = self.name.clone().unwrap_or_else(|| DeviceId::slug(&found));
        let name = if name.is_empty() { "server".to_owned() } else { name };
        Ok(ServerPlan {
            key: DeviceKey(format!("server:{name}")),
            suggested_id: name,
            parallel: if matches!(place, ServerPlace::Command(_)) { 1 } else { self.parallel },
            place,
            admission: Admission::Configured,
            poll: self.poll,
            labels: self.labels.clone(),
        })
    }

    fn all_headers(&self) -> Result<HeaderMap, String> {
        let mut headers = to_headers(&self.headers).map_err(|why| format!("`headers` {why}"))?;
        let token = match (&self.token, &self.token_file) {
            (Some(_), Some(_)) => {
                return Err("`token` and `token-file` are two ways to say the same; keep one".to_owned());
            }
            (token, None) => token.clone(),
            (None, Some(path)) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
                Some(text.lines().next().unwrap_or_default().trim().to_owned())
            }
        };
        if let Some(token) = token {
            let value = secret(&format!("Bearer {token}")).ok_or("the token is not plain text")?;
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str) -> ServerConfig {
        ServerConfig { url: Some(url.to_owned()), ..ServerConfig::default() }
    }

    #[test]
    fn a_server_needs_its_address_and_nothing_else() {
        let plans = plan(&[at("http://kiln.local/mcp")]).expect("valid");
        assert_eq!((plans[0].key.0.as_str(), plans[0].suggested_id.as_str()), ("server:kiln", "kiln"));
        let program = ServerConfig { command: vec!["/opt/weather.py".to_owned()], ..ServerConfig::default() };
        assert_eq!(plan(&[program]).expect("valid")[0].key.0, "server:weather");
    }

    #[test]
    fn what_is_wrong_with_a_server_is_said_without_its_token() {
        let command = vec!["x".to_owned()];
        let token = Some("s3cr3t".to_owned());
        for (servers, number, part) in [
            (vec![ServerConfig::default()], 0, "needs a `url` or a `command`"),
            (vec![ServerConfig { command: command.clone(), ..at("http://a") }], 0, "keep one"),
            (vec![at("http://a"), at("http://a/other")], 1, "another `name`"),
            (vec![ServerConfig { command: vec![String::new()], ..ServerConfig::default() }], 0, "first item"),
            (vec![ServerConfig { command, token: token.clone(), ..ServerConfig::default() }], 0, "environment"),
            (vec![ServerConfig { token: Some("s3cr3t\n".to_owned()), ..at("http://a") }], 0, "plain text"),
            (vec![ServerConfig { token, token_file: Some("f".into()), ..at("http://a") }], 0, "keep one"),
        ] {
            let (index, why) = plan(&servers).expect_err(part);
            assert_eq!(index, number);
            assert!(why.contains(part) && !why.contains("s3cr3t"), "{why}");
        }
    }

    #[test]
    fn headers_that_sinew_sets_itself_are_refused() {
        let of = |name: &str, value: &str| check_headers(&BTreeMap::from([(name.to_owned(), value.to_owned())]));
        assert_eq!(of("X-Key", "abc"), Ok(()));
        assert!(of("Host", "a").expect_err("ours").contains("sets itself"));
        assert!(of("a b", "a").is_err() && of("a", "b\nc").is_err());
    }

    #[test]
    fn a_plan_is_shown_without_its_token() {
        let server = ServerConfig { token: Some("secret".to_owned()), ..at("http://a/mcp?token=secret") };
        let plans = plan(&[server]).expect("valid");
        assert!(!format!("{plans:?}").contains("secret"));
        assert_eq!(plans[0].place.describe(), "http://a/mcp?…");
    }
}
