//! The console: pages at `/console/` in which people see what happens, try tools and decide about calls.
//!
//! The pages are shells of HTML with small scripts that ask the same `/api/v1` as the command line, behind sessions in
//! place of tokens. Signing in and deciding about one call work without scripts. Everything that a device wrote is shown
//! as text and never as HTML.

#![warn(unreachable_pub)]

mod approval;
mod assets;
mod attempts;
mod browser;
mod consent;
mod guard;
mod login;
mod page;
mod people;
mod sessions;
mod stream;

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::routing::{any, get, post};
use sinew_api::{CreatedPerson, LoginLink, NewPerson, Person, PersonLogin, PersonRole};
use sinew_front::{ConsoleHost, ConsolePages};
use sinew_gateway::Principal;
use sinew_tool::{BoxFuture, ToolError};

use people::PeopleFile;
use sessions::Sessions;

sinew_tool::settings! {
    /// The pages for people at `/console/`, see `docs/console.md`.
    pub struct ConsoleSettings {
        /// Whether they are served.
        pub enabled: bool = true;
        /// Web origins whose pages may show the console in a frame: `https://home.example`.
        pub frame_ancestors: Vec<String> = Vec::new(), check sinew_front::check_origins;
        /// IP addresses of reverse proxies. Only their `X-Forwarded-Host`, `X-Forwarded-Proto` and `X-Forwarded-For`
        /// headers are believed.
        pub trusted_proxy: Vec<String> = Vec::new(), check browser::check_addresses;
        /// Address that is called when a call begins to wait for a person, with a link to its page; see
        /// `docs/console.md`.
        pub webhook: Option<String> = None, check check_webhook;
    }
}

fn check_webhook(address: &Option<String>) -> Result<(), String> {
    match address {
        Some(address) if !address.starts_with("https://") && !address.starts_with("http://") => {
            Err("is not a web address; expected for example https://ntfy.example/topic".to_owned())
        }
        _ => Ok(()),
    }
}

/// The console of one gateway.
pub struct Console {
    settings: Arc<ConsoleSettings>,
    people: Arc<PeopleFile>,
    sessions: Arc<Sessions>,
    attempts: Arc<attempts::Attempts>,
}

impl Console {
    /// People are kept in the state directory.
    pub fn open(settings: ConsoleSettings, state: &Path) -> std::io::Result<Console> {
        let people = Arc::new(PeopleFile::open(state.join("people.json"))?);
        Ok(Console { settings: Arc::new(settings), people, sessions: Arc::default(), attempts: Arc::default() })
    }
}

/// What all pages use.
struct ConsoleState {
    host: ConsoleHost,
    settings: Arc<ConsoleSettings>,
    people: Arc<PeopleFile>,
    sessions: Arc<Sessions>,
    attempts: Arc<attempts::Attempts>,
    changes: stream::Changes,
}

impl ConsolePages for Console {
    fn pages(&self, host: ConsoleHost) -> Router {
        let state = Arc::new(ConsoleState {
            changes: stream::Changes::new(&host),
            host,
            settings: self.settings.clone(),
            people: self.people.clone(),
            sessions: self.sessions.clone(),
            attempts: self.attempts.clone(),
        });
        let inside = page::PAGES.iter().fold(Router::new(), |router, page| {
            router.route(&page.path(), get(move |state, session| page::shell(page, state, session)))
        });
        let inside = inside
            .route("/console/approval", get(approval::show).post(approval::decide))
            .route("/console/authorize", get(consent::show).post(consent::decide))
            .route("/console/logout", post(login::sign_out))
            .route("/console/stream", get(stream::open))
            .route("/console/api/v1/{*rest}", any(guard::pass_to_api))
            .route_layer(axum::middleware::from_fn_with_state(state.clone(), guard::require_session));
        Router::new()
            .route("/", get(|| async { page::redirect("console/") }))
            .route("/console", get(|| async { page::redirect("console/") }))
            .route("/console/login", get(login::form).post(login::sign_in))
            .route("/console/assets/{version}/{file}", get(assets::serve))
            .merge(inside)
            .layer(axum::middleware::from_fn_with_state(state.clone(), guard::add_headers))
            .with_state(state)
    }

    fn login_link(&self, who: &Principal) -> Result<LoginLink, ToolError> {
        let (code, seconds) = self.sessions.new_code(who)?;
        Ok(LoginLink { path: format!("/console/login#{code}"), seconds })
    }

    fn people(&self) -> Vec<Person> {
        self.people.list()
    }

    fn check_person<'a>(
        &'a self,
        who: &'a Principal,
        login: PersonLogin,
    ) -> BoxFuture<'a, Result<(Principal, PersonRole), ToolError>> {
        Box::pin(login::check_person(&self.people, &self.attempts, who, login))
    }

    fn add_person(&self, person: NewPerson) -> BoxFuture<'_, Result<CreatedPerson, ToolError>> {
        Box::pin(async move {
            let created = self.people.add(person).await?;
            // The passphrase or the role of somebody who was known may have changed.
            self.sessions.end_of(&Principal::person(&created.about.name).id);
            Ok(created)
        })
    }

    fn remove_person(&self, name: &str) -> Result<Person, ToolError> {
        let removed = self.people.remove(name)?;
        self.sessions.end_of(&Principal::person(&removed.name).id);
        Ok(removed)
    }
}
