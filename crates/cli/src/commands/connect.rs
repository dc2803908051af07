//! `sinew connect`: AI clients are connected to the gateway.

use std::path::Path;

use serde_json::{Value, json};
use sinew_api::{CreatedToken, IfTaken, NewToken, TokenRole};
use sinew_compose::state;
use sinew_tool::spelling;

use crate::ai_clients::{
    self, AiClient, CLIENTS, ClientAccess, ClientFile, ENTRY, EditProblem, PersonFolders, client_name, is_ours,
    token_in,
};
use crate::args::{ConnectArgs, ReachArgs};
use crate::client::GatewayTarget;
use crate::client_setup::ClientSetup;
use crate::client_tokens::{self, ClientName};
use crate::error::{CliError, CliErrorKind};
use crate::terminal::{Printer, Table, TextStyle, print, print_exact, print_json};

/// Stands for a token that is not made yet.
const NO_TOKEN: &str = "snw_…";

/// Lines around a change that are shown with it.
const CONTEXT: usize = 2;

pub async fn run(args: &ConnectArgs, printer: Printer) -> Result<(), CliError> {
    match &args.name {
        Some(name) => {
            let client = ai_clients::find(name).ok_or_else(|| unknown(name))?;
            let change = ClientChange::new(client, args)?;
            match args.remove {
                true => change.remove(args, printer).await,
                false => change.add(args, printer).await,
            }
        }
        None if args.list => list(printer),
        None => show(args, printer).await,
    }
}

fn unknown(name: &str) -> CliError {
    let ids: Vec<&str> = CLIENTS.iter().map(|client| client.id).collect();
    let nearest = spelling::nearest(name, ids.iter().copied());
    let nearest = nearest.map(|nearest| format!(" Did you mean `{nearest}`?")).unwrap_or_default();
    let message = format!(
        "`{name}` is not a client whose file Sinew can write; expected one of {}.{nearest} For another client, \
         `sinew connect --client NAME` creates a token and prints what it needs",
        ids.join(", ")
    );
    CliError::new(CliErrorKind::Usage, message)
}

/// The file of a client, and what is in it.
struct ClientChange {
    client: &'static AiClient,
    file: ClientFile,
    /// The entry that is there now.
    entry: Option<Value>,
}

impl ClientChange {
    fn new(client: &'static AiClient, args: &ConnectArgs) -> Result<ClientChange, CliError> {
        let path = match &args.file {
            Some(file) => file.clone(),
            None => client.file(&folders()?),
        };
        let file = ClientFile::read(&path)?;
        let entry = client.format.find_entry(file.text(), client.servers, ENTRY);
        let entry = entry.map_err(|problem| refused(client, file.path(), &problem))?;
        if let Some(entry) = entry.as_ref().filter(|entry| !is_ours(entry) && !args.force) {
            let message = format!(
                "{} has an entry `{ENTRY}` that was not written by `sinew connect`: {entry}. --force {} it; a copy of the file is kept",
                file.path().display(),
                if args.remove { "removes" } else { "replaces" }
            );
            return Err(CliError::new(CliErrorKind::Config, message));
        }
        Ok(ClientChange { client, file, entry })
    }

    async fn add(&self, args: &ConnectArgs, printer: Printer) -> Result<(), CliError> {
        let client = self.client;
        if args.http && !client.speaks_http() {
            let message = format!("{} starts its servers itself and speaks no HTTP; leave --http out", client.title);
            return Err(CliError::new(CliErrorKind::Usage, message));
        }
        let access = self.access(args).await?;
        let wanted = client.entry(&access);
        let new = client.format.with_entry(self.file.text(), client.servers, ENTRY, &wanted).map_err(|problem| {
            let refused = refused(client, self.file.path(), &problem);
            let snippet = client.new_file(&wanted);
            CliError { message: format!("{}. To add it yourself:\n{snippet}", refused.message), ..refused }
        })?;
        let done = match &self.entry {
            Some(_) => "was updated in",
            None => "was added to",
        };
        self.finish(&new, done, args, printer)?;
        if !printer.is_json() && !args.print {
            let remove = format!("`sinew connect {} --remove` undoes this.", client.id);
            print(&format!("{}. {remove}\n", client.notice));
        }
        Ok(())
    }

    async fn remove(&self, args: &ConnectArgs, printer: Printer) -> Result<(), CliError> {
        let client = self.client;
        let new = client.format.without_entry(self.file.text(), client.servers, ENTRY);
        let new = new.map_err(|problem| refused(client, self.file.path(), &problem))?;
        self.finish(&new, "was removed from", args, printer)?;
        let Some(entry) = self.entry.as_ref().filter(|_| !args.print) else { return Ok(()) };
        let ended = self.end_token(entry, args).await;
        if !printer.is_json() {
            print(&match ended {
                Ok(true) => "Its token is revoked.\n".to_owned(),
                Ok(false) => {
                    "If it had a token, that is still valid: `sinew token list` shows its id, and `sinew token \
                              revoke ID` ends it.\n"
                        .to_owned()
                }
                Err(failure) => format!("Its token is still valid: {failure}. `sinew token revoke ID` ends it.\n"),
            });
        }
        Ok(())
    }

    /// Writes the file, or shows what would be written.
    fn finish(&self, new: &str, done: &str, args: &ConnectArgs, printer: Printer) -> Result<(), CliError> {
        let (client, path) = (self.client, self.file.path());
        let is_changed = new != self.file.text();
        let copy = match is_changed && !args.print {
            true => self.file.replace(new)?,
            false => None,
        };
        if printer.is_json() {
            print_json(&json!({
                "client": client.id, "file": path, "changed": is_changed && !args.print, "would_change": is_changed, "backup": copy,
            }));
            return Ok(());
        }
        let shown = ai_clients::shown(path);
        if args.print && is_changed {
            print(&format!("{}  {shown}\n", printer.paint(TextStyle::Bold, client.title)));
            print_exact(&difference(self.file.text(), new, printer));
            return Ok(());
        }
        print(&match (is_changed, args.remove) {
            (true, _) => format!("{}: `{ENTRY}` {done} {shown}.\n", client.title),
            (false, true) => format!("{}: {shown} has no entry `{ENTRY}`.\n", client.title),
            (false, false) => format!("{}: {shown} has this entry already.\n", client.title),
        });
        if let Some(copy) = copy {
            print(&format!("The file as it was: {}\n", ai_clients::shown(&copy)));
        }
        Ok(())
    }

    /// How the client gets to the gateway, with a token of its own.
    async fn access(&self, args: &ConnectArgs) -> Result<ClientAccess, CliError> {
        let reach = &args.reach;
        let name = args.client.clone().unwrap_or_else(|| self.client.id.to_owned());
        let base = reach.state.directory()?;
        let program = ClientSetup::program();
        if let Some(target) = GatewayTarget::named(reach)?.filter(|target| target.own_token_of.is_none()) {
            let token = self.remote_token(&target, &name, args).await?;
            let url = target.url.to_string().trim_end_matches('/').to_owned();
            if args.http {
                return Ok(ClientAccess::Http { url: format!("{url}/mcp"), token });
            }
            let mut words = vec!["stdio".to_owned(), "--client".to_owned(), name, "--url".to_owned(), url];
            if let Some(fingerprint) = &reach.fingerprint {
                words.extend(["--fingerprint".to_owned(), fingerprint.clone()]);
            }
            if let Some(ca) = &reach.ca {
                let ca = std::path::absolute(ca).unwrap_or_else(|_| ca.clone());
                words.extend(["--ca".to_owned(), ca.display().to_string()]);
            }
            return Ok(ClientAccess::Start { program, words, token: Some(token) });
        }
        let running = state::find_running(&base);
        let token = match &running {
            Some(running) if !args.print => {
                let target = GatewayTarget::of_running(running, reach)?;
                Some(client_tokens::own(&target, &running.directory, &ClientName::Given(name.clone())).await?)
            }
            _ => None,
        };
        if args.http {
            let Some(running) = running else {
                let message = format!(
                    "no gateway runs on {}, so there is no token to put into the file; start one with `sinew serve`, or leave \
                     --http out",
                    base.display()
                );
                return Err(CliError::new(CliErrorKind::NoGateway, message));
            };
            let token = token.unwrap_or_else(|| NO_TOKEN.to_owned());
            return Ok(ClientAccess::Http { url: format!("{}/mcp", running.addresses.url), token });
        }
        let mut words = vec!["stdio".to_owned(), "--client".to_owned(), name];
        if state::directory(None).ok().as_ref() != Some(&base) {
            words.extend(["--state".to_owned(), base.display().to_string()]);
        }
        Ok(ClientAccess::Start { program, words, token: None })
    }

    /// A token for a gateway elsewhere: the one in the file, else a new one, else the one that was given, which is then a
    /// client's.
    async fn remote_token(&self, target: &GatewayTarget, name: &str, args: &ConnectArgs) -> Result<String, CliError> {
        if args.print {
            return Ok(NO_TOKEN.to_owned());
        }
        let kept = self.entry.as_ref().and_then(token_in);
        if let Some(kept) = kept
            && self.entry.as_ref().is_some_and(|entry| leads_to(entry, target))
            && target.with_token(kept.to_owned()).check().await.is_ok()
        {
            return Ok(kept.to_owned());
        }
        let Some(given) = args.reach.token.clone() else {
            let message = format!(
                "{} needs a token; give one with --token or SINEW_TOKEN: an administrator's makes one \
                                   for the client, a client's is used itself",
                target.description
            );
            return Err(CliError::new(CliErrorKind::TokenRefused, message));
        };
        target.check().await?;
        match new_token(name, target).await {
            // The token was accepted a moment ago, so its role is too small for that.
            Err(failure) if failure.is(CliErrorKind::TokenRefused) => Ok(given),
            made => made,
        }
    }

    /// Ends the token that `sinew connect` or `sinew stdio` made for the entry; `false` where it is not known.
    async fn end_token(&self, entry: &Value, args: &ConnectArgs) -> Result<bool, CliError> {
        let running = state::find_running(&args.reach.state.directory()?);
        let Some(running) = running.filter(|_| args.reach.url.is_none()) else { return Ok(false) };
        let name = client_name(entry).or(args.client.as_deref()).unwrap_or(self.client.id);
        let target = GatewayTarget::of_running(&running, &args.reach)?;
        client_tokens::end(&target, &running.directory, name).await
    }
}

/// Whether an entry is for this gateway.
fn leads_to(entry: &Value, target: &GatewayTarget) -> bool {
    let url = target.url.to_string();
    let url = url.trim_end_matches('/');
    let words = entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let addresses = ["url", "uri", "serverUrl", "httpUrl"].iter().filter_map(|member| entry[*member].as_str());
    words.chain(addresses).any(|word| word == url || word.strip_suffix("/mcp") == Some(url))
}

fn refused(client: &AiClient, path: &Path, problem: &EditProblem) -> CliError {
    let message = format!(
        "{}, {problem}; nothing was changed. {} reads {} there",
        path.display(),
        client.title,
        client.format.name()
    );
    CliError::new(CliErrorKind::Config, message)
}

fn folders() -> Result<PersonFolders, CliError> {
    PersonFolders::of_this_machine().ok_or_else(|| {
        CliError::new(CliErrorKind::Config, "no home directory to look for clients in; set HOME, or give --file FILE")
    })
}

/// The lines that change, with some around them.
fn difference(old: &str, new: &str, printer: Printer) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(old, new)| old == new).count();
    let before = same(&mut old.iter().zip(&new));
    let behind = same(&mut old[before..].iter().rev().zip(new[before..].iter().rev()));
    let line = |sign: &str, style, line: &&str| format!("{}\n", printer.paint(style, &format!("{sign} {line}")));
    let around = |lines: &[&str]| lines.iter().map(|text| line(" ", TextStyle::Dim, text)).collect::<String>();
    let first = before.saturating_sub(CONTEXT);
    let last = (new.len() - behind + CONTEXT).min(new.len());
    [
        around(&new[first..before]),
        old[before..old.len() - behind].iter().map(|text| line("-", TextStyle::Bad, text)).collect(),
        new[before..new.len() - behind].iter().map(|text| line("+", TextStyle::Good, text)).collect(),
        around(&new[new.len() - behind..last]),
    ]
    .concat()
}

/// Which clients are here, and which of them have an entry.
fn list(printer: Printer) -> Result<(), CliError> {
    let folders = folders()?;
    let mut table = Table::new(["CLIENT", "STATE", "FILE"]).wrap(&["STATE"]);
    let mut clients = Vec::new();
    for client in CLIENTS {
        let path = client.file(&folders);
        let (state, style) = state_of(client, &path, &folders);
        table.row([
            (Some(TextStyle::Bold), client.id.to_owned()),
            (style, state.clone()),
            (Some(TextStyle::Dim), ai_clients::shown(&path)),
        ]);
        clients.push(json!({"client": client.id, "title": client.title, "state": state, "file": path}));
    }
    if printer.is_json() {
        print_json(&json!({"clients": clients}));
        return Ok(());
    }
    print(&printer.table(&table));
    print("\n`sinew connect CLIENT` writes the file of one, `--print` shows what it would write.\n");
    Ok(())
}

fn state_of(client: &AiClient, path: &Path, folders: &PersonFolders) -> (String, Option<TextStyle>) {
    let entry = match ClientFile::read(path) {
        Ok(file) => client.format.find_entry(file.text(), client.servers, ENTRY).map_err(|problem| problem.to_string()),
        Err(failure) => Err(failure.message),
    };
    match entry {
        Err(why) => (format!("cannot be read: {why}"), Some(TextStyle::Bad)),
        Ok(Some(entry)) if is_ours(&entry) => ("connected".to_owned(), Some(TextStyle::Good)),
        Ok(Some(_)) => (format!("has another `{ENTRY}`"), Some(TextStyle::Warn)),
        Ok(None) if client.is_present(folders) => ("not connected".to_owned(), None),
        Ok(None) => ("not found here".to_owned(), Some(TextStyle::Dim)),
    }
}

/// The page for people who write the configuration themselves.
async fn show(args: &ConnectArgs, printer: Printer) -> Result<(), CliError> {
    let reach = &args.reach;
    let base = reach.state.directory()?;
    let running = state::find_running(&base);
    let (url, remote_url) = match (GatewayTarget::named(reach)?, &running) {
        (Some(target), _) => {
            let url = target.url.to_string().trim_end_matches('/').to_owned();
            (url.clone(), Some(url))
        }
        (None, Some(running)) => (running.addresses.url.clone(), running.addresses.remote_urls().into_iter().next()),
        (None, None) => ("http://127.0.0.1:7300".to_owned(), None),
    };
    let mut setup = ClientSetup {
        url,
        remote_url,
        token: reach.token.clone(),
        state: (state::directory(None).ok().as_ref() != Some(&base)).then(|| base.display().to_string()),
        fingerprint: running.as_ref().and_then(|running| running.addresses.fingerprint.clone()),
    };
    let own_section = args.client.as_ref().and_then(|client| setup.of_client(client, printer));
    if let (Some(client), None) = (&args.client, &own_section) {
        setup.token = Some(made_token(client, reach).await?);
    }
    if printer.is_json() {
        print_json(&setup.to_json());
        return Ok(());
    }
    let page = match (own_section, &args.client) {
        (Some(section), _) => section,
        (None, Some(_)) => setup.with_token(printer),
        (None, None) => {
            let ids: Vec<&str> = CLIENTS.iter().map(|client| client.id).collect();
            let hint = format!(
                "`sinew connect CLIENT` writes these files: {}. `--print` shows what it would write, `--list` what is here.",
                ids.join(", ")
            );
            format!("{}\n{}", printer.wrap(&hint, 0), setup.to_text(printer))
        }
    };
    print_exact(page.trim_start_matches('\n'));
    print(&match running {
        Some(running) => format!("\nClients use {}.\n", running.describe()),
        None => "\nNo gateway runs now. The first client starts one; `sinew serve` starts one that stays.\n".to_owned(),
    });
    Ok(())
}

async fn made_token(client: &str, reach: &ReachArgs) -> Result<String, CliError> {
    new_token(client, &GatewayTarget::find(reach)?).await
}

async fn new_token(client: &str, target: &GatewayTarget) -> Result<String, CliError> {
    let request = NewToken {
        role: TokenRole::Client,
        label: client.to_owned(),
        device: None,
        expires_in_s: None,
        if_taken: IfTaken::Refuse,
    };
    let made: CreatedToken = target.connect().await?.post("/api/v1/tokens", &request).await?;
    Ok(made.token)
}
