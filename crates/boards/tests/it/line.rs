//! A device over a line of its own, with nothing but public items.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::json;
use sinew_boards::{Boards, HubConfig, Line};
use sinew_tool::{
    Admission, Admit, Args, Call, DeviceEvent, DeviceInfo, DeviceKey, Family, FamilyName, LeaveReason, Reach, Status,
    TextTrust, TokenId,
};
use sinew_wire::device::{Board, Property, Reply, ToolSpec};
use tokio::sync::mpsc;

/// One end of a pair of channels.
struct Channel {
    to_device: mpsc::UnboundedSender<String>,
    from_device: mpsc::UnboundedReceiver<Vec<u8>>,
}

impl Line for Channel {
    fn send(&mut self, text: String) -> io::Result<()> {
        self.to_device.send(text).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>> {
        self.from_device.poll_recv(cx).map(Ok)
    }
}

fn info(id: &str) -> DeviceInfo {
    DeviceInfo {
        key: DeviceKey(format!("bench:{id}")),
        suggested_id: id.to_owned(),
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

/// A board at the other end; it lives until the line ends.
fn plug_in() -> (Channel, tokio::task::JoinHandle<()>) {
    let (to_device, mut told) = mpsc::unbounded_channel::<String>();
    let (say, from_device) = mpsc::unbounded_channel();
    let double = ToolSpec::new("double", "Twice a number").with(Property::integer("n", 0..=100));
    let mut board = Board::new("doubler", "1.0").tool(double, |args| Ok(Reply::from(args.integer("n")? * 2)));
    let living = tokio::spawn(async move {
        while let Some(text) = told.recv().await {
            if let Some(answer) = board.handle_text(&text)
                && say.send(answer.into_bytes()).is_err()
            {
                return;
            }
        }
    });
    (Channel { to_device, from_device }, living)
}

/// A device that talks without a pause and answers nothing, until it was asked twice.
struct Noise {
    asked: Arc<AtomicUsize>,
    said: usize,
}

/// Saying so much takes far longer than an answer may.
const MUCH_NOISE: usize = 300_000;

impl Line for Noise {
    fn send(&mut self, _: String) -> io::Result<()> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, _: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>> {
        self.said += 1;
        let is_over = self.asked.load(Ordering::Relaxed) == 2 || self.said == MUCH_NOISE;
        Poll::Ready(Ok((!is_over).then(|| br#"{"type": "listen", "state": "detect"}"#.to_vec())))
    }
}

#[tokio::test]
async fn a_board_that_talks_without_a_pause_must_answer_in_time_all_the_same() {
    let refuse = |_: Option<&str>, _: &DeviceKey| None;
    let mut config = HubConfig::new(Arc::new(refuse), Arc::new(|_| ()));
    config.limits.session.setup_time = Duration::from_millis(20);
    let boards = Boards::new(config).expect("random numbers");
    let asked = Arc::new(AtomicUsize::new(0));
    boards.serve_line(info("noisy"), Noise { asked: asked.clone(), said: 0 }).await.expect("it had a place");
    assert_eq!(asked.load(Ordering::Relaxed), 2, "it was asked again when the time was over");
}

/// Admits every device by one token, which was revoked in the meantime.
struct RevokedInBetween;

impl Admit for RevokedInBetween {
    fn admit(&self, _: Option<&str>, _: &DeviceKey) -> Option<Admission> {
        TokenId::parse("t1").map(Admission::DeviceToken)
    }

    fn is_valid(&self, admission: &Admission) -> bool {
        !matches!(admission, Admission::DeviceToken(_))
    }
}

#[tokio::test]
async fn a_board_whose_token_is_revoked_between_admission_and_registration_is_refused() {
    let (sender, mut events) = mpsc::unbounded_channel();
    let announce = Arc::new(move |event: DeviceEvent| drop(sender.send(event)));
    let boards = Boards::new(HubConfig::new(Arc::new(RevokedInBetween), announce)).expect("random numbers");
    let (line, _board) = plug_in();
    let late = DeviceInfo { admission: RevokedInBetween.admit(None, &info("x").key).expect("a token"), ..info("x") };
    let refused = boards.serve_line(late, line).await.expect_err("revoked");
    assert!(refused.contains("revoked"), "{refused}");
    // It left the roster: another device gets the place.
    let (line, board) = plug_in();
    let served = tokio::spawn({
        let boards = boards.clone();
        async move { boards.serve_line(info("x"), line).await }
    });
    let Some(DeviceEvent::Joined(_)) = events.recv().await else { panic!("it did not join") };
    board.abort();
    served.await.expect("no panic").expect("it had a place");
}

#[tokio::test]
async fn a_device_on_a_line_of_its_own_joins_is_called_is_replaced_and_leaves() {
    let (sender, mut events) = mpsc::unbounded_channel();
    let refuse = |_: Option<&str>, _: &DeviceKey| None;
    let boards = Boards::new(HubConfig::new(Arc::new(refuse), Arc::new(move |event| drop(sender.send(event)))));
    let boards = boards.expect("random numbers");
    let serve = |line: Channel| {
        let boards = boards.clone();
        tokio::spawn(async move { boards.serve_line(info("doubler"), line).await })
    };
    let (line, _first_board) = plug_in();
    let first = serve(line);
    let Some(DeviceEvent::Joined(device)) = events.recv().await else { panic!("it did not join") };
    assert_eq!((device.info().name.as_str(), device.info().family.name.as_str()), ("doubler", "bench"));
    let args: Args = json!({"n": 21}).as_object().cloned().expect("an object");
    assert_eq!(device.call(Call::new("double", args)).await.expect("an answer").joined_text(), "42");

    let (line, second_board) = plug_in();
    let second = serve(line);
    let Some(DeviceEvent::Left(_, reason)) = events.recv().await else { panic!("it was not replaced") };
    assert_eq!(reason, LeaveReason::Replaced);
    first.await.expect("no panic").expect("it had a place");
    assert!(matches!(events.recv().await, Some(DeviceEvent::Joined(_))));

    second_board.abort();
    let Some(DeviceEvent::Left(_, reason)) = events.recv().await else { panic!("it did not leave") };
    assert_eq!(reason, LeaveReason::Closed);
    second.await.expect("no panic").expect("it had a place");

    boards.close();
    let (line, _board) = plug_in();
    let refused = boards.serve_line(info("late"), line).await.expect_err("closed");
    assert!(refused.contains("shutting down"), "{refused}");
}
