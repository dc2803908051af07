//! Rules, calls and verdicts.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use sinew_tool::settings::Setting;
use sinew_tool::{Audience, Effect, Hints, Tool};

use crate::*;

fn settings(text: &str) -> PolicySettings {
    let mut settings = PolicySettings::default();
    settings.read(toml::Deserializer::parse(text).expect("TOML")).expect("settings");
    settings
}

fn policy(text: &str) -> Policy {
    Policy::new(settings(text)).expect("a policy without errors")
}

fn refused(text: &str) -> Vec<PolicyProblem> {
    Policy::new(settings(text)).expect_err("an error")
}

const NOON: LocalTime = LocalTime { weekday: 0, minute: 720 };

fn tablet() -> CallerFacts<'static> {
    CallerFacts { kind: CallerKind::Token, name: "tablet", admin: false }
}

fn door() -> DeviceFacts<'static> {
    DeviceFacts {
        id: "front-door",
        name: Some("Haustür"),
        kind: "lock-pro",
        family: "board",
        labels: &["door"],
        approved: true,
    }
}

fn tool(name: &'static str, effect: Option<Effect>) -> ToolFacts<'static> {
    ToolFacts { name, public_name: name, effect, hints: Hints::default(), audience: Audience::Everyone }
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => panic!("an object"),
    }
}

fn verdict(policy: &Policy, device: &DeviceFacts, tool: &ToolFacts, args: Value) -> Verdict {
    let plan = policy.plan(&policy.rights_of(&tablet()), device, tool);
    policy.decide(&plan, &map(args), NOON).verdict
}

#[test]
fn without_rules_reading_and_changing_are_allowed_and_danger_asks() {
    let policy = Policy::default();
    let user_only = ToolFacts { audience: Audience::User, ..tool("self.reboot", Some(Effect::Read)) };
    let stranger = DeviceFacts { approved: false, ..door() };
    for (device, tool, expected) in [
        (door(), tool("a", Some(Effect::Read)), Verdict::Allow),
        (door(), tool("a", Some(Effect::Change)), Verdict::Allow),
        (door(), tool("a", Some(Effect::Danger)), Verdict::Ask),
        (door(), tool("a", None), Verdict::Allow),
        (stranger, tool("a", None), Verdict::Ask),
        (stranger, tool("a", Some(Effect::Read)), Verdict::Allow),
        (door(), user_only, Verdict::Ask),
    ] {
        assert_eq!(verdict(&policy, &device, &tool, json!({})), expected, "{tool:?} {device:?}");
    }
}

#[test]
fn deny_beats_ask_beats_allow_whatever_the_order() {
    let rules = ["allow", "ask", "deny"].map(|word| format!("[[rules]]\nid = '{word}'\ndo = '{word}'\n"));
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let text: String = order.iter().map(|index| rules[*index].as_str()).collect();
        assert_eq!(verdict(&policy(&text), &door(), &tool("a", None), json!({})), Verdict::Deny);
    }
    let text = format!("{}{}", rules[1], rules[0]);
    assert_eq!(verdict(&policy(&text), &door(), &tool("a", Some(Effect::Read)), json!({})), Verdict::Ask);
}

#[test]
fn a_rule_is_about_what_all_its_lists_match() {
    let policy = policy(
        "[[rules]]\nid = 'children'\nwho = ['token:tablet', 'oauth:*@kids.example']\non = ['label:door', 'kind:lock-*']\n\
         tools = ['*unlock*', 'hint:destructive', 'audience:user']\ndo = 'deny'\n",
    );
    let unlock = tool("self.unlock", Some(Effect::Danger));
    let verdict_for = |caller: CallerFacts, device: DeviceFacts, tool: ToolFacts| {
        let plan = policy.plan(&policy.rights_of(&caller), &device, &tool);
        policy.decide(&plan, &Map::new(), NOON).verdict
    };
    assert_eq!(verdict_for(tablet(), door(), unlock), Verdict::Deny);
    let kid = CallerFacts { kind: CallerKind::OAuth, name: "mia@kids.example", admin: false };
    assert_eq!(verdict_for(kid, door(), unlock), Verdict::Deny);
    let desktop = CallerFacts { name: "desktop", ..tablet() };
    assert_eq!(verdict_for(desktop, door(), unlock), Verdict::Ask);
    let person = CallerFacts { kind: CallerKind::Person, ..tablet() };
    assert_eq!(verdict_for(person, door(), unlock), Verdict::Ask);
    let lamp = DeviceFacts { id: "lamp", kind: "lamp", labels: &[], ..door() };
    assert_eq!(verdict_for(tablet(), lamp, unlock), Verdict::Ask);
    assert_eq!(verdict_for(tablet(), door(), tool("self.lock", Some(Effect::Change))), Verdict::Allow);
}

#[test]
fn conditions_decide_and_else_holds_where_they_fail() {
    let policy = policy(
        "[[rules]]\nid = 'heating'\ntools = ['self.thermostat.set']\n\
         if = [{ arg = '/celsius', max = 24 }, { arg = '/mode', in = ['eco', 'comfort'] }]\ndo = 'allow'\nelse = 'ask'\n\
         ask = { by = 'client', wait = 20, keep = 600 }\n",
    );
    let set = tool("self.thermostat.set", Some(Effect::Danger));
    let verdict = |args: Value| verdict(&policy, &door(), &set, args);
    assert_eq!(verdict(json!({"celsius": 24, "mode": "eco"})), Verdict::Allow);
    assert_eq!(verdict(json!({"celsius": 25, "mode": "eco"})), Verdict::Ask);
    assert_eq!(verdict(json!({"celsius": "20", "mode": "eco"})), Verdict::Ask);
    assert_eq!(verdict(json!({})), Verdict::Ask);
    let plan = policy.plan(&policy.rights_of(&tablet()), &door(), &set);
    let ask = policy.decide(&plan, &Map::new(), NOON).ask;
    assert_eq!((ask.by, ask.wait, ask.keep), (AskBy::Client, Duration::from_secs(20), Duration::from_secs(600)));
}

#[test]
fn of_several_rules_that_ask_the_strictest_terms_hold() {
    let policy = policy(
        "[[rules]]\nid = 'a'\ndo = 'ask'\nask = { by = 'person', wait = 50, keep = 600 }\n\
         [[rules]]\nid = 'b'\ndo = 'allow'\n[[rules]]\nid = 'c'\ndo = 'ask'\nask = { by = 'client', wait = 10 }\n",
    );
    let plan = policy.plan(&policy.rights_of(&tablet()), &door(), &tool("x", None));
    let ask = policy.decide(&plan, &Map::new(), NOON).ask;
    assert_eq!((ask.by, ask.wait, ask.keep), (AskBy::Person, Duration::from_secs(10), Duration::ZERO));
}

#[test]
fn hours_switch_a_rule_on_and_off() {
    let policy = policy("[[rules]]\nid = 'night'\nhours = '22:00-06:00'\ndo = 'deny'\n");
    let plan = policy.plan(&policy.rights_of(&tablet()), &door(), &tool("x", Some(Effect::Read)));
    let at = |minute| policy.decide(&plan, &Map::new(), LocalTime { weekday: 3, minute }).verdict;
    assert_eq!(at(23 * 60), Verdict::Deny);
    assert_eq!(at(12 * 60), Verdict::Allow);
    assert!(!policy.hides(&plan));
}

#[test]
fn read_only_mode_denies_everything_but_reading_whatever_the_rules_say() {
    let policy = policy("read-only = true\n[[rules]]\nid = 'all'\ndo = 'allow'\n");
    assert_eq!(verdict(&policy, &door(), &tool("x", Some(Effect::Read)), json!({})), Verdict::Allow);
    for effect in [Some(Effect::Change), Some(Effect::Danger), None] {
        let plan = policy.plan(&policy.rights_of(&tablet()), &door(), &tool("x", effect));
        assert_eq!(policy.decide(&plan, &Map::new(), NOON).reason, Reason::ReadOnlyMode);
        assert!(policy.hides(&plan));
    }
}

#[test]
fn a_tool_is_hidden_only_if_every_call_would_be_denied() {
    let hidden = |text: &str, effect| {
        let policy = policy(text);
        let plan = policy.plan(&policy.rights_of(&tablet()), &door(), &tool("x", effect));
        policy.hides(&plan)
    };
    let rule = |rest: &str| format!("[[rules]]\nid = 'r'\n{rest}\n");
    assert!(hidden(&rule("do = 'deny'"), None));
    assert!(!hidden(&rule("do = 'deny'\nif = [{ arg = '/a', is = 1 }]"), None));
    assert!(hidden(&rule("do = 'deny'\nif = [{ arg = '/a', is = 1 }]\nelse = 'deny'"), None));
    assert!(!hidden(&rule("do = 'ask'"), None));
    assert!(hidden("danger = 'deny'", Some(Effect::Danger)));
    let opened = format!("danger = 'deny'\n{}", rule("do = 'allow'\nif = [{ arg = '/a', is = 1 }]"));
    assert!(!hidden(&opened, Some(Effect::Danger)));
}

#[test]
fn a_rule_that_only_limits_changes_no_verdict() {
    let policy = policy("[[rules]]\nid = 'slow'\nrate = '2/min'\nconcurrent = 1\n");
    let plan = policy.plan(&policy.rights_of(&tablet()), &door(), &tool("x", Some(Effect::Danger)));
    let decision = policy.decide(&plan, &Map::new(), NOON);
    assert_eq!((decision.verdict, decision.reason), (Verdict::Ask, Reason::Default(Effect::Danger)));
    assert_eq!(decision.limits.iter().map(|rule| rule.id.as_str()).collect::<Vec<_>>(), ["slow"]);
}

#[test]
fn an_explanation_names_every_rule_that_matched() {
    let policy = policy(
        "[[rules]]\nid = 'warm'\nif = [{ arg = '/celsius', max = 24 }]\ndo = 'allow'\n\
         [[rules]]\nid = 'night'\nhours = '22:00-06:00'\ndo = 'deny'\n[[rules]]\nid = 'ask'\ndo = 'ask'\n\
         [[rules]]\nid = 'other'\non = ['device:lamp']\ndo = 'deny'\n",
    );
    let plan = policy.plan(&policy.rights_of(&tablet()), &door(), &tool("x", None));
    let found = policy.explain(&plan, &map(json!({"celsius": 30})), NOON);
    assert_eq!((found.verdict, found.reason), (Verdict::Ask, Reason::Rule("ask".to_owned())));
    let reports: Vec<_> = found.rules.iter().map(|rule| (rule.id.as_str(), rule.result.text(), rule.verdict)).collect();
    let expected = [
        ("warm", "its condition on `/celsius` fails".to_owned(), None),
        ("night", "is outside its hours".to_owned(), None),
        ("ask", "holds".to_owned(), Some(Verdict::Ask)),
    ];
    assert_eq!(reports, expected);
}

#[test]
fn mistakes_in_rules_are_reported_with_their_place() {
    let problems = refused(
        "[[rules]]\ndo = 'deny'\n[[rules]]\nid = 'a'\n[[rules]]\nid = 'a'\ndo = 'deny'\nrate = '1/s'\n\
         [[rules]]\nid = 'b'\ndo = 'allow'\nelse = 'ask'\n[[rules]]\nid = 'c'\nconcurrent = 0\n\
         [[rules]]\nid = 'd'\ndo = 'ask'\nif = [{ arg = '/a', is = 1 }, { arg = 'b', is = 1 }]\n[[rules]]\nid = 'ä b'\ndo = 'ask'\n",
    );
    let found: Vec<(&str, &str)> =
        problems.iter().map(|problem| (problem.key.as_str(), problem.message.as_str())).collect();
    let has = |key: &str, part: &str| found.iter().any(|(at, message)| *at == key && message.contains(part));
    assert!(has("policy.rules.0", "needs an `id`"), "{found:?}");
    assert!(has("policy.rules.1", "does nothing"), "{found:?}");
    assert!(has("policy.rules.2", "two rules have the id `a`"), "{found:?}");
    assert!(has("policy.rules.2", "denies, so its `rate`"), "{found:?}");
    assert!(has("policy.rules.3", "`else`"), "{found:?}");
    assert!(has("policy.rules.4", "`concurrent = 0`"), "{found:?}");
    assert!(has("policy.rules.5.if.1", "not a JSON pointer"), "{found:?}");
    assert!(has("policy.rules.6", "letters, digits"), "{found:?}");
}

#[test]
fn a_rule_that_can_never_decide_is_a_warning() {
    let settings = settings(
        "[[rules]]\nid = 'no-locks'\non = ['label:*']\ndo = 'deny'\n\
         [[rules]]\nid = 'tablet'\nwho = ['token:tablet']\non = ['label:door']\ndo = 'allow'\n\
         [[rules]]\nid = 'lamp'\non = ['device:lamp']\ndo = 'allow'\n",
    );
    let problems = settings.check();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!((problems[0].severity, problems[0].key.as_str()), (Severity::Warning, "policy.rules.1"));
    let against = settings.check_against([(door(), vec![tool("x", None)])]);
    assert_eq!(against.iter().map(|problem| problem.key.as_str()).collect::<Vec<_>>(), ["policy.rules.2.on"]);
}

#[test]
fn a_wrong_key_is_refused_with_the_nearest() {
    let read = |text: &str| {
        let mut settings = PolicySettings::default();
        settings.read(toml::Deserializer::parse(text).unwrap()).map(drop).unwrap_err().to_string()
    };
    assert!(read("[[rules]]\nid = 'a'\nconcurent = 1").contains("did you mean `concurrent`"));
    assert!(read("[[rules]]\nid = 'a'\ndo = 'never'").contains("`allow`, `ask`, `deny`"));
    assert!(read("[[rules]]\nid = 'a'\nwho = []\ndo = 'deny'").contains("empty list"));
    assert!(read("[[rules]]\nid = 'a'\nask = { wait = 90 }\ndo = 'ask'").contains("between 0 and 55"));
}

#[test]
fn callers_of_equal_rights_are_equal() {
    let policy = policy("[[rules]]\nid = 'tablet'\nwho = ['token:tablet']\ndo = 'deny'\n");
    let rights = |name| policy.rights_of(&CallerFacts { name, ..tablet() });
    assert_eq!(rights("desktop"), rights("laptop"));
    assert_ne!(rights("desktop"), rights("tablet"));
    assert_ne!(rights("desktop"), policy.rights_of(&CallerFacts { name: "desktop", admin: true, ..tablet() }));
}

#[test]
fn expectations_are_checked_without_a_gateway() {
    let policy = policy("[[rules]]\nid = 'children'\nwho = ['token:tablet']\non = ['label:door']\ndo = 'deny'\n");
    let mut file = ExpectationFile::default();
    let text = "[[expect]]\nwho = 'token:tablet'\nlabels = ['door']\ntool = 'self.unlock'\nverdict = 'deny'\n\
                [[expect]]\nwho = 'token:desktop'\ntool = 'self.unlock'\neffect = 'danger'\nargs = { code = 1 }\nverdict = 'allow'\n";
    file.read(toml::Deserializer::parse(text).unwrap()).unwrap();
    let mismatches = file.run(&policy, &[]);
    assert_eq!(mismatches.len(), 1);
    assert_eq!((mismatches[0].index, mismatches[0].found.verdict), (1, Verdict::Ask));
    // What the configuration says a tool does counts here too.
    let effects = [effect_rule("tools = ['*unlock']\neffect = 'read'\n")];
    assert!(file.run(&policy, &effects).is_empty());
    for (text, key) in [("tool = 'x'\n", "`verdict`"), ("verdict = 'deny'\n", "`tool`")] {
        let mut file = ExpectationFile::default();
        file.read(toml::Deserializer::parse(&format!("[[expect]]\n{text}")).unwrap()).unwrap();
        let problem = file.check().unwrap_err();
        assert!(problem.key == "expect.0" && problem.message.contains(key), "{problem:?}");
    }
}

fn effect_rule(text: &str) -> EffectRule {
    let mut rule = EffectRule::default();
    rule.read(toml::Deserializer::parse(text).unwrap()).unwrap();
    rule
}

#[test]
fn an_entry_that_names_no_effect_is_a_mistake() {
    let problems = check_effects(&[effect_rule("tools = ['*unlock*']\n")]);
    assert!(problems.len() == 1 && problems[0].message.contains("needs an `effect`"), "{problems:?}");
    assert_eq!(check_effects(&[effect_rule("tools = ['*unlock*']\neffect = 'read'\n")]), []);
}

#[test]
fn a_device_that_nobody_approved_gets_no_permission_by_what_it_says_of_itself() {
    let stranger = DeviceFacts { id: "lamp-1", name: None, kind: "lamp", labels: &[], approved: false, ..door() };
    let hinted = ToolFacts { hints: Hints { read_only: Some(true), ..Hints::default() }, ..tool("get_all", None) };
    let labelled = DeviceFacts { labels: &["trusted"], ..stranger };
    let named = DeviceFacts { name: Some("lamp-kitchen"), ..stranger };
    for (selectors, device, expected) in [
        ("on = ['kind:lamp']", stranger, Verdict::Ask),
        ("on = ['device:lamp-*']", stranger, Verdict::Ask),
        ("on = ['device:*']", stranger, Verdict::Ask),
        ("tools = ['hint:read-only']", stranger, Verdict::Ask),
        ("tools = ['get_*']", stranger, Verdict::Ask),
        ("tools = ['get_all']", stranger, Verdict::Ask),
        ("on = ['family:board']\ntools = ['get_*']", stranger, Verdict::Ask),
        // The word of a person.
        ("on = ['device:lamp-1']", stranger, Verdict::Allow),
        ("on = ['device:lamp-1']\ntools = ['get_*']", stranger, Verdict::Allow),
        ("on = ['device:lamp-*']", named, Verdict::Allow),
        ("on = ['label:trusted']\ntools = ['hint:read-only']", labelled, Verdict::Allow),
        ("on = ['family:board']", stranger, Verdict::Allow),
        ("who = ['token:tablet']", stranger, Verdict::Allow),
        ("tools = ['get_*']", DeviceFacts { approved: true, ..stranger }, Verdict::Allow),
    ] {
        let policy = policy(&format!("unmarked = 'ask'\n[[rules]]\nid = 'a'\n{selectors}\ndo = 'allow'\n"));
        assert_eq!(verdict(&policy, &device, &hinted, json!({})), expected, "{selectors}");
    }
    let lowers = |text: &str, approved: bool| {
        let origin = ToolOrigin {
            device: DeviceFacts { approved, ..stranger },
            public_name: "get_all",
            pinned: false,
            agreed: None,
        };
        effect_of(&[effect_rule(text)], &Tool::new("get_all", "", json!({})), &origin).is_some()
    };
    assert!(!lowers("tools = ['get_*']\neffect = 'read'", false) && lowers("tools = ['get_*']\neffect = 'read'", true));
    assert!(lowers("tools = ['get_*']\neffect = 'danger'", false));
    assert!(lowers("on = ['device:lamp-1']\ntools = ['get_*']\neffect = 'read'", false));
}

#[test]
fn a_rule_that_may_not_allow_still_denies_and_asks() {
    let stranger = DeviceFacts { approved: false, ..door() };
    let policy = policy(
        "[[rules]]\nid = 'a'\non = ['kind:lock-*']\nif = [{ arg = '/code', max = 5 }]\ndo = 'allow'\nelse = 'deny'\n",
    );
    let reading = tool("look", Some(Effect::Danger));
    assert_eq!(verdict(&policy, &stranger, &reading, json!({"code": 9})), Verdict::Deny);
    assert_eq!(verdict(&policy, &stranger, &reading, json!({"code": 1})), Verdict::Ask, "the default for danger");
    assert_eq!(verdict(&policy, &door(), &reading, json!({"code": 1})), Verdict::Allow);
    let plan = policy.plan(&policy.rights_of(&tablet()), &stranger, &reading);
    let report = &policy.explain(&plan, &map(json!({"code": 1})), NOON).rules[0];
    assert!(report.result.text().contains("nobody approved the device"), "{report:?}");
}

#[test]
fn entries_that_would_do_nothing_are_refused() {
    for args in ["code", "", "/x~2", "/a~"] {
        let rule = RedactionRule { args: vec![args.to_owned()], ..RedactionRule::default() };
        let problems = check_redactions(&[RedactionRule::default(), rule]);
        assert_eq!(problems[0].key, "redact.1.args", "{args}");
    }
    let rule = RedactionRule { args: vec!["/list/*/pin".to_owned(), "/a~1b".to_owned()], ..RedactionRule::default() };
    assert_eq!(check_redactions(&[rule]), []);
    let problems = check_effects(&[effect_rule("tools = ['effect:danger']\neffect = 'read'")]);
    assert!(problems[0].key == "effects.0.tools" && problems[0].message.contains("by name"), "{problems:?}");
    let problems = refused("[[rules]]\nid = 'a'\ndo = 'ask'\nif = [{ max = 5 }]\n");
    assert!(problems[0].message.contains("`arg` is missing"), "{problems:?}");
    for hours in ["+7:00-+8:00", "7:00-8:00", "07:00-0x:00"] {
        assert!(hours.parse::<Hours>().is_err(), "{hours}");
    }
}

#[test]
fn rules_that_stronger_ones_overrule_are_warnings() {
    for (text, part) in [
        ("[[rules]]\nid = 'q'\ndo = 'ask'\n[[rules]]\nid = 'a'\ntools = ['x']\ndo = 'allow'\n", "can never allow"),
        ("read-only = true\n[[rules]]\nid = 'a'\ntools = ['x']\ndo = 'allow'\n", "`read-only = true`"),
        (
            "[[rules]]\nid = 'd'\nhours = '07:00-08:00'\ndo = 'deny'\nelse = 'deny'\n[[rules]]\nid = 'a'\ndo = 'allow'\n",
            "can never decide",
        ),
    ] {
        let problems = settings(text).check();
        assert!(problems.iter().any(|problem| problem.message.contains(part)), "{text}: {problems:?}");
    }
    assert_eq!(settings("read-only = true\n[[rules]]\nid = 'a'\ntools = ['effect:read']\ndo = 'allow'\n").check(), []);
}

mod effects {
    use super::*;

    fn origin(approved: bool, pinned: bool) -> ToolOrigin<'static> {
        ToolOrigin { device: DeviceFacts { approved, ..door() }, public_name: "x", pinned, agreed: None }
    }

    fn volume() -> Tool {
        Tool::new(
            "self.audio_speaker.set_volume",
            "Set it.",
            json!({"type": "object", "properties": {"volume": {"type": "integer", "minimum": 0, "maximum": 100}},
                "required": ["volume"]}),
        )
    }

    #[test]
    fn the_configuration_comes_first_then_the_agreement_then_the_family() {
        let mut rule = EffectRule::default();
        rule.read(toml::Deserializer::parse("tools = ['self.*']\neffect = 'change'").unwrap()).unwrap();
        let tool = volume().with_effect(Effect::Danger);
        let agreed = ToolOrigin { agreed: Some(Effect::Read), ..origin(true, true) };
        assert_eq!(effect_of(&[rule], &tool, &agreed), Some((Effect::Change, EffectSource::Configuration)));
        assert_eq!(effect_of(&[], &tool, &agreed), Some((Effect::Read, EffectSource::Agreement)));
        assert_eq!(effect_of(&[], &tool, &origin(true, true)), Some((Effect::Danger, EffectSource::Family)));
    }

    #[test]
    fn a_firmware_tool_counts_only_with_its_schema_on_an_approved_device() {
        assert_eq!(effect_of(&[], &volume(), &origin(true, false)), Some((Effect::Change, EffectSource::Firmware)));
        assert_eq!(effect_of(&[], &volume(), &origin(false, false)), None);
        let other = Tool::new("self.audio_speaker.set_volume", "Open the door.", json!({"type": "object"}));
        assert_eq!(effect_of(&[], &other, &origin(true, false)), None);
        let reboot = Tool::new("self.reboot", "Restart.", json!({"type": "object", "properties": {"now": {}}}));
        assert_eq!(effect_of(&[], &reboot, &origin(false, false)), Some((Effect::Danger, EffectSource::Firmware)));
    }

    #[test]
    fn the_hints_of_a_device_only_raise_unless_it_is_pinned() {
        let harmless = Tool::new("peek", "", json!({"type": "object"})).with_hints(Hints::reading());
        assert_eq!(effect_of(&[], &harmless, &origin(true, false)), None);
        assert_eq!(effect_of(&[], &harmless, &origin(true, true)), Some((Effect::Read, EffectSource::Hints)));
        let hints = Hints { destructive: Some(true), ..Hints::default() };
        let harmful = volume().with_hints(hints);
        assert_eq!(effect_of(&[], &harmful, &origin(true, false)), Some((Effect::Danger, EffectSource::Firmware)));
        let both = Hints { read_only: Some(true), ..hints };
        let confused = Tool::new("peek", "", json!({"type": "object"})).with_hints(both);
        assert_eq!(effect_of(&[], &confused, &origin(false, false)), Some((Effect::Danger, EffectSource::Hints)));
    }

    #[test]
    fn a_proposal_comes_from_hints_or_the_name() {
        let named = |name: &str| propose_effect(&Tool::new(name, "", json!({"type": "object"})));
        assert_eq!(named("self.door.unlock"), Effect::Danger);
        assert_eq!(named("self.get_status"), Effect::Read);
        assert_eq!(named("read_shopping_list"), Effect::Read);
        assert_eq!(named("add_to_shopping_list"), Effect::Change);
        assert_eq!(named("self.lamp.set_color"), Effect::Change);
        for joined in ["unlockDoor", "doorUnlock", "DOOR_UNLOCK", "factory-wipe"] {
            assert_eq!(named(joined), Effect::Danger, "{joined}");
        }
    }

    #[test]
    fn a_device_cannot_make_a_suspicious_name_harmless() {
        let hints = Hints { read_only: Some(true), destructive: Some(false), ..Hints::default() };
        let tool = |name: &str| Tool::new(name, "", json!({"type": "object"})).with_hints(hints);
        assert_eq!(suspected_effect(&tool("self.lock.unlock_quiet")), Effect::Danger);
        assert_eq!(suspected_effect(&tool("self.lamp.set_color")), Effect::Change);
        assert_eq!(suspected_effect(&tool("self.get_status")), Effect::Read);
    }
}

fn any_rule() -> impl Strategy<Value = String> {
    let who =
        prop_oneof![Just(""), Just("who = ['token:tablet']"), Just("who = ['token:*']"), Just("who = ['role:admin']")];
    let on =
        prop_oneof![Just(""), Just("on = ['label:door']"), Just("on = ['kind:lock*']"), Just("on = ['device:lamp']")];
    let tools = prop_oneof![Just(""), Just("tools = ['x']"), Just("tools = ['effect:danger']"), Just("tools = ['y*']")];
    let conditions =
        prop_oneof![Just(""), Just("if = [{ arg = '/a', max = 5 }]"), Just("if = [{ arg = '/a', absent = true }]")];
    let verdict = prop_oneof![Just("allow"), Just("ask"), Just("deny")];
    let otherwise = prop_oneof![Just(None), Just(Some("allow")), Just(Some("deny"))];
    (who, on, tools, conditions, verdict, otherwise).prop_map(|(who, on, tools, conditions, verdict, otherwise)| {
        let otherwise = otherwise.filter(|_| !conditions.is_empty());
        let otherwise = otherwise.map(|word| format!("else = '{word}'")).unwrap_or_default();
        format!("{who}\n{on}\n{tools}\n{conditions}\ndo = '{verdict}'\n{otherwise}\n")
    })
}

proptest! {
    /// A hidden tool is never allowed, and a tool that some call may use is never hidden.
    #[test]
    fn what_is_hidden_is_denied_for_all_arguments(
        rules in prop::collection::vec(any_rule(), 0..6),
        read_only in any::<bool>(),
        effect in prop_oneof![Just(None), Just(Some(Effect::Read)), Just(Some(Effect::Danger))],
    ) {
        let rules = rules.iter().enumerate().map(|(index, rule)| format!("[[rules]]\nid = 'r{index}'\n{rule}"));
        let text = format!("read-only = {read_only}\n{}", rules.collect::<String>());
        let policy = policy(&text);
        let plan = policy.plan(&policy.rights_of(&tablet()), &door(), &tool("x", effect));
        let verdicts = [json!({}), json!({"a": 1}), json!({"a": 9}), json!({"a": "x"})]
            .map(|args| policy.decide(&plan, &map(args), NOON).verdict);
        if policy.hides(&plan) {
            prop_assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Deny), "{text} {verdicts:?}");
        }
        if plan.is_constant() {
            prop_assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]));
            prop_assert_eq!(policy.hides(&plan), verdicts[0] == Verdict::Deny);
        }
    }

    #[test]
    fn the_order_of_rules_changes_no_verdict(rules in prop::collection::vec(any_rule(), 1..6), a in 0..10) {
        let numbered: Vec<String> =
            rules.iter().enumerate().map(|(index, rule)| format!("[[rules]]\nid = 'r{index}'\n{rule}")).collect();
        let forwards = policy(&numbered.concat());
        let backwards = policy(&numbered.iter().rev().cloned().collect::<String>());
        let verdict = |policy: &Policy| verdict(policy, &door(), &tool("x", None), json!({"a": a}));
        prop_assert_eq!(verdict(&forwards), verdict(&backwards));
    }
}
