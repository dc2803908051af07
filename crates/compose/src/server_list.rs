//! The MCP servers that the gateway calls: those of the configuration, and those that administrators add while it runs,
//! which are kept in the state directory.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sinew_api::{FoundServer, FoundServers, NewServer, Server, ServerSource};
use sinew_fetch::{AllowedHosts, HttpUrl};
use sinew_front::ServerList;
use sinew_servers::{FindSettings, ServerConfig, ServerPlace, ServerPlan};
use sinew_tool::settings::Setting;
use sinew_tool::{BoxFuture, DeviceId, ErrorKind, ToolError, Value, json};
use tokio::sync::watch;

use crate::error::Error;
use crate::state;

const FILE: &str = "servers.json";
/// Servers that administrators add by hand.
const MAX_ADDED: usize = 1000;
/// How long a server that was found can be approved by its name. Within it, the name stays with what was shown.
const FOUND_TIME: Duration = Duration::from_secs(600);
/// Servers that are remembered as found; anybody on the network can announce some.
const MAX_FOUND: usize = 64;

/// Cheap to clone; clones share the lists.
#[derive(Clone)]
pub(crate) struct SharedServers(Arc<Inner>);

struct Inner {
    directory: PathBuf,
    settings: FindSettings,
    lists: Mutex<Lists>,
    /// What is followed: servers of the configuration before added ones of the same name.
    plans: Arc<watch::Sender<Vec<ServerPlan>>>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct Lists {
    configured: Vec<ServerPlan>,
    added: Vec<(NewServer, ServerPlan)>,
    found: Vec<RememberedFind>,
}

struct RememberedFind {
    name: String,
    announced: String,
    url: HttpUrl,
    seen: Instant,
}

impl Lists {
    fn plans(&self) -> Vec<ServerPlan> {
        let mut plans = self.configured.clone();
        let is_free = |plan: &&ServerPlan| self.configured.iter().all(|other| other.key != plan.key);
        plans.extend(self.added.iter().map(|(_, plan)| plan).filter(is_free).cloned());
        plans
    }

    fn is_taken(&self, name: &str) -> bool {
        self.plans().iter().any(|plan| plan.suggested_id == name)
    }
}

impl SharedServers {
    /// Reads the servers that were added before.
    pub(crate) fn open(
        directory: &std::path::Path,
        settings: FindSettings,
        configured: Vec<ServerPlan>,
    ) -> Result<(SharedServers, watch::Receiver<Vec<ServerPlan>>), Error> {
        let saved: Vec<NewServer> = state::read_private(directory, FILE)?.unwrap_or_default();
        let mut lists = Lists { configured, ..Lists::default() };
        for server in saved.into_iter().take(MAX_ADDED) {
            match plan(&server, settings.allowed()) {
                Ok(plan) => lists.added.push((server, plan)),
                Err(why) => tracing::warn!(server = server.name, "a server that was added is left out: {why}"),
            }
        }
        let (plans, receiver) = watch::channel(lists.plans());
        let inner = Inner {
            directory: directory.to_owned(),
            settings,
            lists: Mutex::new(lists),
            plans: Arc::new(plans),
            changes: watch::Sender::default(),
        };
        Ok((SharedServers(Arc::new(inner)), receiver))
    }

    pub(crate) fn set_configured(&self, configured: Vec<ServerPlan>) {
        let mut lists = self.lists();
        lists.configured = configured;
        self.publish(&lists);
    }

    pub(crate) fn add_configured(&self, more: Vec<ServerPlan>) {
        let mut lists = self.lists();
        lists.configured.extend(more);
        self.publish(&lists);
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.0.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, lists: &Lists) {
        self.0.plans.send_replace(lists.plans());
        self.0.changes.send_replace(());
    }

    /// Adds a server that was checked, and keeps the list.
    fn keep(&self, lists: &mut Lists, server: NewServer) -> Result<Server, ToolError> {
        let plan = plan(&server, self.0.settings.allowed()).map_err(|why| wrong("url", why))?;
        if lists.is_taken(&plan.suggested_id) {
            let name = &plan.suggested_id;
            let why = format!("there is a server `{name}` already; choose another name, or remove that one first");
            return Err(wrong("name", why));
        }
        if lists.added.len() >= MAX_ADDED {
            return Err(wrong("url", format!("{MAX_ADDED} servers were added already; remove some")));
        }
        let shown = to_api(&plan, ServerSource::Added);
        lists.added.push((server, plan));
        if let Err(error) = self.save(lists) {
            lists.added.pop();
            return Err(error);
        }
        self.publish(lists);
        Ok(shown)
    }

    fn save(&self, lists: &Lists) -> Result<(), ToolError> {
        let servers: Vec<&NewServer> = lists.added.iter().map(|(server, _)| server).collect();
        let saved = state::write_private(&self.0.directory, FILE, &servers);
        saved.map_err(|error| ToolError::new(ErrorKind::Internal, error.message))
    }

    async fn check(&self, server: &NewServer) -> Result<(), ToolError> {
        let url = HttpUrl::parse(&server.url).map_err(|why| wrong("url", why))?;
        let allowed = self.0.settings.allowed();
        // A host that is not known yet is asked for when the server is connected, and checked then.
        let addresses = url.lookup().await.unwrap_or_default();
        if !addresses.is_empty() && !addresses.iter().any(|address| allowed.allows(address.ip())) {
            let why = format!(
                "{url} is on this machine or link-local, where the gateway's own services are; write it into \
                 [[servers]] of the configuration file, or set `inward = true` in [find]"
            );
            return Err(wrong("url", why));
        }
        Ok(())
    }
}

impl ServerList for SharedServers {
    fn list(&self) -> Vec<Server> {
        let lists = self.lists();
        let source = |plan: &ServerPlan| match lists.configured.iter().any(|other| other.key == plan.key) {
            true => ServerSource::Configuration,
            false => ServerSource::Added,
        };
        lists.plans().iter().map(|plan| to_api(plan, source(plan))).collect()
    }

    fn changes(&self) -> watch::Receiver<()> {
        self.0.changes.subscribe()
    }

    fn add(&self, server: NewServer) -> BoxFuture<'_, Result<Server, ToolError>> {
        Box::pin(async move {
            self.check(&server).await?;
            self.keep(&mut self.lists(), server)
        })
    }

    fn remove(&self, name: &str) -> Result<Server, ToolError> {
        let mut lists = self.lists();
        let Some(place) = lists.added.iter().position(|(_, plan)| plan.suggested_id == name) else {
            let why = match lists.is_taken(name) {
                true => format!("`{name}` is in the configuration file; remove it there"),
                false => format!("no server is called `{name}`; `sinew servers` lists them"),
            };
            return Err(wrong("name", why));
        };
        let removed = lists.added.remove(place);
        if let Err(error) = self.save(&lists) {
            lists.added.insert(place, removed);
            return Err(error);
        }
        self.publish(&lists);
        Ok(to_api(&removed.1, ServerSource::Added))
    }

    fn find(&self) -> BoxFuture<'_, FoundServers> {
        Box::pin(async move {
            let FindSettings { mdns, mdns_address, .. } = self.0.settings;
            if !mdns {
                return FoundServers { found: Vec::new(), problem: None };
            }
            let (servers, problem) = match sinew_servers::find(mdns_address, self.0.settings.allowed()).await {
                Ok(servers) => (servers, None),
                Err(error) => {
                    let why = format!("servers cannot be looked for by mDNS on this machine: {error}");
                    (Vec::new(), Some(why))
                }
            };
            let mut lists = self.lists();
            remember(&mut lists, servers);
            let found = lists.found.iter().map(|find| FoundServer {
                name: find.name.clone(),
                announced: find.announced.clone(),
                url: find.url.whole(),
                more: Default::default(),
            });
            FoundServers { found: found.collect(), problem }
        })
    }

    fn approve(&self, name: &str) -> Result<Server, ToolError> {
        let mut lists = self.lists();
        lists.found.retain(|find| find.seen.elapsed() < FOUND_TIME);
        let Some(find) = lists.found.iter().find(|find| find.name == name) else {
            let why = format!("no server `{name}` was found in the last minutes; `sinew boards` looks for them");
            return Err(wrong("name", why));
        };
        let server = NewServer { url: find.url.whole(), name: Some(find.name.clone()), ..NewServer::default() };
        let shown = self.keep(&mut lists, server)?;
        lists.found.retain(|find| find.name != name);
        Ok(shown)
    }
}

/// Takes what a search found: what is followed already is left out, and a name that was shown stays with its address.
fn remember(lists: &mut Lists, servers: Vec<sinew_servers::FoundServer>) {
    lists.found.retain(|find| find.seen.elapsed() < FOUND_TIME);
    let followed = lists.plans();
    let is_at =
        |plan: &ServerPlan, url: &HttpUrl| matches!(&plan.place, ServerPlace::Http { url: known, .. } if known == url);
    let is_followed = |url: &HttpUrl| followed.iter().any(|plan| is_at(plan, url));
    lists.found.retain(|find| !is_followed(&find.url));
    for server in servers.into_iter().filter(|server| !is_followed(&server.url)) {
        let same = |find: &&mut RememberedFind| find.url == server.url && find.announced == server.name;
        if let Some(find) = lists.found.iter_mut().find(same) {
            find.seen = Instant::now();
            continue;
        }
        if lists.found.len() >= MAX_FOUND {
            return;
        }
        let name = new_name(lists, &server.name);
        lists.found.push(RememberedFind { name, announced: server.name, url: server.url, seen: Instant::now() });
    }
}

/// A name that neither a server nor another find has.
fn new_name(lists: &Lists, announced: &str) -> String {
    let base = DeviceId::slug(announced);
    // Six digits are the code of a board.
    let is_code = base.bytes().all(|byte| byte.is_ascii_digit());
    let base = if is_code { format!("server-{base}").trim_end_matches('-').to_owned() } else { base };
    let base = base[..base.len().min(DeviceId::MAX_LENGTH)].to_owned();
    let is_free = |name: &String| !lists.is_taken(name) && lists.found.iter().all(|find| find.name != *name);
    let numbered = (2..).map(|number| format!("{}-{number}", &base[..base.len().min(DeviceId::MAX_LENGTH - 5)]));
    std::iter::once(base.clone()).chain(numbered).find(is_free).unwrap_or_default()
}

/// What is followed for a server that was added. It is checked as the configuration is.
fn plan(server: &NewServer, allowed: AllowedHosts) -> Result<ServerPlan, String> {
    let NewServer { url, name, token, headers, poll_s, labels } = server;
    let mut value =
        json!({"url": url, "name": name, "token": token, "headers": headers, "poll": poll_s, "labels": labels});
    if let Value::Object(members) = &mut value {
        members.retain(|_, member| !member.is_null());
    }
    let mut config = ServerConfig::default();
    config.read(value).map_err(|error| error.to_string())?;
    let mut plan = sinew_servers::plan(&[config]).map_err(|(_, why)| why)?.remove(0);
    if let ServerPlace::Http { allowed: hosts, .. } = &mut plan.place {
        *hosts = allowed;
    }
    Ok(plan)
}

fn to_api(plan: &ServerPlan, source: ServerSource) -> Server {
    Server {
        name: plan.suggested_id.clone(),
        address: plan.place.describe(),
        source,
        poll_s: plan.poll.as_secs(),
        labels: plan.labels.clone(),
        more: Default::default(),
    }
}

fn wrong(parameter: &str, why: String) -> ToolError {
    let details = json!({"parameter_name": parameter, "issue": why});
    ToolError::new(ErrorKind::InvalidArguments, why).with_details(details)
}
