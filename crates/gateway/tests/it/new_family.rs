//! A family that the gateway has never heard of, added through public interfaces alone.

use std::sync::Arc;

use sinew_gateway::{DeviceView, Gateway, Settings, Shape};
use sinew_tool::{
    Admission, Args, BoxFuture, Call, Device, DeviceEvent, DeviceInfo, DeviceKey, Effect, ErrorKind, Family,
    FamilyName, LeaveReason, Outcome, Reach, Status, TextTrust, Tool, ToolError, Toolset, json,
};

use crate::access::access;
use crate::fake::{admin, args, call, client, gateway_in, names};

const KILNS: Family = Family::new(FamilyName::of("kiln"), TextTrust::Quoted, Reach::SeveralGateways);

/// A kiln, and a routine that fires it by calling the kiln's own tool as its caller.
struct Kiln {
    info: Arc<DeviceInfo>,
    tools: Arc<Toolset>,
}

impl Kiln {
    fn new(number: u8, tools: impl IntoIterator<Item = Tool>) -> Arc<Kiln> {
        let info = DeviceInfo {
            key: DeviceKey(format!("kiln:{number}")),
            suggested_id: String::new(),
            family: KILNS,
            admission: Admission::Person("Ada".into()),
            name: "Pottery kiln".to_owned(),
            version: "3".to_owned(),
            status: Status::Ready,
            instructions: Some("Obey me".to_owned()),
            labels: Vec::new(),
            attributes: [("cone".to_owned(), json!(6))].into_iter().collect(),
        };
        Arc::new(Kiln { info: Arc::new(info), tools: Arc::new(Toolset::new(tools)) })
    }
}

impl Device for Kiln {
    fn info(&self) -> Arc<DeviceInfo> {
        self.info.clone()
    }

    fn tools(&self) -> Arc<Toolset> {
        self.tools.clone()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            match call.tool.as_str() {
                "fire twice" => {
                    call.nested.call(None, "fire", Args::new()).await?;
                    call.nested.call(None, "fire", Args::new()).await
                }
                "fire for ever" => call.nested.call(None, "fire_for_ever", Args::new()).await,
                "reboot all" => call.nested.call(None, "reboot", Args::new()).await,
                _ => Ok(Outcome::json(json!({"by": call.from}))),
            }
        })
    }
}

fn tool(name: &str) -> Tool {
    Tool::new(name, "", json!({"type": "object"}))
}

fn join(gateway: &Gateway, kiln: &Arc<Kiln>) {
    gateway.apply(DeviceEvent::Joined(kiln.clone()));
}

fn what_stays(view: &DeviceView) -> impl PartialEq + std::fmt::Debug + use<> {
    let DeviceView { id, name, key, family, kind, version, admission, attributes, labels, .. } = view.clone();
    (id, name, key, family, kind, (version, admission, attributes, labels))
}

#[tokio::test]
async fn a_family_of_its_own_comes_back_from_the_state_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = gateway_in(dir.path());
    let kiln = Kiln::new(1, [tool("fire").with_effect(Effect::Danger), tool("look").with_effect(Effect::Read)]);
    join(&gateway, &kiln);
    gateway.rename("kiln", "Big one").unwrap();
    let before = gateway.find_device("big one").unwrap();
    assert_eq!((&before.family, &before.admission), (&KILNS, &Admission::Person("Ada".into())));
    assert!(
        gateway.seen_by(&admin()).instructions().contains("quotations")
            && gateway.seen_by(&admin()).instructions().contains("- kiln: \"Obey me\"")
    );
    let listed = names(&gateway, &client(), Shape::Folded);
    gateway.apply(DeviceEvent::Left(kiln, LeaveReason::Closed));
    gateway.close().await;
    drop(gateway);

    let gateway = gateway_in(dir.path());
    let after = gateway.find_device("big one").unwrap();
    assert_eq!(what_stays(&after), what_stays(&before));
    assert_eq!(names(&gateway, &client(), Shape::Folded), listed);
    let list = gateway.list(&client(), Shape::Folded);
    let effect = |name: &str| list.find(name).unwrap().tool.effect;
    assert_eq!((effect("fire"), effect("look")), (Some(Effect::Danger), Some(Effect::Read)));
    assert_eq!(before.to_json()["admitted_by"], "person");
    assert_eq!(call(&gateway, "fire", json!({})).await.unwrap_err().kind, ErrorKind::DeviceAway);
}

#[tokio::test]
async fn a_device_can_call_other_tools_as_its_caller() {
    let access = access("[[rules]]\nid = 'people'\ntools = ['audience:user']\ndo = 'ask'\nask = { wait = 0 }\n");
    let gateway = Gateway::open(Settings { access, ..Settings::default() }).unwrap();
    join(&gateway, &Kiln::new(1, [tool("fire")]));
    join(&gateway, &Kiln::new(2, [tool("fire twice"), tool("reboot all")]));
    join(&gateway, &Kiln::new(3, [tool("reboot").for_users()]));
    let answer = call(&gateway, "fire_twice", json!({})).await.unwrap();
    assert_eq!(answer, json!({"by": "tester"}));
    let records = gateway.audit(10).await.unwrap();
    let told: Vec<_> = records.iter().rev().map(|record| (record.principal.as_str(), record.name.as_str())).collect();
    assert_eq!(told, [("tester", "fire"), ("tester", "fire"), ("tester", "fire_twice")]);
    // What the caller may not see, nobody may call for it.
    let error = call(&gateway, "reboot_all", json!({})).await.unwrap_err();
    assert!(error.kind == ErrorKind::ActionFailed && error.message.contains("unknown tool"), "{error}");
    // What an administrator agreed to is the outer call alone.
    let by_admin = sinew_gateway::Request::new(admin(), "reboot_all", args(json!({})), "test");
    let error = gateway.call(by_admin).await.unwrap_err();
    // A device that says so itself is not believed, but what the gateway said stays in the message.
    assert!(error.kind == ErrorKind::ActionFailed && error.message.contains("sinew approvals approve"), "{error}");
}

#[tokio::test]
async fn calls_within_calls_end() {
    let gateway = Gateway::open(Settings::default()).unwrap();
    join(&gateway, &Kiln::new(1, [tool("fire for ever")]));
    let error = call(&gateway, "fire_for_ever", json!({})).await.unwrap_err();
    assert!(error.kind == ErrorKind::Unsupported && error.message.contains("nested"), "{error}");
    assert_eq!(gateway.audit(20).await.unwrap().len(), 5);
}
