//! How AI clients are connected to a gateway: the configurations that people copy. `ai_clients` writes them.

use serde_json::{Value, json};

use crate::ai_clients::{self, AiClient, CLIENTS, ClientAccess, PersonFolders};
use crate::terminal::{Printer, TextStyle, shell_word};

/// What a client needs to know about a gateway.
pub struct ClientSetup {
    pub url: String,
    /// The address for clients on other machines; `None` if the gateway serves its own machine only.
    pub remote_url: Option<String>,
    /// A client's token, if one was made for the page.
    pub token: Option<String>,
    /// The option that names the state directory, if it is not the default.
    pub state: Option<String>,
    pub fingerprint: Option<String>,
}

impl ClientSetup {
    /// The absolute path: a client with windows does not have the PATH of a shell, and no client runs in the folder in
    /// which a person happened to type.
    pub fn program() -> String {
        std::env::current_exe().map_or("sinew".to_owned(), |path| path.display().to_string())
    }

    fn arguments(&self) -> Vec<String> {
        let state = self.state.iter().flat_map(|state| ["--state".to_owned(), state.clone()]);
        std::iter::once("stdio".to_owned()).chain(state).collect()
    }

    /// The command that adds the gateway to Claude Code, which starts `program` from any folder.
    pub fn claude_code(&self, program: &str) -> String {
        let words: Vec<String> = self.arguments().iter().map(|word| shell_word(word).into_owned()).collect();
        format!("claude mcp add sinew -- {} {}", shell_word(program), words.join(" "))
    }

    fn stdio(&self) -> Value {
        json!({"command": ClientSetup::program(), "args": self.arguments()})
    }

    fn http(&self) -> Value {
        json!({
            "type": "http",
            "url": format!("{}/mcp", self.url),
            "headers": {"Authorization": format!("Bearer {}", self.token())},
        })
    }

    pub fn to_json(&self) -> Value {
        json!({
            "stdio": {"mcpServers": {"sinew": self.stdio()}},
            "http": {"mcpServers": {"sinew": self.http()}},
            "vscode": {"servers": {"sinew": self.stdio()}},
            "claude_code": self.claude_code(&ClientSetup::program()),
        })
    }

    /// The page of `sinew connect`. It is printed as it is: commands and files are copied from it.
    pub fn to_text(&self, printer: Printer) -> String {
        let mut text = self.sections(printer);
        text.push_str(&self.with_token(printer));
        if self.token.is_none() {
            let hint = "snw_… stands for a token: `sinew token new --client NAME` creates one for a client.";
            text.push_str(&format!("\n{}\n", printer.wrap(hint, 0)));
        }
        text
    }

    /// The section of one client that Sinew knows, by its name in any spelling. These clients start `sinew stdio`, which
    /// gives each of them a token of its own.
    pub fn of_client(&self, name: &str, printer: Printer) -> Option<String> {
        ai_clients::find(name).map(|client| self.section(client, printer))
    }

    /// A section for each client that starts `sinew stdio`.
    fn sections(&self, printer: Printer) -> String {
        CLIENTS.iter().map(|client| self.section(client, printer)).collect()
    }

    fn section(&self, client: &AiClient, printer: Printer) -> String {
        if client.id == "claude-code" {
            let command = printer.command(&self.claude_code(&ClientSetup::program()));
            return section(printer, client.title, &[], "") + &command;
        }
        let access = ClientAccess::Start { program: ClientSetup::program(), words: self.arguments(), token: None };
        let place = PersonFolders::of_this_machine().map(|folders| ai_clients::shown(&client.file(&folders)));
        section(printer, client.title, place.as_slice(), &client.new_file(&client.entry(&access)))
    }

    /// The sections of clients that need a token.
    pub fn with_token(&self, printer: Printer) -> String {
        let http = file("mcpServers", &self.http());
        section(printer, "Clients that speak Streamable HTTP", &[], &http)
            + &section(printer, "Clients on another machine", &[], "")
            + &self.remote(printer)
    }

    fn token(&self) -> &str {
        self.token.as_deref().unwrap_or("snw_…")
    }

    /// The command for another machine, or how to let one in.
    fn remote(&self, printer: Printer) -> String {
        let Some(url) = &self.remote_url else {
            let hint = "This gateway serves its own machine only. To serve others:";
            return format!("  {hint}\n{}", printer.command("sinew serve --listen 0.0.0.0:7300 --tls"));
        };
        let mut command = format!("sinew stdio --url {url} --token {}", self.token());
        if let Some(fingerprint) = &self.fingerprint {
            command.push_str(&format!(" --fingerprint {}", fingerprint.replace(':', "").to_lowercase()));
        }
        printer.command(&command)
    }
}

fn section(printer: Printer, title: &str, places: &[String], body: &str) -> String {
    let places: String = places.iter().map(|place| format!("  {}\n", printer.paint(TextStyle::Dim, place))).collect();
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    format!("\n{}\n{places}{body}", printer.paint(TextStyle::Bold, title))
}

/// The file of a client with this one server, a member on each line.
fn file(servers: &str, server: &Value) -> String {
    let members = server.as_object().into_iter().flatten();
    let members: Vec<String> = members.map(|(name, value)| format!("  \"{name}\": {value}")).collect();
    format!("{{ \"{servers}\": {{ \"sinew\": {{\n{}\n}} }} }}", members.join(",\n"))
}
