//! Work whose instructions are counted: a call, the join of a board, and `get_screen`, in one process and one after the
//! other, so that each run takes the same way.
//!
//! `scripts/instructions` runs it under callgrind so many times, and twice as many times: the difference is what the
//! repetitions cost, without start and end.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde_json::json;
use sinew_boards::{Boards, HubConfig, Line};
use sinew_gateway::{Gateway, Settings};
use sinew_sim::board::{BoardKind, VirtualBoard, hardware_id};
use sinew_tool::{Admission, DeviceEvent, DeviceInfo, DeviceKey, Family, FamilyName, Reach, Status, TextTrust};
use tokio::sync::mpsc;

use crate::endpoint::Endpoint;
use crate::load::{HttpConnection, bench_error};
use crate::phones::{InstantPhone, MemoryGateway, ScreenSource, dump};
use crate::process::TOKEN;
use crate::{Error, PUBLIC_TOOL, request};

/// What is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A `tools/call` over HTTP, through the gateway to a virtual board and back.
    Call,
    /// A board that connects, lists its tools and is announced.
    Join,
    /// `get_screen` of a screen with 122 nodes.
    Screen,
}

impl Work {
    pub const ALL: [Work; 3] = [Work::Call, Work::Join, Work::Screen];

    pub fn name(self) -> &'static str {
        match self {
            Work::Call => "call",
            Work::Join => "join",
            Work::Screen => "screen",
        }
    }

    /// Does it so many times, on this thread and those that the gateway itself starts.
    pub fn repeat(self, count: u32) -> Result<(), Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| bench_error(format!("no runtime: {error}")))?;
        runtime.block_on(async {
            match self {
                Work::Call => calls(count).await,
                Work::Join => joins(count).await,
                Work::Screen => screens(count).await,
            }
        })
    }
}

async fn calls(count: u32) -> Result<(), Error> {
    let mut host = BoardHost::open()?;
    host.join(1).await?;
    let endpoint = Endpoint::open(&host.gateway).await?;
    let mut connection = HttpConnection::open(endpoint.address).await?;
    let call = request::call(endpoint.address, TOKEN, PUBLIC_TOOL, json!({"device": info(1).suggested_id}));
    for _ in 0..count {
        connection.exchange(&call).await?;
    }
    drop(connection);
    endpoint.close().await?;
    host.close().await;
    Ok(())
}

async fn joins(count: u32) -> Result<(), Error> {
    let mut host = BoardHost::open()?;
    for number in 1..=count {
        host.join(number).await?;
        // Until it is stored: boards would share transactions, now more of them and now fewer.
        let stored = host.gateway.last_seal().await;
        stored.map_err(|error| bench_error(format!("the store failed: {error}")))?;
    }
    host.close().await;
    Ok(())
}

async fn screens(count: u32) -> Result<(), Error> {
    let gateway = MemoryGateway::open()?;
    gateway.join(InstantPhone { name: "small", screen: ScreenSource::Dump(dump(122)) });
    for _ in 0..count {
        gateway.call("small", "get_screen", json!({})).await?;
    }
    gateway.inner.close().await;
    Ok(())
}

/// A gateway in memory, with boards in the same process.
struct BoardHost {
    gateway: Gateway,
    boards: Boards,
    /// One word for each board that joined.
    joined: mpsc::UnboundedReceiver<()>,
}

impl BoardHost {
    fn open() -> Result<BoardHost, Error> {
        let settings = Settings { token: Some(TOKEN.to_owned()), ..Settings::default() };
        let gateway = Gateway::open(settings).map_err(|error| bench_error(format!("no gateway: {error}")))?;
        let (sender, joined) = mpsc::unbounded_channel();
        let announced = gateway.clone();
        let announce = Arc::new(move |event: DeviceEvent| {
            let is_joined = matches!(event, DeviceEvent::Joined(_));
            announced.apply(event);
            if is_joined {
                // Nobody listens any more when everything is closed.
                let _ = sender.send(());
            }
        });
        let boards = Boards::new(HubConfig::new(Arc::new(gateway.clone()), announce));
        let boards = boards.map_err(|error| bench_error(format!("no random numbers: {error}")))?;
        Ok(BoardHost { gateway, boards, joined })
    }

    async fn join(&mut self, number: u32) -> Result<(), Error> {
        let (boards, line) = (self.boards.clone(), DirectLine::new(number));
        tokio::spawn(async move { boards.serve_line(info(number), line).await });
        let joined = tokio::time::timeout(Duration::from_secs(60), self.joined.recv()).await;
        joined.ok().flatten().ok_or_else(|| bench_error(format!("board {number} did not join")))
    }

    async fn close(self) {
        self.boards.close();
        self.gateway.close().await;
    }
}

fn info(number: u32) -> DeviceInfo {
    DeviceInfo {
        key: DeviceKey(format!("bench:{number}")),
        suggested_id: format!("bench-{number}"),
        family: Family::new(FamilyName::of("bench"), TextTrust::Attributed, Reach::OneLink),
        admission: Admission::Local,
        name: String::new(),
        version: String::new(),
        status: Status::Ready,
        instructions: None,
        labels: Vec::new(),
        attributes: Default::default(),
    }
}

/// A virtual board that answers while it is spoken to. For it no time passes.
struct DirectLine {
    board: VirtualBoard,
    answers: VecDeque<String>,
    reader: Option<Waker>,
}

impl DirectLine {
    fn new(number: u32) -> DirectLine {
        let board = VirtualBoard::new(BoardKind::Relay, &hardware_id(number));
        DirectLine { board, answers: VecDeque::new(), reader: None }
    }
}

impl Line for DirectLine {
    fn send(&mut self, text: String) -> io::Result<()> {
        self.answers.extend(self.board.handle_text(Duration::ZERO, &text));
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Ok(())
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>> {
        match self.answers.pop_front() {
            Some(answer) => Poll::Ready(Ok(Some(answer.into_bytes()))),
            None => {
                self.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_work_can_be_repeated() {
        for work in Work::ALL {
            assert_eq!(work.repeat(3), Ok(()), "{}", work.name());
        }
    }
}
