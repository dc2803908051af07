//! Callers who leave in the middle, and phones that are unplugged in the middle: wherever that is, the phone keeps nothing.

use std::time::Duration;

use sinew_phones::control::install::{self, ApkSet};
use sinew_phones::{PhoneDevice, Profile};
use sinew_sim::phone::{Handset, LockScreen, PhoneClock, PhoneSetup, shopping};
use sinew_tool::{ErrorKind, LiveRequest, json};

use crate::common::call;
use crate::common::virtual_adb::VirtualAdb;

/// How a call ends before its time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    CallerLeaves,
    CableIsPulled,
}

async fn bench() -> Option<VirtualAdb> {
    let setup = PhoneSetup { lock: LockScreen::None, ..PhoneSetup::default() };
    VirtualAdb::open(Handset::new(setup, PhoneClock::Virtual)).await
}

/// What Sinew put on a phone: files of its own, install sessions, and the shade in front of everything.
fn left_behind(handset: &Handset) -> Vec<String> {
    let mut left = handset.paths();
    left.retain(|path| path.contains("sinew-"));
    left.extend((handset.open_sessions() > 0).then(|| "an install session".to_owned()));
    left.extend(handset.with(|machine| machine.is_panel_open()).then(|| "the open shade".to_owned()));
    left
}

/// Waits until the phone has cleaned up, which it does by itself.
async fn expect_clean(handset: &Handset, when: &str) {
    for _ in 0..500 {
        if left_behind(handset).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{when}: {:?} stays on the phone", left_behind(handset));
}

#[tokio::test]
async fn a_session_that_android_opens_after_its_caller_left_is_given_up() {
    let Some(bench) = bench().await else { return };
    let apk = shopping().apk;
    for ending in [Ending::CallerLeaves, Ending::CableIsPulled] {
        let phone = bench.connected().await;
        let before = bench.handset.opened_sessions();
        bench.handset.set_installer_busy(true);
        let size = apk.len() as u64;
        let twice = std::io::Cursor::new([&apk[..], &apk[..]].concat());
        let installing = install::install(&phone, ApkSet::stream(&[size, size], Box::new(twice)).unwrap());
        let begun = bench.handset.next_command();
        tokio::select! {
            done = installing => panic!("{done:?}"),
            () = async {
                begun.await;
                // Until the command waits for Android.
                tokio::time::sleep(Duration::from_millis(200)).await;
            } => {}
        }
        if ending == Ending::CableIsPulled {
            bench.handset.unplug();
            bench.handset.plug_in();
        }
        bench.handset.set_installer_busy(false);
        for _ in 0..500 {
            if bench.handset.opened_sessions() > before {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(bench.handset.opened_sessions(), before + 1, "{ending:?}: it was opened");
        expect_clean(&bench.handset, &format!("{ending:?}")).await;
    }
}

#[tokio::test]
async fn an_upload_that_ends_early_is_an_error_at_once_and_leaves_nothing() {
    let Some(bench) = bench().await else { return };
    let phone = bench.connected().await;
    let apk = shopping().apk;
    let size = apk.len() as u64;
    let one_and_a_half = [&apk[..], &apk[..apk.len() / 2]].concat();
    for (sizes, bytes) in [(vec![size + 1], apk.clone()), (vec![size, size], one_and_a_half)] {
        let bytes = Box::new(std::io::Cursor::new(bytes));
        let error = install::install(&phone, ApkSet::stream(&sizes, bytes).unwrap()).await.unwrap_err();
        assert!(error.to_string().contains("fewer bytes than announced"), "{error}");
        expect_clean(&bench.handset, "an upload that ends early").await;
    }
    assert!(bench.handset.virtual_apps().is_empty());
}

#[tokio::test]
async fn a_finger_is_lifted_also_where_its_caller_leaves_while_it_is_down() {
    let Some(bench) = VirtualAdb::open(Handset::new(PhoneSetup::default(), PhoneClock::Real)).await else { return };
    let device = PhoneDevice::new(bench.connected().await, Profile::Full);
    bench.handset.with(|machine| machine.wake());
    let is_down = || bench.handset.with(|machine| machine.is_touched());
    let at = |x: u32, time: u32| json!({"x": x, "y": 1200, "time": time});
    let path = json!({"paths": [[at(200, 0), at(300, 400), at(200, 800)]]});
    {
        let drawing = call(&device, "custom_gesture", path);
        let down = async {
            while !is_down() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            done = drawing => panic!("{done:?}"),
            () = down => {}
        }
    }
    assert!(is_down(), "its caller left in the middle");
    for _ in 0..500 {
        if !is_down() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the finger stays on the glass");
}

#[tokio::test]
async fn a_viewer_who_leaves_does_not_stop_the_others() {
    let Some(bench) = bench().await else { return };
    let device = PhoneDevice::new(bench.connected().await, Profile::Tester);
    let wanted = LiveRequest { max_side: 160, quality: 50, known: None, patience: Duration::from_secs(5) };
    let halted = bench.handset.halt_after(0);
    {
        let leaving = sinew_tool::Device::live_picture(&device, &wanted);
        tokio::select! {
            picture = leaving => panic!("{picture:?}"),
            () = halted => {}
        }
    }
    bench.handset.go_on();
    let picture = sinew_tool::Device::live_picture(&device, &wanted).await.unwrap();
    assert!(picture.is_some_and(|picture| picture.bytes.starts_with(&[0xff, 0xd8, 0xff])));
    bench.handset.unplug();
    tokio::time::sleep(Duration::from_millis(450)).await;
    let error = sinew_tool::Device::live_picture(&device, &wanted).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::DeviceLost, "{error}");
}
