//! A virtual board on the network: it dials, says hello, serves, and dials again.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use sinew_tool::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

use crate::board::{BoardConfig, VirtualBoard, client_id, hardware_id};
use crate::link::{Credentials, Dialer, SimError, Socket};
use crate::luck::{Dice, Fate, Luck};

/// As long as firmware waits for the gateway's hello.
const HELLO_TIME: Duration = Duration::from_secs(10);
/// As long as firmware believes in a connection on which nothing arrives.
const SILENCE: Duration = Duration::from_secs(120);
/// Pauses between attempts to dial double from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LAST_PAUSE: Duration = Duration::from_secs(15);
/// A reboot takes a moment.
const REBOOT_TIME: Duration = Duration::from_millis(300);
/// Boards that dial at once; a thousand of them would only knock each other out.
const DIALLING: usize = 64;

/// Lives as one board until `shutdown`. Returns early only where dialling again cannot help: a wrong
/// address, an untrusted certificate, a refused token.
pub async fn run(config: BoardConfig, shutdown: CancellationToken) -> Result<(), SimError> {
    let dialer = Dialer::new(&config.url, &config.trust)?;
    live(config, dialer, Arc::new(Semaphore::new(1)), shutdown).await
}

/// Lives as `count` boards, a small task each, with hardware ids of their own. The first one that
/// cannot go on ends them all.
pub async fn run_many(count: u32, config: BoardConfig, shutdown: CancellationToken) -> Result<(), SimError> {
    let dialer = Dialer::new(&config.url, &config.trust)?;
    let gate = Arc::new(Semaphore::new(DIALLING));
    let shutdown = shutdown.child_token();
    let mut lives = JoinSet::new();
    for index in 1..=count {
        let hardware_id = hardware_id(index);
        let config = BoardConfig { client_id: client_id(&hardware_id), hardware_id, ..config.clone() };
        lives.spawn(live(config, dialer.clone(), gate.clone(), shutdown.clone()));
    }
    let mut result = Ok(());
    while let Some(ended) = lives.join_next().await {
        let ended = ended.unwrap_or_else(|panic| Err(SimError::Ended(panic.to_string())));
        if ended.is_err() && result.is_ok() {
            shutdown.cancel();
            result = ended;
        }
    }
    result
}

async fn live(
    config: BoardConfig,
    dialer: Dialer,
    gate: Arc<Semaphore>,
    shutdown: CancellationToken,
) -> Result<(), SimError> {
    let power_on = Instant::now();
    let mut board = VirtualBoard::new(config.kind, &config.hardware_id);
    let mut jitter = config.luck.dice(&config.client_id);
    let mut dice = (config.luck != Luck { seed: config.luck.seed, ..Luck::default() })
        .then(|| config.luck.dice(&config.hardware_id));
    let mut pause = FIRST_PAUSE;
    while !shutdown.is_cancelled() {
        let dialling = async {
            let _permit = gate.acquire().await;
            let who = Credentials {
                token: config.token.as_deref(),
                hardware_id: &config.hardware_id,
                client_id: &config.client_id,
            };
            dialer.dial(&who).await
        };
        // Boxed: a board dials for a moment and serves for hours.
        let Some(dialled) = shutdown.run_until_cancelled(Box::pin(dialling)).await else { break };
        let ended = match dialled {
            Ok(socket) => {
                pause = FIRST_PAUSE;
                let dice = dice.as_mut();
                Stay { board: &mut board, socket, dice, power_on, greeted: false, late: Vec::new() }
                    .serve(&shutdown)
                    .await
            }
            Err(error) if error.is_final() => return Err(error),
            Err(error) => error,
        };
        tracing::debug!(board = %config.hardware_id, %ended, "the connection is over");
        let rest = if board.take_restart() {
            REBOOT_TIME
        } else {
            let spread = pause.as_millis() as u64 / 2;
            let rest = pause + Duration::from_millis(jitter.pick(spread));
            pause = (pause * 2).min(LAST_PAUSE);
            rest
        };
        shutdown.run_until_cancelled(sleep(rest)).await;
    }
    Ok(())
}

/// One connection of one board.
struct Stay<'a> {
    board: &'a mut VirtualBoard,
    socket: Socket,
    dice: Option<&'a mut Dice>,
    power_on: Instant,
    /// Whether the gateway has said hello on this connection.
    greeted: bool,
    /// Messages that bad luck holds back, and whether they come from the gateway.
    late: Vec<(Instant, bool, String)>,
}

impl Stay<'_> {
    /// Serves until the connection ends, and says why it did.
    async fn serve(mut self, shutdown: &CancellationToken) -> SimError {
        match self.talk(shutdown).await {
            Ok(why) => {
                let _ = self.socket.close(None).await;
                SimError::Ended(why.to_owned())
            }
            Err(error) => error,
        }
    }

    async fn talk(&mut self, shutdown: &CancellationToken) -> Result<&'static str, SimError> {
        let hello = self.board.hello();
        self.put(hello).await?;
        self.flush().await?;
        let mut last_heard = Instant::now();
        let greet_by = last_heard + HELLO_TIME;
        let mut cancelled = pin!(shutdown.cancelled());
        let mut timer = pin!(sleep_until(greet_by));
        loop {
            tokio::select! {
                biased;
                () = &mut cancelled => return Ok("the board was switched off"),
                message = self.socket.next() => {
                    last_heard = Instant::now();
                    match message {
                        Some(Ok(Message::Text(text))) => self.hear(&text).await?,
                        Some(Ok(Message::Close(_))) | None => return Ok("the gateway closed the connection"),
                        Some(Ok(_)) => {}
                        Some(Err(error)) => return Err(SimError::Ended(error.to_string())),
                    }
                }
                () = &mut timer => {}
            }
            let now = Instant::now();
            self.deliver_late(now).await?;
            let news = self.board.handle_time(now - self.power_on);
            for text in news {
                self.speak(text).await?;
            }
            self.flush().await?;
            if self.board.is_restarting() {
                return Ok("the board restarts");
            }
            if !self.greeted && now >= greet_by {
                return Ok("the gateway said no hello within 10 s");
            }
            if now >= last_heard + SILENCE {
                return Ok("nothing was heard of the gateway for 120 s");
            }
            let due = [
                Some(if self.greeted { last_heard + SILENCE } else { greet_by }),
                self.board.next_due().map(|due| self.power_on + due),
                self.late.iter().map(|(due, ..)| *due).min(),
            ];
            let due = due.into_iter().flatten().min().unwrap_or(greet_by);
            // Moved forward only when something comes earlier: a call need not touch the timer.
            if timer.is_elapsed() || due < timer.deadline() {
                timer.as_mut().reset(due);
            }
        }
    }

    /// Text from the gateway, as luck will have it.
    async fn hear(&mut self, text: &str) -> Result<(), SimError> {
        if !self.greeted {
            self.greeted = is_hello(text);
            return self.handle(text).await;
        }
        let fate = self.draw();
        match fate {
            Fate::Fine => self.handle(text).await,
            Fate::Lost => Ok(()),
            Fate::Late(delay) => {
                self.late.push((Instant::now() + delay, true, text.to_owned()));
                Ok(())
            }
            Fate::Garbled => {
                let text = self.garble(text);
                self.handle(&text).await
            }
            Fate::Doubled => {
                self.handle(text).await?;
                self.handle(text).await
            }
            Fate::Disconnect => Err(SimError::Ended("bad luck cut the connection".to_owned())),
        }
    }

    async fn handle(&mut self, text: &str) -> Result<(), SimError> {
        let answers = self.board.handle_text(self.power_on.elapsed(), text);
        for answer in answers {
            self.speak(answer).await?;
        }
        Ok(())
    }

    /// Text to the gateway, as luck will have it.
    async fn speak(&mut self, text: String) -> Result<(), SimError> {
        match self.draw() {
            Fate::Fine => self.put(text).await,
            Fate::Lost => Ok(()),
            Fate::Late(delay) => {
                self.late.push((Instant::now() + delay, false, text));
                Ok(())
            }
            Fate::Garbled => {
                let text = self.garble(&text);
                self.put(text).await
            }
            Fate::Doubled => {
                self.put(text.clone()).await?;
                self.put(text).await
            }
            Fate::Disconnect => Err(SimError::Ended("bad luck cut the connection".to_owned())),
        }
    }

    async fn deliver_late(&mut self, now: Instant) -> Result<(), SimError> {
        while let Some(index) = self.late.iter().position(|(due, ..)| *due <= now) {
            let (_, from_gateway, text) = self.late.swap_remove(index);
            if from_gateway {
                self.handle(&text).await?;
            } else {
                self.put(text).await?;
            }
        }
        Ok(())
    }

    fn draw(&mut self) -> Fate {
        self.dice.as_mut().map_or(Fate::Fine, |dice| dice.draw())
    }

    fn garble(&mut self, text: &str) -> String {
        self.dice.as_mut().map_or_else(String::new, |dice| dice.garble(text))
    }

    async fn put(&mut self, text: String) -> Result<(), SimError> {
        self.socket.feed(Message::text(text)).await.map_err(|error| SimError::Ended(error.to_string()))
    }

    async fn flush(&mut self) -> Result<(), SimError> {
        self.socket.flush().await.map_err(|error| SimError::Ended(error.to_string()))
    }
}

fn is_hello(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|message| message["type"] == "hello")
}
