//! What stands on a virtual desk beside boards that connect by themselves: a board that speaks lines, and a lamp that
//! speaks plain HTTP and no MCP.

use std::io;
use std::net::SocketAddr;

use sinew_wire::device::{Board, Property, Reply, ToolSpec};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Requests of a gateway are a few hundred bytes.
const MAX_REQUEST_BYTES: u64 = 8 << 10;

/// A plant with a sensor and a pump: a board of the SDK, for any line.
pub fn plant() -> Board {
    let mut moisture = 34;
    let pour = ToolSpec::new("water", "Pour water onto the plant").with(Property::integer("millilitres", 10..=200));
    Board::new("plant", "1.0.0")
        .tool(ToolSpec::new("get_light", "Read how bright it is at the plant, in lux"), |_| Ok(Reply::from(420)))
        .tool(pour, move |arguments| {
            moisture = (moisture + arguments.integer("millilitres")? / 10).min(90);
            Ok(Reply::from(moisture))
        })
}

/// A lamp with the web interface of a Shelly relay: `/relay/0`, and `/relay/0?turn=on`.
pub struct HttpLamp {
    listener: TcpListener,
}

impl HttpLamp {
    pub async fn open(listen: SocketAddr) -> io::Result<HttpLamp> {
        Ok(HttpLamp { listener: TcpListener::bind(listen).await? })
    }

    pub fn url(&self) -> io::Result<String> {
        Ok(format!("http://{}", self.listener.local_addr()?))
    }

    /// Serves one request after the other, as a small chip does.
    pub async fn run(self, shutdown: CancellationToken) -> io::Result<()> {
        let mut is_on = false;
        while let Some(accepted) = shutdown.run_until_cancelled(self.listener.accept()).await {
            let Ok((stream, _)) = accepted else { continue };
            // A client that goes away in the middle is no matter.
            let _ = shutdown.run_until_cancelled(serve(stream, &mut is_on)).await;
        }
        Ok(())
    }
}

async fn serve(stream: TcpStream, is_on: &mut bool) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut first = String::new();
    (&mut stream).take(MAX_REQUEST_BYTES).read_line(&mut first).await?;
    let mut line = String::from("x");
    while !line.trim().is_empty() {
        line.clear();
        (&mut stream).take(MAX_REQUEST_BYTES).read_line(&mut line).await?;
    }
    let (status, body) = match first.split(' ').nth(1) {
        Some("/relay/0?turn=on") => (200, true),
        Some("/relay/0?turn=off") => (200, false),
        Some("/relay/0") => (200, *is_on),
        _ => (404, *is_on),
    };
    *is_on = body;
    let body = format!("{{\"ison\":{body},\"has_timer\":false}}");
    let head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Type: application/json");
    stream.write_all(format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
    stream.shutdown().await
}
