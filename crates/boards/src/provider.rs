//! Tool providers that dial in: MCP servers of any kind, over a WebSocket with one JSON-RPC message per frame, as the
//! endpoints of voice assistants have it.
//!
//! A provider brings only a token. A device token says which provider it is; with the gateway's own token it is known
//! by the name it reports, because a bridge in front of several servers dials the same address for each of them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use http::Request;
use http::header::AUTHORIZATION;
use sinew_tool::{
    Args, Bearer, DeviceId, DeviceInfo, DeviceKey, Family, FamilyName, Reach, Status, TextTrust, Tool, Value, json,
};

use crate::hub::BoardHub;
use crate::identity::{self, HttpResponse};
use crate::roster::Registration;

/// With and without the slash at its end.
pub(crate) const PATH: &str = "/mcp/";
pub(crate) const FAMILY: &str = "provider";

pub(crate) fn is_for(path: &str) -> bool {
    path == PATH || path == PATH.trim_end_matches('/')
}

/// Identifies, admits and registers a provider.
pub(crate) fn receive<B>(
    request: &Request<B>,
    address: SocketAddr,
    hub: &BoardHub,
) -> Result<(HttpResponse, DeviceInfo, Registration), Box<HttpResponse>> {
    let claim = identity::find_parameter(request, "token")
        .or_else(|| identity::find_parameter(request, AUTHORIZATION.as_str()))
        .and_then(|token| identity::bare_token(&token))
        .and_then(|token| hub.config.admit.find_bearer(&token))
        .and_then(|bearer| Some((bearer.admission(), ProviderIdentity::of(bearer)?)));
    let Some((admission, claim)) = claim else {
        hub.refuse_provider(address);
        let message = format!(
            "a token that fits is missing: a tool provider dials {PATH}?token=TOKEN with a token of its own (sinew token new --device NAME), or with the gateway's"
        );
        return Err(identity::unauthorized(&message));
    };
    let answer = identity::accept(request)?;
    let mut info = DeviceInfo {
        key: DeviceKey(String::new()),
        suggested_id: String::new(),
        family: family(),
        admission: admission.clone(),
        name: String::new(),
        version: String::new(),
        status: Status::Ready,
        instructions: None,
        labels: Vec::new(),
        attributes: [("transport", json!("websocket")), ("address", json!(address.to_string()))]
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    };
    let key = match claim {
        ProviderIdentity::Named(name) => set_identity(&mut info, &name),
        // It identifies nobody yet, so it replaces nobody.
        ProviderIdentity::Nameless => DeviceKey(format!("{FAMILY} {}", NAMELESS.fetch_add(1, Ordering::Relaxed))),
    };
    let registration = hub
        .register(&key, &admission)
        .map_err(|refused| identity::registration_refused(refused, &hub.config.limits))?;
    Ok((answer, info, registration))
}

/// How a token identifies a provider.
enum ProviderIdentity {
    Named(String),
    /// The gateway's own token: the provider is known by the name it reports.
    Nameless,
}

impl ProviderIdentity {
    /// A token that was made for a device of another family, or for a provider that does not dial in, admits nobody.
    fn of(bearer: Bearer) -> Option<ProviderIdentity> {
        match bearer {
            Bearer::Any => Some(ProviderIdentity::Nameless),
            Bearer::Device { key: DeviceKey(key), .. } => {
                let name = key.strip_prefix(FAMILY)?.strip_prefix(':')?;
                (id(name) == name).then(|| ProviderIdentity::Named(name.to_owned()))
            }
        }
    }
}

/// Some dial in, others are reached through a broker that other gateways may use as well.
pub(crate) fn family() -> Family {
    Family::new(FamilyName::of(FAMILY), TextTrust::Attributed, Reach::SeveralGateways).pass_text_on()
}

pub(crate) fn is_provider(info: &DeviceInfo) -> bool {
    info.family.name.as_str() == FAMILY
}

/// Numbers providers that have not reported their name yet.
static NAMELESS: AtomicU64 = AtomicU64::new(0);

/// Whether the provider has no identity yet.
pub(crate) fn is_nameless(info: &DeviceInfo) -> bool {
    is_provider(info) && info.key.0.is_empty()
}

/// Gives a provider its identity.
pub(crate) fn set_identity(info: &mut DeviceInfo, name: &str) -> DeviceKey {
    let id = id(name);
    info.key = DeviceKey(format!("{FAMILY}:{id}"));
    info.attributes.insert("hardware_id".to_owned(), json!(id));
    info.suggested_id = id;
    info.key.clone()
}

/// The id for a name.
fn id(name: &str) -> String {
    Some(DeviceId::slug(name)).filter(|id| !id.is_empty()).unwrap_or_else(|| FAMILY.to_owned())
}

/// Puts arguments in the order in which the tool declares them: small servers read them by position.
pub(crate) fn put_in_order(args: &mut Args, tool: Option<&Tool>) {
    let declared = tool.and_then(|tool| tool.input_schema.get("properties")).and_then(Value::as_object);
    let Some(declared) = declared.filter(|_| args.len() > 1) else { return };
    let place = |name: &String| declared.keys().position(|known| known == name).unwrap_or(usize::MAX);
    let mut pairs: Vec<(String, Value)> = std::mem::take(args).into_iter().collect();
    pairs.sort_by_key(|(name, _)| place(name));
    args.extend(pairs);
}

#[cfg(test)]
mod tests {
    use sinew_tool::Admission;

    use sinew_tool::TokenId;

    use super::*;

    #[test]
    fn a_name_becomes_an_identity_whatever_it_is() {
        let mut info = DeviceInfo {
            key: DeviceKey(String::new()),
            suggested_id: String::new(),
            family: family(),
            admission: Admission::OwnToken,
            name: String::new(),
            version: String::new(),
            status: Status::Ready,
            instructions: None,
            labels: Vec::new(),
            attributes: Default::default(),
        };
        assert!(is_nameless(&info));
        for (name, id) in [
            ("Weather (Berlin)", "weather-berlin"),
            ("board:aa:bb", "board-aa-bb"),
            ("天气", "provider"),
            ("", "provider"),
        ] {
            assert_eq!(set_identity(&mut info, name).0, format!("provider:{id}"), "{name}");
            assert_eq!((info.suggested_id.as_str(), &info.attributes["hardware_id"]), (id, &json!(id)));
        }
        assert!(!is_nameless(&info));
    }

    #[test]
    fn a_token_of_another_family_admits_no_provider() {
        let named = |key: &str| match ProviderIdentity::of(Bearer::Device {
            token: TokenId::parse("t").unwrap(),
            key: DeviceKey(key.to_owned()),
        }) {
            Some(ProviderIdentity::Named(name)) => Some(name),
            _ => None,
        };
        assert_eq!(named("provider:weather").as_deref(), Some("weather"));
        for other in ["board:weather", "provider:mqtt:id/name", "providers:x", "provider", "phone:1", "weather"] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn arguments_stand_in_the_order_of_their_declaration() {
        let schema = json!({"type": "object", "properties": {"b": {}, "a": {}}});
        let tool = Tool::new("t", "", schema);
        let mut args: Args =
            [("x", 1), ("a", 2), ("b", 3)].map(|(name, value)| (name.to_owned(), json!(value))).into_iter().collect();
        put_in_order(&mut args, Some(&tool));
        assert_eq!(args.keys().collect::<Vec<_>>(), ["b", "a", "x"]);
        put_in_order(&mut args, None);
        assert_eq!(args.len(), 3);
    }

    #[test]
    fn the_path_is_known_with_and_without_its_slash() {
        assert!(is_for("/mcp/") && is_for("/mcp"));
        assert!(!is_for("/mcp/v1") && !is_for("/"));
    }
}
