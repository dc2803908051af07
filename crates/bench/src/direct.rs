//! A board called without a gateway: the smallest host there can be, a WebSocket and a protocol session
//! in one task. What the gateway takes longer than this is what it adds.

use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use sinew_tool::Args;
use sinew_wire::Moment;
use sinew_wire::host::{Config, Event, Output, Session};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::Error;
use crate::load::bench_error;

/// A board on the other end of a socket, ready to be called.
pub(crate) struct Direct {
    socket: WebSocketStream<TcpStream>,
    session: Session,
    zero: Instant,
}

impl Direct {
    /// Takes the first board that dials in.
    pub(crate) async fn accept(listener: &TcpListener) -> Result<Direct, Error> {
        let (stream, _) = listener.accept().await.map_err(|error| bench_error(format!("no board: {error}")))?;
        stream.set_nodelay(true).map_err(|error| bench_error(format!("no board: {error}")))?;
        let socket = tokio_tungstenite::accept_async(stream).await;
        let socket = socket.map_err(|error| bench_error(format!("the board's WebSocket: {error}")))?;
        let zero = Instant::now();
        let session = Session::new(Config { session_id: "bench".to_owned(), ..Config::default() }, Moment(0));
        let mut direct = Direct { socket, session, zero };
        direct.until(|event| matches!(event, Event::Ready(_)).then_some(())).await?;
        Ok(direct)
    }

    /// One call and its answer, which must be a success.
    pub(crate) async fn call(&mut self, tool: &str) -> Result<(), Error> {
        let now = self.now();
        let ticket = self.session.call(now, tool, &Args::new(), Duration::from_secs(10));
        let answer = self.until(|event| match event {
            Event::Answered(answered, answer) if answered == ticket => Some(answer),
            _ => None,
        });
        answer.await?.map(drop).map_err(|error| bench_error(format!("the board failed: {error}")))
    }

    /// Sends and receives until the awaited event comes.
    async fn until<T>(&mut self, mut wanted: impl FnMut(Event) -> Option<T>) -> Result<T, Error> {
        loop {
            match self.session.poll() {
                Output::Send(text) | Output::Reply(text) => {
                    let sent = self.socket.send(Message::text(text)).await;
                    sent.map_err(|error| bench_error(format!("sending to the board: {error}")))?;
                }
                Output::Event(event) => {
                    if let Some(found) = wanted(event) {
                        return Ok(found);
                    }
                }
                Output::Wait(_) => {
                    let heard = tokio::time::timeout(Duration::from_secs(10), self.socket.next()).await;
                    match heard.map_err(|_| bench_error("the board is silent"))? {
                        Some(Ok(Message::Text(text))) => self.session.handle_text(self.now(), text.as_str()),
                        Some(Ok(_)) => {}
                        _ => return Err(bench_error("the board went away")),
                    }
                }
            }
        }
    }

    fn now(&self) -> Moment {
        Moment(self.zero.elapsed().as_micros() as u64)
    }
}
