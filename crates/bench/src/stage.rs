//! The parts of a run.

/// One part of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stage {
    Starting,
    Speed,
    Latency,
    Memory,
    Listing,
    Access,
    ConsolePages,
    ConsoleLoad,
    OpenConsoles,
    Phones,
    Apps,
    Specifications,
    Voice,
    Routines,
    Gadgets,
    Hostile,
    Fleet(u32),
    Mqtt,
    Crowd(u32),
    Chaos(u32),
    Soak(f64),
}

impl Stage {
    /// What is measured unless something else is asked for, in this order. Each can be measured alone.
    pub const USUAL: [Stage; 16] = [
        Stage::Starting,
        Stage::Speed,
        Stage::Latency,
        Stage::Memory,
        Stage::Listing,
        Stage::Access,
        Stage::ConsolePages,
        Stage::ConsoleLoad,
        Stage::OpenConsoles,
        Stage::Phones,
        Stage::Apps,
        Stage::Specifications,
        Stage::Voice,
        Stage::Routines,
        Stage::Gadgets,
        Stage::Hostile,
    ];

    /// The stage of [`Stage::USUAL`] with this name.
    pub fn named(name: &str) -> Option<Stage> {
        Stage::USUAL.into_iter().find(|stage| stage.name() == name)
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        self.texts().0
    }

    /// What is being done, for the progress line.
    pub fn label(self) -> &'static str {
        self.texts().1
    }

    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Stage::Starting => ("starting", "starting gateways"),
            Stage::Speed => ("speed", "calling tools"),
            Stage::Latency => ("latency", "measuring latency"),
            Stage::Memory => ("memory", "connecting boards"),
            Stage::Listing => ("listing", "listing tools"),
            Stage::Access => ("access", "deciding and recording"),
            Stage::ConsolePages => ("console-pages", "opening pages of the console"),
            Stage::ConsoleLoad => ("console-load", "loading the console for the first time"),
            Stage::OpenConsoles => ("open-consoles", "calling while consoles are open"),
            Stage::Phones => ("phones", "using phones"),
            Stage::Apps => ("apps", "looking for apps"),
            Stage::Specifications => ("specifications", "checking specifications"),
            Stage::Voice => ("voice", "relaying voices"),
            Stage::Routines => ("routines", "running routines"),
            Stage::Gadgets => ("gadgets", "calling servers, lines and things"),
            Stage::Hostile => ("hostile", "calling boards beside a hostile one"),
            Stage::Fleet(_) => ("fleet", "gathering a fleet"),
            Stage::Mqtt => ("mqtt", "calling boards on MQTT"),
            Stage::Crowd(_) => ("crowd", "gathering a crowd"),
            Stage::Chaos(_) => ("chaos", "causing chaos"),
            Stage::Soak(_) => ("soak", "calling for a long time"),
        }
    }
}
