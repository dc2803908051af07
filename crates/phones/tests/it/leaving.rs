//! Callers who leave in the middle, and phones that are unplugged in the middle: wherever that is, the phone keeps nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sinew_phones::adb::AdbPhone;
use sinew_phones::control::install::{self, ApkSet};
use sinew_phones::control::video::{self, VideoRequest};
use sinew_phones::tools::table;
use sinew_phones::{PhoneDevice, PhoneError, Profile};
use sinew_sim::phone::{Handset, LockScreen, PhoneClock, PhoneSetup, StockApp, shopping};
use sinew_tool::{Device, ErrorKind, LiveRequest, Outcome, Silent, ToolError, Value, json};

use crate::common::virtual_adb::VirtualAdb;
use crate::common::{call, run_steps};

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

/// What Sinew put on a phone: files of its own, recorders, install sessions, and the shade in front of everything.
fn left_behind(handset: &Handset) -> Vec<String> {
    let mut left = handset.paths();
    left.retain(|path| path.contains("sinew-"));
    left.extend(handset.running_programs());
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

fn device(phone: AdbPhone, apks: &Path) -> PhoneDevice<AdbPhone> {
    PhoneDevice::new(phone, Profile::Tester).with_apks(Some(apks.to_owned()))
}

/// Ends a piece of work at each moment that it has, one after the other, until it is done before it is ended. Gives the
/// number of moments.
async fn end_everywhere<T>(
    bench: &VirtualAdb,
    ending: Ending,
    what: &str,
    work: impl AsyncFn(AdbPhone) -> Result<T, ErrorKind>,
) -> u64 {
    for moment in 0..100 {
        let phone = bench.connected().await;
        let halted = bench.handset.halt_after(moment);
        let mut running = Box::pin(work(phone));
        let is_halted = tokio::select! {
            biased;
            () = halted => true,
            _ = &mut running => false,
        };
        if is_halted && ending == Ending::CableIsPulled {
            bench.handset.unplug();
            // What had said all that it says when the cable was pulled is done.
            if let Err(kind) = running.await {
                assert_eq!(kind, ErrorKind::DeviceLost, "{what} at moment {moment}");
            }
        } else {
            drop(running);
        }
        bench.handset.go_on();
        bench.handset.plug_in();
        expect_clean(&bench.handset, &format!("{what}, {ending:?} at moment {moment}")).await;
        if !is_halted {
            return moment;
        }
    }
    panic!("{what} has no end");
}

/// Ends a call of a tool everywhere, in both ways.
async fn end_call_everywhere(bench: &VirtualAdb, apks: &Path, tool: &str, arguments: &Value, least: u64) {
    for ending in [Ending::CallerLeaves, Ending::CableIsPulled] {
        let work = async |phone| {
            let device = device(phone, apks);
            run_steps_or_call(Arc::new(device), tool, arguments.clone()).await.map_err(|error| error.kind)
        };
        let moments = end_everywhere(bench, ending, tool, work).await;
        // Fewer would mean that it was not ended everywhere.
        assert!(moments >= least, "{tool} {arguments}: {moments} moments");
    }
}

#[tokio::test]
async fn an_installation_that_is_ended_anywhere_leaves_nothing_on_the_phone() {
    let folder = tempfile::tempdir().unwrap();
    let apk = shopping().apk;
    std::fs::write(folder.path().join("one.apk"), &apk).unwrap();
    std::fs::create_dir(folder.path().join("split")).unwrap();
    for name in ["base.apk", "config.de.apk"] {
        std::fs::write(folder.path().join("split").join(name), &apk).unwrap();
    }
    let Some(bench) = bench().await else { return };
    for (name, least) in [("one.apk", 2), ("split", 8)] {
        end_call_everywhere(&bench, folder.path(), "install_app", &json!({"file": name}), least).await;
    }
}

#[tokio::test]
async fn a_transfer_that_is_ended_anywhere_leaves_nothing_on_the_phone() {
    let Some(bench) = bench().await else { return };
    let adb = bench.connected().await;
    // Several pieces, so that it is also ended between two of them.
    let large = "x".repeat(150 << 10);
    adb.transport().push(large.as_bytes(), "/sdcard/large", 0o644, Duration::from_secs(30)).await.unwrap();
    for (tool, arguments, least) in [
        ("write_file", json!({"path": "Download/a", "text": large}), 8),
        ("read_file", json!({"path": "large"}), 6),
        ("list_files", json!({"path": "Download"}), 5),
    ] {
        end_call_everywhere(&bench, Path::new(""), tool, &arguments, least).await;
    }
    let written = bench.handset.paths().into_iter().filter(|path| path.starts_with("/sdcard/Download/")).count();
    assert_eq!(written, 2, "the one that was there before, and the one that was written to its end");
}

#[tokio::test]
async fn whatever_else_is_ended_anywhere_leaves_nothing_on_the_phone() {
    let Some(bench) = bench().await else { return };
    let steps = json!({"settle": false, "steps": [
        {"tool": "open_app", "arguments": {"app": "dev.sinew.notes"}},
        {"tool": "write_file", "arguments": {"path": "Download/a", "text": "x"}},
        {"tool": "press_home"},
    ]});
    for (tool, arguments, least) in [
        ("record_screen", json!({"seconds": 1, "max_side": 160}), 5),
        ("get_device_status", json!({}), 2),
        ("get_accessibility_tree", json!({}), 2),
        ("run_steps", steps, 10),
    ] {
        end_call_everywhere(&bench, Path::new(""), tool, &arguments, least).await;
    }
}

/// The first moments of a tool are those of its first commands.
const FIRST_MOMENTS: u64 = 4;

#[tokio::test]
async fn a_phone_that_goes_away_during_any_tool_is_lost_at_once_and_keeps_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shopping.apk"), shopping().apk).unwrap();
    let Some(bench) = bench().await else { return };
    for row in table::rows() {
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let mut lost = 0;
        for moment in 0..FIRST_MOMENTS {
            bench.handset.restart();
            let phone: Arc<dyn Device> = Arc::new(device(bench.connected().await, folder.path()));
            for (tool, arguments) in row.page.scene.steps() {
                // What only the agent can do is not needed to get that far.
                let _ = call(&*phone, tool, read(arguments)).await;
            }
            let halted = bench.handset.halt_after(moment);
            let mut running = Box::pin(run_steps_or_call(phone, row.name, read(row.page.example)));
            let is_halted = tokio::select! {
                biased;
                () = halted => true,
                _ = &mut running => false,
            };
            bench.handset.unplug();
            if is_halted && let Err(error) = running.await {
                assert_eq!(error.kind, ErrorKind::DeviceLost, "{} at moment {moment}: {error}", row.name);
                lost += 1;
            }
            bench.handset.go_on();
            bench.handset.plug_in();
            if row.name.starts_with("open_") {
                // An open shade is what some of these were asked for.
                bench.handset.restart();
            }
            expect_clean(&bench.handset, &format!("{} at moment {moment}", row.name)).await;
            if !is_halted {
                break;
            }
        }
        let needs_agent =
            ["pinch", "custom_gesture", "get_clipboard", "set_clipboard", "select_text"].contains(&row.name);
        assert!(lost > 0 || needs_agent, "{} was never lost", row.name);
    }
}

async fn run_steps_or_call(phone: Arc<dyn Device>, tool: &str, arguments: Value) -> Result<Outcome, ToolError> {
    match tool {
        "run_steps" => run_steps(phone, arguments).await,
        tool => call(&*phone, tool, arguments).await,
    }
}

#[tokio::test]
async fn the_shade_is_closed_wherever_a_call_about_a_notification_ends() {
    let Some(bench) = bench().await else { return };
    for ending in [Ending::CallerLeaves, Ending::CableIsPulled] {
        let title = format!("{ending:?}");
        bench.handset.with(|machine| machine.notify(StockApp::Notes, &title, "text"));
        let arguments = json!({"notification": title, "do": "dismiss"});
        let work = async |phone| {
            let device = PhoneDevice::new(phone, Profile::Tester);
            match call(&device, "act_on_notification", arguments.clone()).await {
                // One that was dismissed before the last call ended is no longer there.
                Err(error) if error.kind == ErrorKind::ElementNotFound => Ok(()),
                done => done.map(drop).map_err(|error| error.kind),
            }
        };
        let moments = end_everywhere(&bench, ending, "act_on_notification", work).await;
        assert!(moments >= 2, "{moments} moments");
    }
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
        let installing = install::install(&phone, ApkSet::stream(&[size, size], Box::new(twice)).unwrap(), &Silent);
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
        let error = install::install(&phone, ApkSet::stream(&sizes, bytes).unwrap(), &Silent).await.unwrap_err();
        assert!(error.to_string().contains("fewer bytes than announced"), "{error}");
        expect_clean(&bench.handset, "an upload that ends early").await;
    }
    assert!(bench.handset.virtual_apps().is_empty());
}

#[tokio::test]
async fn a_video_that_does_not_end_is_given_up_and_removed() {
    let Some(bench) = bench().await else { return };
    let phone = bench.connected().await;
    bench.handset.set_endless_videos(true);
    let limit = Duration::from_secs(10);
    let size = Some((72, 160));
    let request = VideoRequest { seconds: 1, size, bits_per_second: 1_000_000, most_bytes: 1 << 20, limit };
    let mut video = Vec::new();
    let recording = video::record(&phone, &request, &mut video);
    let has_file = async {
        while left_behind(&bench.handset).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let (recorded, ()) = tokio::join!(recording, has_file);
    let error = recorded.unwrap_err();
    assert!(matches!(&error, PhoneError::Timeout(why) if why.contains("`screenrecord` took longer")), "{error}");
    expect_clean(&bench.handset, "a video that does not end").await;
    bench.handset.set_endless_videos(false);
    video::record(&phone, &request, &mut video).await.unwrap();
    expect_clean(&bench.handset, "a video that ends").await;
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
