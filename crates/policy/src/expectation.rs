//! Expectations about a policy, kept in a file and checked without a gateway.

use serde_json::{Map, Value};
use sinew_tool::settings::{Deserializer, Error, Setting};
use sinew_tool::{Audience, Effect, Hints};

use crate::condition::Literal;
use crate::decide::Policy;
use crate::effect::{EffectRule, MarkedEffect, configured};
use crate::explain::Explanation;
use crate::hours::LocalTime;
use crate::problem::{PolicyProblem, Severity};
use crate::selector::{CallerFacts, CallerKind, DeviceFacts, ToolFacts};
use crate::settings::Verdict;

sinew_tool::settings! {
    /// A file of expectations.
    pub struct ExpectationFile {
        /// The expectations.
        pub expect: Vec<Expectation> = Vec::new();
    }
}

sinew_tool::settings! {
    /// What the policy must say about one call.
    pub struct Expectation {
        /// The caller: `token:LABEL`, `person:NAME`, `oauth:NAME`, `relay:NAME`, `hook:NAME` or `peer:NAME`.
        pub who: Who = Who::default();
        /// Whether the caller is an administrator.
        pub admin: bool = false;
        /// The device's id.
        pub device: String = "device".to_owned();
        /// The device's family.
        pub family: String = "board".to_owned();
        /// What the device calls itself.
        pub kind: String = String::new();
        /// The device's labels.
        pub labels: Vec<String> = Vec::new();
        /// Whether a person approved the device.
        pub approved: bool = true;
        /// The tool's name. Needed.
        pub tool: String = String::new();
        /// What the tool does where `[[effects]]` says nothing about it: `read`, `change` or `danger`. By default unmarked.
        pub effect: Option<MarkedEffect> = None;
        /// Whether the tool is meant for people only.
        pub user_only: bool = false;
        /// The arguments.
        pub args: Arguments = Arguments::default();
        /// The time of the call, for example `Mo 07:30`. By default Monday noon.
        pub at: At = At::default();
        /// What the policy must say: `allow`, `ask` or `deny`. Needed.
        pub verdict: Option<Verdict> = None;
    }
}

/// A caller, as selectors write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    pub kind: CallerKind,
    pub name: String,
}

impl Default for Who {
    fn default() -> Who {
        Who { kind: CallerKind::Token, name: "anybody".to_owned() }
    }
}

impl Setting for Who {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        let mut text = String::new();
        text.read(from)?;
        let parsed = text.split_once(':').and_then(|(kind, name)| Some((CallerKind::parse(kind)?, name)));
        let (kind, name) = parsed.filter(|(_, name)| !name.is_empty()).ok_or_else(|| {
            D::Error::custom(format!("`{text}` is not a caller; expected for example `token:tablet` or `person:ada`"))
        })?;
        *self = Who { kind, name: name.to_owned() };
        Ok(())
    }

    fn schema() -> Value {
        String::schema()
    }

    fn to_value(&self) -> Value {
        format!("{}:{}", self.kind.word(), self.name).into()
    }
}

/// The arguments of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments(pub Map<String, Value>);

impl Setting for Arguments {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        self.0 = serde::Deserialize::deserialize(from)?;
        Ok(())
    }

    fn schema() -> Value {
        serde_json::json!({"type": "object", "additionalProperties": Literal::schema()})
    }

    fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }
}

/// A time of the week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    pub time: LocalTime,
    text: String,
}

impl Default for At {
    fn default() -> At {
        At { time: LocalTime { weekday: 0, minute: 12 * 60 }, text: "Mo 12:00".to_owned() }
    }
}

impl Setting for At {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        let mut text = String::new();
        text.read(from)?;
        let time = LocalTime::parse(&text).ok_or_else(|| {
            D::Error::custom(format!("`{text}` is not a time of the week; expected for example `Mo 07:30`"))
        })?;
        *self = At { time, text };
        Ok(())
    }

    fn schema() -> Value {
        String::schema()
    }

    fn to_value(&self) -> Value {
        self.text.clone().into()
    }
}

/// An expectation that the policy does not meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// Which one in the file, from 0.
    pub index: usize,
    pub expected: Verdict,
    pub found: Explanation,
}

impl ExpectationFile {
    /// The first expectation that says too little, and what it lacks.
    pub fn check(&self) -> Result<(), PolicyProblem> {
        let lacks = |(index, expectation): (usize, &Expectation)| {
            let key = match (expectation.tool.is_empty(), expectation.verdict) {
                (true, _) => "tool",
                (false, None) => "verdict",
                (false, Some(_)) => return None,
            };
            let message =
                format!("an expectation needs `{key}`; for example `tool = \"self.unlock\"`, `verdict = \"deny\"`");
            Some(PolicyProblem { severity: Severity::Error, key: format!("expect.{index}"), message })
        };
        self.expect.iter().enumerate().find_map(lacks).map_or(Ok(()), Err)
    }

    /// The expectations that do not hold.
    pub fn run(&self, policy: &Policy, effects: &[EffectRule]) -> Vec<Mismatch> {
        let check = |(index, expectation): (usize, &Expectation)| {
            let (found, expected) = (expectation.explain(policy, effects), expectation.verdict?);
            (found.verdict != expected).then_some(Mismatch { index, expected, found })
        };
        self.expect.iter().enumerate().filter_map(check).collect()
    }
}

impl Expectation {
    pub fn explain(&self, policy: &Policy, effects: &[EffectRule]) -> Explanation {
        let labels: Vec<&str> = self.labels.iter().map(String::as_str).collect();
        let device = DeviceFacts {
            id: &self.device,
            name: None,
            kind: &self.kind,
            family: &self.family,
            labels: &labels,
            approved: self.approved,
        };
        let mut tool = ToolFacts {
            name: &self.tool,
            public_name: &self.tool,
            effect: None,
            hints: Hints::default(),
            audience: if self.user_only { Audience::User } else { Audience::Everyone },
        };
        tool.effect = configured(effects, &device, &tool).or(self.effect.map(Effect::from));
        let caller = CallerFacts { kind: self.who.kind, name: &self.who.name, admin: self.admin };
        let plan = policy.plan(&policy.rights_of(&caller), &device, &tool);
        policy.explain(&plan, &self.args.0, self.at.time)
    }
}
