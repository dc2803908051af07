//! Faults of many kinds: whatever is lost, late, garbled, doubled or cut, every call gets one answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sinew_sim::board::{BoardConfig, BoardKind};
use sinew_sim::faults::Faults;
use sinew_tool::{Device, DeviceEvent};

use crate::support::{TestGateway, answered, call_within};

const BOARDS: usize = 4;
const ROUNDS: usize = 25;

#[tokio::test]
async fn with_faults_every_call_gets_one_answer_and_every_connection_one_end() {
    let mut gateway =
        TestGateway::open_with(|config| config.limits.session.setup_time = Duration::from_millis(150)).await;
    let faults: Faults =
        "seed=11,lost=0.04,late=0.06,garbled=0.03,doubled=0.05,disconnect=0.02".parse().expect("faults");
    for index in 0..BOARDS {
        let id = format!("aa:bb:cc:dd:ee:{index:02x}");
        let kind = if index % 2 == 0 { BoardKind::Talking } else { BoardKind::Relay };
        gateway.switch_on(BoardConfig { faults, ..gateway.board(&id, kind) });
    }

    let mut here: HashMap<String, Arc<dyn Device>> = HashMap::new();
    let (mut fine, mut failed, mut stays) = (0, 0, 0);
    for _ in 0..ROUNDS {
        while here.len() < BOARDS {
            let event = gateway.next().await;
            stays += usize::from(matches!(event, DeviceEvent::Joined(_)));
            follow(&mut here, event);
        }
        let calls: Vec<_> = here
            .values()
            .flat_map(|device| {
                let tool = device.tools().iter().next().expect("a tool").name.clone();
                [(); 3].map(|()| call_within(device, &tool, json!({}), Duration::from_millis(200)))
            })
            .collect();
        for call in calls {
            match answered(call).await {
                Ok(outcome) => {
                    assert!(!outcome.content.is_empty());
                    fine += 1;
                }
                Err(error) => {
                    assert!(!error.message.is_empty());
                    failed += 1;
                }
            }
        }
        while let Ok(event) = gateway.events.try_recv() {
            stays += usize::from(matches!(event, DeviceEvent::Joined(_)));
            follow(&mut here, event);
        }
    }
    assert_eq!(fine + failed, ROUNDS * BOARDS * 3);
    assert!(fine > failed, "{fine} fine, {failed} failed");
    assert!(failed > 0 && stays > BOARDS, "there were no faults: {failed} failed, {stays} stays");
    for event in gateway.close().await {
        follow(&mut here, event);
    }
    assert!(here.is_empty(), "every stay has ended");
}

/// Each stay begins once and ends once, and nothing is said outside of it.
fn follow(here: &mut HashMap<String, Arc<dyn Device>>, event: DeviceEvent) {
    let is_here = |here: &HashMap<String, Arc<dyn Device>>, device: &Arc<dyn Device>| {
        here.get(&device.info().key.0).is_some_and(|known| Arc::ptr_eq(known, device))
    };
    match event {
        DeviceEvent::Joined(device) => {
            let before = here.insert(device.info().key.0.clone(), device);
            assert!(before.is_none(), "it joined twice");
        }
        DeviceEvent::Changed(device) | DeviceEvent::Said(device, _) | DeviceEvent::Dropped(device, _) => {
            assert!(is_here(here, &device));
        }
        DeviceEvent::Left(device, _) => {
            assert!(is_here(here, &device), "it left twice, or without joining");
            here.remove(&device.info().key.0);
        }
    }
}
