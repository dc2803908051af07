//! What a phone tool is made of. A tool is one [`ToolRow`]: lists, dispatch, the reference's form and the docs page all
//! come from it, so there is no second place that names the tool.

use serde_json::{Map, Value, json};
use sinew_tool::spelling::nearest;
use sinew_tool::text::clean_line;
use sinew_tool::{Args, BoxFuture, Effect, Hints, Outcome, StepSource, Tool, ToolError};

use super::Operator;
use super::args::invalid;
use super::list::Profile;
use super::reference::Reference;
use super::steps::STEPS;
use super::table::arguments::{RETURN, SETTLE};

/// Carries a tool out.
pub(crate) type ToolFunction = for<'a> fn(&'a Operator<'a>, &'a Args) -> BoxFuture<'a, Result<Outcome, ToolError>>;

/// One phone tool.
pub struct ToolRow {
    pub name: &'static str,
    /// What it does, when to use it, and what comes back. Models read it in every conversation, so it is short.
    pub description: &'static str,
    pub arguments: &'static [ToolArgument],
    /// The members of the JSON object that it answers with, all of them always there; `None` for text and pictures.
    pub answer: Option<fn() -> Value>,
    pub impact: ToolImpact,
    /// The smallest list that it is in.
    pub profile: Profile,
    /// The tool as the remote-control reference lists it; `None` for a tool of Sinew's own.
    pub reference: Option<Reference>,
    pub(crate) run: ToolFunction,
    pub page: ToolDocPage,
}

/// What a call can do to the phone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolImpact {
    /// Nothing.
    Reads,
    /// Changes what is shown; nothing can be lost by it.
    Navigates,
    /// Does what a person's finger would do. What follows is up to the app, so no hint says that nothing can be lost.
    Acts,
    /// Destroys something by itself, cannot be undone, or gives rights away.
    Destroys,
}

impl ToolImpact {
    pub fn effect(self) -> Effect {
        match self {
            ToolImpact::Reads => Effect::Read,
            ToolImpact::Navigates | ToolImpact::Acts => Effect::Change,
            ToolImpact::Destroys => Effect::Danger,
        }
    }
}

/// One argument. The same value serves every tool that takes it.
#[derive(Clone, Copy)]
pub struct ToolArgument {
    pub name: &'static str,
    schema: fn() -> Value,
    /// What models read beside the schema, where name and tool do not say it.
    hint: &'static str,
    /// What its tool's page says about it.
    pub explanation: &'static str,
    /// JSON, for the page.
    pub example: &'static str,
    pub required: bool,
    /// The smallest list that names it; every list takes it.
    profile: Profile,
    /// The schema for models with a small context, where it says less.
    compact: Option<fn() -> Value>,
}

impl ToolArgument {
    pub const fn new(
        name: &'static str,
        schema: fn() -> Value,
        explanation: &'static str,
        example: &'static str,
    ) -> ToolArgument {
        ToolArgument {
            name,
            schema,
            hint: "",
            explanation,
            example,
            required: false,
            profile: Profile::Compact,
            compact: None,
        }
    }

    /// Not listed in the compact profile, where something else says the same.
    pub const fn not_compact(self) -> ToolArgument {
        ToolArgument { profile: Profile::Full, ..self }
    }

    /// Listed for testers alone: others rarely need it, and each name in a list costs bytes in every conversation.
    pub const fn only_tester(self) -> ToolArgument {
        ToolArgument { profile: Profile::Tester, ..self }
    }

    pub const fn compact(self, schema: fn() -> Value) -> ToolArgument {
        ToolArgument { compact: Some(schema), ..self }
    }

    pub const fn required(self) -> ToolArgument {
        ToolArgument { required: true, ..self }
    }

    pub const fn hint(self, hint: &'static str) -> ToolArgument {
        ToolArgument { hint, ..self }
    }

    pub const fn explained(self, explanation: &'static str) -> ToolArgument {
        ToolArgument { explanation, ..self }
    }

    fn listed(&self, profile: Profile) -> Value {
        let schema = self.compact.filter(|_| profile == Profile::Compact).unwrap_or(self.schema);
        let mut schema = schema();
        if !self.hint.is_empty() {
            schema["description"] = json!(self.hint);
        }
        schema
    }
}

/// What the tool's page in `docs/tools` says beyond description and schema.
pub struct ToolDocPage {
    /// What a success holds.
    pub answer: &'static str,
    /// Whether it may be repeated (Yes, No or Partially) and why. `None` for tools that only read.
    pub repeat: Option<(&'static str, &'static str)>,
    /// The state the example starts from.
    pub scene: Scene,
    /// The arguments of the example, as JSON.
    pub example: &'static str,
    /// Markdown.
    pub security: &'static str,
}

/// The state of the virtual phone in which an example is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    Home,
    Notes,
    NewNote,
    Contacts,
    Map,
    Copied,
    Crashed,
}

impl Scene {
    pub fn sentence(self) -> &'static str {
        match self {
            Scene::Home => "On the home screen:",
            Scene::Notes => "With Notes open:",
            Scene::NewNote => "With a new note open:",
            Scene::Contacts => "With Contacts open:",
            Scene::Map => "With the map of the island open in Gallery:",
            Scene::Copied => "With a text in the clipboard:",
            Scene::Crashed => "After Clock has crashed:",
        }
    }

    /// The calls that lead to it from the home screen.
    pub fn steps(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Scene::Home => &[],
            Scene::Notes => &[("open_app", r#"{"app": "Notes"}"#)],
            Scene::NewNote => &[
                ("open_app", r#"{"app": "Notes"}"#),
                ("click_element", r#"{"by": "content_desc", "value": "New note"}"#),
            ],
            Scene::Contacts => &[("open_app", r#"{"app": "Contacts"}"#)],
            Scene::Map => &[
                ("open_app", r#"{"app": "Gallery"}"#),
                ("click_element", r#"{"by": "text", "value": "Map of the island"}"#),
            ],
            Scene::Copied => &[("set_clipboard", r#"{"text": "kopiert"}"#)],
            Scene::Crashed => &[
                ("open_app", r#"{"app": "Clock"}"#),
                ("send_intent", r#"{"component": "com.android.deskclock/.CrashActivity"}"#),
            ],
        }
    }
}

impl ToolRow {
    /// Whether it changes something on the phone, and so takes turns with others that do.
    pub fn acts(&self) -> bool {
        self.impact != ToolImpact::Reads
    }

    /// Whether it runs steps, which are calls of their own.
    pub fn runs_steps(&self) -> bool {
        self.arguments.iter().any(|argument| argument.name == STEPS)
    }

    /// Refuses an argument that the tool does not have. Dropped in silence, a misspelt one would make another call than the
    /// one that was meant.
    pub(super) fn check_names(&self, args: &Args) -> Result<(), ToolError> {
        let known: Vec<&str> = self.arguments().map(|argument| argument.name).collect();
        let is_unknown = |name: &str| {
            let of_reference = self.reference.as_ref().is_some_and(|it| (it.properties)().get(name).is_some());
            // Every text answer can be bounded, and whatever finds an element by its text can want all of it.
            let is_shared = name == "max_bytes" || (name == "exact_match" && known.contains(&"by"));
            !known.contains(&name) && !is_shared && !of_reference
        };
        let Some((name, _)) = args.iter().find(|(name, value)| !value.is_null() && is_unknown(name)) else {
            return Ok(());
        };
        let (tool, name) = (self.name, clean_line(name, 64));
        let meant = match nearest(&name, known.iter().copied()) {
            Some(meant) => format!("did you mean '{meant}'?"),
            None if known.is_empty() => "it takes none".to_owned(),
            None => format!("it takes {}", known.join(", ")),
        };
        Err(invalid(&name, format!("{tool} has no parameter '{name}'; {meant}")))
    }

    /// Its own arguments, and those that all acting tools take.
    pub fn arguments(&self) -> impl Iterator<Item = &ToolArgument> {
        let shared: &[ToolArgument] = if self.acts() { &[SETTLE, RETURN] } else { &[] };
        self.arguments.iter().chain(shared)
    }

    /// The tool as it is listed in a profile.
    pub fn to_tool(&self, profile: Profile) -> Tool {
        let listed = self.arguments().filter(|argument| argument.profile <= profile);
        let properties: Map<String, Value> =
            listed.map(|argument| (argument.name.to_owned(), argument.listed(profile))).collect();
        let mut schema = json!({"type": "object", "properties": properties});
        let required: Vec<&str> =
            self.arguments().filter(|argument| argument.required).map(|argument| argument.name).collect();
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        let mut tool = Tool::new(self.name, self.description, schema).with_effect(self.impact.effect());
        tool = tool.with_hints(match self.impact {
            ToolImpact::Reads => Hints::reading(),
            ToolImpact::Navigates => Hints { destructive: Some(false), ..Hints::default() },
            ToolImpact::Acts | ToolImpact::Destroys => Hints::default(),
        });
        if self.runs_steps() {
            tool.steps = StepSource::Argument(STEPS.to_owned());
        }
        // What an answer holds stands in it; for a small context it is not said beforehand too.
        if let Some(answer) = self.answer.filter(|_| profile != Profile::Compact) {
            let members = answer();
            let required: Vec<&String> = members.as_object().into_iter().flat_map(Map::keys).collect();
            tool = tool.with_output_schema(json!({"type": "object", "properties": members, "required": required}));
        }
        match &self.reference {
            Some(reference) => tool.with_plain(reference.to_tool(self.name)),
            None => tool,
        }
    }
}
