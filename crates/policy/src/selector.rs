//! Selectors: the texts in a rule that say which callers, devices and tools it is about.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};
use sinew_tool::settings::{Deserializer, Error, Setting};
use sinew_tool::spelling::nearest;
use sinew_tool::{Audience, Effect, Hints};

use crate::selection::{DeviceMatch, ToolMatch};

/// Names and patterns that people write are shorter, and every selector is compared with every tool.
const MAX_SELECTOR: usize = 256;
const MAX_SELECTORS: usize = 256;

/// A pattern in which `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    text: Box<str>,
}

impl Glob {
    /// Takes time proportional to the two lengths multiplied, at worst; both are bounded.
    pub fn matches(&self, name: &str) -> bool {
        let Some((first, rest)) = self.text.split_once('*') else { return *self.text == *name };
        let Some(mut name) = name.strip_prefix(first) else { return false };
        let mut pieces = rest.split('*').peekable();
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() {
                return name.ends_with(piece);
            }
            let Some(at) = name.find(piece) else { return false };
            name = &name[at + piece.len()..];
        }
        true
    }

    /// The same whatever the case of letters.
    pub fn matches_any_case(&self, name: &str) -> bool {
        self.lower().matches(&name.to_lowercase())
    }

    fn lower(&self) -> Glob {
        Glob { text: self.text.to_lowercase().into() }
    }

    fn is_exact(&self) -> bool {
        !self.text.contains('*')
    }

    /// Whether everything that `other` matches is matched by this one too. `false` where that is not certain.
    pub(crate) fn covers(&self, other: &Glob) -> bool {
        // Each `*` of the other pattern may be any text; a character that no pattern contains stands for it.
        self == other || &*self.text == "*" || self.matches(&other.text.replace('*', "\u{1}"))
    }
}

impl FromStr for Glob {
    type Err = String;

    fn from_str(text: &str) -> Result<Glob, String> {
        if text.is_empty() {
            return Err("an empty pattern matches nothing; use `*` for everything".to_owned());
        }
        if text.len() > MAX_SELECTOR || text.chars().any(char::is_control) {
            return Err(format!("a pattern has at most {MAX_SELECTOR} bytes and no control characters"));
        }
        Ok(Glob { text: text.into() })
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How a caller came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallerKind {
    /// With a token; the name is the token's label.
    Token,
    /// A person who signed in.
    Person,
    /// A client that a person let sign in by OAuth.
    OAuth,
    /// A voice server behind a relayed board.
    Relay,
    /// A web hook.
    Hook,
    /// Another gateway.
    Peer,
}

impl CallerKind {
    const ALL: [CallerKind; 6] = [
        CallerKind::Token,
        CallerKind::Person,
        CallerKind::OAuth,
        CallerKind::Relay,
        CallerKind::Hook,
        CallerKind::Peer,
    ];

    pub fn parse(word: &str) -> Option<CallerKind> {
        CallerKind::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// What selectors call it.
    pub fn word(self) -> &'static str {
        match self {
            CallerKind::Token => "token",
            CallerKind::Person => "person",
            CallerKind::OAuth => "oauth",
            CallerKind::Relay => "relay",
            CallerKind::Hook => "hook",
            CallerKind::Peer => "peer",
        }
    }
}

/// What rules can know about a caller.
#[derive(Clone, Copy, Debug)]
pub struct CallerFacts<'a> {
    pub kind: CallerKind,
    pub name: &'a str,
    pub admin: bool,
}

/// What rules can know about a device.
#[derive(Clone, Copy, Debug)]
pub struct DeviceFacts<'a> {
    pub id: &'a str,
    /// The name that an administrator gave it.
    pub name: Option<&'a str>,
    /// What the device calls itself. It can change this at will.
    pub kind: &'a str,
    pub family: &'a str,
    pub labels: &'a [&'a str],
    /// Whether a person approved or pinned the device, or the configuration names it.
    pub approved: bool,
}

/// What rules can know about a tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolFacts<'a> {
    /// The device's own name for it.
    pub name: &'a str,
    /// The name that clients see.
    pub public_name: &'a str,
    /// `None`: nobody said what it does.
    pub effect: Option<Effect>,
    pub hints: Hints,
    pub audience: Audience,
}

/// Selects callers: `token:tablet`, `role:admin`, `oauth:*@example.org`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhoSelector {
    Caller(CallerKind, Glob),
    Admin,
    Client,
}

impl WhoSelector {
    pub fn matches(&self, caller: &CallerFacts<'_>) -> bool {
        match self {
            // No two tokens have labels that differ in case alone.
            WhoSelector::Caller(CallerKind::Token, label) => {
                caller.kind == CallerKind::Token && label.matches_any_case(caller.name)
            }
            WhoSelector::Caller(kind, name) => caller.kind == *kind && name.matches(caller.name),
            WhoSelector::Admin => caller.admin,
            WhoSelector::Client => !caller.admin,
        }
    }

    pub(crate) fn covers(&self, other: &WhoSelector) -> bool {
        match (self, other) {
            (WhoSelector::Caller(CallerKind::Token, label), WhoSelector::Caller(CallerKind::Token, part)) => {
                label.lower().covers(&part.lower())
            }
            (WhoSelector::Caller(kind, name), WhoSelector::Caller(other, part)) => kind == other && name.covers(part),
            _ => self == other,
        }
    }
}

impl FromStr for WhoSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<WhoSelector, String> {
        let kinds = CallerKind::ALL.map(CallerKind::word);
        let (word, rest) = split(text, kinds.iter().copied().chain(["role"]))?;
        match (CallerKind::parse(word), rest) {
            (Some(kind), name) => Ok(WhoSelector::Caller(kind, name.parse()?)),
            (None, "admin") => Ok(WhoSelector::Admin),
            (None, "client") => Ok(WhoSelector::Client),
            (None, _) => Err(format!("`{text}`: the roles are `admin` and `client`")),
        }
    }
}

impl fmt::Display for WhoSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhoSelector::Caller(kind, name) => write!(f, "{}:{name}", kind.word()),
            WhoSelector::Admin => f.write_str("role:admin"),
            WhoSelector::Client => f.write_str("role:client"),
        }
    }
}

/// Selects devices: `device:front-door`, `label:door`, `family:phone`, `kind:lock-*`. What they are compared with does
/// not differ in case alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceSelector {
    /// By id, or by the name an administrator gave it.
    Id(Glob),
    /// By what the device calls itself.
    Kind(Glob),
    Family(Glob),
    Label(Glob),
}

impl DeviceSelector {
    pub(crate) fn match_of(&self, device: &DeviceFacts<'_>) -> Option<DeviceMatch> {
        match self {
            DeviceSelector::Id(glob) if device.name.is_some_and(|name| glob.matches_any_case(name)) => {
                Some(DeviceMatch::Named)
            }
            DeviceSelector::Id(glob) => glob.matches_any_case(device.id).then_some(if glob.is_exact() {
                DeviceMatch::Named
            } else {
                DeviceMatch::OwnWord
            }),
            DeviceSelector::Kind(glob) => glob.matches_any_case(device.kind).then_some(DeviceMatch::OwnWord),
            DeviceSelector::Family(glob) => glob.matches_any_case(device.family).then_some(DeviceMatch::Group),
            DeviceSelector::Label(glob) => {
                device.labels.iter().any(|label| glob.matches_any_case(label)).then_some(DeviceMatch::Named)
            }
        }
    }

    pub(crate) fn covers(&self, other: &DeviceSelector) -> bool {
        match (self, other) {
            (DeviceSelector::Id(all), DeviceSelector::Id(part))
            | (DeviceSelector::Kind(all), DeviceSelector::Kind(part))
            | (DeviceSelector::Family(all), DeviceSelector::Family(part))
            | (DeviceSelector::Label(all), DeviceSelector::Label(part)) => all.lower().covers(&part.lower()),
            _ => false,
        }
    }
}

impl FromStr for DeviceSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<DeviceSelector, String> {
        let (word, rest) = split(text, ["device", "kind", "family", "label"])?;
        let glob = rest.parse()?;
        Ok(match word {
            "kind" => DeviceSelector::Kind(glob),
            "family" => DeviceSelector::Family(glob),
            "label" => DeviceSelector::Label(glob),
            _ => DeviceSelector::Id(glob),
        })
    }
}

impl fmt::Display for DeviceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceSelector::Id(glob) => write!(f, "device:{glob}"),
            DeviceSelector::Kind(glob) => write!(f, "kind:{glob}"),
            DeviceSelector::Family(glob) => write!(f, "family:{glob}"),
            DeviceSelector::Label(glob) => write!(f, "label:{glob}"),
        }
    }
}

/// Selects tools: `*unlock*`, `exactly:*`, `effect:danger`, `hint:destructive`, `audience:user`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolSelector {
    /// By the device's own name for it, or by its public one.
    Name(Glob),
    /// By the device's own name for it, in which `*` is a character like others.
    Exactly(Box<str>),
    /// `None`: unmarked.
    Effect(Option<Effect>),
    /// By what the device says about the tool.
    Hint(ToolHint),
    /// Tools for people only.
    ForUsers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolHint {
    ReadOnly,
    Destructive,
    OpenWorld,
}

impl ToolSelector {
    pub(crate) fn match_of(&self, tool: &ToolFacts<'_>) -> Option<ToolMatch> {
        let is_match = match self {
            ToolSelector::Effect(effect) => return (tool.effect == *effect).then_some(ToolMatch::Group),
            ToolSelector::Name(glob) => glob.matches(tool.name) || glob.matches(tool.public_name),
            ToolSelector::Exactly(name) => **name == *tool.name,
            ToolSelector::Hint(ToolHint::ReadOnly) => tool.hints.read_only == Some(true),
            ToolSelector::Hint(ToolHint::Destructive) => tool.hints.destructive == Some(true),
            ToolSelector::Hint(ToolHint::OpenWorld) => tool.hints.open_world == Some(true),
            ToolSelector::ForUsers => tool.audience == Audience::User,
        };
        is_match.then_some(ToolMatch::OwnWord)
    }

    /// The selector of the one tool with this name, as short as it can be; `None` where no file can hold the name.
    pub fn exactly(name: &str) -> Option<ToolSelector> {
        let is_plain = name.chars().all(|character| character.is_alphanumeric() || "-_./ ".contains(character));
        let text = if is_plain { name.to_owned() } else { format!("exactly:{name}") };
        text.parse().ok()
    }

    pub(crate) fn covers(&self, other: &ToolSelector) -> bool {
        match (self, other) {
            (ToolSelector::Name(all), ToolSelector::Name(part)) => all.covers(part),
            (ToolSelector::Name(all), ToolSelector::Exactly(name)) => all.matches(name),
            _ => self == other,
        }
    }
}

impl FromStr for ToolSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<ToolSelector, String> {
        // The names of tools have no colon in most dialects; `name:` is for those that have.
        if !text.contains(':') {
            return Ok(ToolSelector::Name(text.parse()?));
        }
        let (word, rest) = split(text, ["name", "exactly", "effect", "hint", "audience"])?;
        match (word, rest) {
            ("name", name) => Ok(ToolSelector::Name(name.parse()?)),
            ("exactly", name) => name.parse::<Glob>().map(|name| ToolSelector::Exactly(name.text)),
            ("effect", "read") => Ok(ToolSelector::Effect(Some(Effect::Read))),
            ("effect", "change") => Ok(ToolSelector::Effect(Some(Effect::Change))),
            ("effect", "danger") => Ok(ToolSelector::Effect(Some(Effect::Danger))),
            ("effect", "unmarked") => Ok(ToolSelector::Effect(None)),
            ("effect", _) => Err(format!("`{text}`: the effects are `read`, `change`, `danger` and `unmarked`")),
            ("hint", "read-only") => Ok(ToolSelector::Hint(ToolHint::ReadOnly)),
            ("hint", "destructive") => Ok(ToolSelector::Hint(ToolHint::Destructive)),
            ("hint", "open-world") => Ok(ToolSelector::Hint(ToolHint::OpenWorld)),
            ("hint", _) => Err(format!("`{text}`: the hints are `read-only`, `destructive` and `open-world`")),
            ("audience", "user") => Ok(ToolSelector::ForUsers),
            _ => Err(format!("`{text}`: the only audience to select is `user`")),
        }
    }
}

impl fmt::Display for ToolSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToolSelector::Name(glob) if glob.text.contains(':') => write!(f, "name:{glob}"),
            ToolSelector::Name(glob) => write!(f, "{glob}"),
            ToolSelector::Exactly(name) => write!(f, "exactly:{name}"),
            ToolSelector::Effect(None) => f.write_str("effect:unmarked"),
            ToolSelector::Effect(Some(Effect::Read)) => f.write_str("effect:read"),
            ToolSelector::Effect(Some(Effect::Change)) => f.write_str("effect:change"),
            ToolSelector::Effect(Some(Effect::Danger)) => f.write_str("effect:danger"),
            ToolSelector::Hint(ToolHint::ReadOnly) => f.write_str("hint:read-only"),
            ToolSelector::Hint(ToolHint::Destructive) => f.write_str("hint:destructive"),
            ToolSelector::Hint(ToolHint::OpenWorld) => f.write_str("hint:open-world"),
            ToolSelector::ForUsers => f.write_str("audience:user"),
        }
    }
}

fn split(text: &str, words: impl IntoIterator<Item = &'static str>) -> Result<(&'static str, &str), String> {
    let words: Vec<&str> = words.into_iter().collect();
    let list = || words.iter().map(|word| format!("`{word}:`")).collect::<Vec<_>>().join(", ");
    let Some((written, rest)) = text.split_once(':') else {
        return Err(format!("`{text}` does not say what it selects by; begin it with one of {}", list()));
    };
    if let Some(word) = words.iter().find(|word| **word == written) {
        return Ok((word, rest));
    }
    Err(match nearest(written, words.iter().copied()) {
        Some(word) => format!("`{text}`: unknown selector `{written}:`; did you mean `{word}:`?"),
        None => format!("`{text}`: unknown selector `{written}:`; it is one of {}", list()),
    })
}

/// A list of selectors in a rule, of which one must match; a rule without the list matches everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnyOf<T> {
    list: Option<Vec<T>>,
}

impl<T> Default for AnyOf<T> {
    fn default() -> AnyOf<T> {
        AnyOf { list: None }
    }
}

impl<T> AnyOf<T> {
    pub fn matches(&self, matches: impl FnMut(&T) -> bool) -> bool {
        self.list.as_ref().is_none_or(|list| list.iter().any(matches))
    }

    /// The best match of a selector; `everything` where there is no list.
    pub(crate) fn best<M: Ord>(&self, everything: M, match_of: impl FnMut(&T) -> Option<M>) -> Option<M> {
        match &self.list {
            None => Some(everything),
            Some(list) => list.iter().filter_map(match_of).max(),
        }
    }

    pub fn selectors(&self) -> &[T] {
        self.list.as_deref().unwrap_or_default()
    }

    pub fn is_everything(&self) -> bool {
        self.list.is_none()
    }

    /// Whether all that `other` matches is matched by this one. `false` where that is not certain.
    pub(crate) fn covers(&self, other: &AnyOf<T>, covers: impl Fn(&T, &T) -> bool) -> bool {
        match (&self.list, &other.list) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(all), Some(parts)) => parts.iter().all(|part| all.iter().any(|one| covers(one, part))),
        }
    }
}

impl<T: FromStr<Err = String> + fmt::Display> Setting for AnyOf<T> {
    fn read<'de, D: Deserializer<'de>>(&mut self, from: D) -> Result<(), D::Error> {
        let mut texts: Vec<String> = Vec::new();
        texts.read(from)?;
        if texts.is_empty() {
            return Err(D::Error::custom("an empty list matches nothing; leave the key out to match everything"));
        }
        if texts.len() > MAX_SELECTORS {
            return Err(D::Error::custom(format!("more than {MAX_SELECTORS} entries; use patterns or labels")));
        }
        let list = texts.iter().map(|text| text.parse()).collect::<Result<Vec<T>, String>>();
        self.list = Some(list.map_err(D::Error::custom)?);
        Ok(())
    }

    fn schema() -> Value {
        json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_SELECTORS})
    }

    fn to_value(&self) -> Value {
        match &self.list {
            None => Value::Null,
            Some(list) => list.iter().map(|selector| json!(selector.to_string())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("lock", "lock", true),
            ("lock", "unlock", false),
            ("*lock", "unlock", true),
            ("*lock", "locked", false),
            ("*lock*", "unlocked", true),
            ("self.*.set_*", "self.lamp.set_color", true),
            ("self.*.set_*", "self.set_color", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*", "", true),
            ("**", "x", true),
            ("a*b*c", "abcbc", true),
            ("a*b*c", "acb", false),
        ] {
            assert_eq!(pattern.parse::<Glob>().unwrap().matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_covers_a_narrower_one() {
        let glob = |text: &str| text.parse::<Glob>().unwrap();
        assert!(glob("*").covers(&glob("self.*")));
        assert!(glob("self.*").covers(&glob("self.lamp.*")));
        assert!(glob("*lock*").covers(&glob("*unlock")));
        assert!(!glob("self.lamp.*").covers(&glob("self.*")));
        assert!(!glob("a*c").covers(&glob("a*")));
    }

    #[test]
    fn selectors_are_printed_as_they_are_written() {
        for text in ["token:tablet", "person:*", "oauth:*@kids.example", "role:admin", "role:client", "hook:x"] {
            assert_eq!(text.parse::<WhoSelector>().unwrap().to_string(), text);
        }
        for text in ["device:front-door", "kind:lock-*", "family:phone", "label:door"] {
            assert_eq!(text.parse::<DeviceSelector>().unwrap().to_string(), text);
        }
        for text in [
            "*unlock*",
            "effect:unmarked",
            "effect:danger",
            "hint:destructive",
            "audience:user",
            "name:a:b",
            "exactly:*",
            "exactly:effect:danger",
        ] {
            assert_eq!(text.parse::<ToolSelector>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_has_no_case_of_its_own_is_selected_in_any() {
        let device = DeviceFacts {
            id: "front-door",
            name: Some("Haustür Vorn"),
            kind: "lock-s3",
            family: "board",
            labels: &["door"],
            approved: true,
        };
        for text in ["device:Front-Door", "device:HAUSTÜR vorn", "family:Board", "label:Door", "kind:Lock-*"] {
            assert!(text.parse::<DeviceSelector>().unwrap().match_of(&device).is_some(), "{text}");
        }
        let caller = |kind, name| CallerFacts { kind, name, admin: false };
        let tablet: WhoSelector = "token:Tablet".parse().unwrap();
        assert!(tablet.matches(&caller(CallerKind::Token, "tablet")));
        assert!(tablet.covers(&"token:tablet".parse().unwrap()));
        let person: WhoSelector = "person:Anna".parse().unwrap();
        assert!(!person.matches(&caller(CallerKind::Person, "anna")));
    }

    #[test]
    fn a_wrong_selector_is_refused_with_the_right_ones() {
        let who = |text: &str| text.parse::<WhoSelector>().unwrap_err();
        assert!(who("tokn:tablet").contains("did you mean `token:`"), "{}", who("tokn:tablet"));
        assert!(who("tablet").contains("`token:`"), "{}", who("tablet"));
        assert!(who("role:root").contains("`admin`"), "{}", who("role:root"));
        assert!(who("token:").contains("empty"), "{}", who("token:"));
        let tool = |text: &str| text.parse::<ToolSelector>().unwrap_err();
        assert!(tool("efect:read").contains("did you mean `effect:`"), "{}", tool("efect:read"));
        assert!(tool("effect:bad").contains("`unmarked`"), "{}", tool("effect:bad"));
    }

    #[test]
    fn a_name_that_a_device_chose_is_written_so_that_it_matches_only_itself() {
        let facts = |name| ToolFacts {
            name,
            public_name: "public",
            effect: Some(Effect::Danger),
            hints: Hints::default(),
            audience: Audience::Everyone,
        };
        for name in ["self.unlock", "*", "effect:danger", "name:*", "a*b", "exactly:x", "hint:read-only"] {
            let text = ToolSelector::exactly(name).unwrap().to_string();
            let selector: ToolSelector = text.parse().unwrap();
            assert!(selector.match_of(&facts(name)).is_some(), "{text}");
            assert!(selector.match_of(&facts("other")).is_none(), "{text}");
        }
        assert_eq!(ToolSelector::exactly("self.unlock").unwrap().to_string(), "self.unlock");
        for unwritable in ["", "a\nb", &"x".repeat(300)] {
            assert_eq!(ToolSelector::exactly(unwritable), None, "{unwritable:?}");
        }
    }
}
