//! `sinew spec from`: the specification of the tools that a running MCP server offers.

use serde_json::json;
use sinew_spec::{print, read};

use super::args::SpecFromArgs;
use super::put;
use super::render::complete;
use super::server_connection::ServerConnection;
use crate::client::GatewayTarget;
use crate::error::CliError;

pub async fn run(args: SpecFromArgs) -> Result<(), CliError> {
    let target = GatewayTarget::of_server(&args.url, args.token.as_deref(), args.fingerprint.as_deref())?;
    let (mut server, greeting) = ServerConnection::greet(target).await?;
    let tools = server.tools().await?;
    let text = format!("{:#}\n", json!({ "tools": tools }));
    let mut document = read::tools_list_json(&text);
    if let Some(problem) = document.unreadable() {
        return Err(server.wrong(&problem.message));
    }
    document.tools.iter_mut().for_each(complete);
    document.intro = greeting["instructions"].as_str().map(print::prose).unwrap_or_default();
    let about = [&greeting["serverInfo"], &greeting["_meta"]["io.modelcontextprotocol/serverInfo"]];
    let name = about.into_iter().find_map(|about| about["name"].as_str()).unwrap_or("Tools");
    let title = format!("{name} - MCP Tool Specification");
    put(&print::render_document(&title, &document).text, args.out.as_deref())
}
