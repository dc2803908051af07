//! Being told of changes, in virtual time.

use std::time::Duration;

use sinew_gateway::{Shape, Update, Watch};
use sinew_tool::json;
use tokio::time::{Instant, timeout};

use crate::fake::*;

/// Everything a watch tells until it is quiet for a second, except for events: they come from the thread
/// of the store, which knows nothing of virtual time.
async fn heard(watch: &mut Watch) -> Vec<Update> {
    let mut changes = Vec::new();
    while let Ok(change) = timeout(SECOND, watch.next()).await {
        if !matches!(change, Update::Event { .. }) {
            changes.push(change);
        }
    }
    changes
}

/// These boards changed, and perhaps the list of devices with them.
fn devices(numbers: impl IntoIterator<Item = usize>, is_list: bool) -> Update {
    let id = |number| sinew_tool::DeviceId::parse(&format!("board-{number:04}")).unwrap();
    Update::Devices { changed: numbers.into_iter().map(id).collect(), is_list }
}

#[tokio::test(start_paused = true)]
async fn many_joins_at_once_are_one_change() {
    let gateway = gateway();
    let mut watch = gateway.watch();
    assert_eq!(heard(&mut watch).await, []);
    let started = Instant::now();
    for number in 0..100 {
        join(&gateway, Fake::board(number));
    }
    assert_eq!(watch.next().await, Update::Tools);
    assert_eq!(started.elapsed(), Duration::from_millis(50));
    assert_eq!(heard(&mut watch).await, [devices(0..100, true)]);
    join(&gateway, Fake::board(100));
    assert_eq!(heard(&mut watch).await, [devices([100], true)]);
}

#[tokio::test(start_paused = true)]
async fn a_return_with_equal_tools_changes_no_list() {
    let gateway = gateway();
    join(&gateway, Fake::board(0));
    let board = join(&gateway, Fake::board(1));
    let mut watch = gateway.watch();
    leave(&gateway, &board);
    assert_eq!(heard(&mut watch).await, [devices([1], false)]);
    let board = join(&gateway, Fake::board(1));
    assert_eq!(heard(&mut watch).await, [devices([1], false)]);
    board.set_tools([plain("new")]);
    gateway.apply(sinew_tool::DeviceEvent::Changed(stay(&board)));
    assert_eq!(heard(&mut watch).await, [Update::Tools, devices([1], false)]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_grace_is_told() {
    let gateway = gateway();
    let board = join(&gateway, Fake::board(1));
    leave(&gateway, &board);
    let mut watch = gateway.watch();
    let started = Instant::now();
    assert_eq!(watch.next().await, Update::Tools);
    assert!((599..=601).contains(&started.elapsed().as_secs()));
    assert_eq!(heard(&mut watch).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_watch_speaks_of_the_list_its_caller_sees() {
    let gateway = gateway();
    join(&gateway, Fake::board(1));
    let mut folded = gateway.watch_as(&client(), Shape::Folded);
    let mut unfolded = gateway.watch_as(&client(), Shape::Unfolded);
    join(&gateway, Fake::board(2));
    assert_eq!(heard(&mut folded).await, [devices([2], true)]);
    assert_eq!(heard(&mut unfolded).await, [Update::Tools, devices([2], true)]);
    join(&gateway, Fake::new(3, [plain("reboot").for_users()]));
    assert_eq!(heard(&mut folded).await, [devices([3], true)]);
    assert_eq!(heard(&mut gateway.watch_as(&admin(), Shape::Folded)).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_new_name_is_a_change_of_devices() {
    let gateway = gateway();
    join(&gateway, Fake::board(1));
    let mut watch = gateway.watch();
    gateway.rename("board-0001", "Lamp").unwrap();
    assert_eq!(heard(&mut watch).await, [devices([1], true)]);
    assert!(gateway.rename("board-0001", "a/b").is_err());
    assert_eq!(heard(&mut watch).await, []);
}

#[tokio::test]
async fn an_event_is_told_when_it_can_be_read() {
    let gateway = gateway();
    let board = join(&gateway, Fake::board(1));
    let mut watch = gateway.watch();
    say(&gateway, &board, "a", json!(1));
    let device = gateway.find_device("board-0001").unwrap().id;
    assert_eq!(watch.next().await, Update::Event { device });
    assert_eq!(gateway.events(None, None, 10).await.unwrap().events.last().unwrap().topic, "a");
}

#[tokio::test]
async fn one_who_lags_hears_of_everybody_who_may_have_spoken() {
    let gateway = gateway();
    let (one, two) = (join(&gateway, Fake::board(1)), join(&gateway, Fake::board(2)));
    let mut watch = gateway.watch();
    say(&gateway, &one, "early", json!(1));
    for number in 0..400 {
        say(&gateway, &two, "later", json!(number));
        if number % 100 == 0 {
            settled(&gateway).await;
        }
    }
    settled(&gateway).await;
    let mut devices = Vec::new();
    for _ in 0..2 {
        match watch.next().await {
            Update::Event { device } => devices.push(device.to_string()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(devices, ["board-0001", "board-0002"]);
}
