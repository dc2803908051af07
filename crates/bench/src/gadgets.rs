//! Boards and gadgets that wait for requests: what it costs to look after many of them, and what a call through the
//! gateway adds to a bare one over HTTP, a serial line and a broker.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use sinew_boards::broker::{Address, Connection, Disconnected, client_id};
use sinew_mqtt::client::{BrokerPacket, Introduction, MqttMessage, Subscription};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::load::{bench_error, percentile};
use crate::process::{self, Process, Scratch, TOKEN};
use crate::report::{Figure, Report};
use crate::{BenchPlan, Error, alternate, ready_boards, request, servers};

/// The first servers, which allocate what all of them share.
const FIRST: u32 = 16;
/// How often the tools are looked at by default, in seconds. The cost is measured at a shorter time and scaled to this.
const POLL: f64 = 30.0;

pub(crate) async fn measure(plan: &BenchPlan, scratch: &Scratch, report: &mut Report) -> Result<(), Error> {
    let board = ["sim", "http-board", "--style", "zephyr", "--listen", "127.0.0.1:0", "--output", "json"];
    let kiln = Process::start(&board).await?;
    let url = kiln.page["url"].as_str().unwrap_or_default().to_owned();
    polled(plan, &url, &scratch.folder("polled"), report).await?;
    over_http(plan, &url, &scratch.folder("over-http"), report).await?;
    kiln.stop().await;
    over_a_line(plan, &scratch.folder("over-a-line"), report).await?;
    over_a_broker(plan, &scratch.folder("over-a-broker"), report).await
}

async fn polled(plan: &BenchPlan, url: &str, folder: &Path, report: &mut Report) -> Result<(), Error> {
    let (count, poll) = if plan.is_quick() { (50, 1) } else { (1000, 5) };
    let listed = |count: u32| -> String {
        (0..count)
            .map(|number| format!("[[servers]]\nname = \"b{number}\"\nurl = \"{url}\"\npoll = {poll}\n"))
            .collect()
    };
    let (gateway, config) = gateway(folder, &listed(FIRST)).await?;
    let address = gateway.address()?;
    ready_boards(address, FIRST).await?;
    let before = gateway.resident()?;
    write(&config, &listed(FIRST + count))?;
    ready_boards(address, FIRST + count).await?;
    // A whole round of looks, so that everything that is kept is there.
    tokio::time::sleep(Duration::from_secs(poll)).await;
    let (used, began) = (gateway.processor_time()?, Instant::now());
    tokio::time::sleep(Duration::from_secs(2 * poll)).await;
    let used = gateway.processor_time()?.saturating_sub(used).as_secs_f64() / began.elapsed().as_secs_f64();
    let each = gateway.resident()?.saturating_sub(before) as f64 / f64::from(count) / 1024.0;
    gateway.stop().await;
    let share = used * poll as f64 / POLL * 100.0;
    let label = format!("share of a core for {count} HTTP boards, looked at every 30 s");
    report.push(Figure::at_most("servers_cpu_percent", &label, share, "%", 5.0));
    report.push(Figure::at_most("server_kib", "memory for each of them", each, "KiB", 16.0));
    Ok(())
}

async fn over_http(plan: &BenchPlan, url: &str, folder: &Path, report: &mut Report) -> Result<(), Error> {
    let board: SocketAddr = url
        .trim_start_matches("http://")
        .trim_end_matches("/mcp")
        .parse()
        .map_err(|error| bench_error(format!("{url}: {error}")))?;
    let (gateway, _) = gateway(folder, &format!("[[servers]]\nname = \"kiln\"\nurl = \"{url}\"\n")).await?;
    let stream = TcpStream::connect(board).await.map_err(|error| bench_error(format!("{url}: {error}")))?;
    stream.set_nodelay(true).map_err(|error| bench_error(format!("{url}: {error}")))?;
    let mut bare = BareHttp { stream, board, buffer: Vec::new() };
    let times = medians(plan, &gateway, "temperature", async || bare.call().await).await?;
    gateway.stop().await;
    let (ours, theirs) = times;
    report.push(Figure::plain("http_bare_us", "a board called over HTTP by a bare client, median", theirs, "µs"));
    report.push(Figure::at_most("http_added_us", "added by the gateway", ours - theirs, "µs", 150.0));
    Ok(())
}

/// Medians in µs of calls through the gateway and of bare ones.
async fn medians(
    plan: &BenchPlan,
    gateway: &Process,
    tool: &str,
    bare: impl AsyncFnMut() -> Result<(), Error>,
) -> Result<(f64, f64), Error> {
    let address = gateway.address()?;
    ready_boards(address, 1).await?;
    let call = request::call(address, TOKEN, tool, json!({}));
    let (mut ours, mut theirs) = alternate(plan, address, call, bare).await?;
    Ok((percentile(&mut ours, 0.5), percentile(&mut theirs, 0.5)))
}

/// The smallest client there can be of a board over HTTP, on one connection.
struct BareHttp {
    stream: TcpStream,
    board: SocketAddr,
    buffer: Vec<u8>,
}

impl BareHttp {
    async fn call(&mut self) -> Result<(), Error> {
        let body = call_message("temperature");
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.board,
            body.len()
        );
        let failed = |error: std::io::Error| bench_error(format!("the bare client: {error}"));
        self.stream.write_all(request.as_bytes()).await.map_err(failed)?;
        self.buffer.clear();
        // The last chunk.
        while !self.buffer.ends_with(b"0\r\n\r\n") {
            if self.stream.read_buf(&mut self.buffer).await.map_err(failed)? == 0 {
                return Err(bench_error("the board closed the connection of the bare client"));
            }
        }
        Ok(())
    }
}

fn call_message(tool: &str) -> String {
    let params = json!({"name": tool, "arguments": {}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
}

#[cfg(unix)]
async fn over_a_line(plan: &BenchPlan, folder: &Path, report: &mut Report) -> Result<(), Error> {
    let failed = |error: std::io::Error| bench_error(format!("a pseudo terminal: {error}"));
    let end = CancellationToken::new();
    let _end = end.clone().drop_guard();
    let mut paths = Vec::new();
    for _ in 0..2 {
        let port = sinew_serial::PseudoPort::open().map_err(failed)?;
        paths.push(port.path().to_owned());
        let mut board = sinew_sim::desk::plant();
        tokio::spawn(port.run(move |text| board.handle_text(text), end.clone()));
    }
    let text = format!("[[serial]]\npath = \"{}\"\nid = \"plant\"\n", paths[0].display());
    let (gateway, _) = gateway(folder, &text).await?;
    let port = std::fs::OpenOptions::new().read(true).write(true).open(&paths[1]).map_err(failed)?;
    let mut writer = port.try_clone().map_err(failed)?;
    let mut reader = BufReader::new(port);
    let (ours, theirs) = medians(plan, &gateway, "get_light", async || {
        // Blocks this task alone: the board at the other end is served by another thread.
        tokio::task::block_in_place(|| {
            writeln!(writer, "{}", call_message("get_light")).map_err(failed)?;
            reader.read_line(&mut String::new()).map(drop).map_err(failed)
        })
    })
    .await?;
    gateway.stop().await;
    report.push(Figure::plain(
        "line_bare_us",
        "a board called over a serial line by a bare client, median",
        theirs,
        "µs",
    ));
    report.push(Figure::at_most("line_added_us", "added by the gateway", ours - theirs, "µs", 1000.0));
    Ok(())
}

#[cfg(not(unix))]
async fn over_a_line(_: &BenchPlan, _: &Path, report: &mut Report) -> Result<(), Error> {
    report.skip("serial lines, because this system has no pseudo terminals");
    Ok(())
}

async fn over_a_broker(plan: &BenchPlan, folder: &Path, report: &mut Report) -> Result<(), Error> {
    let mut mosquitto = match servers::broker(folder).await {
        Ok(broker) => broker,
        Err(error) => {
            report.skip(format!("things over MQTT, because {error}"));
            return Ok(());
        }
    };
    let url = format!("mqtt://{}", mosquitto.address);
    let address = Address::new(&url, None, None).map_err(|error| bench_error(error.to_string()))?;
    let mut gadget = connect(&address, "cmnd/+").await?;
    let answering = tokio::spawn(async move {
        while let Ok(packet) = gadget.next().await {
            let BrokerPacket::Publish(message) = packet else { continue };
            gadget.publish(&publication(&message.topic.replace("cmnd/", "stat/"), "{\"POWER\":\"ON\"}"));
        }
    });
    let text = format!(
        "[[brokers]]\nurl = \"{url}\"\n[[things]]\nname = \"plug\"\n[[things.tools]]\nname = \"power\"\n\
         mqtt = {{ topic = \"cmnd/plug\", payload = \"ON\", answer = \"stat/plug\", pick = \"/POWER\" }}\neffect = \"change\"\n"
    );
    let (gateway, _) = gateway(folder, &text).await?;
    let mut bare = connect(&address, "stat/bare").await?;
    let (ours, theirs) = medians(plan, &gateway, "power", async || {
        bare.publish(&publication("cmnd/bare", "ON"));
        loop {
            if let BrokerPacket::Publish(_) = bare.next().await.map_err(lost)? {
                return Ok(());
            }
        }
    })
    .await?;
    answering.abort();
    gateway.stop().await;
    mosquitto.kill().await;
    report.push(Figure::plain("thing_bare_us", "a round trip through the broker, median", theirs, "µs"));
    report.push(Figure::at_most("thing_added_us", "added by the gateway to a thing's", ours - theirs, "µs", 200.0));
    Ok(())
}

async fn connect(address: &Address, filter: &str) -> Result<Connection, Error> {
    let client_id = client_id();
    let introduction = Introduction {
        client_id: &client_id,
        login: None,
        keep_alive: 60,
        packet_bytes: 1 << 16,
        will: None,
        properties: &[],
    };
    let mut connection = Connection::open(address, introduction).await.map_err(lost)?;
    let subscription = Subscription { filter: filter.to_owned(), ..Subscription::default() };
    connection.subscribed(&[subscription], drop).await.map_err(lost)?;
    Ok(connection)
}

fn lost(Disconnected(why): Disconnected) -> Error {
    bench_error(format!("the broker of the benchmark: {why}"))
}

fn publication(topic: &str, text: &str) -> MqttMessage {
    MqttMessage { topic: topic.to_owned(), payload: text.as_bytes().to_vec(), ..MqttMessage::default() }
}

/// A gateway with this configuration, and the file that has it.
async fn gateway(folder: &Path, text: &str) -> Result<(Process, PathBuf), Error> {
    let config = folder.join("sinew.toml");
    std::fs::create_dir_all(folder).map_err(|error| bench_error(format!("{}: {error}", folder.display())))?;
    write(&config, text)?;
    Ok((process::gateway_with(&folder.join("state"), &config).await?, config))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(|error| bench_error(format!("{}: {error}", path.display())))
}
