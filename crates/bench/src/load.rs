//! The load generator: prebuilt requests over plain sockets, answers read only as far as needed to know
//! that they are whole and a success. It shares the cores with what it measures, so it is cheap.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;
use sinew_api::{DeviceSummary, Devices, Paged};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Error;
use crate::process::TOKEN;

/// What one run brought.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) calls: u64,
    pub(crate) seconds: f64,
    /// One entry a call, in microseconds.
    pub(crate) latencies: Vec<f64>,
    /// Calls that were no success, and the first of them; only a paced run goes on after one.
    pub(crate) failures: u64,
    pub(crate) failure: Option<String>,
}

impl Tally {
    /// The milliseconds below which this share of the calls lies.
    pub(crate) fn share_ms(&mut self, share: f64) -> f64 {
        percentile(&mut self.latencies, share) / 1e3
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.calls as f64 / self.seconds
    }
}

/// One keep-alive connection for each request, each sending it over and over until the time is up.
pub(crate) fn run(address: SocketAddr, requests: Vec<Vec<u8>>, time: Duration) -> Result<Tally, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| bench_error(format!("no runtime for the load generator: {error}")))?;
    runtime.block_on(async {
        let mut connections = Vec::new();
        for request in requests {
            connections.push((HttpConnection::open(address).await?, request));
        }
        let started = Instant::now();
        let end = started + time;
        let tasks: Vec<_> = connections
            .into_iter()
            .map(|(mut connection, request)| {
                tokio::spawn(async move {
                    let mut latencies = Vec::new();
                    while Instant::now() < end {
                        let sent = Instant::now();
                        connection.exchange(&request).await?;
                        latencies.push(sent.elapsed().as_nanos() as f64 / 1e3);
                    }
                    Ok::<_, Error>(latencies)
                })
            })
            .collect();
        let mut tally = Tally::default();
        for task in tasks {
            let latencies = task.await.map_err(|error| bench_error(format!("a connection's task died: {error}")))??;
            tally.calls += latencies.len() as u64;
            tally.latencies.extend(latencies);
        }
        tally.seconds = started.elapsed().as_secs_f64();
        Ok(tally)
    })
}

/// Sends the requests in turns, so many a second in all, whether or not those before are answered. Where no
/// connection was free when a call was due, its time counts from then, so that the waiting is not forgotten.
pub(crate) fn run_paced(
    address: SocketAddr,
    requests: Vec<Vec<u8>>,
    per_second: u32,
    time: Duration,
) -> Result<Tally, Error> {
    const CONNECTIONS: u32 = 64;
    // Far apart, so that neighbours are not called one after the other.
    const STRIDE: usize = 7919;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| bench_error(format!("no runtime for the load generator: {error}")))?;
    let requests = std::sync::Arc::new(requests);
    runtime.block_on(async {
        let mut connections = Vec::new();
        for number in 0..CONNECTIONS {
            connections.push((number, HttpConnection::open(address).await?));
        }
        let started = tokio::time::Instant::now();
        let total = (f64::from(per_second) * time.as_secs_f64()) as u32;
        let tasks: Vec<_> = connections
            .into_iter()
            .map(|(number, mut connection)| {
                let requests = requests.clone();
                tokio::spawn(async move {
                    let mut tally = Tally::default();
                    for turn in (number..total).step_by(CONNECTIONS as usize) {
                        let due = started + time.mul_f64(f64::from(turn) / f64::from(total));
                        let is_free = tokio::time::Instant::now() < due;
                        tokio::time::sleep_until(due).await;
                        // Timers here are a millisecond late at times, which is not the gateway's doing.
                        let sent = if is_free { tokio::time::Instant::now() } else { due };
                        let request = &requests[turn as usize * STRIDE % requests.len()];
                        let answered = connection.exchange(request).await;
                        tally.latencies.push(sent.elapsed().as_nanos() as f64 / 1e3);
                        if let Err(failure) = answered {
                            tally.failures += 1;
                            tally.failure.get_or_insert(failure.to_string());
                        }
                    }
                    tally
                })
            })
            .collect();
        let mut all = Tally::default();
        for task in tasks {
            let tally = task.await.map_err(|error| bench_error(format!("a connection's task died: {error}")))?;
            all.calls += tally.latencies.len() as u64;
            all.latencies.extend(tally.latencies);
            all.failures += tally.failures;
            all.failure = all.failure.or(tally.failure);
        }
        all.seconds = started.elapsed().as_secs_f64();
        Ok(all)
    })
}

/// A keep-alive connection and the answer it last read.
pub(crate) struct HttpConnection {
    address: SocketAddr,
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl HttpConnection {
    pub(crate) async fn open(address: SocketAddr) -> Result<HttpConnection, Error> {
        let stream = TcpStream::connect(address).await.map_err(|error| bench_error(format!("{address}: {error}")))?;
        stream.set_nodelay(true).map_err(|error| bench_error(format!("{address}: {error}")))?;
        Ok(HttpConnection { address, stream, buffer: Vec::with_capacity(16 << 10) })
    }

    /// Whether a request is answered with 200.
    pub(crate) async fn answers(&mut self, request: &[u8]) -> bool {
        self.read(request).await.is_ok() && self.buffer.starts_with(b"HTTP/1.1 200")
    }

    /// Sends a request and reads its answer, which must be a success. Gives the length of the body.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<usize, Error> {
        let body = self.read(request).await?;
        let body = &self.buffer[body..];
        if !self.buffer.starts_with(b"HTTP/1.1 200") || !is_success(body) {
            return Err(bench_error(format!("the call failed: {}", self.sample())));
        }
        Ok(body.len())
    }

    /// Sends a request; the status and the JSON of its answer, whatever it says.
    pub(crate) async fn answer(&mut self, request: &[u8]) -> Result<(u16, Value), Error> {
        let body = self.read(request).await?;
        let status = self.buffer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let body = serde_json::from_slice(&self.buffer[body..]).ok();
        status.zip(body).ok_or_else(|| bench_error(format!("the answer is not JSON: {}", self.sample())))
    }

    /// Sends a request; the head and the body of its answer.
    pub(crate) async fn text(&mut self, request: &[u8]) -> Result<(String, String), Error> {
        let body = self.read(request).await?;
        let [head, body] =
            [&self.buffer[..body], &self.buffer[body..]].map(|part| String::from_utf8_lossy(part).into_owned());
        Ok((head, body))
    }

    /// Sends a request; the head of its answer.
    pub(crate) async fn head(&mut self, request: &[u8]) -> Result<String, Error> {
        let body = self.read(request).await?;
        Ok(String::from_utf8_lossy(&self.buffer[..body]).into_owned())
    }

    /// What a path of the measured gateway's API answers.
    pub(crate) async fn get<A: DeserializeOwned>(&mut self, path: &str) -> Result<A, Error> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n", self.address);
        let body = self.read(request.as_bytes()).await?;
        if !self.buffer.starts_with(b"HTTP/1.1 200") {
            return Err(bench_error(format!("{path}: {}", self.sample())));
        }
        serde_json::from_slice(&self.buffer[body..]).map_err(|error| bench_error(format!("{path}: {error}")))
    }

    /// All devices of the measured gateway that can be used.
    pub(crate) async fn ready_devices(&mut self) -> Result<Vec<DeviceSummary>, Error> {
        const PAGE: &str = "/api/v1/devices?state=ready&limit=1000";
        let mut found: Devices = self.get(PAGE).await?;
        while let Some(after) = found.take_next() {
            found.append(self.get(&format!("{PAGE}&after={after}")).await?);
        }
        Ok(found.devices)
    }

    /// Sends a request and reads its answer; says where the body starts.
    async fn read(&mut self, request: &[u8]) -> Result<usize, Error> {
        self.stream.write_all(request).await.map_err(|error| bench_error(format!("sending: {error}")))?;
        self.buffer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.buffer).await;
            if read.map_err(|error| bench_error(format!("receiving: {error}")))? == 0 {
                return Err(bench_error(format!("the server closed the connection after {}", self.sample())));
            }
            if let Some(body) = whole_body(&self.buffer) {
                return Ok(body);
            }
        }
    }

    fn sample(&self) -> String {
        String::from_utf8_lossy(&self.buffer[..self.buffer.len().min(600)]).into_owned()
    }
}

/// Where the body starts, once all of the answer is there.
fn whole_body(answer: &[u8]) -> Option<usize> {
    let start = find(answer, b"\r\n\r\n")? + 4;
    let head = answer[..start].to_ascii_lowercase();
    if let Some(at) = find(&head, b"content-length:") {
        let digits = head[at + 15..].iter().skip_while(|byte| **byte == b' ').take_while(|byte| byte.is_ascii_digit());
        let length = digits.fold(0usize, |number, digit| number * 10 + usize::from(digit - b'0'));
        return (answer.len() >= start + length).then_some(start);
    }
    // Chunked; nothing follows the last chunk, as only one request is open.
    answer[start..].ends_with(b"0\r\n\r\n").then_some(start)
}

fn is_success(body: &[u8]) -> bool {
    find(body, b"\"result\"").is_some() && find(body, b"\"isError\":true").is_none()
}

pub(crate) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

pub(crate) fn bench_error(what: impl Into<String>) -> Error {
    Error(what.into())
}

/// The value below which this share of the sorted samples lies.
pub(crate) fn percentile(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let index = ((samples.len() as f64 - 1.0) * share).round() as usize;
    samples.get(index).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_by_length_or_by_its_last_chunk() {
        assert_eq!(whole_body(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"), Some(38));
        assert_eq!(whole_body(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"), None);
        assert_eq!(whole_body(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n"), None);
        assert!(whole_body(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n").is_some());
        assert_eq!(whole_body(b"HTTP/1.1 200 OK\r\n"), None);
    }

    #[test]
    fn a_tool_error_is_no_success() {
        assert!(is_success(br#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#));
        assert!(!is_success(br#"{"result":{"content":[],"isError":true}}"#));
        assert!(!is_success(br#"{"error":{"code":-32602}}"#));
    }

    #[test]
    fn percentiles_are_samples() {
        let mut samples = vec![3.0, 1.0, 2.0, 5.0, 4.0];
        assert_eq!(percentile(&mut samples, 0.5), 3.0);
        assert_eq!(percentile(&mut samples, 1.0), 5.0);
        assert!(percentile(&mut [], 0.5).is_nan());
    }
}
