//! `[policy]` in the configuration file.

use crate::condition::Condition;
use crate::hours::Hours;
use crate::limit::Rate;
use crate::selector::{AnyOf, DeviceSelector, ToolSelector, WhoSelector};

/// What the policy says about a call. The stricter of two is the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    #[default]
    Allow,
    /// A person, or the client, must agree first.
    Ask,
    Deny,
}

sinew_tool::choices! { Verdict { "allow" => Verdict::Allow, "ask" => Verdict::Ask, "deny" => Verdict::Deny } }

impl Verdict {
    pub const ALL: [Verdict; 3] = [Verdict::Allow, Verdict::Ask, Verdict::Deny];

    pub fn word(self) -> &'static str {
        match self {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        }
    }
}

/// What happens to tools of which nobody said what they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnmarkedDefault {
    /// Allowed on devices that a person approved, ask elsewhere.
    #[default]
    Approved,
    Allow,
    Ask,
    Deny,
}

sinew_tool::choices! {
    UnmarkedDefault {
        "approved" => UnmarkedDefault::Approved,
        "allow" => UnmarkedDefault::Allow,
        "ask" => UnmarkedDefault::Ask,
        "deny" => UnmarkedDefault::Deny,
    }
}

impl UnmarkedDefault {
    pub fn verdict(self, approved: bool) -> Verdict {
        match self {
            UnmarkedDefault::Approved if approved => Verdict::Allow,
            UnmarkedDefault::Approved | UnmarkedDefault::Ask => Verdict::Ask,
            UnmarkedDefault::Allow => Verdict::Allow,
            UnmarkedDefault::Deny => Verdict::Deny,
        }
    }
}

/// Whose decisions about calls count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApprovalsBy {
    /// Administrators with a token, and people.
    #[default]
    Any,
    /// People who sign in with their passphrase.
    Passphrase,
}

sinew_tool::choices! { ApprovalsBy { "any" => ApprovalsBy::Any, "passphrase" => ApprovalsBy::Passphrase } }

/// Who must agree to a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AskBy {
    /// The client may ask its user; a client can also answer by itself.
    Client,
    /// An administrator, in the terminal or in the console.
    #[default]
    Person,
}

sinew_tool::choices! { AskBy { "client" => AskBy::Client, "person" => AskBy::Person } }

sinew_tool::settings! {
    /// Who may call which tools. Without this table, reading and changing tools are allowed, and dangerous ones ask.
    pub struct PolicySettings {
        /// Tools that only read: `allow`, `ask` or `deny`.
        pub default: Verdict = Verdict::Allow;
        /// Tools that change something: `allow`, `ask` or `deny`.
        pub changes: Verdict = Verdict::Allow;
        /// Tools that can do harm, and tools meant for people only: `allow`, `ask` or `deny`.
        pub danger: Verdict = Verdict::Ask;
        /// Tools of which nobody said what they do: `allow`, `ask`, `deny`, or `approved`, which allows them on approved
        /// devices and asks elsewhere.
        pub unmarked: UnmarkedDefault = UnmarkedDefault::Approved;
        /// Deny everything but reading tools, whatever the rules say.
        pub read_only: bool = false;
        /// Whose decisions about calls that wait count: `any` approver or administrator, also with a token; or with
        /// `passphrase` only people who show theirs, in the console or with `sinew approvals --as NAME`. No program that
        /// can read the token of this gateway then approves anything.
        pub approvals: ApprovalsBy = ApprovalsBy::Any;
        /// Time zone of `hours`, for example `Europe/Berlin`. By default that of the machine.
        pub timezone: Option<String> = None;
        /// Rules. Deny beats ask, and ask beats allow, whatever their order; where no rule matches, the defaults above
        /// hold.
        pub rules: Vec<PolicyRule> = Vec::new();
    }
}

sinew_tool::settings! {
    /// One rule.
    pub struct PolicyRule {
        /// Its name, shown wherever it decides.
        pub id: String = String::new();
        /// Callers: `token:LABEL`, `role:admin`, `role:client`, `person:NAME`, `oauth:NAME`, `relay:NAME`, `hook:NAME`,
        /// `peer:NAME`. By default all.
        pub who: AnyOf<WhoSelector> = AnyOf::default();
        /// Devices: `device:ID`, `label:NAME`, `family:NAME`, `kind:NAME`. By default all. What a device chooses itself
        /// allows nothing on devices that nobody approved.
        pub on: AnyOf<DeviceSelector> = AnyOf::default();
        /// Tools: a name with `*` for any text, `exactly:NAME`, `effect:danger`, `hint:destructive`, `audience:user`. By
        /// default all.
        pub tools: AnyOf<ToolSelector> = AnyOf::default();
        /// Conditions on the arguments; all must hold.
        pub r#if: Vec<Condition> = Vec::new();
        /// When the rule holds, for example `Mo-Fr 07:00-22:00`. By default always.
        pub hours: Option<Hours> = None;
        /// What to do: `allow`, `ask` or `deny`. A rule without it only limits.
        pub r#do: Option<Verdict> = None;
        /// What to do where the conditions or hours do not hold. By default the rule says nothing then.
        pub r#else: Option<Verdict> = None;
        /// How to ask.
        pub ask: AskSettings = AskSettings::default();
        /// The most calls for one caller and tool, for example `30/min`.
        pub rate: Option<Rate> = None;
        /// The most calls at the same time for one caller and tool.
        pub concurrent: Option<u32> = None;
    }
}

sinew_tool::settings! {
    /// How a call asks.
    pub struct AskSettings {
        /// Who must agree: `person` or `client`.
        pub by: AskBy = AskBy::Person;
        /// Seconds a call waits for the answer before it tells the client to repeat it.
        pub wait: std::time::Duration = std::time::Duration::from_secs(45), within 0..=55;
        /// Seconds for which one approval also covers later calls of the same tool. 0: this call only.
        pub keep: std::time::Duration = std::time::Duration::ZERO, within 0..=86400;
    }
}

impl PolicyRule {
    /// Whether it holds whatever the arguments and the time are.
    pub(crate) fn is_unconditional(&self) -> bool {
        self.r#if.is_empty() && self.hours.is_none()
    }

    pub(crate) fn limits(&self) -> bool {
        self.rate.is_some() || self.concurrent.is_some()
    }
}
